//! Crowds in a simulation: opening of connections on pooled flows, and notification of crowds.

use super::World;
use crate::crowd::Open;
use crate::flow::Flow;
use crate::scenario::{Route, Scenario};
use crate::source::Source;
use sojourn_aqm::cast;
use sojourn_aqm::units::Time;

/// Owner of a pooled flow.
#[derive(Clone, Copy)]
pub struct Lease {
    /// Index of the crowd.
    pub crowd: u32,
    /// Index of the host.
    pub host: u32,
}

/// Routes of all groups.
pub struct Routes {
    /// Routes of all groups, one group after the other.
    pub all: Vec<Route>,
    /// Index of the first route of each group.
    begin: Vec<usize>,
    /// How many each group has in one direction, and which of them its flows take.
    ways: Vec<usize>,
}

impl Routes {
    /// Collect the routes of every group; groups with requests also have the reversed routes.
    pub fn of(scenario: &Scenario) -> Routes {
        let (mut all, mut begin, mut ways) = (Vec::new(), Vec::new(), Vec::new());
        for def in &scenario.flows {
            begin.push(all.len());
            ways.push(def.routes.len());
            all.extend(def.routes.iter().cloned());
            if matches!(&def.source, Source::Web(w) if w.request) {
                all.extend(def.routes.iter().map(|[path, back]| [back.clone(), path.clone()]));
            }
        }
        Routes { all, begin, ways }
    }

    /// Index of the route of flow `i` of a group, or of its requests.
    pub fn index(&self, group: usize, i: u64, request: bool) -> u32 {
        let of_flow = if self.ways[group] == 1 { 0 } else { cast::index(i) };
        let of_way = if request { self.ways[group] } else { 0 };
        cast::number(self.begin[group] + of_way + of_flow)
    }
}

impl World<'_> {
    /// Process an event of crowd `c`.
    pub(super) fn crowd_event(&mut self, c: usize, now: Time) {
        if let Some(open) = self.crowds[c].wake(now) {
            let f = match self.crowds[c].lend(&open) {
                Some(f) => f as usize,
                None => self.another_flow(c, &open),
            };
            self.awake = f;
            self.flows[f].begin_transfer(now, open, &mut self.out);
            self.send(f, now);
            self.slots.set(self.first + f, self.flows[f].next());
            self.awake = usize::MAX;
        }
        self.slots.set(self.links.len() + c, self.crowds[c].next());
    }

    /// Create a pooled flow for the host of `open`, whose other flows are all busy.
    #[cold]
    fn another_flow(&mut self, c: usize, open: &Open) -> usize {
        let scenario = self.scenario;
        let group = self.crowds[c].group;
        let (def, host) = (&scenario.flows[group], u64::from(open.host));
        let lent = &mut self.crowds[c].hosts[open.host as usize].lent[usize::from(open.request)];
        let of_links = def.delay_of_links(&scenario.links, host);
        let which = (host, *lent, open.request);
        *lent += 1;
        let mut flow = Flow::lent(def, group, which, of_links, scenario.seed);
        flow.route = self.routes.index(group, host, open.request);
        let f = self.flows.len();
        self.slots.grow(self.first + f + 1);
        self.flows.push(flow);
        self.leases.push(Lease { crowd: cast::number(c), host: open.host });
        f
    }

    /// Notify the crowd of the progress of its pooled flow `f`.
    pub(super) fn tell(&mut self, f: usize, now: Time) {
        let Some(told) = self.flows[f].told() else { return };
        let Lease { crowd, host } = self.leases[f - self.own];
        let crowd_slot = self.links.len() + crowd as usize;
        let (received, acked) = (told.received.take(), std::mem::take(&mut told.acked));
        let (told, crowd) = (*told, &mut self.crowds[crowd as usize]);
        let mut next = Time::NEVER;
        if let Some(at) = received {
            next = crowd.received(&told, host, at);
        }
        if acked {
            next = crowd.acked(&told, host, cast::place(f), now);
        }
        self.slots.lower(crowd_slot, next);
    }
}
