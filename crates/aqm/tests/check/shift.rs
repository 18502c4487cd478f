//! Shifting all calls in time changes nothing but the times.

use crate::cases::Case;
use crate::ledger::{Event, Ledger};
use crate::link::{arrivals, link};
use crate::{bytes, each, ops};
use rand_core::Rng;
use sojourn_aqm::{Dropped, Packet, Span, Time};

/// Offsets: the smallest one, the uptime of a machine, odd numbers that no period divides, and one
/// that is 292 years before the largest time.
const OFFSETS: [u64; 6] =
    [1, 100_000_000_000, 99_999_999_977, 86_399_999_999_989, (1 << 60) + 12_345_677, 1 << 63];

/// Returns the offsets for a case: variants of Linux count time in units of up to 1.024 us, and in
/// ticks of 1 / `hz`. The unit of 2 s is a multiple of both.
fn offsets(case: &Case) -> impl Iterator<Item = u64> {
    let linux = case.settings.iter().any(|(_, value)| value == "linux");
    let ticks = case.settings.iter().any(|(name, _)| name == "hz");
    let unit = if ticks {
        2_000_000_000
    } else if linux {
        1024
    } else {
        1
    };
    OFFSETS.into_iter().map(move |offset| offset.div_ceil(unit) * unit)
}

/// Gauges that show a time, in seconds; 0 if there is none. All others must be equal bit for bit.
const MOMENTS: [&str; 2] = ["first_above_time", "drop_next"];

/// Shift `event` to `offset` earlier.
fn earlier(event: Event, offset: u64) -> Event {
    let back = |at: Time| Time(at.0 - offset);
    let ticket = |p: Packet| Packet { arrived: back(p.arrived), ..p };
    match event {
        Event::Sent(at, packet) => Event::Sent(back(at), ticket(packet)),
        Event::Lost(dropped) => {
            Event::Lost(Dropped { packet: ticket(dropped.packet), at: back(dropped.at), ..dropped })
        }
        gauge @ Event::Gauge(..) => gauge,
    }
}

/// True if `then` equals `now` shifted by `offset`.
fn same(now: Event, then: Event, offset: u64) -> bool {
    match (now, then) {
        (Event::Gauge(name, a), Event::Gauge(other, b)) if MOMENTS.contains(&name) => {
            let (a, b) = (f64::from_bits(a), f64::from_bits(b));
            let later = b - offset as f64 / 1e9;
            // A time in seconds has only 53 bits.
            name == other && ((a, b) == (0.0, 0.0) || (a - later).abs() <= 1e-15 * b + 1e-12 * a)
        }
        _ => now == earlier(then, offset),
    }
}

/// Trace that starts at `from`, with calls on an empty queue before the first packet.
fn life(case: &Case, seed: u64, noise: &[u8], from: u64) -> Vec<Event> {
    let mut ledger = Ledger::new(case, seed);
    ledger.now = Time(from);
    ops::apply(&mut ledger, noise);
    ledger.drain();
    ledger.trace
}

#[test]
fn shifting_all_calls_changes_only_the_times() {
    each(10, |case, rng| {
        let seed = rng.next_u64();
        let noise = bytes(rng, 1200);
        let now = life(case, seed, &noise, 0);
        for offset in offsets(case) {
            let then = life(case, seed, &noise, offset);
            assert_eq!(now.len(), then.len(), "shifted by {offset} ns: number of events");
            for (a, b) in now.iter().zip(&then) {
                assert!(same(*a, *b, offset), "shifted by {offset} ns: {a:?} became {b:?}");
            }
        }
    });
}

#[test]
fn shifting_arrivals_at_a_link_changes_only_the_times() {
    each(3, |case, rng| {
        let arrivals = arrivals(rng, 1500);
        // Idle time of the link before the first arrival does not matter.
        let events = |offset: u64| {
            let mut link = link(case, 3);
            for (at, packet) in &arrivals {
                link.push(*at + Span(offset), *packet);
            }
            link.advance(arrivals[arrivals.len() - 1].0 + Span::s(30) + Span(offset));
            let row = |r: &sojourn_aqm::LogEntry| {
                (r.packet.arrived.0 - offset, r.left.0 - offset, r.packet.body, r.packet.ecn, r.why)
            };
            link.packet_log().iter().map(row).collect::<Vec<_>>()
        };
        let now = events(0);
        assert_eq!(now.len(), arrivals.len());
        for offset in offsets(case) {
            assert!(now == events(offset), "shifted by {offset} ns");
        }
    });
}
