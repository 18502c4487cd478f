use super::*;
use crate::checked_qdisc::CheckedQdisc;
use crate::link::LEN_MAX;
use crate::packet::Ecn;
use crate::registry::REGISTRY;
use crate::units::Rate;
use crate::wire::{Chance, Impairments, Jitter, LossModel};
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::ToString;
use alloc::vec::Vec;

const RATE: Rate = Rate(8_000_000); // 1 ms per packet of 1000 bytes
const DELAY: Span = Span::ms(10);

fn packet(len: u32) -> Packet {
    Packet { len, ecn: Ecn::Ect0, ..Packet::default() }
}

fn ms(n: u64) -> Time {
    Time::ZERO + Span::ms(n)
}

fn impairments(change: impl FnOnce(&mut Impairments)) -> Impairments {
    let mut impairments = Impairments::default();
    change(&mut impairments);
    impairments
}

/// Polls `link` at each time that it names; returns deliveries with the times of the calls.
fn run<T>(link: &mut TimedLink<T>) -> Vec<(Time, Delivery<T>)> {
    let mut deliveries = Vec::new();
    for _ in 0..100_000 {
        let Some(now) = link.next_poll() else { return deliveries };
        if let Some(delivery) = link.poll(now).unwrap() {
            deliveries.push((now, delivery));
        }
    }
    panic!("the link does not become empty");
}

#[test]
fn the_next_poll_is_not_before_the_last_call_and_bodies_are_listed() {
    for wire in [Impairments::default(), impairments(|i| i.duplicate = Chance::new(0.5))] {
        let builder = TimedLink::builder("droptail(limit=2p)", RATE, DELAY).impairments(wire);
        let mut link = builder.clone_duplicates().keep_undelivered().build().unwrap();
        (0..4).for_each(|n| link.push(ms(0), packet(1000), n).unwrap());
        link.push(ms(30), packet(1000), 4).unwrap(); // three have arrived, and were not polled
        assert_eq!(link.next_poll(), Some(ms(30)));
        let delivery = link.poll(ms(30)).unwrap().unwrap();
        assert_eq!((delivery.at, delivery.body), (ms(11), 0));
        let mut bodies: Vec<_> = link.bodies().copied().collect();
        bodies.sort_unstable();
        bodies.dedup();
        assert!(bodies.ends_with(&[1, 2, 3, 4]), "{bodies:?}: the dropped one as well");
    }
}

#[test]
fn every_body_is_delivered_or_returned_once_and_freed() {
    for entry in REGISTRY {
        for name in ["none", "loss", "jitter", "duplicates"] {
            let wire = impairments(|i| match name {
                "loss" => i.loss = LossModel::Random(0.3),
                "jitter" => i.jitter = Some(Jitter::new(Span::ms(5))),
                "duplicates" => i.duplicate = Chance::new(0.5),
                _ => {}
            });
            let mut link = TimedLink::builder(entry.name, RATE, DELAY)
                .impairments(wire)
                .clone_duplicates()
                .keep_undelivered()
                .buffer(Span::ms(20))
                .build()
                .unwrap();
            let bodies: Vec<Rc<u32>> = (0..200).map(Rc::new).collect();
            let mut counts = vec![0; bodies.len()];
            for body in &bodies {
                let (now, flow) = (Time(u64::from(**body) * 500_000), **body % 4);
                let packet = Packet { hash: flow, flow, ..packet(1000) };
                link.push(now, packet, Rc::clone(body)).unwrap();
                while let Some(lost) = link.next_undelivered() {
                    counts[*lost.body as usize] += 1;
                }
            }
            for (now, delivery) in run(&mut link) {
                assert!(delivery.at == now || delivery.at < ms(100), "{}", entry.name);
                counts[*delivery.body as usize] += 1;
            }
            while let Some(lost) = link.next_undelivered() {
                assert!(lost.reason.is_some() || name == "loss" || name == "duplicates");
                counts[*lost.body as usize] += 1;
            }
            let most = if name == "duplicates" { 2 } else { 1 };
            assert!(
                counts.iter().all(|n| (1..=most).contains(n)),
                "{} {name} {counts:?}",
                entry.name
            );
            assert_eq!(link.packets(), 0);
            assert!(bodies.iter().all(|body| Rc::strong_count(body) == 1), "{}", entry.name);
        }
    }
}

#[test]
fn undelivered_bodies_are_freed_if_nobody_keeps_them() {
    let mut link = TimedLink::builder("droptail(limit=2p)", RATE, DELAY).build().unwrap();
    let body = Rc::new(());
    (0..10).for_each(|_| link.push(ms(0), packet(1000), Rc::clone(&body)).unwrap());
    assert_eq!((link.packets(), Rc::strong_count(&body)), (3, 4)); // one is being sent
    assert_eq!(link.next_undelivered(), None);
    assert_eq!(run(&mut link).len(), 3);
    assert_eq!((link.packets(), Rc::strong_count(&body), link.stats().dropped()), (0, 1, 7));
}

#[test]
fn a_late_poll_returns_the_exact_times() {
    for wire in [Impairments::default(), impairments(|i| i.limit = Some(1_000))] {
        let mut link =
            TimedLink::builder("droptail", RATE, DELAY).impairments(wire).build().unwrap();
        (0..3).for_each(|body| link.push(ms(0), packet(1000), body).unwrap());
        let arrivals: Vec<_> =
            core::iter::from_fn(|| link.poll(ms(500)).unwrap()).map(|d| (d.at, d.body)).collect();
        assert_eq!(arrivals, [(ms(11), 0), (ms(12), 1), (ms(13), 2)]);
        assert_eq!(link.next_poll(), None);
    }
}

