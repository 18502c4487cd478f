//! ProbeBW: the cycle of states that probes for bandwidth, and the long-term bound that it sets;
//! ProbeRTT.
//!
//! **Source**: draft-ietf-ccwg-bbr, "ProbeBW", "Probing for Bandwidth in ProbeBW" and "ProbeRTT".

use super::model::is_too_high;
use super::{Bbr3, Bbr3State};
use crate::endpoint::cc::rate::LostSegment;
use crate::endpoint::cc::{ProcessedAck, RateSample, SentSegment, Window};
use sojourn_aqm::Snapshot;
use sojourn_aqm::random;
use sojourn_aqm::units::{Span, Time};

/// Upper bound of the rounds between probes, for coexistence with Reno.
const MOST_ROUNDS: u64 = 63;

/// Data that the acks of the current time report about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Snapshot)]
enum AckPhase {
    /// Nothing in particular.
    #[default]
    Init,
    /// A path that is being refilled.
    Refilling,
    /// Data from before the probe.
    Starting,
    /// Data sent in the probe.
    Feedback,
    /// The end of the data sent in the probe.
    Stopping,
}

/// State of bandwidth probing.
#[derive(Clone, Debug, Default, Snapshot)]
pub(super) struct Probe {
    phase: AckPhase,
    /// True while acks and losses belong to a probe.
    pub probing_sample: bool,
    /// True if the last probe found too much data in flight.
    pub too_high: bool,
    /// True if the last probe stopped at the bound because the one before was too high.
    pub precautionary: bool,
    started_at: Time,
    pub wait: Span,
    /// Value of the round counter from which the rounds between probes count.
    pub rounds_from: u64,
    up_rounds: u32,
    acked: f64,
    per_increment: f64,
    /// Number of waits drawn.
    draws: u64,
}

impl Probe {
    /// Ends the probe, if there is one: the next round is the last that reports about it.
    pub(super) fn stop(&mut self) {
        self.phase = AckPhase::Stopping;
    }
}

impl Bbr3 {
    /// StartProbeBW_DOWN.
    pub(super) fn start_down(&mut self, now: Time) {
        self.path.reset_congestion();
        self.probe.per_increment = f64::INFINITY;
        // PickProbeWait: 2 to 3 s, and a lead of no or one round.
        self.probe.draws += 1;
        let drawn = random::mix(self.seed.wrapping_add(self.probe.draws));
        self.probe.wait = Span::s(2) + Span(drawn % 1_000_000_000);
        let lead = drawn >> 63;
        self.probe.rounds_from = self.path.round.saturating_sub(lead);
        self.probe.started_at = now;
        self.probe.stop();
        self.path.start_round(self.rates.delivered());
        self.state = Bbr3State::Down;
    }

    /// StartProbeBW_REFILL.
    fn start_refill(&mut self) {
        self.path.reset_short_term();
        (self.probe.up_rounds, self.probe.acked) = (0, 0.0);
        (self.probe.precautionary, self.probe.phase) = (false, AckPhase::Refilling);
        self.path.start_round(self.rates.delivered());
        self.state = Bbr3State::Refill;
    }

    /// StartProbeBW_UP.
    fn start_up(&mut self, cwnd: u64, rate: f64) {
        self.probe.phase = AckPhase::Starting;
        self.path.start_round(self.rates.delivered());
        self.path.reset_full_bw(rate);
        self.state = Bbr3State::Up;
        self.raise_slope(cwnd);
    }

    /// RaiseInflightLongtermSlope.
    pub(super) fn raise_slope(&mut self, cwnd: u64) {
        let growth = f64::from(1u32 << self.probe.up_rounds);
        self.probe.up_rounds = (self.probe.up_rounds + 1).min(30);
        self.probe.per_increment = (cwnd as f64 / growth).max(self.mss as f64);
    }

