//! Round-trip time estimation and retransmission timeout: RFC 6298, Linux and ns-2.

use super::params::{CommonParams, resolved};
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::units::{Span, Time};

/// Bounds of the retransmission timeout: `min <= initial <= max`.
#[derive(Clone, Copy, Debug, Snapshot)]
pub(super) struct RtoBounds {
    /// Minimum, before backoff.
    pub min: Span,
    /// Maximum, after backoff.
    pub max: Span,
    /// Clock granularity (the RFC's G, ns-2's tick).
    pub tick: Span,
    /// Value before the first sample.
    pub initial: Span,
}

impl RtoBounds {
    /// Bounds in `s`, already ordered by [`super::parse`].
    pub(super) fn of(s: &CommonParams) -> RtoBounds {
        let (min, initial) = (resolved(s.rto_min), resolved(s.rto_initial));
        RtoBounds { min, max: s.rto_max, tick: resolved(s.tick), initial }
    }
}

/// Estimator of RFC 6298, in nanoseconds; with `linux`, the estimator of Linux.
#[derive(Clone, Debug, Snapshot)]
pub(super) struct RttEstimator {
    bounds: RtoBounds,
    srtt: Option<Span>,
    rttvar: Span,
    rto: Span,
    linux: Option<LinuxVariance>,
}

/// Deviation of the round-trip time in Linux, times four (`tcp_rtt_estimator`).
#[derive(Clone, Copy, Debug, Default, Snapshot)]
struct LinuxVariance {
    now: u64,
    /// Largest value in this round trip, at least the minimum timeout, and what is added to the
    /// smoothed round-trip time.
    most: u64,
    used: u64,
    /// Sequence number that ends the round trip.
    until: u64,
}

impl LinuxVariance {
    /// Adds a sample that is `above` the smoothed round-trip time, or below it if negative.
    fn add(&mut self, above: i64, una: u64, next: u64, least: u64) {
        let mut change = above.abs() - (self.now / 4).cast_signed();
        if above < 0 && change > 0 {
            change /= 8; // a shorter round trip is no reason for a longer timeout
        }
        self.now = self.now.saturating_add_signed(change);
        self.most = self.most.max(self.now);
        self.used = self.used.max(self.most);
        if una > self.until {
            self.used -= (self.used - self.most) / 4;
            (self.until, self.most) = (next, least);
        }
    }
}

impl RttEstimator {
    /// Creates an estimator of RFC 6298 without samples.
    pub(super) fn new(bounds: RtoBounds) -> RttEstimator {
        let rto = bounds.initial;
        RttEstimator { bounds, srtt: None, rttvar: Span::ZERO, rto, linux: None }
    }

    /// Creates an estimator of Linux without samples.
    pub(super) fn linux(bounds: RtoBounds) -> RttEstimator {
        RttEstimator { linux: Some(LinuxVariance::default()), ..RttEstimator::new(bounds) }
    }

    /// Discards all samples.
    pub(super) fn reset(&mut self) {
        let linux = self.linux.map(|_| LinuxVariance::default());
        *self = RttEstimator { linux, ..RttEstimator::new(self.bounds) };
    }

    /// True if every ack gives a sample.
    pub(super) fn is_per_ack(&self) -> bool {
        self.linux.is_some()
    }

    /// Adds an RTT sample; ends any backoff (§2, §5 after 5.7).
    pub(super) fn sample(&mut self, r: Span) {
        let srtt = match self.srtt {
            None => {
                self.rttvar = Span(r.0 / 2); // (2.2)
                r.0
            }
            Some(Span(srtt)) => {
                self.rttvar = Span((3 * self.rttvar.0 + srtt.abs_diff(r.0)) / 4); // (2.3)
                (7 * srtt + r.0) / 8
            }
        };
        self.srtt = Some(Span(srtt));
        self.set_rto(srtt + self.bounds.tick.0.max(4 * self.rttvar.0)); // (2.4), (2.5)
    }

