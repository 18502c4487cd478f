//! CAKE: a shaper, tins by DSCP, and fair queueing among hosts and flows with COBALT in each queue.
//!
//! **Source** T. Hoeiland-Joergensen, D. Taht, J. Morton, "Piece of CAKE: A Comprehensive Queue
//! Management Solution for Home Gateways", LANMAN 2018; Linux sch_cake; tc-cake(8).
//!
//! **Decides** on departure; on arrival if the memory is full, and about ACKs.
//!
//! **Measures** sojourn times, the bytes of each queue, and the bulk queues of each host.
//!
//! **Algorithm** The *shaper* is a virtual clock: a packet is sent once the clock's time is
//! reached. It advances the clock by its wire length divided by `bandwidth`. Idle time gives no
//! credit, so there is no burst. The wire length is the packet length. With `overhead`, the link
//! header is subtracted and the overhead added, to at least `mpu`. ATM rounds up to whole cells;
//! PTM adds its code words.
//!
//! The DSCP chooses a *tin*. Each tin has a clock at its threshold, a share of `bandwidth`. The
//! last tin whose clock is due is served; if none is due, the tin that is due first. So a tin has
//! precedence up to its threshold, and may use the whole rate if no other tin uses it. Without a
//! shaper tins are served by deficit round robin.
//!
//! In a tin, a *set-associative hash* gives each flow one of 1024 queues: of the eight queues of
//! its set it takes an unused one, so that flows rarely share a queue. Queues are served by deficit
//! round robin, new ones first. A queue that is not sparse is *bulk* and gets the credit divided by
//! the number of bulk queues of its busier host (`isolation`). That makes hosts equal, and flows
//! within a host.
//!
//! *COBALT* decides about the packet at the head: CoDel with `target` = `rtt`/20, which remembers
//! its count, and BLUE's drop probability, which rises when the queue overflows. The last packet of
//! a queue is never dropped. If the memory is full, the longest queue drops the packet at its head.
//!
//! The *ACK filter* removes a queued ACK that the arriving segment makes superfluous. With
//! `ingress` dropped packets use up the rate, since they have crossed the link before the shaper.
//!
//! **Departures** (1) The owner salts the hashes: a packet carries its flow hash and host keys, for
//! which a queue or a host cannot be set otherwise (tc filters, `fwmark`, `nat`, socket priority).
//! (2) `limit` counts lengths, not the kernel's memory, unless `memory` is `truesize`; it may be in
//! packets. Of equally long queues the first one drops its head; in Linux a heap decides, in which
//! an entry moves down one level only, so that a shorter queue may drop a packet. (3) SACK blocks
//! are not compared: an ACK with blocks covers the older ones of its receiver unless both have as
//! many as there is room for. Timestamps are taken to increase. (4) Packets are not split. With
//! `split_gso` a packet above `mtu` counts as the segments that Linux would split it into. (5) If
//! no queue of a tin has credit for 64 rounds, these are credited at once. (6) `wash` clears the
//! DSCP for later links; a live link leaves it in the header. (7) A length with negative overhead
//! is at least 0, and an interval above 4.3 s is not cut to 32 bits.
//!
//! **Cost** 447856 bytes of state, a third of it per tin; a constant time per packet and queue
//! passed over; O(log n) for up to 65,535 departures after an overflow; the ACK filter walks
//! through the queue.

mod ack_filter;
mod autorate;
mod flows;
mod memory;
mod shaper;
#[cfg(test)]
mod tests;
mod tin;
mod words;

pub use crate::overhead::{Framing, Overhead};
pub use ack_filter::AckFilter;
pub use flows::Isolation;
pub use memory::Accounting;
pub use tin::Tins;
pub use words::{Bandwidth, RTTS, Rtt};

use crate::build::{Build, Env};
use crate::cast;
use crate::context::{Context, DropReason};
use crate::entry::QdiscEntry;
use crate::error::Result;
use crate::fifo::Pool;
use crate::packet::{Packet, TcpFlags};
use crate::params::Checked;
use crate::qdisc::{Backlog, Qdisc};
use crate::random::mix;
use crate::snapshot::Snapshot;
use crate::units::{Bytes, Rate, Size, Span, Time};
use alloc::vec::Vec;
use autorate::Autorate;
use flows::{Flows, State};
use memory::Memory;
use shaper::{ByteTime, Shaper};
use tin::Tin;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<Cake>(
    "cake",
    "shaper, tins by DSCP, and fair queues for hosts and flows with COBALT in each",
)
.aliases(&["sch_cake"])
.decides("on departure: the next packet and COBALT's drops; on arrival: superfluous ACKs")
.source("Hoeiland-Joergensen, Taht and Morton, LANMAN 2018; Linux sch_cake");

