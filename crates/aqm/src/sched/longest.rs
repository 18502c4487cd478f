//! The longest of many queues, for disciplines that drop from it when the buffer is full.

use crate::sched::tree::{OUT, Tree};
use crate::snapshot::Snapshot;

/// Upper bounds of the lengths of queues. A bound is raised when its queue grows beyond it, and
/// lowered only when it is the largest of all: most packets leave the tree as it is.
///
/// A length is a key of [`Tree`], in reverse order: the longest queue has the smallest key, an
/// empty one has [`OUT`].
#[derive(Clone, Debug, Snapshot)]
pub struct Longest {
    bounds: Tree,
}

impl Longest {
    /// Creates the bounds of `n` empty queues.
    pub fn new(n: usize) -> Longest {
        Longest { bounds: Tree::new(n) }
    }

    /// Records that queue `i` has grown to `length`.
    #[inline]
    pub fn grow(&mut self, i: u32, length: u64) {
        if length < self.bounds.key(i) {
            self.bounds.set(i, length);
        }
    }

    /// Returns the longest queue and its length; of equally long queues, the one with the lowest
    /// number. `length` returns the length of a queue.
    pub fn find(&mut self, length: impl Fn(u32) -> u64) -> Option<(u32, u64)> {
        loop {
            let (i, bound) = self.bounds.first()?;
            let exact = length(i);
            if exact == bound {
                return Some((i, bound));
            }
            self.bounds.set(i, exact); // bounded: each turn makes up for a packet that left
        }
    }

    /// True if no other queue can be as long as `i`, the longest one.
    pub fn is_alone(&self, i: u32) -> bool {
        self.bounds.alone(i)
    }

    /// Size of the bounds in bytes.
    pub fn state_bytes(&self) -> usize {
        self.bounds.state_bytes()
    }
}

/// Returns the key of a length in bytes.
#[inline]
pub fn bytes(length: u64) -> u64 {
    OUT - length
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use rand_core::SeedableRng;

    #[test]
    fn agrees_with_a_search_of_all() {
        let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(1);
        let mut longest = Longest::new(20);
        let mut lengths = [0u64; 20];
        for _ in 0..5000 {
            let i = rng.below(20);
            let length = &mut lengths[i as usize];
            *length = if rng.bernoulli(0.5) { *length + 1 } else { length.saturating_sub(1) };
            longest.grow(i, bytes(*length));
            if rng.bernoulli(0.2) {
                let result = longest.find(|i| bytes(lengths[i as usize]));
                let most = *lengths.iter().max().unwrap();
                let first = lengths.iter().position(|l| *l == most).unwrap() as u32;
                assert_eq!(result, (most > 0).then_some((first, bytes(most))));
                let same = lengths.iter().filter(|l| **l == most).count();
                assert!(most == 0 || same == 1 || !longest.is_alone(first));
            }
        }
    }

    #[test]
    fn a_queue_is_alone_if_all_others_are_shorter() {
        for (second, alone) in [(3, true), (4, true), (5, false)] {
            let lengths = [0, 5, second];
            let mut longest = Longest::new(3);
            (0..3).for_each(|i| longest.grow(i, bytes(lengths[i as usize])));
            assert_eq!(longest.find(|i| bytes(lengths[i as usize])), Some((1, bytes(5))));
            assert_eq!(longest.is_alone(1), alone, "{second}");
        }
    }
}
