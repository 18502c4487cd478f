//! Pooled flows of groups of sessions: opening of connections, notification of their group.

use super::Simulation;
use crate::config::flows::{RoutePair, delay_of};
use crate::config::scenario::Scenario;
use crate::engine::flow::Flow;
use crate::traffic::source::Source;
use crate::traffic::transfer::OpenRequest;
use sojourn_aqm::Link;
use sojourn_aqm::cast;
use sojourn_aqm::units::{Span, Time};
use std::sync::Arc;

/// Owner of a pooled flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct PooledFlowOwner {
    /// Index of the group of sessions.
    pub sessions: u32,
    /// Index of the host.
    pub host: u32,
}

/// Routes of all groups.
#[derive(Clone, Debug)]
pub(super) struct Routes {
    /// Routes of all groups, one group after the other.
    pub all: Vec<RoutePair>,
    /// Index of the first route of each group.
    first_route: Vec<usize>,
    /// Propagation delay of each route, there and back.
    delays: Vec<Span>,
    /// Number of routes of each group in one direction: 1, or one per flow.
    routes_per_direction: Vec<usize>,
}

impl Routes {
    /// Collects the routes of every group; groups with requests also have the reversed routes.
    pub(super) fn of(scenario: &Scenario) -> Routes {
        let (mut all, mut first_route, mut routes_per_direction) =
            (Vec::new(), Vec::new(), Vec::new());
        for def in &scenario.flows {
            first_route.push(all.len());
            routes_per_direction.push(def.routes.len());
            all.extend(def.routes.iter().cloned());
            if matches!(&def.source, Source::Web(w) if w.request) {
                all.extend(def.routes.iter().map(|[path, back]| [back.clone(), path.clone()]));
            }
        }
        let delays = all.iter().map(|route| delay_of(route, &scenario.links)).collect();
        Routes { all, first_route, delays, routes_per_direction }
    }

    /// Propagation delay of all links of route `number`, there and back.
    pub(super) fn delay(&self, number: u32) -> Span {
        self.delays[number as usize]
    }

    /// The only link of route `number`, if nothing can observe its packets between sender and
    /// receiver: acks return with a pure delay, and the link computes departures at enqueue.
    pub(super) fn direct_link(&self, number: u32, links: &[Link]) -> Option<u32> {
        let [path, back] = &self.all[number as usize];
        let direct = path.len() == 1 && back.is_empty() && links[path[0]].computes_departures();
        direct.then(|| cast::number(path[0]))
    }

    /// Index of the route of flow `i` of a group, or of its requests.
    pub(super) fn index(&self, group: usize, i: u64, request: bool) -> u32 {
        let of_flow = if self.routes_per_direction[group] == 1 { 0 } else { cast::index(i) };
        let of_way = if request { self.routes_per_direction[group] } else { 0 };
        cast::number(self.first_route[group] + of_way + of_flow)
    }
}

impl Simulation {
    /// Processes an event of the group of sessions `c`.
    pub(super) fn sessions_event(&mut self, c: usize, now: Time) {
        if let Some(open) = self.sessions[c].process_next_event(now) {
            let f = match self.sessions[c].take_idle_flow(&open) {
                Some(f) => f as usize,
                None => self.new_pooled_flow(c, &open),
            };
            self.flows[f].start_transfer(now, open, &mut self.outbox);
            self.send_and_schedule(f, now);
        }
        self.events.schedule(c, self.sessions[c].next());
    }

    /// Creates a pooled flow for the host of `open`, whose other flows are all busy.
    #[cold]
    fn new_pooled_flow(&mut self, c: usize, open: &OpenRequest) -> usize {
        let scenario = Arc::clone(&self.scenario);
        let group = self.sessions[c].group;
        let (def, host) = (&scenario.flows[group], u64::from(open.host));
        let created =
            &mut self.sessions[c].hosts[open.host as usize].pooled[usize::from(open.request)];
        let route = self.routes.index(group, host, open.request);
        let which = (host, *created, open.request);
        *created += 1;
        let mut flow = Flow::pooled(def, group, which, self.routes.delay(route), scenario.seed());
        flow.set_route(route, self.routes.direct_link(route, &self.links));
        let f = self.flows.len();
        self.sessions[c].flows.push(cast::number(f));
        self.events.reserve(self.first_flow_slot + f + 1);
        self.flows.push(flow);
        self.pooled_owners.push(PooledFlowOwner { sessions: cast::number(c), host: open.host });
        f
    }

    /// Notifies the group of sessions of the progress of its pooled flow `f`.
    pub(super) fn notify_sessions(&mut self, f: usize, now: Time) {
        let Some(transfer) = self.flows[f].pending_transfer() else { return };
        let PooledFlowOwner { sessions, host } = self.pooled_owners[f - self.unpooled_flows];
        let slot = sessions as usize;
        let (received, acked) = (transfer.received.take(), std::mem::take(&mut transfer.acked));
        let (transfer, sessions) = (*transfer, &mut self.sessions[sessions as usize]);
        let mut next = Time::NEVER;
        if let Some(at) = received {
            next = sessions.on_received(&transfer, host, at);
        }
        if acked {
            next = sessions.on_acked(&transfer, host, cast::index32(f), now);
        }
        self.events.schedule_earlier(slot, next);
    }
}
