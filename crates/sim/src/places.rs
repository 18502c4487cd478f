//! Things with a place each; places are used again.

use sojourn_aqm::cast;

/// The places.
pub struct Places<T> {
    all: Vec<T>,
    free: Vec<u32>,
}

impl<T: Copy> Places<T> {
    /// No places yet.
    pub fn new() -> Places<T> {
        Places { all: Vec::new(), free: Vec::new() }
    }

    /// Puts `thing` into a free place, or a new one.
    #[inline]
    pub fn put(&mut self, thing: T) -> u32 {
        if let Some(i) = self.free.pop() {
            self.all[i as usize] = thing;
            return i;
        }
        self.grow(thing)
    }

    /// Appends `thing` and returns its index.
    #[cold]
    fn grow(&mut self, thing: T) -> u32 {
        self.all.push(thing);
        self.free.reserve(self.all.len());
        cast::number(self.all.len()) - 1
    }

    /// Takes what is in place `i`, which is free from then on.
    #[inline]
    pub fn take(&mut self, i: u32) -> T {
        self.free.push(i);
        self.all[i as usize]
    }

    /// What is in place `i`.
    #[inline]
    pub fn at(&mut self, i: u32) -> &mut T {
        &mut self.all[i as usize]
    }

    /// Everything that is in a place.
    pub fn held(&self) -> impl Iterator<Item = &T> {
        let mut held = vec![true; self.all.len()];
        self.free.iter().for_each(|i| held[*i as usize] = false);
        self.all.iter().zip(held).filter_map(|(thing, held)| held.then_some(thing))
    }
}
