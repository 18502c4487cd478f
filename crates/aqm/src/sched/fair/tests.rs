use super::*;
use crate::sched::drr::Drr;
use crate::sched::prio::Priority;
use crate::sched::scfq::Scfq;
use crate::sched::stfq::Stfq;
use crate::sched::wf2q::Wf2q;
use crate::sched::wfq::Wfq;
use crate::testing::{Bench, DropsZero};
use crate::units::{Rate, Span};
use std::prelude::v1::*;

#[test]
fn the_queue_that_is_longest_for_its_weight_pays() {
    let settings = [("limit", "4p"), ("flows", "2"), ("weights", "1 4"), ("drop", "tail")];
    let mut q = Bench::new("drr", &settings);
    q.put_flow(0, 1, 1000);
    (0..3).for_each(|i| drop(q.put_flow(1, 10 + i, 1000)));
    assert_eq!(q.put_flow(0, 2, 1000), [2], "2000 B against 3000 B for four");
    assert_eq!(q.put_flow(1, 13, 900), [1], "1000 B against 3900 B for four");
}

#[test]
fn buffers_of_their_own_are_kept_apart() {
    let settings = [("limit", "100p"), ("flows", "3"), ("limits", "1p 2000B")];
    let mut q = Bench::new("wfq", &settings);
    assert!(q.put_flow(0, 1, 1000).is_empty());
    assert_eq!(q.put_flow(0, 2, 1000), [2]);
    for flow in [1, 2] {
        assert!(q.put_flow(flow, 3, 1500).is_empty());
        assert_eq!(q.put_flow(flow, 4, 501), [4], "the last stands for all further ones");
        assert_eq!(q.put_flow(flow, 5, 2001), [5], "a packet that can never fit");
    }
}

#[test]
fn a_threshold_leaves_room_for_who_comes_late() {
    // One queue alone gets half of the buffer: q < B - q.
    let mut q = Bench::new("drr", &[("limit", "10p"), ("full", "threshold")]);
    assert_eq!((0..9).flat_map(|i| q.put_flow(0, i, 1000)).collect::<Vec<_>>(), [5, 6, 7, 8]);
    assert!(q.put_flow(1, 9, 1000).is_empty());
    let mut q = Bench::new("drr", &[("limit", "10p"), ("full", "arrival")]);
    assert!((0..10).all(|i| q.put_flow(0, i, 1000).is_empty()));
    assert_eq!(q.put_flow(1, 10, 1000), [10]);
}

#[test]
fn queues_are_selected_by_flow_or_class() {
    // Flow 0 has class 0 here, and the hash is the number of the flow.
    for (by, order) in [("flow", [0, 2, 1]), ("hash", [0, 2, 1]), ("class", [0, 1, 2])] {
        let mut q = Bench::new("drr", &[("by", by), ("quantum", "1000B")]);
        for (flow, body) in [(0, 0), (0, 1), (1, 2)] {
            q.put_flow(flow, body, 1000);
        }
        assert_eq!(q.drain(), order, "{by}");
    }
}

#[test]
fn who_floods_gets_its_share_no_more_and_no_less() {
    // 1000 B take 1 ms; flow 0 sends ten of them in each, flow 1 one; nine in eleven are lost.
    for name in ["drr", "wfq", "wf2q", "scfq", "stfq"] {
        for drop in ["head", "tail"] {
            let settings = [("limit", "20p"), ("flows", "2"), ("drop", drop)];
            let mut q = Bench::new(name, &settings);
            let mut sent = [0, 0];
            for ms in 0..1000 {
                q.at_ms(ms);
                for i in 0..11 {
                    let flow = u32::from(i == 5);
                    q.put_flow(flow, flow, 1000);
                }
                sent[q.get().0.unwrap() as usize] += 1;
            }
            assert!((480..=520).contains(&sent[0]), "{name}, {drop}: {sent:?}");
        }
    }
}

#[test]
fn contradictions_are_refused() {
    let refusal = |settings: &[(&str, &str)]| {
        let settings: Vec<_> =
            settings.iter().map(|(k, v)| (*k, crate::Setting::Text(v))).collect();
        crate::build("wfq", &settings, crate::Rate(1_000_000)).unwrap_err().to_string()
    };
    assert!(refusal(&[("flows", "2"), ("weights", "1 2 3")]).starts_with("weights: 3"));
    assert!(refusal(&[("weights", "")]).starts_with("weights: 0"));
    assert!(refusal(&[("weights", "1 x")]).contains("not a finite number"));
    assert!(refusal(&[("weights", "1 0")]).contains("allowed: 0.000001 to 1000000"));
    assert!(refusal(&[("limits", "10p 5")]).contains("no unit"));
    assert!(refusal(&[("flows", "2"), ("limits", "1p 2p 3p")]).starts_with("limits: 3"));
    Bench::new("wfq", &[("flows", "2"), ("limits", "1p 2p")]);
}

