//! The same scenario gives the same bytes when repeated, in parallel, and with flows declared in
//! another order; and unrelated flows do not affect each other's random numbers.

mod common;
use common::{flow, run};
use serde_json::{Value, json};
use sojourn_sim::Outcome;

/// Scenario with all kinds of randomness: drops, hashes, sizes, gaps, round trips and starts.
fn scenario(seed: u64) -> Value {
    json!({
        "duration": "8s", "warmup": "2s", "seed": seed, "sample": "500ms", "packet_log": true,
        "links": {
            "red": {"rate": "10mbit", "delay": "2ms", "qdisc": {"name": "red", "limit": "100p"}},
            "sfq": {"rate": "5mbit", "delay": "2ms", "qdisc": {"name": "sfq", "perturb": "1s"}},
            "any": {"rate": "5mbit", "loss": 0.01, "qdisc": {"name": "droptail",
                "limit": "20p", "policy": "random"}},
        },
        "changes": [{"at": "3s", "leave": ["old"], "links": {"sfq": {"rate": "3mbit"}}},
            {"at": "4s", "links": {"sfq": {"rate": "6mbit", "delay": "5ms"}}}],
        "flows": [
            {"name": "ftp", "count": 5, "path": ["red", "sfq"], "rtt": "uniform(20ms, 80ms)",
             "source": {"name": "bulk", "start": "uniform(0s, 1s)"}, "tcp": "sack"},
            {"name": "web", "count": 3, "path": ["sfq"], "return_path": ["any"], "tcp": "reno",
             "source": {"name": "transfers", "size": "pareto(mean=30kB, shape=1.5)",
                 "gap": "exponential(200ms)"}},
            {"name": "old", "path": ["any"], "rtt": "30ms", "tcp": {"name": "tahoe",
                "profile": "ns2"}},
            {"name": "call", "path": ["red"], "source": "cbr"},
            {"name": "burst", "path": ["red"], "source": "onoff"},
            {"name": "face", "path": ["sfq"], "return_path": ["any"], "source": "call"},
            {"name": "film", "path": ["red"], "rtt": "40ms",
             "source": {"name": "video", "segment": "1s", "start": "uniform(0s, 1s)"}},
            {"name": "short", "count": 3, "path": ["sfq"], "rtt": "uniform(20ms, 80ms)",
             "source": {"name": "poisson", "size": "web_search", "load": "500kbit"}},
            {"name": "query", "count": 4, "path": ["red"], "rtt": "uniform(20ms, 80ms)",
             "source": {"name": "incast", "gap": "exponential(300ms)"}},
            {"name": "page", "count": 2, "path": ["any"], "return_path": ["red"],
             "source": {"name": "web", "sessions": 4, "page_gap": "exponential(1s)",
                 "objects": "pareto(mean=4, shape=1.2)", "request": true}},
        ]
    })
}

fn bytes(outcome: &Outcome) -> String {
    format!("{}{:?}", outcome.summary, outcome.columns)
}

#[test]
fn again_and_in_parallel() {
    let once = bytes(&run(&scenario(7)));
    let others: Vec<_> =
        (0..4).map(|i| std::thread::spawn(move || bytes(&run(&scenario(7 + i % 2))))).collect();
    let others: Vec<String> = others.into_iter().map(|t| t.join().unwrap()).collect();
    assert_eq!(once, others[0]);
    assert_eq!(once, others[2]);
    assert_ne!(once, others[1], "another seed gives another run");
}

#[test]
fn in_any_order_of_declaration() {
    let base = scenario(3);
    let once = run(&base);
    let mut turned = base;
    turned["flows"].as_array_mut().unwrap().reverse();
    let again = run(&turned);
    assert_eq!(once.summary["links"], again.summary["links"]);
    for f in once.summary["flows"].as_array().unwrap() {
        assert_eq!(f, flow(&again, f["name"].as_str().unwrap()));
    }
}

#[test]
fn an_unrelated_flow_changes_nothing() {
    let base = scenario(5);
    let once = run(&base);
    let mut joined = base;
    joined["links"]["apart"] = json!({"rate": "3mbit", "qdisc": {"name": "red", "limit": "9p",
        "min_th": "1p", "max_th": "3p"}});
    // Its name sorts first, so all indices change.
    let stranger =
        json!({"name": "a", "count": 3, "path": ["apart"], "rtt": "uniform(10ms, 20ms)"});
    joined["flows"].as_array_mut().unwrap().insert(0, stranger);
    let again = run(&joined);
    for f in once.summary["flows"].as_array().unwrap() {
        assert_eq!(f, flow(&again, f["name"].as_str().unwrap()));
    }
    for (name, link) in once.summary["links"].as_object().unwrap() {
        assert_eq!(link, &again.summary["links"][name], "{name}");
    }
}

#[test]
fn a_neighbour_does_not_shift_random_streams() {
    let base = scenario(5);
    let once = run(&base);
    let mut joined = base;
    let neighbour = json!({"name": "b", "path": ["red"], "rtt": "uniform(10ms, 20ms)"});
    joined["flows"].as_array_mut().unwrap().insert(0, neighbour);
    let again = run(&joined);
    for f in once.summary["flows"].as_array().unwrap() {
        let other = flow(&again, f["name"].as_str().unwrap());
        assert_eq!(f["rtt_s"], other["rtt_s"], "RTTs are drawn by name");
    }
}

#[test]
fn sampling_changes_nothing() {
    let mut plain = scenario(9);
    let looked = run(&plain);
    plain["sample"] = json!("7ms");
    plain["packet_log"] = json!(false);
    let other = run(&plain);
    assert_eq!(looked.summary["links"], other.summary["links"]);
    assert_eq!(looked.summary["flows"], other.summary["flows"]);
}
