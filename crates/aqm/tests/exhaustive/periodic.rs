//! AQMs with a periodic update, compared with models that have a timer: every tick is processed
//! when it is due, between packets. Also AVQ, which has no timer.

use crate::naive::{Losses, Naive, Real, bytes};
use crate::{Op, every, long, real};
use sojourn_aqm::aqm::{Aqm, SingleQueue, avq::Avq, pi::Pi, pi2::Pi2, pie::Pie, rem::Rem};
use sojourn_aqm::{DropReason, Packet, Span};

/// Callbacks of a model. Queues are in bytes, with packets of 1000.
trait Plain {
    /// Timer tick with queue `q`.
    fn tick(&mut self, _q: f64) {}
    /// Returns the drop probability of `p` at a queue of `q` bytes.
    fn arrives(&mut self, now: u64, p: &Packet, q: f64) -> f64;
    /// Drop of a packet, by the AQM or by overflow.
    fn dropped(&mut self) {}
    /// Departure of a packet after `wait` nanoseconds.
    fn leaves(&mut self, _wait: u64) {}
    /// Gauge `p`; NaN if the model has none.
    fn p(&self) -> f64;
}

/// Queue of at most 40 kB with a model.
struct Timed {
    plain: Box<dyn Plain>,
    queue: Vec<Packet>,
    period: u64,
    /// Time of the next tick; never before the first arrival.
    next: u64,
}

impl Timed {
    fn until(&mut self, now: u64) {
        while self.next <= now {
            self.plain.tick(bytes(&self.queue) as f64);
            self.next += self.period;
        }
    }
}

impl Naive for Timed {
    fn enqueue(&mut self, now: u64, u: f64, p: Packet, dropped: &mut Losses) {
        if self.next == u64::MAX {
            self.next = now + self.period;
        }
        self.until(now);
        let q = bytes(&self.queue);
        let signal = u < self.plain.arrives(now, &p, q as f64);
        let full = q + u64::from(p.len) > 40_000;
        if full || signal {
            self.plain.dropped();
            dropped.push((p, if full { DropReason::Full } else { DropReason::AtEnqueue }));
        } else {
            self.queue.push(p);
        }
    }

    fn dequeue(&mut self, now: u64, _dropped: &mut Losses) -> Option<Packet> {
        self.until(now);
        if self.queue.is_empty() {
            return None;
        }
        let p = self.queue.remove(0);
        self.plain.leaves(now - p.arrived.0);
        Some(p)
    }

    fn held(&self) -> (usize, u64) {
        (self.queue.len(), bytes(&self.queue))
    }

    fn variable(&self, name: &str) -> Option<f64> {
        (name == "p").then(|| self.plain.p()).filter(|p| !p.is_nan())
    }
}

/// PI with packets of 1000 bytes.
struct PlainPi {
    p: f64,
    q_old: f64,
}

impl Plain for PlainPi {
    fn tick(&mut self, q: f64) {
        let q = q / 1000.0;
        self.p = (self.p + 0.004 * (q - 10.0) - 0.003 * (self.q_old - 10.0)).clamp(0.0, 1.0);
        self.q_old = q;
    }
    fn arrives(&mut self, _now: u64, p: &Packet, _q: f64) -> f64 {
        self.p * f64::from(p.len) / 1000.0
    }
    fn p(&self) -> f64 {
        self.p
    }
}

/// REM, rate form, with an average over arrivals.
struct PlainRem {
    came: f64,
    x: f64,
    price: f64,
}

impl Plain for PlainRem {
    fn tick(&mut self, q: f64) {
        self.x = 0.7 * self.x + 0.3 * self.came / 1000.0;
        self.price = (self.price + 0.05 * (0.1 * (q / 1000.0 - 10.0) + self.x - 4.0)).max(0.0);
        self.came = 0.0;
    }
    fn arrives(&mut self, _now: u64, p: &Packet, _q: f64) -> f64 {
        let probability = self.p();
        self.came += f64::from(p.len);
        probability
    }
    fn p(&self) -> f64 {
        1.0 - libm::pow(1.1, -self.price)
    }
}

