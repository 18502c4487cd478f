//! Division of a simulation into parts, and back.

use super::exchange::{Exchange, move_ack};
use super::layout::Layout;
use crate::collections::event_queue::EventQueue;
use crate::collections::link_queue::LinkQueue;
use crate::collections::slab::Slab;
use crate::collections::slab_parts::DividedSlab;
use crate::endpoint::tcp::Ack;
use crate::engine::flow::{Flow, Outbox};
use crate::engine::sessions::SessionGroup;
use crate::engine::simulation::forwarding_queue::ForwardingQueue;
use crate::engine::simulation::in_flight::{Forwarded, PacketState};
use crate::engine::simulation::pooled_flows::PooledFlowOwner;
use crate::engine::simulation::switches::Switches;
use crate::engine::simulation::{Simulation, Threads};
use sojourn_aqm::Pcg;
use sojourn_aqm::units::{Rate, Span, Time};
use sojourn_aqm::{Link, LinkSpec, build};
use std::mem::take;
use std::sync::Arc;

/// Link in place of one of another part.
fn absent_link() -> Link {
    let spec = LinkSpec::new(Rate(1), Span::ZERO);
    let built = build("droptail", &[], spec.rate).expect("it has no settings");
    Link::new(spec, built.qdisc, Pcg::new(0)).expect("the rate is not zero")
}

/// Distributes `all` over `parts` vectors: each entry goes to the part `owner` of its index, the
/// others receive `absent`.
fn deal<T>(
    all: Vec<T>,
    parts: usize,
    owner: impl Fn(usize, &T) -> u32,
    absent: impl Fn(usize) -> T,
) -> Vec<Vec<T>> {
    let mut dealt: Vec<Vec<T>> = (0..parts).map(|_| Vec::with_capacity(all.len())).collect();
    for (i, entry) in all.into_iter().enumerate() {
        let owner = owner(i, &entry) as usize;
        let mut entry = Some(entry);
        for (part, entries) in dealt.iter_mut().enumerate() {
            let own = if part == owner { entry.take() } else { None };
            entries.push(own.unwrap_or_else(|| absent(i)));
        }
    }
    dealt
}

/// Reverts [`deal`].
fn gather<T>(parts: impl Iterator<Item = Vec<T>>, owner: impl Fn(usize) -> u32) -> Vec<T> {
    let mut parts: Vec<std::vec::IntoIter<T>> = parts.map(Vec::into_iter).collect();
    let count = parts[0].len();
    let next = |i| {
        let entries = parts.iter_mut().map(|part| part.next().expect("all parts have all entries"));
        let mut entries: Vec<T> = entries.collect();
        entries.swap_remove(owner(i) as usize)
    };
    (0..count).map(next).collect()
}

/// Parts of a simulation.
pub(super) struct Parts {
    pub all: Vec<Simulation>,
    layout: Arc<Layout>,
    /// Part of each packet that was on a link at the division.
    owners_of_bodies: Vec<u32>,
}

impl Simulation {
    /// Divides the simulation, which keeps what does not belong to a part. [`Simulation::unite`]
    /// must follow.
    pub(super) fn divide(&mut self, layout: &Arc<Layout>) -> Parts {
        self.start_transmissions();
        let n = layout.parts;
        let own = |l: usize| layout.owners[l];
        let next = |l: usize| layout.next_owners[l];
        let order = self.link_events.order();
        let (bodies, acks) = self.divide_packets(layout);
        let computes = take(&mut self.computes_departures);
        let mut switches = self.switches.divide(n);
        let absent = absent_link();
        let links = deal(take(&mut self.links), n, |l, _| own(l), |_| absent.clone());
        let impaired = deal(take(&mut self.impaired), n, |l, _| own(l), |_| None);
        let queues = take(&mut self.forwarding);
        let forwarding = deal(queues, n, |l, _| next(l), |_| ForwardingQueue::default());
        let owner = |group: usize| layout.owner_of_group(group, &self.routes);
        let groups: Vec<usize> = self.sessions.iter().map(|s| s.group).collect();
        let sessions = take(&mut self.sessions);
        let sessions =
            deal(sessions, n, |_, s| owner(s.group), |c| SessionGroup::absent(groups[c]));
        let flows = self.divide_flows(layout);
        let mut all = Vec::with_capacity(n);
        let DividedSlab { parts: bodies, owners: owners_of_bodies } = bodies;
        let state = links.into_iter().zip(impaired).zip(forwarding).zip(sessions).zip(flows);
        let state = (0..).zip(state.zip(bodies).zip(acks));
        for (part, ((((((links, impaired), forwarding), sessions), flows), bodies), acks)) in state
        {
            let owned = |l: usize| layout.owners[l] == part;
            // A part only forwards the packets of a link that it does not own.
            let computes = computes.iter().enumerate().map(|(l, computes)| *computes || !owned(l));
            let mut simulation = Simulation {
                scenario: Arc::clone(&self.scenario),
                now: self.now,
                interruptions: self.interruptions.clone(),
                params: Vec::new(),
                impaired,
                computes_departures: computes.collect(),
                switches: take(&mut switches[part as usize]),
                forwarding,
                unpooled_flows: self.unpooled_flows,
                pooled_owners: self.pooled_owners.clone(),
                members: Vec::new(),
                routes: self.routes.clone(),
                routing: None,
                telemetry: None,
                bodies,
                acks,
                events: EventQueue::new(sessions.len() + flows.len()),
                first_flow_slot: self.first_flow_slot,
                link_events: LinkQueue::with_order(&order),
                outbox: Outbox::default(),
                series: None,
                next_interruption: self.next_interruption,
                departed_in_warmup: 0,
                work: if part == 0 { self.work } else { 0 },
                threads: Threads::default(),
                packet_rate: None,
                repeated_spans: 0,
                exchange: Some(Box::new(Exchange::new(part, layout, flows.len()))),
                tap: None,
                links,
                sessions,
                flows,
            };
            simulation.schedule_all();
            all.push(simulation);
        }
        self.computes_departures = computes;
        Parts { all, layout: Arc::clone(layout), owners_of_bodies }
    }

