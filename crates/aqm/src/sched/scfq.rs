//! SCFQ: self-clocked fair queueing.
//!
//! **Source** S. Golestani, "A Self-Clocked Fair Queueing Scheme for Broadband Applications",
//! INFOCOM 1994. **Decides** on departure: whose turn it is. **Measures** the bytes of each queue.
//! **Symbols** `F_i`, `v`.
//! **The law** a packet's finish tag is `F_i = max(v, F_i) + L / w_i`, where `v` is the finish tag
//! of the packet being sent; the least one is sent next.
//! **Departures** a packet that is lost takes its tag with it.
//! **Cost** 123168 bytes of state: 120 a queue; O(log n) per packet.

use crate::error::Result;
use crate::order::{Heads, Item, Loss, Order};
use crate::params::Nothing;
use crate::sched::Env;
use crate::tags::{Least, Tags};
use crate::units::Time;

/// The order.
pub struct Scfq {
    tags: Tags,
    /// The finish tag of the packet being sent.
    v: f64,
}

impl Order for Scfq {
    type Params = Nothing;

    fn new(_: &Nothing, _env: &Env, weights: &[f64]) -> Result<Self> {
        Ok(Scfq { tags: Tags::new(weights, Least::Finish), v: 0.0 })
    }

    fn join(&mut self, _now: Time, i: u32, packet: Item, first: bool) {
        self.tags.join(self.v, i, packet, first);
    }

    fn turn(&mut self, _now: Time, _heads: &Heads<'_>) -> Option<u32> {
        self.tags.first()
    }

    fn sent(&mut self, _now: Time, i: u32, len: u32, next: Option<Item>) {
        self.v = self.tags.sent(i, len, next).1;
    }

    fn lost(&mut self, i: u32, loss: Loss, next: Option<Item>) {
        self.tags.lost(i, loss, next);
    }

    fn idle(&mut self) {
        self.v = 0.0;
        self.tags.reset();
    }

    fn state(&self) -> usize {
        self.tags.state()
    }

    fn gauges(&self, see: &mut dyn FnMut(&'static str, f64)) {
        // Finish tag of the packet being sent, bytes per weight.
        see("v", self.v);
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
        q.put_flow(1, 3, 1500); // F = 1000 + 750: a late comer starts from v
        q.put_flow(1, 4, 600); // F = 1750 + 300 = 2050
        assert_eq!(q.gauge("v"), 1000.0);
        assert_eq!(q.drain(), [3, 2, 4]);
        q.put_flow(0, 5, 100);
        assert_eq!(q.gauge("v"), 0.0, "a busy time starts from nothing");
    }
}
