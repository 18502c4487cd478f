//! H-TCP: the growth per round trip rises with the time since the last congestion, and the window
//! after a loss depends on the ratio of the shortest to the longest round-trip time.
//!
//! **Source**: R. Shorten, D. Leith, "H-TCP: TCP for High-Speed and Long-Distance Networks",
//! PFLDnet 2004, §3 (growth: equations 4 and 5; back-off and bandwidth switch: §3.2); Linux 6.12
//! `net/ipv4/tcp_htcp.c`, with its integers: `alpha` and `beta` in 1/128, times in ms.
//!
//! **Symbols** `alpha`, `beta`, `Delta` (here `time`) as in the paper, otherwise as in Linux.

use super::linux::{Acked, Algorithm, Segments, State, jiffies};
use super::{CongestionSignal, ControlParams, TcpEntry};
use crate::endpoint::common_params::{LossRecovery, Profile};
use sojourn_aqm::Snapshot;
use sojourn_aqm::params;
use sojourn_aqm::random::Random;

params! {
    /// Parameters of [`Htcp`].
    pub struct HtcpParams {
        /// If true, the growth is scaled by the shortest round-trip time (100 ms: no change).
        use_rtt_scaling: bool = true, [], "", [];
        /// If true, the window is halved when the throughput has changed by a fifth since the last
        /// reduction.
        use_bandwidth_switch: bool = true, [], "", [];
    }
}

/// Entry in the list of TCPs.
pub(super) const TCP: TcpEntry = TcpEntry {
    name: "htcp",
    aliases: &["h-tcp"],
    about: "grows faster the longer it is since the last congestion; not in ns2",
    source: "Shorten, Leith, H-TCP, PFLDnet 2004; Linux tcp_htcp.c",
    profile: Profile::Linux,
    recovery: LossRecovery::Sack,
    control: || ControlParams::Htcp(HtcpParams::default()),
};

/// 1 in the fixed point of `alpha` and `beta`.
const ONE: u64 = 128;
/// Bounds of `beta`: 0.5 and 0.8.
const BETA_MIN: u64 = 64;
const BETA_MAX: u64 = 102;
/// Second, in milliseconds.
const HZ: u64 = 1_000;

/// H-TCP state. Times are in milliseconds.
#[derive(Clone, Debug, Snapshot)]
pub struct Htcp {
    params: HtcpParams,
    alpha: u64,
    beta: u64,
    /// True once a reduction has been by the ratio of round-trip times, or could have been.
    mode_switch: bool,
    /// Segments of the last ack.
    pkts_acked: u64,
    min_rtt: u64,
    max_rtt: u64,
    /// End of the last congestion.
    last_cong: u64,
    /// Segments acknowledged since `last_time`, for the throughput.
    packet_count: u64,
    last_time: u64,
    /// Throughput, segments/s: smoothed, largest since the last reduction, and the one before.
    rate: u64,
    max_rate: u64,
    old_max_rate: u64,
}

impl Htcp {
    /// Creates a control.
    pub fn of(params: HtcpParams) -> Htcp {
        Htcp {
            params,
            alpha: ONE,
            beta: BETA_MIN,
            mode_switch: false,
            pkts_acked: 1,
            min_rtt: 0,
            max_rtt: 0,
            last_cong: 0,
            packet_count: 0,
            last_time: 0,
            rate: 0,
            max_rate: 0,
            old_max_rate: 0,
        }
    }

    /// Updates the bounds of the round-trip time; the upper one rises by at most 20 ms at a time.
    fn measure_rtt(&mut self, rtt: u64, state: State) {
        if self.min_rtt > rtt || self.min_rtt == 0 {
            self.min_rtt = rtt;
        }
        if state == State::Open {
            self.max_rtt = self.max_rtt.max(self.min_rtt);
            if self.max_rtt < rtt && rtt <= self.max_rtt + 20 {
                self.max_rtt = rtt;
            }
        }
    }

