//! Schedule of changes in order of time: changes of the scenario, and changes by the traces and
//! processes of its links.

use crate::config::changes::UpOrDown;
use crate::config::impairment_changes::NewImpairments;
use crate::config::link_process::ProcessChanges;
use crate::config::link_trace::{LinkChange, LinkTrace};
use crate::config::links::{LinkConfig, NewParam};
use crate::config::scenario::Scenario;
use sojourn_aqm::Snapshot;
use sojourn_aqm::sorting::sort_by_key;
use sojourn_aqm::units::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// Change that is due.
#[derive(Clone, Debug, PartialEq)]
pub enum DueChange {
    /// Link, by index, and its new properties.
    Link(usize, LinkChange),
    /// Link, by index, that goes down or comes up.
    Outage(usize, UpOrDown),
    /// Link, by index, and its new impairments.
    Wire(usize, Arc<NewImpairments>),
    /// Link, by index, and new parameters of its discipline.
    Qdisc(usize, Arc<[NewParam]>),
    /// Group of flows that leaves, by index. A join needs no step: its flows start later.
    Leave(usize),
}

/// Position in the changes of a link by its trace or its process.
#[derive(Clone, Debug, Snapshot)]
struct Cursor {
    link: usize,
    #[snapshot(skip)]
    trace: Option<Arc<LinkTrace>>,
    /// Number of the next change of the trace.
    next: u64,
    /// Changes in place of a trace.
    process: Option<ProcessChanges>,
}

impl Cursor {
    fn new(link: usize, def: &LinkConfig, seed: u64) -> Option<Cursor> {
        let process = def.process.map(|process| process.link_changes(seed, &def.name));
        let cursor = Cursor { link, trace: def.trace.clone(), next: 0, process };
        (cursor.trace.is_some() || cursor.process.is_some()).then_some(cursor)
    }

    fn next(&self) -> Time {
        let of_trace = || Some(self.trace.as_ref()?.nth_change(self.next)?.0);
        let next = self.process.as_ref().map_or_else(of_trace, ProcessChanges::next_time);
        next.unwrap_or(Time::NEVER)
    }

    fn pop_due(&mut self) -> Option<DueChange> {
        let (_, change) = match &mut self.process {
            Some(process) => process.next()?,
            None => self.trace.as_ref()?.nth_change(self.next)?,
        };
        self.next += 1;
        Some(DueChange::Link(self.link, change))
    }
}

/// Schedule of all changes.
#[derive(Clone, Debug, Snapshot)]
pub struct ChangeSchedule {
    /// Changes of the scenario, in descending order of time.
    #[snapshot(skip)]
    steps: Vec<(Time, DueChange)>,
    cursors: Vec<Cursor>,
    /// Time of the next change of each cursor, and its index in `cursors`; the earliest on top.
    rows: BinaryHeap<Reverse<(Time, usize)>>,
}

impl ChangeSchedule {
    /// Creates the schedule of `scenario`.
    pub fn new(scenario: &Scenario) -> ChangeSchedule {
        let mut steps = Vec::new();
        for change in &scenario.changes {
            let at = Time::ZERO + change.at;
            steps.extend(change.links.iter().map(|(l, to)| (at, DueChange::Link(*l, *to))));
            let outages = change.outages.iter();
            steps.extend(outages.map(|(l, outage)| (at, DueChange::Outage(*l, *outage))));
            let wires = change.wires.iter();
            steps.extend(wires.map(|(l, new)| (at, DueChange::Wire(*l, Arc::clone(new)))));
            let qdiscs = change.qdiscs.iter();
            steps.extend(qdiscs.map(|(l, new)| (at, DueChange::Qdisc(*l, Arc::clone(new)))));
            steps.extend(change.leave.iter().map(|group| (at, DueChange::Leave(*group))));
        }
        // Stable sort: steps at the same time keep the order of declaration.
        sort_by_key(&mut steps, |(at, _)| *at);
        steps.reverse();
        let links = scenario.links.iter().enumerate();
        let cursors =
            links.filter_map(|(l, def)| Cursor::new(l, def, scenario.first_seed())).collect();
        let mut schedule = ChangeSchedule { steps, cursors, rows: BinaryHeap::new() };
        (0..schedule.cursors.len()).for_each(|i| schedule.schedule_cursor(i));
        schedule
    }

