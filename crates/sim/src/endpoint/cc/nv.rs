//! NV: delay-based control for data centres; measures the delivery rate and keeps the window that
//! the rate needs at the shortest round-trip time, with a few packets more.
//!
//! **Source**: L. Brakmo, "TCP-NV: An Update to TCP-Vegas", 2010; Linux 6.12 `net/ipv4/tcp_nv.c`,
//! with its integers: rates in 100 bit/s, times in µs, periods in ms.
//!
//! **Symbols** as in Linux, without the prefix `nv_`.
//!
//! **Departures**: a base round-trip time from BPF, which Linux can have, is not available.

use super::linux::{Acked, Algorithm, Segments, State};
use super::{CongestionSignal, ControlParams, TcpEntry};
use crate::endpoint::common_params::{LossRecovery, Profile};
use rand_core::SeedableRng;
use sojourn_aqm::Pcg;
use sojourn_aqm::Snapshot;
use sojourn_aqm::random::Random;
use sojourn_aqm::units::Span;
use sojourn_aqm::{cast, params};

params! {
    /// Parameters of [`Nv`].
    pub struct NvParams {
        /// Packets in the network beyond what the rate needs.
        pad: u64 = 10, [2 => 1_000_000], "nv_pad", [];
        /// Mean period after which the shortest round-trip time is forgotten.
        reset_period: Span = Span::s(5), [Span::ms(1) => Span::s(3_600)], "nv_reset_period", [];
        /// Least window without losses, segments.
        min_cwnd: u64 = 2, [1 => 1_000_000], "nv_min_cwnd", [];
    }
}

/// Entry in the list of TCPs.
pub(super) const TCP: TcpEntry = TcpEntry {
    name: "nv",
    aliases: &[],
    about: "delay-based, for data centres: window that the measured rate needs; not in ns2",
    source: "Brakmo, TCP-NV: An Update to TCP-Vegas, 2010; Linux tcp_nv.c",
    profile: Profile::Linux,
    recovery: LossRecovery::Sack,
    control: || ControlParams::Nv(NvParams::default()),
};

/// Distance to the largest window in which the window stays, segments.
const PAD_BUFFER: u64 = 2;
/// Reduction of the window by a part of the excess: 38 of 128.
const CONG_DEC_MULT: u64 = 38;
/// Window after a loss, 1024ths.
const LOSS_DEC_FACTOR: u64 = 819;
/// Round trips without congestion after which a slow growth doubles.
const GROWTH_RATE_NEG: u64 = 8;
/// Samples before the window shrinks, before it grows, and before slow start ends.
const DEC_EVAL_MIN_CALLS: u64 = 60;
const INC_EVAL_MIN_CALLS: u64 = 20;
const SSTHRESH_EVAL_MIN_CALLS: u64 = 30;
/// Round trips after which growth stops, and before a decision.
const STOP_RTT_CNT: u64 = 10;
const RTT_MIN_CNT: u64 = 2;
/// Least window for a decision, its step, and its bound, segments.
const MIN_CWND: u64 = 4;
const MIN_CWND_GROW: u64 = 2;
const TSO_CWND_BOUND: u64 = 81;
/// Time after which the shortest round-trip time is forgotten first, ms.
const FIRST_PERIOD: u64 = 2_000;

/// NV state.
#[derive(Clone, Debug, Snapshot)]
pub struct Nv {
    params: NvParams,
    seed: u64,
    rng: Pcg,
    /// Time at which `min_rtt` becomes `min_rtt_new`, ms.
    reset_at: u64,
    /// log2 of the growth relative to Reno's; negative after timeouts.
    growth_factor: i8,
    allow_growth: bool,
    /// True if the measurements begin anew when the state is Open.
    resets: bool,
    /// True once there was a reduction: the threshold is known.
    has_ssthresh: bool,
    /// Samples since the last decision, up to 255.
    eval_calls: u64,
    /// Least window for a decision, segments.
    min_cwnd: u64,
    /// Round trips without a decision.
    rtt_cnt: u64,
    /// Smoothed round-trip time, its least value, and the one of this period, µs.
    last_rtt: u64,
    min_rtt: u64,
    min_rtt_new: u64,
    /// Largest rate since the last decision, 100 bit/s.
    max_rate: u64,
    /// End of the round trip, and the cumulative ack: now, and at the last sample.
    round_end: u64,
    una: u64,
    last_una: u64,
    /// Round trips without congestion.
    no_cong_cnt: u64,
}

