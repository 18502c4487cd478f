//! Links with every discipline: late calls change nothing, and the statistics agree with a recount
//! from the packet log.

use crate::cases::{self, Case, all};
use crate::{each, packet};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sojourn_aqm::{
    Backlog, Bytes, Context, DropReason, Ecn, Link, LinkSpec, LinkStats, LogEntry, Opportunities,
    Packet, Pcg, Qdisc, RUN_MAX, Rate, Served, Setting, Snapshot, Span, Time, TokenBucket,
};
use std::collections::BTreeMap;

/// Rate that divides no packet size, so that the remainder of every transmission matters.
pub const SPEC: LinkSpec = LinkSpec::new(Rate(7_777_777), Span::us(12_345));

pub fn link(case: &Case, seed: u64) -> Link {
    let mut link = Link::new(SPEC, case.build().qdisc, Pcg64Mcg::seed_from_u64(seed)).unwrap();
    link.enable_packet_log();
    link
}

/// A link of one of four kinds: rate, changeable rate, token bucket, delivery opportunities.
pub fn of_kind(case: &Case, kind: u32) -> Link {
    let mut link = Link::new(SPEC, case.build().qdisc, Pcg::new(3)).unwrap();
    match kind % 4 {
        1 => link.may_change(),
        2 => link.set_bucket(TokenBucket::new(Bytes(5_000))),
        3 => {
            let moments = (1..40).map(|i| Span::us(i * 1_900)).collect();
            link.set_opportunities(Opportunities::new(moments, 1504, 4).unwrap());
        }
        _ => {}
    }
    link.enable_packet_log();
    link
}

/// Arrivals in bursts and pauses at distinct times.
pub fn arrivals(rng: &mut Pcg64Mcg, n: u32) -> Vec<(Time, Packet)> {
    let mut at = Time::ZERO;
    let mut arrivals = Vec::new();
    for body in 0..n {
        // Overload for 200 packets, then underload; now and then a long pause.
        let gap = if body / 200 % 2 == 0 { 700_000 } else { 1_300_000 };
        at += Span(1 + rng.next_u64() % gap);
        if rng.next_u32().is_multiple_of(500) {
            at += Span::ms(300);
        }
        let flow = rng.next_u32() % 6;
        let len = if flow == 0 { 100 } else { 1 + rng.next_u32() % 1500 };
        arrivals.push((at, Packet { body, ..packet(len, flow, Ecn::from_bits(body as u8)) }));
    }
    arrivals
}

#[test]
fn late_calls_change_no_decision() {
    each(5, |case, rng| {
        let arrivals = arrivals(rng, 1500);
        let (mut prompt, mut late) = (link(case, 3), link(case, 3));
        let end = arrivals.last().unwrap().0 + Span::s(10);
        let mut promptly = Vec::new();
        for (at, packet) in &arrivals {
            while let Some(due) = prompt.next_poll().filter(|due| due <= at) {
                promptly.extend(prompt.poll(due).map(|p| (due, p)));
            }
            prompt.push(*at, *packet);
            late.push(*at, *packet);
        }
        while let Some(due) = prompt.next_poll() {
            promptly.extend(prompt.poll(due).map(|p| (due, p)));
        }
        let mut lately = Vec::new();
        while let Some(due) = late.next_poll() {
            lately.extend(late.poll(end).map(|p| (due, p)));
        }
        assert_eq!(promptly, lately);
        prompt.advance(end);
        assert_eq!(prompt.packet_log(), late.packet_log());
        assert_eq!(prompt.stats().queue_bytes(), late.stats().queue_bytes());
        assert!(prompt.take_dropped().eq(late.take_dropped()));
    });
}

/// Discipline that does not report that it decides everything at enqueue.
#[derive(Clone, Snapshot)]
struct Silent(Box<dyn Served + Send>);

impl Qdisc for Silent {
    fn enqueue(&mut self, context: &mut Context<'_>, packet: Packet) {
        self.0.enqueue(context, packet);
    }
    fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        self.0.dequeue(context)
    }
    fn ready_at(&self) -> Option<Time> {
        self.0.ready_at()
    }
    fn backlog(&self) -> Backlog {
        self.0.backlog()
    }
}

