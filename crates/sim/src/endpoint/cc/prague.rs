//! Prague: the L4S sender. Reduces the window by half of the marked fraction, as DCTCP does, but
//! counts marks exactly, grows between marks at a rate that does not depend on the round-trip time,
//! paces, and stays responsive below two segments per round trip.
//!
//! **Source**: TCP Prague of L4STeam for Linux, version 0.7 (`tcp_prague.c`), for the rules and
//! constants; RFC 9331 §4.3 and appendix A.1 for the requirements; RFC 9768 for the feedback.
//!
//! **Symbols**
//!
//! | Linux | here |
//! |---|---|
//! | frac_cwnd | W, `fraction`: window in segments |
//! | rate_bytes | R, `rate`: bytes on the wire per second |
//! | rtt_target | `virtual_rtt` |
//! | hsrtt_us | `slow_srtt`: average of srtt over 128 rounds |
//! | cwnd_mode | `by_rate` |
//!
//! F is the marked fraction of a round.
//!
//! **Algorithm**
//!
//! 1. Once per round trip, at least `virtual_rtt` long: alpha += g (F - alpha), after the first
//!    mark.
//! 2. A mark reduces W by W alpha / 2, the first one by W / 2 (if alpha begins with 0). The next
//!    reduction needs a mark on data sent after the last mark that was acted on, and `virtual_rtt`
//!    since the last reduction. A mark within that time reduces nothing but starts a new round trip
//!    of waiting, as the CWR state of Linux does: below 25 ms, every second round trip can reduce.
//! 3. Each segment that is delivered unmarked adds S/W segments of 1,500 B, also in the round trip
//!    of a reduction: W = 2 (1 - p) / p segments at a marking probability p. S is (srtt /
//!    `virtual_rtt`)^2 below `virtual_rtt`, otherwise 1, so that on shorter paths the rate grows as
//!    on one of `virtual_rtt`; from `transition` rounds outside of slow start on.
//! 4. In slow start, each segment that is delivered unmarked adds one, and W is the window. **So an
//!    ack that reports a marked segment and an unmarked one undoes the reduction**: slow start ends
//!    with an ack that reports marked segments alone. Behind a queue that marks few packets, such
//!    as CoDel's, a sender can thus pass several marks, and fill the queue for seconds. With
//!    `exit_at_mark` the first mark ends slow start in any case.
//! 5. A loss halves W, even if a mark has reduced it before; W does not grow until the loss is
//!    repaired. A timeout keeps the slow-start threshold.
//! 6. The window is max(2, W), rounded up, and moves by one segment per ack outside of slow start;
//!    a step down sets the slow-start threshold to it. The rate is max(W, data in flight) per srtt,
//!    doubled below half of the threshold.
//! 7. At a window of 6,000 B or less, after the first mark, R is in control: a mark reduces it by R
//!    alpha / 2, at least to `min_rate`, and each unmarked segment adds 1,500 B / N per
//!    `virtual_rtt`, where N is the number of segments per `virtual_rtt`, rounded up. W is what R
//!    sends per `slow_srtt`. The rate is 3 % higher in the first half of each round, and 3 % lower
//!    in the second.
//! 8. W and R grow only if the window was full in this round trip (in slow start: half full). The
//!    window is never full at less than one segment per round trip, since it is at least two: **a
//!    sender that marks have slowed down to `min_rate` stays there** until its round trip becomes
//!    longer.
//!
//! The bold parts are what Linux does, whether its authors intended it or not; its recordings in
//! reports/validation-senders.md show both.
//!
//! **Departures**: packets keep their size in rule 7 (Linux shrinks them to 150 B so that two fit
//! into 25 ms). Bursts are one segment (Linux: 244 us). The rate counts payload only, as in Linux
//! without the discipline `fq`. A spurious loss is not undone. There is no detection of a Classic
//! ECN queue, as in version 0.7; RFC 9331 §4.3 asks for one on the Internet. ECN is required: Linux
//! becomes Reno without it.
//!
//! **Cost**: one record per segment in flight.

use super::window_usage::WindowUsage;
use super::{
    CongestionControl, CongestionSignal, ControlParams, NewDataAck, ProcessedAck, RateEstimator,
    RecoveryState, SentSegment, TcpEntry, Window,
};
use crate::endpoint::common_params::{CommonParams, LossRecovery, Profile};
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::params;
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Rate, Span, Time};

