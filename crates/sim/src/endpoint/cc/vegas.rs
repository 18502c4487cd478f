//! Vegas: keeps a few segments queued in the network, estimated from the difference between the
//! current and the shortest round-trip time.
//!
//! **Source**: L. Brakmo, L. Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global
//! Internet", IEEE JSAC 13(8), 1995, §3.2 (congestion avoidance) and §3.3 (slow start). As in the
//! paper, the round-trip time comes from one timed segment at a time.
//!
//! **Symbols** `alpha`, `beta`, `gamma`, `BaseRTT`, `Diff` (here in segments: multiplied by
//! `BaseRTT`).
//!
//! **Departures**: losses are detected as by any other TCP and halve the window. The paper's
//! retransmission by fine-grained timers (§3.1) and its reduction to three quarters are omitted.

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
    /// Parameters of [`Vegas`].
    pub struct VegasParams {
        /// Queued segments below which the window grows.
        alpha: f64 = 2.0, [0.0 => 1e6], "alpha", [];
        /// Queued segments above which the window shrinks.
        beta: f64 = 4.0, [0.0 => 1e6], "beta", [];
        /// Queued segments at which slow start ends.
        gamma: f64 = 1.0, [0.0 => 1e6], "gamma", [];
    }
}

/// Entry in the list of TCPs.
pub(super) const TCP: TcpEntry = TcpEntry {
    name: "vegas",
    aliases: &[],
    about: "delay-based: keeps a few segments queued in the network; not in ns2",
    source: "Brakmo, Peterson, TCP Vegas, IEEE JSAC 1995",
    profile: Profile::Rfc,
    recovery: LossRecovery::Sack,
    control: || ControlParams::Vegas(VegasParams::default()),
};

/// Vegas state.
#[derive(Clone, Debug, Snapshot)]
pub struct Vegas {
    params: VegasParams,
    slow_start: Reno,
    /// `BaseRTT`.
    base: Option<Span>,
    /// True if slow start grows the window in this round trip; every second one is used to measure.
    grows: bool,
}

impl Vegas {
    /// Creates a control; `limit` is `abc_limit` for slow start.
    pub fn with_params(params: VegasParams, limit: u64) -> Vegas {
        Vegas { params, slow_start: Reno::with_params(limit), base: None, grows: true }
    }

