//! BBR, version 1: segments leave at the rate at which the path was seen to deliver, and the window
//! holds twice what fits into its shortest round trip.
//!
//! **Source**: N. Cardwell, Y. Cheng, C. S. Gunn, S. H. Yeganeh, V. Jacobson, "BBR:
//! Congestion-Based Congestion Control", ACM Queue 14(5), 2016; draft-cardwell-iccrg-bbr-00;
//! transport.md section 13.1 for the constants of the code its authors run.
//!
//! **Symbols** `BtlBw` (`bw`), `RTprop`, `pacing_gain`, `cwnd_gain`, `full_bw`, `prior_cwnd`.
//!
//! **Departures**: no estimator of policers and no credit for aggregated acks. The phase in which
//! probing starts is drawn once per sender; later ones follow it by the golden section. A loss is
//! known once per recovery. Marks mean nothing to it, so ECN is refused. The sender of its authors
//! finds a lost retransmission by time (RACK); ours, as RFC 6675 has it, by a timeout, so under
//! heavy random loss (1 % and more) it falls far behind theirs.

use super::bbr_filter::WindowedMax;
use super::{Acked, Cause, Control, Rates, Sample, Sent, Settled, State, Window};
use crate::tcp::TcpParams;
use sojourn_aqm::cast;
use sojourn_aqm::dice::Dice;
use sojourn_aqm::params;
use sojourn_aqm::units::{Span, Time};

params! {
    /// Parameters of [`Bbr`].
    pub struct BbrParams {
        /// Gain of rate and window at the start: 2/ln 2 doubles the rate per round trip.
        startup_gain: f64 = 2.885, [1.0 => 10.0], "BBRHighGain", ["high_gain"];
        /// Window in products of bandwidth and delay while probing.
        cwnd_gain: f64 = 2.0, [1.0 => 10.0], "cwnd_gain", [];
        /// Share of the estimate at which segments leave, so that queues drain.
        margin: f64 = 0.99, [0.5 => 1.0], "", ["pacing_margin"];
        /// Round trips over which the bandwidth is the largest sample.
        bw_rounds: u64 = 10, [1 => 1000], "BtlBwFilterLen", [];
        /// Time over which the round trip is the shortest sample.
        rtprop_window: Span = Span::s(10), [Span::ms(1) => Span::s(1000)], "RTpropFilterLen", [];
        /// How long the window is kept small to see the shortest round trip.
        probe_rtt: Span = Span::ms(200), [Span(1) => Span::s(10)], "ProbeRTTDuration", [];
    }
}

/// What BBR is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Doubling the rate until that no longer helps.
    Startup,
    /// Draining the queue that this made.
    Drain,
    /// Cruising, with a probe for more in every eighth round trip.
    ProbeBw,
    /// A small window, to see the path without a queue.
    ProbeRtt,
}

/// Pacing gains while probing, one per shortest round trip.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// The path is full when the rate has grown by less than this, so many rounds in a row.
const FULL: (f64, u32) = (1.25, 3);
/// Segments of the smallest window.
const LEAST: u64 = 4;
/// Segments beyond the product, so that delayed acks and timers do not starve it.
const EXTRA: f64 = 3.0;
/// The fractional part of the golden ratio.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// The state of BBR.
#[derive(Clone, Debug)]
pub struct Bbr {
    params: BbrParams,
    rates: Rates,
    mode: Mode,
    bw: WindowedMax,
    /// Rounds so far, what must be delivered before the next, and whether this ack began one.
    round: u64,
    round_end: u64,
    round_start: bool,
    rtprop: Option<Span>,
    rtprop_at: Time,
    /// Bytes per second at which segments leave.
    pacing_rate: f64,
    full_bw: f64,
    full_rounds: u32,
    phase: usize,
    phase_at: Time,
    /// ProbeRtt: when it may end, and whether a round has passed.
    probe_until: Option<Time>,
    probe_round: bool,
    /// Packet conservation in the first round of a recovery.
    conserves: bool,
    prior_cwnd: u64,
    was: State,
    /// Whether a loss was found since the last ack.
    lost: bool,
    /// Whether it has begun to send again after a silence.
    restarted: bool,
    initial_window: u64,
    /// What the next draw of a phase is, in [0, 1).
    draw: f64,
}

