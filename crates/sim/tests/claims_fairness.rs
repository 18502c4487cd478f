//! Claims of the authors of BLUE, COBALT, CHOKe, FRED, SRED, SFB, AFD and AF-QCN: unresponsive
//! flows are confined, fragile ones protected, shares made more even. Bounds are loose compared
//! with the observed value, and tight compared with a discipline without the claimed effect in the
//! same run.

mod common;
use common::{flow, num, run};
use serde_json::{Value, json};
use sojourn_sim::{Column, Outcome};

/// Ten TCP flows and an unresponsive source of rate `flood` over 10 mbit.
fn ten_and_a_flood(qdisc: &Value, flood: &str) -> Outcome {
    run(&json!({
        "duration": "120s", "warmup": "20s",
        "links": {"l": {"rate": "10mbit", "delay": "10ms", "qdisc": qdisc}},
        "flows": [{"name": "tcp", "count": 10, "path": ["l"], "rtt": "60ms",
                   "source": {"name": "bulk", "start": "uniform(0s, 1s)"},
                   "tcp": {"name": "newreno", "packet": "1kB"}},
                  {"name": "udp", "path": ["l"],
                   "source": {"name": "cbr", "rate": flood, "packet": "1kB", "jitter": 0.5}}]
    }))
}

fn goodput_mbit(out: &Outcome, name: &str) -> f64 {
    num(flow(out, name), "goodput_bps") / 1e6
}

/// Goodputs of the `n` flows of a group.
fn group(out: &Outcome, name: &str, n: usize) -> Vec<f64> {
    (0..n).map(|i| goodput_mbit(out, &format!("{name}.{i}"))).collect()
}

fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

/// Jain's index; 1 if all are equal.
fn jain(x: &[f64]) -> f64 {
    mean(x) * mean(x) / mean(&x.iter().map(|x| x * x).collect::<Vec<_>>())
}

fn gauge<'a>(out: &'a Outcome, name: &str) -> &'a [f64] {
    let name = format!("links/l/gauge/{name}");
    match &out.columns.iter().find(|(n, _)| *n == name).unwrap_or_else(|| panic!("no {name}")).1 {
        Column::F64(values) => values,
        _ => panic!("{name} is no quantity"),
    }
}

#[test]
fn blue_rises_on_overflow_and_falls_when_idle() {
    // One packet per second samples the probability.
    let out = run(&json!({
        "duration": "120s", "sample": "1s",
        "links": {"l": {"rate": "10mbit", "delay": "10ms",
                        "qdisc": {"name": "blue", "limit": "100p"}}},
        "flows": [{"name": "probe", "path": ["l"],
                   "source": {"name": "cbr", "rate": "1600bit", "packet": "200B"}},
                  {"name": "udp", "path": ["l"],
                   "source": {"name": "cbr", "rate": "12mbit", "packet": "1kB", "start": "10s",
                              "stop": "40s"}}]
    }));
    let pm = gauge(&out, "pm");
    assert!(pm[..10].iter().all(|pm| *pm == 0.0));
    assert!(pm[10..16].is_sorted() && pm[15] > 0.1, "rises on overflow: {pm:?}");
    // One packet in six is excess; a step is 0.0025.
    assert!((pm[38] - 1.0 / 6.0).abs() < 0.01, "not above the excess: {pm:?}");
    // From there 67 s to 0, at 0.00025 per 100 ms.
    assert!(pm[42..].is_sorted_by(|a, b| a >= b), "{pm:?}");
    assert!((pm[42] - pm[72] - 0.075).abs() < 0.002, "{pm:?}");
    assert_eq!(pm[115], 0.0);
}

#[test]
fn choke_penalises_a_flood_without_per_flow_state() {
    // Section 3 of the paper: 1 mbit, 32 TCPs, a source of 2 mbit, thresholds of 100 and 200 of 300
    // packets of 1 kB. There the source gets 96 % of the link with RED and 23 % with CHOKe.
    let share = |qdisc: Value| {
        let out = run(&json!({
            "duration": "600s", "warmup": "100s",
            "links": {"l": {"rate": "1mbit", "delay": "1ms", "qdisc": qdisc}},
            "flows": [{"name": "tcp", "count": 32, "path": ["l"], "rtt": "6ms",
                       "source": {"name": "bulk", "start": "uniform(0s, 10s)"},
                       "tcp": {"name": "reno", "packet": "1kB"}},
                      {"name": "udp", "path": ["l"],
                       "source": {"name": "cbr", "rate": "2mbit", "packet": "1kB"}}]
        }));
        let tcp: f64 = group(&out, "tcp", 32).iter().sum();
        let udp = goodput_mbit(&out, "udp");
        udp / (udp + tcp)
    };
    let red = json!({"name": "red", "limit": "300p", "min_th": "100p", "max_th": "200p"});
    let mut choke = red.clone();
    choke["name"] = json!("choke");
    let mut three = choke.clone();
    three["candidates"] = json!(3);
    let [red, choke, three] = [red, choke, three].map(share);
    println!("share of the flood: RED {red:.3}, CHOKe {choke:.3}, of three {three:.3}");
    assert!(red > 0.95 && (0.2..0.28).contains(&choke) && three < 0.06, "{red} {choke} {three}");
}

