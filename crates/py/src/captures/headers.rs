//! Headers for simulated packets: what a real packet with the same fields would start with.
//!
//! **Source**: RFC 791, RFC 8200, RFC 768, RFC 9293, RFC 7323 (timestamps, window scale), RFC 2018
//! (SACK), RFC 3168 and RFC 9768 (ECN). Initial sequence numbers are 0 in both directions, the
//! receiver sends no data. A header size of 60 bytes or more means IPv6.

use etherparse::checksum::Sum16BitWords;
use etherparse::{IpDscp, IpEcn, IpNumber, Ipv4Header, Ipv6FlowLabel, Ipv6Header};
use etherparse::{TcpHeader, UdpHeader};
use sojourn_aqm::{Ecn, cast};
use sojourn_sim::internals::EcnFeedback;
use sojourn_sim::internals::tcp::{Ack, Segment};
use sojourn_sim::{TappedContent, TappedFlow, TappedPacket, TappedProtocol};
use std::collections::BTreeMap;

/// First source port, and number of them; the destination port is the next one after a round.
const FIRST_PORT: u32 = 49_152;
const PORTS: u32 = 65_536 - FIRST_PORT;
const DESTINATION_PORT: u32 = 40_001;
/// Networks of the hosts: 10.0.0.0/8, and 2001:db8::/32, which is for documentation.
const NETWORK: u32 = 10 << 24;
const NETWORK_6: [u8; 4] = [0x20, 0x01, 0x0d, 0xb8];
/// Smallest size of IP and TCP header that means IPv6, bytes.
const IPV6_FROM: u32 = 60;
/// Shift of the window, in the SYN.
const WINDOW_SCALE: u8 = 14;
/// Connections of a flow whose ports are kept: later packets of earlier ones are on their way.
const KEPT: u32 = 8;

const NOP: u8 = 1;
const MSS: u8 = 2;
const SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

/// Ports and state of a connection.
#[derive(Clone, Copy)]
struct Connection {
    hosts: [u32; 2],
    ports: [u16; 2],
    /// Last timestamp of the receiver.
    echo: u32,
    /// True if the SYN was answered.
    answered: bool,
}

/// Maker of headers, with the numbers of hosts and the ports of connections.
#[derive(Default)]
pub(super) struct Headers {
    hosts: BTreeMap<u32, u32>,
    /// Number of connections between two hosts.
    pairs: BTreeMap<[u32; 2], u32>,
    connections: BTreeMap<(u32, u32), Connection>,
    number: u16,
}

/// Fields of a packet for its IP header.
struct Network {
    v6: bool,
    hosts: [u32; 2],
    ecn: Ecn,
    class: u16,
    protocol: IpNumber,
}

impl Headers {
    /// Appends the headers of `packet` to `out`; returns the length of the packet in bytes. `ms` is
    /// the time of the packet in milliseconds.
    pub(super) fn write(
        &mut self,
        packet: &TappedPacket,
        flow: &TappedFlow,
        ms: u64,
        out: &mut Vec<u8>,
    ) -> u32 {
        let connection = self.connection(packet, flow);
        let backwards = matches!(packet.content, TappedContent::Ack(_) | TappedContent::Report(_));
        let [mut hosts, mut ports] = [connection.hosts, connection.ports.map(u32::from)];
        if backwards {
            hosts.reverse();
            ports.reverse();
        }
        let ports = ports.map(|port| u16::try_from(port).unwrap_or_default());
        let header = match flow.protocol {
            TappedProtocol::Tcp { header, .. } => header,
            _ => 0,
        };
        let (ecn, class) = (packet.ecn, packet.class);
        let v6 = header >= IPV6_FROM;
        let mut network = Network { v6, hosts, ecn, class, protocol: IpNumber::TCP };
        let (tcp, payload) = match (packet.content, flow.protocol) {
            (TappedContent::Segment(segment), TappedProtocol::Tcp { .. }) => {
                segment_header(&segment, flow, &connection)
            }
            (TappedContent::Ack(ack), TappedProtocol::Tcp { .. }) => {
                let opens = !connection.answered && ack.ack == 1;
                if let Some(state) = self.connections.get_mut(&(packet.flow, packet.connection)) {
                    state.answered = true;
                    // The clock of the receiver: never 0.
                    state.echo = cast::low32(ms + 1);
                }
                (ack_header(&ack, flow, opens || ack.syn, ms), 0)
            }
            (content, _) => {
                network.protocol = IpNumber::UDP;
                return self.datagram(&network, ports, wire_bytes(&content), out);
            }
        };
        let [source_port, destination_port] = ports;
        let mut tcp = TcpHeader { source_port, destination_port, ..tcp };
        let length = tcp.header_len() + payload;
        let (sum, total) = self.ip(&network, length, out);
        tcp.checksum = 0;
        tcp.checksum = sum.add_slice(&tcp.to_bytes()).ones_complement().to_be();
        out.extend(tcp.to_bytes());
        total
    }