impl Bbr {
    /// A control with its parameters; `draw` in [0, 1) decides where probing starts.
    pub fn of(params: BbrParams, draw: f64) -> Bbr {
        Bbr {
            rates: Rates::default(),
            mode: Mode::Startup,
            bw: WindowedMax::new(params.bw_rounds),
            params,
            round: 0,
            round_end: 0,
            round_start: false,
            rtprop: None,
            rtprop_at: Time::ZERO,
            pacing_rate: f64::INFINITY,
            full_bw: 0.0,
            full_rounds: 0,
            phase: 0,
            phase_at: Time::ZERO,
            probe_until: None,
            probe_round: false,
            conserves: false,
            prior_cwnd: 0,
            was: State::Open,
            lost: false,
            restarted: false,
            initial_window: 0,
            draw,
        }
    }

    /// What it is doing.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The rate at which segments leave, bytes of payload per second.
    pub fn pacing_rate(&self) -> f64 {
        self.pacing_rate
    }

    /// The estimate of the bottleneck's rate, bytes of payload per second.
    pub fn bandwidth(&self) -> f64 {
        self.bw.get()
    }

    /// The estimate of the path's delay.
    pub fn rtprop(&self) -> Option<Span> {
        self.rtprop
    }

    /// The gain of the rate now.
    pub fn pacing_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup => self.params.startup_gain,
            Mode::Drain => 1.0 / self.params.startup_gain,
            Mode::ProbeBw => CYCLE[self.phase],
            Mode::ProbeRtt => 1.0,
        }
    }

    fn cwnd_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup | Mode::Drain => self.params.startup_gain,
            Mode::ProbeBw => self.params.cwnd_gain,
            Mode::ProbeRtt => 1.0,
        }
    }

    fn full(&self) -> bool {
        self.full_rounds >= FULL.1
    }

    /// `gain` products of bandwidth and delay, and a little more, in bytes.
    fn inflight(&self, gain: f64, mss: u64) -> u64 {
        match self.rtprop {
            Some(rtt) if self.bw.get() > 0.0 => {
                cast::trunc(gain * self.bw.get() * rtt.as_secs() + EXTRA * mss as f64)
            }
            _ => cast::trunc(gain * self.initial_window as f64),
        }
    }

    /// Rounds and bandwidth.
    fn learn_rate(&mut self, s: &Sample) {
        self.round_start = s.prior_delivered >= self.round_end;
        if self.round_start {
            self.round_end = self.rates.delivered();
            self.round += 1;
            self.conserves = false;
        }
        // A sample over less than a round trip shows a burst of acks, not the path.
        let long = s.interval.0 > 0 && self.rtprop.is_none_or(|rtt| s.interval >= rtt);
        if long && (!s.starved || s.rate >= self.bw.get()) {
            self.bw.add(self.round, s.rate);
        }
    }

    /// ProbeBw: on to the next gain when this one has had its time.
    fn cycle(&mut self, now: Time, prior_flight: u64, mss: u64, lost: bool) {
        let gain = self.pacing_gain();
        let due = self.rtprop.is_some_and(|rtt| now - self.phase_at > rtt);
        let next = if gain > 1.0 {
            due && (lost || prior_flight >= self.inflight(gain, mss))
        } else if gain < 1.0 {
            due || prior_flight <= self.inflight(1.0, mss)
        } else {
            due
        };
        if next {
            (self.phase, self.phase_at) = ((self.phase + 1) % CYCLE.len(), now);
        }
    }

    /// Whether Startup has filled the path.
    fn check_full(&mut self, s: &Sample) {
        if self.full() || !self.round_start || s.starved {
            return;
        }
        if self.bw.get() >= self.full_bw * FULL.0 {
            (self.full_bw, self.full_rounds) = (self.bw.get(), 0);
        } else {
            self.full_rounds += 1;
        }
    }

    fn enter_probe_bw(&mut self, now: Time) {
        // Any phase but the second.
        let drawn = cast::index(cast::trunc(self.draw * 7.0));
        self.draw = (self.draw + GOLDEN) % 1.0;
        (self.mode, self.phase_at) = (Mode::ProbeBw, now);
        self.phase = if drawn == 0 { 0 } else { drawn + 1 };
    }

    /// The shortest round trip, and ProbeRtt when it has not been seen for long.
    fn learn_rtprop(&mut self, now: Time, rtt: Option<Span>, window: &mut Window, flight: u64) {
        let expired = now > self.rtprop_at + self.params.rtprop_window;
        if let Some(rtt) = rtt.filter(|rtt| expired || self.rtprop.is_none_or(|old| *rtt <= old)) {
            (self.rtprop, self.rtprop_at) = (Some(rtt), now);
        }
        if expired && !self.restarted && self.mode != Mode::ProbeRtt {
            self.save(window);
            (self.mode, self.probe_until) = (Mode::ProbeRtt, None);
        }
        if self.mode != Mode::ProbeRtt {
            return;
        }
        self.rates.starve(flight); // a small window shows nothing of the bandwidth
        match self.probe_until {
            None if flight <= LEAST * window.mss => {
                self.probe_until = Some(now + self.params.probe_rtt);
                (self.probe_round, self.round_end) = (false, self.rates.delivered());
            }
            None => {}
            Some(until) => {
                self.probe_round |= self.round_start;
                if self.probe_round && now >= until {
                    self.rtprop_at = now;
                    window.cwnd = window.cwnd.max(self.prior_cwnd);
                    if self.full() {
                        self.enter_probe_bw(now);
                    } else {
                        self.mode = Mode::Startup;
                    }
                }
            }
        }
    }

    fn save(&mut self, window: &Window) {
        let usual = self.was == State::Open && self.mode != Mode::ProbeRtt;
        self.prior_cwnd = if usual { window.cwnd } else { self.prior_cwnd.max(window.cwnd) };
    }

    fn set_window(&mut self, window: &mut Window, ack: &Settled, news: u64) {
        let before = std::mem::replace(&mut self.was, ack.state);
        if ack.state == State::Recovery && before != State::Recovery {
            (self.conserves, self.round_end) = (true, self.rates.delivered());
            window.cwnd = ack.flight + news;
        } else if ack.state == State::Open && before != State::Open {
            self.conserves = false;
            window.cwnd = window.cwnd.max(self.prior_cwnd);
        }
        if self.conserves {
            window.cwnd = window.cwnd.max(ack.flight + news);
        } else {
            let target = self.inflight(self.cwnd_gain(), window.mss);
            if self.full() {
                window.cwnd = (window.cwnd + news).min(target);
            } else if window.cwnd < target || self.rates.delivered() < self.initial_window {
                window.cwnd += news;
            }
            window.cwnd = window.cwnd.max(LEAST * window.mss);
        }
        if self.mode == Mode::ProbeRtt {
            window.cwnd = window.cwnd.min(LEAST * window.mss);
        }
        window.cwnd = window.cwnd.max(window.mss);
    }
}

