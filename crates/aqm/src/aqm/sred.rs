//! SRED: stabilized RED, which estimates the number of flows from hits in a list of past packets.
//!
//! **Source** T. Ott, T. Lakshman, L. Wong, "SRED: Stabilized RED", INFOCOM 1999.
//!
//! **Decides** on arrival.
//!
//! **Measures** the instantaneous queue, and how often an arrival belongs to the flow of a random
//! past packet.
//!
//! **Symbols** `m` (M, zombies), `r` (the probability that a miss replaces one), `p` (P, the hit
//! frequency), `a` (1/M), `psred`, `pz` (p_zap), `pmax`.
//!
//! **Algorithm** Every arrival is compared with a random zombie. `p` averages the hits, so that
//! 1/`p` estimates the number of active flows. The drop probability is `pz = psred min(1, 1/(256
//! p))^2`, where `psred` is `pmax` from a third of the buffer on, a quarter of that from a sixth
//! on, otherwise 0. In the full form a hit multiplies it by `1 + 1/p`.
//!
//! **Departures** (1) ECN-capable packets can be marked instead of dropped. (2) While `p` is 0,
//! 1/(256 `p`) counts as 1 and 1/`p` as 0. (3) The count and the timestamp of a zombie affect no
//! decision in the paper and are omitted.
//!
//! **Cost** 4176 bytes of state: 4 per zombie, a new one replaces a random old one; at most three
//! random numbers per arrival.

use super::{Aqm, SingleQueue, Verdict};
use crate::build::Env;
use crate::cast;
use crate::context::Context;
use crate::entry::QdiscEntry;
use crate::error::Result;
use crate::fifo::QueueView;
use crate::packet::Packet;
use crate::params::Checked;
use crate::snapshot::Snapshot;
use crate::units::Size;
use alloc::vec::Vec;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<SingleQueue<Sred>>(
    "sred",
    "stabilized RED: estimates the number of active flows from a list of past packets",
)
.decides("on arrival: a step function of the queue, times a function of the number of flows")
.source("Ott, Lakshman and Wong, INFOCOM 1999");

crate::choice! {
    /// Effect of a hit on the drop probability.
    pub enum Form {
        /// None: only the number of flows and the queue count.
        Simple = "simple",
        /// A hit raises it: a flow with many hits is likely to exceed its share.
        Full = "full",
    }
}

crate::params! {
    /// Parameters of [`Sred`].
    pub struct SredParams {
        /// Number of zombies, the past packets that are remembered.
        m: u64 = 1000, [1 => 1_048_576], "M", ["zombies"];
        /// Probability that a zombie is replaced after a miss.
        r: f64 = 0.25, [0.0 => 1.0], "p", ["p_replace"];
        /// Weight of an arrival in the hit frequency; auto is 1/m.
        a: Option<f64> = None, [1e-9 => 1.0], "alpha", ["alpha"];
        /// Drop probability with a queue above a third of the buffer and many flows.
        pmax: f64 = 0.15, [0.0 => 1.0], "p_max", ["max_p"];
        /// Effect of a hit: none (simple), or it raises the drop probability (full).
        form: Form = Form::Full, [], "", [];
    }
}

/// State of SRED.
#[derive(Clone, Debug, Snapshot)]
pub struct Sred {
    params: SredParams,
    limit: Size,
    /// Flows of past packets.
    zombies: Vec<u32>,
    /// Weight of an arrival in `p`.
    a: f64,
    /// Average hit frequency.
    p: f64,
    /// Drop probability of the last arrival, for inspection.
    pz: f64,
}

/// Number of flows from which on the drop probability depends on the queue alone.
const FLOWS: f64 = 256.0;

impl Sred {
    /// Compares an arrival with a random zombie (section 3).
    fn hit(&mut self, context: &mut Context<'_>, flow: u32) -> bool {
        if (self.zombies.len() as u64) < self.params.m {
            self.zombies.push(flow);
            return false;
        }
        let i = context.rng.below(cast::index32(self.zombies.len()));
        let zombie = &mut self.zombies[i as usize];
        let hit = *zombie == flow;
        // This is no decision about the packet, so it uses `uniform`, not `bernoulli`: a replay
        // that follows recorded decisions scripts the latter.
        if !hit && context.rng.uniform() < self.params.r {
            *zombie = flow;
        }
        hit
    }

    /// Returns the part of the drop probability that depends on the queue (section 4).
    fn psred(&self, q: u64) -> f64 {
        let (q, b) = (u128::from(q), u128::from(self.limit.number()));
        match self.params.pmax {
            p if 3 * q >= b => p,
            p if 6 * q >= b => p / 4.0,
            _ => 0.0,
        }
    }

    /// Returns the drop probability from `psred`, the number of flows and the hit (section 5).
    fn pz(&self, psred: f64, hit: bool) -> f64 {
        if self.p == 0.0 {
            return psred;
        }
        let flows = 1.0 / (FLOWS * self.p);
        let greed = if hit && self.params.form == Form::Full { 1.0 / self.p } else { 0.0 };
        (psred * (flows * flows).min(1.0) * (1.0 + greed)).min(1.0)
    }
}

impl Aqm for Sred {
    type Params = SredParams;

    fn new(params: Checked<'_, SredParams>, env: &Env) -> Result<Self> {
        Ok(Sred {
            limit: env.limit,
            zombies: Vec::with_capacity(cast::index(params.m)),
            a: params.a.unwrap_or(1.0 / params.m as f64),
            p: 0.0,
            pz: 0.0,
            params: (*params).clone(),
        })
    }

