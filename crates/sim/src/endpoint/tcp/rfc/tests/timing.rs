//! Round-trip times during loss recovery (RFC 6298 §3).

use super::*;

/// The first of ten segments is lost. Its retransmission cancels its timing, and new data is timed
/// next. The sample ends with the selective ack: 180 ms after one of 100 ms is a smoothed 110 ms.
#[test]
fn new_data_is_timed_in_recovery_until_its_selective_ack() {
    let mut t = Test::new("sack", &[]);
    t.write(100, 30_000);
    assert_eq!(t.sender.rtt_segment, Some((1_001, at(100))));
    for end in [2_001, 3_001, 4_001] {
        t.ack(200, 1, &[(1_001, end)]);
    }
    assert_eq!((t.sender.state, t.sender.rtt_segment), (Recovery, None));
    t.ack(210, 1, &[(1_001, 10_001)]);
    assert_eq!(t.sender.rtt_segment, Some((13_001, at(210))));
    t.ack(389, 1, &[(1_001, 12_501)]);
    assert_eq!(t.sender.rtt.srtt(), Some(Span::ms(100)), "a part of it");
    t.ack(390, 1, &[(1_001, 13_001)]);
    assert_eq!((t.sender.state, t.sender.rtt.srtt()), (Recovery, Some(Span::ms(110))));
}

/// Without SACK the ack that ends the recovery gives the sample: 100 and 180 ms are 110 ms.
#[test]
fn a_sample_in_recovery_ends_the_backoff() {
    let mut t = Test::new("newreno", &[("rto_min", "200ms")]);
    t.write(100, 30_000);
    t.sender.rtt.back_off();
    assert_eq!(t.sender.rto(), Span::ms(600));
    (0..9).for_each(|_| t.ack(200, 1, &[]));
    assert_eq!(t.sender.rtt_segment, Some((13_001, at(200))));
    t.ack(380, 14_001, &[]);
    assert_eq!((t.sender.state, t.sender.rtt.srtt()), (Open, Some(Span::ms(110))));
    assert_eq!(t.sender.rto(), Span::ms(340), "110 and 4 times 57.5 ms");
}

/// Karn's algorithm: an ack of a segment of which a part was sent twice is ambiguous.
#[test]
fn a_retransmission_cancels_the_timing_of_what_it_covers() {
    for (seq, cancels) in [(1, false), (1_001, false), (1_002, true), (2_001, true), (3_000, true)]
    {
        let mut t = Test::new("newreno", &[]);
        t.write(100, 5_000);
        t.sender.rtt_segment = Some((3_001, at(100))); // 2,001 to 3,000
        t.sender.output(at(150), seq, 1_000, &mut t.out);
        assert_eq!(t.sender.rtt_segment.is_none(), cancels, "{seq}");
    }
    let mut t = Test::new("newreno", &[]);
    t.write(100, 5_000);
    t.sender.rtt_segment = Some((3_001, at(100)));
    t.sender.output(at(150), 3_001, 1_000, &mut t.out);
    assert!(t.sender.rtt_segment.is_some(), "starts after it");
}
