//! PI2: linear controller of the queueing delay whose output is squared.
//!
//! **Source** K. De Schepper, O. Bondarenko, I.-J. Tsang, B. Briscoe, "PI2: A Linearized AQM for
//! both Classic and Scalable TCP", CoNEXT 2016.
//!
//! **Decides** on arrival.
//!
//! **Measures** the sojourn time of the last packet dequeued.
//!
//! **Symbols** `alpha`, `beta`, `target`, `t_update`, `k` as in the paper; `p_prime` is its p'.
//!
//! **Algorithm** Every `t_update`, p' changes by `alpha (qdelay - target) + beta (qdelay -
//! qdelay_old)`. No table of gains is needed, since a Classic packet is dropped with probability
//! p'^2: if two random numbers are both below p'. A Scalable packet is marked with probability `k
//! p'`, so that both kinds of TCP get about the same rate.
//!
//! **Departures** (1) Scalable packets have ECT(1) or CE, as in RFC 9331, and only if `ecn` is set.
//! (2) Several updates at the same delay are computed in one step. (3) p' may reach 1; the paper
//! limits it in overload. (4) The random number is drawn even if the buffer turns out to be full.
//! (5) Updates count from the first arrival: the first one comes `t_update` later.
//!
//! **Cost** 176 bytes of state; two random numbers per Classic packet, one per Scalable packet;
//! O(1) after any idle time.

use super::{Aqm, SingleQueue, Verdict};
use crate::build::Env;
use crate::context::Context;
use crate::entry::QdiscEntry;
use crate::error::Result;
use crate::fifo::QueueView;
use crate::packet::{Ecn, Packet};
use crate::params::Checked;
use crate::snapshot::Snapshot;
use crate::timer::{Period, Timer};
use crate::units::{Span, Time};

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<SingleQueue<Pi2>>(
    "pi2",
    "linear controller of the queueing delay, its output squared for Classic TCP",
)
.decides("on arrival: a drop probability p'^2, or k p' for ECT(1), where p' integrates the delay")
.source("De Schepper, Bondarenko, Tsang and Briscoe, CoNEXT 2016");

crate::params! {
    /// Parameters of [`Pi2`].
    pub struct Pi2Params {
        /// Target queueing delay.
        target: Span = Span::ms(20), [Span::us(1) => Span::s(10)], "target", [];
        /// Time between updates of p'.
        t_update: Span = Span::ms(32), [Span::us(1) => Span::s(10)], "T", ["tupdate"];
        /// Gain of the difference between delay and target, per second.
        alpha: f64 = 0.3125, [0.0 => 1e6], "alpha", [];
        /// Gain of the change of the delay, per second.
        beta: f64 = 3.125, [0.0 => 1e6], "beta", [];
        /// Mark probability of a Scalable packet divided by p'.
        k: f64 = 2.0, [0.1 => 100.0], "k", ["coupling_factor"];
    }
}

/// State of PI2.
#[derive(Clone, Debug, Snapshot)]
pub struct Pi2 {
    params: Pi2Params,
    /// True if packets may be marked.
    ecn: bool,
    /// Output of the controller: square root of the drop probability.
    p_prime: f64,
    /// Queueing delay at the last update.
    qdelay_old: Span,
    /// Sojourn time of the last packet dequeued.
    sojourn: Span,
    updates: Timer,
}

impl Aqm for Pi2 {
    type Params = Pi2Params;

    fn new(params: Checked<'_, Pi2Params>, env: &Env) -> Result<Self> {
        let (params, ecn) = ((*params).clone(), env.ecn);
        let (qdelay_old, sojourn) = (Span::ZERO, Span::ZERO);
        let updates = Timer::new(env, Period::Every(params.t_update));
        Ok(Pi2 { params, ecn, p_prime: 0.0, qdelay_old, sojourn, updates })
    }

    // The schedule of updates follows from t_update: it stays.
    fn reconfigure(&mut self, fresh: &Self) -> bool {
        let same = fresh.params.t_update == self.params.t_update;
        if same {
            (self.params, self.ecn) = (fresh.params.clone(), fresh.ecn);
        }
        same
    }

    fn on_first_packet(&mut self, now: Time) {
        self.updates.start(now);
    }

    fn on_update(&mut self, now: Time, queue: &QueueView<'_>) {
        let Pi2Params { target, alpha, beta, .. } = self.params;
        let n = self.updates.due(now);
        if n == 0 {
            return;
        }
        let qdelay = if queue.packets() == 0 { Span::ZERO } else { self.sojourn };
        let (delay, old) = (qdelay.as_secs(), self.qdelay_old.as_secs());
        let drift = alpha * (delay - target.as_secs());
        self.p_prime = (self.p_prime + drift + beta * (delay - old)).clamp(0.0, 1.0);
        // From the second update on the delay is unchanged: all steps are equal.
        self.p_prime = (self.p_prime + (n - 1) as f64 * drift).clamp(0.0, 1.0);
        self.qdelay_old = qdelay;
    }

