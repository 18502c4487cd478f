//! A link: a discipline, a rate and a propagation delay. Time is an argument; a link has no clock.

use crate::context::{Context, Dropped};
use crate::error::Result;
use crate::packet::{Ecn, Packet};
use crate::packet_log::{LogEntry, PacketLog};
use crate::params::checked;
use crate::qdisc::Qdisc;
use crate::random::Random;
use crate::stats::LinkStats;
use crate::units::{Rate, Span, Time};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::{Drain, Vec};
use core::fmt;

mod changes;
mod opportunities;

pub use opportunities::Opportunities;

/// Rate and delay of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSpec {
    /// Rate of the transmitter. Zero, which only [`Link::change`] accepts, stops the link.
    pub rate: Rate,
    /// One-way propagation delay.
    pub delay: Span,
}

impl LinkSpec {
    /// Highest rate, 10^18 bit/s. The arithmetic of transmission times is exact up to it.
    pub const RATE_MAX: Rate = Rate(1_000_000_000_000_000_000);

    /// Checks that the rate is from 1 bit/s to [`LinkSpec::RATE_MAX`]; any delay is accepted.
    ///
    /// # Errors
    /// A rate out of range.
    pub fn check(&self) -> Result<()> {
        checked(self.rate, Some((Rate(1), LinkSpec::RATE_MAX))).map_err(|e| e.at("rate"))?;
        Ok(())
    }
}

/// A link in operation.
///
/// Between two calls it does nothing. Each call first executes everything that became due since the
/// last one, at the exact time at which it was due, so that late calls change no decision. Events
/// at the same nanosecond have this order: the transmission ends and the next one starts, then the
/// packet of the call arrives.
pub struct Link {
    spec: LinkSpec,
    qdisc: Box<dyn Qdisc + Send>,
    rng: Box<dyn Random + Send>,
    now: Time,
    /// End of the current transmission; `None` while idle.
    free_at: Option<Time>,
    /// Fraction of a nanosecond carried over from the last transmissions, in units of 1/rate
    /// nanoseconds.
    carry: u64,
    /// Packets sent or in transmission, with their arrival times at the far end. If the discipline
    /// decides everything at enqueue, queued packets as well.
    wire: VecDeque<(Time, Packet)>,
    /// If it does: end of the transmission of each queued packet, and that of the last one.
    ends: Option<VecDeque<Time>>,
    last_end: Time,
    /// Arrival time of the last packet sent. No later packet arrives earlier, even if the delay
    /// changes.
    last_arrival: Time,
    /// Delivery opportunities of a trace-driven link, which replace the rate.
    opportunities: Option<Box<Opportunities>>,
    lost: Vec<Dropped>,
    stats: LinkStats,
    tape: Option<PacketLog>,
}

/// Largest packet length; longer packets are rejected, so that the transmission time does not
/// overflow.
pub const LEN_MAX: u32 = 1 << 30;

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("spec", &self.spec)
            .field("now", &self.now)
            .field("backlog", &self.qdisc.backlog())
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

impl Link {
    /// Creates an idle link at time zero.
    ///
    /// # Errors
    /// As [`LinkSpec::check`].
    pub fn new(
        spec: LinkSpec,
        qdisc: Box<dyn Qdisc + Send>,
        rng: impl Random + Send + 'static,
    ) -> Result<Link> {
        spec.check()?;
        Ok(Link {
            spec,
            ends: qdisc.decides_at_enqueue().then(VecDeque::new),
            last_end: Time::ZERO,
            last_arrival: Time::ZERO,
            qdisc,
            rng: Box::new(rng),
            now: Time::ZERO,
            free_at: None,
            carry: 0,
            wire: VecDeque::new(),
            opportunities: None,
            lost: Vec::new(),
            stats: LinkStats::default(),
            tape: None,
        })
    }

    /// Starts to log every packet that leaves the queue.
    pub fn enable_packet_log(&mut self) {
        self.tape.get_or_insert_default();
    }

