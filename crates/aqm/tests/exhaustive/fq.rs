//! fq, a queue per flow with pacing.

use crate::naive::{Losses, Naive, Real, bytes};
use crate::{Op, every, long, real};
use sojourn_aqm::sched::fq_paced::FqPaced;
use sojourn_aqm::{DropReason, Ecn, Packet, Size, Span};

#[derive(Clone)]
struct Flow {
    queue: Vec<Packet>,
    credit: i64,
    /// Time of the next packet; 0 if none is set.
    next: u64,
    idle_since: Option<u64>,
    band: usize,
}

/// Limits of a flow and of a packet. Rates are in bits per second, times in nanoseconds.
#[derive(Clone, Copy)]
struct Rules {
    limit: Size,
    flow_limit: usize,
    quantum: i64,
    initial: i64,
    maxrate: Option<u64>,
    low_rate: u64,
    refill: u64,
    /// Length of a tick of the clock for idle times; 1 for an exact clock.
    tick: u64,
    weights: [i64; 3],
    threshold: Option<u64>,
    horizon: u64,
    horizon_drop: bool,
}

/// tc-fq(8) and the description of sch_fq with priorities, with the departures on its page.
#[derive(Clone)]
struct PlainFq {
    rules: Rules,
    flows: Vec<Flow>,
    /// Flows of each priority in the order of their turns.
    new: [Vec<usize>; 3],
    old: [Vec<usize>; 3],
    credits: [i64; 3],
    band: usize,
    /// Delayed flows, in the order in which they were delayed.
    delayed: Vec<usize>,
    /// Packets that need no turn.
    fast: Vec<Packet>,
}

/// Priority of a DSCP: little delay asked for, much throughput, or neither.
fn band(dscp: u16) -> usize {
    match dscp / 2 % 4 {
        2 => 0,
        1 => 2,
        _ => 1,
    }
}

impl PlainFq {
    /// Lists the delayed flows whose time has come again, in the order of their times.
    fn release(&mut self, now: u64) {
        while let Some(first) = self.delayed.iter().map(|f| self.flows[*f].next).min()
            && first <= now
        {
            let place = self.delayed.iter().position(|f| self.flows[*f].next == first).unwrap();
            let f = self.delayed.remove(place);
            self.old[self.flows[f].band].push(f);
        }
    }

    fn is_listed(&self, f: usize) -> bool {
        self.new.iter().chain(&self.old).any(|list| list.contains(&f)) || self.delayed.contains(&f)
    }

    /// True if a flow has a packet that it may send now.
    fn has_ready_flow(&self) -> bool {
        (0..self.flows.len()).any(|f| !self.flows[f].queue.is_empty() && !self.delayed.contains(&f))
    }

    fn refilled(&self, since: u64, now: u64) -> bool {
        let Rules { refill, tick, .. } = self.rules;
        let start = if tick > 1 { (since / tick) | 1 } else { since };
        now / tick > start + refill.div_ceil(tick)
    }

    /// Time of a packet without the rate of its flow.
    fn own(&self, p: &Packet) -> u64 {
        let at = p.departure().map_or(p.arrived.0, |at| at.0);
        at.min(p.arrived.0 + self.rules.horizon)
    }

    /// Delays flow `f` after a packet of `len` bytes.
    fn pace(&mut self, f: usize, now: u64, len: u64, timed: bool) {
        let Rules { maxrate, low_rate, quantum, .. } = self.rules;
        let (Some(rate), flow) = (maxrate, &mut self.flows[f]) else { return };
        let slow = rate <= low_rate;
        if slow && !timed {
            flow.credit = 0;
        }
        if !slow && !timed && flow.credit > 0 {
            return;
        }
        let charged = if slow || timed { len } else { len.max(quantum as u64) };
        let delay = (charged * 8_000_000_000 / rate).min(1_000_000_000);
        let late = if flow.next == 0 { 0 } else { now - flow.next };
        flow.next = now + delay - late.min(delay / 2);
    }
}

