//! Python binding of capture files: arrivals for a replay from pcap and pcapng, and captures of
//! simulations.

mod frame;
mod headers;
mod read;
mod write;

pub use write::simulate_captured;

use crate::{InputError, array};
use frame::{Address, IpPacket, ip_packet};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use read::Direction;
use sojourn_aqm::cast;
use sojourn_sim::Column;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// Longest time between two packets, ns: 285 years.
const SPAN_MAX: i128 = 9_000_000_000_000_000_000;

/// File object of Python. Its last exception is kept.
struct PyFile {
    file: Py<PyAny>,
    error: Arc<Mutex<Option<PyErr>>>,
}

impl PyFile {
    fn new(file: Py<PyAny>) -> PyFile {
        PyFile { file, error: Arc::default() }
    }

    /// Calls a method of the file object.
    fn call<T>(&self, use_file: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> io::Result<T> {
        let result = Python::attach(|py| use_file(self.file.bind(py)));
        result.map_err(|e: PyErr| {
            *self.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(e);
            io::ErrorKind::Other.into()
        })
    }
}

impl Read for PyFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.call(|file| {
            let bytes = file.call_method1("read", (buffer.len(),))?;
            let bytes: &[u8] = bytes.extract()?;
            buffer[..bytes.len()].copy_from_slice(bytes);
            Ok(bytes.len())
        })
    }
}

impl Write for PyFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.call(|file| {
            file.call_method1("write", (PyBytes::new(file.py(), bytes),))?;
            Ok(bytes.len())
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.call(|file| file.call_method0("flush").map(drop))
    }
}

/// Network: address and length of the prefix, bits.
type Network = (Vec<u8>, u8);

/// True if `address` is in `network`, which is absent if everything matches.
fn matches(network: Option<&Network>, address: &Address) -> bool {
    let Some((prefix, bits)) = network else { return true };
    let version = if prefix.len() == 4 { 4 } else { 6 };
    let (whole, rest) = (usize::from(bits / 8), bits % 8);
    let mask = !(0xff_u8.checked_shr(rest.into()).unwrap_or(0));
    address.1 == version
        && address.0.get(..whole) == prefix.get(..whole)
        && (rest == 0 || address.0[whole] & mask == prefix[whole] & mask)
}

/// Packets to read.
#[derive(Default)]
struct Filter {
    direction: Option<Direction>,
    source: Option<Network>,
    destination: Option<Network>,
}

impl Filter {
    fn matches(&self, packet: &IpPacket) -> bool {
        (self.direction.is_none() || self.direction == packet.direction)
            && matches(self.source.as_ref(), &packet.source)
            && matches(self.destination.as_ref(), &packet.destination)
    }
}

/// Addresses, protocol and ports of a flow.
type FlowKey = (Address, Address, (u8, u16, u16));

/// Arrivals that were read.
#[derive(Default)]
struct Arrivals {
    ns: Vec<i128>,
    flow: Vec<u32>,
    size: Vec<u32>,
    ecn: Vec<u8>,
    dscp: Vec<i64>,
    hosts: [Vec<i64>; 2],
    ack: Vec<i64>,
    flows: BTreeMap<FlowKey, u32>,
    addresses: BTreeMap<Address, u32>,
    /// Number of frames without an IP packet, and of packets that the filter excludes.
    other: u64,
    excluded: u64,
    /// Number of packets in each direction that the file states: in, out.
    directions: [u64; 2],
}

impl Arrivals {
    fn add(&mut self, ns: i128, packet: &IpPacket) {
        let IpPacket { source, destination, protocol, .. } = *packet;
        let next = cast::number(self.flows.len());
        let flow = *self.flows.entry((source, destination, protocol)).or_insert(next);
        for (column, address) in self.hosts.iter_mut().zip([source, destination]) {
            // 0 stands for an unknown host.
            let next = cast::number(self.addresses.len()) + 1;
            column.push((*self.addresses.entry(address).or_insert(next)).into());
        }
        self.ns.push(ns);
        self.flow.push(flow);
        self.size.push(packet.length);
        self.ecn.push(packet.ecn);
        self.dscp.push(packet.dscp.into());
        self.ack.push(packet.ack.map_or(-1, i64::from));
    }

    /// A flow whose opposite direction was read too, as text.
    fn two_way(&self) -> Option<String> {
        let reversed = |key: &FlowKey| (key.1, key.0, (key.2.0, key.2.2, key.2.1));
        let both = |key: &&FlowKey| key.0 != key.1 && self.flows.contains_key(&reversed(key));
        self.flows.keys().find(both).map(|key| text(&key.0))
    }
}

