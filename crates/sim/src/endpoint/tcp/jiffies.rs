//! Clock of a host whose timers expire at whole ticks, as Linux's do (`jiffies`): a timer of n
//! ticks expires n ticks after the last tick, so up to one tick early.

use super::params::{CommonParams, resolved};
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Span, Time};

/// Clock of the timers of a host.
#[derive(Clone, Copy, Debug, Default, Snapshot)]
pub(super) struct TimerClock {
    /// Length of a tick (at most a second), ns; 0 if timers are exact.
    tick: u32,
    /// Time since the last tick at time 0, ns.
    phase: u32,
}

impl TimerClock {
    /// Returns the clock of a host. Draws one random number, the phase, if timers expire at ticks.
    pub(super) fn new(s: &CommonParams, rng: &mut dyn Random) -> TimerClock {
        if !s.jiffies {
            return TimerClock { tick: 0, phase: 0 };
        }
        let tick = cast::saturate32(resolved(s.tick).0);
        let phase = cast::saturate32(cast::trunc(rng.uniform() * f64::from(tick)));
        TimerClock { tick, phase }
    }

    /// Returns the expiry of a timer that is set to `delay` at `now`.
    #[inline]
    pub(super) fn after(&self, now: Time, delay: Span) -> Time {
        if self.tick == 0 { now + delay } else { self.at_tick(now, delay) }
    }

    /// Least delay that Linux adds to the timers of probes and reordering (`TCP_TIMEOUT_MIN`); 0 if
    /// timers are exact.
    pub(super) fn margin(&self) -> Span {
        Span(2 * u64::from(self.tick))
    }

    #[inline(never)]
    fn at_tick(&self, now: Time, delay: Span) -> Time {
        let (tick, phase) = (u64::from(self.tick), u64::from(self.phase));
        let ticks = (now.0 + phase) / tick + delay.0.div_ceil(tick).max(1);
        Time(ticks.saturating_mul(tick) - phase)
    }
}

/// Generator for tests: every clock is in the middle of a tick.
#[cfg(test)]
#[derive(Debug)]
pub(super) struct HalfTick;

#[cfg(test)]
impl Random for HalfTick {
    fn uniform(&mut self) -> f64 {
        0.5
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed(f64);

    impl Random for Fixed {
        fn uniform(&mut self) -> f64 {
            self.0
        }
    }

    fn clock(jiffies: bool, phase: f64) -> TimerClock {
        let s = CommonParams { jiffies, tick: Some(Span::ms(4)), ..CommonParams::default() };
        TimerClock::new(&s, &mut Fixed(phase))
    }

    #[test]
    fn a_timer_expires_up_to_a_tick_early() {
        let (ms, at) = (Span::ms, |us: u64| Time(us * 1_000));
        let ticks = clock(true, 0.25); // ticks at 3, 7, 11 ms
        assert_eq!(ticks.after(at(3_000), ms(40)), at(43_000), "set at a tick");
        assert_eq!(ticks.after(at(6_999), ms(40)), at(43_000), "set before the next");
        assert_eq!(ticks.after(at(7_000), ms(40)), at(47_000));
        assert_eq!(ticks.after(at(7_000), ms(41)), at(51_000), "11 ticks");
        assert_eq!(ticks.after(at(7_500), ms(0)), at(11_000), "the next tick");
        assert_eq!(clock(false, 0.25).after(at(6_999), ms(40)), at(46_999), "exact");
    }
}
