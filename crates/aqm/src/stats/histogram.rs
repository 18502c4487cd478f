//! Histogram of durations.

use super::spread;
use crate::cast;
use crate::snapshot::Snapshot;
use crate::units::Span;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

/// A histogram of durations: 128 bins per doubling, so that a percentile is right to 0.8 %; sums
/// and extremes are exact.
///
/// No memory is allocated before the first duration above zero. From then on it is 14 kB,
/// enough for 17 s. Longer durations take 512 bytes more per doubling, up to 29 kB. See
/// [`Histogram::bytes_up_to`].
// The layout is fixed: a duration of zero touches the first 8 bytes only.
#[derive(Clone, Snapshot)]
#[repr(C)]
pub struct Histogram {
    /// Number of durations of zero, which are in no bin: most packets of a link that is rarely busy
    /// do not wait.
    zeros: u64,
    /// Number of longer durations.
    longer: u64,
    /// Shortest and longest duration above zero.
    min: u64,
    max: u64,
    sum: u128,
    sum_of_squares: u128,
    /// Low words of the number of durations in each bin; empty before the first duration above
    /// zero.
    bins: Box<[u32]>,
    /// High words of these numbers; empty before the first bin has 2^32 durations.
    high: Box<[u32]>,
}

const FINE: u32 = 7;

/// Durations up to this one need no further allocation after the first: 17 s.
const COVERED_NS: u64 = (1 << 34) - 1;

/// Bin of a duration. Bins are 1 ns wide below 2^8 ns, and twice as wide from each power of two on.
#[inline]
fn bin(ns: u64) -> usize {
    let doublings = 63 - FINE - (ns | 1 << FINE).leading_zeros();
    cast::index((u64::from(doublings) << FINE) + (ns >> doublings))
}

/// The middle of a bin.
fn middle(bin: usize) -> u64 {
    let (octave, step) = (bin >> FINE, (bin & ((1 << FINE) - 1)) as u64);
    match octave {
        0 => step,
        _ => (((1 << FINE) + step) << (octave - 1)) + ((1u64 << (octave - 1)) >> 1),
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram {
            zeros: 0,
            longer: 0,
            min: u64::MAX,
            max: 0,
            sum: 0,
            sum_of_squares: 0,
            bins: Box::default(),
            high: Box::default(),
        }
    }
}

/// Shows number, extremes and mean in place of thousands of bins.
impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Histogram");
        shown.field("count", &self.count());
        if let Some(mean) = self.mean_s() {
            shown
                .field("min_s", &(self.min() as f64 / 1e9))
                .field("mean_s", &mean)
                .field("max_s", &(self.max as f64 / 1e9));
        }
        shown.finish_non_exhaustive()
    }
}

impl Histogram {
    /// Counts one duration.
    #[inline]
    pub fn add(&mut self, span: Span) {
        let ns = span.0;
        if ns == 0 {
            self.zeros += 1;
            return;
        }
        match self.bins.get_mut(bin(ns)) {
            Some(n) => {
                *n = n.wrapping_add(1);
                if *n == 0 {
                    self.carry(bin(ns));
                }
            }
            None => self.add_longer(ns),
        }
        self.longer += 1;
        self.sum += u128::from(ns);
        // As in `Integrals::add`.
        self.sum_of_squares += if cfg!(target_family = "wasm") && ns < 1 << 32 {
            u128::from(ns * ns)
        } else {
            u128::from(ns) * u128::from(ns)
        };
        // A new extreme is rare: no store otherwise.
        if ns < self.min {
            self.min = ns;
        }
        if ns > self.max {
            self.max = ns;
        }
    }

    /// Counts `n` durations of zero.
    pub(super) fn add_zeros(&mut self, n: u64) {
        self.zeros += n;
    }

    /// Counts durations above zero, in nanoseconds.
    pub(super) fn add_all(&mut self, durations: &[u32]) {
        let (mut sum, mut squares) = (0, 0);
        let (mut min, mut max) = (self.min, self.max);
        for &ns in durations {
            let ns = u64::from(ns);
            match self.bins.get_mut(bin(ns)) {
                Some(n) => {
                    *n = n.wrapping_add(1);
                    if *n == 0 {
                        self.carry(bin(ns));
                    }
                }
                None => self.add_longer(ns),
            }
            sum += ns;
            squares += u128::from(ns * ns);
            (min, max) = (min.min(ns), max.max(ns));
        }
        self.longer += durations.len() as u64;
        self.sum += u128::from(sum);
        self.sum_of_squares += squares;
        (self.min, self.max) = (min, max);
    }

