//! Token bucket in place of the transmitter of a link, as a shaper has it.
//!
//! **Source**: Linux's HTB with one class (`htb rate RATE burst BYTES`). A packet leaves at once,
//! and takes its tokens, while the bucket is not overdrawn. So a transmission takes no time, and
//! after an idle time the burst and one packet more leave at once. Tokens are whole nanoseconds of
//! the rate, as in HTB.

use super::Link;
use crate::cast;
use crate::units::{Bytes, Rate, Span, Time};

/// Token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    size: Bytes,
    /// Transmission time that may be used, ns; negative while overdrawn.
    tokens: i64,
    /// Time of `tokens`.
    at: Time,
    /// Transmission time of the packets of the measured interval.
    used: Span,
}

/// Transmission time of `bytes`, whole nanoseconds.
fn lasts(rate: Rate, bytes: u64) -> i64 {
    let ns = u128::from(bytes) * 8_000_000_000 / u128::from(rate.0.max(1));
    cast::saturate(ns).min(i64::MAX.cast_unsigned() / 4).cast_signed()
}

impl TokenBucket {
    /// Creates a full bucket of this size.
    pub fn new(size: Bytes) -> TokenBucket {
        TokenBucket { size, tokens: i64::MAX, at: Time::ZERO, used: Span::ZERO }
    }

    /// Time from which on the next packet may leave.
    pub fn ready_at(&self) -> Time {
        self.at + Span((-self.tokens).max(0).cast_unsigned())
    }

    /// Sends a packet of `len` bytes at `at`, where `rate` fills the bucket. Returns when the next
    /// packet may leave.
    pub fn send(&mut self, at: Time, len: u32, rate: Rate) -> Time {
        let earned = i64::try_from((at - self.at).0).unwrap_or(i64::MAX);
        let full = lasts(rate, self.size.0);
        let cost = lasts(rate, len.into());
        self.tokens = self.tokens.saturating_add(earned).min(full) - cost;
        self.at = at;
        self.used = Span(self.used.0.saturating_add(cost.cast_unsigned()));
        self.ready_at()
    }

    pub(super) fn begin(&mut self) {
        self.used = Span::ZERO;
    }

    /// Transmission time of the packets of the measured interval.
    pub(super) fn used(&self) -> Span {
        self.used
    }
}

impl Link {
    /// Replaces the transmitter by a token bucket; to be called before the first packet. The rate
    /// fills the bucket. No departure is computed in advance.
    ///
    /// # Panics
    /// If a packet has already arrived, or the link has [`Opportunities`](super::Opportunities).
    pub fn set_bucket(&mut self, bucket: TokenBucket) {
        self.may_change();
        assert!(self.transmitter.opportunities.is_none(), "a link with opportunities has no rate");
        self.transmitter.bucket = Some(bucket.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{LinkSpec, Opportunities};
    use crate::packet::Packet;
    use crate::params::Setting;
    use rand_core::SeedableRng;
    use std::prelude::v1::*;

    /// A link of 8 Mbit/s and 10 ms with a bucket, on which packets of 1000 bytes arrive at these
    /// microseconds.
    fn link(burst: u64, arrivals: &[u64]) -> Link {
        let made = crate::build("droptail", &[("limit", Setting::Text("100p"))], Rate(8_000_000));
        let spec = LinkSpec::new(Rate(8_000_000), Span::ms(10));
        let rng = rand_pcg::Pcg64Mcg::seed_from_u64(1);
        let mut link = Link::new(spec, made.unwrap().qdisc, rng).unwrap();
        link.set_bucket(TokenBucket::new(Bytes(burst)));
        for us in arrivals {
            link.push(Time(us * 1000), Packet { len: 1000, ..Packet::default() });
        }
        link
    }

    /// Arrival times at the far end less the delay, us.
    fn departures(burst: u64, arrivals: &[u64]) -> Vec<u64> {
        let mut link = link(burst, arrivals);
        link.advance(Time(1_000_000_000));
        let arrived = core::iter::from_fn(|| link.pop_in_flight());
        arrived.map(|(at, _)| at.0 / 1000 - 10_000).collect()
    }

    #[test]
    fn a_burst_of_one_packet_lets_two_leave_at_once_after_idle_time() {
        // The first empties the bucket; the second leaves because it is not below 0.
        assert_eq!(departures(1000, &[0, 0, 0, 10_000, 10_000]), [0, 0, 1000, 10_000, 10_000]);
        // Half a bucket is refilled after 1.5 ms: 500 bytes more than the debt.
        assert_eq!(departures(1000, &[0, 0, 1500, 1500]), [0, 0, 1500, 2000]);
    }

    #[test]
    fn without_a_burst_a_packet_leaves_when_a_link_would_start_to_send_it() {
        assert_eq!(departures(0, &[0, 0, 500, 9000]), [0, 1000, 2000, 9000]);
    }

    #[test]
    fn a_rate_fills_the_bucket_from_its_change_on() {
        let mut link = link(0, &[0, 0, 0]);
        link.change(Time(500_000), LinkSpec::new(Rate(4_000_000), Span::ms(10)));
        link.advance(Time(1_000_000_000));
        let at: Vec<_> = core::iter::from_fn(|| link.pop_in_flight()).map(|(at, _)| at).collect();
        assert_eq!(at, [10_000_000, 11_000_000, 13_000_000].map(Time));
    }

    #[test]
    fn utilisation_counts_the_tokens_that_were_used() {
        let mut link = link(1000, &[0, 2000]);
        link.advance(Time(8_000_000));
        assert_eq!(link.utilisation(), Some(0.25));
        link.reset_stats(Time(8_000_000));
        link.push(Time(8_000_000), Packet { len: 1000, ..Packet::default() });
        link.push(Time(8_000_000), Packet { len: 1000, ..Packet::default() });
        link.advance(Time(9_000_000));
        assert_eq!(link.utilisation(), Some(1.0), "at most 1, after a burst");
        link.reset_stats(Time(9_000_000));
        link.advance(Time(10_000_000));
        assert_eq!(link.utilisation(), Some(0.0), "of this interval alone");
    }

    #[test]
    #[should_panic(expected = "a link with opportunities has no rate")]
    fn a_link_with_opportunities_has_no_bucket() {
        let mut link = link(1000, &[]);
        link.set_opportunities(Opportunities::new(vec![Span::ms(1)], 1500, 0).unwrap());
        link.set_bucket(TokenBucket::new(Bytes(1000)));
    }
}
