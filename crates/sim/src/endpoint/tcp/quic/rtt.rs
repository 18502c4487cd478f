//! Round-trip time of the profile `quic`.
//!
//! **Source**: RFC 9002 §5 (estimate), §6.1.2 (time threshold), §6.2.1 (probe timeout), §7.6.1
//! (persistent congestion).

use sojourn_aqm::Snapshot;
use sojourn_aqm::units::{Span, Time};

/// Timer granularity (`kGranularity`).
const GRANULARITY: Span = Span::ms(1);
/// Round-trip time before the first sample (`kInitialRtt`).
const INITIAL_RTT: Span = Span::ms(333);
/// Persistent congestion lasts this many probe timeouts (`kPersistentCongestionThreshold`).
const PERSISTENT: u64 = 3;

/// Estimator of the round-trip time.
#[derive(Clone, Debug, Snapshot)]
pub(super) struct QuicRtt {
    latest: Span,
    min: Span,
    smoothed: Option<Span>,
    variation: Span,
    /// Longest delay of an ack by the receiver.
    max_ack_delay: Span,
    /// Time of the first sample.
    first_sample: Time,
}

impl QuicRtt {
    /// Creates an estimator without samples.
    pub(super) fn new(max_ack_delay: Span) -> QuicRtt {
        QuicRtt {
            latest: Span::ZERO,
            min: Span::ZERO,
            smoothed: None,
            variation: Span(INITIAL_RTT.0 / 2),
            max_ack_delay,
            first_sample: Time::NEVER,
        }
    }

    /// Discards all samples.
    pub(super) fn reset(&mut self) {
        *self = QuicRtt::new(self.max_ack_delay);
    }

    /// Adds the sample `latest` of an ack that the receiver delayed by `ack_delay` (§5.3).
    pub(super) fn sample(&mut self, now: Time, latest: Span, ack_delay: Span) {
        self.latest = latest;
        let Some(smoothed) = self.smoothed else {
            (self.min, self.smoothed, self.variation) = (latest, Some(latest), Span(latest.0 / 2));
            self.first_sample = now;
            return;
        };
        self.min = self.min.min(latest);
        let delay = ack_delay.min(self.max_ack_delay);
        let adjusted = if latest.0 >= self.min.0 + delay.0 { latest.0 - delay.0 } else { latest.0 };
        self.variation = Span((3 * self.variation.0 + smoothed.0.abs_diff(adjusted)) / 4);
        self.smoothed = Some(Span((7 * smoothed.0 + adjusted) / 8));
    }

    /// Smoothed round-trip time, once there is a sample.
    pub(super) fn smoothed(&self) -> Option<Span> {
        self.smoothed
    }

    /// Time of the first sample; [`Time::NEVER`] before.
    pub(super) fn first_sample(&self) -> Time {
        self.first_sample
    }

    /// Returns the probe timeout without the delay of acks and without backoff.
    pub(super) fn pto_base(&self) -> Span {
        self.smoothed.unwrap_or(INITIAL_RTT) + Span(4 * self.variation.0).max(GRANULARITY)
    }

    /// Returns the probe timeout without backoff.
    pub(super) fn pto(&self) -> Span {
        self.pto_base() + self.max_ack_delay
    }

    /// Time after which a packet sent before an acknowledged one is lost: 9/8 of the round-trip
    /// time.
    pub(super) fn loss_delay(&self) -> Span {
        let rtt = self.latest.max(self.smoothed.unwrap_or(INITIAL_RTT));
        Span(rtt.0 + rtt.0 / 8).max(GRANULARITY)
    }

    /// Time between two lost packets that shows persistent congestion.
    pub(super) fn persistent_congestion(&self) -> Span {
        Span(PERSISTENT * self.pto().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimator(samples: &[(u64, u64)]) -> QuicRtt {
        let mut rtt = QuicRtt::new(Span::ms(25));
        for (i, (latest, delay)) in samples.iter().enumerate() {
            rtt.sample(Time(i as u64), Span::ms(*latest), Span::ms(*delay));
        }
        rtt
    }

    #[test]
    fn the_first_sample_sets_all_values() {
        let rtt = estimator(&[(100, 10)]);
        assert_eq!((rtt.min, rtt.smoothed()), (Span::ms(100), Some(Span::ms(100))), "not adjusted");
        assert_eq!((rtt.variation, rtt.pto()), (Span::ms(50), Span::ms(100 + 200 + 25)));
        assert_eq!((rtt.first_sample(), rtt.persistent_congestion()), (Time(0), Span::ms(975)));
    }

    #[test]
    fn later_samples_are_adjusted_by_the_delay_of_the_ack() {
        // 140 - 20 = 120: variation 3/4 50 + 1/4 20, smoothed 7/8 100 + 1/8 120.
        let rtt = estimator(&[(100, 0), (140, 20)]);
        assert_eq!((rtt.variation, rtt.smoothed()), (Span::us(42_500), Some(Span::us(102_500))));
        // The delay is at most max_ack_delay: 140 - 25 = 115.
        let rtt = estimator(&[(100, 0), (140, 40)]);
        assert_eq!(rtt.smoothed(), Some(Span(101_875_000)));
    }

    #[test]
    fn an_adjustment_below_the_minimum_is_not_made() {
        let rtt = estimator(&[(100, 0), (119, 20)]);
        assert_eq!(rtt.smoothed(), Some(Span::us(102_375)), "119 counts in full");
        let rtt = estimator(&[(100, 0), (120, 20)]);
        assert_eq!(rtt.smoothed(), Some(Span::ms(100)), "120 - 20");
    }

    #[test]
    fn before_a_sample_the_initial_round_trip_counts() {
        let mut rtt = estimator(&[]);
        assert_eq!((rtt.pto_base(), rtt.smoothed()), (Span::ms(999), None));
        rtt.sample(Time(5), Span::ms(8), Span::ZERO);
        rtt.reset();
        assert_eq!((rtt.pto_base(), rtt.first_sample()), (Span::ms(999), Time::NEVER));
    }

    #[test]
    fn the_loss_delay_is_nine_eighths_of_the_longer_round_trip() {
        assert_eq!(estimator(&[(80, 0)]).loss_delay(), Span::ms(90));
        assert_eq!(estimator(&[(80, 0), (160, 0)]).loss_delay(), Span::ms(180), "the latest");
        // Smoothed: 7/8 160 + 1/8 80 = 150.
        assert_eq!(estimator(&[(160, 0), (80, 0)]).loss_delay(), Span(168_750_000));
        let mut short = QuicRtt::new(Span::ZERO);
        short.sample(Time(0), Span::us(100), Span::ZERO);
        assert_eq!(short.loss_delay(), Span::ms(1), "granularity");
        short.variation = Span::ZERO;
        assert_eq!(short.pto(), Span::us(1_100), "granularity");
    }
}
