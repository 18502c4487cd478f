//! AFD: approximate fair dropping, fair shares from a single queue.
//!
//! **Source** R. Pan, L. Breslau, B. Prabhakar, S. Shenker, "Approximate Fairness through
//! Differential Dropping", ACM CCR 33(2), 2003.
//!
//! **Decides** on arrival.
//!
//! **Measures** the queue in bytes, `f_s` times a second, and the bytes of each flow in a random
//! sample of past arrivals, the shadow buffer.
//!
//! **Symbols** `b`, `s`, `m_i`, `m_fair`, `d` (D_i), `q_target`, `alpha`, `beta`, `f_s`.
//!
//! **Algorithm** Every arrival replaces, with probability 1/`s`, a random entry of the shadow
//! buffer. A flow with `m_i` bytes there is dropped with probability 1 - `m_fair` / `m_i`, so that
//! all flows that demand more than the fair share get the same rate. `m_fair` is controlled so that
//! the queue stays at `q_target`: `m_fair += alpha (q_old - q_target) - beta (q - q_target)`.
//!
//! **Departures** (1) ECN-capable packets can be marked instead of dropped. (2) A packet that finds
//! an empty queue passes: after an idle time the sample is old. (3) Flow i has account i modulo
//! `flows`: with more flows, two share an account, and none is evicted. (4) Several samples of a
//! constant queue are computed in one step. (5) `m_fair` stays between one and `b` mean packets;
//! the paper gives no bounds. (6) Samples count from the first arrival: the first one is taken
//! 1/`f_s` later.
//!
//! **Cost** 16472 bytes of state: 8 per entry and per account; O(1) per packet, at most three
//! random numbers.

use super::{Aqm, SingleQueue, Verdict};
use crate::build::Env;
use crate::cast;
use crate::context::Context;
use crate::entry::QdiscEntry;
use crate::error::{Error, Result};
use crate::fifo::QueueView;
use crate::packet::Packet;
use crate::params::{Checked, nth};
use crate::snapshot::Snapshot;
use crate::timer::{Period, Timer};
use crate::units::{Bytes, Size, Time};
use alloc::vec::Vec;
use alloc::{format, vec};

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<SingleQueue<Afd>>(
    "afd",
    "fair shares from a single queue, by a sample of past packets",
)
.decides("on arrival: a drop probability per flow that limits each to the fair share")
.source("Pan, Breslau, Prabhakar and Shenker, ACM CCR 33(2), 2003");

crate::params! {
    /// Parameters of [`Afd`].
    pub struct AfdParams {
        /// Entries of the shadow buffer.
        b: u64 = 1000, [1 => 1_000_000], "b", ["shadow"];
        /// One in s arrivals is sampled; auto makes the shadow buffer span 1.5 s of the link.
        s: Option<f64> = None, [1.0 => 1e9], "s", ["sampling"];
        /// Reference of the queue; auto is half the limit.
        q_target: Option<Size> = None,
            [Size::Packets(1) => Size::Packets(1_000_000_000_000)], "q_target",
            ["qtarget"];
        /// Gain of the previous sample of the queue.
        alpha: f64 = 1.7, [0.0 => 1000.0], "alpha", [];
        /// Gain of the current sample of the queue; must be above alpha.
        beta: f64 = 1.8, [0.0 => 1000.0], "beta", [];
        /// Samples of the queue per second.
        f_s: f64 = 160.0, [0.1 => 1_000_000.0], "f_s", ["frequency"];
        /// Number of accounts; flow i has account i modulo this number.
        flows: u64 = 1024, [1 => 1_048_576], "", [];
        /// Weights of the accounts in order; the last one applies to all further accounts.
        weights: Vec<f64> = [1.0].into(), [1e-3 => 1e3], "w_i", ["weight"];
        /// Mean packet size.
        packet: Bytes = Bytes(1000), [Bytes(1) => Bytes(1_000_000)], "S", ["mean_packet"];
    }
}

/// Random sample of past arrivals, with the bytes of each account in it.
#[derive(Clone, Debug, Snapshot)]
pub(super) struct Shadow {
    /// Account and length of each sampled packet.
    entries: Vec<(u32, u32)>,
    /// Maximum number of entries.
    size: u64,
    /// Bytes per account.
    bytes: Vec<u64>,
    /// Bytes of all entries.
    total: u64,
    /// Number of accounts with bytes.
    active: u64,
    /// Probability that an arrival of weight 1 is sampled.
    probability: f64,
    /// Weights of the accounts, scaled so that the smallest is 1; the last one applies to all
    /// further accounts.
    weights: Vec<f64>,
}

