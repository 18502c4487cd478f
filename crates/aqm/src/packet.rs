//! Packet descriptor that queues hold in place of a packet.

use crate::units::Time;

/// ECN field of the IP header (RFC 3168 §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable: dropped where another packet would be marked.
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
    /// True if the packet can carry a mark, including one that is already marked.
    pub fn capable(self) -> bool {
        self != Ecn::NotEct
    }

    /// Returns the codepoint of the two header bits.
    pub fn from_bits(bits: u8) -> Ecn {
        [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(bits & 3)]
    }
}

/// A packet as a discipline sees it. The owner finds the payload by `body`; descriptors of dropped
/// packets are always returned to the owner.
///
/// Fields may be added: end a literal with `..Packet::default()`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Time of arrival at the queue. A link sets it; a direct caller of a discipline must.
    pub arrived: Time,
    /// Length on the wire in bytes.
    pub len: u32,
    /// Number of the flow: small and dense, for disciplines with a queue per flow.
    pub flow: u32,
    /// Hash of the flow identifier (in a real network the 5-tuple), for hashed queues.
    pub hash: u32,
    /// Index by which the owner finds the rest of the packet.
    pub body: u32,
    /// Traffic class, 0 if there is none.
    pub class: u16,
    /// ECN field.
    pub ecn: Ecn,
}

// A descriptor and the two links of its list fit in 40 bytes, most of a cache line.
const _: () = assert!(size_of::<Packet>() <= 32);
