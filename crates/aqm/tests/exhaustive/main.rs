//! All short interleavings of arrivals, departures and pauses, and long random sequences, compared
//! with slow, simple models written independently of the library from papers and RFCs.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "tests use small numbers"
)]

mod blues;
mod cake;
mod cbs;
mod curvy_red;
mod dualpi2;
mod ets;
mod fair;
mod flows;
mod fq;
mod fq_codel;
mod hhf;
mod hred;
mod htb;
mod multiq;
mod naive;
mod periodic;
mod pfifo_fast;
mod police;
mod red;
mod single;
mod skbprio;
mod step_mark;
mod tbf;
mod trees;

use naive::{Naive, Real};
use sojourn_aqm::{Build, Ecn, Env, Packet, Random, Rate, Setting, Span, Time};

/// Generator that returns a given number.
pub struct Fixed(pub f64);

impl Random for Fixed {
    fn uniform(&mut self) -> f64 {
        self.0
    }
}

/// Operation.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    /// Arrival of a packet of that flow and length, with that random number. Odd flows are
    /// ECN-capable: 1, 5, ... with ECT(0), 3, 7, ... with ECT(1). The class is the flow's number.
    Put(u32, u32, f64),
    /// Arrival of a packet with a departure time, that much later.
    Timed(u32, u32, Span),
    /// Sets the random number of all later departures, if the model has one. It is a half at first.
    Draw(f64),
    /// Dequeue.
    Get,
    /// Pause.
    Wait(Span),
}

/// Builder of a discipline by type and settings, on a link of 8 mbit (1000 bytes take 1 ms).
pub fn real<Q: Build<Params: Default> + Send + 'static>(
    settings: &[(&str, &str)],
) -> impl Fn() -> Real + use<Q> {
    use sojourn_aqm::params::Params;
    let mut params = Q::Params::default();
    for (name, value) in settings {
        params.set(name, Setting::Text(value)).unwrap();
    }
    move || Box::new(Q::build(&params, &Env::new(Rate(8_000_000))).unwrap())
}

/// Discipline and model side by side.
pub struct Pair {
    real: Real,
    naive: Box<dyn Naive>,
    now: Time,
    body: u32,
    /// Random number of departures.
    draw: f64,
    /// True if the last dequeue found an empty queue. As on a link, an arrival then departs at
    /// once.
    idle: bool,
    /// True if arrivals at an idle transmitter start it.
    as_link: bool,
}

impl Pair {
    /// Both at time zero and empty.
    pub fn new(real: Real, naive: Box<dyn Naive>, as_link: bool) -> Pair {
        Pair { real, naive, now: Time::ZERO, body: 0, draw: 0.5, idle: true, as_link }
    }

    /// Applies one operation to both sides and compares everything visible.
    pub fn step(&mut self, op: Op) {
        match op {
            Op::Wait(span) => self.now += span,
            Op::Get => self.get(),
            Op::Draw(u) => {
                if self.naive.draw(u) {
                    self.draw = u;
                }
            }
            Op::Put(flow, len, u) => self.put(self.packet(flow, len), u),
            Op::Timed(flow, len, after) => {
                let packet = self.packet(flow, len).with_departure(self.now + after);
                self.put(packet, 0.5);
            }
        }
    }

    fn packet(&self, flow: u32, len: u32) -> Packet {
        let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::NotEct, Ecn::Ect1][flow as usize % 4];
        let (arrived, class) = (self.now, flow as u16);
        Packet { arrived, len, flow, hash: flow, class, ecn, ..Packet::default() }
    }

    fn put(&mut self, packet: Packet, u: f64) {
        self.body += 1;
        let packet = Packet { body: self.body, ..packet };
        let mut model = Vec::new();
        self.naive.enqueue(self.now.0, u, packet, &mut model);
        let (_, dropped) = naive::call(&mut *self.real, self.now, u, |q, context| {
            q.enqueue(context, packet);
        });
        assert_eq!(dropped, model, "dropped on arrival of {packet:?}");
        self.compare();
        if self.as_link && self.idle {
            self.get();
        }
    }

    fn get(&mut self) {
        let mut model = Vec::new();
        let expected = self.naive.dequeue(self.now.0, &mut model);
        let (got, dropped) =
            naive::call(&mut *self.real, self.now, self.draw, |q, context| q.dequeue(context));
        assert_eq!(dropped, model, "dropped on departure");
        assert_eq!(got, expected, "departs");
        self.idle = got.is_none();
        self.compare();
    }

    fn compare(&self) {
        let backlog = self.real.backlog();
        assert_eq!((backlog.packets as usize, backlog.bytes), self.naive.held());
        self.real.inspect(&mut |name, value| {
            let Some(expected) = self.naive.variable(name) else { return };
            let off = (value - expected).abs();
            // A probability near 0 computed as a difference of larger numbers has rounding errors
            // of theirs.
            let size = expected.abs().max(0.1);
            assert!(off <= 1e-12 * size, "{name} is {value}, not {expected}");
        });
    }
}

/// Applies `first` and then every sequence of `n` of the `ops`, each from a fresh start.
pub fn every(
    n: u32,
    ops: &[Op],
    first: &[Op],
    as_link: bool,
    mut fresh: impl FnMut() -> (Real, Box<dyn Naive>),
) {
    let k = ops.len() as u64;
    for mut number in 0..k.pow(n) {
        let code = number;
        let (real, naive) = fresh();
        let mut pair = Pair::new(real, naive, as_link);
        let chosen = (0..n).map(|_| {
            let op = ops[(number % k) as usize];
            number /= k;
            op
        });
        let ops: Vec<Op> = first.iter().copied().chain(chosen).collect();
        let steps = std::panic::AssertUnwindSafe(|| ops.iter().for_each(|op| pair.step(*op)));
        if let Err(e) = std::panic::catch_unwind(steps) {
            eprintln!("failed: sequence {code}: {ops:?}");
            std::panic::resume_unwind(e);
        }
    }
}

/// Applies `n` random operations: arrivals of several flows and departures, with a load that
/// alternates between overload and underload, and pauses.
pub fn long(seed: u64, n: u32, real: Real, naive: Box<dyn Naive>) {
    use rand_core::{Rng, SeedableRng};
    let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(seed);
    let mut pair = Pair::new(real, naive, true);
    let mut draws = rand_pcg::Pcg64Mcg::seed_from_u64(seed + 1);
    let mut free = Time::ZERO;
    let mut gap = 1000;
    for step in 0..n {
        if step % 400 == 0 {
            gap = 300 + rng.next_u64() % 1200; // a mean interarrival time of 0.3 to 1.5 ms
        }
        let lull = if rng.next_u32().is_multiple_of(2000) { 500_000 } else { 0 };
        let arrival = pair.now + Span::us(lull + rng.next_u64() % (2 * gap));
        while free <= arrival && !pair.idle {
            pair.step(Op::Draw(draws.uniform()));
            pair.now = free.max(pair.now);
            pair.step(Op::Get);
            free = pair.now + Span::ms(1);
        }
        pair.now = arrival;
        let was_idle = pair.idle;
        let (flow, len) = (1 + rng.next_u32() % 7, [60, 1000, 1500][rng.next_u32() as usize % 3]);
        pair.step(Op::Put(flow, len, rng.uniform()));
        if was_idle {
            free = arrival + Span::ms(1);
        }
    }
}
