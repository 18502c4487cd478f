//! Switches whose ports have a queue per class in the shared buffer: theory of the thresholds,
//! every discipline at a port, cases in which classes change nothing, and refused definitions. The
//! reference engine decides about the same packets in `reference_engine`.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "tests use small numbers"
)]

mod common;

use common::{num, run};
use serde_json::{Value, json};
use sojourn_aqm::registry::REGISTRY;
use sojourn_aqm::units::{Bytes, Rate, Span};
use sojourn_sim::config::{ClassBuilder, FlowBuilder, LinkBuilder, SwitchBuilder};
use sojourn_sim::traffic::{Cbr, Source};
use sojourn_sim::{Outcome, Scenario};

/// A switch with four ports of 8 Mbit/s, where a packet of 1000 bytes takes 1 ms. Packets of EF and
/// of class 0 arrive at the first `busy` ports, at 16 Mbit/s each.
fn overloaded(busy: usize, qdisc: &Value, switch: &Value) -> Value {
    let ports: Vec<String> = (0..4).map(|port| format!("s-h{port}")).collect();
    let link = json!({"rate": "8mbit", "qdisc": qdisc});
    let links: serde_json::Map<String, Value> =
        ports.iter().map(|port| (port.clone(), link.clone())).collect();
    let flow = |port: &String, dscp: &str| {
        json!({"name": format!("{dscp}-to-{port}"), "path": [port], "dscp": dscp,
            "source": {"name": "cbr", "rate": "16mbit", "packet": "1000B"}})
    };
    let flows: Vec<Value> =
        ports[..busy].iter().flat_map(|port| [flow(port, "CS0"), flow(port, "EF")]).collect();
    let mut switch = switch.clone();
    switch["ports"] = json!(ports);
    json!({"duration": "2s", "warmup": "1s", "links": links, "flows": flows,
        "switches": {"tor": switch}})
}

/// Strict priority of EF, with deep queues.
fn priority() -> Value {
    json!({"name": "prio", "flows": 2, "limit": "1000000p",
        "filters": [{"to": 0, "dscp": "EF"}, {"to": 1}]})
}

fn class<'a>(outcome: &'a Outcome, name: &str) -> &'a Value {
    &outcome.summary["switches"]["tor"]["classes"][name]
}

#[test]
fn saturated_classes_share_the_buffer_by_their_alphas() {
    // With strict priority the low class would keep what it had when EF came.
    let disciplines = [
        json!({"name": "droptail", "limit": "1000000p"}),
        json!({"name": "drr", "by": "class", "flows": 64, "limit": "1000000p"}),
    ];
    for (busy, [low, high]) in [(1, [1.0, 8.0]), (4, [0.5, 4.0]), (2, [1.0, 1.0]), (3, [0.25, 0.5])]
    {
        for qdisc in &disciplines {
            let switch = json!({"buffer": "400kB", "alpha": low,
                "classes": {"EF": {"alpha": high}}});
            let outcome = run(&overloaded(busy, qdisc, &switch));
            let sum = busy as f64 * (low + high);
            let mut held = 0.0;
            for (name, alpha) in [("46", high), ("others", low)] {
                let expected = alpha * 400_000.0 / (1.0 + sum);
                let peak = num(class(&outcome, name), "queue_max_bytes");
                // A packet of each port more or less moves the threshold.
                let within = 2000.0 + 1000.0 * alpha * busy as f64;
                let what = format!("{busy} ports, {low} and {high}, {qdisc}, {name}");
                assert!((peak - expected).abs() <= within, "{what}: {peak}, {expected}");
                held += expected;
            }
            for port in 0..4 {
                let most = num(&outcome.summary["links"][format!("s-h{port}")], "queue_max_bytes");
                let expected = if port < busy { held } else { 0.0 };
                let within = 4000.0 + 1000.0 * sum;
                assert!((most - expected).abs() <= within, "{most}, {expected}");
            }
        }
    }
}

