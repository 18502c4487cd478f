//! Growth of Linux's receive window, as far as acks depend on it: while the window grows, segments
//! are acknowledged at once.
//!
//! **Source**: Linux 6.18 `net/ipv4/tcp_input.c` (`tcp_grow_window`, `tcp_rcv_space_adjust`).
//!
//! **Symbols** `rcv_ssthresh`, `window_clamp`, `rcvq_space` as in Linux.
//!
//! **Departures**: the program reads at once. Memory is no limit, and the window itself does not
//! limit the sender (`receive_window` does).

use sojourn_aqm::Snapshot;
use sojourn_aqm::units::{Span, Time};

/// Window at the start, and its first upper bound (half of `tcp_rmem[1]`), bytes.
const INITIAL: u64 = 65_536;
/// Data expected in the first round trip, segments.
const INITIAL_SPACE: u64 = 10;
/// Least data of a segment that lets the window grow, bytes.
const LEAST: u64 = 128;

/// State of the window of a connection.
#[derive(Clone, Debug, Snapshot)]
pub(super) struct LinuxWindow {
    rcv_ssthresh: u64,
    window_clamp: u64,
    /// Largest segment so far, bytes.
    mss: u64,
    /// Data of the largest round trip so far, bytes; 0 before the first segment.
    space: u64,
    /// Start of the round trip: next expected byte, and time.
    seq: u64,
    since: Time,
}

impl LinuxWindow {
    /// Creates the state of a new connection.
    pub(super) fn new() -> LinuxWindow {
        let (rcv_ssthresh, window_clamp) = (INITIAL, INITIAL);
        LinuxWindow { rcv_ssthresh, window_clamp, mss: 0, space: 0, seq: 1, since: Time::ZERO }
    }

    /// Largest segment so far, bytes.
    pub(super) fn mss(&self) -> u64 {
        self.mss
    }

    /// Notes a segment of `len` bytes; `next` is the next expected byte, `rtt` the round-trip time.
    /// Returns true if the window grows.
    pub(super) fn on_data(&mut self, now: Time, len: u64, next: u64, rtt: Span) -> bool {
        self.mss = self.mss.max(len);
        if self.space == 0 {
            (self.space, self.since) = (INITIAL_SPACE * len, now);
        }
        if now - self.since >= rtt {
            self.end_round_trip(next - self.seq);
            (self.seq, self.since) = (next, now);
        }
        let grows = len >= LEAST && self.rcv_ssthresh < self.window_clamp;
        if grows {
            self.rcv_ssthresh = (self.rcv_ssthresh + 2 * len).min(self.window_clamp);
        }
        grows
    }

    /// Allows for the next round trip, which may have twice the `copied` bytes of the last one.
    fn end_round_trip(&mut self, copied: u64) {
        if copied <= self.space {
            return;
        }
        let window = 2 * copied + 16 * self.mss;
        let growth = u128::from(window) * u128::from(copied - self.space) / u128::from(self.space);
        let window = window.saturating_add(2 * u64::try_from(growth).unwrap_or(u64::MAX / 2));
        (self.window_clamp, self.space) = (self.window_clamp.max(window), copied);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::ms(ms)
    }

    const RTT: Span = Span::ms(50);

    /// Two round trips, of 10 and 20 segments of 1000 bytes. After the second the bound is 40 kB
    /// and 16 segments, 56 kB, and twice as much again, since the data has doubled: 168 kB.
    #[test]
    fn the_window_grows_when_a_round_trip_has_more_data_than_the_last_one() {
        let mut window = LinuxWindow::new();
        let mut next = 1;
        let mut grown = |window: &mut LinuxWindow, ms, segments| {
            let grows = (0..segments).map(|_| {
                next += 1_000;
                u64::from(window.on_data(at(ms), 1_000, next, RTT))
            });
            grows.sum::<u64>()
        };
        assert_eq!(grown(&mut window, 0, 9), 0);
        assert_eq!(grown(&mut window, 50, 1), 0, "10 kB are expected");
        assert_eq!(grown(&mut window, 60, 19), 0);
        assert_eq!(grown(&mut window, 100, 100), 52, "from 65.5 to 168 kB, 2 kB at a time");
    }

    #[test]
    fn small_segments_do_not_grow_it() {
        let mut window = LinuxWindow::new();
        window.window_clamp = 1_000_000;
        assert!(!window.on_data(at(0), 127, 128, RTT));
        assert!(window.on_data(at(0), 128, 256, RTT));
        assert_eq!(window.rcv_ssthresh, INITIAL + 256);
    }

    #[test]
    fn less_data_than_before_does_not_shrink_it() {
        let mut window = LinuxWindow::new();
        window.on_data(at(0), 1_000, 1_001, RTT);
        window.on_data(at(50), 1_000, 40_001, RTT);
        let (clamp, space) = (window.window_clamp, window.space);
        assert_eq!(space, 40_000);
        window.on_data(at(100), 1_000, 50_001, RTT);
        assert_eq!((window.window_clamp, window.space), (clamp, space));
    }
}