    /// Adds the sample of an ack of everything below `una`; `next` is the next sequence number to
    /// send.
    pub(super) fn sample_per_ack(&mut self, r: Span, una: u64, next: u64) {
        let least = self.bounds.min.0;
        let variance = self.linux.get_or_insert_default();
        let srtt = match self.srtt {
            None => {
                let first = (2 * r.0).max(least);
                *variance = LinuxVariance { now: 2 * r.0, most: first, used: first, until: next };
                r.0
            }
            Some(Span(srtt)) => {
                variance.add(r.0.cast_signed() - srtt.cast_signed(), una, next, least);
                (7 * srtt + r.0) / 8
            }
        };
        let used = variance.used;
        self.srtt = Some(Span(srtt));
        self.set_rto(srtt + used);
    }

    fn set_rto(&mut self, rto: u64) {
        self.rto = Span(rto.clamp(self.bounds.min.0, self.bounds.max.0));
    }

    /// Smoothed round-trip time, once there is a sample.
    pub(super) fn srtt(&self) -> Option<Span> {
        self.srtt
    }

    /// Current timeout.
    pub(super) fn rto(&self) -> Span {
        self.rto
    }

    /// Clock granularity.
    pub(super) fn tick(&self) -> Span {
        self.bounds.tick
    }

    /// Minimum timeout.
    pub(super) fn min(&self) -> Span {
        self.bounds.min
    }

    /// Doubles the timeout (5.5).
    pub(super) fn back_off(&mut self) {
        self.rto = Span(self.rto.0.saturating_mul(2).min(self.bounds.max.0));
    }

    /// Sets the timeout for data after a lost SYN: 3 s (5.7) or `initial`, whichever is longer, at
    /// most `max`.
    pub(super) fn set_after_lost_syn(&mut self) {
        self.rto = Span::s(3).max(self.bounds.initial).min(self.bounds.max);
    }
}

/// Estimator of ns-2.35: whole ticks, smoothed values scaled by powers of two, and a backoff factor
/// kept separately from the timeout.
#[derive(Clone, Debug, Snapshot)]
pub(super) struct Ns2RttEstimator {
    bounds: RtoBounds,
    /// Offset of the start of the run within a clock tick, ns.
    phase: u64,
    /// Eight times the smoothed round-trip time, in ticks; 0 before the first sample.
    s8: i64,
    /// Four times the mean deviation, in ticks.
    v4: i64,
    /// Timeout before minimum and backoff.
    base: Span,
    backoff: u32,
}

impl Ns2RttEstimator {
    /// Backoff factor above which ns-2 discards the smoothed RTT.
    const TRUSTED: u32 = 8;
    /// Backoff factor below which backoff always doubles.
    const DOUBLES: u32 = 64;

    /// Creates an estimator without samples; `phase` in [0, 1) is the clock offset in ticks.
    pub(super) fn new(bounds: RtoBounds, phase: f64) -> Ns2RttEstimator {
        let phase = cast::trunc(phase * bounds.tick.0 as f64);
        Ns2RttEstimator { bounds, phase, s8: 0, v4: 0, base: bounds.initial, backoff: 1 }
    }

    /// Discards all samples; keeps the clock phase.
    pub(super) fn reset(&mut self) {
        *self = Ns2RttEstimator { s8: 0, v4: 0, base: self.bounds.initial, backoff: 1, ..*self };
    }

    /// Adds an RTT sample: a packet sent at `sent` was acknowledged at `now`. Measured in clock
    /// ticks.
    pub(super) fn sample(&mut self, sent: Time, now: Time) {
        let tick = self.bounds.tick.0;
        let into_tick = (sent.0 + self.phase) % tick;
        let m = (((now - sent).0 + into_tick) / tick).max(1).cast_signed();
        if self.s8 == 0 {
            (self.s8, self.v4) = (8 * m, 2 * m);
        } else {
            let d = m - (self.s8 >> 3);
            self.s8 = (self.s8 + d).max(1);
            self.v4 = (self.v4 + d.abs() - (self.v4 >> 2)).max(1);
        }
        self.base = Span((((self.v4 << 3) + self.s8) >> 3).cast_unsigned() * tick);
    }

