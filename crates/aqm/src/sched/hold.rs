//! Sample and hold with a multi-stage match-hit cache: finds large flows without an entry for small
//! ones (Lu, Voelker, Snoeren, INFOCOM 2012, section III).

use crate::cast;
use crate::random::Random;
use crate::snapshot::Snapshot;
use alloc::vec;
use alloc::vec::Vec;

/// Entry of a flow.
#[derive(Clone, Copy, Debug, Snapshot)]
pub struct Seen {
    /// Number of the flow.
    pub id: u32,
    /// Hits so far; the flow counts as found from `k` hits on.
    hits: u32,
    /// Bytes in this interval since it was found, plus an estimate of those missed before.
    pub bytes: f64,
    /// Bytes in the last whole interval.
    pub m: f64,
    /// Largest round-trip time divided by the round-trip time of the flow.
    pub gamma: f64,
    /// Mean packet size, bytes.
    pub s: f64,
}

/// Entries per set.
const WAYS: usize = 8;

/// Table of flows and cache of recent packets.
#[derive(Clone, Debug, Snapshot)]
pub struct Hold {
    sets: Vec<[Option<Seen>; WAYS]>,
    cache: Vec<u32>,
    k: u32,
    /// Probability that a byte of a flow of weight 1 is sampled.
    p: f64,
    /// True if a flow that was found is credited the bytes missed before.
    credit: bool,
    found: usize,
}

const NOBODY: u32 = u32::MAX;

impl Hold {
    /// Creates a table of at most `table` entries, a cache of `cache` packets, with `k` hits and a
    /// sampling probability of `p` per byte of a flow of weight 1. With `credit`, a flow that was
    /// found is credited 1/p bytes, the mean number of bytes before its first sample.
    pub fn new(table: u64, cache: u64, k: u64, p: f64, credit: bool) -> Hold {
        let p = p.clamp(0.0, 1.0 - 1e-9);
        Hold {
            sets: vec![[None; WAYS]; cast::index(table).div_ceil(WAYS)],
            cache: vec![NOBODY; cast::index(cache)],
            k: cast::low32(k),
            p,
            credit,
            found: 0,
        }
    }

    fn set(&self, id: u32) -> usize {
        id as usize % self.sets.len()
    }

    fn find(&mut self, id: u32) -> Option<&mut Seen> {
        let set = self.set(id);
        self.sets[set].iter_mut().flatten().find(|seen| seen.id == id)
    }

    /// Returns the entry of `id` if it was found.
    pub fn get(&self, id: u32) -> Option<&Seen> {
        let held = self.sets[self.set(id)].iter().flatten();
        held.into_iter().find(|seen| seen.id == id && seen.hits >= self.k)
    }

    /// Records a packet of `len` bytes of `id`, which has a weight of at least 1; `s` is the mean
    /// packet size of all flows. Bytes are sampled with probability p / weight.
    pub fn record(
        &mut self,
        rng: &mut dyn Random,
        (id, weight): (u32, f64),
        len: u32,
        p_c: f64,
        s: f64,
    ) {
        let bytes = f64::from(len);
        if let Some(place) = self.draw(rng, p_c) {
            self.cache[place] = id;
        }
        let (p, k) = (self.p / weight, self.k);
        if let Some(seen) = self.find(id).filter(|seen| seen.hits >= k) {
            seen.bytes += bytes;
            seen.s += 0.05 * (bytes - seen.s);
            return;
        }
        let sampled = -libm::expm1(bytes * libm::log1p(-p));
        let Some(place) = self.draw(rng, sampled) else { return };
        if k > 0 && self.cache[place] != id {
            return;
        }
        if self.find(id).is_none() {
            self.insert(Seen { id, hits: 0, bytes: 0.0, m: 0.0, gamma: 1.0, s });
        }
        let missed = if self.credit { 1.0 / p } else { 0.0 };
        let Some(seen) = self.find(id) else { return };
        seen.hits += 1;
        if seen.hits >= k {
            seen.bytes = bytes + missed;
            self.found += 1;
        }
    }

