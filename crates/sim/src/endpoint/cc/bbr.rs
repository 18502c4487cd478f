//! BBR version 1: paces segments at the measured delivery rate of the path, with a window of twice
//! the bandwidth-delay product at the shortest round-trip time.
//!
//! **Source**: N. Cardwell, Y. Cheng, C. S. Gunn, S. H. Yeganeh, V. Jacobson, "BBR:
//! Congestion-Based Congestion Control", ACM Queue 14(5), 2016;
//! draft-cardwell-iccrg-bbr-congestion-control-00. Constants are Linux's (tcp_bbr).
//!
//! **Symbols** `BtlBw` (`bw`), `RTprop`, `pacing_gain`, `cwnd_gain`, `full_bw`, `prior_cwnd`.
//!
//! `bbr/linux.rs` has the rules of Linux that the draft does not have (`variant = "linux"`).
//!
//! **Departures**: in the variant of the draft, no allowance for aggregated acks, and losses that a
//! timeout declares count with the next ack. The phase in which ProbeBw starts is drawn once per
//! sender; later ones follow it by the golden ratio. Losses per ack, by which Linux reduces the
//! window and detects policers (`cc/bbr_policer.rs`), are known with `rack` only. BBRv1 ignores ECN
//! marks, so ECN is refused. The sender of the authors detects lost retransmissions by time (RACK);
//! without `rack`, ours needs a timeout (RFC 6675), so its goodput under heavy random loss (3 % and
//! more) is far lower.

mod linux;
mod probe_rtt;

use super::bbr_aggregation::AckAggregation;
use super::bbr_filter::WindowedMax;
use super::bbr_policer::PolicerDetector;
use super::bursts::{self, with_bursts};
use super::{
    CongestionControl, CongestionSignal, ControlParams, NewDataAck, ProcessedAck, RateEstimator,
    RateSample, RecoveryState, SentSegment, TcpEntry, Window,
};
use crate::endpoint::common_params::{CommonParams, LossRecovery, Profile};
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Span, Time};
use sojourn_aqm::{choice, params};

choice! {
    /// Variant of BBR version 1.
    pub enum BbrVariant {
        /// draft-cardwell-iccrg-bbr-congestion-control-00.
        Rfc = "rfc",
        /// Linux.
        Linux = "linux",
    }
}

params! {
    /// Parameters of [`Bbr`].
    pub struct BbrParams {
        /// Gain of pacing rate and window in Startup: 2/ln 2 doubles the rate per round trip.
        startup_gain: f64 = 2.885, [1.0 => 10.0], "BBRHighGain", ["high_gain"];
        /// Window in bandwidth-delay products while probing.
        cwnd_gain: f64 = 2.0, [1.0 => 10.0], "cwnd_gain", [];
        /// Pacing rate as a fraction of the estimate; below 1, queues drain.
        margin: f64 = 0.99, [0.5 => 1.0], "", ["pacing_margin"];
        /// Length of the max filter of the bandwidth, round trips.
        bw_rounds: u64 = 10, [1 => 1000], "BtlBwFilterLen", [];
        /// Length of the min filter of the round-trip time.
        rtprop_window: Span = Span::s(10), [Span::ms(1) => Span::s(1000)], "RTpropFilterLen", [];
        /// Duration of ProbeRtt.
        probe_rtt: Span = Span::ms(200), [Span(1) => Span::s(10)], "ProbeRTTDuration", [];
        /// If true, the window has room for three bursts, as in Linux; if false, for three
        /// segments. A burst has the segments that are sent in about a millisecond.
        tso: bool = false, [], "tso_segs_goal", [];
        /// Rules of the draft of version 1 (rfc), or of Linux's tcp_bbr (linux). In Linux, a sample
        /// over less than the minimum round-trip time is ignored, only an ack that reports a loss
        /// ends the probing phase, and the window has room for aggregated acks.
        variant: BbrVariant = BbrVariant::Rfc, [], "", [];
    }
}

/// Entry in the list of TCPs.
pub(super) const TCP: TcpEntry = TcpEntry {
    name: "bbr",
    aliases: &["bbr1", "bbrv1"],
    about: "paces at the measured delivery rate of the path; not in ns2",
    source: "Cardwell et al., BBR: Congestion-Based Congestion Control, ACM Queue 2016",
    profile: Profile::Linux,
    recovery: LossRecovery::Sack,
    control: || ControlParams::Bbr(BbrParams::default()),
};

/// State of the BBR state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
pub enum BbrState {
    /// Doubles the rate per round trip until it stops growing.
    Startup,
    /// Drains the queue created in Startup.
    Drain,
    /// Cycles pacing gains, probing for more bandwidth in every eighth round trip.
    ProbeBw,
    /// Uses a minimal window to measure the round-trip time without queueing.
    ProbeRtt,
}

