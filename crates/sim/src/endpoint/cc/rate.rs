//! Delivery rate estimation: every segment records how much had been delivered when it was sent,
//! and its ack shows how much has been delivered since.
//!
//! **Source**: N. Cardwell et al., "Delivery Rate Estimation",
//! draft-cheng-iccrg-delivery-rate-estimation, §3.
//!
//! **Symbols** `P.delivered`, `P.delivered_time`, `P.first_sent_time`, `P.is_app_limited`,
//! `C.app_limited` (here `starved_until`) as in the draft.
//!
//! **Cost**: one record per segment in flight; the buffer is reused.

use super::SentSegment;
use sojourn_aqm::Snapshot;
use sojourn_aqm::units::{Span, Time};
use std::collections::VecDeque;

/// Segment in flight.
#[derive(Clone, Copy, Debug, Snapshot)]
struct Record {
    seq: u64,
    end: u64,
    /// Bytes for which it counts.
    weight: u64,
    sent: Time,
    first_sent: Time,
    delivered: u64,
    delivered_at: Time,
    /// Bytes lost in total when it was sent, and bytes in flight with it.
    lost: u64,
    in_flight: u64,
    starved: bool,
    again: bool,
    /// True if the receiver has it.
    done: bool,
}

/// Delivery rate sample of one ack.
#[derive(Clone, Copy, Debug, PartialEq, Snapshot)]
pub(crate) struct RateSample {
    /// Delivery rate, bytes per second.
    pub rate: f64,
    /// Interval over which the rate was measured.
    pub interval: Span,
    /// Bytes delivered in total when the segment was sent.
    pub prior_delivered: u64,
    /// Round-trip time, if the segment was not retransmitted.
    pub rtt: Option<Span>,
    /// Longest round-trip time of the segments that the ack covers, with the time for which the
    /// receiver delayed the ack; of retransmitted ones since the last transmission.
    pub longest_rtt: Option<Span>,
    /// Bytes newly delivered by this ack.
    pub news: u64,
    /// True if the rate may have been limited by the application instead of the path.
    pub starved: bool,
    /// Bytes delivered since the segment was sent.
    pub delivered: u64,
    /// Bytes lost since the segment was sent. A segment counts as lost once it is retransmitted.
    pub lost: u64,
    /// Bytes in flight when the segment was sent, including it.
    pub in_flight: u64,
}

/// Segment that was lost, at the time of its retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
pub(crate) struct LostSegment {
    /// Its length in bytes.
    pub bytes: u64,
    /// Bytes lost since it was sent, including it.
    pub lost: u64,
    /// Bytes in flight when it was sent, including it.
    pub in_flight: u64,
    /// True if the application limited the rate when it was sent.
    pub starved: bool,
}

/// Delivery rate estimator.
#[derive(Clone, Debug, Default, Snapshot)]
pub(crate) struct RateEstimator {
    line: VecDeque<Record>,
    delivered: u64,
    delivered_at: Time,
    /// Payload bytes delivered.
    delivered_bytes: u64,
    /// Total bytes sent, and lost.
    sent: u64,
    lost: u64,
    first_sent: Time,
    /// Samples are application-limited until this many bytes are delivered; 0 if they are not.
    starved_until: u64,
    newest: Option<Record>,
    /// Time at which the oldest of the newly delivered segments was sent.
    oldest: Option<Time>,
    news: u64,
}

impl RateEstimator {
    /// Resets to the state before a connection.
    pub(crate) fn reset(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        *self = RateEstimator { line, ..RateEstimator::default() };
    }

    /// Bytes sent that are neither delivered nor lost.
    pub(crate) fn in_flight(&self) -> u64 {
        self.sent.saturating_sub(self.delivered + self.lost)
    }

    /// Total bytes delivered.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Total payload bytes delivered, without the padding of short segments.
    pub(crate) fn delivered_bytes(&self) -> u64 {
        self.delivered_bytes
    }

    /// Time of the last delivery.
    pub(crate) fn delivered_at(&self) -> Time {
        self.delivered_at
    }

    /// True if the sender is application-limited.
    pub(crate) fn on_app_limited(&self) -> bool {
        self.starved_until > 0
    }

    /// Records that the application has nothing to send while `flight` bytes are in the network.
    pub(crate) fn starve(&mut self, flight: u64) {
        self.starved_until = (self.delivered + flight).max(1);
    }

