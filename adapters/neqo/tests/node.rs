//! The node in a ring, with the stub of neqo.

use neqo_common::{Datagram, Tos};
use neqo_transport::Output;
use sojourn_adapter_neqo::Bottleneck;
use sojourn_aqm::{Rate, Span, TimedLink};
use std::time::{Duration, Instant};
use test_fixture::sim::Node;

fn node(qdisc: &str) -> Bottleneck {
    Bottleneck::new(TimedLink::builder(qdisc, Rate(10_000_000), Span::ms(20)).build().unwrap())
}

/// A datagram of 1250 bytes with its headers: 1 ms at 10 Mbit/s.
fn datagram(port: u16, tos: u8, number: u8) -> Datagram {
    let address = |port| ([10, 0, 0, 1], port).into();
    Datagram::new(address(port), address(443), Tos::from(tos), vec![number; 1222])
}

/// Runs the node as the simulator does, until it is idle; returns datagrams with times in µs.
fn run(node: &mut Bottleneck, start: Instant, mut now: Instant) -> Vec<(u128, Datagram)> {
    let mut arrivals = Vec::new();
    loop {
        match node.process(None, now) {
            Output::Datagram(datagram) => {
                arrivals.push((now.duration_since(start).as_micros(), datagram));
            }
            Output::Callback(time) => {
                assert!(time > Duration::ZERO);
                now += time;
            }
            Output::None => return arrivals,
        }
    }
}

#[test]
fn datagrams_leave_at_the_rate_of_the_link_and_keep_their_contents() {
    let (mut node, start) = (node("droptail"), Instant::now());
    for number in 0..5 {
        let output = node.process(Some(datagram(1, 0xb8, number)), start);
        let Output::Callback(wait) = output else { panic!("{output:?}") };
        assert!((1..=21).contains(&wait.as_millis()), "{wait:?}");
    }
    let arrivals = run(&mut node, start, start);
    let expected =
        (0..5).map(|number| (21_000 + 1000 * u128::from(number), datagram(1, 0xb8, number)));
    assert_eq!(arrivals, expected.collect::<Vec<_>>());
    assert_eq!(node.process(None, start + Duration::from_secs(1)), Output::None);
    assert!(node.done());
}

#[test]
fn codel_marks_datagrams_with_ecn_and_drops_others() {
    for (tos, dscp) in [(0xba, 0xb8), (0xb8, 0xb8)] {
        let (mut node, start) = (node("codel(ecn=true)"), Instant::now());
        let copy = node.clone();
        for number in 0..200 {
            node.process(Some(datagram(1, tos, number)), start);
        }
        let arrivals = run(&mut node, start, start);
        let bytes = arrivals.iter().map(|(_, datagram)| u8::from(datagram.tos()));
        assert!(bytes.clone().all(|byte| byte & !3 == dscp));
        let marked = bytes.filter(|byte| byte & 3 == 3).count();
        let lost = 200 - arrivals.len();
        let expected = if tos & 3 == 0 { marked == 0 && lost > 0 } else { marked > 0 && lost == 0 };
        assert!(expected, "{marked} marked, {lost} lost");
        let mut link = copy.link();
        assert_eq!(link.stats().dropped() as usize, lost);
        assert_eq!(link.stats().marks.packets as usize, marked);
        drop(link);
        node.print_summary("marks");
    }
}

#[test]
fn flows_have_queues_of_their_own() {
    let (mut node, start) = (node("fq_codel"), Instant::now());
    for number in 0..20 {
        node.process(Some(datagram(1, 0, number)), start);
    }
    node.process(Some(datagram(2, 0, 0)), start);
    let arrivals = run(&mut node, start, start);
    let place = arrivals.iter().position(|(_, datagram)| datagram.source().port() == 2);
    assert!(place.is_some_and(|place| place < 4), "{place:?}");
}
