//! Warm starts: a simulation that continues as the run of another scenario.

use super::Simulation;
use crate::config::scenario::Scenario;
use crate::config::warm_change::change_between;
use crate::config::warm_from::WarmFrom;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::snapshot::reseed;
use sojourn_aqm::units::Time;
use std::sync::Arc;

impl Simulation {
    /// Continues as a run of `wanted`, from [`Simulation::now`] on: what has happened stays.
    ///
    /// - Links have the rate, the delay, the impairments and the parameters of the discipline of
    ///   `wanted`, by a [change](Simulation::change).
    /// - Name and duration are taken from `wanted`. The measured interval starts now, or at the end
    ///   of the warm-up of `wanted` if that is later.
    /// - With the seed of the simulation, random numbers continue. With another one, every random
    ///   stream gets other numbers, which depend on its own state and the seed.
    ///
    /// [`Simulation::scenario`] is then a scenario of which a run from the start gives the same
    /// bytes: it has the change, the warm-up, and the seed of the past as `warm_from`.
    ///
    /// ```
    /// use sojourn_aqm::units::{Span, Time};
    /// use sojourn_sim::{Scenario, Simulation, run};
    ///
    /// let text = r#"{
    ///     "duration": "8s", "links": {"up": {"rate": "10mbit", "qdisc": "codel"}},
    ///     "flows": [{"name": "bulk", "path": ["up"], "rtt": "20ms"}]
    /// }"#;
    /// let mut simulation = Simulation::changeable(Scenario::from_json(text)?);
    /// simulation.run_until(Time::ZERO + Span::s(4), &mut |_| true)?;
    /// let warm = simulation.save()?;
    ///
    /// for target in ["5ms", "20ms"] {
    ///     let qdisc = format!("codel(target={target})");
    ///     let mut run_from_warm = Simulation::load(&warm)?;
    ///     run_from_warm.continue_as(&Scenario::from_json(&text.replace("codel", &qdisc))?)?;
    ///     let cold = run(run_from_warm.scenario());
    ///     let warm = run_from_warm.finish(&mut |_| true).expect("not stopped");
    ///     assert_eq!(warm.summary.to_string(), cold.summary.to_string());
    /// }
    /// # Ok::<(), sojourn_aqm::Error>(())
    /// ```
    ///
    /// # Errors
    /// A difference between the scenarios that no change can make, with its path; a duration that
    /// is over; another seed in a build without the feature `snapshot`; a simulation that has
    /// ended, or whose scenario has `warm_from`. Nothing is changed then.
    pub fn continue_as(&mut self, wanted: &Scenario) -> Result<()> {
        let at = self.now - Time::ZERO;
        if self.has_ended() {
            return Err(Error::new(format!("the run of the warm state ended at {at}")));
        }
        if self.scenario.warm_from.is_some() {
            let text = "is in the scenario of the warm state: save a state of a run without it";
            return Err(Error::new(text).at("warm_from"));
        }
        if wanted.duration() <= at {
            let text =
                format!("{} is not after the time of the warm state, {at}", wanted.duration());
            return Err(Error::new(text).at("duration"));
        }
        if wanted.seed() != self.scenario.seed() {
            WarmFrom::check_build().map_err(|e| e.at("seed"))?;
        }
        let change = change_between(&self.scenario.canonical(), &wanted.canonical(), at)?;
        if !change.is_empty() {
            self.change(&change.into())?;
        }
        let scenario = Arc::make_mut(&mut self.scenario);
        let seed = scenario.seed();
        scenario.name.clone_from(&wanted.name);
        scenario.keys.seed = wanted.seed();
        scenario.keys.duration = wanted.duration();
        scenario.keys.warmup = wanted.warmup().max(at);
        scenario.warm_from = Some(WarmFrom { at, seed });
        let [warm, end] = [scenario.warmup(), scenario.duration()].map(|span| Time::ZERO + span);
        self.interruptions.warm = warm;
        self.interruptions.end = end;
        if seed != wanted.seed() {
            self.interruptions.reseed = self.now;
        }
        Ok(())
    }

    /// Reseeds every random stream with the scenario's seed.
    pub(super) fn reseed(&mut self) {
        let seed = self.scenario.seed();
        reseed(self, seed).expect("the state of all parts can be copied");
    }

    /// Seed of the streams of parts that are made now.
    pub(super) fn current_seed(&self) -> u64 {
        let is_past = self.interruptions.reseed != Time::NEVER;
        if is_past { self.scenario.first_seed() } else { self.scenario.seed() }
    }
}
