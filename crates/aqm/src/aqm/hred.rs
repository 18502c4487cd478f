//! HRED: hybrid RED, which maps the instantaneous queue to a drop probability and adapts the map
//! outside a band.
//!
//! **Source** C. Joo, S. Bahk, S. Lumetta, "A Hybrid Active Queue Management for Stability and Fast
//! Adaptation", Journal of Communications and Networks; equation numbers refer to it.
//!
//! **Decides** on arrival.
//!
//! **Measures** the instantaneous queue, in the unit of `limit`.
//!
//! **Symbols** `B` limit, `min_th`, `max_th`, `kappa`, `p_min` and `p_max` drop probabilities at
//! the thresholds, `K_alpha` and `K_beta` gains, `T_alpha` and `T_beta` response times, `S` mean
//! packet size, `C` link rate, `CR` = C RTT.
//!
//! **Algorithm** p = p_min (1 + (q - min_th) / (kappa max_th)) for every queue q, which is (8) with
//! p_max - p_min as in (10). An arrival that finds more than max_th raises p_min by K_alpha p times
//! the excess. One that finds less than min_th lowers it by K_beta p times the deficit. Between the
//! thresholds p_min stays. K = 2 S / (C T)^2 (14, 15), so that the response to a change of load
//! takes T. Configuration: T_beta is the largest round-trip time (conservative), T_alpha twice
//! that, and B - max_th is twice min_th (asymmetric); both are the defaults.
//!
//! **Departures** The paper does not say: (1) p_min stays between `floor` and 1, since from 0 it
//! would never rise, and starts at 0.01. (2) A step is at most half of p_min. (3) The drop
//! probability is the one before the step; an arrival that overflows the buffer makes the step,
//! too. (4) `fixed_point` represents probabilities in units of 2^-bits, rounded towards 0, like the
//! kernel of the paper's testbed; its number of bits is not known. (5) p_min does not change while
//! no packet arrives: the first packet after an idle time is dropped with the p_min that the last
//! one left, and p is above 0 even if the queue is empty.
//!
//! **Cost** 144 bytes of state; a random number and a few multiplications per arrival.

use super::{Aqm, SingleQueue, Verdict};
use crate::build::Env;
use crate::cast;
use crate::context::Context;
use crate::entry::QdiscEntry;
use crate::error::{Error, Result};
use crate::fifo::QueueView;
use crate::packet::Packet;
use crate::params::Checked;
use crate::units::{Bytes, Rate, Size, Span};
use alloc::format;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<SingleQueue<Hred>>(
    "hred",
    "hybrid RED: maps the queue to a drop probability, and adapts the map outside a band",
)
.decides("on arrival: a drop probability that grows with the queue, by an adaptive map")
.source("Joo, Bahk and Lumetta, Journal of Communications and Networks");

crate::params! {
    /// Parameters of [`Hred`]; `auto` is computed from the others.
    pub struct HredParams {
        /// Queue below which p_min decreases, in the unit of limit; auto is a quarter of limit, or
        /// half of the room above max_th.
        min_th: Option<Size> = None,
            [Some(Size::Packets(1)) => Some(Size::Packets(1_000_000_000_000))],
            "min_th", ["minth", "min"];
        /// Queue above which p_min increases; auto is half of limit, or limit less twice min_th.
        max_th: Option<Size> = None,
            [Some(Size::Packets(1)) => Some(Size::Packets(1_000_000_000_000))],
            "max_th", ["maxth", "max"];
        /// Flatness of the map: with a larger value the queue is stable at longer round-trip times,
        /// but responds more slowly.
        kappa: f64 = 2.0, [0.01 => 1000.0], "kappa", [];
        /// Largest average round-trip time, from which the response times follow.
        rtt: Span = Span::ms(200), [Span::us(1) => Span::s(100)], "RTT+", ["max_rtt"];
        /// Time to respond to an increase of the load; auto is twice t_beta.
        t_alpha: Option<Span> = None,
            [Some(Span::us(1)) => Some(Span::s(1000))], "T_alpha", ["ta"];
        /// Time to respond to a decrease of the load; auto is rtt.
        t_beta: Option<Span> = None,
            [Some(Span::us(1)) => Some(Span::s(1000))], "T_beta", ["tb"];
        /// Mean packet size, headers included.
        packet: Bytes = Bytes(500),
            [Bytes(1) => Bytes(1_000_000)], "S", ["mean_packet", "mean_pktsize", "avpkt"];
        /// Initial p_min.
        p_min: f64 = 0.01, [1e-9 => 1.0], "p_min", ["pmin"];
        /// Smallest p_min.
        floor: f64 = 1e-5, [1e-9 => 0.1], "", ["p_floor"];
        /// Fractional bits of the probabilities, 0 for floating point.
        fixed_point: u64 = 0, [0 => 50], "", [];
    }
}