params! {
    /// Parameters of [`Prague`].
    pub struct PragueParams {
        /// Weight of one round's marked fraction in the moving average.
        g: f64 = 0.0625, [1e-6 => 1.0], "g", [];
        /// Initial value of the moving average. With 0, the first mark halves the window.
        alpha: f64 = 0.0, [0.0 => 1.0], "alpha", ["initial_alpha"];
        /// Round-trip time below which the sender behaves as on a path of this one, so that it does
        /// not take more than flows on longer paths; 1ns turns this off.
        virtual_rtt: Span = Span::ms(25), [Span(1) => Span::s(1)], "RTT_virt", ["rtt_target"];
        /// If true, the first mark ends slow start, as its authors describe it; if false, an ack
        /// that reports unmarked segments as well does not end it, as in Linux.
        exit_at_mark: bool = false, [], "", [];
        /// Rounds outside of slow start before virtual_rtt is used.
        transition: u64 = 4, [0 => 1_000_000], "", [];
        /// Lower bound of the rate that marks can reach, on the wire.
        min_rate: Rate = Rate(100_000), [Rate(1_000) => Rate(1_000_000_000)], "", [];
    }
}

/// Entry in the list of TCPs.
pub(super) const TCP: TcpEntry = TcpEntry {
    name: "prague",
    aliases: &[],
    about: "L4S sender: reduces in proportion to counted marks, whatever the RTT; not in ns2",
    source: "TCP Prague of L4STeam for Linux, version 0.7; RFC 9331 §4",
    profile: Profile::Linux,
    recovery: LossRecovery::Sack,
    control: || ControlParams::Prague(PragueParams::default()),
};

/// Bytes that the window grows by per round trip, on the wire.
const GROWTH: f64 = 1_500.0;
/// Window at which the rate takes control, bytes on the wire.
const SMALL: u64 = 6_000;
/// Amplitude of the rate around its mean while the rate is in control.
const RIPPLE: f64 = 4.0 / 128.0;
/// Weight of a round in the slow average of the round-trip time.
const SLOW: f64 = 1.0 / 128.0;

/// Prague state.
#[derive(Clone, Debug, Snapshot)]
pub struct Prague {
    params: PragueParams,
    /// Bytes of a packet on the wire.
    packet: f64,
    rates: RateEstimator,
    /// W, segments.
    fraction: f64,
    /// R, bytes on the wire per second.
    rate: f64,
    /// True if R is in control, not W (rule 7).
    by_rate: bool,
    /// Window set last, bytes.
    cwnd: u64,
    usage: WindowUsage,
    alpha: f64,
    saw_mark: bool,
    /// Smoothed round-trip time and its slow average, s; 0 if unknown.
    srtt: f64,
    slow_srtt: f64,
    /// Cumulative ack, next sequence number, and newly marked bytes, of the current ack.
    feedback: (u64, u64, u64),
    /// Bytes delivered and marked in the round.
    round: (u64, u64),
    /// Sequence number that ends the round, and the start of the round.
    round_end: u64,
    round_at: Time,
    /// Rounds outside of slow start.
    rounds: u64,
    reduced_at: Option<Time>,
    /// True from a timeout to the next ack.
    timed_out: bool,
    /// Pacing rate, bytes of payload per second.
    pace: f64,
}

impl Prague {
    /// Creates a control for packets of `packet` bytes on the wire.
    pub fn of(params: PragueParams, packet: u64) -> Prague {
        Prague {
            packet: packet as f64,
            alpha: params.alpha,
            params,
            rates: RateEstimator::default(),
            fraction: 0.0,
            rate: 0.0,
            by_rate: false,
            cwnd: 0,
            usage: WindowUsage::default(),
            saw_mark: false,
            srtt: 0.0,
            slow_srtt: 0.0,
            feedback: (0, 0, 0),
            round: (0, 0),
            round_end: 0,
            round_at: Time::ZERO,
            rounds: 0,
            reduced_at: None,
            timed_out: false,
            pace: f64::INFINITY,
        }
    }

    /// Moving average of the marked fraction.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// Window W, segments; may be fractional and below two.
    pub fn fractional_window(&self) -> f64 {
        self.fraction
    }

    /// Smallest R, bytes per second.
    fn min_rate(&self) -> f64 {
        self.params.min_rate.0 as f64 / 8.0
    }

    /// max(RTT_virt, srtt), s.
    fn virtual_rtt(&self) -> f64 {
        self.srtt.max(self.params.virtual_rtt.as_secs())
    }

    /// True if RTT_virt is in use.
    fn is_rtt_independent(&self, window: &Window) -> bool {
        self.rounds >= self.params.transition && !window.is_in_slow_start()
    }

