//! Disciplines, congestion controls and traffic sources that are written in Python.
//!
//! A name with a colon, `FILE.py:CLASS` or `MODULE:CLASS`, is a subclass of `sojourn.Aqm`,
//! `sojourn.CongestionControl` or `sojourn.TrafficSource`. [`registries`] has such names for the
//! simulator. `sojourn.custom` finds the class and makes its objects; this module reads the
//! parameters, so that units and messages are the same as in Rust, and gives the engine an object
//! that calls the Python object: for a discipline, the algorithm of a single queue.

mod aqm;
mod arrival;
mod borrowed;
mod compiled;
mod compiled_control;
mod compiled_source;
mod connection;
mod control;
mod control_class;
mod decision;
mod failure;
mod gauge;
mod params;
mod plain;
mod recorded;
mod records;
mod seen;
mod snapshot;
mod source;
mod values;
mod views;

pub use arrival::ArrivalsView;
pub use connection::ConnectionView;
pub use failure::{begin, failed, finish, is_of_user, watched};
pub use params::{COMPILED, SOURCE};
pub use views::{PacketView, QueueStateView};

use aqm::PythonAqm;
use compiled::CompiledMethods;
use params::{ClassParams, QueueParams};
use plain::PlainMethods;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use sojourn_aqm::aqm::{NoAqm, SingleParams, SingleQueue};
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params::{Combined, Nothing, Params, Setting};
use sojourn_aqm::registry::{External, QdiscEntry, Registry};
use sojourn_aqm::{Build, Built, Env, Served};
use sojourn_sim::Registries;
use sojourn_sim::config::{FlowConfig, LinkConfig};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

/// Disciplines, congestion controls and traffic sources of Rust and of Python.
pub fn registries() -> Registries {
    let qdiscs = Registry::standard().with_external(find);
    Registries::from(qdiscs).with_controls(control_class::find).with_sources(source::find)
}

/// Refuses disciplines in Python: a live link may not wait for the interpreter.
///
/// # Errors
/// If a link has one.
#[cfg(target_os = "linux")]
pub fn refuse_live<'a>(links: impl IntoIterator<Item = &'a LinkConfig>) -> PyResult<()> {
    match links.into_iter().find(|link| is_custom(link.qdisc())) {
        None => Ok(()),
        Some(link) => {
            let text = "a discipline that is written in Python runs in the simulator only";
            Err(crate::refused(Error::new(text).at("qdisc").at(link.name())))
        }
    }
}

/// Refuses congestion controls and sources in Python, as [`refuse_live`].
///
/// # Errors
/// If a flow has one.
#[cfg(target_os = "linux")]
pub fn refuse_live_flows(flows: &[FlowConfig]) -> PyResult<()> {
    let refusal = |flow: &FlowConfig, key, what| {
        let text = format!("a {what} that is written in Python runs in the simulator only");
        Err(crate::refused(Error::new(text).at(key).at(flow.name())))
    };
    for flow in flows {
        if flow.tcp().is_some_and(|tcp| is_custom(tcp.name())) {
            return refusal(flow, "tcp", "congestion control");
        }
        if is_custom(flow.source().name()) {
            return refusal(flow, "source", "traffic source");
        }
    }
    Ok(())
}

/// True if `name` names a class in Python.
pub fn is_custom(name: &str) -> bool {
    name.contains(':')
}

/// Text that lives as long as the process. Equal texts share their memory, so that the memory is
/// bounded by the names that a process uses.
fn intern(text: &str) -> &'static str {
    static TEXTS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = texts.get(text) {
        return known;
    }
    let new: &'static str = Box::leak(text.into());
    texts.insert(new);
    new
}

/// Entry of the class called `name`.
fn find(name: &str) -> Option<Result<&'static QdiscEntry>> {
    if !is_custom(name) {
        return None;
    }
    let known = Python::attach(|py| module(py)?.call_method1("find", (name,)).map(drop));
    Some(known.map_err(|e| error_of(&e)).map(|()| entry(intern(name))))
}

