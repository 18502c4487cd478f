//! Every ratio of a result is between 0 and 1 for every discipline, kind of link and load:
//! numerator and denominator count the same packets, those that arrive in the measured interval.

mod common;
use common::run;
use serde_json::{Value, json};
use sojourn_sim::{Column, Outcome, Scenario};

/// Checks every ratio of links and flows, and every utilisation sample.
fn check(what: &str, out: &Outcome) {
    let within = |x: f64| (0.0..=1.0).contains(&x);
    for (name, link) in out.summary["links"].as_object().unwrap() {
        for key in ["loss_rate", "mark_rate", "utilisation"] {
            let value = link[key].as_f64();
            assert!(value.is_none_or(within), "{what}: {key} of {name} is {value:?}");
        }
        let count = |key: &str| link[key].as_u64().unwrap();
        let arrived = count("arrived_packets");
        for key in ["dropped_packets", "marked_packets"] {
            assert!(count(key) <= arrived, "{what}: {key} of {name}, {arrived} arrived");
        }
        assert!(count("dropped_bytes") <= count("arrived_bytes"), "{what}: bytes of {name}");
        let causes = ["dropped_full_packets", "dropped_early_packets", "dropped_late_packets"];
        assert_eq!(count("dropped_packets"), causes.map(count).iter().sum::<u64>(), "{what}");
        let loss = (arrived > 0).then(|| count("dropped_packets") as f64 / arrived as f64);
        assert_eq!(link["loss_rate"].as_f64(), loss, "{what}: {name}");
        let marks = (arrived > 0).then(|| count("marked_packets") as f64 / arrived as f64);
        assert_eq!(link["mark_rate"].as_f64(), marks, "{what}: {name}");
        assert!(count("lost_on_wire_packets") <= arrived, "{what}: wire of {name}");
    }
    for flow in out.summary["flows"].as_array().unwrap() {
        let loss = flow["loss_rate"].as_f64();
        assert!(loss.is_none_or(within), "{what}: loss of {} is {loss:?}", flow["name"]);
        let count = |key: &str| flow[key].as_u64().unwrap_or(0);
        assert!(count("retransmitted_packets") <= count("sent_packets"), "{what}: {flow}");
        assert!(count("lost_packets") + count("received_packets") <= count("sent_packets"));
    }
    for (name, column) in &out.columns {
        if let (true, Column::F64(values)) = (name.ends_with("/utilisation"), column) {
            let bad = values.iter().find(|x| !x.is_nan() && !within(**x));
            assert_eq!(bad, None, "{what}: {name}");
        }
    }
}

/// Overload until just after the end of the warm-up: the queue is full then, and few packets arrive
/// afterwards.
fn overload(qdisc: &Value, trace: bool) -> Value {
    let mut slow = json!({"rate": "1mbit", "delay": "5ms", "loss": 0.1, "qdisc": qdisc});
    if trace {
        slow["trace"] = json!({"opportunities_ms": [7, 7, 11, 30, 31, 33, 90]});
    }
    json!({
        "duration": "4s", "warmup": "1s", "sample": "35ms",
        "links": {"slow": slow, "fast": {"rate": "100mbit", "delay": "1ms"}},
        "flows": [
            {"name": "flood", "count": 3, "path": ["fast", "slow"],
             "source": {"name": "cbr", "rate": "3mbit", "packet": "700B", "stop": "998ms"}},
            {"name": "few", "path": ["fast", "slow"],
             "source": {"name": "cbr", "rate": "20kbit", "packet": "300B"}},
            {"name": "tcp", "count": 2, "path": ["slow"], "rtt": "40ms",
             "tcp": {"name": "dctcp"}, "source": {"name": "bulk", "stop": "1s"}},
        ]
    })
}

#[test]
fn ratios_of_every_discipline_at_the_end_of_an_overload() {
    for entry in sojourn_aqm::registry::REGISTRY {
        let has = |name: &str| entry.params().iter().any(|row| row.name == name);
        for (limit, ecn) in [("400p", false), ("400p", true), ("60kB", true)] {
            let mut qdisc = json!({"name": entry.name, "limit": limit});
            if has("ecn") {
                qdisc["ecn"] = json!(ecn);
            }
            for trace in [false, true] {
                let scenario = overload(&qdisc, trace);
                if Scenario::from_json(&scenario.to_string()).is_err() {
                    assert!(limit.ends_with('B'), "{} has thresholds in packets", entry.name);
                    continue;
                }
                check(&format!("{qdisc}, trace: {trace}"), &run(&scenario));
            }
        }
    }
}

