//! Whole runs: packets/s at the bottleneck on one core, best of several trials, and ratios within
//! this run. `cargo bench -p sojourn-sim` runs everything, including S1 in ns-2 if Debian's `ns2`
//! is installed. `-- s1`, `-- bare`, `-- s2`, `-- flows`, `-- fast`, `-- web`, `-- heap`, `-- ns2`,
//! `-- cores` run one part.
//!
//! S1: 45 mbit, 300 bulk NewReno flows with RTTs of 40 to 200 ms, 500-byte packets, 300 kB buffer,
//! 200 simulated seconds. S2: 1 gbit, 300 us, 40 senders of repeated 100 kB transfers, one bulk
//! flow, 200 packets of buffer. Fast: 100,000 bulk flows at 100 gbit for 1 s. Web: 1,400 users for
//! 5,000 s.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "tests use small numbers"
)]
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod bare_loop;

use serde_json::{Value, json};
use sojourn_sim::Scenario;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// `flows` bulk flows for `seconds`, with 150 kbit/s and 1 kB of buffer each.
fn s1(flows: u64, seconds: f64, qdisc: &str, profile: &str) -> Value {
    let kb = |each: u64| format!("{}kB", (each * flows / 300).max(each / 60));
    let mut q = json!({"name": qdisc, "limit": kb(300)});
    if qdisc == "red" {
        q["min_th"] = kb(75).into();
        q["max_th"] = kb(150).into();
        q["gentle"] = true.into();
    }
    json!({
        "duration": format!("{}ms", (seconds * 1e3) as u64),
        "links": {"bottleneck": {"rate": format!("{}kbit", 150 * flows), "delay": "1ms",
            "qdisc": q}},
        "flows": [{
            "name": "ftp", "count": flows, "path": ["bottleneck"], "rtt": "uniform(40ms, 200ms)",
            "source": {"name": "bulk",
                "start": format!("uniform(0s, {}ms)", (seconds * 50.0) as u64)},
            "tcp": {"name": "newreno", "profile": profile, "packet": "500B"},
        }]
    })
}

fn s2(qdisc: &str) -> Value {
    let tcp = json!({"name": "sack", "profile": "ns2", "packet": "1000B", "rto_min": "10ms",
        "rto_initial": "10ms", "tick": "100us"});
    json!({
        "duration": "10s",
        "links": {"bottleneck": {"rate": "1gbit", "delay": "75us",
            "qdisc": {"name": qdisc, "limit": "200p"}}},
        "flows": [
            {"name": "short", "count": 40, "path": ["bottleneck"], "rtt": "300us", "tcp": tcp,
             "source": {"name": "transfers", "size": "100kB", "start": "uniform(0s, 20us)"}},
            {"name": "long", "path": ["bottleneck"], "rtt": "300us", "tcp": tcp},
        ]
    })
}

/// `flows` bulk flows of `kbit` each for one second; RED with thresholds of 8 and 16 ms.
fn fast(flows: u64, kbit: u64) -> Value {
    let rate = flows * kbit;
    let ms_of_rate = |ms: u64| format!("{}B", rate * ms / 8);
    json!({
        "duration": "1s",
        "links": {"bottleneck": {"rate": format!("{rate}kbit"), "delay": "1ms", "qdisc": {
            "name": "red", "gentle": true, "limit": ms_of_rate(32), "min_th": ms_of_rate(8),
            "max_th": ms_of_rate(16)}}},
        "flows": [{
            "name": "ftp", "count": flows, "path": ["bottleneck"], "rtt": "uniform(40ms, 200ms)",
            "source": {"name": "bulk", "start": "uniform(0s, 50ms)"},
            "tcp": {"name": "newreno", "packet": "1500B"},
        }]
    })
}

/// Users of pages with one object over 10 mbit, with 1 mbit of UDP.
fn web(users: u64, seconds: u64) -> Value {
    json!({
        "duration": format!("{seconds}s"),
        "links": {"bottleneck": {"rate": "10mbit", "delay": "10ms",
            "qdisc": {"name": "red", "limit": "100p", "min_th": "20p", "max_th": "60p"}}},
        "flows": [
            {"name": "web", "count": 4, "path": ["bottleneck"], "rtt": "uniform(40ms, 200ms)",
             "tcp": "newreno",
             "source": {"name": "web", "sessions": users, "pages": "auto",
                 "start": "uniform(0s, 10s)"}},
            {"name": "udp", "path": ["bottleneck"],
             "source": {"name": "cbr", "rate": "1mbit", "packet": "573B"}},
        ]
    })
}

/// Parses the scenario.
fn read(scenario: &Value) -> Scenario {
    Scenario::from_json(&scenario.to_string()).expect("the scenario of the benchmark is valid")
}

