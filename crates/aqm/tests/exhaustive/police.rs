//! The policer, by the definition of what a token bucket admits: no packet that conforms makes the
//! conforming bytes of any interval exceed the burst and the rate.

use crate::naive::{Losses, Naive, Real, bytes};
use crate::{Op, every, long, real};
use sojourn_aqm::aqm::{SingleQueue, police};
use sojourn_aqm::{DropReason, Packet, Span};

/// A FIFO queue behind a check of all intervals of the past.
#[derive(Clone)]
struct PlainPolice {
    queue: Vec<Packet>,
    limit: usize,
    /// `rate` and `burst` of each bucket.
    bounds: Vec<(u64, u64)>,
    conforming: Vec<(u64, u64)>,
}

impl PlainPolice {
    fn admits(&self, now: u64, len: u64) -> bool {
        self.bounds.iter().all(|(rate, burst)| {
            let within = |at: u64, total: u64| {
                let filled = u128::from(*rate) * u128::from(now - at);
                u128::from(total) * 8_000_000_000 <= u128::from(*burst) * 8_000_000_000 + filled
            };
            let mut total = len;
            within(now, total)
                && self.conforming.iter().rev().all(|(at, len)| {
                    total += len;
                    within(*at, total)
                })
        })
    }
}

impl Naive for PlainPolice {
    fn enqueue(&mut self, now: u64, _u: f64, p: Packet, dropped: &mut Losses) {
        let len = u64::from(p.len);
        // A packet that conforms takes tokens, even if the queue behind the policer is full.
        let conforms = self.admits(now, len);
        if conforms {
            self.conforming.push((now, len));
        }
        if self.queue.len() >= self.limit {
            dropped.push((p, DropReason::Full));
        } else if conforms {
            self.queue.push(p);
        } else {
            dropped.push((p, DropReason::AtEnqueue));
        }
    }

    fn dequeue(&mut self, _now: u64, _dropped: &mut Losses) -> Option<Packet> {
        (!self.queue.is_empty()).then(|| self.queue.remove(0))
    }

    fn held(&self) -> (usize, u64) {
        (self.queue.len(), bytes(&self.queue))
    }
}

fn police(limit: usize, bounds: &[(u64, u64)]) -> impl Fn() -> (Real, Box<dyn Naive>) {
    let mut settings = vec![("limit", format!("{limit}p"))];
    for ((rate, burst), names) in bounds.iter().zip([["rate", "burst"], ["peakrate", "mtu"]]) {
        settings.push((names[0], format!("{rate}bit")));
        settings.push((names[1], format!("{burst}B")));
    }
    let settings: Vec<_> = settings.iter().map(|(k, v)| (*k, v.as_str())).collect();
    let build = real::<SingleQueue<police::Police>>(&settings);
    let bounds = bounds.to_vec();
    let plain = PlainPolice { queue: vec![], limit, bounds, conforming: vec![] };
    move || (build(), Box::new(plain.clone()))
}

/// A byte at 7 Mbit/s takes 1142 and 6/7 ns.
const OPS: [Op; 5] = [
    Op::Put(1, 700, 0.0),
    Op::Put(2, 301, 0.0),
    Op::Get,
    Op::Wait(Span(343_999)),
    Op::Wait(Span(800_001)),
];

#[test]
fn every_short_sequence() {
    for (limit, bounds) in [
        (100, &[(7_000_000, 1001)][..]),
        (2, &[(3_000_000, 1500)]),
        (100, &[(3_000_000, 2500), (7_000_000, 701)]),
        (100, &[(7_000_000, 650)]),
    ] {
        every(7, &OPS, &[], false, police(limit, bounds));
    }
}

#[test]
fn long_sequences() {
    for seed in 0..5 {
        for bounds in [&[(7_000_000, 3000)][..], &[(5_000_000, 9000), (7_000_000, 1500)]] {
            let (real, naive) = police(20, bounds)();
            long(seed, 1000, real, naive);
        }
    }
}
