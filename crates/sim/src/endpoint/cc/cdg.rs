//! CDG: reduces the window with a probability that rises with the slope of the round-trip time, so
//! that it reacts to a queue that grows instead of one that is full.
//!
//! **Source**: D. A. Hayes, G. Armitage, "Revisiting TCP congestion control using delay gradients",
//! IFIP Networking 2011, equations 1 (gradients) and 2 (probability of a back-off); Linux 6.12
//! `net/ipv4/tcp_cdg.c`, with its sums instead of means and its slow start (HyStart at any window).
//!
//! **Symbols** `G` is `1000 / (backoff_factor * window)`; `gmin`, `gmax` and the shadow window as
//! in the paper.
//!
//! **Departures**: the exponential function is exact. The parameter `use_tolerance`, off in Linux,
//! is omitted.

use super::linux::{Acked, Algorithm, Segments};
use super::{CongestionSignal, ControlParams, TcpEntry};
use crate::endpoint::common_params::{LossRecovery, Profile};
use rand_core::SeedableRng;
use sojourn_aqm::Pcg;
use sojourn_aqm::Snapshot;
use sojourn_aqm::params;
use sojourn_aqm::random::Random;
use std::collections::VecDeque;

params! {
    /// Parameters of [`Cdg`].
    pub struct CdgParams {
        /// Round trips over which a slope is measured.
        window: u64 = 8, [1 => 256], "window", [];
        /// Window after a back-off, 1024ths of the window before.
        backoff_beta: u64 = 724, [1 => 1_024], "backoff_beta", [];
        /// Factor of the slope in the probability of a back-off, per second.
        backoff_factor: u64 = 42, [1 => 1_000_000], "backoff_factor", [];
        /// Back-offs without effect after which further ones are omitted; 0: never.
        use_ineff: u64 = 5, [0 => 1_000_000], "use_ineff", [];
        /// If true, a loss reduces the window that would be without back-offs.
        use_shadow: bool = true, [], "use_shadow", [];
    }
}

/// Entry in the list of TCPs.
pub(super) const TCP: TcpEntry = TcpEntry {
    name: "cdg",
    aliases: &[],
    about: "reduces with a probability that rises with the slope of the delay; not in ns2",
    source: "Hayes, Armitage, CAIA Delay-Gradient, Networking 2011; Linux tcp_cdg.c",
    profile: Profile::Linux,
    recovery: LossRecovery::Sack,
    control: || ControlParams::Cdg(CdgParams::default()),
};

/// Fall of a slope that shows that a back-off had an effect, µs.
const EFFECT: i64 = -32;

/// Least and largest round-trip time of a round trip, µs.
type Bounds = (i64, i64);

/// CDG state. Times are in microseconds.
#[derive(Clone, Debug, Snapshot)]
pub struct Cdg {
    params: CdgParams,
    seed: u64,
    rng: Pcg,
    /// Bounds in this round trip, which ends at `round_end`, and in the one before.
    rtt: Option<Bounds>,
    last_rtt: Option<Bounds>,
    round_end: u64,
    /// Next sequence number to send, as of the last ack.
    next: u64,
    /// Slopes of the last round trips.
    gradients: VecDeque<Bounds>,
    /// Number of acks of one segment that are taken for delayed ones.
    delayed: u64,
    /// Window that would be without back-offs, segments.
    shadow: u64,
    /// Back-offs without effect.
    backoffs: u64,
    /// True from the decision to back off until the reduction ends.
    backs_off: bool,
    /// HyStart: samples in this round trip, least round-trip time, and the train of acks.
    samples: u64,
    delay_min: i64,
    train: Option<(u64, u64)>,
}

impl Cdg {
    /// Creates a control that draws its back-offs from `seed`.
    fn of(params: CdgParams, seed: u64) -> Cdg {
        Cdg {
            params,
            seed,
            rng: Pcg::seed_from_u64(seed),
            rtt: None,
            last_rtt: None,
            round_end: 0,
            next: 0,
            gradients: VecDeque::new(),
            delayed: 0,
            shadow: 10,
            backoffs: 0,
            backs_off: false,
            samples: 0,
            delay_min: 0,
            train: None,
        }
    }

