//! multiq: round robin, packet by packet, over the transmit queues of a device.
//!
//! **Source** Linux sch_multiq.
//!
//! **Decides** on departure: the next queue.
//!
//! **Measures** nothing.
//!
//! **Algorithm** The queues have numbers, and each has a buffer or a discipline of its own. After a
//! packet of queue i, the next queue with packets from i + 1 on sends one, and after the last queue
//! the first. So a queue of large packets has a larger share of the link.
//!
//! The hash of a flow chooses its queue, as in Linux if nothing else is set; `filters` choose it as
//! the action `skbedit queue_mapping` does in Linux.
//!
//! **Departures** (1) Linux has as many queues as the device, and may choose them by the processor
//! that sends. (2) It passes over a queue that the device has stopped; here the link takes packets
//! of all queues.
//!
//! **Cost** 568 bytes of state for four queues; O(1) per packet for up to 64 queues, and O(n) for
//! n.

use crate::build::Env;
use crate::cast;
use crate::entry::QdiscEntry;
use crate::error::Result;
use crate::params::{Checked, Nothing};
use crate::sched::classful::Classful;
use crate::sched::leaf_set::{Change, LeafSet};
use crate::sched::scheduler::{DropPosition, Item, Scheduler};
use crate::snapshot::Snapshot;
use crate::units::Time;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<Classful<RoundRobin<false>>>(
    "multiq",
    "round robin over the transmit queues of a device, packet by packet",
)
.preset(&[("flows", "4"), ("by", "hash")])
.decides("on departure: the next queue")
.source("Linux sch_multiq");

/// The round-robin scheduler. `MQ` is true in `mq`, which is a type of its own.
#[derive(Clone, Debug, Snapshot)]
pub struct RoundRobin<const MQ: bool> {
    /// Queues with packets.
    busy: LeafSet,
    /// Queue that sent last.
    last: usize,
}

impl<const MQ: bool> RoundRobin<MQ> {
    /// Notes whether queue `i` has packets.
    fn note(&mut self, i: u32, busy: bool) {
        let i = i as usize;
        match (self.busy.next(i) == Some(i), busy) {
            (false, true) => self.busy.change(i, Change::Add),
            (true, false) => self.busy.change(i, Change::Remove),
            _ => {}
        }
    }
}

impl<const MQ: bool> Scheduler for RoundRobin<MQ> {
    type Params = Nothing;
    const PEEKS: bool = true;

    fn new(_: Checked<'_, Nothing>, _env: &Env, weights: &[f64]) -> Result<Self> {
        Ok(RoundRobin { busy: LeafSet::new(0..=weights.len()), last: 0 })
    }

    fn on_enqueued(&mut self, _now: Time, i: u32, _packet: Item, _first: bool) {
        self.note(i, true);
    }

    fn select(&mut self, _now: Time, _head: impl Fn(u32) -> Option<u32>) -> Option<u32> {
        self.busy.next(self.last + 1).map(cast::index32)
    }

    fn on_sent(&mut self, _now: Time, i: u32, _len: u32, next: Option<Item>) {
        self.last = i as usize;
        self.note(i, next.is_some());
    }

    fn on_dropped(&mut self, i: u32, _loss: DropPosition, next: Option<Item>) {
        self.note(i, next.is_some());
    }

    fn nearest(&self, tied: &dyn Fn(u32) -> bool) -> Option<u32> {
        let n = self.busy.len() as usize;
        let next = |i: &usize| self.busy.next(i + 1);
        let turn = core::iter::successors(self.busy.next(self.last + 1), next).take(n);
        turn.map(cast::index32).find(|i| tied(*i))
    }

    fn state_bytes(&self) -> usize {
        self.busy.state_bytes()
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;
    use std::prelude::v1::*;

    #[test]
    fn queues_send_a_packet_each_in_turn() {
        let mut q = Bench::new("multiq", &[("by", "flow")]);
        for (flow, body) in [(0, 1), (0, 2), (2, 3), (2, 4), (2, 5), (3, 6)] {
            assert_eq!(q.put_flow(flow, body, if flow == 0 { 1500 } else { 60 }), [0; 0]);
        }
        assert_eq!(q.get().0, Some(3), "the turn starts after the first queue, as in Linux");
        q.put_flow(1, 7, 1000);
        assert_eq!(q.drain(), [6, 1, 7, 4, 2, 5]);
        [(2, 8), (0, 9)].into_iter().for_each(|(flow, body)| drop(q.put_flow(flow, body, 100)));
        assert_eq!(q.drain(), [9, 8], "after queue 2 comes 3, then 0");
    }

    #[test]
    fn of_equally_long_queues_the_next_one_in_turn_drops() {
        let mut q = Bench::new("multiq", &[("by", "flow"), ("limit", "3p")]);
        [1, 2, 3].into_iter().for_each(|i| drop(q.put_flow(i, i, 1000)));
        assert_eq!(q.put_flow(0, 9, 900), [1]);
        assert_eq!(q.get().0, Some(2));
        q.put_flow(2, 5, 1000);
        assert_eq!(q.put_flow(0, 10, 50), [3]);
        assert_eq!(q.drain(), [9, 5, 10]);
    }
}
