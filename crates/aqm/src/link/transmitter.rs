//! Transmitter of a link: takes packets from a discipline and sends them at the rate of the link.

use super::recorder::Recorder;
use super::transmission::transmission_end;
#[cfg(not(feature = "shaped-links"))]
use super::unshaped::{Opportunities, Shape};
use super::{LEN_MAX, LinkSpec};
#[cfg(feature = "shaped-links")]
use super::{Opportunities, shape::Shape};
use crate::context::{Context, DropReason, Dropped};
use crate::packet::{Ecn, Packet};
use crate::qdisc::Qdisc;
use crate::random::CloneRandom;
use crate::snapshot::Snapshot;
use crate::stats::LinkStats;
use crate::units::{Span, Time};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;

/// State of a link without its discipline.
// The layout is fixed: after the pointer to the discipline in `Link`, each group is a line of 64
// bytes. A packet touches the first two, and the lines of `stats` that it needs.
#[derive(Clone, Snapshot)]
#[repr(C)]
pub struct Transmitter {
    pub(super) rng: Box<dyn CloneRandom + Send>,
    /// Dropped packets that the owner has not taken yet.
    pub(super) dropped: Vec<Dropped>,
    /// Packet log, telemetry and bytes by class, of the few links that have them.
    pub(super) recorder: Option<Box<Recorder>>,

    /// Time of the last call.
    pub(super) now: Time,
    /// End of the current transmission, or the time at which the discipline is asked again while
    /// `delayed`; [`Time::NEVER`] while idle.
    pub(super) free_at: Time,
    /// Fraction of a nanosecond carried over from the last transmissions that started, in units of
    /// 1/rate nanoseconds.
    pub(super) carry: u64,
    /// End of the transmission of the packet enqueued last, if departures are computed at enqueue.
    last_end: Time,
    /// As `carry`, at `last_end`.
    last_carry: u64,
    pub(super) spec: LinkSpec,
    /// True if departures are computed at enqueue.
    pub(super) computes_departures: bool,
    /// True while nothing is being sent and a shaper in the discipline delays the queued packets.
    delayed: bool,
    /// True once [`super::Link::may_change`] was called.
    pub(super) may_change: bool,
    /// True while the link is down and drops its packets.
    pub(super) drops_while_down: bool,
    /// Length from which a packet takes the slow path of `receive`: [`LEN_MAX`], which panics, or
    /// 0 if packets are recorded at enqueue. So a link that records none has no further test.
    #[cfg(feature = "class-bytes")]
    slow_len: u32,

    pub(super) stats: LinkStats,

    /// Packets sent or in transmission, with their arrival times at the far end. If departures are
    /// computed at enqueue, queued packets as well.
    pub(super) in_flight: VecDeque<(Time, Packet)>,
    /// Arrival time of the last packet sent. No later packet arrives earlier, even if the delay
    /// changes.
    last_arrival: Time,
    /// Delivery opportunities of a trace-driven link, which replace the rate. Such a link does not
    /// compute departures at enqueue.
    pub(super) opportunities: Option<Box<Opportunities>>,
    /// Token bucket and overhead, of the few links that have them.
    pub(super) shape: Option<Box<Shape>>,
}

impl fmt::Debug for Transmitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Transmitter { spec, now, stats, .. } = self;
        f.debug_struct("Transmitter")
            .field("spec", spec)
            .field("now", now)
            .field("stats", stats)
            .finish_non_exhaustive()
    }
}

/// True if `qdisc` holds packets. Asked only while the rate is 0.
#[cold]
fn has_packets<Q: Qdisc + ?Sized>(qdisc: &Q) -> bool {
    qdisc.backlog().packets > 0
}

impl Transmitter {
    pub(super) fn new(
        spec: LinkSpec,
        computes_departures: bool,
        rng: Box<dyn CloneRandom + Send>,
    ) -> Transmitter {
        Transmitter {
            rng,
            dropped: Vec::new(),
            recorder: None,
            now: Time::ZERO,
            free_at: Time::NEVER,
            carry: 0,
            last_end: Time::ZERO,
            last_carry: 0,
            spec,
            computes_departures,
            delayed: false,
            may_change: false,
            drops_while_down: false,
            #[cfg(feature = "class-bytes")]
            slow_len: LEN_MAX,
            stats: LinkStats::default(),
            in_flight: VecDeque::new(),
            last_arrival: Time::ZERO,
            opportunities: None,
            shape: None,
        }
    }

