//! Link with scheduled events (changes, samples, reset of its counters), and random loss or a wire
//! with other impairments after the queue. It is passed the time.

use sojourn_aqm::wire::{Fate, Wire, WireStats};
use sojourn_aqm::{Link, LinkSpec, Packet, Span, Time};
use std::collections::VecDeque;
use std::fmt;
use std::iter::Peekable;

/// Scheduled changes of a link, in order of time.
pub type LinkSpecChanges = Box<dyn Iterator<Item = (Time, LinkSpec)> + Send>;

/// Change of a wire at a time.
pub type WireChangeFn = Box<dyn FnOnce(Time, &mut Wire) + Send>;

/// Callback with the time and the link.
pub type LinkCallback = Box<dyn FnMut(Time, &mut Link) + Send>;

/// Random loss: called once per packet in order, true if the packet is lost.
pub type LossFn = Box<dyn FnMut() -> bool + Send>;

/// Copies the packet with this body; returns the body of the copy, None if there is no room.
pub type CopyFn<'a> = &'a mut dyn FnMut(u32) -> Option<u32>;

/// Packet that has left the link.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Departure {
    /// Due time.
    pub at: Time,
    /// Packet.
    pub packet: Packet,
    /// True if it is lost.
    pub lost: bool,
    /// Number of the bit that the link has changed.
    pub wrong_bit: Option<u32>,
}

/// Link with scheduled events.
pub struct TimedLink {
    /// Link.
    pub link: Link,
    /// Packets dropped by random loss among those that arrived in the measured interval.
    pub randomly_lost: u64,
    loses: Option<LossFn>,
    wire: Option<Box<Wire>>,
    /// Packets that the wire has lost, with the times at which they were sent.
    lost: VecDeque<(Time, Packet)>,
    changes: Option<Peekable<LinkSpecChanges>>,
    /// Changes of the wire in order of time.
    wire_changes: VecDeque<(Time, WireChangeFn)>,
    begin: Option<(Time, LinkCallback)>,
    sampler: Option<(Span, Time, LinkCallback)>,
}

impl fmt::Debug for TimedLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimedLink")
            .field("link", &self.link)
            .field("randomly_lost", &self.randomly_lost)
            .finish_non_exhaustive()
    }
}

/// Scheduled event; events at the same time happen in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ScheduledEvent {
    Change,
    ChangeWire,
    Begin,
    Sample,
}

impl TimedLink {
    /// Creates an empty link at time zero, without events or random loss.
    pub fn new(link: Link) -> TimedLink {
        TimedLink {
            link,
            randomly_lost: 0,
            loses: None,
            wire: None,
            lost: VecDeque::new(),
            changes: None,
            wire_changes: VecDeque::new(),
            begin: None,
            sampler: None,
        }
    }

    /// Sets the wire behind the link, which has its random loss as well.
    pub fn set_wire(&mut self, wire: Wire) {
        self.link.may_change();
        self.wire = Some(Box::new(wire));
    }

    /// Counters of the wire, if there is one.
    pub fn wire_stats(&self) -> Option<&WireStats> {
        self.wire.as_deref().map(Wire::stats)
    }

    /// Number of packets lost after the queue, among those that arrived in the measured interval.
    pub fn lost_on_wire(&self) -> u64 {
        self.wire_stats().map_or(self.randomly_lost, |stats| stats.lost)
    }

    /// Sets the random loss.
    pub fn set_loss(&mut self, loses: LossFn) {
        self.loses = Some(loses);
    }

    /// Schedules changes of the link.
    pub fn schedule_changes(&mut self, changes: LinkSpecChanges) {
        self.link.may_change();
        self.changes = Some(changes.peekable());
    }

    /// Schedules changes of the wire, in order of time.
    pub fn schedule_wire_changes(&mut self, changes: Vec<(Time, WireChangeFn)>) {
        self.wire_changes = changes.into();
    }

    /// Calls `see` with the link once per `every`; the first call is at time `every`.
    ///
    /// # Panics
    /// If `every` is 0.
    pub fn sample_every(&mut self, every: Span, see: LinkCallback) {
        assert!(every.0 > 0, "the interval must be above 0");
        self.sampler = Some((every, Time::ZERO + every, see));
    }

    /// Schedules a reset of the counters at `at`, preceded by a call of `see`.
    pub fn reset_stats_at(&mut self, at: Time, see: LinkCallback) {
        self.begin = Some((at, see));
    }

