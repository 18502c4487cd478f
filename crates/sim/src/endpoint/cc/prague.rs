//! Prague: the L4S sender. Reduces the window by half of the marked fraction, as DCTCP does, but
//! counts marks exactly, grows between marks at a rate that does not depend on the round-trip time,
//! paces, and stays responsive below two segments per round trip.
//!
//! **Source**: TCP Prague of L4STeam for Linux, version 0.7 (`tcp_prague.c`), for the rules and
//! constants; RFC 9331 §4.3 and appendix A.1 for the requirements; RFC 9768 for the feedback.
//!
//! **Symbols**
//!
//! | Linux, RFC | here |
//! |---|---|
//! | frac_cwnd, W | `fraction`: window in segments |
//! | F | marked fraction of a round |
//! | rtt_target, rtt_virt | `virtual_rtt` |
//! | S | `scale` |
//!
//! **Algorithm**
//!
//! 1. Once per round trip, at least `virtual_rtt` long: alpha += g (F - alpha), after the first
//!    mark.
//! 2. A mark reduces W by W alpha / 2, the first one by W / 2. The next reduction needs a mark on
//!    data sent after the last mark that was acted on, and `virtual_rtt` since the last reduction.
//!    A mark within that time reduces nothing but starts a new round trip of waiting, as the CWR
//!    state of Linux does: below 25 ms, every second round trip can reduce.
//! 3. Each segment that is delivered unmarked adds S/W segments of 1,500 B, also in the round trip
//!    of a reduction: W = 2 (1 - p) / p segments at a marking probability p. S is (srtt /
//!    `virtual_rtt`)^2 below `virtual_rtt`, otherwise 1, so that on shorter paths the rate grows as
//!    on one of `virtual_rtt`; from `transition` rounds after slow start on.
//! 4. A loss halves W; it does not grow until the loss is repaired.
//! 5. The window is max(2, W), rounded up, and moves by one segment per ack after slow start. The
//!    rate is max(W, data in flight) per srtt; doubled below half of the slow-start threshold.
//! 6. At 6,000 B or less per round trip, after the first mark, the rate alone controls: W may fall
//!    to `min_rate`, grows by 1/ceil(W) per segment with W counted per `virtual_rtt`, and the rate
//!    is 3 % higher in the first half of each `virtual_rtt` than W per srtt, and 3 % lower in the
//!    second.
//!
//! **Departures**: packets keep their size in rule 6 (Linux shrinks them to 150 B so that two fit
//! into 25 ms). Bursts are one segment (Linux: 244 us). The window counts as used if at least half
//! of it is in flight and the application has data. A spurious loss is not undone. There is no
//! detection of a Classic ECN queue, as in version 0.7; RFC 9331 §4.3 asks for one on the Internet.
//! ECN is required: Linux becomes Reno without it.
//!
//! **Cost**: one record per segment in flight.

use super::{
    CongestionControl, CongestionSignal, ControlParams, NewDataAck, ProcessedAck, RateEstimator,
    RecoveryState, SentSegment, Window,
};
use crate::endpoint::common_params::CommonParams;
use sojourn_aqm::cast;
use sojourn_aqm::params;
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Rate, Span, Time};

params! {
    /// Parameters of [`Prague`].
    pub struct PragueParams {
        /// Weight of one round's marked fraction in the moving average.
        g: f64 = 0.0625, [1e-6 => 1.0], "g", [];
        /// Initial value of the moving average. The first mark halves the window in any case.
        alpha: f64 = 0.0, [0.0 => 1.0], "alpha", ["initial_alpha"];
        /// Round-trip time below which the sender behaves as on a path of this one, so that it does
        /// not take more than flows on longer paths; 1ns turns this off.
        virtual_rtt: Span = Span::ms(25), [Span(1) => Span::s(1)], "RTT_virt", ["rtt_target"];
        /// Rounds between the end of slow start and the use of virtual_rtt.
        transition: u64 = 4, [0 => 1_000_000], "", [];
        /// Lower bound of the rate that marks can reach, on the wire.
        min_rate: Rate = Rate(100_000), [Rate(1_000) => Rate(1_000_000_000)], "", [];
    }
}

/// Bytes that the window grows by per round trip, on the wire.
const GROWTH: f64 = 1_500.0;
/// Window at which the rate takes control, in units of [`GROWTH`].
const SMALL: f64 = 4.0;
/// Amplitude of the rate around its mean while the rate is in control.
const RIPPLE: f64 = 4.0 / 128.0;

