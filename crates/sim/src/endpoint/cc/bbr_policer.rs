//! Long-term bandwidth of BBR: detects a policer, a token bucket without a queue, and then sends at
//! the rate that it lets through.
//!
//! **Source**: Linux `net/ipv4/tcp_bbr.c`, `bbr_lt_bw_sampling`. The draft of version 1 does not
//! have it.
//!
//! **Algorithm**: an interval starts at a loss and ends at a loss 4 to 16 round trips later. If a
//! fifth of the packets were lost in it, its delivery rate is a sample. Two samples in a row that
//! differ by an eighth or 4 kbit/s at most are a policer's rate: their mean is used for 48 round
//! trips of ProbeBw.

use sojourn_aqm::Snapshot;
use sojourn_aqm::units::Time;

/// Least and largest length of an interval, round trips.
const ROUNDS: (u32, u32) = (4, 16);
/// Least number of lost bytes per delivered byte.
const LOSS_THRESH: f64 = 50.0 / 256.0;
/// Largest difference of two samples, as a share of the first or bytes per second.
const DIFFERENCE: (f64, f64) = (0.125, 500.0);
/// Length of use, round trips of ProbeBw.
const USED_ROUNDS: u32 = 48;
/// Least length of an interval, s.
const LEAST: f64 = 0.001;

/// State of a connection at an ack.
#[derive(Clone, Copy, Debug, Snapshot)]
pub(super) struct PathCounters {
    /// Time of the last delivery.
    pub at: Time,
    /// Bytes delivered and bytes declared lost, since the connection began.
    pub delivered: u64,
    pub lost: u64,
}

/// Event of an ack.
#[derive(Clone, Copy, Debug, Snapshot)]
pub(super) struct AckEvents {
    /// True if a round trip starts.
    pub round_start: bool,
    /// True if the ack or a timeout showed a loss.
    pub losses: bool,
    /// True if the application limited the rate.
    pub starved: bool,
    /// True in ProbeBw.
    pub probe_bw: bool,
}

/// Detector of a policer.
#[derive(Clone, Debug, Default, Snapshot)]
pub(super) struct PolicerDetector {
    /// Start of the interval, while there is one.
    start: Option<PathCounters>,
    /// Rate of the last interval, bytes per second; 0 if there is none.
    last: f64,
    /// Rate of the policer, while it is used.
    rate: Option<f64>,
    /// Round trips in the interval or of use.
    rounds: u32,
}

impl PolicerDetector {
    /// Rate of the policer, bytes per second, while one is assumed.
    pub(super) fn rate(&self) -> Option<f64> {
        self.rate
    }

    /// Processes an ack. Returns true if the rate of a policer was used long enough and is dropped.
    pub(super) fn on_ack(&mut self, now: PathCounters, events: AckEvents) -> bool {
        if self.rate.is_some() {
            self.rounds += u32::from(events.round_start && events.probe_bw);
            let over = self.rounds >= USED_ROUNDS;
            if over {
                *self = PolicerDetector::default();
            }
            return over;
        }
        if self.start.is_none() && events.losses {
            (self.start, self.rounds) = (Some(now), 0);
        }
        let Some(start) = self.start else { return false };
        if events.starved {
            *self = PolicerDetector::default();
            return false;
        }
        self.rounds += u32::from(events.round_start);
        if self.rounds > ROUNDS.1 {
            *self = PolicerDetector::default();
        } else if self.rounds >= ROUNDS.0 && events.losses {
            self.end_interval(start, now);
        }
        false
    }

