use super::*;
use crate::packet::Packet;

/// A packet of `len` bytes that arrived at `from` is lost at `at`.
fn dropped(from: u64, at: u64, len: u32, why: DropReason) -> Dropped {
    let packet = Packet { arrived: Time(from), len, ..Packet::default() };
    Dropped { packet, reason: why, at: Time(at) }
}

#[test]
fn queue_is_weighted_by_time() {
    let mut t = LinkStats::default();
    t.on_enqueue(Time(0), 100); // 1 packet for 3 ns
    t.on_enqueue(Time(3), 300); // 2 packets for 1 ns
    t.on_departure(Time(4), 100, Span(4), Span(0)); // 1 packet for 4 ns
    t.on_drop(&dropped(3, 8, 300, DropReason::AfterEnqueue));
    t.pass(Time(10));
    let (mean, std) = t.queue_packets().unwrap();
    assert_eq!(mean, 0.9); // (3 + 2 + 4) / 10
    assert!((std - libm::sqrt(1.1 - 0.81)).abs() < 1e-12);
    assert_eq!(t.queue_bytes().unwrap().0, 190.0); // (300 + 400 + 1200) / 10
}

#[test]
fn runs_end_at_the_next_accepted_arrival() {
    let mut t = LinkStats::default();
    for fate in [1, 0, 0, 1, 1, 0, 1, 0, 0] {
        t.on_enqueue(Time(0), 1);
        if fate == 1 { t.on_accept() } else { t.on_drop(&dropped(0, 0, 1, DropReason::Full)) }
    }
    assert_eq!(t.consecutive_loss(), [1, 2], "0 0 | 0 | 0 0 (open)");
    assert_eq!((t.arrived_packets, t.dropped()), (9, 5));
    t.reset(Time(5), Span(0));
    assert_eq!(t.consecutive_loss(), [0; 0]);
}

#[test]
fn a_measured_interval_begins_without_sojourn_times() {
    let mut t = LinkStats::default();
    t.on_enqueue(Time(0), 1000);
    t.on_departure(Time(5), 1000, Span(5), Span(0));
    t.reset(Time(10), Span(0));
    assert_eq!((t.sojourn.count(), t.sojourn.max_s()), (0, None));
}

#[test]
fn a_measured_interval_counts_from_its_start_and_keeps_the_queue() {
    let mut t = LinkStats::default();
    assert_eq!((t.queue_packets(), t.queue_bytes()), (None, None));
    (0..4).for_each(|_| t.on_enqueue(Time(0), 100));
    t.on_departure(Time(5), 100, Span(5), Span(8));
    t.on_drop(&dropped(0, 6, 100, DropReason::AfterEnqueue));
    assert_eq!((t.busy(Span(3)), t.window(), t.backlog()), (Span(5), Span(6), (2, 200)));
    t.reset(Time(10), Span(3));
    assert_eq!((t.busy(Span(3)), t.window(), t.backlog()), (Span(0), Span(0), (2, 200)));
    assert_eq!(t.consecutive_loss(), [0; 0]);
    assert_eq!(t.backlog(), (2, 200));
    assert_eq!((t.marks.since, t.arrived_packets, t.departed_bytes), (Time(10), 0, 0));
    t.on_enqueue(Time(10), 50);
    t.on_drop(&dropped(0, 12, 100, DropReason::Full));
    t.on_drop(&dropped(10, 14, 50, DropReason::AtEnqueue));
    t.on_departure(Time(14), 100, Span(14), Span(7));
    assert_eq!(t.dropped_earlier, [1, 0, 0, 0]);
    assert_eq!((t.dropped_packets, t.dropped(), t.dropped_bytes), ([0, 1, 0, 0], 1, 50));
    assert_eq!(t.drops(), [1, 1, 0, 0]);
    assert_eq!((t.arrived_bytes, t.departed_packets, t.departed_bytes), (50, 1, 100));
    assert_eq!((t.busy(Span(2)), t.window(), t.backlog()), (Span(8), Span(4), (0, 0)));
    // 250 bytes for 2 ns, 150 for 2.
    assert_eq!(t.queue_bytes(), Some((200.0, 50.0)));
    assert_eq!(t.queue_packets(), Some((2.5, 0.5)));
}

#[test]
fn losses_at_the_head_are_runs_of_departures() {
    let mut t = LinkStats::default();
    (0..9).for_each(|_| t.on_enqueue(Time(0), 1));
    let late = dropped(0, 1, 1, DropReason::AfterEnqueue);
    (0..2).for_each(|_| t.on_drop(&late));
    t.on_accept();
    assert_eq!(t.consecutive_loss(), [0, 1], "an accepted arrival does not end it");
    t.on_drop(&late);
    t.on_departure(Time(2), 1, Span(2), Span(0));
    t.on_drop(&late);
    assert_eq!(t.consecutive_loss(), [1, 0, 1], "the last one is open");
    let mut t = LinkStats::default();
    (0..RUN_MAX + 2).for_each(|_| {
        t.on_enqueue(Time(0), 1);
        t.on_drop(&dropped(0, 0, 1, DropReason::Full));
    });
    let runs = t.consecutive_loss();
    assert_eq!((runs.len(), runs[RUN_MAX - 1]), (RUN_MAX, 1));
}

#[test]
fn the_spread_of_large_values_that_differ_little_is_exact() {
    // 10^9 and 10^9 + 2: in floating point their variance is lost in squares of 10^18.
    let squares = [1_000_000_000_u128, 1_000_000_002].map(|n| n * n);
    assert_eq!(spread(2_000_000_002, squares[0] + squares[1], 2), 1.0);
}

#[test]
fn drops_are_counted_by_reason() {
    let mut t = LinkStats::default();
    (0..2).for_each(|_| t.on_enqueue(Time(0), 100));
    t.on_drop(&dropped(0, 0, 100, DropReason::Full));
    let others = t.dropped() - t.dropped_for(DropReason::Full);
    assert_eq!((t.dropped_for(DropReason::Full), others), (1, 0));
}

#[test]
fn sojourn_times_counted_in_batches_give_the_same_histogram() {
    let (mut at_once, mut in_batches) = (LinkStats::default(), LinkStats::default());
    in_batches.count_in_batches();
    // Zeros, short and long times, one too long for a batch and one longer than all bins.
    let times =
        (0..200).map(|i| [0, 3, 1 << 20, 77_777 * i, 5_000_000_000, 1 << 36][i as usize % 6]);
    for (i, ns) in (0..).zip(times) {
        for stats in [&mut at_once, &mut in_batches] {
            stats.on_enqueue(Time(0), 1000);
            stats.on_departure(Time(ns), 1000, Span(ns), Span(1));
        }
        if i == 100 {
            at_once.reset(Time(i), Span(0));
            in_batches.reset(Time(i), Span(0));
        }
        if i == 3 {
            let counts = [&at_once, &in_batches].map(|stats| stats.sojourn.count());
            assert_eq!(counts, [4, 1], "three wait for the next look, or for more");
        }
        if i % 7 == 0 {
            in_batches.count_recent();
            at_once.count_recent();
            let [a, b] = [&at_once.sojourn, &in_batches.sojourn];
            assert!(a.values().eq(b.values()), "{i}");
            let sums = |h: &Histogram| (h.count(), h.sum_ns(), h.std_s(), h.max_s());
            assert_eq!(sums(a), sums(b), "{i}");
        }
    }
    assert_eq!(at_once.sojourn.count(), 99, "since the reset");
}
