//! LEDBAT++: LEDBAT that is slower than Reno on short paths, shrinks in proportion to the window,
//! and pauses at times so that all flows see the path without queues.
//!
//! **Source**: P. Balasubramanian, O. Ertugay, D. Havey, M. Bagnulo, "LEDBAT++: Congestion Control
//! for Background Traffic", draft-irtf-iccrg-ledbat-plus-plus-01, §4.
//!
//! **Symbols** `W` (window in segments), `GAIN`, `TARGET`, `Constant`, `base` as in the draft.
//!
//! **Algorithm**
//!
//! 1. GAIN = 1 / min(16, ceil(2 TARGET / base)).
//! 2. Per round trip, W += GAIN if the queueing delay is at most TARGET; otherwise
//!    W += max(GAIN - Constant W (delay / TARGET - 1), -W / 2).
//! 3. Slow start adds GAIN segments per segment. The first one ends when the delay exceeds 3/4 of
//!    TARGET.
//! 4. Two round trips after the first slow start, a slowdown: the window is two segments for two
//!    round trips, then slow start regains the window before. The next one follows after nine times
//!    the duration of this one.
//! 5. A loss halves the window.
//!
//! **Departures**: the rules are from version 01 of the draft. The initial window is as in all
//! TCPs. The window is not updated during fast recovery.
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
    /// Parameters of [`LedbatPp`].
    pub struct LedbatPpParams {
        /// Queueing delay that the sender aims at.
        target: Span = Span::ms(60), [Span::ms(1) => Span::s(1)], "TARGET", [];
        /// Weight of the reduction above the target.
        constant: f64 = 1.0, [0.0 => 100.0], "Constant", [];
        /// Upper bound of 1 / GAIN.
        divisor: u64 = 16, [1 => 1_000], "", ["max_gain_divisor"];
        /// Time between two slowdowns divided by the duration of the first; 0 turns them off.
        slowdown: u64 = 9, [0 => 1_000], "", ["slowdown_interval"];
        /// Minutes over which the shortest round-trip time is remembered.
        base_history: u64 = 10, [1 => 1_000], "BASE_HISTORY", [];
        /// Number of recent samples of which the smallest counts.
        current_filter: u64 = 4, [1 => 1_000], "CURRENT_FILTER", [];
    }
}

/// Entry in the list of TCPs.
pub(super) const TCP: TcpEntry = TcpEntry {
    name: "ledbatpp",
    aliases: &["ledbat++", "ledbat_plus_plus"],
    about: "LEDBAT++: ledbat that yields more, and pauses to measure the path; not in ns2",
    source: "draft-irtf-iccrg-ledbat-plus-plus",
    profile: Profile::Rfc,
    recovery: LossRecovery::Sack,
    control: || ControlParams::LedbatPp(LedbatPpParams::default()),
};

/// Smallest window, which is also the window of a slowdown, segments.
const LEAST: u64 = 2;
/// Round trips before the first slowdown; also the length of its pause.
const PAUSE: u64 = 2;

/// Phase of a LEDBAT++ sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
enum Phase {
    /// First slow start.
    Start,
    /// Congestion avoidance, until a slowdown is due.
    Avoidance {
        /// Time of the next slowdown.
        slowdown_at: Time,
    },
    /// Slowdown with the smallest window.
    Pause {
        /// Start of the slowdown.
        since: Time,
        /// End of the pause.
        until: Time,
    },
    /// Slow start after a pause.
    Ramp {
        /// Start of the slowdown.
        since: Time,
    },
}

/// LEDBAT++ state.
#[derive(Clone, Debug, Snapshot)]
pub struct LedbatPp {
    params: LedbatPpParams,
    rates: RateEstimator,
    delay: QueueingDelay,
    phase: Phase,
    /// Window that a slowdown regains, bytes.
    regained: u64,
    /// Fraction of a byte by which the window exceeds `cwnd`.
    rest: f64,
    now: Time,
    srtt: Span,
}

