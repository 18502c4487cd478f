//! The handshake when SYNs are lost or late.

use super::*;

/// Settings of the handshake in Linux, without its timeouts.
const LINUX: &[(&str, &str)] =
    &[("rack", "true"), ("linux_syn", "true"), ("rtt_per_ack", "true"), ("timestamps", "true")];

/// Expires the timer when it is due, `count` times; returns the times in s.
fn timeouts(t: &mut Test, count: usize) -> Vec<u64> {
    let expire = |_| {
        let due = t.sender.timer();
        t.sender.on_timer(due, &mut t.out);
        due.0 / Span::s(1).0
    };
    (0..count).map(expire).collect()
}

/// RFC 6298 (5.5) doubles the timeout each time, Linux from the fifth time on.
#[test]
fn in_linux_four_timeouts_of_a_syn_are_of_equal_length() {
    let mut t = Test::opened("sack", LINUX);
    assert_eq!(timeouts(&mut t, 7), [1, 2, 3, 4, 5, 7, 11]);
    assert_eq!(t.sender.stats().timeouts, 7);
    // The next connection counts anew.
    t.sender.open(at(20_000), &mut t.out);
    assert_eq!(timeouts(&mut t, 6), [21, 22, 23, 24, 25, 27]);
    let mut rfc = Test::opened("sack", &[("rack", "true")]);
    assert_eq!(timeouts(&mut rfc, 4), [1, 3, 7, 15]);
}

/// RFC 5681 section 3.1: one lost SYN reduces the initial window to a segment; in Linux, two do.
#[test]
fn lost_syns_reduce_the_initial_window() {
    for (settings, lost, cwnd) in
        [(LINUX, 0, 10_000), (LINUX, 1, 10_000), (LINUX, 2, 1_000), (&[][..], 1, 1_000)]
    {
        let mut t = Test::opened("sack", settings);
        let sent_at = timeouts(&mut t, lost).last().map_or(0, |s| 1_000 * s);
        let echo = u32::try_from(sent_at).unwrap();
        t.receive(sent_at + 40, Ack { ack: 1, echo, ..Ack::default() }, &[]);
        assert_eq!(t.sender.window.cwnd, cwnd, "{lost}");
    }
}

/// The echoed timestamp gives the round-trip time of a SYN that was sent again: 40 ms, and a
/// timeout of 240 ms. Without it the timeout is 3 s (RFC 6298 (5.7)).
#[test]
fn the_answer_to_a_second_syn_gives_a_round_trip_time() {
    let mut t = Test::opened("sack", &[LINUX, &[("rto_min", "200ms")]].concat());
    t.timer(1_000);
    t.receive(1_040, Ack { ack: 1, echo: 1_000, ..Ack::default() }, &[]);
    assert_eq!((t.sender.srtt(), t.sender.rto()), (Some(Span::ms(40)), Span::ms(240)));
    assert!(t.calls().contains(&Call::Established(Some(40 * MS))));
    let mut t = Test::opened("sack", &LINUX[..3]);
    t.timer(1_000);
    t.ack(1_040, 1, &[]);
    assert_eq!((t.sender.srtt(), t.sender.rto()), (None, Span::s(3)), "no timestamps");
}

/// The answer to the first SYN comes after 2.5 s, with its echo, when two more were sent.
#[test]
fn a_late_syn_is_not_a_lost_one() {
    let settings = [LINUX, &[("ecn", "true"), ("ecn_fallback", "true")]].concat();
    for (echo, cwnd, ecn) in [(5_000, 10_000, true), (6_000, 1_000, false)] {
        let mut t = Test::opened("sack", &settings);
        t.sender.open(at(5_000), &mut t.out);
        timeouts(&mut t, 2);
        assert!(!t.sender.ecn);
        t.receive(7_500, Ack { ack: 1, echo, ..Ack::default() }, &[]);
        assert_eq!((t.sender.window.cwnd, t.sender.ecn), (cwnd, ecn), "{echo}");
    }
}

/// Linux's SYN has options for MSS, SACK and window scale: 60 bytes, data 52 without payload.
#[test]
fn a_syn_of_linux_is_longer_than_an_ack() {
    for (settings, bytes) in [(LINUX, 48), (&LINUX[..1], 40)] {
        let mut t = Test::opened("sack", settings);
        t.timer(1_000);
        assert!(t.out.iter().all(|s| s.syn && s.wire_bytes == bytes), "also when sent again");
    }
}
