//! Packets at the border: arguments of a packet that enters, and a packet that has left.

use super::{Body, number};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use sojourn_aqm::{DropReason, Ecn, LEN_MAX, Packet, Time};

/// Packet with its body that was dequeued, delivered, dropped or lost.
#[pyclass(frozen, generic, module = "sojourn.embed")]
#[derive(Debug)]
pub struct QueuedPacket {
    pub(super) packet: Packet,
    pub(super) body: Body,
    pub(super) at: Time,
    pub(super) reason: Option<&'static str>,
    pub(super) wrong_bit: Option<u32>,
}

impl QueuedPacket {
    /// Returns a packet that left at `at` without a fault.
    pub(super) fn new(packet: Packet, body: Body, at: Time) -> QueuedPacket {
        QueuedPacket { packet, body, at, reason: None, wrong_bit: None }
    }
}

/// Name of the reason for which a packet was not delivered.
pub(super) fn reason(reason: Option<DropReason>) -> &'static str {
    match reason {
        Some(DropReason::Full) => "full",
        Some(DropReason::AtEnqueue) => "at_enqueue",
        Some(_) => "after_enqueue",
        None => "lost",
    }
}

#[pymethods]
impl QueuedPacket {
    /// Body.
    #[getter]
    fn body(&self, py: Python<'_>) -> Body {
        self.body.clone_ref(py)
    }

    /// Size, bytes.
    #[getter]
    fn size(&self) -> u32 {
        self.packet.len
    }

    /// Flow number.
    #[getter]
    fn flow(&self) -> u32 {
        self.packet.flow
    }

    /// Hash of the flow.
    #[getter]
    fn flow_hash(&self) -> u32 {
        self.packet.hash
    }

    /// Traffic class or DSCP.
    #[getter]
    fn class_(&self) -> u16 {
        self.packet.class
    }

    /// ECN field of the IP header: 0 not ECN-capable, 1 ECT(1), 2 ECT(0), 3 CE.
    #[getter]
    fn ecn(&self) -> u8 {
        self.packet.ecn.bits()
    }

    /// Time of arrival at the queue, ns.
    #[getter]
    fn arrived_ns(&self) -> u64 {
        self.packet.arrived.0
    }

    /// Time at which it left the queue, reached the far end, or was dropped, ns.
    #[getter]
    fn at_ns(&self) -> u64 {
        self.at.0
    }

    /// Reason why it was not delivered, None if it was.
    #[getter]
    fn reason(&self) -> Option<&'static str> {
        self.reason
    }

    /// Number of the bit that is wrong in a corrupted packet, None otherwise.
    #[getter]
    fn wrong_bit(&self) -> Option<u32> {
        self.wrong_bit
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let QueuedPacket { packet, body, at, reason, .. } = self;
        let (size, ecn, arrived) = (packet.len, packet.ecn.bits(), packet.arrived.0);
        let body = body.bind(py).repr()?;
        let end = reason.map_or_else(String::new, |reason| format!(", reason={reason:?}"));
        let times = format!("arrived_ns={arrived}, at_ns={}", at.0);
        Ok(format!("QueuedPacket(body={body}, size={size}, ecn={ecn}, {times}{end})"))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.body)
    }
}

/// Arguments of a packet that enters: size, flow, hash, class, ECN field, keys of both hosts.
pub(super) type Header<'a, 'py> = [&'a Bound<'py, PyAny>; 7];

/// Returns the descriptor of a packet that arrives at `now`.
///
/// # Errors
/// A number out of range.
pub(super) fn descriptor(now: Time, header: &Header<'_, '_>) -> PyResult<Packet> {
    let [size, flow, hash, class, ecn, source, destination] = header;
    let key = |value, name| number::<u32>(value, name, u32::MAX.into());
    Ok(Packet {
        arrived: now,
        len: number(size, "size", u64::from(LEN_MAX) - 1)?,
        flow: key(flow, "flow")?,
        hash: key(hash, "flow_hash")?,
        class: number(class, "class_", u16::MAX.into())?,
        ecn: Ecn::from_bits(number(ecn, "ecn", 3)?),
        source: key(source, "source")?,
        destination: key(destination, "destination")?,
        ..Packet::default()
    })
}