/// Highest rate of a shaper, 10^18 bit/s.
const FASTEST: Rate = Rate(1_000_000_000_000_000_000);

crate::params! {
    /// Parameters of [`Cake`].
    pub struct CakeParams {
        /// Rate of the shaper; auto or unlimited for none.
        bandwidth: Bandwidth = Bandwidth(None),
            [Rate(512) => FASTEST], "", [];
        /// True to set the rate of the shaper to 15/16 of the rate at which packets arrive.
        autorate_ingress: bool = false, [], "", [];
        /// Round-trip time of the paths, from which target and interval follow; or datacentre, lan,
        /// metro, regional, internet, oceanic, satellite or interplanetary.
        rtt: Rtt = Rtt(Span::ms(100)), [Rtt(Span::us(1)) => Rtt(Span::s(1000))], "", [];
        /// Classes of packets by DSCP.
        tins: Tins = Tins::Diffserv3, [], "", ["diffserv"];
        /// Flows or hosts that have a queue each, and hosts that share a tin fairly.
        isolation: Isolation = Isolation::TripleIsolate, [], "", ["flow_mode"];
        /// Bytes that the link adds to a packet without its link header, -64 to 256, and its
        /// framing: raw for the length as it is, a number, or words of tc like "docsis", "ethernet
        /// ether-vlan" or "overhead 18 mpu 64 noatm".
        overhead: Overhead = Overhead::RAW, [], "", [];
        /// Link header within the length of a packet; an overhead takes its place.
        header: Bytes = Bytes(0), [Bytes(0) => Bytes(256)], "", [];
        /// Largest packet with its link header.
        mtu: Bytes = Bytes(1514), [Bytes(576) => Bytes(1_000_000)], "", [];
        /// True to count dropped packets as sent, for a shaper behind the link.
        ingress: bool = false, [], "", [];
        /// Filter of acknowledgements: the default keeps all.
        ack_filter: AckFilter = AckFilter::Off, [], "", [];
        /// True to clear the DSCP of packets after it was read.
        wash: bool = false, [], "", [];
        /// True to count a packet above mtu as the segments into which Linux would split it.
        split_gso: bool = false, [], "", [];
        /// Size of the buffer; auto for four intervals at the rate of the shaper, at least 4 MiB.
        limit: Option<Size> = None,
            [Size::Packets(1) => Size::Packets(1_000_000_000_000)], "",
            ["memlimit", "buffer", "memory_limit"];
        /// Bytes that a packet counts against a limit in bytes.
        memory: Accounting = Accounting::Wire, [], "", [];
        /// True if ECN-capable packets are marked instead of dropped.
        ecn: bool = true, [], "", [];
    }
}

/// State of CAKE.
#[derive(Clone, Debug, Snapshot)]
pub struct Cake {
    params: CakeParams,
    tins: Vec<Tin>,
    /// Tin that was served last.
    current: usize,
    pool: Pool,
    shaper: Shaper,
    memory: Memory,
    autorate: Autorate,
    /// State of the generator of the dither, which the first packet seeds.
    dither: Option<u64>,
    backlog: Backlog,
}

/// Number of rounds from which on they are credited at once.
const FEW_ROUNDS: u64 = 64;

/// Result of looking at a queue.
enum Look {
    Sent(Packet),
    /// A packet was dropped that used up credit.
    Dropped,
    Empty,
}

impl Build for Cake {
    type Params = CakeParams;

    fn new(params: Checked<'_, CakeParams>, _env: &Env) -> Result<Self> {
        let tins = params.tins.count();
        let mut cake = Cake {
            params: (*params).clone(),
            tins: (0..tins).map(|_| Tin::new(Flows::new(params.isolation))).collect(),
            current: 0,
            pool: Pool::default(),
            shaper: Shaper::default(),
            memory: Memory::new(params.memory, tins),
            autorate: Autorate::default(),
            dither: None,
            backlog: Backlog::default(),
        };
        cake.set_rate(params.bandwidth.0.map_or(0, |rate| rate.0 / 8));
        Ok(cake)
    }
}

