//! AF-QCN: approximately fair quantized congestion notification, with drops or marks in place of
//! the feedback messages.
//!
//! **Source** A. Kabbani, M. Alizadeh, M. Yasuda, R. Pan, B. Prabhakar, "AF-QCN: Approximate
//! Fairness with Quantized Congestion Notification for Multi-tenanted Data Centers", HOTI 2010;
//! QCN: IEEE 802.1Qau.
//!
//! **Decides** on arrival.
//!
//! **Measures** the instantaneous queue, in the unit of `q_eq`, and the bytes of each flow in a
//! random sample of past arrivals, as AFD does.
//!
//! **Symbols** `q_eq` (Q_eq), `w`, `q_old`, `fb` (Fb), `a`; `b` and `s` as in AFD.
//!
//! **Algorithm** Between 1 % and 10 % of the arrivals are examined, more as the feedback grows. For
//! these `fb_qcn` is (q - q_eq) + w (q - q_old), if above 0, quantised in 63 steps up to (1 + 2 w)
//! q_eq. `fb_af` is the flow's excess over the mean flow, 1 - r_fair / r_i, quantised in 63 steps.
//! If `fb_qcn` is not 0, the packet is dropped with probability `fb` / 63, where `fb` = (1 - `a`)
//! `fb_qcn` + `a` `fb_af`.
//!
//! **Departures** (1) There is no message to the source. A message of QCN reduces its rate by up to
//! half, and so does a drop or mark in TCP; with probability `fb` / 63 the reduction is the same on
//! average. (2) The shares of 1 and 10 %, `a` and the scale of `fb_qcn` are not from the paper,
//! which was not available to us. (3) All weights are 1. (4) Flow i has account i modulo `flows`:
//! with more flows, two share an account, and none is evicted.
//!
//! **Cost** 16480 bytes of state: 8 per entry and per account; O(1) per packet, at most four random
//! numbers.

use super::{Aqm, SingleQueue, Verdict, afd::Shadow};
use crate::build::Env;
use crate::context::Context;
use crate::entry::QdiscEntry;
use crate::error::{Error, Result};
use crate::fifo::QueueView;
use crate::packet::Packet;
use crate::params::Checked;
use crate::snapshot::Snapshot;
use crate::units::{Bytes, Size};
use alloc::format;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<SingleQueue<AfQcn>>(
    "af_qcn",
    "QCN's feedback plus a part for flows above the mean, as drops or marks",
)
.aliases(&["afqcn"])
.decides(
    "on arrival: a drop probability that grows with the queue, its change and the flow's share",
)
.source("Kabbani et al., HOTI 2010; IEEE 802.1Qau");

crate::params! {
    /// Parameters of [`AfQcn`].
    pub struct AfQcnParams {
        /// Reference of the queue. Its unit, packets or bytes, is that in which the queue is
        /// measured.
        q_eq: Size = Size::Bytes(33_000),
            [Size::Packets(1) => Size::Packets(1_000_000_000_000)], "Q_eq", ["qeq"];
        /// Weight of the change of the queue.
        w: f64 = 2.0, [0.0 => 1000.0], "w", [];
        /// Smallest share of the arrivals that is examined.
        p_min: f64 = 0.01, [0.0 => 1.0], "", [];
        /// Largest share of the arrivals that is examined.
        p_max: f64 = 0.1, [0.0 => 1.0], "", [];
        /// Weight of the flow's own part in the feedback.
        a: f64 = 0.5, [0.0 => 1.0], "a", [];
        /// Entries of the shadow buffer.
        b: u64 = 1000, [1 => 1_000_000], "b", ["shadow"];
        /// One in s arrivals is sampled; auto makes the shadow buffer span 1.5 s of the link.
        s: Option<f64> = None, [1.0 => 1e9], "s", ["sampling"];
        /// Number of accounts; flow i has account i modulo this number.
        flows: u64 = 1024, [1 => 1_048_576], "", [];
        /// Mean packet size, for the span of the shadow buffer.
        packet: Bytes = Bytes(1000), [Bytes(1) => Bytes(1_000_000)], "S", ["mean_packet"];
    }
}

/// Largest feedback: six bits.
const MOST: f64 = 63.0;

/// Quantises a share in steps of 1/63.
fn quantise(share: f64) -> f64 {
    libm::floor(MOST * share.clamp(0.0, 1.0))
}

/// State of AF-QCN.
#[derive(Clone, Debug, Snapshot)]
pub struct AfQcn {
    params: AfQcnParams,
    shadow: Shadow,
    /// Queue when the last arrival was examined.
    q_old: f64,
    /// Feedback of the queue, of the flow and of both at that time, 0 to 63.
    fb_qcn: f64,
    fb_af: f64,
    fb: f64,
}

