//! Event queue of a session group, ordered by time, FIFO at equal times.

use crate::engine::transfer::OpenRequest;
use sojourn_aqm::units::Time;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Event of a session group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Arrival of a flow, session or query.
    Arrive,
    /// Opening of a connection.
    Open(OpenRequest),
    /// Start of the next transfer of a session, or of the next page of a user.
    Next(u32),
    /// Request of the next object of a page.
    Object(u32),
}

struct Entry {
    at: Time,
    sequence: u64,
    event: What,
}

impl Entry {
    fn key(&self) -> (Time, u64) {
        (self.at, self.sequence)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// Event queue.
#[derive(Default)]
pub struct Agenda {
    heap: BinaryHeap<Reverse<Entry>>,
    sequence: u64,
}

impl Agenda {
    /// Schedule `what` at `at`; dropped if `at` is [`Time::NEVER`].
    pub fn push(&mut self, at: Time, what: What) {
        if at < Time::NEVER {
            self.heap.push(Reverse(Entry { at, sequence: self.sequence, event: what }));
            self.sequence += 1;
        }
    }

    /// Remove all events.
    pub fn clear(&mut self) {
        self.heap.clear();
    }

    /// Time of the first event; [`Time::NEVER`] if there is none.
    pub fn next(&self) -> Time {
        self.heap.peek().map_or(Time::NEVER, |e| e.0.at)
    }

    /// Remove and return the first event, if it is due at `now`.
    pub fn pop(&mut self, now: Time) -> Option<What> {
        if self.next() > now {
            return None;
        }
        self.heap.pop().map(|e| e.0.event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_ordered_by_time_then_insertion() {
        let mut agenda = Agenda::default();
        for (at, n) in [(5, 0), (3, 1), (5, 2), (3, 3), (9, 4)] {
            agenda.push(Time(at), What::Next(n));
        }
        agenda.push(Time::NEVER, What::Arrive);
        assert_eq!((agenda.next(), agenda.pop(Time(2))), (Time(3), None));
        let order: Vec<_> = std::iter::from_fn(|| agenda.pop(Time(5))).collect();
        assert_eq!(order, [1, 3, 0, 2].map(What::Next));
        assert_eq!(agenda.next(), Time(9));
    }
}
