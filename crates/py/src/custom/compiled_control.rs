//! Congestion control that Numba compiled from a Python class.

use super::borrowed::{Generator, NativeMethod, lend};
use super::connection::ConnectionView;
use super::gauge::{Gauge, Layout};
use super::module;
use super::recorded::{Drawn, Recording};
use super::records::{ConnectionRecord, LinksRecord};
use super::seen::{HOOKS, Hook, Seen};
use super::snapshot::{in_place, load_words};
use super::values::{Access, Values};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::Arc;

/// Compiled class as `sojourn.custom.border.compile_object` returns it.
#[derive(FromPyObject)]
pub struct NativeControl {
    /// Addresses of the methods, 0 for those that the class does not define.
    methods: [usize; HOOKS.len()],
    /// State after `start`, in whole words.
    state: Vec<u64>,
    gauges: Vec<Layout>,
    /// Owner of the native code.
    owner: Py<PyAny>,
}

/// Constant part of a compiled class.
struct Fixed {
    methods: [Option<NativeMethod<ConnectionRecord, LinksRecord>>; HOOKS.len()],
    /// State after `start`.
    fresh: Vec<u64>,
    gauges: Vec<Gauge>,
    /// Owner of the native code, which lives as long as this.
    owner: Py<PyAny>,
}

/// Native code of a class, and the state of an object as an array.
#[derive(Clone)]
pub struct CompiledControl {
    fixed: Arc<Fixed>,
    state: Vec<u64>,
}

in_place!(CompiledControl, 53, |compiled, out| compiled.state.save_to(out), |compiled, input| {
    load_words(&mut compiled.state, input)
});

impl CompiledControl {
    pub fn new(native: NativeControl) -> CompiledControl {
        let NativeControl { methods, state, gauges, owner } = native;
        let methods = methods.map(NativeMethod::at);
        let fixed = Fixed { methods, fresh: state.clone(), gauges: Gauge::of(&gauges), owner };
        CompiledControl { fixed: fixed.into(), state }
    }

    /// True if the class defines this method.
    pub fn defines(&self, method: usize) -> bool {
        self.fixed.methods[method].is_some()
    }

    /// Sets the state to that before a connection.
    pub fn restart(&mut self) {
        self.state.clone_from(&self.fixed.fresh);
    }

    /// Shows the recorded part of the state.
    pub fn gauges(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.fixed.gauges.iter().for_each(|gauge| gauge.show(&self.state, visit));
    }

    /// Calls a method, which is defined, and returns the connection after it.
    pub fn call(
        &mut self,
        hook: Hook,
        seen: Seen<'_>,
        rng: Option<Generator<'_>>,
    ) -> PyResult<Values> {
        let Some(native) = self.fixed.methods[hook as usize] else { return Ok(seen.values) };
        let mut record = seen.record();
        let mut links = LinksRecord::of(seen.links);
        let mut drawn = Drawn::default();
        let mut recording = rng.map(|from| Recording { from, drawn: &mut drawn });
        let rng = recording.as_mut().map(|rng| rng as Generator<'_>);
        native.call(rng, &mut links, &mut record, &mut self.state);
        if record.error != 0 {
            return Err(self.exception(hook, seen, drawn));
        }
        Ok(seen.values.changed(&record))
    }

    /// Exception of a method. Compiled code reports only that there was one: the plain method is
    /// called with the same state and random numbers, and raises it.
    #[cold]
    fn exception(&self, hook: Hook, seen: Seen<'_>, drawn: Drawn) -> PyErr {
        let text = "an exception in compiled code; it does not occur without compiled=True";
        let repeated = Python::attach(|py| {
            let connection = Py::new(py, ConnectionView::default())?;
            let view = connection.get();
            *view.values() = seen.values;
            let border = module(py)?;
            let seen_by = seen.arguments(py, &connection, hook)?;
            let arguments = (&self.fixed.owner, HOOKS[hook as usize], seen_by, &self.state);
            let call = || border.call_method1("repeat_control", arguments).map(drop);
            let done = match seen.values.access {
                Access::Start => call(),
                _ => lend(py, &view.random, &mut drawn.again(), call),
            };
            view.values().access = Access::Outside;
            done
        });
        repeated.err().unwrap_or_else(|| PyRuntimeError::new_err(text))
    }
}
