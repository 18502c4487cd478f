//! A simulation in steps gives the same bytes as one in one go, whatever is looked at, copied,
//! saved and loaded, or changed in between.

mod common;

use common::{bytes, hex};
use serde_json::{Value as Json, json};
use sojourn_aqm::registry::REGISTRY;
use sojourn_aqm::units::{Span, Time};
use sojourn_sim::tcp::TCPS;
use sojourn_sim::{Column, Outcome, Scenario, Simulation, run};

/// Asserts that two results are equal, and shows the first difference.
fn same(one: &str, other: &str) {
    let at = one.bytes().zip(other.bytes()).position(|(a, b)| a != b);
    let at = at.unwrap_or(one.len().min(other.len()));
    let near = |text: &str| text[at.saturating_sub(200)..(at + 100).min(text.len())].to_string();
    assert!(one == other, "{}\n--\n{}", near(one), near(other));
}

fn whole(scenario: &Scenario) -> String {
    bytes(&run(scenario))
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

/// The simulation after it was saved and loaded.
fn reloaded(simulation: &Simulation) -> Simulation {
    let saved = simulation.save().unwrap();
    assert!(simulation.save().unwrap() == saved, "saving changes nothing");
    let loaded = Simulation::load(&saved).unwrap();
    assert!(loaded.save().unwrap() == saved, "a snapshot is complete");
    loaded
}

/// Runs `scenario` in steps of `step_us`, looks at everything after each, and continues in a copy
/// after half of them, and in a loaded snapshot after a third and two thirds.
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
        } else if (at / step_us).is_multiple_of(end_us / step_us / 3) {
            simulation = reloaded(&simulation);
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
fn video_and_calls_give_the_same_bytes_in_steps() {
    let flows = json!([
        {"name": "film", "count": 2, "path": ["up"], "rtt": "20ms", "tcp": "cubic",
         "source": {"name": "video", "segment": "200ms", "buffer": "800ms",
             "reservoir": "200ms", "cushion": "400ms", "resume": "200ms"}},
        {"name": "late", "path": ["up"], "return_path": ["back"],
         "source": {"name": "call", "initial": "500kbit", "feedback": "100ms"}},
        {"name": "bulk", "path": ["lossy"], "rtt": "30ms", "source": "call"},
    ]);
    for entry in REGISTRY {
        let scenario = scenario(entry.name, "newreno", &[("flows", flows.clone())]);
        let expected = whole(&scenario);
        if entry.name == "droptail" {
            assert!(!expected.contains("\"video_segments\":0"));
            assert!(!expected.contains("\"frames\":0") && expected.contains("lost_frames"));
        }
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
            simulation = reloaded(&simulation);
            simulation.change(&change).unwrap();
            simulation = reloaded(&simulation);
            look(&mut simulation);
        }
        to(&mut simulation, 3_000_000);
        let result = simulation.result().unwrap();
        let recorded = Scenario::from_json(&result.summary["scenario"].to_string()).unwrap();
        assert_eq!(recorded.changes().len(), 5);
        assert_eq!(bytes(&result), whole(&recorded), "{qdisc}");
    }
}

/// Disciplines whose parameters can change while they run, with a change of each.
fn changeable() -> Vec<(&'static str, Json)> {
    vec![
        ("droptail", json!({"limit": "9p"})),
        ("red", json!({"max_p": 0.4, "min_th": "7p", "ecn": true})),
        ("codel", json!({"target": "20ms", "interval": "200ms"})),
        ("pie", json!({"target": "60ms", "burst": "10ms", "alpha": 0.3})),
        ("pi", json!({"q_ref": "1p", "a": 0.01, "b": 0.009})),
        ("fq_codel", json!({"target": "30ms", "quantum": "300B", "limit": "50p"})),
        ("fq_pie", json!({"target": "30ms"})),
        ("fq_red", json!({"min_th": "1p", "max_th": "3p", "max_p": 0.5})),
    ]
}

#[test]
fn changed_parameters_are_those_of_a_scenario() {
    for (qdisc, new) in changeable() {
        let plan = scenario(qdisc, "cubic(profile=rfc)", &[]);
        let mut simulation = Simulation::changeable(plan.clone());
        to(&mut simulation, 1_000_000);
        look(&mut simulation);
        simulation.change(&json!({"links": {"up": {"qdisc": new, "rate": "1mbit"}}})).unwrap();
        simulation = reloaded(&simulation);
        to(&mut simulation, 3_000_000);
        let result = simulation.result().unwrap();
        let recorded = Scenario::from_json(&result.summary["scenario"].to_string()).unwrap();
        same(&bytes(&result), &whole(&recorded));
        // The same change of the rate alone gives another run: the parameters have an effect.
        let mut other = Simulation::changeable(plan);
        to(&mut other, 1_000_000);
        other.change(&json!({"links": {"up": {"rate": "1mbit"}}})).unwrap();
        to(&mut other, 3_000_000);
        let log = |outcome: &Outcome| {
            let of_link = |(name, _): &&(String, Column)| name == "packet_log/up/left_s";
            hex(&outcome.columns.iter().find(of_link).unwrap().1)
        };
        assert_ne!(log(&result), log(&other.result().unwrap()), "{qdisc}");
    }
}

