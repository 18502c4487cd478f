use crate::testing::Bench;
use crate::{Rate, Setting, build};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::prelude::v1::*;

fn error(settings: &[(&str, &str)]) -> String {
    let settings: Vec<_> = settings.iter().map(|(k, v)| (*k, Setting::Text(v))).collect();
    build("qfq", &settings, Rate(8_000_000)).unwrap_err().to_string()
}

/// Order of 12 packets of 1000 bytes in each of the queues, of which the body is the queue.
fn order(settings: &[(&str, &str)], queues: u32) -> Vec<u32> {
    let mut q = Bench::new("qfq", settings);
    (0..12).for_each(|_| (0..queues).for_each(|i| drop(q.put_flow(i, i, 1000))));
    q.drain()
}

#[test]
fn queues_share_by_weight() {
    let settings = [("flows", "3"), ("weights", "1 2 4"), ("maxpkt", "1000B"), ("limit", "99p")];
    let sent = order(&settings, 3);
    // In each round of seven packets, one of queue 0, two of queue 1 and four of queue 2; the first
    // turns go to those whose finish times are rounded to the same slots.
    let count = |queue, n: usize| sent[..n].iter().filter(|q| **q == queue).count();
    assert_eq!([0, 1, 2].map(|queue| count(queue, 21)), [3, 6, 12]);
}

#[test]
fn queues_of_one_aggregate_take_turns_of_a_largest_packet() {
    let settings = |aggregate| {
        [("flows", "3"), ("maxpkt", "2000B"), ("aggregate", aggregate), ("limit", "99p")]
    };
    let sent = order(&settings("4"), 3);
    assert_eq!(sent[..9], [0, 0, 1, 1, 2, 2, 0, 0, 1], "by deficit round robin");
    let sent = order(&settings("1"), 3);
    assert_eq!(sent[..12], [0, 0, 0, 0, 2, 2, 2, 2, 1, 1, 1, 1], "the latest of equal ones first");
    assert_eq!(order(&settings("3"), 3), order(&settings("2"), 3), "a power of two");
}

#[test]
fn a_packet_above_maxpkt_moves_its_queue_to_another_aggregate() {
    let settings = [("flows", "2"), ("maxpkt", "512B"), ("limit", "99p")];
    let mut q = Bench::new("qfq", &settings);
    (0..4).for_each(|k| drop((q.put_flow(0, k, 500), q.put_flow(1, 10 + k, 1500))));
    // Queue 0 has a budget of 512 bytes and slots of that length: with S = 500 it has started at
    // V = 250, with S = 1000 it waits until the other queue has sent, of which a slot is 2048.
    assert_eq!(q.drain(), [0, 1, 10, 2, 3, 11, 12, 13]);
}

#[test]
fn packets_longer_than_any_maxpkt_are_sent() {
    let mut q = Bench::new("qfq", &[("flows", "2"), ("limit", "1GB")]);
    (0..3).for_each(|k| drop((q.put_flow(0, k, 1_000_000), q.put_flow(1, 10 + k, 100))));
    let sent = q.drain();
    assert_eq!(sent.len(), 6);
}

#[test]
fn weights_and_maxpkt_change_while_packets_wait() {
    let with = |weights: &'static str, maxpkt: &'static str| {
        let own = [("flows", "2"), ("weights", weights), ("maxpkt", maxpkt)];
        [own.to_vec(), vec![("children", "droptail(limit=99p)")]].concat()
    };
    let mut q = Bench::new("qfq", &with("1", "1000B"));
    (0..40).for_each(|_| (0..2).for_each(|i| drop(q.put_flow(i, i, 1000))));
    (0..4).for_each(|_| drop(q.get()));
    assert!(q.reconfigure("qfq", &with("1 7", "1000B")));
    let sent: Vec<u32> = (0..32).map(|_| q.get().0.unwrap()).collect();
    let second = sent.iter().filter(|queue| **queue == 1).count();
    assert!((27..=29).contains(&second), "{sent:?}");
    assert!(q.reconfigure("qfq", &with("1 7", "1000B 3000B")));
    assert!(!q.reconfigure("qfq", &[("flows", "3"), ("children", "droptail(limit=99p)")]));
    assert_eq!(q.drain().len(), 80 - 36);
}

