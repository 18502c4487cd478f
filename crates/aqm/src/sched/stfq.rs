//! STFQ: start-time fair queueing.
//!
//! **Source** P. Goyal, H. Vin, H. Cheng, "Start-Time Fair Queueing: A Scheduling Algorithm for
//! Integrated Services Packet Switching Networks", SIGCOMM 1996. The paper abbreviates it as SFQ,
//! which elsewhere means stochastic fairness queueing.
//!
//! **Decides** on departure: the next queue.
//!
//! **Measures** the bytes of each queue.
//!
//! **Symbols** `S_i`, `F_i`, `v`.
//!
//! **Algorithm** The start tag of a packet is `S_i = max(v, F_i)` and its finish tag `S_i + L /
//! w_i`; `v` is the start tag of the packet in transmission. The smallest start tag is sent next.
//! The schedule is fair even if the rate of the link varies.
//!
//! **Departures** Tags and `v` are reset when the link is idle, which changes no decision.
//!
//! **Cost** 123176 bytes of state: 120 per queue; O(log n) per packet.

use crate::aqm::NoAqm;
use crate::entry::QdiscEntry;
use crate::sched::clocked::{Clock, Clocked};
use crate::sched::fair::Fair;
use crate::sched::tags::Least;
use crate::snapshot::Snapshot;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry =
    QdiscEntry::new::<Fair<Stfq, NoAqm>>("stfq", "start-time fair queueing")
        .aliases(&["start_time_fq"])
        .decides("on departure: the smallest start tag")
        .source("Goyal, Vin, Cheng, SIGCOMM 1996");

/// The STFQ scheduler.
pub type Stfq = Clocked<Start>;

/// Virtual clock of STFQ: the start tag.
#[derive(Clone, Debug, Snapshot)]
pub struct Start;

impl Clock for Start {
    const TAG: Least = Least::Start;

    fn gauges(v: f64, visit: &mut dyn FnMut(&'static str, f64)) {
        // Start tag of the packet in transmission, bytes per weight.
        visit("v", v);
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;
    use std::prelude::v1::*;

    #[test]
    fn the_least_start_goes_first() {
        let mut q = Bench::new("stfq", &[("flows", "2")]);
        q.put_flow(0, 1, 1000); // S = 0, F = 1000
        q.put_flow(0, 2, 100); // S = 1000, F = 1100
        q.put_flow(1, 3, 1500); // S = 0, F = 1500
        q.put_flow(1, 4, 100); // S = 1500
        assert_eq!(q.get().0, Some(1), "of equal ones the lowest queue");
        for (body, v) in [(3, 0.0), (2, 1000.0), (4, 1500.0)] {
            assert_eq!((q.get().0, q.gauge("v")), (Some(body), v));
        }
    }
}
