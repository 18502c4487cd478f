//! Laws: active queue management of one line of packets, and the frame that puts a law on a link.

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
use crate::params::{Both, Nothing, Params};
use crate::sched::{Backlog, Build, Env, Qdisc};
use crate::units::{Size, Time};

/// What a law wants done with a packet that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Let it join.
    Pass,
    /// Tell its sender: mark it if that is allowed and it can be marked, else drop it.
    Signal,
    /// Drop it.
    Drop,
}

/// A law: it decides about the packets of one line. Every method has a default, so that a file
/// states only what its law does; the default law is a plain queue.
pub trait Aqm {
    /// The first packet arrives at the discipline, perhaps for another line: periodic updates
    /// count from `now`. Called once, before anything else.
    fn start(&mut self, _now: Time) {}

    /// Brings a periodic law up to `now`. Called before anything else happens to the line; a
    /// queue is constant between packets, so catching up is exact. Bounded after a long idle.
    fn advance(&mut self, _now: Time, _line: &Line<'_>) {}

    /// Decides about `packet`, which has not joined yet. The queue it sees counts neither this
    /// packet nor the one in transmission.
    fn admit(&mut self, _cx: &mut Cx<'_>, _line: &mut Line<'_>, _packet: &Packet) -> Verdict {
        Verdict::Pass
    }

    /// `packet` joins the line. Not every one that passed [`Aqm::admit`] does: there may be no
    /// room, and a signal may be a loss.
    fn joined(&mut self, _packet: &Packet) {}

    /// The packet could not join for want of room, whatever [`Aqm::admit`] had said.
    fn overflow(&mut self, _now: Time) {}

    /// `packets` that were waiting were taken out to make room for others.
    fn shed(&mut self, _packets: u32) {}

    /// Takes the next packet to send. `ecn` tells whether signals may be marks.
    fn take(&mut self, _cx: &mut Cx<'_>, line: &mut Line<'_>, _ecn: bool) -> Option<Packet> {
        line.pop()
    }

    /// Whether it decides on arrival only, and only about the packet that arrives.
    fn settles_on_arrival(&self) -> bool {
        false
    }

    /// The transmitter asked for a packet and there was none: the link is idle from now on.
    fn idle(&mut self, _now: Time) {}

    /// Shows the internal variables, by the names of the reference, in SI units.
    fn gauges(&self, _see: &mut dyn FnMut(&'static str, f64)) {}

    /// Bytes of memory that the law's state takes; a law with tables counts them too.
    fn state(&self) -> usize {
        size_of_val(self)
    }
}

/// A law that can be built from parameters.
pub trait Law: Aqm + Clone {
    /// Its parameters.
    type Params: Params;
    /// Builds it for a link.
    ///
    /// # Errors
    /// Parameters that contradict each other or the link, with the name of the one at fault.
    fn new(params: &Self::Params, env: &Env) -> Result<Self>;
}

/// The law that does nothing: a plain queue.
#[derive(Clone)]
pub struct Plain;

impl Aqm for Plain {}

impl Law for Plain {
    type Params = Nothing;

    fn new(_: &Nothing, _env: &Env) -> Result<Self> {
        Ok(Plain)
    }
}

crate::params! {
    /// What every single-queue discipline has: a buffer, and whether signals are marks.
    pub struct SingleParams {
        /// Most that may wait, in bytes or packets; the packet in transmission is not counted.
        limit: Size = Size::Packets(1000),
            [Size::Packets(1) => Size::Packets(1_000_000_000_000)], "B", ["buffer"];
        /// Whether ECN-capable packets are marked where others are dropped.
        ecn: bool = false, [], "", [];
    }
}

/// One line under the law `A`, with tail drop at its limit.
pub struct Single<A> {
    law: A,
    line: Fifo,
    pool: Pool,
    limit: Size,
    ecn: bool,
    /// True once a packet has arrived.
    started: bool,
}

/// Whether `packet` may join a queue of `packets` and `bytes` under `limit`.
#[inline]
pub fn fits(limit: Size, packets: u32, bytes: u64, packet: &Packet) -> bool {
    limit.holds(packets + 1, bytes + u64::from(packet.len))
}

impl<A: Law> Build for Single<A> {
    type Params = Both<SingleParams, A::Params>;

    fn build(params: &Self::Params, env: &Env) -> Result<Self> {
        params.check()?;
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
        // What can never fit is not shown to the law: CoDel would take its length for the largest
        // packet, and never act again.
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
