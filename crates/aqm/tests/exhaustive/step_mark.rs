//! Step marking, by its definition.

use crate::naive::{Losses, Naive, Real, bytes};
use crate::{Op, every, long, real};
use sojourn_aqm::aqm::{SingleQueue, step_mark};
use sojourn_aqm::{DropReason, Ecn, Packet, Size, Span};

/// FIFO queue with two thresholds.
#[derive(Clone)]
struct PlainStepMark {
    queue: Vec<Packet>,
    limit: usize,
    k_min: Size,
    k_max: Size,
    p_max: f64,
    dequeue: bool,
    drop: bool,
    /// Random number of later departures.
    u: f64,
}

impl PlainStepMark {
    /// Marks `packet` in view of the queue; false if it must be dropped.
    fn marks(&self, u: f64, packet: &mut Packet) -> bool {
        let q = match self.k_min {
            Size::Packets(_) => self.queue.len() as f64,
            Size::Bytes(_) => bytes(&self.queue) as f64,
        };
        let (low, high) = (self.k_min.number() as f64, self.k_max.number() as f64);
        let p = if q > high {
            1.0
        } else if q > low {
            self.p_max * (q - low) / (high - low)
        } else {
            0.0
        };
        if u >= p {
            return true;
        }
        if packet.ecn == Ecn::NotEct {
            return !self.drop;
        }
        packet.ecn = Ecn::Ce;
        true
    }
}

impl Naive for PlainStepMark {
    fn enqueue(&mut self, _now: u64, u: f64, mut p: Packet, dropped: &mut Losses) {
        if self.queue.len() >= self.limit {
            dropped.push((p, DropReason::Full));
        } else if self.dequeue || self.marks(u, &mut p) {
            self.queue.push(p);
        } else {
            dropped.push((p, DropReason::AtEnqueue));
        }
    }

    fn dequeue(&mut self, _now: u64, dropped: &mut Losses) -> Option<Packet> {
        while !self.queue.is_empty() {
            let mut p = self.queue.remove(0);
            if !self.dequeue || self.marks(self.u, &mut p) {
                return Some(p);
            }
            dropped.push((p, DropReason::AfterEnqueue));
        }
        None
    }

    fn draw(&mut self, u: f64) -> bool {
        self.u = u;
        true
    }

    fn held(&self) -> (usize, u64) {
        (self.queue.len(), bytes(&self.queue))
    }
}

/// Thresholds and largest probability.
const CURVES: [(&str, &str, f64); 4] =
    [("1p", "1p", 1.0), ("1p", "4p", 0.5), ("900B", "900B", 1.0), ("400B", "2kB", 0.8)];

fn both(
    (k_min, k_max, p_max): (&'static str, &'static str, f64),
    at: &str,
    non_ect: &str,
) -> impl Fn() -> (Real, Box<dyn Naive>) {
    let text = p_max.to_string();
    let build = real::<SingleQueue<step_mark::StepMark>>(&[
        ("limit", "5p"),
        ("ecn", "true"),
        ("k_min", k_min),
        ("k_max", k_max),
        ("p_max", &text),
        ("at", at),
        ("non_ect", non_ect),
    ]);
    let plain = PlainStepMark {
        queue: vec![],
        limit: 5,
        k_min: k_min.parse().unwrap(),
        k_max: k_max.parse().unwrap(),
        p_max,
        dequeue: at == "dequeue",
        drop: non_ect == "drop",
        u: 0.0,
    };
    move || (build(), Box::new(plain.clone()))
}

#[test]
fn every_short_sequence() {
    let ops = [Op::Put(1, 400, 0.3), Op::Put(2, 900, 0.7), Op::Get, Op::Wait(Span::ms(1))];
    for curve in CURVES {
        for at in ["enqueue", "dequeue"] {
            for non_ect in ["pass", "drop"] {
                every(7, &ops, &[Op::Draw(0.4)], false, both(curve, at, non_ect));
                every(7, &ops, &[Op::Draw(0.6)], true, both(curve, at, non_ect));
            }
        }
    }
}

#[test]
fn long_sequences() {
    for seed in 0..5 {
        for curve in CURVES {
            for at in ["enqueue", "dequeue"] {
                let (real, naive) = both(curve, at, "drop")();
                long(seed, 2000, real, naive);
            }
        }
    }
}
