//! cbs.

use crate::naive::{Losses, Naive, Real, bytes};
use crate::{Op, every, long, real};
use sojourn_aqm::sched::cbs::Cbs;
use sojourn_aqm::{DropReason, Packet, Span};

/// Credits in thousandths of a bit. All times are whole microseconds, and so all numbers are whole.
#[derive(Clone)]
struct PlainCbs {
    queue: Vec<Packet>,
    limit: usize,
    /// Slopes in bits per millisecond.
    idle: i64,
    send: i64,
    /// Bounds in thousandths of a bit.
    hi: i64,
    lo: i64,
    /// Credits at `end`, in thousandths of a bit.
    credits: i64,
    /// Microsecond at which the last packet ends.
    end: i64,
}

/// Rate of the link, bits per millisecond.
const PORT: i64 = 8000;

impl PlainCbs {
    /// Credits at a microsecond from `end` on.
    fn credits(&self, now: i64) -> i64 {
        let grown = (self.credits + (now - self.end) * self.idle).min(self.hi);
        if self.credits < 0 { grown } else { self.credits }
    }
}

impl Naive for PlainCbs {
    fn enqueue(&mut self, now: u64, _u: f64, p: Packet, dropped: &mut Losses) {
        if self.queue.len() == self.limit {
            dropped.push((p, DropReason::Full));
            return;
        }
        if self.queue.is_empty() && self.credits > 0 {
            (self.credits, self.end) = (0, now as i64 / 1000);
        }
        self.queue.push(p);
    }

    fn dequeue(&mut self, now: u64, _dropped: &mut Losses) -> Option<Packet> {
        let now = now as i64 / 1000;
        if now < self.end || self.credits(now) < 0 || self.queue.is_empty() {
            return None;
        }
        let packet = self.queue.remove(0);
        let bits = i64::from(packet.len) * 8;
        self.credits = (self.credits(now) - bits * 1000 * self.send / PORT).max(self.lo);
        self.end = now + bits * 1000 / PORT;
        Some(packet)
    }

    fn held(&self) -> (usize, u64) {
        (self.queue.len(), bytes(&self.queue))
    }

    fn variable(&self, _name: &str) -> Option<f64> {
        Some(self.credits as f64 / 8000.0)
    }
}

fn both(idle: i64, send: i64, hi: i64, lo: i64) -> impl Fn() -> (Real, Box<dyn Naive>) {
    let build = real::<Cbs>(&[
        ("idleslope", &format!("{idle}kbit")),
        ("sendslope", &format!("{send}kbit")),
        ("hicredit", &format!("{hi}B")),
        ("locredit", &format!("{lo}B")),
        ("limit", "3p"),
    ]);
    let plain = PlainCbs {
        queue: Vec::new(),
        limit: 3,
        idle,
        send,
        hi: hi * 8000,
        lo: -lo * 8000,
        credits: 0,
        end: 0,
    };
    move || (build(), Box::new(plain.clone()))
}

#[test]
fn cbs_in_every_short_interleaving_and_long_ones() {
    let wait = |us| Op::Wait(Span::us(us));
    let ops = [Op::Put(1, 1000, 0.0), Op::Put(1, 200, 0.0), Op::Get, wait(1000), wait(3100)];
    for (idle, send, hi, lo) in
        [(2000, 6000, 500, 750), (4000, 4000, 0, 1500), (1000, 7000, 2000, 100), (500, 0, 100, 100)]
    {
        every(7, &ops, &[], false, both(idle, send, hi, lo));
        for seed in 0..4 {
            let (real, naive) = both(idle, send, hi, lo)();
            long(seed, 1000, real, naive);
        }
    }
}
