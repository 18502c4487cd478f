//! Unit tests of CoDel.

use super::*;
use crate::fifo::SingleFifo;
use crate::testing::Bench;
use std::prelude::v1::*;

fn aqm(variant: Variant) -> CoDel {
    let params = CoDelParams { variant, ..CoDelParams::default() };
    CoDel::build(&params, &Env::new(crate::Rate(8_000_000))).unwrap()
}

/// Keeps a queue at 1 ms per packet, each `wait` ms old when it leaves; returns the bodies of
/// the dropped packets.
fn losses(q: &mut Bench, from_ms: u64, to_ms: u64, wait: u64) -> Vec<(u64, u32)> {
    let mut dropped = vec![];
    for ms in from_ms..to_ms {
        q.at_ms(ms);
        q.put(ms as u32, 1000);
        if ms >= from_ms + wait {
            dropped.extend(q.get().1.into_iter().map(|b| (ms, b)));
        }
    }
    dropped
}

#[test]
fn a_new_interval_counts_from_the_next_drop_on() {
    let of = |interval, variant| [("interval", interval), ("variant", variant)];
    let mut q = Bench::new("codel", &of("100ms", "rfc"));
    // As below: drops at 120 ms and at 220 ms, the next one is due 70.7 ms later.
    assert_eq!(losses(&mut q, 0, 230, 20).len(), 2);
    assert!(!q.reconfigure("codel", &of("300ms", "ns2_v1")), "the variant stays");
    assert!(q.reconfigure("codel", &of("300ms", "rfc")));
    let state = ["count", "lastcount", "dropping"].map(|name| q.gauge(name));
    assert_eq!(state, [2.0, 1.0, 1.0]);
    let due = |q: &Bench, s: f64| (q.gauge("drop_next") - s).abs() < 1e-6;
    assert!(due(&q, 0.220 + 0.070_710_7));
    assert_eq!(q.gauge("first_above_time"), 0.120);
    // The drop of a packet that is late leaves the next one 300 ms / sqrt(3) later.
    q.at_ms(300);
    assert_eq!(q.get().1.len(), 1);
    assert!(due(&q, 0.220 + 0.070_710_7 + 0.173_205_1));
}

#[test]
fn drops_an_interval_after_going_above_and_then_faster() {
    let mut q = Bench::new("codel", &[("target", "5ms"), ("interval", "100ms")]);
    // Above target from 20 ms on, so the first drop comes at 120 ms, the next 100, 70.7, 57.7
    // ms later (each on the first departure, every 1 ms, that is not earlier).
    let dropped = losses(&mut q, 0, 400, 20);
    let times: Vec<u64> = dropped.iter().map(|l| l.0).collect();
    assert_eq!(times, [120, 220, 291, 349, 399]);
    // Each drop brings the head one packet nearer to the tail.
    assert_eq!(dropped[0].1, 100);
    assert_eq!(dropped[1].1, 201);
}

#[test]
fn marks_in_place_of_drops_and_spares_the_last_packets() {
    let mut q = Bench::new("codel", &[("ecn", "true")]);
    q.ect();
    assert_eq!(losses(&mut q, 0, 400, 20), []);
    assert_eq!(q.marked(), 5);
    let mut q = Bench::new("codel", &[]);
    assert_eq!(losses(&mut q, 0, 1000, 1), [], "one packet of backlog is never too much");
}

#[test]
fn a_packet_larger_than_the_buffer_does_not_end_the_law() {
    let mut q = Bench::new("codel", &[("limit", "100kB")]);
    assert_eq!(q.put(7, 100_001), [7]);
    assert_eq!(losses(&mut q, 0, 400, 20).len(), 5);
}

#[test]
fn leaves_on_empty_and_remembers_the_rate() {
    let mut q = Bench::new("codel", &[]);
    losses(&mut q, 0, 400, 20);
    q.drain();
    assert_eq!(q.gauge("dropping"), 0.0);
    let dropped = losses(&mut q, 500, 700, 20);
    assert_eq!(dropped[0].0, 620);
    // It had dropped 5 times: it starts again from 5 - 1 = 4, so the next is 50 ms later.
    assert_eq!(dropped[1].0, 670);
}

#[test]
fn variants_differ_in_the_count_of_a_new_dropping_state() {
    // Three standing queues of 20 ms, from 0, 500 and 900 ms; 5 drops in the first.
    for (variant, first, next, third, after) in [
        ("rfc", 620, 670, 1020, 1070),    // 5 - 1 = 4; then 8 - 4 = 4
        ("ns2_v1", 620, 670, 1020, 1058), // 5 - 1 = 4; then 8 - 1 = 7: 37.8 ms
        ("ns2_v2", 565, 623, 956, 997),   // after 44.7 ms 5 - 2 = 3; after 35.4 ms 8 - 2 = 6
    ] {
        let mut q = Bench::new("codel", &[("variant", variant)]);
        losses(&mut q, 0, 400, 20);
        q.drain();
        let dropped = losses(&mut q, 500, 800, 20);
        assert_eq!([dropped[0].0, dropped[1].0], [first, next], "{variant}");
        q.drain();
        let dropped = losses(&mut q, 900, 1100, 20);
        assert_eq!([dropped[0].0, dropped[1].0], [third, after], "{variant}");
    }
}