    /// Enqueues `packet`, which arrives at `now`.
    ///
    /// # Panics
    /// If `now` is earlier than in a previous call, or the packet has [`LEN_MAX`] bytes or more.
    pub fn push(&mut self, now: Time, mut packet: Packet) {
        assert!(packet.len < LEN_MAX, "a packet is shorter than 2^30 bytes");
        self.advance(now);
        packet.arrived = now;
        // Destructured: copying the whole packet just after it was written stalls the processor.
        let Packet { len, flow, hash, body, class, mut ecn, .. } = packet;
        self.stats.on_arrival(now, len);
        let (before, marked) = (self.lost.len(), self.stats.marks.packets);
        let (qdisc, mut context) = self.qdisc_and_context(now);
        qdisc.enqueue(&mut context, packet);
        let accepted = self.lost.len() == before || {
            self.count_dropped(before);
            let same = |l: &Dropped| (l.packet.body, l.packet.arrived) == (body, now);
            !self.lost[before..].iter().any(same)
        };
        if accepted {
            self.stats.on_accept();
            if self.ends.is_some() {
                if self.stats.marks.packets > marked {
                    ecn = Ecn::Ce;
                }
                self.schedule_departure(
                    now,
                    Packet { arrived: now, len, flow, hash, body, class, ecn },
                );
            }
        }
        if self.free_at.is_none() {
            match &mut self.opportunities {
                None => self.start(now),
                Some(_) if self.qdisc.backlog().packets == 0 => {}
                Some(opportunities) => self.free_at = Some(opportunities.seek(now)),
            }
        }
    }

    /// Returns the next packet that has reached the far end by `now`.
    pub fn poll(&mut self, now: Time) -> Option<Packet> {
        self.advance(now);
        self.wire.front().filter(|(at, _)| *at <= now)?;
        self.wire.pop_front().map(|(_, packet)| packet)
    }

    /// Next time to call [`Link::poll`]; `None` while no packet is on the link. May be early on
    /// trace-driven links.
    pub fn next_poll(&self) -> Option<Time> {
        self.wire.front().map(|(at, _)| *at).or_else(|| self.next_event())
    }

    /// Packet that [`Link::pop_in_flight`] returns next.
    #[inline]
    pub fn first_in_flight(&self) -> Option<&(Time, Packet)> {
        self.wire.front()
    }

    /// Returns the next packet in flight with its arrival time at the far end, even if that is in
    /// the future. For owners that schedule arrivals themselves. Use either this or [`Link::poll`].
    #[inline]
    pub fn pop_in_flight(&mut self) -> Option<(Time, Packet)> {
        self.wire.pop_front()
    }

    /// Time before which no queued packet can reach the far end; `None` while no packet is queued.
    /// An owner that uses [`Link::pop_in_flight`] must call the link again by then.
    #[inline]
    pub fn next_event(&self) -> Option<Time> {
        let waiting = self.ends.is_none() && self.stats.backlog().0 > 0;
        self.free_at.filter(|_| waiting).map(|at| at + self.spec.delay)
    }

