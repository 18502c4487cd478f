//! Illinois: losses decide when the window shrinks, the queueing delay by how much it grows and
//! shrinks.
//!
//! **Source**: S. Liu, T. Başar, R. Srikant, "TCP-Illinois: A loss- and delay-based congestion
//! control algorithm for high-speed networks", Performance Evaluation 65, 2008, equation 1 (`alpha`
//! and `beta` as functions of the average delay `da`); Linux 6.12 `net/ipv4/tcp_illinois.c`, with
//! its integers: `alpha` in 1/128, `beta` in 1/64, delays in µs.
//!
//! **Symbols** `alpha`, `beta`, `da`, `dm`, `d1`, `d2`, `d3`, `theta`, `W_thresh` as in the paper.

use super::linux::{Acked, Algorithm, Segments, State};
use super::{CongestionSignal, ControlParams, TcpEntry};
use crate::endpoint::common_params::{LossRecovery, Profile};
use sojourn_aqm::Snapshot;
use sojourn_aqm::params;
use sojourn_aqm::random::Random;

params! {
    /// Parameters of [`Illinois`].
    pub struct IllinoisParams {
        /// Window below which it behaves as Reno, segments.
        win_thresh: u64 = 15, [2 => 1_000_000], "W_thresh", [];
        /// Round trips with a short queue after which the growth is largest again.
        theta: u64 = 5, [1 => 255], "theta", [];
    }
}

/// Entry in the list of TCPs.
pub(super) const TCP: TcpEntry = TcpEntry {
    name: "illinois",
    aliases: &[],
    about: "the queueing delay decides how much the window grows and shrinks; not in ns2",
    source: "Liu, Başar, Srikant, TCP-Illinois, 2008; Linux tcp_illinois.c",
    profile: Profile::Linux,
    recovery: LossRecovery::Sack,
    control: || ControlParams::Illinois(IllinoisParams::default()),
};

/// 1 in the fixed point of `alpha`, and its bounds: 0.3 and 10.
const ALPHA_ONE: u64 = 128;
const ALPHA_MIN: u64 = 3 * ALPHA_ONE / 10;
const ALPHA_MAX: u64 = 10 * ALPHA_ONE;
/// Bounds of `beta` in 1/64: 1/8 and 1/2.
const BETA_ONE: u64 = 64;
const BETA_MIN: u64 = 8;
const BETA_MAX: u64 = 32;
/// Longest round-trip time that counts, µs.
const RTT_MAX: u64 = u32::MAX as u64 / ALPHA_MAX;

/// Illinois state. Round-trip times are in microseconds.
#[derive(Clone, Debug, Snapshot)]
pub struct Illinois {
    params: IllinoisParams,
    alpha: u64,
    beta: u64,
    base_rtt: u64,
    max_rtt: u64,
    /// Sum and number of the samples in this round trip, which ends at `end_seq`.
    sum_rtt: u64,
    cnt_rtt: u64,
    end_seq: u64,
    /// Next sequence number to send, as of the last ack.
    next: u64,
    /// Segments of the last ack.
    acked: u64,
    /// True if the delay was above `d1` since `alpha` was largest.
    rtt_above: bool,
    /// Round trips with a delay below `d1` since.
    rtt_low: u64,
}

impl Illinois {
    /// Creates a control.
    pub fn of(params: IllinoisParams) -> Illinois {
        Illinois {
            params,
            alpha: ALPHA_MAX,
            beta: BETA_MAX,
            base_rtt: u64::MAX,
            max_rtt: 0,
            sum_rtt: 0,
            cnt_rtt: 0,
            end_seq: 0,
            next: 0,
            acked: 0,
            rtt_above: false,
            rtt_low: 0,
        }
    }

    /// Begins a round trip.
    fn restart_round(&mut self) {
        (self.end_seq, self.cnt_rtt, self.sum_rtt) = (self.next, 0, 0);
    }

    /// Growth for an average delay `da`, with a longest delay `dm`.
    fn alpha_for(&mut self, da: u64, dm: u64) -> u64 {
        let d1 = dm / 100;
        if da > d1 {
            self.rtt_above = true;
            let (dm, da) = (dm - d1, da - d1);
            return dm * ALPHA_MAX / (dm + da * (ALPHA_MAX - ALPHA_MIN) / ALPHA_MIN);
        }
        if self.rtt_above {
            self.rtt_low += 1;
            if self.rtt_low < self.params.theta {
                return self.alpha;
            }
            (self.rtt_low, self.rtt_above) = (0, false);
        }
        ALPHA_MAX
    }

    /// Ends a round trip: sets `alpha` and `beta`.
    fn update(&mut self, cwnd: u64) {
        if cwnd < self.params.win_thresh {
            (self.alpha, self.beta) = (ALPHA_ONE, BETA_MAX);
        } else if let Some(mean) = self.sum_rtt.checked_div(self.cnt_rtt) {
            let (dm, da) = (self.max_rtt - self.base_rtt, mean - self.base_rtt);
            self.alpha = self.alpha_for(da, dm);
            self.beta = beta_for(da, dm);
        }
        self.restart_round();
    }
}

/// Reduction for an average delay `da`, with a longest delay `dm`.
fn beta_for(da: u64, dm: u64) -> u64 {
    let (d2, d3) = (dm / 10, 8 * dm / 10);
    if da <= d2 {
        BETA_MIN
    } else if da >= d3 || d3 <= d2 {
        BETA_MAX
    } else {
        (BETA_MIN * d3 + (BETA_MAX - BETA_MIN) * da - BETA_MAX * d2) / (d3 - d2)
    }
}

