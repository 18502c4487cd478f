//! AQM algorithms, and the single-queue discipline that runs one of them on a FIFO queue.

pub mod af_qcn;
pub mod afd;
pub mod api;
pub mod ared;
pub mod avq;
pub mod blue;
pub mod choke;
pub mod cobalt;
pub mod codel;
pub mod feng_red;
pub mod fred;
pub mod hred;
pub mod pi;
pub mod pi2;
pub mod pie;
pub mod red;
pub mod red_opt;
pub mod rem;
pub mod sa_red;
pub mod sfb;
pub mod sred;

use crate::cx::{Cx, Why};
use crate::error::Result;
use crate::fifo::{Fifo, Line, Pool};
use crate::packet::Packet;
use crate::params::{Both, Checked, Nothing, Params};
use crate::sched::{Backlog, Build, Env, Qdisc};
use crate::units::{Size, Time};

/// Decision of an AQM algorithm about an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Enqueue the packet.
    Pass,
    /// Mark the packet if `ecn` is set and it is ECN-capable, otherwise drop it.
    Signal,
    /// Drop the packet, even if it is ECN-capable.
    Drop,
}

/// An AQM algorithm: decides which packets of one FIFO queue to drop or mark.
///
/// Every method has a default, so that a file contains only what its algorithm does. With all
/// defaults the queue is a plain FIFO.
pub trait Aqm {
    /// Called once, before any other method, when the first packet arrives at the discipline
    /// (possibly at another queue of it). Periodic updates count from `now`.
    fn start(&mut self, _now: Time) {}

