//! Acks on the last hop to a sender: a FIFO with a constant delay. There is one entry per packet in
//! flight, so entries are small: they have what a sender reads, most acks carry no SACK blocks, and
//! the blocks of those that do are kept in a second FIFO.

use crate::collections::prefetch::prefetch;
use crate::endpoint::tcp::Ack;
use sojourn_aqm::Snapshot;
use sojourn_aqm::units::Time;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, Snapshot)]
struct QueuedAck {
    at: Time,
    ack: u64,
    connection: u32,
    echo: u32,
    ce_packets: u16,
    /// Number of SACK blocks.
    blocks: u8,
    ece: bool,
}

const _: () = assert!(size_of::<QueuedAck>() <= 32);

/// FIFO of acks in order of arrival.
#[derive(Clone, Debug, Snapshot)]
pub(crate) struct AckQueue {
    /// Arrival time of the first ack; [`Time::NEVER`] if there is none.
    first_at: Time,
    line: VecDeque<QueuedAck>,
    sacks: VecDeque<[(u64, u64); 3]>,
}

impl Default for AckQueue {
    fn default() -> AckQueue {
        AckQueue { first_at: Time::NEVER, line: VecDeque::new(), sacks: VecDeque::new() }
    }
}

impl AckQueue {
    /// Appends an ack of `connection` that reaches the sender at `at`; `at` must not be earlier
    /// than the time of the previous ack. Its size and SYN flag, which no sender reads, are not
    /// kept.
    #[inline]
    pub(crate) fn push(&mut self, at: Time, connection: u32, ack: &Ack) {
        let Ack { ack, sacks, blocks, ece, ce_packets, echo, .. } = *ack;
        if blocks > 0 {
            self.sacks.push_back(sacks);
        }
        if self.line.is_empty() {
            self.first_at = at;
        }
        self.line.push_back(QueuedAck { at, ack, connection, echo, ce_packets, blocks, ece });
    }

    /// Arrival time of the first ack; [`Time::NEVER`] if there is none.
    #[inline]
    pub(crate) fn next(&self) -> Time {
        self.first_at
    }

    /// Prefetch the first entry and the one at the back.
    #[inline]
    pub(crate) fn prefetch(&self) {
        if let (Some(first), Some(last)) = (self.line.front(), self.line.back()) {
            prefetch(first);
            prefetch(last);
        }
    }

    /// True if an ack of `connection` is in the FIFO.
    pub(crate) fn contains(&self, connection: u32) -> bool {
        self.line.iter().any(|a| a.connection == connection)
    }

    /// Acks that arrive by `now`, with their connections.
    pub(crate) fn due(&self, now: Time) -> impl Iterator<Item = (u32, Ack)> {
        let mut sacks = self.sacks.iter();
        self.line.iter().take_while(move |entry| entry.at <= now).map(move |entry| {
            let QueuedAck { ack, connection, echo, ce_packets, blocks, ece, .. } = *entry;
            let plain = Ack { ack, echo, ce_packets, blocks, ece, ..Ack::default() };
            let sacks = if blocks > 0 { sacks.next() } else { None };
            (connection, Ack { sacks: sacks.copied().unwrap_or(plain.sacks), ..plain })
        })
    }

    /// Writes the first ack to `into` if it has arrived by `now`, and returns its connection.
    /// Copies field by field: moving a whole struct that was just written causes a store-forwarding
    /// stall.
    #[inline]
    pub(crate) fn pop(&mut self, now: Time, into: &mut Ack) -> Option<u32> {
        if now < self.first_at {
            return None;
        }
        let QueuedAck { ack, connection, echo, ce_packets, blocks, ece, .. } =
            self.line.pop_front()?;
        self.first_at = self.line.front().map_or(Time::NEVER, |a| a.at);
        (into.ack, into.ce_packets, into.blocks, into.ece) = (ack, ce_packets, blocks, ece);
        into.echo = echo;
        if blocks > 0 {
            into.sacks = self.sacks.pop_front()?;
        }
        Some(connection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acks_are_returned_unchanged_in_order() {
        let mut acks = AckQueue::default();
        let plain = Ack { ack: 7, ece: true, ..Ack::default() };
        let sacks = [(9, 10), (12, 15), (20, 30)];
        let holed = Ack { ack: 7, sacks, blocks: 3, ce_packets: 65_535, echo: 9, ..plain };
        let sent = [plain, holed, Ack { ack: 8, ..plain }, Ack { ece: false, ..holed }];
        (1..).zip(&sent).for_each(|(t, ack)| acks.push(Time(t), t as u32, ack));
        assert_eq!(acks.next(), Time(1));
        assert!(acks.contains(4) && !acks.contains(5));
        let due: Vec<(u32, Ack)> = acks.due(Time(3)).collect();
        assert_eq!(due, [(1, sent[0]), (2, sent[1]), (3, sent[2])]);
        for (t, ack) in (1..).zip(sent) {
            let mut back = Ack::default();
            assert_eq!(acks.pop(Time(t - 1), &mut back), None);
            assert_eq!(acks.pop(Time(t), &mut back), Some(t as u32));
            assert_eq!(back, ack);
        }
        assert_eq!(acks.next(), Time::NEVER);
    }
}
