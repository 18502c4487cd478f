//! A TCP connection as a congestion control that is written in Python sees it.

use super::borrowed::Slot;
use super::records::ConnectionRecord;
use pyo3::exceptions::{PyAttributeError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBool;
use sojourn_aqm::{Snapshot, cast};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Largest window and threshold, bytes.
const MOST_BYTES: u64 = 1 << 40;

/// Largest pacing rate, bit/s.
const MOST_BPS: f64 = 1e14;

/// Attributes that a method may set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Snapshot)]
pub enum Access {
    /// Nothing: no method is being called.
    #[default]
    Outside,
    /// Window, threshold and pacing rate.
    Window,
    /// Threshold and pacing rate.
    Threshold,
    /// Window and pacing rate, with which a connection starts.
    Start,
}

/// A count as compiled code sees it.
fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// State of a connection. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default, Snapshot)]
pub struct Values {
    pub access: Access,
    /// True if the flow has a pacer.
    pub paced: bool,
    /// Length of a full packet, bytes.
    pub packet: u64,
    pub now: u64,
    pub cwnd: u64,
    pub ssthresh: u64,
    pub mss: u64,
    pub acked: u64,
    pub flight: u64,
    pub rtt: Option<u64>,
    pub srtt: Option<u64>,
    pub min_rtt: Option<u64>,
    pub after_timeout: bool,
    /// Rate of the pacer, bit/s.
    pub pacing_rate: Option<f64>,
    /// Sequence numbers of the last ack with telemetry or ECN feedback.
    pub snd_una: u64,
    pub snd_nxt: u64,
    /// Path of the last telemetry.
    pub path: u64,
    /// True if the class defines `on_ecn_feedback`.
    pub reads_marks: bool,
    /// Payload that the last ack reports as marked, bytes.
    pub marked: u64,
}

impl Values {
    /// The connection as compiled code sees it.
    pub fn record(&self) -> ConnectionRecord {
        let optional = |time: Option<u64>| time.map_or(-1, u64::cast_signed);
        ConnectionRecord {
            now: self.now.cast_signed(),
            cwnd: signed(self.cwnd),
            ssthresh: signed(self.ssthresh),
            mss: self.mss.cast_signed(),
            acked: self.acked.cast_signed(),
            flight: self.flight.cast_signed(),
            rtt: optional(self.rtt),
            srtt: optional(self.srtt),
            min_rtt: optional(self.min_rtt),
            packet: self.packet.cast_signed(),
            snd_una: self.snd_una.cast_signed(),
            snd_nxt: self.snd_nxt.cast_signed(),
            path: self.path.cast_signed(),
            marked: self.marked.cast_signed(),
            pacing_rate: self.pacing_rate.unwrap_or(f64::NAN),
            rng: 0,
            error: 0,
            access: match self.access {
                Access::Start => 3,
                Access::Window => 2,
                Access::Threshold => 1,
                Access::Outside => 0,
            },
            links: 0,
            after_timeout: self.after_timeout,
            paced: self.paced,
        }
    }

    /// The connection after compiled code has changed this one.
    pub fn changed(self, record: &ConnectionRecord) -> Values {
        let bytes = |before: u64, after: i64| {
            let same = signed(before) == after;
            if same { before } else { after.cast_unsigned() }
        };
        let rate = record.pacing_rate;
        Values {
            cwnd: bytes(self.cwnd, record.cwnd),
            ssthresh: bytes(self.ssthresh, record.ssthresh),
            pacing_rate: (!rate.is_nan()).then_some(rate),
            ..self
        }
    }
}

/// Connection as a congestion control sees it. All times are in nanoseconds.
#[pyclass(frozen, name = "Connection", module = "sojourn._sojourn")]
#[derive(Debug, Default)]
pub struct ConnectionView {
    values: Mutex<Values>,
    /// Random number generator of the flow.
    pub(super) random: Slot,
}

impl ConnectionView {
    pub fn values(&self) -> MutexGuard<'_, Values> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a number of bytes that a method sets.
    fn bytes(&self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
        let least = self.values().mss;
        let number = number(name, value)?;
        let read = value.extract().unwrap_or_else(|_| cast::trunc(number));
        if number.is_finite() && number >= least as f64 && read <= MOST_BYTES {
            return Ok(read);
        }
        let text =
            format!("{name} is {value}, allowed: {least} (one segment, mss) to {MOST_BYTES} bytes");
        Err(PyValueError::new_err(text))
    }
}

/// Reads a number; a flag is none.
pub(super) fn number(name: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    let read = value.extract::<f64>();
    let huge = value.extract::<i128>().is_ok() || value.is_instance_of::<pyo3::types::PyInt>();
    match read {
        Ok(x) if !value.is_instance_of::<PyBool>() => Ok(x),
        Err(_) if huge => Ok(f64::INFINITY),
        _ => {
            let text = format!("{name} is {}, must be a number", value.repr()?);
            Err(PyTypeError::new_err(text))
        }
    }
}

#[pymethods]
impl ConnectionView {
    /// Simulated time, ns.
    #[getter]
    fn now(&self) -> u64 {
        self.values().now
    }

    /// Congestion window, bytes.
    #[getter]
    fn cwnd(&self) -> u64 {
        self.values().cwnd
    }

    #[setter]
    fn set_cwnd(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let access = self.values().access;
        if !matches!(access, Access::Window | Access::Start) {
            let text = "cwnd can be set in on_ack, on_delivered, on_ecn_feedback, on_established, \
                        on_recovered and on_telemetry only; after a loss, mark or timeout the sender sets it \
                        itself, from ssthresh";
            return Err(PyAttributeError::new_err(text));
        }
        let cwnd = self.bytes("cwnd", value)?;
        self.values().cwnd = cwnd;
        Ok(())
    }

    /// Slow-start threshold, bytes.
    #[getter]
    fn ssthresh(&self) -> u64 {
        self.values().ssthresh
    }

    #[setter]
    fn set_ssthresh(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let access = self.values().access;
        if !matches!(access, Access::Window | Access::Threshold) {
            let text = "ssthresh can be set in on_ack, on_delivered, on_ecn_feedback, on_loss, \
                        on_mark, on_recovered, on_telemetry and on_timeout only";
            return Err(PyAttributeError::new_err(text));
        }
        let ssthresh = self.bytes("ssthresh", value)?;
        self.values().ssthresh = ssthresh;
        Ok(())
    }

    /// Rate of the pacer, bit/s of payload; None if it follows from the window.
    #[getter]
    fn pacing_rate(&self) -> Option<f64> {
        self.values().pacing_rate
    }

    #[setter]
    fn set_pacing_rate(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let Values { access, paced, .. } = *self.values();
        if access == Access::Outside || !paced {
            let text = if paced { "pacing_rate can be set in methods only" } else { UNPACED };
            return Err(PyAttributeError::new_err(text));
        }
        let rate = if value.is_none() { None } else { Some(number("pacing_rate", value)?) };
        if rate.is_some_and(|rate| !(1.0..=MOST_BPS).contains(&rate)) {
            let text = format!("pacing_rate is {value}, allowed: 1 to 1e14 bit/s, or None");
            return Err(PyValueError::new_err(text));
        }
        self.values().pacing_rate = rate;
        Ok(())
    }

    /// Payload of a full segment, bytes.
    #[getter]
    fn mss(&self) -> u64 {
        self.values().mss
    }

    /// Length of a full packet, bytes.
    #[getter]
    fn packet(&self) -> u64 {
        self.values().packet
    }

    /// Lowest sequence number that is not acknowledged, with the last ack with telemetry or ECN
    /// feedback.
    #[getter]
    fn snd_una(&self) -> u64 {
        self.values().snd_una
    }

    /// Next sequence number to send, at the last ack with telemetry or ECN feedback.
    #[getter]
    fn snd_nxt(&self) -> u64 {
        self.values().snd_nxt
    }

    /// Key of the path of the last telemetry: packets with the same key crossed the same links.
    #[getter]
    fn path(&self) -> u64 {
        self.values().path
    }

    /// Payload that the last ack reports as marked, bytes; needs the method `on_ecn_feedback`.
    #[getter]
    fn marked(&self) -> PyResult<u64> {
        let Values { reads_marks, marked, .. } = *self.values();
        only_with("on_ecn_feedback", reads_marks, "marked", marked)
    }

    /// Payload newly acknowledged (in `on_delivered` newly delivered), bytes; 0 in other methods.
    #[getter]
    fn acked(&self) -> u64 {
        self.values().acked
    }

    /// Payload in flight, bytes; in `on_ack` and `on_delivered`, before the ack.
    #[getter]
    fn flight(&self) -> u64 {
        self.values().flight
    }

    /// Round-trip time that this ack measured, ns; None if it measured none.
    #[getter]
    fn rtt(&self) -> Option<u64> {
        self.values().rtt
    }

    /// Smoothed round-trip time, ns; None before the first sample.
    #[getter]
    fn srtt(&self) -> Option<u64> {
        self.values().srtt
    }

    /// Shortest round-trip time of the connection, ns; None before the first sample.
    #[getter]
    fn min_rtt(&self) -> Option<u64> {
        self.values().min_rtt
    }

    /// True while data that a timeout declared lost is being retransmitted.
    #[getter]
    fn after_timeout(&self) -> bool {
        self.values().after_timeout
    }

    /// True if the window was in use before the ack (in slow start: more than half of it). If
    /// False, the application or the receive window limited the sender.
    #[getter]
    fn window_was_full(&self) -> bool {
        let v = *self.values();
        let half = v.cwnd < v.ssthresh && 2 * v.flight > v.cwnd;
        half || v.flight + v.mss >= v.cwnd
    }

    /// Draws a random number in [0, 1) from the stream of the flow.
    fn random(&self, py: Python<'_>) -> PyResult<f64> {
        self.random.draw(py).ok_or_else(|| {
            let text = "random() works only in methods other than start and on_established";
            PyRuntimeError::new_err(text)
        })
    }
}

/// Returns the value of an attribute that only classes with a method have.
fn only_with<T>(method: &str, defined: bool, attribute: &str, value: T) -> PyResult<T> {
    let text = || format!("{attribute} needs the method {method} in the class");
    if defined { Ok(value) } else { Err(PyAttributeError::new_err(text())) }
}

const UNPACED: &str = "pacing_rate needs the parameter pacing=True, or paced = True in the class";
