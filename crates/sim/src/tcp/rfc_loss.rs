//! What the sender of profile `rfc` does about duplicate acks, marks and its timer.
//!
//! **Source**: RFC 5681 §3.2, RFC 6582 §3.2, RFC 6298 (5.4)-(5.7), RFC 3042, RFC 3168 §6.1.2.

use super::params::Recovery;
use super::rfc::{Rfc, State};
use super::{DUP_THRESH, Segment};
use crate::cc::{Cause, Control};
use sojourn_aqm::units::Time;

impl<C: Control> Rfc<C> {
    /// A duplicate ack; for a SACK sender one without `news` does not count (RFC 6675 §2).
    pub(super) fn on_dup(&mut self, now: Time, news: bool, out: &mut Vec<Segment>) {
        let sack = self.recovery == Recovery::Sack;
        if sack && !news {
            return;
        }
        self.dup += 1;
        if self.order.is_some() {
            return; // it does not count them
        }
        match self.state {
            State::Recovery if !sack => self.inflation += self.window.mss,
            State::Recovery => {}
            // A timeout's repair is under way: its duplicates tell of nothing new.
            State::Loss if sack => {}
            _ if self.dup == DUP_THRESH || sack && self.first_is_lost() => {
                self.fast_retransmit(now, out);
            }
            _ if self.dup < DUP_THRESH && !sack => self.send_limited(now, out),
            _ => {}
        }
    }

    /// RFC 5681 §3.2 step 2 and 3, RFC 6582 §3.2 step 2, RFC 6675 §5 (4).
    pub(super) fn fast_retransmit(&mut self, now: Time, out: &mut Vec<Segment>) {
        let sack = self.recovery == Recovery::Sack;
        let in_cut_window = if sack { self.una < self.recover } else { self.una <= self.recover };
        // A mark has cut this window already: the loss is repaired without another cut.
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

    /// Sends the lowest segment again.
    fn output_first(&mut self, now: Time, out: &mut Vec<Segment>) {
        let len = self.window.mss.min(self.max - self.una);
        self.output(now, self.una, len, out);
    }

    /// An ack of `bytes` more in fast recovery.
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
        // RFC 5681 §3.2 step 6; RFC 6582 §3.2 step 3 as its option 2. Option 1, which would shrink
        // the window to what is in flight, punishes a flow that the receiver's window had stopped.
        self.window.cwnd = self.window.ssthresh;
    }

    /// RFC 6582 §3.2 step 3, partial ack: the next hole is filled, the window is deflated by what
    /// arrived less one segment, and the first of them restarts the timer ("impatient").
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

    /// RFC 3042: each of the first two duplicate acks lets one new segment out.
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

    /// An echo of a mark in an ack of everything below `ack`: halves once per window, as a loss
    /// would; a window of one segment waits for the timer in place of that (RFC 3168 §6.1.2).
    pub(super) fn on_mark(&mut self, now: Time, ack: u64) {
        if ack <= self.recover {
            return;
        }
        // The ack also ends whatever repair there was, and what was cut for it.
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

    /// Asks the control for the threshold, and the next new segment to tell of the cut. What is in
    /// flight beyond the window was let out by a recovery whose cut is made already: another sign
    /// of congestion lowers the threshold once more, and never raises it (RFC 5681 §4.3).
    fn cut(&mut self, now: Time, cause: Cause) {
        let flight = self.flight().min(self.window.cwnd);
        self.window.ssthresh = self.control.cut(now, &self.window, flight, cause);
        self.cwr = self.ecn;
    }

    /// See [`super::Tcp::on_timer`].
    pub fn on_timer(&mut self, now: Time, out: &mut Vec<Segment>) {
        if C::HOOKED && now < self.timer {
            return self.send(now, out); // the pacer's
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

    /// RFC 5681 §3.1, RFC 6298 (5.4)-(5.6): everything outstanding counts as lost.
    fn on_timeout(&mut self, now: Time) {
        self.stats.timeouts += 1;
        // Only the first expiry for a segment cuts, and none in a window that a mark has cut.
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
