//! Nanoseconds per packet and memory of trees of classes, next to a FIFO queue: htb with 100
//! leaves, and a tree of an access network, with 10 sites of 10 access points with 100 subscribers
//! each. `cargo bench -p sojourn-aqm --bench tree`.
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sojourn_aqm::{Context, Packet, Rate, Setting, Time, build};
use std::time::Instant;

const PACKETS: u32 = 200_000;
const ROUNDS: usize = 5;
/// Time of a packet of 1000 bytes at 10 Gbit/s, nanoseconds.
const GAP: u64 = 800;

/// Settings of an htb, and the classes of its leaves.
struct Tree {
    settings: Vec<(&'static str, String)>,
    leaves: Vec<u16>,
}

/// Tree with `fanout` children of each class on each level; children share the rate of their
/// parent and may borrow all of it.
fn tree(fanout: &[u64], child: &str) -> Tree {
    let (mut rates, mut parents, mut level) = (vec![10_000_000_000], vec![0], vec![1u64]);
    for n in fanout {
        let above = std::mem::take(&mut level);
        for parent in above {
            let rate = rates[usize::try_from(parent).expect("few classes") - 1] / n;
            for _ in 0..*n {
                rates.push(rate);
                parents.push(parent);
                level.push(rates.len() as u64);
            }
        }
    }
    let text = |list: &[u64], unit: &str| {
        list.iter().map(|n| format!("{n}{unit}")).collect::<Vec<_>>().join(" ")
    };
    let mut settings = vec![
        ("rates", text(&rates, "bit")),
        ("parents", text(&parents, "")),
        ("ceils", "10gbit".into()),
        ("bursts", "10kB".into()),
        ("quanta", "1500B".into()),
    ];
    settings.extend((!child.is_empty()).then(|| ("children", child.into())));
    let leaves = level.iter().map(|class| u16::try_from(*class).expect("few classes")).collect();
    Tree { settings, leaves }
}

/// Fastest round in ns per packet, one dequeue and one enqueue of a random class, with a mean of
/// three queued packets per class; the size of the state in bytes; and the time to build, in ms.
fn measure(name: &str, tree: &Tree) -> (f64, usize, f64) {
    let limit = format!("{}p", 4 * tree.leaves.len() + 10);
    let mut settings: Vec<_> =
        tree.settings.iter().map(|(key, value)| (*key, Setting::Text(value))).collect();
    settings.push(("limit", Setting::Text(&limit)));
    let start = Instant::now();
    let mut qdisc = build(name, &settings, Rate(10_000_000_000)).expect("good settings").qdisc;
    let built = start.elapsed().as_secs_f64() * 1e3;
    let mut arrivals = Pcg64Mcg::seed_from_u64(1);
    let (mut rng, mut dropped, mut marks) =
        (Pcg64Mcg::seed_from_u64(2), Vec::new(), sojourn_aqm::Marks::default());
    let mut now = Time::ZERO;
    let packet = |i: u32, now: Time| {
        let class = tree.leaves[i as usize % tree.leaves.len()];
        let flow = u32::from(class) * 8 + (i >> 16) % 8;
        Packet { arrived: now, len: 1000, flow, hash: flow, class, ..Packet::default() }
    };
    let mut best = f64::MAX;
    for round in 0..=ROUNDS {
        let draws: Vec<u32> = (0..PACKETS).map(|_| arrivals.next_u32()).collect();
        let start = Instant::now();
        if round == 0 {
            for _ in 0..3 * tree.leaves.len() {
                let mut context =
                    Context { now, rng: &mut rng, dropped: &mut dropped, marks: &mut marks };
                qdisc.enqueue(&mut context, packet(arrivals.next_u32(), now));
            }
        }
        for i in &draws {
            now.0 += GAP;
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
    (best, qdisc.state_bytes(), built)
}

fn main() {
    if !std::env::args().any(|arg| arg == "--bench") {
        return; // run as a test: nothing to check
    }
    let plain = |n: u16| Tree { settings: Vec::new(), leaves: (0..n).collect() };
    let small = measure("droptail", &plain(100)).0;
    println!("                                  ns/packet  to droptail    state, kB   build, ms");
    let row = |label: &str, (ns, state, built): (f64, usize, f64)| {
        let ratio = ns / small;
        println!("{label:<34} {ns:>8.0} {ratio:>12.1} {:>12} {built:>11.1}", state / 1000);
    };
    row("droptail", measure("droptail", &plain(100)));
    row("fq_codel", measure("fq_codel", &plain(100)));
    for (label, fanout) in [("htb, 100 leaves", &[100][..]), ("htb, 10,000 leaves", &[10, 10, 100])]
    {
        for child in ["", "droptail", "fq_codel(flows=64)", "fq_codel", "cake"] {
            let label = format!("{label}, {}", if child.is_empty() { "FIFO" } else { child });
            row(&label, measure("htb", &tree(fanout, child)));
        }
    }
}
