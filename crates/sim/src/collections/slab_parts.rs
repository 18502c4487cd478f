//! Division of a slab among the parts of a simulation: every entry keeps its index, and entries
//! that the parts add later have different ones.

use super::slab::Slab;
use sojourn_aqm::cast;

/// Slabs of all parts, and the part of each entry that was in use at the division.
pub(crate) struct DividedSlab<T> {
    pub parts: Vec<Slab<T>>,
    pub owners: Vec<u32>,
}

impl<T: Copy + Default> Slab<T> {
    /// Divides the slab into `parts` slabs. `place` returns the part of an entry in use, and
    /// `convert` the entry as one of that part.
    pub(crate) fn divide(
        &self,
        parts: usize,
        place: impl Fn(&T) -> u32,
        mut convert: impl FnMut(usize, &T) -> T,
    ) -> DividedSlab<T> {
        let (step, mut owners) = (cast::index32(parts), Vec::with_capacity(self.len()));
        let mut all = vec![vec![T::default(); self.len()]; parts];
        let mut free = vec![Vec::new(); parts];
        for ((i, entry), used) in (0..).zip(self.entries()).zip(self.used()) {
            let part = if used { place(entry) } else { i % step };
            owners.push(part);
            if used {
                all[part as usize][i as usize] = convert(part as usize, entry);
            } else {
                free[part as usize].push(i);
            }
        }
        let slabs = (0..).zip(all.into_iter().zip(free));
        let slab = |(part, (all, free))| Slab::with_entries(all, free, [part, parts]);
        DividedSlab { parts: slabs.map(slab).collect(), owners }
    }
}

impl<T: Copy + Default> DividedSlab<T> {
    /// Unites the parts again. `convert` returns the entry of a part as an entry of the whole.
    pub(crate) fn unite(self, mut convert: impl FnMut(usize, &T) -> T) -> Slab<T> {
        let DividedSlab { parts, owners } = self;
        let size = parts.iter().map(Slab::len).max().unwrap_or_default();
        let owner = |i: usize| owners.get(i).map_or(i % parts.len(), |part| *part as usize);
        let used: Vec<Vec<bool>> = parts.iter().map(Slab::used).collect();
        let (mut all, mut free) = (vec![T::default(); size], Vec::new());
        for (i, place) in all.iter_mut().enumerate() {
            let part = owner(i);
            if used[part].get(i).copied().unwrap_or(false) {
                *place = convert(part, &parts[part].entries()[i]);
            } else {
                free.push(cast::index32(i));
            }
        }
        Slab::with_entries(all, free, [0, 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;
    use sojourn_aqm::random::Random;
    use std::collections::BTreeMap;

    /// Inserts and removes entries of `slab` at random; `held` are its entries.
    fn churn(slab: &mut Slab<u32>, held: &mut BTreeMap<u32, u32>, rng: &mut impl Random) {
        for _ in 0..200 {
            let value = rng.below(1000);
            if rng.below(2) == 0 {
                assert_eq!(held.insert(slab.insert(value), value), None);
            } else if let Some(i) = held.keys().nth(value as usize % held.len().max(1)).copied() {
                assert_eq!(Some(*slab.remove(i)), held.remove(&i));
            }
        }
    }

    #[test]
    fn parts_keep_indices_and_use_new_ones_of_their_own() {
        let mut rng = sojourn_aqm::Pcg::seed_from_u64(1);
        for parts in [1, 2, 3, 7] {
            let (mut slab, mut held) = (Slab::new(), BTreeMap::new());
            churn(&mut slab, &mut held, &mut rng);
            for _ in 0..5 {
                let owner = |value: &u32| value % cast::index32(parts);
                let mut divided = slab.divide(parts, owner, |_, value| *value);
                let mut of_parts = vec![BTreeMap::new(); parts];
                for (i, value) in &held {
                    of_parts[owner(value) as usize].insert(*i, *value);
                }
                for (slab, held) in divided.parts.iter_mut().zip(&mut of_parts) {
                    churn(slab, held, &mut rng);
                }
                slab = divided.unite(|_, value| *value);
                let count: usize = of_parts.iter().map(BTreeMap::len).sum();
                held = of_parts.into_iter().flatten().collect();
                assert_eq!(held.len(), count, "an index is in two parts");
                assert!(held.iter().all(|(i, value)| slab.get(*i) == value));
                assert_eq!(slab.iter().count(), count);
                churn(&mut slab, &mut held, &mut rng);
            }
        }
    }
}
