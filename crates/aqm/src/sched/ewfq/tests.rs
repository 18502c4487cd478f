//! Unit tests of EWFQ.

use super::*;
use crate::testing::Bench;
use crate::units::Rate;
use std::prelude::v1::*;

fn ewfq(change: impl FnOnce(&mut EwfqParams)) -> Ewfq {
    let mut params = EwfqParams { k: 0, p: Some(1.0), ..EwfqParams::default() };
    change(&mut params);
    let mut q = Ewfq::build(&params, &Env::new(Rate(5_000_000))).unwrap();
    q.start(Time::ZERO);
    q
}

/// Sets the bytes of class 0 in the last interval to `m`.
fn found(q: &mut Ewfq, m: f64) {
    let mut rng = <rand_pcg::Pcg64Mcg as rand_core::SeedableRng>::seed_from_u64(1);
    q.hold.record(&mut rng, (0, 1.0), 1000, 0.0, 1000.0);
    q.hold.end_interval(|_, seen| {
        seen.m = m;
        true
    });
}

#[test]
fn the_probabilities_of_equation_2() {
    // 208 packets of 1 kB a second are fair; a TCP flow of 22 ms gets this rate at a loss of
    // 7.2 %, and RTT_o / RTT = 11.4.
    let mut q = ewfq(|_| {});
    found(&mut q, 300_000.0);
    q.m_fair = 208_000.0;
    let gamma = |q: &mut Ewfq, gamma| {
        q.hold.end_interval(|_, seen| {
            seen.gamma = gamma;
            true
        });
        q.probability(0)
    };
    let ideal = 1.0 / (0.66 * (208.0f64 * 0.022) * (208.0 * 0.022));
    assert!((ideal - 0.072).abs() < 0.001);
    assert!((gamma(&mut q, 11.4) - 0.073).abs() < 0.001);
    assert_eq!(gamma(&mut q, 64.0), 1.0, "a probability is at most 1");
    q.params.members = [2.0].into();
    assert!((gamma(&mut q, 5.7) - 0.073).abs() < 0.001, "two flows need four times the drops");
    q.params.responsive = [0.0].into();
    assert!((q.probability(0) - (1.0 - 208.0 / 300.0)).abs() < 1e-12);
    q.m_fair = 300_000.0;
    assert_eq!(q.probability(0), 0.0, "at its share no packet is dropped");
    assert_eq!(q.probability(1), 0.0, "a packet of a flow without an entry is not dropped");
}

#[test]
fn m_fair_falls_while_the_queue_is_above_its_target() {
    let mut q = ewfq(|p| p.limit = Size::Bytes(30_000));
    assert_eq!(q.m_fair, 625_000.0 / 3.0);
    let before = q.m_fair;
    // Empty: the error is -15,000 B at both samples.
    q.advance(Time(10_000_000));
    assert!((q.m_fair - before - 0.05 * 15_000.0).abs() < 1e-6);
    let (top, floor) = (q.top, q.s);
    q.advance(Time(1_000_000_000_000));
    assert_eq!(q.m_fair, top);
    (q.q_old, q.q_target) = (30_000.0, -30_000.0);
    q.sample(1e9);
    assert_eq!(q.m_fair, floor);
}

#[test]
fn a_skip_is_what_every_step_would_be() {
    let (mut slow, mut fast) = (ewfq(|_| {}), ewfq(|_| {}));
    (1..3_500).for_each(|k| slow.advance(Time(k * 10_000_000)));
    fast.advance(Time(34_990_000_000));
    assert_eq!((slow.m_fair, slow.next_sample), (fast.m_fair, fast.next_sample));
    assert_eq!(slow.next_interval, fast.next_interval);
    fast.advance(Time(86_400_000_000_000_000));
    assert_eq!(fast.next_interval, Time(86_400_001_000_000_000));
}

#[test]
fn intervals_of_a_microsecond_hold_at_100_gbit() {
    let span = Span::us(1);
    let of_span = ewfq(|p| (p.interval, p.sample) = (span, span)).params;
    let mut q = Ewfq::build(&of_span, &Env::new(Rate(100_000_000_000))).unwrap();
    assert_eq!(q.capacity, 12_500.0);
    q.start(Time::ZERO);
    q.advance(Time(86_400_000_000_000_000));
    assert_eq!(q.next_sample, Time(86_400_000_000_001_000));
    assert_eq!((q.m_fair, q.mbar), (12_500.0, 12_500.0), "an empty queue");
    found(&mut q, 10_000.0);
    q.m_fair = 8_000.0;
    q.params.responsive = [0.0].into();
    assert!((q.probability(0) - 0.2).abs() < 1e-12);
}

