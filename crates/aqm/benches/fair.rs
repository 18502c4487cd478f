//! Nanoseconds per packet of the fair schedulers with 10, 1,000 and 100,000 backlogged queues, and
//! of a plain queue with as many packets, which shows the share of cache misses. `cargo bench -p
//! sojourn-aqm --bench fair`.
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sojourn_aqm::{Context, Packet, Rate, Setting, Time, build};
use std::time::Instant;

const FLOWS: [u32; 3] = [10, 1_000, 100_000];
const NAMES: [&str; 9] =
    ["droptail", "drr", "sfq", "fq_codel", "qfq", "scfq", "stfq", "wfq", "wf2q"];
const PACKETS: u32 = 400_000;
const ROUNDS: usize = 5;

/// Fastest round, in ns per packet: one dequeue and one enqueue of a random flow, with a mean of
/// three queued packets per flow.
fn ns(name: &str, flows: u32) -> f64 {
    let queues = flows.min(65_536).to_string();
    let limit = format!("{}p", 4 * flows + 10);
    let mut settings = vec![("limit", Setting::Text(&limit))];
    if name != "droptail" {
        settings.push(("flows", Setting::Text(&queues)));
    }
    let depth = [("depth", Setting::Text("1000"))];
    settings.extend(depth.iter().filter(|_| name == "sfq"));
    let mut qdisc = build(name, &settings, Rate(10_000_000_000)).expect("good settings").qdisc;
    let mut arrivals = Pcg64Mcg::seed_from_u64(1);
    let (mut rng, mut dropped, mut marks) =
        (Pcg64Mcg::seed_from_u64(2), Vec::new(), sojourn_aqm::Marks::default());
    let mut now = Time::ZERO;
    let packet = |i: u32, now: Time| {
        let flow = i % flows;
        Packet { arrived: now, len: 1000, flow, hash: flow, ..Packet::default() }
    };
    let mut best = f64::MAX;
    for round in 0..=ROUNDS {
        let draws: Vec<u32> = (0..PACKETS).map(|_| arrivals.next_u32()).collect();
        let start = Instant::now();
        if round == 0 {
            for i in 0..3 * flows {
                let mut context =
                    Context { now, rng: &mut rng, dropped: &mut dropped, marks: &mut marks };
                qdisc.enqueue(&mut context, packet(i, now));
            }
        }
        for i in &draws {
            now.0 += 800;
            let mut context =
                Context { now, rng: &mut rng, dropped: &mut dropped, marks: &mut marks };
            std::hint::black_box(qdisc.dequeue(&mut context));
            qdisc.enqueue(&mut context, packet(*i, now));
            dropped.clear();
        }
        if round > 0 {
            best = best.min(start.elapsed().as_nanos() as f64 / f64::from(PACKETS));
        }
    }
    best
}

fn main() {
    if !std::env::args().any(|arg| arg == "--bench") {
        return; // run as a test: nothing to check
    }
    println!("ns per packet   {:>10} {:>10} {:>10}   to 10 flows", "10", "1,000", "100,000");
    for name in NAMES {
        let [a, b, c] = FLOWS.map(|flows| ns(name, flows));
        println!("   {name:<12} {a:>10.0} {b:>10.0} {c:>10.0}   {:.1}, {:.1}", b / a, c / a);
    }
}