/// Prague state.
#[derive(Clone, Debug)]
pub struct Prague {
    params: PragueParams,
    /// [`GROWTH`] in segments.
    growth: f64,
    /// `min_rate` in bytes of payload per second.
    min_rate: f64,
    rates: RateEstimator,
    /// W, segments.
    fraction: f64,
    /// Window set last, bytes.
    cwnd: u64,
    /// True if the sender has reduced the window since the last ack.
    reduced: bool,
    alpha: f64,
    saw_mark: bool,
    srtt: Option<Span>,
    /// Cumulative ack, next sequence number, and newly marked bytes, of the current ack.
    feedback: (u64, u64, u64),
    /// Bytes delivered and marked in the round.
    round: (u64, u64),
    /// Sequence number that ends the round, and the start of the round.
    round_end: u64,
    round_at: Time,
    /// Rounds since slow start.
    rounds: u64,
    reduced_at: Option<Time>,
    /// Pacing rate, bytes of payload per second.
    rate: f64,
}

impl Prague {
    /// Create a control for packets of `packet` bytes on the wire with `payload` bytes of payload.
    pub fn of(params: PragueParams, packet: u64, payload: u64) -> Prague {
        Prague {
            growth: GROWTH / packet as f64,
            min_rate: params.min_rate.0 as f64 / 8.0 * payload as f64 / packet as f64,
            alpha: params.alpha,
            params,
            rates: RateEstimator::default(),
            fraction: 0.0,
            cwnd: 0,
            reduced: false,
            saw_mark: false,
            srtt: None,
            feedback: (0, 0, 0),
            round: (0, 0),
            round_end: 0,
            round_at: Time::ZERO,
            rounds: 0,
            reduced_at: None,
            rate: f64::INFINITY,
        }
    }

    /// Moving average of the marked fraction.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// Window W, segments; may be fractional and below two.
    pub fn fractional_window(&self) -> f64 {
        self.fraction
    }

    /// True if `virtual_rtt` is in use.
    fn is_rtt_independent(&self) -> bool {
        self.rounds >= self.params.transition
    }

    /// True if the rate is in control, not the window (rule 6).
    fn is_rate_controlled(&self) -> bool {
        self.saw_mark && self.fraction <= SMALL * self.growth
    }

    /// Smoothed round-trip time relative to `virtual_rtt`, at most 1.
    fn shortness(&self) -> f64 {
        let target = self.params.virtual_rtt.as_secs();
        match self.srtt {
            Some(srtt) if self.is_rtt_independent() => (srtt.as_secs() / target).min(1.0),
            _ => 1.0,
        }
    }

    /// Growth of W per unmarked segment (rules 3 and 6).
    fn growth_per_segment(&self) -> f64 {
        let short = self.shortness();
        let per_virtual = self.fraction / short;
        let whole = if self.is_rate_controlled() { per_virtual.ceil() } else { per_virtual };
        self.growth * short / whole.max(f64::MIN_POSITIVE)
    }

    /// Reduce W by the fraction `share`, within its lower bound.
    fn reduce(&mut self, now: Time, share: f64, mss: u64) {
        let slowest = self.srtt.map_or(0.0, |srtt| self.min_rate * srtt.as_secs() / mss as f64);
        let least = if self.saw_mark { slowest.min(2.0) } else { 2.0 };
        self.fraction = (self.fraction * (1.0 - share)).max(least);
        (self.reduced, self.reduced_at) = (true, Some(now));
    }

    /// Grow W by `unmarked` segments' worth; returns true in slow start.
    fn grow(&mut self, window: &Window, unmarked: f64) -> bool {
        let mss = window.mss as f64;
        if self.fraction * mss < window.ssthresh as f64 && !self.is_rate_controlled() {
            self.rounds = 0;
            self.fraction = (self.fraction + unmarked).min(window.ssthresh as f64 / mss);
            return true;
        }
        self.fraction += unmarked * self.growth_per_segment();
        false
    }

    /// Move the window by at most one segment towards W (rule 5); `at_once` in slow start.
    fn move_window(&mut self, window: &mut Window, at_once: bool) {
        let ripple = if self.is_rate_controlled() { 1.0 + RIPPLE } else { 1.0 };
        let target = cast::trunc((self.fraction * ripple).ceil()).max(2) * window.mss;
        let (from, step) = (self.cwnd, window.mss);
        let near = target.clamp(from.saturating_sub(step), from + step);
        window.cwnd = if at_once { target } else { near };
        self.cwnd = window.cwnd;
    }

    /// End the round if its data is acknowledged and it is long enough (rule 1).
    fn end_round(&mut self, now: Time) {
        let long = !self.is_rtt_independent() || now - self.round_at >= self.params.virtual_rtt;
        let (ack, next, _) = self.feedback;
        if ack <= self.round_end || !long {
            return;
        }
        let (delivered, marked) = std::mem::take(&mut self.round);
        if self.saw_mark && delivered > 0 {
            let fraction = (marked as f64 / delivered as f64).min(1.0);
            self.alpha += self.params.g * (fraction - self.alpha);
        }
        (self.round_end, self.round_at, self.rounds) = (next, now, self.rounds + 1);
    }