fn entry(name: &'static str) -> &'static QdiscEntry {
    static ENTRIES: Mutex<BTreeMap<&'static str, &'static QdiscEntry>> =
        Mutex::new(BTreeMap::new());
    let mut entries = ENTRIES.lock().unwrap_or_else(PoisonError::into_inner);
    entries.entry(name).or_insert_with(|| {
        let class: &'static PythonClass = Box::leak(Box::new(PythonClass { name }));
        Box::leak(Box::new(QdiscEntry::external(name, "a discipline written in Python", class)))
    })
}

/// The part of the package that knows the classes.
pub fn module(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import("sojourn.custom.border")
}

/// Converts an exception of Python to a refusal: its message, and its type if it is not InputError.
fn error_of(error: &PyErr) -> Error {
    Python::attach(|py| {
        if error.is_instance_of::<crate::InputError>(py) {
            let text = error.value(py).to_string();
            let (path, rest) = text.split_once(": ").unwrap_or(("", &text));
            let is_path = !path.is_empty() && path.chars().all(|c| c.is_alphanumeric() || c == '_');
            return if is_path { Error::new(rest).at(path) } else { Error::new(text) };
        }
        let place = module(py).and_then(|m| m.call_method1("place_of", (error.traceback(py),)));
        let place = place.map(|p| p.to_string()).unwrap_or_default();
        Error::new(format!("{error}{place}"))
    })
}

/// Calls `function` of Python for the version of the class `name` that `settings` select.
fn describe<'py, T: FromPyObjectOwned<'py>>(
    py: Python<'py>,
    function: &str,
    name: &str,
    settings: &[(&str, Setting<'_>)],
) -> Result<T> {
    let version = settings.iter().find(|(key, _)| *key == SOURCE);
    let version = version.map(|(_, value)| value.to_string().trim_matches('"').to_string());
    let described = module(py).and_then(|m| m.call_method1(function, (name, version)));
    described.and_then(|d| d.extract().map_err(Into::into)).map_err(|e| error_of(&e))
}

/// Class of a discipline in Python; its versions (after edits) share the name.
#[derive(Debug)]
struct PythonClass {
    name: &'static str,
}

impl PythonClass {
    /// Returns the parameters of the version of the class that `settings` name.
    fn params(&self, settings: &[(&str, Setting<'_>)]) -> Result<QueueParams> {
        let described = Python::attach(|py| describe(py, "describe", self.name, settings))?;
        let inner = ClassParams::new(self.name, described)?;
        let mut params = QueueParams { outer: SingleParams::default(), inner };
        settings.iter().try_for_each(|(name, value)| params.set(name, *value))?;
        Ok(params)
    }
}

/// Builds the queue of a class.
fn queue(params: &QueueParams, env: &Env) -> Result<Box<dyn Served + Send>> {
    Ok(if params.inner.compiled {
        Box::new(SingleQueue::<PythonAqm<CompiledMethods>>::build(params, env)?)
    } else {
        Box::new(SingleQueue::<PythonAqm<PlainMethods>>::build(params, env)?)
    })
}

impl External for PythonClass {
    fn build(&self, settings: &[(&str, Setting<'_>)], env: &Env) -> Result<Built> {
        let params = self.params(settings)?;
        let rows = params.table();
        match queue(&params, env) {
            Ok(qdisc) => Ok(Built { qdisc, params: rows }),
            // A scenario was validated by a first build. If a later one fails, the run ends with
            // the exception, and has a plain queue until then.
            Err(error) if failure::is_running() => {
                failure::report(PyException::new_err(format!("{}: {error}", self.name)));
                let plain = Combined { outer: params.outer, inner: Nothing };
                let qdisc = Box::new(SingleQueue::<NoAqm>::build(&plain, env)?);
                Ok(Built { qdisc, params: rows })
            }
            Err(error) => Err(error),
        }
    }

    fn check(&self, settings: &[(&str, Setting<'_>)]) -> Result<()> {
        self.params(settings).map(drop)
    }
}

/// Returns the address of the function by which native code draws random numbers.
#[pyfunction]
pub fn draw_address() -> usize {
    let draw: extern "C" fn(usize) -> f64 = borrowed::draw;
    draw as usize
}
