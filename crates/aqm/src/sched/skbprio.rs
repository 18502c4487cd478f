//! skbprio: strict priority in one buffer; a full buffer drops from the lowest priority.
//!
//! **Source** Linux sch_skbprio; tc-skbprio(8).
//!
//! **Decides** on departure: the next priority; on arrival if the buffer is full.
//!
//! **Measures** nothing.
//!
//! **Algorithm** The priority of a packet is its class, at most 63, and each priority has a FIFO
//! queue. The highest busy priority is served. A packet that arrives at a full buffer is dropped if
//! no queued packet has a lower priority; otherwise the packet at the tail of the lowest busy
//! priority is dropped. So low priorities use the whole buffer until a higher one needs it.
//!
//! **Departures** (1) Linux takes the priority from the socket or from a filter, such as
//! `action skbedit inheritdsfield`, which sets it to the DSCP; otherwise it follows from the DSCP
//! as in `prio`. (2) `limit` may be in bytes. Several packets can then be dropped for one.
//!
//! **Cost** 1632 bytes of state; O(1) per packet.

use crate::aqm::fits;
use crate::build::{Build, Env};
use crate::context::{Context, DropReason};
use crate::entry::QdiscEntry;
use crate::error::Result;
use crate::fifo::{Fifo, Pool};
use crate::packet::Packet;
use crate::params::Checked;
use crate::qdisc::{Backlog, Peek, Qdisc};
use crate::snapshot::Snapshot;
use crate::units::Size;
use alloc::boxed::Box;
use core::any::Any;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<SkbPrio>(
    "skbprio",
    "strict priority by class in one buffer, which drops from the lowest priority",
)
.decides("on departure: the next priority; on overflow: drops from the lowest priority")
.source("Linux sch_skbprio");

/// Number of priorities.
const PRIORITIES: usize = 64;

crate::params! {
    /// Parameters of [`SkbPrio`].
    pub struct SkbPrioParams {
        /// Size of the buffer of all priorities together.
        limit: Size = Size::Packets(64),
            [Size::Packets(1) => Size::Packets(1_000_000_000_000)], "", ["buffer"];
    }
}

/// The skbprio discipline.
#[derive(Clone, Debug, Snapshot)]
pub struct SkbPrio {
    queues: Box<[Fifo; PRIORITIES]>,
    /// Bit of each priority with packets.
    busy: u64,
    limit: Size,
    pool: Pool,
    backlog: Backlog,
}

/// Priority of `packet`.
fn priority(packet: &Packet) -> usize {
    usize::from(packet.class).min(PRIORITIES - 1)
}

impl Build for SkbPrio {
    type Params = SkbPrioParams;

    fn new(params: Checked<'_, SkbPrioParams>, _env: &Env) -> Result<Self> {
        Ok(SkbPrio {
            queues: Box::new([Fifo::default(); PRIORITIES]),
            busy: 0,
            limit: params.limit,
            pool: Pool::default(),
            backlog: Backlog::default(),
        })
    }
}

impl SkbPrio {
    /// Lowest priority with packets; none if the queue is empty.
    fn lowest(&self) -> Option<usize> {
        (self.busy != 0).then(|| self.busy.trailing_zeros() as usize)
    }

    /// Highest priority with packets.
    fn highest(&self) -> Option<usize> {
        (self.busy != 0).then(|| self.busy.ilog2() as usize)
    }

    /// True if `packet` fits once all packets of lower priorities are dropped.
    fn can_make_room(&self, packet: &Packet) -> bool {
        let lower = &self.queues[..priority(packet)];
        let packets: u32 = lower.iter().map(Fifo::packets).sum();
        let bytes: u64 = lower.iter().map(|queue| queue.bytes().0).sum();
        fits(self.limit, self.backlog.packets - packets, self.backlog.bytes - bytes, packet)
    }

    /// Accounts for a packet that left priority `i`.
    fn left(&mut self, i: usize, packet: &Packet) {
        self.backlog.packets -= 1;
        self.backlog.bytes -= u64::from(packet.len);
        if self.queues[i].is_empty() {
            self.busy &= !(1 << i);
        }
    }
}

