//! Python binding of a simulation that can be stepped, looked at, changed and copied.

use crate::scenario::{ParsedScenario, outcome};
use crate::{InputError, custom, interruptible, refused};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use sojourn_aqm::{Error, Span, Time};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

/// Simulation in progress. One thread at a time can use it.
#[pyclass(frozen, module = "sojourn._sojourn")]
pub struct Simulation {
    inner: Mutex<sojourn_sim::Simulation>,
    /// True if a discipline calls Python.
    calls_python: bool,
    /// True after an exception in such a discipline: the simulation cannot continue.
    broken: AtomicBool,
}

impl Simulation {
    fn of(inner: sojourn_sim::Simulation, calls_python: bool) -> Simulation {
        Simulation { inner: Mutex::new(inner), calls_python, broken: AtomicBool::new(false) }
    }

    /// The simulation, unless it is running: in another thread, or below this call.
    fn get(&self) -> PyResult<MutexGuard<'_, sojourn_sim::Simulation>> {
        if self.broken.load(Ordering::Relaxed) {
            let text = "the simulation ended with an exception in a discipline";
            return Err(PyRuntimeError::new_err(text));
        }
        match self.inner.try_lock() {
            Ok(simulation) => Ok(simulation),
            Err(TryLockError::Poisoned(error)) => Ok(error.into_inner()),
            Err(TryLockError::WouldBlock) => Err(PyRuntimeError::new_err(
                "the simulation is running: use a fork in another thread or in a callback",
            )),
        }
    }

    fn advance(&self, py: Python<'_>, until: Time, progress: Option<&Py<PyAny>>) -> PyResult<()> {
        let mut simulation = self.get()?;
        let simulation = &mut *simulation;
        let mut error: Option<Error> = None;
        let logs = simulation.scenario().packet_log();
        let done = interruptible(py, progress, self.calls_python, logs, |ask| {
            simulation.run_until(until, ask).map_or_else(
                |refused| {
                    error = Some(refused);
                    Some(())
                },
                |went_on| went_on.then_some(()),
            )
        });
        if let Err(error) = &done {
            self.broken.store(custom::is_of_user(py, error), Ordering::Relaxed);
        }
        done?;
        error.map_or(Ok(()), |error| Err(refused(error)))
    }
}

/// Set items of `$dict` to the fields of `$state` of the same names.
macro_rules! set_fields {
    ($dict:ident, $state:ident, $($field:ident),+) => {
        $($dict.set_item(stringify!($field), $state.$field)?;)+
    };
}

fn span(text: &str, name: &str) -> PyResult<Span> {
    text.parse().map_err(|error: Error| refused(error.at(name)))
}

#[pymethods]
impl Simulation {
    /// Creates a simulation of a scenario at time zero. `threads` is the number of threads; 0
    /// leaves it to the engine.
    #[new]
    #[pyo3(signature = (parsed, threads=1))]
    fn new(py: Python<'_>, parsed: &ParsedScenario, threads: usize) -> PyResult<Simulation> {
        let scenario = Arc::clone(&parsed.scenario);
        let new = || py.detach(|| sojourn_sim::Simulation::changeable(scenario));
        let mut simulation = custom::watched(new)?;
        simulation.set_threads(parsed.threads(threads));
        Ok(Simulation::of(simulation, parsed.calls_python()))
    }

    /// Current time, nanoseconds.
    #[getter]
    fn now_ns(&self) -> PyResult<u64> {
        Ok(self.get()?.now().0)
    }

    /// End of the run, nanoseconds.
    #[getter]
    fn end_ns(&self) -> PyResult<u64> {
        Ok(self.get()?.end().0)
    }

    /// Number of packets sent by links so far.
    #[getter]
    fn packets(&self) -> PyResult<u64> {
        Ok(self.get()?.packets())
    }

    /// Number of parts, each on a thread of its own, in which the simulation continues.
    #[getter]
    fn parts(&self) -> PyResult<usize> {
        Ok(self.get()?.parts())
    }

    /// Simulates everything before the time `until`.
    #[pyo3(signature = (until, progress=None))]
    fn run_until(&self, py: Python<'_>, until: &str, progress: Option<Py<PyAny>>) -> PyResult<()> {
        self.advance(py, Time::ZERO + span(until, "until")?, progress.as_ref())
    }

