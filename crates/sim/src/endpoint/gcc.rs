//! Google Congestion Control: the receiver's estimate of the rate that the path carries.
//!
//! **Source**: Holmer, Lundin, Carlucci, De Cicco, Mascolo, "A Google Congestion Control Algorithm
//! for Real-Time Communication", draft-ietf-rmcat-gcc-02: arrival-time model (section 5.1),
//! pre-filter (5.2), Kalman filter (5.3), over-use detector (5.4), rate control (5.5).
//!
//! **Departures**: the detector compares the estimate times the number of groups seen, at most 60,
//! as the implementation in WebRTC does: a group every 11 ms on a link that is overloaded by a
//! tenth moves the plain estimate by 1 ms, which never reaches the smallest threshold of 6 ms. The
//! filter's `f_max` covers the last 60 groups. The floor of the additive increase, 1 kbit/s per
//! update in the draft, is 1 kbit/s per second, since there is an update per group.

use sojourn_aqm::Snapshot;
use sojourn_aqm::units::{Span, Time};
use std::collections::VecDeque;

/// Packets sent within this time after the first of a group belong to it (section 5.2).
const BURST: Span = Span::ms(5);
/// Number of groups over which the highest frequency of groups is taken, and limit of the gain.
const GROUPS: usize = 60;
/// Variance of the state noise, and forgetting factor of the measurement noise (section 5.3).
const Q: f64 = 1e-3;
const CHI: f64 = 0.01;
/// Range of the threshold, and its start, in ms (section 5.4).
const THRESHOLD: [f64; 3] = [6.0, 12.5, 600.0];
/// Gains of the threshold per ms: below it, and above (section 5.4).
const K_D: f64 = 0.000_18;
const K_U: f64 = 0.01;
/// Time above the threshold before over-use is signalled, ms (section 5.4).
const OVERUSE_MS: f64 = 10.0;
/// Window over which the received rate is measured (section 5.5: 0.5 s to 1 s).
const WINDOW: Span = Span::ms(500);
/// Multiplicative decrease, and increase per second (section 5.5).
const BETA: f64 = 0.85;
const ETA: f64 = 1.08;

/// Group of packets sent as a burst.
#[derive(Clone, Copy, Debug, Snapshot)]
struct Group {
    first_sent: Time,
    last_sent: Time,
    last_arrived: Time,
}

/// Signal of the detector.
#[derive(Clone, Copy, Debug, PartialEq, Snapshot)]
enum Usage {
    Normal,
    Over,
    Under,
}

/// State of the rate control.
#[derive(Clone, Copy, Debug, PartialEq, Snapshot)]
enum State {
    Hold,
    Increase,
    Decrease,
}

/// Estimator at the receiver.
#[derive(Clone, Debug, Snapshot)]
pub(crate) struct RateEstimator {
    /// Group that is arriving, and the one before.
    groups: [Option<Group>; 2],
    /// Times between the last groups at the sender, ms.
    gaps_ms: VecDeque<f64>,
    /// Number of differences between groups so far.
    differences: usize,
    /// Estimate of the delay gradient m in ms, its error covariance e, and the variance of the
    /// measurement noise.
    gradient: f64,
    error: f64,
    noise: f64,
    /// Threshold of the detector, ms.
    threshold: f64,
    /// Time above it, ms.
    above_ms: f64,
    state: State,
    /// Estimate A, bit/s, and its bounds.
    rate_bps: f64,
    range_bps: [f64; 2],
    /// Time of the last change of the estimate.
    updated: Option<Time>,
    /// Packets of the last window: times of arrival and bytes; and the sum of the bytes.
    received: VecDeque<(Time, u32)>,
    received_bytes: u64,
    first_arrival: Option<Time>,
    /// Mean and variance of the received rates at decreases, bit/s.
    convergence: Option<(f64, f64)>,
    frames_per_s: f64,
    packet_bits: f64,
}

impl RateEstimator {
    /// Creates the estimator with its first estimate and range in bit/s, for a call of this many
    /// frames per second and packets of at most this many bits.
    pub(crate) fn new(
        rate_bps: f64,
        range_bps: [f64; 2],
        frames_per_s: f64,
        packet_bits: f64,
    ) -> Self {
        RateEstimator {
            groups: [None; 2],
            gaps_ms: VecDeque::new(),
            differences: 0,
            gradient: 0.0,
            error: 0.1,
            noise: 1.0,
            threshold: THRESHOLD[1],
            above_ms: 0.0,
            state: State::Increase,
            rate_bps,
            range_bps,
            updated: None,
            received: VecDeque::new(),
            received_bytes: 0,
            first_arrival: None,
            convergence: None,
            frames_per_s,
            packet_bits,
        }
    }

    /// Estimate of the available rate, bit/s.
    pub(crate) fn rate_bps(&self) -> f64 {
        self.rate_bps
    }

    /// Processes a packet of `bytes` bytes, sent at `sent`, that arrives at `now`; `rtt` is the
    /// latest round-trip time.
    pub(crate) fn on_packet(&mut self, now: Time, sent: Time, bytes: u32, rtt: Span) {
        self.first_arrival.get_or_insert(now);
        self.received.push_back((now, bytes));
        self.received_bytes += u64::from(bytes);
        while let Some((at, bytes)) = self.received.front().copied()
            && now.since(at) > WINDOW
        {
            self.received_bytes -= u64::from(bytes);
            self.received.pop_front();
        }
        let fresh = Group { first_sent: sent, last_sent: sent, last_arrived: now };
        let [Some(group), before] = &mut self.groups else {
            self.groups[0] = Some(fresh);
            return;
        };
        // A burst that arrives at once was held up together: it says nothing about the path's rate.
        let gap = (now.since(group.last_arrived), sent.since(group.last_sent));
        let held_up = gap.0 < BURST && gap.0 < gap.1;
        if sent.since(group.first_sent) <= BURST || held_up {
            (group.last_sent, group.last_arrived) = (sent, now);
            return;
        }
        let (ended, before) = (*group, before.replace(*group));
        self.groups[0] = Some(fresh);
        if let Some(before) = before {
            self.on_group(now, before, ended, rtt);
        }
    }

