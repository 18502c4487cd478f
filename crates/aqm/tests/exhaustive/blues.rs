//! BLUE and COBALT.

use crate::naive::{Losses, Naive, Real, bytes};
use crate::{Op, every, long, real};
use sojourn_aqm::aqm::{SingleQueue, blue, cobalt};
use sojourn_aqm::{DropReason, Ecn, Packet, Span};

fn mark(ecn: bool, p: &mut Packet) -> bool {
    if ecn && p.ecn != Ecn::NotEct {
        p.ecn = Ecn::Ce;
        return true;
    }
    false
}

// Powers of two, so that sums are exact in any order.
const D1: f64 = 0.125;
const D2: f64 = 0.015_625;
const FREEZE: u64 = 3_000_000;
const LIMIT: usize = 4;

/// Feng et al., CSE-TR-387-99, with an idle event every `FREEZE` while the link is idle.
#[derive(Clone)]
struct PlainBlue {
    l: Option<usize>,
    two_clocks: bool,
    queue: Vec<Packet>,
    pm: f64,
    last_up: Option<u64>,
    last_down: Option<u64>,
    next_idle: Option<u64>,
}

impl PlainBlue {
    fn thawed(&self, now: u64, last: Option<u64>) -> bool {
        last.is_none_or(|last| now - last >= FREEZE)
    }

    fn up(&mut self, now: u64) {
        if self.thawed(now, self.last_up) {
            self.pm = (self.pm + D1).min(1.0);
            self.last_up = Some(now);
            if !self.two_clocks {
                self.last_down = Some(now);
            }
        }
    }

    fn down(&mut self, now: u64) {
        if self.thawed(now, self.last_down) {
            self.pm = (self.pm - D2).max(0.0);
            self.last_down = Some(now);
            if !self.two_clocks {
                self.last_up = Some(now);
            }
        }
    }

    fn catch_up(&mut self, now: u64) {
        while let Some(at) = self.next_idle.filter(|at| *at <= now) {
            self.down(at);
            self.next_idle = Some(at + FREEZE);
        }
    }
}

impl Naive for PlainBlue {
    fn enqueue(&mut self, now: u64, u: f64, mut p: Packet, dropped: &mut Losses) {
        self.catch_up(now);
        if self.l.is_some_and(|l| self.queue.len() > l) {
            self.up(now);
        }
        let signal = u < self.pm;
        if self.queue.len() == LIMIT {
            self.up(now);
            return dropped.push((p, DropReason::Full));
        }
        if signal && !mark(true, &mut p) {
            return dropped.push((p, DropReason::AtEnqueue));
        }
        self.queue.push(p);
    }

    fn dequeue(&mut self, now: u64, _dropped: &mut Losses) -> Option<Packet> {
        self.catch_up(now);
        if self.queue.is_empty() {
            if self.next_idle.is_none() {
                self.down(now);
                self.next_idle = Some(now + FREEZE);
            }
            return None;
        }
        self.next_idle = None;
        Some(self.queue.remove(0))
    }

    fn held(&self) -> (usize, u64) {
        (self.queue.len(), bytes(&self.queue))
    }

    fn variable(&self, name: &str) -> Option<f64> {
        (name == "pm").then_some(self.pm)
    }
}

fn blues(l: Option<usize>, two_clocks: bool) -> impl Fn() -> (Real, Box<dyn Naive>) {
    let l_text = l.map_or("auto".to_string(), |l| format!("{l}p"));
    let build = real::<SingleQueue<blue::Blue>>(&[
        ("limit", "4p"),
        ("ecn", "true"),
        ("d1", "0.125"),
        ("d2", "0.015625"),
        ("freeze", "3ms"),
        ("threshold", &l_text),
        ("clocks", if two_clocks { "two" } else { "one" }),
    ]);
    let (pm, queue) = (0.0, vec![]);
    let naive =
        PlainBlue { l, two_clocks, queue, pm, last_up: None, last_down: None, next_idle: None };
    move || (build(), Box::new(naive.clone()))
}

#[test]
fn blue() {
    let ops = [
        Op::Put(1, 500, 0.1),
        Op::Put(2, 1000, 0.999_999),
        Op::Get,
        Op::Wait(Span::ms(2)),
        Op::Wait(Span::ms(10)),
    ];
    let full = [Op::Put(2, 500, 0.999_999); 6];
    for l in [None, Some(2)] {
        for two_clocks in [false, true] {
            every(6, &ops, &full, true, blues(l, two_clocks));
            for seed in 0..20 {
                let (real, naive) = blues(l, two_clocks)();
                long(seed, 5000, real, naive);
            }
        }
    }
}

const P_INC: f64 = 0.25;
const P_DEC: f64 = 0.015_625;

/// Palmei et al., LANMAN 2019, over one queue with tail drop.
#[derive(Clone, Default)]
struct PlainCobalt {
    queue: Vec<Packet>,
    limit: usize,
    target: u64,
    interval: u64,
    mtu_time: u64,
    ecn: bool,
    count: u64,
    drop_next: u64,
    dropping: bool,
    pblue: f64,
    blue_t: Option<u64>,
}

