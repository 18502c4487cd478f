//! Unit tests of PIE.

use super::*;
use crate::fifo::SingleFifo;
use crate::params::{Params, Setting};
use crate::testing::Bench;
use std::prelude::v1::*;

fn near(x: f64, y: f64) -> bool {
    (x / y - 1.0).abs() < 1e-9
}

fn aqm(settings: &[(&str, &str)]) -> Pie {
    let mut p = PieParams::default();
    settings.iter().for_each(|(k, v)| p.set(k, Setting::Text(v)).unwrap());
    let mut aqm = Pie::build(&p, &Env::new(crate::units::Rate(8_000_000))).unwrap();
    aqm.on_first_packet(Time::ZERO);
    aqm
}

/// A hundred packets of 1000 bytes at once; at 30, 45 and 60 ms one leaves.
fn three_leave(settings: &[(&str, &str)]) -> Bench {
    let mut q = Bench::new("pie", settings);
    (0..100).for_each(|i| assert!(q.put(i, 1000).is_empty()));
    [30, 45, 60].into_iter().for_each(|ms| {
        q.at_ms(ms);
        q.get();
    });
    q
}

#[test]
fn updates_by_hand() {
    // Nothing has left at 15 and 30 ms: no delay. At 45 ms the delay is 30 ms, at 60 ms it is
    // 45: (0.125 * 0.015 + 1.25 * 0.030) / 2048, then (0.125 * 0.030 + 1.25 * 0.015) / 128.
    let q = three_leave(&[]);
    let (first, second) = (0.039_375 / 2048.0, 0.0225 / 128.0);
    assert!(near(q.gauge("p"), first + second), "{}", q.gauge("p"));
    assert_eq!(q.gauge("qdelay_old"), 0.045);
    assert_eq!(q.gauge("burst"), 0.120, "two of ten updates have passed");
    let q = three_leave(&[("hold", "true")]);
    assert_eq!((q.gauge("p"), q.gauge("burst")), (0.0, 0.120));
}

#[test]
fn steps_up_are_capped_and_p_decays_without_delay() {
    let mut pie = aqm(&[]);
    pie.p = 0.2;
    pie.update(Span::ms(100));
    assert!(near(pie.p, 0.22), "0.125 * 0.085 + 0.125 is more than 0.02");
    pie.qdelay_old = Span::ZERO;
    pie.update(Span::ZERO);
    assert!(near(pie.p, 0.98 * (0.22 - 0.125 * 0.015)));
    pie.p = 1.0;
    pie.update(Span::ms(100));
    assert_eq!(pie.p, 1.0);
}

#[test]
fn leaps_are_the_updates_one_by_one() {
    for (hold, p, burst, old, delay) in [
        (false, 0.0, 150, 0, 16),
        (false, 0.3, 0, 40, 14),
        (false, 5e-6, 30, 5, 40),
        (false, 0.05, 0, 0, 0),
        (true, 0.0, 150, 20, 25),
        (true, 0.0, 150, 16, 16),
        (true, 0.9, 0, 20, 2),
        (false, 0.9, 40, 20, 15),
        (false, 0.0, 150, 10, 10),
        (false, 0.0, 30, 5, 5),
        (false, 1.0, 150, 20, 20),
    ] {
        let start = || {
            let mut pie = aqm(&[("hold", if hold { "true" } else { "false" })]);
            (pie.p, pie.burst, pie.qdelay_old) = (p, Span::ms(burst), Span::ms(old));
            pie.sojourn = Span::ms(delay);
            pie
        };
        let mut fifo = SingleFifo::default();
        fifo.push(Packet { len: 1000, ..Packet::default() });
        let queue = QueueView::single(&mut fifo);
        for n in [1, 2, 7, 100, 2000, 5000] {
            let (mut once, mut singly) = (start(), start());
            once.on_update(Time(n * 15_000_000), &queue);
            (0..n).for_each(|_| singly.update(Span::ms(delay)));
            let (a, b) = (once.p, singly.p);
            assert!((a - b).abs() <= 1e-9 * b, "{p} {delay} {n}: {a} {b}");
            assert_eq!(once.burst, singly.burst, "{p} {delay} {n}");
            assert_eq!(once.qdelay_old, singly.qdelay_old);
        }
    }
}

