//! Handshake of the `rfc` sender: timeouts of the SYN, and the state in which a connection starts.
//!
//! **Source**: RFC 6298 (5.4), (5.7), RFC 5681 §3.1. With `linux_syn`, Linux 6.18
//! `tcp_retransmit_timer` (`tcp_syn_linear_timeouts`), `tcp_init_transfer` and
//! `tcp_init_metrics`.
//!
//! **Rule** With `linux_syn`, a SYN has more options than data, the first four timeouts of a SYN do
//! not double the timeout, and only the loss of two SYNs reduces the initial window. With
//! `timestamps`, a SYN that was sent again gives a round-trip time, and the echo shows if the first
//! SYN was late, not lost: then the connection starts as if there had been one SYN, with ECN.
//!
//! **Departures**: the receiver does not send the answer to a SYN again by a timer of its own.

use super::super::{Ack, SYN_OPTIONS, Segment};
use super::RfcSender;
use crate::endpoint::cc::CongestionControl;
use sojourn_aqm::units::Time;

/// Timeouts of a SYN before the timeout doubles (`tcp_syn_linear_timeouts`).
const LINEAR_TIMEOUTS: u32 = 4;
/// Timeouts of a SYN that leave the initial window as it is.
const HARMLESS_TIMEOUTS: u32 = 1;

impl<C: CongestionControl> RfcSender<C> {
    /// Adds the options of Linux to the SYN that is last in `out`.
    pub(super) fn lengthen_syn(&self, out: &mut [Segment]) {
        let linux = self.rack.as_ref().is_some_and(|order| order.syn_timeouts.is_some());
        if let Some(syn) = out.last_mut().filter(|_| linux) {
            syn.wire_bytes += SYN_OPTIONS;
        }
    }

    /// Sends the SYN again, without ECN if `ecn_fallback` is set.
    pub(super) fn on_syn_timeout(&mut self, now: Time, out: &mut Vec<Segment>) {
        self.stats.timeouts += 1;
        let order = self.rack.as_mut();
        let count = order.and_then(|order| order.syn_timeouts.as_mut()).map(|count| {
            *count += 1;
            *count
        });
        if count.is_none_or(|count| count > LINEAR_TIMEOUTS) {
            self.rtt.back_off();
        }
        self.ecn &= !self.rack.as_ref().is_some_and(|order| order.ecn_fallback);
        self.output(now, 0, 0, out);
    }

    /// Establishes the connection. After a lost SYN it starts with one segment (RFC 5681 §3.1) and
    /// a timeout of 3 s (RFC 6298 (5.7)), unless Linux's rules apply.
    pub(super) fn on_syn_ack(&mut self, now: Time, ack: &Ack, out: &mut Vec<Segment>) {
        if ack.ack == 0 {
            return;
        }
        (self.snd_una, self.snd_nxt, self.established) = (1, 1, now);
        let rtt = self.rtt_segment.take().map(|(_, sent)| now - sent);
        let lost = rtt.is_none() && !self.was_first_syn(ack);
        let rtt = rtt.or_else(|| self.echoed_rtt(now, ack).filter(|_| self.rtt.is_per_ack()));
        match rtt {
            Some(sample) if self.rtt.is_per_ack() => self.rtt.sample_per_ack(sample, 1, 1),
            Some(sample) => self.rtt.sample(sample),
            None => self.rtt.set_after_lost_syn(),
        }
        let count = self.rack.as_ref().and_then(|order| order.syn_timeouts);
        if lost && count.is_none_or(|count| count > HARMLESS_TIMEOUTS) {
            self.window.cwnd = self.window.mss;
        }
        self.timer = Time::NEVER;
        if let Some(order) = &mut self.rack {
            self.ecn |= order.ecn && !lost;
            order.on_established(rtt);
        }
        self.control.on_established(now, &self.window, rtt);
        self.window.cwnd = self.control.initial_window(now, &self.window, rtt);
        self.acknowledge_syn(now, out);
        self.send(now, out);
        self.send_fin(now, out);
    }

    /// True if `ack` answers the first SYN, although it was sent again
    /// (`tcp_try_undo_spurious_syn`).
    fn was_first_syn(&self, ack: &Ack) -> bool {
        let first = self.rack.as_ref().map(|order| order.first_syn);
        self.timestamps && first == Some(ack.echo)
    }
}
