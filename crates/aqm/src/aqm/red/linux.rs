//! RED as in Linux (`sch_red` and `red.h`, with the table of iproute2): whole numbers, and one
//! random number per gap between two signals.
//!
//! Linux draws the gap in advance. Here each arrival draws whether the gap ends, with the
//! probability that it does given that it has not ended before. The distribution is the same.

use super::RedParams;
use crate::cast;
use crate::error::{Error, Result};
use crate::random::Random;
use crate::snapshot::Snapshot;
use crate::units::{Bytes, Rate, Time};
use alloc::boxed::Box;
use alloc::format;

/// Number of random numbers of 32 bits.
const ALL: u64 = 1 << 32;
/// One percent of [`ALL`], as Linux rounds it.
const PERCENT: u64 = (ALL + 50) / 100;

/// Position of the average relative to the thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Snapshot)]
pub(crate) enum Level {
    Below,
    Between,
    Above,
}

/// State of Linux's RED.
#[derive(Clone, Debug, Snapshot)]
pub(crate) struct LinuxRed {
    /// Weight of one arrival in the average, as a negative power of two: digits after the point of
    /// `qavg`, `min` and `max`.
    log: u32,
    min: u64,
    max: u64,
    /// Difference of the thresholds, without digits after the point.
    delta: u64,
    /// Bounds between which adaptive RED keeps the average, without digits after the point.
    target: [u64; 2],
    /// Largest drop probability before spreading, in units of 2^-32.
    max_p: u64,
    /// `max_p / delta`, of which the next gap is drawn.
    step: u64,
    /// True if an average equal to a threshold counts as below it, as in CHOKe.
    pub(crate) at_counts_below: bool,
    idle: IdleTable,
    qavg: u64,
    /// Sum of the averages of other queues, which count when a packet is decided about, as in GRED.
    pub(crate) others: u64,
    idle_since: Option<Time>,
    /// Packets since the last signal; -1 outside the thresholds.
    count: i64,
    /// `step` when the current gap was drawn.
    drawn: u64,
    /// Random numbers that are excluded for the current gap, since it has not ended yet.
    excluded: u64,
    /// Probability that the gap ended at the last arrival.
    pa: f64,
}

impl LinuxRed {
    /// Creates the state for thresholds in the unit of the average, and a link of `rate`.
    pub(crate) fn new(params: &RedParams, [min, max]: [u64; 2], rate: Rate) -> Result<Box<Self>> {
        let log = cast::low32(cast::trunc(libm::round(-libm::log2(params.w_q)).max(1.0)));
        let digits = 64 - max.leading_zeros();
        if log + digits > 31 {
            let text = format!("{max} has {digits} binary digits, and w_q = 2^-{log}");
            let most = "Linux has 31 for both together";
            return Err(Error::new(format!("{text}: {most}")).at("max_th"));
        }
        let max_p = cast::trunc(params.max_p * ALL as f64).min(ALL - 1);
        let delta = (max - min).max(1);
        let step = (max_p / delta).max(1);
        Ok(Box::new(LinuxRed {
            log,
            min: min << log,
            max: max << log,
            delta,
            target: [2, 3].map(|fifths| min + fifths * (delta / 5)),
            max_p,
            step,
            at_counts_below: false,
            idle: IdleTable::new(log, params.packet, params.bandwidth.unwrap_or(rate)),
            qavg: 0,
            others: 0,
            idle_since: Some(Time::ZERO),
            count: -1,
            drawn: step,
            excluded: 0,
            pa: 0.0,
        }))
    }

    /// Average queue.
    pub(crate) fn avg(&self) -> f64 {
        self.qavg as f64 / (1u64 << self.log) as f64
    }

    /// Probability of a drop before spreading: of an arrival directly after a signal.
    pub(crate) fn pb(&self) -> f64 {
        match self.level() {
            Level::Below => 0.0,
            Level::Between => (self.numbers(1) as f64 / ALL as f64).min(1.0),
            Level::Above => 1.0,
        }
    }

    /// Probability of a signal at the last arrival.
    pub(crate) fn pa(&self) -> f64 {
        if self.level() == Level::Above { 1.0 } else { self.pa }
    }

    pub(super) fn count(&self) -> i64 {
        self.count
    }

