//! What happens next: one slot per source of events (a link, a flow), each with at most one pending
//! time, in a tournament tree. Changing a time is one walk up; nothing stale is ever stored.
//!
//! Ties go to the lower slot. Slots are given out by name, so the order of declaration does not
//! matter, and neither does how many events led to a tie.

use sojourn_aqm::units::Time;

/// The tree.
pub struct Slots {
    /// The time of each slot; [`Time::NEVER`] while nothing is pending.
    times: Vec<Time>,
    /// `winners[k]` is the slot that comes first below node k; 1 is the root, leaves are implied.
    winners: Vec<u32>,
    leaves: usize,
}

impl Slots {
    /// `n` slots without anything pending.
    pub fn new(n: usize) -> Slots {
        let leaves = n.max(2).next_power_of_two();
        let mut slots =
            Slots { times: vec![Time::NEVER; leaves], winners: vec![0; leaves], leaves };
        (1..leaves).rev().for_each(|node| slots.winners[node] = slots.play(node));
        slots
    }

    #[inline]
    fn below(&self, child: usize) -> u32 {
        if child >= self.leaves { (child - self.leaves) as u32 } else { self.winners[child] }
    }

    #[inline]
    fn play(&self, node: usize) -> u32 {
        let (left, right) = (self.below(2 * node), self.below(2 * node + 1));
        if self.times[right as usize] < self.times[left as usize] { right } else { left }
    }

    /// The pending time of `slot`.
    #[inline]
    pub fn time(&self, slot: usize) -> Time {
        self.times[slot]
    }

    /// Makes `at` the pending time of `slot`.
    #[inline]
    pub fn set(&mut self, slot: usize, at: Time) {
        if self.times[slot] == at {
            return;
        }
        self.times[slot] = at;
        let mut node = (self.leaves + slot) / 2;
        while node >= 1 {
            self.winners[node] = self.play(node);
            node /= 2;
        }
    }

    /// The slot that comes first and its time.
    #[inline]
    pub fn first(&self) -> (usize, Time) {
        let slot = self.winners[1] as usize;
        (slot, self.times[slot])
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
