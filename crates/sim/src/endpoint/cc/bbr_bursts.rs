//! Room in BBR's window for the bursts of Linux's sender (`bbr_quantization_budget`).

use sojourn_aqm::cast;
use sojourn_aqm::units::Span;

/// Pacing rate from which on a burst has at least two segments, bytes per second.
const FAST: f64 = 150_000.0;
/// Largest burst, bytes.
const LARGEST: f64 = 65_215.0;

/// Target inflight for `products` bytes and three bursts, in whole segments; bytes. A burst has the
/// segments of about a millisecond at `pacing_rate`, bytes per second.
pub(super) fn with_bursts(products: f64, pacing_rate: f64, mss: u64, probing: bool) -> u64 {
    let segments = cast::trunc(libm::ceil(products / mss as f64)) + 3 * burst(pacing_rate, mss);
    (segments.next_multiple_of(2) + if probing { 2 } else { 0 }) * mss
}

/// Segments of a burst of BBRv3 (`bbr_tso_segs_generic`), at least two: about a millisecond at
/// `pacing_rate`, and 64 kB at a short minimum round-trip time, halved per 512 microseconds of it.
pub(super) fn burst_segments(pacing_rate: f64, mss: u64, min_rtt: Option<Span>) -> u64 {
    let halvings = min_rtt.map_or(u64::MAX, |rtt| rtt.0 / 512_000);
    let short = if halvings < 32 { 65_536 >> halvings } else { 0 };
    let bytes = cast::trunc((pacing_rate / 1024.0).min(LARGEST)) + short;
    (bytes.min(cast::trunc(LARGEST)) / mss).max(2)
}

/// Segments of a burst (`bbr_tso_segs_goal`).
pub(super) fn burst(pacing_rate: f64, mss: u64) -> u64 {
    let least = if pacing_rate < FAST { 1 } else { 2 };
    (cast::trunc((pacing_rate / 1024.0).min(LARGEST)) / mss).clamp(least, 127)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_of_a_millisecond_are_allowed_for() {
        let at = |rate: f64| with_bursts(66_500.0, rate, 1000, false);
        // 67 segments and three bursts of 1, 2, 4 and 65 segments, even.
        assert_eq!([1e5, 1e6, 4.9e6, 1e9].map(at), [70_000, 74_000, 80_000, 262_000]);
        assert_eq!(with_bursts(66_500.0, 1e6, 1000, true), 76_000, "two more while probing");
        assert_eq!([149_999.0, 150_000.0].map(at), [70_000, 74_000], "two from 1.2 Mbit/s on");
    }

    #[test]
    fn bursts_of_version_3_grow_at_short_round_trip_times() {
        let at = |rate, us| burst_segments(rate, 1000, Some(Span::us(us)));
        // 1 MB/s is 976 B per 1/1024 s; 64 kB are halved four times in 2.1 ms.
        assert_eq!([at(1e6, 40_000), at(4.9e6, 40_000), at(1e9, 40_000)], [2, 4, 65]);
        assert_eq!([at(1e6, 2_100), at(1e6, 600), at(1e6, 100)], [5, 33, 65]);
        assert_eq!(burst_segments(1e6, 1000, None), 2);
    }
}
