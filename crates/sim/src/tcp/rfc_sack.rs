//! SACK-based loss recovery of the `rfc` profile: in every state, sending is limited by the
//! estimate of data in the network (pipe).
//!
//! **Source**: RFC 6675 §4, §5, §5.1. SACK information is kept after a timeout, which §5.1 allows
//! if receivers do not renege; the receiver here never does. Proportional Rate Reduction (RFC 6937)
//! is an option, in `cc/prr.rs`.
//!
//! **Departures**: the rescue retransmission of NextSeg (4) waits for the first partial ack of a
//! recovery. The RFC allows it at once; a flow limited by the receive window would then send one
//! packet twice after every single loss.

use super::Segment;
use super::rfc::{Rfc, State};
use crate::cc::Control;
use sojourn_aqm::units::Time;

impl<C: Control> Rfc<C> {
    /// True if the first unacknowledged segment is lost: IsLost(HighACK + 1).
    pub(super) fn first_is_lost(&self) -> bool {
        self.board.lost_below(self.window.mss) > self.una
    }

    /// Retransmit the first hole regardless of the pipe (RFC 6675 §5 (4.3)).
    pub(super) fn start_repair(&mut self, now: Time, out: &mut Vec<Segment>) {
        if self.order.is_some() {
            self.send_one(now, out);
            return;
        }
        self.board.start_over();
        if let Some(hole) = self.board.lacking(self.una, self.max) {
            self.repair(now, hole, out);
        }
    }

    /// Sequence number below which all missing data is lost.
    pub(super) fn lost(&self) -> u64 {
        match self.state {
            State::Open => 0,
            State::Recovery => self.board.lost_below(self.window.mss),
            State::Loss => self.recover,
        }
    }

    /// Send while the pipe has room for a full segment: RFC 6675 §5 (C), and (3) for the first
    /// duplicate acks.
    pub(super) fn send_by_pipe(&mut self, now: Time, out: &mut Vec<Segment>) {
        if self.state == State::Open && self.dup > 0 && !self.limited_transmit {
            return;
        }
        let lost = self.lost();
        let mut pipe = self.board.pipe(self.una, self.nxt, lost);
        while pipe + self.window.mss <= self.window.cwnd {
            if C::HOOKED && !self.control.may_send(now) {
                return;
            }
            let before = self.stats.sent_packets;
            pipe += self.send_next(now, lost, out);
            if self.stats.sent_packets == before {
                return;
            }
        }
    }

    /// Send the segment chosen by NextSeg; returns its length, 0 if there is none.
    fn send_next(&mut self, now: Time, lost: u64, out: &mut Vec<Segment>) -> u64 {
        if let Some(hole) = self.board.lacking(self.una, lost) {
            return self.repair(now, hole, out); // (1)
        }
        let len = self.window.mss.min(self.end - self.nxt.min(self.end));
        if len > 0 && self.nxt + len <= self.una + self.rwnd {
            self.output(now, self.nxt, len, out); // (2)
            self.nxt += len;
            if self.state == State::Open && self.dup > 0 {
                self.limited += len;
            }
            return len;
        }
        if self.state != State::Recovery {
            return 0;
        }
        if let Some(hole) = self.board.lacking(self.una, self.board.top()) {
            return self.repair(now, hole, out); // (3)
        }
        if self.una > self.rescued {
            self.rescued = self.recover; // (4)
            let (start, end) = self.board.top_gap(self.una, self.nxt);
            let start = start.max(end.saturating_sub(self.window.mss));
            if start < end {
                self.output(now, start, end - start, out);
                return end - start;
            }
        }
        0
    }

    /// Retransmit the start of a hole.
    fn repair(&mut self, now: Time, hole: (u64, u64), out: &mut Vec<Segment>) -> u64 {
        let len = self.window.mss.min(hole.1 - hole.0);
        self.board.repaired_to(hole.0 + len);
        self.output(now, hole.0, len, out);
        len
    }
}
