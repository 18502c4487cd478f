//! Hooks of the `rfc` sender for congestion controls that need more than acks and losses, see
//! [`CongestionControl`]. Not compiled in for a control without hooks.

use super::super::Ack;
use super::super::params::LossRecovery;
use super::RfcSender;
use crate::endpoint::cc::{CongestionControl, ProcessedAck};
use sojourn_aqm::units::Time;

impl<C: CongestionControl> RfcSender<C> {
    /// Report the ECN feedback and newly delivered data of an ack, before it is processed; `marks`
    /// is the number of newly marked packets.
    pub(super) fn report_ack(&mut self, now: Time, ack: &Ack, marks: u16) {
        if ack.ack < self.snd_una {
            return;
        }
        let bytes = ack.ack - self.snd_una;
        let marked = match (self.accurate, marks) {
            (true, _) => u64::from(marks) * self.window.mss,
            (false, 0) => 0,
            (false, _) => bytes,
        };
        self.control.on_ecn_feedback(ack.ack, bytes, marked, self.snd_nxt);
        if !self.control.uses_delivery_hooks() {
            return;
        }
        let RfcSender { scoreboard: board, control, snd_una: una, .. } = self;
        board.for_each_missing(*una, ack.ack, |from, to| control.on_delivered(now, from, to));
        if self.recovery == LossRecovery::Sack {
            for &(start, end) in &ack.sacks[..usize::from(ack.blocks)] {
                let start = start.max(ack.ack);
                self.scoreboard.for_each_missing(start, end, |from, to| {
                    self.control.on_delivered(now, from, to)
                });
            }
        }
    }

    /// Payload bytes declared lost in this connection; 0 without RACK.
    pub(super) fn lost_total(&self) -> u64 {
        self.rack.as_ref().map_or(0, |order| order.lost_total())
    }

    /// Report the state after an ack was processed, before which `lost_before` bytes were declared
    /// lost.
    pub(super) fn report_processed_ack(&mut self, now: Time, lost_before: u64) {
        if !self.control.uses_delivery_hooks() {
            return;
        }
        let settled = ProcessedAck {
            now,
            delivered: self.snd_una - 1 + self.scoreboard.covered(),
            flight: self.bytes_in_network(),
            srtt: self.rtt.srtt(),
            state: self.state,
            lost: self.lost_total(),
            newly_lost: self.lost_total() - lost_before,
        };
        self.control.on_ack_processed(&mut self.window, &settled);
    }

    /// Report if the application limits sending, before anything is sent.
    pub(super) fn report_app_limited(&mut self) {
        self.control.clear_held();
        if self.snd_una > 0 && self.snd_nxt >= self.write_end {
            let flight = self.bytes_in_network();
            if flight < self.window.cwnd {
                self.control.on_app_limited(flight);
            }
        }
    }

    /// Estimate of the bytes in the network.
    pub(super) fn bytes_in_network(&self) -> u64 {
        match (self.recovery, &self.rack) {
            (_, Some(order)) => {
                self.snd_nxt - self.snd_una - self.scoreboard.covered() - order.lost_bytes()
            }
            (LossRecovery::Sack, None) => {
                self.scoreboard.pipe(self.snd_una, self.snd_nxt, self.lost_below())
            }
            (_, None) => self.snd_nxt - self.snd_una,
        }
    }
}