    /// Records the transmission of a segment (§3.2). For a retransmission, returns the segment that
    /// was lost.
    pub(crate) fn on_sent(&mut self, sent: &SentSegment) -> Option<LostSegment> {
        if sent.was_idle {
            (self.first_sent, self.delivered_at) = (sent.now, sent.now);
            self.sent = self.delivered + self.lost;
        }
        let bytes = sent.weight();
        self.sent += bytes;
        self.lost += if sent.retransmission { bytes } else { 0 };
        let record = Record {
            seq: sent.seq,
            end: sent.end,
            weight: sent.weight(),
            sent: sent.now,
            first_sent: self.first_sent,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            lost: self.lost,
            in_flight: self.in_flight(),
            starved: self.on_app_limited(),
            again: sent.retransmission,
            done: false,
        };
        if !sent.retransmission {
            self.line.push_back(record);
            return None;
        }
        let from = self.line.partition_point(|r| r.end <= sent.seq);
        let mut first = None;
        for old in self.line.range_mut(from..).take_while(|r| r.seq < sent.end) {
            first.get_or_insert(*old);
            let Record { seq, end, weight, done, .. } = *old;
            *old = Record { seq, end, weight, done, ..record };
        }
        first.filter(|old| !old.done).map(|Record { lost, in_flight, starved, .. }| LostSegment {
            bytes,
            lost: self.lost - lost,
            in_flight,
            starved,
        })
    }

    /// Records that the receiver has `from..to` (§3.3.1).
    pub(crate) fn on_delivered(&mut self, now: Time, from: u64, to: u64) {
        let mut news = to - from;
        self.delivered_bytes += news;
        self.delivered_at = now;
        let first = self.line.partition_point(|r| r.end <= from);
        for record in self.line.range_mut(first..).take_while(|r| r.end <= to) {
            if !record.done {
                let sent = self.oldest.map_or(record.sent, |old| old.min(record.sent));
                self.oldest = Some(sent);
                news += record.weight - (record.end - record.seq);
            }
            record.done = true;
            let age = |r: &Record| (r.sent, r.end);
            if self.newest.as_ref().is_none_or(|n| age(n) < age(record)) {
                self.newest = Some(*record);
            }
        }
        self.delivered += news;
        self.news += news;
        while self.line.front().is_some_and(|r| r.done) {
            self.line.pop_front();
        }
    }

