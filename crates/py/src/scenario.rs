//! Python binding of a valid scenario: parsed once, then passed to what runs it.

use crate::warm::{WarmStart, WarmState};
use crate::{array, custom, interruptible, refused};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sojourn_aqm::params::ParamRow;
use sojourn_sim::tcp::TcpParams;
use sojourn_sim::traffic::Source;
use sojourn_sim::{Outcome, Scenario, Threads};
use std::num::NonZero;
use std::sync::Arc;

/// Valid scenario. Everything that runs one takes this type, so a scenario is parsed once.
#[pyclass(frozen, module = "sojourn._sojourn")]
pub struct ParsedScenario {
    pub scenario: Arc<Scenario>,
    /// Warm start of its runs, if there is one. A run of the scenario from its start has the same
    /// result.
    warm: Option<Arc<WarmStart>>,
}

impl From<Scenario> for ParsedScenario {
    fn from(scenario: Scenario) -> ParsedScenario {
        ParsedScenario { scenario: Arc::new(scenario), warm: None }
    }
}

impl ParsedScenario {
    /// True if a discipline, a congestion control or a source calls Python.
    pub fn calls_python(&self) -> bool {
        let is_plain = |rows: &[ParamRow]| {
            let compiled = rows.iter().find(|row| row.name == custom::COMPILED);
            compiled.is_none_or(|row| row.value == "false")
        };
        let links = self.scenario.links().iter();
        let mut links = links.filter(|link| custom::is_custom(link.qdisc()));
        links.any(|link| is_plain(link.params()))
            || self.controls().any(|tcp| is_plain(&tcp.table()))
            || self.sources().any(|source| is_plain(&source.param_rows()))
    }

    /// Threads for a requested number; 0 leaves the number to the engine. One if the scenario has a
    /// class in Python: calls and exceptions of such classes belong to the thread of the run.
    pub fn threads(&self, count: usize) -> Threads {
        let mut links = self.scenario.links().iter();
        let custom = links.any(|link| custom::is_custom(link.qdisc()))
            || self.controls().next().is_some()
            || self.sources().next().is_some();
        match NonZero::new(count) {
            _ if custom => Threads::One,
            None => Threads::Auto,
            Some(NonZero::<usize>::MIN) => Threads::One,
            Some(count) => Threads::Exactly(count),
        }
    }

    /// TCPs whose congestion control is written in Python.
    fn controls(&self) -> impl Iterator<Item = &TcpParams> {
        let tcps = self.scenario.flows().iter().filter_map(|flow| flow.tcp());
        tcps.filter(|tcp| custom::is_custom(tcp.name()))
    }

    /// Traffic sources that are written in Python.
    fn sources(&self) -> impl Iterator<Item = &Source> {
        let sources = self.scenario.flows().iter().map(|flow| flow.source());
        sources.filter(|source| custom::is_custom(source.name()))
    }

    /// Name and source of each class in Python.
    fn custom(&self) -> Vec<(String, String)> {
        let links = self.scenario.links().iter();
        let links = links.map(|link| (link.qdisc().to_string(), link.params().to_vec()));
        let tcps = self.controls().map(|tcp| (tcp.name().to_string(), tcp.table()));
        let sources = self.sources().map(|source| (source.name().to_string(), source.param_rows()));
        links
            .chain(tcps)
            .chain(sources)
            .filter(|(name, _)| custom::is_custom(name))
            .filter_map(|(name, rows)| {
                let source = rows.into_iter().find(|row| row.name == custom::SOURCE)?;
                Some((name, source.value))
            })
            .collect()
    }
}

#[pymethods]
impl ParsedScenario {
    /// Parses and validates the JSON text of a scenario.
    #[new]
    fn new(scenario_json: &str) -> PyResult<ParsedScenario> {
        let scenario =
            Scenario::from_json_with(&custom::registries(), scenario_json).map_err(refused)?;
        Ok(scenario.into())
    }

