//! BBR version 3: like version 1, but losses bound the rate and the data in flight, and it probes
//! for bandwidth every few seconds instead of every eight round trips.
//!
//! **Source**: draft-ietf-ccwg-bbr (August 2026), sections "Startup" to "Updating Control
//! Parameters"; the pseudocode of the draft decides where text and pseudocode differ.
//!
//! **Symbols**
//!
//! | draft | here |
//! |---|---|
//! | max_bw, bw_shortterm, bw | `max_bw`, `bw_short`, `bw` |
//! | inflight_longterm, inflight_shortterm | `inflight_long`, `inflight_short` |
//! | is_bw_probe_sample, prev_probe_too_high | `probing_sample`, `too_high` |
//! | prev_probe_precautionary | `precautionary` |
//! | extra_acked | `extra_acked` |
//!
//! `bbr3/model.rs` estimates the path, `bbr3/probe.rs` probes for bandwidth. `bbr3/linux.rs` has
//! the rules of Google's kernel (`variant = "linux"`).
//!
//! **Departures**: a segment counts as lost when it is retransmitted. In the variant of the draft,
//! spurious losses are never undone, and `send_quantum` counts once in the window, since segments
//! are sent one by one. The draft defines no response to ECN marks, so ECN is refused. The random
//! waits of a flow come from one number drawn at its start.
//!
//! **Cost**: one record per segment in flight.

mod linux;
mod model;
mod probe;

use super::bbr_filter::WindowedMax;
use super::{
    CongestionControl, CongestionSignal, ControlParams, NewDataAck, ProcessedAck, RateEstimator,
    RateSample, RecoveryState, SentSegment, TcpEntry, Window,
};
use crate::endpoint::common_params::{CommonParams, LossRecovery, Profile};
use linux::UndoBounds;
use model::PathModel;
use probe::Probe;
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Span, Time};
use sojourn_aqm::{choice, params};

choice! {
    /// Variant of BBRv3.
    pub enum Bbr3Variant {
        /// draft-ietf-ccwg-bbr.
        Draft = "draft",
        /// Google's kernel, branch v3.
        Linux = "linux",
    }
}

params! {
    /// Parameters of [`Bbr3`].
    pub struct Bbr3Params {
        /// Gain of the pacing rate in Startup.
        startup_gain: f64 = 2.77, [1.0 => 10.0], "StartupPacingGain", [];
        /// Gain of the pacing rate in Drain.
        drain_gain: f64 = 0.5, [0.1 => 1.0], "DrainPacingGain", [];
        /// Window in bandwidth-delay products.
        cwnd_gain: f64 = 2.0, [1.0 => 10.0], "DefaultCwndGain", [];
        /// Pacing rate as a fraction of the estimate; below 1, queues drain.
        margin: f64 = 0.99, [0.5 => 1.0], "", ["pacing_margin"];
        /// Fraction of the data in flight above which a loss rate is too high.
        loss_thresh: f64 = 0.02, [0.0 => 1.0], "LossThresh", [];
        /// Bounds after a loss divided by those before.
        beta: f64 = 0.7, [0.1 => 1.0], "Beta", [];
        /// Fraction of inflight_longterm that is left to other flows between probes.
        headroom: f64 = 0.15, [0.0 => 0.9], "Headroom", [];
        /// Length of the min filter of the round-trip time.
        min_rtt_window: Span = Span::s(10), [Span::ms(1) => Span::s(1000)], "MinRTTFilterLen", [];
        /// Time without a new minimum after which ProbeRtt starts.
        probe_rtt_interval: Span = Span::s(5), [Span::ms(1) => Span::s(1000)],
            "ProbeRTTInterval", [];
        /// Duration of ProbeRtt.
        probe_rtt: Span = Span::ms(200), [Span(1) => Span::s(10)], "ProbeRTTDuration", [];
        /// Rules of the draft (draft), or of Google's kernel (linux).
        variant: Bbr3Variant = Bbr3Variant::Draft, [], "", [];
    }
}

/// Entry in the list of TCPs.
pub(super) const TCP: TcpEntry = TcpEntry {
    name: "bbr3",
    aliases: &["bbrv3"],
    about: "as bbr, with bounds from losses and longer pauses between probes; not in ns2",
    source: "draft-ietf-ccwg-bbr",
    profile: Profile::Linux,
    recovery: LossRecovery::Sack,
    control: || ControlParams::Bbr3(Bbr3Params::default()),
};

