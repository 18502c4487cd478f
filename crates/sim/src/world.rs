//! Simulation of a scenario: links, flows, packets in flight, and the event loop.

use crate::crowd::{Crowd, is_crowd};
use crate::fetch::fetch;
use crate::flow::{Arrival, Flow, Outbox, stream};
use crate::outcome::Outcome;
use crate::places::Places;
use crate::scenario::{LinkDef, Scenario};
use crate::series::Series;
use crate::slots::Slots;
use crate::tcp::{Ack, Segment};
use crate::timetable::{Step, may_change};
use crate::wire::Wire;
use sojourn_aqm::cast;
use sojourn_aqm::units::Time;
use sojourn_aqm::{Ecn, Link, LinkSpec, Packet};
use std::collections::VecDeque;

mod agenda;
mod crowds;
mod report;

use agenda::Agenda;
use crowds::{Lease, Routes};

/// Progress of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Fraction of the simulated time that has passed.
    pub share: f64,
    /// Number of packets sent by links; a packet that crosses three links counts three times.
    pub packets: u64,
}

/// Runs a scenario. `progress` is asked every 65,536 events, looks and changes, and at the end;
/// where it answers `false` the run ends and gives nothing.
pub fn run(scenario: &Scenario, progress: &mut dyn FnMut(Progress) -> bool) -> Option<Outcome> {
    let mut world = World::new(scenario);
    world.play(progress).then(|| world.outcome())
}

/// log2 of the prefetch look-ahead for a flow, in events. Measured: 4 to 7 are equally fast.
const FAR: u32 = 5;
/// log2 of the prefetch look-ahead for the lists of a flow, in events. Measured: 2 to 4 are equally
/// fast.
const NEAR: u32 = 3;

/// State of a packet in flight.
#[derive(Clone, Copy)]
struct Body {
    flow: u32,
    connection: u32,
    /// Number of links still to cross, including the current one.
    left: u32,
    load: Load,
}

#[derive(Clone, Copy)]
enum Load {
    Segment(Segment),
    /// Index in the slab of acks, which is separate because acks are large and few, segments small
    /// and many.
    Ack(u32),
    /// Time of transmission, and length in bytes.
    Datagram(Time, u32),
}

struct World<'a> {
    scenario: &'a Scenario,
    links: Vec<Link>,
    /// Random loss, per link; empty if no link has any.
    wires: Vec<Option<Wire>>,
    /// Per link, packets that go on to another link, with their arrival times there.
    onward: Vec<VecDeque<(Time, Packet)>>,
    /// Flows sorted by name, so that declaration order has no effect; then pooled flows of crowds,
    /// in order of creation.
    flows: Vec<Flow>,
    /// Number of flows that are not pooled.
    own: usize,
    /// Owner of each pooled flow.
    leases: Vec<Lease>,
    /// By name.
    crowds: Vec<Crowd>,
    routes: Routes,
    bodies: Places<Body>,
    acks: Places<Ack>,
    /// Slots of links, then crowds, then flows.
    slots: Slots,
    /// Slot of the first flow.
    first: usize,
    /// Per link, the sequence number of its last arrival at another link. If packets reach links at
    /// the same time, the least recently served link goes first.
    turns: Vec<u64>,
    /// Arrivals at links from other links so far.
    onwards: u64,
    /// Flow that is being processed; its slot is set afterwards.
    awake: usize,
    out: Outbox,
    series: Option<Series>,
    /// Time of the next interruption: change, sample, end of the warm-up, or end of the run.
    pause: Time,
    /// Number of packets sent by links before the measured interval.
    sent_before: u64,
}

