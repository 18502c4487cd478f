//! Queues, buffer and scheduler, without an AQM algorithm that drops.

use super::*;
use crate::context::Marks;
use crate::params::Setting;
use crate::registry::find;
use crate::sched::dualpi2::DualPi2;
use crate::testing::Bench;
use crate::units::Rate;
use rand_core::SeedableRng;
use std::prelude::v1::*;

/// Settings of a DualPI2 that neither drops nor marks.
const QUIET: &[(&str, &str)] = &[("target", "10s"), ("alpha", "0"), ("beta", "0"), ("step", "10s")];

fn quiet(settings: &[(&str, &str)]) -> Bench {
    Bench::new("dualpi2", &[settings, QUIET].concat())
}

/// Enqueues packets with these lengths: Classic, then L4S.
fn fill(q: &mut Bench, classic: &[u32], l4s: &[u32]) -> Vec<u32> {
    let mut dropped = Vec::new();
    for (ecn, lengths) in [(Ecn::NotEct, classic), (Ecn::Ect1, l4s)] {
        q.ecn(ecn);
        dropped.extend(lengths.iter().flat_map(|len| q.put(*len, *len)));
    }
    dropped
}

/// RFC 9332 section 4.1: while both queues wait, the credit of C grows by its share of the bytes of
/// L, and shrinks by the share of L of its own bytes; it starts as if C had just sent a packet.
#[test]
fn the_credit_counts_bytes_while_both_queues_wait() {
    let mut q = quiet(&[]);
    let rest = 1514.0 * (6.25 - 93.75);
    assert_eq!(q.gauge("credit"), rest);
    fill(&mut q, &[], &[1000, 1001]);
    assert_eq!((q.get().0, q.gauge("credit")), (Some(1000), rest), "L alone");
    q.drain();
    fill(&mut q, &[1000, 1001], &[]);
    assert_eq!((q.get().0, q.gauge("credit")), (Some(1000), rest), "C alone");
    q.drain();
    fill(&mut q, &[900], &[1000, 1001]);
    assert_eq!((q.get().0, q.gauge("credit")), (Some(1000), rest + 6.25 * 1000.0));
    assert_eq!(q.drain(), [1001, 900]);
    assert_eq!(q.gauge("credit"), rest, "idle");

    let mut q = quiet(&[("classic_protection", "90")]);
    let rest = 1514.0 * (90.0 - 10.0);
    assert_eq!(q.gauge("credit"), rest, "C comes first");
    fill(&mut q, &[900, 901], &[1000]);
    assert_eq!((q.get().0, q.gauge("credit")), (Some(900), rest - 10.0 * 900.0));
}

/// Defaults of [`CoupledAqm`], which Curvy RED has.
#[test]
fn an_aqm_has_the_share_and_the_buffer_of_rfc_9332_unless_it_says_otherwise() {
    let mut q = Bench::new("curvy_red", &[("limit", "4p"), ("scheduler", "wrr")]);
    assert_eq!(q.gauge("credit"), 1514.0 * (6.25 - 93.75));
    assert_eq!(fill(&mut q, &[100, 101, 102, 103, 104], &[200]), [104, 200]);
}

#[test]
fn both_queues_share_the_buffer() {
    let mut q = quiet(&[("limit", "4p")]);
    assert_eq!(fill(&mut q, &[100, 101], &[200, 201]), []);
    assert_eq!((q.backlog(), q.gauge("packets_c"), q.gauge("packets_l")), (4, 2.0, 2.0));
    assert_eq!(fill(&mut q, &[102], &[202]), [102, 202]);
    q.get();
    assert_eq!((fill(&mut q, &[103], &[]), q.backlog()), (vec![], 4));
    // In bytes: 2500 and 2000 wait, and 1500 stay free for a large packet.
    let mut q = quiet(&[("limit", "6000B"), ("mtu", "1500B")]);
    assert_eq!(fill(&mut q, &[2500], &[2000]), []);
    assert_eq!(fill(&mut q, &[1501, 100, 101], &[]), [1501, 101]);
}

#[test]
fn the_oldest_packet_is_at_one_of_the_heads() {
    let mut queues = Queues::default();
    assert_eq!((queues.oldest(), queues.head(Lane::C)), (None, None));
    let packet = |arrived, len| Packet { arrived: Time(arrived), len, ..Packet::default() };
    queues.push(Lane::C, packet(5, 100));
    queues.push(Lane::L, packet(3, 200));
    queues.push(Lane::L, packet(9, 300));
    assert_eq!([Lane::C, Lane::L].map(|lane| queues.packets(lane)), [1, 2]);
    assert_eq!([Lane::C, Lane::L].map(|lane| queues.head(lane)), [Some(Time(5)), Some(Time(3))]);
    assert_eq!((queues.oldest(), queues.bytes()), (Some(Time(3)), 600));
    assert_eq!(queues.pop(Lane::L).map(|p| p.len), Some(200));
    assert_eq!(queues.oldest(), Some(Time(5)));
}

/// An update at a time counts the wait of the oldest packet, as a scheduled one does.
#[test]
fn an_update_at_a_time_is_made_at_once() {
    for variant in ["rfc", "linux"] {
        let settings = [("variant", Setting::Text(variant)), ("tupdate", Setting::Text("10s"))];
        let mut params = <Dual<DualPi2> as Build>::Params::default();
        settings.iter().for_each(|(name, value)| params.set(name, *value).unwrap());
        let mut q = Dual::<DualPi2>::build(&params, &Env::new(Rate(8_000_000))).unwrap();
        let mut rng = <rand_pcg::Pcg64Mcg as rand_core::SeedableRng>::seed_from_u64(1);
        let (mut dropped, mut marks) = (Vec::new(), Marks::default());
        let mut context =
            Context { now: Time::ZERO, rng: &mut rng, dropped: &mut dropped, marks: &mut marks };
        q.enqueue(&mut context, Packet { len: 1000, ..Packet::default() });
        q.update_at(Time(20_000_000));
        let mut q_prev = None;
        q.inspect(&mut |name, value| q_prev = if name == "q_prev" { Some(value) } else { q_prev });
        assert_eq!(q_prev, Some(0.02), "{variant}");
    }
}

