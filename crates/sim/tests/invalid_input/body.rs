//! Scenarios from arbitrary bytes: rejected with a one-line error, or the canonical form
//! round-trips and the scenario runs. Used by the fuzz target and by the test suite.

use serde_json::{Map, Value, json};
use sojourn_aqm::{Size, Span};
use sojourn_sim::Scenario;

/// Interprets `bytes` as JSON text or, after a first byte below 32, as changes to a valid scenario.
pub fn check_bytes(bytes: &[u8]) {
    match bytes.split_first() {
        Some((0..32, rest)) => check_text(&changed_scenario(&mut Choices(rest)).to_string()),
        _ => check_text(&String::from_utf8_lossy(bytes)),
    }
}

fn check_text(text: &str) {
    if let Some(scenario) = read_back(text) {
        run(scenario.canonical());
    }
}

/// Parses a scenario and checks that its canonical form round-trips. `None` if it is rejected; the
/// error must be one line.
pub fn read_back(text: &str) -> Option<Scenario> {
    match Scenario::from_json(text) {
        Err(e) => {
            let message = e.to_string();
            assert!(
                !message.is_empty() && !message.contains(char::is_control),
                "not one line: {message:?}"
            );
            None
        }
        Ok(scenario) => {
            let canonical = scenario.canonical();
            let again = Scenario::from_json(&canonical.to_string());
            let again = again.unwrap_or_else(|e| panic!("{e} in the canonical form {canonical}"));
            assert_eq!(again.canonical(), canonical, "the canonical form round-trips");
            Some(scenario)
        }
    }
}

/// Runs a short and small version of a scenario for at most about 200,000 events.
fn run(mut canonical: Value) {
    let long =
        |text: &Value| text.as_str().is_none_or(|t| !t.ends_with("us") && !t.ends_with("ns"));
    if long(&canonical["duration"]) {
        canonical["duration"] = json!("200ms");
        canonical["warmup"] = json!("10ms");
    }
    if canonical.get("sample").is_some_and(|s| !long(s)) || long(&canonical["duration"]) {
        canonical.as_object_mut().expect("a table").remove("sample");
    } else if canonical.get("sample").is_some() {
        canonical["sample"] = json!("50ms");
    }
    for flow in canonical["flows"].as_array_mut().expect("a list") {
        let count = flow["count"].as_u64().expect("a whole number");
        flow["count"] = count.min(3).into();
    }
    if let Ok(scenario) = Scenario::from_json(&canonical.to_string()) {
        run_for(&scenario, 3);
    }
}

/// Runs a scenario until it ends or has reported progress `most` times (every 65,536 events).
pub fn run_for(scenario: &Scenario, most: u32) {
    let mut calls = 0;
    let outcome = sojourn_sim::run_with_progress(scenario, &mut |so_far| {
        let share = so_far.share;
        assert!((0.0..=1.0).contains(&share), "{share} of the time");
        calls += 1;
        calls < most
    });
    if let Some(outcome) = outcome {
        for (name, link) in outcome.summary["links"].as_object().expect("a table") {
            for share in ["utilisation", "loss_rate", "mark_rate"] {
                let share = link[share].as_f64();
                assert!(share.is_none_or(|x| (0.0..=1.0).contains(&x)), "{name}: {link}");
            }
        }
    }
}

/// Choices read from bytes; when they run out, the first option.
pub struct Choices<'a>(pub &'a [u8]);

impl Choices<'_> {
    /// Number below `n`, which is at most 256.
    pub fn below(&mut self, n: usize) -> usize {
        let Some((byte, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        usize::from(*byte) % n.max(1)
    }

    /// One of `texts`.
    pub fn one<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.below(texts.len())]
    }
}

