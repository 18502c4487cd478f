//! Unit tests of COBALT as in Linux.

use super::*;
use crate::context::Marks;
use crate::packet::Ecn;
use std::prelude::v1::*;

/// A target of 5 ms, an interval of 100 ms; a packet takes 1 ms.
fn settings() -> Settings {
    Settings::new(Span::ms(5), Span::ms(100), Span::ms(1))
}

/// Random numbers that are all the same.
struct Always(f64);

impl crate::Random for Always {
    fn uniform(&mut self) -> f64 {
        self.0
    }
}

/// Asks about a packet that waited for `sojourn`; returns if it is dropped, and the marks.
fn ask(
    cobalt: &mut Cobalt,
    (now, sojourn): (Time, Span),
    bulk: u64,
    ecn: bool,
    random: f64,
) -> (bool, u64) {
    let (mut rng, mut dropped, mut marks) = (Always(random), vec![], Marks::default());
    let mut context = Context { now, rng: &mut rng, dropped: &mut dropped, marks: &mut marks };
    let arrived = Time(now.0 - sojourn.0);
    let mut packet = Packet { arrived, ecn: Ecn::Ect0, ..Packet::default() };
    let drop = cobalt.should_drop(&mut context, &mut packet, &settings(), bulk, ecn);
    (drop, marks.packets)
}

const MS: u64 = 1_000_000;

#[test]
fn a_queue_is_kept_until_blue_and_the_count_are_zero_and_its_time_is_over() {
    for (p_blue, count, drop_next, active) in
        [(0, 0, 5, false), (0, 0, 6, true), (1, 0, 0, true), (0, 1, 0, true)]
    {
        let cobalt = Cobalt { p_blue, count, drop_next: Time(drop_next), ..Cobalt::default() };
        assert_eq!(cobalt.is_active(Time(5)), active, "{p_blue} {count} {drop_next}");
    }
}

#[test]
fn over_target_is_more_than_target_than_four_packets_and_than_two_per_bulk_flow() {
    let over = |sojourn: u64, mtu_time: Span, bulk| {
        let mut cobalt = Cobalt::default();
        let (mut rng, mut dropped, mut marks) = (Always(0.5), vec![], Marks::default());
        let now = Time(sojourn);
        let mut context = Context { now, rng: &mut rng, dropped: &mut dropped, marks: &mut marks };
        let settings = Settings { mtu_time, ..settings() };
        cobalt.should_drop(&mut context, &mut Packet::default(), &settings, bulk, false);
        cobalt.dropping
    };
    for (mtu_time, bulk, limit) in
        [(Span::ms(1), 0, 5 * MS), (Span::ms(2), 0, 8 * MS), (Span::ms(2), 3, 12 * MS)]
    {
        assert!(!over(limit, mtu_time, bulk) && over(limit + 1, mtu_time, bulk), "{bulk}");
    }
}

#[test]
fn a_queue_that_was_idle_for_an_interval_signals_with_its_second_packet_over_target() {
    // After a decay to 0 the inverse root is 1; before the first signal ever it is 0.
    let rest = |drop_next| {
        let mut cobalt = Cobalt { drop_next, ..Cobalt::default() };
        cobalt.set_count(0);
        cobalt
    };
    let now = Time(200 * MS);
    // The root of 1 is 1 - 2^-32.
    let later = Time(300 * MS - 1);
    for (drop_next, next) in
        [(Time(199 * MS), now), (Time(200 * MS), later), (Time(201 * MS), later)]
    {
        let mut cobalt = rest(drop_next);
        assert_eq!(ask(&mut cobalt, (now, Span::ms(20)), 0, false, 0.5), (false, 0));
        assert_eq!((cobalt.count, cobalt.drop_next), (1, next), "{drop_next:?}");
    }
}

/// In the dropping state with the given count, the next signal at 100 ms.
fn dropping(count: u32) -> Cobalt {
    let mut cobalt = Cobalt { dropping: true, drop_next: Time(100 * MS), ..Cobalt::default() };
    cobalt.set_count(count);
    cobalt
}

#[test]
fn signals_are_an_interval_by_the_root_of_the_count_apart_from_the_planned_time() {
    // count becomes 4: half an interval after the planned time.
    let mut cobalt = dropping(3);
    assert_eq!(ask(&mut cobalt, (Time(110 * MS), Span::ms(20)), 0, false, 0.5), (true, 0));
    assert_eq!(cobalt.count, 4);
    assert!(cobalt.drop_next.0.abs_diff(150 * MS) < 10, "{:?}", cobalt.drop_next);
    // A mark does the same.
    let mut cobalt = dropping(3);
    assert_eq!(ask(&mut cobalt, (Time(110 * MS), Span::ms(20)), 0, true, 0.5), (false, 1));
    assert!(cobalt.drop_next.0.abs_diff(150 * MS) < 10, "{:?}", cobalt.drop_next);
}

#[test]
fn a_signal_planned_for_the_past_moves_to_now_after_a_mark_but_not_after_a_drop() {
    let late = (Time(400 * MS), Span::ms(20));
    let mut cobalt = dropping(3);
    assert_eq!(ask(&mut cobalt, late, 0, true, 0.5), (false, 1));
    assert_eq!(cobalt.drop_next, late.0);
    let mut cobalt = dropping(3);
    assert_eq!(ask(&mut cobalt, late, 0, false, 0.5), (true, 0));
    assert!(cobalt.drop_next.0.abs_diff(150 * MS) < 10, "the next packet is judged at once");
}

