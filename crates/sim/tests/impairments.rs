//! Impaired links: jitter, reordering, duplication, corruption, outages, slots and a limit of
//! packets in flight, and what senders make of them.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "tests use small numbers"
)]

use serde_json::{Value, json};
use sojourn_aqm::units::{Span, Time};
use sojourn_sim::tcp::TCPS;
use sojourn_sim::{Outcome, Scenario, Simulation, run};

fn scenario(json: &Value) -> Scenario {
    Scenario::from_json(&json.to_string()).unwrap_or_else(|e| panic!("{e}: {json}"))
}

fn simulate(json: &Value) -> Outcome {
    run(scenario(json))
}

fn count(outcome: &Outcome, key: &str) -> u64 {
    outcome.summary["links"]["up"][key].as_u64().unwrap_or_else(|| panic!("{key}"))
}

fn of_flow(outcome: &Outcome, key: &str) -> f64 {
    outcome.summary["flows"][0][key].as_f64().unwrap_or_else(|| panic!("{key}"))
}

/// A link of 100 Mbit/s and 20 ms with `keys`.
fn link(keys: &Value) -> Value {
    let mut link = json!({"rate": "100mbit", "delay": "20ms"});
    for (key, value) in keys.as_object().unwrap() {
        link[key] = value.clone();
    }
    link
}

/// Datagrams of 1000 bytes, one per millisecond, over a link with `keys`.
fn datagrams(keys: &Value) -> Outcome {
    let source = json!({"name": "cbr", "rate": "8mbit", "packet": "1000B"});
    simulate(&json!({
        "duration": "20s", "links": {"up": link(keys)},
        "flows": [{"name": "udp", "source": source, "path": ["up"]}],
    }))
}

#[test]
fn jitter_spreads_the_delays_of_datagrams() {
    for (distribution, low, high) in
        [("uniform", 2.7, 3.05), ("normal", 4.8, 5.2), ("pareto", 3.9, 4.3)]
    {
        let jitter = json!({"size": "5ms", "distribution": distribution});
        let outcome = datagrams(&json!({"jitter": jitter}));
        let mean = of_flow(&outcome, "delay_mean_s") * 1e3;
        assert!((mean - 20.08).abs() < 0.35, "{distribution}: {mean}");
        // The difference of two independent delays has twice their variance.
        let deviation = of_flow(&outcome, "jitter_s") * 1e3 / std::f64::consts::SQRT_2;
        assert!((low..high).contains(&deviation), "{distribution}: {deviation}");
        assert!(count(&outcome, "reordered_packets") > 5000, "{distribution}");
        assert_eq!(count(&outcome, "lost_on_wire_packets"), 0);
        let max = of_flow(&outcome, "delay_max_s") * 1e3;
        assert!(distribution != "uniform" || max < 25.2, "{max}");
    }
}

#[test]
fn ordered_jitter_reorders_nothing_and_delays_more() {
    let jitter = json!({"size": "5ms", "reorders": false});
    let outcome = datagrams(&json!({"jitter": jitter}));
    assert_eq!(count(&outcome, "reordered_packets"), 0);
    // A packet waits for the latest of those before it, up to 5 ms late.
    let mean = of_flow(&outcome, "delay_mean_s") * 1e3;
    assert!((21.0..24.0).contains(&mean), "{mean}");
}

#[test]
fn counters_of_the_wire_add_up() {
    let outcome = datagrams(&json!({
        "duplicate": 0.1, "corrupt": 0.05, "loss": {"p13": 0.02, "p31": 0.3},
        "outages": ["5s..5.5s"], "reorder": 0.25, "jitter": "3ms",
    }));
    let [lost, copies, corrupt] = ["lost_on_wire", "duplicated", "corrupted"]
        .map(|what| count(&outcome, &format!("{what}_packets")));
    let flow = |key: &str| of_flow(&outcome, key);
    let [sent, received, missed] =
        ["sent_packets", "received_packets", "lost_packets"].map(|key| flow(key) as u64);
    assert!(lost > 500 + 800 && copies > 1700 && corrupt > 900, "{lost} {copies} {corrupt}");
    // What is in flight at the end has not arrived yet.
    let known = received + lost + corrupt;
    assert!(sent + copies - known < 30, "{sent} + {copies}, {known}");
    assert!(missed.abs_diff(lost + corrupt) < 30, "{missed} {lost} {corrupt}");
}

