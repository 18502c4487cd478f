//! A rule of turmoil-net whose queue is a link of sojourn.
//!
//! A rule decides about a packet when it is sent, and cannot change it. So it can express the
//! disciplines that decide at enqueue and serve in order of arrival (tail drop, RED, PIE, PI,
//! BLUE), without ECN. CoDel, which drops at the head, and fair queues cannot be expressed.

use sojourn_aqm::{Error, FiveTuple, Link, LinkSpec, Packet, Pcg, Result, Span, Time, build_text};
use std::net::IpAddr;
use std::time::Duration;
use tokio::time::Instant;
use turmoil_net::{Packet as Datagram, Rule, Transport, Verdict};

/// One-way link from a host to a host, or from all others.
#[derive(Debug)]
pub struct LinkRule {
    link: Link,
    to: IpAddr,
    /// Time 0 of the link: the time of the first packet on tokio's clock.
    start: Option<Instant>,
}

impl LinkRule {
    /// Creates a rule for packets to `to`: a discipline in text form, a rate and a delay. The text
    /// needs a `limit` unless 1000 packets are meant.
    ///
    /// # Errors
    /// An invalid discipline or rate, or a discipline that decides after the packet was enqueued.
    pub fn new(qdisc: &str, spec: LinkSpec, seed: u64, to: IpAddr) -> Result<LinkRule> {
        let qdisc = build_text(qdisc, spec.rate)?.qdisc;
        let link = Link::new(spec, qdisc, Pcg::new(seed))?;
        if !link.computes_departures() {
            let text = "decides about packets after they arrive, which a rule of turmoil cannot";
            return Err(Error::new(text).at("qdisc"));
        }
        Ok(LinkRule { link, to, start: None })
    }

    /// The link, for its counters.
    pub fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}

/// Descriptor of a packet. It is not ECN-capable: a rule could not mark it.
fn descriptor(packet: &Datagram) -> Packet {
    let (protocol, source_port, destination_port) = match &packet.payload {
        Transport::Udp(udp) => (17, udp.src_port, udp.dst_port),
        Transport::Tcp(tcp) => (6, tcp.src_port, tcp.dst_port),
    };
    let (source, destination) = (packet.src, packet.dst);
    let flow = FiveTuple { source, destination, protocol, source_port, destination_port };
    flow.identify(0, Packet { len: packet.size(), ..Packet::default() })
}

impl Rule for LinkRule {
    fn on_packet(&mut self, packet: &Datagram) -> Verdict {
        if packet.dst != self.to {
            return Verdict::Pass;
        }
        let start = *self.start.get_or_insert_with(Instant::now);
        let now = Time::ZERO + Span::from(start.elapsed());
        match self.link.try_send(now, &mut descriptor(packet)) {
            Ok(Some((arrival, _))) => Verdict::Deliver(Duration::from(arrival - now)),
            _ => Verdict::Drop,
        }
    }
}
