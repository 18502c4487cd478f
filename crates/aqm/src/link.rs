//! A link: a discipline, a rate and a wire. It is told the time and never asks for it.

use crate::cx::{Cx, Lost};
use crate::dice::Dice;
use crate::packet::{Ecn, Packet};
use crate::sched::Qdisc;
use crate::tally::Tally;
use crate::tape::{Row, Tape};
use crate::units::{Rate, Span, Time};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::{Drain, Vec};

mod changes;
mod opportunities;

pub use opportunities::Opportunities;

/// What a link is, its discipline aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSpec {
    /// How fast it sends; zero for a link that stands still.
    pub rate: Rate,
    /// How long a packet travels once sent, one way.
    pub delay: Span,
}

/// A link at work.
///
/// Between two calls it does nothing; at each call it first does all that was due since the last
/// one, at the moments when it was due. So late calls change no decision. What happens at the same
/// nanosecond happens in this order: the transmission ends and the next one starts, then the packet
/// of the call arrives.
pub struct Link {
    spec: LinkSpec,
    qdisc: Box<dyn Qdisc + Send>,
    dice: Box<dyn Dice + Send>,
    now: Time,
    /// When the transmission under way ends; none while idle.
    free_at: Option<Time>,
    /// What the last transmissions are owed, in units of 1/rate nanoseconds.
    carry: u64,
    /// Packets sent or being sent, with the time each reaches the far end; where the discipline
    /// settles everything on arrival, those that wait as well.
    wire: VecDeque<(Time, Packet)>,
    /// Where it does: when the transmission of each packet that waits will end, and that of the
    /// last.
    ends: Option<VecDeque<Time>>,
    last_end: Time,
    /// When the last packet sent arrives: nothing does so before it, though the delay change.
    last_arrival: Time,
    /// Where that was recorded: when it sends, whatever its rate.
    opportunities: Option<Box<Opportunities>>,
    lost: Vec<Lost>,
    tally: Tally,
    tape: Option<Tape>,
}

/// Longer packets are refused, so that a transmission time fits its arithmetic.
pub const LEN_MAX: u32 = 1 << 30;

impl Link {
    /// A link with nothing on it, at time zero.
    pub fn new(
        spec: LinkSpec,
        qdisc: Box<dyn Qdisc + Send>,
        dice: impl Dice + Send + 'static,
    ) -> Link {
        assert!(spec.rate.0 > 0, "a link has a rate");
        Link {
            spec,
            ends: qdisc.settles_on_arrival().then(VecDeque::new),
            last_end: Time::ZERO,
            last_arrival: Time::ZERO,
            qdisc,
            dice: Box::new(dice),
            now: Time::ZERO,
            free_at: None,
            carry: 0,
            wire: VecDeque::new(),
            opportunities: None,
            // Room for a burst: laws that drop at the head by chance may take a dozen at once.
            lost: Vec::with_capacity(32),
            tally: Tally::default(),
            tape: None,
        }
    }

    /// From now on writes a row for every packet that leaves the queue.
    pub fn record(&mut self) {
        self.tape.get_or_insert_default();
    }

