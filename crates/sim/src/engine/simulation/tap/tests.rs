use super::*;
use crate::run;
use serde_json::{Value as Json, json};

/// Packets of a tapped run on link `link`; its result must be the same as without a tap.
fn tapped(scenario: &Json, link: usize) -> (Vec<TappedPacket>, Outcome) {
    let scenario = Arc::new(Scenario::from_json(&scenario.to_string()).unwrap());
    let mut packets = Vec::new();
    let outcome = run_tapped(
        scenario.clone(),
        link,
        &mut |packet, _| {
            packets.push(*packet);
            true
        },
        &mut |_| true,
    );
    let (outcome, plain) = (outcome.expect("nobody stops it"), run(scenario));
    assert_eq!(outcome.summary.to_string(), plain.summary.to_string());
    assert!(outcome.columns == plain.columns, "columns differ");
    (packets, outcome)
}

fn two_way(qdisc: &str) -> Json {
    json!({
        "duration": "5s", "sample": "100ms", "packet_log": true,
        "links": {
            "down": {"rate": "8mbit", "delay": "5ms", "qdisc": {"name": qdisc, "limit": "40p"}},
            "up": {"rate": "2mbit", "delay": "5ms", "loss": 0.01, "qdisc": "fq_codel"}
        },
        "flows": [
            {"name": "get", "count": 3, "path": ["down"], "return_path": ["up"], "rtt": "40ms"},
            {"name": "put", "path": ["up"], "return_path": ["down"], "rtt": "40ms"},
            {"name": "one-way", "path": ["down"], "rtt": "60ms"},
            {"name": "talk", "path": ["up"], "rtt": "40ms", "source": {"name": "call"}}
        ]
    })
}

#[test]
fn a_tap_changes_nothing_and_sees_every_packet() {
    for qdisc in ["droptail", "red", "codel", "pie"] {
        for (link, name) in ["down", "up"].into_iter().enumerate() {
            let (packets, outcome) = tapped(&two_way(qdisc), link);
            let passed: Vec<_> = packets.iter().filter(|packet| packet.passes).collect();
            let count = |fate: fn(&Fate) -> bool| {
                passed.iter().filter(|packet| fate(&packet.fate)).count() as u64
            };
            let text = outcome.summary.to_string();
            let summary: Json = serde_json::from_str(&text).unwrap();
            let of_link = &summary["links"][name];
            assert_eq!(of_link["dropped_packets"], count(|f| matches!(f, Fate::Dropped(_))));
            let lost = count(|f| *f == Fate::Lost);
            let sent = count(|f| *f == Fate::Sent) + lost;
            // Random loss is drawn when a packet arrives: those on the wire are not drawn yet.
            let departed = of_link["departed_packets"].as_u64().unwrap();
            assert!(sent <= departed && departed - sent < 60, "{name}: {sent} of {departed}");
            assert_eq!(lost > 0, name == "up");
            assert!(packets.iter().all(|packet| packet.left >= packet.arrived));
        }
    }
}

#[test]
fn the_opposite_direction_is_seen_at_the_endpoint() {
    let (packets, _) = tapped(&two_way("codel"), 1);
    let opposite = |f: fn(&TappedContent) -> bool| {
        packets.iter().filter(|packet| !packet.passes && f(&packet.content)).count()
    };
    let [data, acks, reports] = [
        opposite(|c| matches!(c, TappedContent::Segment(_))),
        opposite(|c| matches!(c, TappedContent::Ack(_))),
        opposite(|c| matches!(c, TappedContent::Report(_))),
    ];
    assert!(data > 1000 && acks > 50 && reports > 2, "{data} {acks} {reports}");
    let passing = packets.iter().filter(|packet| packet.passes);
    assert!(passing.clone().any(|packet| matches!(packet.content, TappedContent::Ack(_))));
    assert!(passing.clone().any(|packet| matches!(packet.content, TappedContent::Datagram(_))));
}

#[test]
fn a_run_can_be_stopped_by_the_receiver_of_packets() {
    let scenario = Scenario::from_json(&two_way("codel").to_string()).unwrap();
    let mut count = 0;
    let outcome = run_tapped(
        scenario,
        0,
        &mut |_, _| {
            count += 1;
            count < 10
        },
        &mut |_| true,
    );
    assert!(outcome.is_none() && count == 10);
}