/// An address as text.
fn text(address: &Address) -> String {
    match address {
        ([a, b, c, d, ..], 4) => std::net::Ipv4Addr::new(*a, *b, *c, *d).to_string(),
        (octets, _) => std::net::Ipv6Addr::from(*octets).to_string(),
    }
}

/// Reads the IP packets of a capture from a file object that returns bytes.
///
/// `direction` is "in" or "out"; `source` and `destination` are networks, as the bytes of the
/// address and the length of the prefix.
///
/// Returns columns in order of time, relative to the first packet: `t_ns`, `flow`, `size_B`, `ecn`
/// and `headers` (four columns: DSCP, sender, receiver, acknowledgement). Also returns `other` and
/// `excluded` (numbers of frames without an IP packet, and of packets that were not selected),
/// `directions` (numbers of packets that the file calls incoming and outgoing) and `two_way` (an
/// address that sends to a host and receives from it, or None).
///
/// # Errors
/// InputError, without the name of the file, if the file is damaged or of an unknown kind; an
/// exception of the file object.
#[pyfunction]
#[pyo3(signature = (file, direction=None, source=None, destination=None))]
pub fn read_capture(
    py: Python<'_>,
    file: Py<PyAny>,
    direction: Option<&str>,
    source: Option<Network>,
    destination: Option<Network>,
) -> PyResult<Py<PyDict>> {
    let direction = direction.map(|one| if one == "in" { Direction::In } else { Direction::Out });
    let filter = Filter { direction, source, destination };
    let input = PyFile::new(file);
    let error = input.error.clone();
    let mut arrivals = Arrivals::default();
    let result = py.detach(|| {
        read::frames(input, &mut |frame| {
            match ip_packet(frame)? {
                None => arrivals.other += 1,
                Some(packet) => {
                    if let Some(direction) = packet.direction {
                        arrivals.directions[usize::from(direction == Direction::Out)] += 1;
                    }
                    if filter.matches(&packet) {
                        arrivals.add(frame.ns, &packet);
                    } else {
                        arrivals.excluded += 1;
                    }
                }
            }
            Ok(())
        })
    });
    if let Some(error) = error.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(error);
    }
    result.map_err(InputError::new_err)?;
    columns(py, arrivals).map(Bound::unbind)
}

/// Returns the arrivals as columns, sorted by time.
fn columns(py: Python<'_>, arrivals: Arrivals) -> PyResult<Bound<'_, PyDict>> {
    let first = arrivals.ns.iter().min().copied().unwrap_or_default();
    let last = arrivals.ns.iter().max().copied().unwrap_or_default();
    if last - first > SPAN_MAX {
        let text = "has packets over 285 years apart; a time is damaged";
        return Err(InputError::new_err(text));
    }
    let mut order: Vec<usize> = (0..arrivals.ns.len()).collect();
    order.sort_by_key(|i| arrivals.ns[*i]);
    let sorted = |column: &[i64]| order.iter().map(|i| column[*i]).collect::<Vec<i64>>();
    let relative = |i: &usize| i64::try_from(arrivals.ns[*i] - first).unwrap_or_default();
    let t_ns: Vec<i64> = order.iter().map(relative).collect();
    let pick = |column: &[u32]| Column::U32(order.iter().map(|i| column[*i]).collect());
    let out = PyDict::new(py);
    out.set_item("t_ns", t_ns.into_pyarray(py))?;
    out.set_item("flow", array(py, pick(&arrivals.flow)))?;
    out.set_item("size_B", array(py, pick(&arrivals.size)))?;
    let ecn = order.iter().map(|i| arrivals.ecn[*i]).collect();
    out.set_item("ecn", array(py, Column::U8(ecn)))?;
    let [sender, receiver] = &arrivals.hosts;
    let headers = [&arrivals.dscp, sender, receiver, &arrivals.ack];
    let headers: Vec<_> = headers.iter().map(|column| sorted(column).into_pyarray(py)).collect();
    out.set_item("headers", headers)?;
    out.set_item("other", arrivals.other)?;
    out.set_item("excluded", arrivals.excluded)?;
    out.set_item("directions", arrivals.directions)?;
    out.set_item("two_way", arrivals.two_way())?;
    Ok(out)
}
