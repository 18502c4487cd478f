//! IP header parsing, and the one modification: setting the CE mark.
//!
//! **Source**: RFC 791, RFC 8200 (headers), RFC 3168 §5 (ECN field), RFC 1624 (checksum update). As
//! in Linux, flows are identified by addresses, protocol and ports, or without ports where there
//! are none (ICMP, fragments).

use sojourn_aqm::cast;
use sojourn_aqm::random::{flow_hash, host_key};
use sojourn_aqm::{Ecn, Protocol, TcpFlags};

/// Fields of an IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// ECN field.
    pub ecn: Ecn,
    /// DSCP, used as traffic class.
    pub class: u16,
    /// Flow hash.
    pub hash: u32,
    /// Keys of the source and the destination address.
    pub hosts: [u32; 2],
    /// Protocol above IP, if filters know it.
    pub protocol: Option<Protocol>,
    /// Source and destination port; 0 for packets without ports, like fragments.
    pub ports: [u16; 2],
    /// TCP header.
    pub segment: Segment,
}

/// Acknowledgement in a TCP header; empty for other packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Acknowledgement number.
    pub ack: u32,
    /// Properties that an ACK filter reads.
    pub tcp: TcpFlags,
}

/// Reason why bytes are not a valid IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Malformed {
    /// IP version other than 4 and 6.
    Version,
    /// Shorter than its header states, or than a minimal header.
    Length,
    /// More extension headers than [`EXTENSIONS_MAX`].
    Extensions,
}

/// Maximum number of IPv6 extension headers that are parsed.
pub const EXTENSIONS_MAX: usize = 8;

const TCP: u8 = 6;
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
const MOBILITY: u8 = 135;
/// TCP, UDP, DCCP, SCTP and UDP-Lite: their headers start with the ports.
const WITH_PORTS: [u8; 5] = [6, 17, 33, 132, 136];

/// Parses the header of `packet`; `salt` is the key of the flow hash.
///
/// # Errors
/// If a router would not forward the packet.
pub fn read(packet: &[u8], salt: u64) -> Result<Header, Malformed> {
    match packet.first().map(|byte| byte >> 4) {
        Some(4) => read_v4(packet, salt),
        Some(6) => read_v6(packet, salt),
        Some(_) => Err(Malformed::Version),
        None => Err(Malformed::Length),
    }
}

fn read_v4(packet: &[u8], salt: u64) -> Result<Header, Malformed> {
    let fixed: &[u8; 20] = packet.first_chunk().ok_or(Malformed::Length)?;
    let header = usize::from(fixed[0] & 15) * 4;
    let total = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    if header < 20 || total < header || packet.len() < total {
        return Err(Malformed::Length);
    }
    let fragment = u16::from_be_bytes([fixed[6], fixed[7]]) & 0x3fff != 0;
    let protocol = (fixed[9], fragment);
    let hosts = [&packet[12..16], &packet[16..20]];
    Ok(Header::of(fixed[1], salt, protocol, hosts, &packet[header..total]))
}

fn read_v6(packet: &[u8], salt: u64) -> Result<Header, Malformed> {
    let fixed: &[u8; 40] = packet.first_chunk().ok_or(Malformed::Length)?;
    let payload = usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
    let mut rest = packet[40..].get(..payload).ok_or(Malformed::Length)?;
    let mut protocol = fixed[6];
    let mut fragment = false;
    for i in 0.. {
        let length = match (protocol, rest) {
            (FRAGMENT, _) => 8,
            (HOP_BY_HOP | ROUTING | DESTINATION | MOBILITY, [_, n, ..]) => 8 * usize::from(*n) + 8,
            (AUTHENTICATION, [_, n, ..]) => 4 * usize::from(*n) + 8,
            (HOP_BY_HOP | ROUTING | DESTINATION | MOBILITY | AUTHENTICATION, _) => {
                return Err(Malformed::Length);
            }
            _ => break,
        };
        if i == EXTENSIONS_MAX {
            return Err(Malformed::Extensions);
        }
        let (extension, after) = rest.split_at_checked(length).ok_or(Malformed::Length)?;
        fragment |= protocol == FRAGMENT;
        (protocol, rest) = (extension[0], after);
        if fragment {
            break; // what follows may be any part of the payload
        }
    }
    let traffic = fixed[0] << 4 | fixed[1] >> 4;
    let hosts = [&packet[8..24], &packet[24..40]];
    Ok(Header::of(traffic, salt, (protocol, fragment), hosts, rest))
}

