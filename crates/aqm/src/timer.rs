//! Periodic updates of a discipline without a timer: due updates are counted at each packet.

use crate::build::Env;
use crate::cast;
use crate::snapshot::Snapshot;
use crate::units::{Span, Time};

/// Time from one update to the next.
#[derive(Clone, Copy, Debug, PartialEq, Snapshot)]
pub(crate) enum Period {
    /// A fixed time.
    Every(Span),
    /// This many updates per second.
    PerSecond(f64),
}

impl Period {
    /// Time from the first arrival to the first update.
    fn first(self) -> Span {
        match self {
            Period::Every(span) => span,
            Period::PerSecond(n) => Span(cast::trunc(libm::ceil(1e9 / n))),
        }
    }

    /// Number of whole periods in `span`.
    fn whole(self, span: Span) -> u64 {
        match self {
            Period::Every(period) => span.0 / period.0,
            Period::PerSecond(n) => cast::trunc(span.0 as f64 * n / 1e9),
        }
    }

    /// A time that is not longer than `n` periods, and hardly shorter.
    fn at_most(self, n: u64) -> Span {
        match self {
            Period::Every(period) => Span(period.0.saturating_mul(n)),
            Period::PerSecond(frequency) => Span(cast::trunc(n as f64 / frequency * 999_999_999.0)),
        }
    }
}

/// Schedule of periodic updates. The first is due one period after the first arrival at the
/// discipline, unless [`Env::first_update`] is set.
#[derive(Clone, Debug, PartialEq, Snapshot)]
pub(crate) struct Timer {
    period: Period,
    /// Time of the first update; never before the first arrival.
    first: Time,
    /// Number of updates made.
    made: u64,
    /// No update is due before this time.
    next: Time,
}

impl Timer {
    /// Creates a timer that is stopped, or whose first update is due at [`Env::first_update`].
    pub fn new(env: &Env, period: Period) -> Timer {
        let first = env.first_update.unwrap_or(Time::NEVER);
        Timer { period, first, made: 0, next: first }
    }

    pub fn period(&self) -> Period {
        self.period
    }

    /// Starts it at `now`, the time of the first arrival. No effect if the first update is set.
    pub fn start(&mut self, now: Time) {
        if self.first == Time::NEVER {
            self.first = now + self.period.first();
            self.next = self.first;
        }
    }

    /// Returns the number of updates that became due since the last call, up to and including
    /// `now`.
    #[inline]
    pub fn due(&mut self, now: Time) -> u64 {
        if now < self.next { 0 } else { self.count_due(now) }
    }

    #[inline(never)]
    fn count_due(&mut self, now: Time) -> u64 {
        let due = 1 + self.period.whole(now - self.first) - self.made;
        self.made += due;
        self.next = self.first + self.period.at_most(self.made);
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Rate;

    const TEN: Period = Period::Every(Span(10));

    #[test]
    fn updates_are_counted_from_the_first_arrival_or_from_the_time_given() {
        let env = Env::new(Rate(1));
        let mut timer = Timer::new(&env, TEN);
        assert_eq!(timer.due(Time(1_000_000)), 0, "no packet has come");
        timer.start(Time(3));
        timer.start(Time(5));
        assert_eq!([12, 13, 22, 23, 63].map(|at| timer.due(Time(at))), [0, 1, 0, 1, 4]);

        let mut timer = Timer::new(&Env { first_update: Some(Time(4)), ..env }, TEN);
        timer.start(Time(3));
        assert_eq!([3, 4, 13, 14, 34].map(|at| timer.due(Time(at))), [0, 1, 0, 1, 2]);
    }

    #[test]
    fn updates_of_a_frequency_are_counted_by_its_periods() {
        let mut timer = Timer::new(&Env::new(Rate(1)), Period::PerSecond(3.0));
        timer.start(Time(0));
        let third = 333_333_334;
        let times = [third - 1, third, 2 * third - 1, 2 * third, 3 * third, 1 << 40];
        assert_eq!(times.map(|at| timer.due(Time(at))), [0, 1, 0, 1, 1, 3295]);
    }

    /// A timer that looks at the time only when an update may be due counts as one that always
    /// does.
    #[test]
    fn no_update_is_due_before_the_time_that_is_kept() {
        let periods = [0.1, 3.0, 160.0, 170.0, 999.9, 1e6].map(Period::PerSecond);
        for period in periods.into_iter().chain([TEN, Period::Every(Span(15_000_000))]) {
            for n in (1..2000).chain([1 << 20, (1 << 30) + 1]) {
                let bound = period.at_most(n);
                assert!(bound.0 == 0 || period.whole(Span(bound.0 - 1)) < n, "{period:?}, {n}");
                let late = Span(bound.0 + bound.0 / 100_000_000 + 2);
                assert!(period.whole(late) >= n, "{period:?}, {n}");
            }
        }
    }
}