    /// R that sends W per round trip.
    fn rate_of_window(&self) -> f64 {
        (self.fraction * self.packet / self.srtt).max(self.min_rate())
    }

    /// W that R sends per slow round trip.
    fn window_of_rate(&self) -> f64 {
        self.rate * self.slow_srtt / self.packet
    }

    /// Reduces W or R by the fraction `share`.
    fn reduce(&mut self, by_rate: bool, share: f64, least: f64) {
        if by_rate {
            self.rate = (self.rate * (1.0 - share)).max(least);
            self.fraction = self.window_of_rate();
        } else {
            self.fraction *= 1.0 - share;
            self.rate = self.rate_of_window();
        }
    }

    /// Grows by `unmarked` segments in congestion avoidance (rules 3 and 7).
    fn grow_in_avoidance(&mut self, by_rate: bool, unmarked: f64) {
        if by_rate {
            let segments = (self.rate * self.virtual_rtt() / self.packet).ceil();
            self.rate += unmarked * GROWTH / self.virtual_rtt() / segments.max(1.0);
            self.fraction = self.fraction.max(self.window_of_rate());
        } else {
            let short = if self.rounds >= self.params.transition {
                (self.srtt / self.params.virtual_rtt.as_secs()).min(1.0)
            } else {
                1.0
            };
            let least = f64::MIN_POSITIVE;
            self.fraction +=
                unmarked * short * short * GROWTH / self.packet / self.fraction.max(least);
            self.rate = self.rate.max(self.rate_of_window());
        }
    }

    /// Grows by `unmarked` segments: in slow start up to the threshold (rule 4), then in congestion
    /// avoidance. Returns true if slow start took them all.
    fn grow(&mut self, window: &mut Window, unmarked: f64) -> bool {
        let mss = window.mss as f64;
        let room = window.ssthresh.saturating_sub(window.cwnd);
        let taken = room.min(cast::trunc((unmarked * mss).round()));
        if taken > 0 {
            window.cwnd += taken;
            self.cwnd = window.cwnd;
            self.fraction = self.cwnd as f64 / mss;
        }
        let left = unmarked - taken as f64 / mss;
        if left * mss < 0.5 {
            return taken > 0;
        }
        self.grow_in_avoidance(self.by_rate && self.is_rtt_independent(window), left);
        false
    }

    /// Moves the window by at most one segment towards W (rule 6).
    fn move_window(&mut self, window: &mut Window) {
        let target = cast::trunc(self.fraction.ceil()).max(2) * window.mss;
        if self.cwnd > target {
            self.cwnd = self.cwnd.saturating_sub(window.mss).max(target);
            window.ssthresh = self.cwnd;
        } else {
            self.cwnd = (self.cwnd + window.mss).min(target);
        }
        window.cwnd = self.cwnd;
    }

    /// Ends the round if its data is acknowledged and it is long enough (rule 1).
    fn end_round(&mut self, now: Time, window: &Window) {
        let short = now - self.round_at < self.params.virtual_rtt;
        let (ack, next, _) = self.feedback;
        if ack < self.round_end || short && self.is_rtt_independent(window) {
            return;
        }
        let (delivered, marked) = std::mem::take(&mut self.round);
        if self.saw_mark {
            let fraction = (marked as f64 / delivered.max(window.mss) as f64).min(1.0);
            self.alpha += self.params.g * (fraction - self.alpha);
            self.round_at = now;
        }
        self.slow_srtt += SLOW * (self.srtt - self.slow_srtt);
        self.round_end = next;
        self.rounds += u64::from(!window.is_in_slow_start());
    }

    /// Sets the pacing rate with `flight` bytes in flight, and lets W or R take control (rules 6
    /// and 7).
    fn set_rate(&mut self, now: Time, window: &Window, flight: u64) {
        if self.srtt <= 0.0 {
            return;
        }
        if self.by_rate && self.is_rtt_independent(window) {
            let early = 2.0 * (now - self.round_at).as_secs() < self.virtual_rtt();
            self.pace = self.rate * if early { 1.0 + RIPPLE } else { 1.0 - RIPPLE };
        } else {
            let segments = self.fraction.floor().max(flight as f64 / window.mss as f64);
            self.rate = (segments * self.packet / self.srtt).max(self.min_rate());
            self.pace = self.rate;
        }
        if 2 * window.cwnd < window.ssthresh {
            self.pace *= 2.0;
        }
        let wire = self.cwnd / window.mss * cast::trunc(self.packet);
        self.by_rate = self.saw_mark && wire <= SMALL;
        if self.by_rate {
            self.fraction = self.window_of_rate();
        } else {
            self.rate = self.rate_of_window();
        }
    }
}

