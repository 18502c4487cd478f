//! Tap: the packets that pass a link, with what their headers would say.
//!
//! A packet is recorded when its fate on the link is known. Packets of the same connections in the
//! opposite direction are recorded where they reach the endpoint next to the link, as a capture at
//! that endpoint would see them: acks where the link carries the data, data where it carries the
//! acks.

use super::in_flight::Payload;
use super::stepping::LinkChanges;
use super::{Progress, Simulation};
use crate::config::scenario::Scenario;
use crate::endpoint::call::Report;
use crate::endpoint::common_params::{EcnFeedback, Profile};
use crate::endpoint::tcp::{Ack, Segment};
use crate::engine::flow::{ArrivedPacket, Endpoints};
use crate::output::outcome::Outcome;
use sojourn_aqm::cast;
use sojourn_aqm::units::Time;
use sojourn_aqm::{DropReason, Ecn};
use std::collections::VecDeque;
use std::sync::Arc;

/// Fate of a packet on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fate {
    /// It was sent.
    Sent,
    /// The queue dropped it.
    Dropped(DropReason),
    /// It was sent, and lost on the wire.
    Lost,
}

/// Contents of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TappedContent {
    /// Segment of TCP, or packet of QUIC, from sender to receiver.
    Segment(Segment),
    /// Acknowledgement, from receiver to sender.
    Ack(Ack),
    /// Datagram from sender to receiver; its length on the wire in bytes.
    Datagram(u32),
    /// Report of a receiver of datagrams; its length on the wire in bytes.
    Report(u32),
}

/// Packet that a tap has recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TappedPacket {
    /// Time of its arrival at the link, or at an endpoint if it does not pass the link.
    pub arrived: Time,
    /// Start of its transmission, or time of the drop; the arrival if it does not pass the link.
    pub left: Time,
    /// Its fate.
    pub fate: Fate,
    /// True if it passes the link, false if it belongs to the opposite direction.
    pub passes: bool,
    /// Number of its flow.
    pub flow: u32,
    /// Number of its connection within the flow.
    pub connection: u32,
    /// ECN field with which it left the link.
    pub ecn: Ecn,
    /// Traffic class.
    pub class: u16,
    /// Its contents.
    pub content: TappedContent,
}

/// Transport protocol of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TappedProtocol {
    /// UDP.
    Udp,
    /// QUIC, over UDP.
    Quic,
    /// TCP.
    Tcp {
        /// Bytes per unit of sequence number.
        unit: u32,
        /// Size of IP and TCP header of a data packet, bytes.
        header: u32,
        /// Payload of a full packet, bytes.
        payload: u32,
        /// True if segments carry timestamps.
        timestamps: bool,
        /// Form of ECN feedback, if ECN is used.
        ecn: Option<EcnFeedback>,
    },
}

/// Flow of a recorded packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TappedFlow {
    /// Keys of the hosts that send and receive the data.
    pub hosts: [u32; 2],
    /// Transport protocol.
    pub protocol: TappedProtocol,
}

/// Tap on a link.
#[derive(Clone, Debug, Default)]
pub(super) struct Tap {
    link: usize,
    /// Number of rows of the packet log that are recorded already.
    seen: usize,
    packets: Vec<TappedPacket>,
    /// Sent packets that may still be lost on the wire, in order of their transmission; `None` for
    /// a packet that an earlier link has corrupted.
    sent: VecDeque<Option<TappedPacket>>,
}

