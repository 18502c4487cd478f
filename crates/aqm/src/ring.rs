//! Whose turn it is among many queues: a ring of numbers threaded through one array, so that one
//! can leave from anywhere at once.

use alloc::vec;
use alloc::vec::Vec;

const NONE: u32 = u32::MAX;

/// Numbers in the order of their turns; the first one has it.
pub struct Ring {
    /// Per number the one before and the one after it; [`NONE`] for one that is not here.
    places: Vec<(u32, u32)>,
    first: u32,
    len: usize,
}

impl Ring {
    /// An empty ring for numbers below `n`.
    pub fn new(n: usize) -> Ring {
        Ring { places: vec![(NONE, NONE); n], first: NONE, len: 0 }
    }

    /// Whose turn it is.
    #[inline]
    pub fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    /// How many take part.
    pub fn len(&self) -> usize {
        self.len
    }

    /// `i`, who is not here, joins as the last one.
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

    /// The first one becomes the last.
    #[inline]
    pub fn turn(&mut self) {
        if self.first != NONE {
            self.first = self.places[self.first as usize].1;
        }
    }

    /// `i` leaves.
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

    /// All of them, by turns.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        let next = |i: &u32| Some(self.places[*i as usize].1);
        core::iter::successors(self.first(), next).take(self.len)
    }

    /// Bytes of memory.
    pub fn state(&self) -> usize {
        size_of_val(&*self.places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_go_round_and_anyone_can_leave() {
        let mut ring = Ring::new(5);
        (0..5).for_each(|i| ring.push(i));
        ring.turn();
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