/// An inspection shows the updates that are due, and makes none.
#[test]
fn an_inspection_at_a_time_leaves_the_controller_as_it_is() {
    let mut q = find("dualpi2").unwrap().build(&[], &Env::new(Rate(8_000_000))).unwrap().qdisc;
    let mut rng = <rand_pcg::Pcg64Mcg as rand_core::SeedableRng>::seed_from_u64(1);
    let (mut dropped, mut marks) = (Vec::new(), Marks::default());
    let mut context =
        Context { now: Time::ZERO, rng: &mut rng, dropped: &mut dropped, marks: &mut marks };
    q.enqueue(&mut context, Packet { len: 1000, ..Packet::default() });
    let mut later = Vec::new();
    q.inspect_at(Time(400_000_000), &mut |_, value| later.push(value));
    let mut now = Vec::new();
    q.inspect(&mut |_, value| now.push(value));
    assert_eq!(now.len(), later.len());
    assert_ne!(now, later, "a packet waits for 400 ms");
    let mut again = Vec::new();
    q.inspect_at(Time(400_000_000), &mut |_, value| again.push(value));
    assert_eq!(again, later);
}

/// Sizes and order of packets, drawn at random, of which both queues always hold some: `steps`
/// departures as lane, length, and the ages of its head and of the other one.
fn backlogged(settings: &[(&str, &str)], seed: u64, steps: u32) -> Vec<(Lane, u32, Span, Span)> {
    use crate::random::Random;
    let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(seed);
    let mut q = Bench::seeded("dualpi2", &[settings, QUIET].concat(), seed);
    // Arrival times of the packets of each lane, and lengths by number.
    let (mut waiting, mut lengths): ([Vec<u64>; 2], Vec<u32>) = Default::default();
    let mut sent = Vec::new();
    for ms in 0..u64::from(steps) {
        q.at_ms(ms);
        for (i, lane) in [Lane::C, Lane::L].into_iter().enumerate() {
            let more = if waiting[i].len() < 2 { 2 } else { rng.below(2) };
            for _ in 0..more {
                q.ecn(if lane == Lane::L { Ecn::Ect1 } else { Ecn::NotEct });
                let len = 64 + rng.below(1451);
                // Odd bodies are packets of L.
                assert_eq!(q.put(2 * lengths.len() as u32 + i as u32, len), []);
                lengths.push(len);
                waiting[i].push(ms);
            }
        }
        let body = q.get().0.expect("both queues wait");
        let i = (body % 2) as usize;
        let age = |i: usize| Span::ms(ms - waiting[i][0]);
        let lane = if i == 1 { Lane::L } else { Lane::C };
        sent.push((lane, lengths[(body / 2) as usize], age(i), age(1 - i)));
        waiting[i].remove(0);
    }
    sent
}

/// RFC 9332 section 4.1: C is not starved. While both queues wait, C gets its share of the bytes of
/// every interval, but for less than a packet of either queue; and no more.
#[test]
fn weighted_round_robin_keeps_the_share_of_c_in_every_interval() {
    for (percent, share) in [("6.25", 0.0625), ("10", 0.1), ("50", 0.5), ("87.5", 0.875)] {
        for seed in 0..20 {
            let sent = backlogged(&[("classic_protection", percent)], seed, 1500);
            // Bytes of C less its share of all bytes, after each packet.
            let mut ahead = vec![0.0];
            for (lane, len, ..) in &sent {
                let of_c = if *lane == Lane::C { f64::from(*len) } else { 0.0 };
                ahead.push(ahead[ahead.len() - 1] + of_c - share * f64::from(*len));
            }
            // The first packets pay back the credit at rest.
            let ahead = &ahead[100..];
            let [least, most] = [f64::min, f64::max].map(|f| ahead.iter().copied().reduce(f));
            let range = most.unwrap() - least.unwrap();
            assert!(range <= 1514.0, "{percent} %, seed {seed}: {range}");
            assert!(sent[100..].iter().any(|s| s.0 == Lane::C), "{percent} %, seed {seed}");
        }
    }
    let none = backlogged(&[("classic_protection", "0")], 1, 500);
    assert!(none.iter().all(|s| s.0 == Lane::L), "without protection C waits");
}

/// Time-shifted FIFO: a head of C waits at most `t_shift` longer than the head of L that precedes
/// it, and a head of L precedes C as long as it is not younger by more.
#[test]
fn time_shifted_fifo_bounds_the_wait_of_c() {
    for (shift, ms) in [("1ms", 1), ("20ms", 20), ("50ms", 50)] {
        for seed in 0..10 {
            let sent = backlogged(&[("scheduler", "ts_fifo"), ("t_shift", shift)], seed, 1500);
            for (lane, _, own, other) in &sent {
                let [c, l] = if *lane == Lane::C { [own, other] } else { [other, own] };
                assert_eq!(*lane == Lane::L, c.0 <= l.0 + Span::ms(ms).0, "{shift}: {c:?} {l:?}");
            }
            assert!([Lane::C, Lane::L].iter().all(|lane| sent.iter().any(|s| s.0 == *lane)));
        }
    }
}
