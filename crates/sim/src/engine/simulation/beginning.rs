//! Links, flows and events at the beginning of a simulation.

use super::routes::Routes;
use super::stepping::LinkChanges;
use super::telemetry::links_with_telemetry;
use super::{Progress, may_continue};
use crate::collections::event_queue::EventQueue;
use crate::config::discipline_builder::DisciplineBuilder;
use crate::config::scenario::Scenario;
use crate::engine::change_schedule::link_may_change;
use crate::engine::flow::Flow;
use crate::engine::sessions::SessionGroup;
use crate::random_stream::random_stream;
use sojourn_aqm::cast;
use sojourn_aqm::sorting::sort_by_key;
use sojourn_aqm::{Link, TokenBucket};
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
    is_direct: impl Fn(usize) -> bool,
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
            flow.set_route(route, routes.direct_link(route, &is_direct));
            flows.push(flow);
            if !may_continue(flows.len(), Progress { share: 0.0, packets: 0 }, progress) {
                return None;
            }
        }
    }
    Some((flows, members))
}

/// Groups of sessions, and numbers of the other groups, each in the order of their names.
pub(super) fn groups_by_name(scenario: &Scenario) -> (Vec<SessionGroup>, Vec<usize>) {
    let mut groups: Vec<usize> = (0..scenario.flows.len()).collect();
    sort_by_key(&mut groups, |g| &scenario.flows[*g].name);
    let (sessions, others): (Vec<usize>, Vec<usize>) =
        groups.into_iter().partition(|g| scenario.flows[*g].uses_sessions());
    (sessions.into_iter().map(|g| SessionGroup::new(scenario, g)).collect(), others)
}

/// All links with nothing on them; `None` if `progress` returned `false`.
pub(super) fn first_links(
    scenario: &Scenario,
    changes: LinkChanges,
    begin: Progress,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Option<Vec<Link>> {
    let mut disciplines = DisciplineBuilder::default();
    let with_telemetry = links_with_telemetry(scenario);
    let may_change = link_may_change(scenario).into_iter().enumerate();
    may_change
        .map(|(l, may)| {
            let goes_on = may_continue(l, begin, progress);
            goes_on.then(|| {
                let mut link = link(scenario, l, may || changes.of(l), &mut disciplines);
                if with_telemetry[l] {
                    link.enable_telemetry();
                }
                link
            })
        })
        .collect()
}

/// The link `l` with nothing on it. `may_change` is true if the scenario changes its rate or delay.
fn link(
    scenario: &Scenario,
    l: usize,
    may_change: bool,
    disciplines: &mut DisciplineBuilder,
) -> Link {
    let def = &scenario.links[l];
    let rng = random_stream(scenario.first_seed(), &format!("links.{}", def.name));
    let mut link =
        Link::new(def.spec(), disciplines.build(def), rng).expect("its rate was checked");
    // Random losses are drawn when a transmission starts, so that they are counted then.
    if def.is_impaired() || may_change {
        link.may_change();
    }
    if let Some(opportunities) = def.opportunities.as_deref() {
        link.set_opportunities(opportunities.clone());
    }
    if let Some(burst) = def.burst() {
        link.set_bucket(TokenBucket::new(burst));
    }
    if let Some(overhead) = def.overhead() {
        link.set_overhead(overhead);
    }
    if scenario.packet_log() {
        link.enable_packet_log();
    }
    link
}
