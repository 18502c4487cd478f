//! Pacer: spaces segments evenly at a rate instead of sending bursts.
//!
//! **Source**: Linux's TCP; no RFC defines a pacer. Gains of a window-based rate are its defaults
//! (200 % in slow start, 120 % afterwards); BBR and Prague set their own rate. The first ten
//! segments of a connection are not paced. A segment that is sent late, because the window was
//! full, shortens the gap after it by its delay, but at most by half.
//!
//! **Cost**: one timer of the sender, set only while the pacer holds a segment.

use super::Window;
use sojourn_aqm::cast;
use sojourn_aqm::units::{Span, Time};

/// Pacing rate in windows per round trip: in slow start, and afterwards.
const GAINS: [f64; 2] = [2.0, 1.2];

/// Number of segments at the start of a connection that may be sent at once.
const INITIAL_BURST: u32 = 10;

/// Pacer state.
#[derive(Clone, Debug)]
pub struct Pacer {
    /// Rate, bytes of payload per second; infinite before it is first set.
    rate: f64,
    /// Earliest time of the next segment.
    next_send: Time,
    /// True if a segment is held until then.
    holds_segment: bool,
    /// Segments of the initial burst that are not sent yet.
    initial: u32,
}

impl Default for Pacer {
    fn default() -> Pacer {
        Pacer {
            rate: f64::INFINITY,
            next_send: Time::ZERO,
            holds_segment: false,
            initial: INITIAL_BURST,
        }
    }
}

impl Pacer {
    /// Rate, bytes of payload per second.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Set the rate, bytes of payload per second. The gap after the last segment is not changed.
    pub fn set(&mut self, rate: f64) {
        self.rate = rate;
    }

    /// Set the rate from the window.
    pub fn follow(&mut self, window: &Window, srtt: Option<Span>) {
        if let Some(srtt) = srtt.filter(|s| s.0 > 0) {
            let gain = GAINS[usize::from(window.cwnd >= window.ssthresh / 2)];
            self.set(gain * window.cwnd as f64 / srtt.as_secs());
        }
    }

    /// Record the transmission of `bytes` of payload at `now`.
    pub fn on_sent(&mut self, now: Time, bytes: u64) {
        let late = now.since(self.next_send).0;
        self.next_send = self.next_send.max(now);
        self.holds_segment = false;
        self.initial = self.initial.saturating_sub(1);
        if self.initial == 0 {
            // Bounds the gap for rates near zero: one segment per day.
            let gap = cast::trunc((bytes as f64 * 1e9 / self.rate).min(86_400e9));
            self.next_send += Span(gap - late.min(gap / 2));
        }
    }

    /// True if a segment may be sent at `now`; if false, it is held.
    pub fn may_send(&mut self, now: Time) -> bool {
        self.holds_segment = now < self.next_send;
        !self.holds_segment
    }

    /// Clear the held segment.
    pub fn clear_held(&mut self) {
        self.holds_segment = false;
    }

    /// Time from `now` until a segment may be sent.
    pub fn delay(&self, now: Time) -> Span {
        self.next_send.since(now)
    }

    /// Time at which the held segment may be sent; [`Time::NEVER`] if none is held.
    pub fn release_time(&self) -> Time {
        if self.holds_segment { self.next_send } else { Time::NEVER }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pacer at 1 MB/s, at which 1000 bytes take 1 ms, after ten segments at 5 ns.
    fn pacer() -> Pacer {
        let mut p = Pacer::default();
        p.set(1_000_000.0);
        for _ in 0..10 {
            assert!(p.may_send(Time(5)), "the first ten are not paced");
            p.on_sent(Time(5), 1_000);
        }
        p
    }

    #[test]
    fn segments_are_spaced_after_the_first_ten() {
        let mut p = pacer();
        assert_eq!(p.release_time(), Time::NEVER, "no segment is held yet");
        assert!(!p.may_send(Time(1_000_004)));
        assert_eq!(p.release_time(), Time(1_000_005));
        assert!(p.may_send(Time(1_000_005)));
        p.on_sent(Time(1_000_005), 500);
        assert!(!p.may_send(Time(1_500_004)) && p.may_send(Time(1_500_005)));
    }

    #[test]
    fn a_late_segment_shortens_the_next_gap_at_most_by_half() {
        let after = |late: u64| {
            let mut p = pacer();
            p.on_sent(Time(1_000_005 + late), 1_000);
            p.may_send(Time(0));
            p.release_time() - Time(1_000_005 + late)
        };
        assert_eq!(
            [0, 100, 500_000, 500_001, 9_000_000].map(|late| after(late).0),
            [1_000_000, 999_900, 500_000, 500_000, 500_000]
        );
    }

    #[test]
    fn rate_is_two_windows_per_rtt_in_slow_start() {
        let mut p = Pacer::default();
        let mut w = Window { cwnd: 10_000, ssthresh: 100_000, mss: 1_000 };
        p.follow(&w, None);
        assert_eq!(p.rate(), f64::INFINITY);
        p.follow(&w, Some(Span::ms(100)));
        assert_eq!(p.rate(), 200_000.0);
        w.cwnd = 50_000;
        p.follow(&w, Some(Span::ms(100)));
        assert_eq!(p.rate(), 600_000.0);
        p.follow(&w, Some(Span::ZERO));
        assert_eq!(p.rate(), 600_000.0, "a round-trip time of 0 gives no rate");
    }
}
