//! Packets sent and received by a flow.

use crate::endpoint::ack_queue::AckQueue;
use crate::endpoint::call::Report;
use crate::endpoint::tcp::{Ack, Segment};
use crate::endpoint::udp::Datagram;
use sojourn_aqm::Snapshot;
use sojourn_aqm::units::Time;

/// Packets sent by a flow at one time, all of its current connection.
#[derive(Clone, Debug, Default, Snapshot)]
pub struct Outbox {
    /// Segments for the path.
    pub segments: Vec<Segment>,
    /// ACKs for the return path.
    pub acks: Vec<Ack>,
    /// Datagram for the path.
    pub datagram: Option<Datagram>,
    /// Reports on datagrams for the return path.
    pub reports: Vec<Report>,
    /// ACKs that have reached the sender, with their connections; `None` if nobody reads them.
    pub reached: Option<Vec<(u32, Ack)>>,
}

impl Outbox {
    /// Notes the acks that reach the sender by `now`.
    #[cold]
    #[inline(never)]
    pub(super) fn note_acks(&mut self, acks: &AckQueue, now: Time) {
        if let Some(reached) = &mut self.reached {
            reached.extend(acks.due(now));
        }
    }

    /// True if there is nothing to send.
    pub fn is_empty(&self) -> bool {
        let Outbox { segments, acks, datagram, reports, .. } = self;
        segments.is_empty() && acks.is_empty() && datagram.is_none() && reports.is_empty()
    }
}

/// A packet that reaches the far end of a flow's path.
#[derive(Clone, Copy, Debug, Snapshot)]
pub enum ArrivedPacket {
    /// Segment and its CE mark.
    Segment(Segment, bool),
    /// Datagram.
    Datagram(Datagram),
}
