//! A scenario that starts later gives the same run, shifted in time: no discipline, TCP or source
//! depends on the absolute time.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "tests use small numbers"
)]

mod common;
use common::run;
use serde_json::{Value, json};
use sojourn_sim::{Column, Outcome};

/// Scenario of `flows` over a link with `qdisc`, shifted by `offset` nanoseconds.
fn scenario(qdisc: &str, flows: &Value, offset: u64) -> Value {
    let names: Vec<&Value> = flows.as_array().unwrap().iter().map(|f| &f["name"]).collect();
    let at = |ns: u64| json!(format!("{}ns", ns + offset));
    json!({
        "duration": at(7_000_000_000), "warmup": at(2_000_000_000), "seed": 5, "packet_log": true,
        "links": {
            "l": {"rate": "5mbit", "delay": "5ms", "qdisc": {"name": qdisc, "limit": "40kB"}},
            "back": {"rate": "5mbit", "delay": "5ms", "loss": 0.005},
        },
        "flows": flows,
        "changes": [{"at": at(1_000_000_000), "join": names}],
    })
}

/// Converts a time in seconds to nanoseconds minus `offset`.
fn ns(seconds: f64, offset: u64) -> i128 {
    (seconds * 1e9).round() as i128 - i128::from(offset)
}

/// All results of a run, with times minus `offset`. Rates are omitted: the length of the measured
/// interval is the difference of two rounded numbers.
fn seen(out: &Outcome, offset: u64) -> Vec<(String, Vec<i128>)> {
    let mut seen = Vec::new();
    for (name, column) in &out.columns {
        let moment = ["arrived_s", "left_s", "start_s"].iter().any(|end| name.ends_with(end));
        let values = match column {
            Column::F64(x) if moment => x.iter().map(|x| ns(*x, offset)).collect(),
            Column::F64(x) => x.iter().map(|x| ns(*x, 0)).collect(),
            Column::U64(x) => x.iter().map(|x| i128::from(*x)).collect(),
            Column::U32(x) => x.iter().map(|x| i128::from(*x)).collect(),
            Column::U8(x) => x.iter().map(|x| i128::from(*x)).collect(),
            Column::Bool(x) => x.iter().map(|x| i128::from(*x)).collect(),
            other => panic!("{other:?} has no whole numbers"),
        };
        seen.push((name.clone(), values));
    }
    let rows = out.summary["links"].as_object().unwrap().values();
    for row in rows.chain(out.summary["flows"].as_array().unwrap()) {
        for (key, value) in row.as_object().unwrap() {
            if let Some(n) = value.as_u64() {
                seen.push((key.clone(), vec![n.into()]));
            } else if key.ends_with("_s") {
                seen.push((key.clone(), vec![value.as_f64().map_or(-1, |x| ns(x, 0))]));
            }
        }
    }
    seen
}

/// The smallest offset, one that is not a multiple of any period, and long ones of both kinds.
const OFFSETS: [u64; 4] = [1, 3_333_333, 100_000_000_000, 86_399_995_555_555];

/// Multiples of the clock tick of profile `linux` (4 ms), in which its timers and controls count.
const TICKS: [u64; 3] = [4_000_000, 100_000_000_000, 86_400_000_000_000];

fn same_later(what: &str, qdisc: &str, flows: &Value, offsets: &[u64]) {
    let now = seen(&run(&scenario(qdisc, flows, 0)), 0);
    let rows =
        now.iter().find(|(name, _)| name == "packet_log/l/fate").map_or(0, |(_, rows)| rows.len());
    assert!(rows > 100, "{what}: {rows} packets cross the link");
    for offset in offsets {
        let then = seen(&run(&scenario(qdisc, flows, *offset)), *offset);
        for ((name, a), (_, b)) in now.iter().zip(&then) {
            let first = a.iter().zip(b).position(|(a, b)| a != b);
            assert!(a == b, "{what} under {qdisc}, {offset} ns later: {name} differs at {first:?}");
        }
        assert_eq!(now.len(), then.len(), "{what} under {qdisc}, {offset} ns later");
    }
}

fn tcp(name: &str, profile: &str) -> Value {
    json!([{"name": "f", "count": 4, "path": ["l"], "return_path": ["back"],
            "rtt": "uniform(30ms, 90ms)", "tcp": {"name": name, "profile": profile}},
           {"name": "g", "count": 2, "path": ["l"], "rtt": "uniform(30ms, 90ms)",
            "tcp": {"name": name, "profile": profile}}])
}

#[test]
fn every_discipline() {
    for entry in sojourn_aqm::registry::REGISTRY {
        same_later("cubic", entry.name, &tcp("cubic", "rfc"), &OFFSETS);
    }
}

#[test]
fn every_tcp() {
    for entry in sojourn_sim::tcp::TCPS {
        for qdisc in ["droptail", "codel"] {
            let clocked = entry.source.contains("Linux") && entry.name != "prague";
            let offsets: &[u64] = if clocked { &TICKS } else { &OFFSETS };
            same_later(entry.name, qdisc, &tcp(entry.name, "rfc"), offsets);
        }
    }
}

#[test]
fn every_source() {
    let flow = |source: Value| {
        json!([{"name": "f", "count": 5, "path": ["l"], "rtt": "uniform(30ms, 90ms)",
                "source": source}])
    };
    for source in [
        json!({"name": "transfers", "size": "pareto(mean=30kB, shape=1.5)"}),
        json!({"name": "poisson", "load": "4mbit"}),
        json!({"name": "incast", "gap": "exponential(100ms)"}),
        json!({"name": "sessions", "interval": "exponential(150ms)"}),
        json!({"name": "web", "objects": "pareto(mean=4, shape=1.5)"}),
        json!({"name": "video", "segment": "500ms"}),
    ] {
        same_later(&source.to_string(), "red", &flow(source.clone()), &TICKS);
    }
    let call = json!({"name": "call", "feedback": "200ms"});
    for source in [json!({"name": "cbr"}), json!({"name": "onoff", "rate": "2mbit"}), call] {
        let flows = json!([{"name": "f", "count": 5, "path": ["l"], "source": source}]);
        same_later(&source.to_string(), "pie", &flows, &OFFSETS);
    }
}

#[test]
fn ns2_tcps_shift_by_whole_clock_ticks() {
    // The ns2 profile reads a clock of 10 ms ticks; its phase is drawn relative to time 0.
    for name in ["tahoe", "reno", "newreno", "sack"] {
        same_later(name, "red", &tcp(name, "ns2"), &[10_000_000, 100_000_000_000]);
    }
}
