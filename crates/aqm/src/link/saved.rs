//! Snapshots of links.

use super::Link;
use crate::error::Result;
use crate::snapshot::{Kind, load_bytes, to_bytes};
use alloc::vec::Vec;

impl Link {
    /// Returns the state as bytes: packets, discipline, statistics, packet log, random numbers.
    /// See [`snapshot`](crate::snapshot).
    ///
    /// # Errors
    /// A random number generator that is not [`Pcg`](crate::Pcg), or a discipline of the program
    /// that refuses.
    pub fn save(&self) -> Result<Vec<u8>> {
        to_bytes(Kind::Link, self)
    }

    /// Takes the state that [`Link::save`] returned, also the rate and the parameters of the
    /// discipline. The link must have been built with the same discipline. After an error its state
    /// is unspecified.
    ///
    /// # Errors
    /// Bytes that are not a snapshot of such a link, of another version, or damaged.
    pub fn load(&mut self, bytes: &[u8]) -> Result<()> {
        load_bytes(Kind::Link, self, bytes)
    }
}
