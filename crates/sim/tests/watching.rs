//! The packets of links while a simulation runs.

use serde_json::json;
use sojourn_aqm::units::{Span, Time};
use sojourn_sim::{Scenario, Simulation, run};

fn scenario(qdisc: &str, packet_log: bool) -> Scenario {
    let json = json!({
        "duration": "4s", "warmup": "1s", "packet_log": packet_log,
        "links": {
            "up": {"rate": "4mbit", "delay": "5ms", "qdisc": qdisc},
            "back": {"rate": "1mbit"},
        },
        "flows": [
            {"name": "bulk", "count": 2, "path": ["up"], "return_path": ["back"], "rtt": "30ms"},
            {"name": "call", "source": {"name": "cbr"}, "path": ["up"]},
            {"name": "web", "source": {"name": "web", "sessions": 2, "page_gap": "500ms"},
                "path": ["up"], "rtt": "30ms"},
        ],
    });
    Scenario::from_json(&json.to_string()).unwrap()
}

#[test]
fn every_packet_that_left_is_taken_once_and_the_rest_is_queued() {
    for qdisc in ["droptail(limit=20p)", "codel", "fq_codel", "cake", "dualpi2", "red"] {
        let scenario = scenario(qdisc, false);
        let mut simulation = Simulation::changeable(scenario.clone());
        simulation.watch_packets().unwrap();
        let mut counts = [0, 0];
        for ms in (0..=4000).step_by(25) {
            assert_eq!(simulation.run_until(Time::ZERO + Span::ms(ms), &mut |_| true), Ok(true));
            let state = simulation.link("up").unwrap();
            let queued = simulation.queued("up").unwrap();
            assert_eq!(queued.len() as u64, state.queue_packets, "{qdisc} at {ms} ms");
            let groups = scenario.flows().len();
            assert!(queued.iter().all(|(group, _)| *group < groups));
            for (group, row) in simulation.take_packets("up").unwrap() {
                // A call has packets of 200 bytes, and nothing else has.
                assert_eq!(scenario.flows()[group].name() == "call", row.packet.len == 200);
                counts[usize::from(row.why.is_some())] +=
                    u64::from(row.left >= Time(1_000_000_000));
            }
            assert!(simulation.take_packets("up").unwrap().is_empty());
            if ms == 1000 {
                counts = [0, 0];
            }
        }
        let result = simulation.result().unwrap();
        assert_eq!(result.summary.to_string(), run(&scenario).summary.to_string(), "{qdisc}");
        let link = &result.summary["links"]["up"];
        assert_eq!(link["departed_packets"], counts[0], "{qdisc}");
    }
}

#[test]
fn a_packet_log_belongs_to_the_result() {
    let mut logged = Simulation::new(scenario("codel", true));
    let error = logged.watch_packets().unwrap_err();
    assert_eq!(error.to_string(), "packet_log: the rows belong to the result");
    assert_eq!(logged.run_until(Time::ZERO + Span::ms(2000), &mut |_| true), Ok(true));
    assert!(logged.take_packets("up").unwrap().is_empty());
    let mut plain = Simulation::new(scenario("codel", false));
    assert!(plain.queued("down").unwrap_err().to_string().contains("down"));
    assert_eq!(plain.take_packets("up"), Ok(Vec::new()), "nothing was watched");
}
