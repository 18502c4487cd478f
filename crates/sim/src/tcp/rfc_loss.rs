//! Reaction of the `rfc` sender to duplicate acks, ECN marks and timeouts.
//!
//! **Source**: RFC 5681 §3.2, RFC 6582 §3.2, RFC 6298 (5.4)-(5.7), RFC 3042, RFC 3168 §6.1.2.

use super::params::Recovery;
use super::rfc::{Rfc, State};
use super::{DUP_THRESH, Segment};
use crate::cc::{Cause, Control};
use sojourn_aqm::units::Time;

impl<C: Control> Rfc<C> {
    /// Process a duplicate ack; for SACK it counts only with `news`, new SACK information (RFC 6675
    /// §2).
    pub(super) fn on_dup(&mut self, now: Time, news: bool, out: &mut Vec<Segment>) {
        let sack = self.recovery == Recovery::Sack;
        if sack && !news {
            return;
        }
        self.dup += 1;
        if self.order.is_some() {
            return; // RACK does not count duplicate acks
        }
        match self.state {
            State::Recovery if !sack => self.inflation += self.window.mss,
            State::Recovery => {}
            // Retransmission after a timeout: duplicate acks carry no new information.
            State::Loss if sack => {}
            _ if self.dup == DUP_THRESH || sack && self.first_is_lost() => {
                self.fast_retransmit(now, out);
            }
            _ if self.dup < DUP_THRESH && !sack => self.send_limited(now, out),
            _ => {}
        }
    }

    /// Start fast retransmit: RFC 5681 §3.2 steps 2 and 3, RFC 6582 §3.2 step 2, RFC 6675 §5 (4).
    pub(super) fn fast_retransmit(&mut self, now: Time, out: &mut Vec<Segment>) {
        let sack = self.recovery == Recovery::Sack;
        let in_cut_window = if sack { self.una < self.recover } else { self.una <= self.recover };
        // A mark has already reduced this window: retransmit without a second reduction.
        let spared = self.marked && in_cut_window;
        let must = sack || self.recovery != Recovery::NewReno && !self.careful;
        if in_cut_window && !spared && !must {
            return;
        }
        if !spared {
            self.cut(now, Cause::Loss);
            self.window.cwnd = self.window.ssthresh;
        }
        self.marked = false;
        self.recover = self.max;
        self.timer = now + self.rto();
        match self.recovery {
            Recovery::Tahoe => {
                self.window.cwnd = self.window.mss;
                self.nxt = self.una;
                (self.state, self.timed, self.limited) = (State::Loss, None, 0);
            }
            Recovery::Reno | Recovery::NewReno => {
                (self.state, self.partial) = (State::Recovery, false);
                self.inflation = u64::from(DUP_THRESH) * self.window.mss;
                self.output_first(now, out);
            }
            Recovery::Sack => {
                (self.state, self.rescued) = (State::Recovery, self.una);
                self.start_repair(now, out);
            }
        }
    }

    /// Retransmit the lowest segment.
    fn output_first(&mut self, now: Time, out: &mut Vec<Segment>) {
        let len = self.window.mss.min(self.max - self.una);
        self.output(now, self.una, len, out);
    }

    /// Process an ack of `bytes` new bytes in fast recovery.
    pub(super) fn on_ack_in_recovery(&mut self, now: Time, bytes: u64, out: &mut Vec<Segment>) {
        let all = self.una >= self.recover;
        if self.recovery == Recovery::Sack {
            self.restart_timer(now);
            if all {
                self.state = State::Open;
            }
            return;
        }
        if self.recovery == Recovery::NewReno && !all {
            return self.on_partial_ack(now, bytes, out);
        }
        self.state = State::Open;
        self.inflation = 0;
        self.restart_timer(now);
        // RFC 5681 §3.2 step 6; RFC 6582 §3.2 step 3, option 2. Option 1 would reduce the window to
        // the flight size, which penalises a flow limited by the receive window.
        self.window.cwnd = self.window.ssthresh;
    }

