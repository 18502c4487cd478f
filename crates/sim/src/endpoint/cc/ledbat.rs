//! LEDBAT: background transfers that keep the queueing delay at a target, and so yield to senders
//! that fill the queue.
//!
//! **Source**: RFC 6817 §2.4.2 (pseudocode), §2.5 (parameters).
//!
//! **Symbols** `TARGET`, `GAIN`, `ALLOWED_INCREASE`, `BASE_HISTORY`, `CURRENT_FILTER`, `off_target`
//! as in the RFC.
//!
//! **Departures**: the delay is the round-trip time less its minimum, not the one-way delay; they
//! are the same unless acks queue. The initial window is as in all TCPs, not two segments. There
//! is no slow start. The window is not updated during fast recovery.
//!
//! **Cost**: one record per segment in flight.

use super::queueing_delay::QueueingDelay;
use super::{
    CongestionControl, CongestionSignal, ControlParams, NewDataAck, ProcessedAck, RateEstimator,
    RecoveryState, SentSegment, TcpEntry, Window,
};
use crate::endpoint::common_params::{CommonParams, LossRecovery, Profile};
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::params;
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Span, Time};

params! {
    /// Parameters of [`Ledbat`].
    pub struct LedbatParams {
        /// Queueing delay that the sender aims at.
        target: Span = Span::ms(100), [Span::ms(1) => Span::ms(100)], "TARGET", [];
        /// Growth of the window in segments per round trip without a queue. The RFC allows at most
        /// 1; studies use more (RFC 7928 §5.4: 10 with a target of 5 ms).
        gain: f64 = 1.0, [0.01 => 100.0], "GAIN", [];
        /// Largest excess of the window over the data in flight, segments.
        allowed_increase: u64 = 1, [1 => 1_000], "ALLOWED_INCREASE", [];
        /// Minutes over which the shortest round-trip time is remembered.
        base_history: u64 = 10, [1 => 1_000], "BASE_HISTORY", [];
        /// Number of recent samples of which the smallest counts.
        current_filter: u64 = 4, [1 => 1_000], "CURRENT_FILTER", [];
    }
}

/// Entry in the list of TCPs.
pub(super) const TCP: TcpEntry = TcpEntry {
    name: "ledbat",
    aliases: &[],
    about: "background transfers: keeps the queueing delay at a target; not in ns2",
    source: "RFC 6817",
    profile: Profile::Rfc,
    recovery: LossRecovery::Sack,
    control: || ControlParams::Ledbat(LedbatParams::default()),
};

/// Smallest window (MIN_CWND), segments.
const LEAST: u64 = 2;

/// LEDBAT state.
#[derive(Clone, Debug, Snapshot)]
pub struct Ledbat {
    params: LedbatParams,
    rates: RateEstimator,
    delay: QueueingDelay,
    /// Fraction of a byte by which the window exceeds `cwnd`.
    rest: f64,
}

impl Ledbat {
    /// Creates a control.
    pub fn of(params: LedbatParams) -> Ledbat {
        let delay = QueueingDelay::new(params.base_history, params.current_filter);
        Ledbat { params, rates: RateEstimator::default(), delay, rest: 0.0 }
    }

    /// Current estimate of the queueing delay.
    pub fn queueing_delay(&self) -> Span {
        self.delay.queueing()
    }

    /// Updates the window for `news` delivered bytes, with `flight` bytes outstanding before.
    fn update(&mut self, window: &mut Window, news: u64, flight: u64) {
        let (mss, cwnd) = (window.mss as f64, window.cwnd as f64 + self.rest);
        let off_target = 1.0 - self.delay.queueing().as_secs() / self.params.target.as_secs();
        let next = cwnd + self.params.gain * off_target * news as f64 * mss / cwnd;
        let most = (flight + self.params.allowed_increase * window.mss) as f64;
        let next = next.min(most).max((LEAST * window.mss) as f64);
        window.cwnd = cast::trunc(next);
        self.rest = next - window.cwnd as f64;
    }
}

impl CongestionControl for Ledbat {
    type Params = LedbatParams;

    fn new(params: &LedbatParams, _: &CommonParams, _: &mut dyn Random) -> Ledbat {
        Ledbat::of(params.clone())
    }

    fn reset(&mut self) {
        let mut rates = std::mem::take(&mut self.rates);
        rates.reset();
        *self = Ledbat { rates, ..Ledbat::of(self.params.clone()) };
    }

    fn on_ack(&mut self, _: &mut Window, _: &NewDataAck) {}

