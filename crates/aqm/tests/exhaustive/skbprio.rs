//! skbprio.

use crate::naive::{Losses, Naive, Real, bytes};
use crate::{Op, every, long, real};
use sojourn_aqm::sched::skbprio::SkbPrio;
use sojourn_aqm::{DropReason, Packet, Size};

/// One list in the order of arrival, which is searched for every decision.
#[derive(Clone)]
struct PlainSkbPrio {
    queue: Vec<Packet>,
    limit: Size,
}

/// Priority of a packet.
fn of(p: &Packet) -> u16 {
    p.class.min(63)
}

impl PlainSkbPrio {
    fn fits(&self, queue: &[Packet], p: &Packet) -> bool {
        self.limit.holds(queue.len() as u32 + 1, bytes(queue) + u64::from(p.len))
    }
}

impl Naive for PlainSkbPrio {
    fn enqueue(&mut self, _now: u64, _u: f64, p: Packet, dropped: &mut Losses) {
        let mut left = self.queue.clone();
        let mut victims = Losses::new();
        while !self.fits(&left, &p) {
            // The last arrival of the lowest priority.
            let lowest = left.iter().map(of).min().filter(|lowest| *lowest < of(&p));
            let Some(i) = left.iter().rposition(|queued| Some(of(queued)) == lowest) else {
                dropped.push((p, DropReason::Full));
                return;
            };
            victims.push((left.remove(i), DropReason::Full));
        }
        left.push(p);
        dropped.extend(victims);
        self.queue = left;
    }

    fn dequeue(&mut self, _now: u64, _dropped: &mut Losses) -> Option<Packet> {
        let highest = self.queue.iter().map(of).max()?;
        let first = self.queue.iter().position(|p| of(p) == highest)?;
        Some(self.queue.remove(first))
    }

    fn held(&self) -> (usize, u64) {
        (self.queue.len(), bytes(&self.queue))
    }

    fn variable(&self, name: &str) -> Option<f64> {
        let all = self.queue.iter().map(of);
        match name {
            "highest_prio" => Some(all.max().unwrap_or(0).into()),
            _ => Some(all.min().unwrap_or(63).into()),
        }
    }
}

fn both(limit: &str) -> impl Fn() -> (Real, Box<dyn Naive>) {
    let build = real::<SkbPrio>(&[("limit", limit)]);
    let plain = PlainSkbPrio { queue: Vec::new(), limit: limit.parse().unwrap() };
    move || (build(), Box::new(plain.clone()))
}

#[test]
fn skbprio_in_every_short_interleaving_and_long_ones() {
    let ops = [Op::Put(0, 200, 0.0), Op::Put(9, 900, 0.0), Op::Put(70, 500, 0.0), Op::Get];
    for limit in ["1p", "2p", "3p", "1100B", "1800B"] {
        every(8, &ops, &[], false, both(limit));
        for seed in 0..10 {
            let (real, naive) = both(limit)();
            long(seed, 3000, real, naive);
        }
    }
}
