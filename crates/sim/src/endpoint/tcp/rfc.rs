//! Sender of the `rfc` profile: sequence numbers and windows in bytes.
//!
//! **Source**: RFC 5681 (fast retransmit, fast recovery, restart after idle), RFC 6582 (NewReno),
//! RFC 6675 (SACK, in `rfc/sack.rs`), RFC 6298 (timer), RFC 3042 (limited transmit), RFC 3168
//! (ECN). `rfc/recovery.rs` handles duplicate acks and timeouts, `rfc/timing.rs` round-trip times,
//! [`crate::endpoint::cc`] the growth of the window.
//!
//! **Symbols**
//!
//! | RFC | here |
//! |---|---|
//! | SND.UNA, HighACK + 1 | `snd_una` |
//! | SND.NXT | `snd_nxt` |
//! | HighData + 1 | `high_data` |
//! | recover + 1, RecoveryPoint + 1 | `recover` |
//! | SMSS, cwnd, ssthresh | `window` |
//!
//! **Departures**: the timer is restarted at a fast retransmit, as in ns-2 and Linux, so that
//! the retransmission has a full timeout. There is no Nagle algorithm: written data is sent at
//! once. Window space smaller than a full segment is not used, except by the last segment.
//!
//! `rfc/hooks.rs` has the hooks of congestion controls beyond growth and reduction (rate samples,
//! pacing). Where [`CongestionControl::HOOKED`] is false, they are not compiled in, and RACK,
//! timestamps and the packets without payload are not either.
//!
//! **Cost**: under 400 bytes per sender; no work per packet in flight (except SACK).

mod close;
mod frto;
mod hooks;
mod idle;
mod push;
mod rack;
mod recovery;
mod sack;
mod syn;
mod timing;
mod tlp;
mod undo;

use super::params::{EcnFeedback, LossRecovery, TcpParams, resolved};
use super::rtt::{RtoBounds, RttEstimator};
use super::scoreboard::Scoreboard;
use super::{Ack, Segment, SenderStats};
pub(super) use crate::endpoint::cc::RecoveryState;
use crate::endpoint::cc::{CongestionControl, NewDataAck, SentSegment, Window};
use rack::{RackState, timestamp};
use sojourn_aqm::Snapshot;
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Span, Time};

/// Sender of the `rfc` profile with congestion control `C`.
#[derive(Clone, Debug, Snapshot)]
pub struct RfcSender<C> {
    /// Lowest unacknowledged byte; 0 until the SYN is acknowledged.
    pub(super) snd_una: u64,
    /// Next byte to send.
    pub(super) snd_nxt: u64,
    /// Lowest byte never sent.
    pub(super) high_data: u64,
    /// First byte not yet written by the application.
    pub(super) write_end: u64,
    /// Value of `high_data` at the last window reduction.
    pub(super) recover: u64,
    pub(super) window: Window,
    pub(super) rwnd: u64,
    /// Window inflation by duplicate acks, bytes.
    pub(super) inflation: u64,
    /// Bytes sent by limited transmit since the last ack of new data.
    pub(super) limited_transmit_bytes: u64,
    pub(super) dup_acks: u32,
    pub(super) state: RecoveryState,
    pub(super) recovery: LossRecovery,
    /// NewReno: true if this recovery has seen a partial ack.
    pub(super) saw_partial_ack: bool,
    /// True if the last window reduction was caused by a mark.
    pub(super) reduced_by_mark: bool,
    /// True if the segment at `snd_una` was retransmitted after a timeout.
    pub(super) first_segment_timed_out: bool,
    /// True if a mark arrived at a window of one segment: sending is paused until the timer
    /// expires.
    pub(super) paused_by_mark: bool,
    /// True if the next new segment carries CWR.
    pub(super) cwr: bool,
    pub(super) ecn: bool,
    /// True if acks carry the number of marked packets.
    pub(super) accurate: bool,
    /// Number of marked packets, modulo 2^16, as of the last ack.
    ce_packets: u16,
    pub(super) limited_transmit: bool,
    pub(super) reduce_once_per_window: bool,
    /// True if congestion reduces the window instead of the data in flight.
    pub(super) reduce_cwnd: bool,
    /// True if segments carry timestamps.
    timestamps: bool,
    /// True if PSH is set as in Linux.
    sets_push: bool,
    pub(super) rtt: RttEstimator,
    /// End of the segment being timed and its transmission time.
    pub(super) rtt_segment: Option<(u64, Time)>,
    pub(super) timer: Time,
    /// Time of the last transmission.
    last_sent: Time,
    pub(super) scoreboard: Scoreboard,
    /// RACK: order of transmissions.
    rack: Option<Box<RackState>>,
    /// SACK: the rescue retransmission is allowed once `snd_una` is above this.
    pub(super) rescue_point: u64,
    pub(super) control: C,
    /// Initial window and threshold, bytes.
    initial: (u64, u64),
    header_bytes: u32,
    /// Time at which the SYN was acknowledged; [`Time::NEVER`] before.
    established: Time,
    pub(super) stats: SenderStats,
}

