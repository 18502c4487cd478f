//! Slab: stable indices, freed entries are reused.

use sojourn_aqm::cast;

/// Slab of `T`.
#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    all: Vec<T>,
    free: Vec<u32>,
}

impl<T: Copy> Slab<T> {
    /// Creates an empty slab.
    pub(crate) fn new() -> Slab<T> {
        Slab { all: Vec::new(), free: Vec::new() }
    }

    /// Stores `thing` in a free entry, or a new one, and returns its index.
    #[inline]
    pub(crate) fn insert(&mut self, thing: T) -> u32 {
        if let Some(i) = self.free.pop() {
            self.all[i as usize] = thing;
            return i;
        }
        self.push(thing)
    }

    /// Index of a free entry, and the entry, whose contents are to be overwritten. Faster than
    /// `insert`, which copies a thing that was just written.
    #[inline]
    pub(crate) fn vacant(&mut self) -> (u32, &mut T)
    where
        T: Default,
    {
        let i = self.free.pop().unwrap_or_else(|| self.push(T::default()));
        (i, &mut self.all[i as usize])
    }

    /// Appends `thing` and returns its index.
    #[cold]
    fn push(&mut self, thing: T) -> u32 {
        self.all.push(thing);
        self.free.reserve(self.all.len());
        cast::number(self.all.len()) - 1
    }

    /// Removes entry `i` and returns its value, which stays in place until the next insertion.
    #[inline]
    pub(crate) fn remove(&mut self, i: u32) -> &T {
        self.free.push(i);
        &self.all[i as usize]
    }

    /// Value of entry `i`.
    #[inline]
    pub(crate) fn get_mut(&mut self, i: u32) -> &mut T {
        &mut self.all[i as usize]
    }

    /// Iterates over the entries in use.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        let mut held = vec![true; self.all.len()];
        self.free.iter().for_each(|i| held[*i as usize] = false);
        self.all.iter().zip(held).filter_map(|(thing, held)| held.then_some(thing))
    }
}
