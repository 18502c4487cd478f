//! WFQ: weighted fair queueing, also known as packet-by-packet generalised processor sharing
//! (PGPS).
//!
//! **Source** A. Demers, S. Keshav, S. Shenker, SIGCOMM 1989; A. Parekh, R. Gallager, "A
//! Generalized Processor Sharing Approach to Flow Control in Integrated Services Networks: The
//! Single-Node Case", IEEE/ACM ToN 1(3), 1993.
//!
//! **Decides** on departure: the next queue.
//!
//! **Measures** the bytes of each queue, and the service in a fluid model.
//!
//! **Symbols** `V`, `F_i`, `W`, `C`.
//!
//! **Algorithm** In the fluid model every busy queue is served at `C w_i / W`, and virtual time
//! grows at `C / W`. The finish tag of a packet is `F_i = max(V, F_i) + L / w_i`; the smallest one
//! is sent next. No packet ends later than in the fluid model by more than one largest packet.
//!
//! **Departures** (1) A dropped packet takes its tag with it; `V` does not change. (2) Tags are
//! floating-point numbers and reset when the link is idle: after a busy period of an hour at 10
//! gbit they are still exact to a thousandth of a byte.
//!
//! **Cost** 139608 bytes of state: 136 per queue; O(log n) per packet.

use crate::aqm::NoAqm;
#[cfg(feature = "codel")]
use crate::aqm::codel::CoDel;
#[cfg(feature = "red")]
use crate::aqm::red::Red;
use crate::build::Env;
use crate::entry::QdiscEntry;
use crate::error::Result;
use crate::params::{Checked, Nothing};
use crate::sched::fair::Fair;
use crate::sched::scheduler::{DropPosition, Item, Scheduler};
use crate::sched::tags::{Least, Tags};
use crate::sched::tree::{OUT, Tree, key};
use crate::snapshot::Snapshot;
use crate::units::Time;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<Fair<Wfq, NoAqm>>(
    "wfq",
    "weighted fair queueing: sends packets in the order of a fluid server",
)
.aliases(&["pgps"])
.decides("on departure: the smallest finish tag; on overflow: drops from the longest queue")
.source("Demers, Keshav, Shenker, SIGCOMM 1989; Parekh and Gallager, IEEE/ACM ToN 1(3), 1993");

/// Entry of `wfq_codel` in the registry.
#[cfg(feature = "codel")]
pub(crate) const WFQ_CODEL: QdiscEntry = QdiscEntry::new::<Fair<Wfq, CoDel>>(
    "wfq_codel",
    "weighted fair queueing with CoDel in every queue",
)
.preset(&[("ecn", "true")])
.decides("on departure: the smallest finish tag, and CoDel's drops in that queue")
.source("Parekh and Gallager, IEEE/ACM ToN 1(3), 1993; RFC 8289");

/// Entry of `wfq_red` in the registry.
#[cfg(feature = "red")]
pub(crate) const WFQ_RED: QdiscEntry =
    QdiscEntry::new::<Fair<Wfq, Red>>("wfq_red", "weighted fair queueing with RED in every queue")
        .decides(
            "on departure: the smallest finish tag; on arrival: RED by the average of the queue",
        )
        .source("Parekh and Gallager, IEEE/ACM ToN 1(3), 1993; Floyd and Jacobson, 1993");

/// The WFQ scheduler.
#[derive(Clone, Debug, Snapshot)]
pub struct Wfq {
    tags: Tags,
    /// C, bytes per nanosecond.
    c: f64,
    /// V, bytes of service per unit of weight, and the time at which it had this value.
    v: f64,
    at: Time,
    /// Queues that are busy in the fluid model, by their last finish tag; and W, the sum of their
    /// weights.
    fluid: Tree,
    w: f64,
}

impl Wfq {
    /// Advances V to `now`, through every departure from the fluid model.
    fn advance(&mut self, now: Time) {
        let mut ns = now.since(self.at).0 as f64;
        self.at = now;
        while self.fluid.least() != OUT {
            let finish = f64::from_bits(self.fluid.least());
            let due = (finish - self.v) * self.w / self.c;
            if due > ns {
                self.v += ns * self.c / self.w;
                return;
            }
            ns -= due.max(0.0);
            self.v = self.v.max(finish);
            self.leave_first();
        }
    }

    /// Removes the queue with the smallest tag from the fluid model.
    fn leave_first(&mut self) {
        let Some((i, _)) = self.fluid.first() else { return };
        self.fluid.set(i, OUT);
        // Removes the rounding error when the fluid model is empty.
        self.w = if self.fluid.least() == OUT { 0.0 } else { self.w - self.tags.weight(i) };
    }
}

impl Scheduler for Wfq {
    type Params = Nothing;

    fn new(_: Checked<'_, Nothing>, env: &Env, weights: &[f64]) -> Result<Self> {
        Ok(Wfq {
            tags: Tags::new(weights, Least::Finish),
            c: env.rate.0 as f64 / 8e9,
            v: 0.0,
            at: Time::ZERO,
            fluid: Tree::new(weights.len()),
            w: 0.0,
        })
    }

    fn on_enqueued(&mut self, now: Time, i: u32, packet: Item, first: bool) {
        self.advance(now);
        let finish = self.tags.on_enqueued(self.v, i, packet, first);
        if self.fluid.key(i) == OUT {
            self.w += self.tags.weight(i);
        }
        self.fluid.set(i, key(finish));
    }

    fn select(&mut self, _now: Time, _head: impl Fn(u32) -> Option<u32>) -> Option<u32> {
        self.tags.first()
    }

