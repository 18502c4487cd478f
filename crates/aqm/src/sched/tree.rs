//! Tournament tree: the queue with the smallest key, with O(log n) per change.

use crate::cast;
use crate::snapshot::Snapshot;
use alloc::boxed::Box;
use alloc::vec;

/// Key of a queue that is not in the tree.
pub const OUT: u64 = u64::MAX;

/// Smallest key of `n` slots; of equal keys, the lowest slot wins. Node 1 is the root, the children
/// of node k are 2k and 2k + 1, the leaves are the slots.
///
/// The tree is only as high as the highest slot used so far requires: few flows have low numbers.
#[derive(Clone, Debug, Snapshot)]
pub struct Tree {
    /// Room for all slots.
    keys: Box<[u64]>,
    /// Number of leaves in use, a power of two.
    leaves: usize,
}

impl Tree {
    /// Creates a tree of `n` empty slots.
    pub fn new(n: usize) -> Tree {
        let keys = vec![OUT; 2 * n.max(2).next_power_of_two()].into();
        Tree { keys, leaves: 2 }
    }

    /// Sets the key of slot `i`; [`OUT`] removes it.
    #[inline]
    pub fn set(&mut self, i: u32, key: u64) {
        if i as usize >= self.leaves {
            self.grow(i);
        }
        let mut k = self.leaves + i as usize;
        let mut least = key;
        self.keys[k] = key;
        // The mask changes no index. It shows the compiler that each is in bounds, because the
        // number of keys is a power of two.
        let keys = &mut *self.keys;
        let mask = keys.len() - 1;
        while k > 1 {
            least = least.min(keys[(k ^ 1) & mask]);
            k /= 2;
            if keys[k & mask] == least {
                return;
            }
            keys[k & mask] = least;
        }
    }

    /// Doubles the number of leaves until slot `i` is one.
    #[cold]
    fn grow(&mut self, i: u32) {
        let old = self.leaves..2 * self.leaves;
        self.leaves = (i as usize + 1).next_power_of_two();
        self.keys.copy_within(old, self.leaves); // all other leaves are still out
        for k in (1..self.leaves).rev() {
            self.keys[k] = self.keys[2 * k].min(self.keys[2 * k + 1]);
        }
    }

    /// Key of slot `i`.
    #[inline]
    pub fn key(&self, i: u32) -> u64 {
        if i as usize >= self.leaves { OUT } else { self.keys[self.leaves + i as usize] }
    }

    /// Smallest key; [`OUT`] if the tree is empty.
    #[inline]
    pub fn least(&self) -> u64 {
        self.keys[1]
    }

    /// Slot with the smallest key, and that key; `None` if the tree is empty.
    #[inline]
    pub fn first(&self) -> Option<(u32, u64)> {
        let least = self.least();
        if least == OUT {
            return None;
        }
        let mut k = 1;
        while k < self.leaves {
            k = 2 * k + usize::from(self.keys[2 * k] != least);
        }
        Some((cast::index32(k - self.leaves), least))
    }

    /// Smallest of the values of all slots, where the value of a slot is at least its key; [`OUT`]
    /// if the tree is empty. Skips slots whose key is not below the smallest value so far.
    pub fn least_value(&self, value: &impl Fn(u32) -> u64) -> u64 {
        self.least_below(1, OUT, value)
    }

    /// Smallest of `least` and the values of the slots below node `k`.
    fn least_below(&self, k: usize, least: u64, value: &impl Fn(u32) -> u64) -> u64 {
        if self.keys[k] >= least {
            return least;
        }
        if k >= self.leaves {
            return least.min(value(cast::index32(k - self.leaves)));
        }
        let first = 2 * k + usize::from(self.keys[2 * k + 1] < self.keys[2 * k]);
        let least = self.least_below(first, least, value);
        self.least_below(first ^ 1, least, value)
    }

    /// True if no other slot has the key of `i`, which is the first.
    pub fn alone(&self, i: u32) -> bool {
        let mut k = self.leaves + i as usize;
        let key = self.keys[k];
        while k > 1 {
            if self.keys[k ^ 1] == key {
                return false;
            }
            k /= 2;
        }
        true
    }

    /// Size of the tree in bytes.
    pub fn state_bytes(&self) -> usize {
        size_of_val(&*self.keys)
    }
}

/// Converts a number that is not negative to a key; keys have the order of the numbers.
#[inline]
pub fn key(x: f64) -> u64 {
    x.to_bits()
}

/// Converts a number to a key with the reverse order: the largest comes first.
#[inline]
pub fn largest(x: f64) -> u64 {
    OUT - 1 - x.to_bits()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use rand_core::SeedableRng;
    use std::prelude::v1::*;

    #[test]
    fn agrees_with_a_search_of_all() {
        let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(1);
        for n in [1u32, 2, 3, 7, 64, 65] {
            let mut tree = Tree::new(n as usize);
            let mut keys = vec![OUT; n as usize];
            assert_eq!(tree.first(), None);
            for _ in 0..2000 {
                let (i, x) = (rng.below(n), rng.below(20));
                let new = if x == 0 { OUT } else { key(f64::from(x) / 7.0) };
                tree.set(i, new);
                keys[i as usize] = new;
                let least = *keys.iter().min().unwrap();
                let place = keys.iter().position(|k| *k == least).unwrap() as u32;
                assert_eq!(tree.first(), (least != OUT).then_some((place, least)));
                let value = |i: u32| keys[i as usize].saturating_add(u64::from(i * i % 7) << 50);
                let smallest = (0..n).map(value).min().unwrap();
                assert_eq!(tree.least_value(&value), smallest);
                let same = keys.iter().filter(|k| **k == least).count();
                assert!(least == OUT || tree.alone(place) == (same == 1));
            }
        }
    }

    #[test]
    fn keys_keep_the_order_of_numbers() {
        let numbers = [0.0, 1e-300, 0.5, 1.0, 1.0 + f64::EPSILON, 7e9, 1e300];
        assert!(numbers.windows(2).all(|w| key(w[0]) < key(w[1]) && key(w[1]) < OUT));
        assert!(numbers.windows(2).all(|w| largest(w[0]) > largest(w[1]) && largest(w[0]) < OUT));
    }
}