#[test]
fn afd_gives_equal_shares_to_floods_of_any_rate() {
    let rates = ["2mbit", "10mbit", "20mbit"];
    let flood = |i: usize| {
        json!({"name": format!("udp{i}"), "path": ["l"],
               "source": {"name": "cbr", "rate": rates[i], "packet": "1kB", "jitter": 0.5}})
    };
    let out = run(&json!({
        "duration": "120s", "warmup": "20s",
        "links": {"l": {"rate": "10mbit", "delay": "10ms", "qdisc": "afd"}},
        "flows": [flood(0), flood(1), flood(2)]
    }));
    // Max-min fair: 2, 4 and 4 mbit, of which 28 of every 1000 bytes are headers.
    for (i, expected) in [(0, 1.944), (1, 3.888), (2, 3.888)] {
        let got = goodput_mbit(&out, &format!("udp{i}"));
        assert!((got / expected - 1.0).abs() < 0.03, "{i}: {got}, not {expected}");
    }
}

#[test]
fn afd_gives_tcp_the_mean_of_a_sawtooth_below_the_fair_share() {
    let shares = |name: &str| {
        let out = run(&json!({
            "duration": "120s", "warmup": "20s",
            "links": {"l": {"rate": "10mbit", "delay": "10ms",
                            "qdisc": {"name": name, "limit": "100p"}}},
            "flows": [{"name": "tcp", "path": ["l"], "rtt": "60ms",
                       "tcp": {"name": "newreno", "packet": "1kB"}},
                      {"name": "udp", "path": ["l"],
                       "source": {"name": "cbr", "rate": "10mbit", "packet": "1kB",
                                  "jitter": 0.5}}]
        }));
        (goodput_mbit(&out, "tcp"), goodput_mbit(&out, "udp"))
    };
    let (tcp, udp) = shares("droptail");
    println!("droptail: TCP {tcp:.2}, flood {udp:.2}");
    assert!(tcp < 0.05 * udp);
    // The flood always gets the fair share. The TCP flow is dropped from as soon as it exceeds the
    // share, so the share is the peak of its sawtooth. Its mean is three quarters of that, or less
    // when it loses several packets.
    let (tcp, udp) = shares("afd");
    println!("afd: TCP {tcp:.2}, flood {udp:.2}");
    assert!((0.55..0.85).contains(&(tcp / udp)), "{tcp} and {udp}");
    assert!(jain(&[tcp, udp]) > 0.93);
    // Ten TCPs: none has less than two thirds of the mean share, and the flood at most twice it.
    let out = ten_and_a_flood(&json!({"name": "afd", "limit": "100p"}), "10mbit");
    let (all, udp) = (group(&out, "tcp", 10), goodput_mbit(&out, "udp"));
    let fair = (all.iter().sum::<f64>() + udp) / 11.0;
    println!("afd: ten TCPs {all:.2?}, flood {udp:.2}");
    assert!(all.iter().all(|x| *x > 0.66 * fair) && udp < 2.0 * fair, "{all:?} {udp}");
}

#[test]
fn sfb_confines_a_flood_that_blue_does_not() {
    for flood in ["10mbit", "20mbit"] {
        let shares = |name: &str| {
            let out = ten_and_a_flood(&json!({"name": name, "limit": "200p"}), flood);
            (mean(&group(&out, "tcp", 10)), goodput_mbit(&out, "udp"))
        };
        let ((tcp, udp), (with_blue, blue)) = (shares("sfb"), shares("blue"));
        println!("{flood}: BLUE {with_blue:.2} and {blue:.2}, SFB {tcp:.2} and {udp:.2}");
        assert!(blue > 8.0 && with_blue < 0.15, "BLUE: {with_blue} and {blue}");
        // Mean share: 0.9 mbit.
        assert!(udp < 2.0 * 0.9 && tcp > 0.75 * 0.9, "SFB: {tcp} and {udp}");
    }
}

