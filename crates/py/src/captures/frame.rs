//! Frames of a capture to the fields that a queue reads.
//!
//! **Source**: LINKTYPE_ values and headers as tcpdump.org lists them; RFC 2516 (PPPoE), IEEE
//! 802.1Q. The crate `etherparse` reads VLAN tags and IP headers with their extensions.

use super::read::{Direction, Frame};
use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket};

/// Ethernet, and the loopback encapsulations of BSD with the family in the byte order of the
/// writer, and in network byte order.
const ETHERNET: i32 = 1;
const NULL: i32 = 0;
const LOOP: i32 = 108;
/// Packets that start with an IP header; 12 and 14 are what BSD systems write for 101.
const RAW: [i32; 5] = [101, 228, 229, 12, 14];
/// Linux cooked capture, versions 1 and 2.
const COOKED: i32 = 113;
const COOKED_2: i32 = 276;
/// EtherType of a session of PPPoE, and the protocols of PPP for IP.
const PPPOE: u16 = 0x8864;
const PPP_IPV4: [u8; 2] = [0x00, 0x21];
const PPP_IPV6: [u8; 2] = [0x00, 0x57];

/// Protocols whose headers start with two ports: TCP, UDP, DCCP, SCTP and UDP-Lite.
const WITH_PORTS: [u8; 5] = [6, 17, 33, 132, 136];
const TCP: u8 = 6;
/// Flags of TCP: all but ECE and CWR.
const TCP_FLAGS: u8 = 0x3f;
const ACK: u8 = 0x10;

/// IP address, IPv4 in the first four bytes, with the IP version.
pub(super) type Address = ([u8; 16], u8);

/// Fields of an IP packet.
pub(super) struct IpPacket {
    /// Length before capture cut the packet off, bytes.
    pub length: u32,
    /// ECN field.
    pub ecn: u8,
    pub dscp: u8,
    pub source: Address,
    pub destination: Address,
    /// Protocol, source port and destination port; ports are 0 if there are none.
    pub protocol: (u8, u16, u16),
    /// Acknowledgement number of a TCP ACK without payload.
    pub ack: Option<u32>,
    pub direction: Option<Direction>,
}

/// Fields of the IP packet in `frame`; None if it carries none.
///
/// # Errors
/// If the link type is not supported.
pub(super) fn ip_packet(frame: &Frame<'_>) -> Result<Option<IpPacket>, String> {
    let (ether_type, start, outgoing) = match frame.link_type {
        ETHERNET => (word(frame.bytes, 12), 14, None),
        NULL => (family(frame.bytes, true), 4, None),
        LOOP => (family(frame.bytes, false), 4, None),
        kind if RAW.contains(&kind) => (version(frame.bytes), 0, None),
        COOKED => (word(frame.bytes, 14), 16, word(frame.bytes, 0).map(|kind| kind == 4)),
        COOKED_2 => (word(frame.bytes, 0), 20, frame.bytes.get(10).map(|kind| *kind == 4)),
        other => {
            return Err(format!(
                "has frames of link type {other}; supported are Ethernet, raw IP, Linux cooked \
                 capture and loopback"
            ));
        }
    };
    let inner = ether_type.zip(frame.bytes.get(start..));
    let Some((ether_type, bytes)) = inner else { return Ok(None) };
    let rest = frame.length.saturating_sub(u32::try_from(start).unwrap_or_default());
    let direction = frame
        .direction
        .or_else(|| outgoing.map(|outgoing| if outgoing { Direction::Out } else { Direction::In }));
    Ok(network(ether_type, bytes, rest).map(|packet| IpPacket { direction, ..packet }))
}

/// Two bytes in network byte order.
fn word(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|two| u16::from_be_bytes(*two))
}

/// EtherType of an address family: 2 is IPv4 everywhere, IPv6 has a number per system.
fn family(bytes: &[u8], any_order: bool) -> Option<u16> {
    let number: &[u8; 4] = bytes.first_chunk()?;
    let known = |number| match number {
        2 => Some(EtherType::IPV4.0),
        24 | 28 | 30 => Some(EtherType::IPV6.0),
        _ => None,
    };
    let swapped = || any_order.then(|| known(u32::from_le_bytes(*number))).flatten();
    known(u32::from_be_bytes(*number)).or_else(swapped)
}

