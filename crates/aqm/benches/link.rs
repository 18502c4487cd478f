//! Nanoseconds per packet through a link, for every discipline of the registry, and relative to a
//! plain queue in the same run, because ratios are less noisy. `cargo bench -p sojourn-aqm --bench
//! link`.
//!
//! With `-- count NAME PACKETS [one-host]` it only sends that many packets through one discipline,
//! for callgrind (`make instructions-links`); `-- names` lists the disciplines.
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use allocation_counter::measure;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sojourn_aqm::registry::{QdiscEntry, REGISTRY};
use sojourn_aqm::{Ecn, Env, Link, LinkSpec, Packet, Rate, Setting, Span, Time};
use std::hint::black_box;
use std::time::Instant;

const RATE: Rate = Rate(100_000_000);
const FLOWS: u32 = 50;
const LEN: u32 = 1000;
/// 10 % overload: transmission takes 80 us, one packet arrives every 72.7 us.
const GAP: Span = Span(72_727);
/// Packets per round, and number of rounds; the fastest round counts.
const PACKETS: u32 = 200_000;
const ROUNDS: usize = 15;

/// Link with 10 % overload: up to 100 packets are queued all the time.
struct Feed {
    link: Link,
    /// Random flows, drawn before the measurement.
    flows: Vec<u32>,
    /// True if all flows are between the same two hosts, which matters to `cake` alone.
    one_host: bool,
    now: Time,
}

impl Feed {
    fn new(entry: &QdiscEntry, ecn: bool) -> Feed {
        // Equal buffers give equal backlogs; the AQMs are configured to act all the time.
        let wanted = [
            ("limit", "100p"),
            ("min_th", "50p"),
            ("max_th", "150p"),
            ("target", "5ms"),
            ("ecn", if ecn { "true" } else { "false" }),
        ];
        let known = entry.params();
        let fit = wanted.iter().filter(|(k, _)| known.iter().any(|row| row.name == *k));
        let settings: Vec<_> = fit.map(|(k, v)| (*k, Setting::Text(v))).collect();
        // Where max_th must not exceed limit, use the AQM's default thresholds.
        let without: Vec<_> = settings.iter().filter(|s| !s.0.ends_with("_th")).copied().collect();
        let built = entry.build(&settings, &Env::new(RATE));
        let built = built.or_else(|_| entry.build(&without, &Env::new(RATE)));
        let built = built.expect("the settings are valid");
        let spec = LinkSpec::new(RATE, Span::ms(1));
        let link = Link::new(spec, built.qdisc, Pcg64Mcg::seed_from_u64(1)).unwrap();
        let mut rng = Pcg64Mcg::seed_from_u64(2);
        let flows = (0..PACKETS).map(|_| rng.next_u32() % FLOWS).collect();
        Feed { link, flows, one_host: false, now: Time::ZERO }
    }

    /// Runs one round; returns the number of dropped packets.
    fn round(&mut self) -> usize {
        let mut dropped = 0;
        for (body, flow) in (0..).zip(&self.flows) {
            self.now += GAP;
            let ecn = Ecn::Ect0;
            // A host of its own at both ends of each flow, unless all flows share two hosts.
            let [source, destination] = if self.one_host { [0; 2] } else { [*flow; 2] };
            let packet = Packet {
                len: LEN,
                flow: *flow,
                hash: *flow,
                source,
                destination,
                body,
                ecn,
                ..Packet::default()
            };
            self.link.push(self.now, packet);
            while let Some(packet) = self.link.poll(self.now) {
                black_box(packet);
            }
            dropped += self.link.take_dropped().count();
        }
        dropped
    }
}

/// Discipline under test and its best time.
struct Row {
    name: String,
    feed: Feed,
    ns: f64,
    dropped: usize,
    allocations: u64,
}

impl Row {
    fn new(entry: &QdiscEntry, ecn: bool) -> Row {
        let name = format!("{}{}", entry.name, if ecn { " ecn" } else { "" });
        let mut feed = Feed::new(entry, ecn);
        feed.round(); // warm-up
        feed.link.reset_stats(feed.now);
        Row { name, feed, ns: f64::MAX, dropped: 0, allocations: 0 }
    }

    fn round(&mut self) {
        let used = measure(|| {
            let start = Instant::now();
            self.dropped = self.feed.round();
            self.ns = self.ns.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(PACKETS));
        });
        self.allocations += used.count_total;
    }
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    if words.get(1).is_some_and(|word| word == "names") {
        REGISTRY.iter().for_each(|entry| println!("{}", entry.name));
        return;
    }
    if let [_, word, name, packets, ..] = &words[..]
        && word == "count"
    {
        let entry = REGISTRY.iter().find(|e| e.name == name).expect("a discipline of the registry");
        let mut feed = Feed::new(entry, false);
        feed.flows.truncate(packets.parse().expect("a number of packets"));
        feed.one_host = words.get(4).is_some_and(|word| word == "one-host");
        black_box(feed.round());
        return;
    }
    println!(
        "{:<14} {:>10} {:>9} {:>8} {:>7} {:>12}",
        "discipline", "ns/packet", "ratio", "waiting", "lost", "allocations"
    );
    let marks = |entry: &QdiscEntry| entry.params().iter().any(|row| row.name == "ecn");
    let mut rows: Vec<Row> = REGISTRY
        .iter()
        .flat_map(|e| {
            [false, true].into_iter().filter(|ecn| !ecn || marks(e)).map(|c| Row::new(e, c))
        })
        .collect();
    // Interleave rounds, so that a slow period of the machine affects all disciplines.
    (0..ROUNDS).for_each(|_| rows.iter_mut().for_each(Row::round));
    let plain = rows[0].ns;
    for Row { name, feed, ns, dropped, allocations } in &mut rows {
        let backlog = feed.link.stats().queue_packets().expect("time has passed").0;
        let dropped = *dropped as f64 / f64::from(PACKETS) * 100.0;
        let ratio = *ns / plain;
        println!(
            "{name:<14} {ns:>10.1} {ratio:>8.2}x {backlog:>8.1} {dropped:>6.1}% {allocations:>12}"
        );
    }
    println!(
        "\nratio: to {}. A packet arrives, waits, is sent and delivered; {FLOWS} flows, {LEN} B \
         packets, 10 % too many.\n\
         The fastest of {ROUNDS} rounds of {PACKETS} packets. Allocations of all rounds.",
        REGISTRY[0].name
    );
}