#[test]
fn who_has_more_than_the_others_pays_for_an_overflow() {
    let mut q = Bench::new("ewfq", &[("limit", "3000B"), ("flows", "4")]);
    (0..3).for_each(|i| drop(q.put_flow(0, i, 1000)));
    assert_eq!(q.put_flow(1, 9, 1000), [2]);
}

/// Random number generator that returns this number always; no number may be drawn if it is NaN.
struct Always(f64);

impl crate::Random for Always {
    fn uniform(&mut self) -> f64 {
        assert!(!self.0.is_nan(), "no random number is needed");
        self.0
    }
}

fn near(x: f64, y: f64) -> bool {
    (x / y - 1.0).abs() < 1e-9
}

/// Lets class `i` be found, if it is not yet, and records `n` packets of 1000 bytes.
fn record(q: &mut Ewfq, i: u32, n: u32) {
    (0..n).for_each(|_| q.hold.record(&mut Always(0.0), (i, 1.0), 1000, 0.0, 1000.0));
}

#[test]
fn the_settings_reach_the_scheduler_and_the_measurement() {
    let mut q = ewfq(|p| {
        (p.flows, p.by, p.weights) = (4, By::Class, [2.0, 6.0].into());
        (p.interval, p.limit) = (Span::s(2), Size::Packets(200));
    });
    let packet = Packet { flow: 1, hash: 2, class: 7, ..Packet::default() };
    assert_eq!(q.queue.index(&packet), 3, "class 7 of 4");
    assert_eq!([q.weight(0), q.weight(1), q.weight(2)], [1.0, 3.0, 3.0]);
    // 5 Mbit/s for 2 s, shared by three; half of 200 packets of 1000 bytes.
    assert_eq!((q.capacity, q.mbar, q.q_target), (1_250_000.0, 1_250_000.0 / 3.0, 100_000.0));
    // By WFQ, class 1 sends three packets for one of class 0.
    let (mut rng, mut dropped, mut marks) = (Always(0.9), vec![], crate::Marks::default());
    let now = Time::ZERO;
    let mut context = Context { now, rng: &mut rng, dropped: &mut dropped, marks: &mut marks };
    for (class, body) in [(0, 0), (0, 1), (1, 10), (1, 11), (1, 12), (1, 13)] {
        q.enqueue(&mut context, Packet { class, body, len: 1000, ..Packet::default() });
    }
    assert_eq!(q.backlog(), Backlog { packets: 6, bytes: 6000 });
    let sent = core::iter::from_fn(|| q.dequeue(&mut context)).map(|p| p.body);
    assert_eq!(sent.collect::<Vec<_>>(), [10, 11, 0, 12, 13, 1]);
}

#[test]
fn a_class_at_its_share_is_missed_once_in_ten_intervals() {
    let mut q = ewfq(|p| p.p = None);
    record(&mut q, 0, 1);
    // p = 2.303 / (fair share in bytes, divided by 3 classes): 1 / p bytes are missed on average.
    let missed = q.hold.get(0).unwrap().bytes - 1000.0;
    assert!((missed - 625_000.0 / 3.0 / 3.0 / 2.303).abs() < 1e-6, "{missed}");
}

#[test]
fn samples_are_at_least_a_ten_thousandth_of_an_interval() {
    let build = |sample, interval| {
        let params = EwfqParams { sample, interval, ..EwfqParams::default() };
        Ewfq::build(&params, &Env::new(Rate(5_000_000))).err().map(|e| e.to_string())
    };
    assert_eq!(build(Span::us(100), Span::s(1)), None);
    assert_eq!(
        build(Span::us(99), Span::s(1)).unwrap(),
        "sample: 99us is below a 10000th of interval"
    );
    assert_eq!(build(Span::s(10), Span::ms(1)), None);
    assert_eq!(
        build(Span::ms(20), Span::us(1)).unwrap(),
        "sample: 20ms is above 10000 times interval"
    );
}

#[test]
fn mbar_is_the_mean_of_m_fair_over_an_interval() {
    let mut q = ewfq(|_| {});
    // Each of the 100 samples up to 1 s raises m_fair by 0.05 * 15,000 B; the last of them
    // precedes the end of the interval.
    q.advance(Time(1_000_000_000));
    let expected = 625_000.0 / 3.0 + 750.0 * 50.5;
    assert!(near(q.mbar, expected), "{}", q.mbar);
    assert_eq!((q.sum, q.next_interval), ((0.0, 0.0), Time(2_000_000_000)));
    q.end_interval();
    assert!(near(q.mbar, expected), "no sample, no new mean");
}

