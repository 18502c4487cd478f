//! Paths of groups with spread, chosen while the simulation runs.
//!
//! A path is chosen when a packet is sent: the switches on the way choose in turn, each by its hash
//! function, among the links to the next nodes on the shortest paths over links that are up
//! (hash-threshold, RFC 2992). The links of each path in use are added to [`Routes`] once. Packets
//! on the way keep their path.

use super::Simulation;
use super::routes::Routes;
use crate::config::scenario::Scenario;
use crate::config::spread::{HashFunctions, Spread, SpreadUnit};
use crate::config::topology::{Distances, Topology};
use crate::engine::flow::{Flow, Outbox};
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::random::{mix, stream_key};
use sojourn_aqm::units::Time;
use std::collections::BTreeMap;
use std::mem::{swap, take};
use std::sync::Arc;

/// No path yet.
const NONE: u32 = u32::MAX;

/// Group with spread.
#[derive(Clone, Debug)]
struct Group {
    spread: Spread,
    /// Seed of the hash function of each node.
    seeds: Arc<[u64]>,
}

/// Current path of a flow in one direction.
#[derive(Clone, Copy, Debug, Snapshot)]
struct Choice {
    /// Index of the path, or [`NONE`].
    path: u32,
    /// Connection for which it was chosen.
    connection: u32,
    /// Value of [`Routing::changes`] at that time.
    changes: u32,
    /// Number of flowlets or packets so far.
    flowlet: u32,
    /// Time of the last packet.
    last: Time,
}

/// Paths of a flow.
#[derive(Clone, Copy, Debug, Snapshot)]
struct FlowPaths {
    /// There and back.
    choices: [Choice; 2],
    /// Payload delivered in the measured interval that counts for a path, bytes.
    counted: u64,
}

impl Default for FlowPaths {
    fn default() -> FlowPaths {
        let none = Choice { path: NONE, connection: 0, changes: 0, flowlet: 0, last: Time::ZERO };
        FlowPaths { choices: [none; 2], counted: 0 }
    }
}

/// Path that packets take or have taken.
#[derive(Clone, Debug, Snapshot)]
struct Path {
    links: Vec<u32>,
    /// Cursor of the first link in [`Routes`].
    cursor: u32,
    /// Payload delivered over it in the measured interval, bytes.
    payload: u64,
}

/// Paths of all groups with spread.
#[derive(Clone, Snapshot)]
pub(super) struct Routing {
    #[snapshot(skip)]
    topology: Topology,
    /// By group; `None` for one without spread.
    #[snapshot(skip)]
    groups: Vec<Option<Group>>,
    /// Distances to each destination in use, since the last change.
    #[snapshot(skip)]
    distances: BTreeMap<u32, Distances>,
    /// Index in `paths` by links.
    #[snapshot(skip)]
    known: BTreeMap<Vec<u32>, u32>,
    paths: Vec<Path>,
    /// By flow.
    flows: Vec<FlowPaths>,
    /// For each link, true if it is up.
    usable: Vec<bool>,
    /// Number of links that went down or came up.
    changes: u32,
    /// Packets that are not sent yet, while each gets a path of its own.
    waiting: Outbox,
}

impl Routing {
    /// Creates the paths of a scenario; `None` if no group has spread.
    pub(super) fn of(scenario: &Scenario) -> Option<Box<Routing>> {
        scenario.flows.iter().find_map(|def| def.spread)?;
        let topology = Topology::of(&scenario.links);
        let seeds = |hash: HashFunctions| -> Arc<[u64]> {
            let seed = |name: &String| match hash {
                HashFunctions::PerSwitch => {
                    seed(scenario.first_seed(), &format!("switches.{name}"))
                }
                HashFunctions::Shared => seed(scenario.first_seed(), "switches"),
            };
            topology.nodes().iter().map(seed).collect()
        };
        let [own, shared] = [HashFunctions::PerSwitch, HashFunctions::Shared].map(seeds);
        let group = |spread: Spread| {
            let seeds = if spread.hash == HashFunctions::Shared { &shared } else { &own };
            Group { spread, seeds: Arc::clone(seeds) }
        };
        let groups = scenario.flows.iter().map(|def| def.spread.map(group)).collect();
        Some(Box::new(Routing {
            topology,
            groups,
            distances: BTreeMap::new(),
            known: BTreeMap::new(),
            paths: Vec::new(),
            flows: Vec::new(),
            usable: vec![true; scenario.links.len()],
            changes: 0,
            waiting: Outbox::default(),
        }))
    }

