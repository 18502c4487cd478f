//! Sources that open many connections: worked examples, and theory.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "tests use small numbers"
)]

mod common;
use common::{flow, num, run};
use serde_json::{Value, json};
use sojourn_sim::{Column, Outcome, Scenario};

fn column<'a>(out: &'a Outcome, name: &str) -> &'a [f64] {
    match out.columns.iter().find(|(n, _)| n == name) {
        Some((_, Column::F64(values))) => values,
        other => panic!("{name} is {other:?}"),
    }
}

/// One fast link without significant queueing, ns-2's TCP with packets of 1000 B.
fn fast(duration: &str, count: u64, rtt: &str, source: &Value) -> Value {
    json!({
        "duration": duration,
        "links": {"l": {"rate": "10gbit", "qdisc": {"name": "droptail", "limit": "1000000p"}}},
        "flows": [{"name": "x", "count": count, "path": ["l"], "rtt": rtt, "source": source,
            "tcp": {"name": "newreno", "profile": "ns2", "packet": "1000B"}}]
    })
}

#[test]
fn poisson_arrivals_have_the_given_load() {
    let source = json!({"name": "poisson", "size": "uniform(2kB, 98kB)", "load": "200mbit"});
    let mut scenario = fast("40s", 4, "1ms", &source);
    scenario["warmup"] = json!("0s");
    let out = run(&scenario);
    let mut starts = column(&out, "fct/start_s").to_vec();
    starts.sort_by(f64::total_cmp);
    // 200 Mbit/s in flows of 50 kB is 500 per second: 20,000 +- 141.
    assert!((19_500..20_500).contains(&starts.len()), "{}", starts.len());
    let gaps: Vec<f64> = starts.windows(2).map(|w| w[1] - w[0]).collect();
    let n = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / n;
    let var = gaps.iter().map(|g| (g - mean) * (g - mean)).sum::<f64>() / n;
    assert!((var.sqrt() / mean - 1.0).abs() < 0.03, "exponential: deviation equals mean");
    let late = gaps.iter().filter(|g| **g > 2.0 * mean).count() as f64 / n;
    assert!((late - 0.1353).abs() < 0.01, "e^-2 exceed two means: {late}");
    let mut counts = vec![0.0; 400];
    starts.iter().for_each(|t| counts[(*t * 10.0) as usize] += 1.0);
    let per_slot = counts.iter().sum::<f64>() / 400.0;
    let spread = counts.iter().map(|c| (c - per_slot) * (c - per_slot)).sum::<f64>() / 399.0;
    assert!((0.8..1.2).contains(&(spread / per_slot)), "index of dispersion 1 +- 0.07");
    // Delivered bytes equal the load, except that ns-2 rounds each flow up to whole packets (+1 %).
    let flows = out.summary["flows"].as_array().unwrap();
    let bps: f64 = flows.iter().map(|f| num(f, "goodput_bps")).sum();
    assert!((bps / 2e8 - 1.01).abs() < 0.03, "{bps}");
    for f in flows {
        let share = num(f, "started") / starts.len() as f64;
        assert!((share - 0.25).abs() < 0.02, "hosts are equally likely");
        assert_eq!(num(f, "started"), num(f, "completed") + num(f, "unfinished"));
    }
}

/// The link sends a SYN of 40 B in 40 us and a packet of 1000 B in 1 ms; all delay is on the return
/// path. Three servers: their SYNs are received at 40, 80, 120 us, the acks are back 10 ms later,
/// and the data are received at 11.04, 12.04 and 13.04 ms.
fn three_servers(more: &Value) -> Outcome {
    let mut source = json!({"name": "incast", "start": "1s", "size": "960B", "jitter": "0s",
        "gap": "500us", "number": 3});
    for (key, value) in more.as_object().unwrap() {
        source[key] = value.clone();
    }
    let mut scenario = fast("3s", 3, "10ms", &source);
    scenario["links"]["l"]["rate"] = json!("8mbit");
    run(&scenario)
}

#[test]
fn queries_follow_when_all_have_answered() {
    let out = three_servers(&json!({}));
    let near = |a: &[f64], b: &[f64]| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12)
    };
    assert!(near(column(&out, "query/duration_s"), &[0.01304; 3]));
    assert!(near(column(&out, "query/start_s"), &[1.0, 1.01354, 1.02708]));
    let took = column(&out, "fct/duration_s");
    assert!(near(&took[..3], &[0.01104, 0.01204, 0.01304]), "{took:?}");
    // The sender knows 10 ms later.
    let out = three_servers(&json!({"until": "acked"}));
    assert!(near(column(&out, "query/duration_s"), &[0.02304; 3]));
    // A persistent connection needs no SYN: the data are received at 1, 2 and 3 ms.
    let out = three_servers(&json!({"until": "acked", "persistent": true}));
    assert!(near(column(&out, "query/duration_s"), &[0.02304, 0.013, 0.013]));
    assert_eq!(num(flow(&out, "x.1"), "sent_packets"), 1.0 + 3.0);
}

