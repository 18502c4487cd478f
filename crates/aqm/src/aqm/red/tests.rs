//! Unit tests of RED.

use super::*;
use crate::testing::Bench;
use std::prelude::v1::*;

fn law(settings: &[(&str, &str)]) -> Red {
    use crate::params::{Params, Setting};
    let mut p = RedParams::default();
    settings.iter().for_each(|(k, v)| p.set(k, Setting::Text(v)).unwrap());
    let env = Env { limit: Size::Packets(60), ..Env::new(crate::units::Rate(8_000_000)) };
    Red::new(&p, &env).unwrap()
}

fn pb_at(red: &mut Red, avg: f64) -> f64 {
    red.avg = avg;
    red.pb()
}

#[test]
fn slopes_of_the_three_forms() {
    let mut red = law(&[]);
    assert_eq!([4.9, 5.0, 10.0, 15.0].map(|a| pb_at(&mut red, a)), [0.0, 0.0, 0.05, 1.0]);
    let mut red = law(&[("gentle", "true")]);
    assert_eq!([15.0, 22.5, 30.0, 40.0].map(|a| pb_at(&mut red, a)), [0.1, 0.55, 1.0, 1.0]);
    let mut red = law(&[("gentle", "buffer")]);
    assert_eq!([15.0, 37.5, 60.0].map(|a| pb_at(&mut red, a)), [0.1, 0.55, 1.0]);
}

#[test]
fn gaps_between_signals_are_as_the_form_says() {
    // With pb = 0.1 and count = 1 at the first packet after a signal (section 4): uniform on
    // 1..=9, uniform on 10..=19, or geometric.
    for (wait, low, high, mean) in
        [("no", 1, 9, 5.0), ("yes", 10, 19, 14.5), ("bernoulli", 1, 1000, 10.0)]
    {
        let mut red = law(&[("wait", wait)]);
        let mut dice = <rand_pcg::Pcg64Mcg as rand_core::SeedableRng>::seed_from_u64(3);
        let (mut gaps, mut gap) = (vec![], 0);
        red.pb = 0.1;
        red.count = 0;
        while gaps.len() < 4000 {
            (red.count, gap) = (red.count + 1, gap + 1);
            if crate::Dice::chance(&mut dice, red.pa(500)) {
                gaps.push(gap);
                (red.count, gap) = (0, 0);
            }
        }
        let (min, max) = (*gaps.iter().min().unwrap(), *gaps.iter().max().unwrap());
        let sum: i32 = gaps.iter().sum();
        assert!(min == low && max <= high, "{wait}: {min}..{max}");
        assert!((f64::from(sum) / 4000.0 - mean).abs() < 0.3, "{wait}: {sum}");
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
    let mut red = law(&[("byte_mode", "mean"), ("wait", "bernoulli")]);
    red.pb = 0.1;
    assert!((red.pa(50) - 0.01).abs() < 1e-12 && (red.pa(1000) - 0.2).abs() < 1e-12);
    let mut red = law(&[("byte_mode", "max"), ("wait", "bernoulli")]);
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
        crate::build("red", &settings, crate::Rate(1_000_000)).err().unwrap().to_string()
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
