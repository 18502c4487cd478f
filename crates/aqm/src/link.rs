//! A link: a discipline, a rate and a propagation delay. Time is an argument; a link has no clock.

use crate::context::Dropped;
use crate::error::Result;
use crate::packet::{Ecn, Packet};
use crate::params::checked;
use crate::qdisc::Qdisc;
use crate::random::CloneRandom;
use crate::snapshot::Snapshot;
use crate::stats::LinkStats;
use crate::units::{Rate, Span, Time};
use alloc::boxed::Box;
use alloc::vec::Drain;
use core::fmt;
use core::mem::offset_of;

#[cfg(feature = "shaped-links")]
mod bucket;
mod changes;
#[cfg(feature = "class-bytes")]
mod class_bytes;
mod fallible;
#[cfg(feature = "shaped-links")]
mod opportunities;
#[cfg(feature = "shaped-links")]
mod outage;
mod recorder;
mod refused;
mod saved;
mod served;
#[cfg(feature = "shaped-links")]
mod shape;
mod transmission;
mod transmitter;
#[cfg(not(feature = "shaped-links"))]
mod unshaped;
mod watching;

#[cfg(feature = "shaped-links")]
pub use bucket::TokenBucket;
#[cfg(feature = "shaped-links")]
pub use opportunities::Opportunities;
pub use recorder::HopTelemetry;
pub use served::Served;
use transmitter::Transmitter;

/// Rate and delay of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
#[non_exhaustive]
pub struct LinkSpec {
    /// Rate of the transmitter. Zero, which only [`Link::change`] accepts, stops the link.
    pub rate: Rate,
    /// One-way propagation delay.
    pub delay: Span,
}

impl LinkSpec {
    /// Highest rate, 10^18 bit/s. The arithmetic of transmission times is exact up to it.
    pub const RATE_MAX: Rate = Rate(1_000_000_000_000_000_000);

    /// Returns a link of `rate`, with propagation delay `delay`.
    pub const fn new(rate: Rate, delay: Span) -> LinkSpec {
        LinkSpec { rate, delay }
    }

    /// Checks that the rate is from 1 bit/s to [`LinkSpec::RATE_MAX`]; any delay is accepted.
    ///
    /// # Errors
    /// A rate out of range.
    pub fn check(&self) -> Result<()> {
        checked(self.rate, Some((Rate(1), LinkSpec::RATE_MAX))).map_err(|e| e.at_name("rate"))?;
        Ok(())
    }
}

/// A link in operation.
///
/// Between two calls it does nothing. Each call first executes everything that became due since the
/// last one, at the exact time at which it was due, so that late calls change no decision. Events
/// at the same nanosecond have this order: the transmission ends and the next one starts, then the
/// packet of the call arrives.
///
/// A copy (`Clone`) has the same packets, state and random numbers, and continues in the same way.
// The layout is fixed, and the alignment is a cache line: see `Transmitter`.
#[derive(Clone, Snapshot)]
#[repr(C, align(64))]
pub struct Link {
    qdisc: Box<dyn Served + Send>,
    transmitter: Transmitter,
}

/// Largest packet length; longer packets are rejected, so that the transmission time does not
/// overflow.
pub const LEN_MAX: u32 = 1 << 30;

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("spec", &self.transmitter.spec)
            .field("now", &self.transmitter.now)
            .field("backlog", &self.qdisc.backlog())
            .field("stats", &self.transmitter.stats)
            .finish_non_exhaustive()
    }
}

impl Link {
    /// Number of bytes, from the first one on, that a packet can touch on a link that [computes its
    /// departures](Link::computes_departures), unless it is dropped.
    #[doc(hidden)]
    pub const HOT_BYTES: usize =
        offset_of!(Link, transmitter) + offset_of!(Transmitter, stats) + LinkStats::HOT_BYTES;

    /// Creates an idle link at time zero.
    ///
    /// # Errors
    /// As [`LinkSpec::check`].
    pub fn new(
        spec: LinkSpec,
        qdisc: Box<dyn Served + Send>,
        rng: impl CloneRandom + Send + 'static,
    ) -> Result<Link> {
        spec.check()?;
        let transmitter = Transmitter::new(spec, qdisc.decides_at_enqueue(), Box::new(rng));
        Ok(Link { qdisc, transmitter })
    }

    /// Counts sojourn times in batches from now on. The results are the same. Faster if the links
    /// of a simulation are so many that their statistics do not fit into the cache.
    #[doc(hidden)]
    pub fn count_in_batches(&mut self) {
        self.transmitter.stats.count_in_batches();
    }

    /// Enqueues `packet`, which arrives at `now`.
    ///
    /// # Panics
    /// If `now` is earlier than in a previous call, or the packet has [`LEN_MAX`] bytes or more.
    pub fn push(&mut self, now: Time, mut packet: Packet) {
        self.push_copy(now, &mut packet);
    }

    /// Enqueues a copy of `packet`, which arrives at `now`, and sets its arrival time. As
    /// [`Link::push`]; faster for several packets that differ in few fields.
    ///
    /// # Panics
    /// As [`Link::push`].
    #[inline]
    pub fn push_copy(&mut self, now: Time, packet: &mut Packet) {
        let (at, ecn) = self.qdisc.link_receive(&mut self.transmitter, now, packet);
        if let Some(ecn) = ecn {
            let packet = Packet { ecn, ..*packet };
            self.transmitter.in_flight.push_back((at, packet));
        }
    }