#[test]
fn drops_of_the_classes_add_up_to_those_of_the_ports() {
    let switch = json!({"buffer": "100kB", "classes": {"EF": {"alpha": 8}}});
    let outcome = run(&overloaded(3, &priority(), &switch));
    let ports = outcome.summary["links"].as_object().unwrap().values();
    let of_ports: f64 = ports.map(|port| num(port, "dropped_buffer_packets")).sum();
    let [high, low] =
        ["46", "others"].map(|name| num(class(&outcome, name), "dropped_buffer_packets"));
    assert_eq!(high + low, of_ports);
    // EF has the whole link and loses half of its packets; the others lose all once they are full.
    assert!((high - 3000.0).abs() < 20.0 && (low - 6000.0).abs() < 20.0, "{high}, {low}");
}

#[test]
fn an_incast_of_a_low_class_does_not_push_out_a_high_class() {
    // Three ports are full of packets of class 0. Then a burst of EF arrives at the fourth.
    let burst = |switch: &Value| {
        let mut scenario = overloaded(3, &priority(), switch);
        let flows = scenario["flows"].as_array_mut().unwrap();
        flows.retain(|flow| flow["dscp"] == "CS0");
        flows.push(json!({"name": "burst", "path": ["s-h3"], "dscp": "EF",
            "source": {"name": "trace", "time_s": vec![1.5; 60], "size_bytes": vec![1000; 60]}}));
        let outcome = run(&scenario);
        num(&outcome.summary["links"]["s-h3"], "dropped_buffer_packets")
    };
    // One threshold: 1/13 of the buffer is free, 7.7 kB, of which the burst gets 4/5.
    let one = burst(&json!({"buffer": "100kB", "alpha": 4}));
    assert!((one - 53.0).abs() <= 2.0, "{one}");
    // Class 0 leaves 2/5 of the buffer free, of which EF gets 8/9.
    let classes = json!({"buffer": "100kB", "alpha": 0.5, "classes": {"EF": {"alpha": 8}}});
    let two = burst(&classes);
    assert!((two - (59.0 - 35.6)).abs() <= 2.0, "{two}");
    // A reserve is kept for EF whatever the others hold.
    let reserve = json!({"buffer": "340kB", "alpha": 4, "classes": {"EF": {"reserve": "60kB"}}});
    assert_eq!(burst(&reserve), 0.0);
}

#[test]
fn every_discipline_works_at_a_port_with_classes() {
    for entry in REGISTRY {
        let switch = json!({"buffer": "30kB", "reserve": "1500B", "classes": {"EF": {"alpha": 4},
            "8": {}}});
        let outcome = run(&overloaded(3, &json!({"name": entry.name}), &switch));
        let row = &outcome.summary["switches"]["tor"];
        let most = num(row, "buffer_max_bytes");
        assert!(most <= 30_000.0, "{}: {row}", entry.name);
        for port in 0..3 {
            let link = &outcome.summary["links"][format!("s-h{port}")];
            assert!(num(link, "queue_max_bytes") <= most, "{}: {link}", entry.name);
            let reasons = ["full", "early", "late", "buffer"];
            let sum = |reason| num(link, &format!("dropped_{reason}_packets"));
            assert_eq!(reasons.map(sum).iter().sum::<f64>(), num(link, "dropped_packets"));
        }
        assert_eq!(num(&row["classes"]["8"], "queue_max_bytes"), 0.0);
    }
}

#[test]
fn classes_without_packets_change_nothing_but_the_reserve() {
    let of = |switch: Value| {
        let mut summary = (*run(&overloaded(3, &priority(), &switch)).summary).clone();
        let row = summary["switches"]["tor"].as_object_mut().unwrap();
        row.remove("classes");
        format!("{}{}{}", summary["links"], summary["flows"], summary["switches"])
    };
    let plain = of(json!({"buffer": "100kB"}));
    assert_eq!(plain, of(json!({"buffer": "100kB", "classes": {}})));
    assert_eq!(plain, of(json!({"buffer": "100kB", "classes": {"1-40": {"alpha": 8}}})));
    // All packets are of one class, which has the threshold of the switch.
    assert_eq!(
        plain,
        of(json!({"buffer": "100kB", "alpha": 3, "classes": {"0-50": {"alpha": 1}}}))
    );
    let reserved = of(json!({"buffer": "120kB", "classes": {"1-40": {"reserve": "5kB"}}}));
    assert_eq!(plain, reserved, "four times 5 kB are kept for a class without packets");
}