impl Algorithm for Illinois {
    type Params = IllinoisParams;

    fn new(params: &IllinoisParams, _: &mut dyn Random) -> Illinois {
        Illinois::of(params.clone())
    }

    fn reset(&mut self) {
        *self = Illinois::of(self.params.clone());
    }

    fn on_acked(&mut self, _: &mut Segments, ack: &Acked) {
        (self.acked, self.next) = (ack.segments, ack.next);
        if let Some(rtt) = ack.rtt_us.map(|rtt| rtt.min(RTT_MAX)) {
            self.base_rtt = self.base_rtt.min(rtt);
            self.max_rtt = self.max_rtt.max(rtt);
            (self.cnt_rtt, self.sum_rtt) = (self.cnt_rtt + 1, self.sum_rtt + rtt);
        }
    }

    fn grow(&mut self, w: &mut Segments, ack: &Acked, acked: u64) {
        if ack.una > self.end_seq {
            self.update(w.cwnd);
        }
        if !ack.full {
            return;
        }
        if w.is_in_slow_start() {
            w.slow_start(acked);
            return;
        }
        w.cnt += self.acked;
        self.acked = 1;
        let growth = w.cnt * self.alpha / ALPHA_ONE;
        if growth >= w.cwnd {
            (w.cwnd, w.cnt) = (w.cwnd + growth / w.cwnd, 0);
        }
    }

    fn ssthresh(&mut self, w: &Segments, _: CongestionSignal, _: u64) -> u64 {
        (w.cwnd - w.cwnd * self.beta / BETA_ONE).max(2)
    }

    fn on_state(&mut self, state: State, _: u64) {
        if state == State::Loss {
            (self.alpha, self.beta) = (ALPHA_ONE, BETA_MAX);
            (self.rtt_low, self.rtt_above) = (0, false);
            self.restart_round();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::linux::testing::{acked, window};
    use super::*;

    fn illinois() -> Illinois {
        Illinois::of(IllinoisParams::default())
    }

    #[test]
    fn growth_falls_with_the_delay() {
        let mut i = illinois();
        // dm = 100 ms, d1 = 1 ms. At 1 ms 10 segments. At 51 ms: 99 * 1280 / (99 + 50 * 1242 / 38),
        // in µs 99000 * 1280 / (99000 + 1634210) = 73 of 128. At 100 ms: 1280 / (1 + 1242 / 38).
        let mut alpha = |da| i.alpha_for(da, 100_000);
        assert_eq!([1_000, 51_000, 100_000].map(&mut alpha), [1_280, 73, 38]);
    }

    #[test]
    fn the_largest_growth_returns_after_five_round_trips() {
        let mut i = illinois();
        i.alpha = i.alpha_for(51_000, 100_000);
        let mut alpha = || {
            i.alpha = i.alpha_for(500, 100_000);
            i.alpha
        };
        assert_eq!([(); 6].map(|()| alpha()), [73, 73, 73, 73, 1_280, 1_280]);
    }

    #[test]
    fn the_reduction_rises_with_the_delay() {
        // d2 = 10 ms, d3 = 80 ms; halfway, at 45 ms, halfway between 8 and 32.
        let beta = |da| beta_for(da, 100_000);
        assert_eq!([10_000, 45_000, 79_999, 80_000].map(beta), [8, 20, 31, 32]);
        assert_eq!(beta_for(1, 1), 32, "no room between the thresholds");
        let mut i = Illinois { beta: 20, ..illinois() };
        assert_eq!(i.ssthresh(&window(100, 2), CongestionSignal::Loss, 0), 69, "100 - 31");
    }

    #[test]
    fn parameters_change_once_per_round_trip() {
        let (mut i, mut w) = (illinois(), window(20, 2));
        let mut ack = |w: &mut Segments, una, rtt| {
            let ack = Acked { una, next: una + 20_000, ..acked(0, rtt) };
            i.on_acked(w, &ack);
            i.grow(w, &ack, 1);
            i.alpha
        };
        assert_eq!(ack(&mut w, 1_001, 100_000), 1_280);
        assert_eq!(ack(&mut w, 2_001, 200_000), 1_280);
        // The mean of 200 and 110 ms is 55 ms above the shortest, with d1 = 1 ms.
        assert_eq!(ack(&mut w, 21_002, 110_000), 99_000 * 1_280 / (99_000 + 54_000 * 1_242 / 38));
        assert_eq!((i.cnt_rtt, i.end_seq), (0, 41_002));
    }

    #[test]
    fn small_windows_and_timeouts_are_renos() {
        let (mut i, mut w) = (illinois(), window(14, 2));
        i.grow(&mut w, &acked(0, 1), 1);
        assert_eq!((i.alpha, i.beta), (128, 32));
        let mut i = illinois();
        i.on_state(State::Loss, 0);
        assert_eq!((i.alpha, i.beta), (128, 32));
    }

    #[test]
    fn several_segments_at_once() {
        // alpha = 10: with the fourth segment 40 >= 20, which makes two segments.
        let (mut i, mut w) = (illinois(), window(20, 2));
        i.acked = 4;
        i.grow(&mut w, &Acked { una: 0, ..acked(0, 1) }, 4);
        assert_eq!((w.cwnd, w.cnt), (22, 0));
    }
}
