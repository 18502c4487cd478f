//! Exceptions in disciplines that are written in Python.
//!
//! A discipline cannot return an error to the engine. It reports the exception here and passes
//! every further packet; the run then ends at the next call of its progress callback. A run uses
//! one thread, so that the report is local to the thread.

use pyo3::prelude::*;
use sojourn_aqm::Time;
use std::cell::{Cell, RefCell};

thread_local! {
    static FAILURE: RefCell<Option<PyErr>> = const { RefCell::new(None) };
    static RUNS: Cell<u32> = const { Cell::new(0) };
}

/// A run begins on this thread.
pub fn begin() {
    FAILURE.with_borrow_mut(Option::take);
    RUNS.set(RUNS.get() + 1);
}

/// The run on this thread has ended; returns the exception that ended it.
pub fn finish() -> Option<PyErr> {
    RUNS.set(RUNS.get() - 1);
    FAILURE.with_borrow_mut(Option::take)
}

/// Does `work` of a run that has no progress callback.
///
/// # Errors
/// The exception of a discipline that is written in Python.
pub fn watched<T>(work: impl FnOnce() -> T) -> PyResult<T> {
    begin();
    let done = work();
    finish().map_or(Ok(done), Err)
}

/// True if `error` is an exception of a discipline that is written in Python.
pub fn is_of_user(py: Python<'_>, error: &PyErr) -> bool {
    error.value(py).hasattr("_sojourn_custom").unwrap_or(false)
}

/// True if a discipline of the run on this thread has failed.
pub fn failed() -> bool {
    FAILURE.with_borrow(Option::is_some)
}

/// True if a run is under way on this thread.
pub(super) fn is_running() -> bool {
    RUNS.get() > 0
}

/// Reports an exception. The first one of a run counts.
pub(super) fn report(error: PyErr) {
    FAILURE.with_borrow_mut(|first| {
        first.get_or_insert(error);
    });
}

/// Reports an exception in `method` of the discipline `name`, with a note that says so.
pub(super) fn report_in(error: PyErr, name: &str, method: &str, now: Option<Time>) {
    let at = now.map_or(String::new(), |t| format!(", at {} s of simulated time", seconds(t)));
    let note = format!("in {method} of {name}{at}");
    Python::attach(|py| {
        // If they cannot be set, the exception alone is reported.
        let _ = error.value(py).setattr("_sojourn_custom", true);
        let _ = error.value(py).call_method1("add_note", (note,));
    });
    report(error);
}

/// Writes a time in seconds with all digits.
fn seconds(t: Time) -> String {
    let text = format!("{}.{:09}", t.0 / 1_000_000_000, t.0 % 1_000_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}