    /// True if the packets of `flow` are spread.
    pub(super) fn spreads(&self, flow: &Flow) -> bool {
        self.groups[flow.group as usize].is_some()
    }

    /// Link `l` comes up, or goes down: paths are chosen anew.
    pub(super) fn set_usable(&mut self, l: usize, usable: bool) {
        if self.usable[l] != usable {
            self.usable[l] = usable;
            self.changes += 1;
            self.distances.clear();
        }
    }

    /// Starts the measured interval.
    pub(super) fn begin(&mut self) {
        self.paths.iter_mut().for_each(|path| path.payload = 0);
        self.flows.iter_mut().for_each(|flow| flow.counted = 0);
    }

    /// Adds the payload that was delivered over each path to the payloads of its links.
    pub(super) fn add_payload(&self, of_links: &mut [u64]) {
        for path in &self.paths {
            path.links.iter().for_each(|l| of_links[*l as usize] += path.payload);
        }
    }

    /// Adds the payload of flow `f` since its last choice to the links of its path.
    pub(super) fn add_payload_of_last_path(&self, f: usize, flow: &Flow, of_links: &mut [u64]) {
        let Some(FlowPaths { choices: [there, _], counted }) = self.flows.get(f) else { return };
        if let Some(path) = self.paths.get(there.path as usize) {
            let payload = flow.goodput_bytes().saturating_sub(*counted);
            path.links.iter().for_each(|l| of_links[*l as usize] += payload);
        }
    }

    /// Adds the loaded paths to `routes`.
    ///
    /// # Errors
    /// If a path is not possible.
    pub(super) fn restore(&mut self, routes: &mut Routes) -> Result<(), ()> {
        let links = self.usable.len();
        let choices = self.flows.iter().flat_map(|flow| &flow.choices);
        let mut numbers = choices.map(|choice| choice.path);
        if numbers.any(|path| path != NONE && path as usize >= self.paths.len()) {
            return Err(());
        }
        for (i, path) in self.paths.iter().enumerate() {
            if path.links.iter().any(|l| *l as usize >= links)
                || routes.add_path(&path.links) != path.cursor
            {
                return Err(());
            }
            self.known.insert(path.links.clone(), cast::index32(i));
        }
        Ok(())
    }

    /// Chooses the path of the packet of flow `f` that is sent next in `direction` (0: there, 1:
    /// back), if it needs a new one.
    fn choose(&mut self, f: usize, flow: &Flow, direction: usize, now: Time, routes: &mut Routes) {
        let Some(Group { spread, seeds }) = self.groups[flow.group as usize].clone() else {
            return;
        };
        if self.flows.len() <= f {
            self.flows.resize(f + 1, FlowPaths::default());
        }
        let FlowPaths { choices, counted } = &mut self.flows[f];
        let choice = &mut choices[direction];
        let stale = choice.path == NONE
            || (choice.connection, choice.changes) != (flow.connection, self.changes);
        let splits = match spread.unit {
            SpreadUnit::Connection => false,
            SpreadUnit::Flowlet(gap) => now.since(choice.last) > gap,
            SpreadUnit::Packet | SpreadUnit::RoundRobin => true,
        };
        if stale || splits {
            choice.flowlet = choice.flowlet.wrapping_add(u32::from(splits));
            (choice.connection, choice.changes) = (flow.connection, self.changes);
            if let Some(old) = self.paths.get_mut(choice.path as usize).filter(|_| direction == 0) {
                let payload = flow.goodput_bytes();
                old.payload += payload.saturating_sub(*counted);
                *counted = payload;
            }
            let (flowlet, former) = (choice.flowlet, choice.path);
            // The opposite direction has the opposite 5-tuple.
            let hash = if direction == 0 { flow.hash } else { !flow.hash };
            let links = match spread.unit {
                SpreadUnit::RoundRobin => {
                    let mut turn = u64::from(hash) + u64::from(flowlet);
                    self.path(flow.route, direction, routes, &mut |_, count| {
                        let digit = turn % u64::from(count);
                        turn /= u64::from(count);
                        cast::low32(digit)
                    })
                }
                _ => {
                    let key = mix(u64::from(hash) << 32 | u64::from(flowlet));
                    self.path(flow.route, direction, routes, &mut |node, count| {
                        let hash = mix(seeds[node as usize] ^ key) >> 32;
                        cast::low32((hash * u64::from(count)) >> 32)
                    })
                }
            };
            let path = match links {
                Some(links) => self.number(links, routes),
                // Nothing leads to the host: packets go where they went.
                None if former != NONE => former,
                None => {
                    let written = &routes.all[flow.route as usize][direction];
                    let links = written.iter().map(|l| cast::index32(*l)).collect();
                    self.number(links, routes)
                }
            };
            self.flows[f].choices[direction].path = path;
        }
        let choice = &mut self.flows[f].choices[direction];
        choice.last = now;
        routes.set_start(flow.route, direction, self.paths[choice.path as usize].cursor);
    }

