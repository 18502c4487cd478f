//! Large scenarios: long paths, many links, flows and changes. They cost time and memory in
//! proportion to their size, and every phase of a run can be stopped.

mod common;
use allocation_counter::measure;
use common::{flow, num, run};
use serde_json::{Map, Value, json};
use sojourn_sim::{Progress, Scenario};

/// Names of `n` links, and the links themselves.
fn links(n: usize, link: &Value) -> (Vec<String>, Map<String, Value>) {
    let names: Vec<String> = (0..n).map(|i| format!("l{i}")).collect();
    let links = names.iter().map(|name| (name.clone(), link.clone())).collect();
    (names, links)
}

/// Number of calls of `progress` until the run ends or `progress` has been called `most` times, and
/// the last report.
fn calls(scenario: &Value, most: usize) -> (usize, Option<Progress>) {
    let scenario = Scenario::from_json(&scenario.to_string()).unwrap_or_else(|e| panic!("{e}"));
    let (mut calls, mut last) = (0, None);
    let outcome = sojourn_sim::run_with_progress(&scenario, &mut |so_far| {
        (calls, last) = (calls + 1, Some(so_far));
        calls < most
    });
    assert_eq!(outcome.is_none(), calls == most, "a run that is stopped has no outcome");
    (calls, last)
}

#[test]
fn a_path_of_65538_links_is_crossed_to_its_end() {
    const LINKS: usize = 65_538;
    // 1000 B at 8 gbit take 1 us; with 1 us of delay each link takes 2 us, all links 131.076 ms.
    let (path, links) = links(LINKS, &json!({"rate": "8gbit", "delay": "1us"}));
    let source = json!({"name": "cbr", "rate": "80kbit", "packet": "1000B"});
    let out = run(&json!({
        "duration": "1s", "warmup": "0s", "links": links,
        "flows": [{"name": "call", "path": path, "source": source}],
    }));
    let call = flow(&out, "call");
    assert_eq!(num(call, "received_packets"), num(call, "sent_packets") - 1.0, "one every 100 ms");
    assert_eq!(num(call, "delay_max_s"), 0.131_076);
    let departed = |i: usize| &out.summary["links"][&path[i]]["departed_packets"];
    assert_eq!(
        [departed(0), departed(LINKS - 1)],
        [&call["sent_packets"], &call["received_packets"]]
    );
    let goodput = &out.summary["links"][&path[LINKS - 1]]["goodput_bps"];
    assert_eq!(goodput, &call["goodput_bps"]);
}

#[test]
fn a_link_is_crossed_once_on_a_path() {
    let (mut path, links) = links(3, &json!({"rate": "1mbit"}));
    path.push("l1".into());
    let scenario =
        json!({"duration": "1s", "links": links, "flows": [{"name": "a", "path": path}]});
    let error = Scenario::from_json(&scenario.to_string()).unwrap_err().to_string();
    assert_eq!(error, "flows.a.path.3: link \"l1\" is crossed twice");
}

#[test]
fn paths_of_all_flows_together_are_bounded() {
    let (path, links) = links(100, &json!({"rate": "1mbit"}));
    let mut path: Vec<String> = path;
    path[0] = "l{i}".into();
    let flows = json!([{"name": "a", "count": 600_000, "path": path}]);
    let scenario = json!({"duration": "1s", "links": links, "flows": flows});
    let error = Scenario::from_json(&scenario.to_string()).unwrap_err().to_string();
    let text = "600000 paths have 60000000 links, allowed for all flows: 50000000";
    assert_eq!(error, format!("flows.a.path: {text}"));
}

/// As `an_idle_link_costs_two_kilobytes` of sojourn-aqm, for a whole run: definition, link, events
/// and report. The text of the scenario is not counted.
#[test]
fn an_idle_link_costs_two_kilobytes_in_a_run() {
    for name in ["droptail", "red", "codel", "pie"] {
        let most = |n: usize| {
            let (path, links) = links(n, &json!({"rate": "1mbit", "qdisc": name}));
            let flows = json!([{"name": "a", "path": path[..1], "source": "cbr"}]);
            let text = json!({"duration": "2s", "links": links, "flows": flows}).to_string();
            let used = measure(|| {
                let scenario = Scenario::from_json(&text).expect("valid");
                drop(sojourn_sim::run(scenario));
            });
            used.bytes_max
        };
        let each = (most(5000) - most(1000)) / 4000;
        assert!(each <= 2200, "{name}: {each} bytes per idle link, report included");
    }
}

#[test]
fn setting_up_and_reporting_can_be_stopped() {
    let flows = |links: &Map<String, Value>, count: usize| {
        let source = json!({"name": "bulk", "start": "900ms"});
        let flows = json!([{"name": "a", "count": count, "path": ["l0"], "source": source}]);
        json!({"duration": "1s", "links": links, "flows": flows})
    };
    for scenario in [
        flows(&links(1, &json!({"rate": "1mbit"})).1, 20_000),
        flows(&links(9000, &json!({"rate": "1mbit"})).1, 1),
    ] {
        let (stopped, last) = calls(&scenario, 2);
        assert_eq!((stopped, last.unwrap().share), (2, 0.0), "while it was set up");
        let (all, _) = calls(&scenario, usize::MAX);
        let (stopped, last) = calls(&scenario, all);
        assert_eq!((stopped, last.unwrap().share), (all, 1.0), "while it was reported");
    }
}

#[test]
fn looking_at_flows_counts_as_work() {
    let scenario = json!({
        "duration": "1s", "sample": "10ms", "sample_flows": false,
        "links": {"up": {"rate": "1mbit"}},
        "flows": [{"name": "a", "count": 4000, "path": ["up"],
            "source": {"name": "bulk", "start": "900ms"}}],
    });
    // 100 looks at 4,001 links and flows are six times 65,536.
    let (calls, _) = calls(&scenario, usize::MAX);
    assert!(calls >= 6, "{calls}");
}

#[test]
fn an_endless_moment_can_be_stopped() {
    // 12,500 bytes take a nanosecond, and no delay: a round trip takes no time.
    for tcp in ["bbr", "cubic", "newreno"] {
        let scenario = json!({
            "duration": "10s", "links": {"up": {"rate": "100tbit", "delay": "0ms"}},
            "flows": [{"name": "a", "path": ["up"], "tcp": tcp}],
        });
        assert_eq!(calls(&scenario, 20).0, 20, "{tcp}");
    }
}

#[test]
fn changes_of_many_links_and_groups_come_in_order() {
    const N: usize = 20_000;
    let (path, mut links) = links(N, &json!({"rate": "1mbit"}));
    for link in links.values_mut().step_by(2) {
        link["trace"] = json!({"t_ns": [0, 1_000_000], "rate_bps": [1_000_000, 2_000_000]});
    }
    let group = |i: usize| {
        let source = json!({"name": "bulk", "start": "3s"});
        json!({"name": format!("g{i}"), "path": [path[i]], "source": source})
    };
    let flows: Vec<Value> = (0..N).map(group).collect();
    let change = |i: usize| {
        let link = json!({path[i].clone(): {"delay": "2ms"}});
        json!({"at": format!("{}us", 10 + i), "leave": [format!("g{i}")], "links": link})
    };
    let changes: Vec<Value> = (0..N).map(change).collect();
    let out = run(&json!({"duration": "2s", "links": links, "flows": flows, "changes": changes}));
    let flows = out.summary["flows"].as_array().unwrap();
    assert_eq!(flows.len(), N);
    assert!(flows.iter().all(|f| f["sent_packets"] == 0), "all left before they began");
}
