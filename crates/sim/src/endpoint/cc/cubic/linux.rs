//! CUBIC's growth as Linux counts it: the window grows by whole segments, one per `cnt` segments
//! that are acknowledged. `cnt` is computed anew when the window has changed, or 31 ms later.
//!
//! **Source**: Linux `net/ipv4/tcp_cubic.c` (`bictcp_update`) and `tcp_cong_avoid_ai`.

use super::{CubicParams, NewDataAck, Window};
use crate::endpoint::cc::linux::Segments;
use crate::endpoint::cc::reno::linux_slow_start;
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::units::{Span, Time};

/// Time after which `cnt` is computed anew although the window is the same: HZ/32.
const REST: Span = Span::us(31_250);
/// Largest `cnt` before the first loss.
const CNT_BEFORE_LOSS: u64 = 20;

/// Stage of congestion avoidance, from one reduction to the next.
#[derive(Clone, Copy, Debug, Snapshot)]
struct Epoch {
    started_at: Time,
    /// Time to the plateau, s.
    k: f64,
    /// Plateau, segments.
    origin: u64,
    /// Segments acknowledged that the Reno estimate has not grown for.
    ack_cnt: u64,
    /// Reno estimate, segments.
    tcp_cwnd: u64,
    /// Window and time of the last computation.
    last: (u64, Time),
}

/// State of the growth. Windows are in segments.
#[derive(Clone, Debug, Default, Snapshot)]
pub(super) struct LinuxGrowth {
    epoch: Option<Epoch>,
    /// Window at the last reduction, less after fast convergence; 0 if there was none.
    last_max_cwnd: u64,
    /// Segments to acknowledge for one that the window grows by.
    cnt: u64,
    /// Segments acknowledged since it grew last.
    cwnd_cnt: u64,
    /// Bytes acknowledged that are no whole segment.
    bytes: u64,
    /// Least round-trip time; 0 if unknown.
    delay_min: Span,
}

impl LinuxGrowth {
    /// Notes the round-trip time of an ack.
    pub(super) fn on_rtt(&mut self, rtt: Option<Span>) {
        if let Some(rtt) = rtt.filter(|rtt| self.delay_min.0 == 0 || *rtt < self.delay_min) {
            self.delay_min = rtt;
        }
    }

    /// Grows in slow start, and with what is left of the ack in congestion avoidance.
    pub(super) fn grow(&mut self, params: &CubicParams, window: &mut Window, acked: &NewDataAck) {
        let bytes = linux_slow_start(window, acked);
        if bytes == 0 {
            return;
        }
        self.bytes += bytes;
        let segments = self.bytes / window.mss;
        self.bytes %= window.mss;
        let cwnd = window.cwnd / window.mss;
        self.update(params, acked.at, cwnd, segments);
        let before = Segments::of(window, self.cwnd_cnt);
        let mut after = before;
        after.increase(self.cnt, segments);
        window.cwnd += (after.cwnd - before.cwnd) * window.mss;
        self.cwnd_cnt = after.cnt;
    }

    /// Computes `cnt` for a window of `cwnd`, after an ack of `acked` segments.
    fn update(&mut self, params: &CubicParams, now: Time, cwnd: u64, acked: u64) {
        let last_max = self.last_max_cwnd;
        let epoch = match &mut self.epoch {
            Some(epoch) => {
                epoch.ack_cnt += acked;
                if epoch.last.0 == cwnd && now - epoch.last.1 <= REST {
                    return;
                }
                epoch
            }
            none => {
                let below = last_max.saturating_sub(cwnd) as f64;
                none.insert(Epoch {
                    started_at: now,
                    k: libm::cbrt(below / params.c),
                    origin: last_max.max(cwnd),
                    ack_cnt: acked,
                    tcp_cwnd: cwnd,
                    last: (cwnd, now),
                })
            }
        };
        epoch.last = (cwnd, now);
        let t = (now - epoch.started_at + self.delay_min).as_secs();
        let from_plateau = (t - epoch.k).abs();
        let delta = cast::trunc(params.c * from_plateau * from_plateau * from_plateau);
        let target = if t < epoch.k {
            epoch.origin.saturating_sub(delta)
        } else {
            epoch.origin.saturating_add(delta)
        };
        let mut cnt = if target > cwnd { cwnd / (target - cwnd) } else { 100 * cwnd };
        if last_max == 0 {
            cnt = cnt.min(CNT_BEFORE_LOSS);
        }
        if params.reno_friendly {
            // 8/3 (1 + beta) / (1 - beta), whole, as eighths of a window per segment.
            let scale = cast::trunc(8.0 * (1.0 + params.beta) / 3.0 / (1.0 - params.beta));
            let per_segment = (cwnd * scale / 8).max(1);
            epoch.tcp_cwnd += epoch.ack_cnt.saturating_sub(1) / per_segment;
            epoch.ack_cnt -= epoch.ack_cnt.saturating_sub(1) / per_segment * per_segment;
            if epoch.tcp_cwnd > cwnd {
                cnt = cnt.min(cwnd / (epoch.tcp_cwnd - cwnd));
            }
        }
        self.cnt = cnt.max(2); // at most 1.5 windows in a round trip
    }

