//! DualPI2 in both variants, compared with models that have a timer and a scheduler of their own.

use crate::naive::{Losses, Naive, Real, bytes};
use crate::{Op, every, long, real};
use sojourn_aqm::sched::dual::Dual;
use sojourn_aqm::sched::dualpi2::DualPi2;
use sojourn_aqm::{DropReason, Ecn, Packet, Span};

const LARGEST: u64 = 1514;

/// Controller and signals.
trait Law {
    /// Updates at a delay in nanoseconds.
    fn tick(&mut self, delay: u64);
    /// True if the packet is dropped; marks it otherwise. `left` are the packets left in L, `rest`
    /// the bytes left in both queues.
    fn drops(&mut self, now: u64, u: f64, packet: &mut Packet, left: usize, rest: u64) -> bool;
    fn p_prime(&self) -> f64;
    /// Shares of C and L in percent.
    fn shares(&self) -> [f64; 2];
    /// Bytes that stay free.
    fn spare(&self) -> u64;
}

fn mark(packet: &mut Packet) -> bool {
    if packet.ecn != Ecn::NotEct {
        packet.ecn = Ecn::Ce;
    }
    packet.ecn == Ecn::NotEct
}

/// RFC 9332 with k = 2, a target of 4 ms and gains of 10 and 50 per second.
#[derive(Default)]
struct Rfc {
    p: f64,
    old: f64,
    sum: [f64; 2],
}

impl Rfc {
    fn recur(&mut self, queue: usize, p: f64) -> bool {
        self.sum[queue] += p;
        let signal = self.sum[queue] > 1.0;
        if signal {
            self.sum[queue] -= 1.0;
        }
        signal
    }
}

impl Law for Rfc {
    fn tick(&mut self, delay: u64) {
        let delay = delay as f64 / 1e9;
        let change = 10.0 * (delay - 0.004) + 50.0 * (delay - self.old);
        self.p = (self.p + change).clamp(0.0, 1.0);
        self.old = delay;
    }

    fn drops(&mut self, now: u64, _u: f64, packet: &mut Packet, left: usize, _rest: u64) -> bool {
        let (p_c, p_cl) = (self.p * self.p, (2.0 * self.p).min(1.0));
        if packet.ecn == Ecn::NotEct || packet.ecn == Ecn::Ect0 {
            return self.recur(0, p_c) && (p_c >= 0.25 || mark(packet));
        }
        if p_cl >= 1.0 {
            return self.recur(1, p_c) || (self.recur(1, p_cl) && mark(packet));
        }
        let us = (now - packet.arrived.0) as f64 / 1e3;
        let native = if left > 1 { ((us - 800.0) / 400.0).clamp(0.0, 1.0) } else { 0.0 };
        self.recur(1, native.max(p_cl)) && mark(packet)
    }

    fn p_prime(&self) -> f64 {
        self.p
    }
    fn shares(&self) -> [f64; 2] {
        [6.25, 93.75]
    }
    fn spare(&self) -> u64 {
        LARGEST
    }
}

/// Linux with the same settings, in integers.
#[derive(Default)]
struct Linux {
    p: i128,
    old: i128,
}

const FULL: i128 = 0xffff_ffff;

impl Law for Linux {
    fn tick(&mut self, delay: u64) {
        let (delay, unit) = (i128::from(delay), |hertz: i128| hertz * 256 * FULL / 4_000_000_000);
        let change = (delay - 4_000_000) * unit(10) + (delay - self.old) * unit(50);
        let size = (change.abs() / 64) % (FULL + 1);
        self.p = (self.p + size * change.signum()).clamp(0, FULL);
        self.old = delay;
    }

    fn drops(&mut self, now: u64, u: f64, packet: &mut Packet, left: usize, rest: u64) -> bool {
        let draw = (u * 4_294_967_296.0) as i128;
        let (one, both) = (draw <= 2 * self.p, draw <= self.p);
        let overload = 2 * self.p > FULL;
        let loud = rest >= 2 * LARGEST;
        if packet.ecn == Ecn::NotEct || packet.ecn == Ecn::Ect0 {
            return loud && both && (overload || mark(packet));
        }
        if loud && overload && both {
            return true;
        }
        let step = now - packet.arrived.0 > 1_000_000;
        let _ = left;
        (step || (loud && (overload || one))) && mark(packet)
    }

    fn p_prime(&self) -> f64 {
        self.p as f64 / FULL as f64
    }
    fn shares(&self) -> [f64; 2] {
        [10.0, 90.0]
    }
    fn spare(&self) -> u64 {
        0
    }
}

