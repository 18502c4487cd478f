//! Samples of the rate at which a path delivers: every segment remembers how much had been
//! delivered when it left, and its ack tells how much has been since.
//!
//! **Source**: N. Cardwell et al., "Delivery Rate Estimation", draft-cheng-iccrg-delivery-rate-
//! estimation, §3; transport.md section 13.1.
//!
//! **Symbols** `P.delivered`, `P.delivered_time`, `P.first_sent_time`, `P.is_app_limited`,
//! `C.app_limited` (here `starved_until`) as there.
//!
//! **Cost**: a record per segment in flight; the buffer is kept.

use super::Sent;
use sojourn_aqm::units::{Span, Time};
use std::collections::VecDeque;

/// A segment in flight.
#[derive(Clone, Copy, Debug)]
struct Record {
    seq: u64,
    end: u64,
    sent: Time,
    first_sent: Time,
    delivered: u64,
    delivered_at: Time,
    starved: bool,
    again: bool,
    /// The receiver has it.
    done: bool,
}

/// What an ack told of the rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Bytes per second.
    pub rate: f64,
    /// Over what time.
    pub interval: Span,
    /// What had been delivered when the segment left.
    pub prior_delivered: u64,
    /// The round-trip time, if the segment was sent once.
    pub rtt: Option<Span>,
    /// Bytes delivered by this ack.
    pub news: u64,
    /// Whether the application, not the path, may have set the rate.
    pub starved: bool,
}

/// The books from which samples come.
#[derive(Clone, Debug, Default)]
pub struct Rates {
    line: VecDeque<Record>,
    delivered: u64,
    delivered_at: Time,
    first_sent: Time,
    /// Until so much is delivered, samples may show the application's rate; 0: they don't.
    starved_until: u64,
    newest: Option<Record>,
    news: u64,
}

impl Rates {
    /// Forgets the connection.
    pub fn reset(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        *self = Rates { line, ..Rates::default() };
    }

    /// Bytes delivered so far.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Whether the application sets the pace now.
    pub fn starved(&self) -> bool {
        self.starved_until > 0
    }

    /// The application has nothing to send, with `flight` bytes in the network.
    pub fn starve(&mut self, flight: u64) {
        self.starved_until = (self.delivered + flight).max(1);
    }

    /// A segment was sent (§3.2).
    pub fn sent(&mut self, sent: &Sent) {
        if sent.alone {
            (self.first_sent, self.delivered_at) = (sent.now, sent.now);
        }
        let record = Record {
            seq: sent.seq,
            end: sent.end,
            sent: sent.now,
            first_sent: self.first_sent,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            starved: self.starved(),
            again: sent.again,
            done: false,
        };
        if !sent.again {
            return self.line.push_back(record);
        }
        let from = self.line.partition_point(|r| r.end <= sent.seq);
        for old in self.line.range_mut(from..).take_while(|r| r.seq < sent.end) {
            *old = Record { seq: old.seq, end: old.end, done: old.done, ..record };
        }
    }

    /// The receiver is now known to have `from..to` (§3.3.1).
    pub fn deliver(&mut self, now: Time, from: u64, to: u64) {
        self.delivered += to - from;
        self.news += to - from;
        self.delivered_at = now;
        let first = self.line.partition_point(|r| r.end <= from);
        for record in self.line.range_mut(first..).take_while(|r| r.end <= to) {
            record.done = true;
            let age = |r: &Record| (r.sent, r.end);
            if self.newest.as_ref().is_none_or(|n| age(n) < age(record)) {
                self.newest = Some(*record);
            }
        }
        while self.line.front().is_some_and(|r| r.done) {
            self.line.pop_front();
        }
    }

