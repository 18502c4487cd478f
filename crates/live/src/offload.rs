//! Segmentation offload of TUN devices with a virtio network header (`IFF_VNET_HDR`).
//!
//! A TCP sender in the kernel passes up to 64 kB at once. [`Segments`] splits it into the packets
//! that a link sees one by one. [`Run`] joins packets that leave together for one write, if the
//! kernel would split the result into exactly these packets again. Checksums of TCP are not
//! computed here: the virtio header says that the kernel has to, if the packet leaves the machine.
//!
//! **Source**: virtio 1.2 §5.1.6 (header), RFC 791 and RFC 8200 (IP), RFC 9293 (TCP), RFC 3168
//! §6.1.2 (CWR is sent once), RFC 1624 (checksum update).

use crate::ip::replaced;
use crate::pool::BUFFER_BYTES;
use sojourn_aqm::cast;

/// Bytes of the virtio network header in front of each packet.
pub const VNET_BYTES: usize = 10;
/// Bytes of the longest read: virtio header and IP packet.
pub const READ_BYTES: usize = VNET_BYTES + 65_535;
/// Maximum number of packets in a [`Run`]: more than the 45 full ones that fit into 64 kB.
pub const RUN_PACKETS: usize = 64;
/// Bytes of the longest headers that are joined: virtio, IP and TCP.
const HEADERS_BYTES: usize = 256;

/// Flag of the virtio header: the checksum field holds the sum of the pseudo-header only.
const NEEDS_CHECKSUM: u8 = 1;
/// Types of the virtio header, and the bit for a segment whose first packet has CWR.
const TCP_V4: u8 = 1;
const TCP_V6: u8 = 4;
const WITH_CWR: u8 = 0x80;
/// Position of the checksum in a TCP header.
const CHECKSUM: usize = 16;

/// Flags in a TCP header.
const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const PSH: u8 = 0x08;
const URG: u8 = 0x20;
const CWR: u8 = 0x80;

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn set_word(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Field of the virtio header, which has the byte order of the machine.
fn field(bytes: &[u8], at: usize) -> usize {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]]).into()
}

fn set_field(bytes: &mut [u8], at: usize, value: usize) {
    bytes[at..at + 2].copy_from_slice(&low16(value).to_ne_bytes());
}

/// Low 16 bits.
fn low16(n: usize) -> u16 {
    let [low, high, ..] = n.to_le_bytes();
    u16::from_le_bytes([low, high])
}

/// TCP packet with a virtio header and a partial checksum: positions of its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    /// TCP header.
    tcp: usize,
    /// Payload.
    payload: usize,
    /// End of the packet.
    end: usize,
    v4: bool,
}

impl Layout {
    /// Parses `bytes`, which begin with a virtio header; None if it is not such a packet.
    fn of(bytes: &[u8]) -> Option<Layout> {
        let ip = bytes.get(VNET_BYTES..)?;
        let v4 = ip.first()? >> 4 == 4;
        let partial = bytes[0] & NEEDS_CHECKSUM != 0 && field(bytes, 8) == CHECKSUM;
        let tcp = field(bytes, 6);
        let (header, protocol, length) = if v4 {
            let fixed: &[u8; 20] = ip.first_chunk()?;
            let whole = word(fixed, 6) & 0x3fff == 0; // not a fragment
            let header = usize::from(fixed[0] & 15) * 4;
            (header, (whole && header == tcp).then_some(fixed[9]), usize::from(word(fixed, 2)))
        } else {
            let fixed: &[u8; 40] = ip.first_chunk()?;
            // Behind extension headers, the kernel's position of the checksum shows that it is TCP.
            let protocol = if tcp > 40 { 6 } else { fixed[6] };
            (40, (fixed[0] >> 4 == 6).then_some(protocol), 40 + usize::from(word(fixed, 4)))
        };
        let offset = usize::from(ip.get(tcp..)?.get(12)? >> 4) * 4;
        let payload = tcp + offset;
        let fits = header >= 20 && tcp >= header && offset >= 20 && payload <= length;
        let valid = partial && protocol == Some(6) && fits && ip.len() == length;
        let [tcp, payload, end] = [tcp, payload, length].map(|at| at + VNET_BYTES);
        valid.then_some(Layout { tcp, payload, end, v4 })
    }

