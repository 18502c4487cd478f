//! Sorting of short lists. The sort of the standard library is several kB of code for each type of
//! element and each comparison; this one is compiled once.

use alloc::vec::Vec;
use core::cmp::Ordering;

/// Sorts by key. Stable: elements with equal keys keep their order.
pub fn sort_by_key<T, K: Ord>(list: &mut Vec<T>, key: impl Fn(&T) -> K) {
    let order = order(list.len(), &|a, b| key(&list[a]).cmp(&key(&list[b])));
    let mut elements: Vec<Option<T>> = list.drain(..).map(Some).collect();
    list.extend(order.into_iter().filter_map(|i| elements[i].take()));
}

/// Returns the indices of a list of `len` elements in sorted order.
fn order(len: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..len).collect();
    order.sort_by(|a, b| compare(*a, *b));
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::prelude::v1::*;

    #[test]
    fn equal_keys_keep_their_order() {
        let mut state = 1_u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 24
        };
        for len in [0, 1, 2, 20, 21, 300] {
            let mut list: Vec<(u32, usize)> = (0..len).map(|i| (random() % 8, i)).collect();
            let mut sorted = list.clone();
            sorted.sort_by_key(|(key, _)| *key);
            sort_by_key(&mut list, |(key, _)| *key);
            assert_eq!(list, sorted);
        }
    }
}
