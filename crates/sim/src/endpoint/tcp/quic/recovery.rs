//! Acks, losses and timers of the profile `quic`.
//!
//! **Source**: RFC 9002 appendix A.7 to A.10, and B.5 to B.8.

use super::super::{Ack, Segment};
use super::ack_frame::read_ranges;
use super::{PROBES, QuicSender};
use crate::endpoint::cc::{
    CongestionControl, CongestionSignal, NewDataAck, ProcessedAck, RecoveryState,
};
use sojourn_aqm::units::{Span, Time};

/// Minimum window, packets (§7.2: `kMinimumWindow`).
const MINIMUM_WINDOW: u64 = 2;

/// Packets that an ack newly acknowledges.
#[derive(Debug, Default)]
struct NewlyAcked {
    /// Payload bytes.
    bytes: u64,
    /// Payload bytes of the packets sent after the start of the last recovery period.
    outside_recovery: u64,
    /// Transmission time of the packet with the largest number in the ack, if it is new.
    largest_sent: Option<Time>,
}

impl QuicSender {
    /// See [`super::super::Tcp::on_ack`].
    #[inline(never)]
    pub fn on_ack(&mut self, now: Time, ack: &Ack, out: &mut Vec<Segment>) {
        debug_assert!(ack.ack <= self.packets.next(), "ack of a packet that was never sent");
        let newly = self.acknowledge(now, ack);
        if self.una == 0 {
            return self.on_handshake_ack(now, newly.largest_sent, out);
        }
        let rtt = newly.largest_sent.map(|sent| now - sent);
        if let Some(sample) = rtt {
            self.rtt.sample(now, sample, Span::us(u64::from(ack.echo)));
        }
        let marks = ack.ce_packets.wrapping_sub(self.ce_packets);
        let marked = u64::from(marks) * self.window.mss;
        self.control.on_ecn_feedback(self.una, newly.bytes, marked, self.next);
        if let Some(sent) = newly.largest_sent.filter(|_| self.ecn && marks > 0) {
            self.ce_packets = ack.ce_packets;
            self.on_congestion(now, sent, CongestionSignal::Mark); // B.7
        }
        let lost_before = self.lost_bytes;
        self.detect_lost(now);
        self.grow(now, &newly, rtt);
        if newly.bytes > 0 {
            self.pto_count = 0;
        }
        self.report_processed(now, lost_before);
        self.send(now, out);
    }

    /// Completes the handshake. The packet numbers of the SYNs are forgotten, as Initial keys are.
    fn on_handshake_ack(&mut self, now: Time, sent: Option<Time>, out: &mut Vec<Segment>) {
        let Some(sent) = sent else { return };
        self.rtt.sample(now, now - sent, Span::ZERO);
        (self.una, self.pto_count, self.established) = (1, 0, now);
        self.packets.clear();
        self.control.on_established(now, &self.window, Some(now - sent));
        self.send(now, out);
    }

    /// Removes acknowledged packets from those in flight.
    fn acknowledge(&mut self, now: Time, ack: &Ack) -> NewlyAcked {
        let mut newly = NewlyAcked::default();
        let hooks = self.control.uses_delivery_hooks();
        let QuicSender { packets, acked, una, control, recovery_start, .. } = self;
        for (start, end) in read_ranges(ack) {
            packets.acknowledge(start, end, |number, packet| {
                let (seq, to) = (packet.seq, packet.seq + u64::from(packet.len));
                newly.bytes += to - seq;
                if recovery_start.is_none_or(|start| packet.sent > start) {
                    newly.outside_recovery += to - seq;
                }
                if number + 1 == ack.ack {
                    newly.largest_sent = Some(packet.sent);
                }
                if acked.insert(seq.max(*una), to) > 0 && hooks {
                    control.on_delivered(now, seq, to);
                }
            });
        }
        if let Some((_, end)) = acked.containing(*una).filter(|_| *una > 0) {
            *una = end;
            acked.remove_below(end);
        }
        if newly.outside_recovery > 0 {
            self.state = RecoveryState::Open; // §7.3.2
        }
        newly
    }

    /// Grows the window, unless the application limits the rate (§7.8).
    fn grow(&mut self, now: Time, newly: &NewlyAcked, rtt: Option<Span>) {
        let reduced = self.recovery_start == Some(now);
        if newly.outside_recovery == 0 || self.app_limited || reduced {
            return;
        }
        let acked = NewDataAck {
            at: now,
            bytes: newly.outside_recovery,
            flight: self.window.cwnd, // not limited by the application: the window was used
            rtt,
            srtt: self.rtt.smoothed(),
            after_timeout: false,
        };
        self.control.on_ack(&mut self.window, &acked);
    }