    /// Enqueues a copy of `packet`, which arrives at `now`. If departures are computed at enqueue
    /// and the packet is accepted, returns the time of its arrival at the far end and its ECN field
    /// there; otherwise the ECN field is `None`. (An `Option` of both would be returned through
    /// memory.)
    ///
    /// # Panics
    /// If `now` is earlier than in a previous call, or the packet has [`LEN_MAX`] bytes or more.
    #[inline(always)]
    pub(super) fn receive<Q: Qdisc + ?Sized>(
        &mut self,
        qdisc: &mut Q,
        now: Time,
        packet: &mut Packet,
    ) -> (Time, Option<Ecn>) {
        #[cfg(feature = "class-bytes")]
        if packet.len >= self.slow_len {
            self.record_arrival(now, packet, qdisc.changes_class());
        }
        #[cfg(not(feature = "class-bytes"))]
        assert!(packet.len < LEN_MAX, "a packet is shorter than 2^30 bytes");
        self.advance(qdisc, now);
        packet.arrived = now;
        let Packet { len, body, ecn, .. } = *packet;
        self.stats.on_enqueue(now, len);
        let (before, marked) = (self.dropped.len(), self.stats.marks.packets);
        qdisc.enqueue(&mut self.context(now), *packet);
        let accepted = self.dropped.len() == before || {
            self.count_dropped(before);
            let same = |l: &Dropped| (l.packet.body, l.packet.arrived) == (body, now);
            !self.dropped[before..].iter().any(same)
        };
        let mut arrival = (Time::NEVER, None);
        if accepted {
            self.stats.on_accept();
            if self.computes_departures {
                let ecn = if self.stats.marks.packets > marked { Ecn::Ce } else { ecn };
                arrival = (self.schedule_departure(now, len), Some(ecn));
                // Such a discipline delays no packet, so a busy link is not `delayed`.
                if self.free_at < Time::NEVER {
                    return arrival;
                }
            }
        }
        if self.free_at == Time::NEVER || self.delayed {
            self.delayed = false;
            self.free_at =
                if self.computes_departures { now } else { self.first_start(qdisc, now) };
            self.catch_up(qdisc, now);
        }
        arrival
    }

    /// Records `packet`, which arrives at `now` at a discipline that may change its class if
    /// `changes_class`.
    ///
    /// # Panics
    /// If it has [`LEN_MAX`] bytes or more.
    #[cfg(feature = "class-bytes")]
    #[cold]
    #[inline(never)]
    fn record_arrival(&mut self, now: Time, packet: &Packet, changes_class: bool) {
        assert!(packet.len < LEN_MAX, "a packet is shorter than 2^30 bytes");
        if let Some(recorder) = &mut self.recorder {
            recorder.on_enqueue(now, packet, changes_class);
        }
    }

    /// Records packets at enqueue from now on.
    #[cfg(feature = "class-bytes")]
    pub(super) fn record_enqueued(&mut self) {
        self.slow_len = 0;
    }

    /// Time at which an idle link can start to send a packet that arrives at `now`.
    #[inline]
    fn first_start<Q: Qdisc + ?Sized>(&mut self, qdisc: &Q, now: Time) -> Time {
        match &mut self.opportunities {
            None => now,
            Some(_) if qdisc.backlog().packets == 0 => Time::NEVER,
            Some(opportunities) => opportunities.seek(now),
        }
    }

    /// Executes everything that is due up to `now`.
    ///
    /// # Panics
    /// If `now` is earlier than in a previous call.
    #[inline]
    pub(super) fn advance<Q: Qdisc + ?Sized>(&mut self, qdisc: &mut Q, now: Time) {
        if now < self.now {
            self.refuse(now);
        }
        if self.free_at <= now {
            self.catch_up(qdisc, now);
        }
        self.now = now;
    }

