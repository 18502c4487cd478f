//! The engine compared with a simple reference engine: one event per transmission, delivery and
//! wake-up in a binary heap, without lazy evaluation or other optimisations. With the same scenario
//! and random streams, every packet must leave every queue at the same time with the same fate, and
//! every flow must end with the same counters.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "tests use small numbers"
)]

use serde_json::Value;
use sojourn_aqm::units::Time;
use sojourn_aqm::{Ecn, Packet};
use sojourn_sim::config::RoutePair;
use sojourn_sim::internals::tcp::{Ack, Segment};
use sojourn_sim::internals::{
    ArrivedPacket, Datagram, DueChange, Endpoints, Flow, Outbox, Report, SessionGroup,
};
use sojourn_sim::{Column, Outcome, Scenario};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

mod links;
mod scenarios;
mod switches;
mod topologies;

use links::PlainLink;
use scenarios::{random, unsteady};
use switches::PlainSwitch;
use topologies::{classed, switched, tied};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// Step of the change schedule, by its number; precedes all other events of the same time.
    Change(usize),
    /// Precedes all other events of the same time except changes.
    Sent(usize),
    Delivered(usize, u64),
    Sessions(usize),
    Wake(usize),
}

#[derive(Clone, Copy)]
enum Load {
    Segment(Segment),
    Ack(Ack),
    Datagram(Datagram),
    Report(Report),
}

#[derive(Clone, Copy)]
struct Body {
    flow: usize,
    connection: u32,
    hop: usize,
    load: Load,
}

struct Plain {
    heap: BinaryHeap<Reverse<(Time, Event)>>,
    links: Vec<PlainLink>,
    flows: Vec<Flow>,
    /// Per flow.
    routes: Vec<RoutePair>,
    sessions: Vec<SessionGroup>,
    /// Session group and host of each pooled flow.
    idle: Vec<Option<(usize, u32)>>,
    bodies: Vec<Body>,
    tickets: Vec<Packet>,
    steps: Vec<DueChange>,
    now: Time,
    /// Per link: sequence number of its last arrival at another link.
    turns: Vec<u64>,
    onwards: u64,
    switches: Vec<PlainSwitch>,
}

impl Plain {
    fn new(s: &Scenario) -> Plain {
        let mut groups: Vec<usize> = (0..s.flows().len()).collect();
        groups.sort_by_key(|g| s.flows()[*g].name().to_string());
        let (mut flows, mut routes, mut sessions) = (vec![], vec![], vec![]);
        for g in groups {
            let def = &s.flows()[g];
            if def.uses_sessions() {
                sessions.push(SessionGroup::new(s, g));
                continue;
            }
            for i in 0..def.count() {
                flows.push(Flow::new(def, g, i, def.links_delay(s.links(), i), s.seed()));
                routes.push(def.route(i).clone());
            }
        }
        let wake = |(f, flow): (usize, &Flow)| Reverse((flow.next_event_time(), Event::Wake(f)));
        let act = |(c, group): (usize, &SessionGroup)| Reverse((group.next(), Event::Sessions(c)));
        let heap = flows.iter().enumerate().map(wake);
        let steps = steps(s);
        let change = |(i, (at, _)): (usize, &(Time, DueChange))| Reverse((*at, Event::Change(i)));
        let heap = heap.chain(sessions.iter().enumerate().map(act));
        let heap = heap.chain(steps.iter().enumerate().map(change)).collect();
        let steps = steps.into_iter().map(|(_, step)| step).collect();
        let mut links: Vec<PlainLink> =
            s.links().iter().map(|def| PlainLink::new(s, def)).collect();
        let mut heap: BinaryHeap<_> = heap;
        for (l, link) in links.iter_mut().enumerate() {
            heap.extend(link.moments.pop().map(|at| Reverse((at, Event::Sent(l)))));
        }
        let idle = vec![None; flows.len()];
        let (bodies, tickets) = (vec![], vec![]);
        let now = Time::ZERO;
        let (turns, onwards) = (vec![0; s.links().len()], 0);
        Plain {
            heap,
            switches: s.switches().iter().map(PlainSwitch::new).collect(),
            links,
            flows,
            routes,
            sessions,
            idle,
            bodies,
            tickets,
            steps,
            now,
            turns,
            onwards,
        }
    }

