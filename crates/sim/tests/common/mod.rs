//! Shared helpers for tests of whole runs.
#![allow(dead_code, reason = "each test binary uses its part")]

use serde_json::Value;
use sojourn_sim::{Column, Outcome, Scenario};

/// Scenario of a table.
pub fn parse(scenario: &Value) -> Scenario {
    Scenario::from_json(&scenario.to_string()).unwrap_or_else(|e| panic!("{e}: {scenario}"))
}

/// Everything that a run returns, as text.
pub fn bytes(outcome: &Outcome) -> String {
    let columns: Vec<String> =
        outcome.columns.iter().map(|(name, column)| format!("{name}: {}", hex(column))).collect();
    format!("{}\n{}", outcome.summary, columns.join("\n"))
}

/// Values of a column as text; numbers by their bits.
pub fn hex(column: &Column) -> String {
    match column {
        Column::F64(values) => {
            let bits: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
            format!("{bits:x?}")
        }
        other => format!("{other:?}"),
    }
}

/// Runs a scenario to its end.
pub fn run(scenario: &Value) -> Outcome {
    sojourn_sim::run(parse(scenario))
}

/// Summary of the flow called `name`.
pub fn flow<'a>(outcome: &'a Outcome, name: &str) -> &'a Value {
    let flows = outcome.summary["flows"].as_array().expect("flows are a list");
    flows.iter().find(|f| f["name"] == name).unwrap_or_else(|| panic!("no flow {name}"))
}

/// Number at `key`.
pub fn num(json: &Value, key: &str) -> f64 {
    json[key].as_f64().unwrap_or_else(|| panic!("{key} is no number in {json}"))
}

/// Goodput of each flow, Gbit/s.
pub fn goodputs_gbit(out: &Outcome) -> Vec<f64> {
    let flows = out.summary["flows"].as_array().expect("flows are a list");
    flows.iter().map(|f| num(f, "goodput_bps") / 1e9).collect()
}

/// Jain's index of fairness.
pub fn jain(x: &[f64]) -> f64 {
    let sum: f64 = x.iter().sum();
    sum * sum / (x.len() as f64 * x.iter().map(|v| v * v).sum::<f64>())
}
