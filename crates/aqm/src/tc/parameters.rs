//! Parameters of a discipline that is exported to tc.

use crate::params::ParamRow;
use crate::units::{Rate, Size, Span};
use alloc::vec::Vec;

/// Parameters of a discipline of this library, which are to be exported.
#[derive(Clone, Copy, Debug)]
pub struct Params<'a> {
    /// All parameters with their values.
    pub rows: &'a [ParamRow],
    /// Rate of the link, if known.
    pub rate: Option<Rate>,
}

impl Params<'_> {
    /// Text of parameter `name`; empty if there is none.
    pub fn text(&self, name: &str) -> &str {
        self.rows.iter().find(|row| row.name == name).map_or("", |row| &row.value)
    }

    /// Number of parameter `name`; 0 if it is not a number.
    pub fn number(&self, name: &str) -> f64 {
        self.text(name).parse().unwrap_or(0.0)
    }

    /// Parameter `name` as a size, if it is one.
    pub fn size(&self, name: &str) -> Option<Size> {
        self.text(name).parse().ok()
    }

    /// Parameter `name` as a time in nanoseconds; 0 if it is not one.
    pub fn nanos(&self, name: &str) -> u64 {
        self.text(name).parse().map_or(0, |span: Span| span.0)
    }
}

/// Removes entries at the end of a list that equal the one before: the last one applies to all.
pub(super) fn trimmed<T: PartialEq>(mut list: Vec<T>) -> Vec<T> {
    while list.len() > 1 && list[list.len() - 1] == list[list.len() - 2] {
        list.pop();
    }
    list
}