#[test]
fn the_law_of_a_queue_knows_its_own_buffer() {
    // RED's slope to the buffer needs one above max_th.
    let build = |own| {
        let settings = [("gentle", "buffer"), ("max_th", "25p"), ("flows", "1"), own];
        let settings = settings.map(|(k, v)| (k, crate::Setting::Text(v)));
        crate::build("wfq_red", &settings, crate::Rate(8_000_000)).err()
    };
    assert!(build(("limits", "25p")).unwrap().to_string().contains("limit (25p)"));
    assert!(build(("limits", "26p")).is_none());
}

#[test]
fn packets_that_a_law_throws_out_leave_the_order_and_the_backlog() {
    use crate::aqm::choke::Choke;
    use crate::params::Setting;
    let mut params = <Fair<Drr, Choke> as Build>::Params::default();
    for (name, value) in [("min_th", "0p"), ("max_th", "100p"), ("w_q", "1"), ("max_p", "0")] {
        params.set(name, Setting::Text(value)).unwrap();
    }
    let env = Env::new(crate::Rate(8_000_000));
    let mut q = Fair::<Drr, Choke>::build(&params, &env).unwrap();
    let mut rng = <rand_pcg::Pcg64Mcg as rand_core::SeedableRng>::seed_from_u64(1);
    let (mut dropped, mut marks) = (vec![], crate::Marks::default());
    let (now, rng) = (crate::Time::ZERO, &mut rng);
    let mut context = Context { now, rng, dropped: &mut dropped, marks: &mut marks };
    let packet = |flow, body| Packet { flow, hash: flow, body, len: 300, ..Packet::default() };
    // CHOKe compares the second packet of flow 1 with the first, and drops both.
    q.enqueue(&mut context, packet(1, 0));
    q.enqueue(&mut context, packet(2, 1));
    assert_eq!(q.backlog(), Backlog { packets: 2, bytes: 600 });
    q.enqueue(&mut context, packet(1, 2));
    assert_eq!(q.backlog(), Backlog { packets: 1, bytes: 300 });
    assert_eq!(context.dropped.iter().map(|l| l.packet.body).collect::<Vec<_>>(), [0, 2]);
    assert_eq!(q.dequeue(&mut context).map(|p| p.body), Some(1));
    assert_eq!(q.dequeue(&mut context), None);
    assert_eq!(q.backlog(), Backlog::default());
}

/// The order of departures of two queues. Queue 0 sends the first packet, before which `zeros`
/// packets are dropped; then three more packets arrive at each queue.
fn departures<S: Scheduler>(zeros: &[u32]) -> Vec<u32> {
    let params = <Fair<S, DropsZero> as Build>::Params::default();
    let mut q = Fair::<S, DropsZero>::build(&params, &Env::new(Rate(8_000_000))).unwrap();
    let mut rng = <rand_pcg::Pcg64Mcg as rand_core::SeedableRng>::seed_from_u64(1);
    let (mut dropped, mut marks) = (vec![], crate::Marks::default());
    let (now, rng) = (crate::Time::ZERO, &mut rng);
    let mut context = Context { now, rng, dropped: &mut dropped, marks: &mut marks };
    let packet = |flow, body, len| Packet { flow, body, len, ..Packet::default() };
    for len in zeros {
        q.enqueue(&mut context, packet(0, 0, *len));
    }
    q.enqueue(&mut context, packet(0, 1, 1000));
    let mut sent = vec![q.dequeue(&mut context).unwrap().body];
    for i in 0..3 {
        q.enqueue(&mut context, packet(0, 2 + i, 900));
        q.enqueue(&mut context, packet(1, 10 + i, 800));
    }
    while let Some(packet) = q.dequeue(&mut context) {
        sent.push(packet.body);
        context.now += Span::us(u64::from(packet.len));
    }
    sent
}

#[test]
fn a_packet_that_an_aqm_drops_leaves_the_others_of_its_queue() {
    let params = <Fair<Drr, DropsZero> as Build>::Params::default();
    let mut q = Fair::<Drr, DropsZero>::build(&params, &Env::new(Rate(8_000_000))).unwrap();
    let mut rng = <rand_pcg::Pcg64Mcg as rand_core::SeedableRng>::seed_from_u64(1);
    let (mut dropped, mut marks) = (vec![], crate::Marks::default());
    let (now, rng) = (crate::Time::ZERO, &mut rng);
    let mut context = Context { now, rng, dropped: &mut dropped, marks: &mut marks };
    for (body, len) in [(1, 1000), (2, 500), (9, 100)] {
        q.enqueue(&mut context, Packet { body, len, ..Packet::default() });
    }
    assert_eq!(q.backlog(), Backlog { packets: 2, bytes: 600 });
    let sent = core::iter::from_fn(|| q.dequeue(&mut context)).map(|p| p.body);
    assert_eq!(sent.collect::<Vec<_>>(), [2, 9]);
    assert_eq!(q.backlog(), Backlog::default());
}

