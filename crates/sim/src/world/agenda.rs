//! Interruptions of the event loop: changes, samples, end of the warm-up, end of the run.

use crate::scenario::Scenario;
use crate::timetable::Timetable;
use sojourn_aqm::units::{Span, Time};

/// Schedule of interruptions.
pub(super) struct Agenda {
    /// Changes.
    pub timetable: Timetable,
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
            timetable: Timetable::new(scenario),
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
