//! Simulation of a scenario: links, flows, packets in flight, and the event loop.

use crate::collections::event_queue::EventQueue;
use crate::collections::link_queue::LinkQueue;
use crate::collections::prefetch::prefetch;
use crate::collections::slab::Slab;
use crate::config::scenario::Scenario;
use crate::endpoint::call::Report;
use crate::endpoint::tcp::Ack;
use crate::engine::flow::{ArrivedPacket, Flow, Outbox, PathFeedback};
use crate::engine::series::Series;
use crate::engine::sessions::SessionGroup;
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::params::ParamRow;
use sojourn_aqm::units::Time;
use sojourn_aqm::{Ecn, Link, Packet, TcpFlags};
use std::ops::Range;
use std::sync::Arc;

mod beginning;
mod changing;
mod forwarding;
mod forwarding_queue;
mod headers;
mod impaired;
mod in_flight;
mod interruptions;
mod parallel;
mod pooled_flows;
mod results;
mod routes;
mod routing;
mod snapshot;
mod state;
mod stepping;
mod switches;
mod tap;
mod telemetry;
mod warm_start;
mod watching;

pub use parallel::Threads;
pub use state::{FlowState, LinkState};
pub use stepping::{run, run_on_threads, run_with_progress};
pub use tap::{Fate, TappedContent, TappedFlow, TappedPacket, TappedProtocol, run_tapped};

use beginning::{first_events, first_flows, first_links, groups_by_name};
use forwarding_queue::ForwardingQueue;
use impaired::{Impaired, impairments};
use in_flight::{Delivery, Forwarded, PacketState, Payload};
use interruptions::Interruptions;
use parallel::Exchange;
use pooled_flows::PooledFlowOwner;
use routes::Routes;
use routing::Routing;
use stepping::LinkChanges;
use switches::Switches;
use tap::Tap;
use telemetry::Telemetry;

/// Progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Snapshot)]
#[non_exhaustive]
pub struct Progress {
    /// Fraction of the simulated time that has passed.
    pub share: f64,
    /// Number of packets sent by links; a packet that crosses three links counts three times.
    pub packets: u64,
}

/// Amount of work between two calls of `progress` during the run.
const WORK_BETWEEN_CALLS: usize = 1 << 16;

/// Calls `progress` at each 4,096th index `i` of the links or flows that are set up or reported.
/// Returns false if the run must stop.
fn may_continue(i: usize, so_far: Progress, progress: &mut dyn FnMut(Progress) -> bool) -> bool {
    !(i + 1).is_multiple_of(4096) || progress(so_far)
}

/// log2 of the prefetch look-ahead for a flow, in events. Measured: 4 to 7 are equally fast.
const PREFETCH_FLOW_LOG2: u32 = 5;
/// log2 of the prefetch look-ahead for the lists of a flow, in events. Measured: 2 to 4 are equally
/// fast.
const PREFETCH_LISTS_LOG2: u32 = 3;

