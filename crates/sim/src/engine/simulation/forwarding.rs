//! Packets on their way over links: from the queue of a link to the next link, or to the flow.

use super::Simulation;
use super::in_flight::{Delivery, Forwarded, PacketState, Payload};
use super::parallel::Exchange;
use crate::collections::prefetch::{prefetch, prefetch_start};
use crate::collections::slab::Slab;
use crate::endpoint::tcp::Ack;
use crate::engine::flow::Flow;
use sojourn_aqm::units::Time;
use sojourn_aqm::{Ecn, Link, Packet};

/// log2 of the prefetch look-ahead for a link, in events.
const PREFETCH_LINK_LOG2: u32 = 3;

impl Simulation {
    /// Processes the event of link `l`: a packet of this link that reaches the next one, or one
    /// that leaves the queue of this link.
    #[inline(always)]
    pub(super) fn link_event(&mut self, l: usize, now: Time) {
        // Nothing can happen on a link that has computed all departures.
        let computed = self.computes_departures[l];
        if !computed {
            self.links[l].advance(now);
        }
        if self.next_forwarded(l) <= now
            && let Some(Forwarded { packet, cursor }) = self.forwarding[l].pop_front()
        {
            if self.forwarding[l].is_empty() {
                // Restart at the first entry, so that short queues use few cache lines.
                self.forwarding[l].clear();
            }
            self.link_events.serve(l);
            self.push(cursor, now, packet);
        }
        let next = if computed { self.next_forwarded(l) } else { self.collect(l) };
        self.link_events.schedule(l, next);
        if self.link_events.exceeds_cache() {
            self.prefetch_upcoming_link(l);
        }
    }

    /// Prefetch the link that a packet reaches which is due soon. Link `l` was just served.
    #[inline]
    fn prefetch_upcoming_link(&self, l: usize) {
        let due = self.link_events.earliest_near(l, PREFETCH_LINK_LOG2);
        if let Some(packet) = self.forwarding[due].front() {
            let next = self.routes.link(packet.cursor);
            let link = &self.links[next];
            prefetch_start(link, Link::HOT_BYTES);
            prefetch(link.qdisc());
            prefetch(&self.forwarding[next]);
        }
    }

    /// Time at which the first packet in [`Simulation::forwarding`] of link `l` reaches the next
    /// link; [`Time::NEVER`] if there is none.
    #[inline]
    pub(super) fn next_forwarded(&self, l: usize) -> Time {
        self.forwarding[l].front().map_or(Time::NEVER, |next| next.packet.arrived)
    }

    /// Enqueues `packet` at the link at `cursor`. If that link computes departures at enqueue, the
    /// packet is handed over at once: to the next link, or to its flow.
    #[inline(always)]
    pub(super) fn push(&mut self, cursor: u32, now: Time, mut packet: Packet) {
        let l = self.routes.link(cursor);
        debug_assert!(
            self.exchange.as_ref().is_none_or(|x| x.leaves_to(cursor).is_none()),
            "link {l} is in another part"
        );
        if !self.computes_departures[l] {
            self.bodies.get_mut(packet.body).cursor = cursor;
            self.links[l].push(now, packet);
            return self.collect_from_link(l);
        }
        let Some((at, ecn)) = self.links[l].send(now, &mut packet) else {
            let Simulation { bodies, acks, flows, exchange, .. } = self;
            return free_packet(packet.body, bodies, acks, flows, exchange.as_deref_mut());
        };
        if self.routes.is_last(cursor) {
            let Packet { flow, body, ack: feedback, .. } = packet;
            let delivery = Delivery { at, flow, ce: ecn == Ecn::Ce, feedback };
            return self.deliver(cursor, delivery, body);
        }
        if self.exchange.is_some()
            && self.forward_elsewhere(l, cursor + 1, Packet { arrived: at, ecn, ..packet })
        {
            return;
        }
        let queue = &mut self.forwarding[l];
        let is_first = queue.is_empty();
        let packet = Packet { arrived: at, ecn, ..packet };
        queue.push_back(Forwarded { packet, cursor: cursor + 1 });
        // Later packets of the queue do not move its event.
        if is_first {
            self.link_events.schedule_earlier(l, at);
        }
    }

    /// Collects sent and dropped packets from the link, and schedules its next event. A call that
    /// comes early is harmless, so the event is only ever moved to an earlier time here.
    pub(super) fn collect_from_link(&mut self, l: usize) {
        let next = self.collect(l);
        self.link_events.schedule_earlier(l, next);
    }