    /// Returns a random index of the cache with probability `p`, otherwise `None`; one random
    /// number for both.
    fn draw(&self, rng: &mut dyn Random, p: f64) -> Option<usize> {
        let u = if p > 0.0 { rng.uniform() } else { 1.0 };
        (u < p).then(|| {
            cast::index(cast::trunc(u / p * self.cache.len() as f64)).min(self.cache.len() - 1)
        })
    }

    /// Inserts an entry into its set, replacing the one with the fewest bytes if the set is full.
    fn insert(&mut self, new: Seen) {
        let set = self.set(new.id);
        let weight = |e: &Option<Seen>| e.map_or(-1.0, |seen| seen.bytes.max(seen.m));
        let entries = &mut self.sets[set];
        let least = entries.iter_mut().min_by(|a, b| weight(a).total_cmp(&weight(b)));
        if let Some(place) = least {
            let gone = place.replace(new);
            self.found -= usize::from(gone.is_some_and(|seen| seen.hits >= self.k));
        }
    }

    /// Ends an interval. `keep` updates each entry that was found and returns true if it stays; all
    /// other entries are removed.
    pub fn end_interval(&mut self, mut keep: impl FnMut(u32, &mut Seen) -> bool) {
        self.found = 0;
        for entry in self.sets.iter_mut().flatten() {
            let Some(seen) = entry else { continue };
            if seen.hits >= self.k && keep(seen.id, seen) {
                seen.bytes = 0.0;
                self.found += 1;
            } else {
                *entry = None;
            }
        }
    }

    /// Number of flows found.
    pub fn found(&self) -> usize {
        self.found
    }

    /// Returns the largest m of the last interval relative to its weight; `None` if there is none.
    pub fn largest(&self, weight: impl Fn(u32) -> f64) -> Option<f64> {
        if self.found == 0 {
            return None;
        }
        let held = self.sets.iter().flatten().flatten().filter(|s| s.hits >= self.k && s.m > 0.0);
        held.map(|seen| seen.m / weight(seen.id)).max_by(f64::total_cmp)
    }

