//! Allowance of BBR's window for aggregated acks: how much more than its rate predicts was
//! acknowledged at once. Without it, a window of two bandwidth-delay products pauses the sender
//! between acks that cover much data.
//!
//! **Source**: Linux `net/ipv4/tcp_bbr.c`, `bbr_update_ack_aggregation` and
//! `bbr_ack_aggregation_cwnd`. The draft of version 1 does not have it.
//!
//! **Symbols** `extra_acked`, `ack_epoch_acked` as in Linux, in bytes.

use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::units::Time;

/// Length of each of the two parts of the max filter, round trips.
const ROUNDS: u32 = 5;
/// Largest allowance, s at the rate of the path.
const LONGEST: f64 = 0.1;
/// Segments acknowledged in an epoch from which on a new one starts.
const LARGEST: u64 = 1 << 20;

/// Ack as the estimator sees it.
#[derive(Clone, Copy, Debug, Snapshot)]
pub(super) struct AggregateAck {
    /// Arrival time.
    pub now: Time,
    /// Bytes that it delivered, as full segments.
    pub news: u64,
    /// True if it starts a round trip.
    pub round_start: bool,
    /// Bandwidth in use, bytes per second.
    pub bw: f64,
    /// Congestion window and payload of a full segment, bytes.
    pub cwnd: u64,
    pub mss: u64,
}

/// Estimator of aggregation.
#[derive(Clone, Debug, Default, Snapshot)]
pub(super) struct AckAggregation {
    /// Largest excess in the current and in the last part of the filter, bytes.
    extra_acked: [u64; 2],
    /// Index of the current part, and its round trips so far.
    part: usize,
    rounds: u32,
    /// Start of the epoch, and what was acknowledged in it.
    epoch_start: Time,
    ack_epoch_acked: u64,
}

impl AckAggregation {
    /// Starts an epoch: nothing was in flight.
    pub(super) fn restart(&mut self, now: Time) {
        (self.epoch_start, self.ack_epoch_acked) = (now, 0);
    }

    /// Updates from an ack.
    pub(super) fn on_ack(&mut self, ack: &AggregateAck) {
        if ack.round_start {
            self.rounds += 1;
            if self.rounds >= ROUNDS {
                (self.rounds, self.part) = (0, 1 - self.part);
                self.extra_acked[self.part] = 0;
            }
        }
        let seconds = (ack.now - self.epoch_start).as_secs();
        let mut expected = cast::trunc(ack.bw * seconds / ack.mss as f64) * ack.mss;
        if self.ack_epoch_acked <= expected || self.ack_epoch_acked >= LARGEST * ack.mss {
            self.restart(ack.now);
            expected = 0;
        }
        self.ack_epoch_acked += ack.news;
        let extra = self.ack_epoch_acked.saturating_sub(expected).min(ack.cwnd);
        self.extra_acked[self.part] = self.extra_acked[self.part].max(extra);
    }

    /// Returns the allowance at bandwidth `bw`, bytes per second; bytes.
    pub(super) fn allowance(&self, bw: f64) -> u64 {
        self.extra_acked[0].max(self.extra_acked[1]).min(cast::trunc(bw * LONGEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_aqm::units::Span;

    /// Acknowledges `news` segments of 1000 bytes at `ms`, on a path of a segment per ms.
    fn ack(a: &mut AckAggregation, ms: u64, news: u64, round_start: bool) -> u64 {
        let (now, bw) = (Time::ZERO + Span::ms(ms), 1e6);
        let news = news * 1_000;
        a.on_ack(&AggregateAck { now, news, round_start, bw, cwnd: 30_000, mss: 1_000 });
        a.allowance(bw) / 1_000
    }

    #[test]
    fn acks_at_the_rate_of_the_path_have_no_excess_but_themselves() {
        let mut a = AckAggregation::default();
        for i in 1..100 {
            assert_eq!(ack(&mut a, 2 * i, 2, false), 2);
        }
    }

    #[test]
    fn silences_between_large_acks_are_allowed_for() {
        let mut a = AckAggregation::default();
        // Ten segments are acknowledged within 4 ms after each silence: the excess at the end is
        // 10 - 4, since the epoch starts with the first of them.
        for start in [10, 20, 30] {
            (0..5).for_each(|i| _ = ack(&mut a, start + i, 2, false));
            assert_eq!(a.allowance(1e6), 6_000);
        }
        assert_eq!(ack(&mut a, 40, 90, false), 30, "at most the window");
        assert_eq!(a.allowance(2e5), 20_000, "at most 100 ms");
    }

    #[test]
    fn the_largest_excess_of_five_to_ten_round_trips_counts() {
        let mut a = AckAggregation::default();
        ack(&mut a, 100, 9, false);
        let after = |a: &mut AckAggregation, rounds: u64, from: u64| {
            (0..rounds).map(|i| ack(a, 100 * (from + i), 1, true)).last().unwrap()
        };
        assert_eq!(after(&mut a, 9, 2), 9, "the part of the filter before");
        assert_eq!(after(&mut a, 1, 20), 1, "the tenth round trip");
    }
}