    /// Processes a complete group and the one before it.
    fn on_group(&mut self, now: Time, before: Group, group: Group, rtt: Span) {
        let ms = |to: Time, from: Time| to.since(from).as_secs() * 1e3;
        let sent_ms = ms(group.last_sent, before.last_sent);
        let difference = ms(group.last_arrived, before.last_arrived) - sent_ms;
        let was = self.gradient;
        self.filter(difference, sent_ms);
        let usage = self.detect(was, sent_ms);
        self.control(now, usage, rtt);
    }

    /// Kalman filter (section 5.3): `difference` is d(i), `sent_ms` the time between the groups.
    fn filter(&mut self, difference: f64, sent_ms: f64) {
        self.gaps_ms.push_back(sent_ms);
        if self.gaps_ms.len() > GROUPS {
            self.gaps_ms.pop_front();
        }
        self.differences = (self.differences + 1).min(GROUPS);
        let shortest_ms = self.gaps_ms.iter().copied().fold(f64::INFINITY, f64::min);
        let alpha = libm::pow(1.0 - CHI, 30.0 * shortest_ms / 1000.0);
        let z = difference - self.gradient;
        let most = 3.0 * libm::sqrt(self.noise);
        let bounded = z.clamp(-most, most);
        self.noise = (alpha * self.noise + (1.0 - alpha) * bounded * bounded).max(1.0);
        let predicted = self.error + Q;
        let gain = predicted / (self.noise + predicted);
        self.gradient += z * gain;
        self.error = (1.0 - gain) * predicted;
    }

    /// Over-use detector (section 5.4); `was` is the previous estimate.
    fn detect(&mut self, was: f64, sent_ms: f64) -> Usage {
        let offset = self.gradient * self.differences as f64;
        let usage = if offset > self.threshold {
            self.above_ms += sent_ms;
            let over = self.above_ms >= OVERUSE_MS && self.gradient >= was;
            if over { Usage::Over } else { Usage::Normal }
        } else {
            self.above_ms = 0.0;
            if offset < -self.threshold { Usage::Under } else { Usage::Normal }
        };
        let excess = offset.abs() - self.threshold;
        if excess <= 15.0 {
            let gain = if excess < 0.0 { K_D } else { K_U };
            let moved = self.threshold + sent_ms.min(100.0) * gain * excess;
            self.threshold = moved.clamp(THRESHOLD[0], THRESHOLD[2]);
        }
        usage
    }

    /// Received rate over the last window, bit/s; None before the window is full.
    fn received_bps(&self, now: Time) -> Option<f64> {
        let full = self.first_arrival.is_some_and(|first| now.since(first) >= WINDOW);
        full.then(|| self.received_bytes as f64 * 8.0 / WINDOW.as_secs())
    }

    /// Rate control (section 5.5).
    fn control(&mut self, now: Time, usage: Usage, rtt: Span) {
        self.state = match (usage, self.state) {
            (Usage::Over, _) => State::Decrease,
            (Usage::Normal, State::Hold | State::Increase) => State::Increase,
            (Usage::Normal, State::Decrease) | (Usage::Under, _) => State::Hold,
        };
        let passed_s = self.updated.replace(now).map_or(0.0, |then| now.since(then).as_secs());
        let Some(received) = self.received_bps(now) else { return };
        match self.state {
            State::Hold => {}
            State::Increase => {
                if let Some((mean, variance)) = self.convergence
                    && received > mean + 3.0 * libm::sqrt(variance)
                {
                    self.convergence = None;
                }
                let risen = if self.convergence.is_some() {
                    let response_s = 0.1 + rtt.as_secs();
                    let share = 0.5 * (passed_s / response_s).min(1.0);
                    // The draft adds at least 1 kbit/s per update, of which it expects few.
                    self.rate_bps
                        + (1000.0 * passed_s.min(1.0)).max(share * self.mean_packet_bits())
                } else {
                    self.rate_bps * libm::pow(ETA, passed_s.min(1.0))
                };
                // The estimate is not lowered for a sender that has little to send.
                self.rate_bps = risen.min((1.5 * received).max(self.rate_bps));
            }
            State::Decrease => {
                let (mean, variance) = self.convergence.unwrap_or((received, 0.0));
                let off = received - mean;
                // Smoothing factor 0.95; the deviation is at least a hundredth of the mean.
                let least = mean * mean * 1e-4;
                let variance = (0.95 * (variance + 0.05 * off * off)).max(least);
                self.convergence = Some((mean + 0.05 * off, variance));
                self.rate_bps = self.rate_bps.min(BETA * received);
            }
        }
        self.rate_bps = self.rate_bps.clamp(self.range_bps[0], self.range_bps[1]);
    }

    /// Expected size of a packet at the current rate, bits.
    fn mean_packet_bits(&self) -> f64 {
        let frame = self.rate_bps / self.frames_per_s;
        frame / libm::ceil(frame / self.packet_bits).max(1.0)
    }
}
