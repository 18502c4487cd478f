//! DRR and SFQ.

use crate::naive::{Losses, Naive, Real, bytes};
use crate::{Op, every, long, real};
use sojourn_aqm::sched::{classful::Classful, drr::Drr, sfq::Sfq};
use sojourn_aqm::{DropReason, Packet, Size, Span};

/// Queue: its packets and its remaining credit.
#[derive(Clone, Default)]
struct Queue {
    packets: Vec<Packet>,
    credit: i64,
    /// True if it has had its quantum in this visit (DRR).
    visited: bool,
}

/// Round robin over a list of busy queues; the first is being served.
#[derive(Clone)]
struct Round {
    queues: Vec<Queue>,
    /// Indices of the busy queues.
    busy: Vec<usize>,
    limit: Size,
    depth: usize,
    quantum: i64,
    from_head: bool,
}

impl Round {
    fn new(n: usize, limit: &str, depth: usize, quantum: i64, drop: &str) -> Round {
        let (limit, from_head) = (limit.parse().unwrap(), drop == "head");
        Round { queues: vec![Queue::default(); n], busy: vec![], limit, depth, quantum, from_head }
    }

    fn held(&self) -> (usize, u64) {
        let queues = || self.queues.iter().map(|q| &q.packets);
        (queues().map(Vec::len).sum(), queues().map(|queue| bytes(queue)).sum())
    }

    fn over(&self) -> bool {
        let (packets, bytes) = self.held();
        !self.limit.holds(packets as u32, bytes)
    }

    fn hopeless(&self, p: &Packet) -> bool {
        !self.limit.holds(1, u64::from(p.len))
    }

    /// First queue in the round among those with the largest `weight`.
    fn largest(&self, weight: impl Fn(&Queue) -> u64) -> usize {
        let most = self.busy.iter().map(|i| weight(&self.queues[*i])).max().unwrap();
        *self.busy.iter().find(|i| weight(&self.queues[**i]) == most).unwrap()
    }

    /// Drops a packet of queue `i`.
    fn lose(&mut self, i: usize, dropped: &mut Losses) {
        let queue = &mut self.queues[i].packets;
        let victim = if self.from_head { queue.remove(0) } else { queue.pop().unwrap() };
        dropped.push((victim, DropReason::Full));
        if queue.is_empty() {
            self.busy.retain(|busy| *busy != i);
            self.queues[i].visited = false;
        }
    }

    fn join(&mut self, i: usize, p: Packet, credit: i64) {
        if self.queues[i].packets.is_empty() {
            self.busy.push(i);
            self.queues[i].credit = credit;
        }
        self.queues[i].packets.push(p);
    }

    fn send(&mut self, i: usize) -> Packet {
        let queue = &mut self.queues[i];
        let p = queue.packets.remove(0);
        queue.credit -= i64::from(p.len);
        if queue.packets.is_empty() {
            queue.visited = false;
            self.busy.remove(0);
        }
        p
    }
}

/// DRR (Shreedhar and Varghese 1995), with a shared buffer and longest queue drop.
struct PlainDrr(Round);

impl Naive for PlainDrr {
    fn enqueue(&mut self, _now: u64, _u: f64, p: Packet, dropped: &mut Losses) {
        if self.0.hopeless(&p) {
            return dropped.push((p, DropReason::Full));
        }
        self.0.join(p.flow as usize % self.0.queues.len(), p, 0);
        while self.0.over() {
            let longest = self.0.largest(|queue| bytes(&queue.packets));
            self.0.lose(longest, dropped);
        }
    }

    fn dequeue(&mut self, _now: u64, _dropped: &mut Losses) -> Option<Packet> {
        loop {
            let i = *self.0.busy.first()?;
            let quantum = self.0.quantum;
            let queue = &mut self.0.queues[i];
            if !queue.visited {
                queue.visited = true;
                queue.credit += quantum;
            }
            if i64::from(queue.packets[0].len) <= queue.credit {
                return Some(self.0.send(i));
            }
            queue.visited = false;
            self.0.busy.remove(0);
            self.0.busy.push(i);
        }
    }

    fn held(&self) -> (usize, u64) {
        self.0.held()
    }
}

/// SFQ (McKenney 1990), with turns in bytes and a bound on each queue.
struct PlainSfq(Round);

impl Naive for PlainSfq {
    fn enqueue(&mut self, _now: u64, _u: f64, p: Packet, dropped: &mut Losses) {
        if self.0.hopeless(&p) {
            return dropped.push((p, DropReason::Full));
        }
        let i = p.hash as usize % self.0.queues.len();
        let deep = self.0.queues[i].packets.len() >= self.0.depth;
        if deep && !self.0.from_head {
            return dropped.push((p, DropReason::Full));
        }
        let quantum = self.0.quantum;
        self.0.join(i, p, quantum);
        if deep {
            self.0.lose(i, dropped);
        }
        while self.0.over() {
            let longest = self.0.largest(|queue| queue.packets.len() as u64);
            self.0.lose(longest, dropped);
        }
    }

