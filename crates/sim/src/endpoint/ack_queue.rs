//! Acks on the last hop to a sender: a FIFO with a constant delay. There is one entry per packet in
//! flight, so entries are small: most acks carry no SACK blocks, and the blocks of those that do
//! are kept in a second FIFO.

use crate::collections::prefetch::prefetch;
use crate::endpoint::tcp::Ack;
use sojourn_aqm::units::Time;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
struct QueuedAck {
    at: Time,
    ack: u64,
    connection: u32,
    /// Size on the wire, bytes: header and at most three SACK blocks.
    wire: u16,
    blocks: u8,
    /// Bit set of [`ECE`] and [`SYN`].
    flags: u8,
}

const ECE: u8 = 1;
const SYN: u8 = 2;

const _: () = assert!(size_of::<QueuedAck>() <= 24);

/// FIFO of acks in order of arrival.
#[derive(Debug, Default)]
pub struct AckQueue {
    line: VecDeque<QueuedAck>,
    sacks: VecDeque<[(u64, u64); 3]>,
}

impl AckQueue {
    /// Append an ack of `connection` that reaches the sender at `at`; `at` must not be earlier than
    /// that of the previous ack.
    #[inline]
    pub fn push(&mut self, at: Time, connection: u32, ack: &Ack) {
        let Ack { ack, sacks, blocks, ece, syn, wire } = *ack;
        if blocks > 0 {
            self.sacks.push_back(sacks);
        }
        let flags = u8::from(ece) * ECE + u8::from(syn) * SYN;
        #[expect(clippy::cast_possible_truncation, reason = "at most 1,000 bytes and three blocks")]
        let wire = wire as u16;
        self.line.push_back(QueuedAck { at, ack, connection, wire, blocks, flags });
    }

    /// Arrival time of the first ack; [`Time::NEVER`] if there is none.
    #[inline]
    pub fn next(&self) -> Time {
        self.line.front().map_or(Time::NEVER, |a| a.at)
    }

    /// Prefetch the first entry and the one at the back.
    #[inline]
    pub fn prefetch(&self) {
        if let (Some(first), Some(last)) = (self.line.front(), self.line.back()) {
            prefetch(first);
            prefetch(last);
        }
    }

    /// True if an ack of `connection` is in the FIFO.
    pub fn contains(&self, connection: u32) -> bool {
        self.line.iter().any(|a| a.connection == connection)
    }

    /// Write the first ack to `into` if it has arrived by `now`, and return its connection. Copies
    /// field by field: moving a whole struct that was just written causes a store-forwarding stall.
    #[inline]
    pub fn pop(&mut self, now: Time, into: &mut Ack) -> Option<u32> {
        let first = self.line.front().filter(|a| a.at <= now)?;
        into.ack = first.ack;
        into.blocks = first.blocks;
        into.ece = first.flags & ECE != 0;
        into.syn = first.flags & SYN != 0;
        into.wire = first.wire.into();
        if first.blocks > 0 {
            into.sacks = self.sacks.pop_front()?;
        }
        let connection = first.connection;
        self.line.pop_front();
        Some(connection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acks_are_returned_unchanged_in_order() {
        let mut acks = AckQueue::default();
        let plain = Ack { ack: 7, wire: 40, ece: true, ..Ack::default() };
        let sacks = [(9, 10), (12, 15), (0, 0)];
        let holed = Ack { ack: 7, sacks, blocks: 2, wire: 56, ..Ack::default() };
        let sent = [plain, holed, plain, holed];
        (1..).zip(&sent).for_each(|(t, ack)| acks.push(Time(t), t as u32, ack));
        assert_eq!(acks.next(), Time(1));
        assert!(acks.contains(4) && !acks.contains(5));
        for (t, ack) in (1..).zip(sent) {
            let mut back = Ack::default();
            assert_eq!(acks.pop(Time(t - 1), &mut back), None);
            assert_eq!(acks.pop(Time(t), &mut back), Some(t as u32));
            assert_eq!(back, ack);
        }
        assert_eq!(acks.next(), Time::NEVER);
    }
}
