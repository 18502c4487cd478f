//! Values that many links or groups of flows have in common: parsed once, and shared.
#![expect(clippy::disallowed_types, reason = "JSON has no order, and the map is never iterated")]

use serde_json::{Map, Value as Json};
use sojourn_aqm::error::Result;
use std::collections::HashMap;
use std::hash::Hash;

/// Parsed values by their text.
pub(super) struct Shared<K, T> {
    last: Option<(K, T)>,
    all: HashMap<K, T>,
}

impl<K, T> Default for Shared<K, T> {
    fn default() -> Self {
        Shared { last: None, all: HashMap::new() }
    }
}

impl<K: Copy + Eq + Hash, T: Clone> Shared<K, T> {
    /// Returns the value of `text`, which `parse` parses if no equal text came before.
    ///
    /// # Errors
    /// As `parse`.
    pub(super) fn get(&mut self, text: K, parse: impl FnOnce() -> Result<T>) -> Result<T> {
        // Neighbours are often alike, and to compare is faster than to hash.
        if let Some((_, value)) = self.last.as_ref().filter(|(last, _)| *last == text) {
            return Ok(value.clone());
        }
        let value = match self.all.get(&text) {
            Some(value) => value.clone(),
            None => parse()?,
        };
        self.all.insert(text, value.clone());
        self.last = Some((text, value.clone()));
        Ok(value)
    }
}

/// Numbers of links with the same rate and discipline, as they are written.
pub(super) struct Alike<'a>(HashMap<[Option<&'a Json>; 2], usize>);

impl<'a> Alike<'a> {
    pub(super) fn of(links: &'a Map<String, Json>) -> Alike<'a> {
        let mut counts = HashMap::new();
        for link in links.values() {
            *counts.entry(Alike::key(link)).or_default() += 1;
        }
        Alike(counts)
    }

    fn key(link: &Json) -> [Option<&Json>; 2] {
        ["rate", "qdisc"].map(|key| link.get(key))
    }

    /// The number of links like `link`, which is 0 from the second call for one of them on.
    pub(super) fn take(&mut self, link: &'a Json) -> usize {
        self.0.remove(&Alike::key(link)).unwrap_or_default()
    }
}
