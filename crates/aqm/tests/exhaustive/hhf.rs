//! HHF.

use crate::naive::{Losses, Naive, Real, bytes};
use crate::{Op, every, long, real};
use sojourn_aqm::sched::hhf::Hhf;
use sojourn_aqm::{DropReason, Packet, Size, Span};
use std::collections::BTreeMap;

/// The multistage filter of Estan and Varghese with conservative update, and two buckets under
/// deficit round robin with new and old ones.
#[derive(Clone)]
struct PlainHhf {
    limit: Size,
    /// Bytes per round of the heavy flows and of all others.
    quanta: [i64; 2],
    places: usize,
    admitted: u64,
    reset: u64,
    evict: u64,
    /// Bytes by array and place.
    counters: BTreeMap<(usize, u32), u64>,
    last_reset: Option<u64>,
    /// Heavy flows with the times at which they were seen.
    heavy: BTreeMap<u32, u64>,
    queues: [Vec<Packet>; 2],
    credits: [i64; 2],
    new: Vec<usize>,
    old: Vec<usize>,
}

impl PlainHhf {
    /// 0 for the bucket of heavy flows, 1 for the bucket of other flows.
    fn bucket(&mut self, now: u64, p: &Packet) -> usize {
        let since = *self.last_reset.get_or_insert(now);
        if now - since > self.reset {
            self.counters.clear();
            self.last_reset = Some(now);
        }
        let evict = self.evict;
        self.heavy.retain(|_, seen| now - *seen <= evict);
        if let Some(seen) = self.heavy.get_mut(&p.hash) {
            *seen = now;
            return 0;
        }
        let digits = [p.hash % 1024, p.hash / 1024 % 1024, p.hash / 1_048_576 % 1024];
        let parity = digits[0] ^ digits[1] ^ digits[2] ^ (p.hash / 1_073_741_824);
        let mine = [(0, digits[0]), (1, digits[1]), (2, digits[2]), (3, parity)];
        let counted = mine.map(|place| self.counters.get(&place).copied().unwrap_or(0));
        let total = counted.into_iter().min().unwrap() + u64::from(p.len);
        if total <= self.admitted {
            // None is raised by more than the flow can have sent.
            for (place, count) in mine.into_iter().zip(counted) {
                self.counters.insert(place, count.max(total));
            }
            return 1;
        }
        if self.heavy.len() == self.places {
            return 1;
        }
        self.heavy.insert(p.hash, now);
        0
    }
}

impl Naive for PlainHhf {
    fn enqueue(&mut self, now: u64, _u: f64, p: Packet, dropped: &mut Losses) {
        if !self.limit.holds(1, u64::from(p.len)) {
            return dropped.push((p, DropReason::Full));
        }
        let i = self.bucket(now, &p);
        self.queues[i].push(p);
        if !self.new.contains(&i) && !self.old.contains(&i) {
            self.credits[i] = self.quanta[i];
            [&mut self.old, &mut self.new][i].push(i);
        }
        while !self.limit.holds(self.held().0 as u32, self.held().1) {
            let queue = self.queues.iter_mut().find(|queue| !queue.is_empty()).unwrap();
            dropped.push((queue.remove(0), DropReason::Full));
        }
    }

    fn dequeue(&mut self, _now: u64, _dropped: &mut Losses) -> Option<Packet> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let i = *list.first()?;
            if self.credits[i] > 0 && !self.queues[i].is_empty() {
                let p = self.queues[i].remove(0);
                self.credits[i] -= i64::from(p.len);
                return Some(p);
            }
            list.remove(0);
            if self.credits[i] <= 0 {
                self.credits[i] += self.quanta[i];
                self.old.push(i);
            } else if is_new && !self.old.is_empty() {
                self.old.push(i);
            }
        }
    }

    fn held(&self) -> (usize, u64) {
        let all = self.queues.concat();
        (all.len(), bytes(&all))
    }

    fn variable(&self, name: &str) -> Option<f64> {
        match name {
            "heavy_hitters" => Some(self.heavy.len() as f64),
            "heavy_packets" => Some(self.queues[0].len() as f64),
            _ => None,
        }
    }
}

/// With these words for the limit, the quantum, the bytes that are admitted, the weight of the
/// others and the number of places.
fn both(
    [limit, quantum, admitted, weight, places]: [&str; 5],
) -> impl Fn() -> (Real, Box<dyn Naive>) {
    let build = real::<Hhf>(&[
        ("limit", limit),
        ("quantum", &format!("{quantum}B")),
        ("admit_bytes", &format!("{admitted}B")),
        ("non_hh_weight", weight),
        ("hh_limit", places),
        ("reset_timeout", "2ms"),
        ("evict_timeout", "3ms"),
    ]);
    let bytes: i64 = quantum.parse().unwrap();
    let plain = PlainHhf {
        limit: limit.parse().unwrap(),
        quanta: [bytes, bytes * weight.parse::<i64>().unwrap()],
        places: places.parse().unwrap(),
        admitted: admitted.parse().unwrap(),
        reset: 2_000_000,
        evict: 3_000_000,
        counters: BTreeMap::new(),
        last_reset: None,
        heavy: BTreeMap::new(),
        queues: [vec![], vec![]],
        credits: [0; 2],
        new: vec![],
        old: vec![],
    };
    move || (build(), Box::new(plain.clone()))
}

const CASES: [[&str; 5]; 6] = [
    ["100p", "500", "1000", "2", "2048"],
    ["4p", "1500", "900", "2", "1"],
    ["3000B", "64", "1300", "3", "2"],
    ["899B", "500", "0", "1", "2048"],
    ["6p", "1000", "2600", "1", "2"],
    ["100p", "300", "0", "4", "1"],
];

#[test]
fn hhf_in_every_short_interleaving() {
    // Two waits that end exactly at the time-outs, and a third.
    let waits = [Op::Wait(Span::ms(1)), Op::Wait(Span(1_000_001))];
    let ops = [Op::Put(1, 400, 0.0), Op::Put(2, 900, 0.0), Op::Get, waits[0], waits[1]];
    let busy = [1, 2, 1, 2, 2, 1, 1].map(|flow| Op::Put(flow, 400 * flow, 0.0));
    for case in CASES {
        every(7, &ops, &[], false, both(case));
        every(6, &ops, &busy, false, both(case));
        every(8, &ops[..3], &busy, false, both(case));
    }
}

#[test]
fn hhf_with_flows_that_share_counters() {
    // Each of flows 0, 1024 and 1025 shares one or two counters with flow 1, all together the four.
    let ops = [0, 1, 1024, 1025].map(|flow| Op::Put(flow, 300, 0.0));
    let digits = [1 << 20 | 1, 3 << 30 | 1].map(|flow| Op::Put(flow, 300, 0.0));
    let ops = [&ops[..], &digits, &[Op::Get]].concat();
    for case in [["100p", "500", "500", "2", "9"], ["100p", "500", "800", "2", "2"]] {
        every(6, &ops, &[], false, both(case));
    }
}

#[test]
fn hhf_over_long_random_arrivals() {
    for seed in 0..20 {
        for case in CASES.into_iter().chain([["50p", "1514", "4000", "2", "3"]]) {
            let (real, naive) = both(case)();
            long(seed, 3000, real, naive);
        }
    }
}