impl Qdisc for SkbPrio {
    fn enqueue(&mut self, context: &mut Context<'_>, packet: Packet) {
        context.check_arrival(&packet);
        let has_room = |q: &SkbPrio| fits(q.limit, q.backlog.packets, q.backlog.bytes, &packet);
        if !has_room(self) && !self.can_make_room(&packet) {
            return context.drop(packet, DropReason::Full);
        }
        while !has_room(self)
            && let Some(i) = self.lowest()
            && let Some(last) = self.queues[i].pop_back(&mut self.pool)
        {
            self.left(i, &last);
            context.drop(last, DropReason::Full);
        }
        let i = priority(&packet);
        self.queues[i].push(&mut self.pool, packet);
        self.busy |= 1 << i;
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(packet.len);
    }

    fn dequeue(&mut self, _context: &mut Context<'_>) -> Option<Packet> {
        let i = self.highest()?;
        let packet = self.queues[i].pop(&mut self.pool)?;
        self.left(i, &packet);
        Some(packet)
    }

    fn peek(&mut self, _context: &mut Context<'_>) -> Peek {
        let head = self.highest().and_then(|i| self.queues[i].front(&self.pool));
        Peek::of(head)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        // Highest priority with packets; 0 if there is none.
        visit("highest_prio", self.highest().unwrap_or(0) as f64);
        // Lowest priority with packets; 63 if there is none.
        visit("lowest_prio", self.lowest().unwrap_or(PRIORITIES - 1) as f64);
    }

    fn state_bytes(&self) -> usize {
        size_of_val(self) + size_of_val(&*self.queues)
    }

    fn reconfigure(&mut self, fresh: Box<dyn Qdisc + Send>) -> bool {
        // As in Linux, packets beyond a smaller limit stay.
        let Ok(fresh) = (fresh as Box<dyn Any>).downcast::<Self>() else { return false };
        self.limit = fresh.limit;
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;
    use std::prelude::v1::*;

    #[test]
    fn the_highest_class_goes_first_and_the_lowest_makes_room() {
        let mut q = Bench::new("skbprio", &[("limit", "3p")]);
        for (class, body) in [(5, 1), (2, 2), (2, 3)] {
            assert_eq!(q.put_class(class, body, 1000), [0; 0]);
        }
        assert_eq!(q.put_class(2, 4, 1000), [4], "no packet has a lower priority");
        assert_eq!(q.put_class(5, 5, 1000), [3], "the tail of the lowest priority");
        assert_eq!(q.put_class(9, 6, 1000), [2]);
        assert_eq!((q.gauge("highest_prio"), q.gauge("lowest_prio")), (9.0, 5.0));
        assert_eq!(q.put_class(5, 7, 1000), [7]);
        assert_eq!(q.drain(), [6, 1, 5]);
        assert_eq!((q.gauge("highest_prio"), q.gauge("lowest_prio")), (0.0, 63.0));
    }

    #[test]
    fn classes_above_63_share_a_priority() {
        let mut q = Bench::new("skbprio", &[]);
        for (class, body) in [(63, 1), (62, 2), (64, 3), (65_535, 4)] {
            q.put_class(class, body, 100);
        }
        assert_eq!(q.drain(), [1, 3, 4, 2]);
    }

    #[test]
    fn a_limit_in_bytes_drops_as_many_as_are_needed_or_none() {
        let mut q = Bench::new("skbprio", &[("limit", "1000B")]);
        for (class, body, len) in [(3, 1, 500), (1, 2, 100), (1, 3, 100), (2, 4, 300)] {
            assert_eq!(q.put_class(class, body, len), [0; 0]);
        }
        assert_eq!(q.put_class(3, 5, 501), [5], "lower priorities have 500 bytes");
        assert_eq!(q.put_class(3, 6, 250), [3, 2, 4]);
        assert_eq!((q.backlog(), q.bytes()), (2, 750));
        assert_eq!(q.drain(), [1, 6]);
    }

    #[test]
    fn a_limit_changes_while_it_runs() {
        let mut q = Bench::new("skbprio", &[("limit", "1p")]);
        q.put_class(1, 1, 100);
        assert!(q.reconfigure("skbprio", &[("limit", "2p")]));
        assert_eq!(q.put_class(1, 2, 100), [0; 0]);
        assert!(q.reconfigure("skbprio", &[("limit", "1p")]));
        assert_eq!(q.put_class(1, 3, 100), [3]);
        assert_eq!(q.drain(), [1, 2]);
    }
}
