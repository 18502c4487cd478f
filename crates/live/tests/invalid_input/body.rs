//! Body of the fuzz target `packet`: arbitrary bytes as packets of a link.

use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;
use sojourn_aqm::{Link, LinkSpec, Rate, Setting, Span, Time};
use sojourn_live::network::{FIRST_HOST, HostPair};
use sojourn_live::offload::{Join, Run, Segments, VNET_BYTES};
use sojourn_live::pool::BUFFER_BYTES;
use sojourn_live::pump::{Framing, Transport};
use sojourn_live::{Direction, DirectionConfig, Network, NetworkConfig, Route, TimedLink, ip};

/// Sends packets made of `bytes` through a link: none causes a panic, and each is accounted for.
/// The bytes are packets one after the other, each preceded by its length.
pub fn check_link_and_network(bytes: &[u8]) {
    check_network(bytes);
    check_offload(bytes);
    let mut hop = Direction::new(DirectionConfig {
        timed_link: timed_link(),
        hash_key: 1,
        framing: Framing::Ip,
    });
    let (mut now, mut accepted, mut valid) = (Time::ZERO, 0, 0);
    let mut rest = bytes;
    while let Some((length, after)) = rest.split_first() {
        let (packet, after) = after.split_at(after.len().min(usize::from(*length)));
        rest = after;
        check_mark(packet);
        valid += u64::from(ip::read(packet, 7).is_ok());
        hop.receive_buffer()[..packet.len()].copy_from_slice(packet);
        hop.accept(now, packet.len());
        accepted += 1;
        now += Span::us(u64::from(*length) * 20);
        deliver(&mut hop, now);
    }
    deliver(&mut hop, now + Span::s(10));
    assert_eq!(hop.packets_held(), 0);
    let (arrived, lost) = (hop.link().stats().arrived_packets, hop.link().stats().dropped());
    assert_eq!((arrived, arrived + hop.counts().malformed), (valid, accepted));
    assert_eq!(hop.counts().delivered + lost, arrived);
}

/// The same as a read from a device with segmentation offload. Packets that are joined are split
/// into the same packets.
fn check_offload(bytes: &[u8]) {
    let mut packets = Vec::new();
    let mut buffer = [0; BUFFER_BYTES];
    let mut segments = Segments::of(bytes);
    while let Some(len) = segments.as_mut().and_then(|segments| segments.next(&mut buffer)) {
        packets.push(buffer[..len].to_vec());
    }
    assert_eq!(packets.is_empty(), segments.is_none());
    let Some(mut run) = packets.first().and_then(|first| Run::start(first)) else { return };
    let tcp = VNET_BYTES + usize::from(u16::from_ne_bytes([bytes[6], bytes[7]]));
    let sums = [&bytes[VNET_BYTES + 10..][..2], &bytes[tcp + 16..][..2]];
    if sums.iter().any(|sum| [[0, 0], [255, 255]].contains(&[sum[0], sum[1]])) {
        return; // zero has two forms in a ones' complement sum; valid packets do not have it
    }
    let joined = packets[1..].iter().take_while(|packet| run.join(packet) == Join::Joined).count();
    let (header, skip) = (run.finish().to_vec(), run.header_bytes());
    let payloads = packets[..=joined].iter().flat_map(|packet| &packet[skip..]);
    let whole: Vec<u8> = header.iter().chain(payloads).copied().collect();
    let mut again = Segments::of(&whole).expect("a run is valid");
    for packet in &packets[..=joined] {
        let len = again.next(&mut buffer).expect("as many packets");
        assert_eq!(buffer[..len], packet[..]);
    }
}

fn timed_link() -> TimedLink {
    let link = LinkSpec::new(Rate(1_000_000), Span::ms(1));
    let settings = [("limit", Setting::Text("20p")), ("ecn", Setting::Flag(true))];
    let qdisc = sojourn_aqm::build("codel", &settings, link.rate).unwrap().qdisc;
    TimedLink::new(Link::new(link, qdisc, Pcg64Mcg::seed_from_u64(1)).unwrap())
}

