//! Python bindings: the module `sojourn._sojourn`. Input is JSON text and arrays, output JSON text
//! and arrays. The GIL is released while Rust works.
#![deny(unsafe_code)]

mod captures;
mod custom;
mod embed;

#[cfg(target_os = "linux")]
mod live;
#[cfg(target_os = "linux")]
mod network;
mod scenario;
mod script;
mod simulation;
mod warm;
mod wire;

use numpy::{IntoPyArray, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::create_exception;
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Map, Value as Json};
use sojourn_aqm::{Bytes, Ecn, Rate, Span, Time};
use sojourn_sim::config::LinkConfig;
use sojourn_sim::{Arrival, Column, Decision, Progress, ReplayOptions};

create_exception!(
    sojourn,
    InputError,
    PyValueError,
    "Invalid input; the message is one line that starts with the path of the value."
);

fn refused(error: sojourn_aqm::Error) -> PyErr {
    InputError::new_err(error.to_string())
}

/// Asks Python whether to continue; an error means no.
fn may_continue(py: Python<'_>, progress: Option<&Py<PyAny>>, so_far: Progress) -> PyResult<bool> {
    py.check_signals()?;
    let Some(progress) = progress else { return Ok(true) };
    let answer = progress.bind(py).call1((so_far.share, so_far.packets))?;
    Ok(answer.extract::<bool>().unwrap_or(true))
}

/// Runs `work`, without the GIL unless `keeps_gil`: work that mostly calls Python is faster with
/// it. It calls its argument now and then to ask whether to continue, and stops if it logs packets
/// (`logs`) and the logs do not fit into memory.
///
/// # Errors
/// The exception of a discipline that is written in Python, of `progress`, InputError for the logs,
/// or KeyboardInterrupt if a signal stopped the run.
fn interruptible<T: Send>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    keeps_gil: bool,
    logs: bool,
    work: impl FnOnce(&mut dyn FnMut(Progress) -> bool) -> Option<T> + Send,
) -> PyResult<T> {
    let mut error = None;
    let run = || {
        work(&mut |so_far| {
            let go_on = || {
                if logs {
                    sojourn_sim::Scenario::packet_log_fits(so_far.packets).map_err(refused)?;
                }
                Python::attach(|py| may_continue(py, progress, so_far))
            };
            !custom::failed()
                && go_on().unwrap_or_else(|e| {
                    error = Some(e);
                    false
                })
        })
    };
    custom::begin();
    let done = if keeps_gil { run() } else { py.detach(run) };
    if let Some(failure) = custom::finish() {
        return Err(failure);
    }
    done.ok_or_else(|| error.unwrap_or_else(|| PyKeyboardInterrupt::new_err("stopped")))
}

