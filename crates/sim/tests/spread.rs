//! Paths that are chosen while a simulation runs: ECMP, flowlets, single packets, and links that
//! fail.

mod common;
use common::{flow, num, run};
use serde_json::{Map, Value, json};
use sojourn_aqm::units::{Span, Time};
use sojourn_sim::{Outcome, Scenario, Simulation};

/// Adds both directions of a connection of two nodes.
fn connect(links: &mut Map<String, Value>, a: &str, b: &str, rate: &str) {
    for name in [format!("{a}-{b}"), format!("{b}-{a}")] {
        links.insert(name, json!({"rate": rate, "delay": "5us", "qdisc": "droptail(limit=1000p)"}));
    }
}

/// Links of two leaves with `hosts` hosts each, and `spines` spines.
fn leaf_spine(hosts: usize, spines: usize, uplink: &str) -> Map<String, Value> {
    let mut links = Map::new();
    for leaf in 0..2 {
        (0..hosts).for_each(|i| {
            connect(&mut links, &format!("h{}", leaf * hosts + i), &format!("l{leaf}"), "1gbit");
        });
        (0..spines)
            .for_each(|s| connect(&mut links, &format!("l{leaf}"), &format!("s{s}"), uplink));
    }
    links
}

/// Connections of 16 hosts to one host each on the other of two leaves.
fn connections(spread: &str, size: &str) -> Value {
    let names =
        |from: usize| -> Vec<String> { (from..from + 16).map(|i| format!("h{i}")).collect() };
    json!({
        "duration": "400ms", "links": leaf_spine(16, 4, "10gbit"),
        "flows": [{"name": "f", "count": 16, "sender": names(0), "receiver": names(16),
            "spread": spread, "source": {"name": "poisson", "interval": "250us", "size": size}}]
    })
}

/// Packets that each of four links has sent.
fn packets(out: &Outcome, link: impl Fn(usize) -> String) -> Vec<f64> {
    (0..4).map(|i| num(&out.summary["links"][link(i)], "departed_packets")).collect()
}

/// Shares of four links.
fn shares(out: &Outcome, link: impl Fn(usize) -> String) -> Vec<f64> {
    let packets = packets(out, link);
    packets.iter().map(|n| n / packets.iter().sum::<f64>()).collect()
}

fn up(i: usize) -> String {
    format!("l0-s{i}")
}

/// Bytes of a result.
fn bytes(out: &Outcome) -> String {
    out.summary.to_string()
}

#[test]
fn connections_share_the_uplinks_evenly() {
    let out = run(&connections("connection", "20kB"));
    let of_link = shares(&out, up);
    // About 1600 connections of equal size.
    let sigma = (0.25_f64 * 0.75 / 1600.0).sqrt();
    assert!(of_link.iter().all(|share| (share - 0.25).abs() < 4.0 * sigma), "{of_link:?}");
    // The acknowledgements have paths of their own.
    let back = shares(&out, |i| format!("l1-s{i}"));
    assert!(back.iter().all(|share| (share - 0.25).abs() < 4.0 * sigma), "{back:?}");
    let payload: f64 =
        (0..4).map(|i| num(&out.summary["links"][up(i)], "goodput_bps")).sum::<f64>();
    let flows = out.summary["flows"].as_array().unwrap();
    let delivered: f64 = flows.iter().map(|f| num(f, "goodput_bps")).sum();
    assert!((payload / delivered - 1.0).abs() < 1e-9, "{payload} and {delivered}");
}

#[test]
fn a_connection_keeps_its_path() {
    let mut case = connections("connection", "20kB");
    case["flows"][0]["source"] = json!("bulk");
    case["flows"][0]["count"] = json!(1);
    case["flows"][0]["sender"] = json!("h0");
    case["flows"][0]["receiver"] = json!("h20");
    let out = run(&case);
    let used = packets(&out, up).into_iter().filter(|n| *n > 0.0).count();
    assert_eq!(used, 1);
    assert!(num(flow(&out, "f"), "goodput_bps") > 8e8);
}

#[test]
fn one_possible_path_gives_the_bytes_of_a_fixed_one() {
    let scenario = |fixed: bool| {
        let mut group = json!({"name": "f", "count": 2, "sender": "h{i}", "receiver": "h2",
            "source": "bulk"});
        if fixed {
            group["path"] = json!(["h{i}-l0", "l0-s0", "s0-l1", "l1-h2"]);
            group["return_path"] = json!(["h2-l1", "l1-s0", "s0-l0", "l0-h{i}"]);
        } else {
            group["spread"] = json!("connection");
        }
        let links = leaf_spine(2, 1, "500mbit");
        let out = run(&json!({"duration": "100ms", "links": links, "flows": [group]}));
        ["links", "flows"].map(|key| out.summary[key].to_string())
    };
    assert_eq!(scenario(true), scenario(false));
}