impl AfQcn {
    /// Computes the feedback for a packet of `flow` that finds a queue of `q`.
    fn examine(&mut self, q: f64, flow: u32) {
        let AfQcnParams { q_eq, w, a, .. } = self.params;
        let q_eq = q_eq.number() as f64;
        let excess = (q - q_eq) + w * (q - self.q_old);
        self.q_old = q;
        self.fb_qcn = quantise(excess / ((1.0 + 2.0 * w) * q_eq));
        let (fair, own) = (self.shadow.mean(), self.shadow.of(flow));
        self.fb_af = if own > fair { quantise(1.0 - fair / own) } else { 0.0 };
        self.fb = if self.fb_qcn > 0.0 { (1.0 - a) * self.fb_qcn + a * self.fb_af } else { 0.0 };
    }
}

impl Aqm for AfQcn {
    type Params = AfQcnParams;

    fn new(params: Checked<'_, AfQcnParams>, env: &Env) -> Result<Self> {
        let AfQcnParams { b, s, flows, packet, p_min, p_max, .. } = *params;
        if p_max < p_min {
            let text = format!("{p_max} is below p_min ({p_min})");
            return Err(Error::new(text).at("p_max"));
        }
        let shadow = Shadow::new(b, s, flows, packet, env);
        Ok(AfQcn {
            params: (*params).clone(),
            shadow,
            q_old: 0.0,
            fb_qcn: 0.0,
            fb_af: 0.0,
            fb: 0.0,
        })
    }

    fn on_enqueue(
        &mut self,
        context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        packet: &Packet,
    ) -> Verdict {
        let AfQcnParams { q_eq, p_min, p_max, .. } = self.params;
        self.shadow.sample(context, packet);
        // `uniform`, not `bernoulli`, as in the shadow buffer: this is no decision about the
        // packet, and a replay scripts only decisions.
        if context.rng.uniform() >= p_min + (p_max - p_min) * self.fb_qcn / MOST {
            return Verdict::Pass;
        }
        self.examine(queue.held(q_eq) as f64, packet.flow);
        let signal = self.fb > 0.0 && context.rng.bernoulli(self.fb / MOST);
        if signal { Verdict::Mark } else { Verdict::Pass }
    }

    fn decides_at_enqueue(&self) -> bool {
        true
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        // Feedback when it was last computed, 0 to 63.
        visit("fb", self.fb);
        // Part of the queue in the feedback, 0 to 63.
        visit("fb_qcn", self.fb_qcn);
        // Part of the flow in the feedback, 0 to 63.
        visit("fb_af", self.fb_af);
        // Number of flows in the shadow buffer.
        visit("active", self.shadow.active() as f64);
    }

