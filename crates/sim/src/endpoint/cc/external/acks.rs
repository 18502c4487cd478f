//! Acks as external controls see them.

use crate::endpoint::cc::RecoveryState;
use sojourn_aqm::HopTelemetry;
use sojourn_aqm::units::{Span, Time};

/// Ack that returns the telemetry of a packet, as an external control sees it.
#[derive(Clone, Copy, Debug)]
pub struct TelemetryAck<'a> {
    /// Arrival time of the ack.
    pub now: Time,
    /// Lowest sequence number that is not acknowledged, with this ack (SND.UNA).
    pub snd_una: u64,
    /// Next sequence number to send (SND.NXT).
    pub snd_nxt: u64,
    /// Key of the path: packets of a flow with the same key crossed the same links.
    pub path: u32,
    /// State of each link when the packet left its queue, in the order of the path; at most
    /// [`TELEMETRY_LINKS`](crate::tcp::TELEMETRY_LINKS).
    pub links: &'a [HopTelemetry],
}

/// Ack with its ECN feedback, as an external control sees it.
#[derive(Clone, Copy, Debug)]
pub struct MarkedAck {
    /// Arrival time of the ack.
    pub now: Time,
    /// Lowest sequence number that is not acknowledged, with this ack (SND.UNA).
    pub snd_una: u64,
    /// Next sequence number to send (SND.NXT).
    pub snd_nxt: u64,
    /// Payload bytes newly acknowledged in order.
    pub acked: u64,
    /// Payload bytes newly reported as marked: all of `acked` or none with the echo of RFC 8257 or
    /// 3168; with accurate feedback a full segment for each marked packet.
    pub marked: u64,
}

/// Ack with its delivery rate sample (draft-cheng-iccrg-delivery-rate-estimation), as an external
/// control sees it. The sample is of the segment that was sent last among those that the ack newly
/// delivers.
#[derive(Clone, Copy, Debug)]
pub struct RatedAck {
    /// Arrival time of the ack.
    pub now: Time,
    /// Payload bytes newly delivered, in order or not; 0 without a sample.
    pub acked: u64,
    /// Payload bytes in the network, after the ack.
    pub flight: u64,
    /// Payload bytes delivered in this connection (`C.delivered`).
    pub delivered: u64,
    /// Payload bytes that were delivered when the segment of the sample was sent
    /// (`rs.prior_delivered`); 0 without a sample.
    pub prior_delivered: u64,
    /// Delivery rate, bytes of payload per second; `None` without a sample, or if `interval` is 0.
    pub rate: Option<f64>,
    /// Time over which the rate was measured (`rs.interval`).
    pub interval: Span,
    /// Round-trip time of the segment of the sample, unless it was sent again.
    pub rtt: Option<Span>,
    /// Smoothed round-trip time, once there is a sample.
    pub srtt: Option<Span>,
    /// True if the sender was application-limited when it sent the segment of the sample
    /// (`rs.is_app_limited`).
    pub is_app_limited: bool,
    /// True if the sender is application-limited now (`C.app_limited`).
    pub app_limited: bool,
    /// True if an application-limited sender has sent again after nothing was outstanding, and this
    /// is the first ack since then that delivers data, or one before it.
    pub idle_restart: bool,
    /// Loss recovery state, with this ack.
    pub state: RecoveryState,
    /// Payload bytes declared lost in this connection (`C.lost`); 0 without RACK.
    pub lost: u64,
    /// Payload bytes among these that this ack showed to be lost (`rs.newly_lost`).
    pub newly_lost: u64,
}