    /// Simulates for `duration`, at most to the end of the run.
    #[pyo3(signature = (duration, progress=None))]
    fn step(&self, py: Python<'_>, duration: &str, progress: Option<Py<PyAny>>) -> PyResult<()> {
        let length = span(duration, "duration")?;
        let (now, end) = {
            let simulation = self.get()?;
            (simulation.now(), simulation.end())
        };
        if length > Span::ZERO && now == end {
            let text = format!("the run ended at {}: there is no step left", end - Time::ZERO);
            return Err(InputError::new_err(text));
        }
        self.advance(py, (now + length).min(end), progress.as_ref())
    }

    /// Applies a change of links and flows, given as JSON, at the current time.
    fn change(&self, change_json: &str) -> PyResult<()> {
        let json = serde_json::from_str(change_json)
            .map_err(|e| InputError::new_err(format!("not valid JSON: {e}")))?;
        self.get()?.change(&json).map_err(refused)
    }

    /// Returns the state of a link by name of the quantity; `gauges` is a dict.
    fn link<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyDict>> {
        let mut simulation = self.get()?;
        let state = custom::watched(|| simulation.link(name))?.map_err(refused)?;
        let (all, gauges) = (PyDict::new(py), PyDict::new(py));
        all.set_item("rate_bps", state.rate.0)?;
        all.set_item("delay_s", state.delay.as_secs())?;
        set_fields! { all, state,
            queue_packets, queue_bytes, utilisation, arrived_packets, departed_packets,
            departed_bytes, sojourn_total_s, dropped_packets, dropped_full_packets, marked_packets
        }
        for (name, value) in state.gauges {
            gauges.set_item(name, value)?;
        }
        all.set_item("gauges", gauges)?;
        Ok(all)
    }

    /// Returns the state of a flow, host or group by name of the quantity.
    fn flow<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyDict>> {
        let mut simulation = self.get()?;
        let state = custom::watched(|| simulation.flow(name))?.map_err(refused)?;
        let (all, gauges) = (PyDict::new(py), PyDict::new(py));
        set_fields! { all, state,
            flows, cwnd_packets, srtt_s, delivered_bytes, received_bytes, sent_packets,
            retransmitted_packets, timeouts
        }
        for (name, value) in state.gauges {
            gauges.set_item(name, value)?;
        }
        all.set_item("gauges", gauges)?;
        Ok(all)
    }

    /// Returns the names of the links and of the groups of flows.
    fn names(&self) -> PyResult<(Vec<String>, Vec<String>)> {
        let simulation = self.get()?;
        let scenario = simulation.scenario();
        let links = scenario.links().iter().map(|link| link.name().to_string()).collect();
        Ok((links, scenario.flows().iter().map(|flow| flow.name().to_string()).collect()))
    }

    /// Returns the scenario with all changes made so far as canonical JSON.
    fn scenario(&self) -> PyResult<String> {
        Ok(self.get()?.scenario().canonical_text())
    }

    /// Returns the result so far: its summary as JSON, and its columns.
    fn result<'py>(&self, py: Python<'py>) -> PyResult<(String, Bound<'py, PyDict>)> {
        let simulation = self.get()?;
        let simulation = &*simulation;
        let result = custom::watched(|| simulation.result())?.map_err(refused)?;
        outcome(py, result)
    }

    /// Returns the simulation as bytes.
    fn save<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let simulation = self.get()?;
        let bytes = custom::watched(|| simulation.save())?.map_err(refused)?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Creates a simulation from the bytes of `save`.
    #[staticmethod]
    #[pyo3(signature = (snapshot, threads=1))]
    fn load(snapshot: &[u8], threads: usize) -> PyResult<Simulation> {
        let load = || sojourn_sim::Simulation::load_with(&custom::registries(), snapshot);
        let mut simulation = custom::watched(load)?.map_err(refused)?;
        let parsed = ParsedScenario::from(simulation.scenario().clone());
        simulation.set_threads(parsed.threads(threads));
        Ok(Simulation::of(simulation, parsed.calls_python()))
    }

    /// Returns the scenario in the bytes of `save` as JSON.
    #[staticmethod]
    fn saved_scenario(snapshot: &[u8]) -> PyResult<String> {
        sojourn_sim::Simulation::saved_scenario(snapshot).map(str::to_string).map_err(refused)
    }

    /// Returns an independent copy, which continues in the same way.
    fn fork(&self) -> PyResult<Simulation> {
        let simulation = self.get()?;
        Ok(Simulation::of(custom::watched(|| simulation.clone())?, self.calls_python))
    }
}
