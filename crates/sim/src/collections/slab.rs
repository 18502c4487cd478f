//! Slab: stable indices, freed entries are reused.

use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;

/// Slab of `T`.
#[derive(Clone, Debug, Snapshot)]
pub(crate) struct Slab<T> {
    all: Vec<T>,
    free: Vec<u32>,
    /// New entries have indices that differ from the first of these numbers by a multiple of the
    /// second.
    new_entries: [usize; 2],
}

impl<T: Copy> Default for Slab<T> {
    fn default() -> Self {
        Slab::new()
    }
}

impl<T: Copy> Slab<T> {
    /// Creates an empty slab.
    pub(crate) fn new() -> Slab<T> {
        Slab { all: Vec::new(), free: Vec::new(), new_entries: [0, 1] }
    }

    /// Stores `thing` in a free entry, or a new one, and returns its index.
    #[inline]
    pub(crate) fn insert(&mut self, thing: T) -> u32
    where
        T: Default,
    {
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
    fn push(&mut self, thing: T) -> u32
    where
        T: Default,
    {
        let [first, step] = self.new_entries;
        let skipped = (first + step - self.all.len() % step) % step;
        self.all.resize(self.all.len() + skipped, T::default());
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
    pub(crate) fn get(&self, i: u32) -> &T {
        &self.all[i as usize]
    }

    /// Value of entry `i`.
    #[inline]
    pub(crate) fn get_mut(&mut self, i: u32) -> &mut T {
        &mut self.all[i as usize]
    }

    /// Iterates over the entries in use.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.all.iter().zip(self.used()).filter_map(|(thing, used)| used.then_some(thing))
    }

    /// For each entry, true if it is in use.
    pub(super) fn used(&self) -> Vec<bool> {
        let mut used = vec![true; self.all.len()];
        self.free.iter().for_each(|i| used[*i as usize] = false);
        used
    }

    /// All entries, free ones included.
    pub(super) fn entries(&self) -> &[T] {
        &self.all
    }

    /// Number of entries, free ones included.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Creates a slab with these entries, of which `free` are free; see [`Slab::new_entries`].
    pub(super) fn with_entries(all: Vec<T>, free: Vec<u32>, new_entries: [usize; 2]) -> Slab<T> {
        let mut slab = Slab { all, free, new_entries };
        slab.free.reserve(slab.all.len());
        slab
    }
}
