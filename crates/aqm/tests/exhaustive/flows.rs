//! CHOKe, FRED, SRED and AFD: AQMs that distinguish flows. RED's average has a weight of one half,
//! its drop probability is non-gentle and spread as in the paper; the generator returns one number
//! for a whole arrival.

use crate::naive::{Losses, Naive, Real, bytes};
use crate::{Op, every, long, real};
use sojourn_aqm::aqm::{SingleQueue, afd, choke, fred, sred};
use sojourn_aqm::{DropReason, Ecn, Packet, Span};
use std::collections::BTreeMap;

const LIMIT: usize = 9;
const MIN_TH: f64 = 3.0;
const MAX_TH: f64 = 6.0;
const MAX_P: f64 = 0.3;
const RED: [(&str, &str); 6] = [
    ("limit", "9p"),
    ("ecn", "true"),
    ("w_q", "0.5"),
    ("min_th", "3p"),
    ("max_th", "6p"),
    ("max_p", "0.3"),
];

/// State of RED, with packets of 500 bytes at 8 mbit.
#[derive(Clone, Default)]
struct Avg {
    avg: f64,
    count: i64,
    idle_since: Option<u64>,
}

impl Avg {
    fn new() -> Avg {
        Avg { avg: 0.0, count: -1, idle_since: Some(0) }
    }

    fn update(&mut self, now: u64, q: usize) {
        if let Some(since) = self.idle_since {
            (0..(now - since) * 2000 / 1_000_000_000).for_each(|_| self.avg *= 0.5);
            self.idle_since = Some(now);
        }
        self.avg = 0.5 * self.avg + 0.5 * q as f64;
    }

    /// True if a packet is dropped or marked, in the band or above it.
    fn hit(&mut self, u: f64) -> bool {
        if self.avg < MIN_TH {
            self.count = -1;
            return false;
        }
        self.count += 1;
        let pb = MAX_P * (self.avg - MIN_TH) / (MAX_TH - MIN_TH);
        let spread = self.count as f64 * pb;
        let certain = self.avg >= MAX_TH || spread >= 1.0;
        let hit = certain || u < pb / (1.0 - spread);
        if hit {
            self.count = 0;
        }
        hit
    }
}

/// Applies the verdict of the AQM to an arrival: `None` to accept.
fn join(
    queue: &mut Vec<Packet>,
    mut p: Packet,
    verdict: Option<bool>,
    dropped: &mut Losses,
) -> bool {
    if queue.len() >= LIMIT {
        dropped.push((p, DropReason::Full));
        return false;
    }
    if let Some(may_mark) = verdict {
        if !may_mark || p.ecn == Ecn::NotEct {
            dropped.push((p, DropReason::AtEnqueue));
            return false;
        }
        p.ecn = Ecn::Ce;
    }
    queue.push(p);
    true
}

#[derive(Clone)]
struct PlainChoke {
    queue: Vec<Packet>,
    red: Avg,
    candidates: usize,
}

impl Naive for PlainChoke {
    fn enqueue(&mut self, now: u64, u: f64, p: Packet, dropped: &mut Losses) {
        self.red.update(now, self.queue.len());
        let mut matched = false;
        if self.red.avg > MIN_TH {
            for _ in 0..self.candidates {
                let k = (u * self.queue.len() as f64) as usize;
                if self.queue.get(k).is_some_and(|q| q.flow == p.flow) {
                    dropped.push((self.queue.remove(k), DropReason::AfterEnqueue));
                    matched = true;
                }
            }
        }
        if matched {
            return dropped.push((p, DropReason::AtEnqueue));
        }
        let verdict = self.red.hit(u).then_some(true);
        if self.queue.len() >= LIMIT {
            self.red.count = 0;
        }
        join(&mut self.queue, p, verdict, dropped);
    }

    fn dequeue(&mut self, now: u64, _dropped: &mut Losses) -> Option<Packet> {
        self.red.idle_since = self.queue.is_empty().then_some(now);
        (!self.queue.is_empty()).then(|| self.queue.remove(0))
    }

    fn held(&self) -> (usize, u64) {
        (self.queue.len(), bytes(&self.queue))
    }

    fn variable(&self, name: &str) -> Option<f64> {
        match name {
            "avg" => Some(self.red.avg),
            "count" => Some(self.red.count as f64),
            _ => None,
        }
    }
}

/// Lin and Morris, SIGCOMM 1997. The average is updated as in the paper: at an arrival that is
/// accepted or finds an empty queue, and at departures.
#[derive(Clone)]
struct PlainFred {
    queue: Vec<Packet>,
    red: Avg,
    strikes: BTreeMap<u32, u32>,
}

