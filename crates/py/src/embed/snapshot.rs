//! Snapshots of links whose bodies are bytes, or objects that functions of Python convert.

use super::Body;
use super::shared::Shared;
use crate::{InputError, refused};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sojourn_aqm::TimedLink;

/// Returns a snapshot of `link`, of which no other part of the program has a copy. `dumps` converts
/// a body to bytes; without it, bodies are bytes already.
pub(super) fn save<'py>(
    mut link: TimedLink<Shared>,
    dumps: Option<&Bound<'py, PyAny>>,
    py: Python<'py>,
) -> PyResult<Bound<'py, PyBytes>> {
    for Shared(body) in link.bodies_mut() {
        let Some(dumps) = dumps else {
            is_bytes(body.bind(py), "body", "; give dumps, which converts it")?;
            continue;
        };
        let bytes = dumps.call1((&*body,))?;
        is_bytes(&bytes, "dumps", "")?;
        *body = bytes.unbind();
    }
    Ok(PyBytes::new(py, &link.save().map_err(refused)?))
}

/// Creates the link of a snapshot. `loads` converts bytes to a body.
pub(super) fn load(
    snapshot: &[u8],
    loads: Option<&Bound<'_, PyAny>>,
) -> PyResult<TimedLink<Shared>> {
    let mut link = TimedLink::<Shared>::from_snapshot(snapshot).map_err(refused)?;
    if let Some(loads) = loads {
        for Shared(body) in link.bodies_mut() {
            *body = loads.call1((&*body,)).map(Body::from)?;
        }
    }
    Ok(link)
}

/// Checks that `value`, which `name` is or has returned, is of the type `bytes`.
fn is_bytes(value: &Bound<'_, PyAny>, name: &str, hint: &str) -> PyResult<()> {
    if value.is_instance_of::<PyBytes>() {
        return Ok(());
    }
    let shown = value.repr().map_or_else(|_| "a value".into(), |text| text.to_string());
    Err(InputError::new_err(format!("{name}: {shown:.60} is not of the type bytes{hint}")))
}