    fn end_interval(&mut self, start: PathCounters, now: PathCounters) {
        let (delivered, lost) = (now.delivered - start.delivered, now.lost - start.lost);
        let seconds = (now.at - start.at).as_secs();
        if delivered == 0 || (lost as f64) < LOSS_THRESH * delivered as f64 || seconds < LEAST {
            return;
        }
        let rate = delivered as f64 / seconds;
        let apart = (rate - self.last).abs();
        if self.last > 0.0 && (apart <= DIFFERENCE.0 * self.last || apart <= DIFFERENCE.1) {
            (self.rate, self.start, self.rounds) = (Some((rate + self.last) / 2.0), None, 0);
        } else {
            (self.last, self.start, self.rounds) = (rate, Some(now), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALM: AckEvents =
        AckEvents { round_start: true, losses: false, starved: false, probe_bw: true };
    const LOSS: AckEvents = AckEvents { losses: true, ..CALM };

    /// A path with a round trip of 100 ms on which `rate` bytes per round trip arrive and `lost`
    /// are lost.
    struct Path {
        detector: PolicerDetector,
        now: PathCounters,
    }

    impl Path {
        fn new() -> Path {
            let now = PathCounters { at: Time::ZERO, delivered: 0, lost: 0 };
            Path { detector: PolicerDetector::default(), now }
        }

        fn round(&mut self, delivered: u64, lost: u64, events: AckEvents) -> bool {
            self.now.at = Time(self.now.at.0 + 100_000_000);
            self.now.delivered += delivered;
            self.now.lost += lost;
            self.detector.on_ack(self.now, events)
        }

        /// `rounds` round trips, with all losses in the last one.
        fn interval(&mut self, rounds: u32, delivered: u64, lost: u64) {
            (1..rounds).for_each(|_| _ = self.round(delivered, 0, CALM));
            self.round(delivered, lost, LOSS);
        }
    }

    #[test]
    fn two_lossy_intervals_with_the_same_rate_are_a_policer() {
        let mut path = Path::new();
        path.round(1_000, 0, LOSS);
        assert_eq!(path.detector.rate(), None, "the first loss starts an interval");
        path.interval(4, 1_000, 800);
        assert_eq!(path.detector.rate(), None, "one sample");
        path.interval(4, 1_100, 900);
        assert_eq!(path.detector.rate(), Some(10_500.0), "mean of 10 and 11 kB/s");
    }

    #[test]
    fn samples_that_differ_by_more_than_an_eighth_are_none() {
        for (second, expected) in [(1_125, true), (1_130, false)] {
            let mut path = Path::new();
            path.round(1_000, 0, LOSS);
            path.interval(4, 1_000, 900);
            path.interval(4, second, 1_000);
            assert_eq!(path.detector.rate().is_some(), expected, "{second}");
            if !expected {
                path.interval(4, second, 1_000);
                assert!(path.detector.rate().is_some(), "the second and third agree");
            }
        }
    }

    #[test]
    fn differences_of_four_kilobits_per_second_are_small() {
        for (second, expected) in [(150, true), (151, false)] {
            let mut path = Path::new();
            path.round(100, 0, LOSS);
            path.interval(4, 100, 200);
            path.interval(4, second, 200);
            assert_eq!(path.detector.rate().is_some(), expected, "{second} B per round trip");
        }
    }

    #[test]
    fn intervals_with_few_losses_or_of_another_length_give_no_sample() {
        // 50/256 of 3000 delivered bytes are 585.9. The round trip of the first loss counts.
        for (rounds, lost, expected) in [
            (3, 585, false),
            (3, 586, true),
            (2, 900, false),
            (15, 3_000, true),
            (16, 3_200, false),
        ] {
            let mut path = Path::new();
            path.round(1_000, 0, LOSS);
            path.interval(rounds, 1_000, lost);
            assert_eq!(path.detector.last > 0.0, expected, "{rounds} {lost}");
        }
    }

    #[test]
    fn an_interval_without_data_to_send_is_dropped() {
        let mut path = Path::new();
        path.round(1_000, 0, LOSS);
        path.interval(3, 1_000, 600);
        path.round(1_000, 300, AckEvents { starved: true, ..LOSS });
        assert!(path.detector.start.is_none());
        path.round(1_000, 0, CALM);
        assert!(path.detector.start.is_none(), "the next loss starts one");
    }

    #[test]
    fn the_rate_is_used_for_48_round_trips_of_probe_bw() {
        let mut path = Path::new();
        path.round(1_000, 0, LOSS);
        path.interval(4, 1_000, 900);
        path.interval(4, 1_000, 900);
        path.round(1_000, 0, AckEvents { probe_bw: false, ..CALM });
        path.round(1_000, 0, AckEvents { round_start: false, ..CALM });
        (0..47).for_each(|n| assert!(!path.round(1_000, 0, CALM), "{n}"));
        assert!(path.detector.rate().is_some());
        assert!(path.round(1_000, 0, CALM));
        assert_eq!(path.detector.rate(), None);
    }
}
