//! CUBIC: grows the window as a cubic function of the time since the last reduction, with a plateau
//! at the window before it, and never slower than Reno.
//!
//! **Source**: RFC 9438 §4 (equations 1 to 4), §4.7 (fast convergence), §4.8 (timeouts), §5.8 (idle
//! periods).
//!
//! **Symbols** as in the RFC, in segments and seconds: `C`, `W_max`, `K`, `W_est`, `cwnd_epoch`,
//! `cwnd_prior`, `t`.
//!
//! **Departures**: slow start follows HyStart++ (§4.10) unless disabled. The minimum window
//! after a reduction is two segments, for marks and losses alike. The window grows only if it was
//! full when the ack arrived (application-limited flows, §4.2). `variant = "linux"` grows as Linux
//! does: by whole segments, so that the Reno estimate acts up to a round trip later, with a slope
//! that stays constant; the target is the least round-trip time ahead, not the smoothed one; a
//! timeout forgets `W_max`; and slow start has Linux's HyStart (`cubic/hystart.rs`), which ends it
//! at once, instead of HyStart++.

use super::{
    CongestionControl, CongestionSignal, ControlParams, NewDataAck, Reno, SentSegment, TcpEntry,
    Window,
};
use crate::endpoint::common_params::{CommonParams, LossRecovery, Profile};
use sojourn_aqm::Snapshot;
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
        /// Variant of the growth; alpha_rises has no effect in linux.
        variant: CubicVariant = CubicVariant::Rfc, [], "", [];
    }
}

/// Entry in the list of TCPs.
pub(super) const TCP: TcpEntry = TcpEntry {
    name: "cubic",
    aliases: &[],
    about: "cubic growth since the last reduction, never slower than Reno; not in ns2",
    source: "RFC 9438",
    profile: Profile::Linux,
    recovery: LossRecovery::Sack,
    control: || ControlParams::Cubic(CubicParams::default()),
};

/// Stage of congestion avoidance, from one reduction (or the end of slow start) to the next.
#[derive(Clone, Copy, Debug, Snapshot)]
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
#[derive(Clone, Debug, Snapshot)]
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
    /// Creates a control; `limit` is `abc_limit` for slow start.
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

    /// Starts a stage with a window of `cwnd` segments (§4.2).
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
    type Params = CubicParams;

    fn new(params: &CubicParams, common: &CommonParams, _: &mut dyn Random) -> Cubic {
        let cubic = Cubic::of(params.clone(), common.abc_limit);
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
mod tests;
