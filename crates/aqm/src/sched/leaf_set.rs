//! Set of leaves of a tree, or of queues: a bit for each number of a range.

use crate::snapshot::Snapshot;
use alloc::boxed::Box;
use alloc::vec;
use core::ops::RangeInclusive;

/// Set of numbers of leaves.
#[derive(Clone, Debug, Default, Snapshot)]
pub(crate) struct LeafSet {
    /// Number of the word that is first in `words`.
    base: usize,
    words: Box<[u64]>,
    len: u32,
}

/// Change of a set.
#[derive(Clone, Copy, Debug, PartialEq, Snapshot)]
pub(crate) enum Change {
    /// Adds leaves that are not in the set.
    Add,
    /// Removes leaves that are in the set.
    Remove,
}

impl LeafSet {
    /// Creates an empty set for numbers in `range`.
    pub fn new(range: RangeInclusive<usize>) -> LeafSet {
        let (base, last) = (range.start() / 64, range.end() / 64);
        LeafSet { base, words: vec![0; last + 1 - base].into(), len: 0 }
    }

    /// Number of leaves.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Adds or removes the leaf `i`.
    #[inline]
    pub fn change(&mut self, i: usize, change: Change) {
        self.words[i / 64 - self.base] ^= 1 << (i % 64);
        self.count(1, change);
    }

    /// Adds or removes all leaves of `other`, whose range is a part of this one's.
    #[inline]
    pub fn change_all(&mut self, other: &LeafSet, change: Change) {
        let from = other.base - self.base;
        for (word, of_other) in self.words[from..].iter_mut().zip(&other.words) {
            *word ^= of_other;
        }
        self.count(other.len, change);
    }

    fn count(&mut self, n: u32, change: Change) {
        match change {
            Change::Add => self.len += n,
            Change::Remove => self.len -= n,
        }
    }

    /// First leaf from `from` on, or the first of all if there is none.
    #[inline]
    pub fn next(&self, from: usize) -> Option<usize> {
        if self.len == 0 {
            return None;
        }
        let k = from / 64;
        let rest = self.word(k) & (u64::MAX << (from % 64));
        if rest != 0 {
            return Some(k * 64 + rest.trailing_zeros() as usize);
        }
        let end = self.base + self.words.len();
        let later = (k + 1).max(self.base)..end;
        let all = self.base..end;
        let mut words = later.chain(all);
        let k = words.find(|k| self.word(*k) != 0)?;
        Some(k * 64 + self.word(k).trailing_zeros() as usize)
    }

    fn word(&self, k: usize) -> u64 {
        k.checked_sub(self.base).and_then(|k| self.words.get(k)).copied().unwrap_or(0)
    }

    /// Size in bytes, without the struct itself.
    pub fn state_bytes(&self) -> usize {
        size_of_val(&*self.words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::prelude::v1::*;

    #[test]
    fn the_next_leaf_is_found_in_the_circle() {
        let mut set = LeafSet::new(70..=300);
        assert_eq!(set.next(100), None);
        [71, 127, 128, 300].into_iter().for_each(|i| set.change(i, Change::Add));
        let next = |from| set.next(from).unwrap();
        let expected = [(0, 71), (71, 71), (72, 127), (128, 128), (129, 300), (300, 300)];
        expected.into_iter().for_each(|(from, i)| assert_eq!(next(from), i, "from {from}"));
        assert_eq!([next(301), next(999)], [71, 71]);
        assert_eq!(set.len(), 4);
    }

    #[test]
    fn a_part_is_added_and_removed_whole() {
        let (mut all, mut part) = (LeafSet::new(0..=500), LeafSet::new(200..=260));
        [3, 400].into_iter().for_each(|i| all.change(i, Change::Add));
        [200, 255, 260].into_iter().for_each(|i| part.change(i, Change::Add));
        all.change_all(&part, Change::Add);
        let walk = |set: &LeafSet| -> Vec<usize> {
            let mut leaves: Vec<usize> = (0..501).filter(|i| set.next(*i) == Some(*i)).collect();
            leaves.dedup();
            leaves
        };
        assert_eq!((walk(&all), all.len()), (vec![3, 200, 255, 260, 400], 5));
        all.change_all(&part, Change::Remove);
        all.change(3, Change::Remove);
        assert_eq!((walk(&all), all.len()), (vec![400], 1));
    }
}
