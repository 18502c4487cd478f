//! Undo of window reductions that no loss justified: a segment was late, not lost, if the receiver
//! reports each retransmission as a duplicate (DSACK), or answers the first transmission
//! (timestamps).
//!
//! **Source**: RFC 3522 and RFC 4015 (Eifel), RFC 3708 (DSACK), RFC 7323 (timestamps); Linux
//! `tcp_try_undo_recovery`, `tcp_try_undo_partial`, `tcp_try_undo_dsack`, `tcp_try_undo_loss`.
//!
//! **Symbols** `undo_marker`, `undo_retrans`, `retrans_stamp`, `prior_cwnd`, `prior_ssthresh` as in
//! Linux.
//!
//! **Departures**: while retransmissions are in flight, Linux marks nothing as lost after a partial
//! ack of a late segment. Here losses are still detected.

use super::super::Ack;
use super::rack::Delivery;
use super::{RecoveryState, RfcSender};
use crate::endpoint::cc::{CongestionControl, Window};

/// State that a reduction leaves, so that it can be undone.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UndoState {
    /// Cumulative ack at the reduction; `None` if there is nothing to undo.
    undo_marker: Option<u64>,
    /// Retransmissions not yet reported as duplicates; `None` before the first.
    undo_retrans: Option<u64>,
    /// Timestamp of the first retransmission since the state was Open.
    retrans_stamp: Option<u32>,
    prior_cwnd: u64,
    /// 0 if the reduction is not to be undone.
    prior_ssthresh: u64,
}

impl UndoState {
    /// Notes the start of a loss recovery. `window` holds the congestion window and the threshold
    /// to return to, unless the window was already reduced.
    pub fn start(&mut self, una: u64, window: Option<(u64, u64)>) {
        (self.undo_marker, self.undo_retrans, self.prior_ssthresh) = (Some(una), None, 0);
        if let Some((cwnd, ssthresh)) = window {
            (self.prior_cwnd, self.prior_ssthresh) = (cwnd, ssthresh);
        }
    }

    /// Notes a retransmission, with its timestamp.
    pub fn on_retransmission(&mut self, timestamp: u32) {
        self.undo_retrans = Some(self.undo_retrans.unwrap_or(0) + 1);
        self.retrans_stamp.get_or_insert(timestamp);
    }

    /// Notes a report of duplicate data up to `end`, `segments` long.
    fn on_dsack(&mut self, end: u64, segments: u64) {
        if self.undo_marker.is_some_and(|marker| end > marker) {
            self.undo_retrans = self.undo_retrans.map(|count| count.saturating_sub(segments));
        }
    }

    /// True if every retransmission was a duplicate.
    fn all_were_duplicates(&self) -> bool {
        self.undo_marker.is_some() && self.undo_retrans == Some(0)
    }

    /// True if an ack with this echo answers data sent before the first retransmission.
    fn was_late(&self, echo: Option<u32>) -> bool {
        let before = |echo: u32, stamp: u32| echo.wrapping_sub(stamp).cast_signed() < 0;
        let late = self.retrans_stamp.zip(echo).is_some_and(|(stamp, echo)| before(echo, stamp));
        self.undo_marker.is_some() && late
    }
}

impl<C: CongestionControl> RfcSender<C> {
    /// Notes that a loss recovery starts; `reduced` is true if the window was reduced before.
    pub(super) fn allow_undo(&mut self, reduced: bool) {
        let Some(order) = &mut self.rack else { return };
        let Window { cwnd, ssthresh, .. } = self.window;
        let ssthresh = match self.state {
            RecoveryState::Recovery => ssthresh,
            _ => ssthresh.max(cwnd / 4 * 3),
        };
        order.undo.start(self.snd_una, (!reduced).then_some((cwnd, ssthresh)));
    }

    /// Undoes the last reduction if `ack`, whose data is not yet removed, shows that it was not
    /// justified. `dsack` is the duplicate data that it reports, `marked` true if it reports a
    /// mark.
    pub(super) fn try_undo(
        &mut self,
        ack: &Ack,
        delivery: &Delivery,
        dsack: Option<(u64, u64)>,
        marked: bool,
    ) {
        let (una, mss, state) = (self.snd_una, self.window.mss, self.state);
        let Some(order) = &mut self.rack else { return };
        if state == RecoveryState::Open && !order.has_retransmissions() {
            order.undo.retrans_stamp = None;
        }
        if marked {
            order.undo.prior_ssthresh = 0; // the network is congested
        }
        let known = |(start, end)| end <= una || order.was_retransmitted(start, end);
        if let Some((start, end)) = dsack.filter(|range| known(*range)) {
            order.undo.on_dsack(end, (end - start).div_ceil(mss));
        }
        let (undo, advanced) = (order.undo, ack.ack > una);
        let late = undo.was_late(self.timestamps.then_some(ack.echo));
        let all_duplicates = undo.all_were_duplicates();
        let ends = ack.ack >= self.recover;
        let by_dsack = dsack.is_some() && all_duplicates;
        match self.state {
            RecoveryState::Open if by_dsack => self.undo_reduction(false, true),
            RecoveryState::Recovery if ends && (late || all_duplicates) => {
                self.undo_reduction(false, false);
            }
            RecoveryState::Recovery if advanced && late && !order.has_retransmissions() => {
                self.undo_reduction(true, false);
            }
            RecoveryState::Recovery if by_dsack => self.undo_reduction(false, true),
            RecoveryState::Recovery if ends => order.window.on_recovery_end(false),
            RecoveryState::Loss if advanced && (late || all_duplicates) => {
                self.undo_reduction(true, false);
            }
            RecoveryState::Loss => self.try_frto(ack, delivery, !advanced && dsack.is_none()),
            _ => {}
        }
    }

    /// Returns to the window before the last reduction, and to state Open. With `unmark`, no
    /// segment counts as lost any more. `by_dsack` is true if DSACKs were the reason.
    pub(super) fn undo_reduction(&mut self, unmark: bool, by_dsack: bool) {
        let Some(order) = &mut self.rack else { return };
        if unmark {
            order.unmark_lost();
        }
        if by_dsack {
            order.window.on_recovery_end(true);
        }
        order.undo.undo_marker = None;
        let UndoState { prior_cwnd, prior_ssthresh, .. } = order.undo;
        if prior_ssthresh > 0 {
            self.control.on_undo(&mut self.window, prior_cwnd);
            if prior_ssthresh > self.window.ssthresh {
                self.window.ssthresh = prior_ssthresh;
                self.cwr = false;
            }
        }
        self.state = RecoveryState::Open;
    }
}
