//! Step marking: the ECN threshold of switches, as DCTCP, DCQCN and HPCC have it.
//!
//! **Source** Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, section 3.1 (one threshold
//! K). The slope between two thresholds: Zhu et al., "Congestion Control for Large-Scale RDMA
//! Deployments" (DCQCN), SIGCOMM 2015, as simulators of HPCC have it.
//!
//! **Decides** on arrival, or on departure with `at = "dequeue"`.
//!
//! **Measures** the queue at this moment, in packets or bytes, depending on the unit of `k_min`.
//!
//! **Symbols** `K_min`, `K_max`, `P_max`, `q`, `p`.
//!
//! **Algorithm** A packet is marked with the probability `p`: 0 up to `k_min`, then `p_max (q -
//! k_min) / (k_max - k_min)` up to `k_max`, and 1 above `k_max`. Without `k_max`, every packet
//! above `k_min` is marked: DCTCP's K. On arrival `q` is the queue in front of the packet; on
//! departure, the queue behind it. Neither includes the packet itself or the packet in
//! transmission. Packets that are not ECN-capable pass, so that only the buffer limits them. With
//! `non_ect = "drop"` they are dropped where others are marked, which drops SYNs of a queue that
//! stays at `k_min`: RED with ECN does so in Linux.
//!
//! **Departures** (1) Switches differ in what `q` includes. htsim counts the departing packet; then
//! `k_min` is smaller by one packet here. (2) No random number is drawn for a probability of 0 or
//! 1, or for a packet that passes in any case. (3) With `ecn = false` no packet is ECN-capable.
//!
//! **Cost** 112 bytes of state; O(1) per packet, one random number between the thresholds.

use super::red::one_unit;
use super::{Aqm, SingleQueue, Verdict};
use crate::build::Env;
use crate::context::{Context, DropReason};
use crate::entry::QdiscEntry;
use crate::error::{Error, Result};
use crate::fifo::QueueView;
use crate::packet::Packet;
use crate::params::Checked;
use crate::snapshot::Snapshot;
use crate::units::Size;
use alloc::format;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<SingleQueue<StepMark>>(
    "step_mark",
    "marks above a threshold of the queue, as switches do for DCTCP",
)
.aliases(&["dctcp_mark", "ecn_threshold"])
.preset(&[("ecn", "true")])
.decides("on arrival (or departure): marks above a threshold of the queue")
.source("Alizadeh et al., Data Center TCP, SIGCOMM 2010; Zhu et al., DCQCN, SIGCOMM 2015");

crate::choice! {
    /// Moment of the decision.
    pub enum At {
        /// On arrival, by the queue in front of the packet.
        Enqueue = "enqueue" | "arrival",
        /// On departure, by the queue behind the packet.
        Dequeue = "dequeue" | "departure",
    }
}

crate::choice! {
    /// Action for packets that are not ECN-capable, where others are marked.
    pub enum NonEct {
        /// Let them pass.
        Pass = "pass" | "nodrop",
        /// Drop them.
        Drop = "drop",
    }
}

crate::params! {
    /// Parameters of [`StepMark`].
    pub struct StepMarkParams {
        /// Queue up to which no packet is marked: the K of DCTCP. The queue is measured in its
        /// unit, packets or bytes.
        k_min: Size = Size::Packets(65),
            [Size::Packets(0) => Size::Packets(1_000_000_000_000)],
            "K_min", ["k", "threshold", "min_th", "kmin"];
        /// Queue above which every packet is marked; auto is k_min: a step.
        k_max: Option<Size> = None,
            [Size::Packets(0) => Size::Packets(1_000_000_000_000)], "K_max", ["max_th", "kmax"];
        /// Probability of a mark when the queue reaches k_max.
        p_max: f64 = 1.0, [0.0 => 1.0], "P_max", ["max_p", "pmax"];
        /// Moment of the decision: on arrival, or on departure.
        at: At = At::Enqueue, [], "", [];
        /// Action for packets that are not ECN-capable, where others are marked.
        non_ect: NonEct = NonEct::Pass, [], "", [];
    }
}