/// Gain of one unit (a byte or a packet) of deviation from the band, relative to p, equations (14)
/// and (15).
pub fn gain(rate: Rate, packet: Bytes, t: Span, in_bytes: bool) -> f64 {
    // Amount that the link sends in t, and the mean packet, in that unit.
    let packets = rate.packets_per_sec(packet) * t.as_secs();
    let s = if in_bytes { packet.0 as f64 } else { 1.0 };
    2.0 / (packets * packets * s)
}

/// Factor by which a deviation of the queue from `q` grows in one round trip (9).
///
/// Stable below 1, which is (11): q > CR + 2 min_th - 2 kappa max_th. All arguments have the same
/// unit.
pub fn deviation_gain(q: f64, cr: f64, [min_th, max_th]: [f64; 2], kappa: f64) -> f64 {
    (q + cr) / (2.0 * (kappa * max_th + q - min_th))
}

/// Smallest buffer with which every queue above min_th is stable, for the thresholds B/4 and B/2.
pub fn stable_buffer(cr: f64, kappa: f64) -> f64 {
    4.0 / (4.0 * kappa - 1.0) * cr
}

/// Largest relative change of the load that neither fills nor empties the buffer (16).
pub fn largest_change(buffer: f64, cr: f64, [min_th, max_th]: [f64; 2]) -> f64 {
    ((buffer - max_th) / (max_th + cr)).min(min_th / (min_th + cr))
}

/// State of HRED.
#[derive(Clone, Debug)]
pub struct Hred {
    /// Thresholds, in the unit of the limit.
    min_th: f64,
    max_th: f64,
    /// True if that unit is the byte.
    in_bytes: bool,
    /// kappa max_th: the increase of the queue that raises p by p_min.
    scale: f64,
    k_alpha: f64,
    k_beta: f64,
    floor: f64,
    /// Units of a probability in fixed point, 2^bits; 0 for floating point.
    units: f64,
    /// Drop probability at a queue of min_th.
    p_min: f64,
    /// Drop probability at the last arrival, for inspection.
    p: f64,
}

/// Computes the thresholds; B - max_th = 2 min_th if one or both are not given.
fn thresholds(params: &HredParams, limit: Size) -> Result<[f64; 2]> {
    let buffer = limit.number() as f64;
    for (name, th) in [("min_th", params.min_th), ("max_th", params.max_th)] {
        if let Some(th) = th.filter(|th| th.in_bytes() != limit.in_bytes()) {
            let text = format!("{th} is in another unit than limit ({limit})");
            return Err(Error::new(text).at(name));
        }
    }
    let number = |th: Option<Size>| th.map(|th| th.number() as f64);
    let [min_th, max_th] = match (number(params.min_th), number(params.max_th)) {
        (Some(min_th), Some(max_th)) => [min_th, max_th],
        (Some(min_th), None) => [min_th, buffer - 2.0 * min_th],
        (None, Some(max_th)) => [(buffer - max_th) / 2.0, max_th],
        (None, None) => [buffer / 4.0, buffer / 2.0],
    };
    if 0.0 < min_th && min_th < max_th && max_th <= buffer {
        return Ok([min_th, max_th]);
    }
    let at = if params.max_th.is_some() { "max_th" } else { "min_th" };
    let text = format!("min_th {min_th}, max_th {max_th} and limit {buffer} are not in this order");
    Err(Error::new(text).at(at))
}

impl Hred {
    /// Rounds a probability to the representation in use.
    fn cut(&self, p: f64) -> f64 {
        if self.units > 0.0 { cast::trunc(p * self.units) as f64 / self.units } else { p }
    }

