//! Periodic updates of a discipline without a timer: due updates are counted at each packet.

use crate::qdisc::Env;
use crate::units::{Span, Time};

/// Schedule of periodic updates. The first is due one period after the first arrival at the
/// discipline, unless [`Env::first_update`] is set.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Timer {
    /// Time of the first update; never before the first arrival.
    first: Time,
    /// Number of updates made.
    made: u64,
}

impl Timer {
    /// Creates a timer that is stopped, or whose first update is due at [`Env::first_update`].
    pub fn new(env: &Env) -> Timer {
        Timer { first: env.first_update.unwrap_or(Time::NEVER), made: 0 }
    }

    /// Starts it at `now`, the time of the first arrival. No effect if the first update is set.
    pub fn start(&mut self, now: Time, period: Span) {
        if self.first == Time::NEVER {
            self.first = now + period;
        }
    }

    /// Returns the number of updates that became due since the last call, up to and including
    /// `now`. `periods` returns the number of whole periods in a span.
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
