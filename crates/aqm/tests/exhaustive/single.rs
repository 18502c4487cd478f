//! DropTail and CoDel.

use crate::naive::{Losses, Naive, bytes};
use crate::{Op, every, long, real};
use sojourn_aqm::aqm::{SingleQueue, codel};
use sojourn_aqm::sched::drop_tail::DropTail;
use sojourn_aqm::{DropReason, Ecn, Packet, Size, Span};

/// Tail drop; on overflow drops the arrival, the oldest, or a random packet.
struct PlainDropTail {
    queue: Vec<Packet>,
    limit: Size,
    policy: &'static str,
}

impl PlainDropTail {
    fn room(&self, waiting: &[Packet], p: &Packet) -> bool {
        match self.limit {
            Size::Packets(n) => (waiting.len() as u64) < n,
            Size::Bytes(n) => bytes(waiting) + u64::from(p.len) <= n,
        }
    }
}

impl Naive for PlainDropTail {
    fn enqueue(&mut self, _now: u64, u: f64, p: Packet, dropped: &mut Losses) {
        if !self.room(&[], &p) {
            return dropped.push((p, DropReason::Full));
        }
        while !self.room(&self.queue, &p) {
            let place = match self.policy {
                "tail" => self.queue.len(),
                "head" => 0,
                _ => (u * (self.queue.len() + 1) as f64) as usize,
            };
            if place == self.queue.len() {
                return dropped.push((p, DropReason::Full));
            }
            dropped.push((self.queue.remove(place), DropReason::Full));
        }
        self.queue.push(p);
    }

    fn dequeue(&mut self, _now: u64, _dropped: &mut Losses) -> Option<Packet> {
        (!self.queue.is_empty()).then(|| self.queue.remove(0))
    }

    fn held(&self) -> (usize, u64) {
        (self.queue.len(), bytes(&self.queue))
    }
}

#[test]
fn drop_tail() {
    let ops = [Op::Put(1, 400, 0.4), Op::Put(2, 900, 0.9), Op::Get, Op::Wait(Span::ms(1))];
    for policy in ["tail", "head", "random"] {
        for limit in ["1p", "3p", "900B", "1700B", "899B"] {
            let build = real::<DropTail>(&[("limit", limit), ("policy", policy)]);
            let limit: Size = limit.parse().unwrap();
            every(8, &ops, &[], false, || {
                (build(), Box::new(PlainDropTail { queue: vec![], limit, policy }))
            });
            for seed in 0..20 {
                long(seed, 2000, build(), Box::new(PlainDropTail { queue: vec![], limit, policy }));
            }
        }
    }
}

#[test]
fn random_drop_is_uniform_over_the_queue() {
    use rand_core::SeedableRng;
    use sojourn_aqm::Time;
    // Nine are queued and a tenth arrives: each of the ten is equally likely to be dropped.
    let build = real::<DropTail>(&[("limit", "9p"), ("policy", "random")]);
    let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(11);
    let mut hits = [0u32; 10];
    for _ in 0..20_000 {
        let (mut qdisc, mut dropped, mut marks) = (build(), vec![], sojourn_aqm::Marks::default());
        for body in 0..10 {
            let (rng, dropped, marks) = (&mut rng, &mut dropped, &mut marks);
            let mut context = sojourn_aqm::Context { now: Time::ZERO, rng, dropped, marks };
            qdisc.enqueue(&mut context, Packet { body, len: 100, ..Packet::default() });
        }
        assert_eq!((dropped.len(), qdisc.backlog().packets), (1, 9));
        hits[dropped[0].packet.body as usize] += 1;
    }
    // Chi-squared with 9 degrees of freedom: above 27.9 once in a thousand (the seed is fixed).
    let chi: f64 = hits.iter().map(|h| (f64::from(*h) - 2000.0) * (f64::from(*h) - 2000.0)).sum();
    assert!(chi / 2000.0 < 27.9, "{hits:?}");
}

/// RFC 8289 §5 with its variable names: times are integer nanoseconds, 0 is "not above".
#[derive(Clone, Default)]
pub struct PlainCoDel {
    pub target: u64,
    pub interval: u64,
    pub ecn: bool,
    first_above: u64,
    drop_next: u64,
    pub count: u64,
    lastcount: u64,
    dropping: bool,
    pub maxpacket: u64,
}

impl PlainCoDel {
    pub fn new(target: Span, interval: Span, ecn: bool) -> PlainCoDel {
        PlainCoDel { target: target.0, interval: interval.0, ecn, ..PlainCoDel::default() }
    }

    /// interval / sqrt(count) in integers.
    fn after(&self, t: u64) -> u64 {
        let square = u128::from(self.interval) * u128::from(self.interval);
        t + (square / u128::from(self.count)).isqrt() as u64
    }

    fn pop(&mut self, now: u64, queue: &mut Vec<Packet>) -> (Option<Packet>, bool) {
        if queue.is_empty() {
            self.first_above = 0;
            return (None, false);
        }
        let p = queue.remove(0);
        let low = now - p.arrived.0 < self.target || bytes(queue) <= self.maxpacket;
        if low {
            self.first_above = 0;
        } else if self.first_above == 0 {
            self.first_above = now + self.interval;
        } else {
            return (Some(p), now >= self.first_above);
        }
        (Some(p), false)
    }

