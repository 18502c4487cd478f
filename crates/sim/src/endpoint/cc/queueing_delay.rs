//! Queueing delay from round-trip times, for LEDBAT and LEDBAT++.
//!
//! **Source**: RFC 6817 §2.4.2 (`update_base_delay`, `update_current_delay`, MIN as the filter).

use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::units::{Span, Time};
use std::collections::VecDeque;

/// A minute, in which one minimum is kept.
const MINUTE: u64 = 60_000_000_000;

/// Filter of round-trip times.
#[derive(Clone, Debug, Snapshot)]
pub(super) struct QueueingDelay {
    /// Number of minutes of history (BASE_HISTORY).
    minutes: u64,
    /// Number of samples of the filter (CURRENT_FILTER).
    samples: u64,
    /// Minimum of each minute with a sample: number of the minute and minimum, oldest first.
    history: VecDeque<(u64, Span)>,
    recent: VecDeque<Span>,
}

impl QueueingDelay {
    /// Creates a filter over the last `samples` samples, with a history of `minutes`.
    pub(super) fn new(minutes: u64, samples: u64) -> QueueingDelay {
        QueueingDelay { minutes, samples, history: VecDeque::new(), recent: VecDeque::new() }
    }

    /// Adds a round-trip time measured at `now`.
    pub(super) fn add(&mut self, now: Time, rtt: Span) {
        let minute = now.0 / MINUTE;
        match self.history.back_mut().filter(|(of, _)| *of == minute) {
            Some((_, least)) => *least = rtt.min(*least),
            None => self.history.push_back((minute, rtt)),
        }
        while self.history.front().is_some_and(|(of, _)| of + self.minutes <= minute) {
            self.history.pop_front();
        }
        self.recent.push_back(rtt);
        while self.recent.len() > cast::index(self.samples) {
            self.recent.pop_front();
        }
    }

    /// Shortest round-trip time of the history, once there is a sample.
    pub(super) fn base(&self) -> Option<Span> {
        self.history.iter().map(|(_, least)| *least).min()
    }

    /// Queueing delay: the smallest of the recent samples less the base; zero without samples.
    pub(super) fn queueing(&self) -> Span {
        match (self.recent.iter().min(), self.base()) {
            (Some(recent), Some(base)) => Span(recent.0.saturating_sub(base.0)),
            _ => Span::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delay_is_the_smallest_of_four_above_the_base_of_ten_minutes() {
        let mut d = QueueingDelay::new(10, 4);
        assert_eq!((d.base(), d.queueing()), (None, Span::ZERO));
        let mut add = |minute: u64, ms: u64| {
            d.add(Time(minute * MINUTE), Span::ms(ms));
            (d.base().unwrap(), d.queueing())
        };
        assert_eq!(add(0, 50), (Span::ms(50), Span::ZERO));
        assert_eq!(add(1, 90), (Span::ms(50), Span::ZERO), "one of the last four");
        (0..2).for_each(|_| assert_eq!(add(1, 90).1, Span::ZERO));
        assert_eq!(add(1, 90), (Span::ms(50), Span::ms(40)));
        assert_eq!(add(1, 70), (Span::ms(50), Span::ms(20)), "the filter takes the minimum");
        assert_eq!(add(9, 80), (Span::ms(50), Span::ms(20)));
        assert_eq!(add(10, 80), (Span::ms(70), Span::ZERO), "minute 0 is forgotten");
        assert_eq!(add(30, 60), (Span::ms(60), Span::ZERO), "and so are all others");
    }
}