    /// Set the pacing rate with `flight` bytes in flight (rules 5 and 6).
    fn set_rate(&mut self, now: Time, window: &Window, flight: u64) {
        let Some(srtt) = self.srtt.filter(|srtt| srtt.0 > 0) else { return };
        let mss = window.mss as f64;
        let bytes = if self.is_rate_controlled() {
            let early = 2 * (now - self.round_at).0 < self.params.virtual_rtt.max(srtt).0;
            self.fraction * mss * if early { 1.0 + RIPPLE } else { 1.0 - RIPPLE }
        } else {
            let gain = if 2 * window.cwnd < window.ssthresh { 2.0 } else { 1.0 };
            gain * (self.fraction.floor() * mss).max(flight as f64)
        };
        self.rate = (bytes / srtt.as_secs()).max(self.min_rate);
    }
}

impl CongestionControl for Prague {
    fn new(control: &ControlParams, common: &CommonParams, _: &mut dyn Random) -> Prague {
        let ControlParams::Prague(own) = control else { unreachable!("chosen by name") };
        Prague::of(own.clone(), common.packet.0, common.payload())
    }

    fn reset(&mut self) {
        let mut rates = std::mem::take(&mut self.rates);
        rates.reset();
        let fresh = Prague::of(self.params.clone(), 1, 1);
        let Prague { growth, min_rate, .. } = *self;
        *self = Prague { rates, growth, min_rate, ..fresh };
    }

    fn on_ack(&mut self, _: &mut Window, _: &NewDataAck) {}

    fn on_congestion(
        &mut self,
        now: Time,
        window: &Window,
        _: u64,
        cause: CongestionSignal,
    ) -> u64 {
        let early = self.reduced_at.is_some_and(|at| now - at < self.params.virtual_rtt);
        if cause != CongestionSignal::Mark {
            self.reduce(now, 0.5, window.mss);
        } else if !self.saw_mark {
            self.saw_mark = true;
            self.reduce(now, 0.5, window.mss);
        } else if !(early && self.is_rtt_independent()) {
            self.reduce(now, self.alpha / 2.0, window.mss);
        }
        self.reduced = true;
        if cause == CongestionSignal::Timeout {
            self.cwnd = window.mss; // grows by a segment per ack from there
        }
        cast::trunc(self.fraction * window.mss as f64).max(2 * window.mss)
    }

    fn reacts_to_mark_fraction(&self) -> bool {
        true
    }

    fn on_established(&mut self, now: Time, window: &Window, rtt: Option<Span>) {
        (self.fraction, self.cwnd) = (window.cwnd as f64 / window.mss as f64, window.cwnd);
        (self.srtt, self.round_at) = (rtt, now);
        self.set_rate(now, window, 0);
    }

    fn on_ecn_feedback(&mut self, ack: u64, _: u64, marked: u64, next: u64) {
        self.feedback = (ack, next, marked);
    }

    fn on_delivered(&mut self, now: Time, from: u64, to: u64) {
        self.rates.on_delivered(now, from, to);
    }

    fn on_ack_processed(&mut self, window: &mut Window, ack: &ProcessedAck) {
        let sample = self.rates.take_sample(ack.now);
        if let Some(rtt) = sample.and_then(|s| s.rtt) {
            self.srtt = Some(self.srtt.map_or(rtt, |old| Span((7 * old.0 + rtt.0) / 8)));
        }
        let news = sample.map_or(0, |s| s.news);
        let marked = std::mem::take(&mut self.feedback.2);
        self.round = (self.round.0 + news, self.round.1 + marked);
        let open = ack.state == RecoveryState::Open;
        if open && !self.reduced && window.cwnd < self.cwnd {
            // The sender restarts from idle.
            self.fraction = self.fraction.min(window.cwnd as f64 / window.mss as f64);
            self.cwnd = window.cwnd;
        } else if ack.state == RecoveryState::Loss {
            self.cwnd = self.cwnd.min(window.cwnd);
        }
        self.reduced = false;
        let used = !self.rates.on_app_limited() && 2 * (ack.flight + news) >= window.cwnd;
        let unmarked = news.saturating_sub(marked) as f64 / window.mss as f64;
        let slow_start = open && used && self.grow(window, unmarked);
        self.move_window(window, slow_start);
        self.end_round(ack.now);
        self.set_rate(ack.now, window, ack.flight);
    }

    fn on_sent(&mut self, sent: &SentSegment) {
        self.rates.on_sent(sent);
    }

    fn own_pacing_rate(&self) -> Option<f64> {
        Some(self.rate)
    }

    fn on_app_limited(&mut self, flight: u64) {
        self.rates.starve(flight);
    }
}

#[cfg(test)]
mod tests;
