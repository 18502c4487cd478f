//! Switches with shared buffers: theory of the dynamic threshold, every discipline at a port, cases
//! in which a shared buffer changes nothing or acts like another one, and refused definitions. The
//! reference engine decides about the same packets in `reference_engine`.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "tests use small numbers"
)]

mod common;
#[path = "reference_engine/topologies.rs"]
mod topologies;

use common::{num, run};
use serde_json::{Value, json};
use sojourn_aqm::registry::REGISTRY;
use sojourn_aqm::units::{Bytes, Rate, Span, Time};
use sojourn_sim::config::{FlowBuilder, LinkBuilder, SwitchBuilder};
use sojourn_sim::traffic::{Cbr, Source};
use sojourn_sim::{Column, Outcome, Scenario, Simulation};

/// A switch with four ports of 8 Mbit/s: a packet of 1000 bytes takes 1 ms. Packets arrive at the
/// first `busy` ports at twice that rate. `switch` has the keys of the switch besides its ports.
fn overloaded(busy: usize, qdisc: &Value, mut switch: Value) -> Value {
    let ports: Vec<String> = (0..4).map(|port| format!("s-h{port}")).collect();
    let link = json!({"rate": "8mbit", "qdisc": qdisc});
    let links: serde_json::Map<String, Value> =
        ports.iter().map(|port| (port.clone(), link.clone())).collect();
    let flow = |port: &String| {
        json!({"name": format!("to-{port}"), "path": [port],
            "source": {"name": "cbr", "rate": "16mbit", "packet": "1000B"}})
    };
    let flows: Vec<Value> = ports[..busy].iter().map(flow).collect();
    switch["ports"] = json!(ports);
    json!({"duration": "2s", "warmup": "1s", "sample": "10ms", "links": links, "flows": flows,
        "switches": {"tor": switch}})
}

fn deep() -> Value {
    json!({"name": "droptail", "limit": "1000000p"})
}

fn column<'a>(outcome: &'a Outcome, name: &str) -> &'a Column {
    &outcome.columns.iter().find(|(n, _)| n == name).unwrap_or_else(|| panic!("no {name}")).1
}

#[test]
fn overloaded_ports_share_the_buffer_as_the_paper_says() {
    for (busy, alpha, reserve) in
        [(1, 1.0, 0), (3, 1.0, 0), (4, 0.125, 0), (2, 0.5, 10_000), (4, 2.0, 5_000), (1, 0.21, 0)]
    {
        let switch = json!({"buffer": "400kB", "alpha": alpha, "reserve": format!("{reserve}B")});
        let outcome = run(&overloaded(busy, &deep(), switch));
        let pool = f64::from(400_000 - 4 * reserve);
        let share = f64::from(reserve) + alpha * pool / (1.0 + alpha * busy as f64);
        for port in 0..4 {
            let Column::U64(bytes) = column(&outcome, &format!("links/s-h{port}/queue_bytes"))
            else {
                panic!("lengths are counts")
            };
            let expected = if port < busy { share } else { 0.0 };
            // One packet of each port more or less, and its effect on the threshold of the others.
            let within = 1000.0 * (1.0 + alpha * busy as f64);
            let last = bytes[100..].iter().map(|bytes| *bytes as f64);
            for held in last {
                let what = format!("{busy} ports, alpha {alpha}, reserve {reserve}, port {port}");
                assert!((held - expected).abs() <= within, "{what}: {held}, {expected}");
            }
            let link = &outcome.summary["links"][format!("s-h{port}")];
            let (most, lost) = (num(link, "queue_max_bytes"), num(link, "dropped_buffer_packets"));
            assert!((most - expected).abs() <= within, "{most}, {expected}");
            assert_eq!(num(link, "dropped_packets"), lost);
            assert!(if port < busy { (lost - 1000.0).abs() < 3.0 } else { lost == 0.0 }, "{lost}");
        }
        let most = num(&outcome.summary["switches"]["tor"], "buffer_max_bytes");
        assert!((most - share * busy as f64).abs() <= 4000.0 && most <= 400_000.0, "{most}");
    }
}

