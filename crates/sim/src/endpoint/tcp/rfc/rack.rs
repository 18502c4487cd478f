//! RACK: a segment is lost if a segment sent after it is delivered; retransmissions count like
//! first transmissions. A lost retransmission is detected without a timeout, and one delivered
//! segment suffices instead of three duplicate acks.
//!
//! **Source**: RFC 8985 §6, which Linux uses instead of RFC 6675's count of duplicate acks.
//!
//! **Departures**: transmission order replaces transmission times. Links do not reorder packets of
//! a flow, so the reordering window (§6.2 step 4) is an option, `reordering_window`: until three
//! segments are selectively acknowledged, or recovery has begun, a segment is lost a quarter of the
//! least round-trip time later. The window does not grow, since receivers send no DSACK. As in
//! Linux, its timer and the retransmission timer are one. There is no tail loss probe (§7). The
//! timer is restarted when the first outstanding byte is retransmitted, as in Linux.
//!
//! **Cost**: one entry per segment in flight; an ack visits the entries it resolves.

use super::super::scoreboard::Scoreboard;
use super::super::{DUP_THRESH, Segment};
use super::{RecoveryState, RfcSender};
use crate::endpoint::cc::CongestionControl;
use sojourn_aqm::units::{Span, Time};
use std::collections::VecDeque;

/// Transmission: byte range, transmission number and time.
#[derive(Clone, Copy, Debug)]
struct SentRange {
    start: u64,
    end: u64,
    number: u64,
    at: Time,
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
    /// Bytes declared lost in this connection.
    lost_total: u64,
    /// True if the last ack showed the loss of a retransmission.
    lost_again: bool,
    /// Number of the next transmission.
    next: u64,
    /// All transmissions with lower numbers are delivered or lost, or wait for `due`.
    settled: u64,
    /// Round-trip time of the last delivered transmission, and the least one; 0 before the first.
    rtt: Span,
    min_rtt: Span,
    /// True if there is a reordering window.
    reordering_window: bool,
    /// Time at which the transmissions that wait for its end are lost; [`Time::NEVER`] if none
    /// waits.
    due: Time,
}

