//! RACK: a segment is lost if a segment sent after it is delivered; retransmissions count like
//! first transmissions. A lost retransmission is detected without a timeout, and one delivered
//! segment suffices instead of three duplicate acks.
//!
//! **Source**: RFC 8985 §6, which Linux uses instead of RFC 6675's count of duplicate acks.
//!
//! **Departures**: transmission order replaces transmission times, and there is no reordering
//! window (§6.2 step 4), because links do not reorder packets of a flow. There is no tail loss
//! probe (§7). The timer is restarted when the first outstanding byte is retransmitted, as in
//! Linux.
//!
//! **Cost**: one entry per segment in flight; an ack visits the entries it resolves.

use super::super::Segment;
use super::super::scoreboard::Scoreboard;
use super::{RecoveryState, RfcSender};
use crate::endpoint::cc::CongestionControl;
use sojourn_aqm::units::Time;
use std::collections::VecDeque;

/// Transmission: byte range and transmission number.
#[derive(Clone, Copy, Debug)]
struct SentRange {
    start: u64,
    end: u64,
    number: u64,
}

/// Segments in flight in transmission order, and lost segments not yet retransmitted.
#[derive(Clone, Debug, Default)]
pub(super) struct RackState {
    /// First transmissions, ordered by number and thus by sequence number.
    fresh: VecDeque<SentRange>,
    /// Retransmissions, ordered by number.
    again: VecDeque<SentRange>,
    /// Lost segments not yet retransmitted, ordered by sequence number.
    lost: VecDeque<(u64, u64)>,
    lost_bytes: u64,
    /// Number of the next transmission.
    next: u64,
    /// All transmissions with lower numbers are delivered or lost.
    settled: u64,
}

/// Data that the receiver is known to have.
#[derive(Clone, Copy)]
struct ReceivedData<'a> {
    una: u64,
    board: &'a Scoreboard,
}

impl ReceivedData<'_> {
    fn contains(&self, start: u64, end: u64) -> bool {
        let held = || self.board.around(start).is_some_and(|(a, b)| a <= start && end <= b);
        end <= self.una || held()
    }
}

impl RackState {
    /// Remove all entries.
    pub fn clear(&mut self) {
        self.fresh.clear();
        self.again.clear();
        self.lost.clear();
        (self.lost_bytes, self.next, self.settled) = (0, 0, 0);
    }

    /// Record a transmission; `again` for a retransmission.
    pub fn sent(&mut self, start: u64, end: u64, again: bool) {
        let sent = SentRange { start, end, number: self.next };
        self.next += 1;
        if again { self.again.push_back(sent) } else { self.fresh.push_back(sent) }
    }

    /// Lost bytes that are not yet retransmitted.
    pub fn lost_bytes(&self) -> u64 {
        self.lost_bytes
    }

    /// Remove and return the lowest lost segment, which the caller retransmits.
    pub fn take_lost(&mut self) -> Option<(u64, u64)> {
        let (start, end) = self.lost.pop_front()?;
        self.lost_bytes -= end - start;
        Some((start, end))
    }

    /// Update from cumulative ack `una` and SACK scoreboard `board`.
    pub fn on_ack(&mut self, una: u64, board: &Scoreboard) {
        let known = ReceivedData { una, board };
        if !self.lost.is_empty() {
            // Declared lost but delivered: the timeout was spurious.
            self.lost.retain(|(start, end)| !known.contains(*start, *end));
            self.lost_bytes = self.lost.iter().map(|(start, end)| end - start).sum();
        }
        // The last delivered first transmission, and the last delivered retransmission.
        let top = una.max(board.highest_sacked());
        let fresh = self.fresh.partition_point(|sent| sent.end <= top).checked_sub(1);
        let fresh = fresh.map(|i| self.fresh[i]).filter(|s| known.contains(s.start, s.end));
        let again = self.again.iter().rev().find(|sent| known.contains(sent.start, sent.end));
        let arrived = fresh.iter().chain(again).map(|sent| sent.number + 1);
        self.settled = arrived.fold(self.settled, u64::max);
        self.report_processed_ack(known);
    }

    /// Declare everything in flight lost.
    pub fn declare_all_lost(&mut self, una: u64, board: &Scoreboard) {
        self.settled = self.next;
        self.report_processed_ack(ReceivedData { una, board });
    }

    fn report_processed_ack(&mut self, known: ReceivedData<'_>) {
        let RackState { fresh, again, lost, lost_bytes, settled, .. } = self;
        for which in [fresh, again] {
            while let Some(sent) = which.front().copied() {
                let arrived = known.contains(sent.start, sent.end);
                if sent.number >= *settled && !(arrived && sent.end <= known.una) {
                    break;
                }
                which.pop_front();
                if !arrived {
                    let at = lost.partition_point(|(start, _)| *start < sent.start);
                    lost.insert(at, (sent.start, sent.end));
                    *lost_bytes += sent.end - sent.start;
                }
            }
        }
    }
}

