//! Packet descriptor that queues hold in place of a packet.

use crate::snapshot::Snapshot;
use crate::units::{Span, Time};

/// ECN field of the IP header (RFC 3168 §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Snapshot)]
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

    /// Returns the two header bits of the codepoint.
    pub fn bits(self) -> u8 {
        self as u8
    }

    /// Returns the byte of the IP header that has DSCP and ECN (Traffic Class of IPv6, TOS of
    /// IPv4), with this codepoint and the DSCP of `byte`. The checksum of an IPv4 header changes.
    pub fn write_to(self, byte: u8) -> u8 {
        byte & !3 | self.bits()
    }

    /// Returns the codepoint of the two header bits.
    pub fn from_bits(bits: u8) -> Ecn {
        [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(bits & 3)]
    }
}

/// TCP header of a packet, as far as an ACK filter needs it; nothing for other packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Snapshot)]
pub struct TcpFlags(u8);

impl TcpFlags {
    /// A segment with an acknowledgement number that is not a SYN.
    pub const ACK: TcpFlags = TcpFlags(1);
    /// An ACK without payload, with no flags but ACK, ECE and CWR, and no options but padding,
    /// timestamps, MD5 and SACK.
    pub const PURE: TcpFlags = TcpFlags(2);
    /// ECN echo.
    pub const ECE: TcpFlags = TcpFlags(4);
    /// Congestion window reduced.
    pub const CWR: TcpFlags = TcpFlags(8);
    /// It has SACK blocks.
    pub const SACK: TcpFlags = TcpFlags(16);
    /// Its first SACK block is a duplicate (RFC 2883).
    pub const DSACK: TcpFlags = TcpFlags(32);
    /// The packet has a [departure time](Packet::departure), and no acknowledgement number.
    pub const TIMED: TcpFlags = TcpFlags(128);
    /// It has as many SACK blocks as its sender puts in a header, so that more may be unreported.
    pub const SACK_FULL: TcpFlags = TcpFlags(64);
    /// The packet has a [congestion header of XCP](Packet::xcp), and no acknowledgement number.
    pub const XCP: TcpFlags = TcpFlags(128 | 64);

    /// Returns the flags of both.
    #[must_use]
    pub const fn with(self, other: TcpFlags) -> TcpFlags {
        TcpFlags(self.0 | other.0)
    }

    /// Returns the flags of both if `set`, otherwise `self`.
    #[must_use]
    pub const fn with_if(self, set: bool, other: TcpFlags) -> TcpFlags {
        if set { self.with(other) } else { self }
    }