    /// Panics: `now` is earlier than in a previous call.
    #[cold]
    #[inline(never)]
    fn refuse(&self, now: Time) -> ! {
        panic!("a link was called at {} ns, after a call at {} ns", now.0, self.now.0)
    }

    /// Starts every transmission that is due up to `now`. Not inlined: one copy per discipline.
    #[inline(never)]
    fn catch_up<Q: Qdisc + ?Sized>(&mut self, qdisc: &mut Q, now: Time) {
        // The first term is a constant for most disciplines.
        if qdisc.decides_at_enqueue() && self.computes_departures && self.recorder.is_none() {
            while self.free_at <= now && self.free_at < Time::NEVER {
                self.start::<_, true>(qdisc, self.free_at);
            }
        } else {
            while self.free_at <= now && self.free_at < Time::NEVER {
                self.start::<_, false>(qdisc, self.free_at);
            }
        }
    }

    /// Dequeues and sends the next packet; the link is free at `at`. `COUNTS` is true if the packet
    /// is only counted: departures are computed at enqueue, and there is no packet log.
    #[inline(always)]
    fn start<Q: Qdisc + ?Sized, const COUNTS: bool>(&mut self, qdisc: &mut Q, at: Time) {
        self.delayed = false;
        if !COUNTS && self.spec.rate.0 == 0 && has_packets(qdisc) {
            return self.stop_without_rate(qdisc, at);
        }
        let before = self.dropped.len();
        let next = qdisc.dequeue(&mut self.context(at));
        // A discipline that decides at enqueue drops nothing here.
        debug_assert!(!COUNTS || self.dropped.len() == before, "a drop at dequeue");
        if !COUNTS && self.dropped.len() > before {
            self.count_dropped(before);
        }
        let Some(packet) = next else { return self.stop_until(qdisc.ready_at(), at) };
        if !COUNTS && self.recorder.is_some() {
            self.record(at, &packet);
        }
        self.free_at = if COUNTS || self.computes_departures {
            transmission_end(at, packet.len, self.spec.rate, &mut self.carry)
        } else {
            self.put_in_flight(at, packet)
        };
        self.stats.on_departure(at, packet.len, at - packet.arrived, self.free_at - at);
    }

    /// Starts to send at `now` if packets wait at an idle link: only if its rate was 0.
    pub(super) fn resume(&mut self, qdisc: &mut dyn Qdisc, now: Time) {
        if self.free_at == Time::NEVER && self.stats.backlog().0 > 0 {
            self.start::<_, false>(qdisc, now);
            self.now = now;
        }
    }

    /// Stops at `at`, since the rate is 0. The queued packets wait, or are dropped.
    #[cold]
    #[cfg_attr(not(feature = "shaped-links"), allow(unused_variables, reason = "no outages"))]
    fn stop_without_rate<Q: Qdisc + ?Sized>(&mut self, qdisc: &mut Q, at: Time) {
        self.stop();
        #[cfg(feature = "shaped-links")]
        if self.drops_while_down {
            self.discard(qdisc, at);
            self.stop_until(qdisc.ready_at(), at);
        }
    }

    fn stop(&mut self) {
        (self.free_at, self.carry) = (Time::NEVER, 0);
    }

    /// Waits for the next arrival, or until `ready`, after the discipline returned no packet at
    /// `at`.
    fn stop_until(&mut self, ready: Option<Time>, at: Time) {
        self.stop();
        if let Some(ready) = ready {
            // At least one nanosecond: a discipline that is ready and has no packet must not hang.
            let ready = ready.max(at + Span(1));
            self.delayed = true;
            self.free_at = match &mut self.opportunities {
                Some(opportunities) => opportunities.seek(ready),
                None => ready,
            };
        }
    }