    fn on_enqueue(
        &mut self,
        context: &mut Context<'_>,
        _line: &mut QueueView<'_>,
        packet: &Packet,
    ) -> Verdict {
        let scalable = self.ecn && matches!(packet.ecn, Ecn::Ect1 | Ecn::Ce);
        let signal = if scalable {
            context.rng.bernoulli((self.params.k * self.p_prime).min(1.0))
        } else {
            let both = [context.rng.bernoulli(self.p_prime), context.rng.bernoulli(self.p_prime)];
            both == [true, true]
        };
        if signal { Verdict::Mark } else { Verdict::Pass }
    }

    fn on_dequeue(
        &mut self,
        context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        _ecn: bool,
    ) -> Option<Packet> {
        let packet = queue.pop()?;
        self.sojourn = context.now.since(packet.arrived);
        Some(packet)
    }

    fn decides_at_enqueue(&self) -> bool {
        true
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("p_prime", self.p_prime);
        // Drop probability of a Classic packet.
        visit("p", self.p_prime * self.p_prime);
        // Queueing delay at the last update, seconds.
        visit("qdelay_old", self.qdelay_old.as_secs());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fifo::SingleFifo;
    use crate::testing::Bench;
    use std::prelude::v1::*;

    /// A hundred packets of 1 ms at once; at 40 and 70 ms one leaves.
    fn two_leave(settings: &[(&str, &str)]) -> Bench {
        let mut q = Bench::new("pi2", settings);
        (0..100).for_each(|i| assert!(q.put(i, 1000).is_empty()));
        [40, 70].into_iter().for_each(|ms| {
            q.at_ms(ms);
            q.get();
        });
        q
    }

    #[test]
    fn with_times_of_microseconds_p_is_that_of_the_default() {
        let fast =
            [("target", "2us"), ("t_update", "3200ns"), ("alpha", "3125"), ("beta", "31250")];
        let (slow, mut q) = (two_leave(&[]), Bench::new("pi2", &fast));
        (0..100).for_each(|i| assert!(q.put(i, 1000).is_empty()));
        for ns in [4_000, 7_000] {
            q.at_ns(ns);
            q.get();
        }
        let p = q.gauge("p_prime");
        assert!((p - slow.gauge("p_prime")).abs() < 1e-12 && p > 0.1, "{p}");
    }

    #[test]
    fn updates_by_hand() {
        // At 32 ms no packet has left; at 64 the delay is 40 ms: 0.3125 * 0.02 + 3.125 * 0.04.
        let q = two_leave(&[]);
        assert!((q.gauge("p_prime") - 0.13125).abs() < 1e-12);
        assert!((q.gauge("p") - 0.13125 * 0.13125).abs() < 1e-12);
        // At 96, 128 and 160 ms it is 70: 0.3125 * 0.05 each time and 3.125 * 0.03 once.
        let mut q = q;
        q.at_ms(160);
        q.get();
        assert!((q.gauge("p_prime") - (0.13125 + 3.0 * 0.015_625 + 0.09375)).abs() < 1e-12);
    }

    #[test]
    fn a_day_ends_at_the_bounds() {
        let mut q = two_leave(&[]);
        q.at_ms(86_400_000);
        assert_eq!(q.put(100, 1000), [100]);
        assert_eq!(q.gauge("p"), 1.0);
        q.drain();
        q.at_ms(2 * 86_400_000);
        assert!(q.put(101, 1000).is_empty());
        assert_eq!(q.gauge("p"), 0.0);
    }

    #[test]
    fn classic_packets_meet_the_square_and_scalable_ones_the_double() {
        let share = |ecn: bool, codepoint: Ecn| {
            let env = Env { ecn, ..Env::new(crate::units::Rate(8_000_000)) };
            let mut aqm = Pi2::build(&Pi2Params::default(), &env).unwrap();
            aqm.p_prime = 0.3;
            let mut rng = <rand_pcg::Pcg64Mcg as rand_core::SeedableRng>::seed_from_u64(5);
            let mut fifo = SingleFifo::default();
            let mut queue = QueueView::single(&mut fifo);
            let (now, mut dropped, mut marks) = (Time::ZERO, vec![], crate::Marks::default());
            let mut context =
                Context { now, rng: &mut rng, dropped: &mut dropped, marks: &mut marks };
            let packet = Packet { ecn: codepoint, ..Packet::default() };
            let signal =
                |_: &u32| aqm.on_enqueue(&mut context, &mut queue, &packet) == Verdict::Mark;
            (0..100_000).filter(signal).count() as f64 / 1e5
        };
        // The standard error is below 0.0016.
        for (ecn, codepoint, expected) in [
            (true, Ecn::NotEct, 0.09),
            (true, Ecn::Ect0, 0.09),
            (true, Ecn::Ect1, 0.6),
            (true, Ecn::Ce, 0.6),
            (false, Ecn::Ect1, 0.09),
        ] {
            let share = share(ecn, codepoint);
            assert!((share - expected).abs() < 0.005, "{codepoint:?}: {share}");
        }
    }
}
