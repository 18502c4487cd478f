//! When a run stands still: for changes, for a look, for the end of the warm-up, for the end.

use crate::scenario::Scenario;
use crate::timetable::Timetable;
use sojourn_aqm::units::{Span, Time};

/// When the run stands still, and what for.
pub(super) struct Agenda {
    /// What changes.
    pub timetable: Timetable,
    /// The end of the warm-up; never once it is over.
    pub warm: Time,
    /// The next look.
    pub sample: Time,
    /// From one look to the next.
    pub interval: Span,
    /// The end.
    pub end: Time,
}

impl Agenda {
    /// That of `scenario`.
    pub fn new(scenario: &Scenario) -> Agenda {
        let interval = scenario.sample.unwrap_or(Span(u64::MAX));
        Agenda {
            timetable: Timetable::new(scenario),
            warm: Time::ZERO + scenario.warmup,
            sample: Time::ZERO + interval,
            interval,
            end: Time::ZERO + scenario.duration,
        }
    }

    /// The next moment of any kind.
    pub fn next(&self) -> Time {
        self.timetable.next().min(self.warm).min(self.sample).min(self.end)
    }
}
