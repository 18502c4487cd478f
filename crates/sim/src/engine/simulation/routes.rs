//! Routes of all groups of flows.

use crate::config::flow_routes::{RoutePair, delay_of};
use crate::config::scenario::Scenario;
use crate::traffic::source::Source;
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::units::Span;
use std::ops::Range;

/// End of a direction in [`Routes::hops`].
const END: u32 = u32::MAX;

/// Routes of all groups.
///
/// The links of all routes are in one list. A packet has the index of its current link there, its
/// cursor, so that the next link is found without its flow.
#[derive(Clone, Debug, Snapshot)]
pub(super) struct Routes {
    /// Routes of all groups, one group after the other.
    pub all: Vec<RoutePair>,
    /// Links of all routes; each direction ends with [`END`].
    hops: Vec<u32>,
    /// For each route, the index in `hops` of its first link, there and back.
    starts: Vec<[u32; 2]>,
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
        for def in scenario.flows.iter() {
            first_route.push(all.len());
            routes_per_direction.push(def.routes.len());
            all.extend(def.routes.iter().cloned());
            if matches!(&*def.source, Source::Web(w) if w.request) {
                all.extend(def.routes.iter().map(|[path, back]| [back.clone(), path.clone()]));
            }
        }
        let delays = all.iter().map(|route| delay_of(route, &scenario.links)).collect();
        let (hops, starts) = flatten(&all);
        Routes { all, hops, starts, first_route, delays, routes_per_direction }
    }

    /// Indices of the routes of a group, requests included.
    pub(super) fn range_of_group(&self, group: usize) -> Range<usize> {
        let end = self.first_route.get(group + 1).copied().unwrap_or(self.all.len());
        self.first_route[group]..end
    }

    /// Routes of a group, requests included.
    pub(super) fn of_group(&self, group: usize) -> &[RoutePair] {
        &self.all[self.range_of_group(group)]
    }

    /// Propagation delay of all links of route `number`, there and back.
    pub(super) fn delay(&self, number: u32) -> Span {
        self.delays[number as usize]
    }

    /// The only link of route `number`, if nothing can observe its packets between sender and
    /// receiver: acks return with a pure delay, and `is_direct` is true for the link: it computes
    /// departures at enqueue and shares no buffer.
    pub(super) fn direct_link(
        &self,
        number: u32,
        is_direct: impl Fn(usize) -> bool,
    ) -> Option<u32> {
        let [path, back] = &self.all[number as usize];
        let direct = path.len() == 1 && back.is_empty() && is_direct(path[0]);
        direct.then(|| cast::number(path[0]))
    }

    /// Index of the route of flow `i` of a group, or of its requests.
    pub(super) fn index(&self, group: usize, i: u64, request: bool) -> u32 {
        let of_flow = if self.routes_per_direction[group] == 1 { 0 } else { cast::index(i) };
        let of_way = if request { self.routes_per_direction[group] } else { 0 };
        cast::number(self.first_route[group] + of_way + of_flow)
    }

    /// Cursors of the first links of route `number`, there and back. The second is valid only if
    /// the route has links on the way back.
    #[inline]
    pub(super) fn starts(&self, number: u32) -> [u32; 2] {
        self.starts[number as usize]
    }

    /// Sets the cursor of the first link of route `number` in one direction, for the packets that
    /// its flow sends next.
    pub(super) fn set_start(&mut self, number: u32, direction: usize, cursor: u32) {
        self.starts[number as usize][direction] = cursor;
    }

    /// Adds the links of a path; returns the cursor of the first one.
    pub(super) fn add_path(&mut self, links: &[u32]) -> u32 {
        let start = cast::number(self.hops.len());
        self.hops.extend_from_slice(links);
        self.hops.push(END);
        start
    }

    /// Link at `cursor`.
    #[inline]
    pub(super) fn link(&self, cursor: u32) -> usize {
        self.hops[cursor as usize] as usize
    }

    /// Link after the one at `cursor`; `None` if that is the last one of its direction.
    #[inline]
    pub(super) fn next_link(&self, cursor: u32) -> Option<u32> {
        let next = self.hops[cursor as usize + 1];
        (next != END).then_some(next)
    }
}

/// Puts the links of all routes into one list, and returns it with the index of the first link of
/// both directions of each route.
fn flatten(routes: &[RoutePair]) -> (Vec<u32>, Vec<[u32; 2]>) {
    let mut hops = Vec::new();
    let mut add = |direction: &[usize]| {
        let start = cast::number(hops.len());
        hops.extend(direction.iter().map(|l| cast::index32(*l)));
        hops.push(END);
        start
    };
    let starts = routes.iter().map(|[path, back]| [add(path), add(back)]).collect();
    (hops, starts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flat_routes_have_the_links_of_both_directions() {
        let routes = [[vec![3, 1, 2], vec![]], [vec![0], vec![2, 3]]];
        let (hops, starts) = flatten(&routes);
        assert_eq!(hops, [3, 1, 2, END, END, 0, END, 2, 3, END]);
        assert_eq!(starts, [[0, 4], [5, 7]]);
    }
}
