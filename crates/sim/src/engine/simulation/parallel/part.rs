//! One part of a simulation: windows of events, and messages from and to the other parts.

use super::exchange::{Creation, Exchange, Message, Opening, ReceivedTransfer, Waiting, move_ack};
use super::meeting::{Decision, MeetingPlace};
use crate::endpoint::tcp::Ack;
use crate::engine::flow::Flow;
use crate::engine::simulation::in_flight::{Forwarded, PacketState};
use crate::engine::simulation::pooled_flows::PooledFlowOwner;
use crate::engine::simulation::{Simulation, WORK_BETWEEN_CALLS};
use crate::traffic::transfer::OpenRequest;
use sojourn_aqm::Packet;
use sojourn_aqm::cast;
use sojourn_aqm::units::{Span, Time};

/// Work that a window counts for, so that a part without events calls `watch` as well.
const WORK_PER_WINDOW: usize = 16;

/// Result of the run of a part; the same for all parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartResult {
    /// Everything was simulated.
    Complete,
    /// `watch` returned false in a part.
    Stopped,
    /// Events are in another order than on one thread, or may be: the state is of no use.
    Inexact,
}

/// Work of a part.
#[derive(Clone, Copy)]
pub(super) struct Work {
    pub result: PartResult,
    /// Time up to which everything was simulated.
    pub reached: Time,
    /// Work in this part since the last call of `watch`.
    pub since_call: usize,
}

impl Simulation {
    /// Simulates this part together with the others, up to `until`, or until `watch` returns false
    /// in one of them. It is called now and then, with the start of the window.
    pub(super) fn run_part(
        &mut self,
        place: &MeetingPlace,
        until: Time,
        watch: &mut dyn FnMut(&mut Simulation, Time) -> bool,
    ) -> Work {
        let _guard = place.guard();
        let (me, lookahead) = (self.part(), self.exchange().layout.lookahead);
        let (mut parity, mut stops) = (0, false);
        let (result, reached, since_call) = (PartResult::Complete, self.now, self.work);
        let mut work = Work { result, reached, since_call };
        self.work = 0;
        loop {
            self.publish(place, parity, stops);
            place.wait();
            self.receive(place, parity);
            match place.decide(parity) {
                Decision::Fail => return Work { result: PartResult::Inexact, ..work },
                Decision::Stop => return Work { result: PartResult::Stopped, ..work },
                Decision::Create(part) if part == me => {
                    self.create_waiting_flow();
                    self.run_window(work.reached);
                }
                Decision::Create(_) => self.exchange_mut().flows += 1,
                Decision::Window(start) if start >= until => {
                    return Work { reached: until, ..work };
                }
                Decision::Window(start) => {
                    work.reached = until.min(start + lookahead);
                    self.run_window(work.reached);
                    self.now = work.reached;
                    work.since_call += std::mem::take(&mut self.work) + WORK_PER_WINDOW;
                    if work.since_call >= WORK_BETWEEN_CALLS {
                        work.since_call = 0;
                        stops |= !watch(self, start);
                    }
                }
            }
            parity ^= 1;
        }
    }

    /// Number of this part.
    fn part(&self) -> usize {
        self.exchange().part as usize
    }

    pub(super) fn exchange(&self) -> &Exchange {
        self.exchange.as_deref().expect("a part has an exchange")
    }

    pub(super) fn exchange_mut(&mut self) -> &mut Exchange {
        self.exchange.as_deref_mut().expect("a part has an exchange")
    }

    /// Processes everything before `end`, or until an event waits for the number of a new flow.
    fn run_window(&mut self, end: Time) {
        loop {
            let (slot, other) = self.events.earliest();
            let of_links = self.link_events.earliest();
            let at = of_links.min(other);
            if at >= end {
                return;
            }
            self.work += 1;
            if of_links <= other {
                self.link_event(self.link_events.first(), at);
                continue;
            }
            self.exchange_mut().note_event(at, slot);
            if slot >= self.first_flow_slot {
                self.flow_event_of_part(slot - self.first_flow_slot, at);
            } else {
                self.sessions_event(slot, at);
                if self.exchange().waiting.is_some() {
                    return;
                }
            }
        }
    }

    /// Processes an event of flow `f`, of which this part may have one endpoint only.
    fn flow_event_of_part(&mut self, f: usize, now: Time) {
        let Flow { route, connection, .. } = self.flows[f];
        self.flow_event(f, now);
        let exchange = self.exchange_mut();
        let [sender, receiver] = exchange.ends(route);
        if sender == receiver {
            return;
        }
        if receiver == exchange.part {
            exchange.acted_until[f] = now + Span(1);
        } else if self.flows[f].connection != connection {
            self.announce_opening(f, now);
        }
    }

    /// Announces an opened connection to the receiver of flow `f`, if it is in another part.
    pub(in super::super) fn announce_opening(&mut self, f: usize, at: Time) {
        let Flow { route, connection, hash, .. } = self.flows[f];
        let transfer = self.flows[f].transfer().map(|t| (t.open, t.target));
        let exchange = self.exchange_mut();
        let [sender, receiver] = exchange.ends(route);
        if sender != receiver {
            let opening = Opening { at, flow: cast::index32(f), connection, hash, transfer };
            exchange.send(receiver, Message::Opened(opening));
        }
    }

    /// Publishes the state of this part, and hands over its messages.
    fn publish(&mut self, place: &MeetingPlace, parity: usize, stops: bool) {
        let earliest = self.link_events.earliest().min(self.events.earliest().1);
        let me = self.part();
        let exchange = self.exchange_mut();
        let earliest = earliest.min(exchange.earliest_sent);
        exchange.earliest_sent = Time::NEVER;
        for (to, mail) in exchange.outboxes.iter_mut().enumerate() {
            if to != me {
                place.swap(parity, me, to, mail);
            }
        }
        let waiting = exchange.waiting.map(|waiting| (waiting.at, exchange.latest.1));
        place.publish(parity, me, earliest, waiting, [exchange.conflict, stops]);
    }