    /// Appends IP and UDP header of a datagram of `bytes` bytes; returns its length.
    fn datagram(
        &mut self,
        network: &Network,
        [source_port, destination_port]: [u16; 2],
        bytes: u32,
        out: &mut Vec<u8>,
    ) -> u32 {
        let length = u16::try_from(bytes.saturating_sub(20)).unwrap_or(u16::MAX - 20);
        let length = length.max(8);
        let (sum, total) = self.ip(network, usize::from(length), out);
        let mut udp = UdpHeader { source_port, destination_port, length, checksum: 0 };
        let checksum = sum.add_slice(&udp.to_bytes()).to_ones_complement_with_no_zero();
        udp.checksum = checksum.to_be();
        out.extend(udp.to_bytes());
        total
    }

    /// Appends an IP header for `length` bytes behind it; returns the sum of the pseudo-header and
    /// the length of the packet.
    fn ip(&mut self, network: &Network, length: usize, out: &mut Vec<u8>) -> (Sum16BitWords, u32) {
        let length = u16::try_from(length).unwrap_or(u16::MAX - 40);
        let [from, to] = network.hosts;
        let traffic = (network.class & 63) as u8;
        let sum = Sum16BitWords::new().add_2bytes([0, network.protocol.0]);
        let sum = sum.add_2bytes(length.to_be_bytes());
        if network.v6 {
            let header = Ipv6Header {
                traffic_class: traffic << 2 | network.ecn as u8,
                flow_label: Ipv6FlowLabel::ZERO,
                payload_length: length,
                next_header: network.protocol,
                hop_limit: 64,
                source: address_6(from),
                destination: address_6(to),
            };
            out.extend(header.to_bytes());
            let sum = sum.add_slice(&header.source).add_slice(&header.destination);
            return (sum, u32::from(length) + 40);
        }
        self.number = self.number.wrapping_add(1);
        let mut header = Ipv4Header {
            dscp: IpDscp::try_new(traffic).unwrap_or_default(),
            ecn: IpEcn::try_new(network.ecn as u8).unwrap_or_default(),
            total_len: length + 20,
            identification: self.number,
            dont_fragment: true,
            time_to_live: 64,
            protocol: network.protocol,
            source: (NETWORK + from).to_be_bytes(),
            destination: (NETWORK + to).to_be_bytes(),
            ..Ipv4Header::default()
        };
        header.header_checksum = header.calc_header_checksum();
        out.extend(header.to_bytes());
        let sum = sum.add_4bytes_of(header.source).add_4bytes_of(header.destination);
        (sum, u32::from(length) + 20)
    }

