//! The wire behind a link: jitter, reordering, loss, duplication, corruption and slots, as netem of
//! Linux has them. Time is an argument; a wire has no clock.
//!
//! **Source**: Linux, `net/sched/sch_netem.c`, and tc-netem(8).
//!
//! A packet enters the wire when its transmission ends. It is then duplicated, lost or corrupted,
//! refused if too many packets are on the wire, and delayed, in this order. The copy of a
//! duplicated packet has its own random losses and delays; if the packet is lost and duplicated,
//! one of both arrives.
//!
//! ```
//! use sojourn_aqm::wire::{Fate, Impairments, Jitter, Wire};
//! use sojourn_aqm::{Packet, Span, Time};
//! # use rand_core::SeedableRng;
//!
//! let mut impairments = Impairments::default();
//! impairments.jitter = Some(Jitter::new(Span::ms(5)));
//! let stream = |name: &str| Box::new(rand_pcg::Pcg64Mcg::seed_from_u64(name.len() as u64)) as _;
//! let mut wire = Wire::new(&impairments, stream);
//!
//! // Sent at 1 ms, and due at 21 ms without jitter.
//! let (sent, due) = (Time(1_000_000), Time(21_000_000));
//! let packet = Packet { len: 1500, ..Packet::default() };
//! assert_eq!(wire.send(sent, due, packet, &mut |_| None), Fate::Sent);
//! let at = wire.next_event().unwrap();
//! assert!((16_000_000..26_000_000).contains(&at.0));
//! assert_eq!(wire.poll(at).unwrap().packet.len, 1500);
//! ```

mod chance;
mod change;
mod check;
mod jitter;
mod loss;
mod outages;
mod slots;
#[cfg(test)]
mod tests;

pub use chance::{Chance, Stream};
pub use jitter::{Distribution, Jitter};
pub use loss::{LossModel, LossProcess};
pub use outages::{IntervalLength, Outages};
pub use slots::{SlotDelay, Slots};

use crate::packet::{Ecn, Packet};
use crate::random::Random;
use crate::snapshot::Snapshot;
use crate::units::{Span, Time};
use alloc::collections::{BinaryHeap, VecDeque};
use chance::Events;
use core::cmp::Reverse;
use core::fmt;
use jitter::JitterProcess;
use outages::OutageProcess;
use slots::SlotProcess;

/// Packets that are sent without the delay of the wire, and so overtake others.
#[derive(Clone, Copy, Debug, PartialEq, Snapshot)]
#[non_exhaustive]
pub struct Reorder {
    /// Probability, and correlation with the previous decision.
    pub chance: Chance,
    /// Each `gap`-th packet is a candidate; after it was delayed, the next ones are, until one is
    /// sent early.
    pub gap: u64,
}

impl Reorder {
    /// Returns reordering of every packet with this probability.
    pub const fn new(chance: Chance) -> Reorder {
        Reorder { chance, gap: 1 }
    }
}

/// Impairments of a wire; the default is none.
#[derive(Clone, Debug, Default, PartialEq, Snapshot)]
#[non_exhaustive]
pub struct Impairments {
    /// Random part of the delay.
    pub jitter: Option<Jitter>,
    /// Packets that are sent early.
    pub reorder: Option<Reorder>,
    /// Random losses.
    pub loss: LossModel,
    /// True if a packet that would be lost at random is marked with CE instead, if it is
    /// ECN-capable.
    pub loss_ecn: bool,
    /// Times in which every packet is lost.
    pub outages: Option<Outages>,
    /// Packets that arrive twice.
    pub duplicate: Chance,
    /// Packets that arrive with a wrong bit.
    pub corrupt: Chance,
    /// Times at which packets can arrive.
    pub slots: Option<Slots>,
    /// Number of packets on the wire from which on further packets are lost.
    pub limit: Option<u64>,
}

impl Impairments {
    /// True if there is nothing but random losses: these can be drawn when a transmission starts,
    /// by a [`LossProcess`].
    pub fn only_lose(&self) -> bool {
        let rest = Impairments { loss: LossModel::default(), ..self.clone() };
        !self.loss_ecn && rest == Impairments::default()
    }
}

/// Result of sending a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
pub enum Fate {
    /// It will arrive.
    Sent,
    /// It is lost.
    Lost,
}

/// Packet that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Snapshot)]
#[non_exhaustive]
pub struct Arrival {
    /// Time of arrival.
    pub at: Time,
    /// Packet.
    pub packet: Packet,
    /// Number of the bit that is wrong.
    pub wrong_bit: Option<u32>,
    /// True if it is the copy of another packet.
    pub is_copy: bool,
    /// Number of the packet on the wire.
    number: u64,
}

