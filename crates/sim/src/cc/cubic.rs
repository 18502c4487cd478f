//! CUBIC: the window grows with the cube of the time since the last cut, slowly about the window at
//! which that came, and never slower than Reno would.
//!
//! **Source**: RFC 9438 §4 (equations 1 to 4), §4.7 (fast convergence), §4.8 (timeouts), §5.8
//! (silences).
//!
//! **Symbols** as there, in segments and seconds: `C`, `W_max`, `K`, `W_est`, `cwnd_epoch`,
//! `cwnd_prior`, `t`.
//!
//! **Departures**: slow start is that of [`super::HyStart`] (§4.10), unless it is asked not to be.
//! The cut's floor is two segments for marks and losses alike. The window grows only while it was
//! full when the ack came (§4.2's application-limited flows).

use super::{Acked, Cause, Control, Reno, Sent, Window};
use crate::tcp::TcpParams;
use sojourn_aqm::cast;
use sojourn_aqm::dice::Dice;
use sojourn_aqm::params;
use sojourn_aqm::units::{Span, Time};

params! {
    /// Parameters of [`Cubic`].
    pub struct CubicParams {
        /// How steep the cube is, segments per second cubed.
        c: f64 = 0.4, [1e-6 => 1e6], "C", [];
        /// Share of the window that a cut leaves.
        beta: f64 = 0.7, [0.1 => 0.99], "beta_cubic", [];
        /// The same for a mark; RFC 8511 proposes 0.85.
        beta_ecn: f64 = 0.7, [0.1 => 0.99], "beta_ecn", [];
        /// Whether a window cut before it was regained leaves room for others.
        fast_convergence: bool = true, [], "", [];
        /// Whether the window grows at least as Reno's would.
        reno_friendly: bool = true, [], "", ["tcp_friendly", "tcp_friendliness"];
        /// Whether the slope of Reno's window becomes one segment per round trip once the window of
        /// before the cut is regained (RFC 9438 §4.3); in RFC 8312 and in Linux (6.18) it stays.
        alpha_rises: bool = true, [], "", [];
    }
}

/// One stage of congestion avoidance, from a cut (or the end of slow start) to the next.
#[derive(Clone, Copy, Debug)]
struct Stage {
    /// When it began, later by the silences since.
    epoch: Time,
    /// When the curve is back at its plateau, seconds after the epoch.
    k: f64,
    /// The plateau: `W_max`.
    origin: f64,
    /// `W_est`.
    w_est: f64,
}

/// The state of CUBIC's window.
#[derive(Clone, Debug)]
pub struct Cubic {
    params: CubicParams,
    slow_start: Reno,
    stage: Option<Stage>,
    /// The window at which the last cut came, segments; less after fast convergence.
    w_max: f64,
    /// The window before the last cut, segments.
    cwnd_prior: f64,
    /// Whether the last cut was a timeout's.
    expired: bool,
    /// Bytes by which the window has grown beyond its whole ones.
    rest: f64,
    /// When a segment was sent last.
    last_sent: Time,
}

impl Cubic {
    /// A control with its parameters, `limit` for slow start.
    pub fn of(params: CubicParams, limit: u64) -> Cubic {
        let slow_start = Reno::of(limit);
        Cubic {
            params,
            slow_start,
            stage: None,
            w_max: 0.0,
            cwnd_prior: 0.0,
            expired: false,
            rest: 0.0,
            last_sent: Time::ZERO,
        }
    }

    /// §4.2: what a stage starts from, with a window of `cwnd` segments.
    fn begin(&mut self, now: Time, cwnd: f64) -> Stage {
        if self.expired || self.w_max < cwnd {
            self.w_max = cwnd; // §4.8; above it there is nothing to come back to
        }
        let k = libm::cbrt((self.w_max - cwnd) / self.params.c); // (2)
        Stage { epoch: now, k, origin: self.w_max, w_est: cwnd }
    }

    /// The slope of Reno's window in segments per round trip (§4.3): what makes it as large on
    /// average as with halving, until the window of before the cut is regained.
    fn alpha(&self, w_est: f64) -> f64 {
        let CubicParams { beta, alpha_rises, .. } = self.params;
        if alpha_rises && w_est >= self.cwnd_prior {
            return 1.0;
        }
        3.0 * (1.0 - beta) / (1.0 + beta)
    }
}

impl Stage {
    /// The curve at `t` seconds (1).
    fn curve(&self, c: f64, t: f64) -> f64 {
        let d = t - self.k;
        self.origin + c * d * d * d
    }
}

impl Control for Cubic {
    fn new(params: &TcpParams, _: &mut dyn Dice) -> Cubic {
        let super::Choice::Cubic(own) = &params.control else { unreachable!("chosen by name") };
        Cubic::of(own.clone(), params.settings.abc_limit)
    }

