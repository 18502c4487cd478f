//! Recorded parts of the state of a class: numbers that `start` assigns.

use super::intern;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// Recorded part of the state of native code.
#[derive(Clone, Copy, Debug)]
pub struct Gauge {
    name: &'static str,
    /// Offset in the state, bytes.
    offset: usize,
    kind: GaugeKind,
}

#[derive(Clone, Copy, Debug)]
enum GaugeKind {
    Real,
    Integer,
    Flag,
}

/// Name, offset in bytes and type (f, i or b) of a gauge, as `sojourn.custom.native` returns it.
pub type Layout = (String, usize, String);

impl Gauge {
    pub fn of(layout: &[Layout]) -> Vec<Gauge> {
        let gauge = |(name, offset, kind): &Layout| Gauge {
            name: intern(name),
            offset: *offset,
            kind: match kind.as_str() {
                "f" => GaugeKind::Real,
                "b" => GaugeKind::Flag,
                _ => GaugeKind::Integer,
            },
        };
        layout.iter().map(gauge).collect()
    }

    /// Shows its value in `state`.
    pub fn show(self, state: &[u64], visit: &mut dyn FnMut(&'static str, f64)) {
        let word = state.get(self.offset / 8).copied().unwrap_or(0);
        let value = match self.kind {
            GaugeKind::Real => f64::from_bits(word),
            GaugeKind::Integer => word.cast_signed() as f64,
            GaugeKind::Flag => f64::from(word.to_ne_bytes()[self.offset % 8] != 0),
        };
        visit(self.name, value);
    }
}

/// Shows the attributes called `names` of a Python object.
///
/// # Errors
/// A value that is not a number any more.
pub fn show_attributes(
    object: &Bound<'_, PyAny>,
    names: &[&'static str],
    visit: &mut dyn FnMut(&'static str, f64),
) -> PyResult<()> {
    for name in names {
        let value = object.getattr(*name)?;
        let number = value.extract().map_err(|_| {
            let text = format!("self.{name} was a number at the start and is now {value:?}");
            PyTypeError::new_err(text)
        })?;
        visit(name, number);
    }
    Ok(())
}
