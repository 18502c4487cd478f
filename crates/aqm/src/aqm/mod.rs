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

use crate::build::{Build, Builder, Env};
use crate::context::{Context, DropReason};
use crate::error::Result;
use crate::fifo::{QueueView, SingleFifo};
use crate::packet::Packet;
use crate::params::{Checked, Combined, Nothing, Params};
use crate::qdisc::{Backlog, Qdisc};
use crate::units::{Size, Time};
use alloc::boxed::Box;
use core::any::Any;

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
pub trait Aqm: Clone + Send + 'static {
    /// Called once, before any other method, when the first packet arrives at the discipline
    /// (possibly at another queue of it). Periodic updates count from `now`.
    fn start(&mut self, _now: Time) {}

    /// Runs the periodic updates that are due at `now`. Called before every enqueue and dequeue.
    ///
    /// The queue does not change between packets, so that catching up is exact. The work is
    /// bounded, also after a long idle time.
    fn advance(&mut self, _now: Time, _line: &QueueView<'_>) {}

    /// True if [`Aqm::advance`] may do anything. If not, [`Qdisc::inspect_at`] needs no copy.
    fn has_updates(&self) -> bool {
        true
    }

    /// Decides about the arriving `packet`. `line` does not contain it yet; the packet in
    /// transmission is not counted either.
    fn on_arrival(
        &mut self,
        _context: &mut Context<'_>,
        _line: &mut QueueView<'_>,
        _packet: &Packet,
    ) -> Verdict {
        Verdict::Pass
    }

    /// Called when `packet` is enqueued. A packet that passed [`Aqm::on_arrival`] may still be
    /// dropped: the buffer may be full, or a mark may not be possible.
    fn on_enqueued(&mut self, _packet: &Packet) {}

    /// Called when a packet is dropped because the buffer is full, whatever [`Aqm::on_arrival`]
    /// decided.
    fn on_overflow(&mut self, _now: Time) {}

    /// True if a full shared buffer drops the arriving packet, before [`Aqm::on_arrival`], instead
    /// of packets of the longest queue.
    fn drops_arrival_when_full(&self) -> bool {
        false
    }

    /// Called when `packets` queued packets were dropped to make room for others.
    fn on_evicted(&mut self, _packets: u32) {}

    /// Dequeues the next packet to send, after dropping as many as the algorithm decides. `ecn` is
    /// true if packets may be marked.
    fn dequeue(
        &mut self,
        _context: &mut Context<'_>,
        line: &mut QueueView<'_>,
        _ecn: bool,
    ) -> Option<Packet> {
        line.pop()
    }

    /// True if the algorithm decides at enqueue only, and only about the arriving packet.
    fn decides_at_enqueue(&self) -> bool {
        false
    }

    /// Called when the link asked for a packet and the queue was empty: the link is idle from
    /// `now`.
    fn on_idle(&mut self, _now: Time) {}

    /// Calls `see` with the name and value of each internal variable: names of the source, SI
    /// units.
    fn inspect(&self, _see: &mut dyn FnMut(&'static str, f64)) {}

    /// Takes the parameters of `fresh` and keeps the state. Returns false, and changes nothing, if
    /// the algorithm cannot change the parameters in which they differ while it runs.
    fn reconfigure(&mut self, _fresh: Self) -> bool {
        false
    }

    /// Size of the state in bytes. Algorithms with tables override it.
    fn state(&self) -> usize {
        size_of_val(self)
    }
}

/// An AQM algorithm that can be built from parameters.
pub trait Algorithm: Aqm {
    /// Parameters of the algorithm.
    type Params: Params;

    /// Returns a builder of a single queue with this algorithm, with the default parameters.
    fn builder() -> Builder<SingleQueue<Self>, Combined<SingleParams, Self::Params>> {
        Builder::new()
    }

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
#[derive(Clone, Debug)]
pub struct NoAqm;

impl Aqm for NoAqm {
    fn reconfigure(&mut self, _fresh: Self) -> bool {
        true
    }
}

impl Algorithm for NoAqm {
    type Params = Nothing;

    fn from_checked(_: Checked<'_, Nothing>, _env: &Env) -> Result<Self> {
        Ok(NoAqm)
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
#[derive(Clone, Debug)]
pub struct SingleQueue<A> {
    aqm: A,
    line: SingleFifo,
    limit: Size,
    ecn: bool,
    /// True once a packet has arrived.
    started: bool,
}

impl<A: Aqm> SingleQueue<A> {
    /// Returns an empty queue managed by `aqm`, with the limits of `params`.
    ///
    /// # Errors
    /// A parameter that is out of range; the path names it.
    pub fn of(aqm: A, params: &SingleParams) -> Result<SingleQueue<A>> {
        let SingleParams { limit, ecn } = *params.checked()?;
        Ok(SingleQueue { aqm, line: SingleFifo::default(), limit, ecn, started: false })
    }
}

impl<A> SingleQueue<A> {
    /// True if the queue can hold `packet` as well.
    #[inline(always)]
    fn has_room(&self, packet: &Packet) -> bool {
        fits(self.limit, self.line.packets(), self.line.bytes().0, packet)
    }
}

/// True if `packet` fits into a queue of `packets` packets and `bytes` bytes under `limit`.
#[inline]
pub(crate) fn fits(limit: Size, packets: u32, bytes: u64, packet: &Packet) -> bool {
    limit.holds(packets + 1, bytes + u64::from(packet.len))
}

/// True if `packet` is longer than a whole buffer of size `limit`, which is at least one packet.
#[inline]
pub(crate) fn exceeds(limit: Size, packet: &Packet) -> bool {
    matches!(limit, Size::Bytes(bytes) if u64::from(packet.len) > bytes)
}

impl<A: Algorithm> Build for SingleQueue<A> {
    type Params = Combined<SingleParams, A::Params>;

    fn from_checked(params: Checked<'_, Self::Params>, env: &Env) -> Result<Self> {
        let SingleParams { limit, ecn } = params.frame;
        let aqm = A::new(&params.aqm, &Env { limit, ecn, ..*env })?;
        SingleQueue::of(aqm, &params.frame)
    }
}

impl<A: Aqm> Qdisc for SingleQueue<A> {
    // Inlining into the link is forced here and below: it saves copies of the packet.
    #[inline(always)]
    fn enqueue(&mut self, context: &mut Context<'_>, mut packet: Packet) {
        if !self.started {
            self.started = true;
            self.aqm.start(context.now);
        }
        // A packet larger than the whole buffer is not shown to the algorithm: CoDel would take its
        // length for the largest packet, and never drop again.
        let has_room = self.has_room(&packet);
        if !has_room && exceeds(self.limit, &packet) {
            return context.drop(packet, DropReason::Full);
        }
        let mut line = QueueView::single(&mut self.line);
        self.aqm.advance(context.now, &line);
        let verdict = self.aqm.on_arrival(context, &mut line, &packet);
        // The algorithm may have dropped queued packets.
        if !has_room && !self.has_room(&packet) {
            self.aqm.on_overflow(context.now);
            return context.drop(packet, DropReason::Full);
        }
        match verdict {
            Verdict::Pass => {}
            Verdict::Signal if self.ecn && context.mark(&mut packet) => {}
            Verdict::Signal | Verdict::Drop => return context.drop(packet, DropReason::Early),
        }
        self.aqm.on_enqueued(&packet);
        self.line.push(packet);
    }

    #[inline(always)]
    fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        let mut line = QueueView::single(&mut self.line);
        self.aqm.advance(context.now, &line);
        let packet = self.aqm.dequeue(context, &mut line, self.ecn);
        if packet.is_none() {
            self.aqm.on_idle(context.now);
        }
        packet
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.line.packets(), bytes: self.line.bytes().0 }
    }

    fn decides_at_enqueue(&self) -> bool {
        self.aqm.decides_at_enqueue()
    }

    fn inspect(&self, see: &mut dyn FnMut(&'static str, f64)) {
        self.aqm.inspect(see);
    }

    fn inspect_at(&mut self, now: Time, see: &mut dyn FnMut(&'static str, f64)) {
        if !self.aqm.has_updates() {
            return self.aqm.inspect(see);
        }
        let mut aqm = self.aqm.clone();
        aqm.advance(now, &QueueView::single(&mut self.line));
        aqm.inspect(see);
    }

    fn reconfigure(&mut self, fresh: Box<dyn Qdisc + Send>) -> bool {
        let Ok(fresh) = (fresh as Box<dyn Any>).downcast::<Self>() else { return false };
        let SingleQueue { aqm, limit, ecn, .. } = *fresh;
        let done = self.aqm.reconfigure(aqm);
        if done {
            (self.limit, self.ecn) = (limit, ecn);
        }
        done
    }

    fn state(&self) -> usize {
        size_of_val(self) - size_of_val(&self.aqm) + self.aqm.state()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Marks;
    use crate::params::Setting;
    use crate::registry::REGISTRY;
    use crate::units::Rate;
    use std::prelude::v1::*;

    fn built(name: &str, settings: &[(&str, &str)]) -> Box<dyn Qdisc + Send> {
        let settings: Vec<_> = settings.iter().map(|(k, v)| (*k, Setting::Text(v))).collect();
        crate::build(name, &settings, Rate(8_000_000)).unwrap().qdisc
    }

    /// Enqueues 12 packets at time 0; returns the number of queued packets.
    fn fill(qdisc: &mut dyn Qdisc) -> u32 {
        let mut rng = <rand_pcg::Pcg64Mcg as rand_core::SeedableRng>::seed_from_u64(1);
        let (mut lost, mut marks) = (Vec::new(), Marks::default());
        for _ in 0..12 {
            let mut context =
                Context { now: Time::ZERO, rng: &mut rng, lost: &mut lost, marks: &mut marks };
            qdisc.enqueue(&mut context, Packet { len: 1000, ..Packet::default() });
        }
        qdisc.backlog().packets
    }

    #[test]
    fn an_inspection_at_a_time_shows_the_updates_that_are_due_and_makes_none() {
        // Ten samples a second; 12 packets wait in place of 8.
        let mut pi = built("pi", &[("a", "0.002"), ("b", "0.001"), ("w", "10"), ("q_ref", "8p")]);
        assert_eq!(fill(&mut *pi), 12);
        let mut p_at = |ms: u64| {
            let mut p = f64::NAN;
            pi.inspect_at(Time(ms * 1_000_000), &mut |name, v| p = if name == "p" { v } else { p });
            p
        };
        assert_eq!(p_at(0), 0.0);
        assert!((p_at(100) - (0.002 * 4.0 + 0.001 * 8.0)).abs() < 1e-15);
        assert_eq!(p_at(0), 0.0);
    }

    #[test]
    fn a_limit_changes_if_the_algorithm_can_change_its_parameters() {
        for (name, changes) in [
            ("codel", true),
            ("blue", true),
            ("cobalt", true),
            ("pi2", true),
            ("droptail", true),
            ("rem", false),
        ] {
            let mut qdisc = built(name, &[("limit", "5p")]);
            assert!(!qdisc.reconfigure(built("sfq", &[])), "another type");
            assert_eq!(qdisc.reconfigure(built(name, &[("limit", "2p")])), changes, "{name}");
            assert_eq!(fill(&mut *qdisc), if changes { 2 } else { 5 }, "{name}");
        }
        let mut pi2 = built("pi2", &[]);
        assert!(!pi2.reconfigure(built("pi2", &[("t_update", "7ms")])), "the updates stay");
        let cobalt = |variant| built("cobalt", &[("variant", variant)]);
        for [of, to] in [["paper", "linux"], ["linux", "paper"], ["linux", "linux"]] {
            assert!(!cobalt(of).reconfigure(cobalt(to)), "Linux's variant stays as it is");
        }
        let plain = |limit| SingleQueue::of(NoAqm, &SingleParams { limit, ecn: false }).unwrap();
        let mut fifo = plain(Size::Packets(5));
        assert!(fifo.reconfigure(Box::new(plain(Size::Packets(2)))));
        assert_eq!(fill(&mut fifo), 2);
    }

    #[test]
    fn what_is_decided_on_arrival_alone_is_decided_at_enqueue() {
        for entry in REGISTRY {
            let qdisc = crate::build(entry.name, &[], Rate(8_000_000)).unwrap().qdisc;
            // CHOKe drops a queued packet when another one arrives; SFB reads its queue when the
            // hash changes; HHF selects a bucket on departure.
            let on_arrival = entry.decides.starts_with("on arrival");
            let expected = on_arrival && !["choke", "sfb", "hhf"].contains(&entry.name);
            assert_eq!(qdisc.decides_at_enqueue(), expected, "{}", entry.name);
        }
    }
}
