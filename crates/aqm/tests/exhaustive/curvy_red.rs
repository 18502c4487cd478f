//! Curvy RED under both schedulers.

use crate::naive::{Losses, Naive, Real, bytes};
use crate::{Op, every, long, real};
use sojourn_aqm::sched::curvy_red::CurvyRed;
use sojourn_aqm::sched::dual::Dual;
use sojourn_aqm::{DropReason, Ecn, Packet, Span};

const LARGEST: u64 = 1514;

/// RFC 9332 appendix B in floating point, with the departures that its page lists. The queues hold
/// 20 kB.
#[derive(Clone)]
struct PlainCurvy {
    c: Vec<Packet>,
    l: Vec<Packet>,
    /// Q_C in seconds.
    average: f64,
    /// gamma.
    weight: f64,
    min: f64,
    range: f64,
    k: f64,
    /// U.
    u: i32,
    /// T in nanoseconds.
    step: u64,
    drops_on_overload: bool,
    /// Time shift in nanoseconds; without one, C has a sixteenth of the bytes.
    shift: Option<u64>,
    credit: f64,
    draw: f64,
}

impl PlainCurvy {
    fn s(&self, age: f64) -> f64 {
        let delay = if age < self.average { age } else { self.average };
        if delay > self.min { (delay - self.min) / self.range } else { 0.0 }
    }

    /// True if `x` exceeds the largest of `n` random numbers, of which `draw` is the rank.
    fn exceeds(&self, x: f64, n: i32) -> bool {
        x > libm::pow(self.draw, 1.0 / f64::from(n))
    }

    fn takes_l(&self, now: u64) -> bool {
        match (self.l.first(), self.c.first(), self.shift) {
            (l, None, _) => l.is_some(),
            (None, ..) => false,
            (Some(l), Some(c), Some(shift)) => now - l.arrived.0 + shift >= now - c.arrived.0,
            (Some(_), Some(_), None) => self.credit <= 0.0,
        }
    }

    /// True if a packet is dropped; marks it if it is to be marked.
    fn drops(&mut self, now: u64, from_l: bool, p: &mut Packet) -> bool {
        let delay = now - p.arrived.0;
        if from_l {
            let age = self.c.first().map_or(0.0, |c| (now - c.arrived.0) as f64 / 1e9);
            let s = self.s(age);
            if self.k * s >= 1.0 {
                if self.drops_on_overload && self.exceeds(s, 2 * self.u) {
                    return true;
                }
                p.ecn = Ecn::Ce;
            }
            if delay > self.step || self.exceeds(self.k * s, self.u) {
                p.ecn = Ecn::Ce;
            }
            return false;
        }
        let delay = delay as f64 / 1e9;
        self.average = self.weight * delay + (1.0 - self.weight) * self.average;
        let s = self.s(delay);
        if !self.exceeds(s, 2 * self.u) {
            return false;
        }
        let overload = self.drops_on_overload && self.k * s >= 1.0;
        if overload || p.ecn == Ecn::NotEct {
            return true;
        }
        p.ecn = Ecn::Ce;
        false
    }
}

impl Naive for PlainCurvy {
    fn enqueue(&mut self, _now: u64, _u: f64, p: Packet, dropped: &mut Losses) {
        let (packets, held) = self.held();
        let space = u64::from(p.len).max(if packets == 0 { 0 } else { LARGEST });
        if held + space > 20_000 {
            dropped.push((p, DropReason::Full));
        } else if p.ecn == Ecn::Ect1 {
            self.l.push(p);
        } else {
            self.c.push(p);
        }
    }

    fn dequeue(&mut self, now: u64, dropped: &mut Losses) -> Option<Packet> {
        while self.held().0 > 0 {
            let from_l = self.takes_l(now);
            let mut p = if from_l { self.l.remove(0) } else { self.c.remove(0) };
            if self.drops(now, from_l, &mut p) {
                dropped.push((p, DropReason::AfterEnqueue));
                continue;
            }
            // Weights of 1 and 15.
            if from_l && !self.c.is_empty() {
                self.credit += f64::from(p.len);
            } else if !from_l && !self.l.is_empty() {
                self.credit -= 15.0 * f64::from(p.len);
            }
            return Some(p);
        }
        self.credit = -14.0 * LARGEST as f64;
        None
    }

