//! SACK-based loss recovery of the `rfc` profile: in every state, sending is limited by the
//! estimate of data in the network (pipe).
//!
//! **Source**: RFC 6675 §4, §5, §5.1. SACK information is kept after a timeout, which §5.1 allows
//! if receivers do not renege; the receiver here never does. Proportional Rate Reduction (RFC 9937)
//! is an option, in `cc/prr.rs`.
//!
//! **Departures**: the rescue retransmission of NextSeg (4) waits for the first partial ack of a
//! recovery. The RFC allows it at once; a flow limited by the receive window would then send one
//! packet twice after every single loss.

use super::super::Segment;
use super::{RecoveryState, RfcSender};
use crate::endpoint::cc::CongestionControl;
use sojourn_aqm::units::Time;

impl<C: CongestionControl> RfcSender<C> {
    /// True if the first unacknowledged segment is lost: IsLost(HighACK + 1).
    pub(super) fn first_is_lost(&self) -> bool {
        self.scoreboard.lost_below(self.window.mss) > self.snd_una
    }

    /// Retransmits the first hole regardless of the pipe (RFC 6675 §5 (4.3)).
    pub(super) fn start_recovery(&mut self, now: Time, out: &mut Vec<Segment>) {
        if self.rack.is_some() {
            if !(C::HOOKED && self.control.recovers_within_window()) {
                self.send_lost_or_new(now, out);
            }
            return;
        }
        self.scoreboard.restart_retransmission();
        if let Some(hole) = self.scoreboard.next_hole(self.snd_una, self.high_data) {
            self.retransmit_hole(now, hole, out);
        }
    }

    /// Sequence number below which all missing data is lost.
    pub(super) fn lost_below(&self) -> u64 {
        match self.state {
            RecoveryState::Open => 0,
            RecoveryState::Recovery => self.scoreboard.lost_below(self.window.mss),
            RecoveryState::Loss => self.recover,
        }
    }

    /// Sends while the pipe has room for a full segment: RFC 6675 §5 (C), and (3) for the first
    /// duplicate acks.
    #[inline(never)]
    pub(super) fn send_by_pipe(&mut self, now: Time, out: &mut Vec<Segment>) {
        if self.state == RecoveryState::Open && self.dup_acks > 0 && !self.limited_transmit {
            return;
        }
        let lost = self.lost_below();
        let mut pipe = self.scoreboard.pipe(self.snd_una, self.snd_nxt, lost);
        while pipe + self.window.mss <= self.window.cwnd {
            if C::HOOKED && !self.control.may_send(now, self.snd_nxt) {
                return;
            }
            let before = self.stats.sent_packets;
            pipe += self.send_next_seg(now, lost, out);
            if self.stats.sent_packets == before {
                return;
            }
        }
    }

    /// Sends the segment chosen by NextSeg; returns its length, 0 if there is none.
    fn send_next_seg(&mut self, now: Time, lost: u64, out: &mut Vec<Segment>) -> u64 {
        if let Some(hole) = self.scoreboard.next_hole(self.snd_una, lost) {
            return self.retransmit_hole(now, hole, out); // (1)
        }
        let len = self.window.mss.min(self.write_end - self.snd_nxt.min(self.write_end));
        if len > 0 && self.snd_nxt + len <= self.snd_una + self.rwnd {
            self.output(now, self.snd_nxt, len, out); // (2)
            self.snd_nxt += len;
            if self.state == RecoveryState::Open && self.dup_acks > 0 {
                self.limited_transmit_bytes += len;
            }
            return len;
        }
        if self.state != RecoveryState::Recovery {
            return 0;
        }
        if let Some(hole) =
            self.scoreboard.next_hole(self.snd_una, self.scoreboard.highest_sacked())
        {
            return self.retransmit_hole(now, hole, out); // (3)
        }
        if self.snd_una > self.rescue_point {
            self.rescue_point = self.recover; // (4)
            let (start, end) = self.scoreboard.highest_hole(self.snd_una, self.snd_nxt);
            let start = start.max(end.saturating_sub(self.window.mss));
            if start < end {
                self.output(now, start, end - start, out);
                return end - start;
            }
        }
        0
    }

    /// Retransmits the start of a hole.
    fn retransmit_hole(&mut self, now: Time, hole: (u64, u64), out: &mut Vec<Segment>) -> u64 {
        let len = self.window.mss.min(hole.1 - hole.0);
        self.scoreboard.set_retransmitted_to(hole.0 + len);
        self.output(now, hole.0, len, out);
        len
    }
}