    /// Sends `packet` from `at` on; returns when the next packet can start.
    #[inline(always)]
    fn put_in_flight(&mut self, at: Time, packet: Packet) -> Time {
        let (end, free) = match (&mut self.opportunities, &mut self.shape) {
            (None, None) => {
                let end = transmission_end(at, packet.len, self.spec.rate, &mut self.carry);
                (end, end)
            }
            (Some(opportunities), _) => opportunities.deliver(at, packet.len),
            (None, Some(shape)) => shape.send(at, packet.len, self.spec.rate, &mut self.carry),
        };
        self.last_arrival = self.last_arrival.max(end + self.spec.delay);
        self.in_flight.push_back((self.last_arrival, packet));
        free
    }

    /// Schedules the departure of an accepted packet of `len` bytes, about which everything is
    /// decided. Returns its arrival time at the far end.
    #[inline]
    fn schedule_departure(&mut self, now: Time, len: u32) -> Time {
        if self.free_at == Time::NEVER {
            (self.last_end, self.last_carry) = (now, 0);
        }
        self.last_end = transmission_end(self.last_end, len, self.spec.rate, &mut self.last_carry);
        self.last_end + self.spec.delay
    }

    #[inline]
    pub(super) fn context(&mut self, now: Time) -> Context<'_> {
        let Transmitter { rng, dropped, stats, .. } = self;
        Context { now, rng: &mut **rng, dropped, marks: &mut stats.marks }
    }

    /// Drops `packet`, which arrives now, without the discipline.
    #[cold]
    pub(super) fn drop_at_arrival(&mut self, packet: Packet, why: DropReason) {
        self.stats.on_enqueue(packet.arrived, packet.len);
        #[cfg(feature = "class-bytes")]
        self.record_arrival(packet.arrived, &packet, false);
        let before = self.dropped.len();
        self.context(packet.arrived).drop(packet, why);
        self.count_dropped(before);
    }

    #[cold]
    pub(super) fn count_dropped(&mut self, from: usize) {
        for l in &self.dropped[from..] {
            self.stats.on_drop(l);
            if let Some(recorder) = &mut self.recorder {
                recorder.on_drop(l);
            }
        }
    }

    /// See [`super::Link::next_event`].
    #[inline]
    pub(super) fn next_event(&self) -> Option<Time> {
        let waiting =
            !self.computes_departures && self.free_at < Time::NEVER && self.stats.backlog().0 > 0;
        waiting.then(|| self.free_at + self.spec.delay)
    }

    /// Resets all counters at `now`, the time of the last call.
    pub(super) fn reset_stats(&mut self, now: Time) {
        self.stats.reset(now, self.sending());
        if let Some(opportunities) = &mut self.opportunities {
            opportunities.begin(now);
        }
        if let Some(shape) = &mut self.shape {
            shape.begin(now);
        }
    }

    /// Counters up to the time of the last call.
    pub(super) fn stats(&mut self) -> &LinkStats {
        self.stats.pass(self.now);
        self.stats.count_recent();
        &self.stats
    }

    /// See [`super::Link::usage`].
    pub(super) fn usage(&mut self) -> [u64; 2] {
        if let Some(opportunities) = &self.opportunities {
            let LinkStats { departed_packets, departed_bytes, .. } = self.stats;
            return opportunities.usage(self.now, departed_packets, departed_bytes);
        }
        let sending = self.sending();
        let used = self.shape.as_ref().and_then(|shape| shape.used(self.now));
        let stats = self.stats();
        [used.unwrap_or_else(|| stats.busy(sending)).0, stats.window().0]
    }

    /// Rest of the current transmission.
    fn sending(&self) -> Span {
        let sends = self.free_at < Time::NEVER && !self.delayed;
        if sends { self.free_at.since(self.now) } else { Span::ZERO }
    }

    /// Records `packet`, whose transmission starts at `at`. It still counts in the backlog.
    #[cold]
    #[inline(never)]
    pub(super) fn record(&mut self, at: Time, packet: &Packet) {
        if let Some(recorder) = &mut self.recorder {
            recorder.on_departure(at, packet);
            #[cfg(feature = "telemetry")]
            recorder.stamp(
                at,
                packet,
                self.stats.backlog().1.saturating_sub(packet.len.into()),
                self.spec.rate,
            );
        }
    }
}
