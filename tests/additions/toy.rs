//! TOY: drops every n-th packet that finds a queue. It has one parameter and one variable.
//!
//! **Source** `tests/test_additions.py`.
//!
//! **Decides** on arrival.
//!
//! **Measures** the number of arrivals at a queue that is not empty.
//!
//! **Algorithm** A packet is dropped if the number of these arrivals is divisible by `every`.
//!
//! **Departures** None.
//!
//! **Cost** 0 bytes of state, one comparison per arrival.

use super::{Aqm, SingleQueue, Verdict};
use crate::build::Env;
use crate::context::Context;
use crate::entry::QdiscEntry;
use crate::error::Result;
use crate::fifo::QueueView;
use crate::packet::Packet;
use crate::params::Checked;
use crate::snapshot::Snapshot;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry =
    QdiscEntry::new::<SingleQueue<Toy>>("toy", "drops every n-th packet that finds a queue")
        .decides("on arrival: the n-th packet")
        .source("tests/test_additions.py");

crate::params! {
    /// Parameters of [`Toy`].
    pub struct ToyParams {
        /// Number of arrivals per drop.
        every: u64 = 100, [2 => 1_000_000], "n", [];
    }
}

/// State of TOY.
#[derive(Clone, Debug, Snapshot)]
pub struct Toy {
    every: u64,
    /// Number of arrivals since the last drop.
    arrived: u64,
}

impl Aqm for Toy {
    type Params = ToyParams;

    fn new(params: Checked<'_, ToyParams>, _env: &Env) -> Result<Self> {
        Ok(Toy { every: params.every, arrived: 0 })
    }

    fn on_enqueue(
        &mut self,
        _context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        _packet: &Packet,
    ) -> Verdict {
        if queue.packets() == 0 {
            return Verdict::Pass;
        }
        self.arrived += 1;
        if self.arrived < self.every {
            return Verdict::Pass;
        }
        self.arrived = 0;
        Verdict::Mark
    }

    fn decides_at_enqueue(&self) -> bool {
        true
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("arrived", self.arrived as f64);
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;
    use std::prelude::v1::*;

    #[test]
    fn every_third_packet_is_dropped() {
        let mut q = Bench::new("toy", &[("every", "3")]);
        let dropped: Vec<bool> = (0..7).map(|i| !q.put(i, 100).is_empty()).collect();
        assert_eq!(dropped, [false, false, false, true, false, false, true]);
    }
}
