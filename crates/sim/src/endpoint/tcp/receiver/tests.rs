//! The receiver alone, with segments made by hand.

use super::super::jiffies::HalfTick;
use super::super::parse;
use super::*;
use sojourn_aqm::params::Setting::{Flag, Text};

fn receiver(profile: &str, delayed: bool) -> Receiver {
    let s = [("profile", Text(profile)), ("delayed_ack", Flag(delayed))];
    let mut r = Receiver::new(&parse("sack", s).unwrap(), &mut HalfTick);
    let syn = r.on_segment(Time::ZERO, &Segment { syn: true, ..Segment::default() }, false);
    assert_eq!(syn.map(|a| (a.ack, a.syn, a.wire)), Some((1, true, 40)), "at once");
    r
}

/// Segment of one unit.
fn at(seq: u64) -> Segment {
    Segment { seq, len: 1, ect: true, ..Segment::default() }
}

fn blocks(ack: Ack) -> (u64, Vec<(u64, u64)>, u16) {
    (ack.ack, ack.sacks[..ack.blocks.into()].to_vec(), ack.wire)
}

#[test]
fn latest_block_comes_first_of_at_most_three() {
    let mut r = receiver("ns2", false);
    let mut take = |seq| blocks(*r.on_segment(Time::ZERO, &at(seq), false).unwrap());
    assert_eq!(take(1), (2, vec![], 40));
    assert_eq!(take(3), (2, vec![(3, 4)], 48));
    assert_eq!(take(5), (2, vec![(5, 6), (3, 4)], 56));
    assert_eq!(take(7), (2, vec![(7, 8), (5, 6), (3, 4)], 64));
    assert_eq!(take(9), (2, vec![(9, 10), (7, 8), (5, 6)], 64));
    assert_eq!(take(4), (2, vec![(3, 6), (9, 10), (7, 8)], 64), "merged");
    assert_eq!(
        take(7),
        (2, vec![(7, 8), (3, 6), (9, 10)], 64),
        "a duplicate also moves its block to the front"
    );
    assert_eq!(take(2), (6, vec![(7, 8), (9, 10)], 56), "in order: no block of its own");
    assert_eq!(take(6), (8, vec![(9, 10)], 48));
    assert_eq!(take(8), (10, vec![], 40));
}

#[test]
fn every_second_in_order_packet_is_acknowledged() {
    for profile in ["rfc", "ns2"] {
        let mut r = receiver(profile, true);
        let mut take = |seq| r.on_segment(Time::ZERO, &at(seq), false).map(|a| a.ack);
        assert_eq!([1, 2, 3, 4].map(&mut take), [None, Some(3), None, Some(5)]);
        assert_eq!(take(5), None);
        assert_eq!(take(8), Some(6), "out of order: acknowledges both at once");
        assert_eq!(take(6), Some(7), "fills a part of the gap");
        assert_eq!(take(7), Some(9), "fills the rest");
        assert_eq!(take(3), Some(9), "below: at once");
        assert_eq!(take(9), None);
    }
}

#[test]
fn delayed_ack_is_sent_by_the_timer() {
    let mut r = receiver("ns2", true);
    assert_eq!(r.on_segment(Time(5), &at(1), false), None);
    assert_eq!(r.timer(), Time(5) + Span::ms(100));
    assert_eq!(r.on_timer(Time(6)), None);
    assert_eq!(r.on_timer(r.timer()).map(|a| a.ack), Some(2));
    assert_eq!(r.timer(), Time::NEVER);
}

#[test]
fn ack_of_a_duplicate_of_the_last_packet_is_delayed_only_in_ns2() {
    for (profile, expected) in [("rfc", [Some(3), None]), ("ns2", [None, Some(4)])] {
        let mut r = receiver(profile, true);
        let mut take = |seq| r.on_segment(Time::ZERO, &at(seq), false).map(|a| a.ack);
        assert_eq!([1, 2].map(&mut take), [None, Some(3)]);
        assert_eq!([2, 3].map(&mut take), expected, "the duplicate leaves no gap");
    }
}

#[test]
fn mark_is_echoed_until_cwr() {
    let mut r = receiver("rfc", false);
    let mut echo =
        |seq, ce, cwr| r.on_segment(Time::ZERO, &Segment { cwr, ..at(seq) }, ce).unwrap().ece;
    assert!(!echo(1, false, false));
    assert!(echo(2, true, false) && echo(3, false, false) && echo(4, false, false));
    assert!(!echo(5, false, true) && !echo(6, false, false));
    assert!(echo(7, true, true), "CWR and a new mark");
}

