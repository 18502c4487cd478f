//! Rules of Google's version 3 for Linux where they differ from the draft.
//!
//! **Source**: github.com/google/bbr, branch v3, `tcp_bbr.c`; function names are quoted.
//!
//! **Departures**: the reaction to ECN (`TCP_ECN_LOW`), protective load balancing and the fast path
//! of app-limited flows are missing, and so is the response to a loss that a probe repaired
//! (`bbr_run_loss_probe_recovery`). Windows are in bytes, rounded up to whole segments.

use super::model::is_too_high;
use super::{Bbr3, Bbr3State, LEAST, PathModel};
use crate::endpoint::cc::bursts::segments_of_bbr3;
use crate::endpoint::cc::{ProcessedAck, RateSample, RecoveryState, Window};
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::units::Span;

/// Longest time whose data count as aggregated acks (`bbr_extra_acked_max_us`).
const EXTRA_LONGEST: Span = Span::ms(100);

/// Bounds before a loss, for when it turns out to be spurious.
#[derive(Clone, Copy, Debug, Default, Snapshot)]
pub(super) struct UndoBounds {
    bw_short: f64,
    inflight_short: f64,
    inflight_long: f64,
}

impl UndoBounds {
    /// `bbr_ssthresh`.
    pub(super) fn of(path: &PathModel) -> UndoBounds {
        UndoBounds {
            bw_short: path.bw_short,
            inflight_short: path.inflight_short,
            inflight_long: path.inflight_long,
        }
    }
}

impl Bbr3 {
    /// `bbr_quantization_budget`: room for three bursts, in whole segments.
    pub(super) fn with_bursts(&self, cap: f64) -> f64 {
        let mss = self.mss as f64;
        let burst = segments_of_bbr3(self.pacing_rate, self.path.min_rtt, self.mss) as f64;
        let up = if self.state == Bbr3State::Up { 2.0 } else { 0.0 };
        mss * (libm::ceil(cap / mss).max(3.0 * burst).max(LEAST as f64) + up)
    }

    /// Returns a bound on the data in flight. In Linux it is in whole segments, so that the window
    /// can reach it.
    pub(super) fn whole(&self, bytes: f64) -> f64 {
        if !self.is_linux() {
            return bytes;
        }
        self.mss as f64 * libm::floor(bytes / self.mss as f64)
    }

    /// True if the sample has a rate: an interval below the round-trip time shows a burst of acks
    /// (`tcp_rate_gen`).
    pub(super) fn is_valid(&self, s: &RateSample) -> bool {
        s.interval > Span::ZERO && self.path.min_rtt.is_none_or(|rtt| s.interval >= rtt)
    }

    /// Growth of the window that aggregated acks allow (`bbr_ack_aggregation_cwnd`).
    pub(super) fn aggregated(&self) -> f64 {
        self.path.extra_acked.get().min(self.path.bw * EXTRA_LONGEST.as_secs())
    }

    /// `bbr_set_cwnd`, without the bounds of the model.
    pub(super) fn follow_target(&mut self, window: &mut Window, ack: &ProcessedAck, news: u64) {
        let before = std::mem::replace(&mut self.was, ack.state);
        if before == RecoveryState::Loss && ack.state != RecoveryState::Loss {
            window.cwnd = window.cwnd.max(self.prior_cwnd);
        }
        if news == 0 {
            return;
        }
        let target = self.bdp(self.path.bw, self.cwnd_gain()) + self.aggregated();
        let most = cast::trunc(self.with_bursts(target));
        if self.path.full_reached {
            window.cwnd = (window.cwnd + news).min(most);
        } else if window.cwnd < most || window.cwnd < 2 * self.initial_window {
            window.cwnd += news;
        }
        window.cwnd = window.cwnd.max(LEAST * window.mss);
    }

    /// Losses that an ack showed: `bbr_note_loss`, and the count of acks with losses in Startup.
    pub(super) fn note_losses_of_ack(&mut self, ack: &ProcessedAck) {
        if ack.newly_lost > 0 {
            self.path.mark_loss(self.rates.delivered());
            self.path.loss_ranges += 1;
        }
    }

    /// A timeout: `bbr_set_state` with `TCP_CA_Loss`. `cwnd` is the window before it.
    pub(super) fn on_timeout(&mut self, cwnd: u64) {
        self.path.reset_full_bw(0.0);
        if !self.is_probing() && self.path.inflight_short.is_infinite() {
            self.path.inflight_short = cwnd.max(self.prior_cwnd) as f64;
        }
    }

    /// `bbr_is_probing_bandwidth`.
    pub(super) fn is_probing(&self) -> bool {
        matches!(self.state, Bbr3State::Startup | Bbr3State::Refill | Bbr3State::Up)
    }

    /// `bbr_undo_cwnd`.
    pub(super) fn undo(&mut self, window: &mut Window) {
        self.path.reset_full_bw(0.0);
        self.path.loss_in_round = false;
        let UndoBounds { bw_short, inflight_short, inflight_long } = self.undo_bounds;
        self.path.bw_short = self.path.bw_short.max(bw_short);
        self.path.inflight_short = self.path.inflight_short.max(inflight_short);
        self.path.inflight_long = self.path.inflight_long.max(inflight_long);
        window.cwnd = self.prior_cwnd.max(window.mss);
    }

    /// `bbr_adapt_upper_bounds`, the part for a sample with too much loss. Returns true if there is
    /// too much.
    pub(super) fn ends_probe(&mut self, ack: &ProcessedAck, s: &RateSample) -> bool {
        let too_high = is_too_high(&self.params, s.lost, s.in_flight);
        if too_high && self.probe.probing_sample {
            self.end_probe(ack.now, s.in_flight as f64, s.starved);
        }
        too_high
    }
}
