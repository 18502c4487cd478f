//! Header fields of a flow that packet descriptors do not have.

use crate::packet::Packet;

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
        if packet.source == self.source { self.ports } else { [destination, source] }
    }
}
