//! Meetings of the threads that simulate parts: a barrier, letter boxes, and the state of parts.

use super::exchange::Mail;
use sojourn_aqm::units::Time;
use std::hint::spin_loop;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{available_parallelism, yield_now};

/// Number of looks at the barrier before a thread lets others run, if each can have a core.
const SPINS: u32 = 1 << 9;

/// State of a part at a meeting.
#[derive(Default)]
pub(super) struct Status {
    /// Time of its next event, or of the earliest effect of a message that it sent.
    earliest: AtomicU64,
    /// Time and greatest slot of the event that waits for the number of a new flow;
    /// [`Time::NEVER`] if none does.
    waiting: [AtomicU64; 2],
    /// True if its result is not exact.
    fails: AtomicBool,
    /// True if it wants to stop.
    stops: AtomicBool,
}

/// See [`MeetingPlace::guard`].
pub(super) struct Guard<'a>(&'a MeetingPlace);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.broken.store(true, Ordering::Relaxed);
        }
    }
}

/// Decision of a meeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// All parts simulate a window that starts at this time.
    Window(Time),
    /// The part may create its flow.
    Create(usize),
    /// The state is not exact.
    Fail,
    /// A part wants to stop.
    Stop,
}

/// Meeting place. Everything exists twice, so that a thread can write for the next meeting while
/// others still read.
pub(super) struct MeetingPlace {
    parts: usize,
    /// Number of looks at the barrier before a thread lets others run.
    spins: u32,
    arrived: AtomicUsize,
    round: AtomicUsize,
    /// True after a panic in one of the threads.
    broken: AtomicBool,
    status: [Vec<Status>; 2],
    /// For each part that sends, a box for each part that receives.
    boxes: [Vec<Mutex<Mail>>; 2],
}

impl MeetingPlace {
    pub(super) fn new(parts: usize) -> MeetingPlace {
        let status = || (0..parts).map(|_| Status::default()).collect();
        let boxes = || (0..parts * parts).map(|_| Mutex::default()).collect();
        let cores = available_parallelism().map_or(1, NonZero::get);
        MeetingPlace {
            parts,
            spins: if parts <= cores { SPINS } else { 0 },
            arrived: AtomicUsize::new(0),
            round: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
            status: [status(), status()],
            boxes: [boxes(), boxes()],
        }
    }

    /// Publishes the state of `part` for the meeting of this parity.
    pub(super) fn publish(
        &self,
        parity: usize,
        part: usize,
        earliest: Time,
        waiting: Option<(Time, usize)>,
        [fails, stops]: [bool; 2],
    ) {
        let status = &self.status[parity][part];
        let (at, slot) = waiting.unwrap_or((Time::NEVER, 0));
        status.earliest.store(earliest.0, Ordering::Relaxed);
        status.waiting[0].store(at.0, Ordering::Relaxed);
        status.waiting[1].store(slot as u64, Ordering::Relaxed);
        status.fails.store(fails, Ordering::Relaxed);
        status.stops.store(stops, Ordering::Relaxed);
    }

    /// Exchanges the contents of the box of `from` for `to` with `mail`.
    pub(super) fn swap(&self, parity: usize, from: usize, to: usize, mail: &mut Mail) {
        let held = &self.boxes[parity][from * self.parts + to];
        std::mem::swap(&mut *held.lock().unwrap_or_else(PoisonError::into_inner), mail);
    }

    /// Waits until all threads have arrived. What they wrote before is visible afterwards.
    ///
    /// # Panics
    /// If another thread panicked.
    pub(super) fn wait(&self) {
        let round = self.round.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.parts {
            self.arrived.store(0, Ordering::Relaxed);
            self.round.store(round.wrapping_add(1), Ordering::Release);
            return;
        }
        let mut spins = 0;
        while self.round.load(Ordering::Acquire) == round {
            assert!(
                !self.broken.load(Ordering::Relaxed),
                "another part of the simulation panicked"
            );
            spins += 1;
            if spins < self.spins { spin_loop() } else { yield_now() }
        }
    }