    /// `packet` arrives at `now`, which is not earlier than any time told before.
    pub fn push(&mut self, now: Time, mut packet: Packet) {
        assert!(packet.len < LEN_MAX, "a packet is shorter than 2^30 bytes");
        self.advance(now);
        packet.arrived = now;
        // Taken apart: to copy it whole just after it was written stalls the processor.
        let Packet { len, flow, hash, body, class, mut ecn, .. } = packet;
        self.tally.arrive(now, len);
        let (before, marked) = (self.lost.len(), self.tally.marks.packets);
        let (qdisc, mut cx) = self.lend(now);
        qdisc.enqueue(&mut cx, packet);
        let accepted = self.lost.len() == before || {
            self.count_lost(before);
            let same = |l: &Lost| (l.packet.body, l.packet.arrived) == (body, now);
            !self.lost[before..].iter().any(same)
        };
        if accepted {
            self.tally.accept();
            if self.ends.is_some() {
                if self.tally.marks.packets > marked {
                    ecn = Ecn::Ce;
                }
                self.foresee(now, Packet { arrived: now, len, flow, hash, body, class, ecn });
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

    /// The next packet that has reached the far end by `now`.
    pub fn poll(&mut self, now: Time) -> Option<Packet> {
        self.advance(now);
        self.wire.front().filter(|(at, _)| *at <= now)?;
        self.wire.pop_front().map(|(_, packet)| packet)
    }

    /// When to call [`Link::poll`] next: the moment at which it will have something or, while who
    /// waits awaits an opportunity, before which it will not; none while nothing is on the way.
    pub fn wake(&self) -> Option<Time> {
        self.wire.front().map(|(at, _)| *at).or_else(|| self.due())
    }

    /// What [`Link::ahead`] will give next.
    #[inline]
    pub fn front(&self) -> Option<&(Time, Packet)> {
        self.wire.front()
    }

    /// The next packet on the wire, with the time at which it reaches the far end, however late
    /// that is: for an owner that keeps its own order of arrivals. Use this or [`Link::poll`].
    #[inline]
    pub fn ahead(&mut self) -> Option<(Time, Packet)> {
        self.wire.pop_front()
    }

    /// The moment before which no packet that still waits can reach the far end; none while nobody
    /// waits. An owner that uses [`Link::ahead`] must call the link again by then.
    #[inline]
    pub fn due(&self) -> Option<Time> {
        let waiting = self.ends.is_none() && self.tally.waiting().0 > 0;
        self.free_at.filter(|_| waiting).map(|at| at + self.spec.delay)
    }

    /// The packets lost since they were last asked for.
    pub fn lost(&mut self) -> Drain<'_, Lost> {
        self.lost.drain(..)
    }

    /// Whether any packet was lost since they were last asked for.
    pub fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Does all that is due up to `now`.
    #[inline]
    pub fn advance(&mut self, now: Time) {
        assert!(now >= self.now, "time runs forwards");
        while let Some(at) = self.free_at.filter(|at| *at <= now) {
            self.start(at);
        }
        self.now = now;
    }

    /// Starts the measured interval at `now` (the end of a warm-up): all counters start anew.
    ///
    /// Call it before packets that arrive at `now`: an arrival at `now` counts as one in the
    /// interval.
    pub fn begin(&mut self, now: Time) {
        self.advance(now);
        self.tally.begin(now, self.sending());
        if let Some(opportunities) = &mut self.opportunities {
            opportunities.begin(now);
        }
    }

    /// The counters, up to the last time told.
    pub fn tally(&mut self) -> &Tally {
        self.tally.pass(self.now);
        &self.tally
    }

    /// Share of the measured interval in which the link was sending; on a link with
    /// [`Opportunities`], share of the offered bytes that was used, framing included. At most 1;
    /// none where nothing was offered.
    pub fn utilisation(&mut self) -> Option<f64> {
        let [used, offered] = self.usage();
        (offered > 0).then(|| used as f64 / offered as f64)
    }

    /// What the link used, and what it could have used in the measured interval so far:
    /// nanoseconds of sending and of time; on a link with [`Opportunities`], bytes.
    pub fn usage(&mut self) -> [u64; 2] {
        if let Some(opportunities) = &self.opportunities {
            let Tally { departed_packets, departed_bytes, .. } = self.tally;
            return opportunities.usage(self.now, departed_packets, departed_bytes);
        }
        let sending = self.sending();
        let tally = self.tally();
        [tally.busy(sending).0, tally.window().0]
    }

    /// The rows written so far.
    pub fn tape(&self) -> &[Row] {
        self.tape.as_deref().unwrap_or_default()
    }

    /// Rate and delay.
    pub fn spec(&self) -> LinkSpec {
        self.spec
    }

    /// The internal variables of the discipline, as they are at the last time told.
    pub fn gauges(&mut self, see: &mut dyn FnMut(&'static str, f64)) {
        self.qdisc.gauges_at(self.now, see);
    }

    /// The discipline.
    pub fn qdisc(&self) -> &dyn Qdisc {
        &*self.qdisc
    }

    /// What is left of the transmission under way.
    fn sending(&self) -> Span {
        self.free_at.map_or(Span::ZERO, |at| at.since(self.now))
    }

    fn lend(&mut self, now: Time) -> (&mut dyn Qdisc, Cx<'_>) {
        let Link { qdisc, dice, lost, tally, .. } = self;
        (&mut **qdisc, Cx { now, dice: &mut **dice, lost, marks: &mut tally.marks })
    }

    /// The transmitter is free at `at`: it takes the next packet.
    fn start(&mut self, at: Time) {
        if self.spec.rate.0 == 0 && self.qdisc.backlog().packets > 0 {
            (self.free_at, self.carry) = (None, 0);
            return;
        }
        let before = self.lost.len();
        let (qdisc, mut cx) = self.lend(at);
        let next = qdisc.dequeue(&mut cx);
        if self.lost.len() > before {
            self.count_lost(before);
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
        self.tally.depart(at, packet.len, at - packet.arrived, free - at);
        if let Some(tape) = &mut self.tape {
            tape.push(Row { packet, left: at, why: None });
        }
    }

    /// When a transmission that starts at `at` ends. The remainder is carried, so that n packets
    /// take n times their exact time.
    #[inline]
    fn transmit(&mut self, at: Time, len: u32) -> Time {
        let owed = u64::from(len) * 8 * 1_000_000_000 + self.carry;
        self.carry = owed % self.spec.rate.0;
        at + Span(owed / self.spec.rate.0)
    }

    /// `packet` was accepted, and nothing can happen to it any more: when it will be sent is known.
    #[inline]
    fn foresee(&mut self, now: Time, packet: Packet) {
        let starts = if self.free_at.is_some() { self.last_end } else { now };
        self.last_end = self.transmit(starts, packet.len);
        self.wire.push_back((self.last_end + self.spec.delay, packet));
        if let Some(ends) = &mut self.ends {
            ends.push_back(self.last_end);
        }
    }

    fn count_lost(&mut self, from: usize) {
        for l in &self.lost[from..] {
            self.tally.lose(l);
            if let Some(tape) = &mut self.tape {
                tape.push(Row { packet: l.packet, left: l.at, why: Some(l.why) });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Setting;
    use rand_core::SeedableRng;
    use std::prelude::v1::*;

    fn link(rate: u64, delay: Span, limit: &str) -> Link {
        let settings = [("limit", Setting::Text(limit))];
        let made = crate::build("droptail", &settings, Rate(rate)).unwrap();
        Link::new(
            LinkSpec { rate: Rate(rate), delay },
            made.qdisc,
            rand_pcg::Pcg64Mcg::seed_from_u64(1),
        )
    }

    fn packet(body: u32, len: u32) -> Packet {
        Packet { body, len, ..Packet::default() }
    }

    #[test]
    fn sends_one_after_the_other_and_delivers_in_order() {
        let mut l = link(8_000_000, Span::ms(10), "2p");
        for body in 0..4 {
            l.push(Time(0), packet(body, 1000));
        }
        assert_eq!(
            l.lost().map(|l| l.packet.body).collect::<Vec<_>>(),
            [3],
            "one sending, two waiting"
        );
        let arrivals: Vec<_> = core::iter::from_fn(|| {
            let at = l.wake()?;
            Some((at.0, l.poll(at)?.body))
        })
        .collect();
        assert_eq!(arrivals, [(11_000_000, 0), (12_000_000, 1), (13_000_000, 2)]);
    }

    #[test]
    fn rate_is_exact_over_an_hour() {
        // 45 mbit does not divide the nanosecond: 500 bytes take 88,888 and 8/9 ns.
        let mut l = link(45_000_000, Span::ZERO, "10p");
        let (mut sent, mut last) = (0u64, Time::ZERO);
        (0..5).for_each(|i| l.push(Time(0), packet(i, 500)));
        while last < Time(3_600_000_000_000) {
            last = l.wake().unwrap();
            l.poll(last);
            l.push(last, packet(0, 500));
            sent += 500 * 8;
        }
        let exact = u128::from(sent) * 1_000_000_000 / 45_000_000;
        assert_eq!(u128::from(last.0), exact);
    }

    #[test]
    fn late_calls_change_nothing() {
        let (mut prompt, mut late) =
            (link(8_000_000, Span::ms(1), "3p"), link(8_000_000, Span::ms(1), "3p"));
        let (mut a, mut b) = (vec![], vec![]);
        for i in 0..200u64 {
            let at = Time(i * i % 97 * 7_000 + i * 800_000);
            while let Some(due) = prompt.wake().filter(|w| *w <= at) {
                a.extend(prompt.poll(due).map(|p| p.body));
            }
            prompt.push(at, packet(i as u32, 1000));
            late.push(at, packet(i as u32, 1000));
        }
        let end = Time(1_000_000_000);
        a.extend(core::iter::from_fn(|| prompt.poll(end)).map(|p| p.body));
        b.extend(core::iter::from_fn(|| late.poll(end)).map(|p| p.body));
        assert_eq!(a, b);
        assert_eq!(prompt.tally().queue_bytes(), late.tally().queue_bytes());
        assert_eq!(prompt.lost().collect::<Vec<_>>(), late.lost().collect::<Vec<_>>());
    }

    #[test]
    fn tally_counts_from_where_it_begins() {
        let mut l = link(8_000_000, Span::ZERO, "10p");
        (0..5).for_each(|i| l.push(Time(0), packet(i, 1000)));
        l.begin(Time(500_000)); // half of the first transmission is left
        l.advance(Time(10_000_000));
        assert_eq!(l.utilisation(), Some(4.5 / 9.5));
        assert_eq!((l.tally().arrived_packets, l.tally().departed_packets), (0, 4));
        // Waiting: 4 for 0.5 ms, then 3, 2, 1 for 1 ms each, over 9.5 ms.
        assert!((l.tally().queue_packets().unwrap().0 - 8.0 / 9.5).abs() < 1e-12);
    }

    #[test]
    fn departure_comes_before_an_arrival_of_the_same_instant() {
        let mut l = link(8_000_000, Span::ZERO, "1p");
        l.push(Time(0), packet(0, 1000));
        l.push(Time(0), packet(1, 1000));
        l.push(Time(1_000_000), packet(2, 1000));
        assert!(!l.has_lost(), "the first has left, the second is being sent");
    }
}