    /// Sets CE if possible.
    fn mark(&self, p: &mut Packet) -> bool {
        if self.ecn && p.ecn != Ecn::NotEct {
            p.ecn = Ecn::Ce;
            return true;
        }
        false
    }

    pub fn dequeue(
        &mut self,
        now: u64,
        queue: &mut Vec<Packet>,
        dropped: &mut Losses,
    ) -> Option<Packet> {
        let (mut p, mut ok) = self.pop(now, queue);
        if p.is_none() {
            self.dropping = false;
            return None;
        }
        if self.dropping {
            if !ok {
                self.dropping = false;
            }
            while self.dropping && now >= self.drop_next {
                let mut victim = p.unwrap();
                self.count += 1;
                if self.mark(&mut victim) {
                    self.drop_next = self.after(self.drop_next);
                    return Some(victim);
                }
                dropped.push((victim, DropReason::AfterEnqueue));
                (p, ok) = self.pop(now, queue);
                if ok {
                    self.drop_next = self.after(self.drop_next);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok {
            let mut victim = p.unwrap();
            if self.mark(&mut victim) {
                p = Some(victim);
            } else {
                dropped.push((victim, DropReason::AfterEnqueue));
                (p, _) = self.pop(now, queue);
            }
            self.dropping = true;
            // 0 means no drop yet, thus long ago.
            let since = now.saturating_sub(self.drop_next);
            let recent = self.drop_next > 0 && since < 16 * self.interval;
            let delta = self.count as i64 - self.lastcount as i64;
            self.count = if delta > 1 && recent { delta as u64 } else { 1 };
            self.drop_next = self.after(now);
            self.lastcount = self.count;
        }
        p
    }
}

/// CoDel over one queue with tail drop.
struct One {
    queue: Vec<Packet>,
    limit: Size,
    aqm: PlainCoDel,
}

impl Naive for One {
    fn enqueue(&mut self, _now: u64, _u: f64, p: Packet, dropped: &mut Losses) {
        if !self.limit.holds(1, u64::from(p.len)) {
            return dropped.push((p, DropReason::Full));
        }
        self.aqm.maxpacket = self.aqm.maxpacket.max(u64::from(p.len));
        self.queue.push(p);
        if !self.limit.holds(self.queue.len() as u32, bytes(&self.queue)) {
            dropped.push((self.queue.pop().unwrap(), DropReason::Full));
        }
    }

    fn dequeue(&mut self, now: u64, dropped: &mut Losses) -> Option<Packet> {
        self.aqm.dequeue(now, &mut self.queue, dropped)
    }

    fn held(&self) -> (usize, u64) {
        (self.queue.len(), bytes(&self.queue))
    }

    fn variable(&self, name: &str) -> Option<f64> {
        Some(match name {
            "count" => self.aqm.count as f64,
            "lastcount" => self.aqm.lastcount as f64,
            "dropping" => f64::from(u8::from(self.aqm.dropping)),
            "first_above_time" => self.aqm.first_above as f64 / 1e9,
            "drop_next" => self.aqm.drop_next as f64 / 1e9,
            _ => return None,
        })
    }
}

fn pair_of_codels(
    limit: &'static str,
    times: [&'static str; 2],
    ecn: &'static str,
) -> impl Fn() -> (crate::naive::Real, Box<dyn Naive>) {
    let [target, interval] = times;
    let settings = [("limit", limit), ("target", target), ("interval", interval), ("ecn", ecn)];
    let build = real::<SingleQueue<codel::CoDel>>(&settings);
    let (target, interval) = (target.parse().unwrap(), interval.parse().unwrap());
    let aqm = PlainCoDel::new(target, interval, ecn == "true");
    let limit = limit.parse().unwrap();
    move || (build(), Box::new(One { queue: vec![], limit, aqm: aqm.clone() }))
}

#[test]
fn codel_in_every_short_interleaving() {
    let ops = [
        Op::Put(1, 400, 0.0),
        Op::Put(2, 900, 0.0),
        Op::Get,
        Op::Wait(Span::us(1500)),
        Op::Wait(Span::ms(40)),
    ];
    // A queue of packets of both kinds with a long sojourn time, so that drops start at once.
    let old = [1, 2, 1, 2, 1, 1, 2, 2].map(|flow| Op::Put(flow, 400 * flow, 0.0));
    let old = [&old[..], &[Op::Wait(Span::ms(2)), Op::Get]].concat();
    for ecn in ["true", "false"] {
        for limit in ["3p", "1500B", "899B"] {
            every(7, &ops, &[], false, pair_of_codels(limit, ["1ms", "2ms"], ecn));
        }
        every(7, &ops, &old, false, pair_of_codels("9p", ["1ms", "2ms"], ecn));
        let few = [&ops[1..4], &[Op::Wait(Span::ms(2))]].concat();
        every(9, &few, &old, false, pair_of_codels("50p", ["1ms", "2ms"], ecn));
    }
}

#[test]
fn codel_over_long_random_arrivals() {
    for seed in 0..60 {
        for ecn in ["true", "false"] {
            for times in [["5ms", "100ms"], ["1ms", "10ms"], ["1us", "1us"], ["20ms", "30ms"]] {
                let (real, naive) = pair_of_codels("200p", times, ecn)();
                long(seed, 5000, real, naive);
            }
        }
    }
}