/// Two queues of at most 40 kB, with an update every 2 ms.
struct Model {
    law: Box<dyn Law>,
    c: Vec<Packet>,
    l: Vec<Packet>,
    next: u64,
    credit: f64,
}

impl Model {
    fn new(law: Box<dyn Law>) -> Model {
        let mut model = Model { law, c: vec![], l: vec![], next: u64::MAX, credit: 0.0 };
        model.rest();
        model
    }

    fn rest(&mut self) {
        let [c, l] = self.law.shares();
        self.credit = LARGEST as f64 * (c - l);
    }

    fn until(&mut self, now: u64) {
        while self.next <= now {
            let heads = [self.c.first(), self.l.first()];
            let delay = |head: &Packet| self.next - head.arrived.0;
            self.law.tick(heads.into_iter().flatten().map(delay).max().unwrap_or(0));
            self.next += 2_000_000;
        }
    }

    fn bytes(&self) -> u64 {
        bytes(&self.c) + bytes(&self.l)
    }
}

impl Naive for Model {
    fn enqueue(&mut self, now: u64, _u: f64, p: Packet, dropped: &mut Losses) {
        if self.next == u64::MAX {
            self.next = now + 2_000_000;
        }
        self.until(now);
        let empty = self.c.is_empty() && self.l.is_empty();
        let space = u64::from(p.len).max(if empty { 0 } else { self.law.spare() });
        if self.bytes() + space > 40_000 {
            dropped.push((p, DropReason::Full));
        } else if p.ecn == Ecn::Ect1 || p.ecn == Ecn::Ce {
            self.l.push(p);
        } else {
            self.c.push(p);
        }
    }

    fn dequeue(&mut self, now: u64, dropped: &mut Losses) -> Option<Packet> {
        self.until(now);
        loop {
            let from_l = !self.l.is_empty() && (self.c.is_empty() || self.credit <= 0.0);
            let queue = if from_l { &mut self.l } else { &mut self.c };
            if queue.is_empty() {
                self.rest();
                return None;
            }
            let mut p = queue.remove(0);
            let rest = self.bytes();
            if self.law.drops(now, 0.5, &mut p, self.l.len(), rest) {
                dropped.push((p, DropReason::AfterEnqueue));
                continue;
            }
            let [c, l] = self.law.shares();
            if from_l && !self.c.is_empty() {
                self.credit += c * f64::from(p.len);
            } else if !from_l && !self.l.is_empty() {
                self.credit -= l * f64::from(p.len);
            }
            return Some(p);
        }
    }

    fn held(&self) -> (usize, u64) {
        (self.c.len() + self.l.len(), self.bytes())
    }

    fn variable(&self, name: &str) -> Option<f64> {
        match name {
            "p_prime" => Some(self.law.p_prime()),
            "credit" => Some(self.credit),
            _ => None,
        }
    }
}

/// Calls `check` with each variant and its model.
fn each(check: impl Fn(&dyn Fn() -> (Real, Box<dyn Naive>))) {
    let settings = [("limit", "40kB"), ("target", "4ms"), ("tupdate", "2ms"), ("alpha", "10")];
    let settings = [&settings[..], &[("beta", "50")]].concat();
    let build = real::<Dual<DualPi2>>(&settings);
    check(&|| (build(), Box::new(Model::new(Box::new(Rfc::default())))));
    let build = real::<Dual<DualPi2>>(&[&settings[..], &[("variant", "linux")]].concat());
    check(&|| (build(), Box::new(Model::new(Box::new(Linux::default())))));
}

#[test]
fn dualpi2_in_every_short_interleaving() {
    // Flow 1 is ECT(0), 2 Not-ECT, 3 ECT(1).
    let ops = [
        Op::Put(1, 1000, 0.5),
        Op::Put(2, 1500, 0.5),
        Op::Put(3, 1000, 0.5),
        Op::Get,
        Op::Wait(Span::us(1_100)),
        Op::Wait(Span::us(61_300)),
    ];
    let queue = [&[Op::Put(2, 1000, 0.5); 9][..], &[Op::Put(3, 1000, 0.5); 9]].concat();
    let queue = [&queue[..], &[Op::Wait(Span::ms(5)), Op::Get]].concat();
    each(|pair| {
        every(5, &ops, &[], true, pair);
        every(5, &ops, &queue, false, pair);
    });
}

#[test]
fn dualpi2_over_long_random_arrivals() {
    each(|pair| {
        for seed in 0..40 {
            let (real, naive) = pair();
            long(seed, 5000, real, naive);
        }
    });
}