impl Shadow {
    /// Returns an empty sample with room for `size` packets of `flows` flows. One in `s` arrivals
    /// is sampled; by default as many as make a full sample span 1.5 s of the link.
    pub fn new(size: u64, s: Option<f64>, flows: u64, packet: Bytes, env: &Env) -> Shadow {
        let span = 1.5 * env.rate.packets_per_sec(packet);
        Shadow {
            weights: Vec::new(),
            entries: Vec::with_capacity(cast::index(size)),
            size,
            bytes: vec![0; cast::index(flows)],
            total: 0,
            active: 0,
            probability: 1.0 / s.unwrap_or(span / size as f64).max(1.0),
        }
    }

    /// Adds weights. The bytes of an account are then per weight, since heavier accounts are
    /// sampled less.
    pub fn weighted(self, weights: &[f64]) -> Shadow {
        let least = weights.iter().copied().fold(f64::INFINITY, f64::min);
        Shadow { weights: weights.iter().map(|w| w / least).collect(), ..self }
    }

    fn account(&self, flow: u32) -> u32 {
        flow % cast::index32(self.bytes.len())
    }

    /// Samples `packet` with the configured probability. This is no decision about the packet, so
    /// it uses `uniform`, not `bernoulli`: a replay that follows recorded decisions scripts the
    /// latter.
    pub fn sample(&mut self, context: &mut Context<'_>, packet: &Packet) {
        let entry = (self.account(packet.flow), packet.len);
        let weight = nth(&self.weights, entry.0 as usize).unwrap_or(1.0);
        if context.rng.uniform() * weight >= self.probability {
            return;
        }
        if (self.entries.len() as u64) < self.size {
            self.entries.push(entry);
        } else {
            let k = context.rng.below(cast::index32(self.entries.len())) as usize;
            let (account, len) = core::mem::replace(&mut self.entries[k], entry);
            self.total -= u64::from(len);
            self.bytes[account as usize] -= u64::from(len);
            self.active -= u64::from(self.bytes[account as usize] == 0);
        }
        let bytes = &mut self.bytes[entry.0 as usize];
        self.active += u64::from(*bytes == 0);
        *bytes += u64::from(entry.1);
        self.total += u64::from(entry.1);
    }

    /// Bytes of `flow` in the sample.
    pub fn of(&self, flow: u32) -> f64 {
        self.bytes[self.account(flow) as usize] as f64
    }

    /// Mean bytes of the flows in the sample.
    pub fn mean(&self) -> f64 {
        self.total as f64 / self.active.max(1) as f64
    }

    /// Number of flows in the sample.
    pub fn active(&self) -> u64 {
        self.active
    }

    /// Size of the tables in bytes, without the struct itself.
    pub fn state_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<(u32, u32)>() + size_of_val(&*self.bytes)
    }
}

/// State of AFD.
#[derive(Clone, Debug, Snapshot)]
pub struct Afd {
    alpha: f64,
    beta: f64,
    /// Reference of the queue, bytes.
    q_target: f64,
    shadow: Shadow,
    /// Fair share of the shadow buffer, bytes, and its bounds.
    m_fair: f64,
    m_min: f64,
    m_max: f64,
    /// Previous sample of the queue, bytes.
    q_old: f64,
    samples: Timer,
    /// Bytes in the shadow buffer and drop probability of the last arrival, for inspection.
    m_i: f64,
    d: f64,
}

impl Afd {
    fn adapt(&mut self, step: f64) {
        self.m_fair = (self.m_fair + step).clamp(self.m_min, self.m_max);
    }
}

impl Aqm for Afd {
    type Params = AfdParams;

    fn new(params: Checked<'_, AfdParams>, env: &Env) -> Result<Self> {
        let AfdParams { b, s, q_target, alpha, beta, f_s, flows, packet, ref weights } = *params;
        if weights.is_empty() || weights.len() as u64 > flows {
            let text = format!("{} weights for {flows} accounts", weights.len());
            return Err(Error::new(text).at("weights"));
        }
        if beta <= alpha {
            let text = format!("{beta} is not above alpha ({alpha}): m_fair would not settle");
            return Err(Error::new(text).at("beta"));
        }
        let bytes = |size: Size| match size {
            Size::Bytes(n) => n as f64,
            Size::Packets(n) => n as f64 * packet.0 as f64,
        };
        let mean = packet.0 as f64;
        Ok(Afd {
            alpha,
            beta,
            q_target: q_target.map_or(0.5 * bytes(env.limit), bytes),
            shadow: Shadow::new(b, s, flows, packet, env).weighted(weights),
            m_fair: (b as f64 * mean / 10.0).max(mean),
            m_min: mean,
            m_max: b as f64 * mean,
            q_old: 0.0,
            samples: Timer::new(env, Period::PerSecond(f_s)),
            m_i: 0.0,
            d: 0.0,
        })
    }