    fn open(&mut self, s: &Scenario, c: usize, out: &mut Outbox) {
        let Some(open) = self.sessions[c].process_next_event(self.now) else { return };
        let idle = self.sessions[c].take_idle_flow(&open).map(|f| f as usize);
        let f = idle.unwrap_or_else(|| {
            let g = self.sessions[c].group;
            let (def, host) = (&s.flows()[g], u64::from(open.host));
            let so_far = &mut self.sessions[c].hosts[open.host as usize].pooled;
            let n = &mut so_far[usize::from(open.request)];
            let of_links = def.links_delay(s.links(), host);
            self.flows.push(Flow::pooled(
                def,
                g,
                (host, *n, open.request),
                of_links,
                [s.seed(); 2],
            ));
            *n += 1;
            self.idle.push(Some((c, open.host)));
            let mut route = def.route(host).clone();
            if open.request {
                route.reverse();
            }
            self.routes.push(route);
            self.flows.len() - 1
        });
        self.flows[f].start_transfer(self.now, open, out);
        self.send(f, out);
        self.heap.push(Reverse((self.flows[f].next_event_time(), Event::Wake(f))));
    }

    fn tell(&mut self, f: usize) {
        let Some((c, host)) = self.idle[f] else { return };
        let Some(transfer) = self.flows[f].pending_transfer() else { return };
        let (received, acked) = (transfer.received.take(), std::mem::take(&mut transfer.acked));
        let (transfer, group) = (*transfer, &mut self.sessions[c]);
        if let Some(at) = received {
            group.on_received(&transfer, host, at);
        }
        if acked {
            group.on_acked(&transfer, host, f as u32, self.now);
        }
        self.heap.push(Reverse((self.sessions[c].next(), Event::Sessions(c))));
    }

    fn change(&mut self, step: DueChange) {
        match step {
            DueChange::Link(l, turn) => {
                let link = &mut self.links[l];
                let rate = turn.rate.unwrap_or(link.rate);
                if rate != link.rate {
                    (link.rate, link.owed) = (rate, 0);
                }
                link.delay = turn.delay.unwrap_or(link.delay);
                let recorded = link.recorded;
                if !recorded && link.sending.is_none() && link.qdisc.backlog().packets > 0 {
                    self.transmit(l);
                }
            }
            DueChange::Qdisc(..) | DueChange::Wire(..) | DueChange::Outage(..) => {
                unreachable!("no scenario of these tests has one")
            }
            DueChange::Leave(group) => {
                let now = self.now;
                for flow in self.flows.iter_mut().filter(|f| f.group as usize == group) {
                    flow.leave(now);
                }
                for group in self.sessions.iter_mut().filter(|c| c.group == group) {
                    group.leave(now);
                }
            }
        }
    }

    fn send(&mut self, f: usize, out: &mut Outbox) {
        let Flow { hash, class, ect, ack_ecn, connection, .. } = self.flows[f];
        let mut loads: Vec<(Load, u32, Ecn, usize)> = vec![];
        for s in out.segments.drain(..) {
            loads.push((
                Load::Segment(s),
                s.wire_bytes.into(),
                if s.ect { ect } else { Ecn::NotEct },
                0,
            ));
        }
        let datagram = out.datagram.take();
        loads.extend(datagram.map(|d| (Load::Datagram(d), d.len, ect, 0)));
        loads.extend(out.acks.drain(..).map(|a| (Load::Ack(a), a.wire.into(), ack_ecn, 1)));
        let report = |report| (Load::Report(report), Report::BYTES, Ecn::NotEct, 1);
        loads.extend(out.reports.drain(..).map(report));
        for (load, len, ecn, way) in loads {
            self.bodies.push(Body { flow: f, connection, hop: 0, load });
            let hash = if way == 1 { !hash } else { hash };
            let body = self.bodies.len() as u32 - 1;
            let packet = Packet {
                arrived: self.now,
                len,
                flow: f as u32,
                hash,
                body,
                class,
                ecn,
                ..Packet::default()
            };
            self.push(self.routes[f][way][0], packet);
        }
    }

