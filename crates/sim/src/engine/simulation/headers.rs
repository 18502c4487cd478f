//! Header fields of flows, for filters of disciplines.

use super::Simulation;
use sojourn_aqm::{FlowHeader, cast};

impl Simulation {
    /// States the headers of all flows to the discipline of link `l`, if it reads them.
    pub(super) fn describe_flows(&mut self, l: usize) {
        if self.links[l].reads_headers() {
            for f in 0..self.flows.len() {
                let header = self.header(f);
                self.links[l].describe_flow(cast::index32(f), &header);
            }
        }
    }

    /// States the header of the new flow `f` to all disciplines that read headers.
    pub(super) fn describe_flow(&mut self, f: usize) {
        let header = self.header(f);
        for link in self.links.iter_mut().filter(|link| link.reads_headers()) {
            link.describe_flow(cast::index32(f), &header);
        }
    }

    /// Header of flow `f`. The requests of a group of sessions go the other way than its data.
    fn header(&self, f: usize) -> FlowHeader {
        let flow = &self.flows[f];
        let group = &self.scenario.flows[flow.group as usize];
        let source = match f.checked_sub(self.unpooled_flows) {
            Some(pooled) => group.host_keys(self.pooled_owners[pooled].host.into())[0],
            None => flow.hosts[0],
        };
        group.header(source)
    }
}
