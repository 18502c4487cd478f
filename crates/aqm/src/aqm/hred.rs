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
//! that, and B - max_th is twice min_th (asymmetric); both are the defaults. With `overflow =
//! "step"` every overflow of the buffer raises p_min by `d1`. With `overflow = "reset"` p_min is
//! multiplied, at the end of each T_beta with an overflow, by the measured drop probability over
//! the mean p of that time, if this ratio is above `excess` (section III.D).
//!
//! **Departures** The paper does not say: (1) p_min stays between `floor` and 1, since from 0 it
//! would never rise, and starts at 0.01. (2) A step is at most half of p_min. (3) The drop
//! probability is the one before the step; an arrival that overflows the buffer makes the step,
//! too. (4) `fixed_point` represents probabilities in units of 2^-bits, rounded towards 0, like the
//! kernel of the paper's testbed; its number of bits is not known. (5) p_min does not change while
//! no packet arrives: the first packet after an idle time is dropped with the p_min that the last
//! one left, and p is above 0 even if the queue is empty. (6) The paper proposes both corrections
//! of an overflow without a formula. `d1` is the step of Blue. The measured drop probability counts
//! early drops and overflows over T_beta, and only raises p_min, since p_min is lowered as soon as
//! the queue is below min_th.
//!
//! **Cost** 200 bytes of state; a random number and a few multiplications per arrival.

use super::{Aqm, SingleQueue, Verdict};
use crate::build::Env;
use crate::cast;
use crate::context::Context;
use crate::entry::QdiscEntry;
use crate::error::{Error, Result};
use crate::fifo::QueueView;
use crate::packet::Packet;
use crate::params::Checked;
use crate::snapshot::Snapshot;
use crate::units::{Bytes, Rate, Size, Span, Time};
use alloc::format;

/// Entry in the registry.
pub(crate) const ENTRY: QdiscEntry = QdiscEntry::new::<SingleQueue<Hred>>(
    "hred",
    "hybrid RED: maps the queue to a drop probability, and adapts the map outside a band",
)
.decides("on arrival: a drop probability that grows with the queue, by an adaptive map")
.source("Joo, Bahk and Lumetta, Journal of Communications and Networks");

crate::choice! {
    /// Correction of p_min when the buffer overflows.
    pub enum Overflow {
        /// None: p_min rises by the excess of the queue only.
        None = "none" | "off",
        /// Each overflow raises p_min by `d1`.
        Step = "step",
        /// p_min is reset to the measured drop probability.
        Reset = "reset",
    }
}

crate::params! {
    /// Parameters of [`Hred`]; `auto` is computed from the others.
    pub struct HredParams {
        /// Queue below which p_min decreases, in the unit of limit; auto is a quarter of limit, or
        /// half of the room above max_th.
        min_th: Option<Size> = None,
            [Size::Packets(1) => Size::Packets(1_000_000_000_000)],
            "min_th", ["minth", "min"];
        /// Queue above which p_min increases; auto is half of limit, or limit less twice min_th.
        max_th: Option<Size> = None,
            [Size::Packets(1) => Size::Packets(1_000_000_000_000)],
            "max_th", ["maxth", "max"];
        /// Flatness of the map: with a larger value the queue is stable at longer round-trip times,
        /// but responds more slowly.
        kappa: f64 = 2.0, [0.01 => 1000.0], "kappa", [];
        /// Largest average round-trip time, from which the response times follow.
        rtt: Span = Span::ms(200), [Span::us(1) => Span::s(100)], "RTT+", ["max_rtt"];
        /// Time to respond to an increase of the load; auto is twice t_beta.
        t_alpha: Option<Span> = None,
            [Span::us(1) => Span::s(1000)], "T_alpha", ["ta"];
        /// Time to respond to a decrease of the load; auto is rtt.
        t_beta: Option<Span> = None,
            [Span::us(1) => Span::s(1000)], "T_beta", ["tb"];
        /// Mean packet size, headers included.
        packet: Bytes = Bytes(500),
            [Bytes(1) => Bytes(1_000_000)], "S", ["mean_packet", "mean_pktsize", "avpkt"];
        /// Initial p_min.
        p_min: f64 = 0.01, [1e-9 => 1.0], "p_min", ["pmin"];
        /// Smallest p_min.
        floor: f64 = 1e-5, [1e-9 => 0.1], "", ["p_floor"];
        /// Fractional bits of the probabilities, 0 for floating point.
        fixed_point: u64 = 0, [0 => 50], "", [];
        /// Correction of p_min when the buffer overflows: none, by a step of d1 at each overflow
        /// (step), or to the drop probability measured over t_beta (reset).
        overflow: Overflow = Overflow::None, [], "", [];
        /// Increase of p_min at an overflow, with overflow step.
        d1: f64 = 0.0002, [0.0 => 1.0], "", [];
        /// Ratio of the measured drop probability to p above which p_min is reset, with overflow
        /// reset.
        excess: f64 = 1.5, [1.0 => 1000.0], "", [];
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
#[derive(Clone, Debug, Snapshot)]
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
    /// Drop probability at the last arrival.
    p: f64,
    overflow: Overflow,
    d1: f64,
    excess: f64,
    measured: Measured,
}

/// Drops since the start of an interval of T_beta, for `overflow = "reset"`.
#[derive(Clone, Debug, Default, Snapshot)]
struct Measured {
    /// T_beta.
    interval: Span,
    /// End of the interval.
    end: Time,
    drops: u32,
    overflows: u32,
    /// Sum of p over the arrivals.
    sum_p: f64,
    /// True if the last arrival was dropped early.
    early: bool,
}

impl Measured {
    /// Ends the interval if it is over at `now`. Returns the ratio of the measured drop probability
    /// to the mean of p if the buffer overflowed in it.
    fn ratio(&mut self, now: Time) -> Option<f64> {
        if now < self.end {
            return None;
        }
        let past = core::mem::take(self);
        (self.interval, self.end) = (past.interval, now + past.interval);
        (past.overflows > 0).then(|| f64::from(past.drops) / past.sum_p)
    }

    fn count_arrival(&mut self, p: f64, early: bool) {
        self.sum_p += p;
        self.early = early;
        self.drops += u32::from(early);
    }

    /// Counts an overflow by the last arrival, which is one drop even if it was dropped early.
    fn count_overflow(&mut self) {
        self.overflows += 1;
        self.drops += u32::from(!self.early);
    }
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
            overflow: params.overflow,
            d1: params.d1,
            excess: params.excess,
            measured: Measured { interval: t_beta, ..Measured::default() },
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
        if self.overflow == Overflow::Reset
            && let Some(ratio) = self.measured.ratio(context.now)
            && ratio > self.excess
        {
            self.p_min = self.cut((self.p_min * ratio).min(1.0));
        }
        let q = if self.in_bytes { queue.bytes() as f64 } else { f64::from(queue.packets()) };
        self.p = self.probability(q);
        self.adjust(q, self.p);
        let early = context.rng.bernoulli(self.p);
        if self.overflow == Overflow::Reset {
            self.measured.count_arrival(self.p, early);
        }
        if early { Verdict::Mark } else { Verdict::Pass }
    }

    fn on_overflow(&mut self, _now: Time) {
        match self.overflow {
            Overflow::None => {}
            Overflow::Step => self.p_min = (self.p_min + self.cut(self.d1)).min(1.0),
            Overflow::Reset => self.measured.count_overflow(),
        }
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
mod tests;