    /// Chooses, among all deliveries at this time, the delivery of the least recently served link;
    /// puts the others back.
    fn least_recently_served(&mut self, at: Time, first: (usize, u64)) -> (usize, u64) {
        let mut all = vec![first];
        while let Some(&Reverse((time, Event::Delivered(l, id)))) = self.heap.peek()
            && time == at
        {
            all.push((l, id));
            self.heap.pop();
        }
        all.sort_by_key(|&(l, id)| (self.turns[l], l, id));
        let back = all[1..].iter().map(|&(l, id)| Reverse((at, Event::Delivered(l, id))));
        self.heap.extend(back);
        all[0]
    }

    fn delivered(&mut self, l: usize, packet: Packet) {
        let body = &mut self.bodies[packet.body as usize];
        body.hop += 1;
        let Body { flow: f, connection, hop, load } = *body;
        let way = usize::from(matches!(load, Load::Ack(_) | Load::Report(_)));
        if let Some(next) = self.routes[f][way].get(hop) {
            self.onwards += 1;
            self.turns[l] = self.onwards;
            return self.push(*next, packet);
        }
        let (now, flow, ce) = (self.now, &mut self.flows[f], packet.ecn == Ecn::Ce);
        let _ = match load {
            Load::Segment(s) => flow.schedule_segment(now, connection, &s, ce, Time::NEVER),
            Load::Datagram(datagram) => {
                flow.schedule_arrival(now, connection, ArrivedPacket::Datagram(datagram))
            }
            Load::Report(report) => flow.schedule_report(now, report),
            Load::Ack(ack) => flow.schedule_ack(now, connection, &ack),
        };
        self.tell(f);
        self.heap.push(Reverse((self.flows[f].next_event_time(), Event::Wake(f))));
    }

    fn sample(&mut self, now: Time) {
        self.flows.iter_mut().for_each(|f| f.advance_totals(Time(now.0 - 1)));
    }

    fn run_reference(&mut self, s: &Scenario) {
        let (end, mut warm, mut out) =
            (Time::ZERO + s.duration(), Some(Time::ZERO + s.warmup()), Outbox::default());
        while let Some(Reverse((at, event))) = self.heap.pop() {
            // Transmissions at the end of the warm-up are not counted, arrivals at that time are.
            let sent = matches!(event, Event::Change(_) | Event::Sent(_));
            if warm.is_some_and(|w| at > w || at == w && !sent) {
                let w = warm.take().unwrap();
                self.sample(w);
                self.flows.iter_mut().for_each(|f| f.begin(w));
            }
            if at > end || at == end && !matches!(event, Event::Sent(_)) {
                self.sample(end);
                break;
            }
            self.now = at;
            match event {
                Event::Change(i) => self.change(self.steps[i].clone()),
                Event::Sent(l) if self.links[l].recorded => self.opportunity(l),
                Event::Sent(l) => {
                    let packet = self.links[l].sending.expect("a packet is in transmission");
                    self.tickets.push(packet);
                    let id = self.tickets.len() as u64 - 1;
                    if let Some(then) = self.links[l].arrives {
                        self.heap.push(Reverse((then, Event::Delivered(l, id))));
                    }
                    self.transmit(l);
                }
                Event::Delivered(l, id) => {
                    let (l, id) = self.least_recently_served(at, (l, id));
                    self.delivered(l, self.tickets[id as usize]);
                }
                Event::Wake(f) if self.flows[f].next_event_time() == at => {
                    self.flows[f].process_due(at, &mut out);
                    self.send(f, &mut out);
                    self.heap.push(Reverse((self.flows[f].next_event_time(), Event::Wake(f))));
                    self.tell(f);
                }
                Event::Sessions(c) if self.sessions[c].next() <= at => {
                    self.open(s, c, &mut out);
                    self.heap.push(Reverse((self.sessions[c].next(), Event::Sessions(c))));
                }
                Event::Sessions(_) => {}
                Event::Wake(_) => {} // moved to another time since
            }
        }
    }
}

