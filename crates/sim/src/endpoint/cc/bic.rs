//! BIC: searches for the window at which packets were lost by halving the distance to it, then
//! beyond it; the default of Linux before CUBIC.
//!
//! **Source**: L. Xu, K. Harfoush, I. Rhee, "Binary Increase Congestion Control (BIC) for Fast
//! Long-Distance Networks", INFOCOM 2004, §III; Linux 6.12 `net/ipv4/tcp_bic.c`, with its integers:
//! the growth is a number of segments to acknowledge (`cnt`), and a step goes a quarter of the
//! distance.
//!
//! **Symbols** `Smax` (here `max_increment`), `beta` (in 1/1024) as in the paper, otherwise as in
//! Linux.

use super::linux::{Acked, Algorithm, Segments, State};
use super::{CongestionSignal, ControlParams, TcpEntry};
use crate::endpoint::common_params::{LossRecovery, Profile};
use sojourn_aqm::Snapshot;
use sojourn_aqm::params;
use sojourn_aqm::random::Random;

params! {
    /// Parameters of [`Bic`].
    pub struct BicParams {
        /// If true, a window reduced before it reached the last maximum lowers the maximum further.
        fast_convergence: bool = true, [], "", [];
        /// Largest growth per round trip, segments.
        max_increment: u64 = 16, [1 => 1_000], "Smax", [];
        /// Window up to which it is Reno, segments.
        low_window: u64 = 14, [2 => 10_000], "low_window", [];
        /// Window after a loss, 1024ths of the window before.
        beta: u64 = 819, [512 => 1_023], "beta", [];
        /// Slowness of the growth near the last maximum.
        smooth_part: u64 = 20, [4 => 1_000], "smooth_part", [];
    }
}

/// Entry in the list of TCPs.
pub(super) const TCP: TcpEntry = TcpEntry {
    name: "bic",
    aliases: &[],
    about: "binary search for the window at which packets were lost; not in ns2",
    source: "Xu, Harfoush, Rhee, BIC, INFOCOM 2004; Linux tcp_bic.c",
    profile: Profile::Linux,
    recovery: LossRecovery::Sack,
    control: || ControlParams::Bic(BicParams::default()),
};

/// Part of the distance that a step of the search goes: a quarter.
const B: u64 = 4;
/// Time after which `cnt` is computed anew although the window is the same, ms.
const REST: u64 = 31;
/// Largest `cnt` before the first loss.
const CNT_BEFORE_LOSS: u64 = 20;
/// Segments per ack are counted in sixteenths; two before the first ack.
const RATIO_ONE: u64 = 16;

/// BIC state.
#[derive(Clone, Debug, Snapshot)]
pub struct Bic {
    params: BicParams,
    /// Segments to acknowledge for one that the window grows by.
    cnt: u64,
    /// Window at the last reduction; 0 if there was none.
    last_max: u64,
    /// Window and time, ms, of the last computation.
    last: (u64, u64),
    /// Segments per ack, smoothed, in sixteenths.
    delayed_ack: u64,
}

impl Bic {
    /// Creates a control.
    pub fn of(params: BicParams) -> Bic {
        Bic { params, cnt: 0, last_max: 0, last: (0, 0), delayed_ack: 2 * RATIO_ONE }
    }

    /// Segments to acknowledge for one, for a window of `cwnd`.
    fn count(&self, cwnd: u64) -> u64 {
        let BicParams { max_increment, low_window, smooth_part, .. } = self.params;
        if cwnd <= low_window {
            return cwnd; // not limited before the first loss, as that is below 20
        }
        let distance = self.last_max.saturating_sub(cwnd) / B;
        if cwnd < self.last_max {
            match distance {
                0 | 1 => cwnd * smooth_part / B,
                _ => cwnd / distance.min(max_increment),
            }
        } else if cwnd < self.last_max + B {
            cwnd * smooth_part / B
        } else if cwnd < self.last_max + max_increment * (B - 1) {
            cwnd * (B - 1) / (cwnd - self.last_max)
        } else {
            cwnd / max_increment
        }
    }

    /// Computes `cnt` for a window of `cwnd`.
    fn update(&mut self, cwnd: u64, now: u64) {
        if self.last.0 == cwnd && now - self.last.1 <= REST {
            return;
        }
        self.last = (cwnd, now);
        self.cnt = self.count(cwnd);
        if cwnd <= self.params.low_window {
            return;
        }
        if self.last_max == 0 {
            self.cnt = self.cnt.min(CNT_BEFORE_LOSS);
        }
        self.cnt = (self.cnt * RATIO_ONE / self.delayed_ack).max(1);
    }
}