    /// Collects sent and dropped packets from the link, and returns the time of its next event.
    fn collect(&mut self, l: usize) -> Time {
        self.free_dropped(l);
        while let Some((at, packet)) = self.links[l].first_in_flight() {
            // Read single fields only: moving a whole struct that was just written causes a
            // store-forwarding stall.
            let (at, body, arrived, ce) = (*at, packet.body, packet.arrived, packet.ecn == Ecn::Ce);
            let delivery = Delivery { at, flow: packet.flow, ce, feedback: packet.ack };
            if !self.losses.is_empty() && self.lose_at_random(l, body, arrived) {
                self.links[l].pop_in_flight();
                continue;
            }
            let cursor = self.bodies.get_mut(body).cursor;
            let sent = self.links[l].pop_in_flight();
            if self.routes.is_last(cursor) {
                self.deliver(cursor, delivery, body);
            } else if let Some((arrived, packet)) = sent {
                let packet = Packet { arrived, ..packet };
                if self.exchange.is_some() && self.forward_elsewhere(l, cursor + 1, packet) {
                    continue;
                }
                self.forwarding[l].push_back(Forwarded { packet, cursor: cursor + 1 });
            }
        }
        self.next_link_event(l)
    }

    /// Time of the next event of link `l`, which does not compute departures.
    #[inline]
    pub(super) fn next_link_event(&self, l: usize) -> Time {
        let (forwarded, link) = (self.next_forwarded(l), &self.links[l]);
        if self.exchange.is_some() {
            // Other parts need a packet when its transmission starts, not when it arrives.
            let start = link.next_event().map(|at| Time(at.0 - link.spec().delay.0));
            return forwarded.min(start.unwrap_or(Time::NEVER));
        }
        // Until a packet reaches the next link nothing needs this one, which makes up for it then.
        match forwarded {
            Time::NEVER => link.next_event().unwrap_or(Time::NEVER),
            next => next,
        }
    }

    /// In a part: sends `packet`, which goes on from link `l` to the link at `cursor`, to the part
    /// that owns that link. Returns false if this part does.
    fn forward_elsewhere(&mut self, l: usize, cursor: u32, packet: Packet) -> bool {
        let Simulation { exchange: Some(exchange), bodies, acks, .. } = self else { return false };
        let Some(to) = exchange.leaves_to(cursor) else { return false };
        exchange.forward(to, l, Forwarded { packet, cursor }, bodies, acks);
        true
    }

    /// Frees the state of packets dropped by the link.
    fn free_dropped(&mut self, l: usize) {
        if !self.links[l].has_dropped() {
            return;
        }
        let Simulation { links, bodies, acks, flows, exchange, .. } = self;
        for lost in links[l].take_dropped() {
            free_packet(lost.packet.body, bodies, acks, flows, exchange.as_deref_mut());
        }
    }

    /// Draws the random loss of the packet with this body on link `l`. Returns true if it is lost.
    #[cold]
    fn lose_at_random(&mut self, l: usize, body: u32, arrived: Time) -> bool {
        let Simulation { scenario, losses, bodies, acks, flows, exchange, .. } = self;
        let Some(process) = &mut losses[l] else { return false };
        let lost = process.next_is_lost();
        if lost {
            process.lost += u64::from(arrived >= Time::ZERO + scenario.warmup());
            free_packet(body, bodies, acks, flows, exchange.as_deref_mut());
        }
        lost
    }
}

/// Frees the state of a dropped packet; a lost datagram is reported to its flow, by `exchange` if
/// the flow is in another part.
fn free_packet(
    body: u32,
    bodies: &mut Slab<PacketState>,
    acks: &mut Slab<Ack>,
    flows: &mut [Flow],
    exchange: Option<&mut Exchange>,
) {
    let PacketState { flow, payload, .. } = *bodies.remove(body);
    match payload {
        Payload::Datagram(datagram) => match exchange {
            Some(exchange) if exchange.is_elsewhere(flow, flows) => {
                exchange.lost.push((flow, datagram));
            }
            _ => flows[flow as usize].on_datagram_lost(&datagram),
        },
        Payload::Ack(ack) => _ = acks.remove(ack),
        Payload::Segment(_) | Payload::Report(_) => {}
    }
}
