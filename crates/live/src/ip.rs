//! IP header parsing, and the one modification: setting the CE mark.
//!
//! **Source**: RFC 791, RFC 8200 (headers), RFC 3168 §5 (ECN field), RFC 1624 (checksum update). As
//! in Linux, flows are identified by addresses, protocol and ports, or without ports where there
//! are none (ICMP, fragments).

use sojourn_aqm::Ecn;
use sojourn_aqm::cast;
use sojourn_aqm::random::mix;

/// Fields of an IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// ECN field.
    pub ecn: Ecn,
    /// DSCP, used as traffic class.
    pub class: u16,
    /// Flow hash.
    pub hash: u32,
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

/// Parse the header of `packet`; `salt` is the key of the flow hash.
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
    let ports = if fragment { 0 } else { ports(fixed[9], &packet[header..total]) };
    let hash = hash(salt, fixed[9], &packet[12..20], ports);
    Ok(Header { ecn: Ecn::from_bits(fixed[1]), class: u16::from(fixed[1] >> 2), hash })
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
    let ports = if fragment { 0 } else { ports(protocol, rest) };
    let traffic = fixed[0] << 4 | fixed[1] >> 4;
    let hash = hash(salt, protocol, &packet[8..40], ports);
    Ok(Header { ecn: Ecn::from_bits(traffic), class: u16::from(traffic >> 2), hash })
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
}

/// Parse an IPv4 packet between two hosts; None if it is not IPv4 or malformed.
pub fn between(packet: &[u8]) -> Option<HostPacket> {
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
    let ports = ports(packet[9], inner);
    let (from, to) = (word(12)?, word(16)?);
    Some(HostPacket { from, to, ports, len, ecn: header.ecn, payload, segment, opens })
}

/// Source and destination port, 0 if the protocol has none.
fn ports(protocol: u8, payload: &[u8]) -> u32 {
    match payload.first_chunk() {
        Some(ports) if WITH_PORTS.contains(&protocol) => u32::from_be_bytes(*ports),
        _ => 0,
    }
}

/// Flow hash; `addresses` holds source and destination.
fn hash(salt: u64, protocol: u8, addresses: &[u8], ports: u32) -> u32 {
    let start = mix(salt ^ (u64::from(protocol) << 32 | u64::from(ports)));
    let word = |bytes: &[u8; 8]| u64::from_be_bytes(*bytes);
    cast::low32(addresses.as_chunks().0.iter().fold(start, |h, bytes| mix(h ^ word(bytes))))
}

/// Set CE in the header of `packet`, which [`read`] has accepted, and update the checksum.
pub fn mark(packet: &mut [u8]) {
    match packet {
        [first, traffic, ..] if *first >> 4 == 6 => *traffic |= 0x30,
        [_, service, _, _, _, _, _, _, _, _, high, low, ..] => {
            // RFC 1624 (3): HC' = ~(~HC + ~m + m') in ones' complement; only the low byte of the
            // first word changes.
            let change = u32::from(!u16::from(*service)) + u32::from(*service | 3);
            let sum = u32::from(!u16::from_be_bytes([*high, *low])) + change;
            let folded = (sum & 0xffff) + (sum >> 16);
            let folded = (folded & 0xffff) + (folded >> 16);
            *service |= 3;
            #[expect(clippy::cast_possible_truncation, reason = "a folded sum has 16 bits")]
            let sum = folded as u16;
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
        let part = read(&v6(0, FRAGMENT, &[17, 0, 0, 1, 0, 0, 0, 9]), 1).unwrap();
        assert_ne!(part.hash, plain.hash);
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