/// Transmission times of the oldest segments that an ack newly reports as delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OldestDelivered {
    /// Of segments sent once.
    fresh: Option<Time>,
    /// Of retransmissions.
    again: Option<Time>,
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
    /// Create a state without entries.
    pub fn new(reordering_window: bool) -> RackState {
        RackState { reordering_window, due: Time::NEVER, ..RackState::default() }
    }

    /// Remove all entries.
    pub fn clear(&mut self) {
        let RackState { mut fresh, mut again, mut lost, reordering_window, .. } =
            std::mem::take(self);
        fresh.clear();
        again.clear();
        lost.clear();
        *self = RackState { fresh, again, lost, ..RackState::new(reordering_window) };
    }

    /// Record a transmission at `at`; `again` for a retransmission.
    pub fn sent(&mut self, at: Time, start: u64, end: u64, again: bool) {
        let sent = SentRange { start, end, number: self.next, at };
        self.next += 1;
        if again { self.again.push_back(sent) } else { self.fresh.push_back(sent) }
    }

    /// Lost bytes that are not yet retransmitted.
    pub fn lost_bytes(&self) -> u64 {
        self.lost_bytes
    }

    /// Bytes declared lost in this connection, retransmissions included.
    pub fn lost_total(&self) -> u64 {
        self.lost_total
    }

    /// Time of the last transmission of the segment at `una`, if it is in flight.
    fn head_sent_at(&self, una: u64) -> Option<Time> {
        let at_head = |sent: &&SentRange| sent.start <= una && una < sent.end;
        let head = self.fresh.front().filter(at_head);
        head.or_else(|| self.again.iter().rev().find(at_head)).map(|sent| sent.at)
    }

    /// Remove and return the lowest lost segment, which the caller retransmits.
    pub fn take_lost(&mut self) -> Option<(u64, u64)> {
        let (start, end) = self.lost.pop_front()?;
        self.lost_bytes -= end - start;
        Some((start, end))
    }

    /// Time at which [`RackState::expire`] is to be called; [`Time::NEVER`] if no segment waits.
    pub fn due(&self) -> Time {
        self.due
    }

    /// Update from cumulative ack `una` and SACK scoreboard `board`. Without `patience`, the
    /// reordering window is 0.
    pub fn on_ack(
        &mut self,
        now: Time,
        una: u64,
        board: &Scoreboard,
        patience: bool,
    ) -> OldestDelivered {
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
        // After less than a round trip, it is the first transmission that was delivered (§6.2 step
        // 2).
        let again = self
            .again
            .iter()
            .rev()
            .find(|sent| known.contains(sent.start, sent.end) && now - sent.at >= self.min_rtt);
        for sent in fresh.iter().chain(again) {
            if sent.number >= self.settled {
                (self.settled, self.rtt) = (sent.number + 1, now - sent.at);
                let first = self.min_rtt == Span::ZERO;
                self.min_rtt = if first { self.rtt } else { self.min_rtt.min(self.rtt) };
            }
        }
        let patience = patience && self.reordering_window;
        let wait = patience.then(|| self.rtt + Span(self.min_rtt.0 / 4));
        self.settle(now, known, wait)
    }

    /// Declare the segments lost that the reordering window has spared until `now`.
    pub fn expire(&mut self, now: Time, una: u64, board: &Scoreboard) {
        self.settle(now, ReceivedData { una, board }, None);
    }

    /// Process a retransmission timeout: the first segment is lost, and each one that was sent a
    /// round-trip time ago or earlier (RFC 8985 §6.3).
    pub fn on_timeout(&mut self, now: Time, una: u64, board: &Scoreboard) {
        for which in [&mut self.fresh, &mut self.again] {
            let first = which.iter().position(|sent| sent.start <= una && una < sent.end);
            if let Some(sent) = first.and_then(|i| which.remove(i)) {
                self.lost.push_front((sent.start, sent.end));
                self.lost_bytes += sent.end - sent.start;
                self.lost_total += sent.end - sent.start;
            }
        }
        let settled = std::mem::replace(&mut self.settled, self.next);
        self.settle(now, ReceivedData { una, board }, Some(self.rtt));
        (self.settled, self.due) = (settled, Time::NEVER);
    }

    /// Remove delivered and lost segments. A segment is lost `wait` after its transmission.
    fn settle(
        &mut self,
        now: Time,
        known: ReceivedData<'_>,
        wait: Option<Span>,
    ) -> OldestDelivered {
        let RackState { fresh, again, lost, lost_bytes, lost_total, settled, .. } = self;
        let (mut due, mut oldest) = (Time::NEVER, OldestDelivered::default());
        self.lost_again = false;
        for (which, oldest, repeated) in
            [(fresh, &mut oldest.fresh, false), (again, &mut oldest.again, true)]
        {
            while let Some(sent) = which.front().copied() {
                let arrived = known.contains(sent.start, sent.end);
                if sent.number >= *settled && !(arrived && sent.end <= known.una) {
                    break;
                }
                if let Some(lost_at) = wait.map(|wait| sent.at + wait).filter(|at| *at > now)
                    && !arrived
                {
                    due = due.min(lost_at);
                    break;
                }
                which.pop_front();
                if arrived {
                    oldest.get_or_insert(sent.at);
                } else {
                    let at = lost.partition_point(|(start, _)| *start < sent.start);
                    lost.insert(at, (sent.start, sent.end));
                    *lost_bytes += sent.end - sent.start;
                    *lost_total += sent.end - sent.start;
                    self.lost_again |= repeated;
                }
            }
        }
        self.due = due;
        oldest
    }
}

impl<C: CongestionControl> RfcSender<C> {
    /// Pass an ack to RACK.
    pub(super) fn rack_on_ack(&mut self, now: Time, una: u64) {
        let few = self.scoreboard.covered() < u64::from(DUP_THRESH) * self.window.mss;
        let patience = few && self.state == RecoveryState::Open;
        let Some(order) = &mut self.rack else { return };
        let oldest = order.on_ack(now, una, &self.scoreboard, patience);
        if !self.rtt.is_per_ack() {
            return;
        }
        // As in Linux, a selective ack of data sent before the head of the queue was last sent
        // restarts the timer: the answer to the head cannot have come yet.
        let before_head =
            |sent: Time| order.head_sent_at(una).is_some_and(|head_sent| sent < head_sent);
        let restarts = una == self.snd_una && oldest.fresh.is_some_and(before_head);
        if let Some(sent) = oldest.fresh.or(oldest.again) {
            self.rtt.sample_per_ack(now - sent, una, self.snd_nxt);
        }
        if restarts && self.timer != Time::NEVER {
            self.timer = now + self.rtt.rto();
        }
    }

