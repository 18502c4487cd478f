//! Pacer of the profile `quic`: a token bucket of one initial window.
//!
//! **Source**: RFC 9002 §7.7: the rate is 1.25 windows per smoothed round-trip time, and bursts are
//! at most the initial window.

use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::units::{Span, Time};

/// Rate in windows per round-trip time (`N`).
const GAIN: f64 = 1.25;

/// Token bucket, in bytes of payload.
#[derive(Clone, Debug, Snapshot)]
pub(super) struct QuicPacer {
    /// Largest burst.
    burst: f64,
    tokens: f64,
    /// Time of the last update of `tokens`.
    updated: Time,
    /// Time until which a packet is held; [`Time::NEVER`] if none is.
    held_until: Time,
}

impl QuicPacer {
    /// Creates a full bucket that allows bursts of `burst` bytes.
    pub(super) fn new(burst: u64) -> QuicPacer {
        let burst = burst as f64;
        QuicPacer { burst, tokens: burst, updated: Time::ZERO, held_until: Time::NEVER }
    }

    /// True if `bytes` may be sent at `now` with this window; if false, they are held.
    pub(super) fn may_send(
        &mut self,
        now: Time,
        bytes: u64,
        cwnd: u64,
        srtt: Option<Span>,
    ) -> bool {
        let Some(srtt) = srtt.filter(|srtt| srtt.0 > 0) else { return true };
        let rate = GAIN * cwnd as f64 / srtt.0 as f64; // bytes per ns
        let refill = rate * (now - self.updated).0 as f64;
        self.tokens = (self.tokens + refill).min(self.burst);
        self.updated = now;
        // A bucket smaller than the packet is enough when it is full.
        let missing = (bytes as f64).min(self.burst) - self.tokens;
        let allowed = missing <= 0.0;
        let wait = Span(cast::trunc((missing / rate).ceil()).max(1));
        self.held_until = if allowed { Time::NEVER } else { now + wait };
        allowed
    }

    /// Records the transmission of `bytes`.
    pub(super) fn on_sent(&mut self, bytes: u64) {
        self.tokens = (self.tokens - bytes as f64).max(0.0);
    }

    /// Clears the held packet.
    pub(super) fn clear_held(&mut self) {
        self.held_until = Time::NEVER;
    }

    /// Time at which the held packet may be sent; [`Time::NEVER`] if none is held.
    pub(super) fn release_time(&self) -> Time {
        self.held_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_followed_by_packets_at_the_rate() {
        // 100 kB per 100 ms, times 1.25: 1000 bytes take 0.8 ms.
        let mut pacer = QuicPacer::new(10_000);
        let mut may_send = |us: u64| {
            let srtt = Some(Span::ms(100));
            let allowed = pacer.may_send(Time(us * 1_000), 1_000, 100_000, srtt);
            if allowed {
                pacer.on_sent(1_000);
            }
            (allowed, pacer.release_time())
        };
        for _ in 0..10 {
            assert_eq!(may_send(0), (true, Time::NEVER));
        }
        assert_eq!(may_send(0), (false, Time(800_000)));
        assert_eq!(may_send(799), (false, Time(800_000)));
        assert_eq!(may_send(800), (true, Time::NEVER));
        assert_eq!(may_send(800), (false, Time(1_600_000)));
        // After a long pause the burst is the initial window.
        let sent = (0..20).filter(|_| may_send(1_000_000).0).count();
        assert_eq!(sent, 10);
    }

    #[test]
    fn without_a_round_trip_time_nothing_is_held() {
        let mut pacer = QuicPacer::new(1_000);
        pacer.on_sent(1_000);
        assert!(pacer.may_send(Time::ZERO, 1_000, 10_000, None));
        assert!(!pacer.may_send(Time::ZERO, 1_000, 10_000, Some(Span::ms(1))));
        pacer.clear_held();
        assert_eq!(pacer.release_time(), Time::NEVER);
    }

    #[test]
    fn a_packet_larger_than_the_bucket_waits_for_a_full_bucket() {
        let mut pacer = QuicPacer::new(1_000);
        assert!(pacer.may_send(Time::ZERO, 1_500, 1_000, Some(Span::ms(1))));
        pacer.on_sent(1_500);
        assert!(!pacer.may_send(Time::ZERO, 1_500, 1_000, Some(Span::ms(1))));
        assert_eq!(pacer.release_time(), Time(800_000));
    }
}
