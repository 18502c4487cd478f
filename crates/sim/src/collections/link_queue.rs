//! Event queue of links. Ties go to the least recently served link: a key is a time with the turn
//! of its link in the low bits, so the root of the tree is the answer and no search is needed.

use super::tournament::Tournament;
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::units::Time;

/// Tournament tree whose leaves are the links.
///
/// Each link has a turn of its own: a link served later has a greater one. Before their first
/// service links have turns in ascending order of their indices. When the turns run out, they are
/// renumbered from zero; their order stays.
#[derive(Clone, Debug, Snapshot)]
pub(crate) struct LinkQueue {
    tree: Tournament,
    /// Number of low bits of a key that hold the turn.
    bits: u32,
    /// Time in the key of a link with nothing pending; see [`LinkQueue::max_time`].
    horizon: Time,
    /// Turn of each link.
    turns: Box<[u32]>,
    /// For each turn, the link that has it or had it last.
    links: Box<[u32]>,
    next_turn: u32,
}

/// Number of bits of a turn for `n` links. There are at least four times as many turns as links,
/// so that a renumbering, which visits all turns, costs one or two steps per service.
fn turn_bits(n: usize) -> u32 {
    if n < 2 { 1 } else { n.next_power_of_two().trailing_zeros() + 2 }
}

impl LinkQueue {
    /// Creates `n` links with nothing pending, none of which was served.
    pub(crate) fn new(n: usize) -> LinkQueue {
        let bits = turn_bits(n);
        let turns: Box<[u32]> = (0..cast::index32(n)).collect();
        let mut links = vec![0; 1 << bits].into_boxed_slice();
        links[..n].copy_from_slice(&turns);
        LinkQueue {
            tree: Tournament::new(n),
            bits,
            horizon: LinkQueue::max_time(n),
            turns,
            links,
            next_turn: cast::index32(n),
        }
    }

    /// Creates links with nothing pending that were last served in this order.
    pub(crate) fn with_order(order: &[u32]) -> LinkQueue {
        let mut links = LinkQueue::new(order.len());
        links.links[..order.len()].copy_from_slice(order);
        for (turn, l) in (0..).zip(order) {
            links.turns[*l as usize] = turn;
        }
        links
    }

