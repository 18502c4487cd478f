//! Event queue of a session group, ordered by time, FIFO at equal times.

use crate::traffic::transfer::OpenRequest;
use sojourn_aqm::Snapshot;
use sojourn_aqm::units::Time;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Event of a session group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
pub(super) enum SessionEvent {
    /// Arrival of a flow, session or query.
    Arrive,
    /// Opening of a connection.
    Open(OpenRequest),
    /// Start of the next transfer of a session, or of the next page of a user.
    Next(u32),
    /// Request of the next object of a page.
    Object(u32),
}

#[derive(Clone, Debug, Snapshot)]
struct Scheduled {
    at: Time,
    sequence: u64,
    event: SessionEvent,
}

impl Scheduled {
    fn key(&self) -> (Time, u64) {
        (self.at, self.sequence)
    }
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Scheduled) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Scheduled) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Scheduled) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// Event queue.
#[derive(Clone, Debug, Default, Snapshot)]
pub(super) struct EventHeap {
    heap: BinaryHeap<Reverse<Scheduled>>,
    sequence: u64,
}

impl EventHeap {
    /// Schedules `what` at `at`; dropped if `at` is [`Time::NEVER`].
    pub(super) fn push(&mut self, at: Time, what: SessionEvent) {
        if at < Time::NEVER {
            self.heap.push(Reverse(Scheduled { at, sequence: self.sequence, event: what }));
            self.sequence += 1;
        }
    }

    /// Removes all events.
    pub(super) fn clear(&mut self) {
        self.heap.clear();
    }

    /// Time of the first event; [`Time::NEVER`] if there is none.
    pub(super) fn next(&self) -> Time {
        self.heap.peek().map_or(Time::NEVER, |e| e.0.at)
    }

    /// Removes and returns the first event, if it is due at `now`.
    pub(super) fn pop(&mut self, now: Time) -> Option<SessionEvent> {
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
        let mut events = EventHeap::default();
        for (at, n) in [(5, 0), (3, 1), (5, 2), (3, 3), (9, 4)] {
            events.push(Time(at), SessionEvent::Next(n));
        }
        events.push(Time::NEVER, SessionEvent::Arrive);
        assert_eq!((events.next(), events.pop(Time(2))), (Time(3), None));
        let order: Vec<_> = std::iter::from_fn(|| events.pop(Time(5))).collect();
        assert_eq!(order, [1, 3, 0, 2].map(SessionEvent::Next));
        assert_eq!(events.next(), Time(9));
    }
}
