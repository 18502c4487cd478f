//! Sender of the profile `quic`: acks and losses of packet numbers, windows in bytes.
//!
//! **Source**: RFC 9002 (loss detection §5 and §6, congestion control §7, pseudocode of appendices
//! A and B), RFC 9000 §13 (acks; the receiver is in `receiver/quic_acks.rs`).
//! [`crate::endpoint::cc`] has the congestion controls, as for TCP.
//!
//! **Symbols**
//!
//! | RFC 9002 | here |
//! |---|---|
//! | `congestion_window`, `ssthresh`, `max_datagram_size` | `window` |
//! | `bytes_in_flight`, `sent_packets`, `largest_acked_packet` | `packets` |
//! | `loss_time`, `pto_count` | the same |
//! | `congestion_recovery_start_time` | `recovery_start` |
//! | `time_of_last_ack_eliciting_packet` | `last_sent` |
//!
//! Every transmission has its own packet number, also of data that was lost. The stream offset is
//! the sequence number of a segment, so congestion controls see what they see of TCP.
//!
//! **Departures**: there is one stream and one packet number space. The handshake is a SYN and its
//! ack with the size of a header, not a TLS exchange of several packets. Windows count payload
//! without headers. The ack of a packet that was declared lost is ignored. Lost data is
//! retransmitted in packets of the old boundaries. Flow control is a constant window. ECN is not
//! validated. There are no acks of acks.

mod ack_frame;
mod pacer;
mod recovery;
mod rtt;
mod sent;
#[cfg(test)]
mod tests;

pub(super) use ack_frame::write_ranges;

use super::params::{TcpParams, resolved};
use super::ranges::Ranges;
use super::{Segment, SenderStats};
use crate::endpoint::cc::{
    AnyControl, CongestionControl, ControlParams, RecoveryState, SentSegment, Window,
};
use pacer::QuicPacer;
use rtt::QuicRtt;
use sent::SentPackets;
use sojourn_aqm::Snapshot;
use sojourn_aqm::cast;
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Span, Time};
use std::collections::VecDeque;

/// Probe packets per probe timeout (RFC 9002 §6.2.4).
const PROBES: usize = 2;

/// Sender of the profile `quic`.
#[derive(Clone, Debug, Snapshot)]
pub struct QuicSender {
    /// Lowest unacknowledged byte of the stream; 0 until the handshake is complete.
    una: u64,
    /// Next new byte of the stream.
    next: u64,
    /// First byte not yet written by the application.
    write_end: u64,
    /// Acknowledged bytes above `una`.
    acked: Ranges,
    /// Data of lost packets, to be sent again.
    lost: VecDeque<(u64, u64)>,
    /// Payload bytes of this connection declared lost.
    lost_bytes: u64,
    packets: SentPackets,
    rtt: QuicRtt,
    window: Window,
    control: AnyControl,
    pacer: Option<QuicPacer>,
    /// Start of the last recovery period.
    recovery_start: Option<Time>,
    state: RecoveryState,
    /// Time at which a packet becomes lost; [`Time::NEVER`] if none is expected to.
    loss_time: Time,
    /// Number of probe timeouts since the last ack.
    pto_count: u32,
    /// Time of the last transmission.
    last_sent: Time,
    /// True if the application, not the window, limited the last transmission.
    app_limited: bool,
    ecn: bool,
    /// Number of marked packets, modulo 2^16, as of the last ack.
    ce_packets: u16,
    /// Initial window and threshold, bytes.
    initial: (u64, u64),
    rwnd: u64,
    header_bytes: u32,
    established: Time,
    stats: SenderStats,
}