#[test]
fn bytes_count_once_and_across_connections() {
    let mut r = receiver("ns2", false);
    for seq in [1, 2, 2, 4, 4] {
        r.on_segment(Time::ZERO, &at(seq), false);
    }
    assert_eq!(r.received_in_connection(), 2 * 1460);
    r.on_segment(Time::ZERO, &at(3), false);
    r.reset();
    assert_eq!((r.received_in_connection(), r.delivered_bytes()), (0, 4 * 1460));
    r.on_segment(Time::ZERO, &Segment { syn: true, ..Segment::default() }, false);
    r.on_segment(Time::ZERO, &at(1), false);
    assert_eq!((r.received_in_connection(), r.delivered_bytes()), (1460, 5 * 1460));
}

#[test]
fn dctcp_echoes_every_mark() {
    let s = [("profile", Text("rfc"))];
    let mut r = Receiver::new(&parse("dctcp", s).unwrap(), &mut HalfTick);
    let mut take = |seq, len, ce| {
        let seg = Segment { seq, len, syn: seq == 0, ect: true, ..Segment::default() };
        let first = r.before_segment(&seg, ce).copied();
        let second = r.on_segment(Time::ZERO, &seg, ce).copied();
        let summary = |a: Ack| (a.ack, a.ece);
        (first.map(summary), second.map(summary))
    };
    // (the delayed ack, the segment's own ack), each as (next expected, ECN echo)
    assert_eq!(take(0, 0, true), (None, Some((1, false))), "a mark on a SYN is ignored");
    assert_eq!(take(1, 1, false), (None, None));
    assert_eq!(take(2, 1, false), (None, Some((3, false))));
    assert_eq!(take(3, 1, false), (None, None));
    assert_eq!(take(4, 1, true), (Some((4, false)), Some((5, true))), "marks start");
    assert_eq!(take(5, 1, true), (None, None));
    assert_eq!(take(6, 1, true), (None, Some((7, true))), "delayed as usual");
    assert_eq!(take(7, 1, false), (None, Some((8, false))), "marks end; no ack was delayed");
    assert_eq!(take(8, 1, false), (None, None));
    assert_eq!(take(10, 1, true), (Some((9, false)), Some((9, true))), "out of order too");
}

#[test]
fn accurate_feedback_counts_every_mark() {
    let s = [("ecn", Flag(true)), ("ecn_feedback", Text("accurate"))];
    let mut r = Receiver::new(&parse("sack", s).unwrap(), &mut HalfTick);
    let syn = Segment { syn: true, ect: true, ..Segment::default() };
    let first = r.on_segment(Time::ZERO, &syn, true).copied().unwrap();
    assert_eq!((first.ce_packets, first.ece), (0, false), "SYNs do not count");
    let mut take = |seq, ce| {
        assert_eq!(r.before_segment(&at(seq), ce), None, "no second ack");
        r.on_segment(Time::ZERO, &at(seq), ce).map(|a| (a.ack, a.ce_packets, a.ece))
    };
    assert_eq!(take(1, false), None);
    assert_eq!(take(2, true), Some((3, 1, false)), "as usual");
    assert_eq!(take(3, false), Some((4, 1, false)), "at once: the marks end");
    assert_eq!(take(4, true), Some((5, 2, false)), "at once: the marks start");
    assert_eq!([take(5, true), take(6, true)], [None, Some((7, 4, false))]);
    assert_eq!(take(9, true), Some((7, 5, false)), "out of order");
    assert_eq!(take(9, true), Some((7, 6, false)), "duplicates count: packets, not bytes");
    let not_capable = Segment { ect: false, ..at(7) };
    assert_eq!(r.on_segment(Time::ZERO, &not_capable, true).map(|a| a.ce_packets), Some(6));
    r.reset();
    assert_eq!(r.on_segment(Time::ZERO, &syn, false).map(|a| a.ce_packets), Some(0));
}

#[test]
fn echoed_bytes_equal_marked_bytes_for_random_marks() {
    use sojourn_aqm::random::Random;
    let mut rng = <sojourn_aqm::Pcg as rand_core::SeedableRng>::seed_from_u64(3);
    for _ in 0..200 {
        let mut r = Receiver::new(&parse("dctcp", []).unwrap(), &mut HalfTick);
        r.on_segment(Time::ZERO, &Segment { syn: true, ..Segment::default() }, false);
        let (mut una, mut echoed, mut marked, p) = (1, 0, 0, rng.uniform());
        for seq in 1..200 {
            let ce = rng.bernoulli(p);
            marked += u64::from(ce);
            let held = r.before_segment(&at(seq), ce).copied();
            let own = r.on_segment(Time::ZERO, &at(seq), ce).copied();
            for ack in held.into_iter().chain(own) {
                echoed += if ack.ece { ack.ack - una } else { 0 };
                una = ack.ack;
            }
        }
        let last = r.on_timer(Time::NEVER).copied();
        echoed += last.filter(|a| a.ece).map_or(0, |a| a.ack - una);
        assert_eq!(echoed, marked);
    }
}

