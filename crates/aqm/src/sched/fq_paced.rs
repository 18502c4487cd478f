//! fq: a queue per flow that sends each packet at its own time, and flows at a rate of their own.
//!
//! **Source** Linux sch_fq; tc-fq(8).
//!
//! **Decides** on departure: the next flow, and when it may send; on arrival if a buffer is full.
//!
//! **Measures** the bytes of each flow.
//!
//! **Algorithm** A packet may have a departure time, [`Packet::departure`], before which it is not
//! sent. Flows are served by deficit round robin with `quantum`, formerly idle flows first; a flow
//! that is seen for the first time has `initial_quantum` bytes. A flow whose first packet is not
//! due leaves the round until then.
//!
//! `maxrate` r limits each flow. When a flow has used up its quantum of q bytes, it may send again
//! q / r later; at or below `low_rate_threshold` after each packet of L bytes, L / r later. If it
//! was served later than it was due, its next delay is shorter by as much, but at least a half of
//! q / r or L / r. After a packet with a departure time, the delay is L / r at any rate. No delay
//! is longer than a second.
//!
//! Flows of three priorities, by the DSCP as in pfifo_fast, share the link by deficit round robin
//! with `weights` bytes per round, each with its own new and old flows.
//!
//! A packet is dropped if it arrives while `limit` packets are queued, or `flow_limit` of its flow,
//! or if it is due later than `horizon` (with `horizon_drop` off, it is then due at the horizon).
//! Packets that leave more than `ce_threshold` after they were due are marked.
//!
//! While every flow is idle or delayed, an arriving packet joins a first-in, first-out queue of up
//! to 8 packets that is served first, without credits and marks.
//!
//! **Departures** (1) Sockets have no rate of their own; senders set departure times. (2) Packets
//! of a flow keep their order; Linux orders them by departure time. (3) Flows are the remainders of
//! the hash by `flows`, as Linux treats packets that it forwards; in Linux each socket has a queue
//! of its own. (4) `limit` is for all priorities together and may be in bytes; in Linux each
//! priority has it. (5) Flows are never forgotten; Linux forgets one that was idle for 3 s. (6)
//! Without `hz`, idle times are exact; in Linux they are in ticks and begin at an odd tick, as here
//! with `hz`. (7) No offload. (8) If all flows are delayed when it looks for one, Linux gives the
//! priorities further bytes.
//!
//! **Cost** 82328 bytes of state: 80 per flow. O(1) per packet; O(log n) if its flow is delayed.

use crate::aqm::fits;
use crate::build::{Build, Env};
use crate::cast;
use crate::context::{Context, DropReason};
use crate::entry::QdiscEntry;
use crate::error::{Error, Result};
use crate::fifo::{Fifo, Pool};
use crate::packet::Packet;
use crate::params::Checked;
use crate::qdisc::{Backlog, Qdisc};
use crate::sched::pfifo_fast::band;
use crate::snapshot::Snapshot;
use crate::units::{Bytes, Rate, Size, Span, Time};
use alloc::collections::BinaryHeap;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<FqPaced>(
    "fq",
    "a queue per flow that sends packets at their own times, with a highest rate per flow",
)
.aliases(&["sch_fq"])
.decides("on departure: the next flow, and when it may send")
.source("Linux sch_fq");