/// Processor time of this thread in seconds where Linux reports it, which is less sensitive to
/// other load; wall-clock time elsewhere.
fn clock() -> f64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let ns = text.and_then(|t| t.split(' ').next()?.parse::<f64>().ok());
    ns.map_or_else(|| START.elapsed().as_secs_f64(), |ns| ns / 1e9)
}

/// Packets per second, best of `times` trials. A trial repeats short runs, because the clock may
/// have a resolution of some milliseconds.
fn rate(scenario: &Value, times: u32) -> f64 {
    let scenario = read(scenario);
    let one = || {
        let (mut packets, mut took) = (0.0, 0.0);
        while took < 0.2 {
            let start = clock();
            let outcome = sojourn_sim::run(&scenario);
            took += clock() - start;
            let sent = outcome.summary["links"]["bottleneck"]["departed_packets"].as_f64();
            packets += sent.expect("packets are counted");
        }
        packets / took
    };
    (0..times).map(|_| one()).fold(0.0, f64::max)
}

fn rows_of_s1() -> f64 {
    println!("\nS1 {:<16} {:>12} {:>8}", "qdisc", "packets/s", "ratio");
    let red = rate(&s1(300, 200.0, "red", "rfc"), 3);
    let row = |name: &str, rate: f64| {
        println!("   {name:<16} {:>10.2} M {:>8.2}", rate / 1e6, rate / red);
    };
    row("red", red);
    row("red, ns2 profile", rate(&s1(300, 200.0, "red", "ns2"), 3));
    for qdisc in ["droptail", "codel", "drr", "sfq", "fq_codel"] {
        row(qdisc, rate(&s1(300, 200.0, qdisc, "rfc"), 3));
    }
    red
}

fn rows_of_s2() {
    println!("\nS2 {:<16} {:>12}", "qdisc", "packets/s");
    for qdisc in ["droptail", "codel", "fq_codel"] {
        println!("   {qdisc:<16} {:>10.2} M", rate(&s2(qdisc), 3) / 1e6);
    }
}

/// Cost per packet and per flow as the number of flows grows, at constant load per flow.
fn rows_of_flows() {
    println!(
        "\nflows     {:>12} {:>10} {:>10} {:>12} {:>10}",
        "packets/s", "ns/packet", "to 100", "memory MB", "kB/flow"
    );
    let mut hundred = None;
    for (flows, seconds) in
        [(100, 400.0), (10, 2000.0), (1_000, 60.0), (10_000, 10.0), (100_000, 4.0)]
    {
        let scenario = s1(flows, seconds, "red", "rfc");
        let ns = 1e9 / rate(&scenario, if flows > 1_000 { 1 } else { 2 });
        let ratio = ns / *hundred.get_or_insert(ns);
        let short = read(&s1(flows, (seconds / 4.0).max(2.0), "red", "rfc"));
        // Stopped before the outcome is written, to measure the engine alone.
        let used = allocation_counter::measure(|| {
            let _ = sojourn_sim::run_with_progress(&short, &mut |so_far| so_far.share < 0.5);
        });
        let mb = used.bytes_max as f64 / 1e6;
        let each = mb * 1e3 / flows as f64;
        println!(
            "{flows:<9} {:>10.2} M {ns:>10.0} {ratio:>10.2} {mb:>12.2} {each:>10.2}",
            1e3 / ns
        );
    }
    let start = Instant::now();
    let scenario = read(&s1(300, 0.001, "red", "rfc"));
    let _ = sojourn_sim::run(&scenario);
    println!("set-up of S1: {:.2} ms", start.elapsed().as_secs_f64() * 1e3);
}

/// One second of 100,000 flows at 100 gbit, from set-up to outcome, compared with 100 flows at the
/// same rate per flow, and at the same total rate. Cases are interleaved because the machine may be
/// shared.
fn rows_of_fast() {
    println!("\nfast                       {:>10} {:>10}", "ns/packet", "ratio");
    let cases = [(100, 1_000), (100, 1_000_000), (10_000, 1_000), (100_000, 1_000)];
    let mut best = [f64::MAX; 4];
    for _ in 0..5 {
        for (best, (flows, kbit)) in best.iter_mut().zip(cases) {
            *best = best.min(1e9 / rate(&fast(flows, kbit), 1));
        }
    }
    for (ns, (flows, kbit)) in best.iter().zip(cases) {
        println!("{flows:>7} of {:>4} mbit {ns:>16.0} {:>10.2}", kbit / 1000, ns / best[0]);
    }
    let scenario = read(&fast(100_000, 1_000));
    let used = allocation_counter::measure(|| {
        let _ = sojourn_sim::run(&scenario);
    });
    println!("memory of 100,000, outcome included: {:.0} MB", used.bytes_max as f64 / 1e6);
}