/// Valid scenario that sets every key once.
pub fn valid_scenario() -> Value {
    json!({
        "name": "all", "duration": "2s", "warmup": "500ms", "seed": 7, "sample": "100ms",
        "packet_log": true,
        "links": {
            "up": {"rate": "10mbit", "delay": "5ms", "qdisc": {"name": "fq_codel", "limit": "300kB",
                   "flows": 64, "quantum": "300B", "target": "5ms", "ecn": true}},
            "mid": {"rate": "8mbit", "delay": "1ms", "qdisc": {"name": "red", "limit": "60p",
                    "min_th": "5p", "max_th": "15p", "max_p": 0.1, "w_q": 0.002, "gentle": "true"}},
            "down": {"rate": "1.25MB/s", "delay": "5ms", "qdisc": "droptail"}
        },
        "flows": [
            {"name": "bulk", "count": 2, "source": {"name": "bulk", "start": "uniform(0s, 100ms)"},
             "tcp": {"name": "sack", "profile": "rfc", "packet": "1500B"},
             "path": ["up", "mid"], "return_path": ["down"], "rtt": "uniform(40ms, 200ms)"},
            {"name": "web", "tcp": {"name": "reno", "profile": "ns2"}, "path": ["mid"],
             "rtt": "30ms", "source": {"name": "transfers", "size": "pareto(mean=10kB, shape=1.2)",
             "gap": "exponential(100ms)", "number": 5}},
            {"name": "paced", "tcp": {"name": "cubic", "pacing": true, "prr": true,
                "rack": true, "c": 0.4},
             "path": ["up"], "return_path": ["down"]},
            {"name": "probes", "tcp": {"name": "bbr", "probe_rtt": "200ms", "cwnd_gain": 2},
             "path": ["up"], "rtt": "30ms"},
            {"name": "call", "source": {"name": "cbr", "rate": "64kbit", "packet": "200B"},
             "path": ["up"]},
            {"name": "burst", "path": ["up"], "source": {"name": "onoff", "on": "exponential(1ms)",
             "off": "pareto(mean=1ms, shape=1.5)", "rate": "1mbit"}},
            {"name": "short", "count": 3, "path": ["mid"], "source": {"name": "poisson",
             "size": "web_search", "load": "1mbit", "most": 20}},
            {"name": "query", "count": 3, "path": ["mid"], "source": {"name": "incast",
             "size": "10kB", "jitter": "uniform(0s, 10us)", "gap": "1ms", "persistent": true}},
            {"name": "session", "path": ["mid"], "source": {"name": "sessions", "transfers": 3,
             "interval": "exponential(100ms)", "until": "acked"}},
            {"name": "page", "path": ["mid"], "return_path": ["down"], "source": {"name": "web",
             "sessions": 2, "page_gap": "10ms", "objects": "pareto(mean=4, shape=1.2)",
             "size": "cdf(1B 0, 1kB 0.5, 10kB 1)", "request": true}},
            {"name": "trace", "path": ["up"], "source": {"name": "trace", "time_s": [0.1, 0.2],
             "size_bytes": [100, 200], "flow": [0, 0]}}
        ]
    })
}

/// Values by kind, including extreme ones; a value of the right kind gets furthest.
const DURATIONS: [&str; 12] = [
    "0s",
    "1ns",
    "5ms",
    "100000s",
    "20us",
    "1h",
    "uniform(0s, 0s)",
    "uniform(2s, 1s)",
    "exponential(0s)",
    "exponential(1ns)",
    "auto",
    "pareto(10ms, 1.0001)",
];
const RATES: [&str; 8] =
    ["1bit", "0bit", "3bit", "10mbit", "100tbit", "10mbps", "100gbit", "123456789bit"];
const SIZES: [&str; 12] = [
    "1p",
    "0p",
    "2p",
    "1000000000000p",
    "0B",
    "1B",
    "41B",
    "1000GB",
    "65535B",
    "65536B",
    "9kB",
    "pareto(mean=1B, shape=1.0001)",
];
const NAMES: [&str; 33] = [
    "codel",
    "sfq",
    "drr",
    "red",
    "fq_codel",
    "droptail",
    "tahoe",
    "reno",
    "newreno",
    "sack",
    "cubic",
    "dctcp",
    "vegas",
    "compound",
    "bbr",
    "bbr3",
    "ledbat",
    "ledbatpp",
    "prague",
    "rfc",
    "ns2",
    "cbr",
    "bulk",
    "transfers",
    "up",
    "mid",
    "down",
    "head",
    "random",
    "buffer",
    "yes",
    "bernoulli",
    "mean",
];
const STRANGE: [&str; 10] =
    ["", "-1ms", "1e3ms", "0.5ns", "NaN", "uniform(", "\n", "\u{7f}\u{0}", "5µs", "🦀"];

