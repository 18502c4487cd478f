//! TIMELY: a rate that follows the gradient of the round-trip time.
//!
//! **Source**: R. Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM
//! 2015, algorithm 1; gains and thresholds as in the simulator of HPCC.
//!
//! **Symbols** `alpha`, `beta`, `delta`, `T_low`, `T_high`, `minRTT`, `N` as in the paper.
//!
//! **Algorithm** Each time that `segment` bytes are acknowledged, with their last round-trip time:
//!
//! 1. d = (1 - `alpha`) d + `alpha` (rtt - last rtt); the gradient is d / `minRTT`.
//! 2. rtt < `T_low`: rate += `delta`.
//! 3. rtt > `T_high`: rate *= 1 - `beta` (1 - `T_high` / rtt).
//! 4. Otherwise, with a gradient of at most 0: rate += N `delta`, where N is `n` from the
//!    `n_after`-th such update in a row on, before 1; with a positive one: rate *= max(0, 1 -
//!    `beta` gradient).
//!
//! The simulator of HPCC updates once per round-trip time, and counts increases below `T_low` too;
//! its N is 5 after five of them (`n_after` = 6).
//!
//! **Departures**: packets are paced one by one, not in bursts of a segment. The first rate is not
//! the line rate, which a flow does not know, unless `initial_rate` is set. The network may lose
//! packets: a loss or a timeout halves the rate, once per round-trip time. Acks are not delayed
//! unless `delayed_ack` is set.
//!
//! **Cost**: one record per segment in flight.

use super::{
    CongestionControl, CongestionSignal, ControlParams, NewDataAck, ProcessedAck, RateEstimator,
    SendingRate, SentSegment, TcpEntry, Window,
};
use crate::endpoint::common_params::{CommonParams, LossRecovery, Profile};
use sojourn_aqm::Snapshot;
use sojourn_aqm::params;
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Bytes, Rate, Span, Time};

params! {
    /// Parameters of [`Timely`].
    pub struct TimelyParams {
        /// Rate on the wire with which a connection starts; auto: the initial window per round-trip
        /// time of the handshake. In the paper the line rate.
        initial_rate: Option<Rate> = None, [Rate(1_000) => Rate(10_000_000_000_000)], "", [];
        /// Lower bound of the rate.
        min_rate: Rate = Rate(10_000_000), [Rate(1_000) => Rate(10_000_000_000_000)], "", [];
        /// Upper bound of the rate: the line rate.
        max_rate: Rate = Rate(100_000_000_000), [Rate(1_000) => Rate(10_000_000_000_000)], "",
            ["line_rate"];
        /// Additive increment.
        delta: Rate = Rate(10_000_000), [Rate(1_000) => Rate(1_000_000_000_000)], "delta", [];
        /// Multiplicative decrement.
        beta: f64 = 0.8, [0.0 => 1.0], "beta", [];
        /// Weight of a new difference in the average.
        alpha: f64 = 0.875, [1e-6 => 1.0], "alpha", [];
        /// Round-trip time below which the rate grows whatever the gradient. Must be above the
        /// round-trip time of the empty path, or the rate stays small.
        t_low: Span = Span::us(50), [Span(1) => Span::s(10)], "T_low", [];
        /// Round-trip time above which the rate shrinks whatever the gradient.
        t_high: Span = Span::us(500), [Span(1) => Span::s(10)], "T_high", [];
        /// Round-trip time that the gradient is relative to.
        min_rtt: Span = Span::us(20), [Span(1) => Span::s(10)], "minRTT", [];
        /// Factor of the additive increment after n_after gradients of at most 0 in a row; 1 turns
        /// hyperactive increase off.
        n: f64 = 5.0, [1.0 => 1000.0], "N", [];
        /// Number of the first update in a row with a gradient of at most 0 that adds n delta.
        n_after: u64 = 5, [1 => 1_000_000], "", [];
        /// Acknowledged payload between two updates of the rate.
        segment: Bytes = Bytes(16_000), [Bytes(1) => Bytes(1_000_000_000)], "segment_size", [];
    }
}

/// Entry in the list of TCPs.
pub(super) const TCP: TcpEntry = TcpEntry {
    name: "timely",
    aliases: &[],
    about: "data centres: a rate that follows the gradient of the RTT; not in ns2",
    source: "Mittal et al., TIMELY, SIGCOMM 2015",
    profile: Profile::Rfc,
    recovery: LossRecovery::Sack,
    control: || ControlParams::Timely(TimelyParams::default()),
};

/// TIMELY state.
#[derive(Clone, Debug, Snapshot)]
pub struct Timely {
    params: TimelyParams,
    rates: RateEstimator,
    rate: SendingRate,
    /// Payload acknowledged since the last update.
    acked: u64,
    /// Last round-trip time.
    last: Option<Span>,
    /// Average difference of round-trip times, ns.
    difference: f64,
    /// Updates in a row with a gradient of at most 0.
    falling: u64,
    halved_at: Option<Time>,
}

