//! Round-robin order of many queues: a doubly linked ring in one array, with O(1) removal at any
//! position.

use crate::snapshot::Snapshot;
use alloc::vec;
use alloc::vec::Vec;

const NONE: u32 = u32::MAX;

/// Ring of queue numbers; the first one is served.
#[derive(Clone, Debug, Snapshot)]
pub struct Ring {
    /// Previous and next number of each number; [`NONE`] for one that is not in the ring.
    places: Vec<(u32, u32)>,
    first: u32,
    len: usize,
}

impl Ring {
    /// Creates an empty ring for numbers below `n`.
    pub fn new(n: usize) -> Ring {
        Ring { places: vec![(NONE, NONE); n], first: NONE, len: 0 }
    }

    /// First number.
    #[inline]
    pub fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    /// True if `i` is in the ring.
    pub fn contains(&self, i: u32) -> bool {
        self.places[i as usize].0 != NONE
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Appends `i`, which must not be in the ring.
    #[inline]
    pub fn push(&mut self, i: u32) {
        if self.first == NONE {
            self.first = i;
            self.places[i as usize] = (i, i);
        } else {
            let after = self.first;
            let before = self.places[after as usize].0;
            self.places[i as usize] = (before, after);
            self.places[before as usize].1 = i;
            self.places[after as usize].0 = i;
        }
        self.len += 1;
    }

    /// Moves the first element to the end.
    #[inline]
    pub fn rotate(&mut self) {
        if self.first != NONE {
            self.first = self.places[self.first as usize].1;
        }
    }

    /// Removes `i`.
    #[inline]
    pub fn remove(&mut self, i: u32) {
        let (before, after) = self.places[i as usize];
        self.places[before as usize].1 = after;
        self.places[after as usize].0 = before;
        self.places[i as usize] = (NONE, NONE);
        if self.first == i {
            self.first = if after == i { NONE } else { after };
        }
        self.len -= 1;
    }

    /// Iterates over all elements in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        let next = |i: &u32| Some(self.places[*i as usize].1);
        core::iter::successors(self.first(), next).take(self.len)
    }

    /// Size of the array in bytes.
    pub fn state_bytes(&self) -> usize {
        size_of_val(&*self.places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotation_keeps_the_order_and_any_entry_can_leave() {
        let mut ring = Ring::new(5);
        (0..5).for_each(|i| ring.push(i));
        ring.rotate();
        assert_eq!(ring.iter().collect::<Vec<_>>(), [1, 2, 3, 4, 0]);
        ring.remove(3);
        ring.remove(1);
        assert_eq!((ring.first(), ring.len()), (Some(2), 3));
        ring.push(1);
        assert_eq!(ring.iter().collect::<Vec<_>>(), [2, 4, 0, 1]);
        [2, 0, 4, 1].into_iter().for_each(|i| ring.remove(i));
        assert_eq!((ring.first(), ring.iter().count()), (None, 0));
        ring.push(3);
        assert_eq!(ring.first(), Some(3));
    }
}