    /// Updates the window after a round trip of `rtt`; `full` is true if the window was full.
    fn on_round_trip(&mut self, window: &mut Window, rtt: Span, full: bool) {
        let base = self.base.map_or(rtt, |b| b.min(rtt));
        self.base = Some(base);
        let segments = window.cwnd as f64 / window.mss as f64;
        let diff = segments * (1.0 - base.0 as f64 / rtt.0.max(1) as f64);
        let least = 2 * window.mss;
        if window.cwnd < window.ssthresh {
            self.grows = !self.grows;
            if diff > self.params.gamma {
                // The bandwidth-delay product, and one segment to keep the link busy.
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

impl CongestionControl for Vegas {
    type Params = VegasParams;

    fn new(params: &VegasParams, common: &CommonParams, _: &mut dyn Random) -> Vegas {
        Vegas::with_params(params.clone(), common.abc_limit)
    }

    fn reset(&mut self) {
        *self = Vegas::with_params(self.params.clone(), self.slow_start.limit());
    }

    fn on_ack(&mut self, window: &mut Window, acked: &NewDataAck) {
        if let Some(rtt) = acked.rtt {
            return self.on_round_trip(window, rtt, acked.window_was_full(window));
        }
        if window.cwnd < window.ssthresh && self.grows && acked.window_was_full(window) {
            self.slow_start.on_ack(window, acked);
        }
    }

    fn on_congestion(
        &mut self,
        now: Time,
        window: &Window,
        flight: u64,
        cause: CongestionSignal,
    ) -> u64 {
        self.grows = true;
        self.slow_start.on_congestion(now, window, flight, cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(v: &mut Vegas, w: &mut Window, ms: u64) -> u64 {
        let acked = NewDataAck {
            at: Time::ZERO,
            bytes: 1_000,
            flight: w.cwnd,
            rtt: Some(Span::ms(ms)),
            srtt: None,
            after_timeout: false,
        };
        v.on_ack(w, &acked);
        w.cwnd / 1_000
    }

    #[test]
    fn window_changes_by_one_to_keep_two_to_four_queued() {
        let mut v = Vegas::with_params(VegasParams::default(), 1);
        let mut w = Window { cwnd: 20_000, ssthresh: 2_000, mss: 1_000 };
        assert_eq!(round(&mut v, &mut w, 100), 21, "nothing queued: Diff = 0");
        // 21 (1 - 100/110) = 1.9, 22 (1 - 100/115) = 2.9, 22 (1 - 100/125) = 4.4 segments.
        assert_eq!(round(&mut v, &mut w, 110), 22);
        assert_eq!(round(&mut v, &mut w, 115), 22);
        assert_eq!(round(&mut v, &mut w, 125), 21);
        assert_eq!(round(&mut v, &mut w, 80), 22, "a shorter RTT becomes BaseRTT");
        assert_eq!(v.base, Some(Span::ms(80)));
    }

    #[test]
    fn slow_start_grows_every_second_round_trip_until_a_segment_queues() {
        let mut v = Vegas::with_params(VegasParams::default(), 1);
        let mut w = Window { cwnd: 10_000, ssthresh: 90_000, mss: 1_000 };
        let plain = NewDataAck {
            at: Time::ZERO,
            bytes: 1_000,
            flight: 10_000,
            rtt: None,
            srtt: None,
            after_timeout: false,
        };
        v.on_ack(&mut w, &plain);
        assert_eq!(w.cwnd, 11_000);
        assert_eq!(round(&mut v, &mut w, 100), 11);
        v.on_ack(&mut w, &plain);
        assert_eq!(w.cwnd, 11_000, "the window is constant while measuring");
        assert_eq!(round(&mut v, &mut w, 100), 11);
        v.on_ack(&mut w, &plain);
        assert_eq!(w.cwnd, 12_000);
        // 12 (1 - 100/120) = 2 > gamma: the path holds 10 segments, plus one.
        assert_eq!(round(&mut v, &mut w, 120), 11);
        assert_eq!(w.ssthresh, 11_000, "slow start is over");
    }

    #[test]
    fn thresholds_are_not_part_of_the_ranges_that_change_the_window() {
        // Half of the window is queued at twice the BaseRTT: 2 = alpha, 4 = beta.
        for (segments, ssthresh) in [(4, 2), (8, 2), (2, 90)] {
            let mut v = Vegas::with_params(VegasParams::default(), 1);
            v.base = Some(Span::ms(100));
            let mut w = Window { cwnd: segments * 1_000, ssthresh: ssthresh * 1_000, mss: 1_000 };
            assert_eq!(round(&mut v, &mut w, 200), segments);
            assert_eq!(w.ssthresh, ssthresh * 1_000, "and 1 = gamma does not end slow start");
        }
    }

    #[test]
    fn the_window_is_never_below_two_segments() {
        for ssthresh in [1_000, 90_000] {
            let mut v = Vegas::with_params(VegasParams { beta: 1.0, ..VegasParams::default() }, 1);
            (v.params.alpha, v.base) = (0.5, Some(Span::ms(10)));
            let mut w = Window { cwnd: 2_000, ssthresh, mss: 1_000 };
            // 2 (1 - 10/100) = 1.8 are queued; the path holds a fifth of a segment.
            assert_eq!(round(&mut v, &mut w, 100), 2);
        }
    }

    #[test]
    fn at_the_threshold_slow_start_is_over() {
        let mut v = Vegas::with_params(VegasParams::default(), 1);
        let mut w = Window { cwnd: 10_000, ssthresh: 10_000, mss: 1_000 };
        let acked = NewDataAck {
            at: Time::ZERO,
            bytes: 1_000,
            flight: 10_000,
            rtt: None,
            srtt: None,
            after_timeout: false,
        };
        // Reno adds a segment per ten.
        (0..20).for_each(|_| v.on_ack(&mut w, &acked));
        assert_eq!(w.cwnd, 10_000, "between two measurements the window is constant");
    }
}
