//! Token bucket of a shaper, exact to the nanosecond.

use crate::link::LinkSpec;
use crate::snapshot::Snapshot;
use crate::units::{Bytes, Rate, Time};

/// Highest rate of a bucket, equal to the highest rate of a link.
pub const FASTEST: Rate = LinkSpec::RATE_MAX;

/// Tokens of a byte: they are counted in units of 10^-9 bit.
const BYTE: i128 = 8_000_000_000;

/// Token bucket: it fills at a rate up to its burst, and may be overdrawn.
#[derive(Clone, Copy, Debug, Snapshot)]
pub struct Bucket {
    rate: i128,
    burst: i128,
    tokens: i128,
    /// Time for which `tokens` holds.
    at: Time,
}

impl Bucket {
    /// Creates a full bucket. The rate is at least 1 bit/s.
    pub fn new(rate: Rate, burst: Bytes) -> Bucket {
        let burst = i128::from(burst.0) * BYTE;
        Bucket { rate: i128::from(rate.0.max(1)), burst, tokens: burst, at: Time::ZERO }
    }

    /// Returns the tokens at `now`.
    fn tokens(&self, now: Time) -> i128 {
        (self.tokens + i128::from(now.since(self.at).0) * self.rate).min(self.burst)
    }

    /// Takes the rate and the burst of `fresh`, and keeps the tokens that fit. The rate holds from
    /// the last [`Bucket::take`] on.
    pub fn change(&mut self, fresh: Bucket) {
        self.tokens = self.tokens.min(fresh.burst);
        (self.rate, self.burst) = (fresh.rate, fresh.burst);
    }

    /// Takes `bytes` at `now`.
    pub fn take(&mut self, now: Time, bytes: u32) {
        self.tokens = self.tokens(now) - i128::from(bytes) * BYTE;
        self.at = now;
    }

    /// Returns the first time, not before the last [`Bucket::take`], at which the bucket holds
    /// `bytes`, which are at most its burst.
    pub fn ready(&self, bytes: u32) -> Time {
        let missing = (i128::from(bytes) * BYTE - self.tokens).max(0);
        let wait = (missing + self.rate - 1) / self.rate;
        Time(self.at.0.saturating_add(u64::try_from(wait).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_exact_and_the_burst_is_the_most() {
        // 7 Mbit/s: a byte takes 1142 and 6/7 ns.
        let mut bucket = Bucket::new(Rate(7_000_000), Bytes(1000));
        assert_eq!(bucket.ready(1000), Time::ZERO);
        bucket.take(Time::ZERO, 1000);
        assert_eq!((bucket.ready(0), bucket.ready(1)), (Time::ZERO, Time(1143)));
        assert_eq!(bucket.ready(1000), Time(1_142_858));
        for _ in 0..7 {
            let at = bucket.ready(1);
            bucket.take(at, 1);
        }
        assert_eq!(bucket.ready(0), Time(8000), "7 bytes take 8 us");
        assert_eq!(bucket.ready(1000), Time(8000 + 1_142_858));
        bucket.take(Time(1_000_000_000), 1500);
        assert_eq!(bucket.ready(0), Time(1_000_000_000 + 571_429), "overdrawn by 500 bytes");
    }

    #[test]
    fn the_largest_values_do_not_overflow() {
        let mut bucket = Bucket::new(Rate(1_000_000_000_000_000_000), Bytes(u64::MAX >> 16));
        bucket.take(Time(u64::MAX - 1), 1 << 30);
        assert_eq!(bucket.ready(0), Time(u64::MAX - 1));
        let slow = Bucket::new(Rate(1), Bytes(0));
        assert_eq!(slow.ready(1), Time(8_000_000_000));
    }
}