    /// Measures the throughput over a window and a round trip.
    fn measure_rate(&mut self, w: &Segments, ack: &Acked) {
        if !matches!(ack.state, State::Open) {
            (self.packet_count, self.last_time) = (0, ack.now);
            return;
        }
        self.packet_count += ack.segments;
        let time = ack.now - self.last_time;
        let growth = (self.alpha / ONE).max(1);
        if self.packet_count + growth < w.cwnd || time < self.min_rtt || self.min_rtt == 0 {
            return;
        }
        let rate = self.packet_count * HZ / time;
        if (ack.now - self.last_cong) / self.min_rtt <= 3 {
            (self.rate, self.max_rate) = (rate, rate);
        } else {
            self.rate = (3 * self.rate + rate) / 4;
            self.max_rate = self.max_rate.max(self.rate);
        }
        (self.packet_count, self.last_time) = (0, ack.now);
    }

    /// Sets `beta` at a reduction.
    fn update_beta(&mut self) {
        if self.params.use_bandwidth_switch {
            let (max, old) = (self.max_rate, self.old_max_rate);
            self.old_max_rate = max;
            if 5 * max < 4 * old || 5 * max > 6 * old {
                (self.beta, self.mode_switch) = (BETA_MIN, false);
                return;
            }
        }
        if self.mode_switch && self.min_rtt > 10 && self.max_rtt > 0 {
            self.beta = (self.min_rtt * ONE / self.max_rtt).clamp(BETA_MIN, BETA_MAX);
        } else {
            (self.beta, self.mode_switch) = (BETA_MIN, true);
        }
    }

    /// Sets `alpha` from the time since the last congestion, by equation 4.
    fn update_alpha(&mut self, now: u64) {
        let time = now - self.last_cong;
        let mut factor = 1;
        if time > HZ {
            let time = time - HZ;
            factor = 1 + (10 * time + (time / 2) * (time / 2) / HZ) / HZ;
        }
        if self.params.use_rtt_scaling && self.min_rtt > 0 {
            let scale = (8 * HZ / (10 * self.min_rtt)).clamp(4, 80);
            factor = (8 * factor / scale).max(1);
        }
        self.alpha = 2 * factor * (ONE - self.beta);
    }
}

impl Algorithm for Htcp {
    type Params = HtcpParams;

    fn new(params: &HtcpParams, _: &mut dyn Random) -> Htcp {
        Htcp::of(params.clone())
    }

    fn reset(&mut self) {
        *self = Htcp::of(self.params.clone());
    }

    fn on_established(&mut self, _: &mut Segments, now: u64, _: u64) {
        self.last_cong = now;
    }

    fn on_acked(&mut self, w: &mut Segments, ack: &Acked) {
        if ack.state == State::Open {
            self.pkts_acked = ack.segments;
        }
        if let Some(rtt) = ack.rtt_us.filter(|rtt| *rtt > 0) {
            self.measure_rtt(jiffies(rtt), ack.state);
        }
        if self.params.use_bandwidth_switch {
            self.measure_rate(w, ack);
        }
    }

    fn grow(&mut self, w: &mut Segments, ack: &Acked, acked: u64) {
        if !ack.full {
            return;
        }
        if w.is_in_slow_start() {
            w.slow_start(acked);
            return;
        }
        if w.cnt * self.alpha / ONE >= w.cwnd {
            (w.cwnd, w.cnt) = (w.cwnd + 1, 0);
            self.update_alpha(ack.now);
        } else {
            w.cnt += self.pkts_acked;
        }
        self.pkts_acked = 1;
    }

    fn ssthresh(&mut self, w: &Segments, _: CongestionSignal, now: u64) -> u64 {
        self.update_beta();
        self.update_alpha(now);
        if self.min_rtt > 0 && self.max_rtt > self.min_rtt {
            self.max_rtt = self.min_rtt + (self.max_rtt - self.min_rtt) * 95 / 100;
        }
        (w.cwnd * self.beta / ONE).max(2)
    }

    fn on_state(&mut self, _: State, now: u64) {
        self.last_cong = now; // at the start of congestion, and again at its end
    }
}

