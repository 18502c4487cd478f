//! Unit tests of `fq_codel` and `fq_pie`.

use crate::testing::Bench;
use std::prelude::v1::*;

#[test]
fn a_sparse_flow_never_waits_behind_bulk() {
    let mut q = Bench::new("fq_codel", &[]);
    for i in 0..20 {
        q.put_flow(1, 100 + i, 1500);
        q.put_flow(2, 200 + i, 1500);
    }
    (0..4).for_each(|_| drop(q.get()));
    q.put_flow(3, 300, 200);
    assert_eq!(q.get().0, Some(300));
    // Having sent, it must pass through the old flows before it counts as new again.
    q.get();
    q.put_flow(3, 301, 200);
    assert_ne!(q.get().0, Some(301));
}

#[test]
fn parameters_change_but_for_the_number_of_flows() {
    let of = |limit, flows| [("limit", limit), ("flows", flows)];
    let mut q = Bench::new("fq_codel", &of("5p", "8"));
    assert!(!q.reconfigure("fq_codel", &of("2p", "4")));
    assert!(!q.reconfigure("fq_pie", &of("2p", "8")), "another type");
    assert!((0..5).all(|i| q.put(i, 1000).is_empty()));
    assert!(q.reconfigure("fq_codel", &of("2p", "8")));
    q.drain();
    assert!((0..2).all(|i| q.put(i, 1000).is_empty()));
    assert!(!q.put(2, 1000).is_empty());
}

#[test]
fn passing_over_flows_whose_turn_is_near_credits_nothing() {
    let mut q = Bench::new("fq_codel", &[("quantum", "1000B")]);
    for flow in [1, 2] {
        q.put_flow(flow, flow, 2500);
        (0..2).for_each(|_| drop(q.put_flow(flow, flow, 1000)));
    }
    // With its second quantum flow 1 has 500 bytes, flow 2 still has -500.
    assert_eq!(q.drain(), [1, 2, 1, 2, 1, 2]);
}

#[test]
fn linux_spares_the_last_packet_of_the_whole_backlog() {
    let mut q = Bench::new("fq_codel", &[("variant", "linux")]);
    (0..3).for_each(|i| drop(q.put(i, 700)));
    // 1400 bytes behind the head are no more than a packet of 1514.
    let sent = [200, 400, 600].map(|ms| {
        q.at_ms(ms);
        q.get()
    });
    assert_eq!(sent, [0, 1, 2].map(|i| (Some(i), vec![])));
}

#[test]
fn flows_share_bytes() {
    let mut q = Bench::new("fq_codel", &[("quantum", "1500B")]);
    (0..40).for_each(|i| drop(q.put_flow(1, i, 1500)));
    (0..600).for_each(|i| drop(q.put_flow(2, 1000 + i, 100)));
    let mut bytes = [0, 0];
    for _ in 0..16 * 20 {
        match q.get().0.unwrap() {
            0..1000 => bytes[0] += 1500,
            _ => bytes[1] += 100,
        }
    }
    assert_eq!(bytes, [30_000, 30_000]);
}

#[test]
fn overflow_takes_a_batch_from_the_longest_flow() {
    let mut q = Bench::new("fq_codel", &[("limit", "100p"), ("drop_batch", "8")]);
    (0..90).for_each(|i| drop(q.put_flow(1, i, 1000)));
    (0..10).for_each(|i| drop(q.put_flow(2, 900 + i, 1000)));
    assert_eq!(q.put_flow(2, 950, 1000), [0, 1, 2, 3, 4, 5, 6, 7]);
    let mut q = Bench::new("fq_codel", &[("limit", "4p")]);
    assert_eq!((0..5).flat_map(|i| q.put(i, 1000)).collect::<Vec<_>>(), [0, 1, 2], "at most half");
}

#[test]
fn on_linux_fq_pie_drops_the_arrival_on_overflow() {
    for (variant, dropped) in [("linux", vec![4]), ("rfc", vec![0, 1])] {
        let mut q = Bench::new("fq_pie", &[("limit", "4p"), ("variant", variant)]);
        (0..4).for_each(|i| assert_eq!(q.put(i, 1000), []));
        assert_eq!(q.put_flow(2, 4, 100), dropped, "{variant}");
    }
}

