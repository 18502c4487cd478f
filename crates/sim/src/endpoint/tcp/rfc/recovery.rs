//! Reaction of the `rfc` sender to duplicate acks, ECN marks and timeouts.
//!
//! **Source**: RFC 5681 §3.2, RFC 6582 §3.2, RFC 6298 (5.4)-(5.7), RFC 3042, RFC 3168 §6.1.2.

use super::super::params::LossRecovery;
use super::super::{DUP_THRESH, Segment};
use super::rack::TimerKind;
use super::{RecoveryState, RfcSender};
use crate::endpoint::cc::{CongestionControl, CongestionSignal};
use sojourn_aqm::units::Time;

impl<C: CongestionControl> RfcSender<C> {
    /// Processes a duplicate ack; for SACK it counts only with `news`, new SACK information (RFC
    /// 6675 §2).
    pub(super) fn on_dup_ack(&mut self, now: Time, news: bool, out: &mut Vec<Segment>) {
        let sack = self.recovery == LossRecovery::Sack;
        if sack && !news {
            return;
        }
        self.dup_acks += 1;
        if self.has_rack() {
            return; // RACK does not count duplicate acks
        }
        match self.state {
            RecoveryState::Recovery if !sack => self.inflation += self.window.mss,
            RecoveryState::Recovery => {}
            // Retransmission after a timeout: duplicate acks carry no new information.
            RecoveryState::Loss if sack => {}
            _ if self.dup_acks == DUP_THRESH || sack && self.first_is_lost() => {
                self.fast_retransmit(now, out);
            }
            _ if self.dup_acks < DUP_THRESH && !sack => self.send_limited(now, out),
            _ => {}
        }
    }

    /// Starts fast retransmit: RFC 5681 §3.2 steps 2 and 3, RFC 6582 §3.2 step 2, RFC 6675 §5 (4).
    pub(super) fn fast_retransmit(&mut self, now: Time, out: &mut Vec<Segment>) {
        let sack = self.recovery == LossRecovery::Sack;
        let in_cut_window =
            if sack { self.snd_una < self.recover } else { self.snd_una <= self.recover };
        // A mark has already reduced this window: retransmit without a second reduction.
        let spared =
            self.reduced_by_mark && in_cut_window && !self.control.reduces_for_loss_after_mark();
        let must = sack || self.recovery != LossRecovery::NewReno && !self.reduce_once_per_window;
        if in_cut_window && !spared && !must {
            return;
        }
        self.allow_undo(spared);
        if !spared {
            self.cut(now, CongestionSignal::Loss);
            self.window.cwnd = self.window.ssthresh;
        }
        self.reduced_by_mark = false;
        self.recover = self.high_data;
        self.timer = self.rto_end(now);
        if let Some(order) = &mut self.rack {
            order.timer = TimerKind::Retransmission;
        }
        match self.recovery {
            LossRecovery::Tahoe => {
                self.window.cwnd = self.window.mss;
                self.snd_nxt = self.snd_una;
                (self.state, self.rtt_segment, self.limited_transmit_bytes) =
                    (RecoveryState::Loss, None, 0);
            }
            LossRecovery::Reno | LossRecovery::NewReno => {
                (self.state, self.saw_partial_ack) = (RecoveryState::Recovery, false);
                self.inflation = u64::from(DUP_THRESH) * self.window.mss;
                self.retransmit_first(now, out);
            }
            LossRecovery::Sack => {
                (self.state, self.rescue_point) = (RecoveryState::Recovery, self.snd_una);
                self.start_recovery(now, out);
            }
        }
    }

    /// Retransmits the lowest segment.
    fn retransmit_first(&mut self, now: Time, out: &mut Vec<Segment>) {
        let len = self.window.mss.min(self.high_data - self.snd_una);
        self.output(now, self.snd_una, len, out);
    }

    /// Processes an ack of `bytes` new bytes in fast recovery.
    pub(super) fn on_ack_in_recovery(&mut self, now: Time, bytes: u64, out: &mut Vec<Segment>) {
        let all = self.snd_una >= self.recover;
        if self.recovery == LossRecovery::Sack {
            self.restart_timer(now);
            if all {
                self.state = RecoveryState::Open;
                if self.reduce_cwnd && self.control.own_pacing_rate().is_none() {
                    self.window.cwnd = self.window.ssthresh; // as PRR ends
                }
            }
            return;
        }
        if self.recovery == LossRecovery::NewReno && !all {
            return self.on_partial_ack(now, bytes, out);
        }
        self.state = RecoveryState::Open;
        self.inflation = 0;
        self.restart_timer(now);
        // RFC 5681 §3.2 step 6; RFC 6582 §3.2 step 3, option 2. Option 1 would reduce the window to
        // the flight size, which penalises a flow limited by the receive window.
        self.window.cwnd = self.window.ssthresh;
    }

    /// Processes a partial ack (RFC 6582 §3.2 step 3): retransmits the next hole and deflates the
    /// window by the acknowledged data minus one segment. Only the first partial ack restarts the
    /// timer ("impatient" variant).
    fn on_partial_ack(&mut self, now: Time, bytes: u64, out: &mut Vec<Segment>) {
        if !self.saw_partial_ack {
            self.saw_partial_ack = true;
            self.restart_timer(now);
        }
        self.retransmit_first(now, out);
        let mss = self.window.mss;
        let all = (self.window.cwnd + self.inflation).saturating_sub(bytes);
        let all = (all + if bytes >= mss { mss } else { 0 }).max(mss);
        self.window.cwnd = self.window.cwnd.min(all);
        self.inflation = all - self.window.cwnd;
    }

