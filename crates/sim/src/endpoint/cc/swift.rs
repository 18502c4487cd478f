//! Swift: keeps the round-trip time at a target, with a window that may be a small fraction of a
//! packet, so that thousands of senders can share a link.
//!
//! **Source**: G. Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the
//! Datacenter", SIGCOMM 2020: algorithm 1 (window), §3.5 (target).
//!
//! **Symbols** `fcwnd`, `ai`, `beta`, `max_mdf`, `fs_range`, fs_min_cwnd, fs_max_cwnd as in the
//! paper; windows in packets.
//!
//! **Algorithm**
//!
//! 1. target = base target + hops x hop delay + clamp(a / sqrt(fcwnd) + b, 0, `fs_range`), with a =
//!    `fs_range` / (1 / sqrt(`fs_min`) - 1 / sqrt(`fs_max`)) and b = -a / sqrt(`fs_max`).
//! 2. An ack with a round-trip time below the target adds `ai` x acked / fcwnd packets, or `ai` x
//!    acked below a window of one packet.
//! 3. Otherwise, once per round-trip time, fcwnd is multiplied by max(1 - `beta` (delay - target) /
//!    delay, 1 - `max_mdf`).
//! 4. A loss or a timeout multiplies it by 1 - `max_mdf`, also once per round-trip time.
//! 5. Below one packet, a packet is sent every RTT / fcwnd.
//!
//! **Departures**: receivers have no queue, so there is no window for them, and the round-trip time
//! is the fabric delay. The paper gives no values of `ai`, `beta`, `max_mdf`, `fs_range` and the
//! window bounds; these defaults are of htsim. The window grows only if it was full. A
//! second timeout of the same packet does not set the smallest window: the timer backs off instead.
//! Acks are not delayed unless `delayed_ack` is set.
//!
//! **Cost**: one record per segment in flight.

use super::{
    CongestionControl, CongestionSignal, ControlParams, NewDataAck, ProcessedAck, RateEstimator,
    SentSegment, TcpEntry, Window,
};
use crate::endpoint::common_params::{CommonParams, LossRecovery, Profile};
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::params;
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Span, Time};

params! {
    /// Parameters of [`Swift`].
    pub struct SwiftParams {
        /// Round-trip time that the sender aims at with a large window, without hops. Must be above
        /// the round-trip time of the empty path, or the window stays small.
        target: Span = Span::us(25), [Span::us(1) => Span::s(10)], "base_target", ["base_target"];
        /// Number of hops of the path, each of which adds hop_delay to the target.
        hops: u64 = 0, [0 => 255], "", [];
        /// Addition of a hop to the target.
        hop_delay: Span = Span::us(3), [Span::ZERO => Span::s(1)], "h", [];
        /// Growth of the window in packets per round trip.
        ai: f64 = 1.0, [0.001 => 1000.0], "ai", [];
        /// Reduction per relative excess of the delay over the target.
        beta: f64 = 0.8, [0.0 => 1.0], "beta", [];
        /// Largest share of the window that one reduction takes.
        max_mdf: f64 = 0.5, [0.001 => 0.999], "max_mdf", [];
        /// Largest addition to the target for a small window; 0s turns flow scaling off.
        fs_range: Span = Span::us(100), [Span::ZERO => Span::s(1)], "fs_range", [];
        /// Window below which the addition is fs_range, packets.
        fs_min: f64 = 0.1, [0.0001 => 1e6], "fs_min_cwnd", [];
        /// Window above which nothing is added, packets.
        fs_max: f64 = 100.0, [0.0001 => 1e6], "fs_max_cwnd", [];
        /// Smallest window, packets; 1 turns windows below a packet off.
        min_cwnd: f64 = 0.001, [1e-6 => 1.0], "min_cwnd", [];
    }
}

/// Entry in the list of TCPs.
pub(super) const TCP: TcpEntry = TcpEntry {
    name: "swift",
    aliases: &[],
    about: "data centres: keeps the RTT at a target, with windows below one packet; not in ns2",
    source: "Kumar et al., Swift, SIGCOMM 2020",
    profile: Profile::Rfc,
    recovery: LossRecovery::Sack,
    control: || ControlParams::Swift(SwiftParams::default()),
};

/// Swift state.
#[derive(Clone, Debug, Snapshot)]
pub struct Swift {
    params: SwiftParams,
    rates: RateEstimator,
    /// `fcwnd`, packets.
    fcwnd: f64,
    /// Last round-trip time.
    rtt: Span,
    last_decrease: Option<Time>,
    /// Pacing rate, bytes of payload per second: infinite from a window of one packet on.
    pace: f64,
}

impl Swift {
    /// Creates a control.
    pub fn of(params: SwiftParams) -> Swift {
        let (rates, pace) = (RateEstimator::default(), f64::INFINITY);
        Swift { params, rates, fcwnd: 1.0, rtt: Span::ZERO, last_decrease: None, pace }
    }

    /// Window in packets; may be below one.
    pub fn fractional_window(&self) -> f64 {
        self.fcwnd
    }

