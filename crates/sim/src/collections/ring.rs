//! Ring buffer whose entries are written and read in place.

use sojourn_aqm::Snapshot;

/// FIFO queue of `T` in a ring buffer. Grows to the largest number of entries.
#[derive(Clone, Debug, Snapshot)]
pub(crate) struct Ring<T> {
    /// Their number is a power of two, or zero before the first entry.
    entries: Box<[T]>,
    /// Index of the first entry.
    head: u32,
    len: u32,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Ring { entries: Box::default(), head: 0, len: 0 }
    }
}

impl<T: Copy + Default> Ring<T> {
    /// Index in `entries` of the `i`-th entry.
    #[inline]
    fn index(&self, i: u32) -> usize {
        self.head.wrapping_add(i) as usize & self.entries.len().wrapping_sub(1)
    }

    /// True if there is no entry.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// First entry.
    #[inline]
    pub(crate) fn front(&self) -> Option<&T> {
        (self.len > 0).then(|| &self.entries[self.index(0)])
    }

    /// First entry, to be changed.
    #[inline]
    pub(crate) fn front_mut(&mut self) -> Option<&mut T> {
        (self.len > 0).then(|| &mut self.entries[self.index(0)])
    }

    /// Removes the first entry of a ring that is not empty. A ring that becomes empty restarts at
    /// the first index, so that short queues use few cache lines.
    #[inline]
    pub(crate) fn remove_front(&mut self) {
        debug_assert!(self.len > 0, "the ring is empty");
        self.len -= 1;
        self.head = if self.len == 0 { 0 } else { self.head.wrapping_add(1) };
    }

    /// Appends an entry, and returns it; its contents are to be overwritten.
    #[inline]
    pub(crate) fn vacant(&mut self) -> &mut T {
        if self.len as usize == self.entries.len() {
            self.grow();
        }
        let i = self.index(self.len);
        self.len += 1;
        &mut self.entries[i]
    }

    /// Doubles the number of entries.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let mut entries: Vec<T> = self.iter().copied().collect();
        entries.resize((2 * entries.len()).max(4), T::default());
        self.entries = entries.into();
        self.head = 0;
    }

    /// Iterates over the entries, first to last.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len).map(|i| &self.entries[self.index(i)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;
    use sojourn_aqm::random::Random;
    use std::collections::VecDeque;

    #[test]
    fn agrees_with_a_deque() {
        let mut rng = sojourn_aqm::Pcg::seed_from_u64(1);
        let (mut ring, mut deque) = (Ring::default(), VecDeque::new());
        for step in 0..20_000 {
            // Phases in which it grows, and others in which it becomes empty.
            if rng.below(100) < [70, 30][step / 500 % 2] {
                *ring.vacant() = step;
                deque.push_back(step);
            } else if deque.pop_front().is_some() {
                ring.remove_front();
            }
            assert_eq!(ring.is_empty(), deque.is_empty());
            assert_eq!(ring.front(), deque.front());
            assert_eq!(ring.front_mut(), deque.front_mut());
            if step % 100 == 0 {
                assert!(ring.iter().eq(&deque));
            }
        }
    }

    #[test]
    fn an_empty_ring_restarts_at_its_first_entry() {
        let mut ring = Ring::default();
        for n in 0..100 {
            *ring.vacant() = n;
            assert!(std::ptr::eq(ring.front().unwrap(), &raw const ring.entries[0]));
            ring.remove_front();
        }
        assert_eq!(ring.entries.len(), 4);
    }
}