    /// A shortest path between the ends of route `number`, by `choose`; `None` if there is none.
    fn path(
        &mut self,
        number: u32,
        direction: usize,
        routes: &Routes,
        choose: &mut dyn FnMut(u32, u32) -> u32,
    ) -> Option<Vec<u32>> {
        let Routing { topology, distances, usable, .. } = self;
        let written = &routes.all[number as usize][direction];
        let [from, _] = topology.ends(*written.first()?)?;
        let [_, to] = topology.ends(*written.last()?)?;
        let distances = distances.entry(to).or_insert_with(|| topology.distances(to, usable));
        topology.path(from, distances, usable, choose)
    }

    /// Number of the path with these links, which is added to `routes` if it is new.
    fn number(&mut self, links: Vec<u32>, routes: &mut Routes) -> u32 {
        if let Some(number) = self.known.get(&links) {
            return *number;
        }
        let number = cast::index32(self.paths.len());
        let cursor = routes.add_path(&links);
        self.known.insert(links.clone(), number);
        self.paths.push(Path { links, cursor, payload: 0 });
        number
    }

    /// True if each packet of `flow` has a path of its own.
    fn sprays(&self, flow: &Flow) -> bool {
        let group = self.groups[flow.group as usize].as_ref();
        let unit = group.map(|group| group.spread.unit);
        matches!(unit, Some(SpreadUnit::Packet | SpreadUnit::RoundRobin))
    }
}

/// Seed of the hash function called `name`.
fn seed(seed: u64, name: &str) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = stream_key(seed, name);
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

impl Simulation {
    /// Sends the packets in the outbox of flow `f` on the paths that are chosen for them, if the
    /// flow has spread.
    #[inline(never)]
    pub(super) fn send_spread(&mut self, f: usize, now: Time) {
        let Some(routing) = &mut self.routing else { return };
        if !routing.sprays(&self.flows[f]) {
            return self.send_together(f, now);
        }
        swap(&mut self.outbox, &mut routing.waiting);
        swap(&mut self.outbox.reached, &mut routing.waiting.reached);
        let mut waiting = take(&mut routing.waiting);
        for segment in waiting.segments.drain(..) {
            self.outbox.segments.push(segment);
            self.send_together(f, now);
        }
        if let Some(datagram) = waiting.datagram.take() {
            self.outbox.datagram = Some(datagram);
            self.send_together(f, now);
        }
        for ack in waiting.acks.drain(..) {
            self.outbox.acks.push(ack);
            self.send_together(f, now);
        }
        for report in waiting.reports.drain(..) {
            self.outbox.reports.push(report);
            self.send_together(f, now);
        }
        if let Some(routing) = &mut self.routing {
            routing.waiting = waiting;
        }
    }

    /// Sends the packets in the outbox of flow `f`, all packets of a direction on one path.
    fn send_together(&mut self, f: usize, now: Time) {
        let Simulation { routing: Some(routing), routes, flows, outbox, .. } = self else { return };
        let there = !outbox.segments.is_empty() || outbox.datagram.is_some();
        let back = !outbox.acks.is_empty() || !outbox.reports.is_empty();
        for (direction, _) in [there, back].into_iter().enumerate().filter(|(_, sends)| *sends) {
            routing.choose(f, &flows[f], direction, now, routes);
        }
        self.send(f, now);
    }
}