#[test]
fn sessions_are_sequential_transfers() {
    let out = run(&fast(
        "10s",
        1,
        "20ms",
        &json!({"name": "sessions", "interval": "1s", "number": 3, "transfers": 4,
            "size": "1kB", "gap": "100ms"}),
    ));
    let starts = column(&out, "fct/start_s");
    // 1 kB takes two packets of at most 960 B: SYN, then both; 40 ms and some ns, then the pause.
    let expected = [1.0, 2.0, 3.0].map(|s| [0.0, 0.14, 0.28, 0.42].map(|t| s + t));
    let expected: Vec<f64> = expected.iter().flatten().copied().collect();
    assert_eq!(starts.len(), 12);
    assert!(starts.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-4), "{starts:?}");
    assert_eq!(num(flow(&out, "x"), "sent_packets"), 12.0 * 3.0);
}

#[test]
fn each_transfer_of_a_session_draws_a_host() {
    let source = json!({"name": "sessions", "interval": "100ms", "transfers": 10, "size": "960B"});
    let out = run(&fast("200s", 20, "uniform(40ms, 200ms)", &source));
    for f in out.summary["flows"].as_array().unwrap() {
        let (rtt, fct) = (num(f, "rtt_s"), num(f, "fct_mean_s"));
        assert!((fct - rtt).abs() < 1e-4, "SYN and its ack, then data that waits for nobody");
        let share = num(f, "started") / 20_000.0;
        assert!((share - 0.05).abs() < 0.008, "hosts are equally likely: {share}");
    }
}

#[test]
fn users_load_every_page_with_overlapping_objects() {
    let web = |more: Value| {
        let mut source = json!({"name": "web", "sessions": 5, "launch": "1s", "pages": 4,
            "page_gap": "2s", "objects": 3, "object_gap": "5ms", "size": "960B"});
        for (key, value) in more.as_object().unwrap() {
            source[key] = value.clone();
        }
        let mut scenario = fast("100s", 1, "20ms", &source);
        scenario["links"]["back"] = json!({"rate": "10gbit"});
        scenario["flows"][0]["return_path"] = json!(["back"]);
        run(&scenario)
    };
    let close = |a: f64, b: f64| (a - b).abs() < 1e-4;
    let out = web(json!({}));
    let starts = column(&out, "fct/start_s");
    assert_eq!(starts.len(), 5 * 4 * 3);
    // First user: objects at 0, 5, 10 ms; the last is acknowledged at 50 ms; then 2 s.
    let mut of_first: Vec<f64> = starts.iter().copied().filter(|t| t.fract() < 0.2).collect();
    of_first.sort_by(f64::total_cmp);
    let first = [0.0, 0.005, 0.01, 1.0, 1.005, 1.01];
    assert!(first.iter().zip(&of_first).all(|(a, b)| close(*a, *b)), "{of_first:?}");
    assert!(starts.iter().any(|t| close(*t, 2.05)) && !starts.iter().any(|t| close(*t, 2.04)));
    let took = column(&out, "fct/duration_s");
    assert!(took.iter().all(|t| close(*t, 0.02)), "{took:?}");
    // A request is a SYN and a packet, acknowledged after 40 ms, and it crosses `back`.
    let requests = web(json!({"request": true}));
    assert!(column(&requests, "fct/duration_s").iter().all(|t| close(*t, 0.06)));
    let bytes = |out: &Outcome| num(&out.summary["links"]["back"], "departed_bytes");
    assert_eq!(bytes(&requests) - bytes(&out), 60.0 * 1040.0);
    let no_wait = web(json!({"overlap": true}));
    assert!(column(&no_wait, "fct/start_s").iter().any(|t| close(*t, 2.0)), "from the start");
}