/// State of step marking.
#[derive(Clone, Debug, Snapshot)]
pub struct StepMark {
    k_min: f64,
    k_max: f64,
    p_max: f64,
    in_bytes: bool,
    at: At,
    non_ect: NonEct,
    ecn: bool,
    /// Queue at the last decision, in the unit of `k_min`.
    q: f64,
    /// Probability of a mark at the last decision.
    p: f64,
}

impl StepMark {
    /// Measures the queue.
    fn measure(&mut self, queue: &QueueView<'_>) {
        self.q = if self.in_bytes { queue.bytes() as f64 } else { f64::from(queue.packets()) };
        let StepMark { k_min, k_max, p_max, q, .. } = *self;
        self.p = match q {
            q if q <= k_min => 0.0,
            q if q > k_max => 1.0,
            q => p_max * (q - k_min) / (k_max - k_min),
        };
    }

    /// True if `packet` is to be marked, or dropped if it cannot be.
    fn selects(&self, context: &mut Context<'_>, packet: &Packet) -> bool {
        let decided = self.non_ect == NonEct::Drop || (self.ecn && packet.ecn.capable());
        decided && self.p > 0.0 && (self.p >= 1.0 || context.rng.bernoulli(self.p))
    }
}

impl Aqm for StepMark {
    type Params = StepMarkParams;

    fn new(params: Checked<'_, StepMarkParams>, env: &Env) -> Result<Self> {
        let StepMarkParams { k_min, k_max, p_max, at, non_ect } = *params;
        let k_max = k_max.unwrap_or(k_min);
        one_unit(k_min, k_max).map_err(|_| {
            Error::new(format!("{k_max} is in another unit than k_min ({k_min})")).at("k_max")
        })?;
        if k_max.number() < k_min.number() {
            return Err(Error::new(format!("{k_max} is below k_min ({k_min})")).at("k_max"));
        }
        Ok(StepMark {
            k_min: k_min.number() as f64,
            k_max: k_max.number() as f64,
            p_max,
            in_bytes: k_min.in_bytes(),
            at,
            non_ect,
            ecn: env.ecn,
            q: 0.0,
            p: 0.0,
        })
    }

    fn reconfigure(&mut self, fresh: &Self) -> bool {
        let same = fresh.at == self.at;
        if same {
            *self = StepMark { q: self.q, p: self.p, ..fresh.clone() };
        }
        same
    }

    fn has_updates(&self) -> bool {
        false
    }

    fn on_enqueue(
        &mut self,
        context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        packet: &Packet,
    ) -> Verdict {
        if self.at == At::Dequeue {
            return Verdict::Pass;
        }
        self.measure(queue);
        if self.selects(context, packet) { Verdict::Mark } else { Verdict::Pass }
    }

    fn on_dequeue(
        &mut self,
        context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        ecn: bool,
    ) -> Option<Packet> {
        let mut packet = queue.pop()?;
        if self.at == At::Enqueue {
            return Some(packet);
        }
        loop {
            self.measure(queue);
            if !self.selects(context, &packet) || (ecn && context.mark(&mut packet)) {
                return Some(packet);
            }
            context.drop(packet, DropReason::AfterEnqueue);
            packet = queue.pop()?;
        }
    }

    fn decides_at_enqueue(&self) -> bool {
        self.at == At::Enqueue
    }

    fn sends_head(&self) -> bool {
        self.at == At::Enqueue || self.non_ect == NonEct::Pass
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("q", self.q);
        visit("p", self.p);
    }
}

#[cfg(test)]
mod tests {
    use crate::packet::Ecn;
    use crate::testing::Bench;
    use std::prelude::v1::*;

    /// Enqueues `n` ECN-capable packets of 1000 bytes; returns the number of marks.
    fn marks(settings: &[(&str, &str)], n: u32) -> u64 {
        let mut q = Bench::new("step_mark", settings);
        q.ect();
        (0..n).for_each(|i| assert!(q.put(i, 1000).is_empty()));
        q.marked()
    }