/// EtherType by the version in an IP header.
fn version(bytes: &[u8]) -> Option<u16> {
    match bytes.first()? >> 4 {
        4 => Some(EtherType::IPV4.0),
        6 => Some(EtherType::IPV6.0),
        _ => None,
    }
}

/// Fields of the IP packet that `bytes` hold behind VLAN tags and PPPoE; `length` is their length
/// before capture cut them off.
fn network(ether_type: u16, bytes: &[u8], length: u32) -> Option<IpPacket> {
    if ether_type == PPPOE {
        let inner = match *bytes.get(6..8)?.first_chunk()? {
            PPP_IPV4 => EtherType::IPV4.0,
            PPP_IPV6 => EtherType::IPV6.0,
            _ => return None,
        };
        return network(inner, &bytes[8..], length.saturating_sub(8));
    }
    let sliced = LaxSlicedPacket::from_ether_type(EtherType(ether_type), bytes);
    if let Some(tagged) = sliced.ether_payload()
        && tagged.ether_type.0 == PPPOE
    {
        let before = bytes.len() - tagged.payload.len();
        let rest = length.saturating_sub(u32::try_from(before).unwrap_or_default());
        return network(PPPOE, tagged.payload, rest);
    }
    let address = |octets: &[u8], version| {
        let mut address = [0; 16];
        address[..octets.len()].copy_from_slice(octets);
        (address, version)
    };
    // Length that the header states, traffic class, hosts, bytes of the header, payload.
    let (stated, traffic, hosts, header, payload) = match sliced.net.as_ref()? {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            let hosts = [address(&header.source(), 4), address(&header.destination(), 4)];
            let traffic = header.dcp().value() << 2 | header.ecn().value();
            (header.total_len().into(), traffic, hosts, offset(bytes, header.slice()), ip.payload())
        }
        LaxNetSlice::Ipv6(ip) => {
            let header = ip.header();
            let hosts = [address(&header.source(), 6), address(&header.destination(), 6)];
            let stated = Some(header.payload_length()).filter(|length| *length > 0);
            let stated = stated.map_or(0, |length| u32::from(length) + 40);
            let start = offset(bytes, header.slice());
            (stated, header.traffic_class(), hosts, start, ip.payload())
        }
        LaxNetSlice::Arp(_) => return None,
    };
    // A packet that the network card is to cut into segments may state 0.
    let length = if stated == 0 { length.saturating_sub(header) } else { stated };
    let inner_length = length.saturating_sub(offset(bytes, payload.payload) - header);
    let number = payload.ip_number.0;
    let inner = if payload.fragmented { &[] } else { payload.payload };
    let ports = WITH_PORTS.contains(&number).then(|| word(inner, 0).zip(word(inner, 2))).flatten();
    let (from, to) = ports.unwrap_or_default();
    Some(IpPacket {
        length,
        ecn: traffic & 3,
        dscp: traffic >> 2,
        source: hosts[0],
        destination: hosts[1],
        protocol: (number, from, to),
        ack: if number == TCP { pure_ack(inner, inner_length) } else { None },
        direction: None,
    })
}

/// Number of bytes of `whole` before `part`, which is a part of it.
fn offset(whole: &[u8], part: &[u8]) -> u32 {
    let bytes = (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize);
    u32::try_from(bytes).unwrap_or_default()
}

/// Acknowledgement number of a TCP segment of `length` bytes, if it only acknowledges.
fn pure_ack(segment: &[u8], length: u32) -> Option<u32> {
    let header: &[u8; 14] = segment.first_chunk()?;
    let ack = u32::from_be_bytes([header[8], header[9], header[10], header[11]]);
    let only_ack = header[13] & TCP_FLAGS == ACK;
    (only_ack && length == u32::from(header[12] >> 4) * 4).then_some(ack)
}
