//! Swift, TIMELY and DCQCN in whole runs: convergence, fairness, queue, and two figures of Swift's
//! paper.

mod common;

use common::{goodputs_gbit, jain, num, run};
use serde_json::{Value, json};
use sojourn_sim::Outcome;

/// `count` flows with `tcp` over one link, which start within `spread` and are measured from half
/// of `ms` on.
fn share(link: &Value, rtt: &str, tcp: &Value, count: u32, spread: &str, ms: u32) -> Outcome {
    run(&json!({
        "duration": format!("{ms}ms"), "warmup": format!("{}us", ms * 500),
        "links": {"l": link},
        "flows": [{"name": "f", "count": count, "path": ["l"], "rtt": rtt, "tcp": tcp,
                   "source": {"name": "bulk", "start": format!("uniform(0s, {spread})")}}]
    }))
}

/// Mean and 99th percentile of the queueing delay, us.
fn delay(out: &Outcome) -> [f64; 2] {
    ["sojourn_mean_s", "sojourn_p99_s"].map(|key| num(link(out), key) * 1e6)
}

fn link(out: &Outcome) -> &Value {
    &out.summary["links"]["l"]
}

/// The control with timers for data centres.
fn control(name: &str, own: Value) -> Value {
    let mut tcp = json!({"name": name, "rto_min": "2ms", "tick": "10us"});
    let own = own.as_object().expect("parameters have names");
    own.iter().for_each(|(key, value)| tcp[key] = value.clone());
    tcp
}

/// Link with a tail-drop buffer.
fn tail(rate: &str, limit: &str) -> Value {
    json!({"rate": rate, "delay": "1us", "qdisc": {"name": "droptail", "limit": limit}})
}

/// Link of 40 Gbit/s with the marking of DCQCN's testbed.
fn marking() -> Value {
    json!({"rate": "40gbit", "delay": "1us", "qdisc": {"name": "step_mark", "limit": "12MB",
        "k_min": "5kB", "k_max": "200kB", "p_max": 0.01}})
}

#[test]
fn swift_keeps_the_round_trip_time_at_its_target_and_shares_the_link() {
    // 20 us and 1.2 us of transmission: 9 us are left for the queue.
    let target = control("swift", json!({"target": "30us"}));
    let alone = share(&tail("10gbit", "4MB"), "20us", &target, 1, "1ms", 40);
    // One flow has 25 packets per round trip: a target of 30 us + 100 us (1/sqrt(25) - 0.1) /
    // (1/sqrt(0.1) - 0.1) = 33 us.
    assert!((10.0..14.0).contains(&delay(&alone)[0]), "{:?}", delay(&alone));
    for (count, least, most) in [(2, 12.0, 17.0), (8, 20.0, 28.0), (50, 35.0, 60.0)] {
        let out = share(&tail("10gbit", "4MB"), "20us", &target, count, "1ms", 40);
        let [mean, p99] = delay(&out);
        // With more flows windows are smaller, and targets longer.
        assert!((least..most).contains(&mean) && p99 < mean + 15.0, "{count}: {mean} {p99}");
        assert!(num(link(&out), "utilisation") > 0.999 && num(link(&out), "loss_rate") == 0.0);
        assert!(jain(&goodputs_gbit(&out)) > 0.99, "{count}: {:?}", goodputs_gbit(&out));
    }
}

/// Figure 17 of the paper: 100 senders at 50 Gbit/s saturate the link above a target of 25 us.
#[test]
fn swift_saturates_a_link_from_a_target_of_25_us_on() {
    let utilisation = |us: u32| {
        let own = json!({"target": format!("{us}us"), "packet": "4kB", "fs_range": "0s"});
        let out = share(&tail("50gbit", "12500kB"), "12us", &control("swift", own), 100, "1ms", 20);
        assert!(delay(&out)[0] < f64::from(us), "{us}: {:?}", delay(&out));
        num(link(&out), "utilisation")
    };
    let measured = [15, 20, 25, 40].map(utilisation);
    assert!(measured[0] < 0.95 && measured[1] < 0.97, "{measured:?}");
    assert!(measured[2] > 0.99 && measured[3] > 0.995, "{measured:?}");
}