    /// Packets dropped since the last call.
    pub fn take_dropped(&mut self) -> Drain<'_, Dropped> {
        self.lost.drain(..)
    }

    /// True if packets were dropped since the last call of [`Link::lost`].
    pub fn has_dropped(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Executes everything that is due up to `now`.
    ///
    /// # Panics
    /// If `now` is earlier than in a previous call.
    #[inline]
    pub fn advance(&mut self, now: Time) {
        assert!(now >= self.now, "time runs forwards");
        while let Some(at) = self.free_at.filter(|at| *at <= now) {
            self.start(at);
        }
        self.now = now;
    }

    /// Starts the measured interval at `now`, the end of a warm-up: resets all counters.
    ///
    /// Call it before packets that arrive at `now`: an arrival at `now` counts in the interval.
    pub fn reset_stats(&mut self, now: Time) {
        self.advance(now);
        self.stats.reset(now, self.sending());
        if let Some(opportunities) = &mut self.opportunities {
            opportunities.begin(now);
        }
    }

    /// Counters up to the time of the last call.
    pub fn stats(&mut self) -> &LinkStats {
        self.stats.pass(self.now);
        &self.stats
    }

    /// Share of the measured interval in which the link was sending. On a link with
    /// [`Opportunities`], share of the offered bytes that was used, framing included. At most 1;
    /// `None` if nothing was offered.
    pub fn utilisation(&mut self) -> Option<f64> {
        let [used, offered] = self.usage();
        (offered > 0).then(|| used as f64 / offered as f64)
    }

    /// Used and offered capacity of the measured interval so far: nanoseconds of sending and of
    /// time; on a link with [`Opportunities`], bytes.
    pub fn usage(&mut self) -> [u64; 2] {
        if let Some(opportunities) = &self.opportunities {
            let LinkStats { departed_packets, departed_bytes, .. } = self.stats;
            return opportunities.usage(self.now, departed_packets, departed_bytes);
        }
        let sending = self.sending();
        let stats = self.stats();
        [stats.busy(sending).0, stats.window().0]
    }

    /// Packet log so far.
    pub fn packet_log(&self) -> &[LogEntry] {
        self.tape.as_deref().unwrap_or_default()
    }

    /// Rate and delay.
    pub fn spec(&self) -> LinkSpec {
        self.spec
    }

    /// Calls `see` with the internal variables of the discipline at the time of the last call.
    pub fn inspect(&mut self, see: &mut dyn FnMut(&'static str, f64)) {
        self.qdisc.inspect_at(self.now, see);
    }

    /// The discipline.
    pub fn qdisc(&self) -> &dyn Qdisc {
        &*self.qdisc
    }

    /// Rest of the current transmission.
    fn sending(&self) -> Span {
        self.free_at.map_or(Span::ZERO, |at| at.since(self.now))
    }

    fn qdisc_and_context(&mut self, now: Time) -> (&mut dyn Qdisc, Context<'_>) {
        let Link { qdisc, rng, lost, stats, .. } = self;
        (&mut **qdisc, Context { now, rng: &mut **rng, lost, marks: &mut stats.marks })
    }

    /// Dequeues and sends the next packet; the link is free at `at`.
    fn start(&mut self, at: Time) {
        if self.spec.rate.0 == 0 && self.qdisc.backlog().packets > 0 {
            (self.free_at, self.carry) = (None, 0);
            return;
        }
        let before = self.lost.len();
        let (qdisc, mut context) = self.qdisc_and_context(at);
        let next = qdisc.dequeue(&mut context);
        if self.lost.len() > before {
            self.count_dropped(before);
        }
        let Some(packet) = next else {
            (self.free_at, self.carry) = (None, 0);
            return;
        };
        let free = match self.ends.as_mut().and_then(VecDeque::pop_front) {
            Some(end) => end,
            None => {
                let (end, free) = match &mut self.opportunities {
                    None => {
                        let end = self.transmit(at, packet.len);
                        (end, end)
                    }
                    Some(opportunities) => opportunities.deliver(at, packet.len),
                };
                self.last_arrival = self.last_arrival.max(end + self.spec.delay);
                self.wire.push_back((self.last_arrival, packet));
                free
            }
        };
        self.free_at = Some(free);
        self.stats.on_departure(at, packet.len, at - packet.arrived, free - at);
        if let Some(tape) = &mut self.tape {
            tape.push(LogEntry { packet, left: at, why: None });
        }
    }

    /// Returns the end of a transmission that starts at `at`. The remainder is carried over, so
    /// that n packets take n times their exact time.
    #[inline]
    fn transmit(&mut self, at: Time, len: u32) -> Time {
        let owed = u64::from(len) * 8 * 1_000_000_000 + self.carry;
        self.carry = owed % self.spec.rate.0;
        at + Span(owed / self.spec.rate.0)
    }

    /// Schedules the departure of `packet`, which was accepted and about which everything is
    /// decided.
    #[inline]
    fn schedule_departure(&mut self, now: Time, packet: Packet) {
        let starts = if self.free_at.is_some() { self.last_end } else { now };
        self.last_end = self.transmit(starts, packet.len);
        self.wire.push_back((self.last_end + self.spec.delay, packet));
        if let Some(ends) = &mut self.ends {
            ends.push_back(self.last_end);
        }
    }

    fn count_dropped(&mut self, from: usize) {
        for l in &self.lost[from..] {
            self.stats.on_drop(l);
            if let Some(tape) = &mut self.tape {
                tape.push(LogEntry { packet: l.packet, left: l.at, why: Some(l.reason) });
            }
        }
    }
}

#[cfg(test)]
mod tests;
