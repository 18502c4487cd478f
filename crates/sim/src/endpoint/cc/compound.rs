//! Compound TCP: adds to Reno's window a delay-based window that grows fast while queues are empty
//! and shrinks as queueing delay builds up.
//!
//! **Source**: K. Tan, J. Song, Q. Zhang, M. Sridharan, "A Compound TCP Approach for High-speed and
//! Long Distance Networks", INFOCOM 2006, §III; draft-sridharan-tcpm-ctcp-02.
//!
//! **Symbols** `win = cwnd + dwnd`, `alpha`, `beta`, `k`, `gamma`, `zeta`, `baseRTT`, `diff`.
//!
//! **Departures**: gamma is constant (the draft adapts it). The round-trip time is a
//! sample, of the timed segment, not a smoothed value. A timeout resets the delay window. Neither
//! component grows while the window is not full.

use super::{
    CongestionControl, CongestionSignal, ControlParams, NewDataAck, Reno, TcpEntry, Window,
};
use crate::endpoint::common_params::{CommonParams, LossRecovery, Profile};
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::params;
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Span, Time};

params! {
    /// Parameters of [`Compound`].
    pub struct CompoundParams {
        /// Growth of the total window per round trip: alpha win^k.
        alpha: f64 = 0.125, [0.0 => 100.0], "alpha", [];
        /// Fraction of the total window that is removed after a loss.
        beta: f64 = 0.5, [0.01 => 0.99], "beta", [];
        /// Exponent of the window in its growth per round trip.
        k: f64 = 0.75, [0.0 => 1.0], "k", [];
        /// Queued segments above which the delay window shrinks.
        gamma: f64 = 30.0, [0.0 => 1e6], "gamma", [];
        /// Reduction of the delay window per queued segment.
        zeta: f64 = 1.0, [0.0 => 100.0], "zeta", [];
    }
}

/// Entry in the list of TCPs.
pub(super) const TCP: TcpEntry = TcpEntry {
    name: "compound",
    aliases: &["ctcp"],
    about: "adds a delay-based window to Reno's, large while queues are empty; not in ns2",
    source: "Tan et al., A Compound TCP Approach, INFOCOM 2006",
    profile: Profile::Rfc,
    recovery: LossRecovery::Sack,
    control: || ControlParams::Compound(CompoundParams::default()),
};

/// Compound TCP state.
#[derive(Clone, Debug, Snapshot)]
pub struct Compound {
    params: CompoundParams,
    slow_start: Reno,
    /// Returns the delay window `dwnd`, segments.
    dwnd: f64,
    /// Fraction of a byte by which the total window exceeds `cwnd`.
    rest: f64,
    base: Option<Span>,
}

impl Compound {
    /// Creates a control; `limit` is `abc_limit` for slow start.
    pub fn of(params: CompoundParams, limit: u64) -> Compound {
        Compound { params, slow_start: Reno::with_params(limit), dwnd: 0.0, rest: 0.0, base: None }
    }

    /// Delay window `dwnd`, segments.
    pub fn delay_window(&self) -> f64 {
        self.dwnd
    }

    /// Returns the delay window after a round trip of `rtt` with a window of `win` segments.
    fn measured(&mut self, win: f64, rtt: Span) -> f64 {
        let base = self.base.map_or(rtt, |b| b.min(rtt));
        self.base = Some(base);
        let p = &self.params;
        let diff = win * (1.0 - base.0 as f64 / rtt.0.max(1) as f64);
        if diff < p.gamma {
            self.dwnd + (p.alpha * libm::pow(win, p.k) - 1.0).max(0.0)
        } else {
            (self.dwnd - p.zeta * diff).max(0.0)
        }
    }
}

impl CongestionControl for Compound {
    type Params = CompoundParams;

    fn new(params: &CompoundParams, common: &CommonParams, _: &mut dyn Random) -> Compound {
        Compound::of(params.clone(), common.abc_limit)
    }

    fn reset(&mut self) {
        *self = Compound::of(self.params.clone(), self.slow_start.limit());
    }

    fn on_ack(&mut self, window: &mut Window, acked: &NewDataAck) {
        let mss = window.mss as f64;
        let mut win = (window.cwnd as f64 + self.rest) / mss;
        self.dwnd = self.dwnd.min(win); // cwnd may have shrunk after an idle period
        let avoids = window.cwnd >= window.ssthresh;
        let dwnd = acked.rtt.map_or(self.dwnd, |rtt| self.measured(win, rtt));
        if !acked.window_was_full(window) {
            return;
        }
        if !avoids {
            return self.slow_start.on_ack(window, acked);
        }
        win += acked.bytes as f64 / mss / win; // Reno component
        let bytes = ((win + dwnd - self.dwnd) * mss).max(2.0 * mss);
        self.dwnd = dwnd;
        window.cwnd = cast::trunc(bytes);
        self.rest = bytes - window.cwnd as f64;
    }