#[test]
fn below_target_the_count_goes_back_by_the_same_schedule() {
    // From 4: due at 100 ms, then 57.7 and 70.7 ms later; the last one 100 ms after that.
    for (ms, count) in [(99, 4), (100, 3), (157, 3), (158, 2), (228, 2), (229, 1), (329, 0)] {
        let mut cobalt = dropping(4);
        ask(&mut cobalt, (Time(ms * MS), Span::ms(1)), 0, false, 0.5);
        assert_eq!((cobalt.count, cobalt.dropping), (count, false), "{ms} ms");
        if count == 0 {
            assert_eq!(cobalt.drop_next, Time((ms + 100) * MS), "the time for which it is kept");
        } else {
            assert!(cobalt.drop_next > Time(ms * MS), "{ms} ms");
        }
    }
}

#[test]
fn blue_drops_with_its_probability_what_codel_does_not_drop() {
    let half = |dropping_at: Cobalt, random, ecn| {
        let mut cobalt = Cobalt { p_blue: 1 << 31, ..dropping_at };
        ask(&mut cobalt, (Time(110 * MS), Span::ms(20)), 0, ecn, random)
    };
    assert_eq!([0.49, 0.51].map(|u| half(Cobalt::default(), u, false).0), [true, false]);
    assert_eq!([0.49, 0.51].map(|u| half(dropping(3), u, true)), [(true, 1), (false, 1)]);
    assert_eq!(half(dropping(3), 0.51, false), (true, 0), "what CoDel drops stays dropped");
    let mut cobalt = Cobalt::default();
    assert!(!ask(&mut cobalt, (Time(MS), Span::ZERO), 0, false, 0.0).0, "no drop at 0");
}

#[test]
fn blue_changes_at_most_once_in_more_than_a_target() {
    let settings = settings();
    let after = |us: u64| {
        let mut cobalt = Cobalt::default();
        cobalt.on_overflow(Time(0), &settings);
        cobalt.on_overflow(Time(us * 1000), &settings);
        cobalt.p_blue / P_INC
    };
    assert_eq!([0, 5000, 5001].map(after), [1, 1, 2]);
    let shares = [P_INC, P_DEC].map(|p| f64::from(p) / 4_294_967_296.0);
    assert_eq!(shares, [1.0 / 256.0, 1.0 / 4096.0]);
    let mut cobalt = Cobalt { p_blue: 2 * P_DEC, ..Cobalt::default() };
    cobalt.on_empty(Time(0), &settings);
    assert_eq!(cobalt.p_blue, P_DEC);
    cobalt.on_empty(Time(5 * MS), &settings);
    assert_eq!(cobalt.p_blue, P_DEC, "a target later");
    cobalt.on_empty(Time(6 * MS), &settings);
    cobalt.on_empty(Time(60 * MS), &settings);
    assert_eq!(cobalt.p_blue, 0);
    // No change from 0 on, so that the next overflow counts.
    cobalt.on_empty(Time(70 * MS), &settings);
    cobalt.on_overflow(Time(71 * MS), &settings);
    assert_eq!(cobalt.p_blue, P_INC);
}

#[test]
fn an_empty_queue_ends_the_dropping_state_and_takes_one_step_back() {
    for (ms, count) in [(99, 4), (100, 3), (1000, 3)] {
        let mut cobalt = dropping(4);
        cobalt.on_empty(Time(ms * MS), &settings());
        assert_eq!((cobalt.count, cobalt.dropping), (count, false), "{ms} ms");
    }
    let mut cobalt = Cobalt::default();
    cobalt.on_empty(Time(MS), &settings());
    assert_eq!(cobalt.count, 0);
}

#[test]
fn inverse_roots_are_exact_below_sixteen_and_newton_steps_above() {
    // 2^32 / sqrt(2), sqrt(3), 2, and sqrt(15), rounded down.
    let expected = [3_037_000_499, 2_479_700_524, 2_147_483_648, 1_108_955_787];
    assert_eq!([2, 3, 4, 15].map(|n| INVERSE_ROOTS[n]), expected);
    assert_eq!([0, 1].map(|n| INVERSE_ROOTS[n]), [u32::MAX; 2]);
    for count in 16..200 {
        let true_root = exact(count);
        let step = newton(true_root, u64::try_from(count).unwrap());
        assert!(step.abs_diff(true_root) <= 16, "{count}: {step} for {true_root}");
    }
    // A step squares the relative error e: 3/2 e^2, less e^3 / 2.
    let root = 1u32 << 28; // of 256
    let step = newton(root + root / 16, 256);
    let error = 1.0 - f64::from(step) / f64::from(root);
    assert!((error - (1.5 / 256.0 + 0.5 / 4096.0)).abs() < 1e-7, "{error}");
}

#[test]
fn skipping_the_steps_back_is_taking_them_all() {
    for count in [1, 2, 3, 20, 100, 1000] {
        let start = || {
            let mut cobalt = Cobalt::default();
            (1..=count).for_each(|n| cobalt.set_count(n));
            cobalt
        };
        let mut plain = start();
        (1..count).for_each(|_| plain.step_back(&settings()));
        // The last step is due now.
        let end = plain.drop_next;
        for (now, left) in [(Time(end.0.max(1) - 1), 1), (end, 0), (end + Span::s(86_400), 0)] {
            let mut cobalt = start();
            cobalt.decay(now, &settings());
            assert_eq!(cobalt.count, if now == Time::ZERO { 0 } else { left }, "{count}");
        }
    }
}
