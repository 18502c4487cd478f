//! Random part of a delay, from a distribution with 4096 values as `tc` has them.
//!
//! **Source**: Linux, `net/sched/sch_netem.c`, tabledist; the distributions of iproute2
//! (`netem/normal.c`, `pareto.c`, `paretonormal.c`) are computed here from their formulas: the
//! standard normal distribution; a Pareto distribution with shape 3 less its mean of 1.5,
//! times 4/3; and a quarter of the first plus three quarters of the second. Values are in units of
//! 1/8192 of the jitter and end at 4 times the jitter. The quantiles of the normal distribution
//! are computed as by M. J. Wichura, "Algorithm AS 241", Applied Statistics 37 (1988).
//!
//! **Departures**: Linux takes the remainder of the correlated number, by the number of values or
//! by twice the jitter, and so loses the correlation of delays unless the jitter is above 1 s. Here
//! the correlated number selects the value, and delays are correlated.

use super::chance::{Correlated, Stream};
use crate::cast;
use crate::snapshot::Snapshot;
use crate::units::Span;
use alloc::sync::Arc;

/// Distribution of the random part of a delay.
#[derive(Clone, Debug, Default, PartialEq, Snapshot)]
#[non_exhaustive]
pub enum Distribution {
    /// Uniform between minus and plus the jitter.
    #[default]
    Uniform,
    /// Normal; the jitter is the standard deviation.
    Normal,
    /// Pareto with shape 3; the mean is 0.
    Pareto,
    /// A quarter of the normal plus three quarters of the Pareto distribution.
    ParetoNormal,
    /// Values in units of 1/8192 of the jitter, as in the files of tc, with equal probabilities.
    Table(Arc<[i16]>),
}

/// Random part of a delay.
#[derive(Clone, Debug, PartialEq, Snapshot)]
#[non_exhaustive]
pub struct Jitter {
    /// Scale of the distribution.
    pub size: Span,
    /// Distribution.
    pub distribution: Distribution,
    /// Correlation with the delay of the previous packet, 0 to 1.
    pub correlation: f64,
    /// True if a packet may arrive before an earlier one. Otherwise it waits for the earlier one.
    pub reorders: bool,
}

impl Jitter {
    /// Returns independent uniform jitter of plus or minus `size`, which may reorder packets.
    pub const fn new(size: Span) -> Jitter {
        Jitter { size, distribution: Distribution::Uniform, correlation: 0.0, reorders: true }
    }
}

/// Number of values of a computed distribution.
const VALUES: u32 = 4096;
/// Ends of the values.
const MIN: i64 = -32_768;
const MAX: i64 = 32_767;
/// Units per jitter.
const SCALE: i64 = 8192;

impl Distribution {
    /// Number of values; 0 for the uniform distribution.
    fn count(&self) -> u32 {
        match self {
            Distribution::Uniform => 0,
            Distribution::Table(values) => cast::index32(values.len()),
            _ => VALUES,
        }
    }

    /// The `i`-th value, in units of 1/8192 of the jitter.
    pub fn value(&self, i: u32) -> i64 {
        let whole = |x: f64| {
            let x = libm::rint(x);
            if x < 0.0 { -cast::trunc(-x).cast_signed() } else { cast::trunc(x).cast_signed() }
        };
        let normal = || whole(normal_quantile((f64::from(4 * i) + 0.5) / 16384.0) * 8192.0);
        let pareto = || {
            let u = 1.0 - f64::from(i) / f64::from(VALUES);
            whole((libm::pow(u, -1.0 / 3.0) - 1.5) * 4.0 / 3.0 * 8192.0).min(MAX)
        };
        match self {
            Distribution::Uniform => 0,
            Distribution::Normal => normal().clamp(MIN, MAX),
            Distribution::Pareto => pareto(),
            Distribution::ParetoNormal => ((normal() + 3 * pareto()) / 4).clamp(MIN, MAX),
            Distribution::Table(values) => values[i as usize].into(),
        }
    }

    /// Least value, in units of 1/8192 of the jitter.
    pub fn least(&self) -> i64 {
        match self {
            Distribution::Uniform => -SCALE,
            Distribution::Table(values) => values.iter().copied().min().unwrap_or(0).into(),
            other => other.value(0),
        }
    }

    /// Number of nanoseconds by which `size` changes a delay for the random number `random`.
    pub(super) fn offset(&self, size: Span, random: u32) -> i64 {
        let size = i128::from(size.0);
        let offset = match self.count() {
            0 => ((i128::from(random) * 2 * size) >> 32) - size,
            n => {
                // The high bits, which are correlated.
                let i = cast::low32((u64::from(random) * u64::from(n)) >> 32);
                let product = size * i128::from(self.value(i));
                let half = if product < 0 { -SCALE / 2 } else { SCALE / 2 };
                (product + i128::from(half)) / i128::from(SCALE)
            }
        };
        i64::try_from(offset).unwrap_or(if offset < 0 { i64::MIN } else { i64::MAX })
    }
}

/// Process of jitter.
#[derive(Clone, Snapshot)]
pub(super) struct JitterProcess {
    pub(super) jitter: Jitter,
    numbers: Correlated,
    rng: Stream,
}

impl JitterProcess {
    pub(super) fn new(jitter: &Jitter, mut rng: Stream) -> JitterProcess {
        let numbers = Correlated::new(jitter.correlation, &mut rng);
        JitterProcess { jitter: jitter.clone(), numbers, rng }
    }