impl LedbatPp {
    /// Creates a control.
    pub fn of(params: LedbatPpParams) -> LedbatPp {
        let delay = QueueingDelay::new(params.base_history, params.current_filter);
        LedbatPp {
            params,
            rates: RateEstimator::default(),
            delay,
            phase: Phase::Start,
            regained: 0,
            rest: 0.0,
            now: Time::ZERO,
            srtt: Span::ZERO,
        }
    }

    /// Current estimate of the queueing delay.
    pub fn queueing_delay(&self) -> Span {
        self.delay.queueing()
    }

    /// True during a slowdown.
    pub fn slows_down(&self) -> bool {
        matches!(self.phase, Phase::Pause { .. } | Phase::Ramp { .. })
    }

    /// GAIN (rule 1).
    fn gain(&self) -> f64 {
        let base = self.delay.base().unwrap_or(self.params.target).max(Span(1));
        let ratio = (2.0 * self.params.target.as_secs() / base.as_secs()).ceil();
        1.0 / ratio.clamp(1.0, self.params.divisor as f64)
    }

    /// Congestion avoidance, with the first slowdown due after `wait`.
    fn avoid(&mut self, wait: Span) {
        let never = self.params.slowdown == 0;
        let slowdown_at = if never { Time::NEVER } else { self.now + wait };
        self.phase = Phase::Avoidance { slowdown_at };
    }

    /// Change of the window for `news` delivered bytes, in bytes (rules 2 and 3).
    fn change(&self, window: &Window, news: u64) -> f64 {
        let (news, mss) = (news as f64, window.mss as f64);
        match self.phase {
            Phase::Start | Phase::Ramp { .. } => self.gain() * news,
            Phase::Pause { .. } => 0.0,
            Phase::Avoidance { .. } => {
                let w = window.cwnd as f64 / mss;
                let above = self.delay.queueing().as_secs() / self.params.target.as_secs() - 1.0;
                let per_rtt = if above <= 0.0 {
                    self.gain()
                } else {
                    (self.gain() - self.params.constant * w * above).max(-w / 2.0)
                };
                per_rtt * news / w
            }
        }
    }

    /// Updates the phase and the window for `news` delivered bytes, with `flight` bytes outstanding
    /// before.
    fn update(&mut self, window: &mut Window, news: u64, flight: u64) {
        let least = LEAST * window.mss;
        match self.phase {
            Phase::Start if 4 * self.delay.queueing().0 > 3 * self.params.target.0 => {
                self.avoid(Span(PAUSE * self.srtt.0));
            }
            Phase::Avoidance { slowdown_at } if self.now >= slowdown_at => {
                self.regained = window.cwnd;
                let until = self.now + Span(PAUSE * self.srtt.0);
                self.phase = Phase::Pause { since: self.now, until };
                (window.cwnd, self.rest) = (least, 0.0);
            }
            Phase::Pause { since, until } if self.now >= until => {
                self.phase = Phase::Ramp { since };
            }
            _ => {}
        }
        let cwnd = window.cwnd as f64 + self.rest;
        let change = self.change(window, news);
        // As in LEDBAT, the window exceeds the data in flight by at most a segment.
        let most = ((flight + window.mss) as f64).max(cwnd);
        let next = (cwnd + change).min(most).max(least as f64);
        window.cwnd = cast::trunc(next);
        self.rest = next - window.cwnd as f64;
        if let Phase::Ramp { since } = self.phase
            && window.cwnd >= self.regained
        {
            self.avoid(Span(self.params.slowdown * (self.now - since).0));
        }
    }
}

impl CongestionControl for LedbatPp {
    type Params = LedbatPpParams;

    fn new(params: &LedbatPpParams, _: &CommonParams, _: &mut dyn Random) -> LedbatPp {
        LedbatPp::of(params.clone())
    }

    fn reset(&mut self) {
        let mut rates = std::mem::take(&mut self.rates);
        rates.reset();
        *self = LedbatPp { rates, ..LedbatPp::of(self.params.clone()) };
    }

    fn on_ack(&mut self, _: &mut Window, _: &NewDataAck) {}