    fn reset(&mut self) {
        *self = Cubic::of(self.params.clone(), self.slow_start.limit());
    }

    fn grow(&mut self, window: &mut Window, acked: &Acked) {
        if !acked.filled(window) {
            return;
        }
        if window.cwnd < window.ssthresh {
            // After a silence: what follows is a stage of its own, from the window it finds.
            self.stage = None;
            return self.slow_start.grow(window, acked);
        }
        let mss = window.mss as f64;
        let cwnd = (window.cwnd as f64 + self.rest) / mss;
        let mut stage = match self.stage {
            Some(stage) => stage,
            None => self.begin(acked.now, cwnd),
        };
        let segments = acked.bytes as f64 / mss;
        stage.w_est += self.alpha(stage.w_est) * segments / cwnd; // (4)
        let t = (acked.now - stage.epoch).as_secs();
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

    fn cut(&mut self, _: Time, window: &Window, flight: u64, cause: Cause) -> u64 {
        let cwnd = window.cwnd as f64 / window.mss as f64;
        let beta = self.params.beta;
        let early = self.params.fast_convergence && cwnd < self.w_max;
        self.w_max = if early { cwnd * (1.0 + beta) / 2.0 } else { cwnd }; // §4.7
        self.cwnd_prior = cwnd;
        let left = if cause == Cause::Mark { self.params.beta_ecn } else { beta };
        (self.stage, self.rest, self.expired) = (None, 0.0, cause == Cause::Timeout);
        cast::trunc(flight as f64 * left).max(2 * window.mss) // §4.6
    }

    fn sent(&mut self, sent: &Sent) {
        if let Some(stage) = self.stage.as_mut().filter(|_| sent.alone) {
            // §5.8: a silence is no time of the stage.
            stage.epoch = (stage.epoch + (sent.now - self.last_sent)).min(sent.now);
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

    /// A window of `packets` after a loss at `cwnd`.
    fn lost(cubic: &mut Cubic, cwnd: u64) -> Window {
        let mut w = Window { cwnd: cwnd * MSS, ssthresh: 10 * MSS, mss: MSS };
        w.ssthresh = cubic.cut(Time::ZERO, &w, w.cwnd, Cause::Loss);
        w.cwnd = w.ssthresh;
        w
    }

    /// What is sent at that millisecond, with nothing else on its way if `alone`.
    fn sent(ms: u64, alone: bool) -> Sent {
        let state = super::super::State::Open;
        Sent { now: Time(ms * 1_000_000), seq: 1, end: 1001, again: false, alone, state }
    }

    /// An ack of a segment when `flight` bytes are on their way.
    fn acked(now: Time, flight: u64, rtt: Span) -> Acked {
        Acked { now, bytes: MSS, flight, rtt: None, srtt: Some(rtt), after_timeout: false }
    }

    /// An ack at `now`, of a window per round trip; when the next one comes.
    fn step(cubic: &mut Cubic, w: &mut Window, now: Time, rtt: Span) -> Time {
        cubic.grow(w, &acked(now, w.cwnd, rtt));
        now + Span(rtt.0 * MSS / w.cwnd)
    }

    /// Acks of every segment for `ms` from `from`, a window per round trip; the window then.
    fn play(cubic: &mut Cubic, w: &mut Window, from: u64, ms: u64, rtt: Span) -> f64 {
        let end = Time((from + ms) * 1_000_000);
        let mut now = Time(from * 1_000_000);
        while now < end {
            now = step(cubic, w, now, rtt);
        }
        w.cwnd as f64 / MSS as f64
    }

    #[test]
    fn window_follows_the_cube() {
        // W_max = 100, 70 after the loss: K = cbrt(30 / 0.4) = 4.217 s, and W(K) = 100.
        let mut c = cubic();
        let mut w = lost(&mut c, 100);
        assert_eq!(w.cwnd, 70 * MSS);
        let k = libm::cbrt(75.0);
        assert!((k - 4.217).abs() < 0.001);
        let mut at = 0;
        for ms in [1_000, 2_000, 3_000, 4_217, 5_000, 6_000, 8_000] {
            // At 200 ms Reno would be slower throughout.
            let got = play(&mut c, &mut w, at, ms - at, Span::ms(200));
            let d = ms as f64 / 1e3 - k;
            let curve = 100.0 + 0.4 * d * d * d;
            // The target lies a round trip ahead and is reached a round trip later.
            assert!((got - curve).abs() < 0.02 * curve, "{ms} ms: {got}, not {curve}");
            at = ms;
        }
    }

    #[test]
    fn small_windows_grow_as_renos_would() {
        // W_max = 10: the cube takes (3 / 0.4)^(1/3) = 1.96 s, and is flat; a round trip of 10 ms
        // adds 0.529 segments until 10 are regained, and one afterwards.
        let rtt = Span::ms(10);
        let mut c = cubic();
        let mut w = lost(&mut c, 10);
        let got = play(&mut c, &mut w, 0, 50, rtt);
        let slope = 3.0 * 0.3 / 1.7;
        assert!((got - (7.0 + 5.0 * slope)).abs() < 0.3, "{got}");
        let regained = play(&mut c, &mut w, 50, 10, rtt);
        let later = play(&mut c, &mut w, 60, 100, rtt);
        assert!((later - regained - 10.0).abs() < 0.5, "{regained} to {later}: one per round trip");
        // As in RFC 8312 it goes on by 0.529, until the cube takes over.
        let mut c = Cubic::of(CubicParams { alpha_rises: false, ..CubicParams::default() }, 1);
        let mut w = lost(&mut c, 10);
        let regained = play(&mut c, &mut w, 0, 60, rtt);
        let later = play(&mut c, &mut w, 60, 100, rtt);
        assert!((later - regained - 10.0 * slope).abs() < 0.5, "{regained} to {later}");
        // Without the Reno-friendly region it stays below the plateau.
        let params = CubicParams { reno_friendly: false, ..CubicParams::default() };
        let mut c = Cubic::of(params, 1);
        let mut w = lost(&mut c, 10);
        assert!(play(&mut c, &mut w, 0, 160, rtt) < 8.0);
    }

    #[test]
    fn fast_convergence_gives_way_to_others() {
        let mut c = cubic();
        lost(&mut c, 100);
        assert_eq!(c.w_max, 100.0);
        lost(&mut c, 80);
        assert_eq!(c.w_max, 80.0 * 0.85, "below the last one");
        lost(&mut c, 90);
        assert_eq!(c.w_max, 90.0, "above it");
        let params = CubicParams { fast_convergence: false, ..CubicParams::default() };
        let mut c = Cubic::of(params, 1);
        lost(&mut c, 100);
        lost(&mut c, 80);
        assert_eq!(c.w_max, 80.0);
    }

    #[test]
    fn slow_start_after_a_silence_ends_without_a_jump() {
        let rtt = Span::ms(10);
        let mut c = cubic();
        let mut w = lost(&mut c, 100);
        // Over a short path the Reno-friendly estimate is ahead of the cube.
        let grown = play(&mut c, &mut w, 0, 1_000, rtt);
        assert!(grown > 110.0 && w.ssthresh == 70 * MSS);
        c.sent(&sent(1_000, false));
        c.sent(&sent(60_000, true));
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
    fn marks_may_cut_less_than_losses() {
        let params = CubicParams { beta_ecn: 0.85, ..CubicParams::default() };
        let mut c = Cubic::of(params, 1);
        let w = Window { cwnd: 100 * MSS, ssthresh: 10 * MSS, mss: MSS };
        assert_eq!(c.cut(Time::ZERO, &w, 100 * MSS, Cause::Mark), 85 * MSS);
        assert_eq!(c.cut(Time::ZERO, &w, 100 * MSS, Cause::Loss), 70 * MSS);
        assert_eq!(c.cut(Time::ZERO, &w, MSS, Cause::Loss), 2 * MSS);
    }

    #[test]
    fn after_a_timeout_the_curve_starts_at_its_plateau() {
        // Without the Reno-friendly region, which is ahead for the first 3.6 s.
        let params = CubicParams { reno_friendly: false, ..CubicParams::default() };
        let mut c = Cubic::of(params, 1);
        let w = Window { cwnd: 100 * MSS, ssthresh: 10 * MSS, mss: MSS };
        let ssthresh = c.cut(Time::ZERO, &w, 100 * MSS, Cause::Timeout);
        let mut w = Window { cwnd: ssthresh, ssthresh, mss: MSS };
        let got = play(&mut c, &mut w, 0, 3_000, RTT);
        assert!((got - (70.0 + 0.4 * 27.0)).abs() < 2.0, "K = 0 and W_max = 70: {got}");
    }

    #[test]
    fn silences_and_windows_that_were_not_full_do_not_count() {
        let mut c = cubic();
        let mut w = lost(&mut c, 100);
        let before = play(&mut c, &mut w, 0, 1_000, RTT);
        c.sent(&sent(1_000, false));
        c.sent(&sent(61_000, true));
        let after = play(&mut c, &mut w, 61_000, 100, RTT);
        assert!(after < before + 5.0, "{before}, then {after}");
        let cwnd = w.cwnd;
        c.grow(&mut w, &acked(Time(62_000_000_000), cwnd / 2, RTT));
        assert_eq!(w.cwnd, cwnd);
    }
}
