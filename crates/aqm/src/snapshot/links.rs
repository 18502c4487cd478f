//! Snapshots of links.

use super::{Kind, Snapshot, Writer, open, seal};
use crate::error::Result;
use crate::link::Link;
use crate::timed_link::TimedLink;
use alloc::vec::Vec;

/// Snapshot of `value`.
fn save<T: Snapshot>(kind: Kind, value: &T) -> Result<Vec<u8>> {
    let mut out = Writer::default();
    value.save_to(&mut out)?;
    Ok(seal(kind, T::layout(), out))
}

/// Loads a snapshot into `value`.
fn load<T: Snapshot>(kind: Kind, value: &mut T, bytes: &[u8]) -> Result<()> {
    let mut input = open(bytes, kind, T::layout())?;
    value.load_from(&mut input)?;
    input.finish()
}

impl Link {
    /// Returns the state as bytes: packets, discipline, statistics, packet log, random numbers.
    /// See [`snapshot`](crate::snapshot).
    ///
    /// # Errors
    /// A random number generator that is not [`Pcg`](crate::Pcg), or a discipline of the program
    /// that refuses.
    pub fn save(&self) -> Result<Vec<u8>> {
        save(Kind::Link, self)
    }

    /// Takes the state that [`Link::save`] returned, also the rate and the parameters of the
    /// discipline. The link must have been built with the same discipline. After an error its state
    /// is unspecified.
    ///
    /// # Errors
    /// Bytes that are not a snapshot of such a link, of another version, or damaged.
    pub fn load(&mut self, bytes: &[u8]) -> Result<()> {
        load(Kind::Link, self, bytes)
    }
}

impl<T: Snapshot> TimedLink<T> {
    /// Returns the state as bytes, with the bodies of the packets. See
    /// [`snapshot`](crate::snapshot).
    ///
    /// # Errors
    /// A discipline of the program that refuses.
    pub fn save(&self) -> Result<Vec<u8>> {
        save(Kind::TimedLink, self)
    }

    /// Takes the state that [`TimedLink::save`] returned. The link must have been built with the
    /// same discipline and a wire if that one had it. After an error its state is unspecified.
    ///
    /// # Errors
    /// Bytes that are not a snapshot of such a link, of another version, or damaged.
    pub fn load(&mut self, bytes: &[u8]) -> Result<()> {
        load(Kind::TimedLink, self, bytes)
    }
}
