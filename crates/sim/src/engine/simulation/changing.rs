//! Changes made by hand while a simulation runs. Each is recorded in the scenario.

use super::Simulation;
use crate::config::changes::Change;
use crate::config::links::NewParam;
use crate::engine::change_schedule::DueChange;
use serde_json::Value as Json;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::units::Time;
use std::sync::Arc;

impl Simulation {
    /// Applies a change at [`Simulation::now`], before all other events of this time: a table of
    /// the scenario's `changes` without `at`, with new rates, delays, impairments and parameters of
    /// disciplines of `links`, and the flows that `leave`.
    ///
    /// It is added to [`Simulation::scenario`]: a run of that scenario gives the same bytes. A
    /// change of the scenario that is due at the same time is applied first.
    ///
    /// # Errors
    /// If a scenario could not make the change, if it sets the rate or delay of a link that is not
    /// [changeable](Simulation::changeable), or the impairments of a link without any, or if the
    /// run is over. Nothing is changed then.
    pub fn change(&mut self, change: &Json) -> Result<()> {
        self.check_running()?;
        let mut flows = self.scenario.flows.to_vec();
        let times = [self.now - Time::ZERO, self.scenario.duration()];
        let change = Change::while_running(change, times, &self.scenario.links, &mut flows)?;
        let of_outages = change.outages.iter().map(|(l, _)| l);
        for l in change.links.iter().map(|(l, _)| l).chain(of_outages) {
            if self.links[*l].computes_departures() {
                let text = "has a fixed rate and delay in this simulation: make it changeable";
                return Err(Error::new(text).at(&self.scenario.links[*l].name).at("links"));
            }
        }
        for (l, _) in &change.wires {
            if self.wire(*l).is_none() {
                let text = "has no wire in this simulation: give it an impairment, like jitter = \
                            \"0s\", or write the change into the scenario";
                return Err(Error::new(text).at(&self.scenario.links[*l].name).at("links"));
            }
        }
        self.apply_scheduled();
        for (l, new) in &change.qdiscs {
            self.check_qdisc(*l, new)
                .map_err(|e| e.at(&self.scenario.links[*l].name).at("links"))?;
        }
        for (l, to) in &change.links {
            self.apply_change(self.now, DueChange::Link(*l, *to));
        }
        for (l, outage) in &change.outages {
            self.apply_change(self.now, DueChange::Outage(*l, *outage));
        }
        for (l, new) in &change.wires {
            self.apply_change(self.now, DueChange::Wire(*l, Arc::clone(new)));
        }
        for (l, new) in &change.qdiscs {
            self.apply_change(self.now, DueChange::Qdisc(*l, Arc::clone(new)));
        }
        for group in &change.leave {
            self.apply_change(self.now, DueChange::Leave(*group));
        }
        let scenario = Arc::make_mut(&mut self.scenario);
        scenario.flows = flows.into();
        scenario.changes.push(change);
        Ok(())
    }

    /// Applies the changes of the scenario that are due now: they precede those made by hand.
    fn apply_scheduled(&mut self) {
        let now = self.now;
        self.next_interruption = now;
        while self.interruptions.changes.next_step() <= now
            && let Some(step) = self.interruptions.changes.pop_due(now)
        {
            self.apply_change(now, step);
        }
    }

    /// Checks new parameters of the discipline of link `l`. Later changes of the scenario were
    /// checked with the parameters that it has without this one.
    fn check_qdisc(&self, l: usize, new: &[NewParam]) -> Result<()> {
        let at = self.now - Time::ZERO;
        let later = |change: &&Change| change.at > at && change.qdiscs.iter().any(|q| q.0 == l);
        if let Some(change) = self.scenario.changes.iter().find(later) {
            let text = format!("the scenario changes its parameters at {}", change.at);
            return Err(Error::new(text).at("qdisc"));
        }
        self.scenario.links[l].reconfigured(&self.params[l], new).map(drop)
    }

    fn check_running(&self) -> Result<()> {
        if self.has_ended() {
            let text = format!("the run ended at {}: nothing can change", self.now - Time::ZERO);
            return Err(Error::new(text));
        }
        Ok(())
    }
}
