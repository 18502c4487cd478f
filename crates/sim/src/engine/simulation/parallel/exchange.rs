//! Messages from one part of a simulation to the others, and news that it keeps for the whole.

use super::layout::Layout;
use crate::collections::slab::Slab;
use crate::endpoint::tcp::Ack;
use crate::endpoint::udp::Datagram;
use crate::engine::flow::Flow;
use crate::engine::simulation::in_flight::{Delivery, Forwarded, PacketState, Payload};
use crate::traffic::transfer::{OpenRequest, Transfer};
use sojourn_aqm::cast;
use sojourn_aqm::units::{Span, Time};
use std::sync::Arc;

/// Copies the ack of the packet with this state, if it carries one, to another list of acks.
/// Returns the state with the index there.
pub(super) fn move_ack(
    state: &PacketState,
    ack: impl FnOnce(u32) -> Ack,
    insert: impl FnOnce(Ack) -> u32,
) -> PacketState {
    let payload = match state.payload {
        Payload::Ack(i) => Payload::Ack(insert(ack(i))),
        other => other,
    };
    PacketState { payload, ..*state }
}

/// Pooled flow that was created.
#[derive(Clone, Copy)]
pub(super) struct Creation {
    pub flow: u32,
    /// Index of the group of sessions.
    pub sessions: u32,
    pub open: OpenRequest,
    /// Number among the flows of its host for the same purpose.
    pub number: u32,
}

/// Connection that a sender opened at `at`.
#[derive(Clone, Copy)]
pub(super) struct Opening {
    pub at: Time,
    pub flow: u32,
    pub connection: u32,
    pub hash: u32,
    /// Transfer and its target, if the flow is pooled.
    pub transfer: Option<(OpenRequest, u64)>,
}

/// Message to another part. It takes effect no earlier than a look-ahead after its cause, or tells
/// the other endpoint what it needs by then.
#[derive(Clone, Copy)]
pub(super) enum Message {
    /// A packet on its way from a link to the next one, in another part.
    Packet(u32, Forwarded, PacketState),
    /// A packet on its way to an endpoint in another part.
    Delivery(Delivery, PacketState),
    /// A sender opened a connection whose receiver is in another part.
    Opened(Opening),
    /// A pooled flow was created whose receiver is in another part.
    Created(Creation),
}

/// Messages to one part.
#[derive(Clone, Default)]
pub(super) struct Mail {
    pub messages: Vec<Message>,
    /// Acks of the packets in `messages`. They are apart because they are large.
    pub acks: Vec<Ack>,
}

impl Mail {
    /// Takes the packet `body` out of the slabs of a part.
    fn take(
        &mut self,
        body: u32,
        bodies: &mut Slab<PacketState>,
        acks: &mut Slab<Ack>,
    ) -> PacketState {
        let insert = |ack| {
            self.acks.push(ack);
            cast::index32(self.acks.len()) - 1
        };
        move_ack(bodies.remove(body), |i| *acks.remove(i), insert)
    }
}

/// Complete transfer of a pooled flow, as its receiver knows it.
#[derive(Clone, Copy)]
pub(super) struct ReceivedTransfer {
    pub at: Time,
    pub flow: u32,
    pub connection: u32,
    pub transfer: Transfer,
}

/// Event of a session group that waits for the number of a new flow.
#[derive(Clone, Copy)]
pub(super) struct Waiting {
    pub at: Time,
    /// Index of the group of sessions.
    pub sessions: usize,
    pub open: OpenRequest,
}

/// Exchange of a part with the others.
#[derive(Clone)]
pub(in super::super) struct Exchange {
    pub(super) part: u32,
    pub(super) layout: Arc<Layout>,
    /// Messages since the last meeting, for each part.
    pub(super) outboxes: Vec<Mail>,
    /// Empty buffer for messages of others.
    pub(super) inbox: Mail,
    /// Earliest effect of the messages in `outboxes`.
    pub(super) earliest_sent: Time,
    /// Transfers received in this part, in order.
    pub(super) received: Vec<ReceivedTransfer>,
    /// Flow, connection and startup time of transfers that were acknowledged in this part, while
    /// their receiver is in another one.
    pub(super) startups: Vec<(u32, u32, Span)>,
    /// Lost datagrams of flows of other parts.
    pub(in super::super) lost: Vec<(u32, Datagram)>,
    /// For each flow whose receiver, but not its sender, is in this part: the time just after its
    /// last event.
    pub(super) acted_until: Vec<Time>,
    /// Number of flows in all parts.
    pub(super) flows: usize,
    pub(super) waiting: Option<Waiting>,
    /// Time of the last event of a group or flow, and the greatest slot of such events at that
    /// time.
    pub(super) latest: (Time, usize),
    /// True if a receiver acted on a connection after its sender had opened the next one: the
    /// result is not exact.
    pub(super) conflict: bool,
}

