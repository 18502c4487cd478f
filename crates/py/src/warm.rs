//! Python binding of a warm state: the bytes of a simulation from which runs start.

use crate::{custom, refused};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sojourn_aqm::{Result, Time};
use sojourn_sim::{Outcome, Progress, Scenario, Simulation, Threads};
use std::sync::Arc;

/// State of a simulation, shared by all runs that start from it.
#[pyclass(frozen, module = "sojourn._sojourn")]
pub struct WarmState {
    snapshot: Arc<[u8]>,
    /// Time of the state, as text.
    at: String,
    /// Seed of the simulation.
    seed: u64,
}

#[pymethods]
impl WarmState {
    /// Reads the bytes of `Simulation.save`.
    #[new]
    fn new(snapshot: &[u8]) -> PyResult<WarmState> {
        let simulation = custom::watched(|| load(snapshot))?.map_err(refused)?;
        let at = (simulation.now() - Time::ZERO).to_string();
        Ok(WarmState { snapshot: snapshot.into(), at, seed: simulation.scenario().seed() })
    }

    /// Time of the state, like "30s".
    #[getter]
    fn at(&self) -> &str {
        &self.at
    }

    /// Seed of the simulation.
    #[getter]
    fn seed(&self) -> u64 {
        self.seed
    }

    /// Pickle as bytes, which another process reads again.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let bytes = PyBytes::new(py, &self.snapshot);
        (py.get_type::<WarmState>(), (bytes,)).into_bound_py_any(py)
    }
}

fn load(snapshot: &[u8]) -> Result<Simulation> {
    Simulation::load_with(&custom::registries(), snapshot)
}

/// Warm start of a run: its state, and the scenario that the run continues as.
pub struct WarmStart {
    pub state: Py<WarmState>,
    pub wanted: Arc<Scenario>,
}

impl WarmStart {
    /// The simulation at its start.
    ///
    /// # Errors
    /// If the scenario cannot continue the state.
    pub fn simulation(&self) -> Result<Simulation> {
        let mut simulation = load(&self.state.get().snapshot)?;
        simulation.continue_as(&self.wanted)?;
        Ok(simulation)
    }

    /// Runs the simulation; `None` if stopped by `progress`, which counts the packets from the
    /// start on, or all with packet logs.
    pub fn run(
        &self,
        threads: Threads,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Option<Result<Outcome>> {
        let mut simulation = match self.simulation() {
            Ok(simulation) => simulation,
            Err(error) => return Some(Err(error)),
        };
        simulation.set_threads(threads);
        let logs = simulation.scenario().packet_log();
        let before = if logs { 0 } else { simulation.packets() };
        let outcome = simulation.finish(&mut |mut so_far| {
            so_far.packets = so_far.packets.saturating_sub(before);
            progress(so_far)
        });
        outcome.map(Ok)
    }
}
