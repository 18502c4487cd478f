//! Packets without payload: the ack of the handshake, the FIN, and the ack of the receiver's FIN.

use super::*;

const FIN: &[(&str, &str)] = &[
    ("rack", "true"),
    ("rtt_per_ack", "true"),
    ("rto_min", "200ms"),
    ("tlp", "true"),
    ("count_packets", "true"),
    ("fin", "true"),
];

/// A connection of `bytes`, closed before its handshake ends after 100 ms.
fn closed(bytes: u64, settings: &[(&str, &'static str)]) -> Test {
    let mut t = Test::opened("sack", settings);
    t.sent();
    t.write(0, bytes);
    t.sender.close(at(0), &mut t.out);
    assert!(t.out.is_empty(), "nothing before the handshake");
    t.ack(100, 1, &[]);
    t
}

/// First byte, length, size on the wire, and true for a FIN, of the segments sent.
fn packets(t: &mut Test) -> Vec<(u64, u16, u16, bool)> {
    t.out.drain(..).map(|s| (s.seq, s.len, s.wire_bytes, s.fin)).collect()
}

#[test]
fn a_short_transfer_has_three_packets_without_payload() {
    let mut t = closed(1_500, FIN);
    let data = [(1, 1_000, 1_040, false), (1_001, 500, 540, false)];
    assert_eq!(
        packets(&mut t),
        [&[(1, 0, 40, false)], &data[..], &[(1_501, 1, 40, true)]].concat()
    );
    assert_eq!(t.sender.stats().sent_packets, 3, "the SYN and the data");
    t.ack(200, 1_501, &[]);
    assert!((t.sender.acked_bytes(), t.sender.done()) == (1_500, false) && t.out.is_empty());
    t.ack(210, 1_502, &[]);
    assert_eq!((t.sender.acked_bytes(), t.sender.done()), (1_500, true));
    assert_eq!(packets(&mut t), [(1_502, 0, 40, false)], "the ack of the receiver's FIN");
    t.ack(220, 1_502, &[]);
    assert!(t.out.is_empty() && t.sender.timer() == Time::NEVER);
    // The next connection has its own.
    t.sender.open(at(300), &mut t.out);
    t.sent();
    t.ack(400, 1, &[]);
    assert_eq!(packets(&mut t), [(1, 0, 40, false)]);
    t.write(400, 100);
    t.sender.close(at(400), &mut t.out);
    assert_eq!(packets(&mut t), [(1, 100, 140, false), (101, 1, 40, true)]);
}

#[test]
fn data_that_waits_carries_the_fin() {
    let mut t = closed(10_500, FIN);
    assert_eq!(t.sent().len(), 11, "the window, after the ack of the handshake");
    t.ack(200, 10_001, &[]);
    assert_eq!(packets(&mut t), [(10_001, 500, 540, false)]);
    t.ack(300, 10_501, &[]);
    assert_eq!((t.sender.acked_bytes(), t.sender.done()), (10_500, true));
    assert_eq!(packets(&mut t), [(10_501, 0, 40, false)]);
}

/// A FIN is a packet of the window: with all data sent, it waits for room.
#[test]
fn a_fin_waits_for_the_window() {
    let mut t = closed(10_000, FIN);
    assert_eq!(t.sent().len(), 11);
    t.ack(200, 1_001, &[]);
    assert_eq!(packets(&mut t), [(10_001, 1, 40, true)]);
}

#[test]
fn a_lost_fin_is_repeated_by_the_probe_and_shows_lost_data() {
    let mut t = closed(3_000, FIN);
    t.sent();
    t.timer(302);
    assert_eq!(packets(&mut t), [(3_001, 1, 40, true)], "the last segment");
    t.ack(402, 1, &[(3_001, 3_002)]);
    assert_eq!(t.sent(), [1, 1_001, 2_001], "RACK: sent before the FIN");
    assert_eq!(t.sender.stats().retransmitted_packets, 3, "the FIN is none");
    t.ack(500, 3_002, &[]);
    assert_eq!((t.sender.acked_bytes(), t.sent()), (3_000, vec![3_002]));
}

/// RFC 3168 section 6.1.4: no ack is ECN-capable. The first data after a mark has CWR, the FIN has
/// not.
#[test]
fn packets_without_payload_have_no_ecn_unless_the_control_requires_it() {
    for fraction in [false, true] {
        let mut t = Test::opened("sack", &[FIN, &[("ecn", "true")]].concat());
        t.sender.control.fraction = fraction;
        t.sent();
        t.ack(100, 1, &[]);
        assert_eq!(t.out.pop().map(|s| s.ect), Some(fraction));
        t.write(100, 500);
        t.sender.cwr = true;
        t.write(100, 500);
        t.sender.cwr = true;
        t.sender.close(at(100), &mut t.out);
        let bits: Vec<_> = t.out.iter().map(|s| (s.fin, s.ect, s.cwr)).collect();
        assert_eq!(bits, [(false, true, false), (false, true, true), (true, fraction, false)]);
        assert!(t.sender.cwr, "for the next data");
    }
}

#[test]
fn without_the_setting_all_packets_have_payload() {
    let mut t = closed(1_500, &FIN[..5]);
    assert_eq!(packets(&mut t), [(1, 1_000, 1_040, false), (1_001, 500, 540, false)]);
    t.ack(200, 1_501, &[]);
    assert!(t.sender.done() && t.out.is_empty());
}
