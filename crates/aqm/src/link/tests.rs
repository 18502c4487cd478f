//! Unit tests of a link.

use super::*;
use crate::context::{Context, DropReason};
use crate::params::Setting;
use crate::qdisc::Backlog;
use alloc::collections::VecDeque;
use rand_core::SeedableRng;
use std::prelude::v1::*;

fn link(rate: u64, delay: Span, limit: &str) -> Link {
    let settings = [("limit", Setting::Text(limit))];
    let built = crate::build("droptail", &settings, Rate(rate)).unwrap();
    Link::new(LinkSpec::new(Rate(rate), delay), built.qdisc, rand_pcg::Pcg64Mcg::seed_from_u64(1))
        .unwrap()
}

fn packet(body: u32, len: u32) -> Packet {
    Packet { body, len, ..Packet::default() }
}

#[test]
#[cfg(target_pointer_width = "64")]
fn the_state_that_a_packet_touches_is_in_six_cache_lines() {
    let line = |field: usize| (offset_of!(Link, transmitter) + field) as f64 / 64.0;
    assert_eq!(align_of::<Link>(), 64);
    assert_eq!(line(offset_of!(Transmitter, now)), 1.0);
    assert_eq!(line(offset_of!(Transmitter, stats)), 2.0);
    assert_eq!(offset_of!(LinkStats, sojourn), 4 * 64);
    assert_eq!(Link::HOT_BYTES, 6 * 64);
}

#[test]
fn sends_one_after_the_other_and_delivers_in_order() {
    let mut l = link(8_000_000, Span::ms(10), "2p");
    for body in 0..4 {
        l.push(Time(0), packet(body, 1000));
    }
    assert_eq!(
        l.take_dropped().map(|l| l.packet.body).collect::<Vec<_>>(),
        [3],
        "one sending, two waiting"
    );
    let arrivals: Vec<_> = core::iter::from_fn(|| {
        let at = l.next_poll()?;
        Some((at.0, l.poll(at)?.body))
    })
    .collect();
    assert_eq!(arrivals, [(11_000_000, 0), (12_000_000, 1), (13_000_000, 2)]);
}

#[test]
fn rate_is_exact_in_the_long_run() {
    // 45 mbit does not divide the nanosecond: 500 bytes take 88,888 and 8/9 ns.
    let mut l = link(45_000_000, Span::ZERO, "10p");
    let (mut sent, mut last) = (0u64, Time::ZERO);
    (0..5).for_each(|i| l.push(Time(0), packet(i, 500)));
    while last < Time(1_000_000_000) {
        last = l.next_poll().unwrap();
        l.poll(last);
        l.push(last, packet(0, 500));
        sent += 500 * 8;
    }
    let exact = u128::from(sent) * 1_000_000_000 / 45_000_000;
    assert_eq!(u128::from(last.0), exact);
}

#[test]
fn late_calls_change_nothing() {
    let (mut prompt, mut late) =
        (link(8_000_000, Span::ms(1), "3p"), link(8_000_000, Span::ms(1), "3p"));
    let (mut a, mut b) = (vec![], vec![]);
    for i in 0..200u64 {
        let at = Time(i * i % 97 * 7_000 + i * 800_000);
        while let Some(due) = prompt.next_poll().filter(|w| *w <= at) {
            a.extend(prompt.poll(due).map(|p| p.body));
        }
        prompt.push(at, packet(i as u32, 1000));
        late.push(at, packet(i as u32, 1000));
    }
    let end = Time(1_000_000_000);
    a.extend(core::iter::from_fn(|| prompt.poll(end)).map(|p| p.body));
    b.extend(core::iter::from_fn(|| late.poll(end)).map(|p| p.body));
    assert_eq!(a, b);
    assert_eq!(prompt.stats().queue_bytes(), late.stats().queue_bytes());
    assert_eq!(prompt.take_dropped().collect::<Vec<_>>(), late.take_dropped().collect::<Vec<_>>());
}