    fn on_sent(&mut self, _now: Time, i: u32, len: u32, next: Option<Item>) {
        self.tags.on_sent(i, len, next);
    }

    fn on_dropped(&mut self, i: u32, loss: DropPosition, next: Option<Item>) {
        self.tags.on_dropped(i, loss, next);
        if self.fluid.key(i) != OUT {
            self.fluid.set(i, key(self.tags.finish(i)));
        }
    }

    fn on_idle(&mut self) {
        while self.fluid.least() != OUT {
            self.leave_first();
        }
        self.v = 0.0;
        self.tags.reset();
    }

    fn state_bytes(&self) -> usize {
        self.tags.state_bytes() + self.fluid.state_bytes()
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        // Virtual time, bytes per weight.
        visit("V", self.v);
        // Sum of the weights of the queues busy in the fluid model.
        visit("W", self.w);
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;
    use std::prelude::v1::*;

    #[test]
    fn the_order_of_the_fluid_system() {
        // 1000 B take 1 ms. At 0, flow 0 (weight 1) and flow 1 (weight 3) get 1000 B each:
        // F = 1000 and 333. At 1 ms, V stands where 1000 B of service have brought it: until V =
        // 333 both take part (333 * 4 = 1333 B), so V = 1000 / 4 = 250.
        let mut q = Bench::new("wfq", &[("flows", "2"), ("weights", "1 3")]);
        q.put_flow(0, 1, 1000);
        q.put_flow(1, 2, 1000);
        assert_eq!(q.get().0, Some(2));
        q.at_ms(1);
        q.put_flow(1, 3, 1500); // F = 333 + 500
        assert!((q.gauge("V") - 250.0).abs() < 1e-9);
        q.put_flow(1, 4, 600); // F = 833 + 200
        assert_eq!(q.drain(), [3, 1, 4]);
        assert_eq!(q.gauge("V"), 0.0, "a busy time is over");
    }

    #[test]
    fn heavy_queues_may_lead_by_many_packets() {
        // A flow of weight 10 and ten of weight 1: WFQ first sends ten packets of the heavy flow.
        let mut q = Bench::new("wfq", &[("flows", "11"), ("weights", "10 1")]);
        (0..11).for_each(|i| drop(q.put_flow(0, i, 1000)));
        (1..11).for_each(|flow| drop(q.put_flow(flow, 100 + flow, 1000)));
        assert!(q.drain()[..10].iter().all(|body| *body < 11));
    }

    #[test]
    fn a_queue_that_becomes_busy_again_has_no_credit() {
        let mut q = Bench::new("wfq", &[("flows", "2")]);
        (0..20).for_each(|i| drop(q.put_flow(0, i, 1000)));
        (0..10).for_each(|ms| {
            q.at_ms(ms);
            q.get();
        });
        q.at_ms(10);
        (0..5).for_each(|i| drop(q.put_flow(1, 100 + i, 1000)));
        assert_eq!(q.drain()[..6], [10, 100, 11, 101, 12, 102]);
    }

    #[test]
    fn virtual_time_grows_faster_when_a_queue_leaves_the_fluid_system() {
        // 1000 B take 1 ms. Flow 0 (weight 1) has F = 1000, flow 1 (weight 3) F = 100. Both are
        // served until V = 100, at 0.4 ms; then V grows by 1000 per ms.
        let mut q = Bench::new("wfq", &[("flows", "3"), ("weights", "1 3 1")]);
        q.put_flow(0, 1, 1000);
        q.put_flow(1, 2, 300);
        q.at_ms(1);
        q.put_flow(0, 3, 400); // F = 1400
        assert!((q.gauge("V") - 700.0).abs() < 1e-9, "{}", q.gauge("V"));
        assert_eq!(q.gauge("W"), 1.0);
        // At 1.7 ms the fluid system is empty.
        q.at_ms(2);
        q.put_flow(2, 4, 1000);
        assert!((q.gauge("V") - 1400.0).abs() < 1e-9, "{}", q.gauge("V"));
    }

    #[test]
    fn a_queue_leaves_the_fluid_system_at_its_finish_tag() {
        let mut q = Bench::new("wfq", &[("flows", "2")]);
        q.put_flow(0, 1, 1000);
        q.at_ms(1);
        q.put_flow(1, 2, 1000);
        assert_eq!((q.gauge("V"), q.gauge("W")), (1000.0, 1.0), "flow 1 alone");
    }

    #[test]
    fn a_dropped_packet_takes_its_service_out_of_the_fluid_system() {
        let mut q = Bench::new("wfq", &[("flows", "3"), ("limit", "3p"), ("drop", "tail")]);
        (0..3).for_each(|i| assert!(q.put_flow(0, i, 1000).is_empty()));
        assert_eq!(q.put_flow(1, 9, 500), [2]);
        // 2500 B are left: V = 500 at 1 ms, 2000 at 2.5 ms, and no more.
        q.at_ms(4);
        q.put_flow(2, 10, 100);
        assert_eq!(q.gauge("V"), 2000.0);
    }

    #[test]
    fn an_idle_link_begins_anew() {
        let mut q = Bench::new("wfq", &[]);
        [1, 2, 3].into_iter().for_each(|flow| drop(q.put_flow(flow, flow, 1000)));
        assert_eq!(q.drain(), [1, 2, 3], "at once: the fluid server has sent nothing yet");
        q.at_ms(1);
        (0..2).for_each(|_| drop(q.put_flow(1, 1, 1000)));
        q.at_ms(2);
        q.put_flow(2, 2, 1000);
        assert_eq!(q.gauge("V"), 1000.0, "flow 1 had the whole link for 1 ms");
    }
}