    /// UpdateProbeBWCyclePhase.
    pub(super) fn advance_probe_bw(&mut self, window: &Window, ack: &ProcessedAck, s: &RateSample) {
        if !self.path.full_reached || self.adapt_long_term(window, ack, s) {
            return;
        }
        // Linux compares the data in flight before the ack.
        let acked = if self.is_linux() { s.news + ack.newly_lost } else { 0 };
        let flight = ack.flight + acked;
        match self.state {
            Bbr3State::Down => {
                if self.is_time_to_probe(window, ack.now) {
                    self.start_refill();
                } else if self.is_time_to_cruise(flight) {
                    self.start_cruise();
                }
            }
            Bbr3State::Cruise if self.is_time_to_probe(window, ack.now) => self.start_refill(),
            Bbr3State::Refill if self.path.round_start => {
                self.probe.probing_sample = true;
                self.start_up(window.cwnd, s.rate);
            }
            Bbr3State::Up => {
                let ends = self.is_time_to_go_down(window, flight, s);
                if ends {
                    self.probe.too_high = false;
                    self.start_down(ack.now);
                }
            }
            _ => {}
        }
    }

    /// StartProbeBW_CRUISE.
    pub(super) fn start_cruise(&mut self) {
        if self.is_linux() && self.path.inflight_short.is_finite() {
            self.path.inflight_short = self.path.inflight_short.min(self.path.inflight_long);
        }
        self.state = Bbr3State::Cruise;
    }

    /// TargetInflight, bytes.
    fn target_inflight(&self, cwnd: u64) -> f64 {
        let bdp = self.bdp(self.path.bw, 1.0);
        let bdp = if self.is_linux() { self.with_bursts(bdp) } else { bdp };
        bdp.min(cwnd as f64)
    }

    /// IsTimeToProbeBW.
    pub(super) fn is_time_to_probe(&self, window: &Window, now: Time) -> bool {
        let rounds = self.path.round - self.probe.rounds_from.min(self.path.round);
        let reno = self.target_inflight(window.cwnd) / window.mss as f64;
        now > self.probe.started_at + self.probe.wait
            || rounds as f64 >= reno.min(MOST_ROUNDS as f64)
    }

    /// IsTimeToCruise.
    fn is_time_to_cruise(&self, flight: u64) -> bool {
        let bdp = self.with_quantum(self.bdp(self.path.max_bw.get(), 1.0));
        flight as f64 <= self.path.with_headroom(&self.params, self.mss).min(bdp)
    }

    /// IsTimeToGoDown.
    pub(super) fn is_time_to_go_down(
        &mut self,
        window: &Window,
        flight: u64,
        s: &RateSample,
    ) -> bool {
        if self.probe.too_high && flight as f64 >= self.path.inflight_long {
            self.probe.precautionary = true;
            return true;
        }
        if self.path.is_cwnd_limited() && window.cwnd as f64 >= self.path.inflight_long {
            self.path.reset_full_bw(s.rate); // limited by the bound, not by the path
            return false;
        }
        self.path.full_now
    }

    /// AdaptLongTermModel; returns true if it changed the state.
    pub(super) fn adapt_long_term(
        &mut self,
        window: &Window,
        ack: &ProcessedAck,
        s: &RateSample,
    ) -> bool {
        if self.probe.phase == AckPhase::Starting && self.path.round_start {
            self.probe.phase = AckPhase::Feedback;
        }
        if self.probe.phase == AckPhase::Stopping && self.path.round_start {
            (self.probe.probing_sample, self.probe.phase) = (false, AckPhase::Init);
            if self.state.is_probe_bw() {
                self.path.cycle += u64::from(!s.starved);
                if self.probe.precautionary && !self.probe.too_high {
                    self.start_refill();
                    return true;
                }
            }
        }
        if self.is_linux() && self.ends_probe(ack, s) {
            return false;
        }
        let bounded = self.path.inflight_long.is_finite();
        if bounded && !is_too_high(&self.params, s.lost, s.in_flight) {
            self.path.inflight_long = self.path.inflight_long.max(s.in_flight as f64);
            if self.state == Bbr3State::Up {
                self.raise_inflight_long(window, s.news);
            }
        }
        false
    }