    /// The sample of the ack that was dealt with at `now`, if it told of a delivery (§3.3.2).
    pub fn take(&mut self, now: Time) -> Option<Sample> {
        let news = std::mem::take(&mut self.news);
        if self.delivered > self.starved_until {
            self.starved_until = 0;
        }
        let p = self.newest.take()?;
        self.first_sent = p.sent;
        let interval = (p.sent - p.first_sent).max(self.delivered_at - p.delivered_at);
        Some(Sample {
            rate: (self.delivered - p.delivered) as f64 / interval.as_secs(),
            interval,
            prior_delivered: p.delivered,
            rtt: (!p.again).then(|| now - p.sent),
            news,
            starved: p.starved,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::State;

    const MS: u64 = 1_000_000;

    fn sent(ms: u64, i: u64, again: bool, alone: bool) -> Sent {
        let (seq, state) = (1 + i * 1_000, State::Open);
        Sent { now: Time(ms * MS), seq, end: seq + 1_000, again, alone, state }
    }

    /// The `i`-th segment has arrived at `ms`.
    fn ack(r: &mut Rates, ms: u64, i: u64) -> Sample {
        r.deliver(Time(ms * MS), 1 + i * 1_000, 1 + (i + 1) * 1_000);
        r.take(Time(ms * MS)).unwrap()
    }

    #[test]
    fn bottleneck_shows_however_fast_segments_leave() {
        let mut r = Rates::default();
        // Four at once; they arrive 10 ms apart after 100 ms: 1000 B per 10 ms.
        (0..4).for_each(|i| r.sent(&sent(0, i, false, i == 0)));
        let first = ack(&mut r, 100, 0);
        assert_eq!((first.rate, first.rtt), (10_000.0, Some(Span::ms(100))));
        (0..4).for_each(|i| r.sent(&sent(100, 4 + i, false, false)));
        for i in 1..4 {
            let s = ack(&mut r, 100 + 10 * i, i);
            assert_eq!(s.interval, Span::ms(100 + 10 * i), "since the flight began");
        }
        for i in 4..8 {
            let s = ack(&mut r, 100 + 10 * i, i);
            assert_eq!(s.prior_delivered, 1_000);
            assert!(s.rate <= 100_000.0 + 1e-6, "{i}: {}", s.rate);
        }
        assert_eq!(r.line.len(), 0);
    }

    #[test]
    fn squeezed_acks_do_not_show_more_than_was_sent() {
        let mut r = Rates::default();
        // One per 10 ms. At 300 ms the acks have been held up: the first comes alone, 20 more just
        // after packet 30 has left, and that one's own at 400 ms: 30 packets within 100 ms, which
        // took 300 ms to send.
        (0..30).for_each(|i| r.sent(&sent(10 * i, i, false, i == 0)));
        ack(&mut r, 300, 0);
        r.sent(&sent(300, 30, false, false));
        for i in 1..21 {
            ack(&mut r, 301, i);
        }
        r.deliver(Time(400 * MS), 21_001, 31_001);
        let s = r.take(Time(400 * MS)).unwrap();
        assert_eq!((s.rate, s.interval), (100_000.0, Span::ms(300)));
    }

    #[test]
    fn retransmissions_give_no_round_trip_and_sacked_ranges_count_once() {
        let mut r = Rates::default();
        (0..4).for_each(|i| r.sent(&sent(0, i, false, i == 0)));
        ack(&mut r, 100, 1);
        ack(&mut r, 100, 2);
        assert_eq!(r.line.len(), 4, "the hole keeps them");
        r.sent(&sent(110, 0, true, false));
        let s = ack(&mut r, 210, 0);
        assert_eq!((s.rtt, s.news, r.delivered()), (None, 1_000, 3_000));
        assert_eq!(r.line.len(), 1);
        assert!(r.take(Time(211 * MS)).is_none(), "nothing new");
    }

    #[test]
    fn starved_until_what_was_in_flight_is_delivered() {
        let mut r = Rates::default();
        r.sent(&sent(0, 0, false, true));
        r.starve(1_000);
        r.sent(&sent(5, 1, false, false));
        assert!(!ack(&mut r, 100, 0).starved && r.starved());
        r.sent(&sent(101, 2, false, false));
        assert!(ack(&mut r, 105, 1).starved, "it left in the bubble");
        assert!(!r.starved());
    }
}
