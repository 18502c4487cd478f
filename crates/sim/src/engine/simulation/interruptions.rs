//! Interruptions of the event loop: changes, samples, end of the warm-up, end of the run.

use super::Simulation;
use super::in_flight::Payload;
use crate::config::changes::{Queued, UpOrDown};
use crate::config::scenario::Scenario;
use crate::engine::change_schedule::{ChangeSchedule, DueChange};
use sojourn_aqm::Built;
use sojourn_aqm::Snapshot;
use sojourn_aqm::units::{Rate, Span, Time};
use std::collections::BTreeMap;

/// Schedule of interruptions.
#[derive(Clone, Snapshot)]
pub(super) struct Interruptions {
    /// Changes.
    pub changes: ChangeSchedule,
    /// Time at which random streams get the seed of the scenario; [`Time::NEVER`] if they have it.
    pub reseed: Time,
    /// Rates that the links that are down have when they come up.
    pub down: BTreeMap<usize, Rate>,
    /// End of the warm-up; [`Time::NEVER`] after it.
    pub warm: Time,
    /// Next sample.
    pub sample: Time,
    /// Sampling interval.
    pub interval: Span,
    /// End of the run.
    pub end: Time,
}

impl Interruptions {
    /// Creates the schedule of `scenario`.
    pub(super) fn new(scenario: &Scenario) -> Interruptions {
        let interval = scenario.sample().unwrap_or(Span(u64::MAX));
        Interruptions {
            changes: ChangeSchedule::new(scenario),
            reseed: scenario.reseeding().map_or(Time::NEVER, |at| Time::ZERO + at),
            down: BTreeMap::new(),
            warm: Time::ZERO + scenario.warmup(),
            sample: Time::ZERO + interval,
            interval,
            end: Time::ZERO + scenario.duration(),
        }
    }

    /// Time of the next interruption.
    pub(super) fn next(&self) -> Time {
        self.changes.next().min(self.reseed).min(self.warm).min(self.sample).min(self.end)
    }
}

impl Simulation {
    /// Processes what is due now, changes first; returns true at the end of the run.
    #[cold]
    pub(super) fn process_interruption(&mut self, now: Time) -> bool {
        while let Some(step) = self.interruptions.changes.pop_due(now) {
            self.apply_change(now, step);
        }
        if self.interruptions.reseed == now {
            self.reseed();
            self.interruptions.reseed = Time::NEVER;
        }
        if self.interruptions.warm == now {
            self.interruptions.warm = Time::NEVER;
            self.start_measuring(now);
        }
        if self.interruptions.sample == now {
            let interval = self.interruptions.interval;
            self.interruptions.sample += interval;
            self.sample(now);
        }
        if self.interruptions.end == now {
            self.advance_all(now);
            self.interruptions.end = Time::NEVER;
            return true;
        }
        false
    }

    pub(super) fn apply_change(&mut self, now: Time, step: DueChange) {
        match step {
            DueChange::Link(l, turn) => {
                self.send_on_wire(l, now);
                let mut spec = self.links[l].spec();
                match self.interruptions.down.get_mut(&l) {
                    Some(later) => *later = turn.rate.unwrap_or(*later),
                    None => spec.rate = turn.rate.unwrap_or(spec.rate),
                }
                spec.delay = turn.delay.unwrap_or(spec.delay);
                self.links[l].change(now, spec);
                self.switches.forget(l);
                self.collect_from_link(l);
            }
            DueChange::Outage(l, outage) => self.take_down_or_bring_up(l, outage, now),
            DueChange::Wire(l, new) => self.change_wire(l, now, &new),
            DueChange::Qdisc(l, new) => {
                let changed = self.scenario.links[l].reconfigured(&self.params[l], &new);
                let Built { qdisc, params, .. } = changed.expect("the change was checked");
                self.links[l].reconfigure(now, qdisc);
                self.switches.forget(l);
                self.params[l] = params.into();
                self.describe_flows(l);
                self.collect_from_link(l);
            }
            DueChange::Leave(group) => {
                for f in self.members[group].clone() {
                    self.leave(f, now);
                }
                if let Some(c) = self.sessions_of(group) {
                    for i in 0..self.sessions[c].flows.len() {
                        self.leave(self.sessions[c].flows[i] as usize, now);
                    }
                    self.sessions[c].leave(now);
                    self.events.schedule(c, self.sessions[c].next());
                }
            }
        }
    }

