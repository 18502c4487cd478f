//! Unit tests of RED.

use super::*;
use crate::testing::Bench;
use std::prelude::v1::*;

fn aqm(settings: &[(&str, &str)]) -> Red {
    use crate::params::{Params, Setting};
    let mut p = RedParams::default();
    settings.iter().for_each(|(k, v)| p.set(k, Setting::Text(v)).unwrap());
    let env = Env { limit: Size::Packets(60), ..Env::new(crate::units::Rate(8_000_000)) };
    Red::build(&p, &env).unwrap()
}

fn pb_at(red: &mut Red, avg: f64) -> f64 {
    red.avg = avg;
    red.pb()
}

#[test]
fn slopes_of_the_three_forms() {
    let mut red = aqm(&[]);
    assert_eq!([4.9, 5.0, 10.0, 15.0].map(|a| pb_at(&mut red, a)), [0.0, 0.0, 0.05, 1.0]);
    let mut red = aqm(&[("gentle", "true")]);
    assert_eq!([15.0, 22.5, 30.0, 40.0].map(|a| pb_at(&mut red, a)), [0.1, 0.55, 1.0, 1.0]);
    let mut red = aqm(&[("gentle", "buffer")]);
    assert_eq!([15.0, 37.5, 60.0].map(|a| pb_at(&mut red, a)), [0.1, 0.55, 1.0]);
}

/// Random numbers that never lead to a drop, and record each probability.
struct Never(Vec<f64>);

impl crate::Random for Never {
    fn uniform(&mut self) -> f64 {
        1.0
    }
    fn bernoulli(&mut self, p: f64) -> bool {
        self.0.push(p);
        false
    }
}

/// The probability of a gap of 1, 2, ... packets at pb = 0.1, from `count` packets counted.
fn gaps(wait: &str, count: i64) -> Vec<f64> {
    let mut red = aqm(&[("wait", wait), ("min_th", "5p"), ("max_th", "15p"), ("max_p", "0.2")]);
    (red.avg, red.count) = (10.0, count);
    let (mut rng, mut dropped, mut marks) = (Never(vec![]), vec![], crate::Marks::default());
    let mut context =
        Context { now: Time::ZERO, rng: &mut rng, dropped: &mut dropped, marks: &mut marks };
    let packet = Packet { len: 500, ..Packet::default() };
    (0..30).for_each(|_| assert_eq!(red.decide(&mut context, &packet), Verdict::Pass));
    let mut none_before = 1.0;
    let signals = rng.0.iter().map(|pa| {
        let here = none_before * pa;
        none_before *= 1.0 - pa;
        here
    });
    signals.collect()
}

#[test]
fn gaps_between_signals_are_as_the_page_says() {
    let uniform_on = |found: Vec<f64>, low: usize, high: usize| {
        for (i, p) in found.into_iter().enumerate() {
            let gap = i + 1;
            let within = (low..=high).contains(&gap);
            let expected = if within { 1.0 / (high - low + 1) as f64 } else { 0.0 };
            assert!((p - expected).abs() < 1e-12, "a gap of {gap}: {p}");
        }
    };
    // After a signal, and from the moment at which the average rises above min_th.
    uniform_on(gaps("no", 0), 1, 9);
    uniform_on(gaps("no", -1), 1, 10);
    uniform_on(gaps("yes", 0), 10, 19);
    uniform_on(gaps("yes", -1), 11, 20);
    for (before, p) in gaps("bernoulli", 0).into_iter().enumerate() {
        assert!((p - 0.1 * power(0.9, before as u64)).abs() < 1e-12);
    }
}

#[test]
fn idle_time_decays_the_average_as_if_packets_had_passed() {
    let mut q = Bench::new("red", &[("w_q", "0.1"), ("packet", "1000B")]);
    (0..4).for_each(|i| drop(q.put(i, 1000)));
    let before = q.gauge("avg");
    q.drain();
    q.at_ms(7); // the link is idle from 0 on here: 7 packets of 1 ms could have been sent
    q.put(9, 1000);
    let expected = before * power(0.9, 8);
    assert!((q.gauge("avg") - expected).abs() < 1e-12);
    q.drain();
    q.at_ms(86_400_000);
    q.put(10, 1000);
    assert!(q.gauge("avg") < 1e-300, "a day of idle forgets everything");
}

#[test]
fn byte_mode_spares_small_packets() {
    let mut red = aqm(&[("byte_mode", "mean"), ("wait", "bernoulli")]);
    red.pb = 0.1;
    assert!((red.pa(50) - 0.01).abs() < 1e-12 && (red.pa(1000) - 0.2).abs() < 1e-12);
    let mut red = aqm(&[("byte_mode", "max"), ("wait", "bernoulli")]);
    red.pb = 0.1;
    assert!((red.pa(150) - 0.01).abs() < 1e-12);
}

#[test]
fn certain_signals_mark_unless_hard_drop() {
    let certain = [("w_q", "1"), ("min_th", "1p"), ("max_th", "2p"), ("ecn", "true")];
    let mut q = Bench::new("red", &certain);
    q.ect();
    assert!((0..5).all(|i| q.put(i, 100).is_empty()));
    assert_eq!(q.marked(), 3);
    let mut q = Bench::new("red", &[&certain[..], &[("hard_drop", "true")]].concat());
    q.ect();
    assert_eq!((0..5).flat_map(|i| q.put(i, 100)).collect::<Vec<_>>(), [2, 3, 4]);
}

