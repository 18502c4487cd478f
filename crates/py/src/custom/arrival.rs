//! A flow as a traffic source that is written in Python sees it.

use super::borrowed::Slot;
use super::connection::number;
use super::records::ArrivalRecord;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use sojourn_aqm::Time;
use sojourn_aqm::cast;
use std::sync::atomic::{AtomicU64, Ordering};

/// Latest time of an arrival, ns: far after the longest run. `sojourn.custom.native` has the same.
const LATEST: u64 = 1 << 62;

/// Flow as a traffic source sees it. Times are in nanoseconds.
#[pyclass(frozen, name = "Arrivals", module = "sojourn._sojourn")]
#[derive(Debug)]
pub struct ArrivalsView {
    now: AtomicU64,
    largest: u64,
    /// Random number generator of the source.
    pub(super) random: Slot,
}

impl ArrivalsView {
    /// View of a source whose arrivals have at most `largest` bytes.
    pub(super) fn new(largest: u64) -> ArrivalsView {
        ArrivalsView { now: AtomicU64::new(0), largest, random: Slot::default() }
    }

    pub(super) fn copied(&self) -> ArrivalsView {
        let copy = ArrivalsView::new(self.largest);
        copy.set_now(Time(self.now()));
        copy
    }

    /// Time of the previous arrival, ns.
    pub(super) fn now_ns(&self) -> u64 {
        self.now()
    }

    /// The flow as compiled code sees it.
    pub(super) fn record(&self) -> ArrivalRecord {
        let (now, largest) = (self.now().cast_signed(), self.largest.cast_signed());
        ArrivalRecord { now, largest, ..ArrivalRecord::default() }
    }

    pub(super) fn set_now(&self, now: Time) {
        self.now.store(now.0, Ordering::Relaxed);
    }

    /// Reads what the method returned: time and size, or None.
    pub(super) fn arrival(&self, answer: &Bound<'_, PyAny>) -> PyResult<Option<(Time, u64)>> {
        if answer.is_none() {
            return Ok(None);
        }
        let Ok((time, size)) = answer.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() else {
            let text = format!(
                "returned {}, must return (time, size) in ns and bytes, or None",
                answer.repr()?
            );
            return Err(PyTypeError::new_err(text));
        };
        let (now, largest) = (self.now(), self.largest);
        let at =
            whole("time", &time)?.filter(|at| (now..=LATEST).contains(at)).ok_or_else(|| {
                let text =
                    "the time of an arrival is not before the previous arrival, or the start";
                PyValueError::new_err(format!("time is {time} ns, and now is {now} ns: {text}"))
            })?;
        let bytes =
            whole("size", &size)?.filter(|n| (1..=largest).contains(n)).ok_or_else(|| {
                PyValueError::new_err(format!("size is {size}, allowed: 1 to {largest} bytes"))
            })?;
        Ok(Some((Time(at), bytes)))
    }
}

/// Reads a number without its fraction; `None` if it is negative, too large or not finite.
fn whole(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
    let number = number(name, value)?;
    let read = value.extract::<u64>().unwrap_or_else(|_| cast::trunc(number));
    Ok((number.is_finite() && number >= 0.0).then_some(read))
}

#[pymethods]
impl ArrivalsView {
    /// Time of the previous arrival, ns; at first the start of the source.
    #[getter]
    fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    /// Draws a random number in [0, 1) from the stream of the source.
    fn random(&self, py: Python<'_>) -> PyResult<f64> {
        self.random
            .draw(py)
            .ok_or_else(|| PyRuntimeError::new_err("random() works only in next_arrival"))
    }
}
