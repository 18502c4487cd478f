//! Queue of the packets of one link that go on to other links.

use super::in_flight::Forwarded;
use crate::collections::prefetch::prefetch_start;
use crate::collections::ring::Ring;
use sojourn_aqm::Snapshot;
use sojourn_aqm::units::Time;
use sojourn_aqm::{Ecn, Packet};

/// Packets of a link that go on to another link, in the order of their arrivals there.
#[derive(Clone, Default, Snapshot)]
pub(super) struct ForwardingQueue {
    packets: Ring<Forwarded>,
    /// Link that the first packet reaches next, or a former one if there is none. A copy, so that
    /// a prefetch of that link does not wait for the memory of the packet.
    first_link: u32,
}

impl ForwardingQueue {
    /// Time at which the first packet reaches the next link; [`Time::NEVER`] if there is none.
    #[inline]
    pub(super) fn next(&self) -> Time {
        self.packets.front().map_or(Time::NEVER, |next| next.packet.arrived)
    }

    /// First packet.
    #[inline]
    pub(super) fn front_mut(&mut self) -> Option<&mut Forwarded> {
        self.packets.front_mut()
    }

    /// Removes the first packet.
    #[inline]
    pub(super) fn remove_front(&mut self) {
        self.packets.remove_front();
        if let Some(next) = self.packets.front() {
            self.first_link = next.link;
        }
    }

    /// Appends `packet`, which reaches `link` at `arrived` with ECN field `ecn`. Returns true if it
    /// is the first one.
    // Fields are written into the entry: a struct that was just written would be copied slowly.
    #[inline]
    pub(super) fn push(
        &mut self,
        link: u32,
        cursor: u32,
        packet: &Packet,
        (arrived, ecn): (Time, Ecn),
    ) -> bool {
        let is_first = self.packets.is_empty();
        let entry = self.packets.vacant();
        (entry.link, entry.cursor) = (link, cursor);
        entry.packet = Packet { arrived, ecn, ..*packet };
        if is_first {
            self.first_link = link;
        }
        is_first
    }

    /// First packet.
    #[inline]
    pub(super) fn front(&self) -> Option<&Forwarded> {
        self.packets.front()
    }

    /// Link that the first packet reaches next; some link if there is none.
    #[inline]
    pub(super) fn first_link(&self) -> usize {
        self.first_link as usize
    }

    /// Prefetch the first packet, and the one after it.
    #[inline]
    pub(super) fn prefetch(&self) {
        if let Some(first) = self.packets.front() {
            prefetch_start(first, 2 * size_of::<Forwarded>());
        }
    }

    /// Packets, first to last.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Forwarded> {
        self.packets.iter()
    }
}