    /// Reports the state after an ack to a control that measures delivery.
    fn report_processed(&mut self, now: Time, lost_before: u64) {
        if !self.control.uses_delivery_hooks() {
            return;
        }
        let processed = ProcessedAck {
            min_rtt: None,
            now,
            delivered: self.una - 1 + self.acked.covered(),
            flight: self.packets.in_flight(),
            srtt: self.rtt.smoothed(),
            rtt: None,
            pacing_delay: Span::ZERO,
            state: self.state,
            lost: self.lost_bytes,
            newly_lost: self.lost_bytes - lost_before,
        };
        self.control.on_ack_processed(&mut self.window, &processed);
    }

    /// Declares packets lost, and reduces the window for them (A.10, B.8).
    fn detect_lost(&mut self, now: Time) {
        let QuicSender { packets, lost, lost_bytes, .. } = self;
        let losses = packets.detect_lost(now, &self.rtt, |packet| {
            let (seq, end) = (packet.seq, packet.seq + u64::from(packet.len));
            *lost_bytes += end - seq;
            // Copies of the same data have the same boundaries.
            let place = lost.partition_point(|(start, _)| *start < seq);
            if lost.get(place).is_none_or(|(start, _)| *start != seq) {
                lost.insert(place, (seq, end));
            }
        });
        self.loss_time = losses.next;
        let Some(sent) = losses.last_sent else { return };
        let cause =
            if losses.persistent { CongestionSignal::Timeout } else { CongestionSignal::Loss };
        self.on_congestion(now, sent, cause);
        if losses.persistent {
            self.window.cwnd = MINIMUM_WINDOW * self.window.mss; // §7.6.2
            self.recovery_start = None;
        }
    }

    /// Reduces the window, unless the packet sent at `sent` belongs to a recovery period (B.6).
    fn on_congestion(&mut self, now: Time, sent: Time, cause: CongestionSignal) {
        if self.recovery_start.is_some_and(|start| sent <= start) {
            return;
        }
        (self.recovery_start, self.state) = (Some(now), RecoveryState::Recovery);
        let cwnd = self.window.cwnd;
        self.window.ssthresh = self.control.on_congestion(now, &self.window, cwnd, cause);
        self.window.cwnd = self.window.ssthresh.max(MINIMUM_WINDOW * self.window.mss);
    }

    /// Time of the loss timer, for time-threshold loss or the probe timeout (A.8).
    pub(super) fn loss_timer(&self) -> Time {
        if self.loss_time != Time::NEVER {
            self.loss_time
        } else if self.packets.has_in_flight() {
            self.last_sent + self.probe_timeout()
        } else {
            Time::NEVER
        }
    }

    /// Returns the probe timeout with backoff (§6.2.1). Before the handshake is complete, acks are
    /// not delayed.
    fn probe_timeout(&self) -> Span {
        let base = if self.una == 0 { self.rtt.pto_base() } else { self.rtt.pto() };
        Span(base.0.saturating_mul(1 << self.pto_count.min(20)))
    }

    /// See [`super::super::Tcp::on_timer`] (A.9).
    #[inline(never)]
    pub fn on_timer(&mut self, now: Time, out: &mut Vec<Segment>) {
        if self.loss_timer() <= now {
            if self.loss_time <= now {
                let lost_before = self.lost_bytes;
                self.detect_lost(now);
                if self.lost_bytes > lost_before {
                    self.report_processed(now, lost_before);
                }
            } else {
                self.on_probe_timeout(now, out);
            }
        }
        self.send(now, out);
    }

    /// Sends probes, whatever the window allows (§6.2.4): lost data, new data, or data in flight.
    fn on_probe_timeout(&mut self, now: Time, out: &mut Vec<Segment>) {
        self.stats.timeouts += 1;
        self.pto_count += 1;
        if self.una == 0 {
            return self.output(now, 0, 0, out);
        }
        let oldest: Vec<(u64, u64)> = self.packets.oldest(PROBES);
        for i in 0..PROBES {
            if let Some((seq, end)) = self.next_data() {
                self.take_data(seq, end);
                self.output(now, seq, end - seq, out);
            } else if let Some(&(seq, end)) = oldest.get(i).or(oldest.first()) {
                self.output(now, seq, end - seq, out);
            }
        }
    }
}
