//! Shaper of `cake`: virtual clocks without a burst, in the fixed point of Linux.

use crate::cast;
use crate::snapshot::Snapshot;
use crate::units::{Span, Time};

/// Time per byte as a binary fraction of nanoseconds, with 34 significant bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Snapshot)]
pub struct ByteTime {
    scaled: u64,
    shift: u32,
}

impl ByteTime {
    /// Bytes per second below which Linux does not go.
    const SLOWEST: u64 = 64;

    /// Returns the time per byte at `rate` bytes per second; zero at a rate of zero, which stands
    /// for no shaper.
    pub fn at(rate: u64) -> ByteTime {
        if rate == 0 {
            return ByteTime::default();
        }
        let scaled = (1_000_000_000u64 << 34) / rate.max(ByteTime::SLOWEST);
        let bits = 64 - scaled.leading_zeros();
        let excess = bits.saturating_sub(34);
        ByteTime { scaled: scaled >> excess, shift: 34 - excess }
    }

    /// True if there is no shaper.
    pub fn is_unlimited(self) -> bool {
        self.scaled == 0
    }

    /// Returns the time that `bytes` bytes take, rounded down.
    #[inline]
    pub fn of(self, bytes: u64) -> Span {
        Span(cast::saturate((u128::from(bytes) * u128::from(self.scaled)) >> self.shift))
    }
}

/// Clocks of the shaper of a whole discipline.
#[derive(Clone, Copy, Debug, Default, Snapshot)]
pub struct Shaper {
    /// Time per byte.
    pub byte_time: ByteTime,
    /// Time from which the next packet may be sent.
    next: Time,
    /// The same at two thirds of the rate, which packets dropped on ingress do not move. So some
    /// packets pass even while drops use up the rate.
    failsafe: Time,
}

impl Shaper {
    /// Starts the clocks at `now` if the packet that arrives finds the discipline empty and the
    /// shaper idle: idle time gives no credit.
    pub fn on_arrival_at_empty(&mut self, now: Time) {
        if self.next < now {
            (self.next, self.failsafe) = (now, now);
        }
    }

    /// Earliest time at which a packet may be sent.
    pub fn ready_at(&self) -> Time {
        self.next.min(self.failsafe)
    }

    /// Accounts for a packet of `bytes` bytes on the wire that was sent, or `dropped` on ingress.
    pub fn charge(&mut self, bytes: u64, dropped: bool) {
        let span = self.byte_time.of(bytes);
        self.next += span;
        if !dropped {
            self.failsafe += span + Span(span.0 / 2);
        }
    }
}

/// Clock of a tin: it is due while the tin has used less than its share of the rate.
#[derive(Clone, Copy, Debug, Default, Snapshot)]
pub struct TinClock {
    /// Time per byte at the rate of the tin.
    pub byte_time: ByteTime,
    /// Time from which the tin is due.
    pub next: Time,
}

impl TinClock {
    /// Catches up with `now` when a packet arrives at the empty tin.
    pub fn on_arrival_at_empty(&mut self, now: Time) {
        self.next = self.next.max(now);
    }

    /// Accounts for a packet of `bytes` bytes on the wire at `now`.
    pub fn charge(&mut self, bytes: u64, now: Time) {
        let span = self.byte_time.of(bytes);
        if self.next < now {
            self.next += span;
        } else {
            self.next = self.next.max(now + span);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::prelude::v1::*;

    #[test]
    fn times_are_those_of_the_rate() {
        // 800 ns per byte at 10 Mbit/s, exactly; at 100 Gbit/s 0.08 ns.
        assert_eq!(ByteTime::at(1_250_000).of(1514), Span(1_211_200));
        assert_eq!(ByteTime::at(12_500_000_000).of(1_000_000), Span(79_999));
        assert_eq!(ByteTime::at(1).of(64), Span::s(1), "64 bytes per second is the least");
        assert_eq!(ByteTime::at(0).of(1500), Span::ZERO);
        assert!(ByteTime::at(0).is_unlimited() && !ByteTime::at(u64::MAX >> 8).is_unlimited());
        for rate in [64u64, 100, 12_345, 7_777_777, 125_000_000, 9_999_999_999] {
            let exact = 1_514e9 / rate as f64;
            let off = (ByteTime::at(rate).of(1514).0 as f64 - exact).abs();
            assert!(off <= 1.0 + exact * 2e-10, "{rate}: off by {off} ns");
        }
    }

    #[test]
    fn idle_time_gives_no_credit() {
        let mut shaper = Shaper { byte_time: ByteTime::at(1_000_000), ..Shaper::default() };
        shaper.on_arrival_at_empty(Time(5_000));
        assert_eq!(shaper.ready_at(), Time(5_000));
        shaper.charge(1000, false);
        assert_eq!(shaper.ready_at(), Time(1_005_000));
        shaper.on_arrival_at_empty(Time(1_000));
        assert_eq!(shaper.ready_at(), Time(1_005_000), "a clock ahead of the arrival stays");
        shaper.on_arrival_at_empty(Time(9_000_000));
        assert_eq!(shaper.ready_at(), Time(9_000_000));
    }

    #[test]
    fn drops_leave_two_thirds_of_the_rate() {
        let mut shaper = Shaper { byte_time: ByteTime::at(1_000_000), ..Shaper::default() };
        (0..10).for_each(|_| shaper.charge(1000, true));
        shaper.charge(1000, false);
        assert_eq!(shaper.ready_at(), Time(1_500_000));
        shaper.charge(1000, false);
        assert_eq!(shaper.ready_at(), Time(3_000_000));
    }

    #[test]
    fn a_tin_within_its_share_is_due() {
        let mut clock = TinClock { byte_time: ByteTime::at(1_000_000), next: Time(0) };
        let mut after = |now| {
            clock.charge(1000, Time(now));
            clock.next.0
        };
        assert_eq!(after(5_000_000), 1_000_000, "behind: it catches up");
        assert_eq!(after(1_000_000), 2_000_000);
        assert_eq!(after(1_500_000), 2_500_000);
        assert_eq!(after(1_000_000), 2_500_000, "no more than a packet ahead of now");
    }

    #[test]
    fn the_time_per_byte_has_34_digits() {
        // 10 ms per byte: 10^7 ns times 2^10 has 34 binary digits.
        assert_eq!(ByteTime::at(100), ByteTime { scaled: 10_240_000_000, shift: 10 });
    }

    #[test]
    fn an_arrival_just_when_a_packet_may_be_sent_does_not_reset_the_clocks() {
        let mut shaper = Shaper { byte_time: ByteTime::at(1_000_000), ..Shaper::default() };
        shaper.charge(1000, false);
        shaper.on_arrival_at_empty(Time(1_000_000));
        shaper.charge(1000, true);
        assert_eq!(shaper.ready_at(), Time(1_500_000), "two thirds of the rate");
    }
}