impl Nv {
    /// Creates a control that draws its periods from `seed`.
    fn of(params: NvParams, seed: u64) -> Nv {
        Nv {
            params,
            seed,
            rng: Pcg::seed_from_u64(seed),
            reset_at: FIRST_PERIOD,
            growth_factor: 0,
            allow_growth: true,
            resets: false,
            has_ssthresh: false,
            eval_calls: 0,
            min_cwnd: MIN_CWND,
            rtt_cnt: 0,
            last_rtt: 0,
            min_rtt: u64::MAX,
            min_rtt_new: u64::MAX,
            max_rate: 0,
            round_end: 0,
            una: 0,
            last_una: 0,
            no_cong_cnt: 0,
        }
    }

    /// Begins the measurements anew.
    fn restart(&mut self) {
        (self.resets, self.no_cong_cnt, self.rtt_cnt, self.last_rtt) = (false, 0, 0, 0);
        (self.max_rate, self.eval_calls) = (0, 0);
        (self.round_end, self.last_una) = (self.una, self.una);
    }

    /// Updates round-trip times and rate from a sample of `rtt` µs.
    fn measure(&mut self, rtt: u64, ack: &Acked) {
        let mean = if self.last_rtt > 0 {
            (rtt + self.last_rtt) / 2
        } else {
            self.min_rtt = 2 * rtt;
            rtt
        };
        self.last_rtt = mean;
        self.max_rate = self.max_rate.max(ack.delivered.saturating_mul(80_000) / mean.max(1));
        self.eval_calls = (self.eval_calls + 1).min(255);
        self.min_rtt = self.min_rtt.min(mean);
        self.min_rtt_new = self.min_rtt_new.min(mean);
        if ack.now >= self.reset_at {
            (self.min_rtt, self.min_rtt_new) = (self.min_rtt_new, u64::MAX);
            let draw = cast::trunc(256.0 * self.rng.uniform());
            let period = self.params.reset_period.0 / 1_000_000;
            self.reset_at = ack.now + period * (384 + draw) / 512;
            self.min_cwnd = (self.min_cwnd / 2).max(MIN_CWND);
        }
    }

    /// Decides at the end of a round trip whether the window shrinks, grows or stays.
    fn decide(&mut self, w: &mut Segments, mss: u64) {
        let needed = u128::from(self.max_rate) * u128::from(self.min_rtt);
        let max_win = cast::saturate(needed / u128::from(80_000 * mss)) + self.params.pad;
        if w.cwnd > max_win {
            if !self.is_congested() {
                return;
            }
            (self.allow_growth, self.has_ssthresh) = (false, true);
            w.ssthresh = max_win;
            let excess = w.cwnd - max_win;
            w.cwnd -= if excess > 2 { (excess * CONG_DEC_MULT / 128).max(2) } else { excess };
            self.growth_factor = self.growth_factor.min(0);
            self.no_cong_cnt = 0;
        } else if w.cwnd + PAD_BUFFER <= max_win {
            if self.eval_calls < INC_EVAL_MIN_CALLS {
                return;
            }
            self.allow_growth = true;
            self.no_cong_cnt += 1;
            if self.growth_factor < 0 && self.no_cong_cnt > GROWTH_RATE_NEG {
                (self.growth_factor, self.no_cong_cnt) = (self.growth_factor + 1, 0);
            }
        } else {
            return;
        }
        (self.eval_calls, self.rtt_cnt, self.max_rate) = (0, 0, 0);
        w.cwnd = w.cwnd.max(self.params.min_cwnd);
    }

