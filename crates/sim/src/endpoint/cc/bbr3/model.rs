//! Model of the path: bandwidth, round-trip time, and bounds on both from losses.
//!
//! **Source**: draft-ietf-ccwg-bbr, "Updating the Network Path Model".

use super::{Bbr3Params, LEAST, RateSample, WindowedMax};
use sojourn_aqm::Snapshot;
use sojourn_aqm::units::{Span, Time};

/// Number of lost ranges in a round above which Startup may end (StartupFullLossCnt).
const STARTUP_LOSSES: u32 = 6;
/// Length of the max filter of excess acks, round trips (ExtraAckedFilterLen).
const EXTRA_ROUNDS: u64 = 10;

/// Estimates of the path.
#[derive(Clone, Debug, Snapshot)]
pub(super) struct PathModel {
    /// Maximum delivery rate of the current and the last probing cycle.
    pub max_bw: WindowedMax,
    /// Number of the probing cycle.
    pub cycle: u64,
    /// Bandwidth in use: the smaller of the maximum and `bw_short`, bytes per second.
    pub bw: f64,
    pub bw_short: f64,
    pub inflight_short: f64,
    pub inflight_long: f64,
    pub bw_latest: f64,
    pub inflight_latest: f64,
    pub full_bw: f64,
    pub full_rounds: u32,
    /// True if the bandwidth has stopped growing in the current probe.
    pub full_now: bool,
    /// True once it has stopped growing at all.
    pub full_reached: bool,
    pub round: u64,
    /// Total delivered bytes at which the round ends.
    round_end: u64,
    pub round_start: bool,
    pub loss_in_round: bool,
    loss_round_end: u64,
    pub loss_round_start: bool,
    /// Number of lost ranges in the round, and the end of the last one.
    pub loss_ranges: u32,
    last_lost: u64,
    pub min_rtt: Option<Span>,
    min_rtt_at: Time,
    probe_rtt_min: Option<Span>,
    pub probe_rtt_at: Time,
    pub probe_rtt_expired: bool,
    /// Excess of acked bytes over those expected at `bw`.
    pub extra_acked: WindowedMax,
    pub extra_at: Time,
    extra_delivered: f64,
    /// True if the window was full in this round, and in the one before.
    window_full: (bool, bool),
}

impl Default for PathModel {
    fn default() -> PathModel {
        PathModel {
            max_bw: WindowedMax::new(1),
            cycle: 0,
            bw: 0.0,
            bw_short: f64::INFINITY,
            inflight_short: f64::INFINITY,
            inflight_long: f64::INFINITY,
            bw_latest: 0.0,
            inflight_latest: 0.0,
            full_bw: 0.0,
            full_rounds: 0,
            full_now: false,
            full_reached: false,
            round: 0,
            round_end: 0,
            round_start: false,
            loss_in_round: false,
            loss_round_end: 0,
            loss_round_start: false,
            loss_ranges: 0,
            last_lost: 0,
            min_rtt: None,
            min_rtt_at: Time::ZERO,
            probe_rtt_min: None,
            probe_rtt_at: Time::ZERO,
            probe_rtt_expired: false,
            extra_acked: WindowedMax::new(EXTRA_ROUNDS),
            extra_at: Time::ZERO,
            extra_delivered: 0.0,
            window_full: (false, false),
        }
    }
}

impl PathModel {
    /// Starts with the round-trip time of the SYN.
    pub(super) fn start(&mut self, now: Time, rtt: Option<Span>) {
        (self.min_rtt, self.probe_rtt_min) = (rtt, rtt);
        (self.min_rtt_at, self.probe_rtt_at, self.extra_at) = (now, now, now);
    }

    /// StartRound.
    pub(super) fn start_round(&mut self, delivered: u64) {
        self.round_end = delivered;
    }

    /// ResetFullBW, with `rate` as the new baseline.
    pub(super) fn reset_full_bw(&mut self, rate: f64) {
        (self.full_bw, self.full_rounds, self.full_now) = (rate, 0, false);
    }

    /// ResetShortTermModel.
    pub(super) fn reset_short_term(&mut self) {
        (self.bw_short, self.inflight_short) = (f64::INFINITY, f64::INFINITY);
    }

    /// ResetCongestionSignals.
    pub(super) fn reset_congestion(&mut self) {
        (self.loss_in_round, self.bw_latest, self.inflight_latest) = (false, 0.0, 0.0);
    }

    /// UpdateLatestDeliverySignals.
    pub(super) fn note_delivery(&mut self, s: &RateSample, delivered: u64) {
        self.bw_latest = self.bw_latest.max(s.rate);
        self.inflight_latest = self.inflight_latest.max(s.delivered as f64);
        self.loss_round_start = s.prior_delivered >= self.loss_round_end;
        if self.loss_round_start {
            self.loss_round_end = delivered;
        }
    }

