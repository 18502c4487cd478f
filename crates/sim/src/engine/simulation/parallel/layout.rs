//! Division of links and endpoints among the parts of a simulation.
//!
//! A link transmits in the part that owns it. Its packets wait for their arrival at the next link
//! in the part that owns that one, so all links to which a link forwards are in one part. Ties
//! between packets that reach the same link are thus broken inside of one part.

use super::super::routes::Routes;
use super::graph::Graph;
use crate::config::flow_routes::RoutePair;
use crate::config::flows::FlowConfig;
use crate::config::scenario::Scenario;
use crate::config::switches::SwitchConfig;
use crate::traffic::source::Source;
use sojourn_aqm::cast;
use sojourn_aqm::units::Span;

/// No link.
const NONE: u32 = u32::MAX;
/// Greatest weight of a part in per cent of the mean; otherwise a shorter look-ahead is tried.
const BALANCED_PERCENT: u64 = 140;
/// Costs of a packet on the first link of a route, in units of a packet on another link: an
/// endpoint sends it there, and receives about as many.
const ENDPOINT_COSTS: u64 = 2;
/// Packets per link from which the numbers of packets so far replace the numbers of routes.
const KNOWN_PACKETS: u64 = 1000;
/// Greatest number of look-aheads that are tried.
const LOOKAHEADS: usize = 16;

/// Division of a scenario into parts.
#[derive(Debug)]
pub(in super::super) struct Layout {
    /// Number of parts.
    pub parts: usize,
    /// An event changes nothing in other parts before this time has passed.
    pub lookahead: Span,
    /// For each cursor of [`Routes`], the part that owns the link; at the end of a direction, the
    /// part of the endpoint that receives.
    pub destinations: Vec<u32>,
    /// For each link, the part in which it transmits.
    pub owners: Vec<u32>,
    /// For each link, the part of the links to which it forwards; its own if there is none.
    pub next_owners: Vec<u32>,
    /// For each route, the parts of sender and receiver.
    pub ends: Vec<[u32; 2]>,
    /// For each group of flows, true if it is a session group with all endpoints in one part.
    pub whole_groups: Vec<bool>,
    /// True if the parts may find that their result is not exact: there are session groups, and
    /// flows with their endpoints in two parts.
    pub may_fail: bool,
}

impl Layout {
    /// Divides the scenario, whose links now have these delays and sent these packets so far, into
    /// `parts` parts, or fewer if these would not have about equal weights. Of several look-aheads
    /// the longest is taken. `None` if there is no division.
    pub(in super::super) fn of(
        scenario: &Scenario,
        routes: &Routes,
        delays: &[Span],
        packets: &[u64],
        parts: usize,
    ) -> Option<Layout> {
        let mut lookaheads: Vec<Span> = delays.iter().copied().filter(|d| d.0 > 0).collect();
        lookaheads.sort_unstable();
        lookaheads.dedup();
        // If there are many, some from the longest to the shortest.
        let step = lookaheads.len().div_ceil(LOOKAHEADS).max(1);
        let longest_first = lookaheads.into_iter().rev().step_by(step);
        let mut all: Vec<Places<'_>> = longest_first.map(|l| Places::new(delays, l)).collect();
        for places in &mut all {
            for (group, def) in scenario.flows.iter().enumerate() {
                places.constrain(def, routes.of_group(group));
            }
            for ports in scenario.switches.iter().map(SwitchConfig::ports) {
                ports.windows(2).for_each(|pair| places.unite(pair[0], pair[1]));
            }
        }
        let fewer = |parts: &usize| Some(parts - (parts / 4).max(1)).filter(|parts| *parts > 1);
        std::iter::successors(Some(parts), fewer).find_map(|parts| {
            let divided = |places: &mut Places<'_>| {
                let owners = places.divide(packets, parts)?;
                Some(Layout::new(scenario, routes, places, owners))
            };
            all.iter_mut().find_map(divided)
        })
    }

    /// Part of the session group of a group of flows.
    pub(super) fn owner_of_group(&self, group: usize, routes: &Routes) -> u32 {
        self.ends[routes.range_of_group(group).start][0]
    }

    fn new(scenario: &Scenario, routes: &Routes, places: &Places<'_>, owners: Vec<u32>) -> Layout {
        let parts = owners.iter().max().map_or(1, |part| *part as usize + 1);
        let (mut destinations, mut ends) = (Vec::new(), Vec::new());
        for [path, back] in &routes.all {
            let of = |l: Option<&usize>| l.map_or(0, |l| owners[*l]);
            let [sender, receiver] = [of(path.first()), of(back.first().or(path.first()))];
            destinations.extend(path.iter().map(|l| owners[*l]).chain([receiver]));
            destinations.extend(back.iter().map(|l| owners[*l]).chain([sender]));
            ends.push([sender, receiver]);
        }
        let next = places.next.iter().zip(&owners);
        let next_owners = next.map(|(l, own)| if *l == NONE { *own } else { owners[*l as usize] });
        let whole_groups: Vec<bool> =
            (0..).zip(&*scenario.flows).map(|(g, def)| is_whole(def, routes.of_group(g))).collect();
        let sessions = scenario.flows.iter().any(FlowConfig::uses_sessions);
        let may_fail = sessions && ends.iter().any(|[sender, receiver]| sender != receiver);
        Layout {
            parts,
            lookahead: places.lookahead,
            destinations,
            next_owners: next_owners.collect(),
            owners,
            ends,
            whole_groups,
            may_fail,
        }
    }
}