    /// Starts all transmissions that were due before now, so that their packets are known to the
    /// parts in which they arrive.
    fn start_transmissions(&mut self) {
        let before = Time(self.now.0.saturating_sub(1));
        for l in 0..self.links.len() {
            if !self.computes_departures[l] {
                let at = before.max(self.links[l].now());
                self.links[l].advance(at);
                self.collect_from_link(l);
            }
        }
    }

    /// Schedules the events of all links, groups and flows anew.
    fn schedule_all(&mut self) {
        for l in 0..self.links.len() {
            let computes = self.computes_departures[l];
            let next = if computes { self.next_forwarded(l) } else { self.next_link_event(l) };
            self.link_events.schedule(l, next);
        }
        for (c, group) in self.sessions.iter().enumerate() {
            self.events.schedule(c, group.next());
        }
        for (f, flow) in self.flows.iter().enumerate() {
            self.events.schedule(self.first_flow_slot + f, flow.next_event_time());
        }
    }

    fn divide_flows(&mut self, layout: &Layout) -> Vec<Vec<Flow>> {
        let mut receivers: Vec<(usize, u32, Flow)> = Vec::new();
        let mut flows = take(&mut self.flows);
        for (f, flow) in flows.iter_mut().enumerate() {
            let [sender, receiver] = layout.ends[flow.route as usize];
            if sender != receiver {
                receivers.push((f, receiver, flow.divide()));
            }
        }
        let sender = |_, flow: &Flow| layout.ends[flow.route as usize][0];
        let mut dealt = deal(flows, layout.parts, sender, |_| Flow::absent());
        for (f, part, receiver) in receivers {
            dealt[part as usize][f] = receiver;
        }
        dealt
    }

    /// Divides the packets on links and their acks.
    fn divide_packets(&mut self, layout: &Layout) -> (DividedSlab<PacketState>, Vec<Slab<Ack>>) {
        // The cursor of a packet is not kept up to date on links that compute departures.
        for queue in &self.forwarding {
            for Forwarded { packet, cursor, .. } in queue.iter() {
                self.bodies.get_mut(packet.body).cursor = *cursor;
            }
        }
        let place = |state: &PacketState| layout.destinations[state.cursor as usize];
        let mut acks = vec![Slab::new(); layout.parts];
        let bodies = self.bodies.divide(layout.parts, place, |part, state| {
            move_ack(state, |i| *self.acks.get(i), |ack| acks[part].insert(ack))
        });
        (bodies, acks)
    }