/// A transfer takes 40 ms: SYN, then data. With two at a time the third object waits for the end of
/// the first, and later objects stay 10 ms apart where a connection is free.
#[test]
fn a_page_has_at_most_so_many_objects_in_transfer() {
    let web = |more: Value| {
        let mut source = json!({"name": "web", "sessions": 1, "pages": 1, "objects": 5,
            "object_gap": "10ms", "size": "960B", "until": "acked"});
        for (key, value) in more.as_object().unwrap() {
            source[key] = value.clone();
        }
        let out = run(&fast("100s", 1, "20ms", &source));
        let took = column(&out, "fct/duration_s");
        let mut of: Vec<_> = column(&out, "fct/start_s").iter().copied().zip(took).collect();
        of.sort_by(|a, b| a.0.total_cmp(&b.0));
        of.into_iter().map(|(start, took)| (start, start + took)).collect::<Vec<_>>()
    };
    for (most, expected) in [
        (json!("auto"), [0.0, 0.01, 0.02, 0.03, 0.04]),
        (json!(2), [0.0, 0.01, 0.04, 0.05, 0.08]),
        (json!(1), [0.0, 0.04, 0.08, 0.12, 0.16]),
    ] {
        let of = web(json!({"parallel": most}));
        assert_eq!(of.len(), 5);
        let close = of.iter().zip(expected).all(|(o, e)| (o.0 - e).abs() < 1e-4);
        assert!(close, "{most}: {of:?}");
    }
    let of = web(json!({"parallel": 6, "pages": 20, "objects": 50, "page_gap": "0s",
        "size": "pareto(mean=20kB, shape=1.2)"}));
    assert_eq!(of.len(), 20 * 50);
    let open = |at: f64| of.iter().filter(|o| o.0 <= at && at < o.1 - 1e-9).count();
    assert_eq!(of.iter().map(|o| open(o.0)).max(), Some(6));
}

#[test]
fn traces_are_replayed_as_recorded() {
    let mut scenario = fast(
        "10s",
        2,
        "20ms",
        &json!({"name": "trace", "start": "1s",
        "time_s": [0.25, 0.5, 0.5, 3], "size_bytes": [5000, 1, 960_000, 10], "flow": [1, 0, 1, 1]}),
    );
    let out = run(&scenario);
    let mut starts = column(&out, "fct/start_s").to_vec();
    starts.sort_by(f64::total_cmp);
    assert_eq!(starts, [1.25, 1.5, 1.5, 4.0]);
    assert_eq!(num(flow(&out, "x.0"), "started"), 1.0);
    assert_eq!(num(flow(&out, "x.1"), "goodput_bps"), (6.0 + 1000.0 + 1.0) * 960.0 * 0.8);
    // Without a TCP the rows are packets.
    scenario["flows"][0].as_object_mut().unwrap().remove("tcp");
    scenario["flows"][0].as_object_mut().unwrap().remove("rtt");
    let refused = Scenario::from_json(&scenario.to_string()).unwrap_err().to_string();
    assert_eq!(
        refused,
        "flows.x.source.size_bytes.2: 960000 bytes exceed the largest packet, 65535 bytes"
    );
    scenario["flows"][0]["source"]["size_bytes"] = json!([5000, 1, 28, 1500]);
    scenario["packet_log"] = json!(true);
    let out = run(&scenario);
    assert_eq!(column(&out, "packet_log/l/arrived_s"), [1.25, 1.5, 1.5, 4.0]);
    assert_eq!(num(flow(&out, "x.1"), "sent_packets"), 3.0);
    assert_eq!(num(&out.summary["links"]["l"], "departed_bytes"), 6529.0);
}

#[test]
fn onoff_sources_have_their_load_over_udp_and_tcp() {
    let source = json!({"name": "onoff", "rate": "2mbit", "packet": "500B", "on": "exponential(1s)",
        "off": "pareto(mean=1s, shape=2.5)"});
    for tcp in [false, true] {
        let mut scenario = fast("4000s", 5, "20ms", &source);
        if !tcp {
            scenario["flows"][0].as_object_mut().unwrap().remove("tcp");
        } else {
            scenario["flows"][0]["tcp"]["packet"] = json!("540B");
        }
        let out = run(&scenario);
        let sum: f64 = (0..5).map(|i| num(flow(&out, &format!("x.{i}")), "goodput_bps")).sum();
        // Half of 2 Mbit/s each; over UDP 28 of 500 B are headers.
        let expected = 5e6 * if tcp { 1.0 } else { 472.0 / 500.0 };
        assert!((sum / expected - 1.0).abs() < 0.03, "{tcp}: {sum}");
    }
}

