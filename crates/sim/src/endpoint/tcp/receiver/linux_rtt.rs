//! Round-trip time that Linux's receiver estimates from timestamps; the receive window follows it.
//!
//! **Source**: Linux 6.18 `net/ipv4/tcp_input.c` (`tcp_rcv_rtt_measure_ts`, `tcp_rcv_rtt_update`).
//!
//! **Rule**: full segments give samples. A shorter sample replaces the estimate, a longer one moves
//! it by an eighth.
//!
//! **Departures**: segments have a timestamp, but not the echo of one. A sample is the time that
//! the segment took longer than the first one, added to the round-trip time of the handshake; so
//! the return path counts as constant. There is one sample per timestamp of the sender.

use super::super::Segment;
use sojourn_aqm::Snapshot;
use sojourn_aqm::units::{Span, Time};

/// Estimate of a connection.
#[derive(Clone, Copy, Debug, Default, Snapshot)]
pub(super) struct LinuxRtt {
    /// Round-trip time of the handshake; zero before the first data.
    handshake: Span,
    estimate: Span,
    /// Time that the first segment took, ms.
    first_ms: u32,
    /// Timestamp of the last sample.
    last: u32,
}

/// Returns the time that a segment took to arrive at `now`, ms.
fn took_ms(now: Time, seg: &Segment) -> u32 {
    let ms = now.0 / Span::ms(1).0;
    #[expect(clippy::cast_possible_truncation, reason = "timestamps are modulo 2^32")]
    let now = ms as u32;
    now.wrapping_sub(seg.timestamp)
}

impl LinuxRtt {
    /// Notes the first data `seg`, which arrives `handshake` after the SYN.
    pub(super) fn start(&mut self, now: Time, seg: &Segment, handshake: Span) {
        let (first_ms, last) = (took_ms(now, seg), seg.timestamp);
        *self = LinuxRtt { handshake, estimate: handshake, first_ms, last };
    }

    /// Notes a data segment, where the largest one so far has `mss` bytes.
    pub(super) fn on_data(&mut self, now: Time, seg: &Segment, mss: u64) {
        if seg.timestamp == self.last || u64::from(seg.len) < mss {
            return;
        }
        self.last = seg.timestamp;
        let longer = i64::from(took_ms(now, seg)) - i64::from(self.first_ms);
        let nanoseconds = longer * Span::ms(1).0.cast_signed();
        let sample = Span(self.handshake.0.saturating_add_signed(nanoseconds));
        self.estimate = if sample < self.estimate {
            sample
        } else {
            Span(self.estimate.0 - self.estimate.0 / 8 + sample.0 / 8)
        };
    }

    /// Round-trip time of the handshake; zero before the first data.
    pub(super) fn handshake(&self) -> Span {
        self.handshake
    }

    /// Current estimate.
    pub(super) fn estimate(&self) -> Span {
        self.estimate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(len: u16, timestamp: u32) -> Segment {
        Segment { seq: 1, len, timestamp, ..Segment::default() }
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::ms(ms)
    }

    /// The first segment takes 20 of 50 ms. The next ones take 100, 180 and 30 ms longer or less.
    #[test]
    fn it_rises_by_an_eighth_and_falls_at_once() {
        let mut rtt = LinuxRtt::default();
        rtt.start(at(120), &segment(1_000, 100), Span::ms(50));
        assert_eq!((rtt.handshake(), rtt.estimate()), (Span::ms(50), Span::ms(50)));
        rtt.on_data(at(320), &segment(1_000, 200), 1_000); // 120 ms: 150 ms in all
        assert_eq!(rtt.estimate(), Span::us(62_500), "50 and an eighth of 100");
        rtt.on_data(at(400), &segment(1_000, 200), 1_000);
        assert_eq!(rtt.estimate(), Span::us(62_500), "one sample per timestamp");
        rtt.on_data(at(500), &segment(999, 201), 1_000);
        assert_eq!(rtt.estimate(), Span::us(62_500), "no full segment");
        rtt.on_data(at(430), &segment(1_000, 410), 1_000); // 20 ms, as the first one
        assert_eq!((rtt.handshake(), rtt.estimate()), (Span::ms(50), Span::ms(50)));
        rtt.on_data(at(430), &segment(1_000, 420), 1_000); // 10 ms
        assert_eq!(rtt.estimate(), Span::ms(40));
    }
}