impl Cake {
    /// Sets the rate of the shaper in bytes per second; 0 for no shaper.
    fn set_rate(&mut self, rate: u64) {
        let CakeParams { rtt: Rtt(rtt), mtu: Bytes(mtu), tins, limit, .. } = self.params;
        tins.configure(&mut self.tins, rate, rtt, mtu);
        self.shaper.byte_time = ByteTime::at(rate);
        self.memory.limit = limit.unwrap_or_else(|| {
            let most = 10_240 * mtu;
            let product = u128::from(rate) * u128::from(rtt.0 / 1000) / 250_000;
            let shaped = cast::saturate(product).max(4 << 20);
            Size::Bytes(if rate == 0 { most } else { shaped.min(most) })
        });
    }

    /// Length on the wire of a packet of `len` bytes.
    #[inline]
    fn wire_len(&self, len: u32) -> u64 {
        let CakeParams { overhead, header, mtu, split_gso, .. } = &self.params;
        if *split_gso && u64::from(len) > mtu.0 {
            return overhead.wire_len_of_segments(len, header.0, mtu.0);
        }
        overhead.wire_len(len, header.0)
    }

    /// Charges a packet of tin `t` with `bytes` bytes on the wire to the shaper and the tin.
    #[inline]
    fn charge_shaper(&mut self, t: usize, bytes: u64, now: Time, dropped: bool) {
        if !self.shaper.byte_time.is_unlimited() {
            self.tins[t].clock.charge(bytes, now);
            self.shaper.charge(bytes, dropped);
        }
    }

    /// Charges a packet to the deficits of queue `i` and its tin.
    #[inline]
    fn charge_deficits(&mut self, t: usize, i: u32, bytes: u64) {
        let tin = &mut self.tins[t];
        tin.flows.flows[i as usize].deficit -= bytes.cast_signed();
        tin.deficit -= bytes.cast_signed();
    }

    /// Returns the bytes that queue `i` of tin `t` gets for `rounds` rounds. A dither of less than
    /// a byte makes up for rounding.
    fn credit(&mut self, t: usize, i: u32, rounds: u64) -> i64 {
        let state = self.dither.get_or_insert(0);
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let dither = mix(*state) >> 48;
        let tin = &self.tins[t];
        let share = u64::from(65_535 / tin.flows.load(i).min(65_535));
        let credit = u128::from(rounds) * u128::from(tin.quantum * share) + u128::from(dither);
        cast::saturate(credit >> 16).cast_signed()
    }

    /// Removes the packet at the head of queue `i` of tin `t`.
    #[inline]
    fn pop(&mut self, t: usize, i: u32) -> Option<Packet> {
        let fifo = &mut self.tins[t].flows.flows[i as usize].fifo;
        let packet = fifo.pop(&mut self.pool)?;
        self.forget(t, i, packet.len);
        Some(packet)
    }

    /// Takes a packet of `len` bytes, which has left queue `i` of tin `t`, out of the counters.
    #[inline]
    fn forget(&mut self, t: usize, i: u32, len: u32) {
        let tin = &mut self.tins[t];
        tin.backlog -= u64::from(len);
        self.backlog.packets -= 1;
        self.backlog.bytes -= u64::from(len);
        let bytes = tin.flows.flows[i as usize].fifo.bytes().0;
        self.memory.remove(len, (t, i), bytes);
    }

    /// Removes an ACK that the packet at the end of queue `i` of tin `t` makes superfluous.
    fn filter_acks(&mut self, context: &mut Context<'_>, t: usize, i: u32) {
        let fifo = &mut self.tins[t].flows.flows[i as usize].fifo;
        let place = ack_filter::superfluous(self.params.ack_filter, fifo, &self.pool);
        let Some(ack) = place.and_then(|k| fifo.remove(&mut self.pool, k)) else { return };
        self.forget(t, i, ack.len);
        if self.params.ingress {
            self.charge_shaper(t, self.wire_len(ack.len), context.now, true);
        }
        context.drop(ack, DropReason::AfterEnqueue);
    }