impl CongestionControl for Prague {
    type Params = PragueParams;

    fn new(params: &PragueParams, common: &CommonParams, _: &mut dyn Random) -> Prague {
        Prague::of(params.clone(), common.packet.0)
    }

    fn reset(&mut self) {
        let mut rates = std::mem::take(&mut self.rates);
        rates.reset();
        let fresh = Prague::of(self.params.clone(), 1);
        *self = Prague { rates, packet: self.packet, ..fresh };
    }

    fn on_ack(&mut self, _: &mut Window, _: &NewDataAck) {}

    fn on_congestion(
        &mut self,
        now: Time,
        window: &Window,
        _: u64,
        cause: CongestionSignal,
    ) -> u64 {
        let independent = self.is_rtt_independent(window);
        let by_rate = self.by_rate && independent;
        if cause == CongestionSignal::Mark {
            let early = self.reduced_at.is_some_and(|at| now - at < self.params.virtual_rtt);
            if !(early && independent) {
                self.reduced_at = Some(now);
                self.reduce(by_rate, self.alpha / 2.0, self.min_rate());
            }
            return window.ssthresh.max(window.cwnd);
        }
        self.reduce(by_rate, 0.5, 0.0);
        if cause == CongestionSignal::Timeout {
            self.timed_out = true;
            return window.ssthresh;
        }
        cast::trunc(self.fraction.ceil()).max(2) * window.mss
    }

    fn reacts_to_mark_fraction(&self) -> bool {
        true
    }

    fn reduces_for_loss_after_mark(&self) -> bool {
        true
    }

    fn keeps_window_when_idle(&self) -> bool {
        true
    }

    fn on_established(&mut self, now: Time, window: &Window, rtt: Option<Span>) {
        (self.fraction, self.cwnd) = (window.cwnd as f64 / window.mss as f64, window.cwnd);
        self.srtt = rtt.map_or(0.0, Span::as_secs);
        (self.slow_srtt, self.round_at) = (self.srtt, now);
        self.set_rate(now, window, 0);
    }

    fn on_ecn_feedback(&mut self, ack: u64, _: u64, marked: u64, next: u64) {
        self.feedback = (ack, next, marked);
    }

    fn on_delivered(&mut self, now: Time, from: u64, to: u64) {
        self.rates.on_delivered(now, from, to);
    }

    fn on_ack_processed(&mut self, window: &mut Window, ack: &ProcessedAck) {
        let sample = self.rates.take_sample(ack.now);
        if let Some(rtt) = sample.and_then(|s| s.longest_rtt) {
            let rtt = rtt.as_secs();
            self.srtt = if self.srtt > 0.0 { self.srtt + (rtt - self.srtt) / 8.0 } else { rtt };
            if self.slow_srtt <= 0.0 {
                self.slow_srtt = rtt;
            }
        }
        if std::mem::take(&mut self.timed_out) {
            self.cwnd = window.cwnd; // from there a segment per ack
        }
        window.cwnd = self.cwnd;
        let news = sample.map_or(0, |s| s.news);
        let marked = std::mem::take(&mut self.feedback.2);
        self.round = (self.round.0 + news, self.round.1 + marked);
        if marked > 0 && !self.saw_mark {
            self.saw_mark = true;
            self.fraction *= if self.params.alpha == 0.0 { 0.5 } else { 1.0 };
        }
        let unmarked = news.saturating_sub(marked) as f64 / window.mss as f64;
        let open = ack.state == RecoveryState::Open && self.usage.allows_growth(window);
        let exits = marked > 0 && self.params.exit_at_mark && window.is_in_slow_start();
        let unmarked = if open && !exits { unmarked } else { 0.0 };
        if !self.grow(window, unmarked) {
            self.move_window(window);
        }
        self.end_round(ack.now, window);
        self.set_rate(ack.now, window, ack.flight);
        let (una, next, _) = self.feedback;
        if ack.flight >= window.cwnd {
            self.usage.update(true, una, next, ack.flight);
        }
    }

    fn on_sent(&mut self, sent: &SentSegment) {
        self.rates.on_sent(sent);
        let flight = self.rates.in_flight();
        let una = self.feedback.0;
        self.usage.update(flight >= self.cwnd, una, sent.end, flight);
    }

    fn own_pacing_rate(&self) -> Option<f64> {
        Some(self.pace)
    }

    fn paces_bursts(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
