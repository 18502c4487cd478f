//! TBF, by the definition of what a token bucket admits.

use crate::naive::{Losses, Naive, Real, bytes};
use crate::{Op, every, long, real};
use sojourn_aqm::sched::tbf::Tbf;
use sojourn_aqm::{DropReason, Packet, Span};

/// Bound of a bucket: in no time t are more than `burst` + `rate` t bytes sent.
#[derive(Clone, Copy)]
struct Bound {
    rate: u64,
    burst: u64,
}

/// A FIFO queue whose head is sent once no interval of the past contradicts a bound.
#[derive(Clone)]
struct PlainTbf {
    queue: Vec<Packet>,
    limit: u64,
    bounds: Vec<Bound>,
    sent: Vec<(u64, u64)>,
}

impl PlainTbf {
    fn admits(&self, now: u64, len: u64) -> bool {
        self.bounds.iter().all(|bound| {
            let mut total = len;
            let since = |at: u64, total: u64| {
                let allowed = u128::from(bound.rate) * u128::from(now - at);
                u128::from(total) * 8_000_000_000
                    <= u128::from(bound.burst) * 8_000_000_000 + allowed
            };
            self.sent.iter().rev().all(|(at, len)| {
                total += len;
                since(*at, total)
            })
        })
    }
}

impl Naive for PlainTbf {
    fn enqueue(&mut self, _now: u64, _u: f64, p: Packet, dropped: &mut Losses) {
        let len = u64::from(p.len);
        let fits = bytes(&self.queue) + len <= self.limit;
        if fits && self.bounds.iter().all(|bound| len <= bound.burst) {
            self.queue.push(p);
        } else {
            dropped.push((p, DropReason::Full));
        }
    }

    fn dequeue(&mut self, now: u64, _dropped: &mut Losses) -> Option<Packet> {
        let len = u64::from(self.queue.first()?.len);
        self.admits(now, len).then(|| {
            self.sent.push((now, len));
            self.queue.remove(0)
        })
    }

    fn held(&self) -> (usize, u64) {
        (self.queue.len(), bytes(&self.queue))
    }
}

/// Queue of the real discipline, which must make no difference.
#[derive(Clone, Copy)]
enum Queue {
    Fifo,
    Child,
}

/// `rate` and `burst` of both buckets.
fn tbf(
    queue: Queue,
    limit: u64,
    bounds: &[(u64, u64)],
) -> impl Fn() -> (Real, Box<dyn Naive>) + use<> {
    let bounds: Vec<_> =
        bounds.iter().map(|(rate, burst)| Bound { rate: *rate, burst: *burst }).collect();
    let mut settings = vec![match queue {
        Queue::Fifo => ("limit", format!("{limit}B")),
        Queue::Child => ("children", format!("droptail(limit={limit}B)")),
    }];
    for (bound, names) in bounds.iter().zip([["rate", "burst"], ["peakrate", "mtu"]]) {
        settings.push((names[0], format!("{}bit", bound.rate)));
        settings.push((names[1], format!("{}B", bound.burst)));
    }
    let settings: Vec<_> = settings.iter().map(|(k, v)| (*k, v.as_str())).collect();
    let build = real::<Tbf>(&settings);
    let plain = PlainTbf { queue: vec![], limit, bounds, sent: vec![] };
    move || (build(), Box::new(plain.clone()))
}

/// A byte at 7 Mbit/s takes 1142 and 6/7 ns, at 3 Mbit/s 2666 and 2/3 ns.
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
        (10_000, &[(7_000_000, 1000)][..]),
        (1500, &[(3_000_000, 700)]),
        (10_000, &[(3_000_000, 2500), (7_000_000, 701)]),
        (10_000, &[(7_000_000, 650)]),
        (10_000, &[(1_000_000_000, 1001), (7_000_000, 699)]),
    ] {
        every(7, &OPS, &[], false, tbf(Queue::Fifo, limit, bounds));
        every(6, &OPS, &[], false, tbf(Queue::Child, limit, bounds));
    }
}

#[test]
fn long_sequences() {
    for seed in 0..5 {
        for bounds in [&[(7_000_000, 3000)][..], &[(5_000_000, 9000), (7_000_000, 1500)]] {
            for queue in [Queue::Fifo, Queue::Child] {
                let (real, naive) = tbf(queue, 20_000, bounds)();
                long(seed, 1000, real, naive);
            }
        }
    }
}