    /// Sets another jitter; nothing happens if it is the same.
    pub(super) fn change(&mut self, jitter: &Jitter) {
        if *jitter != self.jitter {
            self.numbers = Correlated::new(jitter.correlation, &mut self.rng);
            self.jitter = jitter.clone();
        }
    }

    /// Draws the next offset, nanoseconds.
    pub(super) fn next(&mut self) -> i64 {
        if self.jitter.size == Span::ZERO {
            return 0;
        }
        let random = self.numbers.next(&mut self.rng);
        self.jitter.distribution.offset(self.jitter.size, random)
    }
}

/// Quantile of the standard normal distribution at `p`, 0 < p < 1.
fn normal_quantile(p: f64) -> f64 {
    const A: [f64; 8] = [
        3.387_132_872_796_366_5,
        133.141_667_891_784_38,
        1_971.590_950_306_551_3,
        13_731.693_765_509_46,
        45_921.953_931_549_87,
        67_265.770_927_008_7,
        33_430.575_583_588_13,
        2_509.080_928_730_122_7,
    ];
    const B: [f64; 8] = [
        1.0,
        42.313_330_701_600_91,
        687.187_007_492_057_9,
        5_394.196_021_424_751,
        21_213.794_301_586_597,
        39_307.895_800_092_71,
        28_729.085_735_721_943,
        5_226.495_278_852_855,
    ];
    const C: [f64; 8] = [
        1.423_437_110_749_683_5,
        4.630_337_846_156_546,
        5.769_497_221_460_691,
        3.647_848_324_763_204_5,
        1.270_458_252_452_368_4,
        0.241_780_725_177_450_6,
        0.022_723_844_989_269_184,
        0.000_774_545_014_278_341_4,
    ];
    const D: [f64; 8] = [
        1.0,
        2.053_191_626_637_759,
        1.676_384_830_183_803_8,
        0.689_767_334_985_1,
        0.148_103_976_427_480_08,
        0.015_198_666_563_616_457,
        0.000_547_593_808_499_534_5,
        1.050_750_071_644_416_9e-9,
    ];
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * horner(&A, r) / horner(&B, r);
    }
    let r = libm::sqrt(-libm::log(if q < 0.0 { p } else { 1.0 - p })) - 1.6;
    // Exact to exp(-25), far beyond 1/32768.
    let x = horner(&C, r) / horner(&D, r);
    if q < 0.0 { -x } else { x }
}

fn horner(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, c| sum * x + c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::prelude::v1::*;

    fn values(distribution: &Distribution) -> Vec<i64> {
        (0..VALUES).map(|i| distribution.value(i)).collect()
    }

    fn mean_and_deviation(values: &[i64]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<i64>() as f64 / n;
        let square = |x: f64| x * x;
        let square = values.iter().map(|v| square(*v as f64 - mean)).sum::<f64>() / n;
        (mean / 8192.0, square.sqrt() / 8192.0)
    }

    #[test]
    fn quantiles_of_the_normal_distribution() {
        // Abramowitz and Stegun, table 26.5.
        for (p, x) in [(0.5, 0.0), (0.75, 0.674_489_75), (0.975, 1.959_963_98), (0.9999, 3.719_016)]
        {
            assert!((normal_quantile(p) - x).abs() < 1e-6, "{p}");
            assert!((normal_quantile(1.0 - p) + x).abs() < 1e-6, "{p}");
        }
    }

    #[test]
    fn distributions_have_the_moments_of_their_formulas() {
        let (mean, deviation) = mean_and_deviation(&values(&Distribution::Normal));
        assert!(mean.abs() < 0.002 && (deviation - 1.0).abs() < 0.005, "{mean} {deviation}");
        // With the end at x = 4 of the scale, a = 4.5: mean 1.5 - a^-2 / 2, second moment 3 - 2/a.
        let (end, scale) = (4.5f64, 4.0 / 3.0);
        let lost = 0.5 / (end * end);
        let mean = 1.5 - lost;
        let expected = scale * (3.0 - 2.0 / end - mean * mean).sqrt();
        let (mean, deviation) = mean_and_deviation(&values(&Distribution::Pareto));
        assert!((mean + scale * lost).abs() < 0.002, "{mean}");
        assert!((deviation / expected - 1.0).abs() < 0.01, "{deviation} {expected}");
        // Both parts have the same quantile, so the sum has nearly a quarter and three quarters.
        let (mean, deviation) = mean_and_deviation(&values(&Distribution::ParetoNormal));
        assert!((mean + 0.75 * scale * lost).abs() < 0.002, "{mean}");
        assert!((0.83..0.87).contains(&deviation), "{deviation}");
        let pareto = values(&Distribution::Pareto);
        assert_eq!((pareto[0], pareto[4095]), (-5461, 32767));
        assert_eq!(Distribution::Pareto.least(), -5461);
        assert!(pareto.windows(2).all(|w| w[0] <= w[1]));
    }

    #[test]
    fn offsets_are_exact_and_signed() {
        let ends = |d: &Distribution| [0, u32::MAX].map(|r| d.offset(Span::ms(5), r));
        assert_eq!(ends(&Distribution::Uniform), [-5_000_000, 4_999_999]);
        let table = Distribution::Table([-8192, 0, 4096].into());
        let thirds = [0, 1 << 31, u32::MAX, 1];
        let offsets = thirds.map(|r| table.offset(Span::ms(5), r));
        assert_eq!(offsets, [-5_000_000, 0, 2_500_000, -5_000_000]);
        assert_eq!(table.offset(Span(3), u32::MAX), 2, "rounded away from zero at one half");
        assert_eq!(table.offset(Span(u64::MAX), 0), i64::MIN);
    }
}
