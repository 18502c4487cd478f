//! Pooled flows of groups of sessions: opening of connections, notification of their group.

use super::Simulation;
use crate::engine::flow::Flow;
use crate::traffic::transfer::OpenRequest;
use sojourn_aqm::cast;
use sojourn_aqm::units::Time;
use std::sync::Arc;

/// Owner of a pooled flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct PooledFlowOwner {
    /// Index of the group of sessions.
    pub sessions: u32,
    /// Index of the host.
    pub host: u32,
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
