//! mq: the transmit queues of a device, with a discipline each, served in turn.
//!
//! **Source** Linux sch_mq.
//!
//! **Decides** on departure: the next queue, and what the discipline of the queue decides.
//!
//! **Measures** what the disciplines of its queues measure.
//!
//! **Algorithm** The hash of a flow chooses its queue. Each queue has a discipline of `children`,
//! or a FIFO queue. The device takes a packet of each queue in turn, as `multiq` does.
//!
//! **Departures** (1) Linux has as many queues as the device, and gives each of them its default
//! discipline, such as `fq_codel`; name it in `children`. Linux may choose a queue by the processor
//! that sends. (2) Devices may serve their queues in another order, by priority or by bytes.
//!
//! **Cost** 568 bytes of state for four queues; as `multiq`.

use crate::entry::QdiscEntry;
use crate::sched::classful::Classful;
use crate::sched::multiq::RoundRobin;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<Classful<RoundRobin<true>>>(
    "mq",
    "the transmit queues of a device, with a discipline each, served in turn",
)
.preset(&[("flows", "4"), ("by", "hash")])
.decides("on departure: the next queue, and what its discipline decides")
.source("Linux sch_mq");

#[cfg(test)]
mod tests {
    use crate::testing::Bench;
    use std::prelude::v1::*;

    #[test]
    fn flows_are_spread_by_their_hash() {
        let mut q = Bench::new("mq", &[("children", "droptail(limit=1p)")]);
        assert_eq!(q.put_flow(1, 1, 100), [0; 0]);
        assert_eq!(q.put_flow(5, 2, 100), [2], "5 is 1 of 4 queues");
        assert_eq!(q.put_flow(6, 3, 100), [0; 0]);
        assert_eq!(q.drain(), [1, 3]);
    }
}
