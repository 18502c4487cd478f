//! DCTCP: the window is cut by half the share of marked bytes, so that a switch that marks above a
//! short queue keeps it there without emptying it.
//!
//! **Source**: RFC 8257 §3.3 (sender), §3.4 (losses as in any TCP), §3.5 (SYNs are ECN-capable
//! too). The receiver's exact echo (§3.2) is in `tcp/receiver.rs`.
//!
//! **Symbols** `alpha`, `g`, `M`, `WindowEnd`, `BytesAcked`, `BytesMarked` as there.
//!
//! **Departures**: alpha is a real number: it reaches 0, where a shift of integers gets stuck. Data
//! that is sent again is ECN-capable, as in Linux; and where the window is one segment (after a
//! timeout), a mark does not silence the flow for a timeout, as RFC 3168 would have it.

use super::{Acked, Cause, Control, Reno, Window};
use crate::tcp::TcpParams;
use sojourn_aqm::cast;
use sojourn_aqm::dice::Dice;
use sojourn_aqm::params;
use sojourn_aqm::units::Time;

params! {
    /// Parameters of [`Dctcp`].
    pub struct DctcpParams {
        /// Weight of one window's share of marks in their average.
        g: f64 = 0.0625, [1e-6 => 1.0], "g", [];
        /// The average before anything is known: 1 cuts the first time as Reno does.
        alpha: f64 = 1.0, [0.0 => 1.0], "alpha", ["initial_alpha"];
    }
}

/// The state of DCTCP's window.
#[derive(Clone, Debug)]
pub struct Dctcp {
    params: DctcpParams,
    reno: Reno,
    alpha: f64,
    window_end: u64,
    bytes_acked: u64,
    bytes_marked: u64,
}

impl Dctcp {
    /// A control with its parameters, `limit` for slow start.
    pub fn of(params: DctcpParams, limit: u64) -> Dctcp {
        let (alpha, reno) = (params.alpha, Reno::of(limit));
        Dctcp { params, reno, alpha, window_end: 1, bytes_acked: 0, bytes_marked: 0 }
    }

    /// The moving average of the share of marked bytes.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }
}

impl Control for Dctcp {
    fn new(params: &TcpParams, _: &mut dyn Dice) -> Dctcp {
        let super::Choice::Dctcp(own) = &params.control else { unreachable!("chosen by name") };
        Dctcp::of(own.clone(), params.settings.abc_limit)
    }

    fn reset(&mut self) {
        *self = Dctcp::of(self.params.clone(), self.reno.limit());
    }

    fn grow(&mut self, window: &mut Window, acked: &Acked) {
        self.reno.grow(window, acked);
    }

    fn cut(&mut self, now: Time, window: &Window, flight: u64, cause: Cause) -> u64 {
        if cause != Cause::Mark {
            return self.reno.cut(now, window, flight, cause); // §3.4
        }
        let cut = cast::trunc(window.cwnd as f64 * self.alpha / 2.0);
        (window.cwnd - cut).max(2 * window.mss) // §3.3
    }

    fn counts_marks(&self) -> bool {
        true
    }

    fn echoed(&mut self, ack: u64, bytes: u64, ece: bool, next: u64) {
        self.bytes_acked += bytes;
        self.bytes_marked += if ece { bytes } else { 0 };
        if ack <= self.window_end || self.bytes_acked == 0 {
            return;
        }
        let m = self.bytes_marked as f64 / self.bytes_acked as f64;
        self.alpha += self.params.g * (m - self.alpha);
        (self.window_end, self.bytes_acked, self.bytes_marked) = (next, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alpha_is_the_average_of_shares_by_hand() {
        let mut d = Dctcp::of(DctcpParams::default(), 1);
        // Windows of ten segments; g = 1/16. The first ends above sequence number 1.
        d.echoed(1_001, 1_000, false, 10_001);
        let mut expected = 15.0 / 16.0;
        assert_eq!(d.alpha(), expected);
        for (round, marked) in (1..).zip([0, 3, 10, 5, 0]) {
            for i in 1..=10 {
                let ack = (round - 1) * 10_000 + 1_001 + i * 1_000;
                // The ack beyond the window's end ends it.
                d.echoed(ack, 1_000, i <= marked, round * 10_000 + 10_001);
            }
            expected = expected * 15.0 / 16.0 + marked as f64 / 10.0 / 16.0;
            assert!((d.alpha() - expected).abs() < 1e-12, "{round}: {}, {expected}", d.alpha());
        }
    }

    #[test]
    fn cut_by_half_of_alpha_and_for_a_loss_by_half() {
        let w = Window { cwnd: 100_000, ssthresh: 1, mss: 1_000 };
        let mut d = Dctcp::of(DctcpParams { alpha: 0.2, ..DctcpParams::default() }, 1);
        assert_eq!(d.cut(Time::ZERO, &w, 100_000, Cause::Mark), 90_000);
        assert_eq!(d.cut(Time::ZERO, &w, 100_000, Cause::Loss), 50_000);
        let small = Window { cwnd: 2_000, ..w };
        assert_eq!(d.cut(Time::ZERO, &small, 2_000, Cause::Mark), 2_000, "never below two");
        d.reset();
        assert_eq!(d.alpha(), 0.2);
    }
}