    /// True if there were enough samples to call a large window congestion. Growth stops when that
    /// takes long.
    fn is_congested(&mut self) -> bool {
        if self.rtt_cnt < RTT_MIN_CNT {
            return false;
        }
        if !self.has_ssthresh {
            return self.eval_calls >= SSTHRESH_EVAL_MIN_CALLS;
        }
        let enough = self.eval_calls >= DEC_EVAL_MIN_CALLS;
        if !enough && self.rtt_cnt > STOP_RTT_CNT {
            self.allow_growth = false;
        }
        enough
    }
}

impl Algorithm for Nv {
    type Params = NvParams;

    fn new(params: &NvParams, rng: &mut dyn Random) -> Nv {
        Nv::of(params.clone(), rng.uniform().to_bits())
    }

    fn reset(&mut self) {
        *self = Nv::of(self.params.clone(), self.seed);
    }

    fn on_established(&mut self, _: &mut Segments, now: u64, _: u64) {
        self.reset_at = now + FIRST_PERIOD;
    }

    fn on_acked(&mut self, w: &mut Segments, ack: &Acked) {
        self.una = ack.una;
        let Some(rtt) = ack.rtt_us.filter(|_| ack.state == State::Open) else { return };
        let bytes = ack.una - std::mem::replace(&mut self.last_una, ack.una);
        if ack.delivered == 0 {
            return;
        }
        self.measure(rtt, ack);
        if self.round_end >= ack.una {
            return;
        }
        self.round_end = ack.next;
        self.rtt_cnt = (self.rtt_cnt + 1).min(255);
        // With one sample per round trip, the window is too small for a decision.
        let many = bytes >= (self.min_cwnd - 1) * ack.mss;
        if self.eval_calls == 1 && many && self.min_cwnd < TSO_CWND_BOUND {
            self.min_cwnd = (self.min_cwnd + MIN_CWND_GROW).min(TSO_CWND_BOUND);
            self.round_end = ack.next + self.min_cwnd * ack.mss;
            (self.eval_calls, self.allow_growth) = (0, true);
            return;
        }
        self.decide(w, ack.mss);
    }

    fn grow(&mut self, w: &mut Segments, ack: &Acked, acked: u64) {
        if !ack.full || !self.allow_growth {
            return;
        }
        let left = w.slow_start_if_below(acked);
        if left > 0 {
            let shift = u32::from(self.growth_factor.unsigned_abs());
            let cnt =
                if self.growth_factor < 0 { w.cwnd << shift } else { (w.cwnd >> shift).max(4) };
            w.increase(cnt, left);
        }
    }

    fn ssthresh(&mut self, w: &Segments, _: CongestionSignal, _: u64) -> u64 {
        self.has_ssthresh = true;
        (w.cwnd * LOSS_DEC_FACTOR / 1_024).max(2)
    }