/// Moves a column into an array without copying.
fn array(py: Python<'_>, column: Column) -> Bound<'_, PyAny> {
    match column {
        Column::F64(v) => v.into_pyarray(py).into_any(),
        Column::U64(v) => v.into_pyarray(py).into_any(),
        Column::U32(v) => v.into_pyarray(py).into_any(),
        Column::U8(v) => v.into_pyarray(py).into_any(),
        Column::Bool(v) => v.into_pyarray(py).into_any(),
        other => unreachable!("{other:?} has no NumPy type"),
    }
}

/// Converts four columns to arrivals.
///
/// # Errors
/// If the columns differ in length, or a time is negative.
fn arrivals(
    t_ns: &PyReadonlyArray1<'_, i64>,
    flow: &PyReadonlyArray1<'_, u32>,
    size: &PyReadonlyArray1<'_, u32>,
    ecn: &PyReadonlyArray1<'_, u8>,
    headers: Option<&PyReadonlyArray2<'_, i64>>,
) -> PyResult<Vec<Arrival>> {
    let (t_ns, flow) = (t_ns.as_array(), flow.as_array());
    let (size, ecn) = (size.as_array(), ecn.as_array());
    let headers = headers.map(|columns| columns.as_array());
    let fit = headers.as_ref().is_none_or(|columns| columns.dim() == (4, t_ns.len()));
    if [flow.len(), size.len(), ecn.len()] != [t_ns.len(); 3] || !fit {
        return Err(InputError::new_err("the columns differ in length"));
    }
    let header = |i| headers.as_ref().map_or([0, 0, 0, -1], |h| [0, 1, 2, 3].map(|k| h[[k, i]]));
    t_ns.iter()
        .zip(flow.iter().zip(size.iter().zip(ecn.iter())))
        .enumerate()
        .map(|(i, (&t, (&flow, (&len, &ecn))))| {
            let at =
                u64::try_from(t).map_err(|_| InputError::new_err("t_ns: a time is negative"))?;
            let ecn = Ecn::from_bits(ecn);
            let [dscp, sender, receiver, ack] = header(i);
            let out_of_range = |_| InputError::new_err("headers: a number is out of range");
            let hosts = [sender, receiver].map(u32::try_from);
            let hosts = [hosts[0].map_err(out_of_range)?, hosts[1].map_err(out_of_range)?];
            let class = u16::try_from(dscp).map_err(out_of_range)?;
            let ack = u32::try_from(ack).ok();
            Ok(Arrival { at: Time(at), flow, len, ecn, class, hosts, ack })
        })
        .collect()
}

/// Parses a JSON table of links.
fn links(links_json: &str) -> PyResult<Vec<LinkConfig>> {
    let json = serde_json::from_str(links_json)
        .map_err(|e| InputError::new_err(format!("not valid JSON: {e}")))?;
    sojourn_sim::config::parse_links_with(&json, &custom::registries().qdiscs).map_err(refused)
}

/// Converts to nanoseconds, -1 for no time.
fn or_minus_one(times: &[Option<Time>]) -> Vec<i64> {
    times.iter().map(|t| t.map_or(-1, |t| t.0.cast_signed())).collect()
}

/// Converts nanoseconds to times; negative ones are left out.
#[expect(clippy::needless_pass_by_value, reason = "mapped over an option of the caller")]
fn times(column: PyReadonlyArray1<'_, i64>) -> Vec<Time> {
    column.as_array().iter().filter_map(|ns| u64::try_from(*ns).ok()).map(Time).collect()
}

/// Recorded decisions from a column of drops and one of marks.
fn decisions(
    dropped: &PyReadonlyArray1<'_, u8>,
    marked: Option<&PyReadonlyArray1<'_, u8>>,
) -> Vec<Decision> {
    let marked = marked.map(|m| m.as_array());
    let marked = |i| marked.and_then(|m| m.get(i).copied()).unwrap_or(0) != 0;
    let both = |(i, d): (usize, &u8)| Decision { dropped: *d != 0, marked: marked(i) };
    dropped.as_array().iter().enumerate().map(both).collect()
}

/// Compiled part of the Python package.
#[pymodule]
mod _sojourn {
    use super::*;

    #[pymodule_export]
    use super::InputError;

    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use super::live::{Pump, check_sample};

    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use super::network::{Network, enter_network};

    #[pymodule_export]
    use super::captures::{read_capture, simulate_captured};

    #[pymodule_export]
    use super::custom::{ArrivalsView, ConnectionView, PacketView, QueueStateView, draw_address};

    #[pymodule_export]
    use super::embed::{Qdisc, QueuedPacket, TimedLink};

    #[pymodule_export]
    use super::scenario::ParsedScenario;

    #[pymodule_export]
    use super::script::Script;

    #[pymodule_export]
    use super::simulation::Simulation;

    #[pymodule_export]
    use super::warm::WarmState;

    #[pymodule_export]
    use super::wire::wire_arrivals;

    /// Returns the version of sojourn.
    #[pyfunction]
    fn version() -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    /// Returns the engine version: the package version and a hash of the sources.
    #[pyfunction]
    fn engine() -> &'static str {
        env!("SOJOURN_ENGINE")
    }

    /// Returns the name of `known` that `name` probably means, None if none is near.
    #[pyfunction]
    fn nearest(name: &str, known: Vec<String>) -> Option<String> {
        sojourn_aqm::error::nearest(name, known.iter().map(String::as_str)).map(String::from)
    }

    /// Validates a part of a scenario: `kind` is qdisc, tcp, source, link or flow.
    #[pyfunction]
    fn check(kind: &str, json: &str) -> PyResult<()> {
        let json = serde_json::from_str(json)
            .map_err(|e| InputError::new_err(format!("not valid JSON: {e}")))?;
        sojourn_sim::check_with(&custom::registries(), kind, &json).map_err(refused)
    }

    /// Validates a table of links and returns it as canonical JSON.
    #[pyfunction]
    fn canonical_links(links_json: &str) -> PyResult<String> {
        let links = super::links(links_json)?.into_iter();
        let links: Map<String, Json> =
            links.map(|l| (l.name().to_string(), l.canonical())).collect();
        Ok(Json::from(links).to_string())
    }

    /// Splits the text `name(key=value, ...)`, or a line of tc (`tc: NAME WORDS`), into the name
    /// and its parameters, values as text.
    #[pyfunction]
    fn call(text: &str) -> PyResult<(String, Vec<(String, String)>)> {
        if let Some(line) = sojourn_aqm::tc::without_prefix(text) {
            let discipline = sojourn_aqm::tc::parse(line).map_err(refused)?;
            return Ok((discipline.name.into(), discipline.settings));
        }
        let (name, settings) = sojourn_sim::internals::parse_call(text).map_err(refused)?;
        let settings = settings.into_iter().map(|(key, value)| (key.into(), value.into()));
        Ok((name.into(), settings.collect()))
    }

    /// Parses a qdisc of tc with its words; returns discipline and lost words as JSON.
    #[pyfunction]
    fn tc_parse(text: &str) -> PyResult<String> {
        sojourn_sim::internals::tc::parse(text).map(|json| json.to_string()).map_err(refused)
    }

    /// Reads commands or output of tc; returns the links as JSON.
    #[pyfunction]
    #[pyo3(signature = (text, class=None, speed=None))]
    fn tc_import(text: &str, class: Option<&str>, speed: Option<&str>) -> PyResult<String> {
        sojourn_sim::internals::import_tc(text, class, speed)
            .map(|json| json.to_string())
            .map_err(refused)
    }

    /// Executes commands, or reads output of tc; returns the qdiscs and classes as JSON.
    #[pyfunction]
    fn tc_state(text: &str) -> PyResult<String> {
        sojourn_sim::internals::tc::state(text).map(|json| json.to_string()).map_err(refused)
    }

    /// Translates the output of `tc -j qdisc show` to lines of `tc qdisc show`.
    #[pyfunction]
    fn tc_lines(text: &str) -> PyResult<String> {
        sojourn_sim::internals::tc::lines(text).map_err(refused)
    }

    /// Translates a discipline to the nearest qdisc of Linux; returns its texts as JSON.
    #[pyfunction]
    #[pyo3(signature = (qdisc_json, rate=None, handle=1))]
    fn tc_export(qdisc_json: &str, rate: Option<&str>, handle: u16) -> PyResult<String> {
        let json = serde_json::from_str(qdisc_json)
            .map_err(|e| InputError::new_err(format!("not valid JSON: {e}")))?;
        sojourn_sim::internals::tc::export(&json, rate, handle)
            .map(|json| json.to_string())
            .map_err(refused)
    }

    /// Returns the tables of all qdiscs of tc as JSON.
    #[pyfunction]
    fn tc_tables() -> String {
        sojourn_sim::internals::tc::tables().to_string()
    }

    /// Returns all disciplines, TCPs and sources with their parameters as JSON.
    #[pyfunction]
    fn specs() -> String {
        sojourn_sim::registry_json().to_string()
    }

    /// Returns all access lines as JSON: name, about, model, omits, rows and links.
    #[pyfunction]
    fn access_lines() -> String {
        sojourn_sim::lines::LINES
            .iter()
            .map(sojourn_sim::lines::Line::json)
            .collect::<Json>()
            .to_string()
    }

    /// Returns the links of the access line of this name as JSON.
    ///
    /// # Errors
    /// InputError if there is none.
    #[pyfunction]
    fn line_links(name: &str) -> PyResult<String> {
        let line = sojourn_sim::lines::line(name).map_err(refused)?;
        Ok(line.links().to_string())
    }

    /// Send recorded arrivals through one link; -1 stands for no time. `timer_phase` is the time of
    /// the first periodic update of the discipline (a duration with unit), None for one period
    /// after the first arrival. `xorshift32` is the seed of that generator, None for the usual
    /// random numbers. `htb_burst` is the burst of a token bucket in place of the link, and
    /// `departures_ns` are recorded departures, to which its own are delayed by up to 1 us.
    /// `updates_ns` are the recorded times of the periodic updates of the discipline, in place of
    /// its own. With `no_gauges`, internal variables are not read.
    /// `headers` has four rows: DSCP, number of the sender, of the receiver, and acknowledgement
    /// number (-1 for none). `progress` is as for a simulation, with the fraction of arrivals
    /// processed.
    #[pyfunction]
    #[pyo3(signature = (t_ns, flow, size, ecn, qdisc_json, rate, follow_dropped, follow_marked,
                        progress, timer_phase=None, xorshift32=None, htb_burst=None,
                        headers=None, departures_ns=None, updates_ns=None, no_gauges=false))]
    #[expect(clippy::too_many_arguments, reason = "Python passes columns separately")]
    fn replay<'py>(
        py: Python<'py>,
        t_ns: PyReadonlyArray1<'py, i64>,
        flow: PyReadonlyArray1<'py, u32>,
        size: PyReadonlyArray1<'py, u32>,
        ecn: PyReadonlyArray1<'py, u8>,
        qdisc_json: &str,
        rate: &str,
        follow_dropped: Option<PyReadonlyArray1<'py, u8>>,
        follow_marked: Option<PyReadonlyArray1<'py, u8>>,
        progress: Option<Py<PyAny>>,
        timer_phase: Option<&str>,
        xorshift32: Option<u32>,
        htb_burst: Option<&str>,
        headers: Option<PyReadonlyArray2<'py, i64>>,
        departures_ns: Option<PyReadonlyArray1<'py, i64>>,
        updates_ns: Option<PyReadonlyArray1<'py, i64>>,
        no_gauges: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let rate: Rate = rate.parse().map_err(|e: sojourn_aqm::Error| refused(e.at("rate")))?;
        let qdisc = serde_json::from_str(qdisc_json)
            .map_err(|e| InputError::new_err(format!("qdisc: not valid JSON: {e}")))?;
        let first_update = timer_phase
            .map(|text| text.parse::<Span>().map(|phase| Time::ZERO + phase))
            .transpose()
            .map_err(|e| refused(e.at("timer_phase")))?;
        let htb_burst = htb_burst
            .map(str::parse::<Bytes>)
            .transpose()
            .map_err(|e| refused(e.at("htb_burst")))?;
        let arrivals = arrivals(&t_ns, &flow, &size, &ecn, headers.as_ref())?;
        let (departures, updates) = (departures_ns.map(times), updates_ns.map(times));
        let follow = follow_dropped.map(|dropped| decisions(&dropped, follow_marked.as_ref()));
        let registry = super::custom::registries().qdiscs;
        let result = interruptible(py, progress.as_ref(), false, false, |ask| {
            let follow = follow.as_deref();
            let departures = departures.as_deref();
            let updates = updates.as_deref();
            let registry = Some(&registry);
            let options = ReplayOptions {
                follow,
                first_update,
                xorshift32,
                htb_burst,
                departures,
                updates,
                registry,
                no_gauges,
            };
            sojourn_sim::replay(&arrivals, &qdisc, rate, options, ask).transpose()
        })?;
        let out = result.map_err(refused)?;

        let columns = PyDict::new(py);
        let decided =
            |what: fn(&Decision) -> bool| Column::Bool(out.decisions.iter().map(what).collect());
        columns.set_item("dropped", array(py, decided(|d| d.dropped)))?;
        columns.set_item("marked", array(py, decided(|d| d.marked)))?;
        let ecn_out = out.ecn_out.iter().map(|ecn| *ecn as u8).collect();
        columns.set_item("ecn_out", array(py, Column::U8(ecn_out)))?;
        columns.set_item("t_drop_ns", or_minus_one(&out.dropped_at).into_pyarray(py))?;
        columns.set_item("t_deq_ns", or_minus_one(&out.sent_at).into_pyarray(py))?;
        for (name, values) in out.gauges {
            columns.set_item(format!("gauge:{name}"), values.into_pyarray(py))?;
        }
        if follow.is_some() {
            columns.set_item("diverged", out.diverged.into_pyarray(py))?;
        }
        Ok(columns)
    }
}
