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
use super::rack::{Delivery, UndoState};
use super::{RecoveryState, RfcSender};
use crate::endpoint::cc::{CongestionControl, Window};

impl<C: CongestionControl> RfcSender<C> {
    /// Notes that a loss recovery starts; `reduced` is true if the window was reduced before.
    pub(super) fn allow_undo(&mut self, reduced: bool) {
        let Some(order) = &mut self.rack else { return };
        let Window { cwnd, ssthresh, .. } = self.window;
        let ssthresh = match self.state {
            RecoveryState::Recovery => ssthresh,
            _ => ssthresh.max(cwnd / 4 * 3),
        };
        let count = if self.reduce_cwnd { order.retransmissions() } else { 0 };
        order.undo.start(self.snd_una, count, (!reduced).then_some((cwnd, ssthresh)));
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
        if state == RecoveryState::Open && order.retransmissions() == 0 {
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
            RecoveryState::Recovery if advanced && late && order.retransmissions() == 0 => {
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