    /// Records a reduction from `cwnd`. A timeout resets the growth state.
    pub(super) fn reduce(&mut self, params: &CubicParams, cwnd: u64, timeout: bool) {
        if timeout {
            *self = LinuxGrowth::default();
            return;
        }
        self.epoch = None;
        let early = params.fast_convergence && cwnd < self.last_max_cwnd;
        let kept = if early { (1.0 + params.beta) / 2.0 } else { 1.0 };
        self.last_max_cwnd = cast::trunc(cwnd as f64 * kept);
    }

    /// Does not count `idle` time (`CA_EVENT_TX_START`).
    pub(super) fn shift(&mut self, idle: Span, now: Time) {
        if let Some(epoch) = &mut self.epoch {
            epoch.started_at = (epoch.started_at + idle).min(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers, from 1 on, of the acks of one segment at which a window of `cwnd` segments grows.
    /// Acks arrive every `ms`.
    fn growth(linux: &mut LinuxGrowth, params: &CubicParams, cwnd: u64, ms: u64) -> Vec<u64> {
        let mut w = window(cwnd);
        let mut grown = Vec::new();
        for n in 1..=60 {
            let before = w.cwnd;
            linux.grow(params, &mut w, &acked(ms * n, 1000));
            grown.extend((w.cwnd > before).then_some(n));
        }
        grown
    }

    /// Window of `cwnd` segments of 1000 bytes.
    fn window(cwnd: u64) -> Window {
        Window { cwnd: cwnd * 1000, ssthresh: 1000, mss: 1000 }
    }

    /// Ack of `bytes` at `ms`.
    fn acked(ms: u64, bytes: u64) -> NewDataAck {
        let at = Time::ZERO + Span::ms(ms);
        NewDataAck { at, bytes, flight: bytes, rtt: None, srtt: None, after_timeout: false }
    }

    #[test]
    fn the_reno_estimate_acts_in_whole_segments() {
        // A plateau at the window: the cubic function does not grow. The estimate needs more than
        // 7 * 15 / 8 = 13 acks; it is looked at with the acks 1, 5, 9, 13 and 17. From then on one
        // segment is due for seven acks, and sixteen have come. At 8 it needs 15 of those since the
        // 13th: looked at with 18, 22, 26 and 30.
        let params = CubicParams { c: 1e-6, ..CubicParams::default() };
        let mut linux = LinuxGrowth { last_max_cwnd: 7, ..LinuxGrowth::default() };
        assert_eq!(growth(&mut linux, &params, 7, 10)[..2], [17, 30]);
        // Without it the window grows by a segment per hundred windows.
        let params = CubicParams { reno_friendly: false, ..params };
        for (segments, grown) in [(699, 0), (700, 1)] {
            let mut linux = LinuxGrowth { last_max_cwnd: 7, ..LinuxGrowth::default() };
            let mut w = window(7);
            linux.grow(&params, &mut w, &acked(1, segments * 1000));
            assert_eq!(w.cwnd, (7 + grown) * 1000);
        }
    }

    #[test]
    fn the_further_the_reno_estimate_is_ahead_the_faster_the_window_grows() {
        // An ack of more than 2 * 16 * 15 / 8 = 60 segments raises the estimate from 16 to 18. So a
        // segment is due for 16 / 2 = 8 of them: seven.
        let params = CubicParams { c: 1e-6, ..CubicParams::default() };
        let mut linux = LinuxGrowth { last_max_cwnd: 16, ..LinuxGrowth::default() };
        let mut w = window(16);
        linux.grow(&params, &mut w, &acked(1, 61_000));
        assert_eq!(w.cwnd, (16 + 61 / 8) * 1000);
    }

    #[test]
    fn parts_of_segments_add_up() {
        let params = CubicParams { reno_friendly: false, ..CubicParams::default() };
        let (mut linux, mut w) = (LinuxGrowth::default(), window(100));
        // A segment for twenty: with the 40th half segment, whose count ends with the ack.
        for n in 1..=40 {
            assert_eq!(w.cwnd, 100_000, "before ack {n}");
            linux.grow(&params, &mut w, &acked(1, 500));
        }
        assert_eq!(w.cwnd, 101_000);
    }

    #[test]
    fn the_least_round_trip_time_counts() {
        // W_max = 10 and 7 after the loss, as above. 400 ms ahead the function is 10 - 1.51, which
        // makes 10 - 1: a segment for three acks. 70 ms ahead it is 10 - 2: one for seven.
        for (rtts, first) in [([400, 400, 400], 3), ([400, 70, 400], 7), ([70, 400, 80], 7)] {
            let params = CubicParams { reno_friendly: false, ..CubicParams::default() };
            let mut linux = LinuxGrowth { last_max_cwnd: 10, ..LinuxGrowth::default() };
            rtts.iter().for_each(|ms| linux.on_rtt(Some(Span::ms(*ms))));
            assert_eq!(growth(&mut linux, &params, 7, 10)[0], first, "{rtts:?}");
        }
    }

    #[test]
    fn the_cubic_function_is_reached_in_whole_segments() {
        // W_max = 10 and 7 after the loss: K = cbrt(3 / 0.4) = 1.957 s. After 70 ms the function is
        // 10 - 2.69, in whole segments 10 - 2: one more, so a segment is due after seven acks. It
        // is 10 - 1 from 0.247 s on, which is seen with the 20th ack, more than eight later.
        let params = CubicParams { reno_friendly: false, ..CubicParams::default() };
        let mut linux = LinuxGrowth { last_max_cwnd: 10, ..LinuxGrowth::default() };
        linux.on_rtt(Some(Span::ms(90)));
        linux.on_rtt(Some(Span::ms(70)));
        linux.on_rtt(Some(Span::ms(80)));
        assert_eq!(growth(&mut linux, &params, 7, 10)[..2], [7, 20]);
    }

    #[test]
    fn before_the_first_loss_it_grows_by_a_twentieth_at_least() {
        let params = CubicParams { reno_friendly: false, ..CubicParams::default() };
        assert_eq!(growth(&mut LinuxGrowth::default(), &params, 100, 1), [20, 40, 60]);
    }

    #[test]
    fn the_window_grows_by_half_per_round_trip_at_most() {
        // Long after the plateau the target is far above the window: a segment for two acks.
        let params = CubicParams::default();
        let mut linux = LinuxGrowth { last_max_cwnd: 7, ..LinuxGrowth::default() };
        let grown = growth(&mut linux, &params, 7, 1000);
        assert_eq!(grown[grown.len() - 3..], [56, 58, 60]);
    }

    #[test]
    fn a_reduction_before_the_last_window_lowers_it_and_a_timeout_forgets_it() {
        let params = CubicParams::default();
        let mut linux = LinuxGrowth::default();
        let mut after = |cwnd, timeout| {
            linux.reduce(&params, cwnd, timeout);
            linux.last_max_cwnd
        };
        assert_eq!([100, 80, 90, 90].map(|cwnd| after(cwnd, false)), [100, 68, 90, 90]);
        assert_eq!(after(90, true), 0);
    }

    #[test]
    fn idle_time_does_not_count() {
        let params = CubicParams { reno_friendly: false, ..CubicParams::default() };
        let mut linux = LinuxGrowth { last_max_cwnd: 10, ..LinuxGrowth::default() };
        growth(&mut linux, &params, 9, 1);
        let started = linux.epoch.unwrap().started_at;
        linux.shift(Span::s(5), Time::ZERO + Span::s(6));
        assert_eq!(linux.epoch.unwrap().started_at, started + Span::s(5));
        linux.shift(Span::s(5), Time::ZERO + Span::s(7));
        assert_eq!(linux.epoch.unwrap().started_at, Time::ZERO + Span::s(7), "not in the future");
    }
}
