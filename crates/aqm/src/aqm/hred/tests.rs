//! Unit tests of HRED.

use super::*;
use crate::testing::Bench;
use std::prelude::v1::*;

/// HRED on a link of 45 mbit with a buffer of 300 kB, as in the paper's simulations.
fn aqm(params: HredParams) -> Hred {
    let env = Env { limit: Size::Bytes(300_000), ..Env::new(Rate(45_000_000)) };
    Hred::build(&params, &env).unwrap()
}

fn near(got: f64, expected: f64) -> bool {
    (got / expected - 1.0).abs() < 1e-4
}

#[test]
fn the_configuration_follows_from_the_round_trip_time() {
    // Simulation and testbed of the paper, gains per byte.
    let h = aqm(HredParams::default());
    assert_eq!((h.min_th, h.max_th), (75_000.0, 150_000.0));
    assert!(near(h.k_alpha, 1.9753e-10) && near(h.k_beta, 7.9012e-10), "{}", h.k_alpha);
    let (slow, s) = (Rate(10_000_000), Bytes(500));
    assert!(near(gain(slow, s, Span::ms(200), true), 1.6e-8));
    assert!(near(gain(slow, s, Span::ms(100), true), 6.4e-8));
    // In packets: 2 / (11250 per second times 0.2 s)^2.
    assert!(near(gain(Rate(45_000_000), s, Span::ms(200), false), 2.0 / 2250.0 / 2250.0));
    let rtt = HredParams { rtt: Span::ms(100), ..HredParams::default() };
    assert_eq!(aqm(rtt).k_alpha, gain(Rate(45_000_000), s, Span::ms(200), true));
    let t_beta = HredParams { t_beta: Some(Span::ms(50)), ..HredParams::default() };
    assert_eq!(aqm(t_beta).k_alpha, gain(Rate(45_000_000), s, Span::ms(100), true));
}

#[test]
fn thresholds_leave_twice_as_much_above_as_below() {
    let th = |min_th: Option<u64>, max_th: Option<u64>| {
        let [min_th, max_th] = [min_th, max_th].map(|th| th.map(Size::Bytes));
        let params = HredParams { min_th, max_th, ..HredParams::default() };
        let th = thresholds(&params, Size::Bytes(300_000));
        th.map_err(|e| e.to_string())
    };
    assert_eq!(th(Some(60_000), None), Ok([60_000.0, 180_000.0]));
    assert_eq!(th(None, Some(200_000)), Ok([50_000.0, 200_000.0]));
    assert_eq!(th(Some(10_000), Some(290_000)), Ok([10_000.0, 290_000.0]));
    assert!(th(Some(100_000), None).unwrap_err().starts_with("min_th:"));
    assert!(th(Some(10_000), Some(300_001)).unwrap_err().starts_with("max_th:"));
    assert!(th(None, Some(300_000)).unwrap_err().starts_with("max_th:"));
    let packets = HredParams { min_th: Some(Size::Packets(9)), ..HredParams::default() };
    let refusal = thresholds(&packets, Size::Bytes(300_000)).unwrap_err().to_string();
    assert_eq!(refusal, "min_th: 9p is in another unit than limit (300kB)");
}

#[test]
fn the_map_runs_through_all_queues() {
    // From 0.75 p_min when empty to 1.75 p_min at twice max_th, p_max = 1.25 p_min (10).
    let h = aqm(HredParams::default());
    let relative = [0.0, 75e3, 150e3, 300e3].map(|q| h.probability(q) / 0.01);
    for (got, expected) in relative.into_iter().zip([0.75, 1.0, 1.25, 1.75]) {
        assert!((got - expected).abs() < 1e-12, "{got}");
    }
    let certain = aqm(HredParams { p_min: 0.8, ..HredParams::default() });
    assert_eq!(certain.probability(300e3), 1.0);
    let steep = aqm(HredParams { kappa: 0.1, ..HredParams::default() });
    assert_eq!(steep.probability(0.0), 0.0, "p_min (1 - 75/15) is below 0");
}

/// p_min after an arrival at `q`, from 0.01.
fn after(params: HredParams, q: f64) -> f64 {
    let mut h = aqm(params);
    let p = h.probability(q);
    h.adjust(q, p);
    h.p_min
}

