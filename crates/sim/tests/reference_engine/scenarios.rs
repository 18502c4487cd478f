//! Random scenarios for both engines.

use rand_core::SeedableRng;
use serde_json::{Value, json};
use sojourn_aqm::random::Random;

/// Random scenario: one to three links with any disciplines, and flows of any kind over them.
pub fn random(seed: u64) -> Value {
    let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(seed);
    let mut pick = |n: u32| rng.below(n) as usize;
    let qdiscs = [
        json!({"name": "droptail", "limit": "20kB"}),
        json!({"name": "droptail", "limit": "15p", "policy": "random"}),
        json!({"name": "red", "limit": "60p", "ecn": true}),
        json!({"name": "codel", "ecn": true}),
        json!({"name": "drr", "limit": "30kB"}),
        json!({"name": "sfq", "perturb": "300ms"}),
        json!({"name": "fq_codel", "limit": "40p"}),
    ];
    let names = ["l0", "l1", "l2"];
    let mut links = serde_json::Map::new();
    for name in names {
        let rate = ["1mbit", "3mbit", "7777777bit", "20mbit"][pick(4)];
        let delay = ["0s", "1ms", "12345us"][pick(3)];
        links.insert(name.into(), json!({"rate": rate, "delay": delay, "qdisc": qdiscs[pick(7)]}));
    }
    let flows: Vec<Value> = (0..2 + pick(4))
        .map(|i| {
            let path: Vec<&str> = names[pick(3)..].iter().take(1 + pick(2)).copied().collect();
            let back: Vec<&str> = if pick(3) == 0 { vec![names[pick(3)]] } else { vec![] };
            let mut flow = json!({"name": format!("f{i}"), "count": 1 + pick(3), "path": path});
            if pick(4) == 0 {
                flow["source"] = match pick(4) {
                    0 => json!({"name": "cbr", "rate": "300kbit", "packet": "500B"}),
                    1 => json!({"name": "onoff", "rate": "600kbit", "packet": "400B"}),
                    2 => {
                        flow["return_path"] = json!(back);
                        json!({"name": "call", "initial": "600kbit", "feedback": "200ms"})
                    }
                    _ => json!({"name": "trace", "time_s": [0.1, 0.1, 0.2, 1.5, 4.0],
                        "size_bytes": [100, 1500, 700, 60, 1]}),
                };
                return flow;
            }
            flow["return_path"] = json!(back);
            flow["rtt"] = json!("uniform(100ms, 150ms)");
            let tcp = ["tahoe", "reno", "newreno", "sack"][pick(4)];
            let profile = ["rfc", "ns2"][pick(2)];
            flow["tcp"] = json!({"name": tcp, "profile": profile, "ecn": pick(2) == 0});
            if pick(3) == 0 {
                let tcp = ["cubic", "dctcp", "vegas", "compound", "sack"][pick(5)];
                flow["tcp"] = json!({"name": tcp, "ecn": pick(2) == 0, "pacing": pick(2) == 0,
                    "prr": pick(2) == 0, "rack": pick(2) == 0});
            } else if pick(6) == 0 {
                flow["tcp"] = json!("bbr");
            }
            if pick(8) == 0 {
                let (packet, jitter) = (["200B", "40B", "3kB"][pick(3)], [0.0, 0.5][pick(2)]);
                flow["source"] = json!({"name": "cbr", "rate": "400kbit", "packet": packet,
                    "jitter": jitter, "start": "200ms", "stop": "5s"});
            } else if seed >= 60 {
                flow["source"] = crowd(pick(5), pick(2) == 0, !back.is_empty());
            } else if pick(4) == 0 {
                flow["source"] = json!({"name": "video", "segment": "500ms", "buffer": "2s",
                    "reservoir": "500ms", "cushion": "1s", "resume": "1s"});
            } else if pick(2) == 0 {
                flow["source"] = json!({"name": "transfers", "size": "uniform(1kB, 90kB)",
                    "gap": "exponential(100ms)"});
            }
            flow
        })
        .collect();
    json!({"duration": "6s", "warmup": "1s", "seed": seed, "packet_log": true, "links": links,
        "flows": flows})
}

