//! Packets on their way over links: from the queue of a link to the next link, or to the flow.

use super::Simulation;
use super::in_flight::{Delivery, Forwarded, PacketState, Payload};
use super::parallel::Exchange;
use crate::collections::prefetch::{prefetch, prefetch_start};
use crate::collections::slab::Slab;
use crate::endpoint::tcp::Ack;
use crate::engine::flow::Flow;
use sojourn_aqm::cast;
use sojourn_aqm::units::Time;
use sojourn_aqm::wire::Wire;
use sojourn_aqm::{Ecn, Link, Packet};

/// log2 of the prefetch look-ahead for a link, in events.
const PREFETCH_LINK_LOG2: u32 = 3;
/// log2 of the prefetch look-ahead for what a link, or a packet, points to.
const PREFETCH_NEXT_LOG2: u32 = 2;

impl Simulation {
    /// Processes the event of link `l`: a packet of this link that reaches the next one, or one
    /// that leaves the queue of this link.
    #[inline(always)]
    pub(super) fn link_event(&mut self, l: usize, now: Time) {
        // Nothing can happen on a link that has computed all departures.
        let computed = self.computes_departures[l];
        if !computed {
            self.links[l].advance(now);
            if !self.impaired.is_empty() {
                self.wire_event(l, now);
            }
        }
        if self.next_forwarded(l) <= now {
            self.link_events.serve(l);
            self.forward_first(l, now);
        }
        let next = if computed { self.next_forwarded(l) } else { self.collect(l) };
        self.link_events.schedule(l, next);
        if self.link_events.exceeds_cache() {
            self.prefetch_upcoming_link(l);
        }
    }

    /// Prefetch the link that a packet reaches which is due soon, in two steps, because some
    /// addresses are in what the first step prefetches. Link `l` was just served.
    #[inline]
    fn prefetch_upcoming_link(&self, l: usize) {
        let far = &self.forwarding[self.link_events.earliest_near(l, PREFETCH_LINK_LOG2)];
        far.prefetch();
        prefetch_start(&self.links[far.first_link()], Link::HOT_BYTES);
        let near = &self.forwarding[self.link_events.earliest_near(l, PREFETCH_NEXT_LOG2)];
        prefetch(self.links[near.first_link()].qdisc());
        prefetch(&self.forwarding[near.first_link()]);
        if let Some(first) = near.front() {
            prefetch(self.bodies.get(first.packet.body));
        }
    }

    /// Time at which the first packet in [`Simulation::forwarding`] of link `l` reaches the next
    /// link; [`Time::NEVER`] if there is none.
    #[inline]
    pub(super) fn next_forwarded(&self, l: usize) -> Time {
        self.forwarding[l].next()
    }

    /// The first packet of the forwarding queue of link `from` reaches its next link. It is moved
    /// from queue to queue without a copy in between, which would be slow.
    #[inline(always)]
    fn forward_first(&mut self, from: usize, now: Time) {
        let Simulation { forwarding, links, .. } = self;
        let Some(first) = forwarding[from].front_mut() else { return };
        let (l, cursor, packet) = (first.link as usize, first.cursor, &mut first.packet);
        if !self.computes_departures[l] || self.switches.port(l).is_some() {
            let packet = *packet;
            self.forwarding[from].remove_front();
            return self.push(cursor, now, packet);
        }
        let sent = links[l].send(now, packet);
        let Packet { flow, body, ack: feedback, .. } = *packet;
        if let Some((next, sent)) = self.send_on(cursor, sent, [flow, body, feedback])
            && !self.first_leaves(from, l, cursor + 1, sent)
            && self.move_first([from, l], next, cursor + 1, sent)
        {
            // Later packets of the queue do not move its event.
            self.link_events.schedule_earlier(l, sent.0);
        }
        self.forwarding[from].remove_front();
    }

    /// Copies the first packet in the forwarding queue of link `from` to the end of the forwarding
    /// queue of link `to`. Returns true if it is the first one there.
    #[inline(always)]
    fn move_first(
        &mut self,
        [from, to]: [usize; 2],
        link: u32,
        cursor: u32,
        sent: (Time, Ecn),
    ) -> bool {
        let queues = self.forwarding.get_disjoint_mut([from, to]);
        let [from, to] = queues.expect("a path crosses a link once");
        from.front().is_some_and(|first| to.push(link, cursor, &first.packet, sent))
    }

    /// Processes `sent`, the result of [`Link::send`] on the link at `cursor`, for a packet with
    /// this flow, body and feedback in `ids`. Drops the packet, delivers it, or returns the link to
    /// which it goes on, with the time of its arrival there and its ECN field.
    #[inline(always)]
    fn send_on(
        &mut self,
        cursor: u32,
        sent: Option<(Time, Ecn)>,
        ids: [u32; 3],
    ) -> Option<(u32, (Time, Ecn))> {
        let [flow, body, feedback] = ids;
        let Some((at, ecn)) = sent else {
            let Simulation { bodies, acks, flows, exchange, .. } = self;
            free_packet(body, bodies, acks, flows, exchange.as_deref_mut());
            return None;
        };
        let next = self.routes.next_link(cursor);
        if next.is_none() {
            self.deliver(cursor, Delivery { at, flow, ce: ecn == Ecn::Ce, feedback }, body);
        }
        next.map(|next| (next, (at, ecn)))
    }

