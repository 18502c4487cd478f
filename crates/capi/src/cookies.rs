//! Cookies of the packets in a discipline.

use sojourn_aqm::cast;

/// Cookies by index. Freed indices form a list, so that a packet touches one place only.
#[derive(Clone, Debug)]
pub(crate) struct Cookies {
    /// Cookie of a packet, or of a freed index the index that was freed before it.
    values: Vec<u64>,
    /// Index that was freed last; [`END`] if there is none.
    free: u32,
}

/// End of the list of freed indices.
const END: u32 = u32::MAX;

impl Default for Cookies {
    fn default() -> Cookies {
        Cookies { values: Vec::new(), free: END }
    }
}

impl Cookies {
    /// Stores a cookie and returns its index.
    #[inline]
    pub(crate) fn insert(&mut self, cookie: u64) -> u32 {
        let Some(value) = self.values.get_mut(self.free as usize) else { return self.grow(cookie) };
        let before = cast::low32(std::mem::replace(value, cookie));
        std::mem::replace(&mut self.free, before)
    }

    #[cold]
    fn grow(&mut self, cookie: u64) -> u32 {
        let index = cast::index32(self.values.len());
        assert!(index < END, "the discipline has 4294967295 packets");
        self.values.push(cookie);
        index
    }

    /// Removes and returns the cookie of an index.
    #[inline]
    pub(crate) fn remove(&mut self, index: u32) -> u64 {
        let before = u64::from(std::mem::replace(&mut self.free, index));
        std::mem::replace(&mut self.values[index as usize], before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_indices_are_used_again_and_cookies_stay_apart() {
        let mut cookies = Cookies::default();
        let indices: Vec<u32> = (0..4).map(|n| cookies.insert(100 + n)).collect();
        assert_eq!(indices, [0, 1, 2, 3]);
        assert_eq!([cookies.remove(1), cookies.remove(3)], [101, 103]);
        assert_eq!([cookies.insert(200), cookies.insert(201), cookies.insert(202)], [3, 1, 4]);
        let all = [0, 1, 2, 3, 4].map(|index| cookies.remove(index));
        assert_eq!(all, [100, 201, 102, 200, 202]);
    }
}