/// All changes of the scenario, in order of time and then of declaration; rows of traces and
/// processes come after them.
fn steps(s: &Scenario) -> Vec<(Time, DueChange)> {
    let mut steps = vec![];
    for change in s.changes() {
        let at = Time::ZERO + change.at;
        steps.extend(change.links.iter().map(|(l, turn)| (at, DueChange::Link(*l, *turn))));
        steps.extend(change.leave.iter().map(|g| (at, DueChange::Leave(*g))));
    }
    for (l, def) in s.links().iter().enumerate() {
        if let Some(process) = def.process() {
            let changes = process.link_changes(s.seed(), def.name());
            let due = changes.take_while(|(at, _)| *at <= Time::ZERO + s.duration());
            steps.extend(due.map(|(at, change)| (at, DueChange::Link(l, change))));
        }
        let Some(trace) = def.trace() else { continue };
        let lap = trace.repeat().map_or(u64::MAX, |r| r.0);
        for k in 0..=(s.duration().0 / lap) {
            for (i, at) in trace.times().iter().enumerate() {
                steps.push((Time(k * lap) + *at, DueChange::Link(l, trace.link_change(i))));
            }
        }
    }
    steps.sort_by_key(|(at, _)| *at);
    steps
}

fn column<'a>(out: &'a Outcome, name: &str) -> &'a Column {
    &out.columns.iter().find(|(n, _)| n == name).unwrap_or_else(|| panic!("no {name}")).1
}

#[test]
fn engine_and_reference_engine_agree() {
    agree(random, 0..180, [100_000, 5_000]);
}

#[test]
fn engines_agree_when_links_and_flows_change() {
    agree(unsteady, 0..180, [100_000, 5_000]);
}

#[test]
fn engines_agree_on_topologies_with_ties() {
    agree(tied, 0..60, [100_000, 1_000]);
}

#[test]
fn engines_agree_on_switches_with_shared_buffers() {
    agree(switched, 0..60, [100_000, 1_000]);
}

#[test]
fn engines_agree_on_switches_with_queues_per_class() {
    agree(classed, 0..60, [100_000, 1_000]);
}

#[test]
fn shared_buffers_of_these_topologies_drop_packets() {
    for topology in [switched, classed] {
        let refused = |seed| {
            let scenario = Scenario::from_json(&topology(seed).to_string()).expect("it is valid");
            let outcome = sojourn_sim::run(&scenario);
            let links = outcome.summary["links"].as_object().expect("a table").values();
            links.filter_map(|link| link.get("dropped_buffer_packets")?.as_u64()).sum::<u64>()
        };
        let dropping = (0..20).filter(|seed| refused(*seed) > 20).count();
        assert!(dropping > 10, "{dropping} of 20");
    }
}