    /// Enqueues `packet` at the link at `cursor`. If that link computes departures at enqueue, the
    /// packet is handed over at once: to the next link, or to its flow.
    pub(super) fn push(&mut self, cursor: u32, now: Time, mut packet: Packet) {
        let l = self.routes.link(cursor);
        debug_assert!(
            self.exchange.as_ref().is_none_or(|x| x.leaves_to(cursor).is_none()),
            "link {l} is in another part"
        );
        let port = self.switches.port(l);
        if let Some(port) = port {
            self.free_buffer(port, packet.class, now, packet.len);
        }
        let Simulation { links, switches, .. } = self;
        let link = &mut links[l];
        if !self.computes_departures[l] {
            self.bodies.get_mut(packet.body).cursor = cursor;
            match port {
                Some(port) => switches.admit(port, link, now, &mut packet),
                None => link.push(now, packet),
            }
            return self.collect_from_link(l);
        }
        let sent = match port {
            Some(port) => switches.send(port, link, now, &mut packet),
            None => link.send(now, &mut packet),
        };
        let Packet { flow, body, ack: feedback, .. } = packet;
        if let Some((next, sent)) = self.send_on(cursor, sent, [flow, body, feedback])
            && !self.leaves(l, cursor + 1, &packet, sent)
            && self.forwarding[l].push(next, cursor + 1, &packet, sent)
        {
            self.link_events.schedule_earlier(l, sent.0);
        }
    }

    /// Collects sent and dropped packets from the link, and schedules its next event. A call that
    /// comes early is harmless, so the event is only ever moved to an earlier time here.
    pub(super) fn collect_from_link(&mut self, l: usize) {
        let next = self.collect(l);
        self.link_events.schedule_earlier(l, next);
    }

    /// Collects sent and dropped packets from the link, and returns the time of its next event.
    pub(super) fn collect(&mut self, l: usize) -> Time {
        if self.tap.is_some() {
            self.record_passed(l);
        }
        self.free_dropped(l);
        while let Some((at, packet)) = self.links[l].first_in_flight() {
            // Read single fields only: moving a whole struct that was just written causes a
            // store-forwarding stall.
            let (at, body, ce) = (*at, packet.body, packet.ecn == Ecn::Ce);
            let delivery = Delivery { at, flow: packet.flow, ce, feedback: packet.ack };
            if !self.impaired.is_empty() {
                let packet = *packet;
                if self.cross_wire(l, at, &packet) {
                    self.links[l].pop_in_flight();
                    continue;
                }
            }
            let cursor = self.bodies.get_mut(body).cursor;
            let sent = self.links[l].pop_in_flight();
            let Some(next) = self.routes.next_link(cursor) else {
                self.deliver(cursor, delivery, body);
                continue;
            };
            if let Some((arrived, packet)) = sent
                && !self.leaves(l, cursor + 1, &packet, (arrived, packet.ecn))
            {
                self.forwarding[l].push(next, cursor + 1, &packet, (arrived, packet.ecn));
            }
        }
        self.next_link_event(l)
    }

    /// Time of the next event of link `l`, which does not compute departures.
    #[inline]
    pub(super) fn next_link_event(&self, l: usize) -> Time {
        let (forwarded, link) = (self.next_forwarded(l), &self.links[l]);
        let wire = if self.impaired.is_empty() { None } else { self.wire(l) };
        if self.exchange.is_some() || wire.is_some() {
            // Other parts need a packet when its transmission starts, not when it arrives; a wire
            // can make it arrive earlier.
            let start = link.next_event().map(|at| Time(at.0 - link.spec().delay.0));
            let arrival = wire.and_then(Wire::next_event);
            return [start, arrival].into_iter().flatten().fold(forwarded, Time::min);
        }
        // Until a packet reaches the next link nothing needs this one, which makes up for it then.
        match forwarded {
            Time::NEVER => link.next_event().unwrap_or(Time::NEVER),
            next => next,
        }
    }

    /// In a part: sends `packet`, which goes on from link `l` to the link at `cursor`, to the part
    /// that owns that link. It arrives there at the time in `sent`, with its ECN field. Returns
    /// false if this part owns it.
    #[inline]
    fn leaves(&mut self, l: usize, cursor: u32, packet: &Packet, sent: (Time, Ecn)) -> bool {
        let Simulation { exchange: Some(exchange), bodies, acks, routes, .. } = self else {
            return false;
        };
        let Some(to) = exchange.leaves_to(cursor) else { return false };
        let packet = Packet { arrived: sent.0, ecn: sent.1, ..*packet };
        let next = Forwarded { link: cast::index32(routes.link(cursor)), cursor, packet };
        exchange.forward(to, l, next, bodies, acks);
        true
    }

    /// As [`Simulation::leaves`], for the first packet of the forwarding queue of link `from`,
    /// which goes on from link `l`.
    #[inline]
    fn first_leaves(&mut self, from: usize, l: usize, cursor: u32, sent: (Time, Ecn)) -> bool {
        let packet = match &self.exchange {
            Some(exchange) if exchange.leaves_to(cursor).is_some() => {
                self.forwarding[from].front().map(|first| first.packet)
            }
            _ => None,
        };
        packet.is_some_and(|packet| self.leaves(l, cursor, &packet, sent))
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
}

/// Frees the state of a dropped packet; a lost datagram is reported to its flow, by `exchange` if
/// the flow is in another part.
pub(super) fn free_packet(
    body: u32,
    bodies: &mut Slab<PacketState>,
    acks: &mut Slab<Ack>,
    flows: &mut [Flow],
    exchange: Option<&mut Exchange>,
) {
    let PacketState { flow, payload, .. } = *bodies.remove(body);
    match payload {
        Payload::Datagram(datagram) | Payload::Corrupt(Some(datagram)) => match exchange {
            Some(exchange) if exchange.is_elsewhere(flow, flows) => {
                exchange.lost.push((flow, datagram));
            }
            _ => flows[flow as usize].on_datagram_lost(&datagram),
        },
        Payload::Ack(ack) => _ = acks.remove(ack),
        Payload::Segment(_) | Payload::Report(_) | Payload::Corrupt(None) => {}
    }
}
