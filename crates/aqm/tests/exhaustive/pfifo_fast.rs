//! pfifo_fast.

use crate::naive::{Losses, Naive, Real, bytes};
use crate::{Op, every, long, real};
use sojourn_aqm::sched::pfifo_fast::PfifoFast;
use sojourn_aqm::{DropReason, Packet, Size};

/// Three queues, tc-prio(8): the band by the four bits of the type of service (RFC 1349), of which
/// the highest asks for little delay and the second for much throughput.
#[derive(Clone)]
struct PlainPfifoFast {
    bands: [Vec<Packet>; 3],
    limits: [Size; 3],
    whole: Option<Size>,
}

fn band(dscp: u16) -> usize {
    let octet = dscp << 2;
    let (delay, throughput) = (octet & 0x10 > 0, octet & 0x08 > 0);
    match (delay, throughput) {
        (true, false) => 0,
        (false, true) => 2,
        _ => 1,
    }
}

fn room(limit: Size, queue: &[Packet], p: &Packet) -> bool {
    limit.holds(queue.len() as u32 + 1, bytes(queue) + u64::from(p.len))
}

impl Naive for PlainPfifoFast {
    fn enqueue(&mut self, _now: u64, _u: f64, p: Packet, dropped: &mut Losses) {
        let i = band(p.class);
        let whole = self.whole.is_none_or(|limit| room(limit, &self.bands.concat(), &p));
        if whole && room(self.limits[i], &self.bands[i], &p) {
            self.bands[i].push(p);
        } else {
            dropped.push((p, DropReason::Full));
        }
    }

    fn dequeue(&mut self, _now: u64, _dropped: &mut Losses) -> Option<Packet> {
        let busy = self.bands.iter_mut().find(|queue| !queue.is_empty())?;
        Some(busy.remove(0))
    }

    fn held(&self) -> (usize, u64) {
        let all = self.bands.concat();
        (all.len(), bytes(&all))
    }
}

fn both(limits: [&str; 3], whole: &str) -> impl Fn() -> (Real, Box<dyn Naive>) {
    let build = real::<PfifoFast>(&[("limits", &limits.join(" ")), ("limit", whole)]);
    let plain = PlainPfifoFast {
        bands: [const { vec![] }; 3],
        limits: limits.map(|limit| limit.parse().unwrap()),
        whole: whole.parse().ok(),
    };
    move || (build(), Box::new(plain.clone()))
}

#[test]
fn pfifo_fast_in_every_short_interleaving_and_long_ones() {
    // The DSCPs 4, 2 and 1: one for each band.
    let ops = [Op::Put(4, 200, 0.0), Op::Put(2, 900, 0.0), Op::Put(1, 500, 0.0), Op::Get];
    for (limits, whole) in [
        (["9p", "9p", "9p"], "auto"),
        (["1p", "2p", "3p"], "auto"),
        (["2p", "499B", "1800B"], "auto"),
        (["3p", "3p", "1p"], "4p"),
        (["3p", "3p", "3p"], "1600B"),
    ] {
        every(8, &ops, &[], false, both(limits, whole));
        // Each DSCP from 1 to 7.
        for seed in 0..10 {
            let (real, naive) = both(limits, whole)();
            long(seed, 3000, real, naive);
        }
    }
}

#[test]
fn every_dscp_has_its_band() {
    for dscp in 0..64 {
        for other in 0..64 {
            let (real, naive) = both(["9p", "9p", "9p"], "auto")();
            let mut pair = crate::Pair::new(real, naive, false);
            [Op::Put(dscp, 100, 0.0), Op::Put(other, 100, 0.0), Op::Get, Op::Get]
                .into_iter()
                .for_each(|op| pair.step(op));
        }
    }
}
