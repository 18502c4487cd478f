//! Packets on the wire of a link alone, without queue and transmitter.

use crate::{InputError, array, links};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sojourn_aqm::wire::{Arrival, Wire};
use sojourn_aqm::{Packet, Time, cast};
use sojourn_sim::Column;
use sojourn_sim::internals::random_stream;

/// Sends packets of `size` bytes at the times `t_ns`, ascending, over the wire of the only link of
/// `links_json`. Returns the arrivals in order: number of the packet, time, and true for a copy and
/// for a wrong bit.
///
/// # Errors
/// InputError if the links are invalid or not one, or times descend.
#[pyfunction]
pub fn wire_arrivals<'py>(
    py: Python<'py>,
    links_json: &str,
    seed: u64,
    t_ns: Vec<u64>,
    size: u32,
) -> PyResult<Bound<'py, PyDict>> {
    let defs = links(links_json)?;
    let [def] = defs.as_slice() else {
        return Err(InputError::new_err(format!("{} links, allowed: one", defs.len())));
    };
    if !t_ns.is_sorted() {
        return Err(InputError::new_err("the times are not in order"));
    }
    let stream = |name: &str| -> sojourn_aqm::wire::Stream {
        Box::new(random_stream(seed, &format!("links.{}.{name}", def.name())))
    };
    let mut wire = Wire::new(def.impairments(), stream);
    for (i, at) in t_ns.into_iter().enumerate() {
        let (now, body) = (Time(at), cast::number(i));
        let packet = Packet { arrived: now, len: size, body, ..Packet::default() };
        wire.send(now, now + def.spec().delay, packet, &mut Some);
    }
    let mut arrivals: Vec<Arrival> = Vec::new();
    while let Some(at) = wire.next_event() {
        arrivals.extend(wire.poll(at));
    }
    let columns = PyDict::new(py);
    let numbers = arrivals.iter().map(|a| a.packet.body.into()).collect();
    let times = arrivals.iter().map(|a| a.at.0).collect();
    columns.set_item("number", array(py, Column::U64(numbers)))?;
    columns.set_item("t_ns", array(py, Column::U64(times)))?;
    let copies = arrivals.iter().map(|a| a.is_copy).collect();
    columns.set_item("copy", array(py, Column::Bool(copies)))?;
    let wrong = arrivals.iter().map(|a| a.wrong_bit.is_some()).collect();
    columns.set_item("wrong", array(py, Column::Bool(wrong)))?;
    Ok(columns)
}
