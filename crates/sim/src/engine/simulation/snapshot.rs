//! Snapshots: a simulation as bytes, from which it continues on another machine.
//!
//! The scenario comes first, as text. A simulation of it is built as at the start, and its state is
//! replaced. What follows from the scenario alone is not in the bytes.

use super::pooled_flows::PooledFlowOwner;
use super::stepping::LinkChanges;
use super::{Simulation, Threads};
use crate::config::registries::Registries;
use crate::config::scenario::Scenario;
use crate::engine::flow::Flow;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::params::ParamRow;
use sojourn_aqm::snapshot::{Kind, Reader, Snapshot, Writer, open, seal};
use std::sync::Arc;

impl Simulation {
    /// Returns the simulation as bytes: the scenario, and the state of everything in it.
    /// [`Simulation::load`] continues from them, on any machine, with the same results to the last
    /// byte. See [`sojourn_aqm::snapshot`] for versions.
    ///
    /// ```
    /// use sojourn_aqm::units::{Span, Time};
    /// use sojourn_sim::{Scenario, Simulation};
    ///
    /// let scenario = Scenario::from_json(r#"{
    ///     "duration": "4s", "links": {"up": {"rate": "10mbit", "qdisc": "codel"}},
    ///     "flows": [{"name": "bulk", "path": ["up"], "rtt": "20ms"}]
    /// }"#)?;
    /// let mut simulation = Simulation::new(scenario);
    /// simulation.run_until(Time::ZERO + Span::s(2), &mut |_| true)?;
    /// let bytes = simulation.save()?;
    ///
    /// let mut other = Simulation::load(&bytes)?;
    /// for simulation in [&mut simulation, &mut other] {
    ///     simulation.run_until(simulation.end(), &mut |_| true)?;
    /// }
    /// let [one, two] = [simulation.result()?, other.result()?];
    /// assert_eq!(one.summary.to_string(), two.summary.to_string());
    /// # Ok::<(), sojourn_aqm::Error>(())
    /// ```
    ///
    /// # Errors
    /// A discipline, a congestion control or a source of another crate that cannot be saved. The
    /// path names the link or the flow.
    pub fn save(&self) -> Result<Vec<u8>> {
        if self.tap.is_some() {
            return Err(Error::new("a simulation with a tap cannot be saved"));
        }
        let mut out = Writer::default();
        out.text(&self.scenario.canonical_text());
        self.interruptions.changes.pending_steps().save_to(&mut out)?;
        for rows in &self.params {
            let values: Vec<String> = rows.iter().map(|row| row.value.clone()).collect();
            values.save_to(&mut out)?;
        }
        self.pooled_owners.save_to(&mut out)?;
        self.save_to(&mut out).map_err(|error| self.named(error))?;
        Ok(seal(Kind::Simulation, Simulation::layout(), out))
    }

    /// Finds the part of the simulation that cannot be saved, and adds its path to `error`.
    #[cold]
    fn named(&self, error: Error) -> Error {
        let fails = |part: &dyn Snapshot| part.save_to(&mut Writer::default()).is_err();
        if let Some(l) = self.links.iter().position(|link| fails(link)) {
            return error.at("qdisc").at(&self.scenario.links[l].name).at("links");
        }
        match self.flows.iter().find(|flow| fails(*flow)) {
            Some(flow) => error.at(&self.scenario.flows[flow.group as usize].name).at("flows"),
            None => error,
        }
    }

    /// Creates the simulation that [`Simulation::save`] returned as bytes.
    ///
    /// # Errors
    /// Bytes that are not a snapshot of a simulation, of another version, or damaged.
    pub fn load(bytes: &[u8]) -> Result<Simulation> {
        Simulation::load_with(&Registries::standard(), bytes)
    }

    /// Scenario of a snapshot as JSON, with the changes made until then.
    ///
    /// # Errors
    /// As [`Simulation::load`].
    pub fn saved_scenario(bytes: &[u8]) -> Result<&str> {
        open(bytes, Kind::Simulation, Simulation::layout())?.text()
    }

    /// As [`Simulation::load`], with the names that a program adds.
    ///
    /// # Errors
    /// As [`Simulation::load`], and a name that is not known.
    pub fn load_with(registries: &Registries, bytes: &[u8]) -> Result<Simulation> {
        let mut input = open(bytes, Kind::Simulation, Simulation::layout())?;
        let scenario = Scenario::from_json_with(registries, input.text()?)?;
        let mut simulation =
            Simulation::set_up(Arc::new(scenario), LinkChanges::Scheduled, &mut |_| true)
                .expect("the callback never cancels");
        simulation.load_state(&mut input)?;
        input.finish()?;
        Ok(simulation)
    }

    /// Replaces the state of a simulation at its start.
    fn load_state(&mut self, input: &mut Reader<'_>) -> Result<()> {
        let pending = usize::create_from(input)?;
        if !self.interruptions.changes.keep_last_steps(pending) {
            return Err(input.invalid("changes"));
        }
        for rows in &mut self.params {
            let values = Vec::<String>::create_from(input)?;
            if values.len() != rows.len() {
                return Err(input.invalid("parameters"));
            }
            let changed = |(row, value): (&ParamRow, String)| ParamRow { value, ..row.clone() };
            *rows = rows.iter().zip(values).map(changed).collect();
        }
        for owner in Vec::<PooledFlowOwner>::create_from(input)? {
            let flow = self.flow_of_owner(owner).ok_or_else(|| input.invalid("pooled flow"))?;
            self.flows.push(flow);
            self.pooled_owners.push(owner);
        }
        let counts = |s: &Simulation| [s.links.len(), s.flows.len(), s.sessions.len()];
        let expected = counts(self);
        self.load_from(input)?;
        if counts(self) != expected {
            return Err(input.invalid("number of links, flows or sessions"));
        }
        if let Some(routing) = &mut self.routing {
            routing.restore(&mut self.routes).map_err(|()| input.invalid("path"))?;
        }
        self.threads = Threads::One;
        Ok(())
    }

    /// A pooled flow of `owner`, whose state is then replaced; `None` if there is no such host.
    fn flow_of_owner(&self, owner: PooledFlowOwner) -> Option<Flow> {
        let sessions = self.sessions.get(owner.sessions as usize)?;
        sessions.hosts.get(owner.host as usize)?;
        let open = crate::traffic::transfer::OpenRequest { host: owner.host, ..Default::default() };
        Some(self.pooled_flow(owner.sessions as usize, &open, 0))
    }
}
