//! Impairments of links: random losses, and wires with jitter, duplication and corruption.
//!
//! A link with random losses alone draws them when a transmission starts, and hands over its
//! packets then, with their later times of arrival. Packets of other impaired links are kept by the
//! wire until they arrive, because they can overtake each other.

use super::Simulation;
use super::forwarding::free_packet;
use super::in_flight::{Delivery, PacketState, Payload};
use super::telemetry::links_with_telemetry;
use crate::config::impairment_changes::NewImpairments;
use crate::config::links::LinkConfig;
use crate::config::scenario::Scenario;
use crate::endpoint::udp::Datagram;
use crate::output::outcome;
use crate::random_stream::random_stream;
use serde_json::Value as Json;
use sojourn_aqm::Pcg;
use sojourn_aqm::Snapshot;
use sojourn_aqm::units::{Span, Time};
use sojourn_aqm::wire::{Arrival, Fate, LossProcess, Stream, Wire};
use sojourn_aqm::{Ecn, Link, Packet};

/// Impairments of a link in operation.
#[derive(Clone, Snapshot)]
pub(super) enum Impaired {
    /// Random losses alone.
    Loss(LossProcess<Pcg>),
    /// A wire.
    Wire(Box<Wire>),
}

impl Impaired {
    /// Impairments of `def`; `None` if it has none.
    fn of(def: &LinkConfig, seed: u64) -> Option<Impaired> {
        let impairments = def.impairments();
        let stream = |name: &str| random_stream(seed, &format!("links.{}.{name}", def.name));
        if def.has_wire() {
            let wire = Wire::new(impairments, |name| Box::new(stream(name)));
            return Some(Impaired::Wire(Box::new(wire)));
        }
        let loss = impairments.loss;
        (!loss.is_lossless()).then(|| Impaired::Loss(LossProcess::new(loss, stream("loss"))))
    }

    /// Starts the measured interval at `now`.
    pub(super) fn reset_stats(&mut self, now: Time) {
        match self {
            // Losses count for packets that arrive later only.
            Impaired::Loss(process) => process.lost = 0,
            Impaired::Wire(wire) => wire.reset_stats(now),
        }
    }

    /// Adds the counters to the summary of the link.
    pub(super) fn summarise(&self, row: &mut Json) {
        match self {
            Impaired::Loss(process) => row["lost_on_wire_packets"] = process.lost.into(),
            Impaired::Wire(wire) => outcome::insert_wire_stats(wire.stats(), row),
        }
    }
}

/// Impairments per link; empty if no link has any, and no packet collects telemetry.
pub(super) fn impairments(scenario: &Scenario) -> Vec<Option<Impaired>> {
    let all: Vec<Option<Impaired>> =
        scenario.links.iter().map(|def| Impaired::of(def, scenario.first_seed())).collect();
    let telemetry = links_with_telemetry(scenario).contains(&true);
    if !telemetry && all.iter().all(Option::is_none) { Vec::new() } else { all }
}

impl Simulation {
    /// Wire of link `l`, if it has one.
    #[inline]
    pub(super) fn wire(&self, l: usize) -> Option<&Wire> {
        match self.impaired.get(l) {
            Some(Some(Impaired::Wire(wire))) => Some(wire),
            _ => None,
        }
    }

    /// Delay of link `l` for the division into parts. A wire keeps its packets until they arrive,
    /// so it must be in the part of the next link.
    pub(super) fn delay_between_parts(&self, l: usize, link: &Link) -> Span {
        if self.wire(l).is_some() { Span::ZERO } else { link.spec().delay }
    }