/// State of the BBRv3 state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
#[non_exhaustive]
pub enum Bbr3State {
    /// Doubles the rate per round trip until it stops growing or losses are high.
    Startup,
    /// Drains the queue created in Startup.
    Drain,
    /// ProbeBW_DOWN: leaves room in the queue.
    Down,
    /// ProbeBW_CRUISE: keeps the rate until the next probe.
    Cruise,
    /// ProbeBW_REFILL: fills the path for a round trip.
    Refill,
    /// ProbeBW_UP: probes for more bandwidth.
    Up,
    /// Uses half a bandwidth-delay product to measure the round-trip time without queueing.
    ProbeRtt,
}

impl Bbr3State {
    /// True in one of the four states of ProbeBW.
    fn is_probe_bw(self) -> bool {
        matches!(self, Bbr3State::Down | Bbr3State::Cruise | Bbr3State::Refill | Bbr3State::Up)
    }
}

/// Minimum window (MinPipeCwnd), segments.
const LEAST: u64 = 4;
/// Upper bound of `send_quantum`, bytes.
const LARGEST_QUANTUM: f64 = 65_536.0;

/// BBRv3 state.
#[derive(Clone, Debug, Snapshot)]
pub struct Bbr3 {
    params: Bbr3Params,
    rates: RateEstimator,
    state: Bbr3State,
    path: PathModel,
    probe: Probe,
    drain_start_round: u64,
    /// Earliest end of ProbeRtt, once the window is small.
    probe_rtt_until: Option<Time>,
    /// True if a round has passed in ProbeRtt.
    probe_rtt_round: bool,
    prior_cwnd: u64,
    undo_bounds: UndoBounds,
    /// Window set last, bytes.
    last_cwnd: u64,
    was: RecoveryState,
    restarted: bool,
    /// Pacing rate, bytes of payload per second.
    pacing_rate: f64,
    initial_window: u64,
    mss: u64,
    seed: u64,
}

impl Bbr3 {
    /// Creates a control; `seed` decides the random waits between probes.
    pub fn of(params: Bbr3Params, seed: u64) -> Bbr3 {
        Bbr3 {
            params,
            rates: RateEstimator::default(),
            state: Bbr3State::Startup,
            path: PathModel::default(),
            probe: Probe::default(),
            drain_start_round: 0,
            probe_rtt_until: None,
            probe_rtt_round: false,
            prior_cwnd: 0,
            undo_bounds: UndoBounds::default(),
            last_cwnd: 0,
            was: RecoveryState::Open,
            restarted: false,
            pacing_rate: f64::INFINITY,
            initial_window: 0,
            mss: 1,
            seed,
        }
    }

    fn is_linux(&self) -> bool {
        self.params.variant == Bbr3Variant::Linux
    }

    /// State of the state machine.
    pub fn state(&self) -> Bbr3State {
        self.state
    }

    /// Pacing rate, bytes of payload per second.
    pub fn pacing_rate(&self) -> f64 {
        self.pacing_rate
    }

    /// Bandwidth estimate `bw`, bytes of payload per second.
    pub fn bandwidth(&self) -> f64 {
        self.path.bw
    }

    /// Minimum round-trip time estimate.
    pub fn min_rtt(&self) -> Option<Span> {
        self.path.min_rtt
    }

    /// Upper bound of the data in flight from past probes (inflight_longterm), bytes; infinite
    /// before the first loss.
    pub fn inflight_longterm(&self) -> f64 {
        self.path.inflight_long
    }

    /// Pacing gain of the current state.
    pub fn pacing_gain(&self) -> f64 {
        match self.state {
            Bbr3State::Startup => self.params.startup_gain,
            Bbr3State::Drain => self.params.drain_gain,
            Bbr3State::Down if self.is_linux() => 232.0 / 256.0,
            Bbr3State::Down => 0.9,
            Bbr3State::Up => 1.25,
            Bbr3State::Cruise | Bbr3State::Refill | Bbr3State::ProbeRtt => 1.0,
        }
    }

    fn cwnd_gain(&self) -> f64 {
        match self.state {
            Bbr3State::Up => self.params.cwnd_gain + 0.25,
            Bbr3State::ProbeRtt => 0.5,
            _ => self.params.cwnd_gain,
        }
    }

    /// `gain` bandwidth-delay products at the rate `bw`, bytes.
    fn bdp(&self, bw: f64, gain: f64) -> f64 {
        match self.path.min_rtt {
            Some(rtt) => gain * bw * rtt.as_secs(),
            None => gain * self.initial_window as f64,
        }
    }