/// netem with its default limit of 1000 packets and a delay of 1 s loses half of 2000 packets/s
/// (iproute2, issue 56).
#[test]
fn a_limit_counts_packets_in_flight() {
    let source = json!({"name": "cbr", "rate": "16mbit", "packet": "1000B"});
    let outcome = simulate(&json!({
        "duration": "20s",
        "links": {"up": {"rate": "1gbit", "delay": "1s", "in_flight_limit": "1000p"}},
        "flows": [{"name": "udp", "source": source, "path": ["up"]}],
    }));
    let share =
        count(&outcome, "lost_on_wire_packets") as f64 / count(&outcome, "departed_packets") as f64;
    assert!((share - 0.5).abs() < 0.03, "{share}");
}

/// A delay of 200 ms with a limit of 1000 packets caps a transfer at 1000 packets per 200 ms.
#[test]
fn a_limit_caps_a_transfer() {
    let goodput = |limit: Value| {
        let mut up = json!({"rate": "1gbit", "delay": "100ms", "qdisc": "droptail(limit=100000p)"});
        up["in_flight_limit"] = limit;
        let outcome = simulate(&json!({
            "duration": "30s", "warmup": "15s", "links": {"up": up},
            "flows": [{"name": "tcp", "path": ["up"], "rtt": "200ms"}],
        }));
        of_flow(&outcome, "goodput_bps") / 1e6
    };
    let capped = goodput(json!("1000p"));
    assert!((30.0..121.0).contains(&capped), "at most 120 Mbit/s: {capped}");
    assert!(goodput(json!("100000p")) > 2.0 * capped);
}

#[test]
fn slots_batch_packets() {
    let outcome = datagrams(&json!({"slot": {"min": "30ms"}}));
    let mean = of_flow(&outcome, "delay_mean_s") * 1e3;
    assert!((34.0..37.0).contains(&mean), "half a slot more than 20 ms: {mean}");
    assert_eq!(count(&outcome, "reordered_packets"), 0);
}

#[test]
fn marks_take_the_place_of_losses() {
    let run = |ecn: bool| {
        simulate(&json!({
            "duration": "20s",
            "links": {"up": link(&json!({"loss": {"probability": 0.01, "ecn": true}}))},
            "flows": [{"name": "tcp", "path": ["up"], "tcp": {"name": "cubic", "ecn": ecn}}],
        }))
    };
    let marked = run(true);
    assert!(count(&marked, "marked_on_wire_packets") > 20);
    assert!(count(&marked, "lost_on_wire_packets") < 5, "SYN alone can be lost");
    let lost = run(false);
    assert_eq!(count(&lost, "marked_on_wire_packets"), 0);
    assert!(count(&lost, "lost_on_wire_packets") > 20);
}

/// Everything at once, so that a packet of any kind is lost, doubled, late and corrupted.
fn harsh() -> Value {
    json!({
        "jitter": {"size": "8ms", "distribution": "normal"}, "reorder": 0.1, "duplicate": 0.1,
        "corrupt": 0.02, "loss": {"p": 0.01, "r": 0.5}, "slot": {"min": "1ms", "max": "3ms"},
        "in_flight_limit": "400p", "outages": {"up": "exponential(2s)", "down": "50ms"},
    })
}

