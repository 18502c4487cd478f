//! Window in whole segments, and how Linux's Reno grows it.
//!
//! **Source**: Linux `net/ipv4/tcp_cong.c` (`tcp_slow_start`, `tcp_cong_avoid_ai`,
//! `tcp_reno_cong_avoid`, `tcp_reno_ssthresh`).

use super::Window;
use sojourn_aqm::Snapshot;

/// Window and threshold in whole segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
pub struct Segments {
    /// Congestion window (`snd_cwnd`).
    pub cwnd: u64,
    /// Slow-start threshold (`snd_ssthresh`).
    pub ssthresh: u64,
    /// Segments acknowledged that the window has not grown for (`snd_cwnd_cnt`).
    pub cnt: u64,
}

impl Segments {
    /// Returns the whole segments of a window, at least one.
    pub fn of(window: &Window, cnt: u64) -> Segments {
        let [cwnd, ssthresh] = [window.cwnd, window.ssthresh].map(|bytes| bytes / window.mss);
        Segments { cwnd: cwnd.max(1), ssthresh, cnt }
    }

    /// True in slow start.
    pub fn is_in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Grows by `acked` segments up to the threshold; returns the segments beyond it.
    pub fn slow_start(&mut self, acked: u64) -> u64 {
        let grown = acked.min(self.ssthresh - self.cwnd);
        self.cwnd += grown;
        acked - grown
    }

    /// Grows by one segment for each `w` that are acknowledged; `acked` are now.
    pub fn increase(&mut self, w: u64, acked: u64) {
        if self.cnt >= w {
            self.cnt = 0;
            self.cwnd += 1;
        }
        self.cnt += acked;
        self.cwnd += self.cnt / w;
        self.cnt %= w;
    }

    /// Grows in slow start if the window is below the threshold; returns the segments beyond it,
    /// which count for congestion avoidance.
    pub fn slow_start_if_below(&mut self, acked: u64) -> u64 {
        if self.is_in_slow_start() { self.slow_start(acked) } else { acked }
    }

    /// Grows as Reno.
    pub fn reno(&mut self, acked: u64) {
        let left = self.slow_start_if_below(acked);
        if left > 0 {
            self.increase(self.cwnd, left);
        }
    }

    /// Half the window, at least two segments.
    pub fn half(&self) -> u64 {
        (self.cwnd / 2).max(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_start_ends_at_the_threshold_and_the_rest_counts_for_avoidance() {
        let mut w = Segments { cwnd: 8, ssthresh: 10, cnt: 7 };
        w.reno(5);
        // Two of five in slow start; 7 + 3 = 10 of 10 for the next segment.
        assert_eq!(w, Segments { cwnd: 11, ssthresh: 10, cnt: 0 });
        w.reno(23);
        assert_eq!(w, Segments { cwnd: 13, ssthresh: 10, cnt: 1 });
    }

    #[test]
    fn credit_of_a_larger_window_gives_one_segment() {
        let mut w = Segments { cwnd: 5, ssthresh: 5, cnt: 40 };
        w.increase(5, 2);
        assert_eq!(w, Segments { cwnd: 6, ssthresh: 5, cnt: 2 });
    }

    #[test]
    fn a_window_is_rounded_down_to_at_least_one_segment() {
        let window = Window { cwnd: 900, ssthresh: 2_999, mss: 1_000 };
        assert_eq!(Segments::of(&window, 3), Segments { cwnd: 1, ssthresh: 2, cnt: 3 });
        assert_eq!(
            [1, 3, 4, 9].map(|cwnd| Segments { cwnd, ssthresh: 2, cnt: 0 }.half()),
            [2, 2, 2, 4]
        );
    }
}