#[test]
fn a_burst_passes_and_a_standing_queue_does_not() {
    let mut q = three_leave(&[]);
    // The allowance counts from 30 ms, the last update without delay, and is used up at 180 ms.
    let mut dropped = vec![];
    for ms in 61..1000 {
        q.at_ms(ms);
        dropped.extend(q.put(1000 + ms as u32, 1000).into_iter().map(|_| ms));
        q.get();
    }
    assert!(dropped[0] >= 180 && dropped.len() > 20, "{dropped:?}");
}

#[test]
fn a_day_of_full_or_empty_queue_ends_at_the_bounds() {
    let mut q = three_leave(&[]);
    q.at_ms(86_400_000);
    assert_eq!(q.put(1000, 1000), [1000]);
    assert_eq!(q.gauge("p"), 1.0);
    q.drain();
    q.at_ms(2 * 86_400_000);
    assert!(q.put(1001, 1000).is_empty());
    assert_eq!((q.gauge("p"), q.gauge("burst")), (0.0, 0.150));
}

/// The shortest times, which are the default ones divided by 15,000, with gains that are as many
/// times as large.
const MICROSECOND: [(&str, &str); 5] = [
    ("target", "1us"),
    ("t_update", "1us"),
    ("max_burst", "10us"),
    ("alpha", "1875"),
    ("beta", "18750"),
];

#[test]
fn with_times_of_a_microsecond_p_is_that_of_the_default() {
    let (mut slow, mut fast) = (aqm(&[]), aqm(&MICROSECOND));
    (slow.p, fast.p) = (0.2, 0.2);
    for delay in [0, 15, 30, 75, 75, 60, 30, 15, 6, 6, 0, 0, 0, 150, 300, 300] {
        slow.update(Span::ms(delay));
        fast.update(Span(delay * 1000 / 15));
        assert!((slow.p - fast.p).abs() < 1e-12, "{delay}: {} {}", slow.p, fast.p);
        assert_eq!(slow.burst.0, fast.burst.0 * 15_000);
    }
    assert!(fast.p > 0.1, "{}", fast.p);
}

#[test]
fn a_day_of_updates_each_microsecond_is_bounded_work() {
    // 86 billion updates, of which 10 million shorten an allowance of 10 s.
    let held = [("max_burst", "10s"), ("hold", "true")];
    let mut q = three_leave(&[&MICROSECOND[..2], &held].concat());
    q.at_ms(5_000);
    q.get();
    // The allowance counts from 30 ms, when the first packet leaves.
    assert!(q.gauge("p") == 0.0 && near(q.gauge("burst"), 5.03), "{}", q.gauge("burst"));
    q.at_ms(86_400_000);
    assert_eq!(q.put(1000, 1000), [1000]);
    assert_eq!((q.gauge("p"), q.gauge("burst")), (1.0, 0.0));
    q.drain();
    q.at_ms(2 * 86_400_000);
    assert!(q.put(1001, 1000).is_empty());
    assert_eq!((q.gauge("p"), q.gauge("burst")), (0.0, 10.0));
}

#[test]
fn marks_up_to_a_probability_and_drops_above() {
    for (threshold, marked) in [("0.1", 0), ("1", 1)] {
        let mut q = three_leave(&[("ecn", "true"), ("mark_ecnth", threshold)]);
        q.ect();
        q.at_ms(86_400_000);
        assert_eq!((q.put(1000, 1000).len() as u64, q.marked()), (1 - marked, marked));
    }
}

/// Number of packets up to and including the first drop at p = 0.1.
fn first_signal(settings: &[(&str, &str)], u: f64, backlog: u32) -> Option<usize> {
    struct Shown(f64);
    impl crate::Random for Shown {
        fn uniform(&mut self) -> f64 {
            self.0
        }
    }
    let mut pie = aqm(settings);
    (pie.p, pie.burst, pie.qdelay_old) = (0.1, Span::ZERO, Span::ms(20));
    let mut fifo = SingleFifo::default();
    fifo.push(Packet { len: backlog, ..Packet::default() });
    let mut queue = QueueView::single(&mut fifo);
    let (mut rng, mut dropped, mut marks) = (Shown(u), vec![], crate::Marks::default());
    let now = Time::ZERO;
    let mut context = Context { now, rng: &mut rng, dropped: &mut dropped, marks: &mut marks };
    let packet = Packet { len: 500, ..Packet::default() };
    let first =
        (1..=200).find(|_| pie.on_enqueue(&mut context, &mut queue, &packet) == Verdict::Mark);
    assert!(first.is_none() || pie.accu == 0.0);
    first
}

