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