    /// Largest drop probability before spreading.
    pub(super) fn max_p(&self) -> f64 {
        self.max_p as f64 / ALL as f64
    }

    /// Updates the average at an arrival that finds the queue at `length`. After an idle time it
    /// only decays.
    pub(crate) fn average(&mut self, now: Time, length: u64) {
        self.qavg = match self.idle_since.take() {
            Some(since) => self.idle.decayed(self.qavg, since, now),
            None => self.qavg - (self.qavg >> self.log) + length,
        };
    }

    /// Average with its digits after the point, and the start of the idle time if one is running.
    pub(crate) fn state(&self) -> (u64, Option<Time>) {
        (self.qavg, self.idle_since)
    }

    /// Takes the state of another queue.
    pub(crate) fn set_state(&mut self, (qavg, idle_since): (u64, Option<Time>)) {
        (self.qavg, self.idle_since) = (qavg, idle_since);
    }

    /// Starts an idle time, unless one is running.
    pub(crate) fn on_idle(&mut self, now: Time) {
        self.idle_since.get_or_insert(now);
    }

    fn level(&self) -> Level {
        // Without digits after the point in CHOKe's favour: a threshold itself is the lower level.
        let at = u64::from(self.at_counts_below);
        let qavg = self.qavg + self.others;
        if qavg < self.min + at {
            Level::Below
        } else if qavg < self.max + at {
            Level::Between
        } else {
            Level::Above
        }
    }

    /// Number of random numbers that end the gap by the `count`-th packet at this average.
    fn numbers(&self, count: u64) -> u64 {
        let above = (self.qavg + self.others - self.min) >> self.log;
        above.saturating_mul(count).saturating_add(1).saturating_mul(self.drawn).min(ALL)
    }

    /// Draws the next gap.
    fn draw(&mut self) {
        (self.count, self.excluded, self.drawn) = (0, 0, self.step);
    }

    /// Decides about an arrival: its level, and true if it is dropped or marked.
    pub(crate) fn decide(&mut self, rng: &mut dyn Random) -> (Level, bool) {
        let level = self.level();
        self.pa = 0.0;
        match level {
            Level::Below | Level::Above => self.count = -1,
            Level::Between if self.count < 0 => self.draw(),
            Level::Between => {
                self.count += 1;
                let numbers = self.numbers(self.count.unsigned_abs());
                if numbers > self.excluded {
                    let [new, left] = [numbers, ALL].map(|n| (n - self.excluded) as f64);
                    self.pa = new / left;
                    if rng.bernoulli(self.pa) {
                        self.draw();
                        return (level, true);
                    }
                    self.excluded = numbers;
                }
            }
        }
        (level, level == Level::Above)
    }

    /// Adapts `max_p`, as the timer of adaptive RED does. Returns true if later calls change
    /// nothing until a packet arrives.
    pub(crate) fn adapt(&mut self, now: Time) -> bool {
        let qavg = match self.idle_since {
            Some(since) => self.idle.decayed(self.qavg, since, now),
            None => self.qavg,
        };
        let avg = qavg >> self.log;
        let before = self.max_p;
        if avg > self.target[1] && self.max_p <= 50 * PERCENT {
            self.max_p += PERCENT.min(self.max_p / 4);
        } else if avg < self.target[0] && self.max_p >= PERCENT {
            self.max_p = self.max_p / 10 * 9;
        }
        self.step = ((self.max_p + self.delta / 2) / self.delta).max(1);
        // An idle average only falls, until it is 0.
        let settled = self.idle_since.is_none() || avg < self.target[0] || qavg == 0;
        self.max_p == before && settled
    }
}

/// Decay of the average in an idle time, as the 256 shifts that `tc` sends.
#[derive(Clone, Debug, Snapshot)]
struct IdleTable {
    /// Length of an entry: 2 to this power, in us.
    cell: u32,
    shifts: [u8; 256],
}