    /// Link `l` goes down or comes up at `now`.
    fn take_down_or_bring_up(&mut self, l: usize, outage: UpOrDown, now: Time) {
        self.send_on_wire(l, now);
        let (link, down) = (&mut self.links[l], &mut self.interruptions.down);
        match outage {
            UpOrDown::Down(queued) => {
                down.entry(l).or_insert(link.spec().rate);
                link.take_down(now, queued == Queued::Drop);
            }
            UpOrDown::Up => {
                if let Some(rate) = down.remove(&l) {
                    link.bring_up(now, rate);
                }
            }
        }
        if let Some(routing) = &mut self.routing {
            routing.set_usable(l, outage == UpOrDown::Up);
        }
        self.switches.forget(l);
        self.collect_from_link(l);
    }

    /// Index of the group of sessions `group`; `None` for ordinary flows.
    fn sessions_of(&self, group: usize) -> Option<usize> {
        let name = |group: usize| &self.scenario.flows[group].name;
        self.sessions.binary_search_by_key(&name(group), |sessions| name(sessions.group)).ok()
    }

    /// Flow `f` leaves.
    fn leave(&mut self, f: usize, now: Time) {
        self.work += 1;
        self.flows[f].leave(now);
        self.events.schedule(self.first_flow_slot + f, self.flows[f].next_event_time());
    }

    /// Number of packets sent by links since the last reset of their statistics.
    pub(super) fn departed_packets(&mut self) -> u64 {
        self.links.iter_mut().map(|link| link.stats().departed_packets).sum()
    }

    /// Advances links and flows to `now`. Arrivals at `now` itself are not included.
    fn advance_all(&mut self, now: Time) {
        self.work += self.links.len() + self.flows.len();
        let before = Time(now.0.saturating_sub(1));
        self.links.iter_mut().for_each(|link| link.advance(now));
        // Report dropped and randomly lost packets to their flows.
        (0..self.links.len()).for_each(|l| self.collect_from_link(l));
        self.flows.iter_mut().for_each(|flow| flow.advance_totals(before));
    }

    fn sample(&mut self, now: Time) {
        self.advance_all(now);
        let on_links = self.flows_with_packets_on_links();
        if let Some(mut series) = self.series.take() {
            series.sample_links(now, &mut self.links);
            series.sample_groups(&self.flows, &on_links);
            for (i, look) in self.sample_rows().into_iter().enumerate() {
                series.sample_flow(i, look);
            }
            self.series = Some(series);
        }
    }

    /// For each flow, true if a packet of its connection that is answered, or an answer, is on a
    /// link. Visits all packets, because a counter per flow would cost time at every packet.
    fn flows_with_packets_on_links(&self) -> Vec<bool> {
        let mut flows = vec![false; self.flows.len()];
        for body in self.bodies.iter() {
            let flow = body.flow as usize;
            let answered = match &body.payload {
                Payload::Segment(segment) => !segment.is_pure_ack(),
                Payload::Corrupt(_) => false,
                Payload::Ack(_) | Payload::Datagram(_) | Payload::Report(_) => true,
            };
            flows[flow] |= answered && body.connection == self.flows[flow].connection;
        }
        flows
    }

    fn start_measuring(&mut self, now: Time) {
        self.advance_all(now);
        if let Some(series) = &mut self.series {
            series.begin(&mut self.links);
        }
        self.departed_in_warmup += self.departed_packets();
        self.links.iter_mut().for_each(|link| link.reset_stats(now));
        self.switches.reset_stats(&self.links);
        self.impaired.iter_mut().flatten().for_each(|impaired| impaired.reset_stats(now));
        self.flows.iter_mut().for_each(|flow| flow.begin(now));
        if let Some(routing) = &mut self.routing {
            routing.begin();
        }
    }
}