    /// Links in the order in which they were last served.
    pub(crate) fn order(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..cast::index32(self.turns.len())).collect();
        order.sort_unstable_by_key(|l| self.turns[*l as usize]);
        order
    }

    /// Earliest time that cannot be told from never with `n` links.
    pub(crate) fn max_time(n: usize) -> Time {
        Time(u64::MAX >> turn_bits(n))
    }

    #[inline]
    fn key(&self, l: usize, at: Time) -> u64 {
        at.min(self.horizon).0 << self.bits | u64::from(self.turns[l])
    }

    /// Makes link `l` the most recently served one. Its pending time must be set next.
    #[inline]
    pub(crate) fn serve(&mut self, l: usize) {
        if self.turns.len() == 1 {
            return;
        }
        if self.next_turn as usize == self.links.len() {
            self.renumber();
        }
        self.turns[l] = self.next_turn;
        self.links[self.next_turn as usize] = cast::index32(l);
        self.next_turn += 1;
    }

    /// Renumbers the turns from zero in their order, and writes them into the keys.
    #[cold]
    #[inline(never)]
    fn renumber(&mut self) {
        let mut next = 0;
        for turn in 0..self.next_turn {
            let l = self.links[turn as usize];
            if self.turns[l as usize] == turn {
                self.turns[l as usize] = next;
                self.links[next as usize] = l;
                next += 1;
            }
        }
        self.next_turn = next;
        let (bits, turns) = (self.bits, &self.turns);
        let with_turn = |turn: &u32, key| key >> bits << bits | u64::from(*turn);
        self.tree.change_all(|l, key| turns.get(l).map_or(key, |turn| with_turn(turn, key)));
    }

    /// Sets the pending time of link `l` to `at`; [`Time::NEVER`] clears it.
    #[inline]
    pub(crate) fn schedule(&mut self, l: usize, at: Time) {
        self.tree.set(l, self.key(l, at));
    }

    /// Sets the pending time of link `l` to `at` if that is earlier.
    #[inline]
    pub(crate) fn schedule_earlier(&mut self, l: usize, at: Time) {
        self.tree.lower(l, self.key(l, at));
    }

    /// True if there are so many links that the state of the next one is rarely in the first-level
    /// cache.
    #[inline]
    pub(crate) fn exceeds_cache(&self) -> bool {
        self.tree.leaves() >= 64
    }

    /// Link that is due first in the subtree that contains link `l` and holds one in 2^`depth` of
    /// all links; any link if nothing is pending there. If `l` was just set, the link is typically
    /// due about 2^`depth` events from now.
    #[inline]
    pub(crate) fn earliest_near(&self, l: usize, depth: u32) -> usize {
        self.link_of(self.tree.least_near(l, depth))
    }

    /// Link with the turn in `key`.
    #[inline]
    fn link_of(&self, key: u64) -> usize {
        self.links[cast::index(key & ((1 << self.bits) - 1))] as usize
    }

    /// Earliest pending time; if nothing is pending, [`LinkQueue::max_time`].
    #[inline]
    pub(crate) fn earliest(&self) -> Time {
        Time(self.tree.least() >> self.bits)
    }

    /// Link with the earliest pending time; of several, the least recently served one.
    #[inline]
    pub(crate) fn first(&self) -> usize {
        self.link_of(self.tree.least())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;
    use sojourn_aqm::random::Random;

    #[test]
    fn time_at_the_horizon_is_never() {
        for n in [1, 2, 300] {
            let horizon = LinkQueue::max_time(n);
            let mut links = LinkQueue::new(n);
            assert_eq!(links.earliest(), horizon);
            links.schedule(n - 1, Time(horizon.0 - 1));
            assert_eq!((links.first(), links.earliest()), (n - 1, Time(horizon.0 - 1)));
            links.schedule(n - 1, Time::NEVER);
            assert_eq!(links.earliest(), horizon);
        }
    }

    #[test]
    fn earliest_near_is_the_first_link_of_a_subtree() {
        let mut links = LinkQueue::new(100);
        assert!(links.exceeds_cache() && !LinkQueue::new(32).exceeds_cache());
        assert!(links.earliest_near(99, 3) < 100, "nothing is pending");
        let at = |l: usize| Time((l as u64 * 1009) % 100);
        (0..100).for_each(|l| links.schedule(l, at(l)));
        for (l, depth) in [(0, 3), (50, 3), (99, 3), (77, 0), (77, 7)] {
            let part = 128 >> depth;
            let from = l / part * part;
            let first = (from..100.min(from + part)).min_by_key(|l| at(*l));
            assert_eq!(Some(links.earliest_near(l, depth)), first, "{l} {depth}");
        }
    }

    #[test]
    fn agrees_with_a_linear_search_for_the_least_recently_served() {
        let mut rng = sojourn_aqm::Pcg::seed_from_u64(1);
        for n in [1, 2, 3, 7, 64, 65] {
            let mut links = LinkQueue::new(n);
            let (mut times, mut served) = (vec![Time::NEVER; n], vec![0; n]);
            for turn in 1..5000 {
                let l = rng.below(n as u32) as usize;
                let at = if rng.below(5) == 0 { Time::NEVER } else { Time(rng.below(9).into()) };
                if rng.below(3) == 0 {
                    links.schedule_earlier(l, at);
                    times[l] = times[l].min(at);
                } else {
                    if rng.below(2) == 0 {
                        links.serve(l);
                        served[l] = turn;
                    }
                    links.schedule(l, at);
                    times[l] = at;
                }
                let first = (0..n).min_by_key(|l| (times[*l], served[*l], *l)).unwrap();
                if times[first] == Time::NEVER {
                    assert_eq!(links.earliest(), LinkQueue::max_time(n));
                } else {
                    assert_eq!((links.first(), links.earliest()), (first, times[first]));
                }
            }
        }
    }

    #[test]
    fn an_order_is_kept() {
        let order = [3, 0, 4, 1, 2];
        let mut links = LinkQueue::with_order(&order);
        assert_eq!(links.order(), order);
        order.iter().for_each(|l| links.schedule(*l as usize, Time(7)));
        assert_eq!(links.first(), 3);
        for _ in 0..40 {
            links.serve(3);
            links.serve(4);
        }
        assert_eq!(links.order(), [0, 1, 2, 3, 4]);
    }
}