    /// Ports and state of the connection of a packet; a new connection gets ports of its own.
    fn connection(&mut self, packet: &TappedPacket, flow: &TappedFlow) -> Connection {
        let key = (packet.flow, packet.connection);
        if let Some(connection) = self.connections.get(&key) {
            return *connection;
        }
        let hosts = flow.hosts.map(|host| {
            let next = cast::number(self.hosts.len()) + 1;
            *self.hosts.entry(host).or_insert(next)
        });
        let count = self.pairs.entry(hosts).or_default();
        let ports = [FIRST_PORT + *count % PORTS, DESTINATION_PORT + *count / PORTS];
        *count += 1;
        let ports = ports.map(|port| u16::try_from(port).unwrap_or_default());
        let connection = Connection { hosts, ports, echo: 0, answered: false };
        self.connections.insert(key, connection);
        let old = (packet.flow, 0)..(packet.flow, packet.connection.saturating_sub(KEPT));
        let old: Vec<_> = self.connections.range(old).map(|(key, _)| *key).collect();
        old.iter().for_each(|key| _ = self.connections.remove(key));
        connection
    }
}

/// Sums of addresses; `etherparse` changes its sum in place for four bytes.
trait AddAddress {
    fn add_4bytes_of(self, address: [u8; 4]) -> Self;
}

impl AddAddress for Sum16BitWords {
    fn add_4bytes_of(mut self, address: [u8; 4]) -> Sum16BitWords {
        self.add_4bytes(address)
    }
}

fn address_6(host: u32) -> [u8; 16] {
    let mut address = [0; 16];
    address[..4].copy_from_slice(&NETWORK_6);
    address[12..].copy_from_slice(&host.to_be_bytes());
    address
}

/// Length on the wire of what is sent over UDP, bytes.
fn wire_bytes(content: &TappedContent) -> u32 {
    match content {
        TappedContent::Segment(segment) => segment.wire_bytes.into(),
        TappedContent::Ack(ack) => ack.wire.max(28).into(),
        TappedContent::Datagram(bytes) | TappedContent::Report(bytes) => *bytes,
        _ => 0,
    }
}

/// Position in the byte stream of sequence number `number`; the SYN is 0.
fn position(number: u64, unit: u32) -> u32 {
    cast::low32(if number == 0 { 0 } else { 1 + (number - 1) * u64::from(unit) })
}

/// Bytes for TCP options in headers of `header` bytes, of a flow whose data has `of_data` bytes.
fn room(header: u32, of_data: u32) -> usize {
    let ip = if of_data >= IPV6_FROM { 40 } else { 20 };
    (header.saturating_sub(ip + 20).min(40) & !3) as usize
}

/// Header of a segment from sender to receiver, without ports and checksum; and its payload in
/// bytes.
fn segment_header(
    segment: &Segment,
    flow: &TappedFlow,
    connection: &Connection,
) -> (TcpHeader, usize) {
    let TappedProtocol::Tcp { unit, header, payload, timestamps, ecn } = flow.protocol else {
        return (TcpHeader::default(), 0);
    };
    let wire = u32::from(segment.wire_bytes);
    let accurate = ecn == Some(EcnFeedback::Accurate);
    let mut options = Vec::with_capacity(40);
    let size = if segment.syn {
        syn_options(
            room(wire, header),
            payload,
            timestamps.then_some([segment.timestamp, 0]),
            &mut options,
        );
        room(wire, header)
    } else {
        if timestamps && room(header, header) >= 12 {
            timestamp_option([segment.timestamp, connection.echo], &mut options);
        }
        room(header, header)
    };
    options.resize(size.max(options.len()), NOP);
    let offers = segment.syn && ecn.is_some();
    let mut tcp = TcpHeader {
        sequence_number: position(segment.seq, unit),
        acknowledgment_number: u32::from(!segment.syn),
        syn: segment.syn,
        ack: !segment.syn,
        fin: segment.fin,
        psh: segment.push,
        window_size: u16::MAX,
        // The sender receives no marked packets: its counter has its initial value, 5.
        ns: accurate,
        cwr: offers || !accurate && segment.cwr,
        ece: offers || accurate,
        ..TcpHeader::default()
    };
    tcp.set_options_raw(&options).expect("at most 40 bytes");
    let data = if segment.syn { 0 } else { wire.saturating_sub(header) };
    (tcp, data as usize)
}