    /// Target of the round-trip time, ns (rule 1).
    fn target(&self) -> f64 {
        let p = &self.params;
        let [at_min, at_max] = [p.fs_min, p.fs_max].map(|w| 1.0 / libm::sqrt(w));
        let range = p.fs_range.0 as f64;
        let scaled = range * (1.0 / libm::sqrt(self.fcwnd) - at_max) / (at_min - at_max);
        (p.target.0 + p.hops * p.hop_delay.0) as f64 + scaled.clamp(0.0, range)
    }

    /// Multiplies the window by `factor`, once per round-trip time.
    fn decrease(&mut self, now: Time, factor: f64) {
        if self.last_decrease.is_none_or(|at| now - at >= self.rtt) {
            self.fcwnd = (self.fcwnd * factor).max(self.params.min_cwnd);
            self.last_decrease = Some(now);
        }
    }

    /// Updates the window for `acked` packets with the last round-trip time; `full` is true if the
    /// window was full.
    fn update(&mut self, now: Time, acked: f64, full: bool) {
        let (delay, target) = (self.rtt.0 as f64, self.target());
        if delay < target {
            let growth = self.params.ai * acked / self.fcwnd.max(1.0);
            self.fcwnd += if full { growth } else { 0.0 };
        } else {
            let factor = 1.0 - self.params.beta * (delay - target) / delay;
            self.decrease(now, factor.max(1.0 - self.params.max_mdf));
        }
    }

    /// Window of the sender in bytes, at least a packet.
    fn bytes(&self, mss: u64) -> u64 {
        cast::trunc(self.fcwnd * mss as f64).max(mss)
    }
}

impl CongestionControl for Swift {
    type Params = SwiftParams;

    fn new(params: &SwiftParams, _: &CommonParams, _: &mut dyn Random) -> Swift {
        Swift::of(params.clone())
    }

    fn reset(&mut self) {
        let mut rates = std::mem::take(&mut self.rates);
        rates.reset();
        *self = Swift { rates, ..Swift::of(self.params.clone()) };
    }

    fn on_ack(&mut self, _: &mut Window, _: &NewDataAck) {}

    fn on_congestion(&mut self, now: Time, window: &Window, _: u64, _: CongestionSignal) -> u64 {
        self.decrease(now, 1.0 - self.params.max_mdf);
        self.bytes(window.mss)
    }

    fn keeps_window_when_idle(&self) -> bool {
        true
    }

    fn initial_window(&mut self, _: Time, window: &Window, _: Option<Span>) -> u64 {
        self.fcwnd = window.cwnd as f64 / window.mss as f64;
        window.cwnd
    }

    fn uses_delivery_hooks(&self) -> bool {
        true
    }

    fn on_delivered(&mut self, now: Time, from: u64, to: u64) {
        self.rates.on_delivered(now, from, to);
    }

    fn on_ack_processed(&mut self, window: &mut Window, ack: &ProcessedAck) {
        let Some(sample) = self.rates.take_sample(ack.now) else { return };
        if let Some(rtt) = sample.rtt {
            self.rtt = rtt;
            let full = ack.flight + sample.news + window.mss >= window.cwnd;
            self.update(ack.now, sample.news as f64 / window.mss as f64, full);
        }
        window.cwnd = self.bytes(window.mss);
        let paced = self.fcwnd < 1.0 && self.rtt.0 > 0;
        let rate = || self.fcwnd * window.mss as f64 / self.rtt.as_secs();
        self.pace = if paced { rate() } else { f64::INFINITY };
    }

    fn on_sent(&mut self, sent: &SentSegment) {
        self.rates.on_sent(sent);
    }

    fn own_pacing_rate(&self) -> Option<f64> {
        Some(self.pace)
    }

    fn paces_bursts(&self) -> bool {
        false
    }

    fn unpaced_segments(&self) -> u32 {
        0
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("fcwnd", self.fcwnd);
    }
}

#[cfg(test)]
mod tests {
    use super::super::RecoveryState;
    use super::super::testing::{Delivery, deliver};
    use super::*;

    const MSS: u64 = 1_000;

    /// Control with a target of 100 us, without flow scaling, a window of `fcwnd` packets and a
    /// round-trip time of `us`.
    fn swift(fcwnd: f64, us: u64) -> Swift {
        let (target, fs_range) = (Span::us(100), Span::ZERO);
        let s = Swift::of(SwiftParams { target, fs_range, ..SwiftParams::default() });
        Swift { fcwnd, rtt: Span::us(us), ..s }
    }

    #[test]
    fn below_the_target_the_window_grows_by_a_packet_per_round_trip() {
        for (fcwnd, acked, expected) in [(10.0, 1.0, 10.1), (10.0, 2.0, 10.2), (0.5, 1.0, 1.5)] {
            let mut s = swift(fcwnd, 99);
            s.update(Time(1), acked, true);
            assert!((s.fractional_window() - expected).abs() < 1e-12, "{}", s.fcwnd);
            let mut s = swift(fcwnd, 99);
            s.update(Time(1), acked, false);
            assert_eq!(s.fcwnd, fcwnd, "it was not full");
        }
        let mut half = swift(0.5, 99);
        half.params.ai = 0.1;
        half.update(Time(1), 1.0, true);
        assert!((half.fcwnd - 0.6).abs() < 1e-12, "ai per ack below one packet");
    }

