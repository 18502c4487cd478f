use super::*;
use crate::random::stream_key;
use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;
use std::boxed::Box;
use std::prelude::v1::*;

const DELAY: Span = Span::ms(20);

fn ms(ms: u64) -> Time {
    Time::ZERO + Span::ms(ms)
}

fn streams(seed: u64) -> impl FnMut(&str) -> Stream {
    move |name| {
        let key = stream_key(seed, name);
        Box::new(Pcg64Mcg::from_seed(key[..16].try_into().unwrap()))
    }
}

/// Sends `n` packets of 1000 bytes, one per `gap`; returns their arrivals. Copies have the body of
/// the original plus 10^6.
fn crossing(impairments: &Impairments, n: u32, gap: Span) -> (Vec<Arrival>, WireStats) {
    let mut wire = Wire::new(impairments, streams(1));
    for body in 0..n {
        let now = Time(u64::from(body) * gap.0);
        let packet = Packet { arrived: now, len: 1000, body, ecn: Ecn::Ect0, ..Packet::default() };
        wire.send(now, now + DELAY, packet, &mut |body| Some(body + 1_000_000));
    }
    let mut arrivals = Vec::new();
    while let Some(at) = wire.next_event() {
        arrivals.extend(wire.poll(at));
    }
    assert_eq!(wire.packets(), 0);
    (arrivals, *wire.stats())
}

fn with(change: impl FnOnce(&mut Impairments)) -> Impairments {
    let mut impairments = Impairments::default();
    change(&mut impairments);
    impairments
}

#[test]
fn without_impairments_nothing_changes() {
    let (arrivals, stats) = crossing(&Impairments::default(), 100, Span::ms(1));
    for (i, arrival) in (0..).zip(&arrivals) {
        assert_eq!((arrival.at, arrival.packet.body), (ms(u64::from(i)) + DELAY, i));
    }
    assert_eq!((arrivals.len(), stats), (100, WireStats::default()));
    assert!(Impairments::default().only_lose());
}

/// A plain model: draws as the wire does, then sorts.
#[test]
fn jitter_sorts_packets_by_their_own_delays() {
    for reorders in [true, false] {
        let jitter = Jitter { reorders, ..Jitter::new(Span::ms(5)) };
        let (arrivals, stats) =
            crossing(&with(|i| i.jitter = Some(jitter.clone())), 5000, Span::us(700));
        let mut process = JitterProcess::new(&jitter, streams(1)("jitter"));
        let mut last = Time::ZERO;
        let mut expected: Vec<(Time, u32)> = (0..5000)
            .map(|body| {
                let due = Time(u64::from(body) * 700_000) + DELAY;
                let at = Time(due.0.saturating_add_signed(process.next()));
                last = last.max(at);
                (if reorders { at } else { last }, body)
            })
            .collect();
        expected.sort();
        let result: Vec<_> = arrivals.iter().map(|a| (a.at, a.packet.body)).collect();
        assert_eq!(result, expected);
        let mut latest = 0;
        let mut late = |body: &(Time, u32)| {
            let is_late = body.1 < latest;
            latest = latest.max(body.1);
            is_late
        };
        assert_eq!(stats.reordered, expected.iter().filter(|b| late(b)).count() as u64);
        assert_eq!(stats.reordered > 1000, reorders);
    }
}

#[test]
fn a_packet_never_leaves_before_it_was_sent() {
    let impairments = with(|i| i.jitter = Some(Jitter::new(Span::ms(100))));
    let (arrivals, _) = crossing(&impairments, 1000, Span::ms(1));
    let early = |a: &&Arrival| a.at == a.packet.arrived;
    let share = arrivals.iter().filter(early).count();
    assert!((350..450).contains(&share), "delays of -80 ms to 0: {share} of 1000");
}

#[test]
fn early_packets_have_no_delay() {
    let reorder = |probability, gap| {
        with(|i| i.reorder = Some(Reorder { gap, ..Reorder::new(Chance::new(probability)) }))
    };
    let early = |a: &&Arrival| a.at == a.packet.arrived;
    let (arrivals, stats) = crossing(&reorder(0.25, 1), 20_000, Span::ms(1));
    let share = arrivals.iter().filter(early).count();
    assert!((4700..5300).contains(&share), "{share}");
    assert!(stats.reordered > 0);
    // Every fifth, exactly.
    let (arrivals, _) = crossing(&reorder(1.0, 5), 100, Span::ms(1));
    let mut early: Vec<u32> = arrivals.iter().filter(early).map(|a| a.packet.body).collect();
    early.sort_unstable();
    assert_eq!(early, (0..20).map(|i| 5 * i + 4).collect::<Vec<u32>>());
}