    /// Enqueues a copy of `packet`, which arrives at `now`, on a link that [computes its departures
    /// at enqueue](Link::computes_departures), and sets its arrival time. Returns the time of its
    /// arrival at the far end and its ECN field there; `None` if it is dropped. The packet does not
    /// appear in flight or in the list of dropped packets.
    ///
    /// # Panics
    /// As [`Link::push`], or if the link does not compute its departures at enqueue.
    #[inline]
    pub fn send(&mut self, now: Time, packet: &mut Packet) -> Option<(Time, Ecn)> {
        assert!(self.computes_departures(), "the fate of the packet is not known yet");
        let (at, ecn) = self.qdisc.link_receive(&mut self.transmitter, now, packet);
        match ecn {
            Some(ecn) => Some((at, ecn)),
            None => self.forget_dropped(),
        }
    }

    /// Removes the packet dropped last from the list of dropped packets.
    #[cold]
    fn forget_dropped(&mut self) -> Option<(Time, Ecn)> {
        self.transmitter.dropped.pop();
        None
    }

    /// True if the departure of a packet is computed when it is enqueued: every decision of the
    /// discipline is then made, and neither rate nor delay can change.
    #[inline]
    pub fn computes_departures(&self) -> bool {
        self.transmitter.computes_departures
    }

    /// Returns the next packet that has reached the far end by `now`; `None` if there is none. Call
    /// it again until it returns `None`: several packets may have arrived.
    ///
    /// After a late call the arrival of the packet can be earlier than `now`. After
    /// [`Link::advance`], [`Link::first_in_flight`] has its exact time.
    ///
    /// Drops at dequeue happen in this call, so look at [`Link::take_dropped`] after it.
    ///
    /// # Panics
    /// If `now` is earlier than in a previous call.
    pub fn poll(&mut self, now: Time) -> Option<Packet> {
        self.advance(now);
        self.first_in_flight().filter(|(at, _)| *at <= now)?;
        self.pop_in_flight().map(|(_, packet)| packet)
    }

    /// Next time to call [`Link::poll`]; `None` while no packet is on the link.
    ///
    /// May be early with a shaper, a drop at dequeue, or delivery opportunities. [`Link::poll`]
    /// then returns `None`: call this function again.
    pub fn next_poll(&self) -> Option<Time> {
        self.first_in_flight().map(|(at, _)| *at).or_else(|| self.next_event())
    }

    /// Packet that [`Link::pop_in_flight`] returns next, with its arrival time at the far end.
    #[inline]
    pub fn first_in_flight(&self) -> Option<&(Time, Packet)> {
        self.transmitter.in_flight.front()
    }

    /// Returns the next packet in flight with its arrival time at the far end, even if that is in
    /// the future. For owners that schedule arrivals themselves. Use either this or [`Link::poll`].
    #[inline]
    pub fn pop_in_flight(&mut self) -> Option<(Time, Packet)> {
        self.transmitter.in_flight.pop_front()
    }

    /// Time before which no queued packet can reach the far end; `None` while no packet is queued.
    /// An owner that uses [`Link::pop_in_flight`] must call the link again by then.
    #[inline]
    pub fn next_event(&self) -> Option<Time> {
        self.transmitter.next_event()
    }

    /// Removes and returns the packets dropped since the last call. The owner frees their bodies.
    ///
    /// Call it after [`Link::push`], [`Link::poll`] and [`Link::advance`]; the list grows until
    /// then. A drop at dequeue appears with the call that executes it, not at its own time, which
    /// is [`Dropped::at`].
    pub fn take_dropped(&mut self) -> Drain<'_, Dropped> {
        self.transmitter.dropped.drain(..)
    }

    /// True if packets were dropped since the last call of [`Link::take_dropped`].
    #[inline]
    pub fn has_dropped(&self) -> bool {
        !self.transmitter.dropped.is_empty()
    }

    /// Executes everything that is due up to `now`.
    ///
    /// # Panics
    /// If `now` is earlier than in a previous call.
    #[inline]
    pub fn advance(&mut self, now: Time) {
        self.qdisc.link_advance(&mut self.transmitter, now);
    }

    /// Starts the measured interval at `now`, the end of a warm-up: resets all counters.
    ///
    /// Call it before packets that arrive at `now`: an arrival at `now` counts in the interval.
    ///
    /// # Panics
    /// If `now` is earlier than in a previous call.
    pub fn reset_stats(&mut self, now: Time) {
        self.advance(now);
        self.transmitter.reset_stats(now);
    }

    /// Counters up to the time of the last call.
    pub fn stats(&mut self) -> &LinkStats {
        self.transmitter.stats()
    }

    /// Share of the measured interval in which the link was sending. With a [`TokenBucket`], share
    /// in which the bucket was not full. With [`Opportunities`], share of the offered bytes that
    /// was used, framing included. At most 1; `None` if nothing was offered.
    pub fn utilisation(&mut self) -> Option<f64> {
        let [used, offered] = self.usage();
        (offered > 0).then(|| used as f64 / offered as f64)
    }

    /// Used and offered capacity of the measured interval so far: nanoseconds of sending and of
    /// time; on a link with [`Opportunities`], bytes. Between two calls the used capacity grows by
    /// no more than the offered one.
    pub fn usage(&mut self) -> [u64; 2] {
        self.transmitter.usage()
    }

    /// Time of the last call.
    pub fn now(&self) -> Time {
        self.transmitter.now
    }

    /// Rate and delay.
    pub fn spec(&self) -> LinkSpec {
        self.transmitter.spec
    }

    /// Calls `visit` with the internal variables of the discipline at the time of the last call.
    pub fn inspect(&mut self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.qdisc.inspect_at(self.transmitter.now, visit);
    }

    /// The discipline.
    pub fn qdisc(&self) -> &dyn Qdisc {
        &*self.qdisc
    }
}

#[cfg(test)]
mod tests;