    /// Drops the packet at the head of the longest queue.
    fn shed(&mut self, context: &mut Context<'_>) {
        let (t, i) = self.memory.longest(&self.tins);
        let packet = self.pop(t, i).expect("the longest queue has packets");
        let tin = &mut self.tins[t];
        tin.flows.flows[i as usize].cobalt.on_overflow(context.now, &tin.cobalt);
        if self.params.ingress {
            self.charge_shaper(t, self.wire_len(packet.len), context.now, true);
        }
        context.drop(packet, DropReason::Full);
    }

    /// Puts queue `i` of tin `t`, which got a packet, into the rotation.
    fn activate(&mut self, t: usize, i: u32) {
        match self.tins[t].flows.flows[i as usize].state {
            State::Unused | State::Decaying => {
                self.tins[t].flows.set_state(i, State::Sparse);
                self.tins[t].flows.flows[i as usize].deficit = self.credit(t, i, 1);
            }
            State::SparseWait => self.tins[t].flows.relabel(i, State::Bulk),
            State::Sparse | State::Bulk => {}
        }
    }

    /// Sends the next packet of tin `t`. None if a queue was found empty, so that another tin may
    /// come first.
    fn serve(
        &mut self,
        context: &mut Context<'_>,
        t: usize,
        decaying_first: &mut bool,
    ) -> Option<Packet> {
        let mut turns = 0;
        loop {
            let flows = &mut self.tins[t].flows;
            let i = flows.next(core::mem::take(decaying_first))?;
            let flow = &flows.flows[i as usize];
            if flow.deficit > 0 {
                turns = 0;
                match self.look(context, t, i) {
                    Look::Sent(packet) => return Some(packet),
                    Look::Dropped => continue,
                    Look::Empty => return None,
                }
            }
            let to = match (flow.state, flow.fifo.is_empty()) {
                (State::Sparse, true) => State::SparseWait,
                (State::Sparse, false) => State::Bulk,
                (other, _) => other,
            };
            flows.set_state(i, to);
            let credit = self.credit(t, i, 1);
            self.tins[t].flows.flows[i as usize].deficit += credit;
            turns += 1;
            if !self.tins[t].flows.has_new() && turns >= self.tins[t].flows.old() {
                self.skip_rounds(t);
                turns = 0;
            }
        }
    }

    /// Credits the rounds of the old queues of tin `t` in which none can send.
    fn skip_rounds(&mut self, t: usize) {
        let Tin { flows, quantum, .. } = &self.tins[t];
        let short = |i: u32| (-flows.flows[i as usize].deficit).max(0).cast_unsigned();
        let most = |i: u32| ((quantum * u64::from(65_535 / flows.load(i))) >> 16) + 1;
        let rounds = flows.waiting().map(|i| short(i) / most(i)).min().unwrap_or(0);
        // Below that, every credit has its own dither, as in Linux.
        let mut left = if rounds >= FEW_ROUNDS { flows.old() } else { 0 };
        while left > 0 {
            let i = self.tins[t].flows.next(false).expect("a queue waits");
            let credit = self.credit(t, i, rounds);
            let flows = &mut self.tins[t].flows;
            flows.flows[i as usize].deficit += credit;
            flows.rotate_old();
            left -= 1;
        }
    }

    /// Takes the next packet of queue `i` of tin `t`, as COBALT permits.
    fn look(&mut self, context: &mut Context<'_>, t: usize, i: u32) -> Look {
        let now = context.now;
        let ingress = self.params.ingress;
        // Bounded: each turn removes a packet from the queue.
        while let Some(mut packet) = self.pop(t, i) {
            let wire_len = self.wire_len(packet.len);
            let Tin { flows, cobalt, .. } = &mut self.tins[t];
            let bulk = if ingress { u64::from(flows.bulk) } else { 0 };
            let flow = &mut flows.flows[i as usize];
            let ecn = self.params.ecn;
            let drop = flow.cobalt.should_drop(context, &mut packet, cobalt, bulk, ecn);
            if !drop || flow.fifo.is_empty() {
                self.charge_shaper(t, wire_len, now, false);
                self.charge_deficits(t, i, wire_len);
                self.memory.on_departure();
                return Look::Sent(packet);
            }
            context.drop(packet, DropReason::AfterEnqueue);
            if ingress {
                self.charge_shaper(t, wire_len, now, true);
                self.charge_deficits(t, i, wire_len);
                return Look::Dropped;
            }
        }
        let Tin { flows, cobalt, .. } = &mut self.tins[t];
        let aqm = &mut flows.flows[i as usize].cobalt;
        aqm.on_empty(now, cobalt);
        let to = if aqm.is_active(now) { State::Decaying } else { State::Unused };
        flows.set_state(i, to);
        Look::Empty
    }
}