    /// Window for `cap` bytes in flight: at least `send_quantum` and four segments.
    fn with_quantum(&self, cap: f64) -> f64 {
        if self.is_linux() {
            return self.with_bursts(cap);
        }
        let mss = self.mss as f64;
        let quantum = (self.pacing_rate * 1e-3).min(LARGEST_QUANTUM).max(2.0 * mss);
        let up = if self.state == Bbr3State::Up { 2.0 * mss } else { 0.0 };
        cap.max(quantum).max((LEAST * self.mss) as f64) + up
    }

    /// Window during ProbeRtt, bytes.
    fn probe_rtt_cwnd(&self) -> f64 {
        self.bdp(self.path.bw, 0.5).max((LEAST * self.mss) as f64)
    }

    /// CheckFullBWReached.
    fn check_full_bw(&mut self, s: &RateSample) {
        // Linux sees growth in the middle of a round, too.
        let linux = self.is_linux();
        let path = &mut self.path;
        if path.full_now || (!path.round_start && !linux) || s.starved {
            return;
        }
        if s.rate >= path.full_bw * 1.25 {
            path.reset_full_bw(s.rate);
            return;
        }
        if !path.round_start {
            return;
        }
        path.full_rounds += 1;
        path.full_now = path.full_rounds >= 3;
        path.full_reached |= path.full_now;
    }

    /// CheckStartupDone, CheckDrainDone.
    fn leave_startup(&mut self, ack: &ProcessedAck, s: &RateSample) {
        if self.state == Bbr3State::Startup {
            let recovers = ack.state == RecoveryState::Recovery;
            if recovers && self.path.startup_loss_is_high(&self.params, s) {
                self.path.full_reached = true;
                let bdp = if self.is_linux() {
                    self.with_bursts(self.bdp(self.path.max_bw.get(), 1.0))
                } else {
                    self.bdp(self.path.bw, 1.0)
                };
                self.path.inflight_long = bdp.max(self.path.inflight_latest);
            }
            if self.path.full_reached {
                self.state = Bbr3State::Drain;
                self.drain_start_round = self.path.round;
                if self.is_linux() {
                    self.path.reset_congestion();
                }
            }
        }
        if self.path.loss_round_start {
            self.path.loss_ranges = 0;
        }
        let drained = || ack.flight as f64 <= self.with_quantum(self.bdp(self.path.bw, 1.0));
        if self.state == Bbr3State::Drain
            && (drained() || (!self.is_linux() && self.path.round > self.drain_start_round + 3))
        {
            self.start_down(ack.now);
        }
    }

    fn update_bw(&mut self) {
        self.path.bw = self.path.max_bw.get().min(self.path.bw_short);
    }

    fn save_cwnd(&mut self, window: &Window) {
        let usual = self.was == RecoveryState::Open && self.state != Bbr3State::ProbeRtt;
        self.prior_cwnd = if usual { window.cwnd } else { self.prior_cwnd.max(window.cwnd) };
    }

