//! The world of a run: links, flows, packets between them, and the order in which things happen.

use crate::flow::{Arrival, Ends, Flow, Outbox, stream};
use crate::outcome::{self, Column, Outcome};
use crate::scenario::Scenario;
use crate::series::Series;
use crate::slots::Slots;
use crate::tcp::{Ack, Segment};
use serde_json::{Map, Value as Json, json};
use sojourn_aqm::units::{Span, Time};
use sojourn_aqm::{Ecn, Link, Packet};
use std::collections::VecDeque;

/// Runs a scenario. `progress` is told the share of the simulated time that has passed, every
/// 65,536 events; where it answers `false` the run ends and gives nothing.
pub fn run(scenario: &Scenario, progress: &mut dyn FnMut(f64) -> bool) -> Option<Outcome> {
    let mut world = World::new(scenario);
    world.play(scenario, progress).then(|| world.outcome(scenario))
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
    /// Sent at that time.
    Datagram(Time),
}

/// Things with a place each; places are used again.
struct Places<T> {
    all: Vec<T>,
    free: Vec<u32>,
}

impl<T: Copy> Places<T> {
    fn new() -> Places<T> {
        Places { all: Vec::new(), free: Vec::new() }
    }

    fn put(&mut self, thing: T) -> u32 {
        if let Some(i) = self.free.pop() {
            self.all[i as usize] = thing;
            return i;
        }
        self.all.push(thing);
        self.free.reserve(self.all.len());
        self.all.len() as u32 - 1
    }

    fn take(&mut self, i: u32) -> T {
        self.free.push(i);
        self.all[i as usize]
    }
}

struct World {
    links: Vec<Link>,
    /// Per link, the packets that have another link to cross, with their times of arrival there.
    onward: Vec<VecDeque<(Time, Packet)>>,
    /// By name, so that the order of declaration decides nothing.
    flows: Vec<Flow>,
    /// The links of each group's path and return path, by index.
    routes: Vec<[Vec<usize>; 2]>,
    bodies: Places<Body>,
    acks: Places<Ack>,
    /// First the links, then the flows.
    slots: Slots,
    /// The flow whose turn it is: its slot is set when that is over.
    awake: usize,
    out: Outbox,
    series: Option<Series>,
    /// When everything will next be looked at: a sample, the end of the warm-up, the end.
    pause: Time,
}

impl World {
    fn new(scenario: &Scenario) -> World {
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
        let flows: Vec<Flow> = groups
            .into_iter()
            .flat_map(|g| {
                let def = &scenario.flows[g];
                let of_links = def.delay_of_links(&scenario.links);
                (0..def.count).map(move |i| Flow::new(def, g, i, of_links, scenario.seed))
            })
            .collect();
        let mut slots = Slots::new(links.len() + flows.len());
        flows.iter().enumerate().for_each(|(f, flow)| slots.set(links.len() + f, flow.next()));
        let routes = scenario.flows.iter().map(|f| [f.path.clone(), f.return_path.clone()]);
        World {
            routes: routes.collect(),
            onward: vec![VecDeque::new(); links.len()],
            bodies: Places::new(),
            acks: Places::new(),
            slots,
            awake: usize::MAX,
            out: Outbox::default(),
            series: scenario.sample.map(|_| Series::new(links.len(), flows.len())),
            links,
            flows,
            pause: Time::ZERO,
        }
    }

    /// Everything up to the end; `false` if it was stopped.
    fn play(&mut self, scenario: &Scenario, progress: &mut dyn FnMut(f64) -> bool) -> bool {
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
            } else {
                self.flow_event(slot - self.links.len(), at);
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
        if let Some(series) = &mut self.series {
            series.look(now, &mut self.links, &self.flows);
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
            let Body { flow, left, load, .. } = self.bodies.all[packet.body as usize];
            let route = self.route(flow, &load);
            self.push(route[route.len() - usize::from(left)], now, packet);
        }
        self.slots.set(l, Time::NEVER);
        self.settle(l);
    }