#[test]
fn derandomised_signals_are_kept_apart() {
    assert_eq!(first_signal(&[], 0.09, 3001), Some(1));
    assert_eq!(first_signal(&[], 0.1, 3001), None, "u < p");
    assert_eq!(first_signal(&[], 0.0, 3000), None, "two mean packets are no queue");
    // 0.1 a packet: 0.85 is reached at the ninth, 8.5 at the 85th or, rounded, the next.
    let apart = [("derandomise", "true")];
    assert_eq!(first_signal(&apart, 0.0, 3001), Some(9));
    assert!(matches!(first_signal(&apart, 0.5, 3001), Some(85 | 86)));
    // A third of a mean packet has a third of the probability.
    assert_eq!(first_signal(&[("byte_mode", "true")], 0.033, 3001), Some(1));
    assert_eq!(first_signal(&[("byte_mode", "true")], 0.034, 3001), None);
}

#[test]
fn the_rate_is_measured_where_there_are_no_timestamps() {
    let mut q = Bench::new("pie", &[("latency", "rate"), ("dq_threshold", "10kB")]);
    (0..100).for_each(|i| drop(q.put(i, 1000)));
    for ms in 0..=12 {
        q.at_ms(ms);
        q.get();
    }
    assert!(near(q.gauge("dq_rate"), 1e6), "{}", q.gauge("dq_rate"));
    // 87 wait at 15 ms: 87 ms.
    q.at_ms(15);
    q.get();
    assert_eq!(q.gauge("qdelay_old"), 0.087);
}

#[test]
fn in_fq_pie_each_flow_has_its_own() {
    let mut q = Bench::new("fq_pie", &[("quantum", "1000B")]);
    (0..400).for_each(|i| drop(q.put_flow(1, i, 1000)));
    let mut dropped = [0, 0];
    for ms in 1..2000 {
        q.at_ms(ms);
        dropped[0] += q.put_flow(1, 400, 1000).len();
        if ms % 4 == 0 {
            dropped[1] += q.put_flow(2, 500, 1000).len();
        }
        q.get();
    }
    assert!(dropped[0] > 100 && dropped[1] == 0, "{dropped:?}");
}

// RFC 8033 §5.2
#[test]
fn the_departure_rate_is_measured_over_the_threshold() {
    let settings = [("latency", "rate"), ("dq_threshold", "2000B"), ("dq_weight", "0.5")];
    let mut q = Bench::new("pie", &settings);
    let mut rate_at = |ms, arrivals: u32| {
        q.at_ms(ms);
        (0..arrivals).for_each(|i| assert!(q.put(i, 1000).is_empty()));
        q.get();
        q.gauge("dq_rate")
    };
    // The first departure begins a measurement, the second one after it ends it: 20 ms for 2000 B.
    assert_eq!([rate_at(10, 9), rate_at(20, 0), rate_at(30, 0)], [0.0, 0.0, 100_000.0]);
    // The next one follows at once: 10 ms, half of which counts.
    assert!(near(rate_at(35, 0), 100_000.0));
    assert!(near(rate_at(40, 0), 2000.0 / 0.015));
    assert!(near(rate_at(50, 0), 2000.0 / 0.015));
    assert!(near(rate_at(60, 0), 2000.0 / 0.0175));
    assert!(near(rate_at(70, 0), 2000.0 / 0.0175));
    assert!(near(rate_at(80, 0), 2000.0 / 0.01875));
    // Too little waits for another; the time until there is enough does not count.
    assert!(near(rate_at(200, 5), 2000.0 / 0.01875));
    assert!(near(rate_at(210, 0), 2000.0 / 0.01875));
    assert!(near(rate_at(220, 0), 2000.0 / (0.5 * (0.01875 + 0.02))));
}