    fn dequeue(&mut self, _now: u64, _dropped: &mut Losses) -> Option<Packet> {
        loop {
            let i = *self.0.busy.first()?;
            if self.0.queues[i].credit > 0 {
                return Some(self.0.send(i));
            }
            self.0.queues[i].credit += self.0.quantum;
            self.0.busy.remove(0);
            self.0.busy.push(i);
        }
    }

    fn held(&self) -> (usize, u64) {
        self.0.held()
    }
}

fn drrs(
    n: &'static str,
    limit: &'static str,
    quantum: &'static str,
    drop: &'static str,
) -> impl Fn() -> (Real, Box<dyn Naive>) {
    let build = real::<Classful<Drr>>(&[
        ("flows", n),
        ("limit", limit),
        ("quantum", quantum),
        ("drop", drop),
    ]);
    let q = quantum.trim_end_matches('B').parse().unwrap();
    let round = Round::new(n.parse().unwrap(), limit, usize::MAX, q, drop);
    move || (build(), Box::new(PlainDrr(round.clone())))
}

fn sfqs(
    n: &'static str,
    limit: &'static str,
    depth: &'static str,
    quantum: &'static str,
    drop: &'static str,
) -> impl Fn() -> (Real, Box<dyn Naive>) {
    let build = real::<Sfq>(&[
        ("flows", n),
        ("limit", limit),
        ("depth", depth),
        ("quantum", quantum),
        ("drop", drop),
    ]);
    let q = quantum.trim_end_matches('B').parse().unwrap();
    let round = Round::new(n.parse().unwrap(), limit, depth.parse().unwrap(), q, drop);
    move || (build(), Box::new(PlainSfq(round.clone())))
}

/// Three flows, one with small, one with large packets.
const OPS: [Op; 4] = [Op::Put(1, 200, 0.0), Op::Put(2, 900, 0.0), Op::Put(3, 500, 0.0), Op::Get];

#[test]
fn drr() {
    for drop in ["head", "tail"] {
        for (n, limit, quantum) in [
            ("8", "4p", "500B"),
            ("8", "2000B", "500B"),
            ("2", "1500B", "300B"),
            ("8", "899B", "100B"),
            ("8", "20p", "1500B"),
            ("1", "3p", "64B"),
        ] {
            every(8, &OPS, &[], false, drrs(n, limit, quantum, drop));
            for seed in 0..10 {
                for limit in ["40p", "20kB"] {
                    let (real, naive) = drrs(n, limit, quantum, drop)();
                    long(seed, 3000, real, naive);
                }
            }
        }
    }
}

#[test]
fn drr_with_a_discipline_in_each_class() {
    for (n, quantum) in [("8", "500B"), ("2", "300B"), ("8", "1500B"), ("1", "64B")] {
        let both = || {
            let real = real::<Classful<Drr>>(&[
                ("flows", n),
                ("limit", "9999p"),
                ("quantum", quantum),
                ("children", "droptail droptail(limit=999kB)"),
            ])();
            (real, drrs(n, "9999p", quantum, "head")().1)
        };
        every(7, &OPS, &[], false, both);
        for seed in 0..5 {
            let (real, naive) = both();
            long(seed, 2000, real, naive);
        }
    }
}

#[test]
fn sfq() {
    for drop in ["head", "tail"] {
        for (n, limit, depth, quantum) in [
            ("8", "4p", "127", "500B"),
            ("8", "2000B", "127", "64B"),
            ("8", "5p", "2", "500B"),
            ("2", "5p", "1", "500B"),
            ("2", "899B", "2", "100B"),
            ("8", "20p", "3", "1500B"),
        ] {
            every(8, &OPS, &[], false, sfqs(n, limit, depth, quantum, drop));
            for seed in 0..10 {
                for limit in ["40p", "20kB"] {
                    let (real, naive) = sfqs(n, limit, depth, quantum, drop)();
                    long(seed, 3000, real, naive);
                }
            }
        }
    }
}

#[test]
fn schedulers_ignore_pauses() {
    let ops = [OPS[0], OPS[1], Op::Get, Op::Wait(Span::s(86_400))];
    every(8, &ops, &[], false, drrs("8", "4p", "500B", "head"));
    every(8, &ops, &[], false, sfqs("8", "4p", "2", "500B", "tail"));
}
