//! Cookies of the packets in a discipline.

use sojourn_aqm::cast;

/// Cookies by index; a freed index is used again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cookies {
    values: Vec<u64>,
    free: Vec<u32>,
}

impl Cookies {
    /// Stores a cookie and returns its index.
    pub(crate) fn insert(&mut self, cookie: u64) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.values.push(0);
            cast::index32(self.values.len() - 1)
        });
        self.values[index as usize] = cookie;
        index
    }

    /// Removes and returns the cookie of an index.
    pub(crate) fn remove(&mut self, index: u32) -> u64 {
        self.free.push(index);
        self.values[index as usize]
    }
}
