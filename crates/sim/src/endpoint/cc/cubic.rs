//! CUBIC: grows the window as a cubic function of the time since the last reduction, with a plateau
//! at the window before it, and never slower than Reno.
//!
//! **Source**: RFC 9438 §4 (equations 1 to 4), §4.7 (fast convergence), §4.8 (timeouts), §5.8 (idle
//! periods).
//!
//! **Symbols** as in the RFC, in segments and seconds: `C`, `W_max`, `K`, `W_est`, `cwnd_epoch`,
//! `cwnd_prior`, `t`.
//!
//! **Departures**: slow start is that of HyStart++ (§4.10) unless disabled. The minimum window
//! after a reduction is two segments, for marks and losses alike. The window grows only if it was
//! full when the ack arrived (application-limited flows, §4.2). `variant = "linux"` grows as Linux
//! does: by whole segments, so that the Reno estimate acts up to a round trip later, with a slope
//! that stays constant; the target is the least round-trip time ahead, not the smoothed one; a
//! timeout forgets `W_max`; and slow start has Linux's HyStart (`cubic/hystart.rs`), which ends it
//! at once, instead of HyStart++.

use super::{
    CongestionControl, CongestionSignal, ControlParams, NewDataAck, Reno, SentSegment, Window,
};
use crate::endpoint::common_params::CommonParams;
use sojourn_aqm::cast;
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Span, Time};
use sojourn_aqm::{choice, params};

mod hystart;
mod linux;
use hystart::LinuxHyStart;
use linux::LinuxGrowth;

choice! {
    /// Variant of CUBIC's growth.
    pub enum CubicVariant {
        /// RFC 9438.
        Rfc = "rfc",
        /// Linux: whole segments.
        Linux = "linux",
    }
}

params! {
    /// Parameters of [`Cubic`].
    pub struct CubicParams {
        /// Scaling constant of the cubic function, segments per second cubed.
        c: f64 = 0.4, [1e-6 => 1e6], "C", [];
        /// Multiplicative decrease factor: window after a loss divided by the window before.
        beta: f64 = 0.7, [0.1 => 0.99], "beta_cubic", [];
        /// The same for an ECN mark; RFC 8511 proposes 0.85.
        beta_ecn: f64 = 0.7, [0.1 => 0.99], "beta_ecn", [];
        /// If true, a window reduced before it reached `W_max` lowers `W_max` further, which
        /// releases bandwidth to other flows.
        fast_convergence: bool = true, [], "", [];
        /// If true, the window grows at least as fast as Reno's.
        reno_friendly: bool = true, [], "", ["tcp_friendly", "tcp_friendliness"];
        /// If true, the slope of the Reno estimate rises to one segment per round trip once
        /// `cwnd_prior` is reached (RFC 9438 §4.3); in RFC 8312 and Linux 6.18 it stays constant.
        alpha_rises: bool = true, [], "", [];
        /// Variant of the growth; alpha_rises has no effect in that of Linux.
        variant: CubicVariant = CubicVariant::Rfc, [], "", [];
    }
}

/// Stage of congestion avoidance, from one reduction (or the end of slow start) to the next.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// Start of the stage, shifted by idle periods since.
    started_at: Time,
    /// `K`: time from the epoch to the plateau, seconds.
    k: f64,
    /// Plateau `W_max`, segments.
    w_max: f64,
    /// Reno estimate `W_est`, segments.
    w_est: f64,
}

/// CUBIC state.
#[derive(Clone, Debug)]
pub struct Cubic {
    params: CubicParams,
    slow_start: Reno,
    stage: Option<Epoch>,
    /// Window at the last reduction, segments; lower after fast convergence.
    w_max: f64,
    /// Window before the last reduction, segments.
    cwnd_prior: f64,
    /// True if the last reduction was caused by a timeout.
    after_timeout: bool,
    /// Fraction of a byte by which the window exceeds `cwnd`.
    rest: f64,
    /// Time of the last transmission.
    last_sent: Time,
    /// State of the variant of Linux, in place of `stage`, `w_max` and `rest`.
    linux: Option<LinuxGrowth>,
    /// HyStart of the variant of Linux, unless it is disabled.
    hystart: Option<LinuxHyStart>,
    /// True if segments are paced.
    paced: bool,
}

impl Cubic {
    /// Create a control; `limit` is `abc_limit` for slow start.
    pub fn of(params: CubicParams, limit: u64) -> Cubic {
        let slow_start = Reno::with_params(limit);
        let linux = (params.variant == CubicVariant::Linux).then(LinuxGrowth::default);
        Cubic {
            params,
            linux,
            hystart: None,
            paced: false,
            slow_start,
            stage: None,
            w_max: 0.0,
            cwnd_prior: 0.0,
            after_timeout: false,
            rest: 0.0,
            last_sent: Time::ZERO,
        }
    }