impl PlainCobalt {
    /// interval / sqrt(count) in integers; 1/sqrt(0) is 1.
    fn step(&self) -> u64 {
        let square = u128::from(self.interval) * u128::from(self.interval);
        (square / u128::from(self.count.max(1))).isqrt() as u64
    }

    fn should_drop(&mut self, now: u64, p: &mut Packet) -> bool {
        let s = now - p.arrived.0;
        let over = s > self.target && s > 4 * self.mtu_time;
        let mut due = self.count > 0 && now >= self.drop_next;
        if over {
            if !self.dropping {
                self.dropping = true;
                self.drop_next = now + self.step();
            }
            if self.count == 0 {
                self.count = 1;
            }
        } else {
            self.dropping = false;
        }
        let mut drop = false;
        if due && self.dropping {
            drop = !mark(self.ecn, p);
            self.count += 1;
            self.drop_next += self.step();
        } else {
            while due {
                self.count -= 1;
                self.drop_next += self.step();
                due = self.count > 0 && now >= self.drop_next;
            }
        }
        // Departures see a random number of one half.
        if self.pblue > 0.0 && !drop {
            drop = 0.5 < self.pblue;
        }
        if self.count == 0 {
            self.drop_next = now + self.interval;
        } else if now > self.drop_next && !drop {
            self.drop_next = now;
        }
        drop
    }

    fn may_change(&self, now: u64) -> bool {
        self.blue_t.is_none_or(|t| now - t > self.target)
    }
}

impl Naive for PlainCobalt {
    fn enqueue(&mut self, now: u64, _u: f64, p: Packet, dropped: &mut Losses) {
        if self.queue.len() < self.limit {
            return self.queue.push(p);
        }
        if self.may_change(now) {
            self.pblue = (self.pblue + P_INC).min(1.0);
            self.blue_t = Some(now);
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
        dropped.push((p, DropReason::Full));
    }

    fn dequeue(&mut self, now: u64, dropped: &mut Losses) -> Option<Packet> {
        while !self.queue.is_empty() {
            let mut p = self.queue.remove(0);
            if !self.should_drop(now, &mut p) || self.queue.is_empty() {
                return Some(p);
            }
            dropped.push((p, DropReason::AfterEnqueue));
        }
        if self.pblue > 0.0 && self.may_change(now) {
            self.pblue = (self.pblue - P_DEC).max(0.0);
            self.blue_t = Some(now);
        }
        self.dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.count -= 1;
            self.drop_next += self.step();
        }
        None
    }

    fn held(&self) -> (usize, u64) {
        (self.queue.len(), bytes(&self.queue))
    }

    fn variable(&self, name: &str) -> Option<f64> {
        Some(match name {
            "count" => self.count as f64,
            "dropping" => f64::from(u8::from(self.dropping)),
            "drop_next" => self.drop_next as f64 / 1e9,
            "p_blue" => self.pblue,
            _ => return None,
        })
    }
}

fn cobalts(limit: usize, times: [&str; 2], ecn: bool) -> impl Fn() -> (Real, Box<dyn Naive>) {
    let [target, interval] = times;
    let build = real::<SingleQueue<cobalt::Cobalt>>(&[
        ("limit", &format!("{limit}p")),
        ("target", target),
        ("interval", interval),
        ("mtu", "200B"),
        ("p_inc", "0.25"),
        ("p_dec", "0.015625"),
        ("ecn", if ecn { "true" } else { "false" }),
    ]);
    let ns = |text: &str| text.parse::<Span>().unwrap().0;
    let (target, interval) = (ns(target), ns(interval));
    // 200 bytes take 0.2 ms.
    let naive =
        PlainCobalt { limit, target, interval, mtu_time: 200_000, ecn, ..PlainCobalt::default() };
    move || (build(), Box::new(naive.clone()))
}

#[test]
fn cobalt() {
    let ops = [
        Op::Put(1, 400, 0.0),
        Op::Put(2, 900, 0.0),
        Op::Get,
        Op::Wait(Span::us(1500)),
        Op::Wait(Span::ms(40)),
    ];
    let old = [1, 2, 1, 2, 1, 1, 2, 2].map(|flow| Op::Put(flow, 400 * flow, 0.0));
    let old = [&old[..], &[Op::Wait(Span::ms(2)), Op::Get, Op::Wait(Span::ms(3))]].concat();
    for ecn in [true, false] {
        every(6, &ops, &[], false, cobalts(3, ["1ms", "2ms"], ecn));
        every(7, &ops, &old, false, cobalts(9, ["1ms", "2ms"], ecn));
        for seed in 0..30 {
            for times in [["5ms", "100ms"], ["1ms", "10ms"], ["1us", "1us"], ["20ms", "30ms"]] {
                for limit in [10, 200] {
                    let (real, naive) = cobalts(limit, times, ecn)();
                    long(seed, 5000, real, naive);
                }
            }
        }
    }
}