/// Memory of a long run with arriving and departing flows.
fn row_of_web() {
    let (scenario, start) = (read(&web(1_400, 5_000)), clock());
    let used = allocation_counter::measure(|| {
        let _ = sojourn_sim::run(&scenario);
    });
    let (mb, took) = (used.bytes_max as f64 / 1e6, clock() - start);
    println!("\nweb: 1,400 users for 5,000 s: {mb:.1} MB at most, {took:.1} s");
}

/// S1 and the same written by hand, in turns: best of seven trials, and the ratio.
fn row_of_bare_loop() {
    let (mut bare, mut ours) = (0f64, 0f64);
    let scenario = s1(300, 100.0, "red", "rfc");
    for _ in 0..7 {
        let start = clock();
        let sent = black_box(bare_loop::run(black_box(300), 100));
        bare = bare.max(sent as f64 / (clock() - start));
        ours = ours.max(rate(&scenario, 1));
    }
    println!(
        "\nS1, red: {:.2} M packets/s; a bare loop with three events per packet: {:.2} M; \
         ratio {:.2}",
        ours / 1e6,
        bare / 1e6,
        ours / bare
    );
}

/// Cost of one pop and push on a binary heap with as many entries as S1 has flows, compared with
/// the cost of a packet in S1.
fn row_of_heap() {
    let mut random = 1u64;
    let mut gap = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        40_000_000 + (random >> 33) % 160_000_000
    };
    let mut heap: BinaryHeap<Reverse<(u64, u32)>> = (0..300).map(|i| Reverse((gap(), i))).collect();
    let (mut hold, mut packet) = (f64::MAX, f64::MAX);
    let scenario = s1(300, 50.0, "red", "rfc");
    for _ in 0..7 {
        let start = clock();
        for _ in 0..2_000_000 {
            let Reverse((at, who)) = heap.pop().expect("the heap is never empty");
            heap.push(Reverse((at + gap(), who)));
        }
        hold = hold.min((clock() - start) * 1e9 / 2e6);
        packet = packet.min(1e9 / rate(&scenario, 1));
    }
    black_box(&heap);
    println!(
        "\na pop and a push of std's heap with 300 pending: {hold:.0} ns; a packet of S1: \
         {packet:.0} ns, {:.1} times that",
        packet / hold
    );
}

/// S1 in ns-2, if it is installed; the script prints the packets sent by the bottleneck.
fn row_of_ns2(ours: f64) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/s1.tcl");
    let start = Instant::now();
    let Ok(out) = std::process::Command::new("ns").arg(script).output() else {
        println!("\nns-2 is not installed (Debian's package ns2)");
        return;
    };
    let text = String::from_utf8_lossy(&out.stdout);
    let Some(packets) = text.split_whitespace().last().and_then(|w| w.parse::<f64>().ok()) else {
        println!("\nns-2 gave no result: {}", String::from_utf8_lossy(&out.stderr));
        return;
    };
    let theirs = packets / start.elapsed().as_secs_f64();
    println!(
        "\nS1, red, ns-2: {:.3} M packets/s; ours is {:.0} times that",
        theirs / 1e6,
        ours / theirs
    );
}

/// Time in which two cores tell each other once that they got somewhere, by spinning on a word.
fn row_of_cores() {
    const MEETINGS: u32 = 1_000;
    const BATCHES: u32 = 400;
    static TURN: AtomicU32 = AtomicU32::new(0);
    let meet = |mine: u32| {
        while TURN.load(Ordering::Acquire) != mine {
            std::hint::spin_loop();
        }
        TURN.store(mine + 1, Ordering::Release);
    };
    let other = std::thread::spawn(move || {
        (0..MEETINGS * BATCHES).for_each(|i| meet(2 * i + 1));
    });
    let batch = |number: u32| {
        let start = Instant::now();
        (number * MEETINGS..(number + 1) * MEETINGS).for_each(|i| meet(2 * i));
        start.elapsed().as_secs_f64() * 1e9 / f64::from(MEETINGS)
    };
    let best = (0..BATCHES).map(batch).fold(f64::MAX, f64::min);
    other.join().expect("the other thread only spins");
    println!("\nmeeting of two cores, there and back: {best:.0} ns, best of {BATCHES} batches");
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let part = |name: &str| wanted.is_empty() || wanted.iter().any(|w| w == name);
    if part("s1") {
        rows_of_s1();
    }
    if part("bare") {
        row_of_bare_loop();
    }
    if part("s2") {
        rows_of_s2();
    }
    if part("flows") {
        rows_of_flows();
    }
    if part("fast") {
        rows_of_fast();
    }
    if part("web") {
        row_of_web();
    }
    if part("heap") {
        row_of_heap();
    }
    if part("ns2") {
        row_of_ns2(rate(&s1(300, 200.0, "red", "ns2"), 3));
    }
    if part("cores") {
        row_of_cores();
    }
}
