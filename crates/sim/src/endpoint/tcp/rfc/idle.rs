//! Window of the `rfc` sender after an idle period, when it no longer reflects the path.
//!
//! **Source**: RFC 5681 §4.1; with `reduce_cwnd`, Linux 6.18 `tcp_cwnd_restart`.

use super::RfcSender;
use crate::endpoint::cc::CongestionControl;
use sojourn_aqm::units::Time;

impl<C: CongestionControl> RfcSender<C> {
    /// Reduces the window to the initial one, or as Linux halves it for each timeout that has
    /// passed since the last transmission; the threshold then keeps three quarters of it.
    #[cold]
    pub(super) fn restart_after_idle(&mut self, now: Time) {
        let window = &mut self.window;
        let least = window.cwnd.min(self.initial.0);
        if !self.reduce_cwnd {
            window.cwnd = least;
            return;
        }
        window.ssthresh = window.ssthresh.max(window.cwnd / 4 * 3);
        let timeouts = ((now - self.last_sent).0 - 1) / self.rtt.rto().0.max(1);
        let segments =
            (window.cwnd / window.mss).checked_shr(sojourn_aqm::cast::saturate32(timeouts));
        window.cwnd = least.max(segments.unwrap_or(0) * window.mss);
    }
}