impl Header {
    /// Header of a packet with the traffic class octet `traffic`, a protocol, true if it is a
    /// fragment, the addresses of its hosts, and what follows the IP header.
    fn of(
        traffic: u8,
        salt: u64,
        (protocol, fragment): (u8, bool),
        hosts: [&[u8]; 2],
        payload: &[u8],
    ) -> Header {
        let ports = if fragment { [0; 2] } else { ports(protocol, payload) };
        let segment = if protocol == TCP && !fragment { segment(payload) } else { None };
        Header {
            ecn: Ecn::from_bits(traffic),
            class: u16::from(traffic >> 2),
            hash: flow_hash(salt, protocol, hosts, ports),
            hosts: hosts.map(|address| host_key(salt, address)),
            protocol: Protocol::of_number(protocol),
            ports,
            segment: segment.unwrap_or_default(),
        }
    }
}

/// Fields of an IPv4 packet between two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostPacket {
    /// Source address.
    pub from: u32,
    /// Destination address.
    pub to: u32,
    /// Source and destination port; 0 if there are none.
    pub ports: u32,
    /// Total length, bytes.
    pub len: u16,
    /// ECN field.
    pub ecn: Ecn,
    /// True if it carries payload.
    pub payload: bool,
    /// Sequence number and payload in bytes, for TCP.
    pub segment: Option<(u32, u32)>,
    /// True for a TCP SYN.
    pub opens: bool,
    /// Acknowledgement of a TCP segment.
    pub ack: Segment,
}

/// Parses an IPv4 packet between two hosts; None if it is not IPv4 or malformed.
pub fn parse_between_hosts(packet: &[u8]) -> Option<HostPacket> {
    let header = (packet.first()? >> 4 == 4).then(|| read_v4(packet, 0))?.ok()?;
    let word = |at: usize| packet.get(at..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
    let at = usize::from(packet[0] & 15) * 4;
    let len = u16::from_be_bytes([packet[2], packet[3]]);
    let inner = &packet[at..len.into()];
    let (mut payload, mut segment, mut opens) = (inner.len() > 8, None, false);
    if packet[9] == TCP {
        let offset = inner.get(12)? >> 4;
        let bytes = inner.len().checked_sub(usize::from(offset) * 4)?;
        segment = Some((word(at + 4)?, cast::number(bytes)));
        (payload, opens) = (bytes > 0, inner.get(13)? & 2 != 0);
    }
    let [source, destination] = ports(packet[9], inner).map(u32::from);
    let ports = source << 16 | destination;
    let (from, to) = (word(12)?, word(16)?);
    let Header { ecn, segment: ack, .. } = header;
    Some(HostPacket { from, to, ports, len, ecn, payload, segment, opens, ack })
}

/// Source and destination port, 0 if the protocol has none.
fn ports(protocol: u8, payload: &[u8]) -> [u16; 2] {
    match payload.first_chunk() {
        Some([a, b, c, d]) if WITH_PORTS.contains(&protocol) => {
            [u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d])]
        }
        _ => [0; 2],
    }
}

/// Flags of the 13th and 14th byte of a TCP header, and of its reserved bits.
const ECE: u16 = 0x40;
const CWR: u16 = 0x80;
const ACK: u16 = 0x10;
const SYN: u16 = 0x02;

/// Acknowledgement of the TCP segment `segment`; None if it has none, or is malformed.
fn segment(segment: &[u8]) -> Option<Segment> {
    let fixed: &[u8; 20] = segment.first_chunk()?;
    let flags = u16::from_be_bytes([fixed[12], fixed[13]]) & 0x0fff;
    if flags & (ACK | SYN) != ACK {
        return None;
    }
    let header = usize::from(fixed[12] >> 4) * 4;
    let known = segment.get(20..header).map(options)?;
    let pure = flags & !(ECE | CWR) == ACK && segment.len() == header && known.is_some();
    let ack = u32::from_be_bytes([fixed[8], fixed[9], fixed[10], fixed[11]]);
    let (blocks, room) = known.unwrap_or_default();
    let first = blocks.and_then(|blocks| blocks.first_chunk()).map(|n| u32::from_be_bytes(*n));
    let duplicate = first.is_some_and(|first| first.wrapping_sub(ack).cast_signed() < 0);
    let tcp = TcpFlags::ACK
        .with_if(pure, TcpFlags::PURE)
        .with_if(flags & ECE != 0, TcpFlags::ECE)
        .with_if(flags & CWR != 0, TcpFlags::CWR)
        .with_if(blocks.is_some(), TcpFlags::SACK)
        .with_if(duplicate, TcpFlags::DSACK)
        .with_if(blocks.is_some_and(|_| room < 8), TcpFlags::SACK_FULL);
    Some(Segment { ack, tcp })
}

