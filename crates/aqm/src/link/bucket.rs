//! Token bucket in place of the transmitter of a link, as a shaper has it.
//!
//! **Source**: Linux's HTB with one class (`htb rate RATE burst BYTES`). A packet leaves at once,
//! and takes its tokens, while the bucket is not overdrawn. So a transmission takes no time, and
//! after an idle time the burst and one packet more leave at once. Tokens are whole nanoseconds of
//! the rate, as in HTB.

use super::Link;
use crate::cast;
use crate::snapshot::Snapshot;
use crate::units::{Bytes, Rate, Span, Time};

/// Token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
pub struct TokenBucket {
    size: Bytes,
    /// Transmission time that may be used, ns; negative while overdrawn.
    tokens: i64,
    /// Time of `tokens`.
    at: Time,
    /// Time at which the bucket is full if no packet is sent before.
    full_at: Time,
    /// Time in which the bucket was not full, up to `at`.
    filling: Span,
    /// The same at the start of the measured interval.
    before: Span,
}

/// Transmission time of `bytes`, whole nanoseconds.
fn lasts(rate: Rate, bytes: u64) -> i64 {
    let ns = u128::from(bytes) * 8_000_000_000 / u128::from(rate.0.max(1));
    cast::saturate(ns).min(i64::MAX.cast_unsigned() / 4).cast_signed()
}

impl TokenBucket {
    /// Creates a full bucket of this size.
    pub fn new(size: Bytes) -> TokenBucket {
        let (at, full_at) = (Time::ZERO, Time::ZERO);
        TokenBucket { size, tokens: i64::MAX, at, full_at, filling: Span::ZERO, before: Span::ZERO }
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
        self.filling = self.filling_until(at);
        self.tokens = self.tokens.saturating_add(earned).min(full) - cost;
        self.at = at;
        self.full_at = at + Span((full - self.tokens).max(0).cast_unsigned());
        self.ready_at()
    }

    /// Time in which the bucket was not full, up to `now`.
    fn filling_until(&self, now: Time) -> Span {
        self.filling + now.min(self.full_at).since(self.at)
    }

    pub(super) fn begin(&mut self, now: Time) {
        self.before = self.filling_until(now);
    }

    /// Time of the measured interval in which the bucket was not full. Without a burst, this is
    /// the time in which a transmitter would send the packets.
    pub(super) fn used(&self, now: Time) -> Span {
        Span(self.filling_until(now).0 - self.before.0)
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
        self.shape().bucket = Some(bucket);
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
        let built = crate::build("droptail", &[("limit", Setting::Text("100p"))], Rate(8_000_000));
        let spec = LinkSpec::new(Rate(8_000_000), Span::ms(10));
        let rng = rand_pcg::Pcg64Mcg::seed_from_u64(1);
        let mut link = Link::new(spec, built.unwrap().qdisc, rng).unwrap();
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
        // The second packet used the bucket of 9 to 10 ms, as its transmission would use a link.
        link.reset_stats(Time(9_000_000));
        link.advance(Time(12_000_000));
        assert_eq!(link.utilisation(), Some(1.0 / 3.0));
        link.reset_stats(Time(12_000_000));
        link.advance(Time(13_000_000));
        assert_eq!(link.utilisation(), Some(0.0), "of this interval alone");
    }

    #[test]
    fn the_use_of_a_bucket_grows_no_faster_than_time() {
        // Bursts after idle times, and a rate that changes while the bucket fills.
        let mut link = link(3000, &[]);
        let mut last = [0, 0];
        for ms in 0..400 {
            let now = Time(ms * 1_000_000);
            if ms % 37 == 0 {
                let rate = [8_000_000, 500_000, 90_000_000][ms as usize % 3];
                link.change(now, LinkSpec::new(Rate(rate), Span::ms(10)));
            }
            let burst = if ms % 20 < 3 { ms % 7 } else { 0 };
            for _ in 0..burst {
                link.push(now, Packet { len: 1000, ..Packet::default() });
            }
            link.advance(now);
            let [used, offered] = link.usage();
            assert!(used >= last[0] && used - last[0] <= offered - last[1], "{ms} ms: {used}");
            last = [used, offered];
        }
        assert!(last[0] > 100_000_000 && last[0] < 390_000_000, "{last:?}");
    }

    #[test]
    fn without_a_burst_the_use_is_that_of_a_transmitter() {
        let arrivals = [0, 0, 500, 9000, 9100, 20_000];
        let (mut bucket, mut plain) = (link(0, &[]), link(0, &[]));
        plain.transmitter.shape = None;
        for us in arrivals {
            for link in [&mut bucket, &mut plain] {
                link.push(Time(us * 1000), Packet { len: 1000, ..Packet::default() });
            }
            assert_eq!(bucket.usage(), plain.usage(), "{us} us");
        }
        for us in [20_300, 21_000, 25_000] {
            bucket.advance(Time(us * 1000));
            plain.advance(Time(us * 1000));
            assert_eq!(bucket.usage(), plain.usage(), "{us} us");
        }
    }

    #[test]
    #[should_panic(expected = "a link with opportunities has no rate")]
    fn a_link_with_opportunities_has_no_bucket() {
        let mut link = link(1000, &[]);
        link.set_opportunities(Opportunities::new(vec![Span::ms(1)], 1500, 0).unwrap());
        link.set_bucket(TokenBucket::new(Bytes(1000)));
    }
}