    /// Sends the packet of link `l` that arrives at `at` without impairments to its wire, or draws
    /// its random loss. Returns false if it arrives at `at`. Its telemetry is recorded first.
    #[cold]
    pub(super) fn cross_wire(&mut self, l: usize, at: Time, packet: &Packet) -> bool {
        self.stamp(l, packet);
        let Simulation {
            scenario, impaired, links, bodies, acks, flows, exchange, telemetry, ..
        } = self;
        let body = packet.body;
        let lost = match &mut impaired[l] {
            None => return false,
            Some(Impaired::Loss(process)) => {
                if !process.next_is_lost() {
                    self.record_loss(l, false);
                    return false;
                }
                let since = Time::ZERO + scenario.warmup();
                process.lost += u64::from(packet.arrived >= since);
                true
            }
            Some(Impaired::Wire(wire)) => {
                let sent = Time(at.0.saturating_sub(links[l].spec().delay.0));
                let mut copy = |body| {
                    let state = *bodies.get(body);
                    let payload = match state.payload {
                        Payload::Ack(i) => Payload::Ack(acks.insert(*acks.get(i))),
                        other => other,
                    };
                    let duplicate = bodies.insert(PacketState { payload, ..state });
                    if let Some(telemetry) = telemetry {
                        telemetry.duplicate(body, duplicate);
                    }
                    Some(duplicate)
                };
                wire.send(sent, at, *packet, &mut copy) == Fate::Lost
            }
        };
        if lost {
            free_packet(body, bodies, acks, flows, exchange.as_deref_mut());
        }
        self.record_loss(l, lost);
        true
    }

    /// Changes the impairments of link `l` at `now`.
    pub(super) fn change_wire(&mut self, l: usize, now: Time, new: &NewImpairments) {
        self.send_on_wire(l, now);
        let key = format!("links.{}", self.scenario.links[l].name);
        let seed = self.current_seed();
        let Some(Some(Impaired::Wire(wire))) = self.impaired.get_mut(l) else { return };
        let mut impairments = wire.impairments();
        new.apply(&mut impairments);
        let stream =
            |name: &str| -> Stream { Box::new(random_stream(seed, &format!("{key}.{name}"))) };
        wire.change(now, &impairments, stream);
        self.collect_from_link(l);
    }

    /// Sends the packets whose transmission has started before `now` to the wire of link `l`, if it
    /// has one: their delay is still the current one.
    pub(super) fn send_on_wire(&mut self, l: usize, now: Time) {
        if self.wire(l).is_some() {
            let before = Time(now.0.saturating_sub(1)).max(self.links[l].now());
            self.links[l].advance(before);
            self.collect_from_link(l);
        }
    }

    /// Processes the next packet that arrives at the far end of the wire of link `l` by `now`, if
    /// the link has a wire.
    #[cold]
    pub(super) fn wire_event(&mut self, l: usize, now: Time) {
        if self.wire(l).is_none() {
            return;
        }
        self.collect(l);
        let Some(Some(Impaired::Wire(wire))) = self.impaired.get_mut(l) else { return };
        let Some(Arrival { packet, wrong_bit, .. }) = wire.poll(now) else { return };
        let body = packet.body;
        if wrong_bit.is_some() {
            self.corrupt(body);
        }
        let cursor = self.bodies.get(body).cursor;
        if self.routes.next_link(cursor).is_none() {
            let Packet { flow, ack: feedback, ecn, .. } = packet;
            let delivery = Delivery { at: now, flow, ce: ecn == Ecn::Ce, feedback };
            self.deliver(cursor, delivery, body);
        } else {
            self.link_events.serve(l);
            self.push(cursor + 1, now, packet);
        }
    }

    /// Makes the contents of a packet wrong: its receiver will drop it.
    fn corrupt(&mut self, body: u32) {
        let state = self.bodies.get_mut(body);
        state.payload = match state.payload {
            Payload::Datagram(datagram) => Payload::Corrupt(Some(datagram)),
            Payload::Corrupt(datagram) => Payload::Corrupt(datagram),
            Payload::Ack(ack) => {
                self.acks.remove(ack);
                Payload::Corrupt(None)
            }
            Payload::Segment(_) | Payload::Report(_) => Payload::Corrupt(None),
        };
    }

    /// Drops a corrupt packet of flow `f` at its receiver.
    #[cold]
    pub(super) fn drop_corrupt(&mut self, f: usize, datagram: Option<Datagram>) {
        if let Some(datagram) = datagram {
            self.flows[f].on_datagram_lost(&datagram);
        }
    }
}
