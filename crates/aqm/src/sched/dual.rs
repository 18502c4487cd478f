//! Two coupled queues: what all DualQ disciplines share. L4S packets join the queue L, all others
//! the queue C; a scheduler serves both, and a [`CoupledAqm`] drops and marks.

use crate::build::{Build, Env};
use crate::cast;
use crate::context::{Context, DropReason};
use crate::error::{Error, Result};
use crate::fifo::{Fifo, Pool};
use crate::packet::{Ecn, Packet};
use crate::params::{Checked, Combined, Params};
use crate::qdisc::{Backlog, Qdisc};
use crate::snapshot::Snapshot;
use crate::units::{Bytes, Size, Span, Time};

crate::choice! {
    /// Scheduler between the queues L and C.
    pub enum Schedule {
        /// Weighted round robin: L first, but C gets its share of the bytes while both wait.
        Wrr = "wrr",
        /// Time-shifted FIFO: the older head first, where L heads count as older by `t_shift`.
        TsFifo = "ts_fifo",
    }
}

crate::params! {
    /// Parameters of every DualQ discipline, in addition to its AQM algorithm's.
    pub struct DualParams {
        /// Size of the buffer that both queues share, in packets or bytes. In bytes, space for one
        /// packet of size `link_mtu` stays free. RFC 9332 suggests 250ms at the highest link rate.
        limit: Size = Size::Packets(10_000),
            [Size::Packets(1) => Size::Packets(1_000_000_000_000)], "limit", ["buffer"];
        /// If false, L4S is switched off: all packets join the queue C and none is marked.
        ecn: bool = true, [], "", [];
        /// If true, ECT(0) packets join the queue L as well.
        any_ect: bool = false, [], "", [];
        /// Scheduler between the queues.
        scheduler: Schedule = Schedule::Wrr, [], "", [];
        /// Share of the queue C while both queues wait, percent (wrr); auto: 6.25 (1/16), under
        /// the variant linux 10.
        classic_protection: Option<f64> = None, [0.0 => 100.0], "", ["c_weight"];
        /// Time by which a packet in L counts as older (ts_fifo).
        t_shift: Span = Span::ms(50), [Span(1) => Span::s(10)], "tshift", [];
        /// Largest packet on the link.
        link_mtu: Bytes = Bytes(1514), [Bytes(64) => Bytes(1_000_000)], "MTU", ["mtu"];
    }
}

/// One of the two queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
pub enum Lane {
    /// Classic packets.
    C,
    /// L4S packets.
    L,
}

/// The two queues.
#[derive(Clone, Debug, Default, Snapshot)]
pub struct Queues {
    c: Fifo,
    l: Fifo,
    pool: Pool,
}

impl Queues {
    /// Number of packets in one queue.
    pub fn packets(&self, lane: Lane) -> u32 {
        match lane {
            Lane::C => self.c.packets(),
            Lane::L => self.l.packets(),
        }
    }

    /// Number of bytes in both queues.
    pub fn bytes(&self) -> u64 {
        self.c.bytes().0 + self.l.bytes().0
    }

    /// Number of packets and bytes in both queues.
    pub fn backlog(&self) -> Backlog {
        Backlog { packets: self.c.packets() + self.l.packets(), bytes: self.bytes() }
    }

    /// Arrival time of the first packet of one queue.
    pub fn head(&self, lane: Lane) -> Option<Time> {
        let fifo = if lane == Lane::C { &self.c } else { &self.l };
        fifo.front(&self.pool).map(|packet| packet.arrived)
    }

    /// Arrival time of the oldest packet.
    pub fn oldest(&self) -> Option<Time> {
        [self.head(Lane::C), self.head(Lane::L)].into_iter().flatten().min()
    }

    pub(super) fn push(&mut self, lane: Lane, packet: Packet) {
        let fifo = if lane == Lane::C { &mut self.c } else { &mut self.l };
        fifo.push(&mut self.pool, packet);
    }

    fn pop(&mut self, lane: Lane) -> Option<Packet> {
        let fifo = if lane == Lane::C { &mut self.c } else { &mut self.l };
        fifo.pop(&mut self.pool)
    }
}