#[test]
fn a_burst_is_absorbed_by_what_the_threshold_leaves_free() {
    // One port is overloaded, with alpha 1: half of the buffer is free. 120 packets arrive together
    // at another port, which takes up to half of that.
    let mut scenario = overloaded(1, &deep(), json!({"buffer": "400kB"}));
    let times = vec![1.5; 120];
    scenario["flows"].as_array_mut().unwrap().push(json!({"name": "burst", "path": ["s-h1"],
        "source": {"name": "trace", "time_s": times, "size_bytes": vec![1000; 120]}}));
    let outcome = run(&scenario);
    let burst = &outcome.summary["links"]["s-h1"];
    let taken = num(burst, "queue_max_bytes");
    assert!((taken - 100_000.0).abs() <= 1000.0, "{taken}");
    // One of them was in transmission at once.
    assert_eq!(num(burst, "dropped_buffer_packets"), 120.0 - 1.0 - taken / 1000.0);
    let Column::U64(lost) = column(&outcome, "links/s-h1/dropped_buffer_packets") else {
        panic!("counts are whole numbers")
    };
    assert_eq!(lost.iter().sum::<u64>() as f64, num(burst, "dropped_buffer_packets"));
    let Column::U64(all) = column(&outcome, "links/s-h1/dropped_packets") else {
        panic!("counts are whole numbers")
    };
    assert_eq!(lost, all);
}

#[test]
fn every_discipline_works_at_a_port() {
    for entry in REGISTRY {
        let qdisc = json!({"name": entry.name});
        let switch = json!({"buffer": "20kB", "reserve": "1500B"});
        let outcome = run(&overloaded(3, &qdisc, switch));
        let switch = &outcome.summary["switches"]["tor"];
        assert!(num(switch, "buffer_max_bytes") <= 20_000.0, "{}: {switch}", entry.name);
        for port in 0..3 {
            let link = &outcome.summary["links"][format!("s-h{port}")];
            // (20 - 4 * 1.5) kB / 4 and the reserve, which few disciplines do not reach.
            let most = num(link, "queue_max_bytes");
            assert!(most <= 20_000.0 - 3.0 * 1500.0, "{}: {most}", entry.name);
            let reasons = ["full", "early", "late", "buffer"];
            let sum = |reason| num(link, &format!("dropped_{reason}_packets"));
            assert_eq!(reasons.map(sum).iter().sum::<f64>(), num(link, "dropped_packets"));
            assert!(num(link, "dropped_packets") > 500.0, "{}: {link}", entry.name);
        }
    }
}

/// All columns and summaries of links, without the fields that only ports have.
fn seen(outcome: &Outcome) -> String {
    let mut links = outcome.summary["links"].clone();
    for link in links.as_object_mut().unwrap().values_mut() {
        for key in ["dropped_buffer_packets", "queue_max_bytes"] {
            link.as_object_mut().unwrap().remove(key);
        }
    }
    let columns: Vec<_> = outcome
        .columns
        .iter()
        .filter(|(name, _)| !name.ends_with("dropped_buffer_packets"))
        .collect();
    format!("{links}{:?}{columns:?}", outcome.summary["flows"])
}

#[test]
fn a_buffer_that_is_never_full_changes_nothing() {
    for seed in 0..12 {
        let mut scenario = topologies::switched(seed);
        scenario["sample"] = json!("100ms");
        for switch in scenario["switches"].as_object_mut().unwrap().values_mut() {
            (switch["buffer"], switch["alpha"]) = (json!("1GB"), json!(100));
        }
        let shared = run(&scenario);
        scenario.as_object_mut().unwrap().remove("switches");
        assert!(seen(&shared) == seen(&run(&scenario)), "seed {seed}");
    }
}

#[test]
fn a_switch_of_one_port_without_threshold_is_a_drop_tail_queue() {
    let mut scenario = overloaded(1, &deep(), json!({"buffer": "55500B", "alpha": 10_000}));
    scenario["switches"]["tor"]["ports"] = json!(["s-h0"]);
    let shared = run(&scenario).summary["links"]["s-h0"].clone();
    scenario.as_object_mut().unwrap().remove("switches");
    scenario["links"]["s-h0"]["qdisc"] = json!("droptail(limit=55500B)");
    let own = run(&scenario).summary["links"]["s-h0"].clone();
    assert_eq!(shared["dropped_buffer_packets"], own["dropped_full_packets"]);
    for key in ["departed_packets", "sojourn_mean_s", "queue_mean_bytes", "consecutive_loss"] {
        assert_eq!(shared[key], own[key], "{key}");
    }
    assert!(num(&own, "dropped_full_packets") > 500.0);
}

