//! Packets per second of `hred-steady` (45 mbit, 300 flows of 40 to 200 ms, 500-byte packets), a
//! discipline per row, with ratios to droptail in the same run; best of three.
//!
//! `cargo bench -p sojourn-sim`

use serde_json::json;
use sojourn_sim::Scenario;

fn scenario(qdisc: &serde_json::Value) -> Scenario {
    let text = json!({
        "duration": "200s",
        "links": {"bottleneck": {"rate": "45mbit", "delay": "1ms", "qdisc": qdisc}},
        "flows": [{"name": "ftp", "count": 300, "path": ["bottleneck"],
            "rtt": "uniform(40ms, 200ms)",
                   "source": {"name": "bulk", "start": "uniform(0s, 10s)"},
                   "tcp": {"name": "newreno", "packet": "500B"}}]
    });
    Scenario::from_json(&text.to_string()).expect("the bench's own scenario is right")
}

#[expect(clippy::disallowed_methods, reason = "a bench reads the clock")]
fn seconds(scenario: &Scenario) -> (f64, f64) {
    let start = std::time::Instant::now();
    let outcome = sojourn_sim::run(scenario, &mut |_| true).expect("nobody stops it");
    let packets = outcome.summary["links"]["bottleneck"]["departed_packets"].as_f64();
    (start.elapsed().as_secs_f64(), packets.expect("packets are counted"))
}

fn main() {
    let red = json!({"name": "red", "limit": "300kB", "min_th": "75kB", "max_th": "150kB",
        "gentle": true});
    let plain = |name: &str| json!({"name": name, "limit": "300kB"});
    let rows = [
        ("droptail", plain("droptail")),
        ("red", red),
        ("codel", plain("codel")),
        ("drr", plain("drr")),
        ("sfq", plain("sfq")),
        ("fq_codel", plain("fq_codel")),
    ];
    println!("hred-steady, 200 simulated seconds, one core\n");
    println!(
        "{:<10} {:>12} {:>10} {:>16} {:>10}",
        "qdisc", "packets", "seconds", "packets/s", "ratio"
    );
    let mut base = None;
    for (name, qdisc) in rows {
        let scenario = scenario(&qdisc);
        let runs = (0..3).map(|_| seconds(&scenario));
        let (time, packets) = runs.min_by(|a, b| a.0.total_cmp(&b.0)).expect("three runs");
        let rate = packets / time;
        let ratio = rate / *base.get_or_insert(rate);
        println!("{name:<10} {packets:>12} {time:>10.3} {:>14.2} M {ratio:>10.2}", rate / 1e6);
    }
}