/// Table 3 of the paper: 5000 senders to one port of 50 Gbit/s. With windows below a packet: 49.5
/// Gbit/s, 110 us and 0.0003 % loss; without: 8.7 Gbit/s, 2027 us and 28.7 %.
#[test]
fn swift_carries_5000_senders_only_with_windows_below_a_packet() {
    let incast = |min_cwnd: f64, ai: f64| {
        let own = json!({"packet": "4kB", "initial_window": "1p", "min_cwnd": min_cwnd, "ai": ai});
        let tcp = control("swift", own);
        let out = share(&tail("50gbit", "12500kB"), "12us", &tcp, 5000, "10ms", 200);
        let goodput: f64 = goodputs_gbit(&out).iter().sum();
        (goodput, delay(&out)[0] + 12.0, num(link(&out), "loss_rate"))
    };
    let (goodput, rtt, loss) = incast(0.001, 1.0);
    assert!((49.3..49.6).contains(&goodput) && loss == 0.0, "{goodput} {loss}");
    // The target is 125 us; a growth of a whole packet per ack overshoots it.
    assert!((150.0..220.0).contains(&rtt), "{rtt}");
    let (goodput, rtt, loss) = incast(0.001, 0.02);
    assert!((45.0..47.0).contains(&goodput) && loss == 0.0, "{goodput} {loss}");
    assert!((118.0..132.0).contains(&rtt), "{rtt}");
    // Without, the buffer of 2 ms is full.
    let (_, rtt, loss) = incast(1.0, 1.0);
    assert!((2_000.0..2_030.0).contains(&rtt) && (0.15..0.3).contains(&loss), "{rtt} {loss}");
}

/// TIMELY has no fixed point: shares depend on how the flows started, so they are not tested.
#[test]
fn timely_fills_the_link_and_keeps_round_trip_times_near_t_low() {
    for (count, initial, use_of) in [(1, "5gbit", 0.99), (2, "1gbit", 0.9), (8, "1gbit", 0.85)] {
        let own = json!({"initial_rate": initial, "line_rate": "10gbit"});
        let tcp = control("timely", own);
        let out = share(&tail("10gbit", "8MB"), "20us", &tcp, count, "1ms", 100);
        assert!(num(link(&out), "utilisation") > use_of, "{count}: {}", link(&out));
        // 50 us less 20 us.
        assert!(delay(&out)[1] < 40.0, "{count}: {:?}", delay(&out));
        assert_eq!(num(link(&out), "loss_rate"), 0.0);
    }
}

#[test]
fn dcqcn_shares_a_marking_link() {
    let own = json!({"initial_rate": "40gbit", "line_rate": "40gbit"});
    for (count, use_of) in [(2, 0.99), (8, 0.95), (16, 0.92)] {
        let out = share(&marking(), "20us", &control("dcqcn", own.clone()), count, "1ms", 200);
        assert!(num(link(&out), "utilisation") > use_of, "{count}: {}", link(&out));
        assert!(delay(&out)[0] < 20.0 && num(link(&out), "loss_rate") == 0.0, "{:?}", delay(&out));
        assert!(jain(&goodputs_gbit(&out)) > 0.99, "{count}: {:?}", goodputs_gbit(&out));
    }
}

#[test]
fn a_flow_that_joins_later_gets_its_share() {
    let cases = [
        (tail("10gbit", "4MB"), control("swift", json!({"target": "40us"}))),
        (marking(), control("dcqcn", json!({"line_rate": "40gbit"}))),
    ];
    for (l, tcp) in cases {
        let group = |name: &str, start: &str| {
            json!({"name": name, "path": ["l"], "rtt": "20us", "tcp": tcp,
                   "source": {"name": "bulk", "start": start}})
        };
        let out = run(&json!({
            "duration": "200ms", "warmup": "100ms", "links": {"l": l},
            "flows": [group("first", "0s"), group("second", "50ms")]
        }));
        assert!(jain(&goodputs_gbit(&out)) > 0.98, "{}: {:?}", tcp["name"], goodputs_gbit(&out));
    }
}

/// None of the three needs a lossless network.
#[test]
fn losses_do_not_end_the_progress() {
    for (name, own) in [
        ("swift", json!({"target": "60us"})),
        ("timely", json!({})),
        ("dcqcn", json!({"line_rate": "20gbit"})),
    ] {
        // 25 us of buffer, and no marks.
        let out = share(&tail("10gbit", "30kB"), "20us", &control(name, own), 4, "1ms", 200);
        let goodput: f64 = goodputs_gbit(&out).iter().sum();
        assert!(goodput > 7.5, "{name}: {goodput}, {}", link(&out));
    }
}