impl Control for Bbr {
    fn new(params: &TcpParams, dice: &mut dyn Dice) -> Bbr {
        let super::Choice::Bbr(own) = &params.control else { unreachable!("chosen by name") };
        Bbr::of(own.clone(), dice.uniform())
    }

    fn reset(&mut self) {
        let mut rates = std::mem::take(&mut self.rates);
        rates.reset();
        self.bw.reset();
        let bw = std::mem::replace(&mut self.bw, WindowedMax::new(0));
        *self = Bbr { rates, bw, ..Bbr::of(self.params.clone(), self.draw) };
    }

    fn grow(&mut self, _: &mut Window, _: &Acked) {}

    fn cut(&mut self, _: Time, window: &Window, _: u64, cause: Cause) -> u64 {
        self.save(window);
        self.lost = true;
        if cause == Cause::Timeout {
            self.full_bw = 0.0;
            (self.was, self.conserves) = (State::Loss, false);
        }
        window.cwnd.max(2 * window.mss)
    }

    fn keeps_window(&self) -> bool {
        true
    }

    fn established(&mut self, now: Time, window: &Window, rtt: Option<Span>) {
        self.initial_window = window.cwnd;
        (self.rtprop, self.rtprop_at) = (rtt, now);
        let rtt = rtt.unwrap_or(Span::ms(1)).max(Span(1));
        self.pacing_rate = self.params.startup_gain * window.cwnd as f64 / rtt.as_secs();
    }

    fn delivered(&mut self, now: Time, from: u64, to: u64) {
        self.rates.deliver(now, from, to);
    }

