//! Small version of S1, for counting instructions: `s1_small SECONDS [TCP [QDISC]]` runs 300
//! bulk NewReno flows (or another TCP) over RED (or another discipline) at 45 mbit and prints the
//! packets sent by the bottleneck. See `lab/sojourn_lab/speed/instructions.py`.

use serde_json::json;
use sojourn_sim::Scenario;

fn main() {
    let seconds = std::env::args().nth(1).unwrap_or_else(|| "5".into());
    let tcp = std::env::args().nth(2).unwrap_or_else(|| "newreno".into());
    let qdisc = match std::env::args().nth(3) {
        Some(name) if name != "red" => json!({"name": name, "limit": "300kB"}),
        _ => json!({"name": "red", "limit": "300kB", "min_th": "75kB", "max_th": "150kB",
            "gentle": true}),
    };
    let scenario = json!({
        "duration": format!("{seconds}s"),
        "links": {"bottleneck": {"rate": "45mbit", "delay": "1ms", "qdisc": qdisc}},
        "flows": [{"name": "ftp", "count": 300, "path": ["bottleneck"],
            "rtt": "uniform(40ms, 200ms)", "tcp": {"name": tcp, "packet": "500B"},
            "source": {"name": "bulk", "start": "uniform(0s, 2s)"}}]
    });
    let scenario = Scenario::from_json(&scenario.to_string()).expect("the scenario is valid");
    let outcome = sojourn_sim::run(&scenario);
    println!("{}", outcome.summary["links"]["bottleneck"]["departed_packets"]);
}