/// A random number below `n`.
fn below(rng: &mut Pcg64Mcg, n: u32) -> u32 {
    rng.next_u32() % n
}

/// Random weights and `maxpkt` of `n` queues, of which several are the same.
fn shares(rng: &mut Pcg64Mcg, n: u32) -> [String; 2] {
    let weights = [1 + below(rng, 1024), 1 + below(rng, 30), 1];
    let lengths = [512, 1514, 512 + below(rng, 65_000)];
    [weights, lengths].map(|few| {
        let list = (0..n).map(|_| few[below(rng, 3) as usize].to_string());
        list.collect::<Vec<_>>().join(" ")
    })
}

const CHILDREN: [&str; 5] = [
    "",
    "droptail(limit=5p)",
    "codel(target=1ms, interval=5ms)",
    "prio(by=flow)",
    "tbf(rate=7mbit, burst=3000B)",
];

/// Settings of random queues of an aggregate and children by `round`.
fn settings(round: usize, n: &str, shares: &[String; 2]) -> Vec<(&'static str, String)> {
    let lengths = shares[1].split(' ').map(|bytes| format!("{bytes}B")).collect::<Vec<_>>();
    let own = [("flows", n.to_string()), ("weights", shares[0].clone())];
    let aggregate = ["1", "2", "4", "8"][round % 4].to_string();
    let children = CHILDREN[round % 5].to_string();
    let rest = [("maxpkt", lengths.join(" ")), ("aggregate", aggregate), ("children", children)];
    [own.to_vec(), rest.to_vec()].concat()
}

fn texts<'a>(settings: &'a [(&'static str, String)]) -> Vec<(&'static str, &'a str)> {
    settings.iter().map(|(name, value)| (*name, value.as_str())).collect()
}

#[test]
fn no_packet_is_lost_or_left_in_random_queues() {
    let mut rng = Pcg64Mcg::seed_from_u64(3);
    for round in 0..200 {
        let n = 1 + below(&mut rng, 20);
        let random = |rng: &mut Pcg64Mcg| settings(round, &n.to_string(), &shares(rng, n));
        let first = random(&mut rng);
        let mut q = Bench::new("qfq", &texts(&first));
        let (mut arrived, mut left) = (0, 0);
        for step in 0..600 {
            if below(&mut rng, 5) < 3 {
                let range = [450, 1450, 70_000][below(&mut rng, 3) as usize];
                let len = 64 + below(&mut rng, range);
                left += q.put_flow(below(&mut rng, n), step, len).len();
                arrived += 1;
            } else {
                let (body, dropped) = q.get();
                left += usize::from(body.is_some()) + dropped.len();
            }
            if below(&mut rng, 100) == 0 && round % 5 > 0 {
                assert!(q.reconfigure("qfq", &texts(&random(&mut rng))));
            }
            assert_eq!(arrived, left + q.backlog() as usize, "{round} {step}");
        }
        for _ in 0..10_000 {
            let (body, dropped) = q.get();
            left += usize::from(body.is_some()) + dropped.len();
            if q.backlog() == 0 {
                break;
            }
            match q.ready_at() {
                Some(at) if body.is_none() => q.at_ns(at.0.max(q.now_ns() + 1)),
                _ => assert!(body.is_some() || !dropped.is_empty(), "{round}: a packet is left"),
            }
        }
        assert_eq!(arrived, left);
    }
}

#[test]
fn numbers_that_linux_refuses_are_refused() {
    assert_eq!(
        error(&[("flows", "3"), ("weights", "1 0.5")]),
        "weights.1: 0.5 is not a whole number from 1 to 1024"
    );
    assert_eq!(
        error(&[("weights", "1025")]),
        "weights.0: 1025 is not a whole number from 1 to 1024"
    );
    assert_eq!(
        error(&[("flows", "65"), ("weights", "1024")]),
        "weights: 66560 is the sum for 65 queues; it is at most 65536"
    );
    assert_eq!(error(&[("flows", "1"), ("maxpkt", "1kB 2kB")]), "maxpkt: 2 lengths for 1 queues");
    assert_eq!(
        error(&[("maxpkt", "511B")]),
        "maxpkt: 511B is out of range, allowed: 512B to 65536B"
    );
}
