//! SCFQ: self-clocked fair queueing.
//!
//! **Source** S. Golestani, "A Self-Clocked Fair Queueing Scheme for Broadband Applications",
//! INFOCOM 1994.
//!
//! **Decides** on departure: the next queue.
//!
//! **Measures** the bytes of each queue.
//!
//! **Symbols** `F_i`, `v`.
//!
//! **Algorithm** The finish tag of a packet is `F_i = max(v, F_i) + L / w_i`, where `v` is the
//! finish tag of the packet in transmission. The smallest tag is sent next.
//!
//! **Departures** A dropped packet takes its tag with it.
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
    QdiscEntry::new::<Fair<Scfq, NoAqm>>("scfq", "self-clocked fair queueing")
        .decides("on departure: the smallest finish tag, with the packet in transmission as clock")
        .source("Golestani, INFOCOM 1994");

/// The SCFQ scheduler.
pub type Scfq = Clocked<Finish>;

/// Virtual clock of SCFQ: the finish tag.
#[derive(Clone, Debug, Snapshot)]
pub struct Finish;

impl Clock for Finish {
    const TAG: Least = Least::Finish;

    fn gauges(v: f64, visit: &mut dyn FnMut(&'static str, f64)) {
        // Finish tag of the packet in transmission, bytes per weight.
        visit("v", v);
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;
    use std::prelude::v1::*;

    #[test]
    fn the_clock_is_the_packet_in_service() {
        let mut q = Bench::new("scfq", &[("flows", "2"), ("weights", "1 2")]);
        q.put_flow(0, 1, 1000); // F = 1000
        assert_eq!(q.get().0, Some(1)); // v = 1000
        q.put_flow(0, 2, 1000); // F = 2000
        q.put_flow(1, 3, 1500); // F = 1000 + 750: starts from v
        q.put_flow(1, 4, 600); // F = 1750 + 300 = 2050
        assert_eq!(q.gauge("v"), 1000.0);
        assert_eq!(q.drain(), [3, 2, 4]);
        q.put_flow(0, 5, 100);
        assert_eq!(q.gauge("v"), 0.0, "a busy time starts from nothing");
    }
}
