//! Flows and events at the beginning of a simulation.

use super::routes::Routes;
use super::{Progress, may_continue};
use crate::collections::event_queue::EventQueue;
use crate::config::scenario::Scenario;
use crate::engine::flow::Flow;
use crate::engine::sessions::SessionGroup;
use sojourn_aqm::cast;
use std::ops::Range;

/// Event queue with a slot per group of sessions and per flow, in this order.
pub(super) fn first_events(sessions: &[SessionGroup], flows: &[Flow]) -> EventQueue {
    let mut events = EventQueue::new(sessions.len() + flows.len());
    for (i, group) in sessions.iter().enumerate() {
        events.schedule(i, group.next());
    }
    for (i, flow) in flows.iter().enumerate() {
        events.schedule(sessions.len() + i, flow.next_event_time());
    }
    events
}

/// The flows of `groups`, and for each group of the scenario the range of its flows; `None` if
/// `progress` returned `false`.
pub(super) fn first_flows(
    scenario: &Scenario,
    groups: Vec<usize>,
    routes: &Routes,
    computes_departures: &[bool],
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Option<(Vec<Flow>, Vec<Range<usize>>)> {
    let count = groups.iter().map(|g| cast::index(scenario.flows[*g].count())).sum();
    let mut flows = Vec::with_capacity(count);
    let mut members = vec![0..0; scenario.flows.len()];
    for g in groups {
        let def = &scenario.flows[g];
        members[g] = flows.len()..flows.len() + cast::index(def.count());
        for i in 0..def.count() {
            let route = routes.index(g, i, false);
            let mut flow = Flow::new(def, g, i, routes.delay(route), scenario.first_seed());
            flow.set_route(route, routes.direct_link(route, computes_departures));
            flows.push(flow);
            if !may_continue(flows.len(), Progress { share: 0.0, packets: 0 }, progress) {
                return None;
            }
        }
    }
    Some((flows, members))
}