#[test]
fn fred_protects_a_fragile_flow_and_confines_a_flood() {
    let settings =
        |name: &str| json!({"name": name, "limit": "100p", "min_th": "10p", "max_th": "40p"});
    let call = |name: &str| {
        let out = run(&json!({
            "duration": "120s", "warmup": "20s",
            "links": {"l": {"rate": "10mbit", "delay": "10ms", "qdisc": settings(name)}},
            "flows": [{"name": "tcp", "count": 10, "path": ["l"], "rtt": "60ms",
                       "source": {"name": "bulk", "start": "uniform(0s, 1s)"},
                       "tcp": {"name": "newreno", "packet": "1kB"}},
                      {"name": "call", "path": ["l"],
                       "source": {"name": "cbr", "rate": "64kbit", "packet": "200B"}}]
        }));
        num(flow(&out, "call"), "lost_packets")
    };
    let (red, fred) = (call("red"), call("fred"));
    println!("of the 4000 packets of a call RED takes {red}, FRED {fred}");
    assert!(red > 40.0 && fred == 0.0);
    let udp = |name: &str| goodput_mbit(&ten_and_a_flood(&settings(name), "10mbit"), "udp");
    let (red, fred) = (udp("red"), udp("fred"));
    println!("a flood of 10 mbit: RED {red:.2}, FRED {fred:.2}");
    assert!(red > 8.0 && fred < 3.0);
}

#[test]
fn sred_estimates_the_number_of_flows() {
    for n in [5, 20, 100] {
        let out = run(&json!({
            "duration": "120s", "warmup": "20s", "sample": "100ms",
            "links": {"l": {"rate": "10mbit", "delay": "10ms",
                            "qdisc": {"name": "sred", "limit": "100p"}}},
            "flows": [{"name": "tcp", "count": n, "path": ["l"], "rtt": "uniform(50ms, 70ms)",
                       "source": {"name": "bulk", "start": "uniform(0s, 1s)"},
                       "tcp": {"name": "sack", "packet": "1kB"}}]
        }));
        // Equal flows give n; unequal flows give the inverse of the sum of squared shares, which is
        // less.
        let active = 1.0 / mean(&gauge(&out, "P")[200..]);
        println!("{n} flows: {active:.1}");
        assert!((0.75..1.05).contains(&(active / f64::from(n))), "{n}: {active}");
    }
}

#[test]
fn cobalt_controls_the_delay_of_a_flood() {
    let link = |name: &str, flood: &str| {
        let out = ten_and_a_flood(&json!({"name": name, "limit": "1000p"}), flood);
        out.summary["links"]["l"].clone()
    };
    let wait = |link: &Value| num(link, "sojourn_mean_s");
    let [codel, cobalt] = ["codel", "cobalt"].map(|name| link(name, "1kbit"));
    println!("ten TCPs: CoDel {:.4}, COBALT {:.4}", wait(&codel), wait(&cobalt));
    assert!(wait(&codel) < 0.015 && wait(&cobalt) < 0.015);
    assert!(num(&codel, "utilisation") > 0.95 && num(&cobalt, "utilisation") > 0.95);
    let [codel, cobalt] = ["codel", "cobalt"].map(|name| link(name, "12mbit"));
    println!("and a flood: CoDel {:.4}, COBALT {:.4}", wait(&codel), wait(&cobalt));
    assert!(wait(&codel) > 0.1, "CoDel has no answer to it: {}", wait(&codel));
    assert!(wait(&cobalt) < 0.015 && num(&cobalt, "utilisation") > 0.99);
}

#[test]
fn af_qcn_shares_more_evenly_than_a_plain_queue() {
    // Five flows of 10 ms and five of 40 ms, whose windows grow four times more slowly.
    let shares = |qdisc: Value| {
        let five = |name: &str, rtt: &str| {
            json!({"name": name, "count": 5, "path": ["l"], "rtt": rtt,
                   "source": {"name": "bulk", "start": "uniform(0s, 1s)"},
                   "tcp": {"name": "newreno", "packet": "1kB"}})
        };
        let out = run(&json!({
            "duration": "70s", "warmup": "20s",
            "links": {"l": {"rate": "200mbit", "delay": "1ms", "qdisc": qdisc}},
            "flows": [five("near", "10ms"), five("far", "40ms")]
        }));
        let used = num(&out.summary["links"]["l"], "utilisation");
        (jain(&[group(&out, "near", 5), group(&out, "far", 5)].concat()), used)
    };
    let plain = shares(json!({"name": "droptail", "limit": "200p"}));
    let qcn = shares(json!({"name": "af_qcn", "limit": "200p", "a": 0}));
    let fair = shares(json!({"name": "af_qcn", "limit": "200p"}));
    println!("Jain and utilisation: plain {plain:.3?}, QCN {qcn:.3?}, AF-QCN {fair:.3?}");
    assert!(fair.0 > plain.0 + 0.05 && fair.0 > qcn.0 + 0.1 && fair.1 > 0.95);
}