/// PIE as in RFC 8033, in seconds.
struct PlainPie {
    p: f64,
    burst: f64,
    delay: f64,
    old: f64,
    accu: f64,
    derandomise: bool,
}

impl Plain for PlainPie {
    fn tick(&mut self, q: f64) {
        let delay = if q > 0.0 { self.delay } else { 0.0 };
        let divisor = match self.p {
            p if p < 0.000_001 => 2048.0,
            p if p < 0.000_01 => 512.0,
            p if p < 0.000_1 => 128.0,
            p if p < 0.001 => 32.0,
            p if p < 0.01 => 8.0,
            p if p < 0.1 => 2.0,
            _ => 1.0,
        };
        let mut step = (10.0 * (delay - 0.004) + 20.0 * (delay - self.old)) / divisor;
        if self.p >= 0.1 && step > 0.02 {
            step = 0.02;
        }
        self.p += step;
        if delay == 0.0 && self.old == 0.0 {
            self.p *= 0.98;
        }
        self.p = self.p.clamp(0.0, 1.0);
        // Whole milliseconds: no rounding.
        self.burst = (self.burst - 2.0).max(0.0);
        if self.p == 0.0 && delay < 0.002 && self.old < 0.002 {
            self.burst = 30.0;
        }
        self.old = delay;
    }
    fn arrives(&mut self, _now: u64, _p: &Packet, q: f64) -> f64 {
        if self.burst > 0.0 || (self.old < 0.002 && self.p < 0.2) || q <= 2000.0 {
            return 0.0;
        }
        if self.derandomise {
            self.accu = if self.p == 0.0 { 0.0 } else { self.accu + self.p };
        }
        match self.accu {
            accu if self.derandomise && accu < 0.85 => 0.0,
            accu if self.derandomise && accu >= 8.5 => 1.0,
            _ => self.p,
        }
    }
    fn dropped(&mut self) {
        self.accu = 0.0;
    }
    fn leaves(&mut self, wait: u64) {
        self.delay = wait as f64 / 1e9;
    }
    fn p(&self) -> f64 {
        self.p
    }
}

/// PI2; the generator returns one number for both draws.
struct PlainPi2 {
    p: f64,
    delay: f64,
    old: f64,
}

impl Plain for PlainPi2 {
    fn tick(&mut self, q: f64) {
        let delay = if q > 0.0 { self.delay } else { 0.0 };
        self.p = (self.p + 0.5 * (delay - 0.004) + 5.0 * (delay - self.old)).clamp(0.0, 1.0);
        self.old = delay;
    }
    fn arrives(&mut self, _now: u64, _p: &Packet, _q: f64) -> f64 {
        self.p
    }
    fn leaves(&mut self, wait: u64) {
        self.delay = wait as f64 / 1e9;
    }
    fn p(&self) -> f64 {
        f64::NAN
    }
}

/// AVQ in bytes: the virtual queue is a list of the remainder of each packet.
struct PlainAvq {
    waiting: Vec<f64>,
    capacity: f64,
    last: Option<u64>,
    adapted: Option<u64>,
}

impl Plain for PlainAvq {
    fn arrives(&mut self, now: u64, p: &Packet, _q: f64) -> f64 {
        let since = |t: Option<u64>| (now - t.unwrap_or(now)) as f64 / 1e9;
        let mut served = self.capacity * since(self.last);
        while let Some(head) = self.waiting.first_mut() {
            let part = served.min(*head);
            served -= part;
            *head -= part;
            if *head > 0.0 {
                break;
            }
            self.waiting.remove(0);
        }
        let (len, credit) = (f64::from(p.len), 0.9 * 1e6 * since(self.adapted));
        self.last = Some(now);
        self.adapted.get_or_insert(now);
        if self.waiting.iter().sum::<f64>() + len > 20_000.0 {
            return 1.0;
        }
        self.waiting.push(len);
        self.capacity = (self.capacity + 0.5 * credit - 0.5 * len).clamp(1e4, 1e6);
        self.adapted = Some(now);
        0.0
    }
    fn p(&self) -> f64 {
        f64::NAN
    }
}