    #[test]
    fn packets_above_k_are_marked() {
        // The k-th packet, counted from 0, finds k packets.
        assert_eq!(marks(&[("k", "5p")], 6), 0);
        assert_eq!(marks(&[("k", "5p")], 9), 3);
        assert_eq!(marks(&[("k_min", "5kB")], 9), 3);
        assert_eq!(marks(&[("k_min", "0p")], 9), 8);
    }

    #[test]
    fn packets_that_cannot_be_marked_pass_or_are_dropped() {
        for (non_ect, dropped) in [("pass", 0), ("drop", 3)] {
            for at in ["enqueue", "dequeue"] {
                let settings = [("k", "5p"), ("non_ect", non_ect), ("at", at)];
                let mut q = Bench::new("step_mark", &settings);
                let lost: usize = (0..9).map(|i| q.put(i, 1000).len()).sum();
                let mut late = 0;
                while q.backlog() > 0 {
                    late += q.get().1.len();
                }
                assert_eq!(lost + late, dropped, "{settings:?}");
                assert_eq!((late > 0, q.marked()), (at == "dequeue" && dropped > 0, 0));
            }
        }
    }

    #[test]
    fn without_ecn_nothing_is_marked() {
        assert_eq!(marks(&[("k", "5p"), ("ecn", "false")], 9), 0);
    }

    #[test]
    fn a_departure_sees_the_queue_behind_it() {
        let mut q = Bench::new("step_mark", &[("k", "3p"), ("at", "dequeue")]);
        q.ect();
        (0..6).for_each(|i| assert!(q.put(i, 1000).is_empty()));
        // Five remain, then four, then three: two packets are marked.
        let marked: Vec<u64> = (0..6).map(|_| (q.get(), q.marked()).1).collect();
        assert_eq!(marked, [1, 2, 2, 2, 2, 2]);
        assert_eq!((q.gauge("q"), q.gauge("p")), (0.0, 0.0));
    }

    #[test]
    fn between_the_thresholds_the_probability_rises_to_p_max() {
        let settings = [("k_min", "10p"), ("k_max", "50p"), ("p_max", "0.2"), ("limit", "1000p")];
        let mut q = Bench::new("step_mark", &settings);
        q.ecn(Ecn::Ect0);
        let mut p = |queue: u32| {
            while q.backlog() < queue {
                q.put(0, 100);
            }
            q.put(0, 100);
            q.gauge("p")
        };
        assert_eq!([p(10), p(30), p(50), p(51)], [0.0, 0.1, 0.2, 1.0]);
        // 10,000 packets that find 30.
        let mut q =
            Bench::new("step_mark", &[("k_min", "10p"), ("k_max", "50p"), ("p_max", "0.2")]);
        q.ect();
        while q.backlog() < 30 {
            q.put(0, 100);
        }
        let before = q.marked();
        for _ in 0..10_000 {
            q.put(0, 100);
            q.get();
        }
        assert!((q.marked() - before).abs_diff(1000) < 100, "3 standard deviations are 90");
    }

    #[test]
    fn thresholds_are_checked() {
        let refusal = |settings: &[(&str, &str)]| {
            let settings: Vec<_> =
                settings.iter().map(|(k, v)| (*k, crate::params::Setting::Text(v))).collect();
            let built = crate::build("step_mark", &settings, crate::units::Rate(8));
            built.err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(refusal(&[("k_max", "20p")]), "k_max: 20p is below k_min (65p)");
        let unit = refusal(&[("k_max", "200kB")]);
        assert!(unit.starts_with("k_max: ") && unit.contains("another unit"), "{unit}");
    }

    #[test]
    fn thresholds_can_change_and_the_moment_cannot() {
        let mut q = Bench::new("step_mark", &[("k", "5p")]);
        q.ect();
        assert!(!q.reconfigure("step_mark", &[("at", "dequeue")]));
        assert!(q.reconfigure("step_mark", &[("k", "1p")]));
        (0..4).for_each(|i| assert!(q.put(i, 1000).is_empty()));
        assert_eq!(q.marked(), 2);
    }
}
