//! Unit tests of fq.

use crate::testing::Bench;
use crate::units::Time;
use std::prelude::v1::*;

/// Bodies that leave, with the times in ms at which they do, asked every millisecond.
fn sent(q: &mut Bench, until_ms: u64) -> Vec<(u64, u32)> {
    let mut out = Vec::new();
    for ms in 0..until_ms {
        q.at_ms(ms);
        out.extend(core::iter::from_fn(|| q.get().0).map(|body| (ms, body)));
    }
    out
}

/// Enqueues 8 packets that need no turn, so that the following ones join their flows.
fn occupy(q: &mut Bench) {
    (0..8).for_each(|_| drop(q.put_flow(0, 0, 1)));
}

fn busy(settings: &[(&str, &str)]) -> Bench {
    let mut q = Bench::new("fq", settings);
    occupy(&mut q);
    q
}

#[test]
fn new_flows_go_first_and_then_each_has_its_quantum() {
    let mut q = busy(&[("quantum", "1000B"), ("initial_quantum", "2000B")]);
    (0..5).for_each(|body| drop(q.put_flow(1, 10 + body, 1000)));
    (0..3).for_each(|body| drop(q.put_flow(2, 20 + body, 1000)));
    assert_eq!(q.drain()[8..], [10, 11, 20, 21, 12, 22, 13, 14]);
}

#[test]
fn eight_packets_need_no_turn_while_no_flow_is_ready() {
    let mut q = Bench::new("fq", &[("initial_quantum", "1000B")]);
    q.put_due(1, 1, 5_000);
    assert_eq!(q.get().0, None, "flow 1 is delayed");
    (0..4).for_each(|body| drop(q.put_flow(2, 20 + body, 3028)));
    (0..4).for_each(|body| drop(q.put_flow(3, 30 + body, 3028)));
    assert_eq!(q.drain(), [20, 21, 22, 23, 30, 31, 32, 33], "in the order of arrival");
    q.at_ms(5);
    (0..2).for_each(|body| drop(q.put_flow(2, 20 + body, 3028)));
    (0..2).for_each(|body| drop(q.put_flow(3, 30 + body, 3028)));
    assert_eq!(q.drain(), [20, 30, 1, 21, 31], "flow 1 is ready");
}

#[test]
fn an_idle_flow_has_a_quantum_again() {
    let order = |from, ms, hz| {
        let mut q = busy(&[("quantum", "1000B"), ("initial_quantum", "2000B"), ("hz", hz)]);
        q.at_ms(from);
        // Flow 2 keeps a credit of 400 bytes.
        (0..2).for_each(|_| drop(q.put_flow(2, 0, 1300)));
        q.put_flow(3, 0, 500);
        (0..6).for_each(|_| drop(q.put_flow(1, 0, 1000)));
        q.drain();
        q.at_ms(ms);
        occupy(&mut q);
        [(2, 1), (2, 2), (3, 3)].into_iter().for_each(|(f, b)| drop(q.put_flow(f, b, 500)));
        q.drain()[8..].to_vec()
    };
    assert_eq!([40, 41].map(|ms| order(0, ms, "auto")), [[1, 3, 2], [1, 2, 3]]);
    let ticks = [49, 50, 59, 60].map(|ms| order(0, ms, "100"));
    let even = [[1, 3, 2], [1, 3, 2], [1, 3, 2], [1, 2, 3]];
    assert_eq!(ticks, even, "more than four ticks of 10 ms after the first odd one");
    let ticks = [59, 60].map(|ms| order(19, ms, "100"));
    assert_eq!(ticks, [[1, 3, 2], [1, 2, 3]], "it is odd itself");
    // 40 ms are a tick of 50 ms.
    assert_eq!([149, 150].map(|ms| order(0, ms, "20")), [[1, 3, 2], [1, 2, 3]]);
}

#[test]
fn a_packet_is_not_sent_before_its_departure_time() {
    let mut q = Bench::new("fq", &[]);
    assert_eq!(q.put_due(1, 1, 5_000), [0; 0]);
    q.put_due(1, 2, 2_000);
    q.put_due(2, 3, 3_000);
    q.put_flow(3, 4, 1000);
    let expected = [(0, 4), (3, 3), (5, 1), (5, 2)];
    assert_eq!(sent(&mut q, 10), expected, "packets of a flow keep their order");
    assert_eq!(q.gauge("delayed_flows"), 0.0);
}