impl Naive for PlainFq {
    fn enqueue(&mut self, now: u64, _u: f64, p: Packet, dropped: &mut Losses) {
        let rules = self.rules;
        let (packets, held) = self.held();
        let fits = rules.limit.holds(packets as u32 + 1, held + u64::from(p.len));
        let far = p.departure().is_some_and(|at| at.0 > now + rules.horizon);
        if !fits || (far && rules.horizon_drop) {
            return dropped.push((p, DropReason::Full));
        }
        self.release(now);
        let f = p.hash as usize % self.flows.len();
        let due = p.departure().is_none_or(|at| at.0 <= now);
        let empty = self.flows[f].queue.is_empty();
        let quiet = packets == 0 || (!self.has_ready_flow() && self.fast.len() < 8);
        if due && empty && quiet && rules.maxrate.is_none() {
            return self.fast.push(p);
        }
        if self.flows[f].queue.len() == rules.flow_limit {
            return dropped.push((p, DropReason::Full));
        }
        if !self.is_listed(f) {
            self.new[self.flows[f].band].push(f);
            if self.flows[f].idle_since.is_some_and(|since| self.refilled(since, now)) {
                self.flows[f].credit = self.flows[f].credit.max(rules.quantum);
            }
        }
        self.flows[f].band = band(p.class);
        self.flows[f].queue.push(p);
    }

    fn dequeue(&mut self, now: u64, _dropped: &mut Losses) -> Option<Packet> {
        if self.held().0 == 0 {
            return None;
        }
        if !self.fast.is_empty() {
            return Some(self.fast.remove(0));
        }
        self.release(now);
        loop {
            if self.new.concat().is_empty() && self.old.concat().is_empty() {
                return None;
            }
            let b = self.band;
            let from_new = !self.new[b].is_empty();
            let list = if from_new { &mut self.new[b] } else { &mut self.old[b] };
            if list.is_empty() || self.credits[b] <= 0 {
                self.band = (b + 1) % 3;
                let weight = self.rules.weights[self.band];
                self.credits[self.band] = weight.min(self.credits[self.band] + weight);
                continue;
            }
            let f = list[0];
            if self.flows[f].credit <= 0 {
                self.flows[f].credit += self.rules.quantum;
                list.remove(0);
                // A flow whose packets have another priority by now goes there.
                self.old[self.flows[f].band].push(f);
                continue;
            }
            let Some(head) = self.flows[f].queue.first().copied() else {
                list.remove(0);
                if from_new {
                    self.old[self.flows[f].band].push(f);
                } else {
                    self.flows[f].idle_since = Some(now);
                }
                continue;
            };
            let next = self.own(&head).max(self.flows[f].next);
            if next > now {
                let list = if from_new { &mut self.new[b] } else { &mut self.old[b] };
                list.remove(0);
                self.flows[f].next = next;
                self.delayed.push(f);
                continue;
            }
            let mut p = self.flows[f].queue.remove(0);
            let late = self.rules.threshold.is_some_and(|threshold| now - next > threshold);
            if late && p.ecn != Ecn::NotEct {
                p.ecn = Ecn::Ce;
            }
            self.flows[f].credit -= i64::from(p.len);
            self.credits[b] -= i64::from(p.len);
            self.pace(f, now, p.len.into(), p.departure().is_some());
            return Some(p);
        }
    }

    fn held(&self) -> (usize, u64) {
        let queues = || self.flows.iter().map(|f| &f.queue).chain([&self.fast]);
        (queues().map(Vec::len).sum(), queues().map(|queue| bytes(queue)).sum())
    }

    fn variable(&self, name: &str) -> Option<f64> {
        (name == "delayed_flows").then_some(self.delayed.len() as f64)
    }
}

const BASE: Rules = Rules {
    limit: Size::Packets(100),
    flow_limit: 100,
    quantum: 500,
    initial: 1000,
    maxrate: None,
    low_rate: 550_000,
    refill: 2_000_000,
    tick: 1,
    weights: [3000, 1000, 400],
    threshold: None,
    horizon: 10_000_000_000,
    horizon_drop: true,
};

