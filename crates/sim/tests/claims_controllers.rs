//! Claims of the authors of PI, REM, AVQ and PIE, in a dumbbell of long TCP flows: PI and REM
//! settle at their reference at any load, AVQ keeps its target utilisation, PIE and PI2 keep their
//! target delay, and adaptive PI adapts to a jump in the number of flows at least twice as fast as
//! PI.
//!
//! 15 mbit with packets of 500 bytes is 3750 packets/s, the link of the PI paper, whose design
//! point is 60 flows and 246 ms.

mod common;
use common::{flow, num, run};
use serde_json::{Value, json};
use sojourn_sim::{Column, Outcome};

/// `count` flows per group that start at `start`, for 120 s with a warm-up of 60 s.
fn dumbbell(qdisc: &Value, groups: &[(u32, &str)]) -> Outcome {
    let flow = |(i, (count, start)): (usize, &(u32, &str))| {
        json!({"name": format!("group{i}"), "count": count, "path": ["l"],
               "rtt": "uniform(60ms, 140ms)", "source": {"name": "bulk", "start": start},
               "tcp": {"name": "newreno", "profile": "ns2", "packet": "500B",
                       "receive_window": "10000p"}})
    };
    let mut flows: Vec<Value> = groups.iter().enumerate().map(flow).collect();
    flows.push(json!({"name": "call", "path": ["l"],
                      "source": {"name": "cbr", "rate": "160kbit", "packet": "500B"}}));
    run(&json!({
        "duration": "120s", "warmup": "60s", "sample": "100ms",
        "links": {"l": {"rate": "15mbit", "delay": "20ms", "qdisc": qdisc}},
        "flows": flows
    }))
}

/// Two loads: the second needs three times the drop probability of the first.
const LOADS: [u32; 2] = [60, 120];

fn steady(qdisc: &Value, count: u32) -> Outcome {
    dumbbell(qdisc, &[(count, "uniform(0s, 5s)")])
}

fn pi(name: &str, q_ref: &str) -> Value {
    json!({"name": name, "limit": "800p", "q_ref": q_ref, "flows": 60, "rtt": "246ms", "w": 160})
}

fn rem(form: &str, b_star: &str) -> Value {
    json!({"name": "rem", "limit": "800p", "b_star": b_star, "packet": "500B", "form": form})
}

#[test]
fn pi_and_rem_settle_at_their_reference() {
    for (reference, packets) in [("100p", 100.0), ("200p", 200.0)] {
        for count in LOADS {
            for law in [
                pi("pi", reference),
                pi("api", reference),
                rem("rate", reference),
                rem("queue", reference),
            ] {
                let out = steady(&law, count);
                let link = &out.summary["links"]["l"];
                let q = num(link, "queue_mean_packets");
                println!("{} {reference}, {count} flows: {q:.1}", law["name"]);
                // The queue oscillates by about 30 packets, so the mean over a minute is accurate
                // to 5.
                assert!((q / packets - 1.0).abs() < 0.1, "{law}, {count} flows: {q}");
                assert!(num(link, "utilisation") > 0.99);
            }
        }
    }
}

#[test]
fn avq_keeps_its_target_utilisation() {
    for gamma in [0.9, 0.95, 0.98] {
        for count in LOADS {
            for limit in ["400p", "200kB"] {
                let law = json!({"name": "avq", "limit": limit, "gamma": gamma, "packet": "500B"});
                let out = steady(&law, count);
                let link = &out.summary["links"]["l"];
                let used = num(link, "utilisation");
                println!("gamma {gamma}, {limit}, {count} flows: {used:.4}");
                assert!((used - gamma).abs() < 0.005, "{law}, {count} flows: {used}");
                // The unused capacity keeps the queue short; nothing overflows.
                assert!(num(link, "queue_mean_packets") < 60.0);
                assert_eq!(link["dropped_full_packets"], 0);
            }
        }
    }
}

#[test]
fn pie_keeps_its_target_delay() {
    for (target, delay) in [("10ms", 0.010), ("15ms", 0.015), ("40ms", 0.040)] {
        for count in LOADS {
            for (latency, derandomise) in [("timestamp", false), ("rate", false), ("rate", true)] {
                let law = json!({"name": "pie", "limit": "2000p", "target": target,
                                 "latency": latency, "derandomise": derandomise});
                let out = steady(&law, count);
                let link = &out.summary["links"]["l"];
                let wait = num(link, "sojourn_mean_s");
                println!("target {target}, {latency}, {count} flows: {:.2} ms", wait * 1e3);
                assert!((wait / delay - 1.0).abs() < 0.1, "{law}, {count} flows: {wait}");
                assert!(num(link, "utilisation") > 0.98);
            }
        }
    }
}

#[test]
fn pi2_keeps_its_target_delay_without_a_gain_table() {
    for count in [20, 60, 120] {
        let out = steady(&json!({"name": "pi2", "limit": "2000p"}), count);
        let link = &out.summary["links"]["l"];
        let wait = num(link, "sojourn_mean_s");
        println!("PI2, {count} flows: {:.2} ms", wait * 1e3);
        assert!((wait / 0.020 - 1.0).abs() < 0.1, "{count} flows: {wait}");
        assert!(num(link, "utilisation") > 0.95);
    }
}

#[test]
fn fq_pie_isolates_a_call_from_the_delay_of_other_flows() {
    let wait = |name: &str| {
        let out = steady(&json!({"name": name, "packet": "500B"}), 8);
        let link = &out.summary["links"]["l"];
        assert!(num(link, "utilisation") > 0.97);
        // 20 ms propagation, 0.267 ms transmission.
        (num(flow(&out, "call"), "delay_mean_s") - 0.020_267, num(link, "sojourn_mean_s"))
    };
    let ((shared, _), (own, all)) = (wait("pie"), wait("fq_pie"));
    println!("a call waits {:.2} ms under PIE, {:.2} ms under FQ-PIE", shared * 1e3, own * 1e3);
    assert!((0.010..0.020).contains(&shared), "{shared}");
    assert!(own < 0.001, "less than four packets: {own}");
    assert!(all < 0.015, "the other flows are controlled as well: {all}");
}

/// Deviation of the queue from 200 packets in the minute after 60 s, in packet-seconds, and the
/// last second in which its mean was off by more than 100.
fn after_the_jump(law: &Value) -> (f64, Option<usize>) {
    let out = dumbbell(law, &[(60, "uniform(0s, 5s)"), (120, "uniform(60s, 61s)")]);
    let queue = out.columns.iter().find(|(name, _)| name.contains("l/queue_packets"));
    let Some((_, Column::U64(queue))) = queue else { panic!("the queue has a series") };
    let off: Vec<f64> = queue
        .chunks(10)
        .skip(60)
        .map(|second| (second.iter().sum::<u64>() as f64 / second.len() as f64 - 200.0).abs())
        .collect();
    (off.iter().sum(), off.iter().rposition(|off| *off > 100.0))
}

#[test]
fn adaptive_pi_adapts_to_a_load_jump_twice_as_fast_as_pi() {
    let (slow, fast) = (after_the_jump(&pi("pi", "200p")), after_the_jump(&pi("api", "200p")));
    println!("off by {:.0} packet-seconds until {:?} s: PI", slow.0, slow.1);
    println!("off by {:.0} packet-seconds until {:?} s: adaptive PI", fast.0, fast.1);
    assert!(fast.0 < slow.0 / 2.0, "{fast:?}, {slow:?}");
    assert!(fast.1 < slow.1.map(|s| s / 2), "{fast:?}, {slow:?}");
}