    /// Position of the IP addresses and their length.
    fn addresses(&self) -> std::ops::Range<usize> {
        if self.v4 { VNET_BYTES + 12..VNET_BYTES + 20 } else { VNET_BYTES + 8..VNET_BYTES + 40 }
    }

    /// Changes `header`, the headers of this packet, to the headers of a packet with `payload`
    /// bytes of TCP payload.
    fn set_payload(&self, header: &mut [u8], payload: usize) {
        let old = low16(self.end - self.tcp);
        let new = low16(self.payload - self.tcp + payload);
        let sum = word(header, self.tcp + CHECKSUM);
        set_word(header, self.tcp + CHECKSUM, replaced(sum, old, new));
        let length = self.payload - VNET_BYTES + payload;
        if self.v4 {
            set_v4_word(header, 2, low16(length));
        } else {
            set_word(header, VNET_BYTES + 4, low16(length - 40));
        }
    }
}

/// Sets the word at `at` of the IPv4 header and updates its checksum.
fn set_v4_word(header: &mut [u8], at: usize, new: u16) {
    let [at, sum_at] = [VNET_BYTES + at, VNET_BYTES + 10];
    let sum = replaced(!word(header, sum_at), word(header, at), new);
    set_word(header, at, new);
    set_word(header, sum_at, !sum);
}

/// Packets of one read, one after the other.
#[derive(Debug)]
pub struct Segments<'a> {
    bytes: &'a [u8],
    /// Parts of a large packet, and the payload of each segment; None for a packet to be passed on
    /// as it is.
    large: Option<(Layout, usize)>,
    /// Bytes of payload already returned.
    done: usize,
    /// Segments already returned.
    count: u16,
}

impl<'a> Segments<'a> {
    /// Packets in `bytes`, a virtio header and an IP packet; None if they are malformed.
    pub fn of(bytes: &'a [u8]) -> Option<Segments<'a>> {
        let segments = |large| Some(Segments { bytes, large, done: 0, count: 0 });
        let kind = bytes.get(..VNET_BYTES)?[1] & !WITH_CWR;
        if kind == 0 {
            return if bytes.len() <= BUFFER_BYTES { segments(None) } else { None };
        }
        let layout = Layout::of(bytes)?;
        let size = field(bytes, 4);
        let right = kind == if layout.v4 { TCP_V4 } else { TCP_V6 };
        let fits = size > 0 && layout.payload + size <= BUFFER_BYTES;
        if right && fits { segments(Some((layout, size))) } else { None }
    }

    /// Writes the next packet with its virtio header into `into`, a pool buffer, and returns its
    /// length; None after the last.
    pub fn next(&mut self, into: &mut [u8]) -> Option<usize> {
        let Some((layout, size)) = self.large else {
            let bytes = std::mem::take(&mut self.bytes);
            into[..bytes.len()].copy_from_slice(bytes);
            return (!bytes.is_empty()).then_some(bytes.len());
        };
        let Layout { tcp, payload, end, v4 } = layout;
        let from = payload + self.done;
        if from >= end && self.count > 0 {
            return None;
        }
        let part = size.min(end - from);
        let len = payload + part;
        into[..payload].copy_from_slice(&self.bytes[..payload]);
        into[payload..len].copy_from_slice(&self.bytes[from..from + part]);
        into[1] = 0;
        set_field(into, 2, 0);
        set_field(into, 4, 0);
        layout.set_payload(into, part);
        if v4 {
            let id = word(into, VNET_BYTES + 4).wrapping_add(self.count);
            set_v4_word(into, 4, id);
        }
        let sequence = sequence(into, tcp).wrapping_add(cast::number(self.done));
        into[tcp + 4..tcp + 8].copy_from_slice(&sequence.to_be_bytes());
        if from + part < end {
            into[tcp + 13] &= !(FIN | PSH);
        }
        if self.count > 0 {
            into[tcp + 13] &= !CWR;
        }
        self.done += part;
        self.count = self.count.wrapping_add(1);
        Some(len)
    }
}

/// Sequence number of the TCP header at `tcp`.
fn sequence(bytes: &[u8], tcp: usize) -> u32 {
    bytes[tcp + 4..].first_chunk().map_or(0, |number| u32::from_be_bytes(*number))
}

/// Relation of a packet to a [`Run`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// The packet now belongs to the run.
    Joined,
    /// It is of another flow, so it may leave before the run or after it.
    OtherFlow,
    /// It must leave after the run.
    After,
}

