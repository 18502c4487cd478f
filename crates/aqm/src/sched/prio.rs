//! Strict priority: always serves the lowest-numbered queue with packets.
//!
//! **Source** Folklore; Linux's `prio` and `pfifo_fast` have three bands of it.
//!
//! **Decides** on departure: the next queue.
//!
//! **Measures** nothing.
//!
//! **Algorithm** After each packet the first busy queue is served. Later queues can starve. With
//! `full = "lowest"` a full shared buffer drops from the last busy queue, so that a queue cannot
//! block those before it.
//!
//! **Departures** None.
//!
//! **Cost** 504 bytes of state for three queues; O(log n) per packet; an overflow with `full =
//! "lowest"` examines every queue.

use crate::error::Result;
use crate::params::{Checked, Nothing};
use crate::qdisc::Env;
use crate::sched::scheduler::{DropPosition, Item, Scheduler};
use crate::sched::tree::{OUT, Tree};
use crate::units::Time;

/// The strict-priority scheduler.
#[derive(Clone, Debug)]
pub struct Priority {
    busy: Tree,
}

impl Priority {
    /// Creates a scheduler for `n` queues.
    pub(super) fn of(n: usize) -> Priority {
        Priority { busy: Tree::new(n) }
    }

    fn note(&mut self, i: u32, next: Option<Item>) {
        self.busy.set(i, if next.is_some() { u64::from(i) } else { OUT });
    }
}

impl Scheduler for Priority {
    type Params = Nothing;

    fn new(_: Checked<'_, Nothing>, _env: &Env, weights: &[f64]) -> Result<Self> {
        Ok(Priority::of(weights.len()))
    }

    fn on_enqueued(&mut self, _now: Time, i: u32, packet: Item, _first: bool) {
        self.note(i, Some(packet));
    }

    fn select(&mut self, _now: Time, _head: impl Fn(u32) -> Option<u32>) -> Option<u32> {
        self.busy.first().map(|(i, _)| i)
    }

    fn on_sent(&mut self, _now: Time, i: u32, _len: u32, next: Option<Item>) {
        self.note(i, next);
    }

    fn on_dropped(&mut self, i: u32, _loss: DropPosition, next: Option<Item>) {
        self.note(i, next);
    }

    fn state(&self) -> usize {
        self.busy.state()
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;
    use std::prelude::v1::*;

    #[test]
    fn the_first_busy_queue_goes() {
        let mut q = Bench::new("prio", &[("by", "flow")]);
        for (flow, body) in [(2, 1), (1, 2), (0, 3), (2, 4), (0, 5)] {
            q.put_flow(flow, body, 1000);
        }
        assert_eq!(q.get().0, Some(3));
        q.put_flow(1, 6, 100);
        assert_eq!(q.drain(), [5, 2, 6, 1, 4]);
    }

    #[test]
    fn who_comes_first_pushes_others_out() {
        let settings = [("by", "flow"), ("limit", "2p"), ("full", "lowest"), ("drop", "tail")];
        let mut q = Bench::new("prio", &settings);
        q.put_flow(1, 1, 1000);
        q.put_flow(2, 2, 1000);
        assert_eq!(q.put_flow(0, 3, 1000), [2]);
        assert_eq!(q.put_flow(2, 4, 1000), [4], "it is the last itself");
        assert_eq!(q.put_flow(1, 5, 1000), [5], "its own queue would pay");
        assert_eq!(q.drain(), [3, 1]);
    }
}