    /// Time of the next change; [`Time::NEVER`] if there is none.
    pub fn next(&self) -> Time {
        let step = self.next_step();
        self.rows.peek().map_or(step, |Reverse((row, _))| step.min(*row))
    }

    /// Removes and returns the next change that is due by `now`.
    pub fn pop_due(&mut self, now: Time) -> Option<DueChange> {
        let next = self.next();
        if next > now {
            return None;
        }
        // At the same time, changes of the scenario precede changes by links, in order of links.
        if self.steps.last().is_some_and(|(at, _)| *at == next) {
            return self.steps.pop().map(|(_, step)| step);
        }
        let Reverse((_, i)) = self.rows.pop()?;
        let step = self.cursors[i].pop_due();
        self.schedule_cursor(i);
        step
    }

    /// Time of the next change that is not one of a trace or a process.
    pub fn next_step(&self) -> Time {
        self.steps.last().map_or(Time::NEVER, |(at, _)| *at)
    }

    /// Number of changes that are pending and not made by a trace.
    pub fn pending_steps(&self) -> usize {
        self.steps.len()
    }

    /// Removes all but the last `pending` changes that are not made by a trace: the earlier ones
    /// have been made. Returns false if there are fewer.
    #[must_use]
    pub fn keep_last_steps(&mut self, pending: usize) -> bool {
        let are_enough = pending <= self.steps.len();
        self.steps.truncate(pending);
        are_enough
    }

    /// Removes the changes at `end` and later that are not made by a trace or a process.
    pub fn cut(&mut self, end: Time) {
        self.steps.retain(|(at, _)| *at < end);
    }

    /// Puts the time of the next change of cursor `i` into `rows`, if there is one.
    fn schedule_cursor(&mut self, i: usize) {
        let at = self.cursors[i].next();
        if at < Time::NEVER {
            self.rows.push(Reverse((at, i)));
        }
    }
}

/// For each link, true if it may change during the run.
pub fn link_may_change(scenario: &Scenario) -> Vec<bool> {
    let changes = |link: &LinkConfig| link.trace.is_some() || link.process.is_some();
    let mut may: Vec<bool> = scenario.links.iter().map(changes).collect();
    for (l, _) in scenario.changes.iter().flat_map(|change| &change.links) {
        may[*l] = true;
    }
    for (l, _) in scenario.changes.iter().flat_map(|change| &change.outages) {
        may[*l] = true;
    }
    may
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_aqm::units::{Rate, Span};

    #[test]
    fn changes_and_repetitions_of_a_trace_are_in_order() {
        let scenario = Scenario::from_json(
            r#"{"duration": "10s", "links": {"a": {"rate": "1mbit", "trace": {"t_ns":
            [0, 2000000000], "rate_bps": [5, 6], "repeat": "3s"}}}, "flows": [{"name": "f",
            "path": ["a"]}], "changes": [{"at": "5s", "leave": ["f"]}, {"at": "2s", "links":
            {"a": {"delay": "1ms"}}}]}"#,
        )
        .unwrap();
        assert_eq!(link_may_change(&scenario), [true]);
        let mut table = ChangeSchedule::new(&scenario);
        assert_eq!(table.pop_due(Time(0)), Some(rate(5)));
        assert_eq!(table.pop_due(Time(0)), None);
        let mut steps = Vec::new();
        while table.next() < Time(6_000_000_000) {
            let at = table.next();
            steps.extend(table.pop_due(at).map(|step| (at.0 / 1_000_000_000, step)));
        }
        let late = DueChange::Link(0, LinkChange { rate: None, delay: Some(Span::ms(1)) });
        let expected =
            [(2, late), (2, rate(6)), (3, rate(5)), (5, DueChange::Leave(0)), (5, rate(6))];
        assert_eq!(steps, expected);
    }

    fn rate(bps: u64) -> DueChange {
        DueChange::Link(0, LinkChange { rate: Some(Rate(bps)), delay: None })
    }
}
