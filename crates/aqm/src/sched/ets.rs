//! ETS: strict priority for the first queues, and deficit round robin for the others.
//!
//! **Source** Linux sch_ets; enhanced transmission selection, IEEE 802.1Qaz-2011.
//!
//! **Decides** on departure: the next queue.
//!
//! **Measures** the bytes of each weighted queue.
//!
//! **Algorithm** The first `strict` queues are served in strict order. If all of them are empty,
//! the others share the link by deficit round robin: in each round queue i may send `quanta`_i
//! bytes. So the strict queues can starve the weighted ones.
//!
//! The class of a packet is the number of its queue. With `priomap`, the queue follows from the
//! packet's priority, and the priority from its DSCP as in `prio`.
//!
//! **Departures** Linux has a discipline in each band, and uses filters in addition to `priomap`;
//! without `priomap` all its packets are in the last band. Here `by` chooses the queue and an AQM
//! algorithm may be in each.
//!
//! **Cost** 1200 bytes of state for eight queues; O(log n) per packet of a strict queue, O(1) per
//! packet of another if its quantum is at least the largest packet.

use crate::build::Env;
use crate::cast;
use crate::entry::QdiscEntry;
use crate::error::{Error, Result};
use crate::params::{Checked, nth};
use crate::sched::classful::Classful;
use crate::sched::drr::Drr;
use crate::sched::prio::Priority;
use crate::sched::priority_map::PriorityMap;
use crate::sched::scheduler::{DropPosition, Item, Scheduler};
use crate::snapshot::Snapshot;
use crate::units::{Bytes, Time};
use alloc::format;
use alloc::vec::Vec;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<Classful<Ets>>(
    "ets",
    "strict priority for the first classes, deficit round robin for the others",
)
.preset(&[("flows", "8"), ("by", "class")])
.decides("on departure: the next class")
.source("IEEE 802.1Qaz-2011; Linux sch_ets");

crate::params! {
    /// Parameters of [`Ets`].
    pub struct EtsParams {
        /// Number of queues with strict priority.
        strict: u64 = 0, [0 => 1_048_576], "", [];
        /// Bytes per round of the further queues in order; the last one applies to all that follow.
        quanta: Vec<Bytes> = [Bytes(1514)].into(),
            [Bytes(1) => Bytes(1_000_000_000)], "", ["quantum"];
        /// Queue of each of Linux's 16 priorities, which follow from the DSCP as in prio; later
        /// ones have the last queue. Used with `by = "class"`. Empty: the class is the queue.
        priomap: Vec<u64> = Vec::new(), [0 => 15], "", [];
    }
}

/// The ETS scheduler.
#[derive(Clone, Debug, Snapshot)]
pub struct Ets {
    /// Number of strict queues, which are the first ones.
    strict: u32,
    priority: Priority,
    weighted: Drr,
    queues: PriorityMap,
}

impl Scheduler for Ets {
    type Params = EtsParams;

    fn new(params: Checked<'_, EtsParams>, _env: &Env, weights: &[f64]) -> Result<Self> {
        let n = weights.len() as u64;
        if params.strict > n {
            let text = format!("{} strict queues of {n} queues", params.strict);
            return Err(Error::new(text).at("strict"));
        }
        let strict = cast::index(params.strict);
        let weighted = weights.len() - strict;
        if params.quanta.is_empty() || params.quanta.len() > weighted.max(1) {
            let text = format!("{} quanta for {weighted} queues", params.quanta.len());
            return Err(Error::new(text).at("quanta"));
        }
        let quantum = |i: usize| nth(&params.quanta, i.saturating_sub(strict)).map_or(1, |q| q.0);
        let quanta = weights.iter().enumerate();
        // At most 1e9 bytes times 1e6, as in DRR.
        let quanta = quanta.map(|(i, w)| cast::trunc(quantum(i) as f64 * w).max(1)).collect();
        Ok(Ets {
            strict: cast::index32(strict),
            priority: Priority::of(strict.max(1)),
            weighted: Drr::with_quanta(quanta),
            queues: PriorityMap::new(&params.priomap, &[u64::MAX; 16], weights.len())?,
        })
    }

    fn queue_of(&self, class: u16) -> Option<u32> {
        self.queues.band(class)
    }

    fn on_enqueued(&mut self, now: Time, i: u32, packet: Item, first: bool) {
        if i < self.strict {
            self.priority.on_enqueued(now, i, packet, first);
        } else {
            self.weighted.on_enqueued(now, i, packet, first);
        }
    }

