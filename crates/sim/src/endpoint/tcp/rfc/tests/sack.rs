//! Loss recovery with SACK (RFC 6675): segments of 1000 B.

use super::*;

/// A sender that has sent `segments` segments, all of its data, with a window of ten.
fn all_sent(segments: u64) -> Test {
    let mut t = Test::new("sack", &[]);
    t.write(100, segments * 1_000);
    assert_eq!(t.sent().len() as u64, segments);
    t
}

/// IsLost: more than two segments above the first one have arrived.
#[test]
fn one_ack_can_show_a_loss() {
    let mut t = all_sent(10);
    t.ack(200, 1, &[(1_001, 3_001)]);
    assert_eq!((t.sender.state, t.sender.dup_acks()), (Open, 1), "two segments are not enough");
    let mut t = all_sent(10);
    t.ack(200, 1, &[(1_001, 4_001)]);
    assert_eq!((t.sender.state, t.sender.dup_acks(), t.sent()), (Recovery, 1, vec![1]));
}

/// RFC 8985 section 6.2, step 4: with fewer than three segments selectively acknowledged, the first
/// one may be late; with three, it is lost.
#[test]
fn three_segments_end_the_patience_of_rack() {
    for (sacked, state, sent) in [(3_001, Open, vec![]), (4_001, Recovery, vec![1])] {
        let mut t = Test::new("sack", &[("rack", "true"), ("reordering_window", "true")]);
        t.write(100, 10_000);
        assert_eq!(t.sent().len(), 10);
        t.ack(200, 1, &[(1_001, sacked)]);
        assert_eq!((t.sender.state, t.sent()), (state, sent), "{sacked}");
    }
}

/// Section 5 (C) and NextSeg (1): lost holes are sent in order, each once and no longer than it is,
/// as the pipe allows; without new data, too.
#[test]
fn each_hole_is_retransmitted_once() {
    let mut t = all_sent(10);
    (1..=3).for_each(|i| t.ack(200 + i, 1, &[(2_001, 2_001 + 1_000 * i)]));
    assert_eq!(t.sent(), [1], "five of ten segments may be in the network");
    t.ack(210, 1, &[(2_001, 7_001)]);
    assert_eq!(t.sent(), [1_001], "1 and 7001 to 10001 are in the network: four");
    t.ack(220, 1, &[(2_001, 8_001)]);
    assert_eq!(t.sent(), [0; 0]);

    let mut t = Test::new("sack", &[]);
    (0..6).for_each(|_| t.write(100, 200));
    t.sent();
    t.ack(200, 1, &[(201, 401)]);
    t.ack(201, 1, &[(601, 801), (201, 401)]);
    t.ack(202, 1, &[(1_001, 1_201), (601, 801), (201, 401)]);
    let again: Vec<_> = t.out.iter().map(|s| (s.seq, s.len)).collect();
    assert_eq!(again[0], (1, 200), "not beyond the hole");
}

/// RFC 3042, in RFC 6675 section 5 (3): new data for the first two duplicate acks only if limited
/// transmit is in use; it is not part of the flight size that is halved.
#[test]
fn limited_transmit_is_an_option_and_does_not_count() {
    let mut t = Test::new("sack", &[("limited_transmit", "false")]);
    t.write(100, 30_000);
    assert_eq!(t.sent().len(), 10);
    (1..=2).for_each(|i| t.ack(200 + i, 1, &[(1_001, 1_001 + 1_000 * i)]));
    assert_eq!(t.sent(), [0; 0]);
    t.ack(210, 1, &[(1_001, 8_001)]);
    assert_eq!(t.sent(), [1, 10_001, 11_001], "recovery: five segments, two are in the network");

    let mut t = Test::new("sack", &[]);
    t.sender.window.cwnd = 10_500;
    t.write(100, 20_000);
    assert_eq!(t.sent().len(), 10);
    (1..=3).for_each(|i| t.ack(200 + i, 1, &[(1_001, 1_001 + 1_000 * i)]));
    assert_eq!(t.sent(), [10_001, 11_001, 1]);
    assert!(t.calls().contains(&Call::Congestion(10_000, CongestionSignal::Loss)));
}

/// NextSeg (4): if nothing else can be sent after a partial ack, the end of the last hole is sent,
/// once per recovery.
#[test]
fn the_last_segment_is_rescued_after_a_partial_ack() {
    for (sacked, start) in [(9_001, 9_001), (8_001, 9_001), (8_501, 9_001)] {
        let mut t = all_sent(10);
        (1..=3).for_each(|i| t.ack(200 + i, 1, &[(1_001, 1_001 + 1_000 * i)]));
        t.ack(210, 1, &[(1_001, sacked)]);
        assert_eq!(t.sent(), [1], "before a partial ack");
        t.ack(300, sacked, &[]);
        let again: Vec<_> = t.out.drain(..).map(|s| (s.seq, s.len)).collect();
        assert_eq!((t.sender.state, again), (Recovery, vec![(start, 1_000)]), "{sacked}");
        t.ack(310, sacked + 200, &[]);
        assert_eq!((t.sender.state, t.sent()), (Recovery, vec![]), "once");
        t.ack(320, 10_001, &[]);
        assert_eq!(t.sender.state, Open);
    }
}
