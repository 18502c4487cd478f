//! Traffic source of a class in Python.

use super::arrival::ArrivalsView;
use super::borrowed::lend;
use super::compiled_source::{CompiledSource, NativeSource};
use super::failure;
use super::params::{COMPILED, Description, Number};
use super::params::{flag_row, read_values, take_compiled};
use super::snapshot::{in_place, load_object, save_object};
use super::{describe, error_of, intern, is_custom, module};
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params::{Params, Setting};
use sojourn_aqm::random::Random;
use sojourn_aqm::snapshot::{Reader, Writer};
use sojourn_aqm::{Snapshot, Time};
use sojourn_sim::traffic::{ExternalArrivals, ExternalSource, ExternalSourceMaker, ExternalTimes};
use std::sync::Arc;

/// Method that returns the next arrival.
const METHOD: &str = "next_arrival";

/// Most arrivals at the same time: with more of them simulated time would not advance.
const MOST_AT_ONCE: u32 = 100_000;

/// Finds the class called `name` and reads its parameters.
pub fn find(name: &str, settings: &[(&str, Setting<'_>)]) -> Option<Result<ExternalSource>> {
    is_custom(name).then(|| Python::attach(|py| read(py, intern(name), settings)))
}

fn read(
    py: Python<'_>,
    name: &'static str,
    settings: &[(&str, Setting<'_>)],
) -> Result<ExternalSource> {
    let (class, connections): (Description, bool) =
        describe(py, "describe_source", name, settings)?;
    let times = ExternalTimes::default();
    let (compiled, own) = take_compiled(settings)?;
    let flag = flag_row(COMPILED, compiled);
    let mut known = times.table();
    known.push(flag.clone());
    let (source, values, mut rows) = read_values(class, &own, known)?;
    rows.push(flag);
    let maker = Maker { name, source, values, compiled };
    // Errors in `start` and of the compiler are reported with the scenario.
    maker.code(py).map_err(|e| error_of(&e))?;
    Ok(ExternalSource { name, times, connections, rows, maker: Arc::new(maker) })
}

/// Class with the values of its parameters.
#[derive(Debug)]
struct Maker {
    name: &'static str,
    source: String,
    values: Vec<(&'static str, Number)>,
    /// True if the class is compiled.
    compiled: bool,
}

impl Maker {
    /// Object of the class, or its native code.
    fn code(&self, py: Python<'_>) -> PyResult<Code> {
        let values = PyDict::new(py);
        for (name, value) in &self.values {
            values.set_item(name, value.to_object(py)?)?;
        }
        let border = module(py)?;
        let object = border.call_method1("make_source", (self.name, &self.source, values))?;
        if self.compiled {
            let native = border.call_method1("compile_object", (object,))?;
            return Ok(Code::Native(CompiledSource::new(native.extract::<NativeSource>()?)));
        }
        Code::plain(object)
    }
}

impl ExternalSourceMaker for Maker {
    fn make(&self, largest: u64) -> Box<dyn ExternalArrivals> {
        Python::attach(|py| {
            let source = self.code(py).and_then(|code| {
                let view = Py::new(py, ArrivalsView::new(largest))?;
                Ok(Arrivals { name: self.name, code, view, at_once: 0 })
            });
            source.map_or_else(
                |error| {
                    failure::report(PyException::new_err(format!("{}: {error}", self.name)));
                    Box::new(NoArrivals) as Box<dyn ExternalArrivals>
                },
                |source| Box::new(source),
            )
        })
    }
}

/// Source whose object could not be made or copied.
struct NoArrivals;

impl ExternalArrivals for NoArrivals {
    fn next_arrival(&mut self, _now: Time, _rng: &mut dyn Random) -> Option<(Time, u64)> {
        None
    }

    fn copy(&self) -> Box<dyn ExternalArrivals> {
        Box::new(NoArrivals)
    }
}

/// Method of a class.
enum Code {
    /// Object, and its bound method.
    Plain(Py<PyAny>, Py<PyAny>),
    /// Native code with the state of the object.
    Native(CompiledSource),
    /// No method, after an exception.
    Failed,
}

in_place!(
    Code,
    56,
    |code, out| match code {
        Code::Plain(object, _) => save_object(object, out),
        Code::Native(native) => native.save_to(out),
        Code::Failed => Err(Error::new("has ended with an exception")),
    },
    |code, input| match code {
        Code::Plain(object, _) => load_object(object, input),
        Code::Native(native) => native.load_from(input),
        Code::Failed => Err(Error::new("has ended with an exception")),
    }
);

impl Code {
    fn plain(object: Bound<'_, PyAny>) -> PyResult<Code> {
        let method = object.getattr(METHOD)?.unbind();
        Ok(Code::Plain(object.unbind(), method))
    }

    fn copied(&self, py: Python<'_>) -> PyResult<Code> {
        match self {
            Code::Plain(object, _) => {
                Code::plain(py.import("copy")?.call_method1("deepcopy", (object,))?)
            }
            Code::Native(native) => Ok(Code::Native(native.clone())),
            Code::Failed => Ok(Code::Failed),
        }
    }
}

/// Source of one flow, and the flow that it sees.
struct Arrivals {
    name: &'static str,
    code: Code,
    view: Py<ArrivalsView>,
    /// Number of arrivals at the time of the last one.
    at_once: u32,
}

impl Arrivals {
    fn call(&mut self, now: Time, rng: &mut dyn Random) -> PyResult<Option<(Time, u64)>> {
        let view = self.view.get();
        view.set_now(now);
        let next = match &mut self.code {
            Code::Plain(_, method) => Python::attach(|py| {
                let call = || method.bind(py).call1((&self.view,));
                view.arrival(&lend(py, &view.random, rng, call)?)
            })?,
            Code::Native(native) => native.next_arrival(&self.view, rng)?,
            Code::Failed => None,
        };
        self.at_once = match next {
            Some((at, _)) if at == now => self.at_once + 1,
            _ => 0,
        };
        if self.at_once >= MOST_AT_ONCE {
            let text = format!("{MOST_AT_ONCE} arrivals at the same time: time does not advance");
            return Err(PyValueError::new_err(text));
        }
        Ok(next)
    }

    fn copied(&self, py: Python<'_>) -> PyResult<Arrivals> {
        let view = Py::new(py, self.view.get().copied())?;
        let Arrivals { name, at_once, .. } = *self;
        Ok(Arrivals { name, code: self.code.copied(py)?, view, at_once })
    }
}

impl ExternalArrivals for Arrivals {
    fn next_arrival(&mut self, now: Time, rng: &mut dyn Random) -> Option<(Time, u64)> {
        self.call(now, rng).unwrap_or_else(|error| {
            self.code = Code::Failed;
            failure::report_in(error, self.name, METHOD, Some(now));
            None
        })
    }

    fn save(&self) -> Result<Vec<u8>> {
        let mut out = Writer::default();
        self.code.save_to(&mut out).map_err(|e| e.at("source"))?;
        (self.view.get().now_ns(), self.at_once).save_to(&mut out)?;
        Ok(out.into_bytes())
    }

    fn load(&mut self, bytes: &[u8]) -> Result<()> {
        let mut input = Reader::new(bytes);
        self.code.load_from(&mut input)?;
        let (now, at_once) = Snapshot::create_from(&mut input)?;
        self.view.get().set_now(Time(now));
        self.at_once = at_once;
        input.finish()
    }

    /// Copies the object by `copy.deepcopy`. If that fails, the run of the copy ends.
    fn copy(&self) -> Box<dyn ExternalArrivals> {
        Python::attach(|py| match self.copied(py) {
            Ok(copy) => Box::new(copy) as Box<dyn ExternalArrivals>,
            Err(error) => {
                failure::report_in(error, self.name, "a copy", None);
                Box::new(NoArrivals)
            }
        })
    }
}
