//! Sorted, disjoint, half-open ranges of sequence numbers: out-of-order data at a receiver, and a
//! sender's view of it.

use crate::collections::prefetch::prefetch;
use sojourn_aqm::Snapshot;
use std::collections::VecDeque;

/// Ranges in ascending order; adjacent ranges are merged.
///
/// There are at most half as many ranges as packets in flight. The buffer is kept when ranges are
/// removed, so a flow allocates only when its window reaches a new maximum.
#[derive(Clone, Debug, Default, Snapshot)]
pub(super) struct Ranges {
    list: VecDeque<(u64, u64)>,
    /// Number of sequence numbers in all ranges.
    covered: u64,
}

impl Ranges {
    /// Removes all ranges.
    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.covered = 0;
    }

    /// Prefetch the first and the last range.
    #[inline]
    pub(super) fn fetch(&self) {
        if let (Some(first), Some(last)) = (self.list.front(), self.list.back()) {
            prefetch(first);
            prefetch(last);
        }
    }

    /// True if there are no ranges.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Number of sequence numbers in all ranges.
    pub(super) fn covered(&self) -> u64 {
        self.covered
    }

    /// Start of the first range.
    pub(super) fn start(&self) -> Option<u64> {
        self.list.front().map(|r| r.0)
    }

    /// End of the last range.
    pub(super) fn end(&self) -> Option<u64> {
        self.list.back().map(|r| r.1)
    }

    /// Iterates from the highest range to the lowest.
    pub(super) fn iter_descending(&self) -> impl Iterator<Item = (u64, u64)> {
        self.list.iter().rev().copied()
    }

    /// Index of the first range that ends above `seq`.
    fn first_ending_above(&self, seq: u64) -> usize {
        // Most lookups hit the first or the last range, which needs no search.
        match (self.list.front(), self.list.back()) {
            (Some(first), _) if first.1 > seq => 0,
            (_, Some(last)) if last.1 <= seq => self.list.len(),
            (_, Some(last)) if last.0 <= seq => self.list.len() - 1,
            _ => self.list.partition_point(|r| r.1 <= seq),
        }
    }

    /// Range that contains `seq`.
    pub(super) fn containing(&self, seq: u64) -> Option<(u64, u64)> {
        self.list.get(self.first_ending_above(seq)).copied().filter(|r| r.0 <= seq)
    }

    /// Inserts `start..end`; returns how many of its sequence numbers are new.
    pub(super) fn insert(&mut self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        // Common case: the packet after the last one, or the last range, which may have grown.
        if let Some(last) = self.list.back_mut()
            && last.0 <= start
            && start <= last.1
        {
            let new = end.saturating_sub(last.1);
            last.1 += new;
            self.covered += new;
            return new;
        }
        // Start one below `start`, because touching ranges are merged too.
        let first = self.first_ending_above(start.saturating_sub(1));
        if self.list.get(first).is_some_and(|r| r.0 <= start && end <= r.1) {
            return 0; // common case at a sender: a block that it knows
        }
        let (mut merged, mut old, mut last) = ((start, end), 0, first);
        while let Some(&(s, e)) = self.list.get(last).filter(|r| r.0 <= end) {
            merged = (merged.0.min(s), merged.1.max(e));
            old += e - s;
            last += 1;
        }
        if first == last {
            self.list.insert(first, merged);
        } else {
            self.list[first] = merged;
            self.list.drain(first + 1..last);
        }
        let new = merged.1 - merged.0 - old;
        self.covered += new;
        new
    }

    /// Removes everything below `seq`.
    pub(super) fn remove_below(&mut self, seq: u64) {
        while let Some(front) = self.list.front_mut().filter(|r| r.0 < seq) {
            self.covered -= front.1.min(seq) - front.0;
            if front.1 <= seq {
                self.list.pop_front();
            } else {
                front.0 = seq;
            }
        }
    }

    /// Removes the lowest ranges, so that at most `count` are left.
    pub(super) fn keep_last(&mut self, count: usize) {
        while self.list.len() > count {
            let removed = self.list.pop_front();
            self.covered -= removed.map_or(0, |(start, end)| end - start);
        }
    }

    /// Number of covered sequence numbers below `seq`; searched from the nearer end.
    pub(super) fn covered_below(&self, seq: u64) -> u64 {
        let cut = self.first_ending_above(seq);
        let inside = self.list.get(cut).map_or(0, |r| seq.saturating_sub(r.0));
        let total = |from, to| self.list.range(from..to).map(|r| r.1 - r.0).sum::<u64>();
        if cut <= self.list.len() / 2 {
            total(0, cut) + inside
        } else {
            self.covered - total(cut, self.list.len()) + inside
        }
    }

    /// First gap at or above `from`; the gap above the last range ends at `u64::MAX`.
    pub(super) fn gap_at(&self, from: u64) -> (u64, u64) {
        let mut next = self.first_ending_above(from);
        let mut start = from;
        if let Some(&(_, end)) = self.list.get(next).filter(|r| r.0 <= from) {
            (start, next) = (end, next + 1);
        }
        (start, self.list.get(next).map_or(u64::MAX, |r| r.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(list: &[(u64, u64)]) -> Ranges {
        let mut r = Ranges::default();
        list.iter().for_each(|&(s, e)| {
            r.insert(s, e);
        });
        r
    }

    #[test]
    fn insertion_merges_overlapping_and_touching_ranges() {
        let mut r = of(&[(10, 20), (30, 40), (50, 60)]);
        assert_eq!(r.insert(20, 25), 5);
        assert_eq!(r.insert(24, 55), 15);
        assert_eq!(r.list, [(10, 60)]);
        assert_eq!((r.insert(15, 30), r.insert(7, 7)), (0, 0));
        assert_eq!(r.insert(0, 9), 9);
        assert_eq!((r.list.len(), r.covered()), (2, 59));
    }

    #[test]
    fn gaps_and_coverage() {
        let mut r = of(&[(10, 20), (30, 40)]);
        assert_eq!(r.gap_at(5), (5, 10));
        assert_eq!(r.gap_at(10), (20, 30));
        assert_eq!(r.gap_at(25), (25, 30));
        assert_eq!(r.gap_at(35), (40, u64::MAX), "nothing above it");
        assert_eq!(
            (r.covered_below(35), r.containing(35), r.containing(20)),
            (15, Some((30, 40)), None)
        );
        r.remove_below(15);
        assert_eq!((r.covered(), r.end(), r.gap_at(15)), (15, Some(40), (20, 30)));
        assert_eq!(r.start(), Some(15));
        r.insert(50, 60);
        r.keep_last(2);
        assert_eq!((r.covered(), r.start()), (20, Some(30)));
        r.keep_last(1);
        assert_eq!((r.covered(), r.start()), (10, Some(50)));
        r.remove_below(60);
        assert_eq!((r.covered(), r.start(), r.end()), (0, None, None));
    }

    #[test]
    fn agrees_with_a_bitmap() {
        // All sequences of three ranges below 7, compared with a bitmap.
        let all: Vec<(u64, u64)> = (0..7).flat_map(|s| (s + 1..=7).map(move |e| (s, e))).collect();
        for (i, &a) in all.iter().enumerate() {
            for &b in &all {
                for &c in &all[..=i] {
                    let mut bits = [false; 7];
                    let mut r = Ranges::default();
                    for (s, e) in [a, b, c] {
                        let fresh = (s..e).filter(|&x| !bits[x as usize]).count() as u64;
                        bits[s as usize..e as usize].fill(true);
                        assert_eq!(r.insert(s, e), fresh, "{a:?} {b:?} {c:?}");
                    }
                    r.remove_below(2);
                    bits[..2].fill(false);
                    for x in 0..7 {
                        assert_eq!(
                            r.containing(x).is_some(),
                            bits[x as usize],
                            "{a:?} {b:?} {c:?}"
                        );
                    }
                    for x in 0..=7 {
                        let below = bits[..x].iter().filter(|b| **b).count() as u64;
                        assert_eq!(r.covered_below(x as u64), below, "{a:?} {b:?} {c:?}");
                    }
                    assert_eq!(r.covered(), bits.iter().filter(|b| **b).count() as u64);
                }
            }
        }
    }
}