impl Exchange {
    pub(super) fn new(part: u32, layout: &Arc<Layout>, flows: usize) -> Exchange {
        Exchange {
            part,
            outboxes: vec![Mail::default(); layout.parts],
            inbox: Mail::default(),
            layout: Arc::clone(layout),
            earliest_sent: Time::NEVER,
            received: Vec::new(),
            startups: Vec::new(),
            lost: Vec::new(),
            acted_until: vec![Time::ZERO; flows],
            flows,
            waiting: None,
            latest: (Time::ZERO, 0),
            conflict: false,
        }
    }

    /// Part at which a packet arrives next that goes on to `cursor`; `None` if it stays in this
    /// part.
    #[inline]
    pub(in super::super) fn leaves_to(&self, cursor: u32) -> Option<usize> {
        let to = self.layout.destinations[cursor as usize];
        (to != self.part).then_some(to as usize)
    }

    /// Sends a packet of these slabs that leaves link `l` to the part `to`, which owns its next
    /// link.
    pub(in super::super) fn forward(
        &mut self,
        to: usize,
        l: usize,
        next: Forwarded,
        bodies: &mut Slab<PacketState>,
        acks: &mut Slab<Ack>,
    ) {
        self.earliest_sent = self.earliest_sent.min(next.packet.arrived);
        let mail = &mut self.outboxes[to];
        let state = mail.take(next.packet.body, bodies, acks);
        mail.messages.push(Message::Packet(cast::index32(l), next, state));
    }

    /// Sends packet `body` of these slabs, which has crossed its last link, to the part `to` of its
    /// endpoint.
    pub(in super::super) fn deliver(
        &mut self,
        to: usize,
        delivery: Delivery,
        body: u32,
        bodies: &mut Slab<PacketState>,
        acks: &mut Slab<Ack>,
    ) {
        self.earliest_sent = self.earliest_sent.min(delivery.at);
        let mail = &mut self.outboxes[to];
        let state = mail.take(body, bodies, acks);
        mail.messages.push(Message::Delivery(delivery, state));
    }

    /// Sends another message to the part `to`.
    pub(super) fn send(&mut self, to: u32, message: Message) {
        self.outboxes[to as usize].messages.push(message);
    }

    /// True if `flow`, of a packet in this part, is in another one.
    pub(in super::super) fn is_elsewhere(&self, flow: u32, flows: &[Flow]) -> bool {
        flows.get(flow as usize).is_none_or(Flow::is_absent)
    }

    /// Parts of the sender and the receiver of a route.
    #[inline]
    pub(super) fn ends(&self, route: u32) -> [u32; 2] {
        self.layout.ends[route as usize]
    }

    /// Records an event at `at` of a group or flow with this slot.
    #[inline]
    pub(super) fn note_event(&mut self, at: Time, slot: usize) {
        let (last, greatest) = self.latest;
        self.latest = (at, if at == last { greatest.max(slot) } else { slot });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_slot_of_a_time_is_kept() {
        let layout = Layout {
            parts: 1,
            lookahead: Span::ZERO,
            destinations: Vec::new(),
            owners: Vec::new(),
            next_owners: Vec::new(),
            ends: Vec::new(),
            whole_groups: Vec::new(),
            may_fail: false,
        };
        let mut exchange = Exchange::new(0, &Arc::new(layout), 0);
        // At one time, a thread processes the lowest slot first: 2 was added by the event of 5.
        for (at, slot, greatest) in [(1, 5, 5), (1, 2, 5), (1, 7, 7), (2, 3, 3)] {
            exchange.note_event(Time(at), slot);
            assert_eq!(exchange.latest, (Time(at), greatest));
        }
    }
}
