//! RACK on worked cases, compared with RFC 6675's count of duplicate acks.

#[allow(dead_code)] // Each test file uses its part of the path.
mod tcp_path;

use sojourn_aqm::units::{Span, Time};
use sojourn_sim::Scenario;
use sojourn_sim::internals::tcp::{Segment, SenderStats};
use tcp_path::{Fate, Path, params};

const MS: u64 = 1_000_000;

/// Result of a transfer of `packets` within three seconds, over an infinitely fast link of 100 ms,
/// where `lost` lists the lost packets and how often each is lost.
fn transfer(rack: bool, packets: u64, lost: &[(u64, u32)]) -> (SenderStats, bool) {
    let rack = if rack { "true" } else { "false" };
    let settings =
        [("packet", "1040B"), ("delayed_ack", "false"), ("rto_min", "300ms"), ("rack", rack)];
    let mut left: Vec<_> = lost.to_vec();
    let fate = move |_: u64, segment: &Segment| {
        let number = (segment.seq.max(1) - 1) / 1000;
        match left.iter_mut().find(|(packet, times)| *packet == number && *times > 0) {
            Some((_, times)) if segment.len > 0 => {
                *times -= 1;
                Fate::Lose
            }
            _ => Fate::Pass,
        }
    };
    let mut path = Path::wide(&params("sack", &settings), Span::ms(100), fate);
    path.quiet = true;
    path.start(Time::ZERO, packets * 1000);
    path.run(Time(3000 * MS));
    (*path.sender.stats(), path.receiver.received_in_connection() == packets * 1000)
}

#[test]
fn one_delivered_packet_suffices() {
    // The first of three packets is lost: two duplicate acks are below the threshold of three, and
    // no further packet can cause another.
    let (counted, _) = transfer(false, 3, &[(0, 1)]);
    assert_eq!(counted.timeouts, 1);
    let (in_order, all) = transfer(true, 3, &[(0, 1)]);
    assert_eq!((in_order.timeouts, in_order.retransmitted_packets, all), (0, 1, true));
}

#[test]
fn a_lost_retransmission_is_detected_without_the_timer() {
    let (counted, _) = transfer(false, 60, &[(3, 2)]);
    assert_eq!(counted.timeouts, 1);
    let (in_order, all) = transfer(true, 60, &[(3, 2)]);
    assert_eq!((in_order.timeouts, in_order.retransmitted_packets, all), (0, 2, true));
}

#[test]
fn there_are_no_spurious_retransmissions() {
    assert_eq!(transfer(true, 60, &[]).0.retransmitted_packets, 0);
    let many = [(2, 1), (3, 1), (5, 2), (7, 1), (11, 3), (12, 1)];
    let (stats, all) = transfer(true, 60, &many);
    let lost: u32 = many.iter().map(|(_, times)| times).sum();
    assert_eq!((stats.retransmitted_packets, all), (u64::from(lost), true));
    // The loss of the very last packet needs the timer.
    let (stats, all) = transfer(true, 10, &[(9, 1)]);
    assert_eq!((stats.timeouts, stats.retransmitted_packets, all), (1, 1, true));
}

#[test]
fn flows_with_small_windows_have_fewer_timeouts() {
    let timeouts = |rack: bool| {
        let text = format!(
            r#"{{"duration": "30s", "warmup": "5s",
            "links": {{"up": {{"rate": "10mbit", "delay": "25ms", "qdisc": "codel"}}}},
            "flows": [{{"name": "x", "count": 30, "path": ["up"], "rtt": "50ms",
                "tcp": {{"name": "sack", "rto_min": "200ms", "rack": {rack}}}}}]}}"#
        );
        let scenario = Scenario::from_json(&text).unwrap();
        let outcome = sojourn_sim::run(&scenario);
        let flows = outcome.summary["flows"].as_array().unwrap();
        flows.iter().map(|flow| flow["timeouts"].as_u64().unwrap()).sum::<u64>()
    };
    let (counted, in_order) = (timeouts(false), timeouts(true));
    assert!(2 * in_order < counted, "{in_order} against {counted}");
}
