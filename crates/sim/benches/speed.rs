//! Whole runs: packets that the bottleneck sent per second of wall time on one core, each the best
//! of some runs, with ratios inside this run. `cargo bench -p sojourn-sim`; where Debian's `ns2` is
//! installed its S1 is run too. `-- s1`, `-- s2`, `-- flows`, `-- ns2` run one part.
//!
//! S1: 45 mbit, 300 long NewReno flows of 40 to 200 ms, 500-byte packets, 300 kB, 200 simulated
//! seconds. S2: 1 gbit, 300 us, 40 senders of 100 kB each again and again, one long flow, 200
//! packets.
#![expect(clippy::disallowed_methods, reason = "a bench reads the clock")]

use serde_json::{Value, json};
use sojourn_sim::Scenario;
use std::time::Instant;

/// `flows` long flows with 150 kbit and 1 kB of buffer each, for `seconds`.
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

/// The scenario as checked, and how long that took.
fn read(scenario: &Value) -> Scenario {
    Scenario::from_json(&scenario.to_string()).expect("the bench's own scenario is right")
}

/// Packets per second, the best of `times` runs.
fn rate(scenario: &Value, times: u32) -> f64 {
    let scenario = read(scenario);
    let one = || {
        let start = Instant::now();
        let outcome = sojourn_sim::run(&scenario, &mut |_| true).expect("nobody stops it");
        let packets = outcome.summary["links"]["bottleneck"]["departed_packets"].as_f64();
        packets.expect("packets are counted") / start.elapsed().as_secs_f64()
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

/// The cost of a packet and of a flow as flows grow, with the load of each the same.
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
        // Stopped before its outcome is written, so that the engine alone is counted.
        let used = allocation_counter::measure(|| {
            let _ = sojourn_sim::run(&short, &mut |so_far| so_far.share < 0.5);
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
    let _ = sojourn_sim::run(&scenario, &mut |_| true);
    println!("set-up of S1: {:.2} ms", start.elapsed().as_secs_f64() * 1e3);
}

/// S1 in ns-2, if it is there; it prints the packets that its bottleneck sent.
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

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let part = |name: &str| wanted.is_empty() || wanted.iter().any(|w| w == name);
    if part("s1") {
        rows_of_s1();
    }
    if part("s2") {
        rows_of_s2();
    }
    if part("flows") {
        rows_of_flows();
    }
    if part("ns2") {
        row_of_ns2(rate(&s1(300, 200.0, "red", "ns2"), 3));
    }
}
