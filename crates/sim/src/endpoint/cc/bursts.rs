//! Size of the bursts that Linux's sender transmits at once.
//!
//! **Source**: Linux 6.18 `tcp_tso_autosize` (size), `tcp_cwnd_test` (half a window),
//! `sk_dst_gso_max_size` (largest burst), `tcp_update_pacing_rate` (rate of a window);
//! `bbr_min_tso_segs`, `bbr_tso_segs_goal` and `bbr_quantization_budget` of tcp_bbr.

use super::Window;
use sojourn_aqm::cast;
use sojourn_aqm::units::Span;

/// Pacing rate in windows per round trip: in slow start, and afterwards.
const GAINS: [f64; 2] = [2.0, 1.2];
/// Bursts per second at the pacing rate (`sk_pacing_shift`).
const PER_SECOND: f64 = 1024.0;
/// Largest burst, bytes: 64 KiB without the room for headers.
const LARGEST: u64 = 65_215;
/// Allowance of BBRv3 for short paths, bytes (`GSO_LEGACY_MAX_SIZE`).
const ALLOWANCE_OF_BBR3: u64 = 65_536;
/// The allowance for short paths is halved for each such part of the round-trip time, ns
/// (`tcp_tso_rtt_log`).
const HALVING: u64 = 512_000;
/// Halvings after which there is no allowance.
const HALVINGS: u64 = 32;
/// Segments of the smallest burst (`tcp_min_tso_segs`).
pub(super) const LEAST: u64 = 2;
/// Pacing rate from which on BBR's bursts have at least two segments, bytes per second.
const FAST: f64 = 150_000.0;

/// Returns the pacing rate that follows from the window, bytes of payload per second; `None`
/// without a round-trip time.
pub(super) fn rate_of(window: &Window, srtt: Option<Span>) -> Option<f64> {
    let srtt = srtt.filter(|s| s.0 > 0)?;
    let gain = GAINS[usize::from(window.cwnd >= window.ssthresh / 2)];
    Some(gain * window.cwnd as f64 / srtt.as_secs())
}

/// Returns the segments of a burst at `rate`, bytes per second: what takes a millisecond, and more
/// on paths with a short round-trip time; at least `least`.
pub(super) fn segments(rate: f64, min_rtt: Option<Span>, mss: u64, least: u64) -> u64 {
    (bytes(rate, min_rtt, LARGEST) / mss).max(least)
}

/// Returns the segments of a burst for which the window of BBRv3 has room (`bbr_tso_segs_generic`).
pub(super) fn segments_of_bbr3(rate: f64, min_rtt: Option<Span>, mss: u64) -> u64 {
    (bytes(rate, min_rtt, ALLOWANCE_OF_BBR3) / mss).max(LEAST)
}

/// Returns the bytes of a burst, with `allowance` at a round-trip time of 0.
fn bytes(rate: f64, min_rtt: Option<Span>, allowance: u64) -> u64 {
    let halvings = min_rtt.map_or(HALVINGS, |rtt| rtt.0 / HALVING);
    let allowance = if halvings < HALVINGS { allowance >> halvings } else { 0 };
    (cast::trunc((rate / PER_SECOND).min(LARGEST as f64)) + allowance).min(LARGEST)
}

/// Returns the segments of BBR's smallest burst at `rate`, bytes per second.
pub(super) fn least_of_bbr(rate: f64) -> u64 {
    if rate < FAST { 1 } else { LEAST }
}

/// Returns the segments of a burst for which BBR's window has room, without the allowance for short
/// paths (`bbr_tso_segs_goal`).
pub(super) fn goal_of_bbr(rate: f64, mss: u64) -> u64 {
    segments(rate, None, mss, least_of_bbr(rate)).min(127)
}

/// Returns BBR's target inflight for `products` bytes and three bursts, in whole segments; bytes.
pub(super) fn with_bursts(products: f64, pacing_rate: f64, mss: u64, probing: bool) -> u64 {
    let burst = goal_of_bbr(pacing_rate, mss);
    let segments = cast::trunc(libm::ceil(products / mss as f64)) + 3 * burst;
    (segments.next_multiple_of(2) + if probing { 2 } else { 0 }) * mss
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_of_version_3_grow_at_short_round_trip_times() {
        let at = |rate, us| segments_of_bbr3(rate, Some(Span::us(us)), 1000);
        // 1 MB/s is 976 B per 1/1024 s; 64 kB are halved four times in 2.1 ms.
        assert_eq!([at(1e6, 40_000), at(4.9e6, 40_000), at(1e9, 40_000)], [2, 4, 65]);
        assert_eq!([at(1e6, 2_100), at(1e6, 600), at(1e6, 100)], [5, 33, 65]);
        assert_eq!(segments_of_bbr3(1e6, None, 1000), 2);
    }

    #[test]
    fn bbr_has_room_for_three_bursts_of_a_millisecond() {
        let at = |rate: f64| with_bursts(66_500.0, rate, 1000, false);
        // 67 segments and three bursts of 1, 2, 4 and 65 segments, even.
        assert_eq!([1e5, 1e6, 4.9e6, 1e9].map(at), [70_000, 74_000, 80_000, 262_000]);
        assert_eq!(with_bursts(66_500.0, 1e6, 1000, true), 76_000, "two more while probing");
        assert_eq!([149_999.0, 150_000.0].map(at), [70_000, 74_000], "two from 1.2 Mbit/s on");
    }

    #[test]
    fn a_burst_takes_a_millisecond() {
        let at = |rate: f64| segments(rate, None, 1448, LEAST);
        // 12 Mbit/s are 1464 B in 1/1024 s, 40 Mbit/s 4882 B, 100 Mbit/s 12,207 B.
        assert_eq!([1.5e6, 5e6, 12.5e6, f64::INFINITY].map(at), [2, 3, 8, 45]);
        assert_eq!(segments(1.5e6, None, 1448, 1), 1);
    }

    #[test]
    fn bursts_are_longer_on_short_paths() {
        // 10 Mbit/s are 1220 B. 65,215 B are added, halved for each 512 us.
        let at = |us: u64| segments(1.25e6, Some(Span::us(us)), 1000, 1);
        assert_eq!([0, 511, 512, 1_024, 2_048].map(at), [65, 65, 33, 17, 5]);
        assert_eq!([2_559, 2_560, 4_096, 200_000].map(at), [5, 3, 1, 1]);
        assert_eq!([16_383, 16_384].map(|us| segments(0.0, Some(Span::us(us)), 1, 0)), [0, 0]);
        assert_eq!([7_679, 7_680].map(|us| segments(0.0, Some(Span::us(us)), 1, 0)), [3, 1]);
    }

    #[test]
    fn the_rate_is_two_windows_per_rtt_in_slow_start() {
        let at = |cwnd, srtt| rate_of(&Window { cwnd, ssthresh: 100_000, mss: 1_000 }, srtt);
        let srtt = Some(Span::ms(100));
        assert_eq!([10_000, 50_000].map(|w| at(w, srtt)), [Some(200_000.0), Some(600_000.0)]);
        assert_eq!([None, Some(Span::ZERO)].map(|srtt| at(10_000, srtt)), [None; 2]);
    }
}