    /// Size of the tables in bytes.
    pub fn state_bytes(&self) -> usize {
        size_of_val(&*self.sets) + size_of_val(&*self.cache)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    /// Records packets of 1000 bytes of the flows `of(i)`.
    fn feed(hold: &mut Hold, seed: u64, n: u32, p_c: f64, of: impl Fn(u32) -> u32) {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        (0..n).for_each(|i| hold.record(&mut rng, (of(i), 1.0), 1000, p_c, 1000.0));
    }

    #[test]
    fn stages_keep_small_flows_out_and_let_large_ones_in() {
        // One flow with half of the packets, and a thousand flows with one packet each.
        let of = |i| if i % 2 == 0 { 0 } else { 1 + i };
        let mut mice = [0; 3];
        let mut missed = [0; 3];
        for seed in 0..50 {
            for k in 0..3 {
                let mut hold = Hold::new(4096, 100, k, 1e-5, true);
                feed(&mut hold, seed, 2000, 0.1, of);
                missed[k as usize] += usize::from(hold.get(0).is_none());
                mice[k as usize] += hold.found() - usize::from(hold.get(0).is_some());
            }
        }
        // Sampled: 1 - (1 - 1e-5)^1000, 1 % of the packets. A small flow is in the cache once in a
        // thousand times. The large flow has ten samples, half of which match the cache.
        assert!(mice[0] > 300 && mice[1] <= 5 && mice[2] == 0, "{mice:?}");
        assert!(missed[0] == 0 && missed[1] < 8 && missed[2] < 20, "{missed:?}");
    }

    #[test]
    fn what_was_found_is_counted_and_forgotten_when_it_gets_small() {
        let mut hold = Hold::new(8, 10, 0, 1.0, true);
        feed(&mut hold, 1, 10, 0.0, |_| 7);
        // Every byte is sampled: found at the first packet, plus one byte for those missed.
        assert!((hold.get(7).unwrap().bytes - 10_001.0).abs() < 1e-3);
        hold.end_interval(|_, seen| {
            seen.m = seen.bytes;
            true
        });
        assert_eq!((hold.found(), hold.largest(|_| 2.0)), (1, Some(hold.get(7).unwrap().m / 2.0)));
        hold.end_interval(|_, seen| seen.bytes > 0.0);
        assert_eq!((hold.found(), hold.largest(|_| 1.0)), (0, None));
    }

    #[test]
    fn a_million_flows_take_the_same_room() {
        let mut hold = Hold::new(64, 10, 0, 1.0, true);
        let before = hold.state_bytes();
        feed(&mut hold, 1, 1_000_000, 0.1, |i| i);
        assert_eq!((hold.state_bytes(), hold.found()), (before, 64));
    }

    /// Returns this number always.
    struct Always(f64);

    impl Random for Always {
        fn uniform(&mut self) -> f64 {
            self.0
        }
    }

    #[test]
    fn one_random_number_decides_whether_and_where() {
        let hold = Hold::new(8, 10, 0, 1.0, true);
        for (u, p, place) in
            [(0.0, 0.5, Some(0)), (0.25, 0.5, Some(5)), (0.499, 0.5, Some(9)), (0.5, 0.5, None)]
        {
            assert_eq!(hold.draw(&mut Always(u), p), place, "{u}");
        }
        struct Never;
        impl Random for Never {
            fn uniform(&mut self) -> f64 {
                panic!("no number is drawn for a probability of 0")
            }
        }
        assert_eq!(hold.draw(&mut Never, 0.0), None);
    }

    #[test]
    fn a_flow_that_was_found_has_its_bytes_and_its_packet_size_measured() {
        let mut hold = Hold::new(8, 10, 0, 0.01, true);
        let rng = &mut Always(0.0);
        hold.record(rng, (7, 1.0), 1000, 0.0, 800.0);
        // 1 / p bytes are missed on average before the first sample.
        let seen = *hold.get(7).unwrap();
        assert_eq!((seen.bytes, seen.s), (1100.0, 800.0));
        hold.record(rng, (7, 1.0), 500, 0.0, 0.0);
        let seen = *hold.get(7).unwrap();
        assert_eq!((seen.bytes, seen.s), (1600.0, 785.0), "0.95 * 800 + 0.05 * 500");
    }

    #[test]
    fn a_flow_is_sampled_in_proportion_to_its_size_per_weight() {
        // 1 - (1 - 0.001 / 4)^1000 = 0.2212: the number 0.22 samples, 0.23 does not.
        for (u, is_sampled) in [(0.22, true), (0.23, false)] {
            let mut hold = Hold::new(8, 10, 0, 0.001, true);
            hold.record(&mut Always(u), (7, 4.0), 1000, 0.0, 1000.0);
            assert_eq!(hold.get(7).is_some(), is_sampled, "{u}");
        }
        let bytes = |credit| {
            let mut hold = Hold::new(8, 10, 0, 0.001, credit);
            hold.record(&mut Always(0.0), (7, 4.0), 1000, 0.0, 1000.0);
            hold.get(7).unwrap().bytes
        };
        assert_eq!((bytes(true), bytes(false)), (5000.0, 1000.0), "4 / 0.001 bytes are credited");
    }

    #[test]
    fn a_new_flow_takes_an_empty_entry() {
        let mut hold = Hold::new(8, 10, 2, 1.0, true);
        let rng = &mut Always(0.0);
        for id in [1, 9, 1] {
            hold.record(rng, (id, 1.0), 1000, 1.0, 1000.0); // each is cached, sampled, and hits
        }
        assert!(hold.get(1).is_some(), "flow 9 has not replaced it between its two hits");
    }

    #[test]
    fn the_largest_flow_is_one_of_a_whole_interval() {
        let mut hold = Hold::new(8, 10, 0, 1.0, true);
        feed(&mut hold, 1, 10, 0.0, |_| 7);
        assert_eq!((hold.found(), hold.largest(|_| 1.0)), (1, None), "m is not known yet");
    }
}