impl<C: CongestionControl> RfcSender<C> {
    /// Creates a sender without a connection; `own` are the parameters of its control.
    pub fn new(params: &TcpParams, own: &C::Params, rng: &mut dyn Random) -> RfcSender<C> {
        let s = &params.settings;
        let initial =
            (s.in_bytes(resolved(s.initial_window)), s.in_bytes(resolved(s.initial_ssthresh)));
        RfcSender {
            snd_una: 0,
            snd_nxt: 0,
            high_data: 0,
            write_end: 0,
            recover: 0,
            window: Window { cwnd: initial.0, ssthresh: initial.1, mss: s.payload() },
            rwnd: s.in_bytes(s.receive_window),
            inflation: 0,
            limited_transmit_bytes: 0,
            dup_acks: 0,
            state: RecoveryState::Open,
            recovery: params.recovery,
            saw_partial_ack: false,
            reduced_by_mark: false,
            first_segment_timed_out: false,
            paused_by_mark: false,
            cwr: false,
            ecn: resolved(s.ecn),
            accurate: resolved(s.ecn_feedback) == EcnFeedback::Accurate,
            ce_packets: 0,
            limited_transmit: s.limited_transmit,
            reduce_once_per_window: s.careful,
            reduce_cwnd: s.reduce_cwnd,
            timestamps: s.timestamps,
            sets_push: s.linux_acks,
            rtt: if s.rack && s.rtt_per_ack {
                RttEstimator::linux(RtoBounds::of(s))
            } else {
                RttEstimator::new(RtoBounds::of(s))
            },
            rtt_segment: None,
            timer: Time::NEVER,
            last_sent: Time::ZERO,
            scoreboard: Scoreboard::default(),
            rack: s.rack.then(|| Box::new(RackState::new(s, rng))),
            rescue_point: 0,
            control: C::new(own, &params.settings, rng),
            initial,
            header_bytes: s.header_bytes(),
            established: Time::NEVER,
            stats: SenderStats::default(),
        }
    }

    /// See [`super::Tcp::open`].
    pub fn open(&mut self, now: Time, out: &mut Vec<Segment>) {
        (self.snd_una, self.snd_nxt, self.high_data, self.write_end, self.recover) =
            (0, 0, 0, 1, 0);
        (self.window.cwnd, self.window.ssthresh) = self.initial;
        (self.inflation, self.limited_transmit_bytes, self.dup_acks, self.state) =
            (0, 0, 0, RecoveryState::Open);
        (self.saw_partial_ack, self.reduced_by_mark, self.first_segment_timed_out) =
            (false, false, false);
        (self.paused_by_mark, self.cwr, self.rescue_point, self.ce_packets) = (false, false, 0, 0);
        self.rtt.reset();
        self.scoreboard.clear();
        if let Some(order) = &mut self.rack {
            order.clear();
            (self.ecn, order.first_syn) = (order.ecn, timestamp(now));
        }
        self.control.reset();
        self.rtt_segment = None;
        (self.timer, self.established) = (Time::NEVER, Time::NEVER);
        self.output(now, 0, 0, out);
        self.snd_nxt = 1;
    }