    /// Takes back what belongs to `parts`, which have reached `now`.
    pub(super) fn unite(&mut self, parts: Parts, now: Time) {
        let Parts { all: mut parts, layout, owners_of_bodies } = parts;
        let mut exchanges: Vec<Exchange> = Vec::new();
        let flows = parts.iter().map(|part| part.exchange().flows).max().unwrap_or_default();
        for part in &mut parts {
            part.make_room(flows);
            exchanges.extend(part.exchange.take().map(|exchange| *exchange));
        }
        let order = unite_orders(&parts, &layout);
        self.link_events = LinkQueue::with_order(&order);
        let own = |l: usize| layout.owners[l];
        self.links = gather(parts.iter_mut().map(|part| take(&mut part.links)), own);
        self.impaired = gather(parts.iter_mut().map(|part| take(&mut part.impaired)), own);
        let switches: Vec<&Switches> = parts.iter().map(|part| &part.switches).collect();
        self.switches.unite(&switches, &layout.owners);
        let queues = parts.iter_mut().map(|part| take(&mut part.forwarding));
        self.forwarding = gather(queues, |l| layout.next_owners[l]);
        let groups: Vec<usize> = parts[0].sessions.iter().map(|s| s.group).collect();
        let sessions = parts.iter_mut().map(|part| take(&mut part.sessions));
        self.sessions = gather(sessions, |c| layout.owner_of_group(groups[c], &self.routes));
        let owners = parts.iter().map(|part| part.pooled_owners.as_slice());
        self.pooled_owners = owners.fold(Vec::new(), PooledFlowOwner::merge);
        let bodies = parts.iter_mut().map(|part| take(&mut part.bodies)).collect();
        let bodies = DividedSlab { parts: bodies, owners: owners_of_bodies };
        self.acks = Slab::new();
        self.bodies = bodies.unite(|part, state| {
            let ack = |i| *parts[part].acks.get(i);
            move_ack(state, ack, |ack| self.acks.insert(ack))
        });
        self.unite_flows(parts.iter_mut().map(|part| take(&mut part.flows)).collect(), &layout);
        self.events = EventQueue::new(self.first_flow_slot + self.flows.len());
        self.apply_news(exchanges, &layout);
        self.now = now;
        self.schedule_all();
    }

    fn unite_flows(&mut self, parts: Vec<Vec<Flow>>, layout: &Layout) {
        let mut parts: Vec<_> = parts.into_iter().map(Vec::into_iter).collect();
        for _ in 0..parts[0].len() {
            let entries = (0..).zip(&mut parts);
            let present: Vec<(u32, Flow)> = entries
                .filter_map(|(part, flows)| Some((part, flows.next()?)))
                .filter(|(_, flow)| !flow.is_absent())
                .collect();
            let mut whole = None;
            let mut receiver = None;
            for (part, flow) in present {
                if layout.ends[flow.route as usize][0] == part {
                    whole = Some(flow);
                } else {
                    receiver = Some(flow);
                }
            }
            let mut whole = whole.expect("every flow has a sender");
            if let Some(receiver) = receiver {
                whole.unite(receiver);
            }
            self.flows.push(whole);
        }
    }

    /// Applies what parts kept for other parts: complete transfers and lost datagrams.
    fn apply_news(&mut self, exchanges: Vec<Exchange>, layout: &Layout) {
        let (mut received, mut startups) = (Vec::new(), Vec::new());
        for exchange in exchanges {
            received.extend(exchange.received);
            startups.extend(exchange.startups);
            for (flow, datagram) in exchange.lost {
                self.flows[flow as usize].on_datagram_lost(&datagram);
            }
        }
        // The order of one thread: by time, then by slot.
        received.sort_by_key(|received| (received.at, received.flow));
        startups.sort_unstable();
        for mut of_flow in received {
            let (f, flow) = (of_flow.flow as usize, &self.flows[of_flow.flow as usize]);
            let [sender, receiver] = layout.ends[flow.route as usize];
            if sender != receiver {
                let known = find_startup(&startups, of_flow.flow, of_flow.connection);
                of_flow.transfer.startup = known.unwrap_or_else(|| flow.startup_of_transfer());
            }
            let PooledFlowOwner { sessions, host } = self.pooled_owners[f - self.unpooled_flows];
            self.sessions[sessions as usize].on_received(&of_flow.transfer, host, of_flow.at);
        }
    }
}

/// Order of last service of all links. Only the order of links that forward into one part matters,
/// and that part has it.
fn unite_orders(parts: &[Simulation], layout: &Layout) -> Vec<u32> {
    let of_part = |(part, simulation): (u32, &Simulation)| {
        let order = simulation.link_events.order().into_iter();
        order.filter(move |l| layout.next_owners[*l as usize] == part)
    };
    (0..).zip(parts).flat_map(of_part).collect()
}

/// Span of a transfer before its first byte could be sent, by flow and connection.
fn find_startup(startups: &[(u32, u32, Span)], flow: u32, connection: u32) -> Option<Span> {
    let key = |entry: &(u32, u32, Span)| (entry.0, entry.1);
    let at = startups.binary_search_by_key(&(flow, connection), key).ok()?;
    Some(startups[at].2)
}
