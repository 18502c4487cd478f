//! AQM algorithms, and the single-queue discipline that runs one of them on a FIFO queue.

#[cfg(feature = "afd")]
pub mod af_qcn;
#[cfg(feature = "afd")]
pub mod afd;
#[cfg(feature = "pi")]
pub mod api;
#[cfg(feature = "red")]
pub mod ared;
#[cfg(feature = "pi")]
pub mod avq;
#[cfg(feature = "blue")]
pub mod blue;
#[cfg(feature = "red")]
pub mod choke;
#[cfg(feature = "codel")]
pub mod cobalt;
#[cfg(feature = "codel")]
pub mod codel;
#[cfg(feature = "red")]
pub mod feng_red;
#[cfg(feature = "red")]
pub mod fred;
#[cfg(feature = "red")]
pub mod hred;
#[cfg(feature = "pi")]
pub mod pi;
#[cfg(feature = "pi")]
pub mod pi2;
#[cfg(feature = "pi")]
pub mod pie;
#[cfg(feature = "classful")]
pub mod police;
#[cfg(feature = "red")]
pub mod red;
#[cfg(feature = "red")]
pub mod red_opt;
#[cfg(feature = "pi")]
pub mod rem;
#[cfg(feature = "red")]
pub mod rio;
#[cfg(feature = "red")]
pub mod sa_red;
#[cfg(feature = "blue")]
pub mod sfb;
#[cfg(feature = "red")]
pub mod sred;
#[cfg(feature = "red")]
pub mod step_mark;
#[cfg(feature = "xcp")]
pub mod xcp;

use crate::build::{Build, Builder, Env};
use crate::context::{Context, DropReason};
use crate::error::Result;
use crate::fifo::{QueueView, SingleFifo};
use crate::packet::Packet;
use crate::params::{Checked, Combined, Nothing, Params};
use crate::qdisc::{Backlog, Peek, Qdisc};
use crate::snapshot::Snapshot;
use crate::units::{Size, Time};
use alloc::boxed::Box;
use core::any::Any;

/// Decision of an AQM algorithm about an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
pub enum Verdict {
    /// Enqueue the packet.
    Pass,
    /// Mark the packet if `ecn` is set and it is ECN-capable, otherwise drop it.
    Mark,
    /// Drop the packet, even if it is ECN-capable.
    Drop,
}