    /// See [`super::Tcp::write`].
    pub fn write(&mut self, now: Time, amount: u64, out: &mut Vec<Segment>) {
        if C::HOOKED {
            self.report_write();
        }
        self.write_end = self.write_end.saturating_add(amount);
        self.send(now, out);
    }

    /// See [`super::Tcp::stop_writing`].
    pub fn stop(&mut self) {
        self.write_end = self.write_end.min(self.high_data.max(1));
    }

    /// See [`super::Tcp::abort`].
    pub fn abort(&mut self) {
        self.stop();
        self.control.reset(); // drops a segment held by the pacer
        self.timer = Time::NEVER;
    }

    /// See [`super::Tcp::on_ack`].
    pub fn on_ack(&mut self, now: Time, ack: &Ack, out: &mut Vec<Segment>) {
        debug_assert!(ack.ack <= self.high_data, "ack of data that was never sent");
        if self.snd_una == 0 {
            return self.on_syn_ack(now, ack, out);
        }
        let marks = self.take_marks(ack);
        let lost_before = if C::HOOKED { self.lost_total() } else { 0 };
        if C::HOOKED {
            self.report_ack(now, ack, marks);
        }
        if marks > 0 {
            self.on_mark(now, ack.ack);
        }
        let news = if self.has_rack() {
            self.rack_on_ack(now, ack, marks > 0)
        } else {
            self.recovery == LossRecovery::Sack
                && ack.ack >= self.snd_una
                && self.scoreboard.update(ack)
        };
        if news && !self.rtt.is_per_ack() {
            self.sample_selective(now);
        }
        if ack.ack > self.snd_una {
            self.on_new_ack(now, ack, marks > 0, out);
        } else if ack.ack == self.snd_una && self.snd_una < self.high_data {
            self.on_dup_ack(now, news, out);
        }
        if self.has_rack() {
            self.rack_recover(now, out);
            self.acknowledge_fin(now, out);
        }
        if C::HOOKED {
            self.report_processed_ack(now, lost_before);
        }
        self.send_inlined(now, out);
    }

    /// True if the sender uses RACK.
    #[inline(always)]
    fn has_rack(&self) -> bool {
        C::HOOKED && self.rack.is_some()
    }

    /// Number of newly marked packets that the ack reports; with one-bit feedback 1 for a mark.
    #[inline]
    fn take_marks(&mut self, ack: &Ack) -> u16 {
        if !self.ecn {
            0
        } else if self.accurate {
            let before = std::mem::replace(&mut self.ce_packets, ack.ce_packets);
            ack.ce_packets.wrapping_sub(before)
        } else {
            u16::from(ack.ece)
        }
    }