    fn on_congestion(&mut self, now: Time, window: &Window, _: u64, _: CongestionSignal) -> u64 {
        (self.now, self.rest) = (now, 0.0);
        self.regained /= 2;
        if self.phase == Phase::Start {
            self.avoid(Span(PAUSE * self.srtt.0));
        }
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
        (self.now, self.srtt) = (ack.now, ack.srtt.unwrap_or(self.srtt));
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
    use super::super::testing::{Delivery, deliver};
    use super::*;

    const MSS: u64 = 1_000;

    /// Sender in congestion avoidance with a window of 20 segments, a base of `base` ms and a
    /// queueing delay of `ms`.
    fn sender(base: u64, ms: u64) -> (LedbatPp, Window) {
        let mut l = LedbatPp::of(LedbatPpParams::default());
        l.delay.add(Time::ZERO, Span::ms(base));
        (0..4).for_each(|_| l.delay.add(Time::ZERO, Span::ms(base + ms)));
        l.phase = Phase::Avoidance { slowdown_at: Time::NEVER };
        l.srtt = Span::ms(base + ms);
        (l, Window { cwnd: 20 * MSS, ssthresh: u64::MAX, mss: MSS })
    }

    #[test]
    fn gain_falls_with_the_base_delay() {
        for (base, divisor) in [(120, 1.0), (100, 2.0), (60, 2.0), (50, 3.0), (8, 15.0), (1, 16.0)]
        {
            assert_eq!(1.0 / sender(base, 0).0.gain(), divisor, "{base} ms");
        }
    }

    #[test]
    fn window_grows_by_gain_and_shrinks_in_proportion() {
        // Per round trip of 20 segments at a base of 100 ms: GAIN = 1/2. At a delay of 66 ms,
        // 1/2 - 20 x 0.1; at 120 ms it would be 1/2 - 20, of which at most half is taken.
        for (ms, change) in [(0, 0.5), (60, 0.5), (66, -1.5), (120, -10.0)] {
            let (l, w) = sender(100, ms);
            let moved = l.change(&w, 20 * MSS) / MSS as f64;
            assert!((moved - change).abs() < 1e-9, "{ms} ms: {moved}");
        }
    }

    #[test]
    fn first_slow_start_ends_at_three_quarters_of_the_target() {
        for (ms, ends) in [(45, false), (46, true)] {
            let (mut l, mut w) = sender(100, ms);
            l.phase = Phase::Start;
            l.update(&mut w, 2 * MSS, 40 * MSS);
            assert_eq!(l.phase == Phase::Start, !ends, "{ms} ms");
            if !ends {
                assert_eq!(w.cwnd, 21 * MSS, "half a segment per segment");
            } else {
                let slowdown_at = Time::ZERO + Span::ms(2 * 146);
                assert_eq!(l.phase, Phase::Avoidance { slowdown_at }, "two round trips later");
            }
        }
        let (mut l, w) = sender(100, 0);
        l.phase = Phase::Start;
        assert_eq!(l.on_congestion(Time(5), &w, 0, CongestionSignal::Loss), 10 * MSS);
        assert_eq!(l.phase, Phase::Avoidance { slowdown_at: Time(5) + Span::ms(200) });
    }

    #[test]
    fn slowdown_pauses_ramps_and_waits_nine_times_as_long() {
        let (mut l, mut w) = sender(100, 0);
        let ms = |ms| Time::ZERO + Span::ms(ms);
        l.phase = Phase::Avoidance { slowdown_at: ms(1_000) };
        let mut at = |l: &mut LedbatPp, t: u64, news: u64| {
            l.now = ms(t);
            l.update(&mut w, news * MSS, 40 * MSS);
            w.cwnd / MSS
        };
        assert_eq!(at(&mut l, 999, 1), 20);
        assert_eq!(at(&mut l, 1_000, 1), 2);
        assert!(l.slows_down());
        assert_eq!(at(&mut l, 1_199, 2), 2, "two round trips");
        assert_eq!(at(&mut l, 1_200, 2), 3, "GAIN = 1/2 per segment");
        assert_eq!(at(&mut l, 1_500, 30), 18);
        assert!(l.slows_down());
        assert_eq!(at(&mut l, 1_600, 6), 21);
        assert_eq!(l.phase, Phase::Avoidance { slowdown_at: ms(1_600 + 9 * 600) });
        assert!(!l.slows_down());
        l.params.slowdown = 0;
        l.avoid(Span::ZERO);
        assert_eq!(l.phase, Phase::Avoidance { slowdown_at: Time::NEVER });
    }

    #[test]
    fn the_window_exceeds_the_data_in_flight_by_at_most_a_segment() {
        // Half a segment per segment of four: 22, of which the flight allows 20.5 or none.
        for (flight, cwnd) in [(40 * MSS, 22_000), (19_500, 20_500), (5_000, 20_000)] {
            let (mut l, mut w) = sender(100, 0);
            l.phase = Phase::Start;
            l.update(&mut w, 4 * MSS, flight);
            assert_eq!(w.cwnd, cwnd, "{flight}");
        }
    }

    /// Two bytes of a window of 20 segments add 1/2 x 2 / 20 = 1/20 byte.
    #[test]
    fn fractions_of_a_byte_add_up() {
        let (mut l, mut w) = sender(100, 0);
        (0..50).for_each(|_| l.update(&mut w, 2, 40 * MSS));
        assert_eq!(w.cwnd, 20_002);
        assert!((l.rest - 0.5).abs() < 1e-3, "{}", l.rest);
    }

    #[test]
    fn a_loss_halves_the_window_and_what_a_slowdown_regains() {
        let (mut l, mut w) = sender(100, 0);
        let mut left = |w: &Window| l.on_congestion(Time(7), w, 0, CongestionSignal::Loss);
        assert_eq!(left(&w), 10 * MSS);
        w.cwnd = 3 * MSS;
        assert_eq!(left(&w), 2 * MSS);
        w.cwnd = MSS;
        assert_eq!(left(&w), MSS, "a loss never raises the window");
        let phases = [
            Phase::Avoidance { slowdown_at: Time(99) },
            Phase::Pause { since: Time(1), until: Time(99) },
            Phase::Ramp { since: Time(1) },
        ];
        for phase in phases {
            (l.phase, l.regained, l.rest) = (phase, 20 * MSS, 0.5);
            l.on_congestion(Time(7), &w, 0, CongestionSignal::Loss);
            assert_eq!((l.phase, l.regained, l.rest), (phase, 10 * MSS, 0.0));
        }
    }

    /// The round-trip time without a queue is 100 ms, the window 20 segments.
    #[test]
    fn acks_measure_the_delay_and_move_the_window_but_not_in_recovery() {
        let mut l = LedbatPp::of(LedbatPpParams::default());
        let mut w = Window { cwnd: 20 * MSS, ssthresh: u64::MAX, mss: MSS };
        let first = Delivery {
            seq: 1,
            bytes: MSS,
            sent: Time(1_000_000_000),
            rtt: Span::ms(100),
            flight: 18_800,
            state: RecoveryState::Open,
        };
        deliver(&mut l, &mut w, first);
        assert_eq!((l.queueing_delay(), w.cwnd), (Span::ZERO, 20_500), "slow start");
        assert_eq!((l.now, l.srtt), (Time(1_100_000_000), Span::ms(100)));
        for i in 1..5 {
            let (rtt, state) = (Span::ms(130), RecoveryState::Recovery);
            deliver(&mut l, &mut w, Delivery { seq: 1 + i * MSS, rtt, state, ..first });
        }
        assert_eq!((l.queueing_delay(), w.cwnd), (Span::ms(30), 20_500), "measured alone");
        let state = RecoveryState::Loss;
        deliver(&mut l, &mut w, Delivery { seq: 5_001, flight: 18_800, state, ..first });
        assert_eq!(w.cwnd, 20_800, "18.8 kB in flight, 1 kB delivered, and a segment");
        assert!(l.uses_delivery_hooks());
        l.reset();
        let fresh = LedbatPp::of(LedbatPpParams::default());
        assert_eq!(format!("{l:?}"), format!("{fresh:?}"));
    }
}