    fn on_state(&mut self, state: State, _: u64) {
        if state == State::Open {
            return if self.resets {
                self.restart()
            };
        }
        (self.resets, self.allow_growth) = (true, false);
        if state == State::Loss {
            self.growth_factor = (self.growth_factor.min(0) - 1).max(-8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::linux::testing::{acked, window};
    use super::*;

    /// Control after `calls` samples in `rounds` round trips, at 8 Mbit/s and 100 ms: 100 segments
    /// of 1000 bytes.
    fn nv(calls: u64, rounds: u64, has_ssthresh: bool) -> Nv {
        let fresh = Nv::of(NvParams::default(), 1);
        let (max_rate, min_rtt) = (80_000, 100_000);
        Nv { eval_calls: calls, rtt_cnt: rounds, has_ssthresh, max_rate, min_rtt, ..fresh }
    }

    /// Window after a decision for one of `cwnd` segments.
    fn decided(nv: &mut Nv, cwnd: u64) -> u64 {
        let mut w = window(cwnd, 1_000);
        nv.decide(&mut w, 1_000);
        w.cwnd
    }

    #[test]
    fn the_window_shrinks_by_a_part_of_the_excess() {
        // 110 are allowed: of the excess 38 / 128, at least 2, and a small excess at once.
        for (cwnd, left) in [(210, 181), (114, 112), (112, 110), (111, 110), (110, 110)] {
            assert_eq!(decided(&mut nv(60, 2, true), cwnd), left, "{cwnd}");
        }
        let mut shrunk = nv(60, 2, true);
        decided(&mut shrunk, 210);
        assert!(!shrunk.allow_growth && shrunk.eval_calls == 0 && shrunk.max_rate == 0);
    }

    #[test]
    fn decisions_need_samples_and_round_trips() {
        for (calls, rounds, has_ssthresh, left) in
            [(60, 1, true, 210), (59, 2, true, 210), (29, 2, false, 210), (30, 2, false, 181)]
        {
            assert_eq!(decided(&mut nv(calls, rounds, has_ssthresh), 210), left);
        }
        let mut slow = nv(20, 11, true);
        decided(&mut slow, 210);
        assert!(!slow.allow_growth, "growth stops after ten round trips");
    }

    #[test]
    fn growth_is_allowed_below_and_resumes_slowly_after_timeouts() {
        let mut nv = nv(20, 2, true);
        nv.on_state(State::Loss, 0);
        assert_eq!((nv.growth_factor, nv.allow_growth), (-1, false));
        for _ in 0..9 {
            (nv.eval_calls, nv.max_rate) = (20, 80_000);
            decided(&mut nv, 108);
        }
        assert_eq!((nv.growth_factor, nv.allow_growth), (0, true));
        // In between, nothing changes.
        nv.eval_calls = 99;
        decided(&mut nv, 109);
        assert_eq!(nv.eval_calls, 99);
    }

    #[test]
    fn rate_and_round_trip_times_are_measured() {
        let mut nv = Nv::of(NvParams::default(), 1);
        let mut w = window(10, 1_000);
        let mut ack = |nv: &mut Nv, now, rtt| {
            nv.on_acked(&mut w, &Acked { delivered: 10_000, ..acked(now, rtt) });
        };
        ack(&mut nv, 100, 100_000);
        // 10 kB in 100 ms are 800 kbit/s.
        assert_eq!((nv.max_rate, nv.min_rtt, nv.last_rtt), (8_000, 100_000, 100_000));
        ack(&mut nv, 110, 200_000);
        assert_eq!((nv.max_rate, nv.last_rtt, nv.eval_calls), (8_000, 150_000, 2));
        nv.min_cwnd = 12;
        ack(&mut nv, 2_000, 150_000);
        assert_eq!((nv.min_rtt, nv.min_rtt_new, nv.min_cwnd), (100_000, u64::MAX, 6));
        assert!((5_750..8_250).contains(&nv.reset_at), "3/4 to 5/4 of 5 s later");
    }

    #[test]
    fn a_loss_leaves_four_fifths_and_growth_is_renos() {
        let mut nv = nv(0, 0, false);
        assert_eq!(nv.ssthresh(&window(100, 2), CongestionSignal::Loss, 0), 79);
        for (factor, cnt) in [(0, 100), (-1, 200), (2, 25)] {
            nv.growth_factor = factor;
            let mut w = window(100, 2);
            (1..cnt).for_each(|_| nv.grow(&mut w, &acked(0, 1), 1));
            assert_eq!(w.cwnd, 100, "{factor}");
            nv.grow(&mut w, &acked(0, 1), 1);
            assert_eq!(w.cwnd, 101, "{factor}");
        }
        nv.on_state(State::Recovery, 0);
        nv.on_state(State::Open, 0);
        assert!(!nv.resets && !nv.allow_growth);
    }
}