const RULES: [Rules; 8] = [
    BASE,
    Rules { quantum: 64, initial: 0, threshold: Some(1_100_000), ..BASE },
    Rules { limit: Size::Packets(11), flow_limit: 2, tick: 1_000_000, ..BASE },
    Rules { limit: Size::Bytes(3000), horizon: 1_500_000, weights: [100, 900, 70], ..BASE },
    Rules { horizon: 2_000_000, horizon_drop: false, refill: 1_500_000, tick: 1_000_000, ..BASE },
    Rules { maxrate: Some(4_000_000), initial: 500, ..BASE },
    Rules { maxrate: Some(400_000), quantum: 3000, threshold: Some(0), ..BASE },
    Rules { maxrate: Some(3_000_000), low_rate: 3_000_000, weights: [1, 1, 1], ..BASE },
];

/// With four flows.
fn both(rules: Rules) -> impl Fn() -> (Real, Box<dyn Naive>) {
    let size = match rules.limit {
        Size::Packets(n) => format!("{n}p"),
        Size::Bytes(n) => format!("{n}B"),
    };
    let auto = || "auto".to_string();
    let words = [
        ("flows", "4".to_string()),
        ("limit", size),
        ("flow_limit", rules.flow_limit.to_string()),
        ("quantum", format!("{}B", rules.quantum)),
        ("initial_quantum", format!("{}B", rules.initial)),
        ("maxrate", rules.maxrate.map_or_else(auto, |rate| format!("{rate}bit"))),
        ("low_rate_threshold", format!("{}bit", rules.low_rate)),
        ("refill_delay", format!("{}ns", rules.refill)),
        ("hz", if rules.tick == 1 { auto() } else { (1_000_000_000 / rules.tick).to_string() }),
        ("weights", rules.weights.map(|bytes| format!("{bytes}B")).join(" ")),
        ("ce_threshold", rules.threshold.map_or_else(auto, |ns| format!("{ns}ns"))),
        ("horizon", format!("{}ns", rules.horizon)),
        ("horizon_drop", rules.horizon_drop.to_string()),
    ];
    let words = words.each_ref().map(|(name, value)| (*name, value.as_str()));
    let build = real::<FqPaced>(&words);
    let flow = Flow { queue: vec![], credit: rules.initial, next: 0, idle_since: None, band: 0 };
    let plain = PlainFq {
        rules,
        flows: vec![flow; 4],
        new: [const { vec![] }; 3],
        old: [const { vec![] }; 3],
        credits: rules.weights,
        band: 0,
        delayed: vec![],
        fast: vec![],
    };
    move || (build(), Box::new(plain.clone()))
}

#[test]
fn fq_in_every_short_interleaving() {
    let ops = [
        Op::Put(1, 400, 0.0),
        Op::Put(2, 900, 0.0),
        Op::Timed(3, 300, Span::us(1100)),
        Op::Get,
        Op::Wait(Span(1_100_000)),
    ];
    // Flows 5 and 1 are one queue, of two priorities.
    let prios = [Op::Put(5, 400, 0.0), Op::Put(1, 300, 0.0), Op::Put(2, 700, 0.0), Op::Get];
    let busy = [4, 4, 4, 4, 4, 4, 4, 4, 1, 2, 5, 3, 2, 1].map(|f| Op::Put(f, 100 + 90 * f, 0.0));
    let busy = [&[Op::Timed(4, 60, Span::us(900))], &busy[..], &[Op::Get; 8]].concat();
    for rules in RULES {
        every(7, &ops, &[], false, both(rules));
        every(6, &ops, &busy, false, both(rules));
        every(7, &prios, &busy, false, both(rules));
    }
}

#[test]
fn delayed_flows_are_served_in_the_order_of_their_times() {
    let ops = [
        Op::Timed(1, 300, Span::us(2000)),
        Op::Timed(2, 300, Span::us(1000)),
        Op::Timed(3, 300, Span::us(1000)),
        Op::Get,
        Op::Wait(Span::us(1000)),
    ];
    for rules in [BASE, RULES[4]] {
        every(7, &ops, &[], false, both(rules));
    }
}

#[test]
fn fq_over_long_random_arrivals() {
    for seed in 0..20 {
        for rules in RULES {
            let (real, naive) = both(rules)();
            long(seed, 3000, real, naive);
        }
    }
}