    fn on_first_packet(&mut self, now: Time) {
        self.samples.start(now);
    }

    fn on_update(&mut self, now: Time, queue: &QueueView<'_>) {
        let n = self.samples.due(now);
        if n == 0 {
            return;
        }
        let (e, e_old) = (queue.bytes() as f64 - self.q_target, self.q_old - self.q_target);
        self.adapt(self.alpha * e_old - self.beta * e);
        // From the second sample on the queue is unchanged: all steps are equal.
        self.adapt((n - 1) as f64 * ((self.alpha - self.beta) * e));
        self.q_old = queue.bytes() as f64;
    }

    fn on_enqueue(
        &mut self,
        context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        packet: &Packet,
    ) -> Verdict {
        self.shadow.sample(context, packet);
        self.m_i = self.shadow.of(packet.flow);
        let waits = queue.packets() > 0;
        self.d = if waits && self.m_i > self.m_fair { 1.0 - self.m_fair / self.m_i } else { 0.0 };
        if context.rng.bernoulli(self.d) { Verdict::Mark } else { Verdict::Pass }
    }

    fn decides_at_enqueue(&self) -> bool {
        true
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        // Fair share of the shadow buffer, bytes.
        visit("m_fair", self.m_fair);
        // Bytes of the last arrival's flow in the shadow buffer.
        visit("m_i", self.m_i);
        // Drop probability of the last arrival.
        visit("d", self.d);
        // Number of flows in the shadow buffer.
        visit("active", self.shadow.active() as f64);
    }