impl Algorithm for Bic {
    type Params = BicParams;

    fn new(params: &BicParams, _: &mut dyn Random) -> Bic {
        Bic::of(params.clone())
    }

    fn reset(&mut self) {
        *self = Bic::of(self.params.clone());
    }

    fn on_acked(&mut self, _: &mut Segments, ack: &Acked) {
        if ack.state == State::Open {
            self.delayed_ack = self.delayed_ack + ack.segments - self.delayed_ack / RATIO_ONE;
        }
    }

    fn grow(&mut self, w: &mut Segments, ack: &Acked, acked: u64) {
        if !ack.full {
            return;
        }
        let left = w.slow_start_if_below(acked);
        if left > 0 {
            self.update(w.cwnd, ack.now);
            w.increase(self.cnt, left);
        }
    }

    fn ssthresh(&mut self, w: &Segments, _: CongestionSignal, _: u64) -> u64 {
        let early = self.params.fast_convergence && w.cwnd < self.last_max;
        self.last_max = if early { w.cwnd * (1_024 + self.params.beta) / 2_048 } else { w.cwnd };
        if w.cwnd <= self.params.low_window {
            return w.half();
        }
        (w.cwnd * self.params.beta / 1_024).max(2)
    }

    fn on_state(&mut self, state: State, _: u64) {
        if state == State::Loss {
            self.reset();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::linux::testing::{acked, window};
    use super::*;

    fn bic(last_max: u64) -> Bic {
        Bic { last_max, ..Bic::of(BicParams::default()) }
    }

    #[test]
    fn growth_falls_towards_the_maximum_and_rises_beyond_it() {
        // Segments per window: 16 far below, then a quarter of the distance; within eight of the
        // maximum and up to 4 above, a fifth; then (w - 200) / 3, at most 16.
        let count = |cwnd| bic(200).count(cwnd);
        assert_eq!([100, 136, 160, 192].map(count), [6, 8, 16, 96]);
        assert_eq!([193, 199, 200, 203].map(count), [965, 995, 1_000, 1_015]);
        assert_eq!([204, 230, 247, 248].map(count), [153, 23, 15, 15]);
        assert_eq!(count(14), 14, "Reno");
    }

    #[test]
    fn delayed_acks_count_double_and_the_growth_before_a_loss_is_limited() {
        let mut b = bic(200);
        b.update(160, 0);
        assert_eq!(b.cnt, 8, "16, with two segments per ack");
        b.delayed_ack = RATIO_ONE;
        b.update(160, 31);
        assert_eq!(b.cnt, 8, "not computed before 32 ms");
        b.update(160, 32);
        assert_eq!(b.cnt, 16);
        let mut b = Bic { delayed_ack: RATIO_ONE, ..bic(0) };
        b.update(1_000, 0);
        assert_eq!(b.cnt, 20, "instead of 62");
    }

    #[test]
    fn acks_of_one_segment_halve_the_estimate_in_time() {
        let (mut b, mut w) = (bic(0), window(20, 2));
        b.on_acked(&mut w, &acked(0, 1));
        assert_eq!(b.delayed_ack, 31);
        b.on_acked(&mut w, &Acked { state: State::Recovery, ..acked(0, 1) });
        assert_eq!(b.delayed_ack, 31);
        (0..50).for_each(|_| b.on_acked(&mut w, &acked(0, 1)));
        assert_eq!(b.delayed_ack, 31, "the fraction is rounded down: 31 / 16 = 1");
        (0..200).for_each(|_| b.on_acked(&mut w, &Acked { segments: 2, ..acked(0, 1) }));
        assert_eq!(b.delayed_ack, 32);
    }

    #[test]
    fn a_loss_leaves_four_fifths_and_the_maximum_moves() {
        let mut b = bic(0);
        let mut left = |cwnd| (b.ssthresh(&window(cwnd, 2), CongestionSignal::Loss, 0), b.last_max);
        // The second one is below the maximum: 80 * 1843 / 2048 = 71.
        assert_eq!([100, 80, 90, 14].map(&mut left), [(79, 100), (63, 71), (71, 90), (7, 12)]);
        b.on_state(State::Loss, 0);
        assert_eq!(b.last_max, 0);
    }

    #[test]
    fn the_window_grows_by_a_segment_for_cnt() {
        let (mut b, mut w) = (bic(200), window(160, 2));
        (0..8).for_each(|_| b.grow(&mut w, &acked(1, 1), 1));
        assert_eq!(w.cwnd, 161);
    }
}
