//! Python bindings of scripts: the actions of a scenario's applications over time.

use crate::array;
use crate::scenario::ParsedScenario;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value as Json, json};
use sojourn_aqm::Time;
use sojourn_sim::internals::Amount;
use sojourn_sim::internals::script::{self, Action};
use std::sync::{Mutex, PoisonError};

/// Action for the caller: kind, flow, row, bytes (-1 for unlimited), true for a request, true if
/// the connection is kept.
type ActionRow = (&'static str, u32, u32, i64, bool, bool);

/// Converts to a signed number, limited to the largest one.
fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

fn action_row(action: Action) -> ActionRow {
    match action {
        Action::Open { flow, row, amount, request, keep } => {
            let bytes = match amount {
                Amount::Unlimited => -1,
                Amount::Bytes(bytes) => signed(bytes),
                Amount::Written => 0,
            };
            ("open", flow, row, bytes, request, keep)
        }
        Action::Write(row, bytes) => ("write", row, row, signed(bytes), false, false),
        Action::Datagram(row, bytes) => ("datagram", row, row, signed(bytes), false, false),
        Action::Stop(row) => ("stop", row, row, 0, false, false),
        Action::Leave(first, end) => ("leave", first, end, 0, false, false),
    }
}

/// Applications of a scenario; times are in nanoseconds since the start of the run.
#[pyclass]
pub struct Script {
    /// Sources outside of the registry are not `Sync`.
    script: Mutex<Option<script::Script>>,
    groups: Vec<(String, bool)>,
}

impl Script {
    fn script(&mut self) -> PyResult<&mut script::Script> {
        let script = self.script.get_mut().unwrap_or_else(PoisonError::into_inner);
        script.as_mut().ok_or_else(|| super::InputError::new_err("the script is finished"))
    }
}

#[pymethods]
impl Script {
    #[new]
    fn new(parsed: &ParsedScenario) -> Script {
        let scenario = sojourn_sim::Scenario::clone(&parsed.scenario);
        let group =
            |def: &sojourn_sim::config::FlowConfig| (def.name().to_string(), def.tcp().is_some());
        let groups = scenario.flows().iter().map(group).collect();
        Script { script: Mutex::new(Some(script::Script::new(scenario))), groups }
    }

    /// Returns the rows of the result: name, group, True for TCP.
    fn rows(&mut self) -> PyResult<Vec<(String, String, bool)>> {
        let groups = self.groups.clone();
        let rows = self.script()?.rows().iter().map(|row| {
            let (group, tcp) = groups[row.group].clone();
            (row.name.clone(), group, tcp)
        });
        Ok(rows.collect())
    }

    /// Returns the time of the next action; None if there is none.
    fn next(&mut self) -> PyResult<Option<u64>> {
        let next = self.script()?.next();
        Ok((next < Time::NEVER).then_some(next.0))
    }

    /// Returns the next action due by `now`. Call until it returns None.
    fn wake(&mut self, now: u64) -> PyResult<Option<ActionRow>> {
        let script = self.script()?;
        // An event of a session group need not cause an action.
        while script.next() <= Time(now) {
            if let Some(action) = script.pop_action(Time(now)) {
                return Ok(Some(action_row(action)));
            }
        }
        Ok(None)
    }

    /// Reports that the connection of a flow is established.
    fn established(&mut self, flow: u32, at: u64) -> PyResult<()> {
        self.script()?.established(flow, Time(at));
        Ok(())
    }

    /// Reports that all data of a transfer was received.
    fn received(&mut self, flow: u32, at: u64) -> PyResult<()> {
        self.script()?.received(flow, Time(at));
        Ok(())
    }

    /// Reports that all data of a transfer was acknowledged.
    fn acked(&mut self, flow: u32, at: u64) -> PyResult<()> {
        self.script()?.acked(flow, Time(at));
        Ok(())
    }

    /// Ends the script; returns a summary per row as JSON, without rates and packet counts, and the
    /// columns of completions.
    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<(String, Bound<'py, PyDict>)> {
        let script = self.script.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let script = script.ok_or_else(|| super::InputError::new_err("the script is finished"))?;
        let (rows, columns) = script.finish();
        let by_name = PyDict::new(py);
        for (name, column) in columns {
            by_name.set_item(name, array(py, column))?;
        }
        let rows: Json = json!(rows);
        Ok((rows.to_string(), by_name))
    }
}
