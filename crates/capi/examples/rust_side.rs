//! Speed without the border, for comparison with `tests/c/bench.c`: ns of wall-clock time per
//! packet, the best of 100 short runs of 50,000 packets in 7 flows, 20 packets deep.

use sojourn_aqm::{Context, Marks, Packet, Pcg, Rate, Time, build_text};
use std::hint::black_box;
use std::time::Instant;

const PACKETS: u32 = 50_000;

#[expect(clippy::disallowed_methods, reason = "measures wall-clock time")]
fn ns_per_packet(text: &str) -> f64 {
    let mut qdisc = build_text(text, Rate(1_000_000_000)).expect("a discipline").qdisc;
    let (mut rng, mut dropped, mut marks) = (Pcg::new(1), Vec::new(), Marks::default());
    let mut sum = 0;
    let mut step = |i: u32, now: Time, dequeues: bool| {
        let mut context = Context { now, rng: &mut rng, dropped: &mut dropped, marks: &mut marks };
        let hash = i % 7;
        let packet =
            Packet { arrived: now, len: 1250, body: i, flow: hash, hash, ..Packet::default() };
        qdisc.enqueue(&mut context, packet);
        if dequeues && let Some(packet) = qdisc.dequeue(&mut context) {
            sum += u64::from(packet.body);
        }
        dropped.clear();
    };
    (0..20).for_each(|i| step(i, Time::ZERO, false));
    let start = Instant::now();
    (0..PACKETS).for_each(|i| step(i, Time(u64::from(i) * 10_000), true));
    black_box(sum);
    start.elapsed().as_secs_f64() * 1e9 / f64::from(PACKETS)
}

fn main() {
    for text in ["droptail", "codel", "fq_codel", "pie", "dualpi2"] {
        let best = (0..100).map(|_| ns_per_packet(text)).fold(f64::INFINITY, f64::min);
        println!("{text} Rust {best:.1}");
    }
}