/// Transfers over impaired links in both directions.
fn transfers(tcp: &Value, keys: &Value, seed: u64) -> Value {
    let mut up = link(keys);
    up["rate"] = json!("20mbit");
    let source = json!({"name": "transfers", "size": "100kB", "gap": "50ms"});
    json!({
        "duration": "30s", "seed": seed, "links": {"up": up, "down": up},
        "flows": [
            {"name": "there", "count": 2, "source": source, "tcp": tcp, "path": ["up"],
             "return_path": ["down"]},
            {"name": "bulk", "tcp": tcp, "path": ["up"], "return_path": ["down"]},
            {"name": "delay", "tcp": tcp, "path": ["up"], "rtt": "60ms"},
        ],
    })
}

#[test]
fn every_tcp_delivers_over_a_harsh_link() {
    for entry in TCPS {
        for profile in ["linux", "rfc", "ns2", "quic"] {
            let tcp = json!({"name": entry.name, "profile": profile});
            let json = transfers(&tcp, &harsh(), 3);
            let Ok(scenario) = Scenario::from_json(&json.to_string()) else { continue };
            let outcome = run(scenario);
            let flows = outcome.summary["flows"].as_array().unwrap();
            for flow in flows {
                let goodput = flow["goodput_bps"].as_f64().unwrap();
                assert!(goodput > 5_000.0, "{} {profile} {}: {goodput}", entry.name, flow["name"]);
            }
        }
    }
}

/// Linux adapts its reordering window and undoes reductions that were not needed, so mild
/// reordering costs it much less than a sender without RACK.
#[test]
fn senders_of_linux_stand_reordering() {
    let goodput = |tcp: Value, keys: Value| {
        let outcome = simulate(&json!({
            "duration": "30s", "warmup": "10s",
            "links": {"up": {"rate": "20mbit", "delay": "20ms"}, "down": link(&json!({}))},
            "flows": [{"name": "tcp", "tcp": tcp, "path": ["up"], "return_path": ["down"]}],
            "name": "reordering",
        }));
        let mut up = json!({"rate": "20mbit", "delay": "20ms"});
        for (key, value) in keys.as_object().unwrap() {
            up[key] = value.clone();
        }
        let impaired = simulate(&json!({
            "duration": "30s", "warmup": "10s", "links": {"up": up, "down": link(&json!({}))},
            "flows": [{"name": "tcp", "tcp": tcp, "path": ["up"], "return_path": ["down"]}],
        }));
        of_flow(&impaired, "goodput_bps") / of_flow(&outcome, "goodput_bps")
    };
    let mild = json!({"jitter": "3ms"});
    let linux = goodput(json!("cubic"), mild.clone());
    let plain = goodput(json!({"name": "sack", "profile": "rfc"}), mild);
    assert!(linux > 0.8, "{linux}");
    assert!(plain < linux, "{plain} {linux}");
    let copies = goodput(json!("cubic"), json!({"duplicate": 0.05}));
    assert!(copies > 0.95, "{copies}");
}

#[test]
fn calls_count_each_packet_once() {
    let call = |keys: Value| {
        simulate(&json!({
            "duration": "20s", "warmup": "2s",
            "links": {"up": link(&keys), "down": link(&keys)},
            "flows": [{"name": "call", "source": "call", "path": ["up"], "return_path": ["down"]}],
        }))
    };
    let clean = call(json!({}));
    let doubled = call(json!({"duplicate": 0.2}));
    let frames = |outcome: &Outcome| of_flow(outcome, "frames") - of_flow(outcome, "lost_frames");
    assert!(frames(&doubled) > 0.9 * frames(&clean));
    let harsh = call(json!({"jitter": "4ms", "duplicate": 0.05, "corrupt": 0.01}));
    assert!(of_flow(&harsh, "lost_frames") > 0.0);
}

/// A run in steps, with copies, gives the bytes of a run in one go.
#[test]
fn steps_and_copies_change_nothing() {
    for seed in 0..4 {
        let json = transfers(&json!("cubic"), &harsh(), seed);
        let expected = simulate(&json).summary.to_string();
        let mut steps = Simulation::new(scenario(&json));
        let mut at = Time::ZERO;
        while at < steps.end() {
            at = (at + Span::us(7_300 + 1000 * seed)).min(steps.end());
            steps.run_until(at, &mut |_| true).unwrap();
            if at.0.is_multiple_of(5) {
                steps = steps.clone();
            }
        }
        assert_eq!(steps.result().unwrap().summary.to_string(), expected, "seed {seed}");
    }
}