/// Counters of a wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Snapshot)]
#[non_exhaustive]
pub struct WireStats {
    /// Packets lost: at random, in outages, and above the limit.
    pub lost: u64,
    /// Packets marked in place of a loss.
    pub marked: u64,
    /// Copies that arrived or will arrive.
    pub duplicated: u64,
    /// Packets with a wrong bit.
    pub corrupted: u64,
    /// Packets that arrived after a packet that was sent later (RFC 4737 section 3.3).
    pub reordered: u64,
}

/// Entry of the heap: times first.
type InFlight = Reverse<(Time, u64)>;

/// A wire in operation. A copy (`Clone`) continues in the same way.
#[derive(Clone, Snapshot)]
pub struct Wire {
    jitter: Option<JitterProcess>,
    reorder: Option<(Reorder, Events<Stream>)>,
    /// Packets since the last one that was sent early.
    delayed: u64,
    loss: LossProcess<Stream>,
    loss_ecn: bool,
    outages: Option<OutageProcess>,
    duplicate: Events<Stream>,
    corrupt: Events<Stream>,
    slots: Option<SlotProcess>,
    limit: u64,
    /// Packets on the wire by due time, then by number, and the packets, of which the first has
    /// the number `first`; `None` has left.
    due: BinaryHeap<InFlight>,
    packets: VecDeque<Option<Arrival>>,
    first: u64,
    /// Packets that have left the wire.
    arrived: VecDeque<Arrival>,
    last_due: Time,
    /// One more than the greatest number of a packet that has left.
    latest: u64,
    /// Start of the measured interval.
    since: Time,
    stats: WireStats,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire")
            .field("in_flight", &self.due.len())
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

impl Wire {
    /// Creates an empty wire. `stream` returns the random stream of the impairment with this name:
    /// jitter, reorder, loss, outages, duplicate, corrupt or slot.
    pub fn new(impairments: &Impairments, mut stream: impl FnMut(&str) -> Stream) -> Wire {
        let Impairments { jitter, reorder, loss, loss_ecn, outages, .. } = impairments;
        let Impairments { duplicate, corrupt, slots, limit, .. } = impairments;
        Wire {
            jitter: jitter.as_ref().map(|j| JitterProcess::new(j, stream("jitter"))),
            reorder: reorder.map(|r| (r, Events::new(r.chance, stream("reorder")))),
            delayed: 0,
            loss: LossProcess::new(*loss, stream("loss")),
            loss_ecn: *loss_ecn,
            outages: outages.as_ref().map(|o| OutageProcess::new(o, stream("outages"))),
            duplicate: Events::new(*duplicate, stream("duplicate")),
            corrupt: Events::new(*corrupt, stream("corrupt")),
            slots: slots.as_ref().map(|s| SlotProcess::new(s, stream("slot"))),
            limit: limit.unwrap_or(u64::MAX),
            due: BinaryHeap::new(),
            packets: VecDeque::new(),
            first: 0,
            arrived: VecDeque::new(),
            last_due: Time::ZERO,
            latest: 0,
            since: Time::ZERO,
            stats: WireStats::default(),
        }
    }

    /// Sends `packet`, whose transmission ends at `now`, and which arrives at `due` without
    /// impairments. `copy` returns the body of a copy of the packet with this body; a packet for
    /// which it returns `None` is not duplicated. The owner frees the body of a lost packet.
    ///
    /// `now` and `due` may be later than the time of other calls, but not earlier than in the
    /// previous call of this function.
    pub fn send(
        &mut self,
        now: Time,
        due: Time,
        mut packet: Packet,
        copy: &mut dyn FnMut(u32) -> Option<u32>,
    ) -> Fate {
        self.advance(now);
        let counts = packet.arrived >= self.since;
        let duplicated = self.duplicate.next();
        let lost = self.loses(now, &mut packet);
        if duplicated && !lost {
            let mut second = packet;
            let full = self.due.len() as u64 >= self.limit;
            if !full
                && !self.loses(now, &mut second)
                && let Some(body) = copy(packet.body)
            {
                self.stats.duplicated += u64::from(counts);
                self.enter(now, due, Packet { body, ..second }, true);
            }
        }
        if (lost && !duplicated) || self.due.len() as u64 >= self.limit {
            self.stats.lost += u64::from(counts);
            return Fate::Lost;
        }
        self.enter(now, due, packet, false);
        Fate::Sent
    }

