//! Runs bulk transfers of quinn in virtual time: reads a JSON array of set-ups from standard input
//! and prints a JSON array of results.
//!
//! A set-up has `qdisc` (name), `settings` (object of its parameters), `rate_bps`, `rtt_s`, `loss`
//! (probability), `control` (`reno`, `cubic` or `bbr`), `seed`, `duration_s` and `warmup_s`.

mod path;
mod peers;

use path::{Outcome, Path};
use serde_json::{Value, json};
use std::io::Read;

fn main() {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).expect("standard input is UTF-8");
    let setups: Vec<Value> = serde_json::from_str(&text).expect("a JSON array of set-ups");
    let results: Vec<Value> = setups.iter().map(run).collect();
    println!("{}", Value::from(results));
}

/// Runs one set-up.
fn run(setup: &Value) -> Value {
    let number = |key: &str| setup[key].as_f64().unwrap_or_else(|| panic!("{key} is a number"));
    let mut path = Path::new(setup);
    let Outcome { goodput_bps, arrived, dropped, lost, declared_lost, delay_s, congestion_events } =
        path.run(number("warmup_s"), number("duration_s"));
    json!({
        "goodput_bps": goodput_bps,
        "arrived_packets": arrived,
        "dropped_packets": dropped,
        "lost_packets": lost,
        "retransmitted_packets": declared_lost,
        "queue_delay_s": delay_s,
        "congestion_events": congestion_events,
    })
}