#[test]
fn a_change_to_the_same_parameters_changes_nothing() {
    for (qdisc, new) in changeable() {
        let plan = scenario(qdisc, "cubic", &[]);
        let link = plan.links().iter().find(|link| link.name() == "up").unwrap();
        let names: Vec<&str> = new.as_object().unwrap().keys().map(String::as_str).collect();
        let now = |row: &&sojourn_aqm::params::ParamRow| {
            names.iter().any(|name| row.name == *name || row.aliases.contains(name))
        };
        let rows = link.params().iter().filter(now);
        let old: Json = rows
            .map(|row| (row.name, row.value.clone()))
            .collect::<Vec<_>>()
            .into_iter()
            .map(|(name, value)| (name.to_string(), Json::from(value)))
            .collect();
        let mut simulation = Simulation::changeable(plan.clone());
        for ms in [500, 1_300, 2_900] {
            to(&mut simulation, ms * 1000);
            simulation.change(&json!({"links": {"up": {"qdisc": old}}})).unwrap();
        }
        to(&mut simulation, 3_000_000);
        let columns = |text: String| text.split_once('\n').unwrap().1.to_string();
        same(&columns(bytes(&simulation.result().unwrap())), &columns(whole(&plan)));
    }
}

#[test]
fn parameters_that_cannot_change_are_refused() {
    let refused = |qdisc: &str, new: Json| {
        let mut simulation = Simulation::changeable(scenario(qdisc, "cubic", &[]));
        to(&mut simulation, 500_000);
        let by_hand = simulation.change(&json!({"links": {"up": {"qdisc": new}}})).unwrap_err();
        // A scenario refuses it, too, with the place of the change in its path.
        let mut json = scenario(qdisc, "cubic", &[]).canonical();
        let change = json!({"at": "500ms", "links": {"up": {"qdisc": new}}});
        json["changes"].as_array_mut().unwrap().push(change);
        let declared = Scenario::from_json(&json.to_string()).unwrap_err().to_string();
        assert_eq!(declared, format!("changes.2.{by_hand}"));
        by_hand.to_string()
    };
    for (qdisc, new, message) in [
        (
            "rem",
            json!({"ecn": true}),
            "links.up.qdisc: rem cannot change ecn while it runs: all its",
        ),
        ("pie", json!({"t_update": "30ms"}), "links.up.qdisc: pie cannot change t_update"),
        ("fq_codel", json!({"flows": 8}), "links.up.qdisc: fq_codel cannot change flows"),
        ("droptail", json!({"policy": "random"}), "links.up.qdisc: droptail cannot change policy"),
        ("codel", json!({"variant": "linux"}), "links.up.qdisc: codel cannot change variant"),
        ("codel", json!({"targte": "5ms"}), "links.up.qdisc.targte: unknown parameter \"targte\""),
        ("codel", json!({"target": "5"}), "links.up.qdisc.target: \"5\" has no unit"),
        ("codel", json!({"target": [1]}), "links.up.qdisc.target: "),
        ("codel", json!({}), "links.up.qdisc: changes nothing"),
        ("codel", json!("pie"), "links.up.qdisc: "),
        ("red", json!({"min_th": "900p"}), "links.up.qdisc."),
    ] {
        let error = refused(qdisc, new.clone());
        assert!(error.starts_with(message), "{error} for {qdisc} {new}");
    }
    let later = json!([{"at": "2s", "links": {"up": {"qdisc": {"target": "9ms"}}}}]);
    let mut simulation = Simulation::new(scenario("pie", "cubic", &[("changes", later)]));
    let new = json!({"links": {"up": {"qdisc": {"target": "5ms"}}}});
    let error = simulation.change(&new).unwrap_err().to_string();
    assert_eq!(error, "links.up.qdisc: the scenario changes its parameters at 2s");
    to(&mut simulation, 2_000_000);
    simulation.change(&new).unwrap();
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
    let json = json!({"duration": "20s",
        "links": {"up": {"rate": "1mbit", "qdisc": "fq_codel(flows=16)"}},
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
