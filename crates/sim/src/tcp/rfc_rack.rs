//! Loss by the order of sending: what left before something that arrived, and did not arrive, is
//! lost, a packet sent again no less than one sent first. So a lost retransmission is found without
//! the timer, and one packet that arrives is enough, where three duplicates must come otherwise.
//!
//! **Source**: RFC 8985 §6 (RACK), which Linux uses in place of RFC 6675's count of duplicates.
//!
//! **Departures**: order stands for the times of sending, and there is no window for reordering
//! (§6.2 step 4): links do not reorder the packets of a flow. There is no tail loss probe (§7). The
//! timer starts anew when the first byte outstanding is sent again, as Linux does.
//!
//! **Cost**: an entry per segment in flight; an ack looks at those that it settles.

use super::Segment;
use super::rfc::{Rfc, State};
use super::scoreboard::Scoreboard;
use crate::cc::Control;
use sojourn_aqm::units::Time;
use std::collections::VecDeque;

/// A transmission: where its bytes begin and end, and its number.
#[derive(Clone, Copy, Debug)]
struct Sent {
    start: u64,
    end: u64,
    number: u64,
}

/// What is in flight by the order in which it left, and what was lost and not sent again.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    /// Sent once: by number, and so by sequence number too.
    fresh: VecDeque<Sent>,
    /// Sent again: by number.
    again: VecDeque<Sent>,
    /// By sequence number.
    lost: VecDeque<(u64, u64)>,
    lost_bytes: u64,
    /// The number of the next.
    next: u64,
    /// All with lower numbers have arrived or are lost.
    settled: u64,
}

/// What the receiver is known to have.
#[derive(Clone, Copy)]
struct Known<'a> {
    una: u64,
    board: &'a Scoreboard,
}

impl Known<'_> {
    fn has(&self, start: u64, end: u64) -> bool {
        let held = || self.board.around(start).is_some_and(|(a, b)| a <= start && end <= b);
        end <= self.una || held()
    }
}