/// Compares both engines on the scenario of each seed. Over all of them at least `least` packets
/// must be sent and transfers completed.
fn agree(scenario: fn(u64) -> Value, seeds: Range<u64>, least: [usize; 2]) {
    let (mut rows, mut completed) = (0, 0);
    for seed in seeds {
        let scenario =
            Scenario::from_json(&scenario(seed).to_string()).unwrap_or_else(|e| panic!("{e}"));
        let fast = sojourn_sim::run(&scenario);
        let mut plain = Plain::new(&scenario);
        plain.run_reference(&scenario);
        for (link, def) in plain.links.iter().zip(scenario.links()) {
            let get = |what: &str| column(&fast, &format!("packet_log/{}/{what}", def.name()));
            let (Column::F64(arrived), Column::F64(left), Column::U8(fate)) =
                (get("arrived_s"), get("left_s"), get("fate"))
            else {
                panic!("a packet log has times and fates")
            };
            let secs = |ns: u64| ns as f64 / 1e9;
            let expected: Vec<_> =
                link.rows.iter().map(|(a, b, w)| (secs(*a), secs(*b), *w)).collect();
            let got: Vec<_> = (0..fate.len()).map(|i| (arrived[i], left[i], fate[i])).collect();
            let parts = got.iter().zip(&expected).position(|(a, b)| a != b);
            let near = |rows: &[(f64, f64, u8)]| {
                parts.map(|i| rows[i..].iter().take(3).copied().collect::<Vec<_>>())
            };
            assert_eq!(
                near(&got),
                near(&expected),
                "seed {seed}, link {}, from row {parts:?}",
                def.name()
            );
            assert_eq!(got.len(), expected.len(), "seed {seed}, link {}", def.name());
            rows += got.len();
            let lost = &fast.summary["links"][def.name()]["lost_on_wire_packets"];
            assert_eq!(lost, link.wire.2, "seed {seed}, link {}", def.name());
        }
        let all = fast.summary["flows"].as_array().expect("a list");
        for got in all {
            let same = |f: &&Flow| got["name"] == f.name;
            let flows: Vec<&Flow> = plain.flows.iter().filter(same).collect();
            let bytes: u64 = flows.iter().map(|f| f.goodput_bytes()).sum();
            let bps = bytes as f64 * 8.0 / 5.0;
            assert_eq!(got["goodput_bps"], bps, "seed {seed}, {}", got["name"]);
            if got["kind"] == "tcp" {
                let (mut sent, mut timeouts) = (0, 0);
                for flow in flows {
                    let Endpoints::Tcp(tcp) = &flow.ends else { panic!("the flow uses TCP") };
                    sent += tcp.stats().sent_packets;
                    timeouts += tcp.stats().timeouts;
                }
                assert_eq!(got["sent_packets"], sent);
                assert_eq!(got["timeouts"], timeouts);
            }
            let mut flows = plain.flows.iter().filter(same);
            if let Some(Endpoints::Udp(udp)) = flows.next().map(|flow| &flow.ends) {
                assert_eq!(got["sent_packets"], udp.sent);
                assert_eq!(got["lost_packets"], udp.lost, "seed {seed}, {}", got["name"]);
            }
        }
        if !plain.sessions.is_empty() {
            completed += transfers_agree(seed, &scenario, &plain, &fast);
        }
    }
    assert!(completed > least[1], "{completed} transfers are too few to prove anything");
    assert!(rows > least[0], "{rows} packets are too few to prove anything");
}

/// Checks that the session groups' completions agree; returns their number.
fn transfers_agree(seed: u64, scenario: &Scenario, plain: &Plain, fast: &Outcome) -> usize {
    let end = Time::ZERO + scenario.duration();
    let mut transfer: Vec<(f64, f64)> = vec![];
    for group in &plain.sessions {
        let mut done = group.done.clone();
        done.retain(|d| d.start + d.took < end);
        transfer.extend(done.iter().map(|d| (d.start.0 as f64 / 1e9, d.took.as_secs())));
    }
    let (Column::F64(start), Column::F64(took)) =
        (column(fast, "fct/start_s"), column(fast, "fct/duration_s"))
    else {
        panic!("times are floats")
    };
    // The engine learns of some completions earlier, so the order differs.
    let mut got: Vec<(f64, f64)> = start.iter().copied().zip(took.iter().copied()).collect();
    let by_both = |a: &(f64, f64), b: &(f64, f64)| a.partial_cmp(b).expect("numbers");
    transfer.sort_by(by_both);
    got.sort_by(by_both);
    assert_eq!(got, transfer, "seed {seed}");
    got.len()
}