    // (8) with (10)
    fn probability(&self, q: f64) -> f64 {
        self.cut((self.p_min * (1.0 + (q - self.min_th) / self.scale)).clamp(0.0, 1.0))
    }

    /// Adapts p_min; `p` is the drop probability at `q`.
    fn adjust(&mut self, q: f64, p: f64) {
        let most = 0.5 * self.p_min;
        if q > self.max_th {
            self.p_min += self.cut((self.k_alpha * p * (q - self.max_th)).min(most));
        } else if q < self.min_th {
            self.p_min -= self.cut((self.k_beta * p * (self.min_th - q)).min(most));
        }
        self.p_min = self.p_min.clamp(self.floor, 1.0);
    }
}

impl Aqm for Hred {
    type Params = HredParams;

    fn new(params: Checked<'_, HredParams>, env: &Env) -> Result<Self> {
        let HredParams { packet, p_min, floor, fixed_point, .. } = *params;
        let in_bytes = env.limit.in_bytes();
        let [min_th, max_th] = thresholds(&params, env.limit)?;
        let t_beta = params.t_beta.unwrap_or(params.rtt);
        let t_alpha = params.t_alpha.unwrap_or(t_beta + t_beta);
        let units = if fixed_point == 0 { 0.0 } else { (1u64 << fixed_point) as f64 };
        // At least one unit, otherwise p_min could stay at 0.
        let floor = if units > 0.0 { floor.max(1.0 / units) } else { floor };
        // A link of rate 0 has no bandwidth-delay product; its gains must be numbers all the same.
        let rate = Rate(env.rate.0.max(1));
        let mut hred = Hred {
            min_th,
            max_th,
            in_bytes,
            scale: params.kappa * max_th,
            k_alpha: gain(rate, packet, t_alpha, in_bytes),
            k_beta: gain(rate, packet, t_beta, in_bytes),
            floor,
            units,
            p_min: 0.0,
            p: 0.0,
        };
        hred.p_min = hred.cut(p_min).max(floor);
        Ok(hred)
    }

    fn on_enqueue(
        &mut self,
        context: &mut Context<'_>,
        queue: &mut QueueView<'_>,
        _packet: &Packet,
    ) -> Verdict {
        let q = if self.in_bytes { queue.bytes() as f64 } else { f64::from(queue.packets()) };
        self.p = self.probability(q);
        self.adjust(q, self.p);
        if context.rng.bernoulli(self.p) { Verdict::Mark } else { Verdict::Pass }
    }