impl Order {
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.fresh.clear();
        self.again.clear();
        self.lost.clear();
        (self.lost_bytes, self.next, self.settled) = (0, 0, 0);
    }

    /// Notes that these bytes leave, `again` or for the first time.
    pub fn sent(&mut self, start: u64, end: u64, again: bool) {
        let sent = Sent { start, end, number: self.next };
        self.next += 1;
        if again { self.again.push_back(sent) } else { self.fresh.push_back(sent) }
    }

    /// Bytes that are lost and were not sent again.
    pub fn lost_bytes(&self) -> u64 {
        self.lost_bytes
    }

    /// Takes the lowest lost segment, which is about to be sent again.
    pub fn take(&mut self) -> Option<(u64, u64)> {
        let (start, end) = self.lost.pop_front()?;
        self.lost_bytes -= end - start;
        Some((start, end))
    }

    /// Takes what the receiver is known to have: everything up to `una`, and what is on `board`.
    pub fn learn(&mut self, una: u64, board: &Scoreboard) {
        let known = Known { una, board };
        if !self.lost.is_empty() {
            // It was on its way after all: a timeout came too soon.
            self.lost.retain(|(start, end)| !known.has(*start, *end));
            self.lost_bytes = self.lost.iter().map(|(start, end)| end - start).sum();
        }
        // The last one that arrived, of those sent once and of those sent again.
        let top = una.max(board.top());
        let fresh = self.fresh.partition_point(|sent| sent.end <= top).checked_sub(1);
        let fresh = fresh.map(|i| self.fresh[i]).filter(|s| known.has(s.start, s.end));
        let again = self.again.iter().rev().find(|sent| known.has(sent.start, sent.end));
        let arrived = fresh.iter().chain(again).map(|sent| sent.number + 1);
        self.settled = arrived.fold(self.settled, u64::max);
        self.settle(known);
    }

    /// Everything that is on its way counts as lost.
    pub fn give_up(&mut self, una: u64, board: &Scoreboard) {
        self.settled = self.next;
        self.settle(Known { una, board });
    }

    fn settle(&mut self, known: Known<'_>) {
        let Order { fresh, again, lost, lost_bytes, settled, .. } = self;
        for which in [fresh, again] {
            while let Some(sent) = which.front().copied() {
                let arrived = known.has(sent.start, sent.end);
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

impl<C: Control> Rfc<C> {
    /// Sends what is lost, and then new segments, while there is room for a full one.
    pub(super) fn send_in_order(&mut self, now: Time, out: &mut Vec<Segment>) {
        if self.state == State::Open && self.dup > 0 && !self.limited_transmit {
            return;
        }
        while self.in_network() + self.window.mss <= self.window.cwnd {
            if C::HOOKED && !self.control.may_send(now) || !self.send_one(now, out) {
                return;
            }
        }
    }

    /// Sends a segment, lost ones first; whether there was one to send.
    pub(super) fn send_one(&mut self, now: Time, out: &mut Vec<Segment>) -> bool {
        if let Some((start, end)) = self.order.as_mut().and_then(|order| order.take()) {
            self.output(now, start, end - start, out);
            if start == self.una {
                self.timer = now + self.rto(); // it has its whole time once more
            }
            return true;
        }
        let len = self.window.mss.min(self.end - self.nxt.min(self.end));
        if len == 0 || self.nxt + len > self.una + self.rwnd {
            return false;
        }
        self.output(now, self.nxt, len, out);
        self.nxt += len;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::Ack;
    use super::*;

    /// Five segments of ten bytes, from 1 on.
    fn five() -> Order {
        let mut order = Order::default();
        (0..5).for_each(|i| order.sent(1 + 10 * i, 11 + 10 * i, false));
        order
    }

    fn told(board: &mut Scoreboard, order: &mut Order, ack: u64, sacks: &[(u64, u64)]) {
        let mut blocks = [(0, 0); 3];
        blocks[..sacks.len()].copy_from_slice(sacks);
        board.update(&Ack { ack, sacks: blocks, blocks: sacks.len() as u8, ..Ack::default() });
        order.learn(ack, board);
    }

    #[test]
    fn one_that_arrives_settles_all_that_left_before() {
        let (mut order, mut board) = (five(), Scoreboard::default());
        told(&mut board, &mut order, 11, &[]);
        assert_eq!(order.lost_bytes(), 0, "the first arrived first");
        told(&mut board, &mut order, 11, &[(31, 41)]);
        assert_eq!(order.lost_bytes(), 20);
        assert_eq!(
            (order.take(), order.take(), order.take()),
            (Some((11, 21)), Some((21, 31)), None)
        );
    }

    #[test]
    fn a_retransmission_that_is_lost_is_found() {
        let (mut order, mut board) = (five(), Scoreboard::default());
        told(&mut board, &mut order, 1, &[(11, 21)]);
        assert_eq!(order.take(), Some((1, 11)));
        order.sent(1, 11, true);
        // Those that left before the retransmission say nothing of it.
        told(&mut board, &mut order, 1, &[(11, 51)]);
        assert_eq!(order.lost_bytes(), 0);
        order.sent(51, 61, false);
        told(&mut board, &mut order, 1, &[(11, 61)]);
        assert_eq!(order.take(), Some((1, 11)), "one that left after it has arrived");
        // And that it arrived tells of those sent between.
        order.sent(61, 71, false);
        order.sent(1, 11, true);
        told(&mut board, &mut order, 61, &[]);
        assert_eq!(order.take(), Some((61, 71)));
    }

    #[test]
    fn after_a_timeout_what_arrives_late_is_not_sent_again() {
        let (mut order, mut board) = (five(), Scoreboard::default());
        told(&mut board, &mut order, 1, &[(41, 51)]);
        assert_eq!(order.lost_bytes(), 40);
        let (mut order, mut board) = (five(), Scoreboard::default());
        order.give_up(1, &board);
        assert_eq!(order.lost_bytes(), 50);
        assert_eq!(order.take(), Some((1, 11)));
        order.sent(1, 11, true);
        told(&mut board, &mut order, 21, &[]);
        assert_eq!((order.lost_bytes(), order.take()), (30, Some((21, 31))));
    }
}