    /// Start a stage with a window of `cwnd` segments (§4.2).
    fn begin(&mut self, now: Time, cwnd: f64) -> Epoch {
        if self.after_timeout || self.w_max < cwnd {
            self.w_max = cwnd; // §4.8; also if the window is above W_max already
        }
        let k = libm::cbrt((self.w_max - cwnd) / self.params.c); // (2)
        Epoch { started_at: now, k, w_max: self.w_max, w_est: cwnd }
    }

    /// Slope of the Reno estimate, segments per round trip (§4.3): gives the same average window as
    /// halving, until `cwnd_prior` is reached.
    fn alpha(&self, w_est: f64) -> f64 {
        let CubicParams { beta, alpha_rises, .. } = self.params;
        if alpha_rises && w_est >= self.cwnd_prior {
            return 1.0;
        }
        3.0 * (1.0 - beta) / (1.0 + beta)
    }
}

impl Epoch {
    /// Window at `t` seconds (1).
    fn curve(&self, c: f64, t: f64) -> f64 {
        let d = t - self.k;
        self.w_max + c * d * d * d
    }
}

impl CongestionControl for Cubic {
    fn new(control: &ControlParams, common: &CommonParams, _: &mut dyn Random) -> Cubic {
        let ControlParams::Cubic(own) = control else { unreachable!("chosen by name") };
        let cubic = Cubic::of(own.clone(), common.abc_limit);
        let used = cubic.linux.is_some() && common.hystart == Some(true);
        let hystart = used.then(LinuxHyStart::default);
        Cubic { hystart, paced: common.pacing == Some(true), ..cubic }
    }

    fn reset(&mut self) {
        let hystart = self.hystart.as_ref().map(|_| LinuxHyStart::default());
        let fresh = Cubic::of(self.params.clone(), self.slow_start.limit());
        *self = Cubic { hystart, paced: self.paced, ..fresh };
    }

    fn on_ecn_feedback(&mut self, ack: u64, bytes: u64, _: u64, next: u64) {
        if let Some(hystart) = self.hystart.as_mut().filter(|_| bytes > 0) {
            hystart.on_feedback(ack, next);
        }
    }

    fn on_ack(&mut self, window: &mut Window, acked: &NewDataAck) {
        if let Some(linux) = &mut self.linux {
            linux.on_rtt(acked.rtt);
        }
        let paced = self.paced;
        if let Some(hystart) = self.hystart.as_mut().filter(|_| window.is_in_slow_start())
            && hystart.update(acked.at, window, acked.srtt, paced)
        {
            window.ssthresh = window.cwnd;
        }
        if !acked.window_was_full(window) {
            return;
        }
        if let Some(linux) = &mut self.linux {
            return linux.grow(&self.params, window, acked);
        }
        if window.cwnd < window.ssthresh {
            // Slow start after an idle period; a new stage starts when it ends.
            self.stage = None;
            return self.slow_start.on_ack(window, acked);
        }
        let mss = window.mss as f64;
        let cwnd = (window.cwnd as f64 + self.rest) / mss;
        let mut stage = match self.stage {
            Some(stage) => stage,
            None => self.begin(acked.at, cwnd),
        };
        let segments = acked.bytes as f64 / mss;
        stage.w_est += self.alpha(stage.w_est) * segments / cwnd; // (4)
        let t = (acked.at - stage.started_at).as_secs();
        let ahead = acked.srtt.unwrap_or(Span::ZERO).as_secs();
        let c = self.params.c;
        let next = if self.params.reno_friendly && stage.curve(c, t) < stage.w_est {
            cwnd.max(stage.w_est) // §4.3
        } else {
            let target = stage.curve(c, t + ahead).clamp(cwnd, 1.5 * cwnd);
            cwnd + (target - cwnd) / cwnd * segments // §4.4, §4.5
        };
        self.stage = Some(stage);
        let bytes = next * mss;
        window.cwnd = cast::trunc(bytes);
        self.rest = bytes - window.cwnd as f64;
    }

    fn grows_when_recovered(&self) -> bool {
        self.linux.is_some()
    }

