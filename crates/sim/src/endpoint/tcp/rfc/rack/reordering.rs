//! Reordering window of RACK: how much later than a segment sent after it a segment may arrive
//! before it is lost.
//!
//! **Source**: RFC 8985 §6.2 step 4; Linux `tcp_rack_reo_wnd` and `tcp_rack_update_reo_wnd`.
//!
//! **Symbols** `reo_wnd_mult`, `reo_wnd_persist`, `dsack_round`, `reordering_seen` as in the RFC.

use sojourn_aqm::Snapshot;
use sojourn_aqm::units::Span;

/// Recoveries after which the window shrinks to its first size.
const PERSIST: u32 = 16;
/// Largest multiple.
const MAX_MULT: u64 = 255;

/// State of the reordering window of a connection.
#[derive(Clone, Copy, Debug, Default, Snapshot)]
pub(crate) struct ReorderingWindow {
    on: bool,
    reordering_seen: bool,
    /// Multiple of a quarter of the least round-trip time, less one.
    extra_mult: u64,
    reo_wnd_persist: u32,
    /// Sequence number at which the round trip of the last DSACK ends.
    dsack_round: Option<u64>,
    /// Upper bound: the smoothed round-trip time.
    srtt: Option<Span>,
}

impl ReorderingWindow {
    /// Returns the window of a new connection; it is 0 unless `on`.
    pub(crate) fn new(on: bool) -> ReorderingWindow {
        ReorderingWindow { on, ..ReorderingWindow::default() }
    }

    /// True if there is a window.
    pub(crate) fn is_on(&self) -> bool {
        self.on
    }

    /// Returns the window, or `None` if a segment is lost at once. Without reordering so far, the
    /// window applies only with `patience`.
    pub(crate) fn wait(&self, patience: bool, min_rtt: Span) -> Option<Span> {
        let window = Span(min_rtt.0 / 4 * (1 + self.extra_mult));
        let window = self.srtt.map_or(window, |srtt| window.min(srtt));
        (self.on && (patience || self.reordering_seen)).then_some(window)
    }

    /// Notes that a segment was delivered after one that was sent later.
    pub(crate) fn on_reordering(&mut self) {
        self.reordering_seen = true;
    }

    /// Updates from an ack of everything below `una`, before which `next` was the next byte to
    /// send. `dsack` is true if it reports a duplicate that no probe explains.
    pub(crate) fn on_ack(&mut self, una: u64, next: u64, dsack: bool, srtt: Option<Span>) {
        self.srtt = srtt;
        self.dsack_round = self.dsack_round.filter(|end| una < *end);
        if dsack && self.reordering_seen && self.dsack_round.is_none() {
            self.dsack_round = Some(next);
            self.extra_mult = (self.extra_mult + 1).min(MAX_MULT - 1);
            self.reo_wnd_persist = PERSIST;
        } else if self.reo_wnd_persist == 0 {
            self.extra_mult = 0;
        }
    }

    /// Notes the end of a recovery. One that was undone because of DSACKs prolongs the window.
    pub(crate) fn on_recovery_end(&mut self, undone: bool) {
        self.reo_wnd_persist = if undone {
            (self.reo_wnd_persist + 1).min(PERSIST)
        } else {
            self.reo_wnd_persist.saturating_sub(1)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN_RTT: Span = Span(400);

    #[test]
    fn the_window_is_a_quarter_of_the_least_round_trip() {
        let window = ReorderingWindow::new(true);
        assert_eq!(window.wait(true, MIN_RTT), Some(Span(100)));
        assert_eq!(window.wait(false, MIN_RTT), None, "no reordering so far");
        assert_eq!(ReorderingWindow::new(false).wait(true, MIN_RTT), None);
        let mut window = window;
        window.on_reordering();
        assert_eq!(window.wait(false, MIN_RTT), Some(Span(100)));
    }

    #[test]
    fn it_grows_once_per_round_trip_with_a_dsack_and_lasts_16_recoveries() {
        let mut window = ReorderingWindow::new(true);
        let wait = |w: &ReorderingWindow| w.wait(true, MIN_RTT).unwrap().0;
        window.on_ack(10, 50, true, None);
        assert_eq!(wait(&window), 100, "a duplicate without reordering");
        window.on_reordering();
        window.on_ack(20, 60, true, None);
        window.on_ack(30, 70, true, None);
        assert_eq!(wait(&window), 200, "once in this round trip");
        window.on_ack(60, 90, true, None);
        assert_eq!(wait(&window), 300, "the next round trip");
        window.on_ack(90, 120, false, Some(Span(250)));
        assert_eq!(wait(&window), 250, "at most the smoothed round-trip time");
        (0..15).for_each(|_| window.on_recovery_end(false));
        window.on_ack(100, 120, false, None);
        assert_eq!(wait(&window), 300);
        window.on_recovery_end(true);
        (0..2).for_each(|_| window.on_recovery_end(false));
        window.on_ack(110, 120, false, None);
        assert_eq!(wait(&window), 100, "the first size");
    }
}
