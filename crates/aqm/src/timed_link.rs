//! Link that carries bodies of any type, with impairments behind it.
//!
//! A [`Link`] has packet descriptors; this one also owns the bodies. It has no clock and no I/O.

mod builder;
mod saved;
mod slab;
#[cfg(test)]
mod tests;

pub use builder::TimedLinkBuilder;

use crate::context::DropReason;
use crate::error::{Error, Result};
use crate::flow_header::FlowHeader;
use crate::link::{Link, LinkSpec};
use crate::packet::Packet;
use crate::snapshot::Snapshot;
use crate::stats::LinkStats;
use crate::text_form::build_text;
use crate::units::{Span, Time};
use crate::wire::{Fate, Wire, WireStats};
use alloc::collections::VecDeque;
use core::fmt;
use saved::Recipe;
use slab::Slab;

/// Packet that has arrived at the far end.
#[derive(Clone, Debug, PartialEq, Eq, Snapshot)]
#[non_exhaustive]
pub struct Delivery<T> {
    /// Time of arrival; earlier than the call that returns it if that is late.
    pub at: Time,
    /// Descriptor. Its `ecn` is CE if the packet was marked: set it in the header of the body.
    pub packet: Packet,
    /// Body.
    pub body: T,
    /// Number of the bit that is wrong, if the packet was corrupted. The body is unchanged.
    pub wrong_bit: Option<u32>,
}

/// Packet that was dropped or lost.
#[derive(Clone, Debug, PartialEq, Eq, Snapshot)]
#[non_exhaustive]
pub struct Undelivered<T> {
    /// Time of the drop, or of the departure of a packet that was lost on the wire.
    pub at: Time,
    /// Descriptor.
    pub packet: Packet,
    /// Body.
    pub body: T,
    /// Reason for the drop; `None` for a packet that was lost on the wire.
    pub reason: Option<DropReason>,
}

/// Link that carries bodies of the type `T`: a discipline, a rate, a delay, and impairments. Pass
/// the time; calls with an earlier time than the last one are refused.
///
/// ```
/// use sojourn_aqm::{Ecn, Packet, Rate, Span, Time, TimedLink};
///
/// let mut link = TimedLink::builder("fq_codel(variant=linux)", Rate(10_000_000), Span::ms(25))
///     .seed(1)
///     .build()?;
/// let body = String::from("any type");
/// let packet = Packet { len: 1250, hash: 7, ecn: Ecn::Ect0, ..Packet::default() };
/// link.push(Time::ZERO, packet, body)?;
/// let due = link.next_poll().unwrap();
/// let delivery = link.poll(due)?.unwrap();
/// assert_eq!(delivery.at, Time::ZERO + Span::ms(26)); // 1 ms to send, 25 ms to travel
/// assert_eq!(delivery.body, "any type");
/// # Ok::<(), sojourn_aqm::Error>(())
/// ```
///
/// Bodies of dropped packets are freed, unless [`TimedLinkBuilder::keep_undelivered`] is set. A
/// copy (`Clone`) continues in the same way.
#[derive(Clone, Snapshot)]
pub struct TimedLink<T> {
    /// `None` if the program built the discipline. First, so that a snapshot begins with it.
    recipe: Option<Recipe>,
    link: Link,
    bodies: Slab<T>,
    wire: Option<Wire>,
    #[snapshot(skip)]
    copy: Option<fn(&T) -> T>,
    /// Dropped and lost packets that the owner has not taken; `None` if they are freed.
    undelivered: Option<VecDeque<Undelivered<T>>>,
}

impl<T> fmt::Debug for TimedLink<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimedLink")
            .field("link", &self.link)
            .field("bodies", &self.bodies.len())
            .field("wire", &self.wire)
            .finish_non_exhaustive()
    }
}

impl<T> TimedLink<T> {
    /// Returns a builder of a link with a discipline in [text form](crate::build_text), a rate, and
    /// a one-way propagation delay.
    pub fn builder(qdisc: &str, rate: crate::units::Rate, delay: Span) -> TimedLinkBuilder<T> {
        TimedLinkBuilder::new(qdisc, LinkSpec::new(rate, delay))
    }

    /// Enqueues `packet` with `body`, which arrives at `now`. The link sets `arrived` and `body` of
    /// the descriptor.
    ///
    /// # Errors
    /// An earlier time than in a previous call, a packet of [`LEN_MAX`](crate::LEN_MAX) bytes or
    /// more, or more than 2^32 - 1 packets on the link. The body is then freed.
    pub fn push(&mut self, now: Time, packet: Packet, body: T) -> Result<()> {
        self.link.check_time(now)?;
        let Some(place) = self.bodies.insert(body) else {
            return Err(Error::new("the link has more than 4294967294 packets"));
        };
        let pushed = self.link.try_push(now, Packet { body: place, ..packet });
        if pushed.is_err() {
            self.bodies.remove(place);
        }
        self.settle();
        pushed
    }

    /// Returns the next packet that has reached the far end by `now`; `None` if there is none. Call
    /// it again until it returns `None`.
    ///
    /// # Errors
    /// An earlier time than in a previous call.
    pub fn poll(&mut self, now: Time) -> Result<Option<Delivery<T>>> {
        self.link.try_advance(now)?;
        self.settle();
        let arrival = match &mut self.wire {
            Some(wire) => wire.poll(now).map(|a| (a.at, a.packet, a.wrong_bit)),
            None => {
                let due = self.link.first_in_flight().is_some_and(|(at, _)| *at <= now);
                let first = if due { self.link.pop_in_flight() } else { None };
                first.map(|(at, packet)| (at, packet, None))
            }
        };
        Ok(arrival.map(|(at, packet, wrong_bit)| {
            let body = self.bodies.remove(packet.body);
            Delivery { at, packet, body, wrong_bit }
        }))
    }