    fn on_congestion(
        &mut self,
        _: Time,
        window: &Window,
        flight: u64,
        cause: CongestionSignal,
    ) -> u64 {
        let mss = window.mss as f64;
        // Losses occurred among the packets in flight, which may be fewer than the window allows.
        let win = window.cwnd.min(flight) as f64 / mss;
        let reno = (win - self.dwnd).max(0.0);
        self.dwnd = (win * (1.0 - self.params.beta) - reno / 2.0).max(0.0);
        self.rest = 0.0;
        let left = cast::trunc((reno / 2.0 + self.dwnd) * mss);
        if cause == CongestionSignal::Timeout {
            self.dwnd = 0.0;
        }
        left.max(2 * window.mss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(c: &mut Compound, w: &mut Window, ms: Option<u64>) {
        let acked = NewDataAck {
            at: Time::ZERO,
            bytes: 1_000,
            flight: w.cwnd,
            rtt: ms.map(Span::ms),
            srtt: None,
            after_timeout: false,
        };
        c.on_ack(w, &acked);
    }

    #[test]
    fn delay_window_grows_by_a_power_and_shrinks_with_queueing() {
        let mut c = Compound::of(CompoundParams::default(), 1);
        let mut w = Window { cwnd: 256_000, ssthresh: 10_000, mss: 1_000 };
        ack(&mut c, &mut w, Some(100));
        // 256^0.75 / 8 - 1 = 7, plus Reno's 1/256.
        assert!((c.delay_window() - 7.0).abs() < 1e-9);
        assert_eq!(w.cwnd, 263_003);
        // diff = 263 (1 - 100/112) = 28 < 30: dwnd grows. At 120 ms diff exceeds 30: it shrinks.
        ack(&mut c, &mut w, Some(112));
        assert!(c.delay_window() > 14.0);
        let win = w.cwnd as f64 / 1e3;
        ack(&mut c, &mut w, Some(120));
        assert_eq!(c.delay_window(), 0.0, "44 segments are queued, more than dwnd");
        assert!((w.cwnd as f64 / 1e3 - (win - 14.17)).abs() < 0.1, "{}", w.cwnd);
    }

    #[test]
    fn small_windows_behave_as_reno() {
        // alpha win^k < 1 below 16 segments.
        let mut c = Compound::of(CompoundParams::default(), 1);
        let mut w = Window { cwnd: 10_000, ssthresh: 10_000, mss: 1_000 };
        (0..10).for_each(|_| ack(&mut c, &mut w, Some(100)));
        assert_eq!(c.delay_window(), 0.0);
        assert!((10_900..11_000).contains(&w.cwnd), "{}", w.cwnd);
    }

    #[test]
    fn loss_halves_the_total_window() {
        let mut c = Compound::of(CompoundParams::default(), 1);
        let w = Window { cwnd: 100_000, ssthresh: 10_000, mss: 1_000 };
        c.dwnd = 40.0;
        assert_eq!(c.on_congestion(Time::ZERO, &w, 100_000, CongestionSignal::Loss), 50_000);
        assert_eq!(c.delay_window(), 20.0, "100/2 - 60/2");
        c.on_congestion(Time::ZERO, &w, 100_000, CongestionSignal::Timeout);
        assert_eq!(c.delay_window(), 0.0);
    }

    #[test]
    fn gamma_queued_segments_shrink_the_delay_window() {
        // 60 (1 - 100/200) = 30 = gamma: the paper's "diff >= gamma".
        for (dwnd, left) in [(40.0, 10.0), (20.0, 0.0)] {
            let mut c = Compound::of(CompoundParams::default(), 1);
            let mut w = Window { cwnd: 60_000, ssthresh: 10_000, mss: 1_000 };
            (c.dwnd, c.base) = (dwnd, Some(Span::ms(100)));
            ack(&mut c, &mut w, Some(200));
            assert_eq!(c.delay_window(), left);
        }
    }

    #[test]
    fn the_window_is_never_below_two_segments() {
        let mut c = Compound::of(CompoundParams { gamma: 1.0, ..CompoundParams::default() }, 1);
        let mut w = Window { cwnd: 3_000, ssthresh: 2_000, mss: 1_000 };
        (c.dwnd, c.base) = (3.0, Some(Span::ms(100)));
        // 3 (1 - 100/300) = 2 are queued: 3 - 2 segments and Reno's third of one are left.
        ack(&mut c, &mut w, Some(300));
        assert_eq!((w.cwnd, c.rest), (2_000, 0.0));
        assert_eq!(c.on_congestion(Time::ZERO, &w, 1_000, CongestionSignal::Loss), 2_000);
    }

    #[test]
    fn fractions_of_a_byte_add_up() {
        let mut c = Compound::of(CompoundParams::default(), 1);
        let mut w = Window { cwnd: 3_000, ssthresh: 2_000, mss: 1_000 };
        let mut exact = 3.0;
        for _ in 0..1_000 {
            ack(&mut c, &mut w, None);
            exact += 1.0 / exact;
        }
        // Without the fractions up to 1,000 bytes would be missing.
        assert!((w.cwnd as f64 - exact * 1e3).abs() < 1.0, "{} of {exact}", w.cwnd);
    }
}