/// True if all endpoints of the session group must be in one part: its queries need all answers, or
/// a receiver is simulated with its sender.
fn is_whole(def: &FlowConfig, routes: &[RoutePair]) -> bool {
    let pure_delay = routes.iter().any(|[_, back]| back.is_empty());
    def.uses_sessions() && (matches!(*def.source, Source::Incast(_)) || pure_delay)
}

/// Links that must be in one part, as disjoint sets.
struct Places<'a> {
    delays: &'a [Span],
    lookahead: Span,
    /// Parent of each link in the tree of its set; a root is its own parent.
    parents: Vec<u32>,
    /// For each link, one of the links to which it forwards, or [`NONE`].
    next: Vec<u32>,
    /// Pairs of links with traffic between them.
    edges: Vec<[u32; 2]>,
    /// Number of routes over each link.
    visits: Vec<u64>,
    /// For each link, true if a route starts there, so that its part has an endpoint.
    starts: Vec<bool>,
}

impl Places<'_> {
    fn new(delays: &[Span], lookahead: Span) -> Places<'_> {
        let n = delays.len();
        Places {
            delays,
            lookahead,
            parents: (0..cast::index32(n)).collect(),
            next: vec![NONE; n],
            edges: Vec::new(),
            visits: vec![0; n],
            starts: vec![false; n],
        }
    }

    fn root(&mut self, l: usize) -> usize {
        let mut l = l;
        while self.parents[l] as usize != l {
            self.parents[l] = self.parents[self.parents[l] as usize];
            l = self.parents[l] as usize;
        }
        l
    }

    fn unite(&mut self, a: usize, b: usize) {
        let [a, b] = [self.root(a), self.root(b)];
        self.parents[a.max(b)] = cast::index32(a.min(b));
    }

    /// Packets of link `a` reach link `b`, or an endpoint in the part of link `b`.
    fn connect(&mut self, a: usize, b: usize) {
        if self.delays[a] < self.lookahead {
            self.unite(a, b);
        }
        self.edges.push([cast::index32(a), cast::index32(b)]);
    }

    /// Unites what a group of flows needs in one part.
    fn constrain(&mut self, def: &FlowConfig, routes: &[RoutePair]) {
        let reads_both_ends = matches!(&*def.source, Source::Transfers(_) | Source::Video(_));
        let (whole, mut home) = (is_whole(def, routes), None);
        for [path, back] in routes {
            let [Some(&sender), Some(&last)] = [path.first(), path.last()] else { continue };
            let receiver = back.first().copied().unwrap_or(sender);
            for l in path.iter().chain(back) {
                self.visits[*l] += 1;
            }
            self.starts[sender] = true;
            self.starts[receiver] = true;
            for pair in path.windows(2).chain(back.windows(2)) {
                self.forwards(pair[0], pair[1]);
            }
            self.connect(last, receiver);
            if let Some(last) = back.last() {
                self.connect(*last, sender);
            } else if def.tcp.is_some() {
                self.unite(sender, last);
            }
            if reads_both_ends || whole {
                self.unite(sender, receiver);
            }
            if matches!(*def.source, Source::Call(_)) {
                path.iter().chain(back).for_each(|l| self.unite(sender, *l));
            }
            if def.uses_sessions() {
                self.unite(sender, *home.get_or_insert(sender));
            }
        }
    }

    /// Link `a` forwards packets to link `b`.
    fn forwards(&mut self, a: usize, b: usize) {
        match self.next[a] {
            NONE => self.next[a] = cast::index32(b),
            other => self.unite(other as usize, b),
        }
        self.connect(a, b);
    }

    /// Part of each link; `None` if the parts are not balanced. `packets` are the packets of each
    /// link so far. If they are few, the number of routes counts instead.
    fn divide(&mut self, packets: &[u64], parts: usize) -> Option<Vec<u32>> {
        let known = packets.iter().sum::<u64>() >= KNOWN_PACKETS * packets.len() as u64;
        let roots: Vec<usize> = (0..self.delays.len()).map(|l| self.root(l)).collect();
        let mut number = vec![NONE; roots.len()];
        let mut sizes = Vec::new();
        for (l, root) in roots.iter().enumerate() {
            if number[*root] == NONE {
                number[*root] = cast::index32(sizes.len());
                sizes.push(0);
            }
            let traffic = if known { packets[l] } else { self.visits[l] };
            let costs = if self.starts[l] { ENDPOINT_COSTS } else { 1 };
            sizes[number[*root] as usize] += costs * traffic;
        }
        if sizes.len() < 2 {
            return None;
        }
        let place = |l: u32| number[roots[l as usize]];
        let graph = Graph::new(sizes, self.edges.iter().map(|edge| edge.map(place)));
        let part_of = graph.divide(parts);
        let sizes = graph.sizes(parts, &part_of);
        let total: u64 = sizes.iter().sum();
        let limit = total * BALANCED_PERCENT / (100 * parts as u64);
        let heaviest = sizes.iter().max().copied().unwrap_or_default();
        (heaviest <= limit)
            .then(|| roots.iter().map(|root| part_of[number[*root] as usize]).collect())
    }
}
