//! Trace-driven links with every discipline, compared with a naive link that visits every delivery
//! opportunity with a credit of bytes.

use crate::link::{arrivals, link};
use crate::{cases::Case, each};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sojourn_aqm::{Context, Marks, Opportunities, Packet, Span, Time};

const BYTES: u32 = 1504;
const HEADER: u32 = 4;
const DELAY: Span = Span::us(12_345);

/// Up to 40 opportunities with pauses, some at the same time.
fn moments(rng: &mut Pcg64Mcg) -> Vec<Span> {
    let n = 1 + rng.next_u32() % 40;
    let mut at = rng.next_u64() % 2;
    let mut ms = || {
        at += if rng.next_u32().is_multiple_of(20) { 90 } else { rng.next_u64() % 3 };
        Span::ms(at)
    };
    let mut lap: Vec<Span> = (0..n).map(|_| ms()).collect();
    lap.push(*lap.last().unwrap() + Span::ms(1));
    lap
}

/// Deliveries with times, and drops with times.
type Told = (Vec<(Time, u32)>, Vec<(Time, u32)>);

fn naive(case: &Case, lap: &[Span], arrivals: &[(Time, Packet)], end: Time) -> Told {
    let (mut qdisc, mut rng) = (case.build().qdisc, Pcg64Mcg::seed_from_u64(3));
    let (mut told, mut lost, mut marks) = (vec![], vec![], Marks::default());
    let mut under_way: Option<(Packet, u32)> = None;
    let mut idle = true;
    let mut came = arrivals.iter().peekable();
    let laps = (0..).map(|k| Time(k * lap.last().unwrap().0));
    let all = laps.flat_map(|began| lap.iter().map(move |at| began + *at));
    for now in all.take_while(|at| *at <= end) {
        // A packet that arrives at the time of an opportunity misses it.
        while let Some((at, packet)) = came.next_if(|(at, _)| *at < now) {
            let mut context =
                Context { now: *at, rng: &mut rng, lost: &mut lost, marks: &mut marks };
            qdisc.enqueue(&mut context, Packet { arrived: *at, ..*packet });
            idle &= qdisc.backlog().packets == 0;
        }
        let mut credit = BYTES;
        while credit > 0 {
            let mut context = Context { now, rng: &mut rng, lost: &mut lost, marks: &mut marks };
            // Dequeue once from an empty queue: disciplines start their idle time from that call.
            if idle && under_way.is_none() {
                break;
            }
            let next = || qdisc.dequeue(&mut context).map(|packet| (packet, packet.len + HEADER));
            let Some((packet, left)) = under_way.take().or_else(next) else {
                idle = qdisc.backlog().packets == 0; // else a shaper delays them
                break;
            };
            let goes = left.min(credit);
            credit -= goes;
            if left > goes {
                under_way = Some((packet, left - goes));
            } else {
                told.push((now + DELAY, packet.body));
            }
        }
    }
    (told, lost.iter().map(|l| (l.at, l.packet.body)).collect())
}

#[test]
fn opportunities_are_used_as_by_a_naive_link() {
    each(3, |case, rng| {
        let arrivals = arrivals(rng, 1000);
        let lap = moments(rng);
        let end = arrivals.last().unwrap().0 + Span::s(200);
        let (mut prompt, mut late) = (link(case, 3), link(case, 3));
        [&mut prompt, &mut late].into_iter().for_each(|link| {
            link.set_opportunities(Opportunities::new(lap.clone(), BYTES, HEADER).unwrap());
        });
        let mut told = vec![];
        for (at, packet) in &arrivals {
            while let Some(due) = prompt.next_poll().filter(|due| due <= at) {
                told.extend(prompt.poll(due).map(|p| (due, p.body)));
            }
            prompt.push(*at, *packet);
            late.push(*at, *packet);
        }
        while let Some(due) = prompt.next_poll().filter(|due| *due <= end + DELAY) {
            told.extend(prompt.poll(due).map(|p| (due, p.body)));
        }
        let (expected, losses) = naive(case, &lap, &arrivals, end);
        assert_eq!(told, expected);
        assert_eq!(
            prompt.take_dropped().map(|l| (l.at, l.packet.body)).collect::<Vec<_>>(),
            losses
        );
        late.advance(end);
        let lately: Vec<_> =
            std::iter::from_fn(|| late.pop_in_flight()).map(|(at, p)| (at, p.body)).collect();
        assert_eq!(lately, expected);
        let used = late.utilisation().unwrap();
        let stats = late.stats();
        let sent = (stats.departed_bytes + stats.departed_packets * u64::from(HEADER)) as f64;
        let offered = (0..).map(|k| Time(k * lap.last().unwrap().0));
        let offered = offered.take_while(|at| *at <= end);
        let offered: usize =
            offered.map(|began| lap.iter().filter(|at| began + **at <= end).count()).sum();
        assert!((used - sent / (offered as f64 * f64::from(BYTES))).abs() < 1e-12);
    });
}
