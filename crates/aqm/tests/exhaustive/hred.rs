//! HRED in floating point and in integers.

use crate::naive::{Losses, Naive, bytes};
use crate::{Op, every, long, real};
use sojourn_aqm::aqm::{SingleQueue, hred};
use sojourn_aqm::{DropReason, Ecn, Packet, Span};

/// Equations 8, 10, 14 and 15 of the paper, for a link of 8 mbit.
struct PlainHred {
    in_bytes: bool,
    ecn: bool,
    /// 2 to the power of the bits of a probability in integer mode; None in floating point.
    units: Option<f64>,
    queue: Vec<Packet>,
    p_min: f64,
    p: f64,
}

/// Packets, or kilobytes; default thresholds.
const BUFFER: f64 = 8.0;
const KAPPA: f64 = 1.5;
const T_BETA: f64 = 0.004;
const T_ALPHA: f64 = 2.0 * T_BETA;
const FLOOR: f64 = 0.001;
/// Packet of 500 B, which takes half a millisecond.
const PACKETS_PER_S: f64 = 2000.0;

impl PlainHred {
    fn unit(&self) -> f64 {
        if self.in_bytes { 1000.0 } else { 1.0 }
    }

    fn cut(&self, p: f64) -> f64 {
        self.units.map_or(p, |units| (p * units).floor() / units)
    }

    /// Probability of a drop at `q`, from the probabilities at both thresholds. In integer mode the
    /// shorter form, because two roundings of a nearly integral number can differ by one unit after
    /// truncation.
    fn probability(&self, q: f64) -> f64 {
        let (min_th, max_th) = (BUFFER / 4.0 * self.unit(), BUFFER / 2.0 * self.unit());
        let p_max = self.p_min + self.p_min / KAPPA / max_th * (max_th - min_th);
        let p = match self.units {
            Some(_) => self.p_min * (1.0 + (q - min_th) / (KAPPA * max_th)),
            None => (p_max - self.p_min) * (q - min_th) / (max_th - min_th) + self.p_min,
        };
        self.cut(p.clamp(0.0, 1.0))
    }

    fn decide(&mut self, q: f64) {
        let (min_th, max_th) = (BUFFER / 4.0 * self.unit(), BUFFER / 2.0 * self.unit());
        // 2 S / (C T)^2, C in bytes per second; 2 / (C T)^2 in packets.
        let gain = |t: f64| match self.in_bytes {
            true => 2.0 * 500.0 / (1e6 * t * 1e6 * t),
            false => 2.0 / (PACKETS_PER_S * t * PACKETS_PER_S * t),
        };
        self.p = self.probability(q);
        let above = gain(T_ALPHA) * self.p * (q - max_th).max(0.0);
        let below = gain(T_BETA) * self.p * (min_th - q).max(0.0);
        let half = self.p_min / 2.0;
        let step = self.cut(above.min(half)) - self.cut(below.min(half));
        let floor = self.units.map_or(FLOOR, |units| FLOOR.max(1.0 / units));
        self.p_min = (self.p_min + step).max(floor).min(1.0);
    }
}

impl Naive for PlainHred {
    fn enqueue(&mut self, _now: u64, u: f64, mut p: Packet, dropped: &mut Losses) {
        let (packets, held) = (self.queue.len() as f64, bytes(&self.queue) as f64);
        self.decide(if self.in_bytes { held } else { packets });
        let after = if self.in_bytes { held + f64::from(p.len) } else { packets + 1.0 };
        if after > BUFFER * self.unit() {
            return dropped.push((p, DropReason::Full));
        }
        if u < self.p {
            if !self.ecn || p.ecn == Ecn::NotEct {
                return dropped.push((p, DropReason::AtEnqueue));
            }
            p.ecn = Ecn::Ce;
        }
        self.queue.push(p);
    }

    fn dequeue(&mut self, _now: u64, _dropped: &mut Losses) -> Option<Packet> {
        (!self.queue.is_empty()).then(|| self.queue.remove(0))
    }

    fn held(&self) -> (usize, u64) {
        (self.queue.len(), bytes(&self.queue))
    }

    fn variable(&self, name: &str) -> Option<f64> {
        match name {
            "p" => Some(self.p),
            "p_min" => Some(self.p_min),
            "p_max" => Some(self.probability(BUFFER / 2.0 * self.unit())),
            _ => None,
        }
    }
}

fn each(body: impl Fn(&dyn Fn() -> (crate::naive::Real, Box<dyn Naive>))) {
    for in_bytes in [false, true] {
        for (ecn, bits) in [(false, 0), (true, 0), (false, 20), (true, 6)] {
            let bits = if in_bytes && bits == 20 { 30 } else { bits };
            let settings = [
                ("limit", if in_bytes { "8kB" } else { "8p" }.to_string()),
                ("ecn", ecn.to_string()),
                ("kappa", KAPPA.to_string()),
                ("rtt", "4ms".into()),
                ("p_min", "0.2".into()),
                ("floor", FLOOR.to_string()),
                ("fixed_point", bits.to_string()),
            ];
            let settings: Vec<_> = settings.iter().map(|(k, v)| (*k, v.as_str())).collect();
            let build = real::<SingleQueue<hred::Hred>>(&settings);
            let units = (bits > 0).then(|| f64::from(1u32 << bits));
            body(&|| {
                let mut naive =
                    PlainHred { in_bytes, ecn, units, queue: Vec::new(), p_min: 0.2, p: 0.0 };
                naive.p_min = naive.cut(0.2);
                (build(), Box::new(naive))
            });
        }
    }
}

#[test]
fn hred_in_every_short_interleaving() {
    let ops = [
        Op::Put(1, 500, 0.0),
        Op::Put(2, 1000, 0.999_999),
        Op::Put(1, 300, 0.217_828),
        Op::Get,
        Op::Wait(Span::ms(5)),
    ];
    let full = [Op::Put(2, 1500, 0.999_999); 6];
    each(|fresh| {
        every(5, &ops, &[], true, fresh);
        every(5, &ops, &full, true, fresh);
    });
}

#[test]
fn hred_over_long_random_arrivals() {
    each(|fresh| {
        for seed in 0..10 {
            let (real, naive) = fresh();
            long(seed, 5000, real, naive);
        }
    });
}