    /// Ends slow start when acks come back to back for half a round trip, or late.
    fn hystart(&mut self, w: &mut Segments, ack: &Acked) {
        let Some((least, _)) = self.rtt else { return };
        self.delay_min = if self.delay_min == 0 { least } else { self.delay_min.min(least) };
        let now = ack.now_us;
        match self.train {
            Some((start, last)) if ack.full => {
                if now < last + 3_000 {
                    self.train = Some((start, now));
                    if now > start + (self.delay_min / 2).max(125).unsigned_abs() {
                        w.ssthresh = w.cwnd;
                        return;
                    }
                }
            }
            _ => self.train = Some((now, now)),
        }
        if self.samples < 8 {
            self.samples += 1;
        } else if least > (self.delay_min + self.delay_min / 8).max(125) {
            w.ssthresh = w.cwnd;
        }
    }

    /// Returns the sum of the slopes over the window, after a round trip with `rtt`.
    fn gradient(&mut self, rtt: Bounds, last: Bounds) -> i64 {
        let window = self.params.window;
        if self.gradients.len() as u64 == window {
            self.gradients.pop_front();
        }
        self.gradients.push_back((rtt.0 - last.0, rtt.1 - last.1));
        let sums = |sum: Bounds, g: &Bounds| (sum.0 + g.0, sum.1 + g.1);
        let (min, max) = self.gradients.iter().fold((0, 0), sums);
        if min <= EFFECT || max <= EFFECT {
            self.backoffs = 0;
        }
        let slope = if min > 0 { min } else { max };
        slope * window.cast_signed() / self.gradients.len().cast_signed() as i64
    }

    /// Decides on a back-off for a positive slope.
    fn decide(&mut self, slope: i64, cwnd: u64) -> bool {
        let x = slope as f64 * self.params.backoff_factor as f64 * 1e-6;
        if self.rng.uniform() <= libm::exp(-x) {
            return false;
        }
        let limit = self.params.use_ineff;
        self.backoffs += 1;
        if limit > 0 && self.backoffs > limit {
            return false;
        }
        self.shadow = self.shadow.max(cwnd);
        self.backs_off = true;
        true
    }
}

impl Algorithm for Cdg {
    type Params = CdgParams;

    fn new(params: &CdgParams, rng: &mut dyn Random) -> Cdg {
        Cdg::of(params.clone(), rng.uniform().to_bits())
    }

    fn reset(&mut self) {
        *self = Cdg::of(self.params.clone(), self.seed);
    }

    fn on_established(&mut self, w: &mut Segments, _: u64, _: u64) {
        self.shadow = w.cwnd;
    }

    fn on_acked(&mut self, _: &mut Segments, ack: &Acked) {
        self.next = ack.next;
        let Some(rtt) = ack.rtt_us.filter(|rtt| *rtt > 0).map(u64::cast_signed) else { return };
        if !ack.sacked {
            if ack.segments == 1 && self.delayed > 0 {
                // The ack may have waited: it can only lower the minimum.
                self.rtt = self.rtt.map(|(min, max)| (min.min(rtt), max));
                self.delayed -= 1;
                return;
            }
            if ack.segments > 1 && self.delayed < 5 {
                self.delayed += 1;
            }
        }
        let (min, max) = self.rtt.unwrap_or((rtt, rtt));
        self.rtt = Some((min.min(rtt), max.max(rtt)));
    }

    fn grow(&mut self, w: &mut Segments, ack: &Acked, acked: u64) {
        if w.is_in_slow_start() {
            self.hystart(w, ack);
        }
        if let Some(rtt) = self.rtt.filter(|_| ack.una > self.round_end) {
            let slope = self.last_rtt.map_or(0, |last| self.gradient(rtt, last));
            (self.round_end, self.last_rtt, self.rtt) = (ack.next, Some(rtt), None);
            (self.train, self.samples) = (None, 0);
            if slope > 0 && self.decide(slope, w.cwnd) {
                return;
            }
        }
        if !ack.full {
            self.shadow = self.shadow.min(w.cwnd);
            return;
        }
        let before = w.cwnd;
        w.reno(acked);
        self.shadow += w.cwnd - before;
    }

    fn backs_off(&self) -> bool {
        self.backs_off
    }

    fn ssthresh(&mut self, w: &Segments, _: CongestionSignal, _: u64) -> u64 {
        if self.backs_off {
            return (w.cwnd * self.params.backoff_beta / 1_024).max(2);
        }
        self.shadow = (self.shadow / 2).min(w.cwnd);
        if self.params.use_shadow { self.shadow.max(w.half()) } else { w.half() }
    }

