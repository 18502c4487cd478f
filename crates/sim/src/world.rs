//! The world of a run: links, flows, packets between them, and the order in which things happen.

mod crowds;
mod report;

use crate::crowd::{Crowd, is_crowd};
use crate::flow::{Arrival, Flow, Outbox, stream};
use crate::outcome::Outcome;
use crate::places::Places;
use crate::scenario::Scenario;
use crate::series::Series;
use crate::slots::Slots;
use crate::tcp::{Ack, Segment};
use crowds::{Lease, Routes};
use sojourn_aqm::units::{Span, Time};
use sojourn_aqm::{Ecn, Link, Packet};
use std::collections::VecDeque;

/// Runs a scenario. `progress` is told the share of the simulated time that has passed, every
/// 65,536 events; where it answers `false` the run ends and gives nothing.
pub fn run(scenario: &Scenario, progress: &mut dyn FnMut(f64) -> bool) -> Option<Outcome> {
    let mut world = World::new(scenario);
    world.play(progress).then(|| world.outcome())
}

/// What a ticket stands for.
#[derive(Clone, Copy)]
struct Body {
    flow: u32,
    connection: u32,
    /// How many links of its path it has still to cross, the one it is on included.
    left: u16,
    load: Load,
}

#[derive(Clone, Copy)]
enum Load {
    Segment(Segment),
    /// Its place among the acks: they are long and few, segments are short and many.
    Ack(u32),
    /// Sent at that time, with that many bytes.
    Datagram(Time, u32),
}

struct World<'a> {
    scenario: &'a Scenario,
    links: Vec<Link>,
    /// Per link, the packets that have another link to cross, with their times of arrival there.
    onward: Vec<VecDeque<(Time, Packet)>>,
    /// By name, so that the order of declaration decides nothing; then those that are lent to
    /// crowds, in the order in which they were first needed.
    flows: Vec<Flow>,
    /// How many of the flows are not lent, and of each that is, to whom.
    own: usize,
    leases: Vec<Lease>,
    /// By name.
    crowds: Vec<Crowd>,
    routes: Routes,
    bodies: Places<Body>,
    acks: Places<Ack>,
    /// First the links, then the crowds, then the flows, of which this is the first.
    slots: Slots,
    first: usize,
    /// The flow whose turn it is: its slot is set when that is over.
    awake: usize,
    out: Outbox,
    series: Option<Series>,
    /// When everything will next be looked at: a sample, the end of the warm-up, the end.
    pause: Time,
}

impl<'a> World<'a> {
    fn new(scenario: &'a Scenario) -> World<'a> {
        let links: Vec<Link> = scenario
            .links
            .iter()
            .map(|def| {
                let dice = stream(scenario.seed, &format!("links.{}", def.name));
                let mut link = Link::new(def.spec, def.build().qdisc, dice);
                if scenario.tape {
                    link.record();
                }
                link
            })
            .collect();
        let mut groups: Vec<usize> = (0..scenario.flows.len()).collect();
        groups.sort_by_key(|g| &scenario.flows[*g].name);
        let (crowds, groups): (Vec<usize>, Vec<usize>) =
            groups.into_iter().partition(|g| is_crowd(&scenario.flows[*g]));
        let crowds: Vec<Crowd> = crowds.into_iter().map(|g| Crowd::new(scenario, g)).collect();
        let routes = Routes::of(scenario);
        let flows: Vec<Flow> = groups
            .into_iter()
            .flat_map(|g| {
                let (def, routes) = (&scenario.flows[g], &routes);
                (0..def.count).map(move |i| {
                    let of_links = def.delay_of_links(&scenario.links, i);
                    let mut flow = Flow::new(def, g, i, of_links, scenario.seed);
                    flow.route = routes.index(g, i, false);
                    flow
                })
            })
            .collect();
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
            awake: usize::MAX,
            out: Outbox::default(),
            series: scenario.sample.map(|_| Series::new(links.len(), flows.len() + hosts)),
            links,
            own: flows.len(),
            leases: Vec::new(),
            crowds,
            flows,
            pause: Time::ZERO,
        }
    }

