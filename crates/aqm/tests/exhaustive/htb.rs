//! HTB, by the definition of what its buckets admit.

use crate::naive::{Losses, Naive, Real, bytes};
use crate::{Op, every, long, real};
use sojourn_aqm::sched::htb::Htb;
use sojourn_aqm::{DropReason, Packet, Rate, Size, Span};
use std::collections::BTreeMap;

/// Class: its parameters, and what it was charged at which times.
#[derive(Clone, Default)]
struct Class {
    parent: Option<usize>,
    rate: u64,
    ceil: u64,
    burst: u64,
    prio: u64,
    quantum: i64,
    /// Times and bytes.
    by_rate: Vec<(u64, u64)>,
    by_ceil: Vec<(u64, u64)>,
    queue: Vec<Packet>,
}

/// True if in some interval up to now more was charged than a rate and a burst allow.
fn overdrawn(charged: &[(u64, u64)], rate: u64, burst: u64, now: u64) -> bool {
    let mut total = 0;
    charged.iter().rev().any(|(at, bytes)| {
        total += u128::from(*bytes);
        let allowed = u128::from(rate) * u128::from(now - at);
        total * 8_000_000_000 > u128::from(burst) * 8_000_000_000 + allowed
    })
}

/// The manual of HTB: classes that lend, the lowest first; by priority, then in turns.
#[derive(Clone)]
struct PlainHtb {
    classes: Vec<Class>,
    default: usize,
    limit: Size,
    /// Next class to be served, of each lender's depth and priority.
    turns: BTreeMap<(usize, u64), usize>,
    /// Credits of each leaf by its lender's depth.
    credits: BTreeMap<(usize, usize), i64>,
}

impl PlainHtb {
    fn above(&self, i: usize) -> Vec<usize> {
        let mut all = vec![i];
        while let Some(parent) = self.classes[all[all.len() - 1]].parent {
            all.push(parent);
        }
        all
    }

    fn is_leaf(&self, i: usize) -> bool {
        self.classes.iter().all(|class| class.parent != Some(i))
    }

    /// Classes from the leaf `i` to the one that lends to it now, if there is one.
    fn borrowers(&self, now: u64, i: usize) -> Option<Vec<usize>> {
        let mut path = vec![];
        for k in self.above(i) {
            path.push(k);
            let class = &self.classes[k];
            if overdrawn(&class.by_ceil, class.ceil, class.burst, now) {
                return None;
            }
            if !overdrawn(&class.by_rate, class.rate, class.burst, now) {
                return Some(path);
            }
        }
        None
    }

    /// Depth of a lender, so that the lowest comes first; a leaf that needs none is below all.
    fn rank(&self, path: &[usize]) -> usize {
        if path.len() == 1 { 0 } else { 100 - self.above(path[path.len() - 1]).len() }
    }
}

impl Naive for PlainHtb {
    fn enqueue(&mut self, _now: u64, _u: f64, p: Packet, dropped: &mut Losses) {
        let stated = usize::from(p.class);
        let known = (1..=self.classes.len()).contains(&stated) && self.is_leaf(stated - 1);
        let queue = &mut self.classes[if known { stated - 1 } else { self.default }].queue;
        if self.limit.holds(queue.len() as u32 + 1, bytes(queue) + u64::from(p.len)) {
            queue.push(p);
        } else {
            dropped.push((p, DropReason::Full));
        }
    }

    fn dequeue(&mut self, now: u64, _dropped: &mut Losses) -> Option<Packet> {
        let busy = (0..self.classes.len()).filter(|i| !self.classes[*i].queue.is_empty());
        let ready: Vec<_> = busy.filter_map(|i| Some((i, self.borrowers(now, i)?))).collect();
        let round = |i: usize, path: &[usize]| (self.rank(path), self.classes[i].prio);
        let best = ready.iter().map(|(i, path)| round(*i, path)).min()?;
        let turn = self.turns.get(&best).copied().unwrap_or(0);
        let mut equal = ready.iter().filter(|(i, path)| round(*i, path) == best);
        let first = equal.clone().next();
        let (i, path) = equal.find(|(i, _)| *i >= turn).or(first)?.clone();
        let p = self.classes[i].queue.remove(0);
        let charge = (now, u64::from(p.len));
        let lender = path[path.len() - 1];
        for k in self.above(i) {
            self.classes[k].by_ceil.push(charge);
        }
        for k in self.above(lender) {
            self.classes[k].by_rate.push(charge);
        }
        let credit = self.credits.entry((i, best.0)).or_insert(0);
        *credit -= i64::from(p.len);
        let over = *credit < 0;
        if over {
            *credit += self.classes[i].quantum;
        }
        self.turns.insert(best, if over { i + 1 } else { i });
        Some(p)
    }

    fn held(&self) -> (usize, u64) {
        let queues = || self.classes.iter().map(|class| &class.queue);
        (queues().map(Vec::len).sum(), queues().map(|queue| bytes(queue)).sum())
    }
}

/// Rates in kbit/s, ceilings in kbit/s, parents, priorities, bursts, quanta; the default class and
/// the limit of each.
struct Tree {
    rates: &'static str,
    ceils: &'static str,
    parents: &'static str,
    prios: &'static str,
    bursts: &'static str,
    quanta: &'static str,
    default: &'static str,
    limit: &'static str,
}