impl Timely {
    /// Rate on the wire, bit/s.
    pub fn rate_bps(&self) -> f64 {
        self.rate.bits()
    }

    /// Updates the rate after a segment with the round-trip time `rtt`.
    fn update(&mut self, rtt: Span) {
        let Some(last) = self.last.replace(rtt) else { return };
        let p = &self.params;
        let (low, high) = (p.t_low, p.t_high);
        let news = rtt.0 as f64 - last.0 as f64;
        self.difference += p.alpha * (news - self.difference);
        let gradient = self.difference / p.min_rtt.0 as f64;
        let (rate, delta) = (self.rate.bits(), p.delta.0 as f64);
        let falls = rtt >= low && rtt <= high && gradient <= 0.0;
        self.falling = if falls { self.falling.saturating_add(1) } else { 0 };
        self.rate.set(if rtt < low {
            rate + delta
        } else if rtt > high {
            rate * (1.0 - p.beta * (1.0 - high.0 as f64 / rtt.0 as f64))
        } else if falls {
            rate + if self.falling >= p.n_after { p.n * delta } else { delta }
        } else {
            rate * (1.0 - p.beta * gradient).max(0.0)
        });
    }
}

impl CongestionControl for Timely {
    type Params = TimelyParams;

    fn new(params: &TimelyParams, common: &CommonParams, _: &mut dyn Random) -> Timely {
        let bounds = (params.min_rate, params.max_rate);
        Timely {
            rate: SendingRate::new(common, params.initial_rate, bounds),
            params: params.clone(),
            rates: RateEstimator::default(),
            acked: 0,
            last: None,
            difference: 0.0,
            falling: 0,
            halved_at: None,
        }
    }

    fn reset(&mut self) {
        self.rates.reset();
        (self.acked, self.last, self.halved_at) = (0, None, None);
        (self.difference, self.falling) = (0.0, 0);
    }

    fn on_ack(&mut self, _: &mut Window, _: &NewDataAck) {}

    fn on_congestion(&mut self, now: Time, _: &Window, _: u64, _: CongestionSignal) -> u64 {
        let rtt = self.last.unwrap_or(Span::ZERO);
        if self.halved_at.is_none_or(|at| now - at >= rtt) {
            self.rate.set(self.rate.bits() / 2.0);
            self.halved_at = Some(now);
        }
        self.rate.window()
    }

    fn sending_rate(&self) -> Option<&SendingRate> {
        Some(&self.rate)
    }

    fn on_established(&mut self, _: Time, window: &Window, rtt: Option<Span>) {
        self.rate.start(window, rtt);
    }

    fn uses_delivery_hooks(&self) -> bool {
        true
    }

    fn on_delivered(&mut self, now: Time, from: u64, to: u64) {
        self.rates.on_delivered(now, from, to);
    }

    fn on_ack_processed(&mut self, window: &mut Window, ack: &ProcessedAck) {
        window.cwnd = self.rate.window();
        let Some(sample) = self.rates.take_sample(ack.now) else { return };
        self.acked += sample.news;
        let Some(rtt) = sample.rtt else { return };
        if self.acked >= self.params.segment.0 {
            self.acked = 0;
            self.update(rtt);
        }
    }

    fn on_sent(&mut self, sent: &SentSegment) {
        self.rates.on_sent(sent);
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("rate_bps", self.rate.bits());
    }
}

#[cfg(test)]
mod tests {
    use super::super::RecoveryState;
    use super::super::testing::{Delivery, deliver};
    use super::*;

    const MSS: u64 = 1_460;

    /// Control at 1 Gbit/s.
    fn timely() -> Timely {
        let initial_rate = Some(Rate(1_000_000_000));
        let params = TimelyParams { initial_rate, ..TimelyParams::default() };
        let mut rng = <sojourn_aqm::Pcg as rand_core::SeedableRng>::seed_from_u64(1);
        let mut t = Timely::new(&params, &CommonParams::default(), &mut rng);
        let window = Window { cwnd: 10 * MSS, ssthresh: u64::MAX, mss: MSS };
        t.on_established(Time(1), &window, Some(Span::us(30)));
        t
    }

    /// Rates after round-trip times in us, Mbit/s.
    fn rates<const N: usize>(t: &mut Timely, us: [u64; N]) -> [f64; N] {
        us.map(|us| {
            t.update(Span::us(us));
            (t.rate_bps() / 1e2).round() / 1e4
        })
    }

