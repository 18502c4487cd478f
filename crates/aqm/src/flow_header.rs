//! Header fields of a flow that packet descriptors do not have.

use crate::packet::{Packet, TcpFlags};
use crate::snapshot::Snapshot;

crate::choice! {
    /// Protocol above IP.
    pub enum Protocol {
        /// TCP.
        Tcp = "tcp",
        /// UDP.
        Udp = "udp",
        /// ICMP, of IPv4 or IPv6.
        Icmp = "icmp",
    }
}

impl Protocol {
    /// Returns the protocol with this number in an IP header, if filters know it.
    pub fn of_number(number: u8) -> Option<Protocol> {
        match number {
            1 | 58 => Some(Protocol::Icmp),
            6 => Some(Protocol::Tcp),
            17 => Some(Protocol::Udp),
            _ => None,
        }
    }
}

/// Header fields of a flow, for filters: see [`Qdisc::describe_flow`](crate::Qdisc::describe_flow).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Snapshot)]
pub struct FlowHeader {
    /// Protocol; None for one that filters do not know.
    pub protocol: Option<Protocol>,
    /// Host that sends the data, as [`Packet::source`]. Packets from another host go the other way:
    /// their ports are exchanged.
    pub source: u32,
    /// Source and destination port of the data; 0 if there is none.
    pub ports: [u16; 2],
    /// Mark, `fwmark` of Linux.
    pub mark: u32,
}

impl FlowHeader {
    /// Source and destination port of `packet`, a packet of this flow.
    #[inline]
    pub fn ports_of(&self, packet: &Packet) -> [u16; 2] {
        let [source, destination] = self.ports;
        // Data with a congestion header of XCP have that in place of the host.
        let is_data = packet.tcp.has(TcpFlags::XCP) || packet.source == self.source;
        if is_data { self.ports } else { [destination, source] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::XcpHeader;

    #[test]
    fn data_with_a_header_of_xcp_keep_their_ports() {
        let header = FlowHeader { source: 1, ports: [443, 50_000], ..FlowHeader::default() };
        let data = Packet { source: 1, destination: 2, ..Packet::default() };
        let ack = Packet { source: 2, destination: 1, ..Packet::default() };
        assert_eq!(header.ports_of(&data), [443, 50_000]);
        assert_eq!(header.ports_of(&data.with_xcp(XcpHeader::default())), [443, 50_000]);
        assert_eq!(header.ports_of(&ack), [50_000, 443]);
    }
}
