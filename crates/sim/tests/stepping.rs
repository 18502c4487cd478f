//! A simulation in steps gives the same bytes as one in one go, whatever is looked at, copied or
//! changed in between.

use serde_json::{Value as Json, json};
use sojourn_aqm::registry::REGISTRY;
use sojourn_aqm::units::{Span, Time};
use sojourn_sim::endpoint::tcp::TCPS;
use sojourn_sim::{Column, Outcome, Scenario, Simulation, run};

/// Everything that a run returns, as text.
fn bytes(outcome: &Outcome) -> String {
    let columns: Vec<String> =
        outcome.columns.iter().map(|(name, column)| format!("{name}: {}", hex(column))).collect();
    format!("{}\n{}", outcome.summary, columns.join("\n"))
}

fn hex(column: &Column) -> String {
    match column {
        Column::F64(values) => {
            let bits: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
            format!("{bits:x?}")
        }
        other => format!("{other:?}"),
    }
}

/// Asserts that two results are equal, and shows the first difference.
fn same(one: &str, other: &str) {
    let at = one.bytes().zip(other.bytes()).position(|(a, b)| a != b);
    let at = at.unwrap_or(one.len().min(other.len()));
    let near = |text: &str| text[at.saturating_sub(200)..(at + 100).min(text.len())].to_string();
    assert!(one == other, "{}\n--\n{}", near(one), near(other));
}

fn whole(scenario: &Scenario) -> String {
    bytes(&run(scenario, &mut |_| true).expect("the callback never cancels"))
}

fn to(simulation: &mut Simulation, us: u64) {
    let went_on = simulation.run_until(Time::ZERO + Span::us(us), &mut |_| true);
    assert_eq!(went_on, Ok(true));
}

/// Looks at everything.
fn look(simulation: &mut Simulation) {
    let scenario = simulation.scenario().clone();
    for link in scenario.links() {
        simulation.link(link.name()).unwrap();
    }
    for flow in scenario.flows() {
        simulation.flow(flow.name()).unwrap();
    }
}

/// Runs `scenario` in steps of `step_us`, looks at everything after each, and continues in a copy
/// after half of them.
fn stepped(scenario: &Scenario, step_us: u64, changeable: bool) -> String {
    let create = if changeable { Simulation::changeable } else { Simulation::new };
    let mut simulation = create(scenario.clone());
    let end_us = scenario.duration().0 / 1000;
    let mut at = 0;
    while at + step_us < end_us {
        at += step_us;
        to(&mut simulation, at);
        look(&mut simulation);
        if at / step_us == end_us / step_us / 2 {
            let copy = simulation.clone();
            to(&mut simulation, end_us);
            simulation = copy;
        }
    }
    to(&mut simulation, end_us);
    bytes(&simulation.result().unwrap())
}

/// Traffic of several kinds over two links, with samples, a packet log, and all kinds of changes.
fn scenario(qdisc: &str, tcp: &str, extra: &[(&str, Json)]) -> Scenario {
    let mut json = json!({
        "duration": "3s", "warmup": "700ms", "sample": "50ms", "sample_flows": true,
        "packet_log": true, "seed": 5,
        "links": {
            "up": {"rate": "2mbit", "delay": "5ms", "qdisc": qdisc},
            "lossy": {"rate": "3mbit", "delay": "1ms", "loss": 0.01},
            "back": {"rate": "500kbit", "trace": {"t_ns": [0, 200_000_000],
                "rate_bps": [500_000, 300_000], "repeat": "500ms"}},
        },
        "flows": [
            {"name": "bulk", "count": 2, "path": ["up"], "rtt": "30ms", "tcp": tcp},
            {"name": "both", "path": ["lossy", "up"], "return_path": ["back"], "tcp": tcp},
            {"name": "late", "path": ["up"], "rtt": "40ms", "tcp": tcp},
            {"name": "web", "count": 2, "path": ["up"], "return_path": ["back"],
             "source": "web(think=300ms, request=true)"},
            {"name": "short", "path": ["lossy"], "rtt": "20ms", "source":
             {"name": "transfers", "size": "20kB", "gap": "100ms"}},
            {"name": "voice", "path": ["lossy", "up"],
             "source": {"name": "cbr", "rate": "64kbit"}},
        ],
        "changes": [{"at": "1s", "join": ["late"], "links": {"lossy": {"rate": "1mbit"}}},
                    {"at": "2s", "leave": ["bulk"], "links": {"lossy": {"delay": "3ms"}}}],
    });
    for (key, value) in extra {
        json[key] = value.clone();
    }
    Scenario::from_json(&json.to_string()).unwrap()
}

