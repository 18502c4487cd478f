//! Unit tests of PIE as in Linux.

use super::*;
use crate::fifo::SingleFifo;
use crate::packet::Ecn;
use crate::params::{Params, Setting};
use std::prelude::v1::*;

fn pie(settings: &[(&str, &str)]) -> LinuxPie {
    let mut params = PieParams::default();
    settings.iter().for_each(|(k, v)| params.set(k, Setting::Text(v)).unwrap());
    LinuxPie::new(&params, false)
}

#[test]
fn many_updates_are_those_one_by_one() {
    let probabilities = [0, 1, MAX_PROB / 300_000, MAX_PROB / 70, MAX_PROB / 2, MAX_PROB];
    for settings in [&[][..], &[("alpha", "0.0625")], &[("alpha", "2"), ("target", "1ms")]] {
        for delay_ms in [0, 1, 14, 15, 16, 40, 249, 251, 900] {
            for (prob, backlog) in probabilities.into_iter().flat_map(|p| [(p, 0), (p, 5000)]) {
                let start = || {
                    let mut pie = pie(settings);
                    (pie.prob, pie.qdelay) = (prob, units(Span::ms(delay_ms)));
                    pie
                };
                for n in [1, 2, 3, 50, 20_000] {
                    let (mut once, mut singly) = (start(), start());
                    once.update_often(n, backlog);
                    (0..n).for_each(|_| singly.update(cast::low32(backlog)));
                    let shown = |p: &LinuxPie| (p.prob, p.qdelay, p.qdelay_old, p.burst_time);
                    assert_eq!(shown(&once), shown(&singly), "{n} at {delay_ms} ms, {prob}");
                }
            }
        }
    }
}

#[test]
fn any_number_of_updates_ends() {
    for (delay, prob) in [(Span::ms(900), 0), (Span::us(15_001), MAX_PROB), (Span::ZERO, 1)] {
        for backlog in [0, 1500] {
            let mut pie = pie(&[("alpha", "0.0625"), ("beta", "0")]);
            (pie.qdelay, pie.prob) = (units(delay), prob);
            pie.update_often(u64::MAX, backlog);
        }
    }
}

#[test]
fn a_leap_from_a_bound_of_the_gains_ends_below_the_next() {
    // 16 ms are 15,625 units above the target; alpha is 2/16, halved below a tenth.
    let step = ((2 * (MAX_PROB / PER_SECOND)) >> 5) * 15_625;
    let mut pie = pie(&[]);
    (pie.prob, pie.qdelay) = (MAX_PROB / 100, units(Span::ms(16)));
    let k = pie.leap(u64::MAX);
    assert_eq!(k, (MAX_PROB / 10 - 1 - MAX_PROB / 100) / step);
    assert_eq!(pie.prob, MAX_PROB / 100 + k * step);
}

#[test]
fn gauges_are_in_seconds_and_shares() {
    let mut pie = pie(&[]);
    (pie.qdelay_old, pie.burst_time) = (100, 3);
    (pie.accu_prob, pie.avg_dq_rate) = (MAX_PROB / 4, 512);
    assert_eq!((pie.qdelay_old(), pie.burst()), (Span(6400), Span(192)));
    assert!((pie.accu() - 0.25).abs() < 1e-9);
    // Two bytes per 64 ns.
    assert_eq!(pie.dq_rate(), 31_250_000.0);
    pie.on_drop();
    assert_eq!(pie.accu_prob, 0);
}

#[test]
fn gains_are_halved_below_a_tenth_and_quartered_with_each_further_digit() {
    // 2/16 and 20/16 of 2^56 per second.
    let (alpha, beta) = (576_460_752, 5_764_607_522);
    for (prob, digits) in [
        (MAX_PROB / 10, 0),
        (MAX_PROB / 10 - 1, 1),
        (MAX_PROB / 100, 1),
        (MAX_PROB / 100 - 1, 3),
        (MAX_PROB / 1000, 3),
        (MAX_PROB / 1_000_000, 9),
        (MAX_PROB / 1_000_000 - 1, 11),
        (0, 11),
    ] {
        let mut pie = pie(&[]);
        pie.prob = prob;
        assert_eq!(pie.scaled_gains(), (alpha >> digits, beta >> digits), "{prob}");
    }
}

#[test]
fn a_delay_above_250_ms_adds_two_percent() {
    let pie = pie(&[("alpha", "0"), ("beta", "0")]);
    let step = |us| pie.delta(units(Span::us(us)), 0);
    assert_eq!((step(250_000), step(250_001)), (0, (MAX_PROB / 50).cast_signed()));
}

#[test]
fn the_burst_allowance_is_restored_below_half_the_target_once_the_rate_is_known() {
    // The target is 234,375 units.
    for (old, delay, prob, restored) in [
        (117_186, 117_186, 0, true),
        (117_187, 117_186, 0, false),
        (117_186, 117_187, 0, false),
        (117_186, 117_186, 1, false),
    ] {
        let mut pie = pie(&[("alpha", "0"), ("beta", "0")]);
        (pie.burst_time, pie.prob, pie.qdelay_old, pie.qdelay) = (5, prob, old, delay);
        pie.update(1000);
        assert_eq!(pie.burst_time, if restored { 2_343_750 } else { 5 }, "{old} {delay}");
    }
    for (rate, burst) in [(0, 5), (256, 2_343_750)] {
        let mut pie = pie(&[("latency", "rate")]);
        (pie.burst_time, pie.avg_dq_rate) = (5, rate);
        pie.update(0);
        assert_eq!(pie.burst_time, burst, "{rate}");
    }
}