/// Kinds of links, each faster than the shapers below, and the same with a shaper in a discipline.
fn kinds() -> Vec<(&'static str, Value)> {
    let opportunities = [1, 3, 4, 6, 9, 9, 9, 10, 16, 18, 29, 29, 30, 41, 59, 72, 72, 74, 99];
    vec![
        ("constant rate", json!({"rate": "1mbit"})),
        (
            "opportunities",
            json!({"rate": "1mbit",
            "trace": {"opportunities_ms": opportunities}}),
        ),
        (
            "rates",
            json!({"rate": "1mbit", "trace": {"t_ns": [0, 90_000_000, 130_000_000],
            "rate_bps": [2_000_000, 0, 300_000], "repeat": "200ms"}}),
        ),
        ("token bucket", json!({"rate": "1mbit", "burst": "20kB"})),
    ]
}

/// A discipline with its defaults, and with each of its shapers at 30 and 300 kbit/s.
fn shaped(entry: &sojourn_aqm::registry::QdiscEntry) -> Vec<Value> {
    let rates = ["rate", "rates", "bandwidth", "maxrate"];
    let known = entry.params();
    let shapers = rates.iter().filter(|name| known.iter().any(|row| row.name == **name));
    let with = |name: &&str| {
        ["30kbit", "300kbit"].map(|rate| {
            let rate = if *name == "rates" { json!([rate]) } else { json!(rate) };
            json!({"name": entry.name, "limit": "40kB", *name: rate})
        })
    };
    let plain = json!({"name": entry.name, "limit": "40kB"});
    std::iter::once(plain).chain(shapers.flat_map(with)).collect()
}

#[test]
fn shares_of_short_runs_of_every_discipline_on_every_kind_of_link() {
    let mut shapers = 0;
    for entry in sojourn_aqm::registry::REGISTRY {
        for qdisc in shaped(entry) {
            for (kind, mut link) in kinds() {
                link["qdisc"] = qdisc.clone();
                // Ends and warm-ups at unrelated times, so that some runs end while the link waits
                // for a shaper, and some warm-ups end within a packet.
                for (i, [warmup, end]) in
                    [[0, 37], [61, 113], [149, 409], [501, 2003]].into_iter().enumerate()
                {
                    let out = run(&json!({
                        "duration": format!("{end}ms"), "warmup": format!("{warmup}ms"),
                        "seed": i, "sample": "7ms", "links": {"l": link},
                        "flows": [
                            {"name": "bursts", "count": 2, "path": ["l"],
                             "source": {"name": "onoff", "rate": "800kbit", "packet": "1400B",
                                        "on": "60ms", "off": "200ms"}},
                            {"name": "few", "path": ["l"],
                             "source": {"name": "cbr", "rate": "20kbit", "packet": "300B"}},
                            {"name": "tcp", "path": ["l"], "rtt": "20ms"},
                        ]
                    }));
                    check(&format!("{qdisc}, {kind}, {warmup} to {end} ms"), &out);
                }
            }
            shapers += usize::from(qdisc.as_object().unwrap().len() > 2);
        }
    }
    assert!(shapers >= 8, "htb, tbf, cake and fq have shapers: {shapers}");
}

#[test]
fn packets_that_arrived_in_the_warm_up_do_not_count_in_the_loss_rate() {
    // 400 packets are queued at 1 s and CoDel drops many of them; only about ten arrive later.
    let out = run(&overload(&json!({"name": "codel", "limit": "400p"}), false));
    let slow = &out.summary["links"]["slow"];
    let dropped = slow["dropped_packets"].as_u64().unwrap();
    assert!(dropped <= slow["arrived_packets"].as_u64().unwrap());
    let Some((_, Column::U64(late))) =
        out.columns.iter().find(|(name, _)| name == "links/slow/dropped_late_packets")
    else {
        panic!("the series counts every drop when it happens");
    };
    let after: u64 = late[29..].iter().sum();
    assert!(after > dropped + 50, "{after} dropped after the warm-up, {dropped} had come in it");
}
