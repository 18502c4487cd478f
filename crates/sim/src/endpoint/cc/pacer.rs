//! Pacer: spaces segments, or the bursts of Linux's sender, evenly at a rate.
//!
//! **Source**: Linux 6.18 `tcp_pacing_check` and `tcp_update_skb_after_send`; no RFC defines a
//! pacer. The rate follows from the window ([`super::bursts`]); BBR and Prague set their own. The
//! first ten segments of a connection are not paced, unless the control asks for it. A burst is
//! sent at once, and the gap after it is as long as all its segments take at the rate. One that is
//! sent late, because the window was full, shortens that gap by its delay, but at most by half.
//! Segments that do not follow each other, such as retransmissions, are bursts of their own.
//!
//! **Cost**: one timer of the sender, set only while the pacer holds a segment.

use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::units::{Span, Time};

/// Number of segments at the start of a connection that may be sent at once.
pub(super) const INITIAL_BURST: u32 = 10;

/// Pacer state.
#[derive(Clone, Debug, Snapshot)]
pub(crate) struct Pacer {
    /// Rate, bytes of payload per second; infinite before it is first set.
    rate: f64,
    /// Earliest time of the next burst.
    next_send: Time,
    /// True if a segment is held until then.
    holds_segment: bool,
    /// Segments of the initial burst that are not sent yet.
    initial: u32,
    /// Largest burst, segments.
    largest: u64,
    burst: Burst,
}

/// Burst that is being sent.
#[derive(Clone, Copy, Debug, Default, Snapshot)]
struct Burst {
    /// Segments that may follow.
    left: u64,
    /// Sequence number of the segment that may follow.
    next: u64,
    /// Transmission time, and the delay since it was allowed, ns.
    at: Time,
    late: u64,
    /// Time that its segments take at the rate, ns.
    gap: u64,
}

impl Default for Pacer {
    fn default() -> Pacer {
        Pacer {
            rate: f64::INFINITY,
            next_send: Time::ZERO,
            holds_segment: false,
            initial: INITIAL_BURST,
            largest: 1,
            burst: Burst::default(),
        }
    }
}

impl Pacer {
    /// Creates a pacer that does not hold the first `unpaced` segments.
    pub(crate) fn new(unpaced: u32) -> Pacer {
        Pacer { initial: unpaced, ..Pacer::default() }
    }

    /// Rate, bytes of payload per second.
    pub(crate) fn rate(&self) -> f64 {
        self.rate
    }

    /// Sets the rate, bytes of payload per second. The gap after the last burst is not changed.
    pub(crate) fn set(&mut self, rate: f64) {
        self.rate = rate;
    }

    /// Sets the size of the next bursts, segments.
    pub(crate) fn set_burst(&mut self, segments: u64) {
        self.largest = segments;
    }

    /// Records the transmission of the payload from `seq` to `end` at `now`.
    pub(crate) fn on_sent(&mut self, now: Time, seq: u64, end: u64) {
        if !self.continues(seq) {
            let (at, late) = (self.next_send.max(now), now.since(self.next_send).0);
            self.burst = Burst { left: self.largest, at, late, ..Burst::default() };
        }
        let burst = &mut self.burst;
        (burst.left, burst.next) = (burst.left.saturating_sub(1), end);
        // Bounds the gap for rates near zero: one segment per day.
        burst.gap += cast::trunc(((end - seq) as f64 * 1e9 / self.rate).min(86_400e9));
        self.next_send = burst.at;
        self.holds_segment = false;
        self.initial = self.initial.saturating_sub(1);
        if self.initial == 0 {
            self.next_send += Span(burst.gap - burst.late.min(burst.gap / 2));
        }
    }

    /// True if the segment from `seq` may follow in the burst that is being sent.
    fn continues(&self, seq: u64) -> bool {
        self.burst.left > 0 && self.burst.next == seq
    }

    /// True if the segment from `seq` may be sent at `now`; if false, it is held.
    pub(crate) fn may_send(&mut self, now: Time, seq: u64) -> bool {
        self.holds_segment = now < self.next_send && !self.continues(seq);
        !self.holds_segment
    }

    /// Clears the held segment and ends the burst that is being sent.
    pub(crate) fn clear_held(&mut self) {
        self.holds_segment = false;
        self.burst.left = 0;
    }

    /// Time from `now` until a segment may be sent.
    pub(crate) fn delay(&self, now: Time) -> Span {
        self.next_send.since(now)
    }