impl QuicSender {
    /// Creates a sender without a connection.
    pub fn new(params: &TcpParams, rng: &mut dyn Random) -> QuicSender {
        let s = &params.settings;
        let initial =
            (s.in_bytes(resolved(s.initial_window)), s.in_bytes(resolved(s.initial_ssthresh)));
        let sets_rate = matches!(params.control, ControlParams::Bbr(_));
        let mut common = s.clone();
        // §7.3.1: slow start grows by the acknowledged bytes, whatever their number.
        common.abc_limit = u64::from(u32::MAX);
        common.pacing = Some(sets_rate);
        let paced = resolved(s.pacing) && !sets_rate;
        QuicSender {
            una: 0,
            next: 1,
            write_end: 1,
            acked: Ranges::default(),
            lost: VecDeque::new(),
            lost_bytes: 0,
            packets: SentPackets::default(),
            rtt: QuicRtt::new(resolved(s.delayed_ack_timeout)),
            window: Window { cwnd: initial.0, ssthresh: initial.1, mss: s.payload() },
            control: AnyControl::new(&params.control, &common, rng),
            pacer: paced.then(|| QuicPacer::new(initial.0)),
            recovery_start: None,
            state: RecoveryState::Open,
            loss_time: Time::NEVER,
            pto_count: 0,
            last_sent: Time::ZERO,
            app_limited: false,
            ecn: resolved(s.ecn),
            ce_packets: 0,
            initial,
            rwnd: s.in_bytes(s.receive_window),
            header_bytes: s.header_bytes(),
            established: Time::NEVER,
            stats: SenderStats::default(),
        }
    }

    /// See [`super::Tcp::open`].
    pub fn open(&mut self, now: Time, out: &mut Vec<Segment>) {
        (self.una, self.next, self.write_end, self.lost_bytes) = (0, 1, 1, 0);
        (self.window.cwnd, self.window.ssthresh) = self.initial;
        (self.recovery_start, self.state, self.loss_time) =
            (None, RecoveryState::Open, Time::NEVER);
        (self.pto_count, self.app_limited, self.ce_packets) = (0, false, 0);
        self.acked.clear();
        self.lost.clear();
        self.packets = SentPackets::default();
        self.rtt.reset();
        self.control.reset();
        self.pacer = self.pacer.as_ref().map(|_| QuicPacer::new(self.initial.0));
        self.established = Time::NEVER;
        self.output(now, 0, 0, out);
    }

    /// See [`super::Tcp::write`].
    pub fn write(&mut self, now: Time, amount: u64, out: &mut Vec<Segment>) {
        self.write_end = self.write_end.saturating_add(amount);
        self.send(now, out);
    }

    /// See [`super::Tcp::stop_writing`].
    pub fn stop(&mut self) {
        self.write_end = self.write_end.min(self.next);
    }

    /// See [`super::Tcp::abort`].
    pub fn abort(&mut self) {
        self.stop();
        self.control.reset(); // drops a packet held by the pacer
        self.pacer = self.pacer.as_ref().map(|_| QuicPacer::new(self.initial.0));
        self.lost.clear();
        self.packets.clear();
        self.loss_time = Time::NEVER;
    }

    /// Sends what the window and the pacer allow, lost data first.
    fn send(&mut self, now: Time, out: &mut Vec<Segment>) {
        self.control.clear_held();
        if let Some(pacer) = &mut self.pacer {
            pacer.clear_held();
        }
        if self.una == 0 {
            return;
        }
        loop {
            let Some((seq, end)) = self.next_data() else {
                self.app_limited = self.packets.in_flight() + self.window.mss <= self.window.cwnd;
                if self.app_limited {
                    self.control.on_app_limited(self.packets.in_flight());
                }
                return;
            };
            if self.packets.in_flight() + (end - seq) > self.window.cwnd {
                self.app_limited = false;
                return;
            }
            if !self.may_send(now, seq, end) {
                self.app_limited = false;
                return;
            }
            self.take_data(seq, end);
            self.output(now, seq, end - seq, out);
        }
    }

    /// True if the pacer allows a packet with the data from `seq` to `end` now.
    fn may_send(&mut self, now: Time, seq: u64, end: u64) -> bool {
        let (cwnd, srtt) = (self.window.cwnd, self.rtt.smoothed());
        let paced = |pacer: &mut QuicPacer| pacer.may_send(now, end - seq, cwnd, srtt);
        self.control.may_send(now, seq) && self.pacer.as_mut().is_none_or(paced)
    }