    /// Counts `ns`, for which there is no bin yet: the first duration above zero, or one above 17 s
    /// that is longer than all before.
    #[cold]
    #[inline(never)]
    fn add_longer(&mut self, ns: u64) {
        // Memory that is zero from the start is not touched, so a new histogram is in few pages.
        let mut bins = vec![0; Histogram::bins_up_to(ns)].into_boxed_slice();
        bins[..self.bins.len()].copy_from_slice(&self.bins);
        bins[bin(ns)] = 1;
        self.bins = bins;
    }

    /// Counts 2^32 durations in `bin`, whose low word has become zero.
    #[cold]
    #[inline(never)]
    fn carry(&mut self, bin: usize) {
        if bin >= self.high.len() {
            let mut high = vec![0; self.bins.len()].into_boxed_slice();
            high[..self.high.len()].copy_from_slice(&self.high);
            self.high = high;
        }
        self.high[bin] += 1;
    }

    /// Number of durations in each bin.
    fn counts(&self) -> impl Iterator<Item = u64> + '_ {
        let high = self.high.iter().copied().chain(core::iter::repeat(0));
        self.bins.iter().zip(high).map(|(low, high)| u64::from(high) << 32 | u64::from(*low))
    }

    /// Number of bins to allocate for durations up to `ns`: whole octaves.
    fn bins_up_to(ns: u64) -> usize {
        ((bin(ns.max(COVERED_NS)) >> FINE) + 1) << FINE
    }

    /// Bytes that the bins take after a duration of `span`, if that is the longest.
    pub fn bytes_up_to(span: Span) -> usize {
        Histogram::bins_up_to(span.0) * size_of::<u32>()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        let mut bins = core::mem::take(&mut self.bins);
        bins.fill(0);
        *self = Histogram { bins, ..Histogram::default() };
    }

    /// Counts since `earlier`, an older copy of this histogram; the extremes are exact to a bin.
    pub fn since(&self, earlier: &Histogram) -> Histogram {
        let before = earlier.counts().chain(core::iter::repeat(0));
        let counts: Vec<u64> = self.counts().zip(before).map(|(a, b)| a - b).collect();
        let first = counts.iter().position(|n| *n > 0).map_or(u64::MAX, middle);
        let last = counts.iter().rposition(|n| *n > 0).map_or(0, middle);
        let high = |n: &u64| cast::low32(n >> 32);
        let carried = counts.iter().any(|n| high(n) > 0);
        Histogram {
            zeros: self.zeros - earlier.zeros,
            longer: self.longer - earlier.longer,
            min: first.max(self.min()),
            max: last.min(self.max),
            sum: self.sum - earlier.sum,
            sum_of_squares: self.sum_of_squares - earlier.sum_of_squares,
            bins: counts.iter().map(|n| cast::low32(*n)).collect(),
            high: counts.iter().filter(|_| carried).map(high).collect(),
        }
    }

    /// Durations counted.
    pub fn count(&self) -> u64 {
        self.zeros + self.longer
    }

    /// The shortest duration; `u64::MAX` without a sample.
    fn min(&self) -> u64 {
        if self.zeros > 0 { 0 } else { self.min }
    }

    /// Distinct durations in ascending order, to the accuracy of a bin, with the number of each.
    pub fn values(&self) -> impl Iterator<Item = (Span, u64)> + '_ {
        let zeros = (self.zeros > 0).then_some((Span::ZERO, self.zeros));
        let counted = self.counts().enumerate().filter(|(_, n)| *n > 0);
        let longer = counted.map(|(bin, n)| (Span(self.value(bin)), n));
        zeros.into_iter().chain(longer)
    }

    /// Value of the durations in `bin`, in nanoseconds.
    fn value(&self, bin: usize) -> u64 {
        middle(bin).clamp(self.min(), self.max)
    }

    /// The sum of all, in nanoseconds.
    pub fn sum_ns(&self) -> u128 {
        self.sum
    }

    /// The mean in seconds; none without a sample.
    pub fn mean_s(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.sum as f64 / self.count() as f64 / 1e9)
    }

    /// The standard deviation in seconds (dividing by n); none without a sample.
    pub fn std_s(&self) -> Option<f64> {
        let n = u128::from(self.count());
        (n > 0).then(|| spread(self.sum, self.sum_of_squares, n) / 1e9)
    }

    /// The largest in seconds; none without a sample.
    pub fn max_s(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.max as f64 / 1e9)
    }

    /// The duration, in seconds, that a fraction `q` of all do not exceed (nearest rank).
    pub fn quantile_s(&self, q: f64) -> Option<f64> {
        let count = self.count();
        let rank = cast::trunc(libm::ceil(q * count as f64)).clamp(1, count.max(1));
        if rank >= count {
            return self.max_s();
        }
        let mut seen = self.zeros;
        if seen >= rank {
            return Some(0.0);
        }
        let hit = self.counts().position(|n| {
            seen += n;
            seen >= rank
        });
        Some(self.value(hit?) as f64 / 1e9)
    }
}

#[cfg(test)]
mod tests;