/// Pacing gains of ProbeBw, one per minimum round-trip time.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Startup ends when the rate has grown by less than this factor for this many rounds in a row.
const FULL: (f64, u32) = (1.25, 3);
/// Minimum window, segments.
const LEAST: u64 = 4;
/// Segments added to the bandwidth-delay product to cover delayed acks and timer granularity.
const EXTRA: f64 = 3.0;
/// The fractional part of the golden ratio.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// BBR state.
#[derive(Clone, Debug, Snapshot)]
pub struct Bbr {
    params: BbrParams,
    rates: RateEstimator,
    mode: BbrState,
    bw: WindowedMax,
    /// Number of the round.
    round: u64,
    /// Total delivered bytes at which the round ends.
    round_end: u64,
    /// True if the current ack started a round.
    round_start: bool,
    rtprop: Option<Span>,
    rtprop_at: Time,
    /// Pacing rate, bytes of payload per second.
    pacing_rate: f64,
    full_bw: f64,
    full_rounds: u32,
    /// True once the path was full; a loss that was none does not change it.
    full_bw_reached: bool,
    phase: usize,
    phase_at: Time,
    /// Earliest end of ProbeRtt, once the window is minimal.
    probe_until: Option<Time>,
    /// True if a round has passed in ProbeRtt.
    probe_round: bool,
    /// True during packet conservation, the first round of a recovery.
    conserves: bool,
    prior_cwnd: u64,
    was: RecoveryState,
    /// True if a loss was detected since the last ack.
    lost: bool,
    /// True if a timeout has expired since the last ack.
    timed_out: bool,
    policer: PolicerDetector,
    aggregation: AckAggregation,
    /// Minimum round-trip time of the connection.
    min_rtt: Option<Span>,
    /// True if the sender restarted from idle.
    restarted: bool,
    initial_window: u64,
    /// Value in [0, 1) from which the next phase is chosen.
    draw: f64,
}

impl Bbr {
    /// Creates a control; `draw` in [0, 1) selects the phase in which probing starts.
    pub fn of(params: BbrParams, draw: f64) -> Bbr {
        Bbr {
            rates: RateEstimator::default(),
            mode: BbrState::Startup,
            bw: WindowedMax::new(params.bw_rounds),
            params,
            round: 0,
            round_end: 0,
            round_start: false,
            rtprop: None,
            rtprop_at: Time::ZERO,
            pacing_rate: f64::INFINITY,
            full_bw: 0.0,
            full_rounds: 0,
            full_bw_reached: false,
            phase: 0,
            phase_at: Time::ZERO,
            probe_until: None,
            probe_round: false,
            conserves: false,
            prior_cwnd: 0,
            was: RecoveryState::Open,
            lost: false,
            timed_out: false,
            policer: PolicerDetector::default(),
            aggregation: AckAggregation::default(),
            min_rtt: None,
            restarted: false,
            initial_window: 0,
            draw,
        }
    }

    /// State of the BBR state machine.
    pub fn mode(&self) -> BbrState {
        self.mode
    }

    /// Pacing rate, bytes of payload per second.
    pub fn pacing_rate(&self) -> f64 {
        self.pacing_rate
    }

    /// Bottleneck bandwidth estimate `BtlBw`, bytes of payload per second.
    pub fn bandwidth(&self) -> f64 {
        self.bw.get()
    }

    /// Minimum round-trip time estimate `RTprop`.
    pub fn rtprop(&self) -> Option<Span> {
        self.rtprop
    }

    /// Current pacing gain.
    pub fn pacing_gain(&self) -> f64 {
        match self.mode {
            BbrState::Startup => self.params.startup_gain,
            BbrState::Drain => 1.0 / self.params.startup_gain,
            BbrState::ProbeBw if self.policer.rate().is_some() => 1.0,
            BbrState::ProbeBw => CYCLE[self.phase],
            BbrState::ProbeRtt => 1.0,
        }
    }

    /// Bandwidth to send at, bytes of payload per second: the rate of a policer, or `BtlBw`.
    fn bandwidth_in_use(&self) -> f64 {
        self.policer.rate().unwrap_or(self.bw.get())
    }

    fn cwnd_gain(&self) -> f64 {
        match self.mode {
            BbrState::Startup | BbrState::Drain => self.params.startup_gain,
            BbrState::ProbeBw => self.params.cwnd_gain,
            BbrState::ProbeRtt => 1.0,
        }
    }

    fn path_is_full(&self) -> bool {
        self.full_bw_reached
    }