impl Qdisc for Cake {
    fn enqueue(&mut self, context: &mut Context<'_>, packet: Packet) {
        self.enqueue_behind(context, packet, Backlog::default());
    }

    fn enqueue_behind(&mut self, context: &mut Context<'_>, mut packet: Packet, ahead: Backlog) {
        context.check_arrival(&packet);
        let now = context.now;
        if self.dither.is_none() {
            self.dither = Some(context.rng.uniform().to_bits());
        }
        let t = self.params.tins.of(packet.class);
        if self.params.wash {
            packet.class = 0;
        }
        let tin = &mut self.tins[t];
        let i = tin.flows.find(&packet);
        if tin.backlog == 0 {
            tin.clock.on_arrival_at_empty(now);
            if self.backlog.packets == 0 {
                self.shaper.on_arrival_at_empty(now);
            }
        }
        let fifo = &mut tin.flows.flows[i as usize].fifo;
        fifo.push(&mut self.pool, packet);
        let bytes = fifo.bytes().0;
        tin.backlog += u64::from(packet.len);
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(packet.len);
        self.memory.add(packet.len, (t, i), bytes);
        let split = self.params.split_gso && u64::from(packet.len) > self.params.mtu.0;
        let filters = self.params.ack_filter != AckFilter::Off && !split;
        if filters && packet.tcp.has(TcpFlags::ACK) {
            self.filter_acks(context, t, i);
        }
        if self.params.autorate_ingress
            && let Some(rate) = self.autorate.on_enqueue(now, packet.len.into())
        {
            self.set_rate(rate);
        }
        self.activate(t, i);
        while self.memory.is_over(self.backlog, ahead) && self.backlog.packets > 0 {
            self.shed(context);
        }
    }

    fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        let mut decaying_first = true;
        loop {
            if self.backlog.packets == 0 {
                return None;
            }
            let t = if self.shaper.byte_time.is_unlimited() {
                tin::by_weight(&mut self.tins, self.current)?
            } else if self.shaper.ready_at() > context.now {
                return None;
            } else {
                tin::by_schedule(&self.tins, context.now)?
            };
            self.current = t;
            if let Some(packet) = self.serve(context, t, &mut decaying_first) {
                return Some(packet);
            }
        }
    }

    fn ready_at(&self) -> Option<Time> {
        let waits = self.backlog.packets > 0 && !self.shaper.byte_time.is_unlimited();
        waits.then(|| self.shaper.ready_at())
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn changes_class(&self) -> bool {
        self.params.wash
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let sum = |of: fn(&Flows) -> u32| self.tins.iter().map(|tin| of(&tin.flows)).sum::<u32>();
        // Queues that have not used up their first credit.
        visit("sparse_flows", f64::from(sum(|flows| flows.sparse)));
        // Queues that have, and load their hosts.
        visit("bulk_flows", f64::from(sum(|flows| flows.bulk)));
        let flows = || self.tins.iter().flat_map(|tin| tin.flows.flows.iter());
        // Largest count of COBALT in any queue.
        visit("count", f64::from(flows().map(|f| f.cobalt.count).max().unwrap_or(0)));
        let blue = flows().map(|f| f.cobalt.p_blue).max().unwrap_or(0);
        // Largest drop probability of BLUE in any queue.
        visit("p_blue", f64::from(blue) / 4_294_967_296.0);
        // Memory in use; bytes.
        visit("memory", self.memory.used as f64);
    }

    fn state_bytes(&self) -> usize {
        let tins: usize = self.tins.iter().map(|tin| tin.flows.state_bytes()).sum();
        size_of_val(self) + size_of_val(&*self.tins) + tins + self.memory.state_bytes()
    }
}
