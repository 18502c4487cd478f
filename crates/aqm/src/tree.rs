//! Which of many queues comes first by some key: a tournament tree, a walk of O(log n) per change.

use crate::cast;
use alloc::boxed::Box;
use alloc::vec;

/// The key of a queue that does not take part.
pub const OUT: u64 = u64::MAX;

/// The least key of `n` places; of equal ones, the lowest place wins. Node 1 is the root, the
/// children of node k are 2k and 2k + 1, the leaves are the places.
pub struct Tree {
    keys: Box<[u64]>,
    leaves: usize,
}

impl Tree {
    /// `n` places, nobody in them.
    pub fn new(n: usize) -> Tree {
        let leaves = n.max(2).next_power_of_two();
        Tree { keys: vec![OUT; 2 * leaves].into(), leaves }
    }

    /// Gives the place `i` a key; [`OUT`] takes it out.
    #[inline]
    pub fn set(&mut self, i: u32, key: u64) {
        let mut k = self.leaves + i as usize;
        self.keys[k] = key;
        while k > 1 {
            let least = self.keys[k].min(self.keys[k ^ 1]);
            k /= 2;
            if self.keys[k] == least {
                return;
            }
            self.keys[k] = least;
        }
    }

    /// The key of the place `i`.
    #[inline]
    pub fn key(&self, i: u32) -> u64 {
        self.keys[self.leaves + i as usize]
    }

    /// The place with the least key, and that key; none if nobody takes part.
    #[inline]
    pub fn first(&self) -> Option<(u32, u64)> {
        let least = self.keys[1];
        if least == OUT {
            return None;
        }
        let mut k = 1;
        while k < self.leaves {
            k = 2 * k + usize::from(self.keys[2 * k] != least);
        }
        Some((cast::place(k - self.leaves), least))
    }

    /// Whether nobody else has the key of `i`, which comes first.
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

    /// Bytes of memory.
    pub fn state(&self) -> usize {
        size_of_val(&*self.keys)
    }
}

/// A key for a number that is not negative: keys come in the order of the numbers.
#[inline]
pub fn key(x: f64) -> u64 {
    x.to_bits()
}

/// A key by which the largest comes first.
#[inline]
pub fn largest(x: f64) -> u64 {
    OUT - 1 - x.to_bits()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::Dice;
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
