//! Packets and queues as a discipline that is written in Python sees them.

use super::borrowed::Slot;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use sojourn_aqm::{Packet, QueueView, Time};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// Packet as a discipline sees it. All times are in nanoseconds.
#[pyclass(frozen, name = "Packet", module = "sojourn._sojourn")]
#[derive(Debug, Default)]
pub struct PacketView {
    size: AtomicI64,
    flow: AtomicI64,
    hash: AtomicI64,
    class: AtomicI64,
    ecn: AtomicI64,
    markable: AtomicBool,
    arrived: AtomicI64,
    sojourn: AtomicI64,
}

impl PacketView {
    /// Shows `packet` at `now`; `markable` is true if a mark would not be a drop.
    pub fn set(&self, packet: &Packet, now: Time, markable: bool) {
        let set = |field: &AtomicI64, value: i64| field.store(value, Ordering::Relaxed);
        set(&self.size, packet.len.into());
        set(&self.flow, packet.flow.into());
        set(&self.hash, packet.hash.into());
        set(&self.class, packet.class.into());
        set(&self.ecn, (packet.ecn as u8).into());
        self.markable.store(markable, Ordering::Relaxed);
        set(&self.arrived, packet.arrived.0.cast_signed());
        set(&self.sojourn, now.since(packet.arrived).0.cast_signed());
    }
}

#[pymethods]
impl PacketView {
    /// Length on the wire, bytes.
    #[getter]
    fn size(&self) -> i64 {
        self.size.load(Ordering::Relaxed)
    }

    /// Number of the flow.
    #[getter]
    fn flow(&self) -> i64 {
        self.flow.load(Ordering::Relaxed)
    }

    /// Hash of the flow, 32 bits.
    #[getter]
    fn hash(&self) -> i64 {
        self.hash.load(Ordering::Relaxed)
    }

    /// Traffic class (DSCP).
    #[getter]
    fn class_(&self) -> i64 {
        self.class.load(Ordering::Relaxed)
    }

    /// ECN field: 0 not ECN-capable, 1 ECT(1), 2 ECT(0), 3 CE.
    #[getter]
    fn ecn(&self) -> i64 {
        self.ecn.load(Ordering::Relaxed)
    }

    /// True if MARK marks the packet; False if MARK drops it.
    #[getter]
    fn markable(&self) -> bool {
        self.markable.load(Ordering::Relaxed)
    }

    /// Time of arrival, ns.
    #[getter]
    fn arrived(&self) -> i64 {
        self.arrived.load(Ordering::Relaxed)
    }

    /// Time in the queue so far, ns.
    #[getter]
    fn sojourn(&self) -> i64 {
        self.sojourn.load(Ordering::Relaxed)
    }
}

/// Queue as a discipline sees it, with the time and the random numbers.
#[pyclass(frozen, name = "Queue", module = "sojourn._sojourn")]
#[derive(Debug, Default)]
pub struct QueueStateView {
    now: AtomicI64,
    bytes: AtomicI64,
    packets: AtomicI64,
    /// Random number generator of the link.
    pub(super) random: Slot,
}

impl QueueStateView {
    /// Shows `queue` at `now`; without `queue` the queue stays as it was shown last.
    pub fn set(&self, queue: Option<&QueueView<'_>>, now: Time) {
        self.now.store(now.0.cast_signed(), Ordering::Relaxed);
        let Some(queue) = queue else { return };
        self.bytes.store(queue.bytes().cast_signed(), Ordering::Relaxed);
        self.packets.store(queue.packets().into(), Ordering::Relaxed);
    }
}

#[pymethods]
impl QueueStateView {
    /// Simulated time, ns.
    #[getter]
    fn now(&self) -> i64 {
        self.now.load(Ordering::Relaxed)
    }

    /// Bytes in the queue.
    #[getter]
    fn bytes(&self) -> i64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Packets in the queue.
    #[getter]
    fn packets(&self) -> i64 {
        self.packets.load(Ordering::Relaxed)
    }

    /// Draws a random number in [0, 1) from the stream of the link.
    fn random(&self, py: Python<'_>) -> PyResult<f64> {
        self.random.draw(py).ok_or_else(|| {
            PyRuntimeError::new_err("random() works only in on_enqueue and on_dequeue")
        })
    }
}
