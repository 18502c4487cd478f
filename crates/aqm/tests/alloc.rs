//! No allocation per packet: once a link has seen its largest backlog, packets allocate no memory
//! under any discipline, including statistics.

#[path = "check/cases.rs"]
mod cases;

use allocation_counter::measure;
use cases::{Case, RATE, all};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sojourn_aqm::{Context, Ecn, Link, LinkSpec, Packet, Span, Time};

/// Link with its traffic source, which can be paused and resumed.
struct Feed {
    link: Link,
    rng: Pcg64Mcg,
    now: Time,
    dropped: u64,
    sent: u64,
}

impl Feed {
    fn new(case: &Case) -> Feed {
        let spec = LinkSpec::new(RATE, Span::ms(20));
        let link = Link::new(spec, case.build().qdisc, Pcg64Mcg::seed_from_u64(1)).unwrap();
        Feed { link, rng: Pcg64Mcg::seed_from_u64(2), now: Time::ZERO, dropped: 0, sent: 0 }
    }

    /// `n` arrivals of 50 flows with spacing `gap`; departures and drops are collected.
    fn packets(&mut self, n: u32, gap: Span) {
        for body in 0..n {
            self.now += gap;
            let flow = self.rng.next_u32() % 50;
            let len = 500 + self.rng.next_u32() % 1000;
            let ecn = Ecn::from_bits(flow as u8);
            let packet = Packet { len, flow, hash: flow, body, ecn, ..Packet::default() };
            self.link.push(self.now, packet);
            while self.link.poll(self.now).is_some() {
                self.sent += 1;
            }
            self.dropped += self.link.take_dropped().count() as u64;
        }
    }

    /// Load around the link rate, overload, a day of idle time with a full buffer, underload.
    fn day(&mut self, n: u32) {
        self.packets(n, Span::us(990));
        self.packets(n, Span::us(600));
        self.now += Span::s(86_400);
        self.packets(n / 2, Span::us(2000));
        self.packets(n, Span::us(950));
    }

    /// As many arrivals at once as any buffer here holds, of 1 byte each, then as many slowly, so
    /// that all are sent; departures are collected only then.
    fn flood(&mut self, n: u32) {
        for body in 0..2 * n {
            self.now += if body < n { Span::ZERO } else { Span::ms(2) };
            let flow = body % 50;
            let packet = Packet { len: 1, flow, hash: flow, body, ..Packet::default() };
            self.link.push(self.now, packet);
        }
        self.dropped += self.link.take_dropped().count() as u64;
        self.now += Span::s(60);
        while self.link.poll(self.now).is_some() {}
    }
}

/// Settings of the suite with a bounded buffer, so that its largest backlog can be reached.
fn bounded() -> Vec<Case> {
    let mut cases = all(5, 1);
    for case in &mut cases {
        let limit = cases::limit(&case.build());
        if limit.number() > 3000 && !limit.in_bytes() {
            case.settings.retain(|(name, _)| name != "limit");
            case.settings.push(("limit".into(), "3000p".into()));
        }
    }
    cases.retain(|case| case.try_build().is_some());
    cases
}

/// The same without children: the discipline of a class allocates when its first packet arrives.
fn without_children() -> impl Iterator<Item = Case> {
    let has = |case: &Case| case.settings.iter().any(|(name, _)| name == "children");
    bounded().into_iter().filter(move |case| !has(case) && case.entry.name != "hfsc")
}

#[test]
fn packets_cost_no_allocation() {
    for case in bounded() {
        let mut feed = Feed::new(&case);
        // Warm-up: more packets in flight and, where the AQM allows it, in the queue than at any
        // later time.
        feed.flood(4000);
        feed.day(8000);
        let used: Vec<u64> = (0..3).map(|_| measure(|| feed.day(4000)).count_total).collect();
        // By chance a backlog may exceed all previous ones, which allocates once per list; a day
        // has 10,000 packets.
        let lucky = used.iter().sum::<u64>() <= 8 && used.contains(&0);
        assert!(lucky, "{case}: {used:?} allocations");
        assert!(feed.sent + feed.dropped > 60_000, "{case}: packets were sent or dropped");
    }
}

#[test]
fn new_flows_cost_no_allocation() {
    for case in without_children() {
        let mut feed = Feed::new(&case);
        feed.flood(4000);
        feed.day(8000);
        let used = measure(|| {
            for flow in 0..20_000u32 {
                feed.now += Span::ms(2);
                let hash = flow.wrapping_mul(2_654_435_761);
                let packet = Packet { len: 1000, flow, hash, body: flow, ..Packet::default() };
                feed.link.push(feed.now, packet);
                while feed.link.poll(feed.now).is_some() {}
                feed.link.take_dropped().for_each(drop);
            }
        });
        assert_eq!(used.count_total, 0, "{case}");
    }
}

#[test]
fn emptying_a_queue_costs_no_allocation_even_the_first_time() {
    for case in without_children() {
        let mut qdisc = case.build().qdisc;
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        // The list of dropped packets may grow: it belongs to the link, not to the queue.
        let (mut dropped, mut marks) = (Vec::with_capacity(10_000), sojourn_aqm::Marks::default());
        let mut context =
            Context { now: Time::ZERO, rng: &mut rng, dropped: &mut dropped, marks: &mut marks };
        for flow in 0..4000 {
            let packet = Packet { len: 1, flow, hash: flow, body: flow, ..Packet::default() };
            qdisc.enqueue(&mut context, packet);
        }
        let used = measure(|| while qdisc.dequeue(&mut context).is_some() {});
        assert_eq!(used.count_total, 0, "{case}");
    }
}

#[test]
fn an_idle_link_costs_two_kilobytes() {
    let mut held = None;
    for name in ["droptail", "red", "codel", "pie"] {
        let used = measure(|| {
            let qdisc = sojourn_aqm::build(name, &[], RATE).expect("defaults are valid").qdisc;
            let spec = LinkSpec::new(RATE, Span::ms(20));
            let rng = Pcg64Mcg::seed_from_u64(1);
            let mut link = Link::new(spec, qdisc, rng).expect("the rate is valid");
            link.reset_stats(Time(1_000_000_000));
            link.advance(Time(2_000_000_000));
            held = Some(link);
        });
        assert!(held.take().is_some(), "it lived until its memory was counted");
        let bytes = u64::try_from(used.bytes_current).unwrap_or(0) + size_of::<Link>() as u64;
        assert!(bytes <= 2000, "{name}: {bytes} bytes");
    }
}

#[test]
fn the_allocation_counter_works() {
    let used = measure(|| drop(std::hint::black_box(Box::new(1))));
    assert_eq!(used.count_total, 1);
}
