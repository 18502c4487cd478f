//! Periodic updates of a discipline, without a timer: they are counted when a packet comes or goes.

use crate::sched::Env;
use crate::units::{Span, Time};

/// The updates of one period. The first is due one period after the first arrival at the
/// discipline, unless [`Env::first_update`] says otherwise.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Timer {
    /// When the first update is due; never before the first arrival.
    first: Time,
    /// Number of updates made.
    made: u64,
}

impl Timer {
    /// A timer that does not run yet, or one whose first update is due as `env` says.
    pub fn new(env: &Env) -> Timer {
        Timer { first: env.first_update.unwrap_or(Time::NEVER), made: 0 }
    }

    /// Starts it at `now`, the time of the first arrival. No effect where the first update is set.
    pub fn start(&mut self, now: Time, period: Span) {
        if self.first == Time::NEVER {
            self.first = now + period;
        }
    }

    /// Number of updates that became due since the last call, up to and including `now`.
    /// `periods` is the number of whole periods in a span.
    #[inline]
    pub fn due(&mut self, now: Time, periods: impl FnOnce(Span) -> u64) -> u64 {
        if now < self.first {
            return 0;
        }
        let due = 1 + periods(now - self.first) - self.made;
        self.made += due;
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Rate;

    #[test]
    fn updates_are_counted_from_the_first_arrival_or_from_the_time_given() {
        let env = Env::new(Rate(1));
        let ten = |span: Span| span.0 / 10;
        let mut timer = Timer::new(&env);
        assert_eq!(timer.due(Time(1_000_000), ten), 0, "no packet has come");
        timer.start(Time(3), Span(10));
        timer.start(Time(5), Span(10));
        assert_eq!([12, 13, 22, 23, 63].map(|at| timer.due(Time(at), ten)), [0, 1, 0, 1, 4]);

        let mut timer = Timer::new(&Env { first_update: Some(Time(4)), ..env });
        timer.start(Time(3), Span(10));
        assert_eq!([3, 4, 13, 14, 34].map(|at| timer.due(Time(at), ten)), [0, 1, 0, 1, 2]);
    }
}
