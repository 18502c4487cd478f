//! Methods of a congestion control that is written in Python, and what each sees.

use super::connection::ConnectionView;
use super::records::ConnectionRecord;
use super::values::Values;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};
use sojourn_aqm::HopTelemetry;

/// Methods of a congestion control.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    Established,
    Ack,
    Recovered,
    Loss,
    Mark,
    Timeout,
    Telemetry,
    Delivered,
    EcnFeedback,
    RateSample,
}

/// Names of the methods, in the order of [`Hook`].
pub const HOOKS: [&str; 10] = [
    "on_established",
    "on_ack",
    "on_recovered",
    "on_loss",
    "on_mark",
    "on_timeout",
    "on_telemetry",
    "on_delivered",
    "on_ecn_feedback",
    "on_rate_sample",
];

/// Class `LinkTelemetry`.
static LINK_TELEMETRY: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// Connection and telemetry that a method sees.
#[derive(Clone, Copy)]
pub struct Seen<'a> {
    pub values: Values,
    /// State of the links of the path, for [`Hook::Telemetry`].
    pub links: &'a [HopTelemetry],
}

impl From<Values> for Seen<'_> {
    fn from(values: Values) -> Self {
        Seen { values, links: &[] }
    }
}

impl Seen<'_> {
    /// Connection as compiled code sees it.
    pub fn record(&self) -> ConnectionRecord {
        let links = i64::try_from(self.links.len()).expect("there are at most eight");
        ConnectionRecord { links, ..self.values.record() }
    }

    /// Arguments of a method in Python.
    pub fn arguments<'py>(
        &self,
        py: Python<'py>,
        connection: &Py<ConnectionView>,
        hook: Hook,
    ) -> PyResult<Bound<'py, PyTuple>> {
        if hook != Hook::Telemetry {
            return PyTuple::new(py, [connection]);
        }
        let class = LINK_TELEMETRY.import(py, "sojourn.custom.telemetry", "LinkTelemetry")?;
        let object = |link: &HopTelemetry| {
            let HopTelemetry { at, sent_bytes, queue_bytes, packet_bytes, rate } = *link;
            class.call1((at.0, sent_bytes, queue_bytes, packet_bytes, rate.0))
        };
        let links = self.links.iter().map(object).collect::<PyResult<Vec<_>>>()?;
        (connection, PyTuple::new(py, links)?).into_pyobject(py)
    }
}