/// A scenario that is being simulated: it can be stepped, looked at, changed and copied.
///
/// A run in steps gives the same bytes as one call of [`run`], and a copy (`Clone`) continues as
/// its original does. At the time [`Simulation::now`], everything earlier has happened and nothing
/// that is due then: a change made now precedes all other events of this time, as a change of the
/// scenario does.
///
/// ```
/// use sojourn_aqm::units::{Span, Time};
/// use sojourn_sim::{Scenario, Simulation, run};
///
/// let scenario = Scenario::from_json(r#"{
///     "duration": "4s", "links": {"up": {"rate": "10mbit", "qdisc": "codel"}},
///     "flows": [{"name": "bulk", "path": ["up"], "rtt": "20ms"}]
/// }"#)?;
/// let mut steps = Simulation::new(scenario.clone());
/// for ms in (0..=4000).step_by(10) {
///     steps.run_until(Time::ZERO + Span::ms(ms), &mut |_| true)?;
///     assert!(steps.link("up")?.queue_packets <= 1000);
/// }
/// let whole = run(&scenario);
/// assert_eq!(steps.result()?.summary.to_string(), whole.summary.to_string());
/// # Ok::<(), sojourn_aqm::Error>(())
/// ```
#[derive(Clone, Snapshot)]
pub struct Simulation {
    #[snapshot(skip)]
    scenario: Arc<Scenario>,
    /// Time up to which everything has happened.
    now: Time,
    interruptions: Interruptions,
    links: Vec<Link>,
    /// Current parameters of the discipline of each link.
    #[snapshot(skip)]
    params: Vec<Arc<[ParamRow]>>,
    /// Impairments, per link; empty if no link has any, and no packet collects telemetry.
    impaired: Vec<Option<Impaired>>,
    /// Per link, true if it computes departures at enqueue.
    computes_departures: Vec<bool>,
    /// Telemetry of packets in flight, if a sender wants any.
    telemetry: Option<Box<Telemetry>>,
    /// Links that share a buffer.
    switches: Switches,
    /// Per link, packets that go on to another link, in the order of their arrivals there.
    forwarding: Vec<ForwardingQueue>,
    /// Flows sorted by name, so that declaration order has no effect; then pooled flows,
    /// in order of creation.
    flows: Vec<Flow>,
    /// Number of flows that are not pooled.
    unpooled_flows: usize,
    /// Owner of each pooled flow.
    #[snapshot(skip)]
    pooled_owners: Vec<PooledFlowOwner>,
    /// For each group, its flows that are not pooled: indices of `flows`.
    members: Vec<Range<usize>>,
    /// By name.
    sessions: Vec<SessionGroup>,
    #[snapshot(skip)]
    routes: Routes,
    /// Paths of groups with spread, if there are any.
    routing: Option<Box<Routing>>,
    bodies: Slab<PacketState>,
    acks: Slab<Ack>,
    /// Slots of groups of sessions, then flows.
    events: EventQueue,
    /// Slot of the first flow.
    first_flow_slot: usize,
    /// Events of links, which precede all other events of the same time. If packets reach links at
    /// the same time, the least recently served link goes first: the link whose last packet reached
    /// another link earliest.
    link_events: LinkQueue,
    outbox: Outbox,
    series: Option<Series>,
    /// Time of the next interruption: change, sample, end of the warm-up, or end of the run.
    next_interruption: Time,
    /// Number of packets sent by links before the measured interval.
    departed_in_warmup: u64,
    /// Work since the last call of `progress`: see [`run_with_progress`].
    work: usize,
    /// Number of threads.
    #[snapshot(skip)]
    threads: Threads,
    /// Number of packets per nanosecond in the last span on several threads; `None` before the
    /// first one.
    packet_rate: Option<f64>,
    /// Number of spans that were repeated on one thread.
    repeated_spans: u32,
    /// Messages to other parts, if this is a part of a simulation on several threads.
    #[snapshot(skip)]
    exchange: Option<Box<Exchange>>,
    /// Tap on a link, if there is one.
    #[snapshot(skip)]
    tap: Option<Box<Tap>>,
}

