//! Tail loss probe: after two round-trip times without an ack, the sender sends new data, or its
//! last segment again, so that an ack comes which shows the losses at the end of a burst.
//!
//! **Source**: RFC 8985 §7; Linux `tcp_schedule_loss_probe`, `tcp_send_loss_probe` and
//! `tcp_process_tlp_ack`.
//!
//! **Symbols** `tlp_high_seq`, `tlp_retrans` as in Linux (TLP.end_seq, TLP.is_retrans in the RFC).
//!
//! **Departures**: as Linux, which adds the minimum timeout (200 ms) instead of the longest ack
//! delay if one segment is outstanding.

use super::super::{Ack, Segment};
use super::rack::{RackState, TimerKind};
use super::{RecoveryState, RfcSender};
use crate::endpoint::cc::{CongestionControl, CongestionSignal};
use sojourn_aqm::units::{Span, Time};

/// Margin of the probe timeout with several segments outstanding, ticks (`TCP_TIMEOUT_MIN`).
const MARGIN: u64 = 2;

impl<C: CongestionControl> RfcSender<C> {
    /// Sets the timer for a probe, if the state allows one; returns false if not. `advances` is
    /// true if an ack restarts the timers.
    pub(super) fn schedule_probe(&mut self, now: Time, advances: bool) -> bool {
        let rto = self.rto();
        let Some(order) = self.rack.as_mut().filter(|order| order.probe.on) else { return false };
        let outstanding = self.high_data - self.snd_una;
        let repairs = self.scoreboard.covered() + order.lost_bytes() > 0;
        if outstanding == 0
            || self.state != RecoveryState::Open
            || repairs
            || order.retransmissions() > 0 && order.probe.tlp_high_seq.is_none()
            || self.paused_by_mark
        {
            return false;
        }
        let Some(srtt) = self.rtt.srtt() else { return false };
        let several = outstanding + order.packets.missing() > self.window.mss;
        let margin = if several { Span(MARGIN * self.rtt.tick().0) } else { self.rtt.min() };
        let head = if advances { now } else { order.head_sent_at(self.snd_una).unwrap_or(now) };
        order.timer = TimerKind::Probe;
        let left = (head + rto).max(now) - now;
        let wait = (Span(2 * srtt.0) + margin).min(left);
        let clock = order.clock;
        self.timer = clock.after(now, wait + self.pacing_delay(now));
        true
    }

    /// Processes the timer of the probe; returns false if it is not pending.
    pub(super) fn send_probe(&mut self, now: Time, out: &mut Vec<Segment>) -> bool {
        let pending = |order: &&mut Box<RackState>| order.timer == TimerKind::Probe;
        let Some(order) = self.rack.as_mut().filter(pending) else { return false };
        let len = self.window.mss.min(self.write_end.saturating_sub(self.snd_nxt));
        let fits = len > 0 && self.snd_nxt + len <= self.snd_una + self.rwnd;
        let outstanding = order.probe.tlp_high_seq.is_some(); // at most one
        let again = if fits || outstanding { None } else { order.take_last() };
        if outstanding || !fits && again.is_none() {
            self.restart_retransmission_timer(now);
            return true;
        }
        (order.timer, order.probe.tlp_retrans) = (TimerKind::Retransmission, !fits);
        if let Some((start, end)) = again {
            self.output(now, start, end - start, out);
        } else {
            self.send_new(now, out);
        }
        self.timer = self.rto_end(now);
        if let Some(order) = &mut self.rack {
            order.probe.tlp_high_seq = Some(self.snd_nxt);
        }
        true
    }

    /// Processes an ack while a probe is outstanding. If the probe repaired a loss, the window is
    /// reduced as for any other loss. `sacked` is true if the ack reports new data out of order,
    /// `dsack` is the end of the duplicate data that it reports.
    pub(super) fn on_ack_of_probe(
        &mut self,
        now: Time,
        ack: &Ack,
        sacked: bool,
        dsack: Option<u64>,
    ) {
        let Some(probe) = self.rack.as_mut().map(|order| &mut order.probe) else { return };
        let Some(high) = probe.tlp_high_seq.filter(|high| ack.ack >= *high) else { return };
        let duplicate = ack.ack == self.snd_una && !sacked;
        if !probe.tlp_retrans || dsack == Some(high) || ack.ack == high && duplicate {
            probe.tlp_high_seq = None;
        } else if ack.ack > high {
            self.cut(now, CongestionSignal::Loss); // forgets the probe
            self.window.cwnd = self.window.ssthresh;
        }
    }
}