    fn state_bytes(&self) -> usize {
        size_of_val(self) + self.shadow.state_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;
    use std::prelude::v1::*;

    /// Every arrival is examined and sampled; the queue to settle at is 10 packets.
    const ALL: [(&str, &str); 4] = [("q_eq", "10p"), ("p_min", "1"), ("p_max", "1"), ("s", "1")];

    #[test]
    fn feedback_is_of_the_queue_and_of_its_change() {
        let mut q = Bench::new("af_qcn", &[&ALL[..], &[("a", "0"), ("ecn", "true")]].concat());
        q.ect();
        // The i-th finds i packets and i - 1 at the last: (i - 10) + 2, of at most 50.
        let fb: Vec<f64> = (0..20).map(|i| (q.put_flow(i, i, 100), q.gauge("fb")).1).collect();
        assert!(fb[..9].iter().all(|f| *f == 0.0), "{fb:?}");
        let expected: Vec<f64> = (9..20).map(|i| f64::from(63 * (i - 8) / 50)).collect();
        assert_eq!(fb[9..], expected);
        // Having fallen by 9, it is under control, though it is still above 10.
        (0..9).for_each(|_| drop(q.get()));
        q.put_flow(1, 0, 100);
        assert_eq!((q.gauge("fb_qcn"), q.backlog()), (0.0, 12));
    }

    #[test]
    fn who_has_more_than_the_mean_hears_more() {
        let mut aqm =
            AfQcn::build(&AfQcnParams::default(), &Env::new(crate::Rate(8_000_000))).unwrap();
        let mut rng = <rand_pcg::Pcg64Mcg as rand_core::SeedableRng>::seed_from_u64(3);
        let (mut dropped, mut marks) = (vec![], crate::Marks::default());
        let now = crate::Time::ZERO;
        let mut context = Context { now, rng: &mut rng, dropped: &mut dropped, marks: &mut marks };
        // Flow 1 has three of four packets: 3 kB where 2 kB are fair.
        aqm.shadow = Shadow::new(10, Some(1.0), 8, Bytes(1000), &Env::new(crate::Rate(8)));
        for flow in [1, 1, 1, 2] {
            aqm.shadow.sample(&mut context, &Packet { flow, len: 1000, ..Packet::default() });
        }
        // 16.5 kB too many of 165 kB: 0.1 of 63 steps, 6 whole ones; the queue does not change.
        for (flow, fb_af, fb) in [(1, 21.0, 13.5), (2, 0.0, 3.0)] {
            aqm.q_old = 49_500.0;
            aqm.examine(49_500.0, flow);
            assert_eq!((aqm.fb_qcn, aqm.fb_af, aqm.fb), (6.0, fb_af, fb), "flow {flow}");
        }
        aqm.examine(33_000.0, 1);
        assert_eq!(aqm.fb, 0.0, "there is no congestion");
    }

    #[test]
    fn the_share_examined_grows_with_the_feedback() {
        let examined = |fb_qcn: f64| {
            let mut rng = <rand_pcg::Pcg64Mcg as rand_core::SeedableRng>::seed_from_u64(3);
            let mut fifo = crate::fifo::SingleFifo::default();
            let env = Env::new(crate::Rate(8_000_000));
            let mut aqm = AfQcn::build(&AfQcnParams::default(), &env).unwrap();
            let mut n = 0;
            for _ in 0..20_000 {
                let (mut dropped, mut marks) = (vec![], crate::Marks::default());
                let now = crate::Time::ZERO;
                let mut context =
                    Context { now, rng: &mut rng, dropped: &mut dropped, marks: &mut marks };
                let mut queue = QueueView::single(&mut fifo);
                (aqm.fb_qcn, aqm.q_old) = (fb_qcn, 1.0);
                aqm.on_enqueue(&mut context, &mut queue, &Packet::default());
                n += u32::from(aqm.q_old == 0.0);
            }
            f64::from(n) / 20_000.0
        };
        // Three standard errors are 0.002 and 0.006.
        assert!((examined(0.0) - 0.01).abs() < 0.002 && (examined(63.0) - 0.1).abs() < 0.006);
    }

    #[test]
    fn contradictions_are_refused() {
        let settings = [("p_max", crate::Setting::Text("0.001"))];
        let refusal = crate::build("af_qcn", &settings, crate::Rate(1_000_000)).unwrap_err();
        assert!(refusal.to_string().starts_with("p_max: 0.001 is below p_min"));
    }

    fn bare(settings: AfQcnParams) -> AfQcn {
        AfQcn::build(&settings, &Env::new(crate::Rate(8_000_000))).unwrap()
    }

    #[test]
    fn w_weighs_the_change_of_the_queue_and_scales_the_feedback() {
        let q_eq = Size::Packets(100);
        let mut aqm = bare(AfQcnParams { q_eq, w: 3.0, a: 0.0, ..AfQcnParams::default() });
        aqm.q_old = 120.0;
        aqm.examine(150.0, 1);
        // 50 + 3 * 30 of at most (1 + 2 * 3) * 100: a fifth of 63 steps, 12 whole ones.
        assert_eq!((aqm.fb_qcn, aqm.fb, aqm.q_old), (12.0, 12.0, 150.0));
        assert_eq!(aqm.fb_af, 0.0, "no packet was sampled yet");
    }

    #[test]
    fn packets_are_dropped_with_probability_fb_of_63() {
        let dropped = |a, packets: u32| {
            let mut rng = <rand_pcg::Pcg64Mcg as rand_core::SeedableRng>::seed_from_u64(3);
            let (mut fifo, mut pool) = (crate::fifo::Fifo::default(), crate::fifo::Pool::default());
            let q_eq = Size::Packets(2);
            let (p_min, p_max, s) = (1.0, 1.0, Some(1e9));
            let params = AfQcnParams { q_eq, p_min, p_max, s, a, ..AfQcnParams::default() };
            (0..packets).for_each(|_| fifo.push(&mut pool, Packet::default()));
            let mut marked = 0;
            for _ in 0..4_000 {
                let (mut dropped, mut marks) = (vec![], crate::Marks::default());
                let (now, mut aqm) = (crate::Time::ZERO, bare(params.clone()));
                let mut context =
                    Context { now, rng: &mut rng, dropped: &mut dropped, marks: &mut marks };
                let mut queue = QueueView::pooled(&mut fifo, &mut pool, 0);
                aqm.q_old = f64::from(packets);
                let verdict = aqm.on_enqueue(&mut context, &mut queue, &Packet::default());
                marked += u32::from(verdict == Verdict::Mark);
            }
            f64::from(marked) / 4_000.0
        };
        // Five too many of at most (1 + 2 * 2) * 2: 31 steps. Three standard errors are 0.024.
        assert!((dropped(0.0, 7) - 31.0 / 63.0).abs() < 0.024);
        assert_eq!((dropped(0.0, 2), dropped(0.0, 12)), (0.0, 1.0));
    }
}