/// The same with everything that can change: random loss, traces, scheduled changes of links and
/// flows, and traffic classes.
pub fn unsteady(seed: u64) -> Value {
    let mut all = random(seed);
    let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(!seed);
    let mut pick = |n: u32| rng.below(n) as usize;
    all["sample"] = json!("170ms");
    all["links"]["l0"]["loss"] = json!([0.0, 0.01, 0.2][pick(3)]);
    all["links"]["l2"]["loss"] = json!([0.0, 0.003][pick(2)]);
    // In steps of 10 ms, so that packets leave and arrive exactly at the times of changes.
    all["links"]["l1"]["trace"] = match pick(3) {
        0 => json!({"t_ns": [0, 700_000_000, 900_000_000, 1_500_000_000],
            "rate_bps": [4_000_000, 0, 1_000_000, 9_000_000], "repeat": "1900ms"}),
        1 => json!({"t_ns": [1_000_000_000, 3_000_000_000u64],
            "delay_ns": [40_000_000, 1_000_000]}),
        _ => json!({"t_ns": [500_000_000], "rate_bps": [800_000], "delay_ns": [0]}),
    };
    let last = all["flows"].as_array().expect("a list").len() - 1;
    all["flows"][last]["class"] = json!(pick(65_536));
    for flow in all["flows"].as_array_mut().expect("a list") {
        if flow["source"]["name"] == "cbr" && flow.get("tcp").is_none() {
            flow["ecn"] = json!(["ect0", "ect1"][pick(2)]);
        }
    }
    if pick(3) == 0 {
        // In milliseconds like the delays: packets arrive exactly at the times of opportunities.
        let ms = [vec![1, 2, 2, 3, 9], vec![0, 0, 7, 300, 301, 302, 303, 900], vec![2]];
        all["links"]["l1"]["trace"] = json!({ "opportunities_ms": ms[pick(3)] });
    }
    if pick(3) == 0 {
        all["links"]["l2"]["loss"] = json!({"p": 0.01, "r": 0.3, "1-h": 0.8, "1-k": 0.001});
    }
    if pick(4) == 0 {
        let link = all["links"]["l1"].as_object_mut().expect("a table");
        link.remove("trace");
        link.insert(
            "process".into(),
            [
                json!({"every": "10ms", "rate_min": "0bit", "rate_max": "9mbit", "walk": "3mbit"}),
                json!({"every": "190ms", "rate_min": "1mbit", "rate_max": "5mbit",
                    "delay_min": "0s", "delay_max": "30ms"}),
            ][pick(2)]
            .clone(),
        );
    }
    let rate = ["0bit", "500kbit", "30mbit"][pick(3)];
    all["changes"] = json!([
        {"at": "2s", "links": {"l0": {"rate": rate},
            "l2": {"delay": "30ms"}}},
        {"at": "1s", "join": ["f0"]},
        {"at": format!("{}ms", 2000 + 10 * pick(300)), "leave": ["f0", format!("f{last}")]},
        {"at": "3500ms", "links": {"l0": {"rate": "2mbit", "delay": "0s"}}},
    ]);
    all
}

/// Source that opens many connections.
fn crowd(which: usize, acked: bool, returns: bool) -> Value {
    let until = if acked { "acked" } else { "received" };
    match which {
        0 => json!({"name": "poisson", "size": "uniform(1kB, 60kB)", "load": "1mbit",
            "until": until, "most": 7}),
        1 => json!({"name": "incast", "size": "uniform(1kB, 40kB)", "jitter": "uniform(0s, 1ms)",
            "gap": "exponential(50ms)", "persistent": acked, "until": until}),
        2 => json!({"name": "sessions", "interval": "exponential(300ms)", "transfers": 4,
            "size": "lomax(mean=8kB, shape=1.2)", "gap": "exponential(100ms)", "until": until}),
        3 => json!({"name": "web", "sessions": 5, "launch": "exponential(100ms)", "pages": 6,
            "page_gap": "exponential(400ms)", "overlap": acked, "request": returns,
            "objects": "pareto(mean=4, shape=1.5)", "object_gap": "exponential(50ms)",
            "parallel": if returns { json!(2) } else { json!("auto") }, "until": until}),
        _ => json!({"name": "trace", "time_s": [0.5, 0.5, 0.7, 2.0, 2.01],
            "size_bytes": [20_000, 1, 300_000, 5_000, 80_000]}),
    }
}