    fn on_congestion(&mut self, _: Time, window: &Window, _: u64, _: CongestionSignal) -> u64 {
        self.rest = 0.0;
        (window.cwnd / 2).max(LEAST * window.mss).min(window.cwnd.max(window.mss))
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
            self.delay.add(ack.now, rtt);
        }
        if ack.state != RecoveryState::Recovery {
            self.update(window, sample.news, ack.flight + sample.news);
        }
    }

    fn on_sent(&mut self, sent: &SentSegment) {
        self.rates.on_sent(sent);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Delivery, deliver, processed};
    use super::*;

    const MSS: u64 = 1_000;

    /// Sender that has measured a queueing delay of `ms`, with a window of 20 segments.
    fn ledbat(ms: u64) -> (Ledbat, Window) {
        let mut l = Ledbat::of(LedbatParams::default());
        (0..10).for_each(|_| l.delay.add(Time::ZERO, Span::ms(50)));
        (0..4).for_each(|_| l.delay.add(Time::ZERO, Span::ms(50 + ms)));
        (l, Window { cwnd: 20 * MSS, ssthresh: u64::MAX, mss: MSS })
    }

    #[test]
    fn window_moves_in_proportion_to_the_distance_from_the_target() {
        // A round trip of 20 segments: GAIN off_target segments.
        for (ms, change) in [(0, 1.0), (50, 0.5), (100, 0.0), (150, -0.5), (300, -2.0)] {
            let (mut l, mut w) = ledbat(ms);
            assert_eq!(l.queueing_delay(), Span::ms(ms));
            (0..20).for_each(|_| l.update(&mut w, MSS, 20 * MSS));
            let moved = w.cwnd as f64 / MSS as f64 - 20.0;
            assert!((moved - change).abs() < 0.12 * change.abs() + 1e-9, "{ms} ms: {moved}");
        }
    }

    #[test]
    fn window_is_bounded_by_the_data_in_flight_and_two_segments() {
        let (mut l, mut w) = ledbat(0);
        l.update(&mut w, 20 * MSS, 12 * MSS);
        assert_eq!(w.cwnd, 13 * MSS, "flightsize and one segment");
        l.update(&mut w, MSS, 0);
        assert_eq!(w.cwnd, 2 * MSS);
        let (mut l, mut w) = ledbat(100_000);
        l.update(&mut w, 20 * MSS, 20 * MSS);
        assert_eq!(w.cwnd, 2 * MSS);
    }

    /// 10 bytes at half of the target add 10 x 0.5 / 20 = 1/4 byte.
    #[test]
    fn fractions_of_a_byte_add_up() {
        let (mut l, mut w) = ledbat(50);
        let windows = [(); 9].map(|()| {
            l.update(&mut w, 10, 20 * MSS);
            w.cwnd - 20 * MSS
        });
        assert_eq!(windows, [0, 0, 0, 0, 1, 1, 1, 1, 2], "each a little below 1/4");
        assert_eq!(l.on_congestion(Time(9), &w, 0, CongestionSignal::Loss), 10_001);
        assert_eq!(l.rest, 0.0);
    }

    /// The round-trip time without a queue is 50 ms, the window 20 segments.
    #[test]
    fn acks_measure_the_delay_and_move_the_window_but_not_in_recovery() {
        let mut l = Ledbat::of(LedbatParams::default());
        let mut w = Window { cwnd: 20 * MSS, ssthresh: u64::MAX, mss: MSS };
        let sent = Time(1_000_000_000);
        let first = Delivery {
            seq: 1,
            bytes: MSS,
            sent,
            rtt: Span::ms(50),
            flight: 19_020,
            state: RecoveryState::Open,
        };
        deliver(&mut l, &mut w, first);
        assert_eq!((l.queueing_delay(), w.cwnd), (Span::ZERO, 20_050), "1/20 segment");
        for i in 1..5 {
            let (rtt, state) = (Span::ms(90), RecoveryState::Recovery);
            deliver(&mut l, &mut w, Delivery { seq: 1 + i * MSS, rtt, state, ..first });
        }
        assert_eq!((l.queueing_delay(), w.cwnd), (Span::ms(40), 20_050), "measured alone");
        let rest = Delivery { seq: 5_001, flight: 5_000, state: RecoveryState::Loss, ..first };
        deliver(&mut l, &mut w, rest);
        assert_eq!(w.cwnd, 7_000, "5 kB in flight, 1 kB delivered, and a segment");
        l.on_ack_processed(&mut w, &processed(sent, 6_000, 0, RecoveryState::Open));
        assert_eq!(w.cwnd, 7_000, "nothing was delivered");
        assert!(l.uses_delivery_hooks());
        l.reset();
        let fresh = Ledbat::of(LedbatParams::default());
        assert_eq!(format!("{l:?}"), format!("{fresh:?}"));
    }

    #[test]
    fn loss_halves_the_window() {
        let (mut l, mut w) = ledbat(0);
        let mut left = |w: &Window| l.on_congestion(Time::ZERO, w, 0, CongestionSignal::Loss);
        assert_eq!(left(&w), 10 * MSS);
        w.cwnd = 3 * MSS;
        assert_eq!(left(&w), 2 * MSS);
        w.cwnd = MSS;
        assert_eq!(left(&w), MSS, "a loss never raises the window");
    }
}
