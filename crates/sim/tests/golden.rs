//! A table of whole runs, kept as text: a change of behaviour shows up in review as a diff of
//! numbers. `GOLDEN_UPDATE=1 cargo test -p sojourn-sim --test golden` writes it anew; the
//! CHANGELOG then says that numbers changed.

mod common;
use common::{num, run};
use serde_json::json;
use std::fmt::Write;

#[test]
fn numbers_are_those_of_the_table() {
    let mut table = format!(
        "{:<10} {:<8} {:<5} {:>6} {:>8} {:>9} {:>9} {:>7} {:>6}\n",
        "qdisc", "tcp", "as", "use", "loss", "wait ms", "p99 ms", "resent", "RTOs"
    );
    for qdisc in ["droptail", "red", "codel", "drr", "sfq", "fq_codel"] {
        for (tcp, profiles) in [
            ("tahoe", &["rfc", "ns2"][..]),
            ("reno", &["rfc", "ns2"]),
            ("newreno", &["rfc", "ns2"]),
            ("sack", &["rfc", "ns2"]),
            ("cubic", &["rfc"]),
            ("dctcp", &["rfc"]),
            ("vegas", &["rfc"]),
            ("compound", &["rfc"]),
            ("bbr", &["rfc"]),
        ] {
            for profile in profiles {
                let out = run(&json!({
                    "duration": "60s", "warmup": "10s",
                    "links": {"l": {"rate": "5mbit", "delay": "10ms", "qdisc": {"name": qdisc,
                        "limit": "60kB"}}},
                    "flows": [{"name": "f", "count": 5, "path": ["l"],
                        "rtt": "uniform(30ms, 100ms)",
                               "source": {"name": "bulk", "start": "uniform(0s, 1s)"},
                               "tcp": {"name": tcp, "profile": profile, "packet": "1kB"}}]
                }));
                let link = &out.summary["links"]["l"];
                let sum = |key: &str| -> f64 {
                    let flows = out.summary["flows"].as_array().expect("a list");
                    flows.iter().map(|f| num(f, key)).sum()
                };
                writeln!(
                    table,
                    "{qdisc:<10} {tcp:<8} {profile:<5} {:>6.4} {:>8.5} {:>9.3} {:>9.3} {:>7} {:>6}",
                    num(link, "utilisation"),
                    num(link, "loss_rate"),
                    num(link, "sojourn_mean_s") * 1e3,
                    num(link, "sojourn_p99_s") * 1e3,
                    sum("retransmitted_packets"),
                    sum("timeouts"),
                )
                .expect("text takes everything");
            }
        }
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/runs.txt");
    if std::env::var_os("GOLDEN_UPDATE").is_some() {
        std::fs::write(path, &table).expect("the table can be written");
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(kept, table, "numbers changed: see the head of this file");
}
