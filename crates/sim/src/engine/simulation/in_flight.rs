//! Packets in flight: what the engine knows of each, besides its descriptor.

use crate::endpoint::call::Report;
use crate::endpoint::tcp::Segment;
use crate::endpoint::udp::Datagram;
use sojourn_aqm::Packet;
use sojourn_aqm::Snapshot;
use sojourn_aqm::units::Time;

/// A packet between two links. [`Packet::arrived`] is the time of its arrival at the next one.
// The layout is fixed: the first 16 bytes, which are in one cache line, say where and when the
// packet arrives.
#[derive(Clone, Copy, Default, Snapshot)]
#[repr(C)]
pub(super) struct Forwarded {
    /// The next link, and its cursor.
    pub link: u32,
    pub cursor: u32,
    pub packet: Packet,
}

/// Delivery of a packet that has crossed its last link.
#[derive(Clone, Copy, Snapshot)]
pub(super) struct Delivery {
    /// Time of arrival at the endpoint.
    pub at: Time,
    pub flow: u32,
    pub ce: bool,
    /// Feedback of XCP.
    pub feedback: u32,
}

/// State of a packet in flight.
#[derive(Clone, Copy, Default, Snapshot)]
pub(super) struct PacketState {
    pub flow: u32,
    pub connection: u32,
    /// Cursor of the current link; up to date only on links that do not compute departures at
    /// enqueue.
    pub cursor: u32,
    pub payload: Payload,
}

// With a tag of eight bytes no gap follows it, which would be copied together with a segment.
#[derive(Clone, Copy, Snapshot)]
#[repr(u64)]
pub(super) enum Payload {
    Segment(Segment),
    /// Index in the slab of acks, which is separate because acks are large and few, segments small
    /// and many.
    Ack(u32),
    Datagram(Datagram),
    Report(Report),
    /// Contents that a link has corrupted; a datagram counts as lost when it arrives.
    Corrupt(Option<Datagram>),
}

// Contents of an entry that was never used.
impl Default for Payload {
    fn default() -> Self {
        Payload::Ack(u32::MAX)
    }
}

impl Payload {
    /// Become `segment`. Copies it in one piece if the entry held a segment before, as most did.
    #[inline]
    pub(super) fn set_segment(&mut self, segment: &Segment) {
        match self {
            Payload::Segment(place) => *place = *segment,
            _ => *self = Payload::Segment(*segment),
        }
    }

    /// Stores the feedback of XCP in a segment that has arrived.
    #[cold]
    pub(super) fn set_feedback(&mut self, feedback: u32) {
        if let Payload::Segment(segment) = self {
            segment.timestamp = feedback;
        }
    }

    /// True if it crosses the return path.
    pub(super) fn returns(&self) -> bool {
        matches!(self, Payload::Ack(_) | Payload::Report(_))
    }
}