impl<'a> World<'a> {
    fn new(scenario: &'a Scenario) -> World<'a> {
        let links: Vec<Link> = (0..scenario.links.len()).map(|l| link(scenario, l)).collect();
        let wire = |def: &LinkDef| {
            let dice = stream(scenario.seed, &format!("links.{}.loss", def.name));
            (!def.loss.never()).then(|| Wire::new(def.loss, dice))
        };
        let lossy = scenario.links.iter().any(|def| !def.loss.never());
        let wires = scenario.links.iter().filter(|_| lossy).map(wire).collect();
        let mut groups: Vec<usize> = (0..scenario.flows.len()).collect();
        groups.sort_by_key(|g| &scenario.flows[*g].name);
        let (crowds, groups): (Vec<usize>, Vec<usize>) =
            groups.into_iter().partition(|g| is_crowd(&scenario.flows[*g]));
        let crowds: Vec<Crowd> = crowds.into_iter().map(|g| Crowd::new(scenario, g)).collect();
        let routes = Routes::of(scenario);
        let count = groups.iter().map(|g| cast::index(scenario.flows[*g].count)).sum();
        let mut flows = Vec::with_capacity(count);
        for g in groups {
            let def = &scenario.flows[g];
            for i in 0..def.count {
                let of_links = def.delay_of_links(&scenario.links, i);
                let mut flow = Flow::new(def, g, i, of_links, scenario.seed);
                flow.route = routes.index(g, i, false);
                flows.push(flow);
            }
        }
        let first = links.len() + crowds.len();
        let mut slots = Slots::new(first + flows.len());
        flows.iter().enumerate().for_each(|(f, flow)| slots.set(first + f, flow.next()));
        crowds.iter().enumerate().for_each(|(c, crowd)| slots.set(links.len() + c, crowd.next()));
        let hosts: usize = crowds.iter().map(|c| c.hosts.len()).sum();
        World {
            scenario,
            routes,
            onward: vec![VecDeque::new(); links.len()],
            bodies: Places::new(),
            acks: Places::new(),
            slots,
            first,
            turns: vec![0; links.len()],
            onwards: 0,
            awake: usize::MAX,
            out: Outbox::default(),
            series: scenario.sample.map(|_| Series::new(scenario, flows.len() + hosts)),
            links,
            wires,
            own: flows.len(),
            leases: Vec::new(),
            crowds,
            flows,
            pause: Time::ZERO,
            sent_before: 0,
        }
    }

    /// Run to the end; returns `false` if stopped by `progress`.
    fn play(&mut self, progress: &mut dyn FnMut(Progress) -> bool) -> bool {
        let scenario = self.scenario;
        let end = Time::ZERO + scenario.duration;
        let mut agenda = Agenda::new(scenario);
        let mut events = 0u64;
        self.pause = agenda.next();
        loop {
            let (slot, at) = self.slots.first();
            // Changes, samples and the end of the warm-up precede events at the same time.
            if self.pause <= at {
                if self.stand_still(&mut agenda) {
                    let packets = self.sent_before + self.departed();
                    return progress(Progress { share: 1.0, packets });
                }
            } else if slot < self.links.len() {
                self.link_event(self.whose_turn(at), at);
            } else if slot >= self.first {
                self.flow_event(slot - self.first, at);
            } else {
                self.crowd_event(slot - self.links.len(), at);
            }
            events += 1;
            if events.is_multiple_of(1 << 16) {
                let packets = self.sent_before + self.departed();
                let share = at.min(self.pause).0 as f64 / end.0 as f64;
                if !progress(Progress { share, packets }) {
                    return false;
                }
            }
        }
    }

    /// Does what the agenda has for this moment, changes first; tells whether it was the end.
    #[cold]
    fn stand_still(&mut self, agenda: &mut Agenda) -> bool {
        let now = self.pause;
        while let Some(step) = agenda.timetable.step(now) {
            self.change(now, step);
        }
        if agenda.warm == now {
            agenda.warm = Time::NEVER;
            self.begin(now);
        }
        if agenda.sample == now {
            agenda.sample += agenda.interval;
            self.record(now);
        }
        if agenda.end == now {
            self.look(now);
            return true;
        }
        self.pause = agenda.next();
        false
    }

    fn change(&mut self, now: Time, step: Step) {
        match step {
            Step::Link(l, turn) => {
                let LinkSpec { rate, delay } = self.links[l].spec();
                let (rate, delay) = (turn.rate.unwrap_or(rate), turn.delay.unwrap_or(delay));
                self.links[l].change(now, LinkSpec { rate, delay });
                self.settle(l);
            }
            Step::Leave(group) => {
                for (f, flow) in self.flows.iter_mut().enumerate() {
                    if flow.group as usize == group {
                        flow.leave(now);
                        self.slots.set(self.first + f, flow.next());
                    }
                }
                for (c, crowd) in self.crowds.iter_mut().enumerate() {
                    if crowd.group == group {
                        crowd.leave(now);
                        self.slots.set(self.links.len() + c, crowd.next());
                    }
                }
            }
        }
    }

    /// Packets that links have sent since counting began.
    fn departed(&mut self) -> u64 {
        self.links.iter_mut().map(|link| link.tally().departed_packets).sum()
    }

    /// Brings everything up to `now`, so that it can be looked at. What arrives at `now` itself is
    /// not seen.
    fn look(&mut self, now: Time) {
        let before = Time(now.0.saturating_sub(1));
        self.links.iter_mut().for_each(|link| link.advance(now));
        // Who lost a packet hears of it, whether a queue lost it or a wire.
        (0..self.links.len()).for_each(|l| self.settle(l));
        self.flows.iter_mut().for_each(|flow| flow.look(before));
    }

    fn record(&mut self, now: Time) {
        self.look(now);
        let on_links = self.on_links();
        if let Some(mut series) = self.series.take() {
            series.look_at_links(now, &mut self.links);
            series.look_at_groups(&self.flows, &on_links);
            for (i, look) in self.looked_at().into_iter().enumerate() {
                series.look_at_flow(i, look);
            }
            self.series = Some(series);
        }
    }

    /// Which flows have something of their connection on links, by walking over all that is there:
    /// a count per flow would cost something with every packet.
    fn on_links(&self) -> Vec<bool> {
        let mut flows = vec![false; self.flows.len()];
        for body in self.bodies.held() {
            let flow = body.flow as usize;
            flows[flow] |= body.connection == self.flows[flow].connection;
        }
        flows
    }

    fn begin(&mut self, now: Time) {
        self.look(now);
        if let Some(series) = &mut self.series {
            series.begin(&mut self.links);
        }
        self.sent_before = self.departed();
        self.links.iter_mut().for_each(|link| link.begin(now));
        self.flows.iter_mut().for_each(|flow| flow.begin(now));
    }

    /// The link whose turn it is of those that have something due now.
    fn whose_turn(&self, now: Time) -> usize {
        let mut first = (u64::MAX, usize::MAX);
        self.slots.tied(now, self.links.len(), &mut |l| first = first.min((self.turns[l], l)));
        first.1
    }

    /// A packet has reached the next link, or it is time to see which one will.
    fn link_event(&mut self, l: usize, now: Time) {
        self.links[l].advance(now);
        if self.onward[l].front().is_some_and(|(at, _)| *at <= now)
            && let Some((_, packet)) = self.onward[l].pop_front()
        {
            self.onwards += 1;
            self.turns[l] = self.onwards;
            let Body { flow, left, load, .. } = *self.bodies.at(packet.body);
            let route = self.route(flow, &load);
            self.push(route[route.len() - left as usize], now, packet);
        }
        self.slots.set(l, Time::NEVER);
        self.settle(l);
    }

    fn route(&self, flow: u32, load: &Load) -> &[usize] {
        let route = self.flows[flow as usize].route;
        &self.routes.all[route as usize][usize::from(matches!(load, Load::Ack(_)))]
    }

    /// Process a packet that crosses its last link at `at`.
    #[inline]
    fn deliver(&mut self, at: Time, body: u32, ce: bool) {
        let Body { flow, connection, load, .. } = self.bodies.take(body);
        let f = flow as usize;
        let next = match load {
            Load::Segment(s) => {
                self.flows[f].arrive(at, connection, Arrival::Segment(s, ce), self.pause)
            }
            Load::Datagram(sent, len) => {
                self.flows[f].arrive(at, connection, Arrival::Datagram(sent, len), self.pause)
            }
            Load::Ack(ack) => self.flows[f].ack(at, connection, self.acks.take(ack)),
        };
        if f != self.awake {
            self.slots.lower(self.first + f, next);
        }
        if f >= self.own {
            self.tell(f, at);
        }
    }

    fn flow_event(&mut self, f: usize, now: Time) {
        self.awake = f;
        self.flows[f].wake(now, &mut self.out);
        // Before sending: a link may deliver what is sent to the same flow.
        if f >= self.own {
            self.tell(f, now);
        }
        self.send(f, now);
        self.slots.set(self.first + f, self.flows[f].next());
        if self.slots.many() {
            self.prepare(self.first + f);
        }
        self.awake = usize::MAX;
    }

    /// Prefetch flows that are due soon, in two steps, because the addresses of a flow's lists are
    /// in the flow. The flow in `slot` has just been processed.
    fn prepare(&self, slot: usize) {
        let flow = |slot: usize| self.flows.get(slot.wrapping_sub(self.first));
        let far = self.slots.first_beside(slot, FAR);
        if let Some(flow) = flow(far) {
            fetch(flow);
            self.slots.fetch(far);
        }
        if let Some(flow) = flow(self.slots.first_beside(slot, NEAR)) {
            flow.fetch();
        }
    }

    /// Send the packets in the outbox of flow `f`.
    fn send(&mut self, f: usize, now: Time) {
        let Flow { route, hash, class, connection, .. } = self.flows[f];
        let flow = cast::place(f);
        let [path, back] = &self.routes.all[route as usize];
        let (first, hops) = (path[0], [cast::place(path.len()), cast::place(back.len())]);
        let back = back.first().copied();
        let ticket = |load, len, ecn, bodies: &mut Places<Body>| {
            let left = hops[usize::from(matches!(load, Load::Ack(_)))];
            let body = bodies.put(Body { flow, connection, left, load });
            Packet { arrived: now, len, flow, hash, body, class, ecn }
        };
        // By index: nothing that a push does puts more into the outbox.
        for i in 0..self.out.segments.len() {
            let segment = self.out.segments[i];
            let ecn = if segment.ect { Ecn::Ect0 } else { Ecn::NotEct };
            let packet = ticket(Load::Segment(segment), segment.wire, ecn, &mut self.bodies);
            self.push(first, now, packet);
        }
        self.out.segments.clear();
        if let Some(len) = self.out.datagram.take() {
            let packet = ticket(Load::Datagram(now, len), len, Ecn::NotEct, &mut self.bodies);
            self.push(first, now, packet);
        }
        for i in 0..self.out.acks.len() {
            let ack = self.out.acks[i];
            let back = back.expect("only flows with a return path send acks");
            // Acks hash differently from data, as the 5-tuple of the opposite direction does.
            let load = Load::Ack(self.acks.put(ack));
            let packet = ticket(load, ack.wire, Ecn::NotEct, &mut self.bodies);
            self.push(back, now, Packet { hash: !hash, ..packet });
        }
        self.out.acks.clear();
    }

    fn push(&mut self, l: usize, now: Time, packet: Packet) {
        self.links[l].push(now, packet);
        self.settle(l);
    }

    /// Collect sent and dropped packets from the link, and schedule its next event. A call that
    /// comes early is harmless, so the event is only ever moved to an earlier time here.
    fn settle(&mut self, l: usize) {
        self.losses(l);
        while let Some((at, packet)) = self.links[l].front() {
            // Read single fields only: moving a whole struct that was just written causes a
            // store-forwarding stall.
            let (at, body, ce) = (*at, packet.body, packet.ecn == Ecn::Ce);
            let arrived = packet.arrived;
            if !self.wires.is_empty() && self.lost_on_wire(l, body, arrived) {
                self.links[l].ahead();
                continue;
            }
            let passes = &mut self.bodies.at(body).left;
            *passes -= 1;
            let last = *passes == 0;
            match self.links[l].ahead() {
                Some(ahead) if !last => self.onward[l].push_back(ahead),
                _ => self.deliver(at, body, ce),
            }
        }
        let onward = self.onward[l].front().map(|(at, _)| *at);
        let next = onward.or_else(|| self.links[l].due()).unwrap_or(Time::NEVER);
        self.slots.lower(l, next);
    }

    /// Free the state of packets dropped by the link.
    fn losses(&mut self, l: usize) {
        if !self.links[l].has_lost() {
            return;
        }
        let World { links, bodies, acks, flows, .. } = self;
        links[l].lost().for_each(|lost| forget(lost.packet.body, bodies, acks, flows));
    }

    /// Draw the random loss of the packet with this body on link `l`. Returns true if it is lost.
    #[cold]
    fn lost_on_wire(&mut self, l: usize, body: u32, arrived: Time) -> bool {
        let World { scenario, wires, bodies, acks, flows, .. } = self;
        let Some(wire) = &mut wires[l] else { return false };
        let lost = wire.loses();
        if lost {
            wire.lost += u64::from(arrived >= Time::ZERO + scenario.warmup);
            forget(body, bodies, acks, flows);
        }
        lost
    }
}

/// The link `l` with nothing on it.
fn link(scenario: &Scenario, l: usize) -> Link {
    let def = &scenario.links[l];
    let dice = stream(scenario.seed, &format!("links.{}", def.name));
    let mut link = Link::new(def.spec, def.build().qdisc, dice).expect("its rate was checked");
    // What a wire loses is drawn when a transmission starts, so that it is counted then.
    if !def.loss.never() || may_change(scenario, l) {
        link.may_change();
    }
    if let Some(opportunities) = &def.opportunities {
        link.only_at(opportunities.clone());
    }
    if scenario.tape {
        link.record();
    }
    link
}

/// Free the state of a dropped packet; a lost datagram is reported to its flow.
fn forget(body: u32, bodies: &mut Places<Body>, acks: &mut Places<Ack>, flows: &mut [Flow]) {
    let body = bodies.take(body);
    match body.load {
        Load::Datagram(sent, _) => flows[body.flow as usize].datagram_lost(sent),
        Load::Ack(ack) => drop(acks.take(ack)),
        Load::Segment(_) => {}
    }
}
