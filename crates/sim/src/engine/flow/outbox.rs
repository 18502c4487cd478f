//! Packets sent and received by a flow.

use crate::endpoint::tcp::{Ack, Segment};
use sojourn_aqm::units::Time;

/// Packets sent by a flow at one time, all of its current connection.
#[derive(Clone, Debug, Default)]
pub struct Outbox {
    /// Segments for the path.
    pub segments: Vec<Segment>,
    /// ACKs for the return path.
    pub acks: Vec<Ack>,
    /// Length in bytes of a datagram for the path.
    pub datagram: Option<u32>,
}

impl Outbox {
    /// True if there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.acks.is_empty() && self.datagram.is_none()
    }
}

/// A packet that reaches the far end of a flow's path.
#[derive(Clone, Copy, Debug)]
pub enum ArrivedPacket {
    /// Segment and its CE mark.
    Segment(Segment, bool),
    /// Datagram: time of transmission, and length in bytes.
    Datagram(Time, u32),
}
