//! Processor time of the scenarios of `make bench-wasm`, which runs them in WebAssembly as well:
//! reads a JSON list of scenarios and prints the shortest time of each in seconds.

use std::time::Duration;

fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("Linux has it");
    let ns = text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("it begins with a time");
    Duration::from_nanos(ns)
}

fn main() {
    let file = std::env::args().nth(1).expect("usage: throughput SCENARIOS.json");
    let text = std::fs::read_to_string(file).expect("the file can be read");
    let list: Vec<serde_json::Value> = serde_json::from_str(&text).expect("a JSON list");
    for json in list {
        let scenario = sojourn_sim::Scenario::from_json(&json.to_string()).expect("a scenario");
        let times = (0..5).map(|_| {
            let before = processor_time();
            std::hint::black_box(sojourn_sim::run(&scenario));
            processor_time() - before
        });
        println!("{}", times.min().expect("five").as_secs_f64());
    }
}