/// RFC 2883: the first block is the duplicate, the second the data around it.
#[test]
fn a_duplicate_is_reported_once() {
    let settings = [("rack", Flag(true)), ("dsack", Flag(true)), ("delayed_ack", Flag(false))];
    let mut r = Receiver::new(&parse("sack", settings).unwrap(), &mut HalfTick);
    let mut take = |seq| blocks(*r.on_segment(Time::ZERO, &at(seq), false).unwrap());
    assert_eq!(take(0), (1, vec![], 40));
    assert_eq!(take(1), (2, vec![], 40));
    assert_eq!(take(1), (2, vec![(1, 2)], 48), "below the cumulative ack");
    assert_eq!(take(2), (3, vec![], 40), "once");
    assert_eq!(take(5), (3, vec![(5, 6)], 48));
    assert_eq!(take(5), (3, vec![(5, 6), (5, 6)], 56), "out of order");
    assert_eq!(take(7), (3, vec![(7, 8), (5, 6)], 56));
    assert_eq!(take(3), (4, vec![(7, 8), (5, 6)], 56));
}

/// RFC 7323 §4.3: the echo is the timestamp of the first segment that an ack is for.
#[test]
fn the_echo_is_of_the_segment_that_advanced_the_ack() {
    let settings = [("rack", Flag(true)), ("timestamps", Flag(true))];
    let mut r = Receiver::new(&parse("sack", settings).unwrap(), &mut HalfTick);
    let mut take = |seq, timestamp| {
        let seg = Segment { seq, len: u16::from(seq > 0), timestamp, syn: seq == 0, ..at(1) };
        r.on_segment(Time::ZERO, &seg, false).map(|ack| ack.echo)
    };
    assert_eq!(take(0, 10), Some(10));
    assert_eq!(take(1, 20), None, "delayed");
    assert_eq!(take(2, 30), Some(20), "the earlier of two");
    assert_eq!(take(4, 40), Some(20), "out of order");
    assert_eq!(take(3, 50), Some(50), "fills the gap");
}

/// A FIN takes a sequence number, and no payload is delivered with it.
#[test]
fn a_fin_is_no_payload() {
    let params = [("fin", Flag(true)), ("rack", Flag(true)), ("delayed_ack", Flag(false))];
    let mut r = Receiver::new(&parse("sack", params).unwrap(), &mut HalfTick);
    for (count, delivered) in [(1, 2), (2, 4)] {
        r.on_segment(Time::ZERO, &Segment { syn: true, ..Segment::default() }, false);
        let fin = Segment { fin: true, ..at(3) };
        let mut take = |seg| r.on_segment(Time::ZERO, &seg, false).map(|ack| blocks(*ack));
        assert_eq!(take(Segment { seq: 1, ..Segment::default() }), None, "an ack of the sender");
        assert_eq!(take(at(1)), Some((2, vec![], 40)));
        assert_eq!(take(fin), Some((2, vec![(3, 4)], 48)), "out of order");
        assert_eq!(take(at(2)), Some((4, vec![], 40)));
        assert_eq!(take(fin), Some((4, vec![], 40)), "a duplicate");
        assert_eq!(r.delivered_bytes(), delivered, "connection {count}");
        r.reset();
    }
}

/// Only data carries feedback on marks: a marked ack of the sender changes nothing.
#[test]
fn a_marked_ack_of_the_sender_is_ignored() {
    for feedback in ["rfc3168", "rfc8257"] {
        let params = [("ecn", Flag(true)), ("ecn_feedback", Text(feedback))];
        let mut r = Receiver::new(&parse("sack", params).unwrap(), &mut HalfTick);
        r.on_segment(Time::ZERO, &Segment { syn: true, ..Segment::default() }, false);
        let ack = Segment { seq: 1, ect: true, ..Segment::default() };
        assert_eq!(r.before_segment(&ack, true), None);
        assert_eq!(r.on_segment(Time(1), &ack, true), None);
        assert_eq!(r.timer(), Time::NEVER);
        r.on_segment(Time(2), &at(1), false);
        assert_eq!(r.on_segment(Time(3), &at(2), false).map(|ack| ack.ece), Some(false));
    }
}
