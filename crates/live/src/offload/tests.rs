//! Worked packets: split, joined, and refused.

use super::*;

/// TCP header of 32 bytes (with a time stamp option) behind an IPv4 or IPv6 header, in front of
/// `payload` bytes that count upwards, with a virtio header of packets of `size` bytes.
fn large(v4: bool, flags: u8, payload: usize, size: usize) -> Vec<u8> {
    let (ip, tcp) = if v4 { (20, 32) } else { (40, 32) };
    let mut p = vec![NEEDS_CHECKSUM, 0];
    let kind = if v4 { TCP_V4 } else { TCP_V6 } | if flags & CWR != 0 { WITH_CWR } else { 0 };
    p[1] = if payload > size { kind } else { 0 };
    let (headers, size) = if payload > size { (ip + tcp, size) } else { (0, 0) };
    p.extend([headers, size, ip, CHECKSUM].iter().flat_map(|n| (*n as u16).to_ne_bytes()));
    if v4 {
        p.extend([0x45, 0x02]);
        p.extend(((ip + tcp + payload) as u16).to_be_bytes());
        p.extend([0xff, 0xfe, 0x40, 0, 64, 6, 0, 0, 198, 18, 0, 2, 198, 18, 0, 1]);
    } else {
        p.extend([0x60, 0x21, 0x23, 0x45]);
        p.extend(((tcp + payload) as u16).to_be_bytes());
        p.extend([6, 64]);
        p.extend((0..32).map(|i| i * 3));
    }
    let at = p.len();
    p.extend([0x9c, 0x40, 0x14, 0x51]); // ports
    p.extend(0xffff_fc00_u32.to_be_bytes()); // wraps after 1024 bytes
    p.extend([0, 0, 4, 210, 0x80, flags, 1, 246, 0, 0, 0, 0]);
    p.extend([1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
    p.extend((0..payload).map(|i| (i % 251) as u8));
    if v4 {
        let sum = !folded(&p[VNET_BYTES..at]);
        set_word(&mut p, VNET_BYTES + 10, sum);
    }
    let sum = pseudo(&p, v4);
    set_word(&mut p, at + CHECKSUM, sum);
    p
}

/// Ones' complement sum of `bytes`, computed from scratch (RFC 1071).
fn folded(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|w| u32::from(w[0]) << 8 | w.get(1).map_or(0, |b| (*b).into()));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Sum of the pseudo-header of `p`, from scratch.
fn pseudo(p: &[u8], v4: bool) -> u16 {
    let ip = &p[VNET_BYTES..];
    let (addresses, tcp) = if v4 { (&ip[12..20], 20) } else { (&ip[8..40], 40) };
    let length = (ip.len() - tcp) as u16;
    folded(&[addresses, &[0, 6], &length.to_be_bytes()].concat())
}

fn split(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut segments = Segments::of(bytes).unwrap();
    let mut frames = Vec::new();
    let mut into = [0xee; BUFFER_BYTES];
    while let Some(len) = segments.next(&mut into) {
        frames.push(into[..len].to_vec());
    }
    frames
}

/// Joins consecutive packets and returns the bytes of one write.
fn join(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut run = Run::start(&packets[0]).unwrap();
    for packet in &packets[1..] {
        assert_eq!(run.join(packet), Join::Joined);
    }
    let skip = run.header_bytes();
    let payloads = packets.iter().flat_map(|packet| &packet[skip..]);
    run.finish().iter().chain(payloads).copied().collect()
}

#[test]
fn each_segment_has_its_headers_and_checksums() {
    for (v4, tcp) in [(true, 30), (false, 50)] {
        let whole = large(v4, CWR | 0x40 | 0x10 | PSH | FIN, 1000 + 1000 + 5, 1000);
        let parts = split(&whole);
        let payloads: Vec<usize> = parts.iter().map(|p| p.len() - tcp - 32).collect();
        assert_eq!(payloads, [1000, 1000, 5]);
        let sequences: Vec<u32> = parts.iter().map(|p| sequence(p, tcp)).collect();
        assert_eq!(sequences, [0xffff_fc00, 0xffff_ffe8, 0x3d0]);
        // ECE and ACK on all, CWR on the first, FIN and PSH on the last.
        let flags: Vec<u8> = parts.iter().map(|p| p[tcp + 13]).collect();
        assert_eq!(flags, [0xd0, 0x50, 0x50 | PSH | FIN]);
        for part in &parts {
            assert_eq!(part[..6], [NEEDS_CHECKSUM, 0, 0, 0, 0, 0], "no virtio segmentation");
            assert_eq!(part[6..10], whole[6..10], "place of the checksum");
            assert_eq!(word(part, tcp + CHECKSUM), pseudo(part, v4));
            assert_eq!(part[tcp + 20..tcp + 32], whole[tcp + 20..tcp + 32], "options");
            if v4 {
                assert_eq!(usize::from(word(part, 12)), part.len() - VNET_BYTES);
                assert_eq!(folded(&part[10..30]), 0xffff, "IPv4 checksum");
            } else {
                assert_eq!(usize::from(word(part, 14)), part.len() - VNET_BYTES - 40);
            }
        }
        if v4 {
            let ids: Vec<u16> = parts.iter().map(|p| word(p, VNET_BYTES + 4)).collect();
            assert_eq!(ids, [0xfffe, 0xffff, 0]);
        }
        let payload: Vec<u8> = parts.iter().flat_map(|p| &p[tcp + 32..]).copied().collect();
        assert_eq!(payload, whole[tcp + 32..]);
    }
}

#[test]
fn joined_segments_are_the_packet_that_was_split() {
    for v4 in [true, false] {
        for flags in [0x10, 0x10 | PSH, 0x50 | CWR, 0x11] {
            for payload in [1001, 2000, 2001, 40_000] {
                let whole = large(v4, flags, payload, 1000);
                assert_eq!(join(&split(&whole)), whole, "{v4} {flags:x} {payload}");
            }
        }
    }
}

#[test]
fn a_packet_with_a_mark_is_not_joined_to_one_without() {
    for v4 in [true, false] {
        let mut parts = split(&large(v4, 0x10, 4000, 1000));
        crate::ip::mark(&mut parts[2][VNET_BYTES..]);
        crate::ip::mark(&mut parts[3][VNET_BYTES..]);
        let mut run = Run::start(&parts[0]).unwrap();
        assert_eq!(run.join(&parts[1]), Join::Joined);
        assert_eq!(run.join(&parts[2]), Join::After);
        let marked = join(&parts[2..]);
        assert_eq!(split(&marked), parts[2..]);
    }
}

#[test]
fn packets_that_the_kernel_would_write_differently_are_not_joined() {
    for (v4, tcp) in [(true, 30), (false, 50)] {
        let parts = split(&large(v4, 0x10, 3000, 1000));
        let changed = |at: usize, to: u8| {
            let mut packet = parts[1].clone();
            packet[at] = to;
            Run::start(&parts[0]).unwrap().join(&packet)
        };
        assert_eq!(changed(tcp + 31, 2), Join::Joined, "the same");
        // Hop limit, acknowledgement, reserved bits, window, urgent pointer, an option.
        let hops = if v4 { VNET_BYTES + 8 } else { VNET_BYTES + 7 };
        for at in [hops, tcp + 11, tcp + 14, tcp + 15, tcp + 19, tcp + 31] {
            assert_eq!(changed(at, 99), Join::After, "{at}");
        }
        assert_eq!(changed(tcp + 12, 0x81), Join::After, "a reserved bit");
        for flag in [SYN, RST, URG, CWR, 0x40] {
            assert_eq!(changed(tcp + 13, 0x10 | flag), Join::After, "{flag:x}");
        }
        if v4 {
            assert_eq!(changed(VNET_BYTES + 5, 0), Join::After, "identification");
            assert_eq!(changed(VNET_BYTES + 6, 0), Join::After, "don't fragment");
        }
        assert_eq!(changed(0, 0), Join::After, "a complete checksum");
        let mut run = Run::start(&parts[0]).unwrap();
        assert_eq!(run.join(&parts[2]), Join::After, "a gap");
        assert_eq!(run.join(&parts[0]), Join::After, "a repetition");
        // Another port or address is another flow.
        for at in [tcp, tcp + 3, tcp - 1, tcp - 8] {
            assert_eq!(changed(at, 77), Join::OtherFlow, "{at}");
        }
    }
}

#[test]
fn a_short_packet_or_one_with_psh_ends_a_run() {
    let mut parts = split(&large(true, 0x10, 2500, 1000));
    let next = parts[1].clone();
    assert_eq!(Run::start(&parts[0]).unwrap().join(&parts[1]), Join::Joined);
    let mut short = Run::start(&parts[1]).unwrap();
    assert_eq!(short.join(&parts[2]), Join::Joined);
    assert_eq!(short.join(&next), Join::After);
    parts[0][30 + 13] |= PSH;
    assert!(Run::start(&parts[0]).is_none());
    assert!(Run::start(&large(true, 0x10, 0, 1000)).is_none(), "an ack");
    // A larger packet cannot follow a smaller one.
    let small = split(&large(true, 0x10, 500, 1000)).remove(0);
    let mut behind = split(&large(true, 0x10, 1000, 1000)).remove(0);
    behind[34..38].copy_from_slice(&sequence(&small, 30).wrapping_add(500).to_be_bytes());
    set_word(&mut behind, 14, word(&small, 14).wrapping_add(1));
    assert_eq!(Run::start(&small).unwrap().join(&behind), Join::After);
    behind.truncate(behind.len() - 500);
    set_word(&mut behind, 12, word(&small, 12));
    assert_eq!(Run::start(&small).unwrap().join(&behind), Join::Joined);
}

#[test]
fn a_run_stays_below_the_longest_packet() {
    let mut whole = large(true, 0x10, 65_000, 1000);
    let mut run = Run::start(&split(&whole)[0]).unwrap();
    let joined = split(&whole)[1..].iter().filter(|p| run.join(p) == Join::Joined).count();
    assert_eq!(joined, RUN_PACKETS - 1);
    whole = large(true, 0x10, 64_600, 1900);
    let parts = split(&whole);
    assert_eq!((parts.len(), join(&parts)), (34, whole));
    let mut next = parts[33].clone();
    let number = sequence(&next, 30).wrapping_add(1900).to_be_bytes();
    next[34..38].copy_from_slice(&number);
    let id = word(&next, 14).wrapping_add(1);
    set_word(&mut next, 14, id);
    let mut run = Run::start(&parts[0]).unwrap();
    assert!(parts[1..].iter().all(|p| run.join(p) == Join::Joined));
    assert_eq!(run.join(&next), Join::After, "66,552 bytes");
}

#[test]
fn other_packets_pass_unchanged_and_malformed_ones_are_refused() {
    let mut small = large(true, 0x10, 100, 1000);
    assert_eq!(split(&small), [small.clone()]);
    small[1] = TCP_V6;
    assert!(Segments::of(&small).is_none(), "IPv6 in IPv4");
    assert!(Segments::of(&small[..9]).is_none());
    let whole = large(false, 0x10, 5000, 1000);
    for (at, value) in [(0, 0), (1, 5), (1, TCP_V4), (6, 41), (8, 6), (15, 9), (62, 0), (62, 0x40)]
    {
        let mut wrong = whole.clone();
        wrong[at] = value;
        assert!(Segments::of(&wrong).is_none(), "{at}: {value}");
    }
    assert!(Segments::of(&whole[..whole.len() - 1]).is_none());
    let mut sizes = whole.clone();
    set_field(&mut sizes, 4, 0);
    assert!(Segments::of(&sizes).is_none());
    set_field(&mut sizes, 4, BUFFER_BYTES);
    assert!(Segments::of(&sizes).is_none());
    for len in 0..whole.len().min(200) {
        let _ = (Segments::of(&whole[..len]), Run::start(&whole[..len]));
    }
}