#[test]
fn cbr_over_tcp_is_limited_by_the_link() {
    let source = json!({"name": "cbr", "rate": "800kbit", "packet": "500B", "stop": "40s"});
    let mut scenario = fast("60s", 1, "20ms", &source);
    scenario["warmup"] = json!("20s");
    let ns2 = run(&scenario);
    assert_eq!(num(flow(&ns2, "x"), "goodput_bps"), 400e3 * 960.0 / 500.0, "whole segments");
    scenario["flows"][0]["tcp"] = json!({"name": "sack", "packet": "1000B"});
    let out = run(&scenario);
    let x = flow(&out, "x");
    // 200 writes per second for 20 of 40 seconds, each a segment of its own while the window is
    // open.
    assert_eq!((num(x, "sent_packets"), num(x, "goodput_bps")), (4000.0, 400e3), "{x}");
    // On a slower link the socket buffer fills and TCP sends full segments at the link rate.
    scenario["links"]["l"] =
        json!({"rate": "400kbit", "qdisc": {"name": "droptail", "limit": "20p"}});
    scenario["flows"][0]["source"]["stop"] = json!("60s");
    let out = run(&scenario);
    assert!(num(&out.summary["links"]["l"], "utilisation") > 0.99);
    let x = flow(&out, "x");
    let payload = num(x, "goodput_bps") * 40.0 / 8.0 / num(x, "sent_packets");
    assert!(num(x, "goodput_bps") > 0.95 * 400e3 && payload > 900.0, "{payload} bytes each: {x}");
}

#[test]
fn connections_beyond_the_limit_are_retried() {
    let out = run(&fast(
        "30s",
        1,
        "100ms",
        &json!({"name": "poisson", "interval": "10ms", "size": "960B", "most": 10,
            "number": 100, "until": "acked"}),
    ));
    // Each takes 200 ms; in the first 200 ms ten are open, then one starts as another ends: half of
    // all. The others are retried a second later, when all have ended, and start in the same way.
    let x = flow(&out, "x");
    assert_eq!((num(x, "completed"), num(x, "unfinished")), (100.0, 0.0));
    assert!(num(x, "refused") >= 50.0, "{x}");
    let took = column(&out, "fct/duration_s");
    let at_once = took.iter().filter(|t| **t < 0.21).count();
    assert!((45..=60).contains(&at_once), "{at_once}");
    assert!(took.iter().all(|t| (t % 1.0 - 0.2).abs() < 1e-3), "whole seconds later: {took:?}");
}

/// Connections reuse memory: a run twice as long allocates no more, except for growing columns.
#[test]
fn nothing_is_allocated_per_connection() {
    let count = |duration: &str| {
        let source = json!({"name": "poisson", "size": "20kB", "load": "40mbit", "number": 1});
        let mut scenario = fast(duration, 3, "5ms", &source);
        scenario["flows"][0]["source"]["number"] = json!("auto");
        let scenario = Scenario::from_json(&scenario.to_string()).unwrap();
        let mut transfers = 0.0;
        let info = allocation_counter::measure(|| {
            let out = sojourn_sim::run(&scenario);
            let flows = out.summary["flows"].as_array().unwrap();
            transfers = flows.iter().map(|f| num(f, "started")).sum();
        });
        (info.count_total as f64, transfers)
    };
    let ((a, few), (b, many)) = (count("20s"), count("40s"));
    assert!(many - few > 4000.0);
    assert!((b - a) / (many - few) < 0.02, "{} for {}", b - a, many - few);
}