crate::params! {
    /// Parameters of [`FqPaced`].
    pub struct FqPacedParams {
        /// Size of the buffer, in packets or bytes.
        limit: Size = Size::Packets(10_000),
            [Size::Packets(1) => Size::Packets(1_000_000_000_000)], "", ["buffer"];
        /// Largest number of packets of a flow.
        flow_limit: u64 = 100, [1 => 4_294_967_295], "", [];
        /// Bytes of a flow per round.
        quantum: Bytes = Bytes(3028), [Bytes(1) => Bytes(1_048_576)], "", [];
        /// Bytes that a new flow may send at first.
        initial_quantum: Bytes = Bytes(15_140), [Bytes(0) => Bytes(2_147_483_647)], "", [];
        /// Highest rate of a flow; auto: none.
        maxrate: Option<Rate> = None,
            [Rate(8) => Rate(1_000_000_000_000_000_000)], "", [];
        /// Rate up to which each packet of a flow is delayed by itself.
        low_rate_threshold: Rate = Rate(550_000),
            [Rate(0) => Rate(1_000_000_000_000_000_000)], "", [];
        /// Idle time after which a flow has a full quantum again.
        refill_delay: Span = Span::ms(40), [Span(0) => Span::s(1000)], "", [];
        /// Ticks per second of the clock that measures idle times; auto: these are exact.
        hz: Option<u64> = None, [1 => 10_000], "", [];
        /// Number of queues for flows.
        flows: u64 = 1024, [1 => 1_048_576], "", ["buckets"];
        /// Bytes per round of each priority.
        weights: Vec<Bytes> = [Bytes(589_824), Bytes(196_608), Bytes(65_536)].into(),
            [Bytes(1) => Bytes(1_000_000_000)], "", [];
        /// Time after its due time from which on a packet is marked; auto: none is marked.
        ce_threshold: Option<Span> = None, [Span(0) => Span::s(1000)], "", [];
        /// Time from its arrival up to which a packet may be delayed.
        horizon: Span = Span::s(10), [Span::us(1) => Span::s(4000)], "", [];
        /// True to drop a packet beyond the horizon, false to send it at the horizon.
        horizon_drop: bool = true, [], "", [];
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
enum State {
    /// Without packets, and in no list.
    Detached,
    /// In a list of its band.
    Listed,
    /// Until `due`.
    Delayed,
}

const NONE: u32 = u32::MAX;

/// Number of packets up to which packets without a turn are served first.
const FAST_PACKETS: u32 = 8;

#[derive(Clone, Copy, Debug, Snapshot)]
struct Flow {
    fifo: Fifo,
    credit: i64,
    /// Time before which it does not send; `None` before it was delayed.
    due: Option<Time>,
    /// Time at which it was detached; `None` before its first packet.
    idle_since: Option<Time>,
    /// Next flow of its list.
    next: u32,
    band: usize,
    state: State,
}

/// List of flows: the first and the last one.
#[derive(Clone, Copy, Debug, Snapshot)]
struct List([u32; 2]);

#[derive(Clone, Copy, Debug, Snapshot)]
struct Band {
    new: List,
    old: List,
    credit: i64,
    quantum: i64,
}

/// The fq discipline.
#[derive(Clone, Debug, Snapshot)]
pub struct FqPaced {
    params: FqPacedParams,
    flows: Vec<Flow>,
    bands: [Band; 3],
    /// Band that is served.
    current: usize,
    /// Packets that arrived while no flow was ready.
    fast: Fifo,
    /// Number of flows that have packets and are not delayed.
    active: u32,
    /// Delayed flows by time, then by the order in which they were delayed.
    delayed: BinaryHeap<Reverse<(Time, u64, u32)>>,
    /// Number of delays of flows so far.
    delays: u64,
    pool: Pool,
    backlog: Backlog,
}

impl Build for FqPaced {
    type Params = FqPacedParams;

    fn new(params: Checked<'_, FqPacedParams>, _env: &Env) -> Result<Self> {
        let [first, second, third] = params.weights[..] else {
            let text = format!("{} weights for 3 priorities", params.weights.len());
            return Err(Error::new(text).at("weights"));
        };
        let flow = Flow {
            fifo: Fifo::default(),
            credit: params.initial_quantum.0.cast_signed(),
            due: None,
            idle_since: None,
            next: NONE,
            band: 0,
            state: State::Detached,
        };
        let band = |quantum: Bytes| {
            let (list, quantum) = (List([NONE; 2]), quantum.0.cast_signed());
            Band { new: list, old: list, credit: quantum, quantum }
        };
        Ok(FqPaced {
            params: (*params).clone(),
            flows: vec![flow; cast::index(params.flows)],
            bands: [first, second, third].map(band),
            current: 0,
            fast: Fifo::default(),
            active: 0,
            delayed: BinaryHeap::with_capacity(cast::index(params.flows)),
            delays: 0,
            pool: Pool::default(),
            backlog: Backlog::default(),
        })
    }
}

impl FqPacedParams {
    /// Returns true if a flow that is idle since `since` has a full quantum again.
    fn is_over(&self, since: Time, now: Time) -> bool {
        let Some(hz) = self.hz else { return now > since + self.refill_delay };
        let tick = |time: Time| u128::from(time.0) * u128::from(hz) / 1_000_000_000;
        let delay = (u128::from(self.refill_delay.0) * u128::from(hz)).div_ceil(1_000_000_000);
        // Linux sets the last bit of a stored tick, by which it tells ticks from pointers.
        tick(now) > (tick(since) | 1) + delay
    }
}

impl FqPaced {
    /// Appends flow `i` to the new or the old flows of its band.
    fn append(&mut self, i: u32, new: bool) {
        let flow = &mut self.flows[i as usize];
        (flow.next, flow.state) = (NONE, State::Listed);
        let band = &mut self.bands[flow.band];
        let List([first, last]) = if new { &mut band.new } else { &mut band.old };
        match *last {
            NONE => *first = i,
            before => self.flows[before as usize].next = i,
        }
        *last = i;
    }

    /// Removes the first flow of a list of band `b`.
    fn remove_first(&mut self, b: usize, new: bool) {
        let band = &mut self.bands[b];
        let List([first, last]) = if new { &mut band.new } else { &mut band.old };
        *first = self.flows[*first as usize].next;
        if *first == NONE {
            *last = NONE;
        }
    }

    /// Returns the next flow of band `b`, and whether it is new; `None` without a flow or credit.
    fn turn(&self, b: usize) -> Option<(u32, bool)> {
        let Band { new: List([new, _]), old: List([old, _]), credit, .. } = self.bands[b];
        let first = if new == NONE { (old, false) } else { (new, true) };
        (credit > 0 && first.0 != NONE).then_some(first)
    }

    /// Selects the next band; `None` if no flow is in a list. Rounds without a sender are credited
    /// at once.
    fn next_band(&mut self) -> Option<(u32, bool)> {
        let listed = |band: &Band| band.new.0[0] != NONE || band.old.0[0] != NONE;
        let rounds = |band: &Band| (-band.credit).max(0) / band.quantum;
        let skip = self.bands.iter().filter(|band| listed(band)).map(rounds).min()?;
        for band in &mut self.bands {
            band.credit = (band.credit + skip * band.quantum).min(band.quantum);
        }
        loop {
            self.current = (self.current + 1) % self.bands.len();
            let band = &mut self.bands[self.current];
            band.credit = (band.credit + band.quantum).min(band.quantum);
            if let Some(turn) = self.turn(self.current) {
                return Some(turn);
            }
        }
    }

    /// Credits the old flows of band `b` for all rounds in which none of them can send.
    fn skip_rounds(&mut self, b: usize) {
        let quantum = self.params.quantum.0.cast_signed();
        let List([first, _]) = self.bands[b].old;
        let (mut i, mut rounds) = (first, i64::MAX);
        while i != NONE {
            let flow = &self.flows[i as usize];
            rounds = rounds.min((-flow.credit).max(0) / quantum);
            i = flow.next;
        }
        i = first;
        while i != NONE {
            let flow = &mut self.flows[i as usize];
            flow.credit += rounds * quantum;
            i = flow.next;
        }
    }

    /// Puts flows that are due back into the round.
    fn release(&mut self, now: Time) {
        while let Some(Reverse((due, _, i))) = self.delayed.peek().copied()
            && due <= now
        {
            self.delayed.pop();
            self.active += 1;
            self.append(i, false);
        }
    }

    /// Charges a packet of flow `i` to its credits, and delays the flow to its rate.
    fn charge(&mut self, now: Time, i: u32, packet: &Packet) {
        let FqPacedParams { maxrate, low_rate_threshold, quantum, .. } = self.params;
        let flow = &mut self.flows[i as usize];
        flow.credit -= i64::from(packet.len);
        self.bands[self.current].credit -= i64::from(packet.len);
        let Some(rate) = maxrate else { return };
        let mut bytes = u64::from(packet.len);
        if packet.departure().is_none() {
            if rate <= low_rate_threshold {
                flow.credit = 0;
            } else {
                bytes = bytes.max(quantum.0);
                if flow.credit > 0 {
                    return;
                }
            }
        }
        let delay = (u128::from(bytes) * 8_000_000_000 / u128::from(rate.0)).min(1_000_000_000);
        let delay = cast::saturate(delay);
        // The flow may have been served later than it was due.
        let late = flow.due.map_or(0, |due| now.since(due).0);
        flow.due = Some(now + Span(delay - late.min(delay / 2)));
    }

    /// Returns true if a packet of flow `i` joins the queue of packets that need no turn.
    fn is_fast(&self, now: Time, i: u32, packet: &Packet) -> bool {
        packet.departure().is_none_or(|at| at <= now)
            && self.params.maxrate.is_none()
            && self.flows[i as usize].fifo.packets() == 0
            && (self.backlog.packets == 0
                || (self.active == 0 && self.fast.packets() < FAST_PACKETS))
    }
}

impl Qdisc for FqPaced {
    fn enqueue(&mut self, context: &mut Context<'_>, packet: Packet) {
        self.enqueue_behind(context, packet, Backlog::default());
    }

    fn enqueue_behind(&mut self, context: &mut Context<'_>, packet: Packet, ahead: Backlog) {
        context.check_arrival(&packet);
        let FqPacedParams { limit, flow_limit, quantum, .. } = self.params;
        let (now, Backlog { packets, bytes }) = (context.now, self.backlog + ahead);
        let beyond = |at: Time| at > now + self.params.horizon;
        if !fits(limit, packets, bytes, &packet)
            || (self.params.horizon_drop && packet.departure().is_some_and(beyond))
        {
            return context.drop(packet, DropReason::Full);
        }
        self.release(now);
        let i = packet.hash % cast::index32(self.flows.len());
        let len = u64::from(packet.len);
        if self.is_fast(now, i, &packet) {
            self.fast.push(&mut self.pool, packet);
        } else {
            let flow = &mut self.flows[i as usize];
            if u64::from(flow.fifo.packets()) >= flow_limit {
                return context.drop(packet, DropReason::Full);
            }
            let detached = flow.state == State::Detached;
            if detached && flow.idle_since.is_some_and(|since| self.params.is_over(since, now)) {
                flow.credit = flow.credit.max(quantum.0.cast_signed());
            }
            self.active += u32::from(flow.fifo.packets() == 0);
            let band = band(packet.class);
            flow.fifo.push(&mut self.pool, packet);
            if detached {
                // As in Linux: the new flows of the priority that it had before.
                self.append(i, true);
            }
            self.flows[i as usize].band = band;
        }
        self.backlog.packets += 1;
        self.backlog.bytes += len;
    }

    fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        if self.backlog.packets == 0 {
            return None; // idle flows stay in their lists
        }
        let now = context.now;
        if let Some(packet) = self.fast.pop(&mut self.pool) {
            self.backlog.packets -= 1;
            self.backlog.bytes -= u64::from(packet.len);
            return Some(packet);
        }
        self.release(now);
        let mut passed = 0;
        loop {
            let (i, new) = self.turn(self.current).or_else(|| self.next_band())?;
            let b = self.current;
            let flow = &mut self.flows[i as usize];
            if flow.credit <= 0 {
                flow.credit += self.params.quantum.0.cast_signed();
                self.remove_first(b, new);
                self.append(i, false);
                passed += 1;
                if passed % 64 == 0 && self.bands[b].new.0[0] == NONE {
                    self.skip_rounds(b);
                }
                continue;
            }
            let Some(head) = flow.fifo.front(&self.pool) else {
                self.remove_first(b, new);
                if new {
                    self.append(i, false); // a pass through the old flows, so that none starves
                } else {
                    let flow = &mut self.flows[i as usize];
                    (flow.state, flow.idle_since) = (State::Detached, Some(now));
                }
                continue;
            };
            let horizon = head.arrived + self.params.horizon;
            let own = head.departure().map_or(head.arrived, |at| at.min(horizon));
            let due = flow.due.map_or(own, |due| own.max(due));
            if due > now {
                (flow.due, flow.state) = (Some(due), State::Delayed);
                self.active -= 1;
                self.remove_first(b, new);
                self.delayed.push(Reverse((due, self.delays, i)));
                self.delays += 1;
                continue;
            }
            let mut packet = flow.fifo.pop(&mut self.pool)?;
            self.active -= u32::from(flow.fifo.packets() == 0);
            self.backlog.packets -= 1;
            self.backlog.bytes -= u64::from(packet.len);
            if self.params.ce_threshold.is_some_and(|threshold| now > due + threshold) {
                context.mark(&mut packet);
            }
            self.charge(now, i, &packet);
            return Some(packet);
        }
    }

    fn ready_at(&self) -> Option<Time> {
        self.delayed.peek().map(|Reverse((due, ..))| *due)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        // Flows that wait for their time.
        visit("delayed_flows", self.delayed.len() as f64);
    }

    fn state_bytes(&self) -> usize {
        size_of_val(self) + size_of_val(&*self.flows)
    }
}

#[cfg(test)]
mod tests;