    /// True if all flags of `other` are set.
    pub const fn has(self, other: TcpFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the flags that are set in both.
    #[must_use]
    pub const fn only(self, other: TcpFlags) -> TcpFlags {
        TcpFlags(self.0 & other.0)
    }
}

/// Congestion header of XCP (draft-falk-xcp-spec-03 §2), which routers change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Snapshot)]
pub struct XcpHeader {
    /// Round-trip time that the sender has measured, in whole microseconds; 0 if it has not yet.
    pub rtt: Span,
    /// Time between two packets of the sender: `rtt` divided by its window in packets. At most 4 s.
    pub x: Span,
    /// Change of throughput in bytes per second: the sender's wish, reduced by each router.
    pub delta_throughput: i32,
}

impl XcpHeader {
    /// Wish for an unlimited throughput, which every router reduces.
    pub const UNLIMITED: i32 = i32::MAX;
}

/// A packet as a discipline sees it. The owner finds the payload by `body`; descriptors of dropped
/// packets are always returned to the owner.
///
/// Fields may be added: end a literal with `..Packet::default()`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Snapshot)]
pub struct Packet {
    /// Time of arrival at the queue. A link sets it; a direct caller of a discipline must, and a
    /// debug build panics if it is not the time of the call.
    pub arrived: Time,
    /// Length in bytes: a link sends the packet in `8 * len / rate`. In this project it is the
    /// length of the IP packet. Framing counts only if the owner adds it here, if CAKE has
    /// `overhead`, or if [`Opportunities`](crate::Opportunities) have a header.
    pub len: u32,
    /// Number of the flow: small and dense, for disciplines with a queue per flow.
    pub flow: u32,
    /// Hash of the flow identifier (in a real network the 5-tuple), for hashed queues. The owner
    /// salts it; flows with the same hash share a queue.
    pub hash: u32,
    /// Index by which the owner finds the rest of the packet.
    pub body: u32,
    /// Key of the host that sends the packet: equal for all packets of a host. 0 if not known.
    pub source: u32,
    /// Key of the host that receives the packet; 0 if not known.
    pub destination: u32,
    /// TCP acknowledgement number (RFC 9293 §3.1), meaningful with [`TcpFlags::ACK`]; with
    /// [`TcpFlags::TIMED`] the microseconds from the arrival to the departure time.
    pub ack: u32,
    /// Traffic class, 0 if there is none. The DSCP, where a discipline reads one.
    pub class: u16,
    /// ECN field.
    pub ecn: Ecn,
    /// TCP header.
    pub tcp: TcpFlags,
}

impl Packet {
    /// Time before which the packet is not to be sent, if its sender has set one. Only fq holds it
    /// back until then.
    pub fn departure(&self) -> Option<Time> {
        let timed = self.tcp.has(TcpFlags::TIMED) && !self.tcp.has(TcpFlags::XCP);
        timed.then(|| self.arrived + Span::us(self.ack.into()))
    }

    /// Sets the departure time, which is kept in whole microseconds, rounded up, and at most 71
    /// minutes after the arrival. It takes the place of an acknowledgement number.
    #[must_use]
    pub fn with_departure(self, at: Time) -> Packet {
        let us = at.since(self.arrived).0.div_ceil(1000);
        let tcp = TcpFlags::TIMED;
        Packet { ack: u32::try_from(us).unwrap_or(u32::MAX), tcp, ..self }
    }

    /// Returns the congestion header of XCP, if the packet has one.
    pub fn xcp(&self) -> Option<XcpHeader> {
        self.tcp.has(TcpFlags::XCP).then(|| XcpHeader {
            rtt: Span::us(self.source.into()),
            x: Span(self.destination.into()),
            delta_throughput: self.ack.cast_signed(),
        })
    }

    /// Sets the congestion header of XCP. It takes the place of the host keys and of an
    /// acknowledgement number.
    #[must_use]
    pub fn with_xcp(self, header: XcpHeader) -> Packet {
        Packet {
            source: u32::try_from(header.rtt.0 / 1000).unwrap_or(u32::MAX),
            destination: u32::try_from(header.x.0).unwrap_or(u32::MAX),
            ack: header.delta_throughput.cast_unsigned(),
            tcp: TcpFlags::XCP,
            ..self
        }
    }
}

// A descriptor and the two links of its list fit in 48 bytes, within a cache line.
const _: () = assert!(size_of::<Packet>() <= 40);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_of_xcp_has_its_header_and_no_departure_time() {
        let header = XcpHeader { rtt: Span::ms(80), x: Span(1_600_001), delta_throughput: -7 };
        let packet = Packet::default().with_xcp(header);
        assert_eq!((packet.xcp(), packet.departure()), (Some(header), None));
        let timed = Packet::default().with_departure(Time(2_000));
        assert_eq!((timed.xcp(), timed.departure()), (None, Some(Time(2_000))));
        assert_eq!(Packet::default().xcp(), None);
    }

    #[test]
    fn a_flag_that_is_set_twice_is_set() {
        let both = TcpFlags::ACK.with(TcpFlags::ECE);
        assert_eq!(both.with(TcpFlags::ACK), both);
        assert_eq!(both.with_if(true, both), both);
    }
}
