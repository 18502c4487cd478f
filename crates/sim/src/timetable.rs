//! When what changes, in order: the scenario's changes and the rows of the links' traces.

use crate::changes::{Trace, Turn};
use crate::scenario::Scenario;
use sojourn_aqm::units::Time;

/// What changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A link, by index.
    Link(usize, Turn),
    /// A group of flows leaves, by index. Nothing is due when one joins: its flows start later.
    Leave(usize),
}

/// A trace under way.
struct Reel<'a> {
    link: usize,
    trace: &'a Trace,
    /// The next row, and when its lap began.
    row: usize,
    lap: Time,
}

impl Reel<'_> {
    fn next(&self) -> Time {
        self.trace.at.get(self.row).map_or(Time::NEVER, |at| self.lap + *at)
    }

    fn step(&mut self) -> Step {
        let step = Step::Link(self.link, self.trace.turn(self.row));
        self.row += 1;
        if let Some(repeat) = self.trace.repeat
            && self.row == self.trace.at.len()
        {
            (self.row, self.lap) = (0, self.lap + repeat);
        }
        step
    }
}

/// Everything that will change.
pub struct Timetable<'a> {
    /// The last one first.
    steps: Vec<(Time, Step)>,
    reels: Vec<Reel<'a>>,
    next: Time,
}

impl Timetable<'_> {
    /// That of `scenario`.
    pub fn new(scenario: &Scenario) -> Timetable<'_> {
        let mut steps = Vec::new();
        for change in &scenario.changes {
            let at = Time::ZERO + change.at;
            steps.extend(change.links.iter().map(|(l, turn)| (at, Step::Link(*l, *turn))));
            steps.extend(change.leave.iter().map(|group| (at, Step::Leave(*group))));
        }
        // Those of the same moment in the order in which they were declared.
        steps.sort_by_key(|(at, _)| *at);
        steps.reverse();
        let reel = |(link, trace)| Reel { link, trace, row: 0, lap: Time::ZERO };
        let traces = scenario.links.iter().enumerate();
        let reels = traces.filter_map(|(l, def)| Some((l, def.trace.as_ref()?))).map(reel);
        let mut table = Timetable { steps, reels: reels.collect(), next: Time::ZERO };
        table.find();
        table
    }

    /// When the next change is due; [`Time::NEVER`] if there is none.
    pub fn next(&self) -> Time {
        self.next
    }

    /// The next change that is due by `now`.
    pub fn step(&mut self, now: Time) -> Option<Step> {
        if self.next > now {
            return None;
        }
        let step = match self.steps.last() {
            Some((at, _)) if *at == self.next => self.steps.pop().map(|(_, step)| step),
            _ => self.reels.iter_mut().find(|r| r.next() == self.next).map(Reel::step),
        };
        self.find();
        step
    }

    fn find(&mut self) {
        let first = self.steps.last().map_or(Time::NEVER, |(at, _)| *at);
        self.next = self.reels.iter().map(Reel::next).fold(first, Time::min);
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
    fn changes_and_laps_of_a_trace_come_in_order() {
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
