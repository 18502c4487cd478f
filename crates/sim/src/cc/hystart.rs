//! HyStart++: the first slow start ends before the queue overflows, when round trips take longer.
//!
//! **Source**: RFC 9406 §4; RFC 9438 §4.10 asks CUBIC for it.
//!
//! **Symbols**
//!
//! | RFC | here |
//! |---|---|
//! | windowEnd | `window_end` |
//! | lastRoundMinRTT, currentRoundMinRTT | `last_min`, `current_min` |
//! | rttSampleCount | `samples` |
//! | cssBaselineMinRtt | `baseline`; none in standard slow start |
//!
//! **Departures**: L stays the parameter `abc_limit` (the RFC's 8 would change every slow start,
//! not its end). Every ack of new data gives a sample, from the time at which the last segment that
//! it covers was sent. A round ends with the ack of `window_end`; SND.NXT is looked up when the
//! first ack of the next round comes, so that what the last one let out belongs to that round.

use super::Window;
use sojourn_aqm::units::{Span, Time};
use std::collections::VecDeque;

const MIN_RTT_THRESH: Span = Span::ms(4);
const MAX_RTT_THRESH: Span = Span::ms(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;

/// The state of the first slow start.
#[derive(Clone, Debug, Default)]
pub struct HyStart {
    /// Whether it has ended: by itself, a cut, or the threshold.
    over: bool,
    /// The ends of the segments outstanding, and when they left.
    sent: VecDeque<(u64, Time)>,
    /// When the last segment was sent that the ack at hand covers, and whether that begins a round.
    covered: Option<Time>,
    begins: bool,
    window_end: u64,
    last_min: Option<Span>,
    current_min: Option<Span>,
    samples: u32,
    baseline: Option<Span>,
    /// Rounds of conservative slow start that are left.
    rounds: u32,
}

impl HyStart {
    /// It is over, whatever happens to the window later.
    pub fn end(&mut self) {
        self.over = true;
        self.sent = VecDeque::new();
    }

    /// New data up to `end` was sent.
    pub fn sent(&mut self, now: Time, end: u64) {
        if !self.over {
            self.sent.push_back((end, now));
        }
    }

    /// An ack of everything below `ack`; `next` is the next to send.
    pub fn acked(&mut self, ack: u64, next: u64) {
        if self.over {
            return;
        }
        while let Some((_, at)) = self.sent.front().copied().filter(|(end, _)| *end <= ack) {
            self.covered = Some(at);
            self.sent.pop_front();
        }
        if self.window_end == 0 {
            self.window_end = next; // the first round is the initial window
        } else if ack > self.window_end {
            (self.begins, self.window_end) = (true, next);
        }
    }

    /// The window has grown from `before` by an ack at `now`.
    pub fn grown(&mut self, window: &mut Window, before: u64, now: Time) {
        if self.over {
            return;
        }
        if before >= window.ssthresh {
            return self.end();
        }
        if self.baseline.is_some() {
            window.cwnd = before + (window.cwnd - before) / CSS_GROWTH_DIVISOR;
        }
        if std::mem::take(&mut self.begins) {
            if self.baseline.is_some() {
                self.rounds -= 1;
                if self.rounds == 0 {
                    window.ssthresh = window.cwnd;
                    return self.end();
                }
            }
            (self.last_min, self.current_min, self.samples) = (self.current_min.take(), None, 0);
        }
        if let Some(at) = self.covered.take() {
            self.current_min = Some(self.current_min.map_or(now - at, |min| min.min(now - at)));
            self.samples += 1;
        }
        if self.samples >= N_RTT_SAMPLE {
            self.compare();
        }
    }

    /// There are enough samples of this round.
    fn compare(&mut self) {
        let Some(current) = self.current_min else { return };
        if let Some(baseline) = self.baseline {
            if current < baseline {
                self.baseline = None; // it was no queue: back to standard slow start
            }
        } else if let Some(last) = self.last_min {
            let share = Span(last.0 / MIN_RTT_DIVISOR);
            let thresh = share.clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
            if current >= last + thresh {
                (self.baseline, self.rounds) = (Some(current), CSS_ROUNDS);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sender in slow start whose every segment is acknowledged by itself, round by round, each
    /// round with one round-trip time; segments of 1000 bytes.
    struct Trace {
        hystart: HyStart,
        window: Window,
        now: Time,
        una: u64,
        nxt: u64,
    }

    impl Trace {
        fn new(segments: u64) -> Trace {
            let window = Window { cwnd: segments * 1_000, ssthresh: u64::MAX, mss: 1_000 };
            let (hystart, now) = (HyStart::default(), Time::ZERO);
            let mut trace = Trace { hystart, window, now, una: 1, nxt: 1 };
            trace.send();
            trace
        }

        fn send(&mut self) {
            while self.nxt + 1_000 <= self.una + self.window.cwnd {
                self.nxt += 1_000;
                self.hystart.sent(self.now, self.nxt);
            }
        }

        /// The acks of all that is outstanding come after `ms`, and each lets new data out. Gives
        /// the window then, segments.
        fn round(&mut self, ms: u64) -> u64 {
            self.now += Span::ms(ms);
            for _ in 0..(self.nxt - self.una) / 1_000 {
                self.una += 1_000;
                self.hystart.acked(self.una, self.nxt);
                let before = self.window.cwnd;
                self.window.cwnd += 1_000;
                self.hystart.grown(&mut self.window, before, self.now);
                self.send();
            }
            self.window.cwnd / 1_000
        }
    }

    #[test]
    fn slow_start_ends_after_five_rounds_of_longer_trips() {
        let mut t = Trace::new(10);
        assert_eq!((t.round(80), t.round(80), t.round(89)), (20, 40, 80), "under 1/8 more");
        // 89 + 11.125 ms is reached: from the 9th ack on each opens a quarter of a segment.
        assert_eq!(t.round(101), 80 + 8 + 72 / 4);
        assert_eq!((t.round(101), t.round(130)), (132, 165), "a quarter more each round");
        assert_eq!((t.round(101), t.window.ssthresh), (206, u64::MAX));
        t.round(101);
        assert_eq!((t.window.cwnd, t.window.ssthresh), (258_250, u64::MAX), "the fifth round");
        t.round(101);
        assert_eq!(t.window.ssthresh, 258_500, "the next ack is the first beyond it");
        assert!(t.hystart.over && t.hystart.sent.is_empty());
    }

    #[test]
    fn a_trip_shorter_than_the_first_long_one_resumes_slow_start() {
        let mut t = Trace::new(10);
        assert_eq!((t.round(20), t.round(24)), (20, 20 + 8 + 3), "4 ms are enough of 20 ms");
        assert_eq!(t.hystart.baseline, Some(Span::ms(24)));
        let (n, grown) = (31, t.round(23));
        assert_eq!(grown, n + (8 + 4 * (n - 8)) / 4, "full steps again after the 8th sample");
        assert_eq!(t.hystart.baseline, None);
        assert_eq!(t.round(23), 2 * grown);
    }

    #[test]
    fn thresholds_are_an_eighth_between_4_and_16_ms() {
        for (rtt, most) in [(8, 4), (31, 4), (64, 8), (128, 16), (400, 16)] {
            for more in [most - 1, most] {
                let mut t = Trace::new(10);
                t.round(rtt);
                t.round(rtt + more);
                assert_eq!(t.hystart.baseline.is_some(), more == most, "{rtt} ms + {more}");
            }
        }
    }

    #[test]
    fn six_samples_say_nothing_and_a_threshold_ends_it() {
        let mut t = Trace::new(3);
        assert_eq!((t.round(50), t.round(500)), (6, 12), "six samples");
        t.window.ssthresh = 12_000;
        t.round(50);
        assert!(t.hystart.over, "what follows is not the first slow start");
    }
}
