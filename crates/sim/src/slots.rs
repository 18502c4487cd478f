//! What happens next: one slot per source of events (a link, a flow), each with at most one pending
//! time, in a tournament tree. Changing a time is one walk up; nothing stale is ever stored.
//!
//! Ties go to the lower slot, unless the world chooses otherwise among [`Slots::tied`]. Slots are
//! given out by name, so the order of declaration does not matter, and neither does how many events
//! led to a tie.

use crate::fetch::fetch;
use sojourn_aqm::cast;
use sojourn_aqm::units::Time;

/// The tree. Node 1 is the root, the children of node k are 2k and 2k + 1, and each node holds the
/// least key below it; the leaves are the slots themselves. A key is a time with its slot in the
/// lowest bits, so that one comparison without a branch settles both.
pub struct Slots {
    keys: Box<[u64]>,
    leaves: usize,
    /// Bits of a key that are the slot.
    bits: u32,
}

impl Slots {
    /// `n` slots without anything pending.
    pub fn new(n: usize) -> Slots {
        let leaves = n.max(2).next_power_of_two();
        Slots { keys: vec![u64::MAX; 2 * leaves].into(), leaves, bits: leaves.trailing_zeros() }
    }

    /// Makes room for `n` slots; what is pending stays so.
    #[cold]
    pub fn grow(&mut self, n: usize) {
        if n <= self.leaves {
            return;
        }
        let mut grown = Slots::new(n);
        for slot in 0..self.leaves {
            let key = self.keys[self.leaves + slot];
            if key != u64::MAX {
                grown.set(slot, Time(key >> self.bits));
            }
        }
        *self = grown;
    }

    /// The moment from which on `n` slots cannot tell a time from never.
    pub fn horizon(n: usize) -> Time {
        Time(u64::MAX >> n.max(2).next_power_of_two().trailing_zeros())
    }

    #[inline]
    fn key(&self, slot: usize, at: Time) -> u64 {
        if at.0 >= u64::MAX >> self.bits { u64::MAX } else { at.0 << self.bits | slot as u64 }
    }

    /// Makes `at` the pending time of `slot`; [`Time::NEVER`] if nothing is pending.
    #[inline]
    pub fn set(&mut self, slot: usize, at: Time) {
        let mut first = self.key(slot, at);
        let mut k = self.leaves + slot;
        self.keys[k] = first;
        while k > 1 {
            first = first.min(self.keys[k ^ 1]);
            k /= 2;
            self.keys[k] = first;
        }
    }

    /// Makes `at` the pending time of `slot` if it is earlier than the one that stands. Walks up no
    /// further than it comes first.
    #[inline]
    pub fn lower(&mut self, slot: usize, at: Time) {
        let key = self.key(slot, at);
        let mut k = self.leaves + slot;
        while k > 0 && key < self.keys[k] {
            self.keys[k] = key;
            k /= 2;
        }
    }

    /// Whether there are so many slots that what belongs to one is rarely in the cache when its
    /// time comes.
    #[inline]
    pub fn many(&self) -> bool {
        self.bits >= 12
    }

    /// Of all slots a part, one in 2^`depth`, is that of `slot`: the one that comes first there.
    /// Where `slot` has just been set, it takes about 2^`depth` events until its time comes.
    #[inline]
    pub fn first_beside(&self, slot: usize, depth: u32) -> usize {
        let node = (self.leaves + slot) >> (self.bits - depth);
        cast::index(self.keys[node] & (self.leaves as u64 - 1))
    }

    /// Asks for the memory that setting `slot` takes; what is nearer to the root is at hand.
    #[inline]
    pub fn fetch(&self, slot: usize) {
        (0..5).for_each(|up| fetch(&self.keys[(self.leaves + slot) >> up]));
    }

    /// The slot that comes first and its time.
    #[inline]
    pub fn first(&self) -> (usize, Time) {
        let key = self.keys[1];
        if key == u64::MAX {
            return (0, Time::NEVER);
        }
        (cast::index(key & (self.leaves as u64 - 1)), Time(key >> self.bits))
    }

    /// Calls `each` with every slot below `end` that is due at `at`, in ascending order, if nothing
    /// is due earlier. Visits no node where nothing is.
    pub fn tied(&self, at: Time, end: usize, each: &mut impl FnMut(usize)) {
        self.tied_below(1, at, end, each);
    }

    fn tied_below(&self, node: usize, at: Time, end: usize, each: &mut impl FnMut(usize)) {
        let key = self.keys[node];
        if key >> self.bits != at.0 || cast::index(key & (self.leaves as u64 - 1)) >= end {
            return;
        }
        if node >= self.leaves {
            return each(node - self.leaves);
        }
        self.tied_below(2 * node, at, end, each);
        self.tied_below(2 * node + 1, at, end, each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;
    use sojourn_aqm::dice::Dice;

    #[test]
    fn what_is_beyond_the_horizon_never_comes() {
        let horizon = Slots::horizon(300);
        assert_eq!(horizon.0, (1 << 55) - 1);
        let mut slots = Slots::new(300);
        slots.set(299, horizon);
        assert_eq!(slots.first().1, Time::NEVER);
        slots.set(299, Time(horizon.0 - 1));
        assert_eq!(slots.first(), (299, Time(horizon.0 - 1)));
    }

    #[test]
    fn grown_trees_keep_what_is_pending() {
        let mut slots = Slots::new(2);
        let mut times = vec![];
        for n in 0..70 {
            slots.grow(n + 1);
            times.push(Time(1000 - 7 * n as u64 % 500));
            slots.set(n, times[n]);
            let least = times.iter().min().unwrap();
            let first = times.iter().position(|t| t == least).unwrap();
            assert_eq!(slots.first(), (first, *least));
        }
    }

    #[test]
    fn who_comes_soon_is_first_of_its_part() {
        let mut slots = Slots::new(4096);
        assert!(slots.many() && !Slots::new(2048).many());
        (0..4096).for_each(|s| slots.set(s, Time((s as u64 * 1_000_003) % 4096)));
        for (slot, depth) in [(0, 5), (4095, 5), (1234, 3), (77, 0)] {
            let part = 4096 >> depth;
            let from = slot / part * part;
            let least = (from..from + part).min_by_key(|s| (*s as u64 * 1_000_003) % 4096);
            assert_eq!(Some(slots.first_beside(slot, depth)), least);
            slots.fetch(slot);
        }
    }

    #[test]
    fn agrees_with_a_search_of_all() {
        let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(1);
        for n in [1, 2, 3, 7, 64, 65] {
            let mut slots = Slots::new(n);
            assert_eq!(slots.first().1, Time::NEVER);
            let mut times = vec![Time::NEVER; n];
            for _ in 0..2000 {
                let slot = rng.below(n as u32) as usize;
                let at = if rng.below(5) == 0 { Time::NEVER } else { Time(rng.below(50).into()) };
                slots.set(slot, at);
                times[slot] = at;
                let least = times.iter().min().unwrap();
                let first = times.iter().position(|t| t == least).unwrap();
                assert_eq!(slots.first(), (first, *least));
                let end = rng.below(n as u32 + 1) as usize;
                let mut tied = vec![];
                slots.tied(*least, end, &mut |slot| tied.push(slot));
                let all: Vec<_> = (0..end).filter(|s| times[*s] == *least).collect();
                assert!(*least == Time::NEVER || tied == all);
            }
        }
    }
}
