//! Traffic source that Numba compiled from a Python class.

use super::arrival::ArrivalsView;
use super::borrowed::{Generator, NativeMethod, lend};
use super::module;
use super::recorded::{Drawn, Recording};
use super::records::{ArrivalRecord, PacketRecord};
use super::snapshot::{in_place, load_words};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use sojourn_aqm::Time;
use std::sync::Arc;

/// Compiled class as `sojourn.custom.border.compile_object` returns it.
#[derive(FromPyObject)]
pub struct NativeSource {
    /// Address of `next_arrival`.
    methods: [usize; 1],
    /// State after `start`, in whole words.
    state: Vec<u64>,
    /// Owner of the native code.
    owner: Py<PyAny>,
}

/// Constant part of a compiled class.
struct Fixed {
    method: Option<NativeMethod<ArrivalRecord>>,
    /// Owner of the native code, which lives as long as this.
    owner: Py<PyAny>,
}

/// Native code of a class, and the state of an object as an array.
#[derive(Clone)]
pub struct CompiledSource {
    fixed: Arc<Fixed>,
    state: Vec<u64>,
}

in_place!(CompiledSource, 54, |compiled, out| compiled.state.save_to(out), |compiled, input| {
    load_words(&mut compiled.state, input)
});

impl CompiledSource {
    pub fn new(native: NativeSource) -> CompiledSource {
        let NativeSource { methods: [address], state, owner } = native;
        let fixed = Fixed { method: NativeMethod::at(address), owner };
        CompiledSource { fixed: fixed.into(), state }
    }

    /// Returns time and size of the next arrival of the flow that `view` shows.
    ///
    /// # Errors
    /// An exception, or an arrival that is not valid.
    pub fn next_arrival(
        &mut self,
        view: &Py<ArrivalsView>,
        from: Generator<'_>,
    ) -> PyResult<Option<(Time, u64)>> {
        let Some(method) = self.fixed.method else { return Ok(None) };
        let mut record = view.get().record();
        let (mut drawn, mut unused) = (Drawn::default(), PacketRecord::default());
        let mut recording = Recording { from, drawn: &mut drawn };
        let answer = method.call(Some(&mut recording), &mut unused, &mut record, &mut self.state);
        if record.error != 0 {
            return Err(self.exception(view, drawn));
        }
        let (time, size) = (record.time.cast_unsigned(), record.size.cast_unsigned());
        Ok((answer == 1).then_some((Time(time), size)))
    }

    /// Exception of the method. Compiled code reports only that there was one: the plain method is
    /// called with the same state and random numbers, and raises it.
    #[cold]
    fn exception(&self, view: &Py<ArrivalsView>, drawn: Drawn) -> PyErr {
        let text = "an exception in compiled code; it does not occur without compiled=True";
        let repeated = Python::attach(|py| {
            let border = module(py)?;
            let arguments = (&self.fixed.owner, view, &self.state);
            let call = || border.call_method1("repeat_source", arguments);
            let answer = lend(py, &view.get().random, &mut drawn.again(), call)?;
            view.get().arrival(&answer)
        });
        repeated.err().unwrap_or_else(|| PyRuntimeError::new_err(text))
    }
}
