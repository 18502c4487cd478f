//! The ticket that queues hold in place of a packet.

use crate::units::Time;

/// The ECN field of the IP header (RFC 3168 §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// The sender does not take marks: it must be dropped where another would be marked.
    #[default]
    NotEct = 0,
    /// ECN-capable, codepoint 01 (RFC 9331: low latency).
    Ect1 = 1,
    /// ECN-capable, codepoint 10 (classic).
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

impl Ecn {
    /// Whether the packet can carry a mark; one that already does counts.
    pub fn capable(self) -> bool {
        self != Ecn::NotEct
    }

    /// The codepoint of the two header bits.
    pub fn from_bits(bits: u8) -> Ecn {
        [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(bits & 3)]
    }
}

/// A packet as a discipline sees it. Whoever made the body finds it by `body`; a ticket that is
/// lost is always handed back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// When it joined the queue; set by the link.
    pub arrived: Time,
    /// Length on the wire in bytes.
    pub len: u32,
    /// The number of its flow: small and dense, for disciplines that keep one queue per flow.
    pub flow: u32,
    /// The hash of what tells its flow apart (in a real network the 5-tuple), for hashed queues.
    pub hash: u32,
    /// Where the owner keeps the rest.
    pub body: u32,
    /// An explicit traffic class, 0 if there is none.
    pub class: u16,
    /// Its ECN field.
    pub ecn: Ecn,
}

// A ticket and the two links of its list fit in 40 bytes, most of a cache line.
const _: () = assert!(size_of::<Packet>() <= 32);