    fn decides_at_enqueue(&self) -> bool {
        true
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        // Drop probability at the last arrival.
        visit("p", self.p);
        // Drop probability at min_th.
        visit("p_min", self.p_min);
        // Drop probability at max_th.
        visit("p_max", self.probability(self.max_th));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;
    use std::prelude::v1::*;

    /// HRED on a link of 45 mbit with a buffer of 300 kB, as in the paper's simulations.
    fn aqm(params: HredParams) -> Hred {
        let env = Env { limit: Size::Bytes(300_000), ..Env::new(Rate(45_000_000)) };
        Hred::build(&params, &env).unwrap()
    }

    fn near(got: f64, expected: f64) -> bool {
        (got / expected - 1.0).abs() < 1e-4
    }

    #[test]
    fn the_configuration_follows_from_the_round_trip_time() {
        // Simulation and testbed of the paper, gains per byte.
        let h = aqm(HredParams::default());
        assert_eq!((h.min_th, h.max_th), (75_000.0, 150_000.0));
        assert!(near(h.k_alpha, 1.9753e-10) && near(h.k_beta, 7.9012e-10), "{}", h.k_alpha);
        let (slow, s) = (Rate(10_000_000), Bytes(500));
        assert!(near(gain(slow, s, Span::ms(200), true), 1.6e-8));
        assert!(near(gain(slow, s, Span::ms(100), true), 6.4e-8));
        // In packets: 2 / (11250 per second times 0.2 s)^2.
        assert!(near(gain(Rate(45_000_000), s, Span::ms(200), false), 2.0 / 2250.0 / 2250.0));
        let rtt = HredParams { rtt: Span::ms(100), ..HredParams::default() };
        assert_eq!(aqm(rtt).k_alpha, gain(Rate(45_000_000), s, Span::ms(200), true));
        let t_beta = HredParams { t_beta: Some(Span::ms(50)), ..HredParams::default() };
        assert_eq!(aqm(t_beta).k_alpha, gain(Rate(45_000_000), s, Span::ms(100), true));
    }

    #[test]
    fn thresholds_leave_twice_as_much_above_as_below() {
        let th = |min_th: Option<u64>, max_th: Option<u64>| {
            let [min_th, max_th] = [min_th, max_th].map(|th| th.map(Size::Bytes));
            let params = HredParams { min_th, max_th, ..HredParams::default() };
            let th = thresholds(&params, Size::Bytes(300_000));
            th.map_err(|e| e.to_string())
        };
        assert_eq!(th(Some(60_000), None), Ok([60_000.0, 180_000.0]));
        assert_eq!(th(None, Some(200_000)), Ok([50_000.0, 200_000.0]));
        assert_eq!(th(Some(10_000), Some(290_000)), Ok([10_000.0, 290_000.0]));
        assert!(th(Some(100_000), None).unwrap_err().starts_with("min_th:"));
        assert!(th(Some(10_000), Some(300_001)).unwrap_err().starts_with("max_th:"));
        assert!(th(None, Some(300_000)).unwrap_err().starts_with("max_th:"));
        let packets = HredParams { min_th: Some(Size::Packets(9)), ..HredParams::default() };
        let refusal = thresholds(&packets, Size::Bytes(300_000)).unwrap_err().to_string();
        assert_eq!(refusal, "min_th: 9p is in another unit than limit (300kB)");
    }

    #[test]
    fn the_map_runs_through_all_queues() {
        // From 0.75 p_min when empty to 1.75 p_min at twice max_th, p_max = 1.25 p_min (10).
        let h = aqm(HredParams::default());
        let relative = [0.0, 75e3, 150e3, 300e3].map(|q| h.probability(q) / 0.01);
        for (got, expected) in relative.into_iter().zip([0.75, 1.0, 1.25, 1.75]) {
            assert!((got - expected).abs() < 1e-12, "{got}");
        }
        let certain = aqm(HredParams { p_min: 0.8, ..HredParams::default() });
        assert_eq!(certain.probability(300e3), 1.0);
        let steep = aqm(HredParams { kappa: 0.1, ..HredParams::default() });
        assert_eq!(steep.probability(0.0), 0.0, "p_min (1 - 75/15) is below 0");
    }

    /// p_min after an arrival at `q`, from 0.01.
    fn after(params: HredParams, q: f64) -> f64 {
        let mut h = aqm(params);
        let p = h.probability(q);
        h.adjust(q, p);
        h.p_min
    }

    #[test]
    fn p_min_moves_outside_the_band_only() {
        let moved = |q| after(HredParams::default(), q) - 0.01;
        assert_eq!([75e3, 100e3, 150e3].map(moved), [0.0; 3]);
        // 1.9753e-10 of (0.01 * 1.4166) times 50,000; 7.9012e-10 of (0.01 * 0.8333) times 50,000.
        assert!(near(moved(200e3), 1.9753e-10 * 0.01 * (1.0 + 125.0 / 300.0) * 50e3));
        assert!(near(moved(25e3), -7.9012e-10 * 0.01 * (1.0 - 50.0 / 300.0) * 50e3));
    }

    #[test]
    fn steps_are_at_most_half_and_end_at_floor_and_one() {
        let fast = || HredParams { rtt: Span::us(100), ..HredParams::default() };
        assert_eq!(after(fast(), 300e3), 0.015);
        assert_eq!(after(fast(), 0.0), 0.005);
        let mut h = aqm(fast());
        for (q, end) in [(300e3, 1.0), (0.0, 1e-5), (300e3, 1.0)] {
            for _ in 0..50 {
                let p = h.probability(q);
                h.adjust(q, p);
            }
            assert_eq!(h.p_min, end, "from the floor it rises again");
        }
    }

    #[test]
    fn fixed_point_cuts_probabilities_and_steps() {
        let bits = |fixed_point| HredParams { fixed_point, ..HredParams::default() };
        // 0.01 in units of 2^-16 is 655, 0.75 of it 491; a step of 3.5e-8 is less than a unit.
        let unit = 1.0 / 65_536.0;
        assert_eq!(aqm(bits(16)).p_min, 655.0 * unit);
        assert_eq!(aqm(bits(16)).probability(0.0), 491.0 * unit);
        assert_eq!(after(bits(16), 300e3), 655.0 * unit, "a small step is lost");
        assert!(near(after(bits(40), 300e3), after(bits(0), 300e3)));
        // The floor is at least one unit.
        assert_eq!(aqm(HredParams { p_min: 1e-9, ..bits(16) }).p_min, unit);
    }

    #[test]
    fn stability_as_in_the_theory() {
        // 45 mbit and 120 ms are a bandwidth-delay product of 675 kB.
        let th = |buffer: f64| [buffer / 4.0, buffer / 2.0];
        assert!((deviation_gain(112.5, 675.0, th(300.0), 2.0) - 1.1667).abs() < 1e-4);
        // (11) at B = 300 kB: from 225 kB on.
        assert!((deviation_gain(225.0, 675.0, th(300.0), 2.0) - 1.0).abs() < 1e-12);
        assert!(deviation_gain(0.0, 675.0, th(500.0), 2.0) < 1.0, "500 kB: always");
        let least = stable_buffer(675.0, 2.0);
        assert!((least / 675.0 - 0.571).abs() < 1e-3);
        assert!((deviation_gain(least / 4.0, 675.0, th(least), 2.0) - 1.0).abs() < 1e-12);
        assert!((largest_change(300.0, 675.0, th(300.0)) - 0.1).abs() < 1e-12);
    }

    #[test]
    fn a_deviation_grows_or_shrinks_by_the_gain() {
        // (5): one round trip later the queue is what N flows send at the previous drop
        // probability, K N / sqrt(p) - CR. K N is such that `rest` is the fixed point; the start is
        // 1 % off.
        for (cr, rest, kappa) in [(675e3, 112.5e3, 2.0), (675e3, 112.5e3, 4.0), (300e3, 80e3, 2.0)]
        {
            let h = aqm(HredParams { kappa, ..HredParams::default() });
            let kn = (rest + cr) * libm::sqrt(h.probability(rest));
            let next = |q: f64| kn / libm::sqrt(h.probability(q)) - cr;
            let gain = deviation_gain(rest, cr, [h.min_th, h.max_th], kappa);
            let growth = (next(rest * 1.0001) - rest) / (rest * 0.0001);
            assert!((growth + gain).abs() < 1e-3 * gain, "{growth}, not {}", -gain);
            let after = (0..40).fold(rest * 1.01, |q, _| next(q));
            let settled = (after - rest).abs() < 0.01 * rest;
            assert_eq!(settled, gain < 1.0, "{gain}: {after}");
        }
    }

    #[test]
    fn time_alone_changes_nothing() {
        let mut q = Bench::new("hred", &[("limit", "8p"), ("rtt", "1ms"), ("packet", "1000B")]);
        for i in 0..12 {
            q.put(i, 1000);
        }
        let before = q.gauge("p_min");
        assert!(before > 0.01, "more than 4 wait: {before}");
        q.drain();
        q.at_ms(86_400_000);
        assert_eq!(q.gauge("p_min"), before);
        // The first packet after the idle time finds an empty queue, two less than min_th, and p =
        // 0.75 p_min.
        q.put(20, 1000);
        let k_beta = gain(Rate(8_000_000), Bytes(1000), Span::ms(1), false);
        assert_eq!(k_beta, 2.0);
        assert_eq!(q.gauge("p_min"), before / 2.0, "3 p_min would be more than half");
        assert!((q.gauge("p_max") / q.gauge("p_min") - 1.25).abs() < 1e-12);
    }

    // Equation 16.
    #[test]
    fn the_largest_change_of_the_load_is_bounded_on_both_sides() {
        // With a buffer of 300: 150 / 250 until it overflows, 75 / 175 until the queue is empty.
        assert!(near(largest_change(300.0, 100.0, [75.0, 150.0]), 75.0 / 175.0));
        // With a buffer of 200, 50 / 250 until it overflows.
        assert!(near(largest_change(200.0, 100.0, [75.0, 150.0]), 0.2));
    }
}