#[test]
fn errors_name_the_field() {
    let refusal = |source: Value| {
        let scenario = fast("10s", 2, "20ms", &source);
        Scenario::from_json(&scenario.to_string()).unwrap_err().to_string()
    };
    let cases = [
        (json!({"name": "poison"}), "unknown source \"poison\", did you mean \"poisson\"?"),
        (json!({"name": "poisson", "interval": "1s", "load": "1mbit"}), "load: cannot be combined"),
        (json!({"name": "poisson", "interval": "0s"}), "interval: 0s is out of range"),
        (json!({"name": "poisson", "size": "web_serch"}), "size: "),
        (json!({"name": "poisson", "most": 0}), "most: 0 is out of range"),
        (json!({"name": "incast", "until": "recieved"}), "until: "),
        (json!({"name": "incast", "sizes": [1, 2]}), "sizes: [1,2] is not a single value"),
        (json!({"name": "web", "request": true}), "request: needs a return_path"),
        (json!({"name": "web", "overlap": true, "page_gap": "0s"}), "page_gap: must be above 0"),
        (json!({"name": "web", "objects": "3s"}), "objects: "),
        (json!("trace"), "time_s: is missing or empty"),
        (json!({"name": "trace", "time_s": 3}), "time_s: 3 is not a list"),
        (json!({"name": "trace", "times": [3]}), "times: [3] is not a single value"),
        (json!({"name": "trace", "time_s": [1, 2], "size_bytes": [1]}), "size_bytes: must have 2"),
        (
            json!({"name": "trace", "time_s": [2, 1], "size_bytes": [1, 1]}),
            "time_s.1: 1 is earlier",
        ),
        (json!({"name": "trace", "time_s": [-2], "size_bytes": [1]}), "time_s.0: -2 is not a"),
        (json!({"name": "trace", "time_s": ["1s"], "size_bytes": [1]}), "time_s.0: \"1s\" is not"),
        (json!({"name": "trace", "time_s": [2], "size_bytes": [0]}), "size_bytes.0: 0 is not"),
        (json!({"name": "trace", "time_s": [2], "size_bytes": [1.5]}), "size_bytes.0: 1.5 is not"),
        (json!({"name": "trace", "time_s": [2], "size_bytes": [1], "flow": [2]}), "flow.0: 2 must"),
    ];
    for (source, expected) in cases {
        let message = refusal(source.clone());
        let expected = format!("flows.x.source.{expected}");
        let named =
            format!("flows.x.source.name: {}", expected.trim_start_matches("flows.x.source."));
        assert!(
            message.starts_with(&expected) || message.starts_with(&named),
            "{source}: {message}"
        );
    }
    let mut numbered = fast("10s", 2, "20ms", &json!("bulk"));
    numbered["flows"][0]["path"] = json!(["l{i}"]);
    let message = Scenario::from_json(&numbered.to_string()).unwrap_err().to_string();
    assert!(message.starts_with("flows.x.path.0: unknown link \"l0\""), "{message}");
}

#[test]
fn every_member_can_have_its_own_link() {
    let mut links = serde_json::Map::new();
    for i in 0..12 {
        links.insert(format!("nic{i}"), json!({"rate": "10mbit", "delay": format!("{i}ms")}));
    }
    links.insert("port".into(), json!({"rate": "100mbit", "delay": "1ms"}));
    let scenario = json!({
        "duration": "20s", "links": links,
        "flows": [{"name": "x", "count": 12, "path": ["nic{i}", "port"]},
                  {"name": "y", "count": 12, "path": ["nic{i}", "port"], "source": "sessions"}]
    });
    let parsed = Scenario::from_json(&scenario.to_string()).unwrap();
    assert_eq!(parsed.canonical()["flows"][0]["path"], json!(["nic{i}", "port"]));
    let out = run(&scenario);
    for i in 0..12 {
        let rtt = num(flow(&out, &format!("x.{i}")), "rtt_s");
        assert_eq!(rtt, f64::from(i + 1) / 1e3, "the delay of its own links");
        assert_eq!(num(flow(&out, &format!("y.{i}")), "rtt_s"), rtt);
        assert!(num(&out.summary["links"][format!("nic{i}")], "departed_packets") > 0.0);
    }
}

#[test]
fn startup_takes_one_round_trip() {
    let source = json!({"name": "transfers", "size": "30kB", "number": 3, "gap": "1s"});
    for profile in ["ns2", "rfc"] {
        let mut scenario = fast("20s", 1, "100ms", &source);
        scenario["flows"][0]["tcp"]["profile"] = json!(profile);
        let out = run(&scenario);
        // A header of 40 bytes takes 32 ns at 10 Gbit/s.
        assert_eq!(column(&out, "fct/startup_s"), [0.100_000_032; 3], "{profile}");
        assert!(column(&out, "fct/duration_s").iter().all(|t| *t > 0.25), "{profile}");
    }
    // A link that loses every SYN.
    let mut scenario = fast("20s", 1, "100ms", &json!({"name": "transfers", "number": 1}));
    scenario["flows"][0]["tcp"] = json!("sack");
    scenario["links"]["l"]["loss"] = json!(1.0);
    assert!(column(&run(&scenario), "fct/startup_s").is_empty(), "no connection is established");
    // A persistent connection is open for all transfers except the first.
    let source = json!({"name": "incast", "size": "10kB", "persistent": true, "gap": "100ms"});
    let mut kept = column(&run(&fast("2s", 1, "100ms", &source)), "fct/startup_s").to_vec();
    assert!(kept.len() > 3 && kept.remove(0) >= 0.1 && kept.iter().all(|t| *t == 0.0), "{kept:?}");
}
