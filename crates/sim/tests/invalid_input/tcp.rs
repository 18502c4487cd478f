//! Random TCP settings over links that lose data, acks and SYNs. The settings come from the
//! registry, so a new TCP or parameter is covered as soon as it is registered.

use crate::body::{Choices, read_back, run_for};
use serde_json::{Map, Value, json};
use sojourn_aqm::error::Error;
use sojourn_aqm::params::ParamRow;
use sojourn_aqm::{Rate, Size, Span};
use sojourn_sim::Scenario;
use sojourn_sim::tcp::TCPS;

/// Builds a scenario from `bytes`, check its canonical form and runs it.
pub fn check_settings(bytes: &[u8]) {
    let choices = &mut Choices(bytes);
    let flows: Vec<Value> = (0..1 + choices.below(3)).map(|i| flow(i, choices)).collect();
    let mut json = json!({
        "duration": choices.one(&["200ms", "5s", "100s", "10000s"]), "seed": choices.below(256),
        "links": {"up": link(choices), "down": link(choices)},
        "flows": flows,
    });
    while let Err(refused) = Scenario::from_json(&json.to_string()) {
        drop_refused(&mut json, &refused);
    }
    let shown = ShownOnPanic(&json);
    let scenario = read_back(&shown.0.to_string()).expect("rejected settings are removed");
    run_for(&scenario, 1);
}

/// Removes the rejected TCP setting, or all settings of that TCP if a default was rejected because
/// of another setting.
fn drop_refused(json: &mut Value, refused: &Error) {
    let path: Vec<&str> = refused.path().split('.').collect();
    let ["flows", flow, "tcp", key] = path[..] else { panic!("{refused} in {json}") };
    let mut flows = json["flows"].as_array_mut().into_iter().flatten();
    let tcp = flows.find(|f| f["name"] == flow).and_then(|f| f["tcp"].as_object_mut());
    let tcp = tcp.unwrap_or_else(|| panic!("{refused}, but there is no such TCP"));
    if tcp.remove(key).is_none() {
        assert!(tcp.len() > 1, "{refused} by default");
        tcp.retain(|key, _| key == "name");
    }
}

/// Prints a scenario if the thread panics during its lifetime.
struct ShownOnPanic<'a>(&'a Value);

impl Drop for ShownOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed: {}", self.0);
        }
    }
}

fn link(choices: &mut Choices<'_>) -> Value {
    let loss = match choices.below(6) {
        0 => json!(0),
        1 => json!(1),
        2 => json!({"p": 0.05, "r": 0.2}),
        3 => json!({"p": 1, "r": 0.5, "1-k": 0.5}),
        _ => json!(choices.below(256) as f64 / 300.0),
    };
    json!({
        "rate": choices.one(&["1kbit", "100kbit", "10mbit", "10gbit"]),
        "delay": choices.one(&["0s", "1us", "10ms", "700ms", "20s"]),
        "qdisc": choices.one(&["droptail", "codel", "red", "fq_codel", "pie"]),
        "loss": loss,
    })
}

fn flow(i: usize, choices: &mut Choices<'_>) -> Value {
    let source = match choices.below(4) {
        0 => json!("bulk"),
        1 => json!({"name": "transfers", "size": "pareto(mean=10kB, shape=1.2)", "gap": "10ms"}),
        2 => json!({"name": "poisson", "size": "web_search", "load": "1mbit"}),
        _ => json!({"name": "onoff", "on": "10ms", "off": "2s", "rate": "1mbit"}),
    };
    let back = if choices.below(3) == 0 { json!([]) } else { json!(["down"]) };
    let mut flow = json!({
        "name": format!("f{i}"), "count": 1 + choices.below(2), "source": source,
        "path": ["up"], "return_path": back, "tcp": tcp(choices),
    });
    if choices.below(2) == 0 {
        flow["rtt"] = "uniform(50s, 60s)".into();
    }
    flow
}

fn tcp(choices: &mut Choices<'_>) -> Value {
    let entry = &TCPS[choices.below(TCPS.len())];
    let mut tcp = Map::from_iter([("name".to_string(), json!(entry.name))]);
    let rows = entry.table();
    for _ in 0..choices.below(8) {
        let row = &rows[choices.below(rows.len())];
        tcp.insert(row.name.to_string(), value(row, choices).into());
    }
    // Timeouts relative to each other, because each alone is consistent with the defaults.
    for row in rows.iter().filter(|row| row.name.starts_with("rto_")) {
        if choices.below(2) == 0 {
            tcp.insert(row.name.to_string(), value(row, choices).into());
        }
    }
    Value::Object(tcp)
}

/// Value for `row`: an end of its range, `auto`, or any order of magnitude in between.
fn value(row: &ParamRow, choices: &mut Choices<'_>) -> String {
    let kind = row.kind.trim_end_matches(" or auto");
    if choices.below(6) == 0 {
        return row.value.clone();
    }
    if kind == "flag" {
        return (choices.below(2) == 0).to_string();
    }
    if kind.contains('|') {
        let words: Vec<&str> = kind.split('|').collect();
        return choices.one(&words).to_string();
    }
    let Some((lo, hi)) = row.range.split_once(" to ").or(row.range.split_once(" or more")) else {
        return row.value.clone();
    };
    match choices.below(6) {
        0 => return lo.to_string(),
        1 if !hi.is_empty() => return hi.to_string(),
        _ => {}
    }
    if kind == "number" {
        let (lo, hi): (f64, f64) = (lo.parse().unwrap(), hi.parse().unwrap());
        return (lo + (hi - lo) * choices.below(256) as f64 / 255.0).to_string();
    }
    let (n, unit) = match kind {
        "duration" => (hi.parse::<Span>().unwrap().0, "ns"),
        "rate" => (hi.parse::<Rate>().unwrap().0, "bit"),
        "integer" => (hi.parse().unwrap(), ""),
        "bytes" => (hi.parse::<Size>().unwrap().number(), "B"),
        "size" => (1 << 40, ["p", "B"][choices.below(2)]),
        other => panic!("{}: unknown kind {other:?}", row.name),
    };
    let shift = choices.below(n.ilog2() as usize + 1);
    format!("{}{unit}", (n >> shift).saturating_sub(choices.below(2) as u64).max(1))
}
