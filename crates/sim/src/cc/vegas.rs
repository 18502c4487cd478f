//! Vegas: the window is held where a few segments wait in queues, told by how much longer a round
//! trip takes than the shortest seen.
//!
//! **Source**: L. Brakmo, L. Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global
//! Internet", IEEE JSAC 13(8), 1995, §3.2 (avoidance) and §3.3 (slow start). The round trip is that
//! of a distinguished segment, one at a time, as there.
//!
//! **Symbols** `alpha`, `beta`, `gamma`, `BaseRTT`, `Diff` (in segments: times `BaseRTT`).
//!
//! **Departures**: a loss halves and is found as by any other TCP: the paper's retransmission by
//! fine timers (§3.1), with its cut to three quarters, is left out.

use super::{Acked, Cause, Control, Reno, Window};
use crate::tcp::TcpParams;
use sojourn_aqm::cast;
use sojourn_aqm::dice::Dice;
use sojourn_aqm::params;
use sojourn_aqm::units::{Span, Time};

params! {
    /// Parameters of [`Vegas`].
    pub struct VegasParams {
        /// Segments in queues below which the window grows.
        alpha: f64 = 2.0, [0.0 => 1e6], "alpha", [];
        /// Segments in queues above which it shrinks.
        beta: f64 = 4.0, [0.0 => 1e6], "beta", [];
        /// Segments in queues at which slow start ends.
        gamma: f64 = 1.0, [0.0 => 1e6], "gamma", [];
    }
}

/// The state of Vegas' window.
#[derive(Clone, Debug)]
pub struct Vegas {
    params: VegasParams,
    slow_start: Reno,
    /// `BaseRTT`.
    base: Option<Span>,
    /// Whether slow start grows in this round trip: every second one holds still to be measured.
    grows: bool,
}

impl Vegas {
    /// A control with its parameters, `limit` for slow start.
    pub fn of(params: VegasParams, limit: u64) -> Vegas {
        Vegas { params, slow_start: Reno::of(limit), base: None, grows: true }
    }

    /// A round trip took `rtt`, with a window that was full or not.
    fn measured(&mut self, window: &mut Window, rtt: Span, full: bool) {
        let base = self.base.map_or(rtt, |b| b.min(rtt));
        self.base = Some(base);
        let segments = window.cwnd as f64 / window.mss as f64;
        let diff = segments * (1.0 - base.0 as f64 / rtt.0.max(1) as f64);
        let least = 2 * window.mss;
        if window.cwnd < window.ssthresh {
            self.grows = !self.grows;
            if diff > self.params.gamma {
                // The window that would just fill the path, and a segment to keep it filled.
                let fits = cast::trunc(window.cwnd as f64 * base.0 as f64 / rtt.0 as f64);
                window.cwnd = window.cwnd.min(fits + window.mss).max(least);
                window.ssthresh = window.cwnd;
            }
        } else if diff < self.params.alpha {
            window.cwnd += if full { window.mss } else { 0 };
        } else if diff > self.params.beta {
            window.cwnd = (window.cwnd - window.mss).max(least);
            window.ssthresh = window.ssthresh.min(window.cwnd);
        }
    }
}

impl Control for Vegas {
    fn new(params: &TcpParams, _: &mut dyn Dice) -> Vegas {
        let super::Choice::Vegas(own) = &params.control else { unreachable!("chosen by name") };
        Vegas::of(own.clone(), params.settings.abc_limit)
    }

    fn reset(&mut self) {
        *self = Vegas::of(self.params.clone(), self.slow_start.limit());
    }

    fn grow(&mut self, window: &mut Window, acked: &Acked) {
        if let Some(rtt) = acked.rtt {
            return self.measured(window, rtt, acked.filled(window));
        }
        if window.cwnd < window.ssthresh && self.grows && acked.filled(window) {
            self.slow_start.grow(window, acked);
        }
    }

    fn cut(&mut self, now: Time, window: &Window, flight: u64, cause: Cause) -> u64 {
        self.grows = true;
        self.slow_start.cut(now, window, flight, cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(v: &mut Vegas, w: &mut Window, ms: u64) -> u64 {
        let acked = Acked {
            now: Time::ZERO,
            bytes: 1_000,
            flight: w.cwnd,
            rtt: Some(Span::ms(ms)),
            srtt: None,
            after_timeout: false,
        };
        v.grow(w, &acked);
        w.cwnd / 1_000
    }

    #[test]
    fn window_moves_by_one_to_keep_two_to_four_queued() {
        let mut v = Vegas::of(VegasParams::default(), 1);
        let mut w = Window { cwnd: 20_000, ssthresh: 2_000, mss: 1_000 };
        assert_eq!(round(&mut v, &mut w, 100), 21, "nothing queued: Diff = 0");
        // 21 (1 - 100/110) = 1.9, 22 (1 - 100/115) = 2.9, 22 (1 - 100/125) = 4.4 segments.
        assert_eq!(round(&mut v, &mut w, 110), 22);
        assert_eq!(round(&mut v, &mut w, 115), 22);
        assert_eq!(round(&mut v, &mut w, 125), 21);
        assert_eq!(round(&mut v, &mut w, 80), 22, "a shorter one is the new base");
        assert_eq!(v.base, Some(Span::ms(80)));
    }

    #[test]
    fn slow_start_grows_every_second_round_trip_until_one_is_queued() {
        let mut v = Vegas::of(VegasParams::default(), 1);
        let mut w = Window { cwnd: 10_000, ssthresh: 90_000, mss: 1_000 };
        let plain = Acked {
            now: Time::ZERO,
            bytes: 1_000,
            flight: 10_000,
            rtt: None,
            srtt: None,
            after_timeout: false,
        };
        v.grow(&mut w, &plain);
        assert_eq!(w.cwnd, 11_000);
        assert_eq!(round(&mut v, &mut w, 100), 11);
        v.grow(&mut w, &plain);
        assert_eq!(w.cwnd, 11_000, "this round trip is for measuring");
        assert_eq!(round(&mut v, &mut w, 100), 11);
        v.grow(&mut w, &plain);
        assert_eq!(w.cwnd, 12_000);
        // 12 (1 - 100/120) = 2 > 1: 10 fit, and one more.
        assert_eq!(round(&mut v, &mut w, 120), 11);
        assert_eq!(w.ssthresh, 11_000, "slow start is over");
    }
}
