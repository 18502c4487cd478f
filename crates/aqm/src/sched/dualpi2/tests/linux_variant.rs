//! The variant `linux`: buffer, step and signals. `tests.rs` compares its controller.

use super::*;

#[test]
fn memory_is_counted_in_buffers_of_a_power_of_two() {
    // 1000 bytes take 2048 + 256 bytes.
    for limit in ["6912B", "9215B"] {
        let mut q = Bench::new("dualpi2", &[("variant", "linux"), ("memlimit", limit)]);
        let dropped: Vec<u32> = (0..5).flat_map(|i| q.put(i, 1000)).collect();
        assert_eq!(dropped, [3, 4]);
        q.get();
        assert_eq!((q.put(5, 1000), q.put(6, 1000)), (vec![], vec![6]), "one has left");
    }
    // The memory in addition to the queue: one flag per L packet, if the step depends on the queue
    // at arrival.
    for (least, n) in [("0", 0), ("1", 6)] {
        let (dual, own) = params(&[("variant", "linux"), ("min_qlen_step", least)]);
        let env = Env::new(Rate(10_000_000));
        let mut aqm = DualPi2::new(own.checked().unwrap(), &dual, &env).unwrap();
        assert_eq!(aqm.heap(), 0);
        let mut bench = Departures::new();
        for _ in 0..n {
            bench.next(&queues(1), Lane::L, Ecn::Ect1, 0, |c, q, l, p| aqm.on_enqueue(c, q, l, p));
        }
        assert!((n..=4 * n).contains(&aqm.heap()), "{}", aqm.heap());
    }
    assert_eq!(DualPi2::Rfc(rfc(&[])).heap(), 0);
}

#[test]
fn the_buffer_takes_packets_up_to_its_limit() {
    for limit in ["4p", "4000B", "4999B"] {
        let mut q = Bench::new("dualpi2", &[("variant", "linux"), ("limit", limit)]);
        let dropped: Vec<u32> = (0..6).flat_map(|i| q.put(i, 1000)).collect();
        assert_eq!(dropped, [4, 5], "{limit}");
    }
    let mut q = Bench::new("dualpi2", &[("variant", "linux"), ("limit", "999B")]);
    assert_eq!(q.put(0, 1000), [0], "no packet of an empty queue is larger than the buffer");
}

#[test]
fn it_steps_on_what_a_packet_found_when_it_arrived() {
    for (least, marked) in [("0", 4), ("1", 3), ("3", 1)] {
        let settings = [("variant", "linux"), ("min_qlen_step", least)];
        let mut q = Bench::new("dualpi2", &settings);
        q.ecn(Ecn::Ect1);
        (0..4).for_each(|i| drop(q.put(i, 1000)));
        q.at_ms(2);
        q.drain();
        assert_eq!(q.marked(), marked, "{least}");
    }
    // In packets: those left behind.
    let mut q = Bench::new("dualpi2", &[("variant", "linux"), ("step_thresh", "2p")]);
    q.ecn(Ecn::Ect1);
    (0..6).for_each(|i| drop(q.put(i, 1000)));
    q.drain();
    assert_eq!(q.marked(), 3);
    // A delay of the threshold itself is not above it.
    let mut q = Bench::new("dualpi2", &[("variant", "linux"), ("step_thresh", "2ms")]);
    q.ecn(Ecn::Ect1);
    q.put(0, 1000);
    q.at_ms(2);
    q.drain();
    assert_eq!(q.marked(), 0);
    // A packet of C is no packet that L found, and has no part in the step.
    let mut q = Bench::new("dualpi2", &[("variant", "linux"), ("min_qlen_step", "1")]);
    q.put(0, 1000);
    q.ecn(Ecn::Ect1);
    (1..3).for_each(|i| drop(q.put(i, 1000)));
    q.at_ms(2);
    q.drain();
    assert_eq!(q.marked(), 1);
}

#[test]
fn nothing_is_signalled_while_less_than_two_packets_wait() {
    for (mtu, behind, sent) in
        [("1514B", 0, true), ("1514B", 1, true), ("1500B", 1, false), ("1514B", 2, false)]
    {
        let mut aqm = linux(&[("step_thresh", "10s"), ("link_mtu", mtu)]);
        (0..100).for_each(|_| _ = aqm.pi.update(Span::s(1)));
        let mut bench = Departures::new();
        let out = bench.next(&queues(behind), Lane::C, Ecn::NotEct, 0, |c, q, l, p| {
            aqm.on_enqueue(c, q, l, p) && aqm.on_dequeue(c, q, l, p)
        });
        assert_eq!(out.0, sent, "{mtu}: {behind} packets in L and one in C are left");
    }
}

/// Shares of dropped and of marked packets among 20,000 of `lane` at a constant p'.
fn shares(k: &str, p_prime: f64, lane: Lane, ecn: Ecn) -> [f64; 2] {
    let mut aqm = linux(&[("step_thresh", "10s"), ("k", k)]);
    aqm.pi.raise(p_prime);
    let (mut bench, queues) = (Departures::new(), queues(5));
    let (mut dropped, mut marked) = (0, 0);
    for _ in 0..20_000 {
        let (sent, out) = bench.next(&queues, lane, ecn, 0, |c, q, l, p| {
            aqm.on_enqueue(c, q, l, p) && aqm.on_dequeue(c, q, l, p)
        });
        dropped += u32::from(!sent);
        marked += u32::from(sent && out == Ecn::Ce);
    }
    [dropped, marked].map(|count| f64::from(count) / 20_000.0)
}

#[test]
fn packets_are_signalled_with_the_probabilities_of_both_queues() {
    let close = |told: [f64; 2], expected: [f64; 2]| {
        let near = |(a, b): (&f64, &f64)| (a - b).abs() < 0.015;
        assert!(told.iter().zip(&expected).all(near), "{told:?}, not {expected:?}");
    };
    // p'^2 in C, by drops or marks; k p' in L, by marks.
    close(shares("2", 0.3, Lane::C, Ecn::NotEct), [0.09, 0.0]);
    close(shares("2", 0.3, Lane::C, Ecn::Ect0), [0.0, 0.09]);
    close(shares("2", 0.3, Lane::L, Ecn::Ect1), [0.0, 0.6]);
    // Overload: both queues drop p'^2, and all L packets that are left are marked.
    close(shares("2", 0.7, Lane::C, Ecn::Ect0), [0.49, 0.0]);
    close(shares("2", 0.7, Lane::L, Ecn::Ect1), [0.49, 0.51]);
    // k p' = 1 is no overload.
    assert_eq!(shares("1", 1.0, Lane::C, Ecn::Ect0), [0.0, 1.0]);
    assert_eq!(shares("1", 1.0, Lane::L, Ecn::Ect1), [0.0, 1.0]);
}

#[test]
fn it_may_decide_at_enqueue() {
    let settings = [("variant", "linux"), ("drop_enqueue", "true"), ("alpha", "100")];
    let mut q = Bench::new("dualpi2", &settings);
    (0..50).for_each(|i| assert_eq!(q.put(i, 1000), []));
    q.at_ms(500);
    assert_eq!(q.put(50, 1000), [50], "p' is 1");
    assert_eq!(q.drain().len(), 50);
}
