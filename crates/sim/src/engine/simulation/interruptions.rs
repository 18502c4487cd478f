//! Interruptions of the event loop: changes, samples, end of the warm-up, end of the run.

use super::Simulation;
use crate::config::scenario::Scenario;
use crate::engine::change_schedule::{ChangeSchedule, DueChange};
use sojourn_aqm::LinkSpec;
use sojourn_aqm::units::{Span, Time};

/// Schedule of interruptions.
pub(super) struct Agenda {
    /// Changes.
    pub timetable: ChangeSchedule,
    /// End of the warm-up; [`Time::NEVER`] after it.
    pub warm: Time,
    /// Next sample.
    pub sample: Time,
    /// Sampling interval.
    pub interval: Span,
    /// End of the run.
    pub end: Time,
}

impl Agenda {
    /// Create the schedule of `scenario`.
    pub fn new(scenario: &Scenario) -> Agenda {
        let interval = scenario.sample.unwrap_or(Span(u64::MAX));
        Agenda {
            timetable: ChangeSchedule::new(scenario),
            warm: Time::ZERO + scenario.warmup,
            sample: Time::ZERO + interval,
            interval,
            end: Time::ZERO + scenario.duration,
        }
    }

    /// Time of the next interruption.
    pub fn next(&self) -> Time {
        self.timetable.next().min(self.warm).min(self.sample).min(self.end)
    }
}

impl Simulation<'_> {
    /// Process what is due now, changes first; returns true at the end of the run.
    #[cold]
    pub(super) fn stand_still(&mut self, agenda: &mut Agenda) -> bool {
        let now = self.next_interruption;
        while let Some(step) = agenda.timetable.step(now) {
            self.change(now, step);
        }
        if agenda.warm == now {
            agenda.warm = Time::NEVER;
            self.begin(now);
        }
        if agenda.sample == now {
            agenda.sample += agenda.interval;
            self.record(now);
        }
        if agenda.end == now {
            self.look(now);
            return true;
        }
        self.next_interruption = agenda.next();
        false
    }

    fn change(&mut self, now: Time, step: DueChange) {
        match step {
            DueChange::Link(l, turn) => {
                let LinkSpec { rate, delay } = self.links[l].spec();
                let (rate, delay) = (turn.rate.unwrap_or(rate), turn.delay.unwrap_or(delay));
                self.links[l].change(now, LinkSpec { rate, delay });
                self.collect_from_link(l);
            }
            DueChange::Leave(group) => {
                for f in self.members[group].clone() {
                    self.leave(f, now);
                }
                if let Some(c) = self.crowd_of(group) {
                    for i in 0..self.crowds[c].flows.len() {
                        self.leave(self.crowds[c].flows[i] as usize, now);
                    }
                    self.crowds[c].leave(now);
                    self.slots.schedule(self.links.len() + c, self.crowds[c].next());
                }
            }
        }
    }

    /// Index of the group of sessions `group`; `None` for ordinary flows.
    fn crowd_of(&self, group: usize) -> Option<usize> {
        let name = |group: usize| &self.scenario.flows[group].name;
        self.crowds.binary_search_by_key(&name(group), |crowd| name(crowd.group)).ok()
    }

    /// Flow `f` leaves.
    fn leave(&mut self, f: usize, now: Time) {
        self.work += 1;
        self.flows[f].leave(now);
        self.slots.schedule(self.first_flow_slot + f, self.flows[f].next_event_time());
    }

    /// Packets that links have sent since counting began.
    pub(super) fn departed(&mut self) -> u64 {
        self.links.iter_mut().map(|link| link.stats().departed_packets).sum()
    }

    /// Brings everything up to `now`, so that it can be looked at. What arrives at `now` itself is
    /// not seen.
    fn look(&mut self, now: Time) {
        self.work += self.links.len() + self.flows.len();
        let before = Time(now.0.saturating_sub(1));
        self.links.iter_mut().for_each(|link| link.advance(now));
        // Who lost a packet hears of it, whether a queue lost it or a wire.
        (0..self.links.len()).for_each(|l| self.collect_from_link(l));
        self.flows.iter_mut().for_each(|flow| flow.advance_totals(before));
    }

    fn record(&mut self, now: Time) {
        self.look(now);
        let on_links = self.on_links();
        if let Some(mut series) = self.series.take() {
            series.sample_links(now, &mut self.links);
            series.sample_groups(&self.flows, &on_links);
            for (i, look) in self.sample_rows().into_iter().enumerate() {
                series.sample_flow(i, look);
            }
            self.series = Some(series);
        }
    }

    /// Which flows have something of their connection on links, by walking over all that is there:
    /// a count per flow would cost something with every packet.
    fn on_links(&self) -> Vec<bool> {
        let mut flows = vec![false; self.flows.len()];
        for body in self.bodies.iter() {
            let flow = body.flow as usize;
            flows[flow] |= body.connection == self.flows[flow].connection;
        }
        flows
    }

    fn begin(&mut self, now: Time) {
        self.look(now);
        if let Some(series) = &mut self.series {
            series.begin(&mut self.links);
        }
        self.departed_in_warmup = self.departed();
        self.links.iter_mut().for_each(|link| link.reset_stats(now));
        self.flows.iter_mut().for_each(|flow| flow.begin(now));
    }
}