/// Replacement for `old`, most often of the same kind.
fn replacement(old: &Value, choices: &mut Choices<'_>) -> Value {
    let one = |choices: &mut Choices<'_>, texts: &[&str]| json!(texts[choices.below(texts.len())]);
    let numbers = [
        json!(0),
        json!(1),
        json!(2),
        json!(65_536),
        json!(0.5),
        json!(1e308),
        json!(-1),
        json!(-0.0),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(9_007_199_254_740_993u64),
        json!(1e-300),
    ];
    let others = [Value::Null, json!(true), json!(false), json!([]), json!({}), json!([[]])];
    let of_kind = choices.below(8) > 0;
    match old {
        Value::String(text) if of_kind => match text {
            text if text.contains("bit") || text.ends_with("/s") => one(choices, &RATES),
            text if text.parse::<Size>().is_ok() || text.contains("kB") => one(choices, &SIZES),
            text if text.parse::<Span>().is_ok() || text.contains("ms") => one(choices, &DURATIONS),
            _ => one(choices, &NAMES),
        },
        Value::Number(_) if of_kind => numbers[choices.below(numbers.len())].clone(),
        Value::Bool(flag) if of_kind => json!(!flag),
        _ => match choices.below(3) {
            0 => one(choices, &STRANGE),
            1 => others[choices.below(others.len())].clone(),
            _ => numbers[choices.below(numbers.len())].clone(),
        },
    }
}

/// Existing keys, and some that do not exist.
const KEYS: [&str; 34] = [
    "name",
    "duration",
    "warmup",
    "seed",
    "sample",
    "packet_log",
    "links",
    "flows",
    "rate",
    "delay",
    "qdisc",
    "count",
    "source",
    "tcp",
    "path",
    "return_path",
    "rtt",
    "limit",
    "ecn",
    "start",
    "stop",
    "size",
    "number",
    "packet",
    "target",
    "interval",
    "quantum",
    "policy",
    "pacing",
    "prr",
    "rack",
    "alpha",
    "li\nmit",
    "",
];

/// Valid scenario with some changes, most of them below `links` and `flows`.
fn changed_scenario(choices: &mut Choices<'_>) -> Value {
    let mut all = valid_scenario();
    for _ in 0..choices.below(6) {
        match choices.below(8) {
            0 => change(&mut all, choices),
            1..4 => change(&mut all["links"], choices),
            _ => change(&mut all["flows"], choices),
        }
    }
    all
}

/// Changes something in or below `json`, most often one level deeper.
fn change(json: &mut Value, choices: &mut Choices<'_>) {
    let deeper = choices.below(32) > 0;
    match json {
        Value::Object(map) if deeper && !map.is_empty() => {
            let key = map.keys().nth(choices.below(map.len())).expect("one of them").clone();
            change(&mut map[&key], choices);
        }
        Value::Array(list) if deeper && !list.is_empty() => {
            let i = choices.below(list.len());
            change(&mut list[i], choices);
        }
        Value::Object(map) => change_table(map, choices),
        Value::Array(list) => match choices.below(3) {
            0 => list.push(replacement(&Value::Null, choices)),
            1 => drop(list.pop()),
            _ => list.extend(list.clone().pop()),
        },
        other => *other = replacement(other, choices),
    }
}

fn change_table(map: &mut Map<String, Value>, choices: &mut Choices<'_>) {
    let key = KEYS[choices.below(KEYS.len())].to_string();
    let own = map.keys().nth(choices.below(map.len())).cloned();
    match (choices.below(3), own) {
        (0, Some(own)) => drop(map.remove(&own)),
        (1, Some(own)) => {
            let moved = map.remove(&own).expect("it is there");
            map.insert(key, moved);
        }
        _ => drop(map.insert(key, replacement(&Value::Null, choices))),
    }
}