#[test]
fn hold_keeps_the_probability_at_zero_only_while_the_burst_allowance_lasts() {
    for (hold, early) in [("true", false), ("false", true)] {
        let mut q = Bench::new("pie", &[("hold", hold), ("max_burst", "150ms")]);
        (0..100).for_each(|i| assert!(q.put(i, 1000).is_empty()));
        q.at_ms(50);
        q.get();
        q.at_ms(100);
        q.get();
        assert_eq!(q.gauge("p") > 0.0, early, "{hold}");
        q.at_ms(400);
        q.get();
        assert!(q.gauge("p") > 0.0 && q.gauge("burst") == 0.0, "{hold}");
    }
}

// RFC 8033 §4.2
#[test]
fn steps_are_scaled_by_the_present_probability() {
    // The delay rises from 30 to 31 ms, the target is 15 ms.
    let step = 0.125 * 0.016 + 1.25 * 0.001;
    for (p, divisor) in [
        (9e-7, 2048.0),
        (1e-6, 512.0),
        (1e-5, 128.0),
        (1e-4, 32.0),
        (1e-3, 8.0),
        (1e-2, 2.0),
        (9e-2, 2.0),
        (0.1, 1.0),
    ] {
        let mut pie = aqm(&[]);
        (pie.p, pie.qdelay_old) = (p, Span::ms(30));
        pie.update(Span::ms(31));
        assert!(near(pie.p, p + step / divisor), "{p}: {}", pie.p);
    }
}

// RFC 8033 §5.5: "if (drop_prob >= 0.1 && p > 0.02) p = 0.02"; steps down have no bound.
#[test]
fn the_step_is_bounded_from_a_probability_of_a_tenth_on() {
    for (p, from, to, step) in [
        (0.0999, 0, 500, (0.125 * 0.485 + 1.25 * 0.5) / 2.0),
        (0.1, 0, 500, 0.02),
        (0.9, 500, 100, 0.125 * 0.085 - 1.25 * 0.4),
    ] {
        let mut pie = aqm(&[]);
        (pie.p, pie.qdelay_old) = (p, Span::ms(from));
        pie.update(Span::ms(to));
        assert!(near(pie.p, p + step), "{p}: {}", pie.p);
    }
}

// RFC 8033 §4.4
#[test]
fn the_burst_allowance_is_restored_below_half_the_target_alone() {
    // Half of 15 ms is 7.5 ms. With alpha = beta = 0 the probability stays.
    for (p, old_us, delay_us, restored) in [
        (0.0, 7_499, 7_499, true),
        (0.0, 7_500, 7_499, false),
        (0.0, 7_499, 7_500, false),
        (0.1, 7_499, 7_499, false),
    ] {
        let mut pie = aqm(&[("alpha", "0"), ("beta", "0")]);
        (pie.p, pie.burst, pie.qdelay_old) = (p, Span::ms(45), Span::us(old_us));
        pie.update(Span::us(delay_us));
        let left = Span::ms(if restored { 150 } else { 30 });
        assert_eq!((pie.burst, pie.qdelay_old), (left, Span::us(delay_us)), "{p} {old_us}");
    }
}

// RFC 8033 §4.2: p decays only where neither this nor the last delay was above zero.
#[test]
fn the_probability_decays_after_two_updates_without_delay() {
    for (old, delay, left) in [(0, 0, 0.98), (1, 0, 1.0), (0, 1, 1.0)] {
        let mut pie = aqm(&[("alpha", "0"), ("beta", "0")]);
        (pie.p, pie.qdelay_old) = (0.5, Span::us(old));
        pie.update(Span::us(delay));
        assert!(near(pie.p, 0.5 * left), "{old} {delay}: {}", pie.p);
    }
}