    /// Current timeout: the minimum applies before backoff, the lower bound of two ticks after it.
    pub(super) fn rto(&self) -> Span {
        let RtoBounds { min, max, tick, .. } = self.bounds;
        let backed_off = self.base.0.max(min.0).saturating_mul(u64::from(self.backoff));
        Span(backed_off.min(max.0).max(2 * tick.0))
    }

    /// Doubles the backoff factor while that changes the timeout.
    pub(super) fn back_off(&mut self) {
        if self.backoff < Ns2RttEstimator::DOUBLES || self.rto() < self.bounds.max {
            self.backoff = self.backoff.saturating_mul(2);
        }
        if self.backoff > Ns2RttEstimator::TRUSTED {
            self.v4 += self.s8 >> 3;
            self.s8 = 0;
        }
    }

    /// Resets the backoff factor.
    pub(super) fn reset_backoff(&mut self) {
        self.backoff = 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: RtoBounds =
        RtoBounds { min: Span::ms(200), max: Span::s(60), tick: Span::ms(10), initial: Span::s(3) };

    fn ticks(bounds: RtoBounds) -> Ns2RttEstimator {
        Ns2RttEstimator::new(bounds, 0.0)
    }

    /// By hand, in ms: the first sample of 40 gives 4 d = 80 and V = 200 (the minimum).
    #[test]
    fn linux_adds_at_least_the_minimum_to_the_smoothed_round_trip() {
        let mut t = RttEstimator::linux(RtoBounds { initial: Span::s(1), ..BOUNDS });
        assert!(t.is_per_ack() && t.rto() == Span::s(1));
        t.sample_per_ack(Span::ms(40), 1, 100);
        assert_eq!((t.srtt(), t.rto()), (Some(Span::ms(40)), Span::ms(240)));
        // 120 is 80 above: srtt 50, 4 d = 80 + 80 - 20 = 140: V stays.
        t.sample_per_ack(Span::ms(120), 50, 100);
        assert_eq!((t.srtt(), t.rto()), (Some(Span::ms(50)), Span::ms(250)));
        // 450 is 400 above: srtt 100, 4 d = 140 + 400 - 35 = 505.
        t.sample_per_ack(Span::ms(450), 60, 100);
        assert_eq!((t.srtt(), t.rto()), (Some(Span::ms(100)), Span::ms(605)));
        // 20 is 80 below, less than d: srtt 90, 4 d = 505 + 80 - 126.25 = 458.75; V is the most.
        t.sample_per_ack(Span::ms(20), 100, 100);
        assert_eq!((t.srtt(), t.rto()), (Some(Span::ms(90)), Span::ms(595)));
        t.reset();
        assert!(t.is_per_ack() && t.srtt().is_none() && t.rto() == Span::s(1));
    }

    /// The variance falls by a quarter per round trip towards the largest of that round trip.
    #[test]
    fn variance_of_linux_falls_once_per_round_trip() {
        let mut t = RttEstimator::linux(BOUNDS);
        t.sample_per_ack(Span::ms(200), 1, 10);
        assert_eq!(t.rto(), Span::ms(600), "4 d = V = 400");
        // No deviation: 4 d falls by a quarter per sample, V only with an ack beyond 10.
        t.sample_per_ack(Span::ms(200), 10, 20);
        assert_eq!(t.rto(), Span::ms(600));
        t.sample_per_ack(Span::ms(200), 11, 30);
        assert_eq!(t.rto(), Span::ms(600), "the most of this round trip was 400");
        t.sample_per_ack(Span::ms(200), 31, 40);
        assert_eq!(t.rto(), Span::ms(550), "then 200, the minimum: 400 - (400 - 200) / 4");
        t.back_off();
        assert_eq!(t.rto(), Span::ms(1_100));
        t.sample_per_ack(Span::ms(200), 32, 40);
        assert_eq!(t.rto(), Span::ms(550), "a sample ends the backoff");
    }

    /// A round trip that is shorter by more than d raises 4 d by an eighth of the excess only.
    #[test]
    fn a_shorter_round_trip_hardly_raises_the_variance_of_linux() {
        let mut v = LinuxVariance { now: 80, most: 80, used: 80, until: 9 };
        v.add(-100, 1, 9, 0);
        assert_eq!(v.now, 90, "80 + (100 - 20) / 8");
        v.add(100, 1, 9, 0);
        assert_eq!((v.now, v.used), (168, 168), "90 + 100 - 22");
        v.add(-10, 1, 9, 0);
        assert_eq!((v.now, v.used), (136, 168), "168 + 10 - 42");
    }

    #[test]
    fn ns2_golden_values_at_100_ms() {
        // Constant RTT of 100 ms, ticks of 10 ms: 0.30 s after the first sample, 0.13 s in steady
        // state.
        let mut t = ticks(BOUNDS);
        t.sample(Time::ZERO, Time(100_000_000));
        assert_eq!((t.s8, t.v4, t.base), (80, 20, Span::ms(300)));
        (0..50).for_each(|_| t.sample(Time::ZERO, Time(100_000_000)));
        assert_eq!((t.s8, t.v4, t.base), (80, 3, Span::ms(130)));
        assert_eq!(t.rto(), Span::ms(200));
    }

    #[test]
    fn ns2_phase_can_add_a_tick() {
        let mut t = Ns2RttEstimator::new(BOUNDS, 0.6);
        t.sample(Time(0), Time(95_000_000)); // 6 ms into the first tick, 101 ms later
        assert_eq!(t.s8, 80);
        let mut t = ticks(BOUNDS);
        t.sample(Time(0), Time(95_000_000));
        assert_eq!(t.s8, 72);
    }

    #[test]
    fn ns2_timeout_is_at_least_two_ticks() {
        // A minimum of 10 ms becomes 20 ms, and any shorter round trip counts as one tick.
        let mut t = ticks(RtoBounds { min: Span::ms(10), ..BOUNDS });
        t.sample(Time(0), Time(300_000));
        assert_eq!((t.s8, t.v4), (8, 2));
        (0..50).for_each(|_| t.sample(Time(0), Time(300_000)));
        assert_eq!(t.rto(), Span::ms(20).max(t.base));
        let mut fine = ticks(RtoBounds { min: Span::ms(10), tick: Span::us(100), ..BOUNDS });
        (0..50).for_each(|_| fine.sample(Time(0), Time(300_000)));
        assert_eq!(fine.rto(), Span::ms(10));
    }

    #[test]
    fn ns2_backs_off_to_the_cap_and_discards_the_rtt() {
        let mut t = ticks(BOUNDS);
        (0..60).for_each(|_| t.sample(Time::ZERO, Time(100_000_000)));
        let rtos: Vec<u64> = (0..11)
            .map(|_| {
                t.back_off();
                t.rto().0 / 1_000_000
            })
            .collect();
        assert_eq!(rtos, [400, 800, 1600, 3200, 6400, 12800, 25600, 51200, 60_000, 60_000, 60_000]);
        assert_eq!((t.s8, t.v4), (0, 13), "added to the deviation, once");
        t.sample(Time::ZERO, Time(100_000_000));
        assert_eq!((t.s8, t.v4), (80, 20), "reinitialised by the next sample");
    }

    #[test]
    fn rfc_golden_values_at_100_ms() {
        let mut r = RttEstimator::new(RtoBounds { min: Span::ms(1), tick: Span::ms(1), ..BOUNDS });
        assert_eq!(r.rto(), Span::s(3));
        r.sample(Span::ms(100));
        assert_eq!(r.rto(), Span::ms(300));
        r.sample(Span::ms(180));
        // rttvar = 3/4*50 + 1/4*80 = 57.5 ms with the old srtt, then srtt = 110 ms.
        assert_eq!((r.srtt, r.rttvar), (Some(Span::ms(110)), Span::us(57_500)));
        assert_eq!(r.rto(), Span::ms(340));
        (0..400).for_each(|_| r.sample(Span::ms(110)));
        assert_eq!(r.rto(), Span::ms(111), "srtt + G at zero variance");
    }

    #[test]
    fn rfc_backs_off_to_the_cap_and_a_sample_ends_it() {
        let mut r = RttEstimator::new(RtoBounds { initial: Span::s(1), min: Span::s(1), ..BOUNDS });
        let rtos: Vec<u64> = (0..8)
            .map(|_| {
                r.back_off();
                r.rto().0 / 1_000_000_000
            })
            .collect();
        assert_eq!(rtos, [2, 4, 8, 16, 32, 60, 60, 60]);
        r.sample(Span::ms(100));
        assert_eq!(r.rto(), Span::s(1));
    }

    #[test]
    fn rfc_lost_syn_starts_data_at_three_seconds() {
        let mut r = RttEstimator::new(RtoBounds { initial: Span::s(1), ..BOUNDS });
        r.back_off();
        r.set_after_lost_syn();
        assert_eq!(r.rto(), Span::s(3));
        let half = Span::ms(500);
        let mut r = RttEstimator::new(RtoBounds { min: half, initial: half, max: half, ..BOUNDS });
        r.set_after_lost_syn();
        assert_eq!(r.rto(), half);
    }

    #[test]
    fn ns2_distrusts_the_estimate_from_a_backoff_of_16_on() {
        let mut t = ticks(BOUNDS);
        t.sample(Time::ZERO, Time(100_000_000));
        let smoothed: Vec<i64> = (0..4)
            .map(|_| {
                t.back_off();
                t.s8
            })
            .collect();
        assert_eq!(smoothed, [80, 80, 80, 0], "2, 4 and 8 leave it, 16 does not");
    }

    #[test]
    fn ns2_backs_off_to_64_although_the_timeout_is_at_its_cap() {
        let mut t = ticks(RtoBounds { min: Span::ms(10), max: Span::s(10), ..BOUNDS });
        t.sample(Time::ZERO, Time(10_000_000_000));
        assert_eq!(t.rto(), Span::s(10), "three round trips are more");
        (0..8).for_each(|_| t.back_off());
        // The next round trip is one tick: three ticks of 10 ms, 64 times.
        t.sample(Time::ZERO, Time(1_000_000));
        assert_eq!(t.rto(), Span::ms(64 * 30));
    }

    #[test]
    fn ns2_timeout_is_two_ticks_at_least_whatever_the_cap() {
        let initial = Span::ms(15);
        let mut t = ticks(RtoBounds { min: Span::ms(10), max: initial, initial, ..BOUNDS });
        assert_eq!(t.rto(), Span::ms(20));
        t.sample(Time::ZERO, Time(1_000_000));
        t.back_off();
        assert_eq!(t.rto(), Span::ms(20));
    }

    #[test]
    fn a_reset_leaves_the_estimator_as_new() {
        let mut ticks = Ns2RttEstimator::new(BOUNDS, 0.6);
        ticks.sample(Time::ZERO, Time(95_000_000));
        ticks.back_off();
        ticks.reset();
        assert_eq!(format!("{ticks:?}"), format!("{:?}", Ns2RttEstimator::new(BOUNDS, 0.6)));
        let mut rfc = RttEstimator::new(BOUNDS);
        rfc.sample(Span::ms(100));
        rfc.back_off();
        rfc.reset();
        assert_eq!(format!("{rfc:?}"), format!("{:?}", RttEstimator::new(BOUNDS)));
    }
}
