//! Slab: values with stable indices; freed indices are used again.

use crate::cast;
use crate::snapshot::Snapshot;
use alloc::vec::Vec;

/// Values by index.
#[derive(Clone, Debug, Snapshot)]
pub(super) struct Slab<T> {
    values: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(super) fn new() -> Slab<T> {
        Slab { values: Vec::new(), free: Vec::new() }
    }

    /// Number of values.
    pub(super) fn len(&self) -> usize {
        self.values.len() - self.free.len()
    }

    /// Values, in the order of their indices.
    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.values.iter().flatten()
    }

    /// Values to be changed, in the order of their indices.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.values.iter_mut().flatten()
    }

    /// Stores `value` and returns its index; `None` if there are 2^32 - 1.
    pub(super) fn insert(&mut self, value: T) -> Option<u32> {
        let index = match self.free.pop() {
            Some(index) => index,
            None if self.values.len() >= cast::index(u64::from(u32::MAX)) => return None,
            None => {
                self.values.push(None);
                cast::index32(self.values.len() - 1)
            }
        };
        self.values[index as usize] = Some(value);
        Some(index)
    }

    /// Value of an index in use.
    pub(super) fn get(&self, index: u32) -> &T {
        self.values[index as usize].as_ref().expect("the index is in use")
    }

    /// Removes the value of an index in use.
    pub(super) fn remove(&mut self, index: u32) -> T {
        self.free.push(index);
        self.values[index as usize].take().expect("the index is in use")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_indices_are_used_again() {
        let mut slab = Slab::new();
        let [a, b] = ["a", "b"].map(|value| slab.insert(value).unwrap());
        assert_eq!((a, b, slab.remove(a), slab.len()), (0, 1, "a", 1));
        assert_eq!((slab.insert("c"), slab.insert("d"), *slab.get(b)), (Some(0), Some(2), "b"));
        assert_eq!((slab.remove(0), slab.remove(1), slab.remove(2)), ("c", "b", "d"));
        assert_eq!(slab.len(), 0);
    }
}