    /// AdvanceLatestDeliverySignals.
    pub(super) fn advance_latest(&mut self, s: &RateSample) {
        if self.loss_round_start {
            (self.bw_latest, self.inflight_latest) = (s.rate, s.delivered as f64);
        }
    }

    /// UpdateMaxBw, UpdateRound.
    pub(super) fn update_max_bw(&mut self, s: &RateSample, delivered: u64) {
        self.round_start = s.prior_delivered >= self.round_end;
        if self.round_start {
            self.start_round(delivered);
            self.round += 1;
            self.window_full = (false, self.window_full.0);
        }
        if s.rate.is_finite() && s.rate > 0.0 && (s.rate >= self.max_bw.get() || !s.starved) {
            self.max_bw.add(self.cycle, s.rate);
        }
    }

    /// Records if the window was full before the ack.
    pub(super) fn note_window_use(&mut self, full: bool) {
        self.window_full.0 |= full;
    }

    /// C.is_cwnd_limited: the window was full at some time in the last round trip.
    pub(super) fn is_cwnd_limited(&self) -> bool {
        self.window_full.0 || self.window_full.1
    }

    /// AdaptLowerBoundsFromCongestion, at the end of a round; `probes` while probing.
    pub(super) fn adapt_lower_bounds(&mut self, beta: f64, cwnd: u64, probes: bool) {
        if self.loss_in_round && !probes {
            if self.bw_short.is_infinite() {
                self.bw_short = self.max_bw.get();
            }
            if self.inflight_short.is_infinite() {
                self.inflight_short = cwnd as f64;
            }
            self.bw_short = self.bw_latest.max(beta * self.bw_short);
            self.inflight_short = self.inflight_latest.max(beta * self.inflight_short);
        }
        self.loss_in_round = false;
    }

    /// NoteLoss: the round has a loss, and ends a round trip after the first one.
    pub(super) fn mark_loss(&mut self, delivered: u64) {
        if !self.loss_in_round {
            (self.loss_in_round, self.loss_round_end) = (true, delivered);
        }
    }

    /// NoteLoss, for the segment `seq..end`.
    pub(super) fn note_loss(&mut self, (seq, end): (u64, u64), delivered: u64) {
        self.mark_loss(delivered);
        self.loss_ranges += u32::from(seq != self.last_lost);
        self.last_lost = end;
    }

    /// The conditions of CheckStartupHighLoss, in loss recovery.
    pub(super) fn startup_loss_is_high(&self, params: &Bbr3Params, s: &RateSample) -> bool {
        self.loss_round_start
            && self.loss_ranges >= STARTUP_LOSSES
            && is_too_high(params, s.lost, s.in_flight)
    }

    /// UpdateACKAggregation.
    pub(super) fn update_extra_acked(&mut self, now: Time, news: u64, cwnd: u64) {
        let mut expected = self.bw * (now - self.extra_at).as_secs();
        if self.extra_delivered <= expected {
            (self.extra_delivered, self.extra_at, expected) = (0.0, now, 0.0);
        }
        self.extra_delivered += news as f64;
        let extra = (self.extra_delivered - expected).min(cwnd as f64);
        let rounds = if self.full_reached { EXTRA_ROUNDS } else { 1 };
        self.extra_acked.set_rounds(rounds - 1);
        self.extra_acked.add(self.round, extra);
    }

    /// UpdateMinRTT.
    pub(super) fn update_min_rtt(&mut self, now: Time, rtt: Option<Span>, params: &Bbr3Params) {
        self.probe_rtt_expired = now > self.probe_rtt_at + params.probe_rtt_interval;
        let expired = self.probe_rtt_expired;
        if let Some(rtt) = rtt.filter(|r| expired || self.probe_rtt_min.is_none_or(|m| *r < m)) {
            (self.probe_rtt_min, self.probe_rtt_at) = (Some(rtt), now);
        }
        let stale = now > self.min_rtt_at + params.min_rtt_window;
        if let Some(least) = self.probe_rtt_min
            && (stale || self.min_rtt.is_none_or(|m| least < m))
        {
            (self.min_rtt, self.min_rtt_at) = (Some(least), self.probe_rtt_at);
        }
    }

    /// InflightWithHeadroom.
    pub(super) fn with_headroom(&self, params: &Bbr3Params, mss: u64) -> f64 {
        let headroom = (params.headroom * self.inflight_long).max(mss as f64);
        if self.inflight_long.is_infinite() {
            return f64::INFINITY;
        }
        (self.inflight_long - headroom).max((LEAST * mss) as f64)
    }
}

/// IsInflightTooHigh: `lost` bytes were lost since a segment was sent with `in_flight` in flight.
pub(super) fn is_too_high(params: &Bbr3Params, lost: u64, in_flight: u64) -> bool {
    lost as f64 > in_flight as f64 * params.loss_thresh
}
