//! Curvy RED: two coupled queues for L4S and Classic packets, with RED's probability squared.
//!
//! **Source** K. De Schepper, B. Briscoe, G. White, RFC 9332, 2023 (appendix B).
//!
//! **Decides** on departure.
//!
//! **Measures** an average of the delays of C packets; the sojourn time of L packets.
//!
//! **Symbols** `q_c`, `g_c`, `range_c` and `u` are Q_C, g_C, range_C and U of the RFC, `p_cl` is
//! p_CL. Its range_L is `range_c / coupling_factor`.
//!
//! **Algorithm** Packets with ECT(1) or CE join the queue L, all others the queue C. When a C
//! packet leaves, `q_c` moves by `2^-g_c` of its distance to the packet's delay. The packet is
//! dropped, or marked if it is ECN-capable, if `s = (q_c - min_th) / range_c` exceeds the largest
//! of `2u` random numbers: with probability s^(2u). An L packet is marked if it is older than
//! `step_thresh`, or if `p_cl = coupling_factor s` exceeds the largest of `u` random numbers.
//!
//! **Departures** (1) `min_th` is 0, as in the integer version of the RFC (section B.2); the 500 ms
//! printed in section B.1 would leave C without signals up to half a second. (2) The smaller of
//! `q_c` and the age of the oldest C packet counts (note 4 of the RFC, an option): the average
//! alone would never fall while C is empty. (3) In overload (`p_cl` of 1) both queues drop with the
//! probability of C, as DualPI2 does; the RFC mentions it without a listing. (4) One random number
//! in place of `u` or `2u`, compared with the power of the probability. (5) Time-shifted FIFO
//! serves C if L is empty, whatever the age.
//!
//! **Cost** 272 bytes of state; one random number per packet.

use super::dual::{CoupledAqm, DualParams, Lane, Queues};
use crate::build::Env;
use crate::context::Context;
use crate::entry::QdiscEntry;
use crate::error::Result;
use crate::packet::Packet;
use crate::params::Checked;
use crate::sched::dual::Dual;
use crate::snapshot::Snapshot;
use crate::units::Span;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<Dual<CurvyRed>>(
    "curvy_red",
    "two coupled queues for L4S and Classic packets under RED with a squared probability",
)
.aliases(&["dualq_curvy_red"])
.preset(&[("scheduler", "ts_fifo")])
.decides("on departure: the queue, and a drop or mark by the average delay in C, or a step in L")
.source("RFC 9332, appendix B");

crate::params! {
    /// Parameters of [`CurvyRed`].
    pub struct CurvyRedParams {
        /// Delay in C below which nothing is signalled by the average.
        min_th: Span = Span::ZERO, [Span::ZERO => Span::s(10)], "minTh", [];
        // A packet that is alone is dropped, too: the range must be longer than some packets take.
        /// Range of the average delay over which s grows from 0 to 1.
        range_c: Span = Span::ms(500), [Span::us(10) => Span::s(100)], "range_C", [];
        /// Coupling factor: mark probability in L divided by s, for u = 1.
        coupling_factor: f64 = 2.0, [0.1 => 255.0], "k", ["k"];
        /// Weight of the average as a negative power of 2.
        g_c: u64 = 5, [0 => 30], "g_C", ["f_c"];
        /// Curviness: C's drop probability is s^(2u).
        u: u64 = 1, [1 => 2], "U", ["cu"];
        /// Delay above which every L packet is marked.
        step_thresh: Span = Span::ms(1), [Span(1) => Span::s(10)], "T", ["step"];
        /// If true, both queues drop in overload; if false, they grow up to the limit.
        drop_on_overload: bool = true, [], "", [];
    }
}

/// State of Curvy RED for both queues.
#[derive(Clone, Debug, Snapshot)]
pub struct CurvyRed {
    params: CurvyRedParams,
    may_mark: bool,
    /// Average delay of C packets, seconds.
    q_c: f64,
}

