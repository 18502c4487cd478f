//! Feedback of the links of a path to the sender.

use super::{Endpoints, Flow};
use crate::endpoint::tcp::TcpParams;
use crate::endpoint::telemetry::PathTelemetry;
use sojourn_aqm::{Packet, Snapshot};

/// Feedback of the path that segments bring to the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
#[repr(u8)]
pub enum PathFeedback {
    /// None, except ECN marks.
    None,
    /// Congestion header of XCP.
    Xcp,
    /// Telemetry of each link.
    Telemetry,
}

impl PathFeedback {
    /// Feedback that `tcp` uses.
    pub(super) fn of(tcp: Option<&TcpParams>) -> PathFeedback {
        match tcp {
            Some(tcp) if tcp.is_xcp() => PathFeedback::Xcp,
            Some(tcp) if tcp.wants_telemetry() => PathFeedback::Telemetry,
            _ => PathFeedback::None,
        }
    }
}

impl Flow {
    /// Adds the congestion header of XCP to a packet with data of this flow.
    pub fn add_xcp_header(&self, packet: Packet) -> Packet {
        let Endpoints::Tcp(tcp) = &self.ends else { return packet };
        tcp.sender.xcp_header().map_or(packet, |header| packet.with_xcp(header))
    }

    /// Keeps the telemetry of a packet that has arrived until its ack reaches the sender; returns
    /// its number, which the ack carries.
    pub(crate) fn store_telemetry(&mut self, telemetry: &PathTelemetry) -> u32 {
        match &mut self.ends {
            Endpoints::Tcp(tcp) => tcp.sender.store_telemetry(telemetry),
            _ => 0,
        }
    }
}