/// Consecutive packets of one TCP connection for one write.
#[derive(Debug)]
pub struct Run {
    /// Headers of the first packet.
    header: [u8; HEADERS_BYTES],
    layout: Layout,
    /// Payload of the first packet, bytes.
    size: usize,
    /// Payload of all packets, bytes.
    payload: usize,
    packets: u16,
    /// True if another packet may follow the last one.
    open: bool,
}

impl Run {
    /// Run of one packet, which begins with a virtio header; None if no other can join it.
    pub fn start(packet: &[u8]) -> Option<Run> {
        let layout = Layout::of(packet)?;
        let mut header = [0; HEADERS_BYTES];
        header.get_mut(..layout.payload)?.copy_from_slice(&packet[..layout.payload]);
        let payload = layout.end - layout.payload;
        let open = payload > 0 && header[layout.tcp + 13] & (FIN | SYN | RST | PSH | URG) == 0;
        (open && header[1] == 0).then_some(Run {
            header,
            layout,
            size: payload,
            payload,
            packets: 1,
            open,
        })
    }

    /// Appends `packet` if the kernel would split the result into the same packets.
    pub fn join(&mut self, packet: &[u8]) -> Join {
        let addresses = self.layout.addresses();
        if packet.get(addresses.clone()) != Some(&self.header[addresses]) {
            return Join::OtherFlow;
        }
        let Some(layout) = Layout::of(packet) else { return Join::After };
        let Layout { tcp, payload, end, v4 } = layout;
        if v4 == self.layout.v4 && packet[tcp..tcp + 4] != self.header[self.layout.tcp..][..4] {
            return Join::OtherFlow;
        }
        let part = end - payload;
        let positions =
            (tcp, payload, v4) == (self.layout.tcp, self.layout.payload, self.layout.v4);
        let room = payload - VNET_BYTES + self.payload + part <= usize::from(u16::MAX)
            && usize::from(self.packets) < RUN_PACKETS;
        let size = 0 < part && part <= self.size && packet[1] == 0;
        if !(self.open && positions && room && size && self.continues(packet)) {
            return Join::After;
        }
        let ending = packet[tcp + 13] & (FIN | PSH);
        self.header[tcp + 13] |= ending;
        self.open = part == self.size && ending == 0;
        self.payload += part;
        self.packets += 1;
        Join::Joined
    }

    /// True if the headers of `packet`, which has the same positions, are those that the kernel
    /// would write for the next packet of the run.
    fn continues(&self, packet: &[u8]) -> bool {
        let Layout { tcp, payload, v4, .. } = self.layout;
        let same = |from: usize, to: usize| packet[from..to] == self.header[from..to];
        let ip = |at: usize| VNET_BYTES + at;
        let network = if v4 {
            let id = word(&self.header, ip(4)).wrapping_add(self.packets);
            same(ip(0), ip(2))
                && same(ip(6), ip(10))
                && same(ip(12), tcp)
                && word(packet, ip(4)) == id
        } else {
            same(ip(0), ip(4)) && same(ip(6), tcp)
        };
        let next = sequence(&self.header, tcp).wrapping_add(cast::number(self.payload));
        network
            && sequence(packet, tcp) == next
            && same(tcp + 8, tcp + 13)
            && packet[tcp + 13] & !(FIN | PSH) == self.header[tcp + 13] & !CWR
            && same(tcp + 14, tcp + 16)
            && same(tcp + 18, payload)
    }

    /// Headers in front of the payloads of all packets. No packet can join afterwards.
    pub fn finish(&mut self) -> &[u8] {
        let Layout { tcp, payload, v4, .. } = self.layout;
        let cwr = if self.header[tcp + 13] & CWR != 0 { WITH_CWR } else { 0 };
        self.header[1] = cwr | if v4 { TCP_V4 } else { TCP_V6 };
        set_field(&mut self.header, 2, payload - VNET_BYTES);
        set_field(&mut self.header, 4, self.size);
        self.layout.set_payload(&mut self.header, self.payload);
        self.open = false;
        &self.header[..payload]
    }

    /// Bytes of the headers of each packet.
    pub fn header_bytes(&self) -> usize {
        self.layout.payload
    }
}

#[cfg(test)]
mod tests;
