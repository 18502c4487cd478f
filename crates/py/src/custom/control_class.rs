//! Classes of congestion controls in Python: their parameters, and controls of them for flows.

use super::compiled_control::{CompiledControl, NativeControl};
use super::control::{Code, Control};
use super::failure;
use super::params::{COMPILED, Description, Number};
use super::params::{flag_row, read_values, take_compiled};
use super::values::{RateValues, Values};
use super::{describe, error_of, intern, is_custom, module};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params::{Params, Setting};
use sojourn_sim::tcp::{
    CommonParams, ExternalControl, ExternalMaker, ExternalParams, LossRecovery,
};
use std::sync::Arc;

/// Finds the class called `name` and reads its parameters.
pub fn find(name: &str, settings: &[(&str, Setting<'_>)]) -> Option<Result<ExternalParams>> {
    is_custom(name).then(|| Python::attach(|py| read(py, intern(name), settings)))
}

fn read(
    py: Python<'_>,
    name: &'static str,
    settings: &[(&str, Setting<'_>)],
) -> Result<ExternalParams> {
    let ControlClass { parameters, recovery, traits } =
        describe(py, "describe_control", name, settings)?;
    let (compiled, own) = take_compiled(settings)?;
    let flag = flag_row(COMPILED, compiled);
    let mut known = CommonParams::default().table();
    known.push(flag.clone());
    let (source, values, mut rows) = read_values(parameters, &own, known)?;
    rows.push(flag);
    let recovery = match recovery.as_str() {
        "tahoe" => LossRecovery::Tahoe,
        "reno" => LossRecovery::Reno,
        "newreno" => LossRecovery::NewReno,
        "sack" => LossRecovery::Sack,
        _ => {
            let text = format!("is {recovery:?}, allowed: sack, newreno, reno, tahoe");
            return Err(Error::new(text).at("recovery"));
        }
    };
    let maker = Maker { name, source, values, compiled, traits };
    // Errors in `start` and of the compiler are reported with the scenario.
    maker.code(py).map_err(|e| error_of(&e))?;
    Ok(ExternalParams { name, recovery, rows, maker: Arc::new(maker) })
}

/// Class as `sojourn.custom.border.describe_control` returns it.
#[derive(FromPyObject)]
struct ControlClass {
    parameters: Description,
    /// Loss recovery of the sender.
    recovery: String,
    traits: Traits,
}

/// Requests of a class.
#[derive(Clone, Copy, Debug, FromPyObject)]
struct Traits {
    /// True if the control has a rate for every segment.
    paced: bool,
    /// True if the class reads telemetry.
    telemetry: bool,
    /// True if the class reads ECN feedback.
    marks: bool,
    /// True if the class reads delivery rate samples.
    rates: bool,
    /// Default of the parameter `pacing`.
    pacing: bool,
}

/// Class with the values of its parameters.
#[derive(Debug)]
struct Maker {
    name: &'static str,
    source: String,
    values: Vec<(&'static str, Number)>,
    /// True if the class is compiled.
    compiled: bool,
    traits: Traits,
}

impl Maker {
    fn object(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let values = PyDict::new(py);
        for (name, value) in &self.values {
            values.set_item(name, value.to_object(py)?)?;
        }
        let arguments = (self.name, &self.source, values);
        Ok(module(py)?.call_method1("make_control", arguments)?.unbind())
    }

    /// Object of the class, or its native code.
    fn code(&self, py: Python<'_>) -> PyResult<Code> {
        let object = self.object(py)?;
        let border = module(py)?;
        if self.compiled {
            let native = border.call_method1("compile_object", (object,))?;
            return Ok(Code::Native(CompiledControl::new(native.extract::<NativeControl>()?)));
        }
        let gauges = border.call_method1("gauges", (&object,))?.extract::<Vec<String>>()?;
        Code::plain(py, object, gauges.iter().map(|name| intern(name)).collect())
    }
}

impl ExternalMaker for Maker {
    fn make(&self, common: &CommonParams) -> Box<dyn ExternalControl> {
        Python::attach(|py| {
            let mss = common.payload();
            let paced = common.pacing == Some(true);
            let control = self.code(py).and_then(|code| Control::of(py, self.name, code));
            let control = control.unwrap_or_else(|error| {
                failure::report(PyException::new_err(format!("{}: {error}", self.name)));
                Control::failed(py, self.name)
            });
            let (packet, reads_marks) = (common.packet.0, self.traits.marks);
            let rates = RateValues { is_read: self.traits.rates, ..RateValues::default() };
            *control.connection.get().values() =
                Values { mss, packet, paced, reads_marks, rates, ..Values::default() };
            Box::new(control)
        })
    }

    fn uses_telemetry(&self) -> bool {
        self.traits.telemetry
    }

    fn uses_marks(&self) -> bool {
        self.traits.marks
    }

    fn is_paced(&self) -> bool {
        self.traits.paced
    }

    fn default_pacing(&self) -> bool {
        self.traits.paced || self.traits.pacing
    }
}
