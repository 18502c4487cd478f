//! Registry with disciplines of other crates.

use super::{QdiscEntry, REGISTRY, find_in};
use crate::error::{Error, Result};
use alloc::format;
use alloc::vec::Vec;
use core::any::TypeId;

/// Disciplines that can be built by name: the entries of [`REGISTRY`], and others.
///
/// ```
/// use sojourn_aqm::aqm::{SingleQueue, codel::CoDel};
/// use sojourn_aqm::registry::{QdiscEntry, Registry};
///
/// let mine = QdiscEntry::new::<SingleQueue<CoDel>>("mine", "CoDel under a name of its own");
/// let registry = Registry::standard().with(mine)?;
/// assert_eq!(registry.find("mine")?.name, "mine");
/// assert_eq!(registry.find("fq-codel")?.name, "fq_codel");
/// # Ok::<(), sojourn_aqm::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Registry {
    added: Vec<QdiscEntry>,
    external: Option<FindExternal>,
}

impl Registry {
    /// Returns the registry of [`REGISTRY`].
    pub fn standard() -> Registry {
        Registry::default()
    }

    /// Adds `entry`.
    ///
    /// # Errors
    /// A name or alias that is in use, or that has other characters than lower-case letters, digits
    /// and underscores.
    pub fn with(mut self, entry: QdiscEntry) -> Result<Registry> {
        for name in [entry.name].iter().chain(entry.aliases) {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            if name.is_empty() || !name.chars().all(plain) {
                let text = format!("{name:?} is not made of a to z, 0 to 9 and \"_\"");
                return Err(Error::new(text).at("name"));
            }
            if self.entries().any(|e| e.is_called(name)) {
                return Err(Error::new(format!("{name:?} names two disciplines")).at("name"));
            }
        }
        self.added.push(entry);
        Ok(self)
    }

    /// Sets a function that looks up names before the entries do. A name for which it returns
    /// `None` is looked up among the entries.
    #[must_use]
    pub fn with_external(self, find: FindExternal) -> Registry {
        Registry { external: Some(find), ..self }
    }

    /// Iterates over the entries of [`REGISTRY`], then over the added entries in order. Entries
    /// that [`Registry::with_external`] finds are not included.
    pub fn entries(&self) -> impl Iterator<Item = &QdiscEntry> + Clone {
        REGISTRY.iter().chain(&self.added)
    }

    /// Returns the first entry that builds the discipline `Q`.
    pub fn entry_of<Q: 'static>(&self) -> Option<&QdiscEntry> {
        self.entries().find(|entry| entry.type_id() == Some(TypeId::of::<Q>()))
    }

    /// Returns the entry called `name`, as [`find`](super::find).
    ///
    /// # Errors
    /// As [`find`](super::find).
    pub fn find(&self, name: &str) -> Result<&QdiscEntry> {
        let elsewhere = self.external.and_then(|find| find(name));
        elsewhere.unwrap_or_else(|| find_in(self.entries(), name))
    }
}

/// Function that looks up a discipline which is not in the registry; `None` if it does not handle
/// the name. See [`Registry::with_external`](Registry::with_external).
pub type FindExternal = fn(&str) -> Option<Result<&'static QdiscEntry>>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::find;
    use crate::sched::drop_tail::DropTail;
    use alloc::string::ToString;

    #[test]
    fn added_names_are_plain_and_not_in_use() {
        let entry = |name| QdiscEntry::new::<DropTail>(name, "");
        let added = Registry::standard().with(entry("mine")).unwrap();
        assert!(added.find("MINE").is_ok() && find("mine").is_err());
        assert!(added.find("mime").unwrap_err().to_string().contains("did you mean \"mine\"?"));
        for (name, text) in [
            ("mine", "\"mine\" names two disciplines"),
            ("pfifo", "\"pfifo\" names two disciplines"),
            ("My-AQM", "\"My-AQM\" is not made of"),
            ("", "\"\" is not made of"),
        ] {
            assert!(added.clone().with(entry(name)).unwrap_err().text().starts_with(text));
        }
        assert!(added.clone().with(entry("my_2nd_aqm")).is_ok());
        let alias = entry("other").aliases(&["codel"]);
        assert!(added.with(alias).is_err());
    }

    #[test]
    fn names_are_looked_up_elsewhere_first() {
        fn elsewhere(name: &str) -> Option<Result<&'static QdiscEntry>> {
            name.starts_with("py:").then(|| find("codel"))
        }
        let mine = QdiscEntry::new::<DropTail>("mine", "");
        let registry = Registry::standard().with(mine).unwrap().with_external(elsewhere);
        let names = ["py:x", "mine", "red"].map(|name| registry.find(name).unwrap().name);
        assert_eq!(names, ["codel", "mine", "red"]);
    }

    #[test]
    fn entries_are_found_by_type() {
        for entry in REGISTRY {
            let same = |e: &&QdiscEntry| e.type_id() == entry.type_id();
            assert_eq!(REGISTRY.iter().filter(same).count(), 1, "type of {}", entry.name);
        }
        let registry = Registry::standard();
        assert_eq!(registry.entry_of::<DropTail>().unwrap().name, "droptail");
        assert!(registry.entry_of::<u8>().is_none());
    }
}