const MINQ: f64 = 2.0;

impl PlainFred {
    fn qlen(&self, flow: u32) -> f64 {
        self.queue.iter().filter(|p| p.flow == flow).count() as f64
    }

    fn nactive(&self) -> usize {
        self.queue.iter().map(|p| p.flow).collect::<std::collections::BTreeSet<_>>().len()
    }

    fn avgcq(&self) -> f64 {
        (self.red.avg / self.nactive().max(1) as f64).max(1.0)
    }
}

impl Naive for PlainFred {
    fn enqueue(&mut self, now: u64, u: f64, p: Packet, dropped: &mut Losses) {
        let nobody = self.queue.is_empty();
        if nobody {
            self.red.update(now, 0);
        }
        let (qlen, avgcq, avg) = (self.qlen(p.flow), self.avgcq(), self.red.avg);
        let maxq = if avg >= MAX_TH { 2.0 } else { MIN_TH };
        let strikes = self.strikes.get(&p.flow).copied().unwrap_or(0);
        let verdict = if qlen >= maxq
            || (avg >= MAX_TH && qlen > 2.0 * avgcq)
            || (qlen >= avgcq && strikes > 1)
        {
            self.strikes.insert(p.flow, strikes + 1);
            Some(false)
        } else if (MIN_TH..MAX_TH).contains(&avg) && qlen < MINQ.max(avgcq) {
            self.red.count += 1;
            None
        } else {
            self.red.hit(u).then_some(true)
        };
        if verdict.is_none() && !nobody {
            self.red.update(now, self.queue.len());
        }
        if self.queue.len() >= LIMIT {
            self.red.count = 0;
        }
        join(&mut self.queue, p, verdict, dropped);
    }

    fn dequeue(&mut self, now: u64, _dropped: &mut Losses) -> Option<Packet> {
        self.red.idle_since = self.queue.is_empty().then_some(now);
        if self.queue.is_empty() {
            return None;
        }
        let p = self.queue.remove(0);
        self.red.update(now, self.queue.len());
        if self.qlen(p.flow) == 0.0 {
            self.strikes.remove(&p.flow);
        }
        Some(p)
    }

    fn held(&self) -> (usize, u64) {
        (self.queue.len(), bytes(&self.queue))
    }

    fn variable(&self, name: &str) -> Option<f64> {
        Some(match name {
            "avg" => self.red.avg,
            "count" => self.red.count as f64,
            "avgcq" => self.avgcq(),
            "nactive" => self.nactive() as f64,
            _ => return None,
        })
    }
}

/// Ott et al., INFOCOM 1999, with 8 zombies.
#[derive(Clone)]
struct PlainSred {
    queue: Vec<Packet>,
    zombies: Vec<u32>,
    p: f64,
    full_form: bool,
}

impl Naive for PlainSred {
    fn enqueue(&mut self, _now: u64, u: f64, p: Packet, dropped: &mut Losses) {
        let mut hit = 0.0;
        if self.zombies.len() < 8 {
            self.zombies.push(p.flow);
        } else {
            let k = (8.0 * u) as usize;
            if self.zombies[k] == p.flow {
                hit = 1.0;
            } else if u < 0.25 {
                self.zombies[k] = p.flow;
            }
        }
        self.p = (1.0 - 0.001) * self.p + 0.001 * hit;
        let q = self.queue.len() as f64 / LIMIT as f64;
        let psred = [0.0, 0.15 / 4.0, 0.15];
        let psred = psred[usize::from(q >= 1.0 / 6.0) + usize::from(q >= 1.0 / 3.0)];
        let mut pz = psred;
        if self.p > 0.0 {
            let flows = 1.0 / (256.0 * self.p);
            pz *= (flows * flows).min(1.0);
            if self.full_form {
                pz *= 1.0 + hit / self.p;
            }
        }
        join(&mut self.queue, p, (u < pz).then_some(true), dropped);
    }

    fn dequeue(&mut self, _now: u64, _dropped: &mut Losses) -> Option<Packet> {
        (!self.queue.is_empty()).then(|| self.queue.remove(0))
    }

    fn held(&self) -> (usize, u64) {
        (self.queue.len(), bytes(&self.queue))
    }

    fn variable(&self, name: &str) -> Option<f64> {
        (name == "P").then_some(self.p)
    }
}