/// SACK blocks among TCP options, and the bytes of the largest header (40 bytes of options) that
/// are left; None if there are options other than padding, timestamps, MD5 and SACK.
fn options(mut rest: &[u8]) -> Option<(Option<&[u8]>, usize)> {
    let (mut blocks, room) = (None, 40 - rest.len());
    while let [kind, after @ ..] = rest {
        match kind {
            0 => break,
            1 => rest = after,
            5 | 8 | 19 => {
                let length = usize::from(*after.first()?);
                let (option, others) = rest.split_at_checked(length).filter(|_| length >= 2)?;
                if *kind == 5 && length > 2 {
                    blocks = Some(&option[2..]);
                }
                rest = others;
            }
            _ => return None,
        }
    }
    Some((blocks, room))
}

/// Ones' complement sum `sum` after one of its words changed from `old` to `new` (RFC 1624).
pub(crate) fn replaced(sum: u16, old: u16, new: u16) -> u16 {
    [!old, new].into_iter().fold(sum, |sum, word| {
        let (sum, carry) = sum.overflowing_add(word);
        sum + u16::from(carry)
    })
}

/// Sets CE in the header of `packet`, which [`read`] has accepted, and updates the checksum.
pub fn mark(packet: &mut [u8]) {
    match packet {
        [first, traffic, ..] if *first >> 4 == 6 => *traffic |= 0x30,
        [_, service, _, _, _, _, _, _, _, _, high, low, ..] => {
            // Only the low byte of the first word changes.
            let sum = !u16::from_be_bytes([*high, *low]);
            let sum = replaced(sum, u16::from(*service), u16::from(*service | 3));
            *service |= 3;
            [*high, *low] = (!sum).to_be_bytes();
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// IPv4 UDP packet with a valid checksum.
    fn v4(service: u8, from_port: u16) -> Vec<u8> {
        let mut p = vec![0x45, service, 0, 32, 9, 9, 0, 0, 64, 17, 0, 0];
        p.extend([198, 18, 0, 1, 198, 18, 0, 2]);
        p.extend(from_port.to_be_bytes());
        p.extend([0, 53, 0, 12, 0, 0, 1, 2, 3, 4]);
        let sum = checksum(&p);
        p[10..12].copy_from_slice(&sum.to_be_bytes());
        p
    }

    /// IPv6 UDP packet with `extensions`, each of which starts with the next protocol.
    fn v6(traffic: u8, first: u8, extensions: &[u8]) -> Vec<u8> {
        let payload = extensions.len() as u16 + 12;
        let mut p = vec![0x60 | traffic >> 4, traffic << 4, 0, 0];
        p.extend(payload.to_be_bytes());
        p.extend([first, 64]);
        p.extend((0..32).map(|i| i * 7));
        p.extend(extensions);
        p.extend([4, 210, 0, 53, 0, 12, 0, 0, 1, 2, 3, 4]);
        p
    }

    /// Header checksum of an IPv4 packet, computed from scratch (RFC 1071).
    fn checksum(packet: &[u8]) -> u16 {
        let header = &packet[..usize::from(packet[0] & 15) * 4];
        let words = header.as_chunks().0.iter().enumerate().filter(|(i, _)| *i != 5);
        let sum: u32 = words.map(|(_, w)| u32::from(u16::from_be_bytes(*w))).sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        !(((folded & 0xffff) + (folded >> 16)) as u16)
    }

    #[test]
    fn ecn_and_class_are_read_from_the_header() {
        for (bits, ecn) in [(0, Ecn::NotEct), (1, Ecn::Ect1), (2, Ecn::Ect0), (3, Ecn::Ce)] {
            let traffic = 46 << 2 | bits;
            for packet in [v4(traffic, 1), v6(traffic, 17, &[])] {
                let header = read(&packet, 0).unwrap();
                assert_eq!((header.ecn, header.class), (ecn, 46));
            }
        }
    }

    #[test]
    fn flows_differ_by_port_and_salt() {
        let hash = |packet: &[u8], salt| read(packet, salt).unwrap().hash;
        assert_eq!(hash(&v4(0, 1), 5), hash(&v4(0xff, 1), 5));
        assert_ne!(hash(&v4(0, 1), 5), hash(&v4(0, 2), 5));
        assert_ne!(hash(&v4(0, 1), 5), hash(&v4(0, 1), 6));
    }

    #[test]
    fn a_mark_keeps_the_checksum_valid() {
        for service in 0..=255 {
            for port in [0, 1, 77] {
                let mut packet = v4(service, port);
                packet[4] = port as u8; // changes the checksum
                let sum = checksum(&packet);
                packet[10..12].copy_from_slice(&sum.to_be_bytes());
                mark(&mut packet);
                assert_eq!(packet[1], service | 3);
                assert_eq!(packet[10..12], checksum(&packet).to_be_bytes());
            }
            let mut packet = v6(service, 17, &[]);
            mark(&mut packet);
            assert_eq!(packet, v6(service | 3, 17, &[]));
        }
    }

    #[test]
    fn ports_are_found_behind_extensions_and_not_in_fragments() {
        let plain = read(&v6(0, 17, &[]), 1).unwrap();
        let options = [DESTINATION, 0, 1, 4, 0, 0, 0, 0, 17, 0, 1, 4, 0, 0, 0, 0];
        assert_eq!(read(&v6(0, HOP_BY_HOP, &options), 1).unwrap().hash, plain.hash);
        assert_eq!(plain.protocol, Some(Protocol::Udp));
        assert_eq!(plain.ports, [1234, 53]);
        let part = read(&v6(0, FRAGMENT, &[17, 0, 0, 1, 0, 0, 0, 9]), 1).unwrap();
        assert_ne!(part.hash, plain.hash);
        assert_eq!((part.protocol, part.ports), (Some(Protocol::Udp), [0; 2]));
        let mut fragment = v4(0, 1);
        fragment[6] = 0x20; // more fragments
        let mut last = v4(0, 2);
        last[7] = 1;
        assert_eq!(read(&fragment, 1).unwrap().hash, read(&last, 1).unwrap().hash);
        let mut whole = v4(0, 1);
        whole[6] = 0x40; // don't fragment
        assert_eq!(read(&whole, 1), read(&v4(0, 1), 1));
    }

    #[test]
    fn options_are_not_ports() {
        let mut packet = v4(0, 1);
        packet[0] = 0x46;
        packet[3] = 36;
        packet.splice(20..20, [1, 1, 1, 0]);
        assert_eq!(read(&packet, 1).unwrap().hash, read(&v4(0, 1), 1).unwrap().hash);
    }

    #[test]
    fn hosts_have_a_key_each() {
        let hosts = |packet: &[u8]| read(packet, 7).unwrap().hosts;
        let [from, to] = hosts(&v4(0, 1));
        assert_ne!(from, to);
        let mut answer = v4(9, 53);
        answer.copy_within(12..16, 28); // the payload keeps the source
        answer.copy_within(16..20, 12);
        answer.copy_within(28..32, 16);
        assert_eq!(hosts(&answer), [to, from]);
        let [from, to] = hosts(&v6(0, 17, &[]));
        assert_ne!(from, to);
        assert_eq!(hosts(&v6(0, 6, &[])), [from, to], "whatever the protocol is");
        assert_ne!(read(&v4(0, 1), 8).unwrap().hosts, hosts(&v4(0, 1)), "the key has a salt");
    }

    /// IPv4 packet with a TCP segment that acknowledges 1000.
    fn tcp(flags: u8, options: &[u8], payload: usize) -> Vec<u8> {
        let mut p = v4(0, 1);
        p.truncate(20);
        (p[3], p[9]) = ((40 + options.len() + payload) as u8, TCP);
        p.extend([0, 1, 0, 2, 0, 0, 0, 5, 0, 0, 3, 232]);
        p.extend([((5 + options.len() / 4) << 4) as u8, flags, 1, 0, 0, 0, 0, 0]);
        p.extend(options);
        p.resize(p.len() + payload, 0);
        p
    }

    #[test]
    fn acks_are_read_as_an_ack_filter_needs_them() {
        let read = |packet: &[u8]| read(packet, 0).unwrap().segment;
        let ack = |tcp| Segment { ack: 1000, tcp };
        let pure = TcpFlags::ACK.with(TcpFlags::PURE);
        assert_eq!(read(&tcp(0x10, &[], 0)), ack(pure));
        assert_eq!(read(&tcp(0x50, &[], 0)), ack(pure.with(TcpFlags::ECE)));
        assert_eq!(read(&tcp(0x90, &[], 0)), ack(pure.with(TcpFlags::CWR)));
        // Payload, PSH, AE and unknown options need the packet itself.
        assert_eq!(read(&tcp(0x10, &[], 4)), ack(TcpFlags::ACK));
        assert_eq!(read(&tcp(0x18, &[], 0)), ack(TcpFlags::ACK));
        let mut accurate = tcp(0x10, &[], 0);
        accurate[32] |= 1;
        assert_eq!(read(&accurate), ack(TcpFlags::ACK));
        assert_eq!(read(&tcp(0x10, &[1, 1, 172, 2], 0)), ack(TcpFlags::ACK));
        // A SYN, a reset without ACK, a fragment, and UDP have none.
        for none in [tcp(0x12, &[], 0), tcp(0x04, &[], 0), v4(0, 1)] {
            assert_eq!(read(&none), Segment::default());
        }
        let mut fragment = tcp(0x10, &[], 0);
        fragment[6] = 0x20;
        assert_eq!(read(&fragment), Segment::default());
        let stamps: [u8; 12] = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        assert_eq!(read(&tcp(0x10, &stamps, 0)), ack(pure));
        let sack = |first: u8, blocks: u8| {
            let mut options = [&stamps[..], &[1, 1, 5, 2 + 8 * blocks]].concat();
            for _ in 0..blocks {
                options.extend([0, 0, first, 0, 0, 0, first, 100]);
            }
            tcp(0x10, &options, 0)
        };
        let of = pure.with(TcpFlags::SACK);
        assert_eq!(read(&sack(4, 1)), ack(of));
        assert_eq!(read(&sack(3, 2)), ack(of.with(TcpFlags::DSACK)), "768 is acknowledged");
        assert_eq!(read(&sack(4, 3)), ack(of.with(TcpFlags::SACK_FULL)));
        // Lengths that point beyond the header.
        for wrong in [&[8u8, 200, 0, 0][..], &[5, 0, 5, 1], &[1, 1, 1, 8]] {
            assert!(!read(&tcp(0x10, wrong, 0)).tcp.has(TcpFlags::PURE), "{wrong:?}");
        }
        let mut short = tcp(0x10, &[], 0);
        short[32] = 0xf0; // a header of 60 bytes in 20
        assert_eq!(read(&short), Segment::default());
    }

    #[test]
    fn malformed_packets_are_rejected() {
        let (four, six) = (v4(0, 1), v6(0, HOP_BY_HOP, &[17, 0, 1, 4, 0, 0, 0, 0]));
        for cut in 0..four.len() {
            assert_eq!(read(&four[..cut], 0), Err(Malformed::Length), "{cut}");
        }
        for cut in 0..six.len() {
            assert_eq!(read(&six[..cut], 0), Err(Malformed::Length), "{cut}");
        }
        assert_eq!(read(&[0x50; 40], 0), Err(Malformed::Version));
        let short = |i: usize, byte| {
            let mut packet = v4(0, 1);
            packet[i] = byte;
            read(&packet, 0)
        };
        assert_eq!(short(0, 0x44), Err(Malformed::Length), "a header of 16 bytes");
        assert_eq!(short(0, 0x4f), Err(Malformed::Length), "a header of 60 in 32 bytes");
        assert_eq!(short(3, 19), Err(Malformed::Length), "a packet shorter than its header");
        let chain = [HOP_BY_HOP, 0, 1, 4, 0, 0, 0, 0].repeat(9);
        assert_eq!(read(&v6(0, HOP_BY_HOP, &chain), 0), Err(Malformed::Extensions));
        let long = [17, 200, 1, 4, 0, 0, 0, 0];
        assert_eq!(read(&v6(0, HOP_BY_HOP, &long), 0), Err(Malformed::Length));
    }
}