/// AQM algorithm over both queues.
pub trait CoupledAqm: Clone + Send + Snapshot + 'static {
    /// Parameters of the algorithm.
    type Params: Params;

    /// Builds the algorithm for a link.
    ///
    /// # Errors
    /// Parameters that contradict each other or the link.
    fn new(params: Checked<'_, Self::Params>, dual: &DualParams, env: &Env) -> Result<Self>;

    /// Default share of the queue C under weighted round robin, percent.
    fn classic_protection(&self) -> f64 {
        6.25
    }

    /// Called once, when the first packet arrives.
    fn on_first_packet(&mut self, _now: Time) {}

    /// Runs the periodic updates that are due at `now`. Called before every enqueue and dequeue.
    fn on_update(&mut self, _now: Time, _queues: &Queues) {}

    /// True if the buffer has space for `packet` after the queues and `ahead`.
    fn fits(&self, dual: &DualParams, queues: &Queues, packet: &Packet, ahead: Backlog) -> bool {
        fits_with_spare(dual, queues.backlog() + ahead, packet)
    }

    /// Decides about an arriving packet, which is not in the queue `lane` yet. Returns true if it
    /// joins; may mark it.
    fn on_enqueue(
        &mut self,
        _context: &mut Context<'_>,
        _queues: &Queues,
        _lane: Lane,
        _packet: &mut Packet,
    ) -> bool {
        true
    }

    /// Decides about a packet that was taken from the head of `lane`. Returns true if it is sent,
    /// false if it is dropped; may mark it.
    fn on_dequeue(
        &mut self,
        context: &mut Context<'_>,
        queues: &Queues,
        lane: Lane,
        packet: &mut Packet,
    ) -> bool;

    /// Calls `visit` with the name and value of each internal variable.
    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64));

    /// Size of memory outside of the type, bytes.
    fn heap(&self) -> usize {
        0
    }
}

/// True if the buffer has space for `packet`. Space for one packet of the largest size stays free,
/// so that large packets are not dropped more often than small ones (RFC 9332 Fig. 3).
#[inline]
pub(super) fn fits_with_spare(dual: &DualParams, queued: Backlog, packet: &Packet) -> bool {
    let Backlog { packets, bytes } = queued;
    let spare = if packets == 0 { 0 } else { dual.link_mtu.0 };
    dual.limit.holds(packets + 1, bytes + u64::from(packet.len).max(spare))
}

/// Scheduler with its state.
#[derive(Clone, Debug, Snapshot)]
enum Scheduler {
    /// Weighted round robin by a credit: bytes of L weighted by the share of C, less bytes of C
    /// weighted by the share of L, sent while both waited.
    Wrr {
        credit: i64,
        rest: i64,
        c: i64,
        l: i64,
    },
    TsFifo {
        shift: Span,
    },
}

impl Scheduler {
    /// Creates a weighted round robin where C has `percent` of the bytes.
    fn wrr(percent: f64, mtu: Bytes) -> Scheduler {
        // Whole percent have the scale of Linux.
        let scale = if percent % 1.0 == 0.0 { 1.0 } else { 10_000.0 };
        let c = cast::trunc(libm::round(percent * scale)).cast_signed();
        let l = cast::trunc(100.0 * scale).cast_signed() - c;
        // At rest, as if one packet of C had just been sent while L waited.
        let rest = mtu.0.cast_signed() * (c - l);
        Scheduler::Wrr { credit: rest, rest, c, l }
    }

    /// Returns the queue to serve next.
    #[inline]
    fn next(&self, now: Time, queues: &Queues) -> Option<Lane> {
        match (queues.l.is_empty(), queues.c.is_empty()) {
            (true, true) => None,
            (false, true) => Some(Lane::L),
            (true, false) => Some(Lane::C),
            (false, false) => Some(match self {
                Scheduler::Wrr { credit, .. } if *credit <= 0 => Lane::L,
                Scheduler::Wrr { .. } => Lane::C,
                Scheduler::TsFifo { shift } => {
                    let age = |lane| queues.head(lane).map_or(Span::ZERO, |t| now.since(t));
                    if age(Lane::L) + *shift >= age(Lane::C) { Lane::L } else { Lane::C }
                }
            }),
        }
    }

    /// Accounts for a packet that was sent from `lane`. Dropped packets are not counted.
    #[inline]
    fn on_sent(&mut self, queues: &Queues, lane: Lane, len: u32) {
        let Scheduler::Wrr { credit, c, l, .. } = self else { return };
        match lane {
            Lane::L if !queues.c.is_empty() => *credit += *c * i64::from(len),
            Lane::C if !queues.l.is_empty() => *credit -= *l * i64::from(len),
            _ => {}
        }
    }

