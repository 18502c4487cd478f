//! Values that many links or groups of flows have in common: parsed once, and shared.

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