/// AQM and its model, whose timer has the period `period`.
fn pair<A>(
    settings: &[(&str, &str)],
    period: Span,
    plain: impl Fn() -> Box<dyn Plain>,
) -> impl Fn() -> (Real, Box<dyn Naive>)
where
    A: Aqm<Params: Default>,
{
    let build = real::<SingleQueue<A>>(&[&[("limit", "40kB")], settings].concat());
    let period = period.0;
    move || (build(), Box::new(Timed { plain: plain(), queue: vec![], period, next: u64::MAX }))
}

/// Calls `check` with each AQM and its model.
fn each(check: impl Fn(&dyn Fn() -> (Real, Box<dyn Naive>))) {
    let pi = [("a", "0.004"), ("b", "0.003"), ("w", "500"), ("q_ref", "10kB")];
    let pi = [&pi[..], &[("packet", "1kB"), ("byte_mode", "true")]].concat();
    check(&pair::<Pi>(&pi, Span::ms(2), || Box::new(PlainPi { p: 0.0, q_old: 0.0 })));
    let rem = [("gamma", "0.05"), ("phi", "1.1"), ("b_star", "10kB"), ("inw", "0.3")];
    let rem = [&rem[..], &[("period", "4ms")]].concat();
    let plain = || Box::new(PlainRem { came: 0.0, x: 0.0, price: 0.0 }) as Box<dyn Plain>;
    check(&pair::<Rem>(&rem, Span::ms(4), plain));
    for derandomise in ["false", "true"] {
        let pie = [("target", "4ms"), ("t_update", "2ms"), ("alpha", "10"), ("beta", "20")];
        let more = [("max_burst", "30ms"), ("packet", "1kB"), ("derandomise", derandomise)];
        let pie = [&pie[..], &more].concat();
        let (p, burst, delay, old, accu) = (0.0, 30.0, 0.0, 0.0, 0.0);
        let derandomise = derandomise == "true";
        check(&pair::<Pie>(&pie, Span::ms(2), || {
            Box::new(PlainPie { p, burst, delay, old, accu, derandomise })
        }));
    }
    let pi2 = [("target", "4ms"), ("t_update", "2ms"), ("alpha", "0.5"), ("beta", "5")];
    let plain = || Box::new(PlainPi2 { p: 0.0, delay: 0.0, old: 0.0 }) as Box<dyn Plain>;
    check(&pair::<Pi2>(&pi2, Span::ms(2), plain));
    let avq = [("gamma", "0.9"), ("alpha", "0.5"), ("buflim", "0.5")];
    let plain = || -> Box<dyn Plain> {
        let (last, adapted) = (None, None);
        Box::new(PlainAvq { waiting: vec![], capacity: 8e5, last, adapted })
    };
    check(&pair::<Avq>(&avq, Span::s(3600), plain));
}

#[test]
fn periodic_aqms_in_every_short_interleaving() {
    let ops = [
        Op::Put(2, 1000, 0.05),
        Op::Put(2, 400, 0.5),
        Op::Get,
        Op::Wait(Span::ms(2)),
        Op::Wait(Span::us(61_300)),
    ];
    let queue = [&[Op::Put(2, 1000, 0.9); 15][..], &[Op::Wait(Span::ms(5)), Op::Get]].concat();
    each(|pair| {
        every(5, &ops, &[], true, pair);
        every(6, &ops, &queue, false, pair);
    });
}

#[test]
fn periodic_aqms_over_long_random_arrivals() {
    each(|pair| {
        for seed in 0..40 {
            let (real, naive) = pair();
            long(seed, 5000, real, naive);
        }
    });
}