    /// Guard of a thread: if the thread panics, the others do not wait for it.
    pub(super) fn guard(&self) -> Guard<'_> {
        Guard(self)
    }

    /// Decision that follows from the state of all parts; the same in every thread.
    pub(super) fn decide(&self, parity: usize) -> Decision {
        let all = &self.status[parity];
        let read = |value: &AtomicU64| value.load(Ordering::Relaxed);
        if all.iter().any(|status| status.fails.load(Ordering::Relaxed)) {
            return Decision::Fail;
        }
        let waiting = |part: &usize| all[*part].waiting.each_ref().map(read);
        let first = (0..self.parts).min_by_key(waiting).expect("there are parts");
        let key = waiting(&first);
        if key[0] < Time::NEVER.0 {
            // Two events with one key: their order in one thread is not known here.
            let again = (first + 1..self.parts).any(|part| waiting(&part) == key);
            return if again { Decision::Fail } else { Decision::Create(first) };
        }
        if all.iter().any(|status| status.stops.load(Ordering::Relaxed)) {
            return Decision::Stop;
        }
        Decision::Window(Time(all.iter().map(|s| read(&s.earliest)).min().expect("as above")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::simulation::parallel::exchange::{Message, Opening};

    #[test]
    fn flows_are_created_in_the_order_of_one_thread() {
        let place = MeetingPlace::new(3);
        let decide = |waiting: [Option<(u64, usize)>; 3], flags: [bool; 2]| {
            for (part, waiting) in waiting.into_iter().enumerate() {
                let waiting = waiting.map(|(at, slot)| (Time(at), slot));
                let flags = if part == 1 { flags } else { [false; 2] };
                place.publish(0, part, Time(100 - part as u64), waiting, flags);
            }
            place.decide(0)
        };
        let none = [None; 3];
        assert_eq!(decide(none, [false, false]), Decision::Window(Time(98)));
        assert_eq!(decide([None, Some((5, 2)), Some((5, 1))], [false; 2]), Decision::Create(2));
        assert_eq!(decide([Some((6, 0)), Some((5, 2)), None], [false; 2]), Decision::Create(1));
        // The same time and slot: an event of a flow in two parts.
        assert_eq!(decide([None, Some((5, 2)), Some((5, 2))], [false; 2]), Decision::Fail);
        assert_eq!(decide(none, [true, false]), Decision::Fail);
        assert_eq!(decide(none, [false, true]), Decision::Stop);
        // A part that waits is in the middle of a window.
        assert_eq!(decide([Some((5, 2)), None, None], [false, true]), Decision::Create(0));
    }

    #[test]
    fn messages_reach_the_other_part_once() {
        let place = MeetingPlace::new(2);
        std::thread::scope(|threads| {
            for me in 0..2 {
                let place = &place;
                threads.spawn(move || {
                    let _guard = place.guard();
                    let (mut received, mut inbox) = (0, Mail::default());
                    for round in 0..2000 {
                        let parity = round % 2;
                        let mut outbox = Mail::default();
                        for _ in 0..round % 3 {
                            let opening = Opening {
                                at: Time(round as u64),
                                flow: 0,
                                connection: 0,
                                hash: 0,
                                transfer: None,
                            };
                            outbox.messages.push(Message::Opened(opening));
                        }
                        place.swap(parity, me, 1 - me, &mut outbox);
                        place.wait();
                        place.swap(parity, 1 - me, me, &mut inbox);
                        for message in inbox.messages.drain(..) {
                            let Message::Opened(opening) = message else { panic!("not sent") };
                            assert_eq!(opening.at, Time(round as u64));
                            received += 1;
                        }
                    }
                    assert_eq!(received, (0..2000).map(|round| round % 3).sum::<usize>());
                });
            }
        });
    }
}
