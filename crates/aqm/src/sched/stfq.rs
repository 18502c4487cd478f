//! STFQ: start-time fair queueing.
//!
//! **Source** P. Goyal, H. Vin, H. Cheng, "Start-Time Fair Queueing: A Scheduling Algorithm for
//! Integrated Services Packet Switching Networks", SIGCOMM 1996. (Their short name, SFQ, is that
//! of stochastic fairness queueing too, which came first.)
//! **Decides** on departure: whose turn it is. **Measures** the bytes of each queue. **Symbols**
//! `S_i`, `F_i`, `v`.
//! **The law** a packet's start tag is `S_i = max(v, F_i)` and its finish tag `S_i + L / w_i`; `v`
//! is the start tag of the packet being sent, and the least start tag is sent next. So it is fair
//! whatever the rate of the link does.
//! **Departures** tags and `v` are reset when the link is idle, which changes no decision.
//! **Cost** 123168 bytes of state: 120 a queue; O(log n) per packet.

use crate::error::Result;
use crate::order::{Heads, Item, Loss, Order};
use crate::params::Nothing;
use crate::sched::Env;
use crate::tags::{Least, Tags};
use crate::units::Time;

/// The order.
pub struct Stfq {
    tags: Tags,
    /// The start tag of the packet being sent.
    v: f64,
}

impl Order for Stfq {
    type Params = Nothing;

    fn new(_: &Nothing, _env: &Env, weights: &[f64]) -> Result<Self> {
        Ok(Stfq { tags: Tags::new(weights, Least::Start), v: 0.0 })
    }

    fn join(&mut self, _now: Time, i: u32, packet: Item, first: bool) {
        self.tags.join(self.v, i, packet, first);
    }

    fn turn(&mut self, _now: Time, _heads: &Heads<'_>) -> Option<u32> {
        self.tags.first()
    }

    fn sent(&mut self, _now: Time, i: u32, len: u32, next: Option<Item>) {
        self.v = self.tags.sent(i, len, next).0;
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
        // Start tag of the packet being sent, bytes per weight.
        see("v", self.v);
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
        assert_eq!(q.drain(), [3, 2, 4]);
    }
}
