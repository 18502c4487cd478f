//! multiq: a packet of each queue in turn.

use crate::naive::{Losses, Naive, Real, bytes};
use crate::{Op, every, long, real};
use sojourn_aqm::sched::{classful::Classful, multiq::RoundRobin};
use sojourn_aqm::{DropReason, Packet};

/// Queues of at most `limit` packets, and the one that is next.
#[derive(Clone)]
struct PlainRounds {
    queues: Vec<Vec<Packet>>,
    limit: usize,
    turn: usize,
}

impl Naive for PlainRounds {
    fn enqueue(&mut self, _now: u64, _u: f64, p: Packet, dropped: &mut Losses) {
        let n = self.queues.len();
        let queue = &mut self.queues[p.flow as usize % n];
        if queue.len() == self.limit {
            dropped.push((p, DropReason::Full));
        } else {
            queue.push(p);
        }
    }

    fn dequeue(&mut self, _now: u64, _dropped: &mut Losses) -> Option<Packet> {
        let n = self.queues.len();
        let order: Vec<usize> = (self.turn..self.turn + n).map(|i| i % n).collect();
        let i = order.into_iter().find(|i| !self.queues[*i].is_empty())?;
        self.turn = (i + 1) % n;
        Some(self.queues[i].remove(0))
    }

    fn held(&self) -> (usize, u64) {
        let queues = || self.queues.iter();
        (queues().map(Vec::len).sum(), queues().map(|queue| bytes(queue)).sum())
    }
}

/// FIFO queues with buffers of their own, as parameters and as disciplines.
fn multiq(n: usize, limit: usize, child: bool) -> impl Fn() -> (Real, Box<dyn Naive>) {
    let buffers = match child {
        true => ("children", format!("droptail(limit={limit}p)")),
        false => ("limits", format!("{limit}p")),
    };
    let build = real::<Classful<RoundRobin<false>>>(&[
        ("by", "hash"),
        ("flows", &n.to_string()),
        ("limit", "100000p"),
        (buffers.0, &buffers.1),
    ]);
    let plain = PlainRounds { queues: vec![vec![]; n], limit, turn: 1 % n };
    move || (build(), Box::new(plain.clone()))
}

const OPS: [Op; 5] = [
    Op::Put(0, 200, 0.0),
    Op::Put(1, 900, 0.0),
    Op::Put(2, 500, 0.0),
    Op::Put(3, 60, 0.0),
    Op::Get,
];

#[test]
fn every_short_sequence_and_long_ones() {
    for (n, limit) in [(1, 2), (2, 1), (3, 2), (4, 1), (5, 3)] {
        for child in [false, true] {
            every(7, &OPS, &[], false, multiq(n, limit, child));
            for seed in 0..4 {
                let (real, naive) = multiq(n, 40 * limit, child)();
                long(seed, 2000, real, naive);
            }
        }
    }
    for (n, child) in [(64, false), (65, true), (200, false)] {
        let (real, naive) = multiq(n, 9, child)();
        long(7, 4000, real, naive);
    }
}