// RFC 8290 §4.1
#[test]
fn overflow_stops_at_half_of_the_bytes() {
    let mut q = Bench::new("fq_codel", &[("limit", "3p")]);
    (0..3).for_each(|i| assert_eq!(q.put(i, 1000), []));
    assert_eq!(q.put(3, 1000), [0, 1]);
    // 2,500 of 5,001 bytes are enough: half is rounded down, as in Linux.
    let mut q = Bench::new("fq_codel", &[("limit", "3p")]);
    (0..4).zip([1250, 1250, 1251]).for_each(|(i, n)| assert_eq!(q.put(i, n), []));
    assert_eq!(q.put(3, 1250), [0, 1]);
}

// RFC 8290 §4.2
#[test]
fn an_old_flow_that_empties_counts_as_new_again() {
    let mut q = Bench::new("fq_codel", &[]);
    (0..20).for_each(|i| drop(q.put_flow(1, i, 1500)));
    q.put_flow(2, 100, 200);
    assert_eq!([0; 3].map(|_| q.get().0.unwrap()), [0, 1, 100]);
    // Flow 2 is empty and joins the old flows; its turn there comes after flow 1 and ends it.
    assert_eq!([0; 3].map(|_| q.get().0.unwrap()), [2, 3, 4]);
    q.put_flow(2, 101, 200);
    assert_eq!(q.get().0, Some(101));
}

#[test]
fn a_flow_that_was_found_empty_is_not_above_target_any_more() {
    let mut q = Bench::new("fq_codel", &[("variant", "linux")]);
    (0..2).for_each(|i| drop(q.put_flow(1, i, 1000)));
    (10..100).for_each(|i| drop(q.put_flow(2, i, 1000)));
    // Above target from 10 ms on; the backlog of flow 2 does not let it go below.
    q.at_ms(10);
    assert_eq!([0; 5].map(|_| q.get().0.unwrap()), [0, 1, 10, 11, 12]);
    q.at_ms(150);
    (200..202).for_each(|i| drop(q.put_flow(1, i, 1000)));
    q.at_ms(160);
    assert_eq!(q.get(), (Some(200), vec![]));
    assert_eq!(q.get(), (Some(201), vec![]));
}

#[test]
fn packets_of_many_quanta_cost_no_round_each() {
    // Round by round, a packet of 10^9 bytes would take 15 million rounds, and this test
    // minutes.
    let mut q = Bench::new("fq_codel", &[("quantum", "64B"), ("limit", "1000GB")]);
    for i in 0..1000 {
        q.put_flow(1, i, 1_000_000_000);
        q.put_flow(2, 1000 + 2 * i, 500_000_000);
        q.put_flow(2, 1001 + 2 * i, 500_000_000);
    }
    let sent = q.drain();
    let large = |n: usize| sent[..n].iter().filter(|body| **body < 1000).count();
    assert_eq!([6, 12, 30, 60].map(large), [2, 4, 10, 20], "half of the bytes");
}

#[test]
fn flows_wait_for_whole_turns() {
    // After its first packet, flow 1 waits for one turn more than flow 2. Most of these turns
    // are skipped at once, by a whole number of quanta.
    let mut q = Bench::new("fq_codel", &[("quantum", "64B"), ("limit", "1000GB")]);
    for (flow, body, len) in
        [(1, 10, 1_000_000_064), (2, 20, 1_000_000_063), (1, 11, 100), (2, 21, 100)]
    {
        q.put_flow(flow, body, len);
    }
    assert_eq!(q.drain(), [10, 20, 21, 11]);
}

#[test]
fn the_law_of_a_flow_knows_the_limit_of_the_discipline() {
    // RED's slope to the buffer needs one above max_th.
    let build = |limit| {
        let settings = [("gentle", "buffer"), ("max_th", "25p"), ("limit", limit)];
        let settings = settings.map(|(k, v)| (k, crate::Setting::Text(v)));
        crate::build("fq_red", &settings, crate::Rate(8_000_000)).err()
    };
    assert!(build("25p").unwrap().to_string().contains("limit (25p) above max_th"));
    assert!(build("26p").is_none());
}

#[test]
fn a_signal_on_arrival_is_a_mark_only_with_ecn() {
    let certain = [("w_q", "1"), ("min_th", "1p"), ("max_th", "2p")];
    for (ecn, dropped, marked) in [("true", vec![], 3), ("false", vec![2, 3, 4], 0)] {
        let mut q = Bench::new("fq_red", &[&certain[..], &[("ecn", ecn)]].concat());
        q.ect();
        assert_eq!((0..5).flat_map(|i| q.put(i, 100)).collect::<Vec<_>>(), dropped);
        assert_eq!(q.marked(), marked);
    }
}