fn numbers(words: &str) -> Vec<u64> {
    words.split(' ').map(|word| word.parse().unwrap()).collect()
}

fn units(words: &str, unit: &str) -> String {
    words.split(' ').map(|word| format!("{word}{unit}")).collect::<Vec<_>>().join(" ")
}

impl Tree {
    fn both(&self, children: bool) -> impl Fn() -> (Real, Box<dyn Naive>) + use<> {
        let child = format!("droptail(limit={})", self.limit);
        let queues = if children { ("children", &*child) } else { ("limits", self.limit) };
        let build = real::<Htb>(&[
            ("rates", &units(self.rates, "kbit")),
            ("ceils", &units(self.ceils, "kbit")),
            ("parents", self.parents),
            ("prios", self.prios),
            ("bursts", &units(self.bursts, "B")),
            ("quanta", &units(self.quanta, "B")),
            ("default", self.default),
            queues,
        ]);
        let columns = [self.ceils, self.parents, self.prios, self.bursts, self.quanta].map(numbers);
        let class = |(i, kbit): (usize, u64)| {
            let [ceil, parent, prio, burst, quantum] =
                columns.each_ref().map(|column| *column.get(i).or(column.last()).unwrap());
            let parent = usize::try_from(parent).unwrap().checked_sub(1);
            let (rate, ceil) = (Rate(kbit * 1000).0, ceil * 1000);
            let quantum = quantum as i64;
            Class { parent, rate, ceil, burst, prio, quantum, ..Class::default() }
        };
        let mut plain = PlainHtb {
            classes: numbers(self.rates).into_iter().enumerate().map(class).collect(),
            default: 0,
            limit: self.limit.parse().unwrap(),
            turns: BTreeMap::new(),
            credits: BTreeMap::new(),
        };
        let class = self.default.parse::<usize>().unwrap().checked_sub(1);
        plain.default = class.unwrap_or_else(|| (0..9).find(|i| plain.is_leaf(*i)).unwrap());
        move || (build(), Box::new(plain.clone()))
    }
}

const TREES: [Tree; 6] = [
    // Two leaves under one class.
    Tree {
        rates: "7000 3000 2000",
        ceils: "7000 7000 5000",
        parents: "0 1",
        prios: "0",
        bursts: "1600 700 301",
        quanta: "500 900 300",
        default: "0",
        limit: "3p",
    },
    // By priority; the ceiling of the root is below the rates of its children.
    Tree {
        rates: "3000 3000 1000",
        ceils: "4000 7000 7000",
        parents: "0 1",
        prios: "0 1 0",
        bursts: "0 0 1000",
        quanta: "1500",
        default: "3",
        limit: "1500B",
    },
    // The tree of the manual, with leaves at two depths.
    Tree {
        rates: "8000 3200 4800 800 2400",
        ceils: "8000 4000 8000",
        parents: "0 1 1 2 2",
        prios: "0",
        bursts: "1000 300",
        quanta: "1500 1500 600 100 300",
        default: "3",
        limit: "9p",
    },
    // Roots without a parent.
    Tree {
        rates: "3000 2000",
        ceils: "7000",
        parents: "0",
        prios: "2 1",
        bursts: "700",
        quanta: "64 1000",
        default: "1",
        limit: "9p",
    },
    // A chain of four with a leaf on each, and priorities that contradict the depths.
    Tree {
        rates: "6000 1000 3000 1000 2000 500 700",
        ceils: "6000 6000 4000 6000",
        parents: "0 1 1 3 3 5 5",
        prios: "0 2 0 1 0 1 1",
        bursts: "1600 400 800 100",
        quanta: "300 200 1000",
        default: "7",
        limit: "20p",
    },
    // One class.
    Tree {
        rates: "3000",
        ceils: "7000",
        parents: "0",
        prios: "7",
        bursts: "900",
        quanta: "1",
        default: "0",
        limit: "900B",
    },
];

#[test]
fn htb_in_every_short_interleaving() {
    let waits = [Op::Wait(Span(343_999)), Op::Wait(Span(1_100_001))];
    let ops = [Op::Put(2, 700, 0.0), Op::Put(3, 301, 0.0), Op::Get, waits[0], waits[1]];
    let low = [Op::Put(4, 900, 0.0), Op::Put(5, 500, 0.0), Op::Get, waits[0], waits[1]];
    let busy = [2, 3, 4, 5, 3, 2, 5, 4, 6, 7].map(|class| Op::Put(class, 100 + 100 * class, 0.0));
    let busy = [&busy[..], &[Op::Get, waits[0], Op::Get, waits[1], Op::Get]].concat();
    for tree in TREES {
        every(6, &ops, &[], false, tree.both(false));
        every(6, &low, &[], false, tree.both(false));
        every(5, &ops, &[], false, tree.both(true));
        let get = [Op::Get, waits[0], waits[1], Op::Put(3, 400, 0.0)];
        for children in [false, true] {
            every(7, &get, &busy, false, tree.both(children));
        }
    }
}

#[test]
fn htb_over_long_random_arrivals() {
    for seed in 0..10 {
        for tree in TREES {
            for children in [false, true] {
                let (real, naive) = tree.both(children)();
                long(seed, 500, real, naive);
            }
        }
    }
}