    /// Process a partial ack (RFC 6582 §3.2 step 3): retransmit the next hole and deflate the
    /// window by the acknowledged data minus one segment. Only the first partial ack restarts the
    /// timer ("impatient" variant).
    fn on_partial_ack(&mut self, now: Time, bytes: u64, out: &mut Vec<Segment>) {
        if !self.partial {
            self.partial = true;
            self.restart_timer(now);
        }
        self.output_first(now, out);
        let mss = self.window.mss;
        let all = (self.window.cwnd + self.inflation).saturating_sub(bytes);
        let all = (all + if bytes >= mss { mss } else { 0 }).max(mss);
        self.window.cwnd = self.window.cwnd.min(all);
        self.inflation = all - self.window.cwnd;
    }

    /// Limited transmit (RFC 3042): send one new segment for each of the first two duplicate acks.
    fn send_limited(&mut self, now: Time, out: &mut Vec<Segment>) {
        let len = self.window.mss.min(self.end - self.max);
        let flight = self.nxt + len - self.una;
        let room = flight <= self.window.cwnd + u64::from(self.dup) * self.window.mss;
        let new = self.nxt == self.max && len > 0;
        if self.limited_transmit && new && room && flight <= self.rwnd {
            self.output(now, self.nxt, len, out);
            self.nxt += len;
            self.limited += len;
        }
    }

    /// Process an ECN echo in an ack of everything below `ack`: reduces at most once per window, as
    /// for a loss. At a window of one segment sending pauses until the timer expires (RFC 3168
    /// §6.1.2).
    pub(super) fn on_mark(&mut self, now: Time, ack: u64) {
        if ack <= self.recover {
            return;
        }
        // The ack also ends a recovery in progress.
        (self.state, self.inflation) = (State::Open, 0);
        if self.window.cwnd <= self.window.mss && !self.control.counts_marks() {
            self.hushed = true;
            self.timer = now + self.rto();
        } else {
            let most = if self.control.counts_marks() { self.window.cwnd } else { u64::MAX };
            self.cut(now, Cause::Mark);
            self.window.cwnd = self.window.ssthresh.min(most);
        }
        (self.recover, self.marked) = (self.max, true);
    }

    /// Get the new threshold from the congestion control and set CWR on the next new segment. The
    /// flight size is limited to the window: data beyond it was released by a recovery whose
    /// reduction is already made, and a further congestion signal must never raise the threshold
    /// (RFC 5681 §4.3).
    fn cut(&mut self, now: Time, cause: Cause) {
        let flight = self.flight().min(self.window.cwnd);
        self.window.ssthresh = self.control.cut(now, &self.window, flight, cause);
        self.cwr = self.ecn;
    }

    /// See [`super::Tcp::on_timer`].
    pub fn on_timer(&mut self, now: Time, out: &mut Vec<Segment>) {
        if C::HOOKED && now < self.timer {
            return self.send(now, out); // the pacer's timer
        }
        self.timer = Time::NEVER;
        self.hushed = false;
        if self.una == 0 {
            self.stats.timeouts += 1;
            self.rtt.back_off();
            return self.output(now, 0, 0, out);
        }
        if self.una < self.max {
            self.on_timeout(now);
            self.timer = now + self.rto();
        }
        self.send(now, out);
    }

    /// Process a retransmission timeout: all outstanding data counts as lost (RFC 5681 §3.1, RFC
    /// 6298 (5.4)-(5.6)).
    fn on_timeout(&mut self, now: Time) {
        self.stats.timeouts += 1;
        // Only the first expiry for a segment reduces, and none in a window reduced by a mark.
        let spared = self.marked && self.una < self.recover;
        if !(self.expired || spared) {
            self.cut(now, Cause::Timeout);
        }
        self.window.cwnd = self.window.mss;
        (self.inflation, self.dup, self.limited) = (0, 0, 0);
        (self.expired, self.marked, self.cwr) = (true, false, self.ecn);
        (self.state, self.timed, self.recover) = (State::Loss, None, self.max);
        self.rtt.back_off();
        if let Some(order) = &mut self.order {
            order.give_up(self.una, &self.board);
        }
        if self.recovery == Recovery::Sack {
            self.board.start_over();
        } else {
            self.nxt = self.una;
        }
    }
}