    /// Next time to call [`TimedLink::poll`]; `None` while no packet is on the link. May be early:
    /// `poll` then returns `None`; call this function again. Never before the time of the last
    /// call, even if a packet was due earlier.
    pub fn next_poll(&self) -> Option<Time> {
        let next = match &self.wire {
            None => self.link.next_poll(),
            Some(wire) => {
                // A transmission starts by then; the wire may deliver its packet early.
                let delay = self.link.spec().delay;
                let start = self.link.next_event().map(|at| Time(at.0.saturating_sub(delay.0)));
                start.into_iter().chain(wire.next_event()).min()
            }
        };
        next.map(|at| at.max(self.link.now()))
    }

    /// Returns the next dropped or lost packet, if [`TimedLinkBuilder::keep_undelivered`] is set;
    /// `None` if there is none. Call it after [`TimedLink::push`] and [`TimedLink::poll`], until it
    /// returns `None`: packets are kept until then.
    pub fn next_undelivered(&mut self) -> Option<Undelivered<T>> {
        self.undelivered.as_mut()?.pop_front()
    }

    /// States the header fields of a flow, for disciplines with filters that read them: see
    /// [`Link::describe_flow`].
    pub fn describe_flow(&mut self, flow: u32, header: &FlowHeader) {
        self.link.describe_flow(flow, header);
    }

    /// Sets rate and delay at `now`, as [`Link::change`]. A rate of 0 stops the link.
    ///
    /// # Errors
    /// An earlier time than in a previous call.
    pub fn change(&mut self, now: Time, spec: LinkSpec) -> Result<()> {
        self.link.check_time(now)?;
        // Packets that left before have the old delay on the wire.
        self.link.advance(Time(now.0.saturating_sub(1)).max(self.link.now()));
        self.settle();
        self.link.try_change(now, spec)?;
        self.settle();
        Ok(())
    }

    /// Sets the parameters of the discipline at `now` from the text form `qdisc`. Packets
    /// and state are kept.
    ///
    /// # Errors
    /// As [`build_text`]; an earlier time than in a previous call; a discipline of another type, or
    /// one that cannot change these parameters while it runs.
    pub fn reconfigure(&mut self, now: Time, qdisc: &str) -> Result<()> {
        let fresh = build_text(qdisc, self.link.spec().rate)?.qdisc;
        let changed = self.link.try_reconfigure(now, fresh)?;
        self.settle();
        if changed {
            return Ok(());
        }
        Err(Error::new("the discipline cannot take these parameters while it runs").at("qdisc"))
    }

    /// Starts the measured interval at `now`: resets all counters.
    ///
    /// # Errors
    /// An earlier time than in a previous call.
    pub fn reset_stats(&mut self, now: Time) -> Result<()> {
        self.link.try_reset_stats(now)?;
        self.settle();
        if let Some(wire) = &mut self.wire {
            wire.reset_stats(now);
        }
        Ok(())
    }

    /// Counters of the queue up to the time of the last call.
    pub fn stats(&mut self) -> &LinkStats {
        self.link.stats()
    }

    /// Share of the measured interval in which the link was sending, as [`Link::utilisation`].
    pub fn utilisation(&mut self) -> Option<f64> {
        self.link.utilisation()
    }

    /// Counters of the impairments; `None` without impairments.
    pub fn wire_stats(&self) -> Option<&WireStats> {
        self.wire.as_ref().map(Wire::stats)
    }

    /// The link without bodies and impairments: time of the last call, rate, delay, discipline.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// Number of bodies on the link: queued, and on the way to the far end.
    pub fn packets(&self) -> usize {
        self.bodies.len()
    }

    /// Bodies on the link, and of packets that [`TimedLink::next_undelivered`] has not returned, in
    /// no particular order.
    pub fn bodies(&self) -> impl Iterator<Item = &T> {
        let undelivered = self.undelivered.iter().flatten().map(|packet| &packet.body);
        self.bodies.values().chain(undelivered)
    }

    /// Bodies that [`TimedLink::bodies`] returns, to be changed.
    pub fn bodies_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let undelivered = self.undelivered.iter_mut().flatten().map(|packet| &mut packet.body);
        self.bodies.values_mut().chain(undelivered)
    }

    /// Text form from which the discipline was built; `None` if the program built it.
    pub fn text(&self) -> Option<&str> {
        self.recipe.as_ref().map(|recipe| recipe.text.as_str())
    }

    /// Calls `visit` with the internal variables of the discipline at the time of the last call.
    pub fn inspect(&mut self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.link.inspect(visit);
    }

    /// Frees or keeps dropped packets, and sends packets that have left the queue to the wire.
    fn settle(&mut self) {
        let TimedLink { link, bodies, wire, copy, undelivered, .. } = self;
        if link.has_dropped() {
            for dropped in link.take_dropped() {
                let body = bodies.remove(dropped.packet.body);
                if let Some(list) = undelivered {
                    let (at, packet, reason) = (dropped.at, dropped.packet, Some(dropped.reason));
                    list.push_back(Undelivered { at, packet, body, reason });
                }
            }
        }
        let Some(wire) = wire else { return };
        let delay = link.spec().delay;
        while let Some((due, packet)) = link.pop_in_flight() {
            let at = Time(due.0.saturating_sub(delay.0));
            let copy = &mut |place| bodies.insert(copy.as_ref()?(bodies.get(place)));
            if wire.send(at, due, packet, copy) == Fate::Lost {
                let body = bodies.remove(packet.body);
                if let Some(list) = undelivered {
                    list.push_back(Undelivered { at, packet, body, reason: None });
                }
            }
        }
    }
}