#[test]
fn flows_that_are_due_at_the_same_time_leave_in_the_order_in_which_they_were_delayed() {
    for (first, second) in [(1, 2), (2, 1)] {
        let mut q = Bench::new("fq", &[]);
        q.put_due(first, 1, 5_000);
        q.put_due(second, 2, 5_000);
        assert_eq!(sent(&mut q, 10), [(5, 1), (5, 2)], "flow {first} first");
    }
}

#[test]
fn departure_times_end_at_the_horizon() {
    let mut q = Bench::new("fq", &[("horizon", "4ms")]);
    assert_eq!(q.put_due(1, 1, 4_001), [1]);
    assert_eq!(q.put_due(1, 2, 4_000), [0; 0]);
    let mut q = Bench::new("fq", &[("horizon", "4ms"), ("horizon_drop", "false")]);
    assert_eq!(q.put_due(1, 1, 9_000), [0; 0]);
    assert_eq!(sent(&mut q, 20), [(4, 1)]);
}

#[test]
fn a_flow_keeps_to_its_rate_by_quanta() {
    // 4 Mbit/s: 2 ms per packet of 1000 bytes, a quantum of 2000 bytes per 4 ms.
    let settings = [("maxrate", "4mbit"), ("quantum", "2000B"), ("initial_quantum", "2000B")];
    let mut q = Bench::new("fq", &settings);
    (0..6).for_each(|body| drop(q.put_flow(1, body, 1000)));
    let times: Vec<u64> = sent(&mut q, 40).iter().map(|(ms, _)| *ms).collect();
    assert_eq!(times, [0, 0, 4, 4, 8, 8]);
    // At a low rate each packet by itself.
    let settings = [("maxrate", "400kbit"), ("quantum", "2000B")];
    let mut q = Bench::new("fq", &settings);
    (0..4).for_each(|body| drop(q.put_flow(1, body, 1000)));
    let times: Vec<u64> = sent(&mut q, 90).iter().map(|(ms, _)| *ms).collect();
    assert_eq!(times, [0, 20, 40, 60]);
}

#[test]
fn priorities_share_by_weights() {
    let settings =
        [("weights", "3000B 1000B 1000B"), ("quantum", "1000B"), ("initial_quantum", "1000B")];
    let mut q = busy(&settings);
    // The DSCP of flow 1 has the first priority, the DSCP of flow 2 the second; the first packet of
    // each is among the new flows of the first.
    for (class, flow) in [(4, 1), (0, 2)] {
        (0..8).for_each(|_| drop(q.put_class_flow(class, flow, flow, 1000)));
    }
    assert_eq!(q.drain()[8..], [1, 2, 1, 2, 1, 1, 1, 2, 1, 1, 1, 2, 2, 2, 2, 2]);
}

#[test]
fn buffers_and_marks() {
    let mut q = busy(&[("limit", "11p"), ("flow_limit", "2")]);
    assert_eq!([1, 2].map(|body| q.put_flow(1, body, 100)), [[0; 0]; 2]);
    assert_eq!(q.put_flow(1, 3, 100), [3], "two packets of a flow");
    assert_eq!(q.put_flow(2, 4, 100), [0; 0]);
    assert_eq!(q.put_flow(3, 5, 100), [5], "eleven packets");
    let mut q = busy(&[("ce_threshold", "1ms")]);
    q.ect();
    [1, 2].into_iter().for_each(|body| drop(q.put_flow(1, body, 100)));
    q.at_ms(1);
    (0..9).for_each(|_| drop(q.get()));
    assert_eq!(q.marked(), 0);
    q.at_ms(2);
    q.get();
    assert_eq!(q.marked(), 1, "more than 1 ms after it was due");
}

#[test]
fn a_flow_that_is_served_late_waits_less_but_at_least_half() {
    // 20 ms per packet of 1000 bytes.
    let mut q = Bench::new("fq", &[("maxrate", "400kbit")]);
    (0..4).for_each(|body| drop(q.put_flow(1, body, 1000)));
    let mut sent_by = |ms| {
        q.at_ms(ms);
        q.drain()
    };
    assert_eq!(sent_by(0), [0]);
    assert_eq!(sent_by(25), [1], "5 ms late: the next one is due at 25 + 20 - 5");
    assert_eq!([39, 60].map(&mut sent_by), [vec![], vec![2]], "20 ms late: 60 + 20 - 10");
    assert_eq!([69, 70].map(&mut sent_by), [vec![], vec![3]]);
}