    /// Processes an ack of new data; `marked` is true if it reports a mark.
    fn on_new_ack(&mut self, now: Time, ack: &Ack, marked: bool, out: &mut Vec<Segment>) {
        let (bytes, flight) = (ack.ack - self.snd_una, self.snd_nxt.max(ack.ack) - self.snd_una);
        self.snd_una = ack.ack;
        self.snd_nxt = self.snd_nxt.max(self.snd_una);
        (self.dup_acks, self.limited_transmit_bytes, self.first_segment_timed_out) = (0, 0, false);
        let bytes = if self.has_rack() { self.padded(bytes, ack.ack) } else { bytes };
        let timed = self.rtt_segment.take_if(|&mut (end, _)| end <= ack.ack);
        let rtt = timed.map(|(_, sent)| now - sent);
        if let Some(sample) = rtt.filter(|_| !self.rtt.is_per_ack()) {
            self.rtt.sample(sample);
        }
        if self.state == RecoveryState::Recovery {
            return self.on_ack_in_recovery(now, bytes, out);
        }
        self.restart_timer(now);
        let after_timeout = self.state == RecoveryState::Loss;
        if after_timeout && self.snd_una >= self.recover {
            self.state = RecoveryState::Open;
        }
        if !marked {
            let (srtt, flight) = (self.rtt.srtt(), self.used_window(flight));
            let acked = NewDataAck { at: now, bytes, flight, rtt, srtt, after_timeout };
            self.control.on_ack(&mut self.window, &acked);
        }
    }

    /// Sends what the window allows.
    #[inline(never)]
    pub(super) fn send(&mut self, now: Time, out: &mut Vec<Segment>) {
        self.send_inlined(now, out);
    }

    #[inline(always)]
    fn send_inlined(&mut self, now: Time, out: &mut Vec<Segment>) {
        let first = out.len();
        self.send_allowed(now, out);
        if C::HOOKED && self.sets_push {
            self.set_push(&mut out[first..]);
        }
    }

    #[inline(always)]
    fn send_allowed(&mut self, now: Time, out: &mut Vec<Segment>) {
        if C::HOOKED {
            self.report_app_limited();
        }
        if self.snd_una == 0
            || self.paused_by_mark
            || self.snd_nxt >= self.write_end && self.state == RecoveryState::Open
        {
            return;
        }
        // RFC 5681 §4.1: after an idle period the window no longer reflects the path.
        let silent = self.snd_una == self.high_data && (now - self.last_sent) > self.rtt.rto();
        if silent && !self.control.keeps_window_when_idle() {
            self.restart_after_idle(now);
        }
        if self.has_rack() {
            return self.send_rack(now, out);
        }
        if self.recovery == LossRecovery::Sack {
            return self.send_by_pipe(now, out);
        }
        let window_end = self.snd_una + (self.window.cwnd + self.inflation).min(self.rwnd);
        while self.snd_nxt < self.write_end {
            let len = self.window.mss.min(self.write_end - self.snd_nxt);
            if self.snd_nxt + len > window_end
                || C::HOOKED && !self.control.may_send(now, self.snd_nxt)
            {
                break;
            }
            self.output_data(now, self.snd_nxt, len, out);
            self.snd_nxt += len;
        }
    }

    /// Sends the SYN if `seq` is 0, otherwise `len` bytes from `seq`; updates the timed segment and
    /// the timer.
    pub(super) fn output(&mut self, now: Time, seq: u64, len: u64, out: &mut Vec<Segment>) {
        self.output_inlined(now, seq, len, seq == 0, out);
        if C::HOOKED && seq == 0 {
            self.lengthen_syn(out);
        } else if C::HOOKED {
            self.make_fin(seq, out);
        }
    }

    /// As [`RfcSender::output`] for data, inlined in the path of every packet.
    #[inline(always)]
    fn output_data(&mut self, now: Time, seq: u64, len: u64, out: &mut Vec<Segment>) {
        self.output_inlined(now, seq, len, false, out);
    }

