//! Timetable of changes: the scenario's changes and the rows of the links' traces, in order of
//! time.

use crate::changes::Turn;
use crate::scenario::Scenario;
use sojourn_aqm::units::Time;
use std::iter::Peekable;

/// Change that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Link, by index, and its new properties.
    Link(usize, Turn),
    /// Group of flows that leaves, by index. A join needs no step: its flows start later.
    Leave(usize),
}

/// Position in a trace.
struct Reel {
    link: usize,
    turns: Peekable<Box<dyn Iterator<Item = (Time, Turn)>>>,
}

impl Reel {
    fn next(&mut self) -> Time {
        self.turns.peek().map_or(Time::NEVER, |(at, _)| *at)
    }

    fn step(&mut self) -> Option<Step> {
        self.turns.next().map(|(_, turn)| Step::Link(self.link, turn))
    }
}

/// Timetable of all changes.
pub struct Timetable {
    /// Steps in descending order.
    steps: Vec<(Time, Step)>,
    reels: Vec<Reel>,
    next: Time,
}

impl Timetable {
    /// Create the timetable of `scenario`.
    pub fn new(scenario: &Scenario) -> Timetable {
        let mut steps = Vec::new();
        for change in &scenario.changes {
            let at = Time::ZERO + change.at;
            steps.extend(change.links.iter().map(|(l, turn)| (at, Step::Link(*l, *turn))));
            steps.extend(change.leave.iter().map(|group| (at, Step::Leave(*group))));
        }
        // Stable sort: steps at the same time keep the order of declaration.
        steps.sort_by_key(|(at, _)| *at);
        steps.reverse();
        let links = scenario.links.iter().enumerate();
        let reels = links.filter_map(|(link, def)| {
            let turns: Box<dyn Iterator<Item = _>> = Box::new(def.trace.clone()?.turns());
            Some(Reel { link, turns: turns.peekable() })
        });
        let mut table = Timetable { steps, reels: reels.collect(), next: Time::ZERO };
        table.find();
        table
    }

    /// Time of the next change; [`Time::NEVER`] if there is none.
    pub fn next(&self) -> Time {
        self.next
    }

    /// Take the next change that is due by `now`.
    pub fn step(&mut self, now: Time) -> Option<Step> {
        if self.next > now {
            return None;
        }
        let step = match self.steps.last() {
            Some((at, _)) if *at == self.next => self.steps.pop().map(|(_, step)| step),
            _ => self.reels.iter_mut().find_map(|r| (r.next() == self.next).then(|| r.step())?),
        };
        self.find();
        step
    }

    fn find(&mut self) {
        let first = self.steps.last().map_or(Time::NEVER, |(at, _)| *at);
        self.next = self.reels.iter_mut().map(Reel::next).fold(first, Time::min);
    }
}

/// Whether the link may change during the run.
pub fn may_change(scenario: &Scenario, link: usize) -> bool {
    let named = |change: &crate::changes::Change| change.links.iter().any(|(l, _)| *l == link);
    scenario.links[link].trace.is_some() || scenario.changes.iter().any(named)
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
        assert!(may_change(&scenario, 0));
        let mut table = Timetable::new(&scenario);
        assert_eq!(table.step(Time(0)), Some(rate(5)));
        assert_eq!(table.step(Time(0)), None);
        let mut steps = Vec::new();
        while table.next() < Time(6_000_000_000) {
            let at = table.next();
            steps.extend(table.step(at).map(|step| (at.0 / 1_000_000_000, step)));
        }
        let late = Step::Link(0, Turn { rate: None, delay: Some(Span::ms(1)) });
        let expected = [(2, late), (2, rate(6)), (3, rate(5)), (5, Step::Leave(0)), (5, rate(6))];
        assert_eq!(steps, expected);
    }

    fn rate(bps: u64) -> Step {
        Step::Link(0, Turn { rate: Some(Rate(bps)), delay: None })
    }
}
