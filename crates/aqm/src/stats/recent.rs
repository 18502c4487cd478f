//! Recent sojourn times of a link, which its histogram counts later.

use super::Histogram;
use crate::cast;
use crate::snapshot::Snapshot;
use crate::units::Span;

/// Number of sojourn times above zero that are kept.
const KEPT: usize = 21;
/// Value of `len` if durations are counted at once.
const AT_ONCE: u32 = u32::MAX;
/// False in a build without the feature `batches`: every duration is counted at once.
const BATCHES: bool = cfg!(feature = "batches");

/// Sojourn times that the histogram has not counted yet, if it counts them
/// [in batches](RecentDurations::start).
///
/// The bins of many links do not fit into the cache. The durations of a batch wait for the memory
/// of their bins at the same time, not one after the other.
#[derive(Clone, Debug, Snapshot)]
#[repr(C)]
pub(super) struct RecentDurations {
    /// Number of durations of zero.
    zeros: u64,
    /// Number of the others, and their values in nanoseconds. Durations of 2^32 ns or more are
    /// counted at once.
    len: u32,
    longer: [u32; KEPT],
}

impl Default for RecentDurations {
    fn default() -> Self {
        RecentDurations { zeros: 0, len: AT_ONCE, longer: [0; KEPT] }
    }
}

impl RecentDurations {
    /// Starts to keep durations.
    pub(super) fn start(&mut self) {
        if BATCHES && self.len == AT_ONCE {
            self.len = 0;
        }
    }

    /// Returns these without any duration.
    pub(super) fn cleared(&self) -> RecentDurations {
        let len = if self.len == AT_ONCE { AT_ONCE } else { 0 };
        RecentDurations { len, ..RecentDurations::default() }
    }

    /// Adds a duration: counts it in `histogram`, or keeps it. Counts the durations that were kept
    /// if there is no room.
    #[inline(always)]
    pub(super) fn add(&mut self, span: Span, histogram: &mut Histogram) {
        if !BATCHES || self.len == AT_ONCE {
            return histogram.add(span);
        }
        if span.0 == 0 {
            self.zeros += 1;
            return;
        }
        let Ok(ns) = u32::try_from(span.0) else { return histogram.add(span) };
        let mut len = self.len as usize;
        if len >= KEPT {
            self.count(histogram);
            len = 0;
        }
        self.longer[len] = ns;
        self.len = cast::index32(len + 1);
    }

    /// Counts everything in `histogram`.
    #[inline(never)]
    pub(super) fn count(&mut self, histogram: &mut Histogram) {
        if !BATCHES || self.len == AT_ONCE {
            return;
        }
        histogram.add_zeros(core::mem::take(&mut self.zeros));
        histogram.add_all(&self.longer[..self.len as usize]);
        self.len = 0;
    }
}
