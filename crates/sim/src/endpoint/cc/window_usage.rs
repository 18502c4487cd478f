//! True if a window is used, so that it may grow: `tcp_cwnd_validate` of Linux.
//!
//! **Source**: RFC 7661 §4.3 for the reason; Linux for the rule. Pacing spreads a window over a
//! round trip, so that it is rarely full at the arrival of an ack. What counts is whether it was
//! full at any time in the current round trip.

use super::Window;
use sojourn_aqm::Snapshot;

/// Use of the window since the last round trip began.
#[derive(Clone, Copy, Debug, Default, Snapshot)]
pub(crate) struct WindowUsage {
    /// True if the window was full.
    full: bool,
    /// Largest number of bytes in flight, unless the window was full.
    most: u64,
    /// Sequence number after which the next round trip begins.
    until: u64,
}

impl WindowUsage {
    /// Updates after a transmission, or when the window is `full`: data below `una` is
    /// acknowledged, `next` is the next sequence number, and `flight` bytes are in flight.
    pub(crate) fn update(&mut self, full: bool, una: u64, next: u64, flight: u64) {
        if full || una >= self.until || !self.full && flight > self.most {
            *self = WindowUsage { full, most: flight, until: next };
        }
    }

    /// Returns the largest number of bytes in flight in this round trip: the window if it was full.
    pub(crate) fn most_in_flight(&self, window: &Window) -> u64 {
        let not_full = window.cwnd.saturating_sub(window.mss + 1);
        if self.full { window.cwnd } else { self.most.min(not_full) }
    }

    /// True if the window was full; in slow start, half full.
    pub(crate) fn allows_growth(&self, window: &Window) -> bool {
        self.full || window.is_in_slow_start() && window.cwnd < 2 * self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(ssthresh: u64) -> Window {
        Window { cwnd: 10_000, ssthresh, mss: 1_000 }
    }

    #[test]
    fn a_window_that_was_full_counts_until_the_round_trip_ends() {
        let mut usage = WindowUsage::default();
        assert!(!usage.allows_growth(&window(1)));
        usage.update(true, 1, 10_001, 10_000);
        usage.update(false, 5_001, 14_001, 9_000);
        assert!(usage.allows_growth(&window(1)), "not full now, but in this round trip");
        usage.update(false, 10_000, 19_000, 9_000);
        assert!(usage.allows_growth(&window(1)), "one byte before the end");
        usage.update(false, 10_001, 19_001, 9_000);
        assert!(!usage.allows_growth(&window(1)), "not full in the next one");
    }

    #[test]
    fn a_window_that_was_not_full_has_room_for_a_segment() {
        let mut usage = WindowUsage::default();
        usage.update(true, 1, 10_001, 9_500);
        assert_eq!(usage.most_in_flight(&window(1)), 10_000);
        for (flight, most) in [(6_000, 6_000), (9_500, 8_999)] {
            let mut usage = WindowUsage::default();
            usage.update(false, 1, 10_001, flight);
            assert_eq!(usage.most_in_flight(&window(1)), most);
        }
    }

    #[test]
    fn only_more_in_flight_extends_the_round_trip() {
        for (again, counts) in [(6_000, false), (6_001, true)] {
            let mut usage = WindowUsage::default();
            usage.update(false, 1, 5_001, 6_000);
            usage.update(false, 1, 6_001, again);
            // The round trip ends at 5,001, or at 6,001 if it was extended.
            usage.update(false, 5_001, 8_001, 4_000);
            assert_eq!(usage.allows_growth(&window(u64::MAX)), counts, "{again}");
        }
    }

    #[test]
    fn in_slow_start_more_than_half_is_enough() {
        let mut usage = WindowUsage::default();
        usage.update(false, 1, 5_001, 5_000);
        assert!(!usage.allows_growth(&window(u64::MAX)));
        usage.update(false, 1, 5_002, 5_001);
        assert!(usage.allows_growth(&window(u64::MAX)) && !usage.allows_growth(&window(1)));
        usage.update(false, 1, 6_000, 4_000);
        assert!(usage.allows_growth(&window(u64::MAX)), "the most of the round trip counts");
    }
}