    /// SetPacingRateWithGain.
    fn set_rate(&mut self, gain: f64) {
        let rate = gain * self.path.bw * self.params.margin;
        if rate > 0.0 && (self.path.full_reached || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    /// SetCwnd, without the bounds of the model.
    fn follow_draft(&mut self, window: &mut Window, ack: &ProcessedAck, news: u64) {
        let before = std::mem::replace(&mut self.was, ack.state);
        if ack.state == RecoveryState::Open && before != RecoveryState::Open {
            window.cwnd = window.cwnd.max(self.prior_cwnd);
        }
        let target = self.bdp(self.path.bw, self.cwnd_gain()) + self.path.extra_acked.get();
        let most = cast::trunc(self.with_quantum(target));
        if self.path.full_reached {
            window.cwnd = (window.cwnd + news).min(most);
        } else if window.cwnd < most || self.rates.delivered() < self.initial_window {
            window.cwnd += news;
        }
        window.cwnd = window.cwnd.max(LEAST * window.mss);
    }

    /// SetCwnd.
    fn set_window(&mut self, window: &mut Window, ack: &ProcessedAck, news: u64) {
        if self.is_linux() {
            self.follow_target(window, ack, news);
        } else {
            self.follow_draft(window, ack, news);
        }
        let least = LEAST * window.mss;
        let path = &self.path;
        let cap = match self.state {
            Bbr3State::Down | Bbr3State::Refill | Bbr3State::Up => path.inflight_long,
            Bbr3State::Cruise => path.with_headroom(&self.params, self.mss),
            Bbr3State::ProbeRtt => {
                self.probe_rtt_cwnd().min(path.with_headroom(&self.params, self.mss))
            }
            Bbr3State::Startup | Bbr3State::Drain => f64::INFINITY,
        };
        let cap = cap.min(path.inflight_short);
        if cap.is_finite() {
            window.cwnd = window.cwnd.min(cast::trunc(cap).max(least));
        }
        self.last_cwnd = window.cwnd;
    }
}

impl CongestionControl for Bbr3 {
    type Params = Bbr3Params;

    fn new(params: &Bbr3Params, _: &CommonParams, rng: &mut dyn Random) -> Bbr3 {
        Bbr3::of(params.clone(), rng.uniform().to_bits())
    }

    fn reset(&mut self) {
        let mut rates = std::mem::take(&mut self.rates);
        rates.reset();
        *self = Bbr3 { rates, ..Bbr3::of(self.params.clone(), self.seed) };
    }

    fn on_ack(&mut self, _: &mut Window, _: &NewDataAck) {}

    fn on_congestion(&mut self, _: Time, window: &Window, _: u64, cause: CongestionSignal) -> u64 {
        self.save_cwnd(window);
        self.undo_bounds = UndoBounds::of(&self.path);
        if cause == CongestionSignal::Timeout {
            self.was = RecoveryState::Loss;
            if self.is_linux() {
                self.on_timeout(window.cwnd);
            }
        }
        window.cwnd.max(2 * window.mss)
    }

    fn on_undo(&mut self, window: &mut Window, prior_cwnd: u64) {
        if self.is_linux() {
            self.undo(window);
        } else {
            window.cwnd = window.cwnd.max(prior_cwnd);
        }
    }

    fn keeps_window_when_idle(&self) -> bool {
        true
    }

    fn on_established(&mut self, now: Time, window: &Window, rtt: Option<Span>) {
        (self.initial_window, self.mss, self.last_cwnd) = (window.cwnd, window.mss, window.cwnd);
        self.path.start(now, rtt);
        let rtt = rtt.unwrap_or(Span::ms(1)).max(Span(1));
        self.pacing_rate = self.params.startup_gain * window.cwnd as f64 / rtt.as_secs();
    }

    fn on_delivered(&mut self, now: Time, from: u64, to: u64) {
        self.rates.on_delivered(now, from, to);
    }

    fn on_ack_processed(&mut self, window: &mut Window, ack: &ProcessedAck) {
        let sample = self.rates.take_sample(ack.now);
        let news = sample.map_or(0, |s| s.news);
        self.path.round_start = false;
        if self.is_linux() {
            self.note_losses_of_ack(ack);
            self.path.loss_round_start = false;
        }
        let valid = sample.filter(|s| !self.is_linux() || self.is_valid(s));
        if let Some(s) = &valid {
            let delivered = self.rates.delivered();
            self.path.note_delivery(s, delivered);
            self.path.update_max_bw(s, delivered);
            self.path.note_window_use(ack.flight + news + window.mss > window.cwnd);
            if self.path.loss_round_start {
                let probes = self.is_probing();
                self.path.adapt_lower_bounds(self.params.beta, window.cwnd, probes);
                self.path.inflight_short = self.whole(self.path.inflight_short);
            }
            if self.is_linux() {
                self.update_bw();
            }
            self.path.update_extra_acked(ack.now, s.news, window.cwnd);
            self.check_full_bw(s);
        }
        if let Some(s) = &sample {
            self.leave_startup(ack, s);
            self.advance_probe_bw(window, ack, s);
        }
        self.path.update_min_rtt(ack.now, sample.and_then(|s| s.rtt), &self.params);
        self.check_probe_rtt(ack.now, window, ack.flight);
        self.restarted &= news == 0;
        if let Some(s) = &valid {
            self.path.advance_latest(s);
        }
        self.update_bw();
        self.set_rate(self.pacing_gain());
        self.set_window(window, ack, news);
    }

    fn on_sent(&mut self, sent: &SentSegment) {
        if sent.was_idle && self.rates.on_app_limited() {
            self.restarted = true;
            self.path.extra_at = sent.now;
            if self.state.is_probe_bw() {
                self.set_rate(1.0);
            }
        }
        if let Some(lost) = self.rates.on_sent(sent) {
            self.on_lost(sent, &lost);
        }
    }

    fn own_pacing_rate(&self) -> Option<f64> {
        Some(self.pacing_rate)
    }

    fn paces_bursts(&self) -> bool {
        self.is_linux()
    }

    fn on_app_limited(&mut self, flight: u64) {
        self.rates.starve(flight);
    }
}

#[cfg(test)]
mod tests;