    fn on_congestion(
        &mut self,
        _: Time,
        window: &Window,
        flight: u64,
        cause: CongestionSignal,
    ) -> u64 {
        let cwnd = window.cwnd as f64 / window.mss as f64;
        let beta = self.params.beta;
        let early = self.params.fast_convergence && cwnd < self.w_max;
        self.w_max = if early { cwnd * (1.0 + beta) / 2.0 } else { cwnd }; // §4.7
        self.cwnd_prior = cwnd;
        let left = if cause == CongestionSignal::Mark { self.params.beta_ecn } else { beta };
        if let Some(linux) = &mut self.linux {
            let cwnd = window.cwnd / window.mss;
            linux.reduce(&self.params, cwnd, cause == CongestionSignal::Timeout);
            match &mut self.hystart {
                Some(hystart) if cause == CongestionSignal::Timeout => hystart.restart(),
                Some(hystart) => hystart.end(),
                None => {}
            }
            let whole = cast::trunc(flight as f64 / window.mss as f64 * left);
            return whole.max(2) * window.mss;
        }
        (self.stage, self.rest, self.after_timeout) =
            (None, 0.0, cause == CongestionSignal::Timeout);
        cast::trunc(flight as f64 * left).max(2 * window.mss) // §4.6
    }

    fn on_sent(&mut self, sent: &SentSegment) {
        if let Some(hystart) = self.hystart.as_mut().filter(|_| !sent.retransmission) {
            hystart.on_sent(sent.now, sent.end);
        }
        if let Some(linux) = self.linux.as_mut().filter(|_| sent.was_idle) {
            linux.shift(sent.now - self.last_sent, sent.now);
        }
        if let Some(stage) = self.stage.as_mut().filter(|_| sent.was_idle) {
            // §5.8: idle time does not count.
            stage.started_at = (stage.started_at + (sent.now - self.last_sent)).min(sent.now);
        }
        self.last_sent = sent.now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;
    const RTT: Span = Span::ms(100);

    fn cubic() -> Cubic {
        Cubic::of(CubicParams::default(), 1)
    }

    /// Window after a loss at `cwnd` segments.
    fn lost(cubic: &mut Cubic, cwnd: u64) -> Window {
        let mut w = Window { cwnd: cwnd * MSS, ssthresh: 10 * MSS, mss: MSS };
        w.ssthresh = cubic.on_congestion(Time::ZERO, &w, w.cwnd, CongestionSignal::Loss);
        w.cwnd = w.ssthresh;
        w
    }

    /// Segment sent at `ms`; `alone` if nothing else is in flight.
    fn on_sent(ms: u64, alone: bool) -> SentSegment {
        let state = super::super::RecoveryState::Open;
        SentSegment {
            now: Time(ms * 1_000_000),
            seq: 1,
            end: 1001,
            retransmission: false,
            padding: 0,
            was_idle: alone,
            state,
        }
    }

    /// Ack of one segment with `flight` bytes in flight.
    fn acked(now: Time, flight: u64, rtt: Span) -> NewDataAck {
        NewDataAck { at: now, bytes: MSS, flight, rtt: None, srtt: Some(rtt), after_timeout: false }
    }

    /// Handle an ack at `now`; returns the time of the next one, at one window per round trip.
    fn step(cubic: &mut Cubic, w: &mut Window, now: Time, rtt: Span) -> Time {
        cubic.on_ack(w, &acked(now, w.cwnd, rtt));
        now + Span(rtt.0 * MSS / w.cwnd)
    }

    /// Handle acks at one window per round trip for `ms` from `from`; returns the window in
    /// segments.
    fn play(cubic: &mut Cubic, w: &mut Window, from: u64, ms: u64, rtt: Span) -> f64 {
        let end = Time((from + ms) * 1_000_000);
        let mut now = Time(from * 1_000_000);
        while now < end {
            now = step(cubic, w, now, rtt);
        }
        w.cwnd as f64 / MSS as f64
    }

    #[test]
    fn window_follows_the_cubic_function() {
        // W_max = 100, 70 after the loss: K = cbrt(30 / 0.4) = 4.217 s, and W(K) = 100.
        let mut c = cubic();
        let mut w = lost(&mut c, 100);
        assert_eq!(w.cwnd, 70 * MSS);
        let k = libm::cbrt(75.0);
        assert!((k - 4.217).abs() < 0.001);
        let mut at = 0;
        for ms in [1_000, 2_000, 3_000, 4_217, 5_000, 6_000, 8_000] {
            // At an RTT of 200 ms, Reno is slower throughout.
            let got = play(&mut c, &mut w, at, ms - at, Span::ms(200));
            let d = ms as f64 / 1e3 - k;
            let curve = 100.0 + 0.4 * d * d * d;
            // The target is one round trip ahead and is reached one round trip later.
            assert!((got - curve).abs() < 0.02 * curve, "{ms} ms: {got}, not {curve}");
            at = ms;
        }
    }

    #[test]
    fn in_linux_the_window_follows_the_cubic_function_in_whole_segments() {
        let params = CubicParams { variant: CubicVariant::Linux, ..CubicParams::default() };
        let mut c = Cubic::of(params, 1);
        let mut w = lost(&mut c, 100);
        let (k, mut at) = (libm::cbrt(75.0), 0);
        for ms in [1_000, 2_000, 3_000, 4_217, 5_000, 6_000, 8_000] {
            let got = play(&mut c, &mut w, at, ms - at, Span::ms(200));
            let d = ms as f64 / 1e3 - k;
            let curve = 100.0 + 0.4 * d * d * d;
            assert!((got - curve).abs() < 0.05 * curve, "{ms} ms: {got}, not {curve}");
            at = ms;
        }
    }

    #[test]
    fn fractions_of_a_byte_and_acks_of_several_segments_count() {
        // Long after the plateau a window grows by half a segment per segment: here by half a byte.
        let params = CubicParams { reno_friendly: false, ..CubicParams::default() };
        let mut c = Cubic::of(params, 1);
        let mut w = Window { cwnd: 10, ssthresh: 1, mss: 1 };
        let mut window_after = |bytes| {
            let started_at = Time::ZERO;
            c.stage = Some(Epoch { started_at, k: 0.0, w_max: 10.0, w_est: 10.0 });
            let ack = NewDataAck { bytes, ..acked(Time(60_000_000_000), w.cwnd, RTT) };
            c.on_ack(&mut w, &ack);
            w.cwnd
        };
        assert_eq!([1, 1, 1, 1, 2].map(&mut window_after), [10, 11, 11, 12, 13]);
        // The Reno estimate grows by alpha / 7 = 0.0756 segments per segment.
        let mut c = cubic();
        let mut w = lost(&mut c, 10);
        let ack = NewDataAck { bytes: 2 * MSS, ..acked(Time::ZERO, w.cwnd, RTT) };
        c.on_ack(&mut w, &ack);
        assert_eq!(w.cwnd, 7_151);
    }

    #[test]
    fn small_windows_grow_as_reno() {
        // W_max = 10: the cubic function takes (3 / 0.4)^(1/3) = 1.96 s and is flat. A round trip
        // of 10 ms adds 0.529 segments until the window is 10 again, and one segment afterwards.
        let rtt = Span::ms(10);
        let mut c = cubic();
        let mut w = lost(&mut c, 10);
        let got = play(&mut c, &mut w, 0, 50, rtt);
        let slope = 3.0 * 0.3 / 1.7;
        assert!((got - (7.0 + 5.0 * slope)).abs() < 0.3, "{got}");
        let regained = play(&mut c, &mut w, 50, 10, rtt);
        let later = play(&mut c, &mut w, 60, 100, rtt);
        assert!((later - regained - 10.0).abs() < 0.5, "{regained} to {later}: one per round trip");
        // In RFC 8312 the slope stays 0.529 until the cubic function is larger.
        let mut c = Cubic::of(CubicParams { alpha_rises: false, ..CubicParams::default() }, 1);
        let mut w = lost(&mut c, 10);
        let regained = play(&mut c, &mut w, 0, 60, rtt);
        let later = play(&mut c, &mut w, 60, 100, rtt);
        assert!((later - regained - 10.0 * slope).abs() < 0.5, "{regained} to {later}");
        // Without the Reno-friendly region the window stays below the plateau.
        let params = CubicParams { reno_friendly: false, ..CubicParams::default() };
        let mut c = Cubic::of(params, 1);
        let mut w = lost(&mut c, 10);
        assert!(play(&mut c, &mut w, 0, 160, rtt) < 8.0);
    }

    #[test]
    fn fast_convergence_lowers_w_max() {
        let mut c = cubic();
        lost(&mut c, 100);
        assert_eq!(c.w_max, 100.0);
        lost(&mut c, 80);
        assert_eq!(c.w_max, 80.0 * 0.85, "below the last W_max");
        lost(&mut c, 90);
        assert_eq!(c.w_max, 90.0, "above the last W_max");
        lost(&mut c, 90);
        assert_eq!(c.w_max, 90.0, "at the last W_max");
        let params = CubicParams { fast_convergence: false, ..CubicParams::default() };
        let mut c = Cubic::of(params, 1);
        lost(&mut c, 100);
        lost(&mut c, 80);
        assert_eq!(c.w_max, 80.0);
    }

    #[test]
    fn slow_start_after_idle_ends_without_a_jump() {
        let rtt = Span::ms(10);
        let mut c = cubic();
        let mut w = lost(&mut c, 100);
        // On a short path the Reno estimate exceeds the cubic function.
        let grown = play(&mut c, &mut w, 0, 1_000, rtt);
        assert!(grown > 110.0 && w.ssthresh == 70 * MSS);
        c.on_sent(&on_sent(1_000, false));
        c.on_sent(&on_sent(60_000, true));
        w.cwnd = 10 * MSS; // RFC 5681 section 4.1
        let mut now = Time(60_000_000_000);
        let mut most = 0;
        for _ in 0..200 {
            let before = w.cwnd;
            now = step(&mut c, &mut w, now, rtt);
            most = most.max(w.cwnd - before);
        }
        assert!(w.cwnd > 70 * MSS && most == MSS, "{} by {most}", w.cwnd);
    }

    #[test]
    fn marks_can_reduce_less_than_losses() {
        let params = CubicParams { beta_ecn: 0.85, ..CubicParams::default() };
        let mut c = Cubic::of(params, 1);
        let w = Window { cwnd: 100 * MSS, ssthresh: 10 * MSS, mss: MSS };
        assert_eq!(c.on_congestion(Time::ZERO, &w, 100 * MSS, CongestionSignal::Mark), 85 * MSS);
        assert_eq!(c.on_congestion(Time::ZERO, &w, 100 * MSS, CongestionSignal::Loss), 70 * MSS);
        assert_eq!(c.on_congestion(Time::ZERO, &w, MSS, CongestionSignal::Loss), 2 * MSS);
    }

    #[test]
    fn after_a_timeout_the_curve_starts_at_its_plateau() {
        // Without the Reno-friendly region, which is larger for the first 3.6 s.
        let params = CubicParams { reno_friendly: false, ..CubicParams::default() };
        let mut c = Cubic::of(params, 1);
        let w = Window { cwnd: 100 * MSS, ssthresh: 10 * MSS, mss: MSS };
        let ssthresh = c.on_congestion(Time::ZERO, &w, 100 * MSS, CongestionSignal::Timeout);
        let mut w = Window { cwnd: ssthresh, ssthresh, mss: MSS };
        let got = play(&mut c, &mut w, 0, 3_000, RTT);
        assert!((got - (70.0 + 0.4 * 27.0)).abs() < 2.0, "K = 0 and W_max = 70: {got}");
    }

    #[test]
    fn idle_time_and_unfilled_windows_do_not_grow_the_window() {
        let mut c = cubic();
        let mut w = lost(&mut c, 100);
        let before = play(&mut c, &mut w, 0, 1_000, RTT);
        c.on_sent(&on_sent(1_000, false));
        c.on_sent(&on_sent(61_000, true));
        let after = play(&mut c, &mut w, 61_000, 100, RTT);
        assert!(after < before + 5.0, "{before}, then {after}");
        let cwnd = w.cwnd;
        c.on_ack(&mut w, &acked(Time(62_000_000_000), cwnd / 2, RTT));
        assert_eq!(w.cwnd, cwnd);
    }

    #[test]
    fn a_tie_with_the_reno_estimate_goes_to_the_curve() {
        // RFC 9438 section 4.3: the Reno-friendly region is where W_cubic(t) is below W_est. Here
        // an ack of one segment makes W_est equal to W_cubic(0); the curve is 0.4 higher in 1 s.
        let mut c = cubic();
        c.cwnd_prior = 20.0;
        let tie = 10.0 + c.alpha(10.0) / 10.0;
        c.stage = Some(Epoch { started_at: Time::ZERO, k: 0.0, w_max: tie, w_est: 10.0 });
        let mut w = Window { cwnd: 10 * MSS, ssthresh: 5 * MSS, mss: MSS };
        c.on_ack(&mut w, &acked(Time::ZERO, 10 * MSS, Span::s(1)));
        assert_eq!(w.cwnd, 10_045, "10 + (10.053 + 0.4 - 10) / 10 segments, not 10.053");
    }

    #[test]
    fn in_linux_the_window_after_a_reduction_is_whole() {
        let params = CubicParams { variant: CubicVariant::Linux, ..CubicParams::default() };
        let mut c = Cubic::of(params, 1);
        assert!(c.grows_when_recovered() && !cubic().grows_when_recovered());
        assert_eq!(lost(&mut c, 15).ssthresh, 10 * MSS, "15 * 0.7 = 10.5");
        assert_eq!(lost(&mut c, 2).ssthresh, 2 * MSS, "at least two");
        // It grows by whole segments.
        let mut w = lost(&mut c, 15);
        play(&mut c, &mut w, 0, 1_000, RTT);
        assert!(w.cwnd > 10 * MSS && w.cwnd.is_multiple_of(MSS));
    }
}