    /// Limited transmit (RFC 3042): send one new segment for each of the first two duplicate acks.
    fn send_limited(&mut self, now: Time, out: &mut Vec<Segment>) {
        let len = self.window.mss.min(self.write_end - self.high_data);
        let flight = self.snd_nxt + len - self.snd_una;
        let room = flight <= self.window.cwnd + u64::from(self.dup_acks) * self.window.mss;
        let new = self.snd_nxt == self.high_data && len > 0;
        if self.limited_transmit && new && room && flight <= self.rwnd {
            self.output(now, self.snd_nxt, len, out);
            self.snd_nxt += len;
            self.limited_transmit_bytes += len;
        }
    }

    /// Processes an ECN echo in an ack of everything below `ack`: reduces at most once per window,
    /// as for a loss. At a window of one segment sending pauses until the timer expires (RFC 3168
    /// §6.1.2).
    ///
    /// In Linux a mark counts in state Open unless one has reduced this window, and sending does
    /// not pause: PRR keeps the data in flight.
    pub(super) fn on_mark(&mut self, now: Time, ack: u64) {
        let open = self.state == RecoveryState::Open && !self.reduced_by_mark;
        if ack <= self.recover && !(self.reduce_cwnd && open) {
            return;
        }
        // The ack also ends a recovery in progress.
        (self.state, self.inflation) = (RecoveryState::Open, 0);
        let pauses = !self.reduce_cwnd && !self.control.reacts_to_mark_fraction();
        if pauses && self.window.cwnd <= self.window.mss {
            self.paused_by_mark = true;
            self.timer = self.rto_end(now);
        } else {
            let most =
                if self.control.reacts_to_mark_fraction() { self.window.cwnd } else { u64::MAX };
            self.cut(now, CongestionSignal::Mark);
            self.window.cwnd = self.window.ssthresh.min(most);
        }
        (self.recover, self.reduced_by_mark) = (self.high_data, true);
    }

    /// Gets the new threshold from the congestion control and sets CWR on the next new segment. The
    /// flight size is limited to the window: data beyond it was released by a recovery whose
    /// reduction is already made, and a further congestion signal must never raise the threshold
    /// (RFC 5681 §4.3).
    pub(super) fn cut(&mut self, now: Time, cause: CongestionSignal) {
        let cwnd = self.window.cwnd;
        let flight = if self.reduce_cwnd { cwnd } else { self.flight().min(cwnd) };
        self.window.ssthresh = self.control.on_congestion(now, &self.window, flight, cause);
        self.cwr = self.ecn;
        if let Some(order) = &mut self.rack {
            order.probe.forget();
        }
    }

    /// See [`super::super::Tcp::on_timer`].
    pub fn on_timer(&mut self, now: Time, out: &mut Vec<Segment>) {
        if C::HOOKED && now < self.timer {
            return self.send(now, out); // the pacer's timer
        }
        if self.send_probe(now, out) || self.rack_expired(now, out) {
            return self.send(now, out);
        }
        self.timer = Time::NEVER;
        self.paused_by_mark = false;
        if self.snd_una == 0 {
            return self.on_syn_timeout(now, out);
        }
        if self.snd_una < self.high_data {
            self.on_timeout(now);
            let rto = self.rto();
            if let Some(clock) = self.rack.as_ref().map(|order| order.clock) {
                self.send_lost_or_new(now, out); // the pacer does not hold it
                self.timer = clock.after(now, rto);
            } else {
                self.timer = now + rto;
            }
        }
        self.send(now, out);
    }

    /// Processes a retransmission timeout: all outstanding data counts as lost (RFC 5681 §3.1, RFC
    /// 6298 (5.4)-(5.6)), with RACK only what was sent a round-trip time ago. The window allows one
    /// segment to be sent.
    fn on_timeout(&mut self, now: Time) {
        self.stats.timeouts += 1;
        // Only the first expiry for a segment reduces, and none in a window reduced by a mark. In
        // Linux, neither does one in a window reduced by a loss; the control is notified.
        let by_loss = self.reduce_cwnd && self.state == RecoveryState::Recovery;
        let reduced = self.snd_una < self.recover && (self.reduced_by_mark || by_loss);
        let ssthresh = self.window.ssthresh;
        if !self.first_segment_timed_out && !reduced {
            self.allow_undo(false);
            self.cut(now, CongestionSignal::Timeout);
        } else if !self.first_segment_timed_out && self.reduce_cwnd {
            self.cut(now, CongestionSignal::Timeout);
            self.window.ssthresh = ssthresh;
        }
        // RFC 5682 §3.1: not while a recovery is repairing losses.
        let may_be_spurious = self.state == RecoveryState::Open || self.first_segment_timed_out;
        self.window.cwnd = self.window.mss;
        (self.inflation, self.dup_acks, self.limited_transmit_bytes) = (0, 0, 0);
        (self.first_segment_timed_out, self.reduced_by_mark, self.cwr) = (true, false, self.ecn);
        (self.state, self.rtt_segment, self.recover) = (RecoveryState::Loss, None, self.high_data);
        self.rtt.back_off();
        if let Some(order) = &mut self.rack {
            order.frto.undecided = order.frto.on && may_be_spurious;
            order.probe.forget();
            order.on_timeout(now, self.snd_una, &self.scoreboard);
            self.window.cwnd = self.bytes_in_network() + self.window.mss;
            if C::HOOKED {
                self.control.on_timeout_losses(&self.window, self.lost_total());
            }
        }
        if self.recovery == LossRecovery::Sack {
            self.scoreboard.restart_retransmission();
        } else {
            self.snd_nxt = self.snd_una;
        }
    }
}
