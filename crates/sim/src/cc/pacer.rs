//! A pacer: segments leave one by one at a rate, not in bursts.
//!
//! **Source**: for the rate that follows the window, RFC 9438 has none and RFC 6928 names the need;
//! the gains are Linux's defaults (200 % in slow start, 120 % after). BBR sets its own rate.
//!
//! **Cost**: a timer of the sender, set only while a segment waits for the pacer.

use super::Window;
use sojourn_aqm::cast;
use sojourn_aqm::units::{Span, Time};

/// Share of a window per round trip at which segments leave in slow start, and after it.
const GAINS: [f64; 2] = [2.0, 1.2];

/// The state of a pacer.
#[derive(Clone, Debug)]
pub struct Pacer {
    /// Bytes of payload per second; infinite before anything is known.
    rate: f64,
    /// When the next segment may leave.
    next: Time,
    /// Whether one waits for that.
    waits: bool,
}

impl Default for Pacer {
    fn default() -> Pacer {
        Pacer { rate: f64::INFINITY, next: Time::ZERO, waits: false }
    }
}

impl Pacer {
    /// Bytes of payload per second.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Sets the rate, in bytes of payload per second. What was sent already keeps its distance.
    pub fn set(&mut self, rate: f64) {
        self.rate = rate;
    }

    /// Sets the rate by the window.
    pub fn follow(&mut self, window: &Window, srtt: Option<Span>) {
        if let Some(srtt) = srtt.filter(|s| s.0 > 0) {
            let gain = GAINS[usize::from(window.cwnd >= window.ssthresh / 2)];
            self.set(gain * window.cwnd as f64 / srtt.as_secs());
        }
    }

    /// `bytes` of payload leave at `now`.
    pub fn sent(&mut self, now: Time, bytes: u64) {
        let gap = bytes as f64 * 1e9 / self.rate;
        // Slower than a segment a day means a rate of nothing.
        self.next = self.next.max(now) + Span(cast::trunc(gap.min(86_400e9)));
        self.waits = false;
    }

    /// Whether a segment may leave at `now`; if not, it waits.
    pub fn may_send(&mut self, now: Time) -> bool {
        self.waits = now < self.next;
        !self.waits
    }

    /// Nothing waits any more.
    pub fn unblock(&mut self) {
        self.waits = false;
    }

    /// When the segment that waits may leave; [`Time::NEVER`] if none does.
    pub fn release(&self) -> Time {
        if self.waits { self.next } else { Time::NEVER }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_keep_their_distance_and_a_silence_earns_no_burst() {
        let mut p = Pacer::default();
        assert!(p.may_send(Time(5)), "nothing is known");
        p.set(1_000_000.0); // 1000 B take 1 ms
        p.sent(Time(5), 1_000);
        assert_eq!(p.release(), Time::NEVER, "nothing waits yet");
        assert!(!p.may_send(Time(1_000_004)));
        assert_eq!(p.release(), Time(1_000_005));
        assert!(p.may_send(Time(1_000_005)));
        p.sent(Time(9_000_000), 500);
        assert!(!p.may_send(Time(9_499_999)) && p.may_send(Time(9_500_000)));
    }

    #[test]
    fn rate_by_the_window_is_twice_it_in_slow_start() {
        let mut p = Pacer::default();
        let mut w = Window { cwnd: 10_000, ssthresh: 100_000, mss: 1_000 };
        p.follow(&w, None);
        assert_eq!(p.rate(), f64::INFINITY);
        p.follow(&w, Some(Span::ms(100)));
        assert_eq!(p.rate(), 200_000.0);
        w.cwnd = 50_000;
        p.follow(&w, Some(Span::ms(100)));
        assert_eq!(p.rate(), 600_000.0);
    }
}