    /// Time at which the held segment may be sent; [`Time::NEVER`] if none is held.
    pub(crate) fn release_time(&self) -> Time {
        if self.holds_segment { self.next_send } else { Time::NEVER }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pacer at 1 MB/s, at which 1000 bytes take 1 ms, after ten segments at 5 ns. The next
    /// segment is 10,000.
    fn pacer() -> Pacer {
        let mut p = Pacer::default();
        p.set(1_000_000.0);
        for i in 0..10 {
            assert!(p.may_send(Time(5), i * 1_000), "the first ten are not paced");
            p.on_sent(Time(5), i * 1_000, i * 1_000 + 1_000);
        }
        p
    }

    /// Sends `count` segments of 1000 bytes from `seq` at `us`, each if the pacer allows it.
    fn send(p: &mut Pacer, us: u64, seq: u64, count: u64) -> u64 {
        let now = Time(us * 1_000 + 5);
        let next = |i: u64| seq + i * 1_000;
        (0..count)
            .take_while(|i| {
                let allowed = p.may_send(now, next(*i));
                if allowed {
                    p.on_sent(now, next(*i), next(i + 1));
                }
                allowed
            })
            .count() as u64
    }

    #[test]
    fn segments_are_spaced_after_the_first_ten() {
        let mut p = pacer();
        assert_eq!(p.release_time(), Time::NEVER, "no segment is held yet");
        assert!(!p.may_send(Time(1_000_004), 10_000));
        assert_eq!(p.release_time(), Time(1_000_005));
        assert!(p.may_send(Time(1_000_005), 10_000));
        p.on_sent(Time(1_000_005), 10_000, 10_500);
        assert!(!p.may_send(Time(1_500_004), 10_500) && p.may_send(Time(1_500_005), 10_500));
    }

    #[test]
    fn without_an_initial_burst_the_first_segment_is_spaced_too() {
        let mut p = Pacer::new(0);
        p.set(1_000_000.0);
        assert_eq!(send(&mut p, 0, 0, 9), 1);
        assert_eq!(p.release_time(), Time(1_000_000), "it was 5 ns late");
    }

    #[test]
    fn a_late_segment_shortens_the_next_gap_at_most_by_half() {
        let after = |late: u64| {
            let mut p = pacer();
            p.on_sent(Time(1_000_005 + late), 10_000, 11_000);
            p.may_send(Time(0), 11_000);
            p.release_time() - Time(1_000_005 + late)
        };
        assert_eq!(
            [0, 100, 500_000, 500_001, 9_000_000].map(|late| after(late).0),
            [1_000_000, 999_900, 500_000, 500_000, 500_000]
        );
    }

    #[test]
    fn a_burst_is_sent_at_once_and_its_gap_is_that_of_all_its_segments() {
        let mut p = pacer();
        p.set_burst(3);
        assert_eq!(send(&mut p, 999, 10_000, 9), 0);
        assert_eq!(send(&mut p, 1_000, 10_000, 9), 3, "three of nine");
        assert_eq!(p.release_time(), Time(4_000_005), "3 ms for 3000 B");
        // 5 ms late: the gap of 3 ms is halved.
        p.clear_held();
        assert_eq!(send(&mut p, 9_000, 13_000, 9), 3);
        assert_eq!(p.release_time(), Time(10_500_005));
        // 400 us late, and two segments in place of three.
        p.clear_held();
        assert_eq!(send(&mut p, 10_900, 16_000, 2), 2);
        assert!(!p.may_send(Time(12_499_999), 20_000));
        assert_eq!(p.release_time(), Time(12_500_005), "1.6 ms later");
    }

    #[test]
    fn a_burst_ends_with_its_size_its_window_or_other_data() {
        let mut p = pacer();
        p.set_burst(3);
        assert_eq!(send(&mut p, 1_000, 10_000, 2), 2);
        p.clear_held(); // the window was full
        assert_eq!(send(&mut p, 1_000, 12_000, 9), 0, "a burst of two, closed");
        assert_eq!(p.release_time(), Time(3_000_005));
        assert_eq!(send(&mut p, 3_000, 2_000, 1), 1, "a retransmission");
        assert_eq!(send(&mut p, 3_000, 12_000, 9), 0, "does not follow it");
        assert_eq!(send(&mut p, 3_000, 3_000, 9), 2, "the segments that follow do");
        assert_eq!(p.release_time(), Time(6_000_005));
    }
}