    #[test]
    fn above_the_target_the_window_shrinks_in_proportion_once_per_round_trip() {
        // 125 us: 0.8 (125 - 100) / 125 = 0.16; at 100 us nothing; at 400 us 0.6, but at most 0.5.
        for (us, expected) in [(100, 10.0), (125, 8.4), (400, 5.0)] {
            let mut s = swift(10.0, us);
            s.update(Time(1_000_000), 1.0, true);
            assert!((s.fcwnd - expected).abs() < 1e-12, "{us}: {}", s.fcwnd);
        }
        let mut s = swift(10.0, 125);
        for (at_us, expected) in [(0, 8.4), (124, 8.4), (125, 7.056), (200, 7.056)] {
            s.update(Time(at_us * 1_000), 1.0, true);
            assert!((s.fcwnd - expected).abs() < 1e-12, "{at_us}: {}", s.fcwnd);
        }
        (0..100).for_each(|i| s.update(Time((i + 2) * 125_000), 1.0, true));
        assert_eq!(s.fcwnd, s.params.min_cwnd);
    }

    #[test]
    fn the_target_rises_as_the_window_falls() {
        // a = 100 us / (1 / sqrt(0.25) - 1 / sqrt(100)) = 100 / 1.9, b = -a / 10.
        let p = SwiftParams { target: Span::us(30), hops: 2, ..SwiftParams::default() };
        let p = SwiftParams { fs_min: 0.25, ..p };
        let at = |fcwnd| Swift { fcwnd, ..Swift::of(p.clone()) }.target() / 1e3;
        for (fcwnd, us) in [(400.0, 36.0), (100.0, 36.0), (0.25, 136.0), (0.01, 136.0)] {
            assert!((at(fcwnd) - us).abs() < 1e-9, "{fcwnd}: {}", at(fcwnd));
        }
        assert!((at(4.0) - (36.0 + 100.0 * (0.5 - 0.1) / 1.9)).abs() < 1e-9, "{}", at(4.0));
    }

    #[test]
    fn a_loss_takes_half_once_per_round_trip() {
        let mut s = swift(10.0, 50);
        let window = Window { cwnd: 10 * MSS, ssthresh: u64::MAX, mss: MSS };
        let mut loss = |us: u64, cause| s.on_congestion(Time(us * 1_000), &window, 0, cause);
        assert_eq!(loss(100, CongestionSignal::Loss), 5_000);
        assert_eq!(loss(149, CongestionSignal::Timeout), 5_000);
        assert_eq!(loss(150, CongestionSignal::Timeout), 2_500);
        assert_eq!(loss(200, CongestionSignal::Loss), 1_250);
        assert_eq!(loss(250, CongestionSignal::Loss), 1_000, "the sender has a packet");
        assert!((s.fractional_window() - 0.625).abs() < 1e-12);
    }

    #[test]
    fn below_a_packet_the_sender_is_paced_at_a_packet_per_rtt_by_fcwnd() {
        let mut s = swift(0.8, 0);
        let mut w = Window { cwnd: MSS, ssthresh: u64::MAX, mss: MSS };
        assert_eq!((s.own_pacing_rate(), s.unpaced_segments()), (Some(f64::INFINITY), 0));
        let sent = Time(5_000_000);
        let (rtt, state) = (Span::us(200), RecoveryState::Open);
        deliver(&mut s, &mut w, Delivery { seq: 1, bytes: MSS, sent, rtt, flight: 0, state });
        // 0.8 (1 - 0.8 / 2) = 0.48 packets per 200 us.
        assert!((s.fcwnd - 0.48).abs() < 1e-12);
        assert!((s.own_pacing_rate().unwrap() - 2_400_000.0).abs() < 1e-3);
        assert_eq!(w.cwnd, MSS);
        let rtt = Span::us(90);
        deliver(&mut s, &mut w, Delivery { seq: 1_001, bytes: MSS, sent, rtt, flight: 0, state });
        assert_eq!(s.own_pacing_rate(), Some(f64::INFINITY), "1.48 packets");
        assert_eq!(w.cwnd, 1_480);
        let mut shown = vec![];
        s.inspect(&mut |name, value| shown.push((name, (value * 100.0).round())));
        assert_eq!(shown, [("fcwnd", 148.0)]);
        s.reset();
        let fresh = swift(1.0, 0);
        assert_eq!(format!("{s:?}"), format!("{fresh:?}"));
    }

    #[test]
    fn it_starts_with_the_initial_window_and_keeps_it_when_idle() {
        let mut s = swift(1.0, 0);
        let w = Window { cwnd: 10 * MSS, ssthresh: u64::MAX, mss: MSS };
        assert_eq!(s.initial_window(Time(1), &w, None), 10 * MSS);
        assert_eq!(s.fractional_window(), 10.0);
        assert!(s.keeps_window_when_idle() && !s.paces_bursts() && s.uses_delivery_hooks());
    }
}
