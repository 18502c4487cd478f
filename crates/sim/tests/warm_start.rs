//! Warm starts: a run that continues a saved state gives the bytes of a run from the start of the
//! scenario that it has then; settings that cannot change are refused.

mod common;

use common::{bytes, parse};
use serde_json::{Value, json};
use sojourn_aqm::units::{Span, Time};
use sojourn_sim::{Column, Outcome, Scenario, Simulation, Threads, run, run_on_threads};
use std::collections::BTreeSet;
use std::num::NonZero;

const T: Span = Span::ms(1_200);

fn end(simulation: Simulation) -> Outcome {
    simulation.finish(&mut |_| true).expect("it is not stopped")
}

/// State of a run of `json` at `at`.
fn warm(json: &Value, at: Span) -> Vec<u8> {
    let mut simulation = Simulation::changeable(parse(json));
    simulation.run_until(Time::ZERO + at, &mut |_| true).unwrap();
    simulation.save().unwrap()
}

fn continued(state: &[u8], wanted: &Value) -> Simulation {
    let mut simulation = Simulation::load(state).unwrap();
    simulation.continue_as(&parse(wanted)).unwrap_or_else(|e| panic!("{e}: {wanted}"));
    simulation
}

/// `json` with a value at a path.
fn edited(json: &Value, path: &str, value: Value) -> Value {
    let mut json = json.clone();
    let (parent, key) = path.rsplit_once('/').unwrap();
    let parent = json.pointer_mut(parent).unwrap();
    match key.parse::<usize>() {
        Ok(i) => parent[i] = value,
        Err(_) => parent[key] = value,
    }
    json
}

fn refusal(state: &[u8], wanted: &Value) -> String {
    let mut simulation = Simulation::load(state).unwrap();
    let before = simulation.save().unwrap();
    let error = simulation.continue_as(&parse(wanted)).unwrap_err().to_string();
    assert!(simulation.save().unwrap() == before, "nothing has changed");
    error
}

/// Asserts that a warm start gives the bytes of a run from the start; returns them.
fn as_cold(state: &[u8], wanted: &Value) -> String {
    let simulation = continued(state, wanted);
    let scenario = simulation.scenario().clone();
    let text = scenario.canonical_text();
    let parsed = Scenario::from_json(&text).unwrap();
    assert_eq!(parsed.canonical_text(), text);
    let threads = Threads::Exactly(NonZero::new(2).unwrap());
    let several = run_on_threads(parsed.clone(), threads, &mut |_| true).unwrap();
    let cold = bytes(&run(parsed));
    assert!(bytes(&several) == cold, "threads: {text}");
    let warm = bytes(&end(simulation));
    assert!(warm == cold, "{text}");
    warm
}

/// Sessions, losses, a process and random disciplines: many streams, with changes before and after
/// the state.
fn busy() -> Value {
    let group = json!({"count": 3, "path": ["up"], "rtt": "uniform(20ms, 30ms)"});
    let with = |name: &str, keys: Value| {
        let mut group = group.clone();
        group["name"] = name.into();
        for (key, value) in keys.as_object().unwrap() {
            group[key] = value.clone();
        }
        group
    };
    json!({
        "name": "busy", "duration": "3s", "warmup": "500ms", "sample": "100ms",
        "packet_log": true, "seed": 3,
        "links": {
            "up": {"rate": "5mbit", "qdisc": "pie", "loss": 0.01},
            "back": {"rate": "1mbit", "qdisc": "codel", "jitter": "1ms"},
            "other": {"rate": "4mbit", "delay": "5ms", "qdisc": "red", "process": {"every": "70ms",
                "delay_min": "1ms", "delay_max": "9ms"}},
        },
        "flows": [
            with("bulk", json!({"tcp": "cubic"})),
            with("nv", json!({"tcp": "nv", "path": ["other"]})),
            with("web", json!({"return_path": ["back"], "source":
                {"name": "web", "think": "100ms", "request": true}})),
            with("users", json!({"source":
                {"name": "sessions", "interval": "exponential(50ms)"}})),
            with("poisson", json!({"source":
                {"name": "poisson", "load": "1mbit", "size": "web_search"}})),
            with("onoff", json!({"source": {"name": "onoff", "rate": "1mbit"}})),
            {"name": "later", "path": ["other"], "rtt": "30ms"},
        ],
        "changes": [
            {"at": "1s", "links": {"up": {"rate": "4mbit", "qdisc": {"target": "20ms"}}}},
            {"at": "2s", "join": ["later"], "links": {"back": {"rate": "2mbit"}}},
        ],
    })
}