/// Fat tree with four ports per switch: two edges and two aggregation switches per pod, four cores.
fn fat_tree(hash: &str) -> Value {
    let mut links = Map::new();
    for pod in 0..2 {
        for edge in 0..2 {
            let name = format!("e{}", 2 * pod + edge);
            for host in 0..2 {
                connect(&mut links, &format!("h{}", 4 * pod + 2 * edge + host), &name, "10gbit");
            }
            (0..2).for_each(|a| connect(&mut links, &name, &format!("a{}", 2 * pod + a), "10gbit"));
        }
        for core in 0..4 {
            let above = format!("a{}", 2 * pod + core / 2);
            connect(&mut links, &above, &format!("c{core}"), "10gbit");
        }
    }
    json!({
        "duration": "100ms", "links": links,
        "flows": [{"name": "f", "count": 4, "sender": "h{i}", "receiver": ["h4", "h5", "h6", "h7"],
            "spread": "connection", "hash": hash,
            "source": {"name": "poisson", "interval": "62500ns", "size": "10kB"}}]
    })
}

#[test]
fn one_hash_function_in_all_switches_leaves_half_of_the_core_idle() {
    let core = |i: usize| format!("a{}-c{i}", i / 2);
    let own = shares(&run(&fat_tree("per-switch")), core);
    let sigma = (0.25_f64 * 0.75 / 1600.0).sqrt();
    assert!(own.iter().all(|share| (share - 0.25).abs() < 4.0 * sigma), "{own:?}");
    // The second switch repeats the choice of the first: the first of two, or the second of two.
    let shared = shares(&run(&fat_tree("shared")), core);
    assert_eq!([shared[1], shared[2]], [0.0, 0.0], "{shared:?}");
    assert!((shared[0] - 0.5).abs() < 4.0 * (0.25_f64 / 1600.0).sqrt(), "{shared:?}");
}

/// Eight bulk flows, and a change of uplink 1 of four, in both directions, at 100 ms and 200 ms.
fn failing(queued: &str, spread: Option<&str>) -> Value {
    let names =
        |from: usize| -> Vec<String> { (from..from + 8).map(|i| format!("h{i}")).collect() };
    let mut group = json!({"name": "f", "count": 8, "sender": names(0), "receiver": names(8),
        "source": "bulk"});
    match spread {
        Some(spread) => group["spread"] = spread.into(),
        None => {
            let way = |from: usize, [a, b]: [usize; 2]| -> Value {
                let path = |i: usize| {
                    let [one, other] = [i + from, i + 8 - from].map(|h| format!("h{h}"));
                    json!([
                        format!("{one}-l{a}"),
                        format!("l{a}-s1"),
                        format!("s1-l{b}"),
                        format!("l{b}-{other}")
                    ])
                };
                (0..8).map(path).collect()
            };
            (group["path"], group["return_path"]) = (way(0, [0, 1]), way(8, [1, 0]));
        }
    }
    let links = ["l0-s1", "s1-l0"];
    let change = |settings: &Value| -> Value {
        let rows = links.into_iter().map(|name| (name.to_string(), settings.clone()));
        rows.collect::<Map<_, _>>().into()
    };
    json!({
        "duration": "300ms", "sample": "10ms", "links": leaf_spine(8, 4, "1gbit"),
        "flows": [group],
        "changes": [
            {"at": "100ms", "links": change(&json!({"up": false, "queued": queued}))},
            {"at": "200ms", "links": change(&json!({"up": true}))}
        ]
    })
}

/// Packets that each uplink has sent by 100 ms, from 110 ms to 200 ms, and later.
fn in_parts(scenario: &Value) -> [Vec<u64>; 3] {
    let mut run = Simulation::new(Scenario::from_json(&scenario.to_string()).unwrap());
    let mut sent = |ms: u64| -> Vec<u64> {
        run.run_until(Time::ZERO + Span::ms(ms), &mut |_| true).unwrap();
        (0..4).map(|i| run.link(&up(i)).unwrap().departed_packets).collect()
    };
    let [before, from, to, end] = [100, 110, 200, 300].map(&mut sent);
    let minus = |a: &[u64], b: &[u64]| a.iter().zip(b).map(|(a, b)| a - b).collect();
    [before.clone(), minus(&to, &from), minus(&end, &to)]
}