#[test]
fn every_discipline_gives_the_same_bytes_in_steps() {
    for entry in REGISTRY {
        let scenario = scenario(entry.name, "newreno", &[]);
        let expected = whole(&scenario);
        assert_eq!(expected, stepped(&scenario, 10_000, false), "{}", entry.name);
        assert_eq!(expected, stepped(&scenario, 7_313, true), "{}, changeable", entry.name);
    }
}

#[test]
fn every_tcp_gives_the_same_bytes_in_steps() {
    let flows = |tcp: &str, path: Json, back: Json| {
        json!([
            {"name": "a", "path": path, "return_path": back, "rtt": "30ms", "tcp": tcp},
            {"name": "b", "path": path, "return_path": back, "rtt": "70ms", "tcp": tcp},
        ])
    };
    for entry in TCPS {
        for (path, back) in [(json!(["up"]), json!([])), (json!(["up", "lossy"]), json!(["back"]))]
        {
            let extra = [("flows", flows(entry.name, path, back)), ("changes", json!([]))];
            let scenario = scenario("codel(ecn=true)", "newreno", &extra);
            let expected = whole(&scenario);
            assert_eq!(expected, stepped(&scenario, 10_000, false), "{}", entry.name);
            assert_eq!(expected, stepped(&scenario, 9_999, true), "{}", entry.name);
        }
    }
}

#[test]
fn a_result_on_the_way_is_that_of_a_shorter_run() {
    let scenario_of = |duration: &str| scenario("pie", "cubic", &[("duration", json!(duration))]);
    let mut simulation = Simulation::new(scenario_of("3s"));
    let early = simulation.result().unwrap_err().to_string();
    assert!(early.contains("nothing is measured yet: it is 0s"), "{early}");
    for (ms, fits) in [(750, false), (1_000, false), (1_001, false), (2_000, false), (2_500, true)]
    {
        to(&mut simulation, ms * 1000);
        let result = bytes(&simulation.result().unwrap());
        if fits {
            assert_eq!(result, whole(&scenario_of(&format!("{ms}ms"))));
            continue;
        }
        // A shorter scenario has neither later changes nor the flows that join by them.
        let short: Json = simulation.result().unwrap().summary["scenario"].clone();
        assert_eq!(short["duration"], format!("{ms}ms").as_str().replace("000ms", "s"));
        assert_eq!(short["flows"].as_array().unwrap().len(), if ms > 1_000 { 6 } else { 5 });
        same(&result, &whole(&Scenario::from_json(&short.to_string()).unwrap()));
    }
}

#[test]
fn changes_by_hand_are_those_of_a_scenario() {
    for qdisc in ["droptail", "codel", "pie", "fq_codel", "cake", "dualpi2"] {
        let plan =
            scenario(qdisc, "cubic", &[("changes", json!([{"at": "2s", "leave": ["late"]}]))]);
        let mut simulation = Simulation::changeable(plan);
        let by_hand = [
            (500_000, json!({"links": {"up": {"rate": "1mbit"}}})),
            (500_000, json!({"links": {"up": {"delay": "9ms"}, "lossy": {"rate": "0bit"}}})),
            (900_001, json!({"links": {"lossy": {"rate": "2mbit"}}, "leave": ["bulk"]})),
            (2_000_000, json!({"links": {"up": {"rate": "5mbit"}}, "leave": ["web", "voice"]})),
        ];
        for (us, change) in by_hand {
            to(&mut simulation, us);
            look(&mut simulation);
            simulation.change(&change).unwrap();
            look(&mut simulation);
        }
        to(&mut simulation, 3_000_000);
        let result = simulation.result().unwrap();
        let recorded = Scenario::from_json(&result.summary["scenario"].to_string()).unwrap();
        assert_eq!(recorded.changes().len(), 5);
        assert_eq!(bytes(&result), whole(&recorded), "{qdisc}");
    }
}