#[test]
fn typed_classes_are_those_of_text() {
    let voice = Source::Cbr(Cbr { rate: Rate(96_000), ..Cbr::default() });
    let ef = ClassBuilder::new().alpha(8.0).reserve(Bytes(20));
    let typed = Scenario::builder(Span::s(1))
        .link("a", LinkBuilder::new(Rate(1_000_000), Span::ZERO))
        .switch(
            "tor",
            SwitchBuilder::new(Bytes(9_000), ["a"])
                .class("EF", ef)
                .class("8-15", ClassBuilder::new()),
        )
        .flow("voice", FlowBuilder::new(["a"]).source(voice))
        .build()
        .unwrap();
    let [low, high] = typed.switches()[0].classes() else { panic!("there are two") };
    assert_eq!((low.range(), low.alpha(), low.reserve()), (8..=15, None, None));
    assert_eq!((high.range(), high.alpha(), high.reserve()), (46..=46, Some(8.0), Some(Bytes(20))));
    assert_eq!(typed.switches()[0].groups().count(), 3);
    let canonical = typed.canonical();
    let expected = json!({"8-15": {}, "46": {"alpha": 8.0, "reserve": "20B"}});
    assert_eq!(canonical["switches"]["tor"]["classes"], expected);
    let again = Scenario::from_json(&canonical.to_string()).unwrap();
    assert_eq!(again.canonical_text(), typed.canonical_text());
}

#[test]
fn refused_classes_have_the_path_of_the_value() {
    let refused = |classes: Value| {
        let switch = json!({"buffer": "4MB", "classes": classes});
        let scenario = overloaded(1, &priority(), &switch);
        Scenario::from_json(&scenario.to_string()).unwrap_err().to_string()
    };
    for (classes, start) in [
        (json!([8, 1]), ": [8,1] is not a table"),
        (json!(8), ": 8 is not a table"),
        (json!({"EF": 8}), ".EF: 8 is not a table"),
        (json!({"EF": {"alfa": 8}}), ".EF.alfa: unknown key \"alfa\""),
        (json!({"EF": {"alpha": 0}}), ".EF.alpha: 0 is out of range, allowed: 0.0001 to 10000"),
        (json!({"EF": {"alpha": "8x"}}), ".EF.alpha: "),
        (json!({"EF": {"reserve": 8}}), ".EF.reserve: "),
        (json!({"voice": {}}), ".voice: unknown DSCP \"voice\""),
        (json!({"65536": {}}), ".65536: 65536 is out of range, allowed: 0 to 65535"),
        (json!({"1-x": {}}), ".1-x: "),
        (json!({"": {}}), ": \"\" is not a whole number"),
        (json!({"9-8": {}}), ".9-8: 9 to 8 has no class"),
        (json!({"46": {}, "EF": {}}), ".EF: class 46 is in two groups"),
        (json!({"40-50": {}, "EF": {}}), ".EF: class 46 is in two groups"),
    ] {
        let text = refused(classes);
        let start = format!("switches.tor.classes{start}");
        assert!(text.starts_with(&start), "{text}\nexpected: {start}");
    }
    let many: serde_json::Map<String, Value> =
        (0..65).map(|class| (class.to_string(), json!({}))).collect();
    let text = refused(many.into());
    assert_eq!(text, "switches.tor.classes.64: 65 groups, allowed: up to 64");
    let text = refused(json!({"EF": {"reserve": "2MB"}}));
    assert_eq!(text, "switches.tor.reserve: 8MB in all exceed the buffer of 4MB");
}