/// Runs a scenario as [`run`](crate::run) does, and calls `each` for every packet that passes link
/// number `link`, and for the packets of the same connections in the opposite direction. The result
/// is the same. Memory does not grow with the number of packets.
///
/// Packets come in the order in which their fates become known. Left out are packets that are in
/// the queue at the end, and packets that an earlier link has corrupted.
///
/// `progress` is called as by [`run_with_progress`](crate::run_with_progress). If it or `each`
/// returns `false`, the run stops and the result is `None`.
pub fn run_tapped(
    scenario: impl Into<Arc<Scenario>>,
    link: usize,
    each: &mut dyn FnMut(&TappedPacket, &TappedFlow) -> bool,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Option<Outcome> {
    let mut simulation = Simulation::set_up(scenario.into(), LinkChanges::Tapped(link), progress)?;
    simulation.tap = Some(Box::new(Tap { link, ..Tap::default() }));
    simulation.links[link].enable_packet_log();
    let end = simulation.end();
    loop {
        let mut goes_on = true;
        // Stops at every call, to hand over what was recorded.
        let ended = simulation.advance_to(end, &mut |so_far| {
            goes_on = progress(so_far);
            false
        });
        if ended {
            simulation.links[link].advance(end);
            simulation.record_passed(link);
        }
        goes_on &= simulation.hand_over(each);
        if !goes_on {
            return None;
        }
        if ended {
            return simulation.outcome(progress);
        }
    }
}

impl Simulation {
    /// Calls `each` for every recorded packet, and forgets them; returns false if it did.
    fn hand_over(&mut self, each: &mut dyn FnMut(&TappedPacket, &TappedFlow) -> bool) -> bool {
        let Some(tap) = &mut self.tap else { return true };
        let mut packets = std::mem::take(&mut tap.packets);
        let goes_on = packets.drain(..).all(|packet| each(&packet, &self.tapped_flow(packet.flow)));
        if let Some(tap) = &mut self.tap {
            tap.packets = packets;
        }
        goes_on
    }

    /// The flow with this number, as headers show it.
    fn tapped_flow(&self, flow: u32) -> TappedFlow {
        let flow = &self.flows[flow as usize];
        let def = &self.scenario.flows[flow.group as usize];
        let protocol = def.tcp.as_ref().map_or(TappedProtocol::Udp, |tcp| {
            let settings = tcp.settings();
            let header = cast::saturate32(settings.header.0);
            let payload = cast::saturate32(settings.packet.0).saturating_sub(header);
            match settings.profile {
                Profile::Quic => TappedProtocol::Quic,
                profile => TappedProtocol::Tcp {
                    unit: match profile {
                        Profile::Ns2 => payload,
                        _ => 1,
                    },
                    header,
                    payload,
                    timestamps: settings.timestamps,
                    ecn: settings.ecn_feedback.filter(|_| settings.ecn == Some(true)),
                },
            }
        });
        TappedFlow { hosts: flow.hosts, protocol }
    }

    /// Records the packets that left the queue of link `l` since the last call, if it has the tap.
    /// Their states must not be freed yet.
    #[cold]
    pub(super) fn record_passed(&mut self, l: usize) {
        let Simulation { tap: Some(tap), links, bodies, acks, impaired, scenario, .. } = self
        else {
            return;
        };
        if tap.link != l {
            return;
        }
        let may_lose = impaired.get(l).is_some_and(Option::is_some);
        for row in &links[l].packet_log()[tap.seen..] {
            let state = bodies.get(row.packet.body);
            let content = match state.payload {
                Payload::Segment(segment) => TappedContent::Segment(segment),
                Payload::Ack(ack) => TappedContent::Ack(*acks.get(ack)),
                Payload::Datagram(datagram) => TappedContent::Datagram(datagram.len),
                Payload::Report(_) => TappedContent::Report(Report::BYTES),
                Payload::Corrupt(_) => {
                    if may_lose && row.why.is_none() {
                        tap.sent.push_back(None);
                    }
                    continue;
                }
            };
            let packet = TappedPacket {
                arrived: row.packet.arrived,
                left: row.left,
                fate: row.why.map_or(Fate::Sent, Fate::Dropped),
                passes: true,
                flow: state.flow,
                connection: state.connection,
                ecn: row.packet.ecn,
                class: row.packet.class,
                content,
            };
            if may_lose && row.why.is_none() {
                tap.sent.push_back(Some(packet));
            } else {
                tap.packets.push(packet);
            }
        }
        tap.seen = links[l].packet_log().len();
        if !scenario.packet_log() {
            links[l].clear_packet_log();
            tap.seen = 0;
        }
    }

    /// Records whether the next packet that was sent on link `l` was lost on the wire.
    #[cold]
    pub(super) fn record_loss(&mut self, l: usize, lost: bool) {
        let Some(tap) = &mut self.tap else { return };
        if tap.link == l
            && let Some(Some(packet)) = tap.sent.pop_front()
        {
            let fate = if lost { Fate::Lost } else { Fate::Sent };
            tap.packets.push(TappedPacket { fate, ..packet });
        }
    }

    /// As `flow_event`, and records the packets that reach an endpoint of flow `f` in the direction
    /// opposite to the link.
    #[cold]
    pub(super) fn flow_event_tapped(&mut self, f: usize, now: Time) {
        let Simulation { tap, flows, routes, outbox, .. } = self;
        let (flow, tap) = (&mut flows[f], tap.as_mut().expect("there is a tap"));
        let [path, back] = &routes.all[flow.route as usize];
        let [ahead, behind] = [path, back].map(|way| way.contains(&tap.link));
        let number = cast::index32(f);
        let packet = |connection, ecn, content| TappedPacket {
            arrived: now,
            left: now,
            fate: Fate::Sent,
            passes: false,
            flow: number,
            connection,
            ecn,
            class: 0,
            content,
        };
        let class = flow.class;
        let first = tap.packets.len();
        if behind && !ahead {
            for (_, connection, arrival) in flow.arrivals_due(now) {
                let (ecn, content) = match *arrival {
                    ArrivedPacket::Segment(segment, ce) => {
                        let sent = if segment.ect { flow.ect } else { Ecn::NotEct };
                        (if ce { Ecn::Ce } else { sent }, TappedContent::Segment(segment))
                    }
                    ArrivedPacket::Datagram(datagram) => {
                        (flow.ect, TappedContent::Datagram(datagram.len))
                    }
                };
                tap.packets.push(packet(*connection, ecn, content));
            }
        }
        if ahead
            && !behind
            && let Endpoints::Udp(udp) = &flow.ends
        {
            let report = packet(flow.connection, Ecn::NotEct, TappedContent::Report(Report::BYTES));
            tap.packets.extend((0..udp.reports_due(now)).map(|_| report));
        }
        let (ecn, last) = (flow.ack_ecn, tap.packets.len());
        outbox.reached = (ahead && !behind).then(Vec::new);
        self.flow_event(f, now);
        let Simulation { tap: Some(tap), outbox, .. } = self else { return };
        // Before the packets that the sender has sent in answer.
        let acks = outbox.reached.take().unwrap_or_default().into_iter();
        let acks = acks.map(|(of, ack)| packet(of, ecn, TappedContent::Ack(ack)));
        let acks: Vec<TappedPacket> = acks.collect();
        let recorded = first..last + acks.len();
        tap.packets.splice(last..last, acks);
        for packet in &mut tap.packets[recorded] {
            packet.class = class;
        }
    }
}

#[cfg(test)]
mod tests;
