//! Trace-driven links with every discipline, compared with a naive link that visits every delivery
//! opportunity with a credit of bytes.

use crate::link::{arrivals, link};
use crate::{cases::Case, each};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sojourn_aqm::registry::find;
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

/// Record of the naive link.
#[derive(Default)]
struct Naive {
    /// Deliveries with times.
    departures: Vec<(Time, u32)>,
    /// Drops with times.
    losses: Vec<(Time, u32)>,
    /// Every opportunity, with the bytes of it that were used.
    used: Vec<(Time, u64)>,
}

impl Naive {
    /// Bytes used and offered after `from`, up to `to`.
    fn usage(&self, from: Time, to: Time) -> [u64; 2] {
        let within =
            self.used.iter().filter(|(at, _)| (from < *at || from == Time::ZERO) && *at <= to);
        within.fold([0, 0], |[used, offered], (_, n)| [used + n, offered + u64::from(BYTES)])
    }
}

fn naive(case: &Case, lap: &[Span], arrivals: &[(Time, Packet)], end: Time) -> Naive {
    let (mut qdisc, mut rng) = (case.build().qdisc, Pcg64Mcg::seed_from_u64(3));
    let (mut naive, mut dropped, mut marks) = (Naive::default(), vec![], Marks::default());
    let mut under_way: Option<(Packet, u32)> = None;
    let mut idle = true;
    let mut ready = None;
    let mut came = arrivals.iter().peekable();
    let laps = (0..).map(|k| Time(k * lap.last().unwrap().0));
    let all = laps.flat_map(|began| lap.iter().map(move |at| began + *at));
    for now in all.take_while(|at| *at <= end) {
        // A packet that arrives at the time of an opportunity misses it.
        while let Some((at, packet)) = came.next_if(|(at, _)| *at < now) {
            let mut context =
                Context { now: *at, rng: &mut rng, dropped: &mut dropped, marks: &mut marks };
            qdisc.enqueue(&mut context, Packet { arrived: *at, ..*packet });
            idle &= qdisc.backlog().packets == 0;
            ready = None;
        }
        // So does a shaper that is ready at that time.
        let delayed = ready.is_some_and(|ready| now <= ready);
        let mut credit = BYTES;
        while credit > 0 {
            let mut context =
                Context { now, rng: &mut rng, dropped: &mut dropped, marks: &mut marks };
            // Dequeue once from an empty queue: disciplines start their idle time from that call.
            if (idle || delayed) && under_way.is_none() {
                break;
            }
            let next = || qdisc.dequeue(&mut context).map(|packet| (packet, packet.len + HEADER));
            let Some((packet, left)) = under_way.take().or_else(next) else {
                idle = qdisc.backlog().packets == 0; // else a shaper delays them
                ready = qdisc.ready_at();
                break;
            };
            let goes = left.min(credit);
            credit -= goes;
            if left > goes {
                under_way = Some((packet, left - goes));
            } else {
                naive.departures.push((now + DELAY, packet.body));
            }
        }
        naive.used.push((now, u64::from(BYTES - credit)));
    }
    naive.losses = dropped.iter().map(|l| (l.at, l.packet.body)).collect();
    naive
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
        let mut departures = vec![];
        for (at, packet) in &arrivals {
            while let Some(due) = prompt.next_poll().filter(|due| due <= at) {
                departures.extend(prompt.poll(due).map(|p| (due, p.body)));
            }
            prompt.push(*at, *packet);
            late.push(*at, *packet);
        }
        while let Some(due) = prompt.next_poll().filter(|due| *due <= end + DELAY) {
            departures.extend(prompt.poll(due).map(|p| (due, p.body)));
        }
        let naive = naive(case, &lap, &arrivals, end);
        assert_eq!(departures, naive.departures);
        assert_eq!(
            prompt.take_dropped().map(|l| (l.at, l.packet.body)).collect::<Vec<_>>(),
            naive.losses
        );
        late.advance(end);
        let lately: Vec<_> =
            std::iter::from_fn(|| late.pop_in_flight()).map(|(at, p)| (at, p.body)).collect();
        assert_eq!(lately, naive.departures);
        assert_eq!(late.usage(), naive.usage(Time::ZERO, end));
    });
}

/// Settings with which a discipline holds packets back for a long time: shapers at 1 % to 10 % of
/// the trace's rate.
const SLOW: [(&str, &str, &str); 7] = [
    ("htb", "rates", "50kbit"),
    ("htb", "rates", "400kbit 20kbit"),
    ("tbf", "rate", "60kbit"),
    ("cake", "bandwidth", "30kbit"),
    ("cake", "bandwidth", "300kbit"),
    ("fq", "maxrate", "40kbit"),
    ("fq", "maxrate", "500kbit"),
];

/// Checks the usage of a link at random times, during pauses of the arrivals as well, against the
/// bytes that the naive link used of each opportunity.
fn usage_at_random_times(case: &Case, rng: &mut Pcg64Mcg) {
    let (arrivals, lap) = (arrivals(rng, 600), moments(rng));
    let end = arrivals.last().unwrap().0 + Span::s(2);
    let naive = naive(case, &lap, &arrivals, end);
    let mut link = link(case, 3);
    link.set_opportunities(Opportunities::new(lap, BYTES, HEADER).unwrap());
    let begin = Time(rng.next_u64() % end.0);
    let mut looks: Vec<Time> = (0..100).map(|_| Time(1 + rng.next_u64() % end.0)).collect();
    looks.extend([begin, end]);
    looks.extend(naive.used.iter().step_by(17).map(|(at, _)| (*at).max(Time(1))));
    looks.sort();
    let (mut came, mut from) = (arrivals.iter().peekable(), Time::ZERO);
    for at in looks {
        while let Some((at, packet)) = came.next_if(|(came, _)| *came < at) {
            link.push(*at, *packet);
        }
        link.advance(at);
        assert_eq!(link.usage(), naive.usage(from, at), "from {from:?} to {at:?}");
        if at == begin {
            link.reset_stats(at);
            from = at;
            assert_eq!(link.utilisation(), None, "nothing was offered yet");
        }
    }
}

#[test]
fn usage_is_exact_at_every_time() {
    each(2, usage_at_random_times);
}

#[test]
fn usage_is_exact_while_a_shaper_holds_packets_back() {
    for (name, parameter, value) in SLOW {
        for (seed, limit) in [(1, "400p"), (2, "20p"), (3, "auto")] {
            let case = Case::new(find(name).unwrap(), &[(parameter, value), ("limit", limit)]);
            if case.try_build().is_some() {
                usage_at_random_times(&case, &mut Pcg64Mcg::seed_from_u64(seed));
            }
        }
    }
}