#[test]
fn packets_that_an_aqm_drops_from_a_flow_leave_the_backlog() {
    use super::*;
    use crate::aqm::choke::Choke;
    use crate::params::{Params, Setting};
    let mut params = <Fq<Choke> as Build>::Params::default();
    for (name, value) in
        [("min_th", "0p"), ("max_th", "100p"), ("w_q", "1"), ("max_p", "0"), ("limit", "2p")]
    {
        params.set(name, Setting::Text(value)).unwrap();
    }
    let mut q = Fq::<Choke>::build(&params, &Env::new(crate::Rate(8_000_000))).unwrap();
    let mut rng = <rand_pcg::Pcg64Mcg as rand_core::SeedableRng>::seed_from_u64(1);
    let (mut dropped, mut marks) = (vec![], crate::Marks::default());
    let (now, rng) = (crate::Time::ZERO, &mut rng);
    let mut context = Context { now, rng, dropped: &mut dropped, marks: &mut marks };
    let packet = |flow, body| Packet { flow, hash: flow, body, len: 300, ..Packet::default() };
    // CHOKe compares the second packet of flow 1 with the first, and drops both.
    q.enqueue(&mut context, packet(1, 0));
    q.enqueue(&mut context, packet(2, 1));
    q.enqueue(&mut context, packet(1, 2));
    assert_eq!(q.backlog(), Backlog { packets: 1, bytes: 300 });
    // The buffer has room for one more. When it is full, flow 1 has nothing to drop, and of the
    // others the first flow drops.
    q.enqueue(&mut context, packet(3, 3));
    q.enqueue(&mut context, packet(4, 4));
    assert_eq!(context.dropped.iter().map(|l| l.packet.body).collect::<Vec<_>>(), [0, 2, 1]);
    let sent = core::iter::from_fn(|| q.dequeue(&mut context)).map(|p| p.body);
    assert_eq!(sent.collect::<Vec<_>>(), [3, 4]);
    assert_eq!(q.backlog(), Backlog::default());
}

#[test]
fn the_rest_of_a_flow_stays_when_its_aqm_drops_the_head() {
    use super::*;
    use crate::testing::DropsZero;
    let mut params = <Fq<DropsZero> as Build>::Params::default();
    params.outer.limit = Size::Packets(5);
    let mut q = Fq::<DropsZero>::build(&params, &Env::new(crate::Rate(8_000_000))).unwrap();
    let mut rng = <rand_pcg::Pcg64Mcg as rand_core::SeedableRng>::seed_from_u64(1);
    let (mut dropped, mut marks) = (vec![], crate::Marks::default());
    let (now, rng) = (crate::Time::ZERO, &mut rng);
    let mut context = Context { now, rng, dropped: &mut dropped, marks: &mut marks };
    let packet = |hash, body, len| Packet { hash, body, len, ..Packet::default() };
    [(1, 1, 1000), (1, 2, 500), (1, 3, 300), (1, 9, 100), (2, 4, 600)]
        .into_iter()
        .for_each(|(hash, body, len)| q.enqueue(&mut context, packet(hash, body, len)));
    assert_eq!(q.backlog(), Backlog { packets: 4, bytes: 1500 }, "packet 1 is dropped by 9");
    // Flow 1 has 900 bytes left, the most: on overflow it drops half.
    [(2, 5, 100), (2, 6, 100)]
        .into_iter()
        .for_each(|(hash, body, len)| q.enqueue(&mut context, packet(hash, body, len)));
    let dropped: Vec<u32> = context.dropped.iter().map(|l| l.packet.body).collect();
    assert_eq!((dropped, q.backlog().bytes), (vec![1, 2], 1200));
}

#[test]
#[cfg(target_pointer_width = "64")]
fn a_flow_costs_the_state_of_its_law_and_64_bytes() {
    let state = |flows| {
        let settings = [("flows", crate::Setting::Text(flows))];
        crate::build("fq_codel", &settings, crate::Rate(8_000_000)).unwrap().qdisc.state_bytes()
    };
    let flow = size_of::<crate::aqm::codel::CoDel>() + 64;
    assert_eq!(state("2048") - state("1024"), 1024 * flow);
    assert!(state("1024") - 1024 * flow < 512, "the discipline itself");
}
