//! Rules of Linux's tcp_bbr that the draft of version 1 does not have.
//!
//! **Source**: Linux 6.18 `net/ipv4/tcp_bbr.c` (`bbr_update_bw`, `bbr_update_cycle_phase`,
//! `bbr_packets_in_net_at_edt`, `bbr_update_ack_aggregation`, `bbr_set_state`) and
//! `net/ipv4/tcp_rate.c` (`tcp_rate_gen`).

use super::super::bbr_aggregation::AggregateAck;
use super::super::bbr_policer::{AckEvents, PathCounters};
use super::super::bursts::goal_of_bbr;
use super::*;

impl Bbr {
    /// True for the rules of Linux.
    pub(super) fn is_linux(&self) -> bool {
        self.params.variant == BbrVariant::Linux
    }

    /// Returns the round-trip time of an ack. In Linux it is the one of the last segment that was
    /// delivered, or of the echoed timestamp.
    pub(super) fn take_rtt(
        &mut self,
        ack: &ProcessedAck,
        sample: Option<&RateSample>,
    ) -> Option<Span> {
        let own = sample.and_then(|s| s.rtt);
        let rtt = if self.is_linux() { ack.rtt.or(own) } else { own };
        if let Some(rtt) = rtt {
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
        }
        rtt
    }

    /// True if a sample counts. In Linux one over less than the minimum round-trip time counts
    /// neither as a bandwidth nor as a round.
    pub(super) fn is_valid(&self, s: &RateSample) -> bool {
        let long = s.interval > Span::ZERO && self.min_rtt.is_none_or(|least| s.interval >= least);
        long || !self.is_linux()
    }

    /// Bytes that will be in the network at the next departure, if `flight` are now: without those
    /// delivered until then, and while probing with the burst that departs.
    pub(super) fn in_network_at_departure(&self, ack: &ProcessedAck, flight: u64, mss: u64) -> u64 {
        let wait = ack.pacing_delay.as_secs();
        let delivered = cast::trunc(self.bandwidth_in_use() * wait / mss as f64) * mss;
        let departing =
            if self.pacing_gain() > 1.0 { goal_of_bbr(self.pacing_rate, mss) * mss } else { 0 };
        (flight + departing).saturating_sub(delivered)
    }

    /// Advances the gain cycle for an ack. Only losses that this ack shows end the phase that
    /// probes for more.
    pub(super) fn advance_linux_cycle(&mut self, ack: &ProcessedAck, news: u64, mss: u64) {
        let before = ack.flight + news + ack.newly_lost;
        let before = self.in_network_at_departure(ack, before, mss);
        let at = self.rates.delivered_at();
        self.advance_gain_cycle(at, before, mss, ack.newly_lost > 0);
    }

    /// Updates the allowance for aggregated acks.
    pub(super) fn measure_aggregation(&mut self, now: Time, window: &Window, news: u64) {
        let (round_start, bw) = (self.round_start, self.bandwidth_in_use());
        let (cwnd, mss) = (window.cwnd, window.mss);
        self.aggregation.on_ack(&AggregateAck { now, news, round_start, bw, cwnd, mss });
    }

    /// Allowance of the window for aggregated acks, whole segments; bytes.
    pub(super) fn aggregation_allowance(&self, mss: u64) -> u64 {
        if !self.is_linux() || !self.path_is_full() {
            return 0;
        }
        self.aggregation.allowance(self.bandwidth_in_use()) / mss * mss
    }

    /// Forgets what a loss that was none has taught (`bbr_undo_cwnd`).
    pub(super) fn forget_loss(&mut self) {
        (self.full_bw, self.full_rounds) = (0.0, 0);
        self.policer = PolicerDetector::default();
    }

    /// Detects a policer.
    pub(super) fn detect_policer(
        &mut self,
        ack: &ProcessedAck,
        sample: &RateSample,
        timed_out: bool,
    ) {
        if sample.interval == Span::ZERO {
            return;
        }
        let delivered = self.rates.delivered();
        let counters = PathCounters { at: ack.now, delivered, lost: ack.lost };
        let events = AckEvents {
            round_start: self.round_start,
            losses: ack.newly_lost > 0 || timed_out,
            starved: sample.starved,
            probe_bw: self.mode == BbrState::ProbeBw,
        };
        if self.policer.on_ack(counters, events) {
            self.enter_probe_bw(ack.now);
        }
    }

    /// Handles a timeout as the end of a round trip with losses.
    pub(super) fn end_round_by_timeout(&mut self, lost: u64) {
        let (at, delivered) = (self.rates.delivered_at(), self.rates.delivered());
        let probe_bw = self.mode == BbrState::ProbeBw;
        let events = AckEvents { round_start: true, losses: true, starved: false, probe_bw };
        if self.policer.on_ack(PathCounters { at, delivered, lost }, events) {
            self.enter_probe_bw(at);
        }
    }
}
