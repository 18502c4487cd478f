//! Traffic source of a class in Python.

use super::arrival::ArrivalsView;
use super::borrowed::lend;
use super::failure;
use super::params::{Description, Number, SOURCE, read_values};
use super::{error_of, intern, is_custom, module};
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sojourn_aqm::Time;
use sojourn_aqm::error::Result;
use sojourn_aqm::params::{Params, Setting};
use sojourn_aqm::random::Random;
use sojourn_sim::traffic::external::{
    ExternalArrivals, ExternalSource, ExternalSourceMaker, ExternalTimes,
};
use std::sync::Arc;

/// Method that returns the next arrival.
const METHOD: &str = "next_arrival";

/// Most arrivals at the same time: with more of them simulated time would not advance.
const MOST_AT_ONCE: u32 = 100_000;

/// Find the class called `name` and read its parameters.
pub fn find(name: &str, settings: &[(&str, Setting<'_>)]) -> Option<Result<ExternalSource>> {
    is_custom(name).then(|| Python::attach(|py| read(py, intern(name), settings)))
}

fn read(
    py: Python<'_>,
    name: &'static str,
    settings: &[(&str, Setting<'_>)],
) -> Result<ExternalSource> {
    let version = settings.iter().find(|(key, _)| *key == SOURCE);
    let version = version.map(|(_, value)| value.to_string().trim_matches('"').to_string());
    let described = module(py)
        .and_then(|m| m.call_method1("describe_source", (name, version)))
        .and_then(|found| found.extract::<(Description, bool)>());
    let (class, connections) = described.map_err(|e| error_of(&e))?;
    let times = ExternalTimes::default();
    let (source, values, rows) = read_values(class, settings, times.table())?;
    let maker = Maker { name, source, values };
    // Errors in `start` are reported with the scenario.
    maker.object(py).map_err(|e| error_of(&e))?;
    Ok(ExternalSource { name, times, connections, rows, maker: Arc::new(maker) })
}

/// Class with the values of its parameters.
#[derive(Debug)]
struct Maker {
    name: &'static str,
    source: String,
    values: Vec<(&'static str, Number)>,
}

impl Maker {
    fn object(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let values = PyDict::new(py);
        for (name, value) in &self.values {
            values.set_item(name, value.to_object(py)?)?;
        }
        let arguments = (self.name, &self.source, values);
        Ok(module(py)?.call_method1("make_source", arguments)?.unbind())
    }
}

impl ExternalSourceMaker for Maker {
    fn make(&self, largest: u64) -> Box<dyn ExternalArrivals> {
        Python::attach(|py| {
            let made = self.object(py).and_then(|object| {
                let view = Py::new(py, ArrivalsView::new(largest))?;
                let method = object.getattr(py, METHOD)?;
                Ok(Arrivals { name: self.name, working: Some((object, method)), view, at_once: 0 })
            });
            made.map_or_else(
                |error| {
                    failure::report(PyException::new_err(format!("{}: {error}", self.name)));
                    Box::new(NoArrivals) as Box<dyn ExternalArrivals>
                },
                |made| Box::new(made),
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

/// Python object with its bound method, and what they see.
struct Arrivals {
    name: &'static str,
    /// Object and method; `None` after an exception: the method is not called again.
    working: Option<(Py<PyAny>, Py<PyAny>)>,
    view: Py<ArrivalsView>,
    /// Number of arrivals at the time of the last one.
    at_once: u32,
}

impl Arrivals {
    fn call(&mut self, now: Time, rng: &mut dyn Random) -> PyResult<Option<(Time, u64)>> {
        let Some((_, method)) = &self.working else { return Ok(None) };
        let next = Python::attach(|py| {
            let view = self.view.get();
            view.set_now(now);
            let answer = lend(py, &view.random, rng, || method.bind(py).call1((&self.view,)))?;
            view.arrival(&answer)
        })?;
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
        let Arrivals { name, at_once, .. } = *self;
        let view = Py::new(py, self.view.get().copied())?;
        let Some((object, _)) = &self.working else {
            return Ok(Arrivals { name, at_once, view, working: None });
        };
        let object = py.import("copy")?.call_method1("deepcopy", (object,))?;
        let method = object.getattr(METHOD)?.unbind();
        Ok(Arrivals { name, at_once, view, working: Some((object.unbind(), method)) })
    }
}

impl ExternalArrivals for Arrivals {
    fn next_arrival(&mut self, now: Time, rng: &mut dyn Random) -> Option<(Time, u64)> {
        self.call(now, rng).unwrap_or_else(|error| {
            self.working = None;
            failure::report_in(error, self.name, METHOD, Some(now));
            None
        })
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