    /// Called when both queues were found empty.
    fn on_idle(&mut self) {
        if let Scheduler::Wrr { credit, rest, .. } = self {
            *credit = *rest;
        }
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        if let Scheduler::Wrr { credit, c, l, .. } = self {
            // Credit of the queue C, bytes x 100; C is served while it is above 0.
            visit("credit", *credit as f64 * 100.0 / (c + l) as f64);
        }
    }
}

/// DualQ discipline with the AQM algorithm `A`.
#[derive(Clone, Debug, Snapshot)]
pub struct Dual<A> {
    params: DualParams,
    pub(super) aqm: A,
    pub(super) queues: Queues,
    scheduler: Scheduler,
    /// True once a packet has arrived.
    started: bool,
}

impl<A: CoupledAqm> Build for Dual<A> {
    type Params = Combined<DualParams, A::Params>;

    fn new(params: Checked<'_, Self::Params>, env: &Env) -> Result<Self> {
        let dual = params.outer.clone();
        let env = Env { limit: dual.limit, ecn: dual.ecn, ..*env };
        let aqm = A::new(params.inner.checked()?, &dual, &env)?;
        let scheduler = match dual.scheduler {
            Schedule::Wrr => {
                let percent = dual.classic_protection.unwrap_or_else(|| aqm.classic_protection());
                Scheduler::wrr(percent, dual.link_mtu)
            }
            Schedule::TsFifo if dual.classic_protection.is_some() => {
                let text = "is not allowed with scheduler = \"ts_fifo\", which has t_shift";
                return Err(Error::new(text).at("classic_protection"));
            }
            Schedule::TsFifo => Scheduler::TsFifo { shift: dual.t_shift },
        };
        Ok(Dual { params: dual, aqm, queues: Queues::default(), scheduler, started: false })
    }
}

impl<A> Dual<A> {
    // RFC 9332 Fig. 3: CE packets may have been ECT(1) before.
    #[inline]
    fn classify(&self, ecn: Ecn) -> Lane {
        let l4s = match ecn {
            Ecn::NotEct => false,
            Ecn::Ect0 => self.params.any_ect,
            Ecn::Ect1 | Ecn::Ce => true,
        };
        if l4s && self.params.ecn { Lane::L } else { Lane::C }
    }
}

impl<A: CoupledAqm> Qdisc for Dual<A> {
    fn enqueue(&mut self, context: &mut Context<'_>, packet: Packet) {
        self.enqueue_behind(context, packet, Backlog::default());
    }

    fn enqueue_behind(&mut self, context: &mut Context<'_>, mut packet: Packet, ahead: Backlog) {
        context.check_arrival(&packet);
        if !self.started {
            self.started = true;
            self.aqm.on_first_packet(context.now);
        }
        self.aqm.on_update(context.now, &self.queues);
        if !self.aqm.fits(&self.params, &self.queues, &packet, ahead) {
            return context.drop(packet, DropReason::Full);
        }
        let lane = self.classify(packet.ecn);
        if !self.aqm.on_enqueue(context, &self.queues, lane, &mut packet) {
            return context.drop(packet, DropReason::AtEnqueue);
        }
        self.queues.push(lane, packet);
    }

    fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        self.aqm.on_update(context.now, &self.queues);
        // Bounded: each turn removes a packet.
        loop {
            let Some(lane) = self.scheduler.next(context.now, &self.queues) else {
                self.scheduler.on_idle();
                return None;
            };
            let mut packet = self.queues.pop(lane)?;
            if self.aqm.on_dequeue(context, &self.queues, lane, &mut packet) {
                self.scheduler.on_sent(&self.queues, lane, packet.len);
                return Some(packet);
            }
            context.drop(packet, DropReason::AfterEnqueue);
        }
    }

    fn backlog(&self) -> Backlog {
        self.queues.backlog()
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.aqm.inspect(visit);
        self.scheduler.inspect(visit);
        // Packets in the queue C.
        visit("packets_c", f64::from(self.queues.packets(Lane::C)));
        // Packets in the queue L.
        visit("packets_l", f64::from(self.queues.packets(Lane::L)));
    }

    fn inspect_at(&mut self, now: Time, visit: &mut dyn FnMut(&'static str, f64)) {
        let mut aqm = self.aqm.clone();
        aqm.on_update(now, &self.queues);
        core::mem::swap(&mut aqm, &mut self.aqm);
        self.inspect(visit);
        self.aqm = aqm;
    }

    fn state_bytes(&self) -> usize {
        size_of_val(self) + self.aqm.heap()
    }
}

#[cfg(test)]
mod tests;