/// An AQM algorithm: decides which packets of one FIFO queue to drop or mark.
///
/// An author writes its parameters with [`params!`](crate::params!), and one `impl` with the
/// constructor [`Aqm::new`] and the hooks that the algorithm uses. Every hook has a default; with
/// all defaults the queue is a plain FIFO. Hooks that exist in the Python class `sojourn.Aqm` have
/// the same names there.
///
/// | hook | called |
/// |---|---|
/// | [`on_update`](Aqm::on_update) | before every enqueue and dequeue |
/// | [`on_enqueue`](Aqm::on_enqueue) | when a packet arrives |
/// | [`on_overflow`](Aqm::on_overflow) | when the arriving packet finds a full buffer |
/// | [`on_dequeue`](Aqm::on_dequeue) | when the link asks for a packet |
/// | [`on_idle`](Aqm::on_idle) | when the link asked for a packet and the queue was empty |
/// | [`on_first_packet`](Aqm::on_first_packet) | once, before the other hooks |
/// | [`after_enqueue`](Aqm::after_enqueue) | when a packet was enqueued |
/// | [`on_evict`](Aqm::on_evict) | when queued packets were dropped to make room |
///
/// A caller builds a single queue with the algorithm by [`Aqm::builder`]:
///
/// ```
/// use sojourn_aqm::aqm::codel::CoDel;
/// use sojourn_aqm::{Aqm, Rate, Span};
///
/// let codel = CoDel::builder().aqm(|codel| codel.target(Span::ms(15))).build(Rate(10_000_000))?;
/// # Ok::<(), sojourn_aqm::Error>(())
/// ```
pub trait Aqm: Clone + Send + Snapshot + 'static {
    /// Parameters of the algorithm.
    type Params: Params;

    /// Builds the algorithm for a link, from parameters whose ranges were checked.
    ///
    /// # Errors
    /// Parameters that contradict each other or the link; the path names the parameter.
    fn new(params: Checked<'_, Self::Params>, env: &Env) -> Result<Self>;

    /// Checks the ranges of `params` and builds the algorithm for a link.
    ///
    /// # Errors
    /// A parameter that is out of range, or parameters that contradict each other or the
    /// link; the path names the parameter.
    fn build(params: &Self::Params, env: &Env) -> Result<Self> {
        Self::new(params.checked()?, env)
    }

    /// Returns a builder of a single queue with this algorithm, with the default parameters.
    fn builder() -> Builder<SingleQueue<Self>, Combined<SingleParams, Self::Params>>
    where
        Self::Params: Default,
    {
        Builder::new()
    }

    /// Called once, before any other hook, when the first packet arrives at the discipline
    /// (possibly at another queue of it). Periodic updates count from `now`.
    fn on_first_packet(&mut self, _now: Time) {}

    /// Runs the periodic updates that are due at `now`. Called before every enqueue and dequeue.
    ///
    /// The queue does not change between packets, so that catching up is exact. The work is
    /// bounded, also after a long idle time.
    fn on_update(&mut self, _now: Time, _queue: &QueueView<'_>) {}

    /// True if [`Aqm::on_update`] may do anything. If not, [`Qdisc::inspect_at`] needs no copy.
    fn has_updates(&self) -> bool {
        true
    }

    /// Decides about the arriving `packet`. `queue` does not contain it yet; the packet in
    /// transmission is not counted either.
    fn on_enqueue(
        &mut self,
        _context: &mut Context<'_>,
        _queue: &mut QueueView<'_>,
        _packet: &Packet,
    ) -> Verdict {
        Verdict::Pass
    }

    /// Called when `packet` was enqueued. A packet that passed [`Aqm::on_enqueue`] may still be
    /// dropped: the buffer may be full, or a mark may not be possible.
    fn after_enqueue(&mut self, _packet: &Packet) {}

    /// Called when the arriving packet is dropped because the buffer is full, whatever
    /// [`Aqm::on_enqueue`] decided.
    fn on_overflow(&mut self, _now: Time) {}

    /// True if a full shared buffer drops the arriving packet, before [`Aqm::on_enqueue`], instead
    /// of packets of the longest queue.
    fn drops_arrival_when_full(&self) -> bool {
        false
    }

    /// Called when `packets` queued packets were dropped to make room for others.
    fn on_evict(&mut self, _packets: u32) {}

    /// Dequeues the next packet to send, after dropping as many as the algorithm decides. `ecn` is
    /// true if packets may be marked.
    fn on_dequeue(
        &mut self,
        _context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        _ecn: bool,
    ) -> Option<Packet> {
        queue.pop()
    }

    /// True if the algorithm decides at enqueue only, and only about the arriving packet.
    fn decides_at_enqueue(&self) -> bool {
        false
    }

    /// True if [`Aqm::on_dequeue`] returns the packet at the head, so that a parent can know its
    /// length before.
    fn sends_head(&self) -> bool {
        self.decides_at_enqueue()
    }

    /// Called when the link asked for a packet and the queue was empty: the link is idle from
    /// `now`.
    fn on_idle(&mut self, _now: Time) {}

    /// Calls `visit` with the name and value of each internal variable: names of the source, SI
    /// units.
    fn inspect(&self, _visit: &mut dyn FnMut(&'static str, f64)) {}

    /// Takes the parameters of `fresh` and keeps the state. Returns false, and changes nothing, if
    /// the algorithm cannot change the parameters in which they differ while it runs.
    fn reconfigure(&mut self, _fresh: &Self) -> bool {
        false
    }

    /// Returns the size of the state in bytes. Algorithms with tables override it.
    fn state_bytes(&self) -> usize {
        size_of_val(self)
    }
}

/// No AQM: a plain FIFO queue.
#[derive(Clone, Debug, Snapshot)]
pub struct NoAqm;

impl Aqm for NoAqm {
    type Params = Nothing;

    fn new(_: Checked<'_, Nothing>, _env: &Env) -> Result<Self> {
        Ok(NoAqm)
    }

    fn reconfigure(&mut self, _fresh: &Self) -> bool {
        true
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
// The layout is fixed: the fields here are a line of 64 bytes; the algorithm follows.
#[derive(Clone, Debug, Snapshot)]
#[repr(C)]
pub struct SingleQueue<A> {
    fifo: SingleFifo,
    limit: Size,
    ecn: bool,
    /// True once a packet has arrived.
    started: bool,
    aqm: A,
}

impl<A> SingleQueue<A> {
    /// True if the queue can hold `packet` as well, after `ahead`.
    #[inline(always)]
    fn has_room(&self, packet: &Packet, ahead: Backlog) -> bool {
        let packets = self.fifo.packets() + ahead.packets;
        fits(self.limit, packets, self.fifo.bytes().0 + ahead.bytes, packet)
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

impl<A: Aqm> Build for SingleQueue<A> {
    type Params = Combined<SingleParams, A::Params>;

    fn new(params: Checked<'_, Self::Params>, env: &Env) -> Result<Self> {
        let SingleParams { limit, ecn } = params.outer;
        let aqm = A::build(&params.inner, &Env { limit, ecn, ..*env })?;
        Ok(SingleQueue { aqm, fifo: SingleFifo::default(), limit, ecn, started: false })
    }
}

impl<A: Aqm> Qdisc for SingleQueue<A> {
    // Inlining into the link is forced here and below: it saves copies of the packet.
    #[inline(always)]
    fn enqueue(&mut self, context: &mut Context<'_>, packet: Packet) {
        self.enqueue_behind(context, packet, Backlog::default());
    }

    #[inline(always)]
    fn enqueue_behind(&mut self, context: &mut Context<'_>, mut packet: Packet, ahead: Backlog) {
        context.check_arrival(&packet);
        if !self.started {
            self.started = true;
            self.aqm.on_first_packet(context.now);
        }
        // A packet larger than the whole buffer is not shown to the algorithm: CoDel would take its
        // length for the largest packet, and never drop again.
        let has_room = self.has_room(&packet, ahead);
        if !has_room && exceeds(self.limit, &packet) {
            return context.drop(packet, DropReason::Full);
        }
        let mut queue = QueueView::single(&mut self.fifo);
        self.aqm.on_update(context.now, &queue);
        let verdict = self.aqm.on_enqueue(context, &mut queue, &packet);
        // The algorithm may have dropped queued packets.
        if !has_room && !self.has_room(&packet, ahead) {
            self.aqm.on_overflow(context.now);
            return context.drop(packet, DropReason::Full);
        }
        match verdict {
            Verdict::Pass => {}
            Verdict::Mark if self.ecn && context.mark(&mut packet) => {}
            Verdict::Mark | Verdict::Drop => return context.drop(packet, DropReason::AtEnqueue),
        }
        self.aqm.after_enqueue(&packet);
        self.fifo.push(packet);
    }

    #[inline(always)]
    fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        let mut queue = QueueView::single(&mut self.fifo);
        self.aqm.on_update(context.now, &queue);
        let packet = self.aqm.on_dequeue(context, &mut queue, self.ecn);
        if packet.is_none() {
            self.aqm.on_idle(context.now);
        }
        packet
    }

    fn peek(&mut self, _context: &mut Context<'_>) -> Peek {
        if self.aqm.sends_head() { Peek::of(self.fifo.front()) } else { Peek::Undecided }
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.fifo.packets(), bytes: self.fifo.bytes().0 }
    }

    fn decides_at_enqueue(&self) -> bool {
        self.aqm.decides_at_enqueue()
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.aqm.inspect(visit);
    }

    fn inspect_at(&mut self, now: Time, visit: &mut dyn FnMut(&'static str, f64)) {
        if !self.aqm.has_updates() {
            return self.aqm.inspect(visit);
        }
        let mut aqm = self.aqm.clone();
        aqm.on_update(now, &QueueView::single(&mut self.fifo));
        aqm.inspect(visit);
    }

    fn reconfigure(&mut self, fresh: Box<dyn Qdisc + Send>) -> bool {
        let Some(fresh) = (&*fresh as &dyn Any).downcast_ref::<Self>() else { return false };
        let done = self.aqm.reconfigure(&fresh.aqm);
        if done {
            (self.limit, self.ecn) = (fresh.limit, fresh.ecn);
        }
        done
    }

    fn state_bytes(&self) -> usize {
        size_of_val(self) - size_of_val(&self.aqm) + self.aqm.state_bytes()
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
        let (mut dropped, mut marks) = (Vec::new(), Marks::default());
        for _ in 0..12 {
            let mut context = Context {
                now: Time::ZERO,
                rng: &mut rng,
                dropped: &mut dropped,
                marks: &mut marks,
            };
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
    #[cfg(debug_assertions)]
    fn every_discipline_refuses_a_packet_with_another_arrival_time() {
        for name in REGISTRY.iter().map(|entry| entry.name) {
            let enqueued = |arrived| {
                let mut rng = <rand_pcg::Pcg64Mcg as rand_core::SeedableRng>::seed_from_u64(1);
                let (mut dropped, mut marks) = (Vec::new(), Marks::default());
                let (dropped, marks) = (&mut dropped, &mut marks);
                let mut context = Context { now: Time(9), rng: &mut rng, dropped, marks };
                let packet = Packet { arrived, len: 1000, ..Packet::default() };
                built(name, &[]).enqueue(&mut context, packet);
            };
            enqueued(Time(9));
            assert!(std::panic::catch_unwind(|| enqueued(Time(8))).is_err(), "{name}");
        }
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
        let plain = |limit| {
            NoAqm::builder().queue(|q| q.limit(Size::Packets(limit))).build(Rate(8)).unwrap()
        };
        let mut fifo = plain(5);
        assert!(fifo.reconfigure(plain(2)));
        assert_eq!(fill(&mut *fifo), 2);
    }

    #[test]
    fn what_is_decided_on_arrival_alone_is_decided_at_enqueue() {
        for entry in REGISTRY {
            let qdisc = crate::build(entry.name, &[], Rate(8_000_000)).unwrap().qdisc;
            // CHOKe drops a queued packet when another one arrives; SFB reads its queue when the
            // hash changes; HHF selects a bucket on departure.
            let on_enqueue = entry.decides.starts_with("on arrival");
            let expected = on_enqueue && !["choke", "sfb", "hhf"].contains(&entry.name);
            assert_eq!(qdisc.decides_at_enqueue(), expected, "{}", entry.name);
        }
    }
}