/// A changed delay applies to packets whose transmission starts from then on.
#[test]
fn a_delay_that_changes_keeps_its_jitter() {
    let source = json!({"name": "cbr", "rate": "8mbit", "packet": "1000B"});
    let outcome = simulate(&json!({
        "duration": "20s", "links": {"up": link(&json!({"jitter": "2ms"}))},
        "flows": [{"name": "udp", "source": source, "path": ["up"]}],
        "changes": [{"at": "10s", "links": {"up": {"delay": "60ms"}}},
                    {"at": "15s", "links": {"up": {"delay": "5ms"}}}],
    }));
    let mean = of_flow(&outcome, "delay_mean_s") * 1e3;
    assert!((mean - (20.08 * 10.0 + 60.08 * 5.0 + 5.08 * 5.0) / 20.0).abs() < 0.3, "{mean}");
    let max = of_flow(&outcome, "delay_max_s") * 1e3;
    assert!((60.0..62.2).contains(&max), "{max}");
}

/// Losses, copies and jitter of one half of the time have half of the effect of the whole time.
#[test]
fn impairments_that_change_are_those_of_two_runs() {
    let source = json!({"name": "cbr", "rate": "8mbit", "packet": "1000B"});
    let run = |keys: Value, changes: Value| {
        simulate(&json!({
            "duration": "20s", "links": {"up": link(&keys)}, "changes": changes,
            "flows": [{"name": "udp", "source": source, "path": ["up"]}],
        }))
    };
    let change = |keys: &Value| json!([{"at": "10s", "links": {"up": keys}}]);
    for (keys, none, counter) in [
        (json!({"loss": 0.2}), json!({"loss": 0}), "lost_on_wire_packets"),
        (json!({"duplicate": 0.2}), json!({"duplicate": 0}), "duplicated_packets"),
        (json!({"corrupt": 0.2}), json!({"corrupt": 0}), "corrupted_packets"),
        (json!({"jitter": "9ms"}), json!({"jitter": "0s"}), "reordered_packets"),
        (json!({"reorder": 0.2}), json!({"reorder": 0}), "reordered_packets"),
        (
            json!({"in_flight_limit": "9p"}),
            json!({"in_flight_limit": "1000000p"}),
            "lost_on_wire_packets",
        ),
    ] {
        let wire = json!({"jitter": "0s"});
        let whole = count(&run(keys.clone(), json!([])), counter) as f64;
        let late = count(&run(wire, change(&keys)), counter) as f64;
        let bare = count(&run(json!({}), change(&keys)), counter) as f64;
        let early = count(&run(keys.clone(), change(&none)), counter) as f64;
        assert!(whole > 1000.0, "{keys}: {whole}");
        for half in [late, bare, early] {
            assert!((half / whole - 0.5).abs() < 0.03, "{keys}: {half} of {whole}");
        }
    }
}