#[test]
fn p_min_moves_outside_the_band_only() {
    let moved = |q| after(HredParams::default(), q) - 0.01;
    assert_eq!([75e3, 100e3, 150e3].map(moved), [0.0; 3]);
    // 1.9753e-10 of (0.01 * 1.4166) times 50,000; 7.9012e-10 of (0.01 * 0.8333) times 50,000.
    assert!(near(moved(200e3), 1.9753e-10 * 0.01 * (1.0 + 125.0 / 300.0) * 50e3));
    assert!(near(moved(25e3), -7.9012e-10 * 0.01 * (1.0 - 50.0 / 300.0) * 50e3));
}

#[test]
fn steps_are_at_most_half_and_end_at_floor_and_one() {
    let fast = || HredParams { rtt: Span::us(100), ..HredParams::default() };
    assert_eq!(after(fast(), 300e3), 0.015);
    assert_eq!(after(fast(), 0.0), 0.005);
    let mut h = aqm(fast());
    for (q, end) in [(300e3, 1.0), (0.0, 1e-5), (300e3, 1.0)] {
        for _ in 0..50 {
            let p = h.probability(q);
            h.adjust(q, p);
        }
        assert_eq!(h.p_min, end, "from the floor it rises again");
    }
}

#[test]
fn fixed_point_cuts_chances_and_steps() {
    let bits = |fixed_point| HredParams { fixed_point, ..HredParams::default() };
    // 0.01 in units of 2^-16 is 655, 0.75 of it 491; a step of 3.5e-8 is less than a unit.
    let unit = 1.0 / 65_536.0;
    assert_eq!(aqm(bits(16)).p_min, 655.0 * unit);
    assert_eq!(aqm(bits(16)).probability(0.0), 491.0 * unit);
    assert_eq!(after(bits(16), 300e3), 655.0 * unit, "a small step is lost");
    assert!(near(after(bits(40), 300e3), after(bits(0), 300e3)));
    // The floor is at least one unit.
    assert_eq!(aqm(HredParams { p_min: 1e-9, ..bits(16) }).p_min, unit);
}

#[test]
fn stability_as_in_the_theory() {
    // 45 mbit and 120 ms are a bandwidth-delay product of 675 kB.
    let th = |buffer: f64| [buffer / 4.0, buffer / 2.0];
    assert!((deviation_gain(112.5, 675.0, th(300.0), 2.0) - 1.1667).abs() < 1e-4);
    // (11) at B = 300 kB: from 225 kB on.
    assert!((deviation_gain(225.0, 675.0, th(300.0), 2.0) - 1.0).abs() < 1e-12);
    assert!(deviation_gain(0.0, 675.0, th(500.0), 2.0) < 1.0, "500 kB: always");
    let least = stable_buffer(675.0, 2.0);
    assert!((least / 675.0 - 0.571).abs() < 1e-3);
    assert!((deviation_gain(least / 4.0, 675.0, th(least), 2.0) - 1.0).abs() < 1e-12);
    assert!((largest_change(300.0, 675.0, th(300.0)) - 0.1).abs() < 1e-12);
}

#[test]
fn a_deviation_grows_or_shrinks_by_the_gain() {
    // (5): one round trip later the queue is what N flows send at the previous drop
    // probability, K N / sqrt(p) - CR. K N is such that `rest` is the fixed point; the start is
    // 1 % off.
    for (cr, rest, kappa) in [(675e3, 112.5e3, 2.0), (675e3, 112.5e3, 4.0), (300e3, 80e3, 2.0)] {
        let h = aqm(HredParams { kappa, ..HredParams::default() });
        let kn = (rest + cr) * libm::sqrt(h.probability(rest));
        let next = |q: f64| kn / libm::sqrt(h.probability(q)) - cr;
        let gain = deviation_gain(rest, cr, [h.min_th, h.max_th], kappa);
        let growth = (next(rest * 1.0001) - rest) / (rest * 0.0001);
        assert!((growth + gain).abs() < 1e-3 * gain, "{growth}, not {}", -gain);
        let after = (0..40).fold(rest * 1.01, |q, _| next(q));
        let settled = (after - rest).abs() < 0.01 * rest;
        assert_eq!(settled, gain < 1.0, "{gain}: {after}");
    }
}