#[test]
fn a_saved_simulation_continues_with_its_buffers() {
    let switched = [0, 1, 4].map(topologies::switched);
    for scenario in switched.into_iter().chain([0, 1, 2, 3].map(topologies::classed)) {
        let scenario = Scenario::from_json(&scenario.to_string()).unwrap();
        let whole = sojourn_sim::run(&scenario);
        let mut simulation = Simulation::changeable(scenario);
        for ms in [500, 1000, 2200, 3700] {
            simulation.run_until(Time::ZERO + Span::ms(ms), &mut |_| true).unwrap();
            simulation.link(simulation.scenario().links()[0].name().to_string().as_str()).unwrap();
            simulation = Simulation::load(&simulation.save().unwrap()).unwrap();
        }
        simulation.run_until(simulation.end(), &mut |_| true).unwrap();
        let result = simulation.result().unwrap();
        let seed = &whole.summary["scenario"]["seed"];
        assert_eq!(whole.summary.to_string(), result.summary.to_string(), "seed {seed}");
        assert_eq!(format!("{:?}", whole.columns), format!("{:?}", result.columns));
    }
}

#[test]
fn typed_switches_are_those_of_text() {
    let voice = Source::Cbr(Cbr { rate: Rate(96_000), ..Cbr::default() });
    let typed = Scenario::builder(Span::s(1))
        .link("a", LinkBuilder::new(Rate(1_000_000), Span::ZERO))
        .link("b", LinkBuilder::new(Rate(1_000_000), Span::ZERO))
        .switch("tor", SwitchBuilder::new(Bytes(9_000), ["b", "a"]).alpha(0.5).reserve(Bytes(10)))
        .flow("voice", FlowBuilder::new(["a"]).source(voice))
        .build()
        .unwrap();
    let [switch] = typed.switches() else { panic!("there is one") };
    assert_eq!((switch.name(), switch.ports()), ("tor", [0, 1].as_slice()));
    assert_eq!((switch.buffer(), switch.alpha(), switch.reserve()), (Bytes(9000), 0.5, Bytes(10)));
    let canonical = typed.canonical();
    let expected =
        json!({"tor": {"buffer": "9kB", "alpha": 0.5, "reserve": "10B", "ports": ["a", "b"]}});
    assert_eq!(canonical["switches"], expected);
    let again = Scenario::from_json(&canonical.to_string()).unwrap();
    assert_eq!(again.canonical_text(), typed.canonical_text());
    let twice = Scenario::builder(Span::s(1))
        .switch("x", SwitchBuilder::new(Bytes(1), []))
        .switch("x", SwitchBuilder::new(Bytes(1), []));
    assert_eq!(twice.build().unwrap_err().to_string(), "switches: \"x\" names two switches");
}

#[test]
fn refused_switches_have_the_path_of_the_value() {
    let refused = |switches: Value| {
        let mut scenario = overloaded(1, &deep(), json!({}));
        scenario["switches"] = switches;
        Scenario::from_json(&scenario.to_string()).unwrap_err().to_string()
    };
    let tor = |key: &str, value: Value| {
        let mut tor = json!({"buffer": "4MB", "ports": ["s-h0", "s-h1"]});
        tor[key] = value;
        refused(json!({ "tor": tor }))
    };
    for (text, start) in [
        (tor("ports", json!(["s-h0", "s-h9"])), "switches.tor.ports.1: unknown link \"s-h9\""),
        (tor("ports", json!([])), "switches.tor.ports: names no link"),
        (tor("ports", json!(["s-h0", "s-h0"])), "switches.tor.ports: names the link s-h0 twice"),
        (tor("ports", json!("s-h0")), "switches.tor.ports: "),
        (tor("links", json!(["s-h0"])), "switches.tor.links: unknown key \"links\""),
        (tor("alpha", json!(0)), "switches.tor.alpha: 0 is out of range, allowed: 0.0001 to 10000"),
        (tor("alpha", json!("one")), "switches.tor.alpha: "),
        (tor("buffer", json!(4_000_000)), "switches.tor.buffer: "),
        (tor("buffer", json!("0B")), "switches.tor.buffer: "),
        (tor("buffer", json!("100p")), "switches.tor.buffer: "),
        (tor("reserve", json!("2001kB")), "switches.tor.reserve: 4002kB in all exceed the buffer"),
        (refused(json!({"a b": {"buffer": "1MB", "ports": ["s-h0"]}})), "switches.a b: "),
        (refused(json!([])), "switches: "),
        (refused(json!({"tor": {"ports": ["s-h0"]}})), "switches.tor.buffer: is missing"),
        (refused(json!({"tor": {"buffer": "1MB"}})), "switches.tor.ports: is missing"),
        (
            refused(json!({"one": {"buffer": "1MB", "ports": ["s-h0"]},
                "two": {"buffer": "1MB", "ports": ["s-h1", "s-h0"]}})),
            "switches.two.ports: s-h0 is a port of the switch one already",
        ),
    ] {
        assert!(text.starts_with(start), "{text}\nexpected: {start}");
    }
}