/// Header of an acknowledgement, without ports and checksum. `syn` is true for the answer to a SYN.
fn ack_header(ack: &Ack, flow: &TappedFlow, syn: bool, ms: u64) -> TcpHeader {
    let TappedProtocol::Tcp { unit, header, payload, timestamps, ecn } = flow.protocol else {
        return TcpHeader::default();
    };
    let clock = [cast::low32(ms + 1), ack.echo];
    let accurate = ecn == Some(EcnFeedback::Accurate);
    let mut options = Vec::with_capacity(40);
    let mut size = room(header, header);
    if syn {
        size = room(u32::from(ack.wire).max(header), header);
        syn_options(size, payload, timestamps.then_some(clock), &mut options);
    } else {
        let blocks = &ack.sacks[..usize::from(ack.blocks).min(ack.sacks.len())];
        let with_clock = timestamps && size >= 12;
        match (with_clock, blocks) {
            (true, []) => timestamp_option(clock, &mut options),
            // Without padding between them, as the simulator counts their bytes.
            (true, _) => options.extend(timestamp_bytes(clock)),
            (false, []) => {}
            (false, _) => options.extend([NOP, NOP]),
        }
        if !blocks.is_empty() {
            options.extend([SACK, u8::try_from(2 + 8 * blocks.len()).unwrap_or_default()]);
            let edges = blocks.iter().flat_map(|(start, end)| [*start, *end]);
            options.extend(edges.flat_map(|edge| position(edge, unit).to_be_bytes()));
        }
    }
    options.resize(size.max(options.len()), NOP);
    let counter = (ack.ce_packets + 5) & 7;
    let [ns, cwr, ece] = match (syn, ecn) {
        (_, None) => [false; 3],
        (true, Some(EcnFeedback::Accurate)) => [false, true, false],
        (true, Some(_)) => [false, false, true],
        (false, Some(_)) if accurate => [4, 2, 1].map(|bit| counter & bit != 0),
        (false, Some(_)) => [false, false, ack.ece],
    };
    let mut tcp = TcpHeader {
        sequence_number: u32::from(!syn),
        acknowledgment_number: position(ack.ack, unit),
        syn,
        ack: true,
        window_size: u16::MAX,
        ns,
        cwr,
        ece,
        ..TcpHeader::default()
    };
    tcp.set_options_raw(&options).expect("at most 40 bytes");
    tcp
}

/// Appends the options of a SYN that fit into `size` bytes.
fn syn_options(size: usize, mss: u32, clock: Option<[u32; 2]>, options: &mut Vec<u8>) {
    let mss = u16::try_from(mss).unwrap_or(u16::MAX).to_be_bytes();
    let scale = [SCALE, 3, WINDOW_SCALE];
    if size >= 4 {
        options.extend([MSS, 4, mss[0], mss[1]]);
    }
    match clock {
        Some(clock) if size >= 20 => {
            options.extend([SACK_PERMITTED, 2]);
            options.extend(timestamp_bytes(clock));
            options.push(NOP);
            options.extend(scale);
        }
        _ if size >= 12 => {
            options.extend([SACK_PERMITTED, 2, NOP, NOP, NOP]);
            options.extend(scale);
        }
        _ if size >= 8 => {
            options.push(NOP);
            options.extend(scale);
        }
        _ => {}
    }
}

fn timestamp_option(clock: [u32; 2], options: &mut Vec<u8>) {
    options.extend([NOP, NOP]);
    options.extend(timestamp_bytes(clock));
}

fn timestamp_bytes([value, echo]: [u32; 2]) -> [u8; 10] {
    let ([a, b, c, d], [e, f, g, h]) = (value.to_be_bytes(), echo.to_be_bytes());
    [TIMESTAMPS, 10, a, b, c, d, e, f, g, h]
}