    fn on_enqueue(
        &mut self,
        context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        packet: &Packet,
    ) -> Verdict {
        let hit = self.hit(context, packet.flow);
        self.p = (1.0 - self.a) * self.p + self.a * f64::from(u8::from(hit));
        self.pz = self.pz(self.psred(queue.held(self.limit)), hit);
        if context.rng.bernoulli(self.pz) { Verdict::Mark } else { Verdict::Pass }
    }

    fn decides_at_enqueue(&self) -> bool {
        true
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        // Average hit frequency.
        visit("P", self.p);
        // Estimated number of flows, 1/P; 0 before the first hit.
        visit("active", if self.p > 0.0 { 1.0 / self.p } else { 0.0 });
        // Drop probability of the last arrival.
        visit("pz", self.pz);
    }

    fn state_bytes(&self) -> usize {
        size_of_val(self) + self.zombies.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;
    use std::prelude::v1::*;

    fn aqm(limit: u64, form: Form) -> Sred {
        let params = SredParams { form, ..SredParams::default() };
        let env = Env { limit: Size::Bytes(limit), ..Env::new(crate::Rate(8_000_000)) };
        Sred::build(&params, &env).unwrap()
    }

    #[test]
    fn the_queue_asks_in_three_steps() {
        let aqm = aqm(600, Form::Full);
        assert_eq!([0, 99, 100, 199].map(|q| aqm.psred(q)), [0.0, 0.0, 0.0375, 0.0375]);
        assert_eq!([200, 599].map(|q| aqm.psred(q)), [0.15, 0.15]);
    }

    #[test]
    fn few_flows_are_spared_and_hits_are_not() {
        // 64 flows: a quarter of 256, so one sixteenth of the probability; with a hit 65 times
        // that, by section 5 at most 1. 512 flows: all of it.
        for (form, flows, hit, expected) in [
            (Form::Simple, 64.0, false, 0.1 / 16.0),
            (Form::Simple, 64.0, true, 0.1 / 16.0),
            (Form::Full, 64.0, true, 0.1 / 16.0 * 65.0),
            (Form::Full, 512.0, false, 0.1),
            (Form::Full, 512.0, true, 1.0),
        ] {
            let mut aqm = aqm(600, form);
            aqm.p = 1.0 / flows;
            assert!((aqm.pz(0.1, hit) - expected).abs() < 1e-12, "{flows} flows, {hit}");
        }
        assert_eq!(aqm(600, Form::Full).pz(0.1, true), 0.1, "nothing is known yet");
    }

    #[test]
    fn the_list_fills_and_then_estimates_the_number_of_flows() {
        for flows in [1, 8, 50] {
            let mut q = Bench::new("sred", &[("m", "200"), ("a", "0.0002")]);
            (0..200).for_each(|i| drop(q.put_flow(i % flows, i, 100)));
            assert_eq!(q.gauge("P"), 0.0, "no comparisons while it fills");
            q.drain();
            for i in 0..50_000 {
                q.put_flow(i * 7 % flows, i, 100);
                q.get();
            }
            // Of 50 flows 100 hits in 5000 arrivals, over which they are averaged, so one standard
            // error is 7 %; here are three.
            let active = q.gauge("active");
            assert!((active / f64::from(flows) - 1.0).abs() < 0.21, "{flows}: {active}");
        }
    }

    #[test]
    fn arrivals_count_whether_they_get_in_or_not() {
        let mut q = Bench::new("sred", &[("m", "1"), ("a", "0.5"), ("limit", "1p")]);
        (0..3).for_each(|i| drop(q.put_flow(1, i, 100)));
        assert_eq!(q.gauge("P"), 0.75, "the first fills the list, two hit it");
    }

    #[test]
    fn signals_mark_where_they_can() {
        let mut q = Bench::new("sred", &[("pmax", "1"), ("limit", "12p"), ("ecn", "true")]);
        q.ect();
        // From the fifth on they find a third of the buffer; the others a sixth at most.
        (0..12).for_each(|i| assert!(q.put_flow(i, i, 100).is_empty()));
        let marked = q.marked();
        assert!((8..=10).contains(&marked), "{marked}");
        assert_eq!(q.put_flow(12, 12, 100), [12], "there is no room");
    }

    #[test]
    fn a_zombie_that_is_not_hit_is_replaced_with_probability_r() {
        struct Always(f64);
        impl crate::Random for Always {
            fn uniform(&mut self) -> f64 {
                self.0
            }
        }
        let params = SredParams { m: 4, r: 0.25, ..SredParams::default() };
        let mut aqm = Sred::build(&params, &Env::new(crate::Rate(8_000_000))).unwrap();
        assert_eq!(aqm.a, 0.25, "1 / M");
        aqm.inspect(&mut |name, value| assert!(name != "active" || value == 0.0));
        aqm.zombies = vec![1; 4];
        let (mut dropped, mut marks) = (vec![], crate::Marks::default());
        let mut hit = |flow, u| {
            let (now, rng) = (crate::Time::ZERO, &mut Always(u));
            let mut context = Context { now, rng, dropped: &mut dropped, marks: &mut marks };
            let hit = aqm.hit(&mut context, flow);
            (hit, aqm.zombies.iter().filter(|zombie| **zombie == flow).count())
        };
        assert_eq!([hit(2, 0.25), hit(2, 0.9)], [(false, 0); 2]);
        assert_eq!(hit(2, 0.2), (false, 1));
        assert_eq!(hit(2, 0.2), (true, 1));
    }
}
