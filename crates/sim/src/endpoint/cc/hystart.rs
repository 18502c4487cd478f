//! HyStart++: ends the first slow start before the queue overflows, when round-trip times grow.
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
//! | cssBaselineMinRtt | `baseline`; None in standard slow start |
//!
//! **Departures**: L is the parameter `abc_limit` (the RFC's 8 would change all of slow start, not
//! only its end). Every ack of new data gives an RTT sample, measured from the transmission of the
//! last segment it covers. A round ends with the ack of `window_end`; SND.NXT is read at the first
//! ack of the next round, so that segments released by the last ack belong to that round.

use super::Window;
use sojourn_aqm::Snapshot;
use sojourn_aqm::units::{Span, Time};
use std::collections::VecDeque;

const MIN_RTT_THRESH: Span = Span::ms(4);
const MAX_RTT_THRESH: Span = Span::ms(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;

/// HyStart++ state.
#[derive(Clone, Debug, Default, Snapshot)]
pub(crate) struct HyStart {
    /// True after slow start has ended, by HyStart++, a loss or the threshold.
    over: bool,
    /// End sequence number and transmission time of each outstanding segment.
    sent: VecDeque<(u64, Time)>,
    /// Transmission time of the last segment covered by the current ack.
    covered: Option<Time>,
    /// True if the current ack starts a round.
    begins: bool,
    window_end: u64,
    last_min: Option<Span>,
    current_min: Option<Span>,
    samples: u32,
    baseline: Option<Span>,
    /// Rounds of conservative slow start left.
    rounds: u32,
}

impl HyStart {
    /// Ends slow start for good.
    pub(crate) fn end(&mut self) {
        self.over = true;
        self.sent = VecDeque::new();
    }

    /// Records the transmission of new data up to `end`.
    pub(crate) fn on_sent(&mut self, now: Time, end: u64) {
        if !self.over {
            self.sent.push_back((end, now));
        }
    }

    /// Handles an ack of everything below `ack`; `next` is the next sequence number to send.
    pub(crate) fn on_ack(&mut self, ack: u64, next: u64) {
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

    /// Handles the growth of the window from `before` by an ack at `now`.
    pub(crate) fn on_window_growth(&mut self, window: &mut Window, before: u64, now: Time) {
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
            self.compare_rounds();
        }
    }

    /// Compares this round's minimum RTT with the last one's, once there are enough samples.
    fn compare_rounds(&mut self) {
        let Some(current) = self.current_min else { return };
        if let Some(baseline) = self.baseline {
            if current < baseline {
                self.baseline = None; // not caused by a queue: back to standard slow start
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

    /// Sender in slow start with one ack per segment and a constant RTT within each round; segments
    /// of 1000 bytes.
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
                self.hystart.on_sent(self.now, self.nxt);
            }
        }

        /// Ack all outstanding segments after `ms`, each ack releasing new data. Returns the window
        /// in segments.
        fn round(&mut self, ms: u64) -> u64 {
            self.now += Span::ms(ms);
            for _ in 0..(self.nxt - self.una) / 1_000 {
                self.una += 1_000;
                self.hystart.on_ack(self.una, self.nxt);
                let before = self.window.cwnd;
                self.window.cwnd += 1_000;
                self.hystart.on_window_growth(&mut self.window, before, self.now);
                self.send();
            }
            self.window.cwnd / 1_000
        }
    }

    #[test]
    fn slow_start_ends_after_five_rounds_of_longer_rtts() {
        let mut t = Trace::new(10);
        assert_eq!((t.round(80), t.round(80), t.round(89)), (20, 40, 80), "increase below 1/8");
        // The threshold 89 + 11.125 ms is reached: from the 9th ack on, each adds a quarter of a
        // segment.
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
    fn an_rtt_below_the_baseline_resumes_slow_start() {
        let mut t = Trace::new(10);
        assert_eq!((t.round(20), t.round(24)), (20, 20 + 8 + 3), "the threshold at 20 ms is 4 ms");
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
    fn six_samples_are_too_few_and_reaching_ssthresh_ends_it() {
        let mut t = Trace::new(3);
        assert_eq!((t.round(50), t.round(500)), (6, 12), "six samples");
        t.window.ssthresh = 12_000;
        t.round(50);
        assert!(t.hystart.over, "only the first slow start counts");
    }
}
