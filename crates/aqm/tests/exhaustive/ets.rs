//! ETS: strict queues, then deficit round robin; and prio, which has strict queues only.

use crate::naive::{Losses, Naive, Real, bytes};
use crate::{Op, every, long, real};
use sojourn_aqm::Packet;
use sojourn_aqm::sched::{classful::Classful, ets::Ets, prio::Priority};

/// Queues with an endless buffer.
#[derive(Clone)]
struct PlainEts {
    queues: Vec<Vec<Packet>>,
    strict: usize,
    quanta: Vec<u64>,
    credits: Vec<u64>,
    /// Weighted queues with packets; the first is being served.
    round: Vec<usize>,
    /// True if the first queue of the round has its quantum.
    visited: bool,
}

impl PlainEts {
    fn new(strict: usize, quanta: &[u64]) -> PlainEts {
        let (n, quanta) = (strict + quanta.len(), quanta.to_vec());
        let (queues, credits) = (vec![vec![]; n], vec![0; n]);
        PlainEts { queues, strict, quanta, credits, round: vec![], visited: false }
    }

    /// Ends the turn of the first queue of the round.
    fn end_turn(&mut self) {
        let first = self.round.remove(0);
        self.visited = false;
        if self.queues[first].is_empty() {
            self.credits[first] = 0;
        } else {
            self.round.push(first);
        }
    }
}

impl Naive for PlainEts {
    fn enqueue(&mut self, _now: u64, _u: f64, p: Packet, _dropped: &mut Losses) {
        let i = p.flow as usize % self.queues.len();
        if self.queues[i].is_empty() && i >= self.strict {
            self.round.push(i);
        }
        self.queues[i].push(p);
    }

    fn dequeue(&mut self, _now: u64, _dropped: &mut Losses) -> Option<Packet> {
        if let Some(queue) = self.queues[..self.strict].iter_mut().find(|queue| !queue.is_empty()) {
            return Some(queue.remove(0));
        }
        loop {
            let i = *self.round.first()?;
            if !self.visited {
                self.visited = true;
                self.credits[i] += self.quanta[i - self.strict];
            }
            let len = u64::from(self.queues[i][0].len);
            if len <= self.credits[i] {
                self.credits[i] -= len;
                let packet = self.queues[i].remove(0);
                if self.queues[i].is_empty() {
                    self.end_turn();
                }
                return Some(packet);
            }
            self.end_turn();
        }
    }

    fn held(&self) -> (usize, u64) {
        let queues = || self.queues.iter();
        (queues().map(Vec::len).sum(), queues().map(|queue| bytes(queue)).sum())
    }
}

/// Disciplines of the classes: none, or FIFO queues as disciplines, which must make no difference.
const CHILDREN: [&str; 2] = ["", "droptail(limit=100000p)"];

fn ets(
    strict: usize,
    quanta: &[u64],
    children: &str,
) -> impl Fn() -> (Real, Box<dyn Naive>) + use<> {
    let n = strict + quanta.len();
    let words: Vec<String> = quanta.iter().map(|quantum| format!("{quantum}B")).collect();
    let words = if words.is_empty() { "1B".to_string() } else { words.join(" ") };
    let build = real::<Classful<Ets>>(&[
        ("by", "flow"),
        ("flows", &n.to_string()),
        ("strict", &strict.to_string()),
        ("quanta", &words),
        ("limit", "100000p"),
        ("children", children),
    ]);
    let plain = PlainEts::new(strict, quanta);
    move || (build(), Box::new(plain.clone()))
}

fn prio(n: usize, children: &str) -> impl Fn() -> (Real, Box<dyn Naive>) + use<> {
    let build = real::<Classful<Priority>>(&[
        ("by", "flow"),
        ("flows", &n.to_string()),
        ("limit", "100000p"),
        ("children", children),
    ]);
    let plain = PlainEts::new(n, &[]);
    move || (build(), Box::new(plain.clone()))
}

const OPS: [Op; 4] = [Op::Put(0, 200, 0.0), Op::Put(1, 900, 0.0), Op::Put(2, 500, 0.0), Op::Get];

#[test]
fn every_short_sequence_and_long_ones() {
    for (strict, quanta) in [
        (1, &[1000, 400][..]),
        (0, &[300, 900, 100]),
        (2, &[700]),
        (3, &[]),
        (1, &[1500, 1500, 500]),
    ] {
        every(8, &OPS, &[], false, ets(strict, quanta, CHILDREN[0]));
        every(7, &OPS, &[], false, ets(strict, quanta, CHILDREN[1]));
        for (seed, children) in (0..6).zip(CHILDREN.iter().cycle()) {
            let (real, naive) = ets(strict, quanta, children)();
            long(seed, 2000, real, naive);
        }
    }
}

#[test]
fn prio_in_every_short_sequence_and_long_ones() {
    for n in [1, 2, 3, 5] {
        every(8, &OPS, &[], false, prio(n, CHILDREN[0]));
        every(7, &OPS, &[], false, prio(n, CHILDREN[1]));
        for (seed, children) in (0..6).zip(CHILDREN.iter().cycle()) {
            let (real, naive) = prio(n, children)();
            long(seed, 2000, real, naive);
        }
    }
}