impl CurvyRed {
    /// s at an average delay in seconds.
    fn s(&self, q_c: f64) -> f64 {
        (q_c - self.params.min_th.as_secs()).max(0.0) / self.params.range_c.as_secs()
    }

    /// True with the probability that `share` exceeds each of `n` random numbers.
    fn exceeds(context: &mut Context<'_>, share: f64, n: u64) -> bool {
        context.rng.bernoulli((0..n).fold(1.0, |power, _| power * share))
    }
}

impl CoupledAqm for CurvyRed {
    type Params = CurvyRedParams;

    fn new(params: Checked<'_, CurvyRedParams>, dual: &DualParams, _env: &Env) -> Result<Self> {
        Ok(CurvyRed { params: (*params).clone(), may_mark: dual.ecn, q_c: 0.0 })
    }

    // RFC 9332 Fig. 10
    fn on_dequeue(
        &mut self,
        context: &mut Context<'_>,
        queues: &Queues,
        lane: Lane,
        packet: &mut Packet,
    ) -> bool {
        let CurvyRedParams { coupling_factor: k, u, step_thresh, drop_on_overload, .. } =
            self.params;
        let delay = context.now.since(packet.arrived);
        if lane == Lane::C {
            let weight = 1.0 / (1u64 << self.params.g_c) as f64;
            self.q_c += weight * (delay.as_secs() - self.q_c);
            let s = self.s(self.q_c.min(delay.as_secs()));
            let overload = drop_on_overload && k * s >= 1.0;
            return !Self::exceeds(context, s, 2 * u)
                || (!overload && self.may_mark && context.mark(packet));
        }
        let age = queues.head(Lane::C).map_or(Span::ZERO, |t| context.now.since(t));
        let s = self.s(self.q_c.min(age.as_secs()));
        if k * s >= 1.0 {
            let drops = drop_on_overload && Self::exceeds(context, s, 2 * u);
            return !drops && context.mark(packet);
        }
        let signal = delay > step_thresh || Self::exceeds(context, k * s, u);
        !signal || context.mark(packet)
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        // Average delay of C packets, seconds.
        visit("q_c", self.q_c);
        // Drop probability of a C packet is s^(2u).
        visit("s", self.s(self.q_c));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Ecn;
    use crate::params::Params;
    use crate::testing::Bench;
    use crate::units::{Rate, Time};
    use crate::{Marks, Setting};
    use std::prelude::v1::*;

    /// Keeps 100 packets in C, each of which leaves after 100 ms; returns the share that is dropped
    /// of the second half, and the bench.
    fn standing(settings: &[(&str, &str)], ecn: Ecn, ms: u32) -> (f64, Bench) {
        let mut q = Bench::new("curvy_red", settings);
        q.ecn(ecn);
        let mut drops = 0;
        for i in 0..ms {
            q.at_ms(u64::from(i));
            q.put(i, 1000);
            if i >= 100 {
                // As many leave as arrive, so that drops do not shorten the delay.
                let dropped = q.get().1.len();
                (0..dropped).for_each(|_| drop(q.put(i, 1000)));
                drops += if i >= ms / 2 { dropped } else { 0 };
            }
        }
        (drops as f64 / f64::from(ms - ms / 2), q)
    }

    #[test]
    fn classic_packets_are_dropped_with_the_square_of_s() {
        let (share, q) = standing(&[("range_c", "400ms")], Ecn::NotEct, 40_000);
        let s = q.gauge("s");
        assert!((0.2..0.26).contains(&s), "a delay of about 100 ms: {s}");
        let square = s * s / (1.0 - s * s); // per packet that leaves
        assert!((share / square - 1.0).abs() < 0.15, "{share} and {square}");
        let (_, q) = standing(&[("range_c", "400ms")], Ecn::Ect0, 4_000);
        assert!(q.marked() > 100, "ECN-capable packets are marked: {}", q.marked());
    }

    #[test]
    fn the_average_moves_by_a_32nd() {
        let mut q = Bench::new("curvy_red", &[]);
        (0..3).for_each(|i| drop(q.put(i, 1000)));
        q.at_ms(32);
        q.get();
        assert!((q.gauge("q_c") - 0.001).abs() < 1e-12);
        q.get();
        assert!((q.gauge("q_c") - (0.001 + 0.031 / 32.0)).abs() < 1e-12);
    }

    #[test]
    fn a_range_of_ten_microseconds_suits_shorter_delays() {
        let mut q = Bench::new("curvy_red", &[("g_c", "0"), ("range_c", "10us")]);
        for (sent, delay, s) in [(1000, 2500, 0.25), (5000, 5000, 0.5), (20_000, 30_000, 3.0)] {
            q.at_ns(sent);
            q.put(1, 1000);
            q.at_ns(sent + delay);
            q.get();
            assert!((q.gauge("s") - s).abs() < 1e-9, "{delay}: {}", q.gauge("s"));
        }
    }

    #[test]
    fn an_l_packet_is_marked_when_old_or_by_the_delay_in_c() {
        let settings = [("g_c", "0"), ("range_c", "20ms"), ("drop_on_overload", "false")];
        let mut q = Bench::new("curvy_red", &settings);
        q.ecn(Ecn::Ect1);
        q.put(1, 1000);
        q.at_ms(1);
        q.get();
        assert_eq!(q.marked(), 0, "not older than 1 ms");
        q.put(2, 1000);
        q.at_ms(3);
        q.get();
        assert_eq!(q.marked(), 1);
        // A delay of 10 ms in C: k s = 1.
        q.ecn(Ecn::NotEct);
        (10..13).for_each(|i| drop(q.put(i, 1000)));
        q.at_ms(13);
        while q.gauge("q_c") == 0.0 {
            q.get();
        }
        q.ecn(Ecn::Ect1);
        q.put(3, 1000);
        q.get();
        assert_eq!(q.marked(), 2);
        // The average stays, but no C packet waits.
        while q.get().0.is_some() {}
        q.put(4, 1000);
        q.get();
        assert_eq!(q.marked(), 2);
    }

    fn aqm(settings: &[(&str, &str)], dual: &DualParams) -> CurvyRed {
        let mut own = CurvyRedParams::default();
        settings.iter().for_each(|(k, v)| own.set(k, Setting::Text(v)).unwrap());
        CurvyRed::new(own.checked().unwrap(), dual, &Env::new(Rate(8_000_000))).unwrap()
    }

    /// Shares of dropped and of marked packets of `lane` at an average delay of 50 ms, half of the
    /// range, while the packet waited for `waited` and the head of C for `head`.
    fn shares(aqm: &CurvyRed, lane: Lane, ecn: Ecn, waited: Span, head: Option<Span>) -> [f64; 2] {
        let mut rng = <rand_pcg::Pcg64Mcg as rand_core::SeedableRng>::seed_from_u64(5);
        let (mut queues, now) = (Queues::default(), Time(1_000_000_000));
        let arrived = |age: Span| Time(now.0 - age.0);
        if let Some(age) = head {
            queues.push(Lane::C, Packet { arrived: arrived(age), ..Packet::default() });
        }
        let (mut drops, mut marked) = (0, 0);
        for _ in 0..4_000 {
            let (mut dropped, mut marks) = (vec![], Marks::default());
            let mut context =
                Context { now, rng: &mut rng, dropped: &mut dropped, marks: &mut marks };
            let mut aqm = CurvyRed { q_c: 0.05, ..aqm.clone() };
            let mut packet = Packet { arrived: arrived(waited), ecn, ..Packet::default() };
            let sent = aqm.on_dequeue(&mut context, &queues, lane, &mut packet);
            drops += u32::from(!sent);
            marked += u32::from(sent && packet.ecn == Ecn::Ce);
        }
        [drops, marked].map(|n| f64::from(n) / 4_000.0)
    }

    /// Three standard errors of 4000 trials are at most 0.024.
    fn near(shares: [f64; 2], expected: [f64; 2]) -> bool {
        shares
            .iter()
            .zip(expected)
            .all(|(f, e)| (f - e).abs() < if e % 1.0 == 0.0 { 1e-9 } else { 0.024 })
    }

    /// The average does not move while a packet has waited as long.
    const WAITED: Span = Span::ms(50);
    const HALF: [(&str, &str); 2] = [("range_c", "100ms"), ("k", "1")];

    #[test]
    fn s_is_the_share_of_the_range_above_min_th() {
        let aqm = aqm(&[("min_th", "10ms"), ("range_c", "100ms")], &DualParams::default());
        assert_eq!([0.0, 0.005, 0.01].map(|q_c| aqm.s(q_c)), [0.0; 3]);
        assert!((aqm.s(0.06) - 0.5).abs() < 1e-12 && (aqm.s(0.21) - 2.0).abs() < 1e-12);
    }

    /// RFC 9332 figure 10 and section 4.2.2: in overload (k s of 1 or more) C drops.
    #[test]
    fn c_packets_are_signalled_with_the_power_of_s() {
        let on = DualParams::default();
        let off = DualParams { ecn: false, ..DualParams::default() };
        for (more, dual, ecn, expected) in [
            (&[][..], &on, Ecn::NotEct, [0.25, 0.0]),
            (&[("u", "2")], &on, Ecn::NotEct, [0.0625, 0.0]),
            (&[], &on, Ecn::Ect0, [0.0, 0.25]),
            (&[], &off, Ecn::Ect0, [0.25, 0.0]),
            (&[("k", "2")], &on, Ecn::Ect0, [0.25, 0.0]),
            (&[("k", "1.999")], &on, Ecn::Ect0, [0.0, 0.25]),
            (&[("k", "2"), ("drop_on_overload", "false")], &on, Ecn::Ect0, [0.0, 0.25]),
        ] {
            let aqm = aqm(&[&HALF[..], more].concat(), dual);
            let result = shares(&aqm, Lane::C, ecn, WAITED, None);
            assert!(near(result, expected), "{more:?} {ecn:?}: {result:?}");
        }
        // The smaller of the average and of the packet's own delay counts.
        let aqm = aqm(&[&HALF[..], &[("g_c", "30")]].concat(), &on);
        assert_eq!(shares(&aqm, Lane::C, Ecn::NotEct, Span::ZERO, None), [0.0; 2]);
    }

    #[test]
    fn l_packets_are_marked_with_the_power_of_k_s() {
        let on = DualParams::default();
        let head = Some(WAITED);
        for (more, head, expected) in [
            (&[][..], head, [0.0, 0.5]),
            (&[("u", "2")], head, [0.0, 0.25]),
            (&[("k", "0.5")], head, [0.0, 0.25]),
            (&[], None, [0.0, 0.0]),
            (&[], Some(Span::ms(25)), [0.0, 0.25]),
            (&[("k", "2")], head, [0.25, 0.75]),
            (&[("k", "4"), ("u", "2")], head, [0.0625, 0.9375]),
            (&[("k", "2"), ("drop_on_overload", "false")], head, [0.0, 1.0]),
        ] {
            let aqm = aqm(&[&HALF[..], more].concat(), &on);
            let result = shares(&aqm, Lane::L, Ecn::Ect1, Span::ZERO, head);
            assert!(near(result, expected), "{more:?} {head:?}: {result:?}");
        }
    }

    #[test]
    fn all_state_is_in_the_type() {
        let params = CurvyRedParams::default();
        assert_eq!(CurvyRed { params, may_mark: true, q_c: 0.0 }.heap(), 0);
    }
}
