//! Shared helpers for tests of whole runs.
#![allow(dead_code, reason = "each test binary uses its part")]

use serde_json::Value;
use sojourn_sim::{Outcome, Scenario};

/// Runs a scenario to its end.
pub fn run(scenario: &Value) -> Outcome {
    let scenario = Scenario::from_json(&scenario.to_string()).unwrap_or_else(|e| panic!("{e}"));
    sojourn_sim::run(&scenario)
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