#[test]
fn a_queue_is_not_charged_for_packets_that_its_aqm_drops() {
    for zeros in [&[1000][..], &[300], &[1000, 1000]] {
        assert_eq!(departures::<Drr>(zeros), departures::<Drr>(&[]));
        assert_eq!(departures::<Wfq>(zeros), departures::<Wfq>(&[]));
        assert_eq!(departures::<Wf2q>(zeros), departures::<Wf2q>(&[]));
        assert_eq!(departures::<Scfq>(zeros), departures::<Scfq>(&[]));
        assert_eq!(departures::<Stfq>(zeros), departures::<Stfq>(&[]));
        assert_eq!(departures::<Priority>(zeros), departures::<Priority>(&[]));
    }
}

#[test]
fn a_signal_on_arrival_is_a_mark_only_with_ecn() {
    let certain = [("w_q", "1"), ("min_th", "1p"), ("max_th", "2p")];
    for (ecn, dropped, marked) in [("true", vec![], 3), ("false", vec![2, 3, 4], 0)] {
        let mut q = Bench::new("wfq_red", &[&certain[..], &[("ecn", ecn)]].concat());
        q.ect();
        assert_eq!((0..5).flat_map(|i| q.put(i, 100)).collect::<Vec<_>>(), dropped);
        assert_eq!(q.marked(), marked);
    }
}

#[test]
fn every_aqm_starts_at_the_first_arrival_of_the_discipline() {
    let params = <Fair<Drr, DropsZero> as Build>::Params::default();
    let mut q = Fair::<Drr, DropsZero>::build(&params, &Env::new(Rate(8_000_000))).unwrap();
    let mut rng = <rand_pcg::Pcg64Mcg as rand_core::SeedableRng>::seed_from_u64(1);
    let (mut dropped, mut marks) = (vec![], crate::Marks::default());
    for ms in [5, 6] {
        let now = crate::Time(ms * 1_000_000);
        let mut context = Context { now, rng: &mut rng, dropped: &mut dropped, marks: &mut marks };
        q.enqueue(&mut context, Packet { arrived: now, len: 1000, ..Packet::default() });
    }
    let started: Vec<_> = q.queues.iter().map(|queue| queue.aqm.started.clone()).collect();
    assert_eq!(started, vec![vec![crate::Time(5_000_000)]; 1024]);
}

#[test]
fn a_packet_that_can_never_fit_drops_no_other() {
    // If it were queued, flow 1 would drop first: it is longer for its weight.
    let mut q = Bench::new("drr", &[("limit", "3000B"), ("weights", "1 1 10")]);
    (0..3).for_each(|i| assert!(q.put_flow(1, i, 1000).is_empty()));
    assert_eq!(q.put_flow(2, 3, 3001), [3]);
    assert_eq!(q.drain(), [0, 1, 2]);
}

#[test]
fn of_equally_long_queues_the_lowest_drops_where_there_is_no_turn() {
    let mut q = Bench::new("wfq", &[("limit", "4p"), ("flows", "4")]);
    for flow in [3, 2, 3, 2] {
        assert!(q.put_flow(flow, flow, 1000).is_empty());
    }
    assert_eq!(q.put_flow(0, 9, 100), [2]);
}

#[test]
fn linux_codel_spares_the_last_packet_of_all_queues_together() {
    let settings = [("variant", "linux"), ("quantum", "1000B")];
    let mut q = Bench::new("drr_codel", &settings);
    (0..3).for_each(|i| drop(q.put_flow(1, i, 700)));
    // 1400 bytes behind the head are no more than a packet of 1514.
    let sent = [200, 400, 600].map(|ms| {
        q.at_ms(ms);
        q.get()
    });
    assert_eq!(sent, [0, 1, 2].map(|i| (Some(i), vec![])));
    let mut q = Bench::new("drr_codel", &settings);
    for i in 0..3 {
        q.put_flow(1, 10 + i, 1000);
        q.put_flow(2, 20 + i, 1000);
    }
    let mut two_at = |ms| {
        q.at_ms(ms);
        [q.get(), q.get()]
    };
    assert_eq!(two_at(200), [10, 20].map(|i| (Some(i), vec![])));
    // 1000 bytes behind the head in its own queue, and 2000 in the other.
    assert_eq!(two_at(400)[0], (Some(12), vec![11]));
}