#[test]
fn flows_leave_a_link_that_fails_and_come_back() {
    let [before, failed, after] = in_parts(&failing("drop", Some("connection")));
    assert!(before.iter().all(|n| *n > 1000), "all four are in use: {before:?}");
    assert_eq!(failed[1], 0, "{failed:?}");
    let busy = failed.iter().filter(|n| **n > 1000).count();
    assert_eq!(busy, 3, "the others are in use: {failed:?}");
    assert!(after[1] > 1000, "{after:?}");
    let fixed = in_parts(&failing("drop", None));
    assert_eq!(fixed[1], [0, 0, 0, 0], "a fixed path has no other link");
}

#[test]
fn a_failed_link_drops_or_holds_its_packets() {
    let dropped = |queued| {
        let out = run(&failing(queued, Some("connection")));
        (num(&out.summary["links"]["l0-s1"], "dropped_packets"), out)
    };
    let (lost, out) = dropped("drop");
    assert!(lost > 10.0, "{lost}");
    let retransmitted: f64 = out.summary["flows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| num(f, "retransmitted_packets"))
        .sum();
    assert!(retransmitted >= lost / 2.0, "{retransmitted} for {lost}");
    let (held, out) = dropped("hold");
    assert_eq!(held, 0.0);
    let link = &out.summary["links"]["l0-s1"];
    assert!(num(link, "sojourn_p99_s") > 0.09, "they waited for 100 ms: {link}");
}

#[test]
fn a_change_by_hand_and_a_saved_simulation_give_the_same_bytes() {
    for spread in ["connection", "flowlet(gap=20us)", "packet", "round-robin"] {
        let whole = failing("drop", Some(spread));
        let expected = bytes(&run(&whole));
        let mut by_hand = whole.clone();
        let changes = by_hand.as_object_mut().unwrap().remove("changes").unwrap();
        let start =
            |json: &Value| Simulation::changeable(Scenario::from_json(&json.to_string()).unwrap());
        let mut simulation = start(&by_hand);
        for (i, ms) in [100, 200].into_iter().enumerate() {
            simulation.run_until(Time::ZERO + Span::ms(ms), &mut |_| true).unwrap();
            simulation.change(&json!({"links": changes[i]["links"]})).unwrap();
            let ends = simulation.save();
            let mut other = simulation.fork();
            simulation = Simulation::load(&ends.unwrap()).unwrap();
            other.run_until(Time::ZERO + Span::ms(ms + 50), &mut |_| true).unwrap();
            simulation.run_until(Time::ZERO + Span::ms(ms + 50), &mut |_| true).unwrap();
            assert_eq!(bytes(&other.result().unwrap()), bytes(&simulation.result().unwrap()));
        }
        simulation.run_until(simulation.end(), &mut |_| true).unwrap();
        assert_eq!(bytes(&simulation.result().unwrap()), expected, "{spread}");
    }
}

#[test]
fn the_order_of_links_does_not_matter() {
    let case = connections("connection", "20kB");
    let expected = bytes(&run(&case));
    let text = case.to_string();
    let mut turned = case.clone();
    let links = turned["links"].as_object_mut().unwrap();
    *links = std::mem::take(links).into_iter().rev().collect();
    let links =
        |out: &str| -> Value { serde_json::from_str::<Value>(out).unwrap()["links"].clone() };
    assert_eq!(links(&expected), links(&bytes(&run(&turned))), "{} bytes", text.len());
}

#[test]
fn packets_and_flowlets_spread_more_finely() {
    let one = |spread: &str| {
        let mut case = connections(spread, "20kB");
        case["flows"][0] = json!({"name": "f", "sender": "h0", "receiver": "h20",
            "spread": spread, "source": "bulk", "tcp": "cubic"});
        run(&case)
    };
    let out = one("round-robin");
    let turns = packets(&out, up);
    let [least, most] = [f64::min, f64::max].map(|f| turns.iter().copied().reduce(f).unwrap());
    assert!(most - least <= 4.0 && least > 1000.0, "but for drops before: {turns:?}");
    let random = shares(&one("packet"), up);
    assert!(random.iter().all(|share| (share - 0.25).abs() < 0.01), "{random:?}");
    let used = |spread: &str| packets(&one(spread), up).iter().filter(|n| **n > 0.0).count();
    assert_eq!(used("flowlet(gap=1ns)"), 4, "each burst is a flowlet");
    assert_eq!(used("flowlet(gap=10s)"), 1);
}

#[test]
fn the_canonical_form_has_a_path_and_gives_the_same_bytes() {
    let case = connections("flowlet(gap=50us)", "20kB");
    let scenario = Scenario::from_json(&case.to_string()).unwrap();
    let canonical = scenario.canonical();
    let group = &canonical["flows"][0];
    assert_eq!(group["path"][3], json!(["h3-l0", "l0-s0", "s0-l1", "l1-h19"]));
    assert_eq!(group["return_path"][3], json!(["h19-l1", "l1-s0", "s0-l0", "l0-h3"]));
    assert_eq!(group["spread"], json!({"name": "flowlet", "gap": "50us"}));
    assert_eq!(group["hash"], "per-switch");
    let again = Scenario::from_json(&canonical.to_string()).unwrap();
    assert_eq!(again.canonical(), canonical);
    assert_eq!(bytes(&sojourn_sim::run(&again)), bytes(&sojourn_sim::run(&scenario)));
}

#[test]
fn wrong_spreads_and_outages_are_refused() {
    let message = |edit: &dyn Fn(&mut Value)| {
        let mut case = failing("drop", Some("connection"));
        edit(&mut case);
        Scenario::from_json(&case.to_string()).unwrap_err().to_string()
    };
    let group = |key: &'static str, value: Value| {
        message(&move |case: &mut Value| case["flows"][0][key] = value.clone())
    };
    let cases = [
        (
            group("spread", json!("connections")),
            "flows.f.spread: unknown spread \"connections\", did",
        ),
        (group("spread", json!("packet(gap=1ms)")), "flows.f.spread.gap: unknown parameter"),
        (group("spread", json!("flowlet(gap=5)")), "flows.f.spread.gap: \"5\" has no unit"),
        (group("spread", json!("flowlet(gpa=5us)")), "flows.f.spread.gpa: unknown parameter"),
        (group("hash", json!("sahred")), "flows.f.hash: unknown choice \"sahred\", did you mean"),
        (group("receiver", json!("h99")), "flows.f.receiver: unknown node \"h99\", did you mean"),
        (group("sender", json!("h8")), "flows.f.receiver: h8 sends to itself"),
        (group("path", json!(["h0-l0"])), "flows.f.return_path: does not lead back"),
        (group("path", json!(["h0-l0", "s1-l1"])), "flows.f.path: \"s1-l1\" does not start at l0"),
        (group("return_path", json!(["h0-l0"])), "flows.f.path: is missing"),
        (
            message(&|case| {
                let group = case["flows"][0].as_object_mut().unwrap();
                group.remove("spread");
            }),
            "flows.f.path: is missing",
        ),
        (
            message(&|case| {
                case["flows"][0].as_object_mut().unwrap().remove("sender");
            }),
            "flows.f.sender: is missing: spread without path needs the names of the hosts",
        ),
        (
            message(&|case| {
                let links = case["links"].as_object_mut().unwrap();
                (0..4).for_each(|s| drop(links.remove(&format!("s{s}-l1"))));
            }),
            "flows.f.path: no links lead from h0 to h8",
        ),
        (
            message(&|case| {
                case["flows"][0] = json!({"name": "f", "path": ["h0-l0"], "hash": "shared"});
            }),
            "flows.f.hash: requires spread",
        ),
        (
            message(&|case| case["changes"][1]["links"]["l0-s1"]["queued"] = json!("hold")),
            "changes.1.links.l0-s1.queued: goes with up = false",
        ),
        (
            message(&|case| case["changes"][0]["links"]["l0-s1"]["queued"] = json!("keep")),
            "changes.0.links.l0-s1.queued: unknown choice \"keep\"",
        ),
        (
            message(&|case| {
                case["links"]["l0-s1"]["trace"] = json!({"opportunities_ms": [1, 2]});
            }),
            "changes.0.links.l0-s1.up: is for links with a rate",
        ),
    ];
    for (text, start) in cases {
        assert!(text.starts_with(start), "{text:?}, not {start:?}");
    }
}

#[test]
fn a_rate_that_changes_while_a_link_is_down_counts_when_it_comes_up() {
    let mut case = failing("hold", Some("connection"));
    case["changes"].as_array_mut().unwrap().push(json!({"at": "150ms",
        "links": {"l0-s1": {"rate": "100mbit"}}}));
    let mut run = Simulation::new(Scenario::from_json(&case.to_string()).unwrap());
    let mut rate = |ms| {
        run.run_until(Time::ZERO + Span::ms(ms), &mut |_| true).unwrap();
        run.link("l0-s1").unwrap().rate.0
    };
    assert_eq!([99, 101, 160, 201].map(&mut rate), [1_000_000_000, 0, 0, 100_000_000]);
}