    /// Returns the scenario of a run that continues `state` with the settings of this one.
    fn warm_from(&self, state: Py<WarmState>) -> PyResult<ParsedScenario> {
        let warm = WarmStart { state, wanted: Arc::clone(&self.scenario) };
        let simulation = custom::watched(|| warm.simulation())?.map_err(refused)?;
        let scenario = Arc::new(simulation.scenario().clone());
        Ok(ParsedScenario { scenario, warm: Some(Arc::new(warm)) })
    }

    /// Returns the scenario `whole` whose runs continue `state` as `wanted`: for pickles.
    #[staticmethod]
    fn of_warm(whole: &Self, wanted: &Self, state: Py<WarmState>) -> ParsedScenario {
        let warm = WarmStart { state, wanted: Arc::clone(&wanted.scenario) };
        let scenario = Arc::clone(&whole.scenario);
        ParsedScenario { scenario, warm: Some(Arc::new(warm)) }
    }

    /// Returns the scenario as canonical JSON: all defaults explicit, all names canonical.
    fn canonical(&self) -> String {
        self.scenario.canonical_text()
    }

    /// Returns the scenario with another seed, from 0 to 2^53.
    fn with_seed(&self, py: Python<'_>, seed: u64) -> PyResult<ParsedScenario> {
        let scenario = Arc::new(self.scenario.with_seed(seed).map_err(refused)?);
        let warm = self.warm.as_ref().map(|warm| {
            let wanted = warm.wanted.with_seed(seed).map_err(refused)?;
            PyResult::Ok(WarmStart { state: warm.state.clone_ref(py), wanted: Arc::new(wanted) })
        });
        Ok(ParsedScenario { scenario, warm: warm.transpose()?.map(Arc::new) })
    }

    /// Returns the scenario with a sampling interval for figures, if it has none: a thousandth of
    /// the duration, or longer if many flows would use too much memory.
    fn with_sample(&self) -> PyResult<ParsedScenario> {
        let scenario = self.scenario.with_sample().map_err(refused)?;
        Ok(scenario.into())
    }

    /// Pickle as canonical JSON, which another process parses again, with the classes of
    /// disciplines that are written in Python, and the state of a warm start.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let kind = py.get_type::<ParsedScenario>();
        if let Some(warm) = &self.warm {
            let [whole, wanted] = [&self.scenario, &warm.wanted]
                .map(|scenario| ParsedScenario { scenario: Arc::clone(scenario), warm: None });
            let parts = (whole, wanted, warm.state.clone_ref(py));
            return (kind.getattr("of_warm")?, parts).into_bound_py_any(py);
        }
        let classes = self.custom();
        if classes.is_empty() {
            return (kind, (self.canonical(),)).into_bound_py_any(py);
        }
        custom::module(py)?.call_method1("reduce", (kind, self.canonical(), classes))
    }

    /// Runs the scenario; returns its summary as JSON and its columns.
    ///
    /// `progress` is called with the fraction of the simulated time that has passed and the number
    /// of packets sent by links. If it returns False, or a signal has arrived, the run is stopped
    /// with KeyboardInterrupt. `threads` is the number of threads; 0 leaves it to
    /// the engine.
    #[pyo3(signature = (progress=None, threads=1))]
    fn simulate<'py>(
        &self,
        py: Python<'py>,
        progress: Option<Py<PyAny>>,
        threads: usize,
    ) -> PyResult<(String, Bound<'py, PyDict>)> {
        let (scenario, threads) = (Arc::clone(&self.scenario), self.threads(threads));
        let run = |ask: &mut dyn FnMut(_) -> bool| match self.warm.as_deref() {
            Some(warm) => warm.run(threads, ask),
            None => sojourn_sim::run_on_threads(scenario, threads, ask).map(Ok),
        };
        let logs = self.scenario.packet_log();
        let result = interruptible(py, progress.as_ref(), self.calls_python(), logs, run)?;
        outcome(py, result.map_err(refused)?)
    }
}

/// Converts a result to its summary as JSON and its columns.
pub fn outcome(py: Python<'_>, outcome: Outcome) -> PyResult<(String, Bound<'_, PyDict>)> {
    let columns = PyDict::new(py);
    for (name, column) in outcome.columns {
        columns.set_item(name, array(py, column))?;
    }
    Ok((outcome.summary.to_string(), columns))
}
