//! Hooks of the `rfc` sender for congestion controls that need more than acks and losses, see
//! [`CongestionControl`]. Not compiled in for a control without hooks.

use super::super::Ack;
use super::super::params::LossRecovery;
use super::RfcSender;
use crate::endpoint::cc::{CongestionControl, MarkedAck, ProcessedAck};
use sojourn_aqm::units::{Span, Time};

/// Returns the SACK blocks of `ack`, without a report of duplicate data that another block
/// contains. It is the next one (RFC 2883), except if Linux has received newer blocks.
pub(super) fn new_blocks(ack: &Ack) -> &[(u64, u64)] {
    match &ack.sacks[..usize::from(ack.blocks)] {
        [first, rest @ ..] if rest.iter().any(|b| b.0 <= first.0 && first.1 <= b.1) => rest,
        blocks => blocks,
    }
}

impl<C: CongestionControl> RfcSender<C> {
    /// Reports the ECN feedback and newly delivered data of an ack, before it is processed; `marks`
    /// is the number of newly marked packets.
    pub(super) fn report_ack(&mut self, now: Time, ack: &Ack, marks: u16) {
        if ack.ack < self.snd_una {
            return;
        }
        let padding = self.rack.as_ref().map_or(0, |order| order.packets.below(ack.ack));
        let bytes = ack.ack - self.snd_una + padding;
        let marked = match (self.accurate, marks) {
            (true, _) => u64::from(marks) * self.window.mss,
            (false, 0) => 0,
            (false, _) => bytes,
        };
        self.control.on_ecn_feedback(ack.ack, bytes, marked, self.snd_nxt);
        if self.control.uses_ack_feedback() {
            self.report_feedback(now, ack, bytes, marked);
        }
        if !self.control.uses_delivery_hooks() {
            return;
        }
        let RfcSender { scoreboard: board, control, snd_una: una, .. } = self;
        board.for_each_missing(*una, ack.ack, |from, to| control.on_delivered(now, from, to));
        if self.recovery == LossRecovery::Sack {
            for &(start, end) in new_blocks(ack) {
                let start = start.max(ack.ack);
                self.scoreboard.for_each_missing(start, end, |from, to| {
                    self.control.on_delivered(now, from, to)
                });
            }
        }
    }

    /// Reports the feedback of the path: `marked` of the `bytes` that the ack covers, XCP,
    /// telemetry.
    #[cold]
    #[inline(never)]
    fn report_feedback(&mut self, now: Time, ack: &Ack, bytes: u64, marked: u64) {
        let [snd_una, snd_nxt] = [ack.ack, self.snd_nxt];
        let marked_ack = MarkedAck { now, snd_una, snd_nxt, acked: bytes, marked };
        self.control.on_marked_ack(&mut self.window, &marked_ack);
        if let Some(srtt) = self.rtt.srtt() {
            let feedback = ack.echo.cast_signed();
            self.control.on_explicit_feedback(&mut self.window, feedback, srtt);
        }
        self.control.on_telemetry_echo(now, &mut self.window, ack.echo, [snd_una, snd_nxt]);
    }

    /// Payload bytes declared lost in this connection; 0 without RACK.
    pub(super) fn lost_total(&self) -> u64 {
        self.rack.as_ref().map_or(0, |order| order.lost_total())
    }

    /// Reports the state after an ack was processed, before which `lost_before` bytes were declared
    /// lost.
    pub(super) fn report_processed_ack(&mut self, now: Time, lost_before: u64) {
        if !self.control.uses_delivery_hooks() {
            return;
        }
        let padding = self.rack.as_ref().map_or(0, |order| order.packets.delivered());
        let settled = ProcessedAck {
            now,
            delivered: self.snd_una - 1 + self.scoreboard.covered() + padding,
            flight: self.bytes_in_network(),
            srtt: self.rtt.srtt(),
            rtt: self.rack.as_ref().and_then(|order| order.rtt_of_ack),
            pacing_delay: self.control.pacing_delay(now),
            min_rtt: self.rack.as_ref().and_then(|order| order.min_rtt()),
            state: self.state,
            lost: self.lost_total(),
            newly_lost: self.lost_total() - lost_before,
        };
        self.control.on_ack_processed(&mut self.window, &settled);
    }

    /// Reports if the application limits sending, before anything is sent.
    pub(super) fn report_app_limited(&mut self) {
        self.control.clear_held();
        if self.counts_packets() {
            return; // Linux decides when the application writes
        }
        if self.snd_una > 0 && self.snd_nxt >= self.write_end {
            let flight = self.bytes_in_network();
            if flight < self.window.cwnd {
                self.control.on_app_limited(flight);
            }
        }
    }

    /// Reports if the application limited sending until now, before it writes more, as in Linux
    /// (`tcp_rate_check_app_limited`): less than a segment waits, the window has room, and all lost
    /// data was sent again.
    pub(super) fn report_write(&mut self) {
        if !self.counts_packets() {
            return;
        }
        let waits = self.write_end.saturating_sub(self.snd_nxt.max(1));
        let repaired = self.rack.as_ref().is_none_or(|order| order.lost_bytes() == 0);
        let flight = if self.snd_una > 0 { self.bytes_in_network() } else { 0 };
        if waits < self.window.mss && flight < self.window.cwnd && repaired {
            self.control.on_app_limited(flight);
        }
    }

    /// Returns the `bytes` that an ack of everything below `una` covers newly, with the padding of
    /// short segments.
    #[inline(never)]
    pub(super) fn padded(&mut self, bytes: u64, una: u64) -> u64 {
        bytes + self.rack.as_mut().map_or(0, |order| order.packets.remove_below(una))
    }

    /// Returns what is added to the timers of RACK, as in Linux (`tcp_pacing_delay`): until then
    /// the pacer holds the next segment.
    #[inline]
    pub(super) fn pacing_delay(&self, now: Time) -> Span {
        if C::HOOKED { self.control.pacing_delay(now) } else { Span::ZERO }
    }

    /// True if a segment of any size counts as a full one.
    pub(super) fn counts_packets(&self) -> bool {
        self.rack.as_ref().is_some_and(|order| order.packets.is_on())
    }

    /// Estimate of the bytes in the network.
    pub(super) fn bytes_in_network(&self) -> u64 {
        match (self.recovery, &self.rack) {
            (_, Some(order)) => {
                let missing = self.snd_nxt - self.snd_una - self.scoreboard.covered();
                missing + order.packets.missing() - order.lost_bytes()
            }
            (LossRecovery::Sack, None) => {
                self.scoreboard.pipe(self.snd_una, self.snd_nxt, self.lost_below())
            }
            (_, None) => self.snd_nxt - self.snd_una,
        }
    }
}
