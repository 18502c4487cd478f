//! What happens next: one slot per source of events (a link, a flow), each with at most one pending
//! time, in a tournament tree. Changing a time is one walk up; nothing stale is ever stored.
//!
//! Ties go to the lower slot. Slots are given out by name, so the order of declaration does not
//! matter, and neither does how many events led to a tie.

use sojourn_aqm::units::Time;

/// A slot and its time.
type Entry = (Time, u32);

/// The tree. Node 1 is the root, the children of node k are 2k and 2k + 1, and each node holds the
/// entry that comes first below it; the leaves are the slots themselves.
pub struct Slots {
    nodes: Vec<Entry>,
    leaves: usize,
}

impl Slots {
    /// `n` slots without anything pending.
    pub fn new(n: usize) -> Slots {
        let leaves = n.max(2).next_power_of_two();
        let mut nodes = vec![(Time::NEVER, 0); 2 * leaves];
        (0..leaves).for_each(|slot| nodes[leaves + slot].1 = slot as u32);
        (1..leaves).rev().for_each(|k| nodes[k] = nodes[2 * k].min(nodes[2 * k + 1]));
        Slots { nodes, leaves }
    }

    /// The pending time of `slot`; [`Time::NEVER`] if nothing is pending.
    #[inline]
    pub fn time(&self, slot: usize) -> Time {
        self.nodes[self.leaves + slot].0
    }

    /// Makes `at` the pending time of `slot`. Walks up until a node stays as it was.
    #[inline]
    pub fn set(&mut self, slot: usize, at: Time) {
        let mut k = self.leaves + slot;
        self.nodes[k].0 = at;
        while k > 1 {
            k /= 2;
            // The left child holds the lower slots, so it wins a tie.
            let [left, right] = [self.nodes[2 * k], self.nodes[2 * k + 1]];
            let first = if right.0 < left.0 { right } else { left };
            if self.nodes[k] == first {
                return;
            }
            self.nodes[k] = first;
        }
    }

    /// Makes `at` the pending time of `slot` if it is earlier than the one that stands. Walks up no
    /// further than it comes first.
    #[inline]
    pub fn lower(&mut self, slot: usize, at: Time) {
        let first = (at, slot as u32);
        let mut k = self.leaves + slot;
        while k > 0 && first < self.nodes[k] {
            self.nodes[k] = first;
            k /= 2;
        }
    }

    /// The slot that comes first and its time.
    #[inline]
    pub fn first(&self) -> (usize, Time) {
        let (at, slot) = self.nodes[1];
        (slot as usize, at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;
    use sojourn_aqm::dice::Dice;

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
            }
        }
    }
}
