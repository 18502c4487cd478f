//! Video call: frames, their packets, and the feedback of the receiver.
//!
//! **Source**: draft-ietf-rmcat-gcc-02: feedback (section 3), loss-based control (section 6).
//!
//! **Departures**: the encoder follows the rate at once and all frames of a rate have the same
//! size; there are no key frames. A frame with a lost packet is lost: nothing is sent again, and
//! there is no forward error correction. The loss-based control starts from the current rate, as
//! the implementation in WebRTC does, instead of its own earlier value, which may be far above.
//! Without feedback for two intervals the rate is halved. There is no probing for a higher rate at
//! the start.

use crate::endpoint::gcc::RateEstimator;
use crate::traffic::call::Call;
use sojourn_aqm::Histogram;
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::units::{Span, Time};
use std::collections::VecDeque;

/// Feedback message of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Snapshot)]
pub struct Report {
    /// Estimate of the receiver, bit/s.
    pub rate_bps: f64,
    /// Packets expected since the report before.
    pub expected: u32,
    /// Packets missing of these.
    pub missing: u32,
    /// Transmission time of the newest packet.
    pub newest: Time,
}

impl Report {
    /// Size on the wire: IPv4 and UDP header, an RTCP receiver report and a REMB message, bytes.
    pub const BYTES: u32 = 28 + 32 + 24;
}

/// Frame whose packets have not all arrived or been lost.
#[derive(Clone, Copy, Debug, Snapshot)]
struct Frame {
    captured: Time,
    /// Number of its first packet, number of packets, and of those that arrived and were lost.
    first: u32,
    packets: u32,
    arrived: u32,
    lost: u32,
}

/// Both ends of a call.
#[derive(Clone, Debug, Snapshot)]
pub struct CallEndpoints {
    params: Call,
    /// Current rate, bit/s.
    rate_bps: f64,
    /// Time of the first frame, and number of the next one.
    first: Time,
    next_frame: u64,
    /// Packets left of the current frame, and their size.
    left: u32,
    packet_bytes: u32,
    next_packet: u32,
    /// Time of the last report that reached the sender, or of the last halving for lack of one.
    heard: Time,
    rtt: Span,
    frames: VecDeque<Frame>,
    estimator: RateEstimator,
    /// Next packet expected, and number of packets expected and received since the last report.
    expected_next: u32,
    expected: u32,
    received: u32,
    reported: Time,
    reported_bps: f64,
    /// Start of the measured interval; frames captured since then, and frames lost of these.
    since: Time,
    /// Frames captured in the measured interval.
    pub captured_frames: u64,
    /// Frames lost of these.
    pub lost_frames: u64,
    /// Delays of these frames from capture to the arrival of the last packet.
    pub frame_delay: Histogram,
}

impl CallEndpoints {
    /// Creates a call whose first frame is captured at `first`.
    pub fn new(params: &Call, first: Time) -> CallEndpoints {
        let initial = params.initial.0 as f64;
        let range = [params.lowest.0 as f64, params.highest.0 as f64];
        let bits = params.packet.0 as f64 * 8.0;
        CallEndpoints {
            estimator: RateEstimator::new(initial, range, params.frames as f64, bits),
            rate_bps: initial,
            first,
            next_frame: 0,
            left: 0,
            packet_bytes: 0,
            next_packet: 0,
            heard: first,
            rtt: Span::ZERO,
            frames: VecDeque::new(),
            expected_next: 0,
            expected: 0,
            received: 0,
            reported: first,
            reported_bps: initial,
            since: Time::ZERO,
            captured_frames: 0,
            lost_frames: 0,
            frame_delay: Histogram::default(),
            params: params.clone(),
        }
    }

    /// Time from the first frame to frame `k`, exact for any `k`.
    pub fn offset_of(params: &Call, k: u64) -> Span {
        Span(cast::saturate(u128::from(k) * 1_000_000_000 / u128::from(params.frames)))
    }

    /// Sends a packet at `now`; returns its size in bytes and the time of the next one.
    pub fn send(&mut self, now: Time) -> (u32, Time) {
        if self.left == 0 {
            self.capture(now);
        }
        self.left -= 1;
        self.next_packet = self.next_packet.wrapping_add(1);
        let frame = self.first + CallEndpoints::offset_of(&self.params, self.next_frame);
        let paced_s = f64::from(self.packet_bytes) * 8.0 / (self.rate_bps * self.params.pacing);
        let paced = now + Span(cast::trunc(paced_s * 1e9));
        // A rate that has just fallen may pace the rest of a frame into the next one.
        (self.packet_bytes, if self.left > 0 { paced } else { frame.max(now) })
    }