#[test]
fn packets_above_the_limit_are_lost() {
    // 20 packets are in flight at one per millisecond and 20 ms.
    let limited = |limit| crossing(&with(|i| i.limit = Some(limit)), 2000, Span::ms(1)).1.lost;
    assert_eq!((limited(20), limited(21), limited(10)), (0, 0, 1000));
    assert_eq!(limited(0), 2000);
}

#[test]
fn copies_arrive_with_their_originals() {
    let (arrivals, stats) =
        crossing(&with(|i| i.duplicate = Chance::new(0.1)), 10_000, Span::ms(1));
    let copies: Vec<&Arrival> = arrivals.iter().filter(|a| a.is_copy).collect();
    assert_eq!((copies.len() as u64, arrivals.len()), (stats.duplicated, 10_000 + copies.len()));
    assert!((900..1100).contains(&copies.len()), "{}", copies.len());
    assert!(copies.iter().all(|a| a.packet.body >= 1_000_000));
    // A packet that is lost and duplicated arrives once.
    let both = with(|i| {
        i.duplicate = Chance::new(1.0);
        i.loss = LossModel::Random(1.0);
    });
    let (arrivals, stats) = crossing(&both, 100, Span::ms(1));
    assert_eq!((arrivals.len(), stats.lost, stats.duplicated), (100, 0, 0));
    let some = with(|i| {
        i.duplicate = Chance::new(0.5);
        i.loss = LossModel::Random(0.2);
    });
    let (arrivals, stats) = crossing(&some, 10_000, Span::ms(1));
    assert_eq!(arrivals.len() as u64, 10_000 - stats.lost + stats.duplicated);
}

#[test]
fn a_wrong_bit_is_one_of_the_packet() {
    let (arrivals, stats) = crossing(&with(|i| i.corrupt = Chance::new(0.5)), 4000, Span::ms(1));
    let bits: Vec<u32> = arrivals.iter().filter_map(|a| a.wrong_bit).collect();
    assert_eq!(bits.len() as u64, stats.corrupted);
    assert!((1800..2200).contains(&bits.len()));
    assert!(bits.iter().all(|bit| *bit < 8000) && bits.iter().any(|bit| *bit > 7900));
}

#[test]
fn marks_replace_losses_of_capable_packets_outside_of_outages() {
    let marked = with(|i| {
        i.loss = LossModel::Random(0.5);
        i.loss_ecn = true;
        i.outages = Some(Outages::Times([(Span::ms(100), Span::ms(200))].into()));
    });
    let (arrivals, stats) = crossing(&marked, 1000, Span::ms(1));
    assert_eq!((stats.lost, arrivals.len()), (100, 900));
    let ce = arrivals.iter().filter(|a| a.packet.ecn == Ecn::Ce).count() as u64;
    assert_eq!(ce, stats.marked);
    assert!((400..500).contains(&ce), "{ce}");
    assert!(!marked.only_lose() && with(|i| i.loss = LossModel::Random(0.5)).only_lose());
}

#[test]
fn slots_release_packets_together() {
    let slots = |packets| {
        let slots = Slots { packets, ..Slots::new(Span::ms(10), Span::ms(10)) };
        crossing(&with(|i| i.slots = Some(slots)), 60, Span::ms(1)).0
    };
    let times = |arrivals: &[Arrival]| -> Vec<u64> {
        arrivals.iter().map(|a| a.at.0 / 1_000_000).collect()
    };
    // The first packet is due at 20 ms, after the first slot; the next slots begin when a packet
    // is due after them: at 30, and with the packet of 31 ms at 41.
    let all = times(&slots(None));
    assert_eq!(all[..12], [30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 41]);
    let few = times(&slots(Some(2)));
    assert_eq!(few[..6], [30, 30, 40, 40, 50, 50]);
}

#[test]
fn slots_end_with_their_bytes() {
    let slots = Slots { bytes: Some(2500), ..Slots::new(Span::ms(5), Span::ms(5)) };
    let (arrivals, _) = crossing(&with(|i| i.slots = Some(slots)), 9, Span::ZERO);
    let times: Vec<u64> = arrivals.iter().map(|a| a.at.0 / 1_000_000).collect();
    assert_eq!(times, [25, 25, 25, 30, 30, 30, 35, 35, 35]);
}

