//! Tournament tree of keys.

use sojourn_aqm::Snapshot;

/// Tournament tree. Node 1 is the root, the children of node k are 2k and 2k + 1, and each node
/// holds the least key below it.
#[derive(Clone, Debug, Snapshot)]
pub(super) struct Tournament {
    keys: Box<[u64]>,
    leaves: usize,
}

impl Tournament {
    /// Creates a tree of at least `n` leaves, all with the greatest key.
    pub(super) fn new(n: usize) -> Tournament {
        let leaves = Tournament::leaves_for(n);
        Tournament { keys: vec![u64::MAX; 2 * leaves].into(), leaves }
    }

    /// Number of leaves of a tree for `n` keys: a power of two.
    pub(super) fn leaves_for(n: usize) -> usize {
        n.max(2).next_power_of_two()
    }

    /// Number of leaves.
    #[inline]
    pub(super) fn leaves(&self) -> usize {
        self.leaves
    }

    /// The least key.
    #[inline]
    pub(super) fn least(&self) -> u64 {
        self.keys[1]
    }

    /// Key of leaf `i`.
    #[inline]
    pub(super) fn leaf(&self, i: usize) -> u64 {
        self.keys[self.leaves + i]
    }

    /// Sets the key of leaf `i`.
    #[inline]
    pub(super) fn set(&mut self, i: usize, key: u64) {
        let mut least = key;
        let mut k = self.leaves + i;
        self.keys[k] = least;
        // The mask changes no index. It shows the compiler that each is in bounds, because the
        // number of keys is a power of two.
        let keys = &mut *self.keys;
        let mask = keys.len() - 1;
        while k > 1 {
            least = least.min(keys[(k ^ 1) & mask]);
            k = (k / 2) & mask;
            keys[k] = least;
        }
    }

    /// Sets the key of leaf `i` if `key` is less. Stops at the first node whose minimum does not
    /// change.
    #[inline]
    pub(super) fn lower(&mut self, i: usize, key: u64) {
        let mut k = self.leaves + i;
        while k > 0 && key < self.keys[k] {
            self.keys[k] = key;
            k /= 2;
        }
    }

    /// Replaces the key of each leaf by `change` of its index and key.
    pub(super) fn change_all(&mut self, change: impl Fn(usize, u64) -> u64) {
        for (i, key) in self.keys[self.leaves..].iter_mut().enumerate() {
            *key = change(i, *key);
        }
        for k in (1..self.leaves).rev() {
            self.keys[k] = self.keys[2 * k].min(self.keys[2 * k + 1]);
        }
    }

    /// The least key in the subtree that contains leaf `i` and one in 2^`depth` of all leaves.
    #[inline]
    pub(super) fn least_near(&self, i: usize, depth: u32) -> u64 {
        self.keys[(self.leaves + i) >> (self.leaves.trailing_zeros() - depth)]
    }

    /// Leaf `i` and its nearest ancestors; nodes nearer to the root stay cached.
    #[inline]
    pub(super) fn path(&self, i: usize) -> impl Iterator<Item = &u64> {
        (0..5).map(move |up| &self.keys[(self.leaves + i) >> up])
    }
}