    /// Data of the next packet: lost data that is still missing, else new data.
    fn next_data(&mut self) -> Option<(u64, u64)> {
        while let Some(&(seq, end)) = self.lost.front() {
            if !self.is_acked(seq) {
                return Some((seq, end));
            }
            self.lost.pop_front();
        }
        let end = self.write_end.min(self.next + self.window.mss);
        (self.next < end && end <= self.una + self.rwnd).then_some((self.next, end))
    }

    /// Removes the data that [`QuicSender::next_data`] returned from what is to be sent.
    fn take_data(&mut self, seq: u64, end: u64) {
        if seq < self.next {
            self.lost.pop_front();
        } else {
            self.next = end;
        }
    }

    /// True if the packet of the stream that starts at `seq` is acknowledged.
    fn is_acked(&self, seq: u64) -> bool {
        seq < self.una || self.acked.containing(seq).is_some()
    }

    /// Sends a packet with `len` bytes of the stream from `seq`; the SYN if `seq` is 0.
    fn output(&mut self, now: Time, seq: u64, len: u64, out: &mut Vec<Segment>) {
        let (syn, end) = (seq == 0, seq + len);
        let retransmission = if syn { self.packets.next() > 0 } else { seq < self.high_data() };
        let was_idle = self.una == self.high_data();
        let number = self.packets.send(now, seq, cast::saturate32(len));
        #[expect(clippy::cast_possible_truncation, reason = "at most the payload of 65,535 bytes")]
        let (len, wire_bytes) = (len as u16, (len as u32 + self.header_bytes) as u16);
        let (timestamp, ect) = (cast::low32(number), self.ecn && !syn);
        let bits = Segment { syn, retransmission, ect, ..Segment::default() };
        out.push(Segment { seq, len, wire_bytes, timestamp, ..bits });
        self.stats.sent_packets += 1;
        self.stats.retransmitted_packets += u64::from(retransmission && !syn);
        if !syn {
            let state = self.state;
            self.control.on_sent(&SentSegment {
                now,
                seq,
                end,
                retransmission,
                padding: 0,
                was_idle,
                state,
            });
            if let Some(pacer) = &mut self.pacer {
                pacer.on_sent(end - seq);
            }
        }
        self.last_sent = now;
    }

    /// Lowest byte of the stream that was never sent; called before a packet is recorded.
    fn high_data(&self) -> u64 {
        self.packets.high_data().max(1)
    }

    /// See [`super::Tcp::next_timer`].
    #[inline(never)] // keeps the other senders' path short
    pub fn timer(&self) -> Time {
        let pacer = self.pacer.as_ref().map_or(Time::NEVER, QuicPacer::release_time);
        self.loss_timer().min(pacer).min(self.control.release_time())
    }

    /// Congestion control.
    pub fn control(&self) -> &AnyControl {
        &self.control
    }

    /// Smoothed round-trip time.
    pub fn srtt(&self) -> Option<Span> {
        self.rtt.smoothed()
    }

    /// See [`super::Tcp::cwnd_packets`].
    pub fn cwnd_packets(&self) -> f64 {
        self.window.cwnd as f64 / self.window.mss as f64
    }

    /// See [`super::Tcp::ssthresh_packets`].
    pub fn ssthresh_packets(&self) -> f64 {
        self.window.ssthresh as f64 / self.window.mss as f64
    }

    /// See [`super::Tcp::is_done`].
    pub fn done(&self) -> bool {
        self.una >= self.write_end
    }

    /// See [`super::Tcp::acked_bytes`].
    pub fn acked_bytes(&self) -> u64 {
        self.una.saturating_sub(1)
    }

    /// See [`super::Tcp::established`].
    pub fn established(&self) -> Time {
        self.established
    }

    /// See [`super::Tcp::stats`].
    pub fn stats(&self) -> &SenderStats {
        &self.stats
    }

    /// Always 0: losses are detected by packet numbers.
    #[expect(clippy::unused_self, reason = "as the other senders")]
    pub fn dup_acks(&self) -> u32 {
        0
    }

    #[cfg(test)]
    fn in_flight(&self) -> u64 {
        self.packets.in_flight()
    }
}