#[test]
fn announced_departures_are_kept() {
    each(5, |case, rng| {
        let arrivals = arrivals(rng, 1500);
        let qdisc = case.build().qdisc;
        let mut waits =
            Link::new(SPEC, Box::new(Silent(qdisc)), Pcg64Mcg::seed_from_u64(3)).unwrap();
        let mut foresees = link(case, 3);
        waits.enable_packet_log();
        let (mut then, mut now) = (Vec::new(), Vec::new());
        for (at, packet) in &arrivals {
            foresees.push(*at, *packet);
            now.extend(std::iter::from_fn(|| foresees.pop_in_flight()));
            waits.push(*at, *packet);
            then.extend(std::iter::from_fn(|| waits.pop_in_flight()));
        }
        let end = arrivals.last().unwrap().0 + Span::s(10);
        [&mut foresees, &mut waits].into_iter().for_each(|link| link.advance(end));
        now.extend(std::iter::from_fn(|| foresees.pop_in_flight()));
        then.extend(std::iter::from_fn(|| waits.pop_in_flight()));
        assert_eq!(now, then);
        assert_eq!(foresees.packet_log(), waits.packet_log());
    });
    let some = |case: &Case| case.build().qdisc.decides_at_enqueue();
    assert!(all(0, 1).iter().any(some), "some disciplines decide everything at enqueue");
}

#[test]
fn statistics_agree_with_a_recount_of_the_packet_log() {
    each(5, |case, rng| {
        let arrivals = arrivals(rng, 3000);
        // Measured from the start, from within a busy period, and from within a pause.
        for begin in [Time::ZERO, arrivals[100].0 + Span(1), arrivals[900].0 + Span(1)] {
            let mut link = link(case, 4);
            let mut begun = false;
            for (at, packet) in &arrivals {
                if !begun && *at > begin {
                    link.reset_stats(begin);
                    begun = true;
                }
                link.push(*at, *packet);
                link.take_dropped().for_each(drop);
            }
            let end = arrivals.last().unwrap().0 + Span::s(30);
            link.advance(end);
            let shaped = is_shaped(&case.build());
            Recount { arrivals: &arrivals, rows: link.packet_log().to_vec(), begin, end, shaped }
                .check(&mut link);
        }
    });
}

#[test]
fn reading_gauges_changes_nothing() {
    each(5, |case, rng| {
        let arrivals = arrivals(rng, 1500);
        let (mut left, mut watched) = (link(case, 3), link(case, 3));
        let mut seen = Vec::new();
        let mut next = Time::ZERO;
        for (at, packet) in &arrivals {
            left.push(*at, *packet);
            while next < *at {
                watched.advance(next);
                watched.inspect(&mut |name, value| seen.push((name, value)));
                next += Span::us(1_700);
            }
            watched.push(*at, *packet);
        }
        assert_eq!(left.packet_log(), watched.packet_log());
        let end = arrivals.last().unwrap().0 + Span::s(1);
        let gauges = |link: &mut Link| {
            link.advance(end);
            let mut all = Vec::new();
            link.inspect(&mut |name, value| all.push((name, value.to_bits())));
            all
        };
        assert_eq!(gauges(&mut left), gauges(&mut watched));
    });
}

#[test]
fn late_calls_to_a_link_that_changes_change_no_decision() {
    each(2, |case, rng| {
        let arrivals = arrivals(rng, 1000);
        let (mut prompt, mut late) = (link(case, 3), link(case, 3));
        [&mut prompt, &mut late].into_iter().for_each(Link::may_change);
        for (i, (at, packet)) in arrivals.iter().enumerate() {
            while let Some(due) = prompt.next_poll().filter(|due| due <= at) {
                prompt.poll(due);
            }
            if i % 50 == 0 {
                let rate = Rate(rng.next_u64() % 3 * 5_555_555);
                let spec = LinkSpec::new(rate, Span(rng.next_u64() % 9_000_000));
                [&mut prompt, &mut late].into_iter().for_each(|link| link.change(*at, spec));
            }
            prompt.push(*at, *packet);
            late.push(*at, *packet);
        }
        let end = arrivals.last().unwrap().0 + Span::s(10);
        [&mut prompt, &mut late].into_iter().for_each(|link| {
            link.change(end, SPEC);
            link.advance(end + Span::s(10));
        });
        assert_eq!(prompt.packet_log(), late.packet_log());
        assert_eq!(prompt.packet_log().len(), arrivals.len(), "every packet left");
        let times: Vec<Time> =
            std::iter::from_fn(|| late.pop_in_flight()).map(|(at, _)| at).collect();
        assert!(times.is_sorted(), "packets arrive in order");
    });
}

#[test]
fn a_gauge_is_current_when_read() {
    // PI samples a constant queue every 10 ms: p changes although no packet arrives.
    let settings = [("w", Setting::Text("100")), ("q_ref", Setting::Text("5p"))];
    let built = sojourn_aqm::build("pi", &settings, Rate(8_000)).unwrap();
    let spec = LinkSpec::new(Rate(8_000), Span::ZERO);
    let mut link = Link::new(spec, built.qdisc, Pcg64Mcg::seed_from_u64(1)).unwrap();
    (0..21).for_each(|_| link.push(Time(0), packet(1000, 0, Ecn::NotEct)));
    let mut p = |ms: u64| {
        link.advance(Time(ms * 1_000_000));
        let mut p = f64::NAN;
        link.inspect(&mut |name, value| p = if name == "p" { value } else { p });
        p
    };
    let (early, later) = (p(15), p(95));
    assert!(early < later, "{early} at 15 ms, {later} at 95 ms");
}