    /// Returns the sample of the ack at `now`, if it delivered anything (§3.3.2).
    pub(crate) fn take_sample(&mut self, now: Time) -> Option<RateSample> {
        let news = std::mem::take(&mut self.news);
        if self.delivered > self.starved_until {
            self.starved_until = 0;
        }
        let oldest = self.oldest.take();
        let p = self.newest.take()?;
        self.first_sent = p.sent;
        let interval = (p.sent - p.first_sent).max(self.delivered_at - p.delivered_at);
        Some(RateSample {
            rate: (self.delivered - p.delivered) as f64 / interval.as_secs(),
            interval,
            prior_delivered: p.delivered,
            rtt: (!p.again).then(|| now - p.sent),
            longest_rtt: oldest.map(|sent| now - sent),
            news,
            starved: p.starved,
            delivered: self.delivered - p.delivered,
            lost: self.lost - p.lost,
            in_flight: p.in_flight,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::cc::RecoveryState;

    const MS: u64 = 1_000_000;

    fn sent(ms: u64, i: u64, again: bool, alone: bool) -> SentSegment {
        let (seq, state) = (1 + i * 1_000, RecoveryState::Open);
        SentSegment {
            now: Time(ms * MS),
            seq,
            end: seq + 1_000,
            retransmission: again,
            padding: 0,
            was_idle: alone,
            state,
        }
    }

    /// Ack of the `i`-th segment at `ms`.
    fn ack(r: &mut RateEstimator, ms: u64, i: u64) -> RateSample {
        r.on_delivered(Time(ms * MS), 1 + i * 1_000, 1 + (i + 1) * 1_000);
        r.take_sample(Time(ms * MS)).unwrap()
    }

    #[test]
    fn sample_shows_the_bottleneck_rate_for_a_burst() {
        let mut r = RateEstimator::default();
        // Four segments at once; they arrive 10 ms apart after 100 ms: 1000 B per 10 ms.
        (0..4).for_each(|i| _ = r.on_sent(&sent(0, i, false, i == 0)));
        let first = ack(&mut r, 100, 0);
        assert_eq!((first.rate, first.rtt), (10_000.0, Some(Span::ms(100))));
        (0..4).for_each(|i| _ = r.on_sent(&sent(100, 4 + i, false, false)));
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
    fn compressed_acks_do_not_exceed_the_sending_rate() {
        let mut r = RateEstimator::default();
        // One segment per 10 ms. Acks are delayed until 300 ms: the first arrives alone, 20 more
        // just after packet 30 is sent, and the rest with the ack of packet 30 at 400 ms. So 30
        // packets are acked within 100 ms although sending them took 300 ms.
        (0..30).for_each(|i| _ = r.on_sent(&sent(10 * i, i, false, i == 0)));
        ack(&mut r, 300, 0);
        r.on_sent(&sent(300, 30, false, false));
        for i in 1..21 {
            ack(&mut r, 301, i);
        }
        r.on_delivered(Time(400 * MS), 21_001, 31_001);
        let s = r.take_sample(Time(400 * MS)).unwrap();
        assert_eq!((s.rate, s.interval), (100_000.0, Span::ms(300)));
    }

    #[test]
    fn a_loss_before_an_idle_time_is_not_in_flight_after_it() {
        let mut r = RateEstimator::default();
        r.on_sent(&sent(0, 0, false, true));
        r.on_sent(&sent(100, 0, true, false));
        ack(&mut r, 200, 0);
        r.on_sent(&sent(500, 1, false, true));
        assert_eq!(ack(&mut r, 600, 1).in_flight, 1_000);
    }

    #[test]
    fn retransmissions_give_no_rtt_and_sacked_ranges_count_once() {
        let mut r = RateEstimator::default();
        (0..4).for_each(|i| _ = r.on_sent(&sent(0, i, false, i == 0)));
        ack(&mut r, 100, 1);
        ack(&mut r, 100, 2);
        assert_eq!(r.line.len(), 4, "records behind a hole are kept");
        r.on_sent(&sent(110, 0, true, false));
        let s = ack(&mut r, 210, 0);
        assert_eq!((s.rtt, s.news, r.delivered()), (None, 1_000, 3_000));
        assert_eq!(r.line.len(), 1);
        assert!(r.take_sample(Time(211 * MS)).is_none(), "nothing new");
    }

    #[test]
    fn a_retransmission_reports_the_segment_that_was_lost() {
        let mut r = RateEstimator::default();
        for i in 0..4 {
            assert_eq!(r.on_sent(&sent(0, i, false, i == 0)), None);
        }
        let s = ack(&mut r, 100, 3);
        assert_eq!((s.in_flight, s.lost, s.delivered), (4_000, 0, 1_000));
        let lost =
            |lost, in_flight| Some(LostSegment { bytes: 1_000, lost, in_flight, starved: false });
        // Segment 0 was alone in flight, 1 was sent with it; two are lost since.
        assert_eq!(r.on_sent(&sent(110, 0, true, false)), lost(1_000, 1_000));
        assert_eq!(r.on_sent(&sent(110, 1, true, false)), lost(2_000, 2_000));
        r.on_sent(&sent(110, 4, false, false));
        assert_eq!(r.on_sent(&sent(200, 0, true, false)), lost(2_000, 3_000), "lost once more");
        let s = ack(&mut r, 210, 4);
        assert_eq!((s.in_flight, s.lost, s.delivered), (4_000, 1_000, 1_000));
        // Delivered after all: no loss.
        ack(&mut r, 220, 2);
        assert_eq!(r.on_sent(&sent(230, 2, true, false)), None);
    }

    #[test]
    fn the_longest_round_trip_is_that_of_the_oldest_segment() {
        let mut r = RateEstimator::default();
        (0..3).for_each(|i| _ = r.on_sent(&sent(10 * i, i, false, i == 0)));
        assert_eq!(r.in_flight(), 3_000);
        r.on_delivered(Time(100 * MS), 1, 2_001);
        let s = r.take_sample(Time(100 * MS)).unwrap();
        assert_eq!((s.rtt, s.longest_rtt), (Some(Span::ms(90)), Some(Span::ms(100))));
        r.on_sent(&sent(110, 2, true, false));
        let s = ack(&mut r, 190, 2);
        assert_eq!((s.rtt, s.longest_rtt), (None, Some(Span::ms(80))), "since it was sent again");
        assert_eq!(r.in_flight(), 0);
    }

    #[test]
    fn app_limited_until_the_flight_is_delivered() {
        let mut r = RateEstimator::default();
        r.on_sent(&sent(0, 0, false, true));
        r.starve(1_000);
        r.on_sent(&sent(5, 1, false, false));
        assert!(!ack(&mut r, 100, 0).starved && r.on_app_limited());
        r.on_sent(&sent(101, 2, false, false));
        assert!(ack(&mut r, 105, 1).starved, "it was sent while app-limited");
        assert!(!r.on_app_limited());
    }

    #[test]
    fn a_retransmission_changes_the_records_that_it_covers_and_no_others() {
        let mut r = RateEstimator::default();
        (0..4).for_each(|i| _ = r.on_sent(&sent(10 * i, i, false, i == 0)));
        ack(&mut r, 100, 1);
        // One segment with the data of the first two, of which the second was delivered.
        r.on_sent(&SentSegment { end: 2_001, ..sent(110, 0, true, false) });
        let ranges = r.line.iter().map(|x| (x.seq, x.end, x.again, x.done));
        assert!(ranges.eq([
            (1, 1_001, true, false),
            (1_001, 2_001, true, true),
            (2_001, 3_001, false, false),
            (3_001, 4_001, false, false)
        ]));
        assert_eq!(ack(&mut r, 120, 2).rtt, Some(Span::ms(100)), "sent once, at 20 ms");
        assert_eq!(ack(&mut r, 210, 0).rtt, None);
        assert_eq!(r.line.len(), 1, "the delivered records are gone");
    }
}