    fn select(&mut self, now: Time, head: impl Fn(u32) -> Option<u32>) -> Option<u32> {
        self.priority.select(now, &head).or_else(|| self.weighted.select(now, head))
    }

    fn on_sent(&mut self, now: Time, i: u32, len: u32, next: Option<Item>) {
        if i < self.strict {
            self.priority.on_sent(now, i, len, next);
        } else {
            self.weighted.on_sent(now, i, len, next);
        }
    }

    fn on_dropped(&mut self, i: u32, loss: DropPosition, next: Option<Item>) {
        if i < self.strict {
            self.priority.on_dropped(i, loss, next);
        } else {
            self.weighted.on_dropped(i, loss, next);
        }
    }

    fn nearest(&self, tied: &dyn Fn(u32) -> bool) -> Option<u32> {
        self.weighted.nearest(tied)
    }

    fn state_bytes(&self) -> usize {
        self.priority.state_bytes() + self.weighted.state_bytes()
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;
    use std::prelude::v1::*;

    #[test]
    fn strict_queues_come_first_and_the_others_share_by_quanta() {
        let settings =
            [("by", "flow"), ("flows", "5"), ("strict", "2"), ("quanta", "3000B 2000B 1000B")];
        let mut q = Bench::new("ets", &settings);
        // Six packets for each queue; the body is the queue and the number of the packet.
        (0..6).for_each(|k| (0..5).for_each(|i| drop(q.put_flow(i, 10 * i + k, 1000))));
        let sent: Vec<u32> = q.drain().iter().map(|body| body / 10).collect();
        assert_eq!(sent[..12], [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]);
        assert_eq!(sent[12..24], [2, 2, 2, 3, 3, 4, 2, 2, 2, 3, 3, 4]);
        assert_eq!(sent[24..], [3, 3, 4, 4, 4, 4]);
    }

    #[test]
    fn a_strict_packet_goes_before_the_turn_of_another_ends() {
        let settings = [("by", "flow"), ("flows", "2"), ("strict", "1"), ("quanta", "9000B")];
        let mut q = Bench::new("ets", &settings);
        [11, 12, 13].into_iter().for_each(|body| drop(q.put_flow(1, body, 1000)));
        assert_eq!(q.get().0, Some(11));
        q.put_flow(0, 1, 1000);
        assert_eq!(q.drain(), [1, 12, 13]);
    }

    #[test]
    fn a_queue_whose_only_packet_is_dropped_has_no_turn() {
        let settings = [("by", "flow"), ("flows", "3"), ("strict", "1"), ("limit", "4000B")];
        for (long, short) in [(0, 1), (1, 0), (1, 2), (2, 1)] {
            let mut q = Bench::new("ets", &settings);
            assert_eq!(q.put_flow(long, 1, 3000), [0; 0]);
            assert_eq!(q.put_flow(short, 2, 1500), [1], "the longest queue");
            assert_eq!(q.drain(), [2], "{long}, {short}");
            assert_eq!(q.put_flow(long, 3, 1000), [0; 0]);
            assert_eq!(q.drain(), [3], "{long}, {short}");
        }
    }

    #[test]
    fn of_equally_long_queues_the_next_one_of_the_round_drops() {
        let settings = [("by", "flow"), ("flows", "3"), ("strict", "1"), ("limit", "4p")];
        for (first, second) in [(1, 2), (2, 1)] {
            let mut q = Bench::new("ets", &settings);
            for flow in [first, second, first, second] {
                assert_eq!(q.put_flow(flow, flow, 1000), [0; 0]);
            }
            assert_eq!(q.put_flow(0, 9, 1000), [first]);
        }
    }

    #[test]
    fn numbers_that_contradict_are_refused() {
        let error = |settings: &[(&str, &str)]| {
            let settings: Vec<_> =
                settings.iter().map(|(k, v)| (*k, crate::Setting::Text(v))).collect();
            crate::build("ets", &settings, crate::Rate(8)).unwrap_err().to_string()
        };
        assert_eq!(error(&[("strict", "9")]), "strict: 9 strict queues of 8 queues");
        assert_eq!(
            error(&[("flows", "3"), ("strict", "2"), ("quanta", "1kB 2kB")]),
            "quanta: 2 quanta for 1 queues"
        );
    }
}