    /// Target inflight at `bw`: `gain` bandwidth-delay products plus a small allowance, bytes.
    fn inflight(&self, bw: f64, gain: f64, mss: u64) -> u64 {
        match self.rtprop {
            Some(rtt) if bw > 0.0 => {
                let products = gain * bw * rtt.as_secs();
                if self.params.tso {
                    let probing = self.mode == BbrState::ProbeBw && self.phase == 0;
                    return with_bursts(products, self.pacing_rate, mss, probing);
                }
                cast::trunc(products + EXTRA * mss as f64)
            }
            _ => cast::trunc(gain * self.initial_window as f64),
        }
    }

    /// Updates the round and the bandwidth estimate.
    fn update_bandwidth(&mut self, s: &RateSample) {
        self.round_start = s.prior_delivered >= self.round_end;
        if self.round_start {
            self.round_end = self.rates.delivered();
            self.round += 1;
            self.conserves = false;
        }
        // A sample over less than one round trip reflects a burst of acks, not the path.
        let long = |rtt| s.interval >= rtt;
        let long = s.interval.0 > 0 && (self.is_linux() || self.rtprop.is_none_or(long));
        if long && (!s.starved || s.rate >= self.bw.get()) {
            self.bw.add(self.round, s.rate);
        }
    }

    /// Advances the ProbeBw gain cycle when the current phase is over.
    fn advance_gain_cycle(&mut self, now: Time, prior_flight: u64, mss: u64, lost: bool) {
        let gain = self.pacing_gain();
        let due = self.rtprop.is_some_and(|rtt| now.since(self.phase_at) > rtt);
        let next = if gain > 1.0 {
            due && (lost || prior_flight >= self.inflight(self.bw.get(), gain, mss))
        } else if gain < 1.0 {
            due || prior_flight <= self.inflight(self.bw.get(), 1.0, mss)
        } else {
            due
        };
        if next {
            (self.phase, self.phase_at) = ((self.phase + 1) % CYCLE.len(), now);
        }
    }

    /// Checks if Startup has filled the path.
    fn check_full_pipe(&mut self, s: &RateSample) {
        if self.path_is_full() || !self.round_start || s.starved {
            return;
        }
        if self.bw.get() >= self.full_bw * FULL.0 {
            (self.full_bw, self.full_rounds) = (self.bw.get(), 0);
        } else {
            self.full_rounds += 1;
            self.full_bw_reached = self.full_rounds >= FULL.1;
        }
    }

    fn enter_probe_bw(&mut self, now: Time) {
        // Any phase except the second (gain below 1).
        let drawn = cast::index(cast::trunc(self.draw * 7.0));
        self.draw = (self.draw + GOLDEN) % 1.0;
        (self.mode, self.phase_at) = (BbrState::ProbeBw, now);
        self.phase = if drawn == 0 { 0 } else { drawn + 1 };
    }

    fn save_cwnd(&mut self, window: &Window) {
        let usual = self.was == RecoveryState::Open && self.mode != BbrState::ProbeRtt;
        self.prior_cwnd = if usual { window.cwnd } else { self.prior_cwnd.max(window.cwnd) };
    }

    /// Sets the window for an ack that delivered `news` bytes.
    fn set_window(&mut self, window: &mut Window, ack: &ProcessedAck, news: u64) {
        if news > 0 {
            self.follow_delivery(window, ack, news);
        }
        if self.mode == BbrState::ProbeRtt {
            window.cwnd = window.cwnd.min(LEAST * window.mss);
        }
        window.cwnd = window.cwnd.max(window.mss);
    }

    fn follow_delivery(&mut self, window: &mut Window, ack: &ProcessedAck, news: u64) {
        let before = std::mem::replace(&mut self.was, ack.state);
        // An ack of n segments releases at most 2 n: what was lost is deducted first.
        window.cwnd = window.cwnd.saturating_sub(ack.newly_lost).max(window.mss);
        if ack.state == RecoveryState::Recovery && before != RecoveryState::Recovery {
            (self.conserves, self.round_end) = (true, self.rates.delivered());
            window.cwnd = ack.flight; // what was delivered is added below
        } else if ack.state == RecoveryState::Open && before != RecoveryState::Open {
            self.conserves = false;
            window.cwnd = window.cwnd.max(self.prior_cwnd);
        }
        if self.conserves {
            window.cwnd = window.cwnd.max(ack.flight + news);
        } else {
            let (bw, gain) = (self.bandwidth_in_use(), self.cwnd_gain());
            let target =
                self.inflight(bw, gain, window.mss) + self.aggregation_allowance(window.mss);
            if self.path_is_full() {
                window.cwnd = (window.cwnd + news).min(target);
            } else if window.cwnd < target || self.rates.delivered() < self.initial_window {
                window.cwnd += news;
            }
            window.cwnd = window.cwnd.max(LEAST * window.mss);
        }
    }
}

impl CongestionControl for Bbr {
    type Params = BbrParams;

    fn new(params: &BbrParams, _: &CommonParams, rng: &mut dyn Random) -> Bbr {
        Bbr::of(params.clone(), rng.uniform())
    }