struct Shown(f64);

impl crate::Random for Shown {
    fn uniform(&mut self) -> f64 {
        self.0
    }
}

/// Verdict on a packet that arrives at `backlog` bytes, if the random number is `u`.
fn verdict(pie: &mut LinuxPie, backlog: u32, u: f64, ecn: Ecn) -> Verdict {
    let mut fifo = SingleFifo::default();
    fifo.push(Packet { len: backlog, ..Packet::default() });
    let queue = QueueView::single(&mut fifo);
    let (mut rng, mut dropped, mut marks) = (Shown(u), vec![], crate::Marks::default());
    let now = Time::ZERO;
    let mut context = Context { now, rng: &mut rng, dropped: &mut dropped, marks: &mut marks };
    pie.on_enqueue(&mut context, &queue, &Packet { len: 500, ecn, ..Packet::default() })
}

/// A queue with a delay of the target, without a burst allowance, about to drop.
fn late(prob: u64) -> LinuxPie {
    let mut pie = pie(&[]);
    (pie.prob, pie.qdelay, pie.burst_time) = (prob, pie.target, 0);
    pie.accu_prob = MAX_PROB;
    pie
}

#[test]
fn packets_are_marked_up_to_a_probability_if_both_ends_can() {
    let most = MAX_PROB / 100 * 10;
    for (on, ecn, prob, expected) in [
        (true, Ecn::Ect0, most, Verdict::Mark),
        (true, Ecn::Ect0, most + 1, Verdict::Drop),
        (true, Ecn::NotEct, most, Verdict::Drop),
        (false, Ecn::Ect0, most, Verdict::Drop),
    ] {
        let mut pie = late(prob);
        pie.ecn = on;
        assert_eq!(verdict(&mut pie, 10_000, 0.0, ecn), expected, "{on} {ecn:?} {prob}");
    }
}

#[test]
fn nothing_is_dropped_in_a_burst_a_short_queue_or_while_delay_and_probability_are_low() {
    let fifth = MAX_PROB / 5;
    for (prob, delay, burst, backlog, expected) in [
        (fifth - 1, 117_187, 0, 3000, Verdict::Drop),
        (fifth - 1, 117_186, 0, 3000, Verdict::Pass),
        (fifth, 117_186, 0, 3000, Verdict::Drop),
        (fifth, 117_187, 1, 3000, Verdict::Pass),
        (fifth, 117_187, 0, 2999, Verdict::Pass),
    ] {
        let mut pie = late(prob);
        (pie.qdelay, pie.burst_time, pie.mtu) = (delay, burst, 1500);
        assert_eq!(verdict(&mut pie, backlog, 0.0, Ecn::NotEct), expected, "{prob} {delay}");
    }
}

#[test]
fn the_sum_of_the_probabilities_keeps_drops_apart() {
    let p = MAX_PROB / 4;
    let (first, last) = (MAX_PROB / 100 * 85, MAX_PROB / 2 * 17);
    for (sum, u, expected) in [
        (first - 1, 0.0, Verdict::Pass),
        (first, 0.0, Verdict::Drop),
        (last - 1, 0.9, Verdict::Pass),
        (last, 0.9, Verdict::Drop),
    ] {
        let mut pie = late(p);
        pie.accu_prob = sum - p;
        assert_eq!(verdict(&mut pie, 10_000, u, Ecn::NotEct), expected, "{sum}");
    }
}

#[test]
fn the_time_between_departures_uses_the_burst_allowance_up() {
    let mut pie = pie(&[]);
    pie.burst_time = 1000;
    let mut leave = |at: u64| {
        pie.on_dequeue(Time(at << SHIFT), Time(0), 1000, 5000);
        (pie.burst_time, pie.qdelay)
    };
    assert_eq!([leave(200), leave(300), leave(2000)], [(1000, 200), (900, 300), (0, 2000)]);
}

#[test]
fn the_rate_is_measured_over_16384_bytes() {
    let mut pie = pie(&[("latency", "rate")]);
    pie.burst_time = 1000;
    let mut leave = |at: u64, len, backlog| {
        pie.on_dequeue(Time(at << SHIFT), Time(0), len, backlog);
        (pie.avg_dq_rate, pie.dq_count, pie.burst_time)
    };
    assert_eq!(leave(50, 8192, 16_383), (0, None, 1000));
    assert_eq!(leave(100, 8192, 16_384), (0, Some(8192), 1000));
    // 16,384 bytes in 100 units, and 256 units of rate per byte.
    assert_eq!(leave(200, 8192, 16_384), (41_943, Some(0), 900));
    assert_eq!(leave(250, 16_383, 16_384), (41_943, Some(16_383), 900));
    // An eighth of 16,384 * 256 / 100 again, and of the old average.
    assert_eq!(leave(300, 1, 16_383), (41_943, None, 800));
}
