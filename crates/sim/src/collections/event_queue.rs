//! Event queue: one slot per source of events (a group of sessions, a flow), each with at most one
//! pending time, in a tournament tree. Changing a time updates the path to the root; cancelled
//! events are never stored.
//!
//! Ties go to the lower slot. Slots are assigned by name, so neither declaration order nor the
//! number of previous events affects how ties are broken. Links have a queue of their own, with
//! other ties: [`LinkQueue`](super::link_queue::LinkQueue).

use crate::collections::prefetch::prefetch;
use crate::collections::tournament::Tournament;
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::units::Time;

/// Tournament tree whose leaves are the slots. A key is a time with its slot in the low bits, so
/// that one branch-free comparison orders by both.
#[derive(Clone, Debug, Snapshot)]
pub struct EventQueue {
    tree: Tournament,
    /// Number of low bits of a key that hold the slot.
    bits: u32,
    /// Time in the key of a slot with nothing pending; see [`EventQueue::max_time`].
    horizon: Time,
}

impl EventQueue {
    /// Creates `n` slots with nothing pending.
    pub fn new(n: usize) -> EventQueue {
        let tree = Tournament::new(n);
        let bits = tree.leaves().trailing_zeros();
        EventQueue { tree, bits, horizon: EventQueue::max_time(n) }
    }

    /// Enlarges to `n` slots; pending times are kept.
    #[cold]
    pub fn reserve(&mut self, n: usize) {
        if n <= self.tree.leaves() {
            return;
        }
        let mut grown = EventQueue::new(n);
        for slot in 0..self.tree.leaves() {
            let at = self.at(slot);
            if at < self.horizon {
                grown.schedule(slot, at);
            }
        }
        *self = grown;
    }

    /// Earliest time that cannot be told from never with `n` slots: later ones, and
    /// [`Time::NEVER`], are returned as this one.
    pub fn max_time(n: usize) -> Time {
        Time(u64::MAX >> Tournament::leaves_for(n).trailing_zeros())
    }

    #[inline]
    fn key(&self, slot: usize, at: Time) -> u64 {
        at.min(self.horizon).0 << self.bits | slot as u64
    }

    /// Slot in `key`.
    #[inline]
    fn slot_of(&self, key: u64) -> usize {
        cast::index(key & (self.tree.leaves() as u64 - 1))
    }

    /// Sets the pending time of `slot` to `at`; [`Time::NEVER`] clears it.
    #[inline]
    pub fn schedule(&mut self, slot: usize, at: Time) {
        self.tree.set(slot, self.key(slot, at));
    }

    /// Sets the pending time of `slot` to `at` if that is earlier.
    #[inline]
    pub fn schedule_earlier(&mut self, slot: usize, at: Time) {
        self.tree.lower(slot, self.key(slot, at));
    }

    /// True if there are so many slots that the state of the next one is rarely in the cache.
    #[inline]
    pub fn exceeds_cache(&self) -> bool {
        self.bits >= 12
    }

    /// Earliest slot in the subtree that contains `slot` and holds one in 2^`depth` of all slots.
    /// If `slot` was just set, the earliest slot of its subtree is typically due about 2^`depth`
    /// events from now.
    #[inline]
    pub fn earliest_near(&self, slot: usize, depth: u32) -> usize {
        self.slot_of(self.tree.least_near(slot, depth))
    }

    /// Prefetch the leaf of `slot` and its nearest ancestors; nodes nearer to the root stay cached.
    #[inline]
    pub fn prefetch(&self, slot: usize) {
        self.tree.path(slot).for_each(prefetch);
    }

    /// Earliest slot and its time; if nothing is pending, any slot and [`EventQueue::max_time`].
    #[inline]
    pub fn earliest(&self) -> (usize, Time) {
        let key = self.tree.least();
        (self.slot_of(key), Time(key >> self.bits))
    }

    /// The pending time of `slot`; [`EventQueue::max_time`] if nothing is pending.
    #[inline]
    pub fn at(&self, slot: usize) -> Time {
        Time(self.tree.leaf(slot) >> self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;
    use sojourn_aqm::random::Random;

    #[test]
    fn time_at_the_horizon_is_never() {
        let horizon = EventQueue::max_time(300);
        assert_eq!(horizon.0, (1 << 55) - 1);
        let mut slots = EventQueue::new(300);
        slots.schedule(299, horizon);
        assert_eq!(slots.earliest().1, horizon);
        slots.schedule(299, Time(horizon.0 - 1));
        assert_eq!(slots.earliest(), (299, Time(horizon.0 - 1)));
    }

    #[test]
    fn growing_keeps_pending_times() {
        let mut slots = EventQueue::new(2);
        let mut times = vec![];
        for n in 0..70 {
            slots.reserve(n + 1);
            times.push(Time(1000 - 7 * n as u64 % 500));
            slots.schedule(n, times[n]);
            let least = times.iter().min().unwrap();
            let first = times.iter().position(|t| t == least).unwrap();
            assert_eq!(slots.earliest(), (first, *least));
        }
    }

    #[test]
    fn first_beside_is_the_earliest_of_the_subtree() {
        let mut slots = EventQueue::new(4096);
        assert!(slots.exceeds_cache() && !EventQueue::new(2048).exceeds_cache());
        (0..4096).for_each(|s| slots.schedule(s, Time((s as u64 * 1_000_003) % 4096)));
        for (slot, depth) in [(0, 5), (4095, 5), (1234, 3), (77, 0)] {
            let part = 4096 >> depth;
            let from = slot / part * part;
            let least = (from..from + part).min_by_key(|s| (*s as u64 * 1_000_003) % 4096);
            assert_eq!(Some(slots.earliest_near(slot, depth)), least);
            slots.prefetch(slot);
        }
    }

    #[test]
    fn agrees_with_a_linear_search() {
        let mut rng = sojourn_aqm::Pcg::seed_from_u64(1);
        for n in [1, 2, 3, 7, 64, 65] {
            let mut slots = EventQueue::new(n);
            assert_eq!(slots.earliest().1, EventQueue::max_time(n));
            let mut times = vec![Time::NEVER; n];
            for _ in 0..2000 {
                let slot = rng.below(n as u32) as usize;
                let at = if rng.below(5) == 0 { Time::NEVER } else { Time(rng.below(50).into()) };
                slots.schedule(slot, at);
                times[slot] = at;
                let least = times.iter().min().unwrap();
                let first = times.iter().position(|t| t == least).unwrap();
                if *least == Time::NEVER {
                    assert_eq!(slots.earliest().1, EventQueue::max_time(n));
                } else {
                    assert_eq!(slots.earliest(), (first, *least));
                }
            }
        }
    }
}