    /// True if `packet` is lost at `now`; or marks it.
    fn loses(&mut self, now: Time, packet: &mut Packet) -> bool {
        let down = self.outages.as_mut().is_some_and(|outages| outages.is_down(now));
        let lost = self.loss.next_is_lost();
        if lost && !down && self.loss_ecn && packet.ecn != Ecn::NotEct {
            self.stats.marked += u64::from(packet.arrived >= self.since);
            packet.ecn = Ecn::Ce;
            return false;
        }
        lost || down
    }

    /// Puts `packet` on the wire.
    fn enter(&mut self, now: Time, due: Time, packet: Packet, is_copy: bool) {
        let counts = u64::from(packet.arrived >= self.since);
        let wrong_bit = self.corrupt.next().then(|| {
            let bits = packet.len.saturating_mul(8).max(1);
            self.corrupt.rng().below(bits)
        });
        self.stats.corrupted += if wrong_bit.is_some() { counts } else { 0 };
        let early = match &mut self.reorder {
            Some((Reorder { gap, .. }, events)) if self.delayed + 1 >= *gap => events.next(),
            _ => false,
        };
        let at = if early {
            self.delayed = 0;
            now
        } else {
            self.delayed += 1;
            self.delay(now, due)
        };
        let number = self.first + self.packets.len() as u64;
        self.due.push(Reverse((at, number)));
        self.packets.push_back(Some(Arrival { at, packet, wrong_bit, is_copy, number }));
    }

    /// Time of arrival of a packet that enters now and is not sent early.
    fn delay(&mut self, now: Time, due: Time) -> Time {
        let Some(process) = &mut self.jitter else { return due };
        let at = Time(due.0.saturating_add_signed(process.next())).max(now);
        if process.jitter.reorders {
            return at;
        }
        self.last_due = self.last_due.max(at);
        self.last_due
    }

    /// Lets the packets leave that are due by `now`.
    pub fn advance(&mut self, now: Time) {
        while let Some(Reverse((due, number))) = self.due.peek().copied() {
            if due > now {
                return;
            }
            let at = self.slots.as_mut().map_or(due, |slots| slots.leaves(due));
            if at > now {
                return;
            }
            self.due.pop();
            let place = crate::cast::index(number - self.first);
            let Some(mut arrival) = self.packets[place].take() else { continue };
            while let Some(None) = self.packets.front() {
                self.packets.pop_front();
                self.first += 1;
            }
            arrival.at = at;
            if let Some(slots) = &mut self.slots {
                slots.on_sent(at, arrival.packet.len);
            }
            let late = number < self.latest && arrival.packet.arrived >= self.since;
            self.stats.reordered += u64::from(late);
            self.latest = self.latest.max(number + 1);
            self.arrived.push_back(arrival);
        }
    }

    /// Returns the next packet that has arrived by `now`; `None` if there is none.
    pub fn poll(&mut self, now: Time) -> Option<Arrival> {
        self.advance(now);
        self.arrived.front().filter(|arrival| arrival.at <= now)?;
        self.arrived.pop_front()
    }

    /// Next time to call [`Wire::poll`]; `None` while no packet is on the wire. May be early with
    /// slots.
    pub fn next_event(&self) -> Option<Time> {
        if let Some(arrival) = self.arrived.front() {
            return Some(arrival.at);
        }
        let Reverse((due, _)) = *self.due.peek()?;
        Some(self.slots.as_ref().map_or(due, |slots| slots.start().max(due)))
    }

    /// Number of packets that have not been polled.
    pub fn packets(&self) -> usize {
        self.due.len() + self.arrived.len()
    }

    /// Bodies of the packets that have not been polled.
    pub fn bodies(&mut self) -> impl Iterator<Item = &mut u32> {
        let on_wire = self.packets.iter_mut().flatten();
        self.arrived.iter_mut().chain(on_wire).map(|arrival| &mut arrival.packet.body)
    }

    /// Starts the measured interval at `now`: resets the counters, which count packets that
    /// arrived at the link from then on.
    pub fn reset_stats(&mut self, now: Time) {
        self.since = now;
        self.stats = WireStats::default();
    }

    /// Counters.
    pub fn stats(&self) -> &WireStats {
        &self.stats
    }

    /// Shortest time that a packet spends on the wire if it takes `delay` without impairments.
    pub fn least_delay(&self, delay: Span) -> Span {
        if self.reorder.is_some() {
            return Span::ZERO;
        }
        let Some(process) = &self.jitter else { return delay };
        let least = (-process.jitter.distribution.least()).max(0).unsigned_abs();
        let size = u128::from(process.jitter.size.0) * u128::from(least) / 8192;
        Span(delay.0.saturating_sub(crate::cast::saturate(size + 1)))
    }
}