impl<C: CongestionControl> RfcSender<C> {
    /// Send lost segments, then new ones, while the window has room for a full segment.
    pub(super) fn send_rack(&mut self, now: Time, out: &mut Vec<Segment>) {
        if self.state == RecoveryState::Open && self.dup_acks > 0 && !self.limited_transmit {
            return;
        }
        while self.bytes_in_network() + self.window.mss <= self.window.cwnd {
            if C::HOOKED && !self.control.may_send(now) || !self.send_lost_or_new(now, out) {
                return;
            }
        }
    }

    /// Send one segment, lost ones first. Returns false if there is none.
    pub(super) fn send_lost_or_new(&mut self, now: Time, out: &mut Vec<Segment>) -> bool {
        if let Some((start, end)) = self.rack.as_mut().and_then(|order| order.take_lost()) {
            self.output(now, start, end - start, out);
            if start == self.snd_una {
                self.timer = now + self.rto(); // a full timeout for the retransmission
            }
            return true;
        }
        let len = self.window.mss.min(self.write_end - self.snd_nxt.min(self.write_end));
        if len == 0 || self.snd_nxt + len > self.snd_una + self.rwnd {
            return false;
        }
        self.output(now, self.snd_nxt, len, out);
        self.snd_nxt += len;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Ack;
    use super::*;

    /// Five segments of ten bytes, starting at 1.
    fn five() -> RackState {
        let mut order = RackState::default();
        (0..5).for_each(|i| order.sent(1 + 10 * i, 11 + 10 * i, false));
        order
    }

    fn told(board: &mut Scoreboard, order: &mut RackState, ack: u64, sacks: &[(u64, u64)]) {
        let mut blocks = [(0, 0); 3];
        blocks[..sacks.len()].copy_from_slice(sacks);
        board.update(&Ack { ack, sacks: blocks, blocks: sacks.len() as u8, ..Ack::default() });
        order.on_ack(ack, board);
    }

    #[test]
    fn a_delivered_segment_marks_earlier_ones_lost() {
        let (mut order, mut board) = (five(), Scoreboard::default());
        told(&mut board, &mut order, 11, &[]);
        assert_eq!(order.lost_bytes(), 0, "in order");
        told(&mut board, &mut order, 11, &[(31, 41)]);
        assert_eq!(order.lost_bytes(), 20);
        assert_eq!(
            (order.take_lost(), order.take_lost(), order.take_lost()),
            (Some((11, 21)), Some((21, 31)), None)
        );
    }

    #[test]
    fn a_segment_of_which_a_part_is_missing_is_lost() {
        let (mut order, mut board) = (five(), Scoreboard::default());
        told(&mut board, &mut order, 1, &[(11, 15), (31, 41)]);
        assert_eq!(order.lost_bytes(), 30);
    }

    #[test]
    fn a_lost_retransmission_is_detected() {
        let (mut order, mut board) = (five(), Scoreboard::default());
        told(&mut board, &mut order, 1, &[(11, 21)]);
        assert_eq!(order.take_lost(), Some((1, 11)));
        order.sent(1, 11, true);
        // Segments sent before the retransmission do not count.
        told(&mut board, &mut order, 1, &[(11, 51)]);
        assert_eq!(order.lost_bytes(), 0);
        order.sent(51, 61, false);
        told(&mut board, &mut order, 1, &[(11, 61)]);
        assert_eq!(order.take_lost(), Some((1, 11)), "a segment sent after it is delivered");
        // A delivered retransmission marks segments sent between as lost.
        order.sent(61, 71, false);
        order.sent(1, 11, true);
        told(&mut board, &mut order, 61, &[]);
        assert_eq!(order.take_lost(), Some((61, 71)));
    }

    #[test]
    fn late_deliveries_after_a_timeout_are_not_retransmitted() {
        let (mut order, mut board) = (five(), Scoreboard::default());
        told(&mut board, &mut order, 1, &[(41, 51)]);
        assert_eq!(order.lost_bytes(), 40);
        let (mut order, mut board) = (five(), Scoreboard::default());
        order.declare_all_lost(1, &board);
        assert_eq!(order.lost_bytes(), 50);
        assert_eq!(order.take_lost(), Some((1, 11)));
        order.sent(1, 11, true);
        told(&mut board, &mut order, 21, &[]);
        assert_eq!((order.lost_bytes(), order.take_lost()), (30, Some((21, 31))));
    }
}