/// Verdict on a packet that arrives at a queue of more than two mean packets, if the random number
/// is 0.
fn verdict(pie: &mut Pie) -> Verdict {
    struct Least;
    impl crate::Random for Least {
        fn uniform(&mut self) -> f64 {
            0.0
        }
    }
    let mut fifo = SingleFifo::default();
    fifo.push(Packet { len: 3001, ..Packet::default() });
    let mut queue = QueueView::single(&mut fifo);
    let (mut rng, mut dropped, mut marks) = (Least, vec![], crate::Marks::default());
    let now = Time::ZERO;
    let mut context = Context { now, rng: &mut rng, dropped: &mut dropped, marks: &mut marks };
    pie.on_enqueue(&mut context, &mut queue, &Packet { len: 500, ..Packet::default() })
}

// RFC 8033 §4.1
#[test]
fn nothing_is_dropped_in_a_burst_or_while_delay_and_probability_are_low() {
    for (p, delay_us, burst_ms, expected) in [
        (0.199, 7_499, 0, Verdict::Pass),
        (0.199, 7_500, 0, Verdict::Drop),
        (0.2, 7_499, 0, Verdict::Drop),
        (0.2, 7_500, 1, Verdict::Pass),
    ] {
        let mut pie = aqm(&[]);
        (pie.p, pie.qdelay_old, pie.burst) = (p, Span::us(delay_us), Span::ms(burst_ms));
        assert_eq!(verdict(&mut pie), expected, "{p} {delay_us}");
    }
}

// RFC 8033 §5.4: "if (accu_prob < 0.85) return FALSE"
#[test]
fn derandomised_drops_begin_at_a_sum_of_085() {
    for (p, expected) in [(0.849, Verdict::Pass), (0.85, Verdict::Drop)] {
        let mut pie = aqm(&[("derandomise", "true")]);
        (pie.p, pie.qdelay_old, pie.burst) = (p, Span::ms(20), Span::ZERO);
        assert_eq!(verdict(&mut pie), expected, "{p}");
    }
}

#[test]
fn a_packet_dropped_to_make_room_counts_as_a_drop() {
    let mut pie = aqm(&[("derandomise", "true")]);
    pie.accu = 0.8;
    pie.on_evict(1);
    assert_eq!(pie.accu, 0.0);
}

#[test]
fn a_tail_drop_restarts_the_sum_of_the_probabilities() {
    let mut pie = aqm(&[("derandomise", "true")]);
    pie.accu = 0.8;
    pie.on_overflow(Time(1));
    assert_eq!(pie.accu, 0.0);
    // On Linux, once departures have used the burst allowance up, three arrivals fill the buffer.
    let mut q = Bench::new("pie", &[("variant", "linux"), ("limit", "10p")]);
    (0..10).for_each(|i| drop(q.put(i, 1000)));
    [200, 300, 400].into_iter().for_each(|ms| {
        q.at_ms(ms);
        q.get();
    });
    (10..13).for_each(|i| assert_eq!(q.put(i, 1000), []));
    assert!(near(q.gauge("accu"), 3.0 * q.gauge("p")) && q.gauge("accu") > 0.5);
    assert_eq!(q.put(13, 1000), [13]);
    assert_eq!(q.gauge("accu"), 0.0);
}

#[test]
fn a_measurement_of_the_rate_ends_when_others_empty_the_queue() {
    let mut pie = aqm(&[("latency", "rate"), ("dq_threshold", "2000B")]);
    pie.measure(Time(0), 2000, 1000); // begins
    pie.on_idle(Time(1));
    pie.measure(Time(5_000_000), 1000, 2000);
    assert_eq!(pie.dq_time, 0.0, "the idle time is no part of a measurement");
}

#[test]
fn the_period_and_the_variant_stay() {
    let of = |t_update, variant| [("t_update", t_update), ("variant", variant)];
    let mut q = Bench::new("pie", &of("15ms", "rfc"));
    assert!(!q.reconfigure("pie", &of("16ms", "rfc")));
    assert!(!q.reconfigure("pie", &of("15ms", "linux")));
    assert!(q.reconfigure("pie", &of("15ms", "rfc")));
    // Four ticks of 4 ms and one more.
    assert!(!Bench::new("pie", &of("20ms", "rfc")).reconfigure("pie", &of("15ms", "linux")));
    assert!(!Bench::new("pie", &of("15ms", "linux")).reconfigure("pie", &of("20ms", "rfc")));
}