    fn on_recovered(&mut self, _: &mut Segments) {
        self.backs_off = false;
        (self.round_end, self.last_rtt, self.rtt) = (self.next, self.rtt.take(), None);
    }
}

#[cfg(test)]
mod tests {
    use super::super::linux::testing::{acked, window};
    use super::*;

    fn cdg() -> Cdg {
        Cdg::of(CdgParams::default(), 1)
    }

    #[test]
    fn a_slope_is_the_sum_over_the_window() {
        let mut c = cdg();
        // The first one is extrapolated to eight round trips.
        assert_eq!(c.gradient((110, 220), (100, 200)), 80);
        assert_eq!(c.gradient((110, 210), (110, 220)), 40, "10 in two round trips");
        // Without a slope of the minima, the maxima count: 20 - 10 + 50 = 60 in three.
        assert_eq!(c.gradient((90, 260), (110, 210)), 160, "-10 and 60");
        (0..5).for_each(|_| _ = c.gradient((90, 260), (90, 260)));
        assert_eq!(c.gradient((90, 260), (90, 260)), 40, "the first slope is forgotten");
    }

    #[test]
    fn the_probability_of_a_back_off_rises_with_the_slope() {
        // 1 - exp(-10 ms * 42 / s) = 0.343.
        let mut c = Cdg { params: CdgParams { use_ineff: 0, ..CdgParams::default() }, ..cdg() };
        let times = (0..10_000).filter(|_| c.decide(10_000, 20)).count();
        assert!((3_300..3_560).contains(&times), "{times}");
    }

    #[test]
    fn ineffective_back_offs_are_limited_until_a_slope_falls() {
        let mut c = cdg();
        let certain = 1_000_000_000;
        assert_eq!(
            [(); 7].map(|()| c.decide(certain, 20)),
            [true, true, true, true, true, false, false]
        );
        c.gradient((100, 100), (131, 131));
        assert!(!c.decide(certain, 20), "31 µs are not enough");
        c.gradient((100, 100), (101, 101));
        assert!(c.decide(certain, 20));
    }

    #[test]
    fn a_loss_reduces_the_shadow_window() {
        let mut c = Cdg { shadow: 90, ..cdg() };
        let left = |c: &mut Cdg, cwnd| c.ssthresh(&window(cwnd, 2), CongestionSignal::Loss, 0);
        assert_eq!(left(&mut c, 60), 45, "half of 90");
        assert_eq!(left(&mut c, 60), 30, "22, but at least half");
        c.backs_off = true;
        assert_eq!(left(&mut c, 60), 42);
        c.on_recovered(&mut window(42, 42));
        assert!(!c.backs_off);
    }

    #[test]
    fn single_segments_after_delayed_acks_only_lower_the_minimum() {
        let (mut c, mut w) = (cdg(), window(10, 2));
        c.on_acked(&mut w, &Acked { segments: 2, ..acked(0, 100) });
        c.on_acked(&mut w, &acked(0, 140));
        assert_eq!((c.rtt, c.delayed), (Some((100, 100)), 0));
        c.on_acked(&mut w, &acked(0, 140));
        assert_eq!(c.rtt, Some((100, 140)));
    }

    #[test]
    fn slow_start_ends_with_a_train_of_acks_or_with_late_ones() {
        let at = |now_us, rtt| Acked { now_us, una: 0, ..acked(0, rtt) };
        let (mut c, mut w) = (cdg(), window(10, 100));
        for ms in 0..=25 {
            c.on_acked(&mut w, &at(1_000 * ms, 50_000));
            c.grow(&mut w, &at(1_000 * ms, 50_000), 1);
        }
        assert_eq!((w.cwnd, w.ssthresh), (36, 100));
        c.grow(&mut w, &at(26_000, 50_000), 0);
        assert_eq!(w.ssthresh, 36, "more than half of 50 ms");
        let (mut c, mut w) = (Cdg { delay_min: 40_000, samples: 8, ..cdg() }, window(10, 100));
        c.on_acked(&mut w, &at(0, 45_001));
        c.grow(&mut w, &at(0, 45_001), 0);
        assert_eq!(w.ssthresh, 10, "more than an eighth late");
    }
}
