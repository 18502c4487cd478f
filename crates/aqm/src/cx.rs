//! What a discipline is lent for the length of one call.

use crate::dice::Dice;
use crate::packet::{Ecn, Packet};
use crate::units::Time;
use alloc::vec::Vec;

/// Why a packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Why {
    /// There was no room.
    Full = 1,
    /// A law refused it when it arrived.
    Early = 2,
    /// A law took it out after it had waited.
    Late = 3,
}

/// A packet that was lost: its owner gets the ticket back and frees the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The ticket.
    pub packet: Packet,
    /// The reason.
    pub why: Why,
    /// When.
    pub at: Time,
}

/// The world as a discipline sees it during one call: the time, the dice and the way out for
/// packets that are lost.
pub struct Cx<'a> {
    /// The time of the call.
    pub now: Time,
    /// The dice of this link.
    pub dice: &'a mut dyn Dice,
    /// Where lost packets go.
    pub lost: &'a mut Vec<Lost>,
    /// Marks given.
    pub marks: &'a mut Marks,
}

/// Number of packets that were marked with CE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Packets that arrived at or after `since`.
    pub packets: u64,
    /// Packets that arrived before `since`.
    pub earlier: u64,
    /// Start of the measured interval.
    pub since: Time,
}

impl Marks {
    /// Number of all marked packets.
    pub fn all(&self) -> u64 {
        self.packets + self.earlier
    }
}

impl Cx<'_> {
    /// Loses `packet`.
    #[inline]
    pub fn drop(&mut self, packet: Packet, why: Why) {
        self.lost.push(Lost { packet, why, at: self.now });
    }

    /// Marks `packet` with CE if it can carry a mark, and says whether it could. One that already
    /// carries CE counts as signalled, but not as a second mark (RFC 3168 §5).
    #[inline]
    pub fn mark(&mut self, packet: &mut Packet) -> bool {
        if packet.ecn.capable() && packet.ecn != Ecn::Ce {
            packet.ecn = Ecn::Ce;
            let earlier = packet.arrived < self.marks.since;
            *(if earlier { &mut self.marks.earlier } else { &mut self.marks.packets }) += 1;
        }
        packet.ecn.capable()
    }
}
