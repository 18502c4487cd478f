//! Simulation in steps: the event loop up to a time, and the result so far.

use super::{Progress, Simulation, Threads, WORK_BETWEEN_CALLS};
use crate::config::scenario::Scenario;
use crate::output::outcome::Outcome;
use sojourn_aqm::error::{Error, Result};
use sojourn_aqm::units::Time;
use std::fmt;
use std::sync::Arc;

/// Runs a scenario: a [`Simulation`] from its start to its end.
///
/// A scenario given by reference is copied; one given by value or in an `Arc` is not.
pub fn run(scenario: impl Into<Arc<Scenario>>) -> Outcome {
    run_with_progress(scenario, &mut |_| true).expect("the callback never cancels")
}

/// Runs a scenario as [`run`] does, and can be stopped.
///
/// Calls `progress` after each 65,536 events, packets sent, and links and flows looked at; after
/// each 4,096 links and flows while the run is set up and reported; and at the end of the simulated
/// time. If `progress` returns `false`, the run stops and the result is `None`.
pub fn run_with_progress(
    scenario: impl Into<Arc<Scenario>>,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Option<Outcome> {
    run_on_threads(scenario, Threads::One, progress)
}

/// As [`run_with_progress`], on several threads. The result is the same for every number of
/// threads, byte for byte.
///
/// On more than one thread `progress` is called at other times, and counts the packets of the other
/// threads late.
pub fn run_on_threads(
    scenario: impl Into<Arc<Scenario>>,
    threads: Threads,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Option<Outcome> {
    let scenario = scenario.into();
    let mut simulation = Simulation::set_up(scenario, LinkChanges::Scheduled, progress)?;
    simulation.set_threads(threads);
    simulation.finish(progress)
}

/// Links whose rate or delay may change during the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkChanges {
    /// Those that the scenario changes.
    Scheduled,
    /// All.
    Any,
    /// Those that the scenario changes. In addition, this link computes no departures at enqueue.
    Tapped(usize),
}

impl LinkChanges {
    /// True if link `l` may change although the scenario does not change it.
    pub(super) fn of(self, l: usize) -> bool {
        self == LinkChanges::Any || self == LinkChanges::Tapped(l)
    }
}

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Simulation { scenario, now, links, flows, .. } = self;
        f.debug_struct("Simulation")
            .field("name", &scenario.name)
            .field("now", now)
            .field("links", &links.len())
            .field("flows", &flows.len())
            .finish_non_exhaustive()
    }
}

impl Simulation {
    /// Creates a simulation of `scenario` at time zero. Rates and delays change only as the
    /// scenario says; see [`Simulation::changeable`].
    pub fn new(scenario: impl Into<Arc<Scenario>>) -> Simulation {
        Simulation::set_up(scenario.into(), LinkChanges::Scheduled, &mut |_| true)
            .expect("the callback never cancels")
    }

    /// As [`Simulation::new`], and rate and delay of every link can be changed with
    /// [`Simulation::change`]. The results are the same; a run takes longer, because no departure
    /// is computed in advance.
    pub fn changeable(scenario: impl Into<Arc<Scenario>>) -> Simulation {
        Simulation::set_up(scenario.into(), LinkChanges::Any, &mut |_| true)
            .expect("the callback never cancels")
    }

    /// Time up to which everything has happened.
    pub fn now(&self) -> Time {
        self.now
    }

    /// End of the run.
    pub fn end(&self) -> Time {
        Time::ZERO + self.scenario.duration()
    }

    /// The scenario, with the changes made so far.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// True if the run is over: what is due at its end has happened as well.
    pub(super) fn has_ended(&self) -> bool {
        self.interruptions.end == Time::NEVER
    }

    /// Number of packets sent by links so far; one that crosses three links counts three times.
    pub fn packets(&mut self) -> u64 {
        self.departed_in_warmup + self.departed_packets()
    }