    fn reset(&mut self) {
        let mut rates = std::mem::take(&mut self.rates);
        rates.reset();
        self.bw.reset();
        let bw = std::mem::replace(&mut self.bw, WindowedMax::new(0));
        *self = Bbr { rates, bw, ..Bbr::of(self.params.clone(), self.draw) };
    }

    fn on_ack(&mut self, _: &mut Window, _: &NewDataAck) {}

    fn on_congestion(&mut self, _: Time, window: &Window, _: u64, cause: CongestionSignal) -> u64 {
        self.save_cwnd(window);
        self.lost = true;
        if cause == CongestionSignal::Timeout {
            (self.full_bw, self.timed_out) = (0.0, true);
            (self.was, self.conserves) = (RecoveryState::Loss, false);
        }
        window.cwnd.max(2 * window.mss)
    }

    fn keeps_window_when_idle(&self) -> bool {
        true
    }

    fn on_established(&mut self, now: Time, window: &Window, rtt: Option<Span>) {
        self.initial_window = window.cwnd;
        (self.rtprop, self.rtprop_at, self.min_rtt) = (rtt, now, rtt);
        let rtt = rtt.unwrap_or(Span::ms(1)).max(Span(1));
        let gain =
            self.params.startup_gain * if self.is_linux() { self.params.margin } else { 1.0 };
        self.pacing_rate = gain * window.cwnd as f64 / rtt.as_secs();
    }

    fn on_delivered(&mut self, now: Time, from: u64, to: u64) {
        self.rates.on_delivered(now, from, to);
    }

    fn on_undo(&mut self, _: &mut Window, _: u64) {
        self.forget_loss();
    }

    fn on_timeout_losses(&mut self, _: &Window, lost: u64) {
        if self.is_linux() {
            (self.full_bw, self.was) = (0.0, RecoveryState::Loss);
            self.end_round_by_timeout(lost);
        }
    }

    fn recovers_within_window(&self) -> bool {
        self.is_linux()
    }

    fn on_ack_processed(&mut self, window: &mut Window, ack: &ProcessedAck) {
        debug_assert_eq!(self.rates.delivered(), ack.delivered, "every byte once");
        self.round_start = false;
        let sample = self.rates.take_sample(ack.now);
        let news = sample.map_or(0, |s| s.news);
        let lost = std::mem::take(&mut self.lost) || ack.state != RecoveryState::Open;
        let timed_out = std::mem::take(&mut self.timed_out) && !self.is_linux();
        let (linux, mss) = (self.is_linux(), window.mss);
        let rtt = self.take_rtt(ack, sample.as_ref());
        if let Some(s) = sample.as_ref().filter(|s| self.is_valid(s)) {
            self.update_bandwidth(s);
            self.detect_policer(ack, s, timed_out);
            if linux {
                self.measure_aggregation(ack.now, window, news);
            }
        }
        if self.mode == BbrState::ProbeBw {
            if linux {
                self.advance_linux_cycle(ack, news, mss);
            } else if sample.is_some() {
                self.advance_gain_cycle(ack.now, ack.flight + news, mss, lost);
            }
        }
        if let Some(s) = &sample {
            self.check_full_pipe(s);
        }
        if self.mode == BbrState::Startup && self.path_is_full() {
            self.mode = BbrState::Drain;
        }
        let flight =
            if linux { self.in_network_at_departure(ack, ack.flight, mss) } else { ack.flight };
        if self.mode == BbrState::Drain && flight <= self.inflight(self.bw.get(), 1.0, mss) {
            self.enter_probe_bw(ack.now);
        }
        self.update_rtprop(ack.now, rtt, window, ack.flight);
        self.restarted &= news == 0;
        let rate = self.pacing_gain() * self.bandwidth_in_use() * self.params.margin;
        if rate > 0.0 && (self.path_is_full() || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
        self.set_window(window, ack, news);
    }

    fn on_sent(&mut self, sent: &SentSegment) {
        if sent.was_idle && self.rates.on_app_limited() {
            self.restarted = true;
            self.aggregation.restart(sent.now);
            if self.mode == BbrState::ProbeBw && self.bw.get() > 0.0 {
                self.pacing_rate = self.bandwidth_in_use() * self.params.margin;
            }
        }
        self.rates.on_sent(sent);
    }

    fn own_pacing_rate(&self) -> Option<f64> {
        Some(self.pacing_rate)
    }

    fn burst_at(&self, rate: f64, min_rtt: Option<Span>, mss: u64) -> u64 {
        bursts::segments(rate, min_rtt, mss, bursts::least_of_bbr(rate))
    }

    fn on_app_limited(&mut self, flight: u64) {
        self.rates.starve(flight);
    }
}

#[cfg(test)]
mod tests;
