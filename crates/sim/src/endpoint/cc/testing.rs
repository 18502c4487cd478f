//! A segment's life, as a congestion control sees it.

use super::{CongestionControl, ProcessedAck, RecoveryState, SentSegment, Window};
use sojourn_aqm::units::{Span, Time};

/// Delivery of one segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    pub seq: u64,
    pub bytes: u64,
    pub sent: Time,
    pub rtt: Span,
    /// Bytes in flight after the ack.
    pub flight: u64,
    pub state: RecoveryState,
}

/// Sends a segment, delivers it and processes its ack.
pub(super) fn deliver(c: &mut impl CongestionControl, window: &mut Window, d: Delivery) {
    let Delivery { seq, bytes, sent, rtt, flight, state } = d;
    let (now, end) = (sent + rtt, seq + bytes);
    let (retransmission, was_idle) = (false, true);
    c.on_sent(&SentSegment { now: sent, seq, end, retransmission, padding: 0, was_idle, state });
    c.on_delivered(now, seq, end);
    let srtt = Some(rtt);
    c.on_ack_processed(window, &ProcessedAck { srtt, ..processed(now, end, flight, state) });
}

/// Ack without a round-trip time and without losses.
pub(in crate::endpoint) fn processed(
    now: Time,
    delivered: u64,
    flight: u64,
    state: RecoveryState,
) -> ProcessedAck {
    ProcessedAck { now, delivered, flight, state, ..ProcessedAck::default() }
}
