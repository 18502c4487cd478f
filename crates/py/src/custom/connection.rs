//! A TCP connection as a congestion control that is written in Python sees it.

use super::borrowed::Slot;
use super::values::{Access, RateValues, Values};
use pyo3::exceptions::{PyAttributeError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBool;
use sojourn_aqm::cast;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Largest window and threshold, bytes.
const MOST_BYTES: u64 = 1 << 40;

/// Largest pacing rate, bit/s.
const MOST_BPS: f64 = 1e14;

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

    /// Returns an attribute of the last delivery rate sample.
    fn rate<T>(&self, attribute: &str, value: impl Fn(&RateValues) -> T) -> PyResult<T> {
        let rates = self.values().rates;
        only_with("on_rate_sample", rates.is_read, attribute, value(&rates))
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
        if !matches!(access, Access::Window | Access::RateSample | Access::Start) {
            let text = "cwnd can be set in on_ack, on_delivered, on_ecn_feedback, on_established, \
                        on_rate_sample, on_recovered and on_telemetry only; after a loss, mark or \
                        timeout the sender sets it itself, from ssthresh";
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
        if !matches!(access, Access::Window | Access::RateSample | Access::Threshold) {
            let text = "ssthresh can be set in on_ack, on_delivered, on_ecn_feedback, on_loss, \
                        on_mark, on_rate_sample, on_recovered, on_telemetry and on_timeout only";
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

    /// Payload delivered in this connection, bytes.
    #[getter]
    fn delivered(&self) -> PyResult<u64> {
        self.rate("delivered", |rates| rates.delivered)
    }

    /// Payload that was delivered when the segment of the sample was sent, bytes; 0 if the ack
    /// delivered nothing.
    #[getter]
    fn prior_delivered(&self) -> PyResult<u64> {
        self.rate("prior_delivered", |rates| rates.prior_delivered)
    }

    /// Delivery rate that the ack measured, bit/s of payload; None if it measured none.
    #[getter]
    fn delivery_rate(&self) -> PyResult<Option<f64>> {
        self.rate("delivery_rate", |rates| rates.delivery_rate)
    }

    /// Time over which the delivery rate was measured, ns.
    #[getter]
    fn interval(&self) -> PyResult<u64> {
        self.rate("interval", |rates| rates.interval)
    }

    /// True if the sender was application-limited when the segment of the sample was sent.
    #[getter]
    fn is_app_limited(&self) -> PyResult<bool> {
        self.rate("is_app_limited", |rates| rates.is_app_limited)
    }

    /// True if the sender is application-limited.
    #[getter]
    fn app_limited(&self) -> PyResult<bool> {
        self.rate("app_limited", |rates| rates.app_limited || rates.limits)
    }

    #[setter]
    fn set_app_limited(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.values().access != Access::RateSample {
            return Err(PyAttributeError::new_err("app_limited can be set in on_rate_sample only"));
        }
        if !matches!(value.extract::<bool>(), Ok(true)) {
            let text = format!("app_limited is {}, allowed: True", value.repr()?);
            return Err(PyValueError::new_err(text));
        }
        self.values().rates.limits = true;
        Ok(())
    }

    /// True if an application-limited sender has sent again after nothing was outstanding, until
    /// an ack delivers data.
    #[getter]
    fn idle_restart(&self) -> PyResult<bool> {
        self.rate("idle_restart", |rates| rates.idle_restart)
    }

    /// True in fast recovery.
    #[getter]
    fn in_fast_recovery(&self) -> PyResult<bool> {
        self.rate("in_fast_recovery", |rates| rates.in_fast_recovery)
    }

    /// Payload declared lost in this connection, bytes; 0 without the parameter `rack`.
    #[getter]
    fn lost(&self) -> PyResult<u64> {
        self.rate("lost", |rates| rates.lost)
    }

    /// Payload that this ack showed to be lost, bytes; 0 without the parameter `rack`.
    #[getter]
    fn newly_lost(&self) -> PyResult<u64> {
        self.rate("newly_lost", |rates| rates.newly_lost)
    }

    /// Payload newly acknowledged (in `on_delivered` and `on_rate_sample` newly delivered), bytes;
    /// 0 in methods that no ack causes.
    #[getter]
    fn acked(&self) -> u64 {
        self.values().acked
    }

    /// Payload in flight, bytes; in `on_ack`, `on_delivered` and `on_rate_sample`, before the ack.
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

const UNPACED: &str =
    "pacing_rate needs pacing=True, as a parameter or in the class, or paced = True in the class";