/// The same in a network of hosts; most packets get valid addresses.
fn check_network(bytes: &[u8]) {
    let mut lossy = timed_link();
    let mut third = (0..3).cycle();
    lossy.set_loss(Box::new(move || third.next() == Some(0)));
    let route = |path: &[usize]| Route { path: path.to_vec(), delay: Span::ms(3) };
    let pair = HostPair { routes: [route(&[1, 0]), route(&[])], class: 0, hosts: [1, 2] };
    let (pairs, end) = (vec![pair.clone(), pair], Time::ZERO + Span::s(1000));
    let links = vec![timed_link(), lossy];
    let mut net =
        Network::new(NetworkConfig { links, pairs, warm: Time::ZERO, end, sample: None, salt: 1 });
    let (mut now, mut accepted) = (Time::ZERO, 0);
    let mut rest = bytes;
    while let Some((length, after)) = rest.split_first() {
        let (packet, after) = after.split_at(after.len().min(usize::from(*length)));
        rest = after;
        let (end, mut packet) = (usize::from(*length) & 1, packet.to_vec());
        if let Some(addresses) = packet.get_mut(12..20).filter(|_| length & 6 != 0) {
            let host = (FIRST_HOST + u32::from(length >> 3 & 3)).to_be_bytes()[3];
            let (from, to) = (18 + end as u8, 19 - end as u8);
            addresses.copy_from_slice(&[198, from, 0, host, 198, to, 0, host]);
        }
        net.receive_buffer()[..packet.len()].copy_from_slice(&packet);
        net.accept(end, now, packet.len());
        accepted += 1;
        now += Span::us(u64::from(*length) * 20);
        deliver_all(&mut net, now);
    }
    deliver_all(&mut net, now + Span::s(10));
    assert_eq!(net.packets_held(), 0);
    let lost =
        |timed_link: &mut TimedLink| timed_link.link.stats().dropped() + timed_link.randomly_lost;
    let lost: u64 = net.links().iter_mut().map(lost).sum();
    assert_eq!(net.counts().malformed + net.counts().delivered + lost, accepted);
}

fn deliver_all(net: &mut Network, now: Time) {
    while let Some(due) = net.next_delivery(now) {
        let (to, bytes) = net.delivery_bytes(&due);
        assert!(to < 2 && ip::parse_between_hosts(bytes).is_some());
        net.on_written(due, now, false);
    }
}

fn deliver(hop: &mut Direction, now: Time) {
    while let Some(due) = hop.next_delivery(now) {
        assert!(ip::read(hop.delivery_bytes(&due), 7).is_ok());
        hop.on_written(due, now, false);
    }
}

/// Checks that a mark changes only the ECN field and, for IPv4, the checksum.
fn check_mark(packet: &[u8]) {
    let Ok(before) = ip::read(packet, 7) else { return };
    let mut marked = packet.to_vec();
    ip::mark(&mut marked);
    let after = ip::read(&marked, 7).expect("a marked packet is valid");
    assert_eq!((after.class, after.hash), (before.class, before.hash));
    assert_eq!(after.ecn, sojourn_aqm::Ecn::Ce);
    let changed = |i: &usize| marked[*i] != packet[*i];
    let allowed: &[usize] = if packet[0] >> 4 == 4 { &[1, 10, 11] } else { &[1] };
    assert!((0..packet.len()).filter(changed).all(|i| allowed.contains(&i)));
    if packet[0] >> 4 == 4 && checksum(packet) == 0xffff {
        assert_eq!(checksum(&marked), 0xffff, "a valid checksum stays valid");
    }
}

/// Ones' complement sum of an IPv4 header: 0xffff if the checksum is valid.
fn checksum(packet: &[u8]) -> u16 {
    let header = &packet[..usize::from(packet[0] & 15) * 4];
    let words = header.as_chunks().0.iter().map(|w| u32::from(u16::from_be_bytes(*w)));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    ((folded & 0xffff) + (folded >> 16)) as u16
}
