//! Trees: a discipline of each class, some of which hold packets back, and filters.

use crate::naive::{Losses, Naive, Real, bytes};
use crate::{Op, every, long, real};
use sojourn_aqm::sched::{classful::Classful, prio::Priority};
use sojourn_aqm::{DropReason, Packet, Span};

/// Queue of a band: FIFO, and with `rate` sent at that rate (bit/s), of at most `limit` packets.
#[derive(Clone, Default)]
struct Band {
    queue: Vec<Packet>,
    limit: usize,
    rate: Option<u64>,
    burst: u64,
    sent: Vec<(u64, u64)>,
}

impl Band {
    /// True if the head may be sent: in no interval up to now is more sent than rate and burst.
    fn may_send(&self, now: u64) -> bool {
        let (Some(head), Some(rate)) = (self.queue.first(), self.rate) else {
            return !self.queue.is_empty();
        };
        let mut total = u64::from(head.len);
        let scale = 8_000_000_000u128;
        self.sent.iter().rev().all(|(at, len)| {
            total += len;
            let allowed = u128::from(self.burst) * scale + u128::from(rate) * u128::from(now - at);
            u128::from(total) * scale <= allowed
        })
    }
}

/// Strict priority: the first band that may send, also if an earlier one has packets.
#[derive(Clone)]
struct PlainPrio {
    bands: Vec<Band>,
    /// Band of a packet.
    band: fn(&Packet) -> usize,
    limit: usize,
}

impl Naive for PlainPrio {
    fn enqueue(&mut self, _now: u64, _u: f64, p: Packet, dropped: &mut Losses) {
        let full = self.held().0 >= self.limit;
        let band = &mut self.bands[(self.band)(&p)];
        let too_long = band.rate.is_some() && u64::from(p.len) > band.burst;
        if full || band.queue.len() >= band.limit || too_long {
            dropped.push((p, DropReason::Full));
        } else {
            band.queue.push(p);
        }
    }

    fn dequeue(&mut self, now: u64, _dropped: &mut Losses) -> Option<Packet> {
        let band = self.bands.iter_mut().find(|band| band.may_send(now))?;
        let p = band.queue.remove(0);
        band.sent.push((now, p.len.into()));
        Some(p)
    }

    fn held(&self) -> (usize, u64) {
        let queues = || self.bands.iter().map(|band| &band.queue);
        (queues().map(Vec::len).sum(), queues().map(|queue| bytes(queue)).sum())
    }
}

/// Band by filters: short packets, classes 3 and 4, ECT(0), and the rest by class.
fn by_filters(p: &Packet) -> usize {
    match p {
        _ if p.len <= 100 => 0,
        _ if (3..=4).contains(&p.class) => 2,
        _ if p.ecn == sojourn_aqm::Ecn::Ect0 => 1,
        _ => usize::from(p.class) % 3,
    }
}

const FILTERS: &str = "0(max_length=100B) 2(class=3-4) 1(ecn=ect0)";

/// A shaper in the first band, another one in the second, and a FIFO queue in the third.
fn shaped() -> (Real, Box<dyn Naive>) {
    let (rates, bursts, limits) = ([3_000_000, 2_000_000], [1500, 900], [3, 4, 5]);
    let tbf =
        |i: usize| format!("tbf(rate={}bit, burst={}B, limit={}p)", rates[i], bursts[i], limits[i]);
    let children = format!("{} {} droptail(limit=5p)", tbf(0), tbf(1));
    let real = real::<Classful<Priority>>(&[
        ("flows", "3"),
        ("by", "class"),
        ("priomap", ""),
        ("limit", "8p"),
        ("children", &children),
        ("filters", FILTERS),
    ])();
    let band = |i: usize| Band {
        limit: limits[i],
        rate: rates.get(i).copied(),
        burst: bursts.get(i).copied().unwrap_or(0),
        ..Band::default()
    };
    (real, Box::new(PlainPrio { bands: (0..3).map(band).collect(), band: by_filters, limit: 8 }))
}

/// The same bands, the first two in a prio of their own.
fn nested() -> (Real, Box<dyn Naive>) {
    let inner = "prio(flows=2, by=class, priomap=\"\", filters=0(class=0) 0(class=3) 1, \
                 children=tbf(rate=3mbit, burst=1500B, limit=3p) droptail(limit=4p))";
    let real = real::<Classful<Priority>>(&[
        ("flows", "2"),
        ("by", "class"),
        ("children", &format!("{inner} droptail(limit=5p)")),
        ("filters", "0(class=0-1) 0(class=3-4) 1"),
    ])();
    let bands = vec![
        Band { limit: 3, rate: Some(3_000_000), burst: 1500, ..Band::default() },
        Band { limit: 4, ..Band::default() },
        Band { limit: 5, ..Band::default() },
    ];
    let band = |p: &Packet| match p.class {
        0 | 3 => 0,
        1 | 4 => 1,
        _ => 2,
    };
    (real, Box::new(PlainPrio { bands, band, limit: 1000 }))
}

const OPS: [Op; 6] = [
    Op::Put(0, 700, 0.0),
    Op::Put(1, 60, 0.0),
    Op::Put(2, 301, 0.0),
    Op::Put(3, 900, 0.0),
    Op::Get,
    Op::Wait(Span(743_999)),
];

#[test]
fn shapers_below_prio_in_every_short_sequence_and_long_ones() {
    every(7, &OPS, &[], false, shaped);
    every(6, &OPS, &[], false, nested);
    for seed in 0..10 {
        for (real, naive) in [shaped(), nested()] {
            long(seed, 700, real, naive);
        }
    }
}
