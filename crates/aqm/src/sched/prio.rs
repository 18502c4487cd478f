//! Strict priority: always serves the first band with packets; the DSCP chooses the band.
//!
//! **Source** Linux sch_prio; `pfifo_fast` has the same bands.
//!
//! **Decides** on departure: the next queue.
//!
//! **Measures** nothing.
//!
//! **Algorithm** After each packet the first busy band is served. Later bands can starve. With
//! `full = "lowest"` a full shared buffer drops from the last busy band, so that a band cannot
//! block those before it.
//!
//! The band of a packet is `priomap[p]`. Its priority p follows from the last three bits of its
//! DSCP, the `class` or `dscp` of the flow, as in Linux: 0 and 1 are best effort (p = 0), 2 and 3
//! bulk (2), 4 and 5 interactive (6), 6 and 7 interactive bulk (4). With the default of `priomap`,
//! which is Linux's, AF12 and AF42 are in the first band, AF11 in the third, and all others in the
//! second: EF and best effort share a band. To put EF first, choose bands by number: with an
//! empty `priomap` the `class` of a flow is its band, modulo `flows`.
//!
//! **Departures** Applications of Linux can set the priority of a packet, and filters its band.
//! Linux refuses a `priomap` with bands that do not exist; here these mean the last band.
//!
//! **Cost** 600 bytes of state for three queues; O(log n) per packet; an overflow with `full =
//! "lowest"` examines every queue.

use crate::build::Env;
use crate::entry::QdiscEntry;
use crate::error::Result;
use crate::params::Checked;
use crate::sched::classful::Classful;
use crate::sched::priority_map::{PRIOMAP, PriorityMap};
use crate::sched::scheduler::{DropPosition, Item, Scheduler};
use crate::sched::tree::{OUT, Tree};
use crate::snapshot::Snapshot;
use crate::units::Time;
use alloc::vec::Vec;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<Classful<Priority>>(
    "prio",
    "strict priority: serves the first band with packets; the band follows from the DSCP",
)
.aliases(&["priority", "strict"])
.preset(&[("flows", "3"), ("by", "class")])
.decides("on departure: the next band")
.source("Linux sch_prio");

crate::params! {
    /// Parameters of [`Priority`].
    pub struct PriorityParams {
        /// Band of each of Linux's 16 priorities, which follow from the DSCP; priorities without an
        /// entry have Linux's band. Used with `by = "class"`. Empty: the class is the band.
        priomap: Vec<u64> = PRIOMAP.into(), [0 => 15], "", [];
    }
}

/// The strict-priority scheduler.
#[derive(Clone, Debug, Snapshot)]
pub struct Priority {
    busy: Tree,
    bands: PriorityMap,
}

impl Priority {
    /// Creates a scheduler for `n` queues.
    pub(super) fn of(n: usize) -> Priority {
        Priority { busy: Tree::new(n), bands: PriorityMap::NONE }
    }

    fn note(&mut self, i: u32, next: Option<Item>) {
        self.busy.set(i, if next.is_some() { u64::from(i) } else { OUT });
    }
}

impl Scheduler for Priority {
    type Params = PriorityParams;
    const PEEKS: bool = true;

    fn new(params: Checked<'_, PriorityParams>, _env: &Env, weights: &[f64]) -> Result<Self> {
        let bands = PriorityMap::new(&params.priomap, &PRIOMAP, weights.len())?;
        Ok(Priority { bands, ..Priority::of(weights.len()) })
    }

    fn queue_of(&self, class: u16) -> Option<u32> {
        self.bands.band(class)
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

    fn state_bytes(&self) -> usize {
        self.busy.state_bytes()
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
    fn the_dscp_chooses_the_band() {
        // AF11 is bulk, EF and best effort share a band, AF42 is interactive.
        let arrivals = [(10, 1), (46, 2), (0, 3), (36, 4), (46, 5)];
        let order = |settings: &[(&str, &str)]| {
            let mut q = Bench::new("prio", settings);
            for (class, body) in arrivals {
                q.put_class(class, body, 1000);
            }
            q.drain()
        };
        assert_eq!(order(&[]), [4, 2, 3, 5, 1]);
        assert_eq!(order(&[("flows", "2")]), [4, 1, 2, 3, 5], "the third band is the second");
        assert_eq!(
            order(&[("priomap", "2 2 0 2 1 2 1")]),
            [1, 2, 4, 5, 3],
            "EF before best effort"
        );
    }

    #[test]
    fn without_a_map_the_class_is_the_band() {
        let mut q = Bench::new("prio", &[("priomap", "")]);
        for (class, body) in [(2, 1), (1, 2), (0, 3), (5, 4), (3, 5)] {
            q.put_class(class, body, 100);
        }
        assert_eq!(q.drain(), [3, 5, 2, 1, 4], "5 is 2 of 3 bands, and 3 is 0");
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