#[test]
fn the_backlog_and_the_next_time_are_told() {
    let mut q = Bench::new("fq", &[]);
    let state = |q: &Bench| (q.backlog(), q.bytes(), q.ready_at());
    q.put_due(1, 1, 5_000);
    assert_eq!(state(&q), (1, 1000, None), "the flow was not examined yet");
    assert_eq!(q.get().0, None);
    assert_eq!(state(&q), (1, 1000, Some(Time(5_000_000))));
    [100, 300].into_iter().for_each(|len| drop(q.put_flow(2, len, len)));
    q.get();
    assert_eq!(state(&q), (2, 1300, Some(Time(5_000_000))), "a packet that needs no turn has left");
    q.drain();
    q.at_ms(5);
    q.put_flow(3, 3, 200);
    assert_eq!(state(&q), (2, 1200, None));
    assert_eq!(q.get().0, Some(3), "flow 3 is new");
    assert_eq!(state(&q), (1, 1000, None));
    assert_eq!((q.drain(), state(&q)), (vec![1], (0, 0, None)));
}

#[test]
fn packets_of_many_quanta_cost_no_round_each() {
    // Round by round, each of these would take from seconds to minutes.
    let sent = |quantum, weight: &str| {
        let weights = [weight; 3].join(" ");
        let settings = [("quantum", quantum), ("initial_quantum", "2B"), ("weights", &weights)];
        let mut q = busy(&settings);
        for _ in 0..20 {
            // The DSCP of flows 1 and 2 has the first priority, the DSCP of flow 3 the second.
            for (class, flow) in [(4, 1), (4, 2), (0, 3)] {
                q.put_class_flow(class, flow, flow, 4_000_000_000);
            }
        }
        q.drain()
    };
    // The first packet of each is one of the first priority; then the two share equally.
    let expected = [1, 2, 3, 1, 3, 2, 3, 1, 3, 2, 3, 1];
    for (quantum, weight) in [("2B", "1GB"), ("1000B", "1GB"), ("1MB", "2B")] {
        let order = sent(quantum, weight);
        assert_eq!((&order[8..20], order.len()), (&expected[..], 68), "{quantum} {weight}");
    }
}

#[test]
fn passing_over_flows_whose_turn_is_near_credits_nothing() {
    let mut q = busy(&[("quantum", "100B"), ("initial_quantum", "100B")]);
    for flow in [1, 2] {
        q.put_flow(flow, flow, 3350);
        (0..3).for_each(|_| drop(q.put_flow(flow, flow, 100)));
    }
    // Each is at 100 - 3350 bytes, and has 50 after 33 quanta. The first of them is given to flow 1
    // before the first packet of flow 2 leaves; with its last one, 64 were given after that. Rounds
    // in which no flow can send would be left out now, but flow 1 can send.
    assert_eq!(q.drain()[8..], [1, 2, 1, 2, 1, 2, 1, 2]);
}

#[test]
fn flows_in_debt_wait_while_a_new_one_can_send() {
    let settings =
        [("quantum", "100B"), ("initial_quantum", "100B"), ("weights", "1000B 1000B 1000B")];
    let mut q = busy(&settings);
    // Flow 1 moves to the second priority with its first packet and -6250 bytes. It is passed over
    // 63 times until it has 50 and its second packet is not due.
    q.put_flow(1, 1, 6450);
    q.put_due(1, 1, 5_000);
    // Flow 2 of the first priority has -1000 bytes after its first packet, which uses up the bytes
    // of its priority. Passed over for the 64th time, it has -900 while flow 3 is new.
    [1100, 100].into_iter().for_each(|len| drop(q.put_class_flow(4, 2, 2, len)));
    (0..12).for_each(|_| drop(q.put_class_flow(4, 3, 3, 100)));
    // Flow 3 sends, and once more in each of the ten rounds that flow 2 needs.
    let mut expected = vec![1, 2];
    expected.extend([3; 11]);
    expected.extend([2, 3]);
    assert_eq!(q.drain()[8..], expected);
}