    fn settled(&mut self, window: &mut Window, ack: &Settled) {
        debug_assert_eq!(self.rates.delivered(), ack.delivered, "every byte once");
        self.round_start = false;
        let sample = self.rates.take(ack.now);
        let news = sample.map_or(0, |s| s.news);
        let lost = std::mem::take(&mut self.lost) || ack.state != State::Open;
        if let Some(s) = &sample {
            self.learn_rate(s);
            if self.mode == Mode::ProbeBw {
                self.cycle(ack.now, ack.flight + news, window.mss, lost);
            }
            self.check_full(s);
        }
        if self.mode == Mode::Startup && self.full() {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && ack.flight <= self.inflight(1.0, window.mss) {
            self.enter_probe_bw(ack.now);
        }
        self.learn_rtprop(ack.now, sample.and_then(|s| s.rtt), window, ack.flight);
        self.restarted &= news == 0;
        let rate = self.pacing_gain() * self.bw.get() * self.params.margin;
        if rate > 0.0 && (self.full() || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
        self.set_window(window, ack, news);
    }

    fn sent(&mut self, sent: &Sent) {
        if sent.alone && self.rates.starved() {
            self.restarted = true;
            if self.mode == Mode::ProbeBw && self.bw.get() > 0.0 {
                self.pacing_rate = self.bw.get() * self.params.margin;
            }
        }
        self.rates.sent(sent);
    }

    fn starved(&mut self, flight: u64) {
        self.rates.starve(flight);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;

    fn bbr(draw: f64) -> Bbr {
        let mut b = Bbr::of(BbrParams::default(), draw);
        let w = Window { cwnd: 10 * MSS, ssthresh: u64::MAX, mss: MSS };
        b.established(Time::ZERO, &w, Some(Span::ms(100)));
        b
    }

    #[test]
    fn probing_starts_in_any_phase_but_the_second() {
        let mut b = bbr(0.0);
        let mut seen = [0; 8];
        for _ in 0..7_000 {
            b.enter_probe_bw(Time::ZERO);
            seen[b.phase] += 1;
        }
        assert_eq!(seen[1], 0, "the second gives way to what the first has sent");
        for (phase, n) in seen.iter().enumerate().filter(|s| s.0 != 1) {
            assert!((990..=1_010).contains(n), "{phase}: {n}");
        }
    }

    #[test]
    fn first_rate_is_the_gain_over_the_round_trip_of_the_syn() {
        assert!((bbr(0.0).pacing_rate() - 2.885 * 10_000.0 / 0.1).abs() < 1e-6);
        let mut b = Bbr::of(BbrParams::default(), 0.0);
        let w = Window { cwnd: MSS, ssthresh: u64::MAX, mss: MSS };
        b.established(Time::ZERO, &w, None);
        assert_eq!(b.pacing_rate(), 2_885_000.0, "of 1 ms if that is not known");
    }

    #[test]
    fn recovery_conserves_packets_and_gives_the_window_back() {
        let mut b = bbr(0.0);
        b.full_rounds = FULL.1;
        b.bw.add(0, 1_000_000.0); // 100 segments per round trip
        (b.mode, b.phase) = (Mode::ProbeBw, 2);
        let mut w = Window { cwnd: 203 * MSS, ssthresh: u64::MAX, mss: MSS };
        let ack = |state, flight| Settled { now: Time(1), delivered: 0, flight, srtt: None, state };
        b.cut(Time(1), &w, w.cwnd, Cause::Loss);
        b.set_window(&mut w, &ack(State::Recovery, 150 * MSS), MSS);
        assert_eq!(w.cwnd, 151 * MSS, "one out for one delivered");
        b.set_window(&mut w, &ack(State::Recovery, 149 * MSS), MSS);
        assert_eq!(w.cwnd, 151 * MSS);
        b.set_window(&mut w, &ack(State::Open, 140 * MSS), MSS);
        assert_eq!(w.cwnd, 203 * MSS, "two products and three segments");
        b.cut(Time(1), &w, w.cwnd, Cause::Timeout);
        w.cwnd = MSS;
        b.set_window(&mut w, &ack(State::Loss, 0), MSS);
        assert_eq!(w.cwnd, LEAST * MSS);
        b.set_window(&mut w, &ack(State::Open, 0), MSS);
        assert_eq!(w.cwnd, 203 * MSS);
    }

    #[test]
    fn starved_samples_count_only_as_proof_of_more() {
        let mut b = bbr(0.0);
        let sample = |rate, starved| Sample {
            rate,
            interval: Span::ms(100),
            prior_delivered: 0,
            rtt: None,
            news: MSS,
            starved,
        };
        b.learn_rate(&sample(1e6, false));
        b.learn_rate(&sample(2e5, true));
        assert_eq!(b.bandwidth(), 1e6);
        b.learn_rate(&sample(2e6, true));
        assert_eq!(b.bandwidth(), 2e6);
        b.learn_rate(&Sample { interval: Span::ms(99), ..sample(9e6, false) });
        assert_eq!(b.bandwidth(), 2e6, "less than a round trip shows a burst of acks");
        for _ in 0..20 {
            b.learn_rate(&sample(1e5, true));
        }
        assert_eq!(b.bandwidth(), 2e6, "however long it lasts");
        for _ in 0..11 {
            b.learn_rate(&sample(1e6, false));
        }
        assert_eq!(b.bandwidth(), 1e6, "ten rounds later it is forgotten");
    }
}