    #[inline(always)]
    fn output_inlined(&mut self, now: Time, seq: u64, len: u64, syn: bool, out: &mut Vec<Segment>) {
        let again = seq < self.high_data;
        // RFC 3168 §6.1.5, RFC 8257 §3.5.
        let ect = self.ecn && (!syn && !again || self.control.reacts_to_mark_fraction());
        let cwr = self.cwr && !syn && !again;
        self.cwr &= !cwr;
        #[expect(clippy::cast_possible_truncation, reason = "at most the payload of 65,535 bytes")]
        let (len, wire_bytes) = (len as u16, (len as u32 + self.header_bytes) as u16);
        let timestamp = if C::HOOKED && self.timestamps { timestamp(now) } else { 0 };
        let bits = Segment { syn, cwr, retransmission: again, ect, ..Segment::default() };
        out.push(Segment { seq, len, wire_bytes, timestamp, ..bits });
        self.stats.sent_packets += 1;
        let end = if syn { 1 } else { seq + u64::from(len) };
        if C::HOOKED && !syn {
            let alone = self.snd_una == self.high_data;
            let padding = self.rack.as_ref().map_or(0, |order| order.packets.padding(seq, end));
            self.control.on_sent(&SentSegment {
                now,
                seq,
                end,
                padding,
                retransmission: again,
                was_idle: alone,
                state: self.state,
            });
        }
        if C::HOOKED
            && let Some(order) = self.rack.as_mut().filter(|_| !syn)
        {
            order.sent(now, seq, end, again);
        }
        if again {
            self.stats.retransmitted_packets += u64::from(!syn);
            self.high_data = self.high_data.max(end);
            self.cancel_timing(seq, end);
        } else {
            self.high_data = end;
            if self.rtt_segment.is_none() {
                self.rtt_segment = Some((end, now));
            }
        }
        if self.timer == Time::NEVER {
            self.timer = self.rto_end(now); // RFC 6298 (5.1)
        }
        self.last_sent = now;
    }

    /// RFC 6298 (5.2), (5.3).
    pub(super) fn restart_timer(&mut self, now: Time) {
        let needed = self.snd_una < self.high_data || self.paused_by_mark;
        self.timer = if needed { self.rto_end(now) } else { Time::NEVER };
    }

    /// Flight size in bytes, without data sent by limited transmit (RFC 5681 §3.2).
    pub(super) fn flight(&self) -> u64 {
        self.snd_nxt - self.snd_una - self.limited_transmit_bytes
    }

    /// Returns the expiry of a retransmission timer that is set at `now`.
    #[inline]
    pub(super) fn rto_end(&self, now: Time) -> Time {
        let rto = self.rtt.rto();
        if C::HOOKED
            && let Some(order) = &self.rack
        {
            order.clock.after(now, rto + self.pacing_delay(now))
        } else {
            now + rto
        }
    }

    /// Current retransmission timeout.
    pub(super) fn rto(&self) -> Span {
        self.rtt.rto()
    }

    /// See [`super::Tcp::next_timer`].
    pub fn timer(&self) -> Time {
        if C::HOOKED { self.timer.min(self.control.release_time()) } else { self.timer }
    }

    /// Congestion control.
    pub fn control(&self) -> &C {
        &self.control
    }

    /// Smoothed round-trip time.
    pub fn srtt(&self) -> Option<Span> {
        self.rtt.srtt()
    }

    /// See [`super::Tcp::cwnd_packets`].
    pub fn cwnd_packets(&self) -> f64 {
        self.window.cwnd as f64 / self.window.mss as f64
    }

    /// See [`super::Tcp::ssthresh_packets`].
    pub fn ssthresh_packets(&self) -> f64 {
        self.window.ssthresh as f64 / self.window.mss as f64
    }

    /// See [`super::Tcp::dup_acks`].
    pub fn dup_acks(&self) -> u32 {
        self.dup_acks
    }

    /// See [`super::Tcp::is_done`].
    pub fn done(&self) -> bool {
        self.snd_una >= self.write_end
    }

    /// See [`super::Tcp::acked_bytes`].
    pub fn acked_bytes(&self) -> u64 {
        self.snd_una.saturating_sub(1 + u64::from(self.is_fin_acked()))
    }

    /// See [`super::Tcp::established`].
    pub fn established(&self) -> Time {
        self.established
    }

    /// See [`super::Tcp::stats`].
    pub fn stats(&self) -> &SenderStats {
        &self.stats
    }
}

#[cfg(test)]
mod tests;