#[cfg(test)]
mod tests {
    use super::super::linux::testing::{acked, window};
    use super::*;

    fn htcp() -> Htcp {
        Htcp::of(HtcpParams::default())
    }

    #[test]
    fn the_growth_rises_with_the_time_since_congestion() {
        let mut h = htcp();
        h.min_rtt = 100; // no scaling
        let mut alpha_at = |ms| {
            h.update_alpha(ms);
            h.alpha
        };
        // 2 (1 - 0.5) factor, in 1/128. In the third second: 1 + (10 * 2000 + 1000 * 1000 / 1000)
        // / 1000 = 22. In the eleventh: 1 + (10 * 10000 + 5000 * 5000 / 1000) / 1000 = 126.
        assert_eq!([0, 1_000, 3_000, 11_000].map(&mut alpha_at), [128, 128, 22 * 128, 126 * 128]);
        // 20 ms: 22 / 5. 400 ms: the scale is 8000 / 4000 = 2, but at least 4 eighths.
        for (rtt, factor) in [(20, 4), (400, 44)] {
            h.min_rtt = rtt;
            h.update_alpha(3_000);
            assert_eq!(h.alpha, factor * 128, "{rtt} ms");
        }
    }

    #[test]
    fn the_reduction_is_by_the_ratio_of_round_trip_times() {
        let params = HtcpParams { use_bandwidth_switch: false, ..HtcpParams::default() };
        let mut h = Htcp { min_rtt: 60, max_rtt: 100, ..Htcp::of(params) };
        let left = |h: &mut Htcp| h.ssthresh(&window(100, 2), CongestionSignal::Loss, 0);
        // The first reduction halves. 60 * 128 / 98 = 78 of 128; the largest round-trip time fades.
        assert_eq!((left(&mut h), h.max_rtt), (50, 98));
        assert_eq!((left(&mut h), h.max_rtt), (60, 96));
        (h.min_rtt, h.max_rtt) = (95, 100);
        assert_eq!(left(&mut h), 79, "at most 102 / 128");
        (h.min_rtt, h.max_rtt) = (10, 12);
        assert_eq!(left(&mut h), 50, "not below 10 ms");
    }

    #[test]
    fn a_change_of_the_throughput_by_more_than_a_fifth_halves() {
        let mut h = Htcp { min_rtt: 60, max_rtt: 100, mode_switch: true, ..htcp() };
        let mut beta = |max_rate| {
            h.max_rate = max_rate;
            h.update_beta();
            h.beta
        };
        assert_eq!([1_000, 1_201, 1_201, 1_201].map(&mut beta), [64, 64, 64, 76]);
    }

    #[test]
    fn throughput_is_measured_over_a_window_and_a_round_trip() {
        let mut h = htcp();
        let mut w = window(10, 2);
        // Ten acks of a segment, one every 10 ms, the first at 100 ms.
        (1..=10).for_each(|i| h.on_acked(&mut w, &acked(90 + 10 * i, 100_000)));
        // With the ninth ack, 9 segments in 180 ms: 50 segments/s.
        assert_eq!((h.rate, h.max_rate, h.packet_count), (50, 50, 1));
        assert_eq!((h.min_rtt, h.max_rtt), (100, 100));
        h.on_acked(&mut w, &acked(191, 119_001));
        assert_eq!(h.max_rtt, 120, "rounded up");
        h.on_acked(&mut w, &acked(192, 140_001));
        assert_eq!(h.max_rtt, 120, "more than 20 ms at once");
    }

    #[test]
    fn the_window_grows_by_alpha_per_round_trip() {
        let mut h = Htcp { alpha: 4 * 128, ..htcp() };
        let mut w = window(10, 2);
        // 3 * 4 >= 10: the fourth ack finds three.
        let grown: Vec<u64> = (0..4)
            .map(|i| {
                h.grow(&mut w, &acked(i, 0), 1);
                w.cwnd
            })
            .collect();
        assert_eq!(grown, [10, 10, 10, 11]);
        assert_eq!(h.alpha, 128, "computed anew");
    }
}