impl IdleTable {
    /// Computes the table as `tc` does. It counts the transmission time of a packet in ticks of
    /// 64 ns, but Linux counts idle times in us: beyond one half the average decays 15.625 times
    /// more slowly than was meant.
    fn new(log: u32, packet: Bytes, rate: Rate) -> IdleTable {
        let ticks = libm::ceil(packet.0 as f64 * 8.0 * 15_625_000.0 / rate.0.max(1) as f64);
        let decay = -libm::log(1.0 - 1.0 / (1u64 << log) as f64) / ticks;
        let longest = 31.0 / decay;
        let fits = |cell: &u32| longest / (1u64 << cell) as f64 <= 512.0;
        let cell = (0..31).find(fits).unwrap_or(31);
        let mut shifts = [31; 256];
        for (i, shift) in shifts.iter_mut().take(255).enumerate() {
            let shifted = ((i as u64) << cell) as f64 * decay;
            *shift = u8::try_from(cast::trunc(shifted)).unwrap_or(31).min(31);
        }
        IdleTable { cell, shifts }
    }

    /// Returns the average `qavg` of `since` at `now`.
    fn decayed(&self, qavg: u64, since: Time, now: Time) -> u64 {
        let us = (now.since(since).0 / 1000).min(255 << self.cell);
        let shift = self.shifts[cast::index(us >> self.cell)];
        if shift > 0 {
            return qavg >> shift;
        }
        // Linear within the first halving.
        let less = qavg.wrapping_mul(us) >> self.cell;
        if less < qavg >> 1 { qavg - less } else { qavg >> 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{Params, Setting};
    use crate::testing::Bench;
    use std::prelude::v1::*;

    const LINUX: (&str, &str) = ("variant", "linux");

    fn red(settings: &[(&str, &str)], thresholds: [u64; 2]) -> crate::Result<Box<LinuxRed>> {
        let mut params = RedParams::default();
        settings.iter().for_each(|(k, v)| params.set(k, Setting::Text(v)).unwrap());
        LinuxRed::new(&params, thresholds, Rate(10_000_000))
    }

    /// Random numbers that never end a gap, and record each probability.
    struct Never(Vec<f64>);

    impl Random for Never {
        fn uniform(&mut self) -> f64 {
            1.0
        }
        fn bernoulli(&mut self, p: f64) -> bool {
            self.0.push(p);
            false
        }
    }

    #[test]
    fn the_average_is_a_whole_number_and_takes_no_sample_after_idle_time() {
        let settings = [LINUX, ("w_q", "0.25"), ("min_th", "4kB"), ("max_th", "9kB")];
        let mut q = Bench::new("red", &settings);
        let averages = (0..4).map(|i| {
            q.put(i, 1000);
            q.gauge("avg") * 4.0
        });
        assert_eq!(averages.collect::<Vec<_>>(), [0.0, 1000.0, 2750.0, 5063.0]);
    }

    #[test]
    fn a_gap_is_uniform_on_one_to_the_inverse_of_pb() {
        let mut red = red(&[("max_p", "0.2"), ("w_q", "0.5")], [5000, 15_000]).unwrap();
        red.qavg = 10_000 << 1;
        let mut rng = Never(vec![]);
        assert_eq!(red.decide(&mut rng), (Level::Between, false));
        assert_eq!(rng.0, [], "the first arrival only starts the gap");
        (0..10).for_each(|_| assert!(!red.decide(&mut rng).1));
        let mut left = 1.0;
        for (gap, pa) in rng.0.iter().enumerate() {
            assert!((left * pa - 0.1).abs() < 3e-5, "{gap}: {}", left * pa);
            left *= 1.0 - pa;
        }
        assert!(left.abs() < 1e-3);
        assert_eq!((red.pb() * 1000.0).round(), 100.0);
    }

    #[test]
    fn above_the_upper_threshold_every_packet_is_marked_or_dropped() {
        let settings = [LINUX, ("w_q", "0.5"), ("min_th", "1p"), ("max_th", "2p"), ("ecn", "true")];
        let count = |settings: &[(&str, &str)]| {
            let mut q = Bench::new("red", settings);
            q.ect();
            let dropped: usize = (0..9).map(|i| q.put(i, 1000).len()).sum();
            (dropped, q.marked())
        };
        let (dropped, marked) = count(&settings);
        assert_eq!(dropped, 0);
        assert!(marked >= 5, "{marked}");
        let (dropped, _) = count(&[&settings[..], &[("hard_drop", "true")]].concat());
        assert!(dropped >= 3, "{dropped}");
    }

    // With `w_q` 1/32, a packet of 1000 bytes and 10 Mbit/s, tc computes cells of 2^15 us.
    #[test]
    fn idle_time_halves_the_average_at_first_and_then_by_the_table() {
        let table = IdleTable::new(5, Bytes(1000), Rate(10_000_000));
        assert_eq!(table.cell, 15);
        let first = |shift: u8| table.shifts.iter().position(|s| *s == shift);
        assert_eq!([0, 1, 2, 20].map(first), [Some(0), Some(13), Some(25), Some(241)]);
        let after = |us: u64| table.decayed(32_000, Time(1000), Time(1000 + us * 1000));
        assert_eq!([0, 10_000, 17_000, 400_000].map(after), [32_000, 22_235, 16_000, 16_000]);
        assert_eq!([426_000, 860_000, 1 << 40].map(after), [16_000, 8_000, 0]);
        // By one of three in 10.923 ms: not less than the half, 1.
        assert_eq!(table.decayed(3, Time::ZERO, Time(10_923_000)), 1);
    }

    #[test]
    fn the_timer_moves_max_p_between_its_bounds() {
        let mut red = red(&[("max_p", "0.02"), ("w_q", "0.5")], [5000, 15_000]).unwrap();
        assert_eq!(red.target, [9000, 11_000]);
        red.idle_since = None;
        red.qavg = 11_001 << 1;
        assert!(!red.adapt(Time::ZERO));
        assert_eq!(red.max_p, 85_899_345 + 85_899_345 / 4);
        while !red.adapt(Time::ZERO) {}
        assert!(red.max_p > 50 * PERCENT && red.max_p <= 51 * PERCENT);
        red.qavg = 8999 << 1;
        red.adapt(Time::ZERO);
        while !red.adapt(Time::ZERO) {}
        assert!(red.max_p < PERCENT && red.max_p > PERCENT / 10 * 8);
        assert_eq!(red.step, (red.max_p + 5000) / 10_000);
        // From 0.25 on, a step is a percent of 2^32, rounded to the nearest.
        (red.qavg, red.max_p) = (11_001 << 1, 1 << 30);
        red.adapt(Time::ZERO);
        assert_eq!(red.max_p, (1 << 30) + 42_949_673);
    }

    #[test]
    fn the_timer_leaves_max_p_at_both_bounds_of_the_target() {
        for (avg, moves) in [(8999, true), (9000, false), (11_000, false), (11_001, true)] {
            let mut red = red(&[("max_p", "0.02"), ("w_q", "0.5")], [5000, 15_000]).unwrap();
            (red.qavg, red.idle_since) = (avg << 1, None);
            let before = red.max_p;
            red.adapt(Time::ZERO);
            assert_eq!(red.max_p != before, moves, "{avg}");
        }
    }

    // The timer of Linux also runs in idle times, in which the average decays.
    #[test]
    fn to_stop_when_nothing_changes_gives_the_max_p_of_all_updates() {
        for (avg, max_p) in [(10_000, "0.1"), (14_000, "0.9"), (11_001, "0.5"), (6000, "0.005")] {
            for idle in [false, true] {
                let start = || {
                    // In half a second, the average falls by 6 %.
                    let settings = [("max_p", max_p), ("w_q", "0.0001")];
                    let mut red = red(&settings, [5000, 15_000]).unwrap();
                    (red.qavg, red.idle_since) = (avg << red.log, idle.then_some(Time::ZERO));
                    red
                };
                let (mut all, mut some) = (start(), start());
                let times = (1..200).map(|i| Time(i * 500_000_000));
                times.clone().for_each(|at| {
                    all.adapt(at);
                });
                let calls = times.take_while(|at| !some.adapt(*at)).count();
                assert_eq!(some.max_p, all.max_p, "{avg} {max_p} {idle}");
                assert!(calls < 150, "{avg} {max_p} {idle}: {calls} updates");
            }
        }
    }

    #[test]
    fn an_idle_average_at_the_lower_end_of_the_target_will_fall_below_it() {
        let mut red = red(&[("max_p", "0.005"), ("w_q", "0.5")], [5000, 15_000]).unwrap();
        for (avg, settled) in [(9000, false), (8999, true)] {
            (red.qavg, red.idle_since) = (avg << 1, Some(Time::ZERO));
            assert_eq!(red.adapt(Time::ZERO), settled, "{avg}");
        }
    }

    #[test]
    fn an_average_at_a_threshold_is_above_it_and_below_it_for_choke() {
        let levels = |at_counts_below| {
            let mut red = red(&[("w_q", "0.5")], [5000, 15_000]).unwrap();
            red.at_counts_below = at_counts_below;
            [9999, 10_000, 29_999, 30_000].map(|qavg| {
                red.qavg = qavg;
                red.level()
            })
        };
        let [below, between, above] = [Level::Below, Level::Between, Level::Above];
        assert_eq!(levels(false), [below, between, between, above]);
        assert_eq!(levels(true), [below, below, between, between]);
    }

    #[test]
    fn outside_the_thresholds_the_gap_ends_and_is_shown_as_such() {
        let mut red = red(&[("max_p", "0.2"), ("w_q", "0.5")], [5000, 15_000]).unwrap();
        let mut rng = Never(vec![]);
        for outside in [4000 << 1, 16_000 << 1] {
            (red.qavg, red.count) = (10_000 << 1, -1);
            for _ in 0..3 {
                red.decide(&mut rng);
            }
            assert_eq!(red.count(), 2);
            let (pa, drawn) = (red.pa(), rng.0.clone());
            assert_eq!(Some(&pa), drawn.last(), "the probability at the last arrival");
            red.qavg = outside;
            red.decide(&mut rng);
            assert_eq!(red.count(), -1);
            assert_eq!(red.pa(), f64::from(u8::from(outside > 10_000)) * red.pb());
            red.qavg = 10_000 << 1;
            red.decide(&mut rng);
            assert_eq!((red.count(), rng.0.len()), (0, drawn.len()), "a new gap starts");
        }
    }

    #[test]
    fn an_idle_time_lasts_from_its_first_moment() {
        let mut red = red(&[("w_q", "0.03125"), ("packet", "1000B")], [5000, 15_000]).unwrap();
        let after = |red: &mut LinuxRed, calls: &[u64]| {
            (red.qavg, red.idle_since) = (32_000, None);
            calls.iter().for_each(|us| red.on_idle(Time(us * 1000)));
            red.average(Time(10_000_000), 0);
            red.qavg
        };
        assert_eq!(after(&mut red, &[0, 9000]), 22_235);
        assert_eq!(after(&mut red, &[9000]), 32_000 - ((32_000 * 1000) >> 15));
    }

    #[test]
    fn adaptive_red_adapts_at_times_without_packets() {
        let settings = [LINUX, ("min_th", "5p"), ("max_th", "15p"), ("max_p", "0.5")];
        let mut q = Bench::new("ared", &settings);
        q.put(0, 1000);
        q.at_ms(1600);
        q.put(1, 1000);
        assert!((q.gauge("max_p") - 0.5 * 0.729).abs() < 1e-6, "three steps");
    }

    #[test]
    fn adaptive_red_adapts_at_its_times_after_it_could_change_nothing() {
        let settings = [LINUX, ("min_th", "5p"), ("max_th", "15p"), ("w_q", "1")];
        let mut q = Bench::new("ared", &settings);
        q.put(0, 1000);
        // Two minutes of half seconds: max_p fell below a percent, where it stays.
        q.at_ms(120_300);
        (1..14).for_each(|i| drop(q.put(i, 1000)));
        let least = q.gauge("max_p");
        assert!(least < 0.01);
        q.at_ms(120_499);
        q.put(14, 1000);
        assert_eq!(q.gauge("max_p"), least);
        q.at_ms(120_500);
        q.put(15, 1000);
        assert!((q.gauge("max_p") - 1.25 * least).abs() < 1e-6, "the average is above 11 packets");
    }

    #[test]
    fn thresholds_and_weight_share_31_digits() {
        let error = red(&[("w_q", "1e-5")], [1, 1 << 20]).unwrap_err().to_string();
        assert!(error.starts_with("max_th: 1048576 has 21 binary digits, and w_q = 2^-17"));
        assert!(red(&[("w_q", "1e-5")], [1, (1 << 14) - 1]).is_ok());
        for name in ["fred", "feng_red", "sa_red"] {
            let settings = [("variant", Setting::Text("linux"))];
            let error = crate::build(name, &settings, Rate(1_000_000)).err().unwrap();
            assert!(error.to_string().contains("Linux has no"), "{name}: {error}");
        }
    }
}