    /// Runs the periodic updates that are due at `now`. Called before every enqueue and dequeue.
    ///
    /// The queue does not change between packets, so that catching up is exact. The work is
    /// bounded, also after a long idle time.
    fn advance(&mut self, _now: Time, _line: &Line<'_>) {}

    /// Decides about the arriving `packet`. `line` does not contain it yet; the packet in
    /// transmission is not counted either.
    fn admit(&mut self, _cx: &mut Cx<'_>, _line: &mut Line<'_>, _packet: &Packet) -> Verdict {
        Verdict::Pass
    }

    /// Called when `packet` is enqueued. A packet that passed [`Aqm::admit`] may still be dropped:
    /// the buffer may be full, or a mark may not be possible.
    fn joined(&mut self, _packet: &Packet) {}

    /// Called when a packet is dropped because the buffer is full, whatever [`Aqm::admit`] decided.
    fn overflow(&mut self, _now: Time) {}

    /// Called when `packets` queued packets were dropped to make room for others.
    fn shed(&mut self, _packets: u32) {}

    /// Dequeues the next packet to send, after dropping as many as the algorithm decides. `ecn` is
    /// true if packets may be marked.
    fn take(&mut self, _cx: &mut Cx<'_>, line: &mut Line<'_>, _ecn: bool) -> Option<Packet> {
        line.pop()
    }

    /// True if the algorithm decides at enqueue only, and only about the arriving packet.
    fn settles_on_arrival(&self) -> bool {
        false
    }

    /// Called when the link asked for a packet and the queue was empty: the link is idle from
    /// `now`.
    fn idle(&mut self, _now: Time) {}

    /// Calls `see` with the name and value of each internal variable: names of the source, SI
    /// units.
    fn gauges(&self, _see: &mut dyn FnMut(&'static str, f64)) {}

    /// Size of the state in bytes. Algorithms with tables override it.
    fn state(&self) -> usize {
        size_of_val(self)
    }
}

/// An AQM algorithm that can be built from parameters.
pub trait Law: Aqm + Clone {
    /// Parameters of the algorithm.
    type Params: Params;
    /// Builds the algorithm for a link.
    ///
    /// # Errors
    /// A parameter that is out of range, or parameters that contradict each other or the
    /// link; the path names the parameter.
    fn new(params: &Self::Params, env: &Env) -> Result<Self> {
        Self::from_checked(params.checked()?, env)
    }

    /// Builds it from parameters whose ranges were checked.
    ///
    /// # Errors
    /// Parameters that contradict each other or the link; the path names the parameter.
    fn from_checked(params: Checked<'_, Self::Params>, env: &Env) -> Result<Self>;
}

/// No AQM: a plain FIFO queue.
#[derive(Clone)]
pub struct Plain;

impl Aqm for Plain {}

impl Law for Plain {
    type Params = Nothing;

    fn from_checked(_: Checked<'_, Nothing>, _env: &Env) -> Result<Self> {
        Ok(Plain)
    }
}

crate::params! {
    /// Parameters of every single-queue discipline.
    pub struct SingleParams {
        /// Buffer size, in bytes or packets. The packet in transmission is not counted.
        limit: Size = Size::Packets(1000),
            [Size::Packets(1) => Size::Packets(1_000_000_000_000)], "B", ["buffer"];
        /// True if ECN-capable packets are marked instead of dropped.
        ecn: bool = false, [], "", [];
    }
}

/// One FIFO queue managed by the AQM algorithm `A`, with tail drop at its limit.
pub struct Single<A> {
    law: A,
    line: Fifo,
    pool: Pool,
    limit: Size,
    ecn: bool,
    /// True once a packet has arrived.
    started: bool,
}

/// True if `packet` fits into a queue of `packets` packets and `bytes` bytes under `limit`.
#[inline]
pub fn fits(limit: Size, packets: u32, bytes: u64, packet: &Packet) -> bool {
    limit.holds(packets + 1, bytes + u64::from(packet.len))
}

impl<A: Law> Build for Single<A> {
    type Params = Both<SingleParams, A::Params>;

    fn from_checked(params: Checked<'_, Self::Params>, env: &Env) -> Result<Self> {
        let SingleParams { limit, ecn } = params.frame;
        let law = A::new(&params.law, &Env { limit, ecn, ..*env })?;
        let (line, pool) = (Fifo::default(), Pool::default());
        Ok(Single { law, line, pool, limit, ecn, started: false })
    }
}

impl<A: Aqm + Clone> Qdisc for Single<A> {
    fn enqueue(&mut self, cx: &mut Cx<'_>, mut packet: Packet) {
        if !self.started {
            self.started = true;
            self.law.start(cx.now);
        }
        // A packet larger than the whole buffer is not shown to the algorithm: CoDel would take its
        // length for the largest packet, and never drop again.
        if !fits(self.limit, 0, 0, &packet) {
            return cx.drop(packet, Why::Full);
        }
        let mut line = Line { fifo: &mut self.line, pool: &mut self.pool };
        self.law.advance(cx.now, &line);
        let verdict = self.law.admit(cx, &mut line, &packet);
        if !fits(self.limit, self.line.packets(), self.line.bytes().0, &packet) {
            self.law.overflow(cx.now);
            return cx.drop(packet, Why::Full);
        }
        match verdict {
            Verdict::Pass => {}
            Verdict::Signal if self.ecn && cx.mark(&mut packet) => {}
            Verdict::Signal | Verdict::Drop => return cx.drop(packet, Why::Early),
        }
        self.law.joined(&packet);
        self.line.push(&mut self.pool, packet);
    }

    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let mut line = Line { fifo: &mut self.line, pool: &mut self.pool };
        self.law.advance(cx.now, &line);
        let packet = self.law.take(cx, &mut line, self.ecn);
        if packet.is_none() {
            self.law.idle(cx.now);
        }
        packet
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.line.packets(), bytes: self.line.bytes().0 }
    }

    fn settles_on_arrival(&self) -> bool {
        self.law.settles_on_arrival()
    }

    fn gauges(&self, see: &mut dyn FnMut(&'static str, f64)) {
        self.law.gauges(see);
    }

    fn gauges_at(&mut self, now: Time, see: &mut dyn FnMut(&'static str, f64)) {
        let mut law = self.law.clone();
        law.advance(now, &Line { fifo: &mut self.line, pool: &mut self.pool });
        law.gauges(see);
    }

    fn state(&self) -> usize {
        size_of_val(self) - size_of_val(&self.law) + self.law.state()
    }
}
