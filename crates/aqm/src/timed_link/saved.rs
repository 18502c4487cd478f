//! Snapshots of links that carry bodies.

use super::TimedLink;
use crate::error::{Error, Result};
use crate::snapshot::{Kind, Snapshot, load_bytes, open, to_bytes};
use crate::units::{Rate, Span};
use alloc::string::String;
use alloc::vec::Vec;

/// Description from which a discipline is built. Everything else in a link is its state.
#[derive(Clone, Debug, Snapshot)]
pub(super) struct Recipe {
    /// Text form of the discipline.
    pub text: String,
    /// Rate of the link at the start.
    pub rate: Rate,
    /// Longest time that a queue of default size takes to send.
    pub buffer: Span,
}

impl<T: Snapshot> TimedLink<T> {
    /// Returns the state as bytes, with the bodies of the packets. [`TimedLink::from_snapshot`]
    /// continues from them. See [`snapshot`](crate::snapshot).
    ///
    /// # Errors
    /// A discipline of the program that refuses.
    pub fn save(&self) -> Result<Vec<u8>> {
        to_bytes(Kind::TimedLink, self)
    }

    /// Takes the state that [`TimedLink::save`] returned. The link must have been built with the
    /// same discipline. After an error its state is unspecified.
    ///
    /// # Errors
    /// Bytes that are not a snapshot of such a link, of another version, or damaged.
    pub fn load(&mut self, bytes: &[u8]) -> Result<()> {
        load_bytes(Kind::TimedLink, self, bytes)
    }

    /// Creates the link that [`TimedLink::save`] returned as bytes. It continues as the saved one,
    /// on any machine.
    ///
    /// ```
    /// use sojourn_aqm::{Packet, Rate, Span, Time, TimedLink};
    ///
    /// let mut link = TimedLink::builder("codel", Rate(10_000_000), Span::ms(25)).build()?;
    /// link.push(Time::ZERO, Packet { len: 1250, ..Packet::default() }, String::from("body"))?;
    ///
    /// let mut other = TimedLink::<String>::from_snapshot(&link.save()?)?; // in another process
    /// let due = other.next_poll().unwrap();
    /// assert_eq!(other.poll(due)?, link.poll(due)?);
    /// assert_eq!(other.save()?, link.save()?);
    /// # Ok::<(), sojourn_aqm::Error>(())
    /// ```
    ///
    /// # Errors
    /// Bytes that are not a snapshot of a link with such bodies, of another version, or damaged; a
    /// link whose discipline the program built
    /// ([`TimedLinkBuilder::qdisc`](super::TimedLinkBuilder::qdisc)): build such a link and call
    /// [`TimedLink::load`].
    pub fn from_snapshot(bytes: &[u8]) -> Result<TimedLink<T>>
    where
        T: Clone,
    {
        let mut input = open(bytes, Kind::TimedLink, TimedLink::<T>::layout())?;
        // The first field: `load_from` reads it again.
        let recipe = Option::<Recipe>::create_from(&mut input.clone())?;
        let Some(Recipe { text, rate, buffer }) = recipe else {
            let text = "is of a link whose discipline was not built from a text: build such a link \
                        and call `load`";
            return Err(Error::fixed(text).at("snapshot"));
        };
        let builder = TimedLink::<T>::builder(&text, rate, Span::ZERO).buffer(buffer);
        let mut link = builder.clone_duplicates().build()?;
        link.load_from(&mut input)?;
        input.finish()?;
        Ok(link)
    }
}