    /// Start recovery if a segment is lost. If one may only be late, set the timer. After a timeout
    /// the loss of a retransmission is a new congestion signal (RFC 5681 §4.3).
    pub(super) fn rack_recover(&mut self, now: Time, out: &mut Vec<Segment>) {
        let Some(order) = &self.rack else { return };
        let starts = match self.state {
            RecoveryState::Open => true,
            RecoveryState::Recovery => false,
            RecoveryState::Loss => order.lost_again,
        };
        if starts && order.lost_bytes() > 0 {
            self.fast_retransmit(now, out);
        } else if order.due() != Time::NEVER {
            // Not the earlier of both: that could be a former end of the reordering window.
            self.timer = order.due();
        }
    }

    /// Process the end of the reordering window; returns false if it did not end.
    pub(super) fn rack_expired(&mut self, now: Time, out: &mut Vec<Segment>) -> bool {
        let Some(order) = self.rack.as_mut().filter(|order| order.due() <= now) else {
            return false;
        };
        order.expire(now, self.snd_una, &self.scoreboard);
        self.restart_timer(now);
        self.rack_recover(now, out);
        true
    }

    /// Send lost segments, then new ones, while the window has room for a full segment.
    #[inline(never)]
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
        let mut order = RackState::new(false);
        (0..5).for_each(|i| order.sent(Time(i), 1 + 10 * i, 11 + 10 * i, false));
        order
    }

    fn told(board: &mut Scoreboard, order: &mut RackState, ack: u64, sacks: &[(u64, u64)]) {
        told_at(100, board, order, ack, sacks);
    }

    fn told_at(
        at: u64,
        board: &mut Scoreboard,
        order: &mut RackState,
        ack: u64,
        sacks: &[(u64, u64)],
    ) {
        let mut blocks = [(0, 0); 3];
        blocks[..sacks.len()].copy_from_slice(sacks);
        board.update(&Ack { ack, sacks: blocks, blocks: sacks.len() as u8, ..Ack::default() });
        order.on_ack(Time(at), ack, board, true);
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
    fn the_reordering_window_delays_a_loss_by_a_quarter_of_the_least_round_trip() {
        let (mut order, mut board) = (RackState::new(true), Scoreboard::default());
        (0..5).for_each(|i| order.sent(Time(i), 1 + 10 * i, 11 + 10 * i, false));
        told(&mut board, &mut order, 1, &[(11, 21)]);
        // The round trip of the second is 99: the first is lost 99 + 24 after its transmission.
        assert_eq!((order.lost_bytes(), order.due()), (0, Time(123)));
        order.expire(Time(123), 1, &board);
        assert_eq!((order.take_lost(), order.due()), (Some((1, 11)), Time::NEVER));
        // Without patience the next one is lost at once.
        board.update(&Ack {
            ack: 1,
            sacks: [(31, 41), (0, 0), (0, 0)],
            blocks: 1,
            ..Ack::default()
        });
        order.on_ack(Time(104), 1, &board, false);
        assert_eq!((order.take_lost(), order.due()), (Some((21, 31)), Time::NEVER));
    }

    #[test]
    fn an_ack_of_nothing_new_is_no_round_trip() {
        let (mut order, mut board) = (RackState::new(true), Scoreboard::default());
        (0..5).for_each(|i| order.sent(Time(i), 1 + 10 * i, 11 + 10 * i, false));
        told(&mut board, &mut order, 1, &[(11, 21)]);
        order.on_ack(Time(122), 1, &board, true);
        assert_eq!((order.lost_bytes(), order.due()), (0, Time(123)), "as before");
        order.on_ack(Time(123), 1, &board, true);
        assert_eq!((order.lost_bytes(), order.due()), (10, Time::NEVER), "the window has ended");
    }

    #[test]
    fn a_lost_retransmission_is_detected() {
        let (mut order, mut board) = (five(), Scoreboard::default());
        told(&mut board, &mut order, 1, &[(11, 21)]);
        assert_eq!(order.take_lost(), Some((1, 11)));
        order.sent(Time(100), 1, 11, true);
        // Segments sent before the retransmission do not count.
        told_at(110, &mut board, &mut order, 1, &[(11, 51)]);
        assert_eq!(order.lost_bytes(), 0);
        order.sent(Time(111), 51, 61, false);
        told_at(211, &mut board, &mut order, 1, &[(11, 61)]);
        assert_eq!(order.take_lost(), Some((1, 11)), "a segment sent after it is delivered");
        // A delivered retransmission marks segments sent between as lost.
        order.sent(Time(212), 61, 71, false);
        order.sent(Time(213), 1, 11, true);
        told_at(313, &mut board, &mut order, 61, &[]);
        assert_eq!(order.take_lost(), Some((61, 71)));
    }

    #[test]
    fn a_retransmission_is_not_delivered_in_less_than_a_round_trip() {
        let (mut order, mut board) = (five(), Scoreboard::default());
        told(&mut board, &mut order, 1, &[(11, 21)]);
        assert_eq!(order.take_lost(), Some((1, 11)));
        order.sent(Time(100), 51, 61, false);
        order.sent(Time(101), 1, 11, true);
        // 99 is the least round-trip time: at 199 the first transmission has come, late.
        told_at(199, &mut board, &mut order, 51, &[]);
        assert_eq!(order.lost_bytes(), 0);
        let (mut order, mut board) = (five(), Scoreboard::default());
        told(&mut board, &mut order, 1, &[(11, 21)]);
        assert_eq!(order.take_lost(), Some((1, 11)));
        order.sent(Time(100), 51, 61, false);
        order.sent(Time(101), 1, 11, true);
        told_at(200, &mut board, &mut order, 51, &[]);
        assert_eq!(order.take_lost(), Some((51, 61)), "the retransmission overtook it");
    }

    #[test]
    fn after_a_timeout_what_was_sent_a_round_trip_ago_is_lost() {
        let (mut order, board) = (five(), Scoreboard::default());
        order.rtt = Span(100);
        order.on_timeout(Time(102), 1, &board);
        let lost: Vec<_> = core::iter::from_fn(|| order.take_lost()).collect();
        assert_eq!(lost, [(1, 11), (11, 21), (21, 31)], "sent until 2");
        // The first segment is lost however late it was sent.
        order.sent(Time(103), 1, 11, true);
        order.on_timeout(Time(104), 1, &board);
        let lost: Vec<_> = core::iter::from_fn(|| order.take_lost()).collect();
        assert_eq!(lost, [(1, 11), (31, 41), (41, 51)]);
    }

    #[test]
    fn a_timeout_takes_the_first_missing_segment_and_no_other_recent_one() {
        let (mut order, mut board) = (five(), Scoreboard::default());
        told(&mut board, &mut order, 11, &[(21, 51)]);
        assert_eq!(order.take_lost(), Some((11, 21)));
        order.sent(Time(110), 11, 21, true);
        order.sent(Time(150), 51, 61, false);
        order.on_timeout(Time(200), 11, &board);
        assert_eq!((order.lost_bytes(), order.take_lost()), (10, Some((11, 21))));
    }

    #[test]
    fn a_timeout_takes_no_retransmission_that_has_arrived() {
        let (mut order, mut board) = (five(), Scoreboard::default());
        told(&mut board, &mut order, 11, &[(41, 51)]);
        while order.take_lost().is_some() {}
        for (at, start) in [(110, 31), (111, 11), (112, 21)] {
            order.sent(Time(at), start, start + 10, true);
        }
        told_at(150, &mut board, &mut order, 21, &[]);
        order.on_timeout(Time(151), 21, &board);
        assert_eq!((order.lost_bytes(), order.take_lost()), (10, Some((21, 31))));
    }

    #[test]
    fn late_deliveries_after_a_timeout_are_not_retransmitted() {
        let (mut order, mut board) = (five(), Scoreboard::default());
        order.on_timeout(Time(100), 1, &board);
        assert_eq!(order.lost_bytes(), 50, "no round-trip time is known");
        assert_eq!(order.take_lost(), Some((1, 11)));
        order.sent(Time(50), 1, 11, true);
        told(&mut board, &mut order, 21, &[]);
        assert_eq!((order.lost_bytes(), order.take_lost()), (30, Some((21, 31))));
    }
}