#[test]
fn statistics_count_from_their_reset() {
    let mut l = link(8_000_000, Span::ZERO, "10p");
    (0..5).for_each(|i| l.push(Time(0), packet(i, 1000)));
    l.reset_stats(Time(500_000)); // half of the first transmission is left
    l.advance(Time(10_000_000));
    assert_eq!(l.utilisation(), Some(4.5 / 9.5));
    assert_eq!((l.stats().arrived_packets, l.stats().departed_packets), (0, 4));
    // Queue: 4 for 0.5 ms, then 3, 2, 1 for 1 ms each, over 9.5 ms.
    assert!((l.stats().queue_packets().unwrap().0 - 8.0 / 9.5).abs() < 1e-12);
}

#[test]
fn departure_comes_before_an_arrival_of_the_same_instant() {
    let mut l = link(8_000_000, Span::ZERO, "1p");
    l.push(Time(0), packet(0, 1000));
    l.push(Time(0), packet(1, 1000));
    l.push(Time(1_000_000), packet(2, 1000));
    assert!(!l.has_dropped(), "the first has left, the second is being sent");
}

/// First in, first out, with a fate for each packet by its body: 1 is dropped at enqueue, 2 at
/// dequeue, 3 is marked. Counts the calls of `dequeue`.
#[derive(Clone, Default, Snapshot)]
struct Scripted {
    queue: VecDeque<Packet>,
    #[snapshot(skip)]
    calls: std::sync::Arc<std::sync::atomic::AtomicUsize>,
    at_enqueue: bool,
}

impl Qdisc for Scripted {
    fn enqueue(&mut self, context: &mut Context<'_>, mut packet: Packet) {
        match packet.body {
            1 => return context.drop(packet, DropReason::AtEnqueue),
            3 => drop(context.mark(&mut packet)),
            _ => {}
        }
        self.queue.push_back(packet);
    }

    fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        self.calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        while let Some(packet) = self.queue.pop_front() {
            if packet.body != 2 {
                return Some(packet);
            }
            context.drop(packet, DropReason::AfterEnqueue);
        }
        None
    }

    fn backlog(&self) -> Backlog {
        let bytes = self.queue.iter().map(|p| u64::from(p.len)).sum();
        Backlog { packets: self.queue.len() as u32, bytes }
    }

    fn decides_at_enqueue(&self) -> bool {
        self.at_enqueue
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("queued", self.queue.len() as f64);
    }
}

/// Returns a link of 8 Mbit/s, where a packet of 1000 bytes takes 1 ms, and 10 ms of delay; and
/// the number of calls of its discipline's `dequeue`.
fn scripted(at_enqueue: bool) -> (Link, impl Fn() -> usize) {
    let qdisc = Scripted { at_enqueue, ..Scripted::default() };
    let calls = qdisc.calls.clone();
    let spec = LinkSpec::new(Rate(8_000_000), Span::ms(10));
    let link = Link::new(spec, Box::new(qdisc), rand_pcg::Pcg64Mcg::seed_from_u64(1)).unwrap();
    (link, move || calls.load(std::sync::atomic::Ordering::Relaxed))
}

#[test]
fn a_rate_is_from_one_bit_per_second_to_the_largest() {
    for (rate, valid) in [(0, false), (1, true), (10u64.pow(18), true), (10u64.pow(18) + 1, false)]
    {
        let spec = LinkSpec::new(Rate(rate), Span::ZERO);
        assert_eq!(spec.check().is_ok(), valid, "{rate}");
    }
}

#[test]
fn departures_are_scheduled_at_enqueue_if_everything_is_decided_then() {
    let ms = |at: Time| at.0 / 1_000_000;
    for (at_enqueue, in_flight) in [(true, vec![(11, 0), (12, 4), (13, 5)]), (false, vec![(11, 0)])]
    {
        let (mut l, _) = scripted(at_enqueue);
        assert_eq!(l.first_in_flight(), None);
        [0, 4, 5].iter().for_each(|body| l.push(Time(0), packet(*body, 1000)));
        let first = l.first_in_flight().map(|(at, p)| (ms(*at), p.body));
        assert_eq!(first, Some((11, 0)));
        let all = core::iter::from_fn(|| l.pop_in_flight()).map(|(at, p)| (ms(at), p.body));
        assert_eq!(all.collect::<Vec<_>>(), in_flight, "{at_enqueue}");
    }
}

