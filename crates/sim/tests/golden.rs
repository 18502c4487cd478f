//! Table of whole runs, kept as text: a change of behaviour shows up in review as a diff of
//! numbers. `GOLDEN_UPDATE=1 cargo test -p sojourn-sim --test golden` rewrites it; the CHANGELOG
//! must then list the change under Changed numbers.

mod common;
use common::{num, run};
use serde_json::{Value, json};
use sojourn_sim::Outcome;
use std::fmt::Write;

fn write_row(table: &mut String, what: &str, tcp: &str, profile: &str, out: &Outcome) {
    let link = &out.summary["links"]["l"];
    let sum = |key: &str| -> f64 {
        let flows = out.summary["flows"].as_array().expect("a list");
        flows.iter().map(|f| num(f, key)).sum()
    };
    writeln!(
        table,
        "{what:<10} {tcp:<8} {profile:<5} {:>6.4} {:>8.5} {:>9.3} {:>9.3} {:>7} {:>6}",
        num(link, "utilisation"),
        num(link, "loss_rate"),
        num(link, "sojourn_mean_s") * 1e3,
        num(link, "sojourn_p99_s") * 1e3,
        sum("retransmitted_packets"),
        sum("timeouts"),
    )
    .expect("writing to a string cannot fail");
}

/// Links with loss, traces or changes, and flows that join and leave.
fn unsteady() -> [(&'static str, Value, Value); 4] {
    let plain = json!({"rate": "5mbit", "delay": "10ms", "qdisc": {"name": "codel"}});
    let with = |key: &str, value: Value| {
        let mut link = plain.clone();
        link[key] = value;
        link
    };
    let trace = json!({"t_ns": [0, 2_000_000_000u64, 3_000_000_000u64],
        "rate_bps": [5_000_000, 0, 2_000_000], "delay_ns": [10_000_000, 10_000_000, 30_000_000],
        "repeat": "5s"});
    let steps = json!([{"at": "25s", "links": {"l": {"rate": "1mbit"}}},
        {"at": "40s", "links": {"l": {"rate": "20mbit", "delay": "5ms"}}}]);
    let load = json!([{"at": "20s", "join": ["g"]}, {"at": "40s", "leave": ["g"]}]);
    [
        ("loss", with("loss", json!(0.01)), json!([])),
        ("trace", with("trace", trace), json!([])),
        ("steps", plain.clone(), steps),
        ("load", plain.clone(), load),
    ]
}

#[test]
fn numbers_match_the_table() {
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
            ("bbr3", &["rfc"]),
            ("ledbat", &["rfc"]),
            ("ledbatpp", &["rfc"]),
            ("prague", &["rfc"]),
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
                write_row(&mut table, qdisc, tcp, profile, &out);
            }
        }
    }
    for (what, link, changes) in unsteady() {
        for tcp in ["newreno", "sack"] {
            let out = run(&json!({
                "duration": "60s", "warmup": "10s", "links": {"l": link},
                "flows": [{"name": "f", "count": 3, "path": ["l"],
                    "rtt": "uniform(30ms, 100ms)", "tcp": tcp},
                    {"name": "g", "count": 3, "path": ["l"], "rtt": "60ms", "tcp": tcp}],
                "changes": changes
            }));
            write_row(&mut table, what, tcp, "rfc", &out);
        }
    }
    for (what, rtt) in [("short", "3ms"), ("long", "40ms")] {
        for tcp in ["bbr", "cubic"] {
            let out = run(&json!({
                "duration": "20s", "warmup": "2s",
                "links": {"l": {"rate": "20mbit", "delay": "1ms", "qdisc": {"name": "dualpi2"}}},
                "flows": [{"name": "f", "count": 2, "path": ["l"], "rtt": rtt,
                    "source": {"name": "bulk", "start": "uniform(0s, 1s)"},
                    "tcp": {"name": tcp, "profile": "linux"}}]
            }));
            write_row(&mut table, what, tcp, "linux", &out);
        }
    }
    keep("runs", &table);
}

/// Compares a table with the stored one.
fn keep(name: &str, table: &str) {
    let path = format!("{}/../../tests/golden/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("GOLDEN_UPDATE").is_some() {
        std::fs::write(&path, table).expect("the table can be written");
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(kept, table, "numbers changed: see the top of this file");
}

#[test]
fn sources_match_the_table() {
    let mut table = format!(
        "{:<40} {:>6} {:>8} {:>9} {:>7} {:>9} {:>9}\n",
        "source", "use", "loss", "wait ms", "done", "FCT ms", "p99 ms"
    );
    for (source, count) in [
        (json!({"name": "onoff", "rate": "2mbit"}), 5),
        (json!({"name": "poisson", "load": "4mbit"}), 5),
        (json!({"name": "poisson", "load": "3mbit", "size": "web_search"}), 5),
        (json!({"name": "incast", "gap": "exponential(100ms)"}), 30),
        (json!({"name": "incast", "persistent": true}), 30),
        (json!({"name": "sessions", "interval": "exponential(150ms)"}), 10),
        (json!({"name": "web", "objects": "pareto(mean=4, shape=1.5)", "request": true}), 20),
        (json!({"name": "video"}), 3),
        (json!({"name": "call"}), 3),
    ] {
        let udp = source["name"] == "onoff" || source["name"] == "call";
        let mut scenario = json!({
            "duration": "60s", "warmup": "10s",
            "links": {"l": {"rate": "5mbit", "delay": "10ms", "qdisc": {"name": "droptail",
                "limit": "60kB"}}, "back": {"rate": "5mbit", "delay": "5ms"}},
            "flows": [{"name": "f", "count": count, "path": ["l"], "source": source}]
        });
        if !udp {
            scenario["flows"][0]["return_path"] = json!(["back"]);
            scenario["flows"][0]["tcp"] = json!("newreno");
            scenario["flows"][0]["rtt"] = json!("uniform(30ms, 100ms)");
        }
        let out = run(&scenario);
        let link = &out.summary["links"]["l"];
        let mut took: Vec<f64> = match out.columns.iter().find(|(n, _)| n == "fct/duration_s") {
            Some((_, sojourn_sim::Column::F64(took))) => took.iter().map(|t| t * 1e3).collect(),
            _ => panic!("durations are numbers"),
        };
        took.sort_by(f64::total_cmp);
        let mean = took.iter().fold(0.0, |a, b| a + b) / took.len().max(1) as f64;
        let p99 = took.get(took.len() * 99 / 100).copied().unwrap_or(0.0);
        let values: Vec<String> = source
            .as_object()
            .expect("a table")
            .values()
            .map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_string))
            .collect();
        writeln!(
            table,
            "{:<40} {:>6.4} {:>8.5} {:>9.3} {:>7} {mean:>9.2} {p99:>9.2}",
            values.join(" "),
            num(link, "utilisation"),
            num(link, "loss_rate"),
            num(link, "sojourn_mean_s") * 1e3,
            took.len(),
        )
        .expect("writing to a string cannot fail");
    }
    keep("sources", &table);
}