/// True if the discipline may delay packets by itself.
fn is_shaped(built: &sojourn_aqm::registry::Built) -> bool {
    if cases::value(built, "children").is_some_and(|children| !children.is_empty()) {
        return true;
    }
    let rates = ["rate", "rates", "maxrate", "ls", "idleslope"];
    if rates.iter().any(|name| cases::value(built, name).is_some()) {
        return true;
    }
    let limited = cases::value(built, "bandwidth").is_some_and(|rate| rate != "auto");
    limited || cases::value(built, "autorate_ingress") == Some("true")
}

/// Run without statistics: the arrivals, and the fate of each packet.
struct Recount<'a> {
    arrivals: &'a [(Time, Packet)],
    rows: Vec<LogEntry>,
    begin: Time,
    end: Time,
    /// True if a shaper in the discipline may delay packets while the link is free.
    shaped: bool,
}

impl Recount<'_> {
    fn check(&self, link: &mut Link) {
        assert_eq!(self.rows.len(), self.arrivals.len(), "every packet has one row");
        let utilisation = link.utilisation().unwrap();
        let stats = link.stats();
        self.counts(stats);
        self.levels(stats);
        self.sojourn(stats);
        let counted = stats.consecutive_loss();
        let runs = (1..).zip(counted).filter(|(_, n)| *n > 0).collect::<BTreeMap<_, _>>();
        assert_eq!(runs, self.runs(), "runs of drops by length");
        close(utilisation, self.busy_ns() as f64 / self.ns() as f64, 1e-12);
    }

    fn ns(&self) -> u128 {
        u128::from((self.end - self.begin).0)
    }

    /// Rows of the measured window.
    fn left(&self) -> impl Iterator<Item = &LogEntry> {
        self.rows.iter().filter(|row| row.left > self.begin)
    }

    fn counts(&self, stats: &LinkStats) {
        let bytes =
            |rows: &[&LogEntry]| rows.iter().map(|row| u64::from(row.packet.len)).sum::<u64>();
        let came: Vec<_> = self.arrivals.iter().filter(|(at, _)| *at > self.begin).collect();
        let came_bytes: u64 = came.iter().map(|(_, p)| u64::from(p.len)).sum();
        let (sent, dropped): (Vec<&LogEntry>, Vec<&LogEntry>) =
            self.left().partition(|row| row.why.is_none());
        let (dropped, lost_earlier): (Vec<&LogEntry>, Vec<&LogEntry>) =
            dropped.into_iter().partition(|row| row.packet.arrived > self.begin);
        assert_eq!((stats.arrived_packets, stats.arrived_bytes), (came.len() as u64, came_bytes));
        assert_eq!(
            (stats.departed_packets, stats.departed_bytes),
            (sent.len() as u64, bytes(&sent))
        );
        assert_eq!((stats.dropped(), stats.dropped_bytes), (dropped.len() as u64, bytes(&dropped)));
        for why in [DropReason::Full, DropReason::AtEnqueue, DropReason::AfterEnqueue] {
            let count = |rows: &[&LogEntry]| rows.iter().filter(|row| row.why == Some(why)).count();
            let counts = [count(&dropped), count(&lost_earlier)].map(|n| n as u64);
            let i = why as usize - 1;
            assert_eq!([stats.dropped_packets[i], stats.dropped_earlier[i]], counts, "{why:?}");
            assert_eq!(stats.drops()[i], counts[0] + counts[1]);
        }
        // A mark counts when it is set: at enqueue or at dequeue.
        let was_ce = |row: &LogEntry| Ecn::from_bits(row.packet.body as u8) == Ecn::Ce;
        let rows: Vec<_> =
            self.left().filter(|row| row.packet.ecn == Ecn::Ce && !was_ce(row)).collect();
        // A packet queued at `begin` may have been marked at enqueue.
        let within = rows.iter().filter(|row| row.packet.arrived > self.begin).count();
        assert_eq!(stats.marks.packets, within as u64, "marks");
        assert!(stats.marks.earlier <= (rows.len() - within) as u64, "marks");
        assert!(stats.dropped() <= stats.arrived_packets);
        assert!(stats.marks.packets <= stats.arrived_packets);
        assert_eq!(stats.backlog(), (0, 0));
    }

    /// Moments of the queue length over time, from all its changes.
    fn levels(&self, stats: &LinkStats) {
        let joined =
            self.rows.iter().map(|row| (row.packet.arrived, 1, i128::from(row.packet.len)));
        let left = self.rows.iter().map(|row| (row.left, -1, -i128::from(row.packet.len)));
        let mut changes: Vec<_> = joined.chain(left).collect();
        changes.sort_by_key(|change| change.0);
        let (mut level, mut sums, mut last) = ([0, 0], [[0, 0], [0, 0]], self.begin);
        for (at, packets, bytes) in changes {
            let ns = i128::from(at.max(self.begin).since(last).0);
            for (sum, level) in sums.iter_mut().zip(level) {
                *sum = [sum[0] + level * ns, sum[1] + level * level * ns];
            }
            level = [level[0] + packets, level[1] + bytes];
            last = last.max(at);
        }
        let moments = |[area, squares]: [i128; 2]| {
            let mean = area as f64 / self.ns() as f64;
            (mean, (squares as f64 / self.ns() as f64 - mean * mean).max(0.0).sqrt())
        };
        for (level, [area, squares]) in
            [stats.queue_packets(), stats.queue_bytes()].into_iter().zip(sums)
        {
            let (mean, std) = moments([area, squares]);
            close(level.unwrap().0, mean, 1e-12);
            close(level.unwrap().1, std, 1e-9);
        }
    }

    /// Sojourn times, by sorting.
    fn sojourn(&self, stats: &LinkStats) {
        let sent = self.left().filter(|row| row.why.is_none());
        let mut waits: Vec<u64> = sent.map(|row| (row.left - row.packet.arrived).0).collect();
        waits.sort_unstable();
        let n = waits.len();
        assert_eq!(stats.sojourn.count(), n as u64);
        let Some(max) = waits.last() else {
            assert_eq!((stats.sojourn.mean_s(), stats.sojourn.quantile_s(0.5)), (None, None));
            return;
        };
        let mean = waits.iter().sum::<u64>() as f64 / n as f64;
        let squares: f64 = waits.iter().map(|w| (*w as f64 - mean) * (*w as f64 - mean)).sum();
        close(stats.sojourn.mean_s().unwrap(), mean / 1e9, 1e-12);
        close(stats.sojourn.std_s().unwrap(), (squares / n as f64).sqrt() / 1e9, 1e-9);
        assert_eq!(stats.sojourn.max_s(), Some(*max as f64 / 1e9));
        for permille in [0, 10, 250, 500, 900, 950, 990, 999, 1000] {
            let rank = (n * permille).div_ceil(1000).clamp(1, n);
            let quantile = stats.sojourn.quantile_s(permille as f64 / 1000.0).unwrap();
            close(quantile, waits[rank - 1] as f64 / 1e9, 0.01);
        }
    }

    /// Runs of drops: at the tail in order of arrival, at the head in order of departure.
    fn runs(&self) -> BTreeMap<usize, u64> {
        let mut ended = Vec::new();
        let mut run = 0;
        for (at, packet) in self.arrivals.iter().filter(|(at, _)| *at > self.begin) {
            let now = |row: &&LogEntry| {
                row.left == *at && matches!(row.why, Some(DropReason::Full | DropReason::AtEnqueue))
            };
            let dropped: Vec<&LogEntry> = self.rows.iter().filter(now).collect();
            run += dropped.len();
            if !dropped.iter().any(|row| row.packet.body == packet.body) {
                ended.push(std::mem::take(&mut run));
            }
        }
        ended.push(std::mem::take(&mut run));
        for row in self.left() {
            match row.why {
                Some(DropReason::AfterEnqueue) => run += 1,
                Some(_) => {}
                None => ended.push(std::mem::take(&mut run)),
            }
        }
        ended.push(run);
        let mut counts = BTreeMap::new();
        for run in ended.into_iter().filter(|run| *run > 0) {
            *counts.entry(run.min(RUN_MAX)).or_default() += 1;
        }
        counts
    }

    /// Transmission time: in a busy period the n-th byte ends after exactly n byte times.
    fn busy_ns(&self) -> u128 {
        let clip = |t: u128| t.clamp(u128::from(self.begin.0), u128::from(self.end.0));
        let (mut busy, mut start, mut bytes, mut free) = (0, 0, 0, 0);
        for row in self.rows.iter().filter(|row| row.why.is_none()) {
            let left = u128::from(row.left.0);
            // A packet without delay found the link idle, possibly only since this nanosecond.
            assert!(left >= free, "a packet is sent when the link is free");
            if row.packet.arrived == row.left || (self.shaped && left > free) {
                (start, bytes) = (left, 0);
            } else {
                assert_eq!(left, free, "a queued packet is sent as soon as the link is free");
            }
            bytes += u128::from(row.packet.len);
            free = start + bytes * 8_000_000_000 / u128::from(SPEC.rate.0);
            busy += clip(free) - clip(left);
        }
        busy
    }
}

fn close(reported: f64, counted: f64, tolerance: f64) {
    let off = (reported - counted).abs();
    assert!(off <= tolerance * counted.abs().max(1e-12), "said {reported}, counted {counted}");
}
