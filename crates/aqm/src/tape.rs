//! One row per packet, for those who ask.

use crate::cx::Why;
use crate::packet::Packet;
use crate::units::Time;

/// How a packet left the queue, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its ticket, as it was when it left; `arrived` and the ECN field tell the rest.
    pub packet: Packet,
    /// Start of transmission, or when it was lost.
    pub left: Time,
    /// Why it was lost; none if it was sent.
    pub why: Option<Why>,
}

/// The rows in the order in which packets left.
pub type Tape = alloc::vec::Vec<Row>;
