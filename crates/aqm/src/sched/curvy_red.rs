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
use crate::context::Context;
use crate::error::Result;
use crate::packet::Packet;
use crate::params::Checked;
use crate::qdisc::Env;
use crate::units::Span;

crate::params! {
    /// Parameters of [`CurvyRed`].
    pub struct CurvyRedParams: aqm {
        /// Delay in C below which nothing is signalled by the average.
        min_th: Span = Span::ZERO, [Span::ZERO => Span::s(10)], "minTh", [];
        /// Range of the average delay over which s grows from 0 to 1.
        range_c: Span = Span::ms(500), [Span::ms(1) => Span::s(100)], "range_C", [];
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
#[derive(Clone, Debug)]
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

    fn from_checked(
        params: Checked<'_, CurvyRedParams>,
        dual: &DualParams,
        _env: &Env,
    ) -> Result<Self> {
        Ok(CurvyRed { params: (*params).clone(), may_mark: dual.ecn, q_c: 0.0 })
    }

    // RFC 9332 Fig. 10
    fn on_departure(
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

    fn inspect(&self, see: &mut dyn FnMut(&'static str, f64)) {
        // Average delay of C packets, seconds.
        see("q_c", self.q_c);
        // Drop probability of a C packet is s^(2u).
        see("s", self.s(self.q_c));
    }
}

#[cfg(test)]
mod tests {
    use crate::packet::Ecn;
    use crate::testing::Bench;
    use std::prelude::v1::*;

    /// Keeps 100 packets in C, each of which leaves after 100 ms; returns the share that is dropped
    /// of the second half, and the bench.
    fn standing(settings: &[(&str, &str)], ecn: Ecn, ms: u32) -> (f64, Bench) {
        let mut q = Bench::new("curvy_red", settings);
        q.ecn(ecn);
        let mut lost = 0;
        for i in 0..ms {
            q.at_ms(u64::from(i));
            q.put(i, 1000);
            if i >= 100 {
                // As many leave as arrive, so that drops do not shorten the delay.
                let dropped = q.get().1.len();
                (0..dropped).for_each(|_| drop(q.put(i, 1000)));
                lost += if i >= ms / 2 { dropped } else { 0 };
            }
        }
        (lost as f64 / f64::from(ms - ms / 2), q)
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
}