/// Changes by hand are recorded in the scenario, whose run has the same bytes.
#[test]
fn impairments_changed_by_hand_are_those_of_the_recorded_scenario() {
    let json = transfers(&json!("cubic"), &json!({"jitter": "0s"}), 3);
    let mut steps = Simulation::changeable(scenario(&json));
    let to = |ms: u64| Time::ZERO + Span::ms(ms);
    for (ms, change) in [
        (500, json!({"loss": 0.03, "jitter": {"size": "3ms", "distribution": "normal"}})),
        (900, json!({"corrupt": {"probability": 0.02, "correlation": 0.1}, "loss": 0.0})),
        (1500, json!({"reorder": {"probability": 0.1, "gap": 3}, "delay": "30ms"})),
        (2200, json!({"jitter": "0s", "slot": {"min": "1ms", "max": "4ms"}, "rate": "9mbit"})),
    ] {
        steps.run_until(to(ms), &mut |_| true).unwrap();
        steps.change(&json!({"links": {"up": change}})).unwrap();
    }
    steps.run_until(steps.end(), &mut |_| true).unwrap();
    let result = steps.result().unwrap();
    let recorded = result.summary["scenario"].clone();
    assert_eq!(recorded["changes"][1]["links"]["up"]["loss"], 0.0);
    assert_eq!(simulate(&recorded).summary.to_string(), result.summary.to_string());

    let mut plain = Simulation::changeable(scenario(&transfers(&json!("cubic"), &json!({}), 3)));
    plain.run_until(to(500), &mut |_| true).unwrap();
    let error = plain.change(&json!({"links": {"up": {"loss": 0.1}}})).unwrap_err().to_string();
    assert!(error.starts_with("links.up: has no wire in this simulation: give it"), "{error}");
    for (change, message) in [
        (json!({"loss": 1.5}), "links.up.loss: 1.5 is out of range"),
        (json!({"jiter": "5ms"}), "links.up.jiter: unknown key \"jiter\", did you mean \"jitter\""),
        (json!({"slot": {"max": "5ms"}}), "links.up.slot.min: is missing"),
        (json!({"outages": []}), "links.up.outages: unknown key"),
        (json!({}), "links.up: changes nothing: give rate, delay, up, an impairment or qdisc"),
    ] {
        let error = plain.change(&json!({"links": {"up": change}})).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
}

/// 40 Mbit/s of framed packets: cells of ATM for packets of 1000 bytes with 40 of overhead.
#[test]
fn overhead_takes_its_share_of_the_rate() {
    let goodput = |overhead: &str| {
        let source = json!({"name": "cbr", "rate": "60mbit", "packet": "1000B"});
        let mut up = json!({"rate": "40mbit"});
        if !overhead.is_empty() {
            up["overhead"] = json!(overhead);
        }
        let outcome = simulate(&json!({
            "duration": "5s", "warmup": "1s", "links": {"up": up},
            "flows": [{"name": "udp", "source": source, "path": ["up"]}],
        }));
        let busy = outcome.summary["links"]["up"]["utilisation"].as_f64().unwrap();
        assert!((busy - 1.0).abs() < 1e-6, "{overhead}: {busy}");
        count(&outcome, "departed_bytes") as f64 * 8.0 / 4e6
    };
    for (overhead, share) in [
        ("", 1.0),
        ("40 atm", 1000.0 / 1166.0),
        ("38 mpu 84", 1000.0 / 1038.0),
        ("-20", 1000.0 / 980.0),
    ] {
        let rate = goodput(overhead);
        assert!((rate / (40.0 * share) - 1.0).abs() < 1e-3, "{overhead}: {rate}");
    }
}

/// Behind a policer of 10 Mbit/s with a round-trip time of 40 ms, a transfer has far less than the
/// rate unless the burst is large; behind a queue it has all of it.
#[test]
fn a_transfer_has_far_less_than_the_rate_of_a_policer() {
    let goodput = |qdisc: &str, tcp: &str| {
        let outcome = simulate(&json!({
            "duration": "60s", "warmup": "20s",
            "links": {"up": {"rate": "1gbit", "delay": "20ms", "qdisc": qdisc}},
            "flows": [{"name": "tcp", "tcp": tcp, "path": ["up"], "rtt": "40ms"}],
        }));
        of_flow(&outcome, "goodput_bps") / 1e6
    };
    let small = goodput("police(rate=10mbit, burst=3000B)", "reno");
    let large = goodput("police(rate=10mbit, burst=100kB)", "reno");
    let shaped = goodput("tbf(rate=10mbit, burst=15kB, limit=100p)", "reno");
    assert!(small < 4.0, "{small}");
    assert!(large > 2.0 * small && large < 9.8, "{large} {small}");
    assert!(shaped > 9.3, "{shaped}");
}
