//! Many long flows over one fast link, for measuring: `many FLOWS GBIT MS [QDISC]` prints the packets that the
//! bottleneck sent, wall seconds and ns per packet.
#![expect(clippy::disallowed_methods, reason = "a bench reads the clock")]

use serde_json::json;
use sojourn_sim::Scenario;
use std::time::Instant;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let flows: u64 = args[1].parse().unwrap();
    let gbit: f64 = args[2].parse().unwrap();
    let bytes = |ms: f64| format!("{}kB", (gbit * 1e6 / 8.0 * ms / 1e3) as u64);
    let ms = &args[3];
    let scenario = json!({
        "duration": format!("{ms}ms"),
        "links": {"bottleneck": {"rate": format!("{}kbit", (gbit * 1e6) as u64), "delay": "1ms", "qdisc": {"name": args.get(4).map_or("red", |s| s.as_str()),
            "limit": bytes(32.0)}}},
        "flows": [{"name": "ftp", "count": flows, "path": ["bottleneck"],
            "rtt": "uniform(40ms, 200ms)", "tcp": {"name": "newreno", "packet": "1500B"},
            "source": {"name": "bulk", "start": "uniform(0s, 50ms)"}}]
    });
    let mut scenario = scenario;
    if args.get(4).is_none() {
        let q = &mut scenario["links"]["bottleneck"]["qdisc"];
        q["min_th"] = bytes(8.0).into();
        q["max_th"] = bytes(16.0).into();
        q["gentle"] = true.into();
    }
    let scenario = Scenario::from_json(&scenario.to_string()).expect("the scenario is right");
    let start = Instant::now();
    let mut at = Vec::new();
    let outcome = sojourn_sim::run(&scenario, &mut |p| { at.push((p.share, p.packets, start.elapsed().as_secs_f64())); true }).expect("nobody stops it");
    let took = start.elapsed().as_secs_f64();
    let n = outcome.summary["links"]["bottleneck"]["departed_packets"].as_f64().unwrap();
    let first = at.first().copied().unwrap_or_default();
    let last = at.last().copied().unwrap_or_default();
    println!("set-up {:.2} s, after {:.2} s", first.2, took - last.2);
    println!("{n} packets, {took:.2} s, {:.1} ns each; loop alone {:.1} ns; util {} loss {}", took * 1e9 / n,
        (last.2 - first.2) * 1e9 / (last.1 - first.1) as f64, outcome.summary["links"]["bottleneck"]["utilisation"], outcome.summary["links"]["bottleneck"]["loss_rate"]);
    let step = at.len().max(10) / 10;
    for w in at.iter().step_by(step).collect::<Vec<_>>().windows(2) {
        println!("  share {:.3} ns/packet {:.1}", w[1].0, (w[1].2 - w[0].2) * 1e9 / (w[1].1 - w[0].1) as f64);
    }
    println!("{}", std::fs::read_to_string("/proc/self/status").unwrap().lines().find(|l| l.starts_with("VmHWM")).unwrap());
}