    fn draw(&mut self, u: f64) -> bool {
        self.draw = u;
        true
    }

    fn held(&self) -> (usize, u64) {
        (self.c.len() + self.l.len(), bytes(&self.c) + bytes(&self.l))
    }

    fn variable(&self, name: &str) -> Option<f64> {
        match name {
            "q_c" => Some(self.average),
            "credit" if self.shift.is_none() => Some(self.credit * 6.25),
            _ => None,
        }
    }
}

/// `g_c`, `u`, `min_th` and `range_c` in ms, `coupling_factor`, and whether overload drops; and the
/// time shift in ms.
type Settings = (u32, u32, u64, u64, f64, bool, Option<u64>);

fn both(settings: Settings) -> impl Fn() -> (Real, Box<dyn Naive>) {
    let (g_c, u, min, range, k, drops_on_overload, shift) = settings;
    let scheduler = if shift.is_some() { "ts_fifo" } else { "wrr" };
    let shift_ms = format!("{}ms", shift.unwrap_or(1));
    let words = [
        ("limit", "20kB".to_string()),
        ("g_c", g_c.to_string()),
        ("u", u.to_string()),
        ("min_th", format!("{min}ms")),
        ("range_c", format!("{range}ms")),
        ("coupling_factor", k.to_string()),
        ("drop_on_overload", drops_on_overload.to_string()),
        ("scheduler", scheduler.to_string()),
        ("t_shift", shift_ms),
    ];
    let words = words.each_ref().map(|(name, value)| (*name, value.as_str()));
    let build = real::<Dual<CurvyRed>>(&words);
    let plain = PlainCurvy {
        c: vec![],
        l: vec![],
        average: 0.0,
        weight: 1.0 / f64::from(1 << g_c),
        min: min as f64 / 1e3,
        range: range as f64 / 1e3,
        k,
        u: u as i32,
        step: 1_000_000,
        drops_on_overload,
        shift: shift.map(|ms| ms * 1_000_000),
        credit: -14.0 * LARGEST as f64,
        draw: 0.5,
    };
    move || (build(), Box::new(plain.clone()))
}

const SETTINGS: [Settings; 5] = [
    (0, 1, 0, 7, 2.0, true, Some(2)),
    (1, 2, 1, 9, 1.5, false, Some(2)),
    (0, 1, 0, 500, 2.0, true, None),
    (1, 1, 0, 11, 4.0, true, None),
    (2, 2, 0, 23, 1.0, true, Some(50)),
];

#[test]
fn curvy_red_in_every_short_interleaving() {
    // Flow 1 is ECT(0), 2 Not-ECT, 3 ECT(1).
    let ops = [
        Op::Put(1, 1000, 0.5),
        Op::Put(2, 1500, 0.5),
        Op::Put(3, 1000, 0.5),
        Op::Get,
        Op::Wait(Span(1_100_003)),
        Op::Draw(0.05),
        Op::Draw(0.93),
    ];
    let queue = [1, 2, 3, 2, 3, 1, 3, 1, 3].map(|flow| Op::Put(flow, 1000, 0.5));
    let queue = [&queue[..], &[Op::Wait(Span(5_000_003)), Op::Get]].concat();
    for settings in SETTINGS {
        every(6, &ops, &[], true, both(settings));
        every(6, &ops[2..], &queue, false, both(settings));
        every(5, &ops[..5], &queue, false, both(settings));
    }
}

#[test]
fn curvy_red_over_long_random_arrivals() {
    for seed in 0..20 {
        for settings in SETTINGS {
            let (real, naive) = both(settings)();
            long(seed, 3000, real, naive);
        }
    }
}