#[test]
fn an_owner_calls_by_the_time_at_which_a_queued_packet_can_arrive() {
    for at_enqueue in [true, false] {
        let (mut l, _) = scripted(at_enqueue);
        assert_eq!(l.next_event(), None, "idle");
        l.push(Time(0), packet(0, 1000));
        assert_eq!(l.next_event(), None, "no packet waits for the transmission");
        l.push(Time(0), packet(4, 1000));
        let expected = (!at_enqueue).then_some(Time(11_000_000));
        assert_eq!(l.next_event(), expected, "the second starts at 1 ms at the earliest");
    }
}

#[test]
fn drops_are_counted_and_logged_when_they_happen() {
    let (mut l, _) = scripted(false);
    l.push(Time(0), packet(0, 1000));
    assert_eq!((l.packet_log().len(), l.has_dropped()), (0, false), "no log was asked for");
    l.enable_packet_log();
    [1, 2, 4].iter().for_each(|body| l.push(Time(500), packet(*body, 1000)));
    l.advance(Time(1_000_000));
    let log: Vec<_> = l.packet_log().iter().map(|e| (e.packet.body, e.left.0, e.why)).collect();
    let (early, late) = (Some(DropReason::AtEnqueue), Some(DropReason::AfterEnqueue));
    assert_eq!(log, [(1, 500, early), (2, 1_000_000, late), (4, 1_000_000, None)]);
    assert_eq!((l.stats().dropped_packets, l.stats().backlog()), ([0, 1, 1, 0], (0, 0)));
    assert_eq!(l.stats().consecutive_loss(), [2], "1 before an accepted arrival, 1 at the head");
    assert!(l.has_dropped());
    assert_eq!(l.take_dropped().map(|d| d.packet.body).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn a_packet_in_flight_carries_the_mark_of_its_enqueue() {
    let (mut l, _) = scripted(true);
    for body in [0, 3, 4] {
        l.push(Time(0), Packet { ecn: Ecn::Ect0, ..packet(body, 1000) });
    }
    let seen: Vec<Ecn> =
        core::iter::from_fn(|| l.poll(Time::ZERO + Span::s(1))).map(|p| p.ecn).collect();
    assert_eq!(seen, [Ecn::Ect0, Ecn::Ce, Ecn::Ect0]);
}

// An AQM algorithm learns from `dequeue` that its queue is empty: when, and how often, matters.
#[test]
fn an_empty_queue_is_asked_once_at_the_end_of_a_transmission() {
    let (mut l, calls) = scripted(false);
    l.may_change();
    l.push(Time(0), packet(0, 1000));
    assert_eq!(calls(), 1);
    l.advance(Time(5_000_000));
    assert_eq!(calls(), 2, "at 1 ms");
    l.change(Time(6_000_000), LinkSpec { delay: Span::ms(20), ..l.spec() });
    l.advance(Time(7_000_000));
    assert_eq!(calls(), 2);
    // The last packet before an outage.
    l.push(Time(8_000_000), packet(0, 1000));
    l.change(Time(8_500_000), LinkSpec { rate: Rate(0), ..l.spec() });
    l.advance(Time(10_000_000));
    assert_eq!(calls(), 4, "at 8 and 9 ms");
}

#[test]
fn a_dropped_packet_takes_no_opportunity() {
    let (mut l, calls) = scripted(false);
    l.set_opportunities(Opportunities::new(vec![Span::ms(1)], 1500, 0).unwrap());
    l.push(Time(0), packet(1, 1000));
    l.advance(Time(5_000_000));
    assert_eq!(calls(), 0, "the queue is empty as before");
}

#[test]
fn the_discipline_can_be_inspected() {
    let (mut l, _) = scripted(false);
    (0..3).for_each(|_| l.push(Time(0), packet(4, 1000)));
    let mut seen = vec![];
    l.inspect(&mut |name, value| seen.push((name, value)));
    assert_eq!(seen, [("queued", 2.0)]);
    assert_eq!(l.qdisc().backlog(), Backlog { packets: 2, bytes: 2000 });
}

#[test]
fn utilisation_needs_an_interval() {
    let mut l = link(8_000_000, Span::ZERO, "10p");
    assert_eq!((l.utilisation(), l.usage()), (None, [0, 0]));
    l.push(Time(0), packet(0, 1000));
    l.advance(Time(4_000_000));
    assert_eq!((l.utilisation(), l.usage()), (Some(0.25), [1_000_000, 4_000_000]));
}

#[test]
fn send_answers_with_the_arrival_that_push_puts_in_flight() {
    let new = || link(8_000_000, Span::ms(10), "2p");
    let (mut direct, mut queued) = (new(), new());
    assert!(direct.computes_departures());
    for (ms, body) in [0, 0, 0, 0, 1, 9, 9].into_iter().zip(0..) {
        let now = Time(ms * 1_000_000);
        queued.push(now, packet(body, 1000));
        let put = queued.pop_in_flight();
        assert!(put.is_none_or(|(_, packet)| packet.arrived == now));
        assert_eq!(queued.now(), now);
        let expected = put.map(|(at, packet)| (at, packet.ecn));
        let mut sent = packet(body, 1000);
        assert_eq!(direct.send(now, &mut sent), expected, "packet {body}");
        assert_eq!(sent, Packet { arrived: now, ..packet(body, 1000) });
    }
    assert_eq!(queued.take_dropped().count(), 1);
    assert!(!direct.has_dropped() && direct.first_in_flight().is_none());
    assert_eq!(direct.stats().departed_packets, queued.stats().departed_packets);
    assert_eq!(direct.stats().dropped(), 1);
}

#[test]
fn copies_of_one_packet_are_enqueued() {
    let (mut copied, mut pushed) = (link(8_000_000, Span::ms(10), "2p"), vec![]);
    let mut one = packet(0, 1000);
    for body in 0..4 {
        one.body = body;
        copied.push_copy(Time(u64::from(body)), &mut one);
        assert_eq!(one.arrived, Time(u64::from(body)));
    }
    copied.advance(Time(10_000_000));
    pushed.extend(std::iter::from_fn(|| copied.pop_in_flight()).map(|(_, p)| (p.body, p.arrived)));
    assert_eq!(pushed, [0, 1, 2].map(|body| (body, Time(u64::from(body)))));
    assert_eq!(copied.take_dropped().map(|dropped| dropped.packet.body).collect::<Vec<_>>(), [3]);
}

#[test]
#[should_panic(expected = "the fate of the packet is not known yet")]
fn send_needs_a_link_that_computes_departures() {
    let mut link = link(8_000_000, Span::ms(10), "2p");
    link.may_change();
    link.send(Time(0), &mut packet(0, 1000));
}

/// A FIFO queue that releases a packet every 3 ms at most.
#[derive(Clone, Default, Snapshot)]
struct Spaced {
    queue: VecDeque<Packet>,
    ready: Time,
}

impl Qdisc for Spaced {
    fn enqueue(&mut self, _context: &mut Context<'_>, packet: Packet) {
        self.queue.push_back(packet);
    }
    fn dequeue(&mut self, context: &mut Context<'_>) -> Option<Packet> {
        let packet = if context.now < self.ready { None } else { self.queue.pop_front() };
        if packet.is_some() {
            self.ready = context.now + Span::ms(3);
        }
        packet
    }
    fn ready_at(&self) -> Option<Time> {
        (!self.queue.is_empty()).then_some(self.ready)
    }
    fn backlog(&self) -> Backlog {
        let packets = u32::try_from(self.queue.len()).unwrap();
        Backlog { packets, bytes: self.queue.iter().map(|p| u64::from(p.len)).sum() }
    }
}

fn spaced() -> Link {
    let spec = LinkSpec::new(Rate(8_000_000), Span::ms(10));
    Link::new(spec, Box::<Spaced>::default(), rand_pcg::Pcg64Mcg::seed_from_u64(1)).unwrap()
}

#[test]
fn a_discipline_that_delays_is_asked_again_when_it_is_ready() {
    let mut link = spaced();
    (0..3).for_each(|body| link.push(Time(0), packet(body, 1000)));
    assert_eq!(link.next_event(), Some(Time(11_000_000)), "the first transmission ends at 1 ms");
    link.advance(Time(2_000_000));
    assert_eq!(link.next_event(), Some(Time(13_000_000)), "the discipline is ready at 3 ms");
    link.push(Time(2_500_000), packet(3, 1000)); // too early for a departure
    link.advance(Time(1_000_000_000));
    let sent: Vec<_> =
        core::iter::from_fn(|| link.pop_in_flight()).map(|(at, p)| (at.0 / 1000, p.body)).collect();
    assert_eq!(sent, [(11_000, 0), (14_000, 1), (17_000, 2), (20_000, 3)]);
    assert_eq!(link.usage(), [4_000_000, 1_000_000_000], "it sends for 4 ms of 1 s");
}

#[test]
fn a_link_at_rate_0_sends_a_delayed_packet_when_it_has_a_rate_again() {
    let mut link = spaced();
    link.may_change();
    (0..3).for_each(|body| link.push(Time(0), packet(body, 1000)));
    link.change(Time(2_000_000), LinkSpec { rate: Rate(0), ..link.spec() });
    link.advance(Time(5_000_000));
    assert_eq!(link.next_event(), None);
    link.change(Time(6_000_000), LinkSpec { rate: Rate(8_000_000), ..link.spec() });
    link.advance(Time(1_000_000_000));
    let sent: Vec<_> =
        core::iter::from_fn(|| link.pop_in_flight()).map(|(at, _)| at.0 / 1000).collect();
    assert_eq!(sent, [11_000, 17_000, 20_000]);
}

#[test]
fn a_delayed_packet_leaves_at_the_first_opportunity_after_the_discipline_is_ready() {
    let mut link = spaced();
    let moments = [2, 4, 5, 8].map(Span::ms).to_vec();
    link.set_opportunities(Opportunities::new(moments, 1000, 0).unwrap());
    (0..3).for_each(|body| link.push(Time(0), packet(body, 1000)));
    link.push(Time(3_000_000), packet(3, 1000)); // no departure at 4 ms
    link.advance(Time(30_000_000));
    let sent: Vec<_> =
        core::iter::from_fn(|| link.pop_in_flight()).map(|(at, _)| at.0 / 1000).collect();
    // It is ready at 5, 11 and 15 ms; the next opportunities are at 8, 12 and 16 ms.
    assert_eq!(sent, [12_000, 18_000, 22_000, 26_000]);
}

#[test]
fn an_idle_link_reaches_the_end_of_time() {
    let mut l = link(8_000_000, Span::ZERO, "2p");
    l.push(Time(0), packet(0, 1000));
    assert_eq!(l.poll(Time::NEVER).map(|p| p.body), Some(0));
    assert!(l.poll(Time::NEVER).is_none());
}

/// A discipline that has no more than it must have.
#[derive(Clone, Default, Snapshot)]
struct Least(VecDeque<Packet>);

impl Qdisc for Least {
    fn enqueue(&mut self, _context: &mut Context<'_>, packet: Packet) {
        self.0.push_back(packet);
    }
    fn dequeue(&mut self, _context: &mut Context<'_>) -> Option<Packet> {
        self.0.pop_front()
    }
    fn backlog(&self) -> Backlog {
        let bytes = self.0.iter().map(|packet| u64::from(packet.len)).sum();
        Backlog { packets: u32::try_from(self.0.len()).unwrap(), bytes }
    }
}

#[test]
fn a_discipline_refuses_other_parameters_unless_it_says_how_to_take_them() {
    assert!(!Least::default().reconfigure(Box::new(Least::default())));
}