    fn capture(&mut self, now: Time) {
        self.next_frame += 1;
        if now.since(self.heard) > self.params.feedback + self.params.feedback {
            self.heard = now;
            self.set_rate(self.rate_bps / 2.0);
        }
        let bytes = self.rate_bps / 8.0 / self.params.frames as f64;
        let packets = libm::ceil(bytes / self.params.packet.0 as f64).max(1.0);
        self.left = cast::saturate32(cast::trunc(packets));
        // RTP, UDP and IPv4 headers, and at least a byte.
        self.packet_bytes = cast::saturate32(cast::trunc(bytes / packets)).max(41);
        let (first, packets) = (self.next_packet, self.left);
        self.frames.push_back(Frame { captured: now, first, packets, arrived: 0, lost: 0 });
        self.captured_frames += 1;
    }

    fn set_rate(&mut self, bps: f64) {
        self.rate_bps = bps.clamp(self.params.lowest.0 as f64, self.params.highest.0 as f64);
    }

    /// Number of the packet that was sent last.
    pub fn last_packet(&self) -> u32 {
        self.next_packet.wrapping_sub(1)
    }

    /// Processes a packet at the receiver; returns a report, if one is due.
    pub fn receive(&mut self, now: Time, sent: Time, bytes: u32, number: u32) -> Option<Report> {
        self.estimator.on_packet(now, sent, bytes, self.rtt);
        let ahead = number.wrapping_sub(self.expected_next);
        if ahead < u32::MAX / 2 {
            self.expected = self.expected.saturating_add(ahead + 1);
            self.expected_next = number.wrapping_add(1);
        }
        self.received += 1;
        if let Some(frame) = self.frame_of(number) {
            frame.arrived += 1;
            let Frame { captured, packets, arrived, .. } = *frame;
            if arrived == packets && captured >= self.since {
                self.frame_delay.add(now.since(captured));
            }
            self.retire();
        }
        let rate_bps = self.estimator.rate_bps();
        let late = now.since(self.reported) >= self.params.feedback;
        if !late && rate_bps >= 0.97 * self.reported_bps {
            return None;
        }
        let missing = self.expected.saturating_sub(self.received);
        let report = Report { rate_bps, expected: self.expected, missing, newest: sent };
        (self.reported, self.reported_bps) = (now, rate_bps);
        (self.expected, self.received) = (0, 0);
        Some(report)
    }

    /// Processes a report at the sender (section 6).
    pub fn on_report(&mut self, now: Time, report: &Report) {
        self.heard = now;
        self.rtt = now.since(report.newest);
        let lost = f64::from(report.missing) / f64::from(report.expected.max(1));
        let by_loss = if lost > 0.1 {
            self.rate_bps * (1.0 - 0.5 * lost)
        } else if lost < 0.02 {
            self.rate_bps * 1.05
        } else {
            self.rate_bps
        };
        self.set_rate(by_loss.min(report.rate_bps));
    }

    /// Records the loss of a packet.
    pub fn on_loss(&mut self, number: u32) {
        let since = self.since;
        if let Some(frame) = self.frame_of(number) {
            frame.lost += 1;
            let counts = frame.lost == 1 && frame.captured >= since;
            self.lost_frames += u64::from(counts);
            self.retire();
        }
    }

    /// Frame of a packet.
    fn frame_of(&mut self, number: u32) -> Option<&mut Frame> {
        let front = self.frames.front()?.first;
        let after = |frame: &Frame| frame.first.wrapping_sub(front) <= number.wrapping_sub(front);
        let i = self.frames.partition_point(after).checked_sub(1)?;
        self.frames.get_mut(i)
    }

    /// Forgets the frames at the front of which nothing is on its way.
    fn retire(&mut self) {
        while self.frames.front().is_some_and(|f| f.arrived + f.lost == f.packets) {
            self.frames.pop_front();
        }
    }

    /// Starts the measured interval at `now`.
    pub fn start_measuring(&mut self, now: Time) {
        (self.since, self.captured_frames, self.lost_frames) = (now, 0, 0);
        self.frame_delay.clear();
    }
}
