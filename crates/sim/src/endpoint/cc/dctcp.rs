//! DCTCP: reduces the window by half the fraction of marked bytes, so that a switch with a low
//! marking threshold keeps a short queue without emptying it.
//!
//! **Source**: RFC 8257 §3.3 (sender), §3.4 (packet loss, as in any TCP), §3.5 (SYNs are
//! ECN-capable). The receiver's exact ECN echo (§3.2) is in `tcp/receiver.rs`; with
//! `ecn_feedback = "accurate"`, AccECN counts the marks instead.
//!
//! **Symbols** `alpha`, `g`, `M`, `WindowEnd`, `BytesAcked`, `BytesMarked` as in the RFC.
//!
//! **Departures**: alpha is a floating-point number, so it can reach 0; integer shifts get stuck
//! above it. Retransmissions are ECN-capable, as in Linux. At a window of one segment (after a
//! timeout) a mark does not pause the flow for a timeout, which RFC 3168 would require.

use super::{
    CongestionControl, CongestionSignal, ControlParams, NewDataAck, Reno, TcpEntry, Window,
};
use crate::endpoint::common_params::{CommonParams, LossRecovery, Profile};
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::params;
use sojourn_aqm::random::Random;
use sojourn_aqm::units::Time;

params! {
    /// Parameters of [`Dctcp`].
    pub struct DctcpParams {
        /// Weight of one window's marked fraction in the moving average.
        g: f64 = 0.0625, [1e-6 => 1.0], "g", [];
        /// Initial value of the moving average; 1 makes the first reduction as large as Reno's.
        alpha: f64 = 1.0, [0.0 => 1.0], "alpha", ["initial_alpha"];
    }
}

/// Entry in the list of TCPs.
pub(super) const TCP: TcpEntry = TcpEntry {
    name: "dctcp",
    aliases: &[],
    about: "reduces the window by half the fraction of ECN-marked bytes; not in ns2",
    source: "RFC 8257",
    profile: Profile::Linux,
    recovery: LossRecovery::Sack,
    control: || ControlParams::Dctcp(DctcpParams::default()),
};

/// DCTCP state.
#[derive(Clone, Debug, Snapshot)]
pub struct Dctcp {
    params: DctcpParams,
    reno: Reno,
    alpha: f64,
    window_end: u64,
    bytes_acked: u64,
    bytes_marked: u64,
}

impl Dctcp {
    /// Creates a control; `limit` is `abc_limit` for slow start.
    pub fn of(params: DctcpParams, limit: u64) -> Dctcp {
        let (alpha, reno) = (params.alpha, Reno::with_params(limit));
        Dctcp { params, reno, alpha, window_end: 1, bytes_acked: 0, bytes_marked: 0 }
    }

    /// Moving average of the fraction of marked bytes.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }
}

impl CongestionControl for Dctcp {
    type Params = DctcpParams;

    fn new(params: &DctcpParams, common: &CommonParams, _: &mut dyn Random) -> Dctcp {
        Dctcp::of(params.clone(), common.abc_limit)
    }

    fn reset(&mut self) {
        *self = Dctcp::of(self.params.clone(), self.reno.limit());
    }

    fn on_ack(&mut self, window: &mut Window, acked: &NewDataAck) {
        self.reno.on_ack(window, acked);
    }

    fn on_congestion(
        &mut self,
        now: Time,
        window: &Window,
        flight: u64,
        cause: CongestionSignal,
    ) -> u64 {
        if cause != CongestionSignal::Mark {
            return self.reno.on_congestion(now, window, flight, cause); // §3.4
        }
        let cut = cast::trunc(window.cwnd as f64 * self.alpha / 2.0);
        (window.cwnd - cut).max(2 * window.mss) // §3.3
    }

    fn reacts_to_mark_fraction(&self) -> bool {
        true
    }

    fn on_ecn_feedback(&mut self, ack: u64, bytes: u64, marked: u64, next: u64) {
        self.bytes_acked += bytes;
        self.bytes_marked += marked;
        if ack <= self.window_end || self.bytes_acked == 0 {
            return;
        }
        // Accurate feedback can report a mark before the data is acknowledged.
        let m = (self.bytes_marked as f64 / self.bytes_acked as f64).min(1.0);
        self.alpha += self.params.g * (m - self.alpha);
        (self.window_end, self.bytes_acked, self.bytes_marked) = (next, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alpha_matches_a_hand_computed_average() {
        let mut d = Dctcp::of(DctcpParams::default(), 1);
        // Windows of ten segments; g = 1/16. The first ends above sequence number 1.
        d.on_ecn_feedback(1_001, 1_000, 0, 10_001);
        let mut expected = 15.0 / 16.0;
        assert_eq!(d.alpha(), expected);
        for (round, marked) in (1..).zip([0, 3, 10, 5, 0]) {
            for i in 1..=10 {
                let ack = (round - 1) * 10_000 + 1_001 + i * 1_000;
                // The ack beyond the end of the window closes it.
                let bytes = if i <= marked { 1_000 } else { 0 };
                d.on_ecn_feedback(ack, 1_000, bytes, round * 10_000 + 10_001);
            }
            expected = expected * 15.0 / 16.0 + marked as f64 / 10.0 / 16.0;
            assert!((d.alpha() - expected).abs() < 1e-12, "{round}: {}, {expected}", d.alpha());
        }
    }

    #[test]
    fn mark_reduces_by_half_of_alpha_and_loss_by_half() {
        let w = Window { cwnd: 100_000, ssthresh: 1, mss: 1_000 };
        let mut d = Dctcp::of(DctcpParams { alpha: 0.2, ..DctcpParams::default() }, 1);
        assert_eq!(d.on_congestion(Time::ZERO, &w, 100_000, CongestionSignal::Mark), 90_000);
        assert_eq!(d.on_congestion(Time::ZERO, &w, 100_000, CongestionSignal::Loss), 50_000);
        let small = Window { cwnd: 2_000, ..w };
        assert_eq!(
            d.on_congestion(Time::ZERO, &small, 2_000, CongestionSignal::Mark),
            2_000,
            "never below two"
        );
        d.reset();
        assert_eq!(d.alpha(), 0.2);
    }
}