    /// Next scheduled event.
    fn next_scheduled(&mut self) -> Option<(Time, ScheduledEvent)> {
        let change = self.changes.as_mut().and_then(Peekable::peek);
        let change = change.map(|(at, _)| (*at, ScheduledEvent::Change));
        let wire = self.wire_changes.front().map(|(at, _)| (*at, ScheduledEvent::ChangeWire));
        let begin = self.begin.as_ref().map(|(at, _)| (*at, ScheduledEvent::Begin));
        let look = self.sampler.as_ref().map(|(_, at, _)| (*at, ScheduledEvent::Sample));
        change.into_iter().chain(wire).chain(begin).chain(look).min()
    }

    /// Processes everything due up to `now`, each event at its own time.
    pub fn advance(&mut self, now: Time, copy: CopyFn<'_>) {
        while let Some((at, what)) = self.next_scheduled().filter(|(at, _)| *at <= now) {
            match what {
                ScheduledEvent::Change => {
                    let next = self.changes.as_mut().and_then(Iterator::next);
                    self.send_before(at, copy);
                    next.into_iter().for_each(|(at, spec)| self.link.change(at, spec));
                }
                ScheduledEvent::ChangeWire => {
                    self.send_before(at, copy);
                    let next = self.wire_changes.pop_front();
                    if let (Some((at, change)), Some(wire)) = (next, &mut self.wire) {
                        change(at, wire);
                    }
                }
                ScheduledEvent::Begin => {
                    self.link.advance(at);
                    let begin = self.begin.take();
                    begin.into_iter().for_each(|(_, mut see)| see(at, &mut self.link));
                    self.link.reset_stats(at);
                    self.randomly_lost = 0;
                    if let Some(wire) = &mut self.wire {
                        wire.reset_stats(at);
                    }
                }
                ScheduledEvent::Sample => {
                    self.link.advance(at);
                    if let Some((every, next, see)) = &mut self.sampler {
                        see(at, &mut self.link);
                        *next += *every;
                    }
                }
            }
        }
        self.link.advance(now);
        self.send_on_wire(copy);
    }

    /// Sends the packets whose transmission has started before `at` to the wire, if there is one.
    fn send_before(&mut self, at: Time, copy: CopyFn<'_>) {
        if self.wire.is_some() {
            self.link.advance(Time(at.0.saturating_sub(1)).max(self.link.now()));
            self.send_on_wire(copy);
        }
    }

    /// Sends the packets whose transmission has started to the wire, if there is one.
    fn send_on_wire(&mut self, copy: CopyFn<'_>) {
        let Some(wire) = &mut self.wire else { return };
        let delay = self.link.spec().delay;
        while let Some((due, packet)) = self.link.pop_in_flight() {
            let sent = Time(due.0.saturating_sub(delay.0));
            if wire.send(sent, due, packet, copy) == Fate::Lost {
                self.lost.push_back((sent, packet));
            }
        }
    }

    /// Time of the next event; None if there is none.
    pub fn next_event_time(&mut self) -> Option<Time> {
        let planned = self.next_scheduled().map(|(at, _)| at);
        let Some(wire) = &self.wire else {
            return self.link.next_poll().into_iter().chain(planned).min();
        };
        // A transmission starts by then; a wire can deliver its packet early.
        let delay = self.link.spec().delay;
        let start = self.link.next_event().map(|at| Time(at.0.saturating_sub(delay.0)));
        let lost = self.lost.front().map(|(at, _)| *at);
        [start, wire.next_event(), lost, planned].into_iter().flatten().min()
    }

    /// Next packet that has left the link by `now`.
    pub fn poll(&mut self, now: Time) -> Option<Departure> {
        if let Some(wire) = &mut self.wire {
            if let Some((at, packet)) = self.lost.pop_front() {
                return Some(Departure { at, packet, lost: true, wrong_bit: None });
            }
            let arrival = wire.poll(now)?;
            let (at, packet, wrong_bit) = (arrival.at, arrival.packet, arrival.wrong_bit);
            return Some(Departure { at, packet, lost: false, wrong_bit });
        }
        let at = self.link.next_poll().filter(|at| *at <= now)?;
        let packet = self.link.poll(now)?;
        let lost = self.loses.as_mut().is_some_and(|loses| loses());
        let counts = packet.arrived >= self.link.stats().marks.since;
        self.randomly_lost += u64::from(lost && counts);
        Some(Departure { at, packet, lost, wrong_bit: None })
    }
}