#[test]
fn several_samples_at_once_are_the_same_as_one_by_one() {
    let (mut once, mut singly) = (ewfq(|_| {}), ewfq(|_| {}));
    once.q_old = -10_000.0;
    singly.q_old = -10_000.0;
    once.sample(5.0);
    (0..5).for_each(|_| singly.sample(1.0));
    assert!(near(once.m_fair, singly.m_fair), "{} {}", once.m_fair, singly.m_fair);
    assert_eq!(once.sum, (5.0 * once.m_fair, 5.0));
}

#[test]
fn up_to_two_intervals_are_caught_up_sample_by_sample() {
    for ms in [500, 1_500, 2_010] {
        let (mut slow, mut fast) = (ewfq(|_| {}), ewfq(|_| {}));
        (1..=ms / 10).for_each(|k| slow.advance(Time(k * 10_000_000)));
        fast.advance(Time(ms * 1_000_000));
        assert_eq!((slow.m_fair, slow.mbar, slow.sum), (fast.m_fair, fast.mbar, fast.sum), "{ms}");
    }
}

#[test]
fn gamma_follows_from_the_excess_of_a_class_over_its_share() {
    let mut q = ewfq(|p| p.weights = [2.0, 6.0].into());
    q.mbar = 1001.0; // 3003 for a class of weight 3
    record(&mut q, 1, 4);
    q.end_interval(); // the first packet counts one more byte, for those missed
    let first = 0.5 * (1.0 + 4001.0 / 3003.0);
    let seen = q.hold.get(1).unwrap();
    assert!(near(seen.m, 4001.0) && near(seen.gamma, first), "{seen:?}");
    // Relative to the weight, this is the largest class.
    assert!(near(q.top, 4001.0 / 3.0), "{}", q.top);
    record(&mut q, 1, 4);
    q.end_interval();
    let seen = q.hold.get(1).unwrap();
    assert!(near(seen.gamma, first * 0.5 * (1.0 + 4000.0 / 3003.0)), "{seen:?}");
}

#[test]
fn a_class_below_half_of_its_share_is_forgotten() {
    for (mbar, stays) in [(8000.0, true), (8001.0, false)] {
        let mut q = ewfq(|_| {});
        q.mbar = 1000.0;
        record(&mut q, 0, 4);
        q.end_interval();
        q.mbar = mbar;
        record(&mut q, 0, 4); // 4000 B
        q.end_interval();
        assert_eq!(q.hold.get(0).is_some(), stays, "{mbar}");
    }
}

#[test]
fn shares_count_by_weight_and_interval() {
    let mut q = ewfq(|p| (p.weights, p.interval) = ([2.0, 6.0].into(), Span::s(2)));
    q.mbar = 1000.0;
    record(&mut q, 1, 3);
    q.hold.end_interval(|_, seen| {
        (seen.m, seen.gamma) = (1e9, 6.0);
        true
    });
    // 416 packets in 2 s are 52 in RTT_o = 250 ms; (6 / 3)^2 / (0.66 * 52^2).
    q.m_fair = 416_000.0;
    assert!(near(q.probability(1), 4.0 / (0.66 * 2704.0)), "{}", q.probability(1));
    for (m, dropped) in [(1_248_000.0, false), (1_249_000.0, true)] {
        q.hold.end_interval(|_, seen| {
            seen.m = m;
            true
        });
        assert_eq!(q.probability(1) > 0.0, dropped, "the share is 3 * 416,000 B");
    }
}

#[test]
fn packets_of_a_class_above_its_share_are_dropped_at_random() {
    for (m, u, drops) in [(416_000.0, 0.499, 1), (416_000.0, 0.5, 0), (208_000.0, f64::NAN, 0)] {
        let mut q = ewfq(|p| (p.responsive, p.p_c) = ([0.0].into(), 0.0));
        found(&mut q, m);
        q.m_fair = 208_000.0;
        // No random number is drawn for a class at its share.
        let (mut rng, mut dropped, mut marks) = (Always(u), vec![], crate::Marks::default());
        let now = Time::ZERO;
        let mut context = Context { now, rng: &mut rng, dropped: &mut dropped, marks: &mut marks };
        q.enqueue(&mut context, Packet { len: 500, ..Packet::default() });
        assert_eq!((context.dropped.len(), q.s), (drops, 995.0), "{m} {u}");
    }
}

#[test]
fn samples_count_from_the_first_arrival() {
    let mut q = Bench::new("ewfq", &[]);
    q.at_ms(1_000_000);
    q.put(0, 1000);
    q.at_ms(1_000_009);
    q.get();
    let start = 8e6 / 8.0 / 3.0;
    assert!(near(q.gauge("m_fair"), start), "{}", q.gauge("m_fair"));
    q.at_ms(1_000_010);
    q.get();
    assert!(near(q.gauge("m_fair"), start + 750.0), "{}", q.gauge("m_fair"));
}