    fn state_bytes(&self) -> usize {
        size_of_val(self) + self.shadow.state_bytes()
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;
    use std::prelude::v1::*;

    /// All is sampled, 10 entries, and a limit of 20 kB; m_fair starts at 1 kB.
    const SMALL: [(&str, &str); 3] = [("b", "10"), ("s", "1"), ("limit", "20kB")];

    #[test]
    fn m_fair_follows_the_queue_and_catches_up_exactly() {
        let small = [&SMALL[..], &[("f_s", "1000"), ("alpha", "0.25"), ("beta", "0.5")]].concat();
        let mut q = Bench::new("afd", &small);
        // 2000 of 10 000 bytes are queued from time 0 on. The sample at 1 ms adds 0.25 (0 - 10 000)
        // - 0.5 (2000 - 10 000) = 1500, each later one 0.25 * 8000 = 2000.
        (0..2).for_each(|i| drop(q.put_flow(i, i, 1000)));
        q.at_ms(1);
        q.get();
        assert_eq!(q.gauge("m_fair"), 2500.0);
        let mut q = Bench::new("afd", &small);
        (0..2).for_each(|i| drop(q.put_flow(i, i, 1000)));
        q.at_ms(3);
        q.get();
        assert_eq!(q.gauge("m_fair"), 6500.0);
        q.at_ms(86_400_000);
        q.get();
        assert_eq!(q.gauge("m_fair"), 10_000.0, "all of the shadow buffer");
    }

    #[test]
    fn heavy_flows_are_sampled_less() {
        // Weights 1 and 4, everything of weight 1 sampled, the same arrivals of both: one entry in
        // five is of the heavy flow.
        let weighted = [&SMALL[..], &[("b", "1000"), ("weights", "1 4"), ("flows", "2")]].concat();
        let mut q = Bench::new("afd", &weighted);
        for i in 0..20_000 {
            q.put_flow(i % 2, i, 1000);
            q.get();
        }
        q.put_flow(1, 0, 1000);
        let heavy = q.gauge("m_i");
        assert!((heavy / 1e6 - 0.2).abs() < 0.04, "{heavy} of 1,000,000 bytes");
    }

    #[test]
    fn flows_lose_what_they_have_above_the_fair_share() {
        // Of the 10 entries 8 are of flow 1 and 2 of flow 2, and 1 kB is fair. The arrival replaces
        // one of the ten.
        let mut dropped = [0, 0];
        for seed in 0..4000 {
            for flow in [1, 2] {
                let mut q = Bench::seeded("afd", &[&SMALL[..], &[("ecn", "true")]].concat(), seed);
                q.ect();
                (0..10).for_each(|i| drop(q.put_flow(1 + u32::from(i >= 8), i, 1000)));
                let before = q.marked();
                q.put_flow(flow, 10, 1000);
                let d = 1.0 - q.gauge("m_fair") / q.gauge("m_i");
                assert!((q.gauge("d") - d).abs() < 1e-12 && q.gauge("m_fair") == 1000.0);
                dropped[flow as usize - 1] += q.marked() - before;
            }
        }
        // Flow 1 keeps 8 (it replaces itself, 8 of 10 times) or has 9: d is 7/8 or 8/9. Flow 2 has
        // 2 or 3: 1/2 or 2/3. Three standard errors are 0.016 and 0.024.
        let expected = [0.8 * 7.0 / 8.0 + 0.2 * 8.0 / 9.0, 0.2 / 2.0 + 0.8 * 2.0 / 3.0];
        let share = dropped.map(|n| n as f64 / 4000.0);
        assert!((share[0] - expected[0]).abs() < 0.016, "{share:?} {expected:?}");
        assert!((share[1] - expected[1]).abs() < 0.024, "{share:?} {expected:?}");
    }

    #[test]
    fn who_finds_nobody_waiting_passes() {
        let mut q = Bench::new("afd", &SMALL);
        for i in 0..100 {
            assert!(q.put_flow(1, i, 1000).is_empty());
            q.drain();
        }
        assert_eq!((q.gauge("m_i"), q.gauge("active")), (10_000.0, 1.0));
    }

    #[test]
    fn the_shadow_keeps_its_books() {
        use super::*;
        let mut rng = <rand_pcg::Pcg64Mcg as rand_core::SeedableRng>::seed_from_u64(3);
        let env = Env::new(crate::Rate(8_000_000));
        let mut shadow = Shadow::new(50, Some(2.0), 7, Bytes(1000), &env);
        let (mut dropped, mut marks) = (vec![], crate::Marks::default());
        for i in 0..2000u32 {
            let (rng, dropped, marks) = (&mut rng, &mut dropped, &mut marks);
            let mut context = Context { now: Time::ZERO, rng, dropped, marks };
            let (flow, len) = (i * i % 11 + u32::from(i < 1000), 1 + i % 1500);
            shadow.sample(&mut context, &Packet { flow, len, ..Packet::default() });
            let of = |k: u32| {
                let own = shadow.entries.iter().filter(|e| e.0 == k);
                own.map(|e| u64::from(e.1)).sum::<u64>()
            };
            assert!((0..7).all(|k| shadow.of(k) == of(k) as f64));
            assert_eq!(shadow.active(), (0..7).filter(|k| of(*k) > 0).count() as u64);
            assert_eq!(shadow.total, (0..7).map(of).sum::<u64>());
        }
        assert_eq!(shadow.entries.len(), 50);
        assert_eq!(
            Shadow::new(50, None, 7, Bytes(1000), &env).probability,
            1.0 / 30.0,
            "1500 packets"
        );
        assert_eq!(Shadow::new(5000, None, 7, Bytes(1000), &env).probability, 1.0, "all, at most");
    }

    #[test]
    fn gains_that_would_not_settle_are_refused() {
        let settings = [("beta", crate::Setting::Text("1.7"))];
        let refusal = crate::build("afd", &settings, crate::Rate(1_000_000)).unwrap_err();
        assert!(refusal.to_string().starts_with("beta: 1.7 is not above alpha"));
    }

    #[test]
    fn sizes_in_packets_are_of_the_mean_size() {
        let base = [("b", "50"), ("f_s", "1000"), ("alpha", "0.25"), ("beta", "0.5")];
        for limit in ["40p", "20kB"] {
            let mut q =
                Bench::new("afd", &[&base[..], &[("limit", limit), ("packet", "500B")]].concat());
            q.put(0, 1000);
            assert_eq!(q.gauge("m_fair"), 2500.0, "a tenth of the shadow buffer, 25 kB");
            q.at_ms(1);
            q.get();
            // 0.25 (0 - 10 000) - 0.5 (1000 - 10 000)
            assert_eq!(q.gauge("m_fair"), 4500.0, "{limit}");
        }
    }

    #[test]
    fn weights_are_relative_to_the_least() {
        let refusal = |weights, flows| {
            let settings = [("weights", weights), ("flows", flows)];
            let settings = settings.map(|(k, v)| (k, crate::Setting::Text(v)));
            crate::build("afd", &settings, crate::Rate(8_000_000)).err().map(|e| e.to_string())
        };
        assert_eq!(refusal("1 2", "2"), None);
        assert_eq!(refusal("1 2 3", "2").unwrap(), "weights: 3 weights for 2 accounts");
        assert_eq!(refusal("", "2").unwrap(), "weights: 0 weights for 2 accounts");
        let env = crate::build::Env::new(crate::Rate(8_000_000));
        let shadow = super::Shadow::new(10, None, 2, crate::Bytes(1000), &env);
        assert_eq!(shadow.weighted(&[2.0, 8.0]).weights, [1.0, 4.0]);
    }
}