#[test]
fn impairments_have_their_frequencies() {
    let wire = impairments(|i| {
        i.loss = LossModel::Random(0.1);
        i.duplicate = Chance::new(0.2);
        i.jitter = Some(Jitter::new(Span::ms(3)));
        i.corrupt = Chance::new(0.1);
    });
    let builder = TimedLink::builder("droptail(limit=10000p)", RATE, DELAY);
    let mut link = builder.impairments(wire).clone_duplicates().build().unwrap();
    (0..2000).for_each(|body| link.push(ms(body), packet(1000), body).unwrap());
    let bodies: Vec<_> = run(&mut link).into_iter().map(|(_, d)| d.body).collect();
    let stats = *link.wire_stats().unwrap();
    assert!(bodies.windows(2).any(|pair| pair[0] > pair[1]) && stats.reordered > 100);
    // Standard deviations are 13, 17 and 13.
    assert!((110..210).contains(&stats.lost), "{stats:?}, of which a copy may arrive");
    assert!((250..430).contains(&stats.duplicated), "{stats:?}");
    assert!((150..260).contains(&stats.corrupted), "{stats:?}");
    assert_eq!(bodies.len() as u64, 2000 - stats.lost + stats.duplicated);
}

#[test]
fn equal_seeds_give_equal_deliveries_and_a_copy_continues() {
    let times = |seed| {
        let wire = impairments(|i| i.jitter = Some(Jitter::new(Span::ms(3))));
        let builder = TimedLink::builder("red", RATE, DELAY).seed(seed);
        let mut link = builder.impairments(wire).build().unwrap();
        (0..50).for_each(|body| link.push(ms(body), packet(1000), body).unwrap());
        let mut copy = link.clone();
        let first = run(&mut link);
        assert_eq!(first, run(&mut copy));
        first
    };
    assert_eq!(times(1), times(1));
    assert_ne!(times(1), times(2));
}

#[test]
fn rate_delay_and_parameters_change() {
    for wire in [Impairments::default(), impairments(|i| i.limit = Some(1_000))] {
        let builder = TimedLink::builder("codel", RATE, DELAY).impairments(wire);
        let mut link = builder.build().unwrap();
        (0..4).for_each(|body| link.push(ms(0), packet(1000), body).unwrap());
        link.change(ms(1), LinkSpec::new(Rate(4_000_000), Span::ms(30))).unwrap();
        link.reconfigure(ms(2), "codel(target=50ms)").unwrap();
        let wrong = link.reconfigure(ms(2), "red").unwrap_err();
        assert_eq!(wrong.path(), "qdisc");
        // The first was sent at 8 Mbit/s with the delay of 10 ms.
        let at: Vec<_> = run(&mut link).into_iter().map(|(_, d)| d.at).collect();
        assert_eq!(at, [ms(11), ms(33), ms(35), ms(37)]);
    }
}

#[test]
fn wrong_calls_and_settings_are_refused() {
    let mut link = TimedLink::builder("codel", RATE, DELAY).build().unwrap();
    link.push(ms(5), packet(1000), Rc::new(1)).unwrap();
    let body = Rc::new(2);
    let early = link.push(ms(4), packet(1000), Rc::clone(&body)).unwrap_err();
    let long = link.push(ms(5), packet(LEN_MAX), Rc::clone(&body)).unwrap_err();
    assert_eq!((early.path(), long.path()), ("now", "len"));
    assert_eq!((link.packets(), Rc::strong_count(&body)), (1, 1), "its body is freed");
    assert_eq!(link.poll(ms(4)).unwrap_err().path(), "now");
    assert_eq!(link.change(ms(4), link.link().spec()).unwrap_err().path(), "now");
    assert_eq!(link.reset_stats(ms(4)).unwrap_err().path(), "now");

    let refused = |builder: TimedLinkBuilder<u8>| builder.build().unwrap_err().path().to_string();
    assert_eq!(refused(TimedLink::builder("codle", RATE, DELAY)), "qdisc");
    assert_eq!(refused(TimedLink::builder("codel(target=5)", RATE, DELAY)), "qdisc.target");
    assert_eq!(refused(TimedLink::builder("codel", Rate(0), DELAY)), "rate");
    let twice = impairments(|i| i.duplicate = Chance::new(0.1));
    let builder = TimedLink::builder("codel", RATE, DELAY).impairments(twice);
    assert_eq!(refused(builder), "impairments.duplicate");
    let lossy = impairments(|i| i.loss = LossModel::Random(1.5));
    let builder = TimedLink::builder("codel", RATE, DELAY).impairments(lossy);
    assert_eq!(refused(builder), "impairments.loss.probability");
}

#[test]
fn the_default_buffer_lasts_a_quarter_of_a_second() {
    let mut link = TimedLink::builder("droptail", Rate(10_000_000), DELAY).build().unwrap();
    (0..1000).for_each(|body| link.push(ms(0), packet(1500), body).unwrap());
    let last = run(&mut link).last().unwrap().1.at;
    assert!((ms(250)..=ms(262)).contains(&last), "{last:?}");
}

#[test]
fn a_discipline_of_the_program_is_served() {
    let checked = CheckedQdisc::new(build_text("fq_codel", RATE).unwrap().qdisc);
    let builder = TimedLink::builder("", RATE, DELAY).qdisc(Box::new(checked));
    let mut link = builder.build().unwrap();
    (0..20).for_each(|body| link.push(ms(0), packet(1000), body).unwrap());
    assert_eq!(run(&mut link).len(), 20);
}
