//! Times in which a link loses every packet: a list, or alternating random intervals.

use super::chance::Stream;
use crate::cast;
use crate::random::Random;
use crate::snapshot::Snapshot;
use crate::units::{Span, Time};
use alloc::sync::Arc;

/// Length of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
#[non_exhaustive]
pub enum IntervalLength {
    /// Always the same.
    Constant(Span),
    /// Uniform from the first up to, not including, the second.
    Uniform(Span, Span),
    /// Exponential with this mean.
    Exponential(Span),
}

impl IntervalLength {
    /// Draws a length of at least a nanosecond, so that time goes on.
    fn sample(self, rng: &mut impl Random) -> Span {
        let length = match self {
            IntervalLength::Constant(span) => span.0,
            IntervalLength::Uniform(least, end) => {
                let width = end.0.saturating_sub(least.0) as f64;
                least.0 + cast::trunc(rng.uniform() * width)
            }
            IntervalLength::Exponential(mean) => {
                cast::trunc(-libm::log(1.0 - rng.uniform()) * mean.0 as f64)
            }
        };
        Span(length.max(1))
    }
}

/// Times in which every packet is lost.
#[derive(Clone, Debug, PartialEq, Snapshot)]
#[non_exhaustive]
pub enum Outages {
    /// Start and end of each outage since time zero: in order, not overlapping.
    Times(Arc<[(Span, Span)]>),
    /// The link is up first, then down, and so on.
    Intervals {
        /// Length of an interval without losses.
        up: IntervalLength,
        /// Length of an outage.
        down: IntervalLength,
    },
}

/// Process of outages.
#[derive(Clone, Snapshot)]
pub(super) struct OutageProcess {
    outages: Outages,
    /// Number of outages so far, the current or next one included.
    count: usize,
    /// Current or next outage.
    start: Time,
    end: Time,
    rng: Stream,
}

impl OutageProcess {
    pub(super) fn new(outages: &Outages, rng: Stream) -> OutageProcess {
        let (start, end) = (Time::ZERO, Time::ZERO);
        let mut process = OutageProcess { outages: outages.clone(), count: 0, start, end, rng };
        process.next();
        process
    }

    /// Outages of the process.
    pub(super) fn outages(&self) -> &Outages {
        &self.outages
    }

    fn next(&mut self) {
        (self.start, self.end) = match &self.outages {
            Outages::Times(times) => match times.get(self.count) {
                Some((start, end)) => (Time::ZERO + *start, Time::ZERO + *end),
                None => (Time::NEVER, Time::NEVER),
            },
            Outages::Intervals { up, down } => {
                let start = self.end + up.sample(&mut self.rng);
                (start, start + down.sample(&mut self.rng))
            }
        };
        self.count += 1;
    }

    /// True if the link is down at `now`, not earlier than in the previous call.
    pub(super) fn is_down(&mut self, now: Time) -> bool {
        while self.end <= now && self.end < Time::NEVER {
            self.next();
        }
        self.start <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::SeedableRng;
    use rand_pcg::Pcg64Mcg;
    use std::boxed::Box;

    fn process(outages: &Outages) -> OutageProcess {
        OutageProcess::new(outages, Box::new(Pcg64Mcg::seed_from_u64(5)))
    }

    #[test]
    fn listed_outages_include_their_start_and_not_their_end() {
        let list = [(Span::ms(10), Span::ms(20)), (Span::ms(20), Span::ms(21))];
        let mut down = process(&Outages::Times(list.into()));
        for (ms, expected) in [(0, false), (9, false), (10, true), (19, true), (20, true)] {
            assert_eq!(down.is_down(Time::ZERO + Span::ms(ms)), expected, "{ms} ms");
        }
        assert!(!down.is_down(Time::ZERO + Span::ms(21)));
        assert!(!down.is_down(Time::ZERO + Span::s(1_000_000)));
    }

    #[test]
    fn intervals_alternate_with_their_means() {
        let (up, down) = (IntervalLength::Exponential(Span::ms(90)), Span::ms(10));
        for down in [IntervalLength::Constant(down), IntervalLength::Exponential(down)] {
            let mut process = process(&Outages::Intervals { up, down });
            let steps = 2_000_000u64;
            let lost = (0..steps).filter(|i| process.is_down(Time(i * 100_000))).count();
            let share = lost as f64 / steps as f64;
            assert!((share - 0.1).abs() < 0.006, "{share}");
        }
        let fixed = IntervalLength::Uniform(Span::ms(5), Span::ms(5));
        let mut down = process(&Outages::Intervals { up: fixed, down: fixed });
        assert!(
            [4, 5, 9, 10, 15].map(|ms| down.is_down(Time::ZERO + Span::ms(ms)))
                == [false, true, true, false, true]
        );
    }
}