    /// Simulates everything before `until`; at the end of the run, also what is due then.
    ///
    /// Calls `progress` as [`run_with_progress`](crate::run_with_progress) does. If it returns
    /// `false`, the simulation stops at the event that it has reached and this function returns
    /// `false`; it can be continued.
    ///
    /// # Errors
    /// A time before [`Simulation::now`] or after [`Simulation::end`].
    pub fn run_until(
        &mut self,
        until: Time,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<bool> {
        let span = |at: Time| at - Time::ZERO;
        if until < self.now {
            let text = format!("{} is before the current time, {}", span(until), span(self.now));
            return Err(Error::new(text));
        }
        if until > self.end() {
            let text = format!("{} is after the end at {}", span(until), span(self.end()));
            return Err(Error::new(text));
        }
        Ok(self.advance_to(until, progress))
    }

    /// Simulates to the end of the run and returns the result; `None` if stopped by `progress`,
    /// which is called as in [`run_with_progress`](crate::run_with_progress).
    pub fn finish(mut self, progress: &mut dyn FnMut(Progress) -> bool) -> Option<Outcome> {
        self.advance_to(self.end(), progress).then(|| self.outcome(progress))?
    }

    /// Simulates up to `until`; returns `false` if stopped by `progress`.
    pub(super) fn advance_to(
        &mut self,
        until: Time,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> bool {
        let end = self.end();
        if self.has_ended() {
            return true;
        }
        loop {
            // Totals of flows are exact at each interruption, so the end of a step is one.
            let next = self.interruptions.next().min(until);
            self.next_interruption = next;
            let reached = match self.threads {
                Threads::One => self.run_events(next, progress),
                _ => self.run_on_threads(next, progress),
            };
            if !reached {
                return false;
            }
            self.now = next;
            // Changes, samples and the end of the warm-up precede events at the same time.
            if next == until && until < end {
                return true;
            }
            if self.process_interruption(next) {
                let packets = self.packets();
                return progress(Progress { share: 1.0, packets });
            }
            self.work += 1;
            if self.work >= WORK_BETWEEN_CALLS && !self.call(progress, next) {
                return false;
            }
        }
    }

    /// Calls `progress` at `now`; if it returns false, sets [`Simulation::now`] to that time.
    fn call(&mut self, progress: &mut dyn FnMut(Progress) -> bool, now: Time) -> bool {
        self.work = 0;
        let share = now.0 as f64 / self.end().0 as f64;
        let goes_on = progress(Progress { share, packets: self.packets() });
        if !goes_on {
            self.now = now;
        }
        goes_on
    }

    /// Simulates everything before `until`, at most the next interruption, on this thread; returns
    /// false if stopped by `progress`, with [`Simulation::now`] at the time that was reached.
    pub(super) fn run_events(
        &mut self,
        until: Time,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> bool {
        loop {
            let (slot, other) = self.events.earliest();
            let of_links = self.link_events.earliest();
            let at = of_links.min(other);
            if until <= at {
                return true;
            }
            if of_links <= other {
                self.link_event(self.link_events.first(), at);
            } else if slot >= self.first_flow_slot {
                let f = slot - self.first_flow_slot;
                match self.tap {
                    None => self.flow_event(f, at),
                    Some(_) => self.flow_event_tapped(f, at),
                }
            } else {
                self.sessions_event(slot, at);
            }
            self.work += 1;
            if self.work >= WORK_BETWEEN_CALLS && !self.call(progress, at) {
                return false;
            }
        }
    }

    /// Returns a copy, which continues in the same way. Its code exists once, whereas every crate
    /// that calls `clone` compiles its own.
    #[inline(never)]
    pub fn fork(&self) -> Simulation {
        self.clone()
    }

    /// Result of the run so far: the result of the same scenario with [`Simulation::now`] as its
    /// duration, byte for byte. Works on a copy; the simulation can be continued.
    ///
    /// # Errors
    /// If nothing has been measured yet, because the warm-up is not over.
    pub fn result(&self) -> Result<Outcome> {
        let warm = Time::ZERO + self.scenario.warmup();
        if self.now <= warm {
            let text = format!(
                "nothing is measured yet: it is {}, and the measured interval starts at {}",
                self.now - Time::ZERO,
                self.scenario.warmup()
            );
            return Err(Error::new(text));
        }
        let mut copy = self.fork();
        if !copy.has_ended() {
            let now = copy.now;
            copy.interruptions.changes.cut(now);
            copy.interruptions.end = now;
            Arc::make_mut(&mut copy.scenario).keys.duration = now - Time::ZERO;
            copy.process_interruption(now);
        }
        Ok(copy.outcome(&mut |_| true).expect("the callback never cancels"))
    }
}