    fn route(&self, flow: u32, load: &Load) -> &[usize] {
        &self.routes[self.flows[flow as usize].group][usize::from(matches!(load, Load::Ack(_)))]
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
            Load::Datagram(sent) => {
                self.flows[f].arrive(at, connection, Arrival::Datagram(sent), self.pause)
            }
            Load::Ack(ack) => self.flows[f].ack(at, connection, self.acks.take(ack)),
        };
        if f != self.awake {
            self.slots.lower(self.links.len() + f, next);
        }
    }

    fn flow_event(&mut self, f: usize, now: Time) {
        self.awake = f;
        self.flows[f].wake(now, &mut self.out);
        self.send(f, now);
        self.slots.set(self.links.len() + f, self.flows[f].next());
        self.awake = usize::MAX;
    }

    /// Puts on links what the flow `f` wants sent.
    fn send(&mut self, f: usize, now: Time) {
        let Flow { group, hash, connection, .. } = self.flows[f];
        let flow = f as u32;
        let [path, back] = &self.routes[group];
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
            let packet = ticket(Load::Datagram(now), len, Ecn::NotEct, &mut self.bodies);
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
            let passes = &mut self.bodies.all[body as usize].left;
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
                Load::Datagram(sent) => self.flows[body.flow as usize].datagram_lost(sent),
                Load::Ack(ack) => drop(self.acks.take(ack)),
                Load::Segment(_) => {}
            }
        }
    }

    fn outcome(mut self, scenario: &Scenario) -> Outcome {
        // What is on the last wire is known, but it has not arrived.
        let end = Time::ZERO + scenario.duration;
        for flow in &mut self.flows {
            if let Ends::Tcp(tcp) = &mut flow.ends {
                tcp.completions.retain(|c| c.start + c.took < end);
            }
        }
        let window_s = scenario.duration.as_secs() - scenario.warmup.as_secs();
        let bps = |bytes: u64| bytes as f64 * 8.0 / window_s;
        // Flows go back in the order in which they were declared.
        let mut order: Vec<usize> = (0..self.flows.len()).collect();
        order.sort_by_key(|f| self.flows[*f].group);
        let mut place = vec![0; order.len()];
        order.iter().enumerate().for_each(|(i, f)| place[*f] = i as u32);

        let warm = Time::ZERO + scenario.warmup;
        let flows: Vec<Json> = order
            .iter()
            .map(|f| {
                let flow = &self.flows[*f];
                summary(flow, &scenario.flows[flow.group].name, bps(flow.goodput_bytes()), warm)
            })
            .collect();
        let mut links = Map::new();
        for (l, def) in scenario.links.iter().enumerate() {
            let crossing = |f: &&Flow| self.routes[f.group][0].contains(&l);
            let bytes = self.flows.iter().filter(crossing).map(Flow::goodput_bytes).sum();
            links
                .insert(def.name.clone(), outcome::link(def.qdisc, &mut self.links[l], bps(bytes)));
        }
        let summary = json!({ "scenario": scenario.canonical(), "links": links, "flows": flows });
        Outcome { columns: self.columns(scenario, &order, &place), summary }
    }

    fn columns(self, scenario: &Scenario, order: &[usize], place: &[u32]) -> Vec<(String, Column)> {
        let mut columns = Vec::new();
        let (mut flow, mut start, mut took, mut bytes) = (vec![], vec![], vec![], vec![]);
        for f in order {
            if let Ends::Tcp(tcp) = &self.flows[*f].ends {
                for c in &tcp.completions {
                    flow.push(place[*f]);
                    start.push(c.start.0 as f64 / 1e9);
                    took.push(c.took.as_secs());
                    bytes.push(c.bytes);
                }
            }
        }
        columns.push(("fct/flow".into(), Column::U32(flow)));
        columns.push(("fct/start_s".into(), Column::F64(start)));
        columns.push(("fct/duration_s".into(), Column::F64(took)));
        columns.push(("fct/bytes".into(), Column::U64(bytes)));
        if let Some(series) = self.series {
            series.columns(scenario, &self.flows, &mut columns);
        }
        if scenario.tape {
            for (link, def) in self.links.iter().zip(&scenario.links) {
                outcome::tape(&def.name, link, place, &mut columns);
            }
        }
        columns
    }
}

/// The summary of a flow.
fn summary(flow: &Flow, group: &str, goodput_bps: f64, warm: Time) -> Json {
    let mut map = Map::new();
    let mut put = |key: &str, value: Json| map.insert(key.into(), value);
    put("name", json!(flow.name));
    put("group", json!(group));
    put("goodput_bps", json!(goodput_bps));
    put("rtt_s", json!(flow.rtt.as_secs()));
    match &flow.ends {
        Ends::Tcp(tcp) => {
            let stats = tcp.stats();
            put("kind", json!("tcp"));
            put("sent_packets", json!(stats.sent_packets));
            put("retransmitted_packets", json!(stats.retransmitted_packets));
            put("timeouts", json!(stats.timeouts));
            let since = tcp.completions.iter().filter(|c| c.start >= warm);
            let mut took: Vec<f64> = since.map(|c| c.took.as_secs()).collect();
            outcome::completions(&mut took, &mut map);
        }
        Ends::Udp(udp) => {
            put("kind", json!("udp"));
            put("sent_packets", json!(udp.sent));
            put("retransmitted_packets", json!(0));
            put("timeouts", json!(0));
            put("received_packets", json!(udp.delay.count()));
            put("lost_packets", json!(udp.lost));
            put(
                "loss_rate",
                outcome::ratio(udp.lost as f64, (udp.lost + udp.delay.count()) as f64),
            );
            put("delay_mean_s", json!(udp.delay.mean_s()));
            put("delay_p50_s", json!(udp.delay.quantile_s(0.5)));
            put("delay_p95_s", json!(udp.delay.quantile_s(0.95)));
            put("delay_p99_s", json!(udp.delay.quantile_s(0.99)));
            put("delay_max_s", json!(udp.delay.max_s()));
            put("jitter_s", json!(udp.jitter_s()));
            outcome::completions(&mut [], &mut map);
        }
    }
    Json::Object(map)
}