/// All impairments at once.
fn everything() -> Impairments {
    with(|i| {
        let normal = Distribution::Normal;
        i.jitter = Some(Jitter {
            distribution: normal.clone(),
            correlation: 0.3,
            ..Jitter::new(Span::ms(4))
        });
        i.reorder = Some(Reorder::new(Chance::correlated(0.1, 0.5)));
        i.loss = LossModel::States { p13: 0.02, p31: 0.3, p32: 0.2, p23: 0.4, p14: 0.01 };
        i.duplicate = Chance::new(0.05);
        i.corrupt = Chance::new(0.05);
        i.outages = Some(Outages::Intervals {
            up: IntervalLength::Exponential(Span::ms(400)),
            down: IntervalLength::Uniform(Span::ms(5), Span::ms(50)),
        });
        i.slots = Some(Slots {
            delay: SlotDelay::Distribution(Span::ms(2), Span::ms(1), normal),
            packets: Some(7),
            bytes: None,
        });
        i.limit = Some(25);
    })
}

/// Late, early and repeated calls change nothing, nor does a copy of the wire.
#[test]
fn the_times_of_calls_do_not_matter() {
    let (expected, stats) = crossing(&everything(), 20_000, Span::ms(1));
    for every in [1u32, 7, 100] {
        let mut wire = Wire::new(&everything(), streams(1));
        let mut arrivals = Vec::new();
        for body in 0..20_000 {
            let now = ms(body.into());
            let packet =
                Packet { arrived: now, len: 1000, body, ecn: Ecn::Ect0, ..Packet::default() };
            wire.send(now, now + DELAY, packet, &mut |body| Some(body + 1_000_000));
            if body % every == 0 {
                arrivals.extend(core::iter::from_fn(|| wire.poll(now)));
                wire = wire.clone();
            }
        }
        arrivals.extend(core::iter::from_fn(|| wire.poll(ms(10_000_000))));
        assert_eq!((arrivals.len(), *wire.stats()), (expected.len(), stats));
        assert!(arrivals == expected, "polled every {every} ms");
    }
    let each = [stats.lost, stats.duplicated, stats.corrupted, stats.reordered];
    assert!(each.iter().all(|count| *count > 500), "{stats:?}");
}

/// The streams of impairments are independent: adding one changes no decision of another.
#[test]
fn impairments_have_streams_of_their_own() {
    let lost = |impairments: &Impairments| -> Vec<u32> {
        let (arrivals, _) = crossing(impairments, 5000, Span::ms(1));
        let mut present = vec![false; 5000];
        arrivals.iter().for_each(|a| present[a.packet.body as usize] = true);
        (0..).zip(present).filter_map(|(i, there)| (!there).then_some(i)).collect()
    };
    let alone = with(|i| i.loss = LossModel::Random(0.02));
    let more = with(|i| {
        i.loss = LossModel::Random(0.02);
        i.jitter = Some(Jitter::new(Span::ms(5)));
        i.corrupt = Chance::new(0.3);
        i.reorder = Some(Reorder::new(Chance::new(0.3)));
    });
    assert_eq!(lost(&alone), lost(&more));
}

#[test]
fn the_least_delay_is_a_bound() {
    let distributions = [
        Distribution::Uniform,
        Distribution::Normal,
        Distribution::Pareto,
        Distribution::ParetoNormal,
        Distribution::Table([-3000, 8192, 20_000].into()),
        Distribution::Table([100, 200].into()),
    ];
    for distribution in distributions {
        let jitter = Jitter { distribution, ..Jitter::new(Span::ms(3)) };
        let impairments = with(|i| i.jitter = Some(jitter.clone()));
        let least = Wire::new(&impairments, streams(1)).least_delay(DELAY);
        let (arrivals, _) = crossing(&impairments, 20_000, Span::ms(1));
        let seen = arrivals.iter().map(|a| a.at - a.packet.arrived).min().unwrap();
        assert!(seen >= least && seen.0 - least.0 < 1_600_000, "{jitter:?}: {seen} {least}");
    }
    let early = with(|i| i.reorder = Some(Reorder::new(Chance::new(0.5))));
    assert_eq!(Wire::new(&early, streams(1)).least_delay(DELAY), Span::ZERO);
}