    /// Processes the messages from the other parts.
    fn receive(&mut self, place: &MeetingPlace, parity: usize) {
        let me = self.part();
        let mut mail = std::mem::take(&mut self.exchange_mut().inbox);
        for from in (0..self.exchange().layout.parts).filter(|from| *from != me) {
            place.swap(parity, from, me, &mut mail);
            for message in &mail.messages {
                self.process_message(message, &mail.acks);
            }
            mail.messages.clear();
            mail.acks.clear();
        }
        self.exchange_mut().inbox = mail;
    }

    /// Processes a message; acks of packets are in `acks`.
    fn process_message(&mut self, message: &Message, acks: &[Ack]) {
        match message {
            Message::Packet(l, next, state) => {
                debug_assert!(next.packet.arrived >= self.now, "a packet arrives in the past");
                let (l, body) = (*l as usize, self.unpack(state, acks));
                let Forwarded { link, cursor, packet } = *next;
                let (packet, sent) = (Packet { body, ..packet }, (packet.arrived, packet.ecn));
                if self.forwarding[l].push(link, cursor, &packet, sent) {
                    self.link_events.schedule_earlier(l, packet.arrived);
                }
            }
            Message::Delivery(delivery, state) => {
                debug_assert!(delivery.at >= self.now, "a packet arrives in the past");
                let body = self.unpack(state, acks);
                self.deliver_here(*delivery, body);
            }
            Message::Opened(opening) => self.open_receiver(opening),
            Message::Created(creation) => self.create_receiver(creation),
        }
    }

    /// Puts a packet, whose ack is in `acks`, into the slabs of this part; returns its body.
    fn unpack(&mut self, state: &PacketState, acks: &[Ack]) -> u32 {
        let insert = |ack| self.acks.insert(ack);
        let state = move_ack(state, |i| acks[i as usize], insert);
        self.bodies.insert(state)
    }

    /// The sender of a flow, in another part, has opened a connection.
    fn open_receiver(&mut self, opening: &Opening) {
        let f = opening.flow as usize;
        let exchange = self.exchange_mut();
        exchange.conflict |= exchange.acted_until[f] > opening.at;
        let Opening { connection, hash, transfer, .. } = *opening;
        self.flows[f].open_receiver(connection, hash, transfer);
        self.events.schedule(self.first_flow_slot + f, self.flows[f].next_event_time());
    }

    /// Creates the receiver of a pooled flow whose sender is in another part.
    fn create_receiver(&mut self, creation: &Creation) {
        let f = creation.flow as usize;
        let flow = self.pooled_flow(creation.sessions as usize, &creation.open, creation.number);
        self.make_room(f + 1);
        self.flows[f] = flow;
    }

    /// Makes room for `count` flows, flows of other parts included.
    pub(super) fn make_room(&mut self, count: usize) {
        if self.flows.len() < count {
            self.flows.resize_with(count, Flow::absent);
            let pooled = count - self.unpooled_flows;
            self.pooled_owners.resize(pooled, PooledFlowOwner::NONE);
            self.events.reserve(self.first_flow_slot + count);
            self.exchange_mut().acted_until.resize(count, Time::ZERO);
        }
    }

    /// Lets the session group `c` wait for the number of the new flow that `open` needs.
    pub(in super::super) fn wait_for_flow(&mut self, c: usize, open: OpenRequest, at: Time) {
        self.exchange_mut().waiting = Some(Waiting { at, sessions: c, open });
    }

    /// Continues the event that waits for a new flow.
    fn create_waiting_flow(&mut self) {
        let exchange = self.exchange_mut();
        let Some(Waiting { at, sessions: c, open }) = exchange.waiting.take() else { return };
        let f = exchange.flows;
        exchange.flows += 1;
        self.make_room(f);
        let number = self.sessions[c].number_of_next_flow(&open);
        let (flow, sessions) = (cast::index32(f), cast::index32(c));
        let created = self.new_pooled_flow(c, &open);
        debug_assert_eq!(created, f, "all flows before it have a place");
        self.exchange_mut().acted_until.resize(f + 1, Time::ZERO);
        let [sender, receiver] = self.exchange().ends(self.flows[f].route);
        if sender != receiver {
            let creation = Creation { flow, sessions, open, number };
            self.exchange_mut().send(receiver, Message::Created(creation));
        }
        self.open_connection(c, f, open, at);
    }

    /// As [`Simulation::notify_sessions`] in a part, where the session group of flow `f` may be in
    /// another one: completions are kept in a list then. Returns false if the group is here with
    /// all endpoints.
    pub(in super::super) fn notify_in_part(&mut self, f: usize, now: Time) -> bool {
        let Flow { group, route, connection, .. } = self.flows[f];
        let exchange = self.exchange();
        if exchange.layout.whole_groups[group as usize] {
            return false;
        }
        let ([sender, receiver], flow) = (exchange.ends(route), cast::index32(f));
        let Some(pending) = self.flows[f].pending_transfer() else { return true };
        let (received, acked) = (pending.received.take(), std::mem::take(&mut pending.acked));
        let mut transfer = *pending;
        if acked && sender != receiver {
            transfer.startup = self.flows[f].startup_of_transfer();
            self.exchange_mut().startups.push((flow, connection, transfer.startup));
        }
        if let Some(at) = received {
            let received = ReceivedTransfer { at, flow, connection, transfer };
            self.exchange_mut().received.push(received);
        }
        if acked {
            self.notify_acked(f, &transfer, now);
        }
        true
    }
}
