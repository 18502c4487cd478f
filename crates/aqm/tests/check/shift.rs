//! A shift of all calls in time changes nothing but the times.

use crate::cases::Case;
use crate::ledger::{Event, Ledger};
use crate::link::{arrivals, link};
use crate::{bytes, each, ops};
use rand_core::Rng;
use sojourn_aqm::{Lost, Packet, Span, Time};

/// Offsets of all kinds: the least one, the boot of a machine, odd numbers that no period divides,
/// and one that leaves 292 years to the end of time.
const OFFSETS: [u64; 6] =
    [1, 100_000_000_000, 99_999_999_977, 86_399_999_999_989, (1 << 60) + 12_345_677, 1 << 63];

/// Gauges that show a moment, in seconds; 0 where there is none. All others must keep every bit.
const MOMENTS: [&str; 2] = ["first_above_time", "drop_next"];

/// `event` as it would have been `offset` earlier.
fn earlier(event: Event, offset: u64) -> Event {
    let back = |at: Time| Time(at.0 - offset);
    let ticket = |p: Packet| Packet { arrived: back(p.arrived), ..p };
    match event {
        Event::Sent(at, packet) => Event::Sent(back(at), ticket(packet)),
        Event::Lost(lost) => {
            Event::Lost(Lost { packet: ticket(lost.packet), at: back(lost.at), ..lost })
        }
        gauge @ Event::Gauge(..) => gauge,
    }
}

/// Whether the two say the same, the second `offset` later.
fn same(now: Event, then: Event, offset: u64) -> bool {
    match (now, then) {
        (Event::Gauge(name, a), Event::Gauge(other, b)) if MOMENTS.contains(&name) => {
            let (a, b) = (f64::from_bits(a), f64::from_bits(b));
            let later = b - offset as f64 / 1e9;
            // A moment in seconds keeps 53 bits only.
            name == other && ((a, b) == (0.0, 0.0) || (a - later).abs() <= 1e-15 * b + 1e-12 * a)
        }
        _ => now == earlier(then, offset),
    }
}

/// The trace of a life that begins at `from`, with calls on an empty queue before the first packet.
fn life(case: &Case, seed: u64, noise: &[u8], from: u64) -> Vec<Event> {
    let mut ledger = Ledger::new(case, seed);
    ledger.now = Time(from);
    ops::apply(&mut ledger, noise);
    ledger.drain();
    ledger.trace
}

#[test]
fn a_shift_of_all_calls_changes_nothing_but_the_times() {
    each(10, |case, rng| {
        let seed = rng.next_u64();
        let noise = bytes(rng, 1200);
        let now = life(case, seed, &noise, 0);
        for offset in OFFSETS {
            let then = life(case, seed, &noise, offset);
            assert_eq!(now.len(), then.len(), "shifted by {offset} ns: as many events");
            for (a, b) in now.iter().zip(&then) {
                assert!(same(*a, *b, offset), "shifted by {offset} ns: {a:?} became {b:?}");
            }
        }
    });
}

#[test]
fn a_shift_of_the_arrivals_at_a_link_changes_nothing_but_the_times() {
    each(3, |case, rng| {
        let arrivals = arrivals(rng, 1500);
        // How long the link stood there before does not count: one clock starts with the link.
        let told = |offset: u64| {
            let mut link = link(case, 3);
            for (at, packet) in &arrivals {
                link.push(*at + Span(offset), *packet);
            }
            link.advance(arrivals[arrivals.len() - 1].0 + Span::s(30) + Span(offset));
            let row = |r: &sojourn_aqm::tape::Row| {
                (r.packet.arrived.0 - offset, r.left.0 - offset, r.packet.body, r.packet.ecn, r.why)
            };
            link.tape().iter().map(row).collect::<Vec<_>>()
        };
        let now = told(0);
        assert_eq!(now.len(), arrivals.len());
        for offset in OFFSETS {
            assert!(now == told(offset), "shifted by {offset} ns");
        }
    });
}