#[test]
fn without_a_difference_it_is_the_uninterrupted_run() {
    let json = busy();
    let state = warm(&json, T);
    let simulation = continued(&state, &json);
    let mut whole = json.clone();
    whole["warmup"] = "1200ms".into();
    assert_eq!(simulation.scenario().canonical(), parse(&whole).canonical());
    assert!(bytes(&end(simulation)) == bytes(&run(parse(&whole))));
}

#[test]
fn every_change_gives_the_bytes_of_a_run_from_the_start() {
    let json = busy();
    let state = warm(&json, T);
    let edits: [&[(&str, Value)]; 8] = [
        &[("/links/other/rate", "2mbit".into())],
        &[("/links/other/qdisc", "red(min=5p, max=30p)".into())],
        &[("/links/up/qdisc", "pie(target=5ms)".into())],
        &[("/links/back/qdisc", "codel(target=1ms)".into()), ("/links/back/delay", "3ms".into())],
        &[("/links/back/jitter", "4ms".into()), ("/name", "other".into())],
        &[("/duration", "4s".into())],
        &[("/duration", "2500ms".into()), ("/warmup", "2s".into())],
        &[("/seed", 4.into()), ("/links/back/qdisc", "codel(target=20ms)".into())],
    ];
    let mut seen = BTreeSet::new();
    for edit in edits {
        let mut wanted = json.clone();
        for (path, value) in edit {
            wanted = edited(&wanted, path, value.clone());
        }
        assert!(seen.insert(as_cold(&state, &wanted)), "{edit:?} changes the result");
    }
}

#[test]
fn other_seeds_give_other_futures_of_the_same_past() {
    let json = busy();
    let state = warm(&json, T);
    let of = |seed: u64| {
        let mut wanted = json.clone();
        wanted["seed"] = seed.into();
        as_cold(&state, &wanted)
    };
    let runs: BTreeSet<String> = [3, 4, 5, 4].map(of).into();
    assert_eq!(runs.len(), 3);
    // Packets that arrived before the state are the same, and later ones differ.
    let scenario = |seed: u64| {
        let mut wanted = json.clone();
        (wanted["seed"], wanted["warm_from"]) = (seed.into(), json!({"at": "1200ms", "seed": 3}));
        wanted["warmup"] = "0s".into();
        run(parse(&wanted))
    };
    let [one, other] = [4, 5].map(scenario);
    let column = |outcome: &Outcome, name: &str| {
        let column = outcome.columns.iter().find(|(key, _)| key.as_str() == name);
        match &column.unwrap_or_else(|| panic!("no {name}")).1 {
            Column::F64(values) => values.clone(),
            Column::U64(values) => values.iter().map(|v| *v as f64).collect(),
            other => panic!("{other:?}"),
        }
    };
    let time = column(&one, "series/time_s");
    let queues = [&one, &other].map(|run| column(run, "links/up/queue_bytes"));
    let past = time.iter().filter(|t| **t <= 1.2).count();
    assert!(past > 10 && queues[0][..past] == queues[1][..past]);
    assert_ne!(queues[0][past..], queues[1][past..]);
}

#[test]
fn each_stream_gets_another_seed() {
    // One random component at a time: the result depends on the new seed through it.
    let base = json!({"duration": "4s", "seed": 1, "links": {"up": {"rate": "3mbit"},
        "back": {"rate": "1mbit"}}, "flows": [{"name": "f", "count": 4, "path": ["up"],
        "rtt": "20ms"}]});
    let edits = [
        ("/links/up/loss", json!(0.02)),
        ("/links/up/jitter", json!("3ms")),
        ("/links/up/qdisc", json!("pie")),
        ("/links/up/process", json!({"every": "100ms", "rate_min": "1mbit", "rate_max": "3mbit"})),
        ("/flows/0/source", json!({"name": "web", "think": "exponential(100ms)"})),
        ("/flows/0/source", json!({"name": "poisson", "load": "1mbit"})),
        ("/flows/0/source", json!({"name": "onoff", "rate": "1mbit"})),
        ("/flows/0/source", json!({"name": "sessions", "interval": "exponential(50ms)"})),
        ("/flows/0/source", json!({"name": "incast", "gap": "exponential(100ms)"})),
    ];
    let different = |json: &Value| {
        let state = warm(json, T);
        let of = |seed: u64| {
            let mut wanted = json.clone();
            wanted["seed"] = seed.into();
            let outcome = end(continued(&state, &wanted));
            let Value::Object(mut summary) = outcome.summary.to_string().parse().unwrap() else {
                panic!("a table")
            };
            summary.remove("scenario");
            Value::from(summary).to_string()
        };
        of(7) != of(8)
    };
    assert!(!different(&base), "nothing is random");
    for (path, value) in edits {
        let json = edited(&base, path, value);
        assert!(different(&json), "{path}: {json}");
    }
}

