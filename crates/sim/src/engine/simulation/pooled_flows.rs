//! Pooled flows of groups of sessions: opening of connections, notification of their group.

use super::Simulation;
use crate::engine::flow::Flow;
use crate::traffic::transfer::{OpenRequest, Transfer};
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::units::Time;

/// Owner of a pooled flow.
#[derive(Clone, Copy, Debug, Snapshot)]
pub(super) struct PooledFlowOwner {
    /// Index of the group of sessions.
    pub sessions: u32,
    /// Index of the host.
    pub host: u32,
}

impl PooledFlowOwner {
    /// Owner of a flow of another part.
    pub(super) const NONE: PooledFlowOwner = PooledFlowOwner { sessions: u32::MAX, host: 0 };

    /// Completes `owners` with those known to one part.
    pub(super) fn merge(
        mut owners: Vec<PooledFlowOwner>,
        part: &[PooledFlowOwner],
    ) -> Vec<PooledFlowOwner> {
        owners.resize(part.len(), PooledFlowOwner::NONE);
        for (owner, known) in owners.iter_mut().zip(part) {
            if owner.sessions == u32::MAX {
                *owner = *known;
            }
        }
        owners
    }
}

impl Simulation {
    /// Processes an event of the group of sessions `c`.
    pub(super) fn sessions_event(&mut self, c: usize, now: Time) {
        if let Some(open) = self.sessions[c].process_next_event(now) {
            let f = match self.sessions[c].take_idle_flow(&open) {
                Some(f) => f as usize,
                None if self.exchange.is_some() => return self.wait_for_flow(c, open, now),
                None => self.new_pooled_flow(c, &open),
            };
            return self.open_connection(c, f, open, now);
        }
        self.events.schedule(c, self.sessions[c].next());
    }

    /// Opens a connection on the pooled flow `f` of the group of sessions `c`.
    #[inline]
    pub(super) fn open_connection(&mut self, c: usize, f: usize, open: OpenRequest, now: Time) {
        self.flows[f].start_transfer(now, open, &mut self.outbox);
        self.send_and_schedule(f, now);
        if self.exchange.is_some() {
            self.announce_opening(f, now);
        }
        self.events.schedule(c, self.sessions[c].next());
    }

    /// Creates a pooled flow for the host of `open`, whose other flows are all busy.
    #[cold]
    pub(super) fn new_pooled_flow(&mut self, c: usize, open: &OpenRequest) -> usize {
        let number = self.sessions[c].number_of_next_flow(open);
        let flow = self.pooled_flow(c, open, number);
        self.sessions[c].hosts[open.host as usize].pooled[usize::from(open.request)] += 1;
        let f = self.flows.len();
        self.sessions[c].flows.push(cast::number(f));
        self.events.reserve(self.first_flow_slot + f + 1);
        self.flows.push(flow);
        self.pooled_owners.push(PooledFlowOwner { sessions: cast::number(c), host: open.host });
        self.describe_flow(f);
        f
    }

    /// Returns a new pooled flow: `number` counts the flows of the host for the
    /// same purpose.
    pub(super) fn pooled_flow(&self, c: usize, open: &OpenRequest, number: u32) -> Flow {
        let group = self.sessions[c].group;
        let (def, host) = (&self.scenario.flows[group], u64::from(open.host));
        let route = self.routes.index(group, host, open.request);
        let which = (host, number, open.request);
        let delay = self.routes.delay(route);
        let seeds = [self.scenario.first_seed(), self.current_seed()];
        let mut flow = Flow::pooled(def, group, which, delay, seeds);
        let is_direct = |l: usize| self.computes_departures[l] && self.switches.port(l).is_none();
        flow.set_route(route, self.routes.direct_link(route, is_direct));
        flow
    }

    /// Notifies the group of sessions of the progress of its pooled flow `f`.
    pub(super) fn notify_sessions(&mut self, f: usize, now: Time) {
        if self.exchange.is_some() && self.notify_in_part(f, now) {
            return;
        }
        let Some(transfer) = self.flows[f].pending_transfer() else { return };
        let PooledFlowOwner { sessions, host } = self.pooled_owners[f - self.unpooled_flows];
        let (received, acked) = (transfer.received.take(), std::mem::take(&mut transfer.acked));
        let transfer = *transfer;
        if let Some(at) = received {
            let c = sessions as usize;
            let next = self.sessions[c].on_received(&transfer, host, at);
            self.events.schedule_earlier(c, next);
        }
        if acked {
            self.notify_acked(f, &transfer, now);
        }
    }

    /// Notifies the group of sessions that all data of `transfer` on its pooled flow `f` was
    /// acknowledged.
    pub(super) fn notify_acked(&mut self, f: usize, transfer: &Transfer, now: Time) {
        let PooledFlowOwner { sessions, host } = self.pooled_owners[f - self.unpooled_flows];
        let c = sessions as usize;
        let next = self.sessions[c].on_acked(transfer, host, cast::index32(f), now);
        self.events.schedule_earlier(c, next);
    }
}
