//! Packet log: one row per packet that left the queue.

use crate::context::DropReason;
use crate::packet::Packet;
use crate::snapshot::Snapshot;
use crate::units::Time;

/// Departure or drop of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
pub struct LogEntry {
    /// Packet as it was when it left, including arrival time and ECN field.
    pub packet: Packet,
    /// Start of its transmission, or time of the drop.
    pub left: Time,
    /// Reason for the drop; `None` if it was sent.
    pub why: Option<DropReason>,
}

/// Rows in the order in which packets left.
pub type PacketLog = alloc::vec::Vec<LogEntry>;
