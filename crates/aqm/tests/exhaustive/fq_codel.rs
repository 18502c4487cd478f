//! FQ-CoDel.

use crate::naive::{Losses, Naive, Real, bytes};
use crate::single::PlainCoDel;
use crate::{Op, every, long, real};
use sojourn_aqm::aqm::codel::CoDel;
use sojourn_aqm::sched::fq::Fq;
use sojourn_aqm::{DropReason, Packet, Size, Span};

#[derive(Clone)]
struct Flow {
    queue: Vec<Packet>,
    aqm: PlainCoDel,
    deficit: i64,
}

/// RFC 8290 §4, with lists of flow numbers.
#[derive(Clone)]
struct PlainFqCoDel {
    flows: Vec<Flow>,
    new: Vec<usize>,
    old: Vec<usize>,
    limit: Size,
    quantum: i64,
    batch: usize,
}

impl Naive for PlainFqCoDel {
    fn enqueue(&mut self, _now: u64, _u: f64, p: Packet, dropped: &mut Losses) {
        if !self.limit.holds(1, u64::from(p.len)) {
            return dropped.push((p, DropReason::Full));
        }
        let i = p.hash as usize % self.flows.len();
        let flow = &mut self.flows[i];
        flow.queue.push(p);
        flow.aqm.maxpacket = flow.aqm.maxpacket.max(u64::from(p.len));
        if !self.new.contains(&i) && !self.old.contains(&i) {
            flow.deficit = self.quantum;
            self.new.push(i);
        }
        while !self.limit.holds(self.held().0 as u32, self.held().1) {
            // The flow with the largest backlog, lowest number first, drops half of it, or a batch.
            let most = self.flows.iter().map(|f| bytes(&f.queue)).max().unwrap();
            let longest = self.flows.iter_mut().find(|f| bytes(&f.queue) == most).unwrap();
            let mut batch = (0, 0);
            while batch.0 < self.batch && 2 * batch.1 < most {
                let victim = longest.queue.remove(0);
                batch = (batch.0 + 1, batch.1 + u64::from(victim.len));
                dropped.push((victim, DropReason::Full));
            }
            longest.aqm.count += batch.0 as u64;
        }
    }

    fn dequeue(&mut self, now: u64, dropped: &mut Losses) -> Option<Packet> {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let i = *list.first()?;
            let flow = &mut self.flows[i];
            if flow.deficit <= 0 {
                flow.deficit += self.quantum;
                list.remove(0);
                self.old.push(i);
                continue;
            }
            if let Some(p) = flow.aqm.dequeue(now, &mut flow.queue, dropped) {
                flow.deficit -= i64::from(p.len);
                return Some(p);
            }
            list.remove(0);
            if from_new && !self.old.is_empty() {
                self.old.push(i);
            }
        }
    }

    fn held(&self) -> (usize, u64) {
        let queues = || self.flows.iter().map(|f| &f.queue);
        (queues().map(Vec::len).sum(), queues().map(|queue| bytes(queue)).sum())
    }
}

fn both(
    quantum: &'static str,
    limit: &'static str,
    batch: &'static str,
    times: [&'static str; 2],
    ecn: &'static str,
) -> impl Fn() -> (Real, Box<dyn Naive>) {
    let build = real::<Fq<CoDel>>(&[
        ("flows", "4"),
        ("limit", limit),
        ("drop_batch", batch),
        ("quantum", quantum),
        ("target", times[0]),
        ("interval", times[1]),
        ("ecn", ecn),
    ]);
    let [target, interval] = times.map(|t| t.parse::<Span>().unwrap());
    let aqm = PlainCoDel::new(target, interval, ecn == "true");
    let flow = Flow { queue: vec![], aqm, deficit: 0 };
    let plain = PlainFqCoDel {
        flows: vec![flow; 4],
        new: vec![],
        old: vec![],
        limit: limit.parse().unwrap(),
        quantum: quantum.trim_end_matches('B').parse().unwrap(),
        batch: batch.parse().unwrap(),
    };
    move || (build(), Box::new(plain.clone()))
}

#[test]
fn fq_codel_in_every_short_interleaving() {
    let ops = [Op::Put(1, 400, 0.0), Op::Put(2, 900, 0.0), Op::Get, Op::Wait(Span::us(1500))];
    let old = [1, 2, 1, 2, 1, 1, 2, 3].map(|flow| Op::Put(flow, 400 + flow, 0.0));
    let old = [&old[..], &[Op::Wait(Span::ms(2)), Op::Get, Op::Get]].concat();
    for ecn in ["true", "false"] {
        for (limit, batch) in [("4p", "64"), ("3000B", "2"), ("899B", "64")] {
            every(8, &ops, &[], false, both("500B", limit, batch, ["1ms", "2ms"], ecn));
        }
        let three = [ops[0], Op::Put(3, 100, 0.0), Op::Get, Op::Wait(Span::ms(2))];
        every(8, &ops, &old, false, both("64B", "9p", "64", ["1ms", "2ms"], ecn));
        every(8, &three, &old, false, both("1000B", "100p", "1", ["1ms", "1ms"], ecn));
    }
}

#[test]
fn fq_codel_over_long_random_arrivals() {
    for seed in 0..40 {
        for ecn in ["true", "false"] {
            for times in [["5ms", "100ms"], ["1ms", "10ms"], ["1us", "1us"]] {
                for (quantum, limit, batch) in
                    [("500B", "1000p", "64"), ("64B", "60p", "8"), ("1514B", "30kB", "64")]
                {
                    let (real, naive) = both(quantum, limit, batch, times, ecn)();
                    long(seed, 3000, real, naive);
                }
            }
        }
    }
}
