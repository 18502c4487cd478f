//! Disciplines and links for programs in Python, which pass the time and carry bodies of any type.

mod link;
mod packet;
mod qdisc;
mod shared;
mod snapshot;

pub use link::TimedLink;
pub use packet::QueuedPacket;
pub use qdisc::Qdisc;

use crate::custom::is_custom;
use crate::{InputError, links, refused};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use sojourn_aqm::{Built, Error, Registry, Span, text_of};
use sojourn_sim::config::LinkConfig;
use std::sync::{Mutex, MutexGuard, TryLockError};

/// Body of a packet: any object.
type Body = Py<PyAny>;

/// Parses the only link of `links_json`.
///
/// # Errors
/// If it is invalid, has keys that an embedded link lacks, or a discipline in Python.
fn parse_link(links_json: &str) -> PyResult<LinkConfig> {
    let mut defs = links(links_json)?;
    let def = defs.pop().ok_or_else(|| InputError::new_err("there is no link"))?;
    if is_custom(def.qdisc()) {
        let text = "a discipline that is written in Python runs in the simulator only";
        return Err(refused(Error::new(text).at("qdisc").at(def.name())));
    }
    Ok(def)
}

/// Text form of the discipline of a link, without `limit` if it is not `sized`.
fn text_form(def: &LinkConfig, sized: bool) -> String {
    let rows = def.params().iter().filter(|row| sized || row.name != "limit");
    text_of(def.qdisc(), &rows.cloned().collect::<Vec<_>>())
}

/// Builds the discipline of a link. A discipline whose size is not given holds at most `buffer`.
fn build(def: &LinkConfig, sized: bool, buffer: Span) -> PyResult<Built> {
    let (registry, rate) = (Registry::standard(), def.spec().rate);
    let built = registry.build_text_within(&text_form(def, sized), rate, buffer);
    built.map_err(|error| refused(error.at("qdisc").at(def.name())))
}

/// Returns the state behind `lock`, unless another call is using it.
fn get<T>(lock: &Mutex<T>) -> PyResult<MutexGuard<'_, T>> {
    match lock.try_lock() {
        Ok(state) => Ok(state),
        Err(TryLockError::Poisoned(error)) => Ok(error.into_inner()),
        Err(TryLockError::WouldBlock) => {
            Err(PyRuntimeError::new_err("another call is using the queue"))
        }
    }
}

/// Converts an argument to a whole number of at most `max`.
fn number<T: TryFrom<u64>>(value: &Bound<'_, PyAny>, name: &str, max: u64) -> PyResult<T> {
    let number = value.extract::<u64>().ok().filter(|number| *number <= max);
    number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| {
        let shown = value.repr().map_or_else(|_| "the value".into(), |text| text.to_string());
        let text = format!("{name}: {shown:.60} is not allowed: a whole number from 0 to {max}");
        InputError::new_err(text)
    })
}