    #[test]
    fn the_rate_follows_the_gradient() {
        let mut t = timely();
        assert_eq!(rates(&mut t, [100]), [1_000.0], "the first gives no difference");
        // d = 0.875 x 8 = 7 us, gradient 0.35: 1 - 0.8 x 0.35 = 0.72.
        assert_eq!(rates(&mut t, [108]), [720.0]);
        // d = 7/8 - 0.875 x 8 = -6.125 us.
        assert_eq!(rates(&mut t, [100]), [730.0]);
        // d = -6.125/8 = -0.766 us and so on: four more, the fifth in a row adds 50.
        assert_eq!(rates(&mut t, [100, 100, 100, 100, 100]), [740.0, 750.0, 760.0, 810.0, 860.0]);
        // d is about 0.875 x 4 = 3.5 us, gradient 0.175: x 0.86; then again one by one.
        let [up, down] = rates(&mut t, [104, 90]);
        assert!((up - 739.6).abs() < 0.1 && (down - up - 10.0).abs() < 1e-3, "{up} {down}");
        // d = 86 us: 1 - 0.8 x 4.3 < 0.
        assert_eq!(rates(&mut t, [190]), [10.0]);
    }

    #[test]
    fn beyond_the_thresholds_the_gradient_does_not_count() {
        let mut t = timely();
        // Below 50 us the rate grows although the delay rises; 50 us counts as within.
        assert_eq!(rates(&mut t, [20, 49]), [1_000.0, 1_010.0]);
        assert_eq!(t.falling, 0);
        // 1000 us: 1 - 0.8 (1 - 0.5) = 0.6, also when it falls; 500 us counts as within.
        assert_eq!(rates(&mut t, [1_000]), [606.0]);
        assert_eq!(rates(&mut t, [800]), [424.2], "1 - 0.8 (1 - 5/8) = 0.7");
        assert_eq!(rates(&mut t, [500, 50]), [434.2, 444.2]);
        (t.params.t_low, t.params.t_high) = (Span::us(60), Span::us(80));
        assert_eq!(rates(&mut t, [59]), [454.2]);
        assert_eq!(rates(&mut t, [160]), [272.52], "1 - 0.8 (1 - 80/160)");
        t.params.min_rtt = Span::us(1_000);
        t.difference = 0.0;
        // 80 us after 160: d = -70 us, then an eighth of it, and again.
        assert_eq!(rates(&mut t, [80, 80, 80]), [282.52, 292.52, 302.52]);
    }

    #[test]
    fn the_rate_changes_once_per_segment() {
        let mut t = timely();
        t.params.segment = Bytes(3 * MSS);
        let mut w = Window { cwnd: 10 * MSS, ssthresh: u64::MAX, mss: MSS };
        assert_eq!(t.initial_window(Time(1), &w, None), 1_460_000_000);
        for (i, us, rate) in (0..).zip([99, 150, 100, 99, 150, 108]).map(|(i, us)| {
            let (seq, sent, state) = (1 + i * MSS, Time(1 + i * 10), RecoveryState::Open);
            let rtt = Span::us(us);
            deliver(&mut t, &mut w, Delivery { seq, bytes: MSS, sent, rtt, flight: 0, state });
            (i, us, t.rate_bps() / 1e6)
        }) {
            // The third of each three counts: 100 us, then 108 us.
            assert!((rate - if i == 5 { 720.0 } else { 1_000.0 }).abs() < 1e-6, "{i}, {us} us");
        }
        assert_eq!(w.cwnd, 1_460_000_000, "the receive window");
    }

    #[test]
    fn a_loss_halves_the_rate_once_per_round_trip() {
        let mut t = timely();
        t.last = Some(Span::us(50));
        let w = Window { cwnd: 1, ssthresh: 1, mss: MSS };
        let mut loss = |us: u64| {
            let window = t.on_congestion(Time(us * 1_000), &w, 0, CongestionSignal::Loss);
            (window, t.rate_bps() / 1e6)
        };
        let window = 1_460_000_000;
        assert_eq!(loss(10), (window, 500.0));
        assert_eq!([59, 60].map(|us| loss(us).1), [500.0, 250.0]);
    }

    #[test]
    fn a_new_connection_starts_afresh() {
        let mut t = timely();
        let fresh = format!("{t:?}");
        rates(&mut t, [100, 108, 90, 90]);
        t.reset();
        let window = Window { cwnd: 10 * MSS, ssthresh: u64::MAX, mss: MSS };
        t.on_established(Time(1), &window, Some(Span::us(30)));
        assert_eq!(format!("{t:?}"), fresh);
        // 1 Gbit/s on the wire, 1460 of 1500 bytes payload.
        assert!((t.own_pacing_rate().unwrap() - 121_666_666.7).abs() < 1.0);
        assert!(t.keeps_window_when_idle() && !t.paces_bursts() && t.uses_delivery_hooks());
        let mut shown = vec![];
        t.inspect(&mut |name, value| shown.push((name, value)));
        assert_eq!((shown, t.unpaced_segments()), (vec![("rate_bps", 1e9)], 0));
    }
}