impl Simulation {
    /// The state at time zero; `None` if `progress` returned `false`.
    fn set_up(
        shared: Arc<Scenario>,
        changes: LinkChanges,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Option<Simulation> {
        let scenario = &*shared;
        let begin = Progress { share: 0.0, packets: 0 };
        let mut links = first_links(scenario, changes, begin, progress)?;
        let link_events = LinkQueue::new(links.len());
        if link_events.exceeds_cache() {
            links.iter_mut().for_each(Link::count_in_batches);
        }
        let (sessions, groups) = groups_by_name(scenario);
        let (routes, switches) = (Routes::of(scenario), Switches::new(scenario));
        switches.count_by_class(&mut links);
        let computes_departures: Vec<bool> = links.iter().map(Link::computes_departures).collect();
        let is_direct = |l: usize| computes_departures[l] && switches.port(l).is_none();
        let (flows, members) = first_flows(scenario, groups, &routes, is_direct, progress)?;
        let first_flow_slot = sessions.len();
        let events = first_events(&sessions, &flows);
        let hosts: usize = sessions.iter().map(|c| c.hosts.len()).sum();
        let interruptions = Interruptions::new(scenario);
        let mut simulation = Simulation {
            now: Time::ZERO,
            next_interruption: interruptions.next(),
            interruptions,
            params: scenario.links.iter().map(|def| Arc::clone(&def.params)).collect(),
            routes,
            routing: Routing::of(scenario),
            telemetry: Telemetry::of(scenario),
            computes_departures,
            switches,
            forwarding: vec![ForwardingQueue::default(); links.len()],
            bodies: Slab::new(),
            acks: Slab::new(),
            events,
            first_flow_slot,
            link_events,
            outbox: Outbox::default(),
            series: scenario.sample().map(|_| Series::new(scenario, flows.len() + hosts)),
            links,
            impaired: impairments(scenario),
            unpooled_flows: flows.len(),
            pooled_owners: Vec::new(),
            sessions,
            flows,
            departed_in_warmup: 0,
            work: 0,
            threads: Threads::default(),
            packet_rate: None,
            repeated_spans: 0,
            exchange: None,
            tap: None,
            members,
            scenario: shared,
        };
        (0..simulation.links.len()).for_each(|l| simulation.describe_flows(l));
        Some(simulation)
    }

    /// Delivers packet `body`, which crosses its last link, at `cursor`: to its flow, or to the
    /// part of the simulation that has it.
    #[inline]
    fn deliver(&mut self, cursor: u32, delivery: Delivery, body: u32) {
        if let Some(exchange) = &mut self.exchange
            && let Some(to) = exchange.leaves_to(cursor + 1)
        {
            return exchange.deliver(to, delivery, body, &mut self.bodies, &mut self.acks);
        }
        self.deliver_here(delivery, body);
    }

    /// Delivers packet `body` to its flow.
    #[inline]
    fn deliver_here(&mut self, delivery: Delivery, body: u32) {
        let Delivery { at, flow, ce, feedback } = delivery;
        let f = flow as usize;
        if self.flows[f].feedback != PathFeedback::None {
            self.store_feedback(f, body, feedback);
        }
        let PacketState { connection, payload, .. } = self.bodies.remove(body);
        let (flow, connection) = (&mut self.flows[f], *connection);
        let next = match payload {
            Payload::Segment(segment) => {
                flow.schedule_segment(at, connection, segment, ce, self.next_interruption)
            }
            Payload::Datagram(datagram) => {
                flow.schedule_arrival(at, connection, ArrivedPacket::Datagram(*datagram))
            }
            Payload::Report(report) => flow.schedule_report(at, *report),
            Payload::Ack(ack) => flow.schedule_ack(at, connection, self.acks.remove(*ack)),
            Payload::Corrupt(datagram) => {
                let datagram = *datagram;
                return self.drop_corrupt(f, datagram);
            }
        };
        self.events.schedule_earlier(self.first_flow_slot + f, next);
        if f >= self.unpooled_flows {
            self.notify_sessions(f, at);
        }
    }

    #[inline(never)]
    pub(super) fn flow_event(&mut self, f: usize, now: Time) {
        self.flows[f].process_due(now, &mut self.outbox);
        // Before sending: a link may deliver what is sent to the same flow.
        if f >= self.unpooled_flows {
            self.notify_sessions(f, now);
        }
        self.send_and_schedule(f, now);
        if self.events.exceeds_cache() {
            self.prefetch_upcoming(self.first_flow_slot + f);
        }
    }

    /// Sends the packets in the outbox of flow `f`, and schedules its next event.
    #[inline(always)]
    fn send_and_schedule(&mut self, f: usize, now: Time) {
        let slot = self.first_flow_slot + f;
        if let Some(l) = self.flows[f].direct_link {
            self.send_direct(f, l as usize, now);
            self.events.schedule(slot, self.flows[f].next_event_time());
        } else {
            // A packet that is delivered at once may only move the event forward. To schedule it
            // first gives the processor time to write what was put into the outbox.
            let flow = &self.flows[f];
            self.events.schedule(slot, flow.next_event_time());
            if flow.sends_only_segments() {
                self.send_segments(f, now);
            } else if self.routing.is_some() {
                self.send_spread(f, now);
            } else {
                self.send(f, now);
            }
        }
    }

    /// Prefetch flows that are due soon, in two steps, because the addresses of a flow's lists are
    /// in the flow. The flow in `slot` has just been processed.
    fn prefetch_upcoming(&self, slot: usize) {
        let flow = |slot: usize| self.flows.get(slot.wrapping_sub(self.first_flow_slot));
        let far = self.events.earliest_near(slot, PREFETCH_FLOW_LOG2);
        if let Some(flow) = flow(far) {
            prefetch(flow);
            self.events.prefetch(far);
        }
        if let Some(flow) = flow(self.events.earliest_near(slot, PREFETCH_LISTS_LOG2)) {
            flow.prefetch();
        }
    }

    /// Sends the segments in the outbox of flow `f` over link `l`, its [`Flow::direct_link`].
    #[inline(always)]
    fn send_direct(&mut self, f: usize, l: usize, now: Time) {
        let Simulation { flows, links, outbox, .. } = self;
        let (flow, link) = (&mut flows[f], &mut links[l]);
        let Flow { hash, class, hosts: [source, destination], ect, .. } = *flow;
        self.work += outbox.segments.len();
        let number = cast::index32(f);
        let mut packet =
            Packet { flow: number, hash, source, destination, class, ..Packet::default() };
        let mut last = Time::NEVER;
        for segment in &outbox.segments {
            packet.len = segment.wire_bytes.into();
            packet.ecn = if segment.ect { ect } else { Ecn::NotEct };
            if let Some((at, ecn)) = link.send(now, &mut packet) {
                flow.receive_ahead(at, segment, ecn == Ecn::Ce, self.next_interruption);
                last = at;
            }
        }
        outbox.segments.clear();
        if f >= self.unpooled_flows && last != Time::NEVER {
            self.notify_sessions(f, last);
        }
    }

    /// Sends the segments in the outbox of flow `f`, which has no [`Flow::direct_link`].
    #[inline(never)]
    fn send_segments(&mut self, f: usize, now: Time) {
        if self.outbox.segments.is_empty() {
            return;
        }
        let Flow { route, connection, hash, class, hosts, ect, .. } = self.flows[f];
        let ([cursor, _], [source, destination]) = (self.routes.starts(route), hosts);
        let l = self.routes.link(cursor);
        let port = self.switches.port(l);
        if let Some(port) = port {
            let len = self.outbox.segments.iter().map(|segment| u32::from(segment.wire_bytes));
            self.free_buffer(port, class, now, len.sum());
        }
        let Simulation { flows, links, routes, outbox, bodies, acks, forwarding, .. } = self;
        self.work += outbox.segments.len();
        let onward = routes.next_link(cursor).filter(|_| self.computes_departures[l]);
        let (flow, link) = (cast::index32(f), &mut links[l]);
        let mut packet = Packet { flow, hash, source, destination, class, ..Packet::default() };
        if flows[f].feedback == PathFeedback::Xcp {
            packet = flows[f].add_xcp_header(packet);
        }
        for segment in &outbox.segments {
            let (body, state) = bodies.vacant();
            (state.flow, state.connection, state.cursor) = (flow, connection, cursor);
            state.payload.set_segment(segment);
            packet.body = body;
            packet.len = segment.wire_bytes.into();
            packet.ecn = if segment.ect { ect } else { Ecn::NotEct };
            let Some(next) = onward else {
                match port {
                    Some(port) => self.switches.admit(port, link, now, &mut packet),
                    None => link.push_copy(now, &mut packet),
                }
                continue;
            };
            let sent = match port {
                Some(port) => self.switches.send(port, link, now, &mut packet),
                None => link.send(now, &mut packet),
            };
            if let Some(sent) = sent {
                match &mut self.exchange {
                    Some(exchange) if let Some(to) = exchange.leaves_to(cursor + 1) => {
                        let packet = Packet { arrived: sent.0, ecn: sent.1, ..packet };
                        let next = Forwarded { link: next, cursor: cursor + 1, packet };
                        exchange.forward(to, l, next, bodies, acks);
                    }
                    _ => _ = forwarding[l].push(next, cursor + 1, &packet, sent),
                }
            } else {
                bodies.remove(body);
            }
        }
        outbox.segments.clear();
        if onward.is_some() {
            self.link_events.schedule_earlier(l, self.next_forwarded(l));
        } else {
            self.collect_from_link(l);
        }
    }

    /// Sends the packets in the outbox of flow `f`, which has no [`Flow::direct_link`].
    fn send(&mut self, f: usize, now: Time) {
        let Flow { route, hash, class, hosts, ect, ack_ecn, connection, .. } = self.flows[f];
        let [source, destination] = hosts;
        let flow = cast::index32(f);
        let [first, back] = self.routes.starts(route);
        self.send_segments(f, now);
        let ticket = |payload: Payload, len, ecn, bodies: &mut Slab<PacketState>| {
            let cursor = if payload.returns() { back } else { first };
            let body = bodies.insert(PacketState { flow, connection, cursor, payload });
            let (ack, tcp) = (0, TcpFlags::default());
            let arrived = now;
            Packet { arrived, len, flow, hash, body, source, destination, ack, class, ecn, tcp }
        };
        if let Some(datagram) = self.outbox.datagram.take() {
            let payload = Payload::Datagram(datagram);
            let packet = ticket(payload, datagram.len, ect, &mut self.bodies);
            self.push(first, now, packet);
        }
        for i in 0..self.outbox.acks.len() {
            let ack = self.outbox.acks[i];
            // Acks hash differently from data, as the 5-tuple of the opposite direction does.
            let payload = Payload::Ack(self.acks.insert(ack));
            let packet = ticket(payload, ack.wire.into(), ack_ecn, &mut self.bodies);
            let (source, destination) = (destination, source);
            let (number, tcp) = (cast::low32(ack.ack), ack.tcp_flags());
            let packet = Packet { hash: !hash, source, destination, ack: number, tcp, ..packet };
            self.push(back, now, packet);
        }
        self.outbox.acks.clear();
        for i in 0..self.outbox.reports.len() {
            let payload = Payload::Report(self.outbox.reports[i]);
            let packet = ticket(payload, Report::BYTES, Ecn::NotEct, &mut self.bodies);
            let (source, destination) = (destination, source);
            self.push(back, now, Packet { hash: !hash, source, destination, ..packet });
        }
        self.outbox.reports.clear();
    }
}