#[test]
fn contradictions_are_refused() {
    let refusal = |settings: &[(&str, &str)]| {
        let settings: Vec<_> =
            settings.iter().map(|(k, v)| (*k, crate::Setting::Text(v))).collect();
        crate::build("red", &settings, crate::Rate(1_000_000)).unwrap_err().to_string()
    };
    assert!(refusal(&[("max_th", "5p")]).starts_with("max_th: 5p is not above"));
    assert!(refusal(&[("max_th", "30kB")]).contains("another unit"));
    assert!(refusal(&[("gentle", "buffer"), ("limit", "15p")]).starts_with("gentle:"));
    assert!(refusal(&[("max_p", "1.5")]).contains("allowed: 0 to 1"));
    assert!(refusal(&[("min_th", "5")]).contains("no unit"));
}

#[test]
fn a_tail_drop_restarts_the_count_of_every_red() {
    for name in ["red", "ared", "feng_red", "sa_red"] {
        let settings = [("limit", "40p"), ("w_q", "1"), ("min_th", "5p"), ("max_th", "100p")];
        let mut q = Bench::new(name, &[&settings[..], &[("max_p", "1e-9")]].concat());
        (0..40).for_each(|i| assert_eq!(q.put(i, 1000), []));
        assert!(q.gauge("count") > 10.0, "{name}: packets since the average rose above min_th");
        assert_eq!(q.put(40, 1000), [40], "{name}: the buffer is full");
        assert_eq!(q.gauge("count"), 0.0, "{name}");
    }
}

#[test]
fn new_parameters_keep_the_average_and_the_idle_time() {
    let of = |max_th, max_p, variant| {
        let min_th = if max_th == "10kB" { "2kB" } else { "2p" };
        let packet = ("packet", "1000B");
        [("w_q", "0.5"), packet, ("min_th", min_th), ("max_th", max_th), ("max_p", max_p), variant]
    };
    let [plain, linux] = ["paper", "linux"].map(|variant| ("variant", variant));
    let mut q = Bench::new("red", &of("10p", "0.001", plain));
    (0..6).for_each(|i| drop(q.put(i, 1000)));
    let state = |q: &Bench| ["avg", "count", "pb", "pa"].map(|name| q.gauge(name));
    let before = state(&q);
    // 0, 0.5, 1.25, 2.125, 3.0625 and 4.03125 packets: three above min_th.
    assert_eq!(before[..2], [4.03125, 2.0]);
    assert!((before[2] - 0.001 * 2.03125 / 8.0).abs() < 1e-12);
    assert!(!q.reconfigure("red", &of("10kB", "0.1", plain)), "another unit");
    assert!(!q.reconfigure("red", &of("10p", "0.1", linux)), "another variant");
    assert!(q.reconfigure("red", &of("10p", "0.1", plain)));
    assert_eq!(state(&q), before);
    q.drain();
    q.at_ms(7);
    assert!(q.reconfigure("red", &of("10p", "0.2", plain)));
    q.put(9, 1000);
    // Seven packets of 1 ms could have been sent, and this one finds an empty queue.
    assert!((q.gauge("avg") - 4.03125 / 256.0).abs() < 1e-12);
}

#[test]
fn the_first_packet_above_min_th_is_number_zero() {
    let mut q = Bench::new("red", &[("w_q", "1"), ("min_th", "0p"), ("max_th", "10p")]);
    assert_eq!(q.gauge("count"), -1.0);
    q.put(0, 1000);
    assert_eq!((q.gauge("count"), q.gauge("pb")), (0.0, 0.0));
}

#[test]
fn the_second_gap_ends_at_a_probability_of_one() {
    // A count that the probability of now would not have reached, after pb has risen.
    let mut red = aqm(&[("wait", "yes")]);
    red.pb = 0.1;
    let at = |red: &mut Red, count| {
        red.count = count;
        red.pa(500)
    };
    assert_eq!([9, 19, 20, 21, 30].map(|count| at(&mut red, count)), [0.0, 1.0, 1.0, 1.0, 1.0]);
}

#[test]
fn small_packets_are_dropped_at_a_probability_of_one_after_spreading() {
    let mut red = aqm(&[("byte_mode", "mean"), ("packet", "500B")]);
    red.pb = 0.25;
    let at = |red: &mut Red, bytes| {
        red.count_bytes = bytes;
        red.pa(50)
    };
    // 0.25 / (1 - 0.25 count): 1/2 for two packets, scaled by 1/10, and 1 for three.
    assert_eq!([1000, 1500].map(|bytes| at(&mut red, bytes)), [0.05, 1.0]);
}

#[test]
fn at_a_probability_of_one_before_spreading_gaps_and_lengths_do_not_count() {
    for setting in [("wait", "yes"), ("byte_mode", "max")] {
        let certain = [("w_q", "1"), ("min_th", "1p"), ("max_th", "2p"), setting];
        let mut q = Bench::new("red", &certain);
        assert_eq!((0..4).flat_map(|i| q.put(i, 15)).collect::<Vec<_>>(), [2, 3], "{setting:?}");
    }
}

#[test]
fn new_parameters_keep_the_bytes_counted_and_the_time_of_the_queue() {
    let spare = ("spare_short", "true");
    let mut red = aqm(&[spare]);
    (red.count_bytes, red.short, red.idle_since) = (700, true, None);
    assert!(red.reconfigure(&aqm(&[spare, ("max_p", "0.2")])));
    assert_eq!((red.count_bytes, red.short, red.idle_since, red.max_p), (700, true, None, 0.2));
    assert!(red.reconfigure(&aqm(&[])) && !red.short);
}

#[test]
fn the_state_outside_the_struct_is_that_of_linux() {
    let outside = ["paper", "linux"].map(|variant| aqm(&[("variant", variant)]).beyond());
    assert_eq!(outside, [0, size_of::<LinuxRed>()]);
}
