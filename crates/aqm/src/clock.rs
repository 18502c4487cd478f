//! Conversion between the clock of a program and the time of a link.

use crate::units::{Span, Time};
use core::time::Duration;
use std::time::Instant;

/// Clock of a link: converts between [`Instant`] and [`Time`]. It reads no clock: the program
/// passes `Instant::now()`.
///
/// ```
/// use sojourn_aqm::{Clock, Span, Time};
/// use std::time::{Duration, Instant};
///
/// let start = Instant::now();
/// let clock = Clock::new(start);
/// assert_eq!(clock.time(start + Duration::from_millis(5)), Time::ZERO + Span::ms(5));
/// assert_eq!(clock.instant(Time(1_000)), Some(start + Duration::from_micros(1)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// Creates a clock whose time is zero at `start`.
    pub const fn new(start: Instant) -> Clock {
        Clock { start }
    }

    /// Returns the time at `instant`; zero before the start.
    pub fn time(&self, instant: Instant) -> Time {
        Time::ZERO + Span::from(instant.saturating_duration_since(self.start))
    }

    /// Returns the instant at `time`; `None` if the clock of the machine does not reach it, as for
    /// [`Time::NEVER`] on some platforms.
    pub fn instant(&self, time: Time) -> Option<Instant> {
        self.start.checked_add(Duration::from(time - Time::ZERO))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "an instant exists only by reading the clock")]
    fn instants_and_times_are_converted_exactly() {
        let start = Instant::now();
        let clock = Clock::new(start);
        for time in [Time(0), Time(1), Time(1_234_567_890_123)] {
            assert_eq!(clock.instant(time).map(|instant| clock.time(instant)), Some(time));
        }
        let later = Clock::new(start + Duration::from_secs(1));
        assert_eq!(later.time(start), Time::ZERO);
    }
}