#[test]
fn what_a_scenario_refuses_is_refused_while_it_runs() {
    let mut simulation = Simulation::changeable(scenario("red", "newreno", &[]));
    to(&mut simulation, 500_000);
    let before = bytes(&{
        let mut copy = simulation.clone();
        to(&mut copy, 3_000_000);
        copy.result().unwrap()
    });
    for (change, message) in [
        (json!({}), "changes nothing"),
        (
            json!({"links": {"pu": {"rate": "1mbit"}}}),
            "links.pu: unknown link \"pu\", did you mean \"up\"",
        ),
        (json!({"links": {"up": {"rate": "1mbps"}}}), "links.up.rate: \"1mbps\" is ambiguous"),
        (json!({"links": {"back": {"rate": "1mbit"}}}), "links.back.rate: is set by the trace"),
        (json!({"leave": ["blk"]}), "leave.0: unknown flow \"blk\", did you mean \"bulk\""),
        (json!({"leave": ["late"]}), "leave.0: \"late\" joins at 1s only"),
        (json!({"leave": ["bulk"]}), "leave.0: \"bulk\" leaves at 2s by the scenario"),
        (json!({"leave": ["web", "web"]}), "leave.1: \"web\" has already left"),
        (json!({"at": "1s", "leave": ["web"]}), "at: is the current time"),
        (json!({"join": ["late"]}), "join: "),
        (json!({"rate": "1mbit"}), "rate: unknown key"),
    ] {
        let error = simulation.change(&change).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error} for {change}");
    }
    let time = |us: u64| Time::ZERO + Span::us(us);
    let mut went = |us| simulation.run_until(time(us), &mut |_| true).unwrap_err().to_string();
    assert!(went(400_000).starts_with("400ms is before the current time, 500ms"));
    assert!(went(3_000_001).starts_with("3000001us is after the end at 3s"));
    assert!(simulation.link("dwn").unwrap_err().to_string().starts_with("unknown link \"dwn\""));
    let unknown = simulation.flow("blk").unwrap_err().to_string();
    assert!(unknown.starts_with("unknown flow \"blk\", did you mean \"bulk\"?"), "{unknown}");
    to(&mut simulation, 3_000_000);
    assert_eq!(bytes(&simulation.result().unwrap()), before);
    let error = simulation.change(&json!({"leave": ["web"]})).unwrap_err().to_string();
    assert!(error.starts_with("the run ended at 3s"), "{error}");
    let mut fixed = Simulation::new(scenario("red", "newreno", &[]));
    let error = fixed.change(&json!({"links": {"up": {"rate": "1mbit"}}})).unwrap_err().to_string();
    assert!(error.starts_with("links.up: has a fixed rate and delay"), "{error}");
    fixed.change(&json!({"links": {"lossy": {"rate": "2mbit"}}})).unwrap();
}

#[test]
fn state_is_that_just_before_now() {
    let json = json!({"duration": "2s", "links": {"up": {"rate": "8mbit", "delay": "10ms"}},
        "flows": [{"name": "voice", "path": ["up"],
                   "source": {"name": "cbr", "rate": "4mbit", "packet": "1000B"}}]});
    let mut simulation = Simulation::new(Scenario::from_json(&json.to_string()).unwrap());
    let first = (0..2000).find(|us| {
        to(&mut simulation, *us);
        simulation.link("up").unwrap().departed_packets > 0
    });
    let first = first.expect("a packet every 2 ms");
    // 1 ms of transmission and 10 ms of delay: the first packet arrives after 11 ms.
    for (us, started, arrived) in [(1_999, 1, 0), (2_000, 2, 0), (11_000, 6, 1), (12_999, 7, 1)] {
        to(&mut simulation, first + us);
        let link = simulation.link("up").unwrap();
        assert_eq!((link.departed_packets, link.queue_packets), (started, 0), "{us} us");
        let flow = simulation.flow("voice").unwrap();
        assert_eq!((flow.received_bytes, flow.sent_packets), (arrived * 1000, started));
    }
    to(&mut simulation, 2_000_000);
    assert_eq!(simulation.link("up").unwrap().utilisation.map(|u| (u * 100.0).round()), Some(50.0));
}

#[test]
fn thousand_forks_and_ten_thousand_steps() {
    let json = json!({"duration": "20s", "links": {"up": {"rate": "1mbit", "qdisc": "fq_codel(flows=16)"}},
        "flows": [{"name": "bulk", "count": 2, "path": ["up"], "rtt": "50ms"}]});
    let scenario = Scenario::from_json(&json.to_string()).unwrap();
    let expected = whole(&scenario);
    let mut simulation = Simulation::changeable(scenario);
    for step in 1..=10_000u64 {
        to(&mut simulation, step * 2_000);
        if step % 10 == 0 {
            let mut copy = simulation.clone();
            if step < 10_000 {
                copy.change(&json!({"links": {"up": {"rate": "500kbit"}}})).unwrap();
                to(&mut copy, step * 2_000 + 1_000);
            }
        }
    }
    assert_eq!(bytes(&simulation.result().unwrap()), expected);
}