#[test]
fn a_state_that_was_changed_by_hand_gets_the_settings_of_the_scenario() {
    let json = busy();
    let mut simulation = Simulation::changeable(parse(&json));
    simulation.run_until(Time::ZERO + Span::ms(1_100), &mut |_| true).unwrap();
    let change = json!({"links": {"other": {"rate": "1mbit"}, "back": {"qdisc":
        {"target": "50ms"}, "jitter": "0s"}}, "leave": ["onoff"]});
    simulation.change(&change).unwrap();
    simulation.run_until(Time::ZERO + T, &mut |_| true).unwrap();
    let state = simulation.save().unwrap();
    as_cold(&state, &json);
    let continued = continued(&state, &json).scenario().canonical();
    let changes = continued["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 4);
    let last = &changes[3];
    assert_eq!(last["at"], "1200ms");
    assert_eq!(last["links"]["other"], json!({"rate": "4mbit"}));
    assert_eq!(last["links"]["back"]["qdisc"], json!({"target": "5ms"}));
    assert_eq!(last["links"]["back"]["jitter"]["size"], "1ms");
    assert_eq!(last["links"].get("up"), None, "the change at 1 s is over in both");
}

#[test]
fn what_cannot_change_is_refused_with_its_path() {
    let json = busy();
    let state = warm(&json, T);
    let late = json!([json["changes"][0].clone()]);
    let cases = [
        ("/flows/0/count", json!(8), "flows.bulk.count: is 8, and 3 in the warm state; a warm"),
        ("/flows/0/tcp", json!("reno"), "flows.bulk.tcp."),
        ("/flows/0/rtt", json!("9ms"), "flows.bulk.rtt: is \"9ms\", and \"uniform(20ms, 30ms)\""),
        ("/links/up/qdisc", json!("codel"), "links.up.qdisc.name: is \"codel\", and \"pie\" in"),
        ("/links/other/qdisc", json!("pi"), "links.other.qdisc.name: "),
        ("/links/up/burst", json!("9kB"), "links.up.burst: is \"9kB\", and is not set in the"),
        ("/links/up/jitter", json!("1ms"), "links.up: has no wire in this simulation"),
        ("/links/extra", json!({"rate": "1mbit"}), "links.extra: is not in the warm state; a"),
        ("/sample", json!("200ms"), "sample: is \"200ms\", and \"100ms\" in the warm state"),
        ("/packet_log", json!(false), "packet_log: is false, and true in the warm state"),
        ("/changes", late, "changes: are others than in the warm state after 1200ms"),
        ("/changes/0/leave", json!(["onoff"]), "changes: \"onoff\" has left by 1200ms, and not"),
        ("/warm_from", json!({"at": "1s", "seed": 9}), "warm_from: is not in the warm state"),
    ];
    for (path, value, message) in cases {
        let error = refusal(&state, &edited(&json, path, value));
        assert!(error.starts_with(message), "{error:?} for {message:?}");
    }
    let shorter = edited(&json, "/duration", json!("2100ms"));
    let error = refusal(&warm(&json, Span::ms(2_200)), &shorter);
    assert_eq!(error, "duration: 2100ms is not after the time of the warm state, 2200ms");
    let mut ended = Simulation::load(&state).unwrap();
    ended.run_until(ended.end(), &mut |_| true).unwrap();
    let error = ended.continue_as(&parse(&json)).unwrap_err().to_string();
    assert_eq!(error, "the run of the warm state ended at 3s");
    let mut past = json.clone();
    past["warm_from"] = json!({"at": "1s", "seed": 9});
    let error = refusal(&warm(&past, T), &past);
    assert!(error.starts_with("warm_from: is in the scenario of the warm state"), "{error}");
}

#[test]
fn a_state_is_taken_at_any_time() {
    let json = busy();
    let mut wanted = json.clone();
    (wanted["seed"], wanted["links"]["back"]["qdisc"]) = (9.into(), "codel(target=3ms)".into());
    for at in [Span::ZERO, Span::ms(500), Span::s(1), Span(1_234_567_891), Span::ms(2_999)] {
        as_cold(&warm(&json, at), &wanted);
    }
}
