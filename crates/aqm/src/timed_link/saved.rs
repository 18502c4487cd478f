//! Snapshots of links that carry bodies.

use super::TimedLink;
use crate::error::Result;
use crate::snapshot::{Kind, Snapshot, load_bytes, to_bytes};
use alloc::vec::Vec;

impl<T: Snapshot> TimedLink<T> {
    /// Returns the state as bytes, with the bodies of the packets. See
    /// [`snapshot`](crate::snapshot).
    ///
    /// # Errors
    /// A discipline of the program that refuses.
    pub fn save(&self) -> Result<Vec<u8>> {
        to_bytes(Kind::TimedLink, self)
    }

    /// Takes the state that [`TimedLink::save`] returned. The link must have been built with the
    /// same discipline and a wire if that one had it. After an error its state is unspecified.
    ///
    /// # Errors
    /// Bytes that are not a snapshot of such a link, of another version, or damaged.
    pub fn load(&mut self, bytes: &[u8]) -> Result<()> {
        load_bytes(Kind::TimedLink, self, bytes)
    }
}
