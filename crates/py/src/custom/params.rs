//! Parameters of a discipline that is written in Python.

use super::intern;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use sojourn_aqm::aqm::SingleParams;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params::{Combined, ParamRow, Params, Setting, Value, answers, unknown};
use sojourn_aqm::units::{Bytes, Rate, Span};

/// Parameter with the hash of the source, which tells versions of a class apart.
pub const SOURCE: &str = "source";

/// Parameter that asks for native code.
pub const COMPILED: &str = "compiled";

/// Description of a class by Python: hash of its source, and its parameters.
#[derive(FromPyObject)]
pub struct Description(String, Vec<(String, String, Default)>);

/// Default of a parameter, as it is written in the class.
#[derive(FromPyObject)]
enum Default {
    Flag(bool),
    Integer(i64),
    Number(f64),
    Text(String),
}

impl Default {
    fn setting(&self) -> Setting<'_> {
        match self {
            Default::Flag(flag) => Setting::Flag(*flag),
            Default::Integer(n) => Setting::Integer((*n).into()),
            Default::Number(x) => Setting::Number(*x),
            Default::Text(text) => Setting::Text(text),
        }
    }
}

/// Value of a parameter as the class sees it: quantities are whole numbers of ns, bit/s or bytes.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    Flag(bool),
    Integer(i64),
    Real(f64),
}

impl Number {
    pub fn to_object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        match self {
            Number::Flag(flag) => flag.into_bound_py_any(py),
            Number::Integer(n) => n.into_bound_py_any(py),
            Number::Real(x) => x.into_bound_py_any(py),
        }
    }
}

/// Hash of the source of a class, and values and rows of its parameters.
pub type Read = (String, Vec<(&'static str, Number)>, Vec<ParamRow>);

/// Parameters of a discipline in Python with the limits of its queue.
pub type QueueParams = Combined<SingleParams, ClassParams>;

/// Parameters of a class: their names are known only at run time.
#[derive(Clone, Debug)]
pub struct ClassParams {
    /// Name of the class.
    pub class: &'static str,
    /// Hash of the source.
    pub source: String,
    /// True if the class is compiled.
    pub compiled: bool,
    /// Values of the parameters that the class declares.
    pub values: Vec<(&'static str, Number)>,
    /// Rows of these parameters.
    rows: Vec<ParamRow>,
}

impl ClassParams {
    /// Returns the defaults of `class`.
    ///
    /// # Errors
    /// An invalid default; the path names the parameter.
    pub fn new(class: &'static str, description: Description) -> Result<ClassParams> {
        let Description(source, fields) = description;
        let (values, rows) = defaults(&fields)?;
        Ok(ClassParams { class, source, compiled: false, values, rows })
    }
}

impl Params for ClassParams {
    /// No parameter has a range, so nothing depends on `checks`.
    fn assign(&mut self, name: &str, value: Setting<'_>, _checks: bool) -> Result<()> {
        match name {
            SOURCE => {}
            COMPILED => self.compiled = bool::read(value).map_err(|e| e.at(name))?,
            _ => {
                let Some(i) = self.rows.iter().position(|row| answers(row, name)) else {
                    return Err(unknown(&self.table(), name));
                };
                let (number, text) = value_of(&self.rows[i].kind, value).map_err(|e| e.at(name))?;
                self.values[i].1 = number;
                self.rows[i].value = text;
            }
        }
        Ok(())
    }

    fn knows(&self, name: &str) -> bool {
        [SOURCE, COMPILED].contains(&name) || self.rows.iter().any(|row| answers(row, name))
    }

    fn table(&self) -> Vec<ParamRow> {
        let mut rows = vec![row(SOURCE, "text".into(), self.source.clone())];
        rows.push(flag_row(COMPILED, self.compiled));
        rows.extend(self.rows.iter().cloned());
        rows
    }

    /// No parameter has a range: a value is checked when it is read.
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

/// Values and rows of parameters with their defaults.
type Defaults = (Vec<(&'static str, Number)>, Vec<ParamRow>);

/// Returns the values and rows of parameters.
///
/// # Errors
/// An invalid default; the path names the parameter.
fn defaults(fields: &[(String, String, Default)]) -> Result<Defaults> {
    let (mut values, mut rows) = (Vec::new(), Vec::new());
    for (name, kind, default) in fields {
        let (value, text) = value_of(kind, default.setting()).map_err(|e| e.at(name))?;
        values.push((intern(name), value));
        rows.push(row(intern(name), kind.clone(), text));
    }
    Ok((values, rows))
}

/// Reads the parameters of a class; `common` has the parameters of every class of its kind, which
/// were read before. Returns the hash of its source, their values and their rows.
///
/// # Errors
/// An unknown parameter, or an invalid value; the path names it.
pub fn read_values(
    class: Description,
    settings: &[(&str, Setting<'_>)],
    common: Vec<ParamRow>,
) -> Result<Read> {
    let Description(source, fields) = class;
    let (mut values, mut rows) = defaults(&fields)?;
    for (name, value) in settings.iter().filter(|(name, _)| *name != SOURCE) {
        let Some(i) = rows.iter().position(|row| answers(row, name)) else {
            let mut known = rows;
            known.extend(common);
            return Err(unknown(&known, name));
        };
        let (number, text) = value_of(&rows[i].kind, *value).map_err(|e| e.at(name))?;
        values[i].1 = number;
        rows[i].value = text;
    }
    rows.push(row(SOURCE, "text".into(), source.clone()));
    Ok((source, values, rows))
}

/// Returns the value of [`COMPILED`], and the other settings.
///
/// # Errors
/// If it is not a flag.
pub fn take_compiled<'a>(
    settings: &[(&'a str, Setting<'a>)],
) -> Result<(bool, Vec<(&'a str, Setting<'a>)>)> {
    let setting = settings.iter().rfind(|(key, _)| *key == COMPILED);
    let compiled = setting.map_or(Ok(false), |(_, value)| bool::read(*value));
    let others = settings.iter().filter(|(key, _)| *key != COMPILED).copied().collect();
    Ok((compiled.map_err(|e| e.at(COMPILED))?, others))
}

/// Row of a flag.
pub fn flag_row(name: &'static str, flag: bool) -> ParamRow {
    row(name, "flag".into(), flag.write())
}

fn row(name: &'static str, kind: String, value: String) -> ParamRow {
    ParamRow { name, aliases: &[], kind, value, range: String::new(), symbol: "", about: "" }
}

/// Reads a value of `kind`; returns it with its text.
fn value_of(kind: &str, setting: Setting<'_>) -> Result<(Number, String)> {
    let whole = |n: u64| match i64::try_from(n) {
        Ok(n) => Ok(Number::Integer(n)),
        Err(_) => Err(Error::new(format!("{setting} is too large"))),
    };
    Ok(match kind {
        "duration" => {
            let span = Span::read(setting)?;
            (whole(span.0)?, span.write())
        }
        "rate" => {
            let rate = Rate::read(setting)?;
            (whole(rate.0)?, rate.write())
        }
        "bytes" => {
            let bytes = Bytes::read(setting)?;
            (whole(bytes.0)?, bytes.write())
        }
        "integer" => {
            let n = u64::read(setting)?;
            (whole(n)?, n.write())
        }
        "flag" => {
            let flag = bool::read(setting)?;
            (Number::Flag(flag), flag.write())
        }
        _ => {
            let x = f64::read(setting)?;
            (Number::Real(x), x.write())
        }
    })
}