    /// Everything up to the end; `false` if it was stopped.
    fn play(&mut self, progress: &mut dyn FnMut(f64) -> bool) -> bool {
        let scenario = self.scenario;
        let end = Time::ZERO + scenario.duration;
        let warm = Time::ZERO + scenario.warmup;
        let mut sample = scenario.sample.map_or(Time::NEVER, |s| Time::ZERO + s);
        let mut begun = false;
        let mut events = 0u64;
        // What is looked at or begun at a moment comes before what happens at it.
        self.pause = warm.min(sample);
        loop {
            let (slot, at) = self.slots.first();
            while self.pause <= at {
                if self.pause == warm && !begun {
                    self.begin(warm);
                    begun = true;
                }
                if self.pause == sample {
                    self.record(sample);
                    sample += scenario.sample.unwrap_or(Span(1));
                }
                if self.pause == end {
                    self.look(end);
                    return true;
                }
                self.pause = sample.min(if begun { end } else { warm });
            }
            if slot < self.links.len() {
                self.link_event(slot, at);
            } else if slot >= self.first {
                self.flow_event(slot - self.first, at);
            } else {
                self.crowd_event(slot - self.links.len(), at);
            }
            events += 1;
            if events.is_multiple_of(1 << 16) && !progress(at.0 as f64 / end.0 as f64) {
                return false;
            }
        }
    }

    /// Brings everything up to `now`, so that it can be looked at. What arrives at `now` itself is
    /// not seen.
    fn look(&mut self, now: Time) {
        let before = Time(now.0.saturating_sub(1));
        self.links.iter_mut().for_each(|link| link.advance(now));
        self.flows.iter_mut().for_each(|flow| flow.look(before));
    }

    fn record(&mut self, now: Time) {
        self.look(now);
        if let Some(mut series) = self.series.take() {
            series.look_at_links(now, &mut self.links);
            for (i, (delivered, cwnd)) in self.looked_at().into_iter().enumerate() {
                series.look_at_flow(i, delivered, cwnd);
            }
            self.series = Some(series);
        }
    }

    fn begin(&mut self, now: Time) {
        self.look(now);
        if let Some(series) = &mut self.series {
            series.begin(&mut self.links);
        }
        self.links.iter_mut().for_each(|link| link.begin(now));
        self.flows.iter_mut().for_each(|flow| flow.begin(now));
    }

    /// Packets have reached the next link, or it is time to see which ones will.
    fn link_event(&mut self, l: usize, now: Time) {
        self.links[l].advance(now);
        while self.onward[l].front().is_some_and(|(at, _)| *at <= now) {
            let Some((_, packet)) = self.onward[l].pop_front() else { break };
            let Body { flow, left, load, .. } = *self.bodies.at(packet.body);
            let route = self.route(flow, &load);
            self.push(route[route.len() - usize::from(left)], now, packet);
        }
        self.slots.set(l, Time::NEVER);
        self.settle(l);
    }

    fn route(&self, flow: u32, load: &Load) -> &[usize] {
        let route = self.flows[flow as usize].route;
        &self.routes.all[route as usize][usize::from(matches!(load, Load::Ack(_)))]
    }

    /// A packet will have crossed its last link at `at`.
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
        self.send(f, now);
        self.slots.set(self.first + f, self.flows[f].next());
        self.awake = usize::MAX;
        if f >= self.own {
            self.tell(f, now);
        }
    }

    /// Puts on links what the flow `f` wants sent.
    fn send(&mut self, f: usize, now: Time) {
        let Flow { route, hash, connection, .. } = self.flows[f];
        let flow = f as u32;
        let [path, back] = &self.routes.all[route as usize];
        let (first, hops) = (path[0], [path.len() as u16, back.len() as u16]);
        let back = back.first().copied();
        let ticket = |load, len, ecn, bodies: &mut Places<Body>| {
            let left = hops[usize::from(matches!(load, Load::Ack(_)))];
            let body = bodies.put(Body { flow, connection, left, load });
            Packet { arrived: now, len, flow, hash, body, class: 0, ecn }
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
            let back = back.expect("only flows whose acks cross links put them out");
            // Acks are hashed apart from the data, as a 5-tuple in the other direction is.
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

    /// Takes from the link what it has sent and lost, and notes when it must be called again. A
    /// call that comes too early does no harm, so a later time is noted only when it is due.
    fn settle(&mut self, l: usize) {
        self.losses(l);
        while let Some((at, packet)) = self.links[l].front() {
            // Only what is needed is read: a struct that is moved whole just after it was written
            // stalls the processor.
            let (at, body, ce) = (*at, packet.body, packet.ecn == Ecn::Ce);
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

    /// Frees the bodies of packets that the link lost.
    fn losses(&mut self, l: usize) {
        if !self.links[l].has_lost() {
            return;
        }
        for lost in self.links[l].lost() {
            let body = self.bodies.take(lost.packet.body);
            match body.load {
                Load::Datagram(sent, _) => self.flows[body.flow as usize].datagram_lost(sent),
                Load::Ack(ack) => drop(self.acks.take(ack)),
                Load::Segment(_) => {}
            }
        }
    }
}