#[test]
fn ns2_v2_does_not_count_the_drop_that_ends_a_state() {
    for (variant, count) in [("rfc", 2.0), ("ns2_v1", 2.0), ("ns2_v2", 1.0)] {
        let mut q = Bench::new("codel", &[("variant", variant)]);
        // 300 packets arrive at 0 and leave 1 ms apart: the sojourn time is above target from
        // 5 ms on, so the first drop is at 105 ms and the second is due at 205 ms.
        (0..300).for_each(|i| drop(q.put(i, 1000)));
        let dropped = (1..205).flat_map(|ms| {
            q.at_ms(ms);
            q.get().1
        });
        assert_eq!(dropped.count(), 1);
        // Behind the packet that will be dropped are three younger than target.
        (0..3).for_each(|_| drop(q.put(1000, 1000)));
        while q.backlog() > 4 {
            assert_eq!(q.get().1, []);
        }
        q.at_ms(205);
        assert_eq!(q.get(), (Some(1000), vec![299]), "{variant}");
        assert_eq!((q.gauge("dropping"), q.gauge("count")), (0.0, count), "{variant}");
    }
}

#[test]
fn ns2_v2_forgets_little_of_a_high_rate() {
    let mut aqm = aqm(Variant::Ns2V2);
    let at = |aqm: &mut CoDel, count| {
        (aqm.count, aqm.drop_next) = (count, Some(Time::ZERO));
        aqm.initial_count(Time(1))
    };
    assert_eq!([2, 3, 128, 129, 1000].map(|n| at(&mut aqm, n)), [1, 1, 126, 126, 984]);
    assert_eq!(aqm.initial_count(Time::ZERO + Span::ms(800)), 1, "8 intervals later");
}

#[test]
fn ns2_v1_keeps_its_count_for_less_than_16_intervals() {
    let mut aqm = aqm(Variant::Ns2V1);
    (aqm.count, aqm.drop_next) = (5, Some(Time::ZERO));
    let at = |ns| aqm.initial_count(Time(ns));
    assert_eq!([1_599_999_999, 1_600_000_000].map(at), [4, 1]);
}

#[test]
fn the_largest_packet_behind_the_head_protects_it() {
    for (len, first_above) in [(1000, 0.0), (1001, 0.110)] {
        let mut q = Bench::new("codel", &[]);
        [1000, 1000, 1].into_iter().for_each(|len| drop(q.put(0, len)));
        q.get();
        q.put(1, len - 1);
        q.at_ms(10);
        q.get();
        assert_eq!(q.gauge("first_above_time"), first_above, "{len} bytes behind the head");
    }
    // On Linux it is the largest frame of the link, whatever arrives.
    let mut q = Bench::new("codel", &[("variant", "linux"), ("mtu", "1514B")]);
    [9000, 9000].into_iter().for_each(|len| drop(q.put(0, len)));
    q.at_ms(10);
    q.get();
    assert!(q.gauge("first_above_time") > 0.0);
}

#[test]
fn the_interval_is_over_at_its_last_moment_but_not_on_linux() {
    for (variant, expected) in [(Variant::Rfc, true), (Variant::Linux, false)] {
        let mut aqm = aqm(variant);
        let mut fifo = SingleFifo::default();
        (0..3).for_each(|_| fifo.push(Packet { len: 1000, ..Packet::default() }));
        let queue = QueueView::single(&mut fifo);
        let t = Time(100_000 << 10);
        aqm.first_above_time = Some(t);
        assert_eq!(aqm.may_drop_head(t, &queue), expected, "{variant:?}");
        assert!(aqm.may_drop_head(t + Span(1 << 10), &queue), "{variant:?}");
    }
}

#[test]
fn new_parameters_keep_the_largest_packet() {
    let mut q = Bench::new("codel", &[]);
    (0..3).for_each(|i| drop(q.put(i, 1000)));
    q.at_ms(10);
    assert_eq!(q.get(), (Some(0), vec![]));
    assert_eq!(q.gauge("first_above_time"), 0.110);
    assert!(q.reconfigure("codel", &[("target", "6ms")]));
    q.at_ms(120);
    assert_eq!(q.get(), (Some(1), vec![]), "one packet of the largest size is behind it");
}

#[test]
fn new_parameters_keep_the_estimate_of_the_inverse_root_of_linux() {
    let mut fresh = aqm(Variant::Linux);
    fresh.target = Span::ms(7);
    let mut aqm = aqm(Variant::Linux);
    aqm.rec_inv_sqrt = 20_000;
    assert!(aqm.reconfigure(&fresh));
    assert_eq!((aqm.target, aqm.rec_inv_sqrt), (Span::ms(7), 20_000));
}
