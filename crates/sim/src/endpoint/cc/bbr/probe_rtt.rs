//! ProbeRtt: a window of four segments, to measure the minimum round-trip time.

use super::{Bbr, BbrState, LEAST};
use crate::endpoint::cc::Window;
use sojourn_aqm::units::{Span, Time};

impl Bbr {
    /// Updates the minimum round-trip time; enters, continues or leaves ProbeRtt.
    pub(super) fn update_rtprop(
        &mut self,
        now: Time,
        rtt: Option<Span>,
        window: &mut Window,
        flight: u64,
    ) {
        let expired = now > self.rtprop_at + self.params.rtprop_window;
        if let Some(rtt) = rtt.filter(|rtt| expired || self.rtprop.is_none_or(|old| *rtt <= old)) {
            (self.rtprop, self.rtprop_at) = (Some(rtt), now);
        }
        if expired && !self.restarted && self.mode != BbrState::ProbeRtt {
            self.save_cwnd(window);
            (self.mode, self.probe_until) = (BbrState::ProbeRtt, None);
        }
        if self.mode != BbrState::ProbeRtt {
            return;
        }
        self.rates.starve(flight); // samples with a minimal window do not show the bandwidth
        match self.probe_until {
            None if flight <= LEAST * window.mss => {
                self.probe_until = Some(now + self.params.probe_rtt);
                (self.probe_round, self.round_end) = (false, self.rates.delivered());
            }
            None => {}
            Some(until) => {
                self.probe_round |= self.round_start;
                if self.probe_round && now >= until {
                    self.rtprop_at = now;
                    window.cwnd = window.cwnd.max(self.prior_cwnd);
                    if self.path_is_full() {
                        self.enter_probe_bw(now);
                    } else {
                        self.mode = BbrState::Startup;
                    }
                }
            }
        }
    }
}