#[test]
fn time_alone_changes_nothing() {
    let mut q = Bench::new("hred", &[("limit", "8p"), ("rtt", "1ms"), ("packet", "1000B")]);
    for i in 0..12 {
        q.put(i, 1000);
    }
    let before = q.gauge("p_min");
    assert!(before > 0.01, "more than 4 wait: {before}");
    q.drain();
    q.at_ms(86_400_000);
    assert_eq!(q.gauge("p_min"), before);
    // The first packet after the idle time finds an empty queue, two less than min_th, and p =
    // 0.75 p_min.
    q.put(20, 1000);
    let k_beta = gain(Rate(8_000_000), Bytes(1000), Span::ms(1), false);
    assert_eq!(k_beta, 2.0);
    assert_eq!(q.gauge("p_min"), before / 2.0, "3 p_min would be more than half");
    assert!((q.gauge("p_max") / q.gauge("p_min") - 1.25).abs() < 1e-12);
}

// Equation 16.
#[test]
fn the_largest_change_of_the_load_is_bounded_on_both_sides() {
    // With a buffer of 300: 150 / 250 until it overflows, 75 / 175 until the queue is empty.
    assert!(near(largest_change(300.0, 100.0, [75.0, 150.0]), 75.0 / 175.0));
    // With a buffer of 200, 50 / 250 until it overflows.
    assert!(near(largest_change(200.0, 100.0, [75.0, 150.0]), 0.2));
}

#[test]
fn an_overflow_raises_p_min_by_a_step() {
    let step = || HredParams { overflow: Overflow::Step, ..HredParams::default() };
    let mut h = aqm(step());
    h.on_overflow(Time::ZERO);
    h.on_overflow(Time::ZERO);
    assert!((h.p_min - 0.0104).abs() < 1e-15);
    let mut large = aqm(HredParams { d1: 0.7, p_min: 0.5, ..step() });
    large.on_overflow(Time::ZERO);
    assert_eq!(large.p_min, 1.0);
    let mut none = aqm(HredParams::default());
    none.on_overflow(Time::ZERO);
    assert_eq!(none.p_min, 0.01);
}

#[test]
fn the_measured_probability_counts_each_packet_once() {
    let mut measured = Measured { interval: Span::ms(200), ..Measured::default() };
    assert_eq!(measured.ratio(Time::ZERO), None, "the first arrival begins an interval");
    // Ten arrivals at p = 0.1: one early drop, one overflow, and one packet that is both.
    for i in 0..10 {
        measured.count_arrival(0.1, i == 2 || i == 7);
        if i == 4 || i == 7 {
            measured.count_overflow();
        }
    }
    assert_eq!(measured.ratio(Time(199_999_999)), None, "the interval is not over");
    let ratio = measured.ratio(Time::ZERO + Span::ms(200)).unwrap();
    assert!((ratio - 3.0).abs() < 1e-12, "3 drops of 10, 1 expected: {ratio}");
    measured.count_arrival(0.1, true);
    assert_eq!(measured.ratio(Time::ZERO + Span::ms(400)), None, "no overflow");
}

/// p_min after a buffer of four packets overflowed three times within T_beta, and an arrival at the
/// end of it.
fn after_overflows(settings: &[(&str, &str)]) -> f64 {
    let base = [("limit", "4p"), ("p_min", "0.1"), ("rtt", "10ms"), ("packet", "1000B")];
    let mut q = Bench::new("hred", &[&base, settings].concat());
    q.at_ms(1);
    (0..7).for_each(|i| drop(q.put(i, 1000)));
    q.at_ms(11);
    q.put(7, 1000);
    q.gauge("p_min")
}

#[test]
fn a_reset_takes_p_min_to_the_measured_probability() {
    let none = after_overflows(&[]);
    let reset = after_overflows(&[("overflow", "reset")]);
    // At least three of seven packets were dropped.
    assert!(reset > 3.0 * none, "{none} {reset}");
    let tolerant = after_overflows(&[("overflow", "reset"), ("excess", "1000")]);
    assert_eq!(tolerant, none, "the ratio is below `excess`");
}