/// Pan et al., CCR 33(2), 2003, with 5 entries and every arrival sampled; time in steps of 4 ms,
/// gains that are exact in binary.
#[derive(Clone)]
struct PlainAfd {
    queue: Vec<Packet>,
    shadow: Vec<(u32, u32)>,
    m_fair: f64,
    q_old: f64,
    /// Time of the next sample; never before the first arrival.
    next: u64,
}

const STEP: u64 = 4_000_000;
const TARGET: f64 = 4500.0;

impl PlainAfd {
    fn catch_up(&mut self, now: u64) {
        let q = bytes(&self.queue) as f64;
        while self.next <= now {
            let step = 0.25 * (self.q_old - TARGET) - 0.375 * (q - TARGET);
            self.m_fair = (self.m_fair + step).clamp(1000.0, 5000.0);
            (self.q_old, self.next) = (q, self.next + STEP);
        }
    }
}

impl Naive for PlainAfd {
    fn enqueue(&mut self, now: u64, u: f64, p: Packet, dropped: &mut Losses) {
        if self.next == u64::MAX {
            self.next = now + STEP;
        }
        self.catch_up(now);
        if self.shadow.len() < 5 {
            self.shadow.push((p.flow, p.len));
        } else {
            self.shadow[(5.0 * u) as usize] = (p.flow, p.len);
        }
        let own = self.shadow.iter().filter(|e| e.0 == p.flow);
        let m_i: f64 = own.map(|e| f64::from(e.1)).sum();
        let d = if self.queue.is_empty() { 0.0 } else { (1.0 - self.m_fair / m_i).max(0.0) };
        join(&mut self.queue, p, (u < d).then_some(true), dropped);
    }

    fn dequeue(&mut self, now: u64, _dropped: &mut Losses) -> Option<Packet> {
        self.catch_up(now);
        (!self.queue.is_empty()).then(|| self.queue.remove(0))
    }

    fn held(&self) -> (usize, u64) {
        (self.queue.len(), bytes(&self.queue))
    }

    fn variable(&self, name: &str) -> Option<f64> {
        (name == "m_fair").then_some(self.m_fair)
    }
}

/// All short interleavings from an empty and from a filled queue, and long random sequences.
fn compare(fresh: impl Fn() -> (Real, Box<dyn Naive>)) {
    let ops = [
        Op::Put(1, 500, 0.02),
        Op::Put(2, 1000, 0.999_999),
        Op::Put(1, 300, 0.314_159),
        Op::Get,
        Op::Wait(Span::us(1500)),
    ];
    let some = [1, 2, 1, 3, 4, 1, 2].map(|flow| Op::Put(flow, 700, 0.999_999));
    every(5, &ops, &[], true, &fresh);
    every(6, &ops, &some, true, &fresh);
    for seed in 0..40 {
        let (real, naive) = fresh();
        long(seed, 4000, real, naive);
    }
}

#[test]
fn choke() {
    for (candidates, text) in [(1, "1"), (3, "3")] {
        let settings = [&RED[..], &[("candidates", text)]].concat();
        let build = real::<SingleQueue<choke::Choke>>(&settings);
        let naive = PlainChoke { queue: vec![], red: Avg::new(), candidates };
        compare(|| (build(), Box::new(naive.clone())));
    }
}

#[test]
fn fred() {
    let build = real::<SingleQueue<fred::Fred>>(&RED);
    let naive = PlainFred { queue: vec![], red: Avg::new(), strikes: BTreeMap::new() };
    compare(|| (build(), Box::new(naive.clone())));
}

#[test]
fn sred() {
    for (full_form, form) in [(true, "full"), (false, "simple")] {
        let settings =
            [("limit", "9p"), ("ecn", "true"), ("m", "8"), ("a", "0.001"), ("form", form)];
        let build = real::<SingleQueue<sred::Sred>>(&settings);
        let naive = PlainSred { queue: vec![], zombies: vec![], p: 0.0, full_form };
        compare(|| (build(), Box::new(naive.clone())));
    }
}

#[test]
fn afd() {
    let build = real::<SingleQueue<afd::Afd>>(&[
        ("limit", "9p"),
        ("ecn", "true"),
        ("b", "5"),
        ("s", "1"),
        ("q_target", "4500B"),
        ("alpha", "0.25"),
        ("beta", "0.375"),
        ("f_s", "250"),
    ]);
    let (queue, shadow) = (vec![], vec![]);
    let naive = PlainAfd { queue, shadow, m_fair: 1000.0, q_old: 0.0, next: u64::MAX };
    compare(|| (build(), Box::new(naive.clone())));
}