    /// ProbeInflightLongtermUpward.
    pub(super) fn raise_inflight_long(&mut self, window: &Window, news: u64) {
        let full = self.path.is_cwnd_limited() && window.cwnd as f64 >= self.path.inflight_long;
        if !full {
            return;
        }
        self.probe.acked += news as f64;
        let steps = (self.probe.acked / self.probe.per_increment).floor();
        if steps >= 1.0 {
            self.probe.acked -= steps * self.probe.per_increment;
            self.path.inflight_long += steps * self.mss as f64;
        }
        if self.path.round_start {
            self.raise_slope(window.cwnd);
        }
    }

    /// HandleLostPacket, HandleInflightTooHigh.
    pub(super) fn on_lost(&mut self, sent: &SentSegment, lost: &LostSegment) {
        if !self.is_linux() {
            self.path.note_loss((sent.seq, sent.end), self.rates.delivered());
        }
        if !self.probe.probing_sample || !is_too_high(&self.params, lost.lost, lost.in_flight) {
            return;
        }
        // InflightAtLoss: data in flight when losses crossed the threshold.
        let thresh = self.params.loss_thresh;
        let before = lost.in_flight.saturating_sub(lost.bytes) as f64;
        let lost_before = lost.lost.saturating_sub(lost.bytes) as f64;
        let prefix = (thresh * before - lost_before) / (1.0 - thresh).max(f64::MIN_POSITIVE);
        let prefix = if self.is_linux() { prefix.max(0.0) } else { prefix };
        self.end_probe(sent.now, before + prefix, lost.starved);
    }

    /// HandleInflightTooHigh, with the `inflight` at which it was.
    pub(super) fn end_probe(&mut self, now: Time, inflight: f64, starved: bool) {
        (self.probe.too_high, self.probe.probing_sample) = (true, false);
        if !starved {
            let target = self.target_inflight(self.last_cwnd);
            let bound = inflight.max(target * self.params.beta);
            self.path.inflight_long = self.whole(bound);
        }
        if self.state == Bbr3State::Up {
            self.start_down(now);
        }
    }

    /// CheckProbeRTT.
    pub(super) fn check_probe_rtt(&mut self, now: Time, window: &mut Window, flight: u64) {
        let expired = self.path.probe_rtt_expired;
        if self.state != Bbr3State::ProbeRtt && expired && !self.restarted {
            self.save_cwnd(window);
            (self.state, self.probe_rtt_until) = (Bbr3State::ProbeRtt, None);
            self.probe.stop();
            self.path.start_round(self.rates.delivered());
        }
        if self.state != Bbr3State::ProbeRtt {
            return;
        }
        self.rates.starve(flight); // samples with a small window do not show the bandwidth
        match self.probe_rtt_until {
            None if flight as f64 <= self.probe_rtt_cwnd() => {
                self.probe_rtt_until = Some(now + self.params.probe_rtt);
                self.probe_rtt_round = false;
                self.path.start_round(self.rates.delivered());
            }
            None => {}
            Some(until) => {
                self.probe_rtt_round |= self.path.round_start;
                if self.probe_rtt_round && now > until {
                    self.path.probe_rtt_at = now;
                    window.cwnd = window.cwnd.max(self.prior_cwnd);
                    self.leave_probe_rtt(now);
                }
            }
        }
    }

    /// ExitProbeRTT.
    fn leave_probe_rtt(&mut self, now: Time) {
        self.path.reset_short_term();
        if self.path.full_reached {
            self.start_down(now);
            self.state = Bbr3State::Cruise;
        } else {
            self.state = Bbr3State::Startup;
        }
    }
}
