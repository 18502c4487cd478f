use crate::config::links::parse_links;
use crate::config::scenario::Scenario;
use crate::output::outcome::Column;
use serde_json::{Value as Json, json};

fn refusal(count: usize, qdisc: Json) -> Option<String> {
    let link = json!({"rate": "1mbit", "qdisc": qdisc});
    let map = (0..count).map(|i| (format!("l{i}"), link.clone())).collect();
    parse_links(&Json::Object(map)).err().map(|e| e.to_string())
}

#[test]
fn links_are_limited_by_the_memory_that_they_take() {
    let many = refusal(800_001, json!("droptail")).expect("too many");
    assert!(
        many.ends_with(
            "800001 links with their disciplines take 4001 MB of memory, allowed: 4000 MB"
        ),
        "{many}"
    );
    let large = refusal(800, json!({"name": "fq_codel", "flows": 65_536})).expect("too large");
    assert!(large.contains("800 links with their disciplines take "), "{large}");
    // To build all of them would take minutes.
    let large = refusal(200_000, json!({"name": "fq_codel", "flows": 65_536}));
    let large = large.expect("too large");
    assert!(large.contains("200000 links with their disciplines take 188"), "{large}");
    assert_eq!(refusal(100, json!("droptail")), None);
}

#[test]
fn flows_are_limited_by_the_memory_that_they_take() {
    let fit = |count: u64, source: &str, duration: &str| {
        let scenario = json!({
            "duration": duration,
            "links": {"up": {"rate": "1gbit", "qdisc": "droptail"}},
            "flows": [{"name": "a", "count": count, "path": ["up"], "source": source}],
        });
        Scenario::from_json(&scenario.to_string()).err().map(|e| e.to_string())
    };
    assert_eq!(fit(1_000_000, "bulk", "10s"), None);
    assert_eq!(fit(100_000, "cbr", "10s"), None);
    let text = fit(1_000_000, "cbr", "10s").expect("too many histograms");
    assert!(text.starts_with("the scenario can take 16"), "{text}");
    assert!(text.contains("1000000 delays of UDP flows: 143"), "{text}");
}

/// Runs of sources with a rate of their own, then of bulk transfers as well, over one to three
/// links.
fn small_scenarios() -> Vec<Scenario> {
    let flows = [
        json!({"source": {"name": "cbr", "rate": "700kbit", "packet": "40B"}, "count": 2}),
        json!({"source": {"name": "cbr", "rate": "1mbit", "stop": "500ms"}}),
        json!({"source": {"name": "onoff", "rate": "3mbit", "packet": "100B"}, "count": 5}),
        json!({"source": "bulk", "count": 3}),
        json!({"source": {"name": "bulk", "stop": "300ms"}, "tcp": "bbr"}),
    ];
    let paths = [
        (json!(["a"]), json!([])),
        (json!(["a", "b"]), json!(["c"])),
        (json!(["b"]), json!(["a", "c"])),
    ];
    let mut scenarios = Vec::new();
    for qdisc in ["droptail", "codel", "fq_codel", "cake", "htb", "dualpi2"] {
        for (k, (path, back)) in paths.iter().enumerate() {
            for n in 1..=flows.len() {
                let group = |(i, flow): (usize, &Json)| {
                    let mut flow = flow.clone();
                    flow["name"] = json!(format!("f{i}"));
                    flow["path"] = path.clone();
                    flow["rtt"] = json!("10ms");
                    if flow["source"].get("name").is_none_or(|name| name == "bulk") {
                        flow["return_path"] = back.clone();
                    }
                    flow
                };
                let scenario = json!({
                    "duration": "800ms", "sample": "7ms", "packet_log": true,
                    "sample_flows": k != 1,
                    "links": {
                        "a": {"rate": "5mbit", "qdisc": qdisc},
                        "b": {"rate": "20mbit", "qdisc": "codel"},
                        "c": {"rate": "2mbit"},
                    },
                    "flows": flows.iter().take(n).enumerate().map(group).collect::<Vec<_>>(),
                });
                scenarios.push(Scenario::from_json(&scenario.to_string()).expect("valid"));
            }
        }
    }
    scenarios
}

#[test]
fn the_forecast_of_logs_and_series_is_an_upper_bound_within_reason() {
    for scenario in small_scenarios() {
        let text = scenario.canonical().to_string();
        let (logged, values) =
            (super::logged_packets(&scenario.contents()), super::values(&scenario.contents()));
        let outcome = crate::run(scenario);
        let len = |column: &Column| match column {
            Column::F64(v) => v.len(),
            Column::U64(v) => v.len(),
            Column::U32(v) => v.len(),
            Column::U8(v) => v.len(),
            Column::Bool(v) => v.len(),
        };
        let sum = |is: &dyn Fn(&str) -> bool| -> usize {
            outcome.columns.iter().filter(|(name, _)| is(name)).map(|(_, c)| len(c)).sum()
        };
        let rows = sum(&|name| name.starts_with("packet_log/") && name.ends_with("/left_s"));
        let known = !text.contains("bulk"); // the number of its packets is not predicted
        assert!(rows > 0 && (rows <= logged || !known), "{rows} rows, predicted {logged}: {text}");
        assert!(logged <= 6 * rows, "{rows} rows, predicted {logged}: {text}");
        let series = ["series/", "links/", "groups/", "flows/"];
        let recorded = sum(&|name| series.iter().any(|kind| name.starts_with(kind))) as u64;
        assert!(
            recorded > 0 && recorded <= values,
            "{recorded} values, predicted {values}: {text}"
        );
        assert!(values <= 2 * recorded, "{recorded} values, predicted {values}: {text}");
    }
}

#[test]
fn packet_logs_and_series_are_part_of_the_forecast() {
    let refusal = |extra: Json| {
        let mut scenario = json!({
            "duration": "1s",
            "links": {"a": {"rate": "100gbit"}},
            "flows": [{"name": "f", "path": ["a"],
                "source": {"name": "cbr", "rate": "100gbit", "packet": "40B"}}],
        });
        let extra = extra.as_object().expect("a table");
        extra.iter().for_each(|(key, value)| scenario[key] = value.clone());
        Scenario::from_json(&scenario.to_string()).err().map(|e| e.to_string())
    };
    assert_eq!(refusal(json!({})), None);
    let text = refusal(json!({"packet_log": true})).expect("312.5 million packets");
    assert!(text.contains("(312500001 packets in logs: 28"), "{text}");
    assert_eq!(refusal(json!({"packet_log": true, "duration": "100ms"})), None);
    let text = refusal(json!({"packet_log": true, "sample": "100us"})).expect("both");
    assert!(text.contains("210000 values in time series: 3 MB"), "{text}");
}

#[test]
fn too_many_flows_name_the_parameter_that_bounds_them() {
    let refusal = |count: u64, source: Json| {
        let scenario = json!({
            "duration": "1s",
            "links": {"a": {"rate": "1gbit"}},
            "flows": [{"name": "f", "path": ["a"], "count": count, "source": source}],
        });
        Scenario::from_json(&scenario.to_string()).err().map(|e| e.to_string())
    };
    let most = |most: u64, load: &str| json!({"name": "poisson", "most": most, "load": load});
    let text = refusal(900_000, most(900_000, "1tbit")).expect("they do not fit");
    assert_eq!(
        text,
        "flows: 1800000 flows can take 4501 MB of memory with the rest of the scenario, allowed: \
         4000 MB: 900000 and 900000 that sources may have open at a time (the sum over the groups \
         of `most`, or of arrivals where these are fewer; set a smaller `most`)"
    );
    assert_eq!(refusal(600_000, most(500_000, "1tbit")), None, "they fit");
    assert_eq!(refusal(900_000, most(900_000, "1gbit")), None, "few arrive");
    let group = |name: &str| json!({"name": name, "path": ["a"], "count": 1_000_001});
    let scenario = json!({
        "duration": "1s",
        "links": {"a": {"rate": "1gbit"}},
        "flows": [group("f"), group("g")],
    });
    let text = Scenario::from_json(&scenario.to_string()).expect_err("too many").to_string();
    assert_eq!(text, "flows: 2000002 flows in all, allowed: 2000000");
}

#[test]
fn flows_that_arrive_are_bounded_by_their_number_and_their_time() {
    let pooled = |source: Json| {
        let scenario = json!({
            "duration": "2s",
            "links": {"a": {"rate": "1gbit"}},
            "flows": [{"name": "f", "path": ["a"], "count": 3, "source": source}],
        });
        let scenario = Scenario::from_json(&scenario.to_string()).expect("valid");
        super::pooled_flows(&scenario.contents())
    };
    let poisson = |key: &str, value: Json| {
        let mut source = json!({"name": "poisson", "interval": "exponential(100us)"});
        source[key] = value;
        pooled(source)
    };
    assert_eq!(poisson("most", json!(1_000)), 1_000);
    assert_eq!(poisson("number", json!(77)), 77);
    // 10,000 arrivals in the mean, and ten standard deviations.
    assert_eq!(poisson("stop", json!("100ms")), 1_000 + 317 + 100);
    assert_eq!(poisson("interval", json!("1ms")), 2_001);
    assert_eq!(poisson("interval", json!("uniform(0s, 2ms)")), 10_000);
    assert_eq!(pooled(json!({"name": "incast", "number": 5})), 15);
    assert_eq!(pooled(json!({"name": "incast"})), 10_000);
}

#[test]
fn packet_logs_are_limited_during_the_run() {
    assert_eq!(Scenario::packet_log_fits(40_000_000), Ok(()));
    let text = Scenario::packet_log_fits(50_000_000).expect_err("too many").to_string();
    assert!(text.starts_with("packet_log: 50000000 packets so far take 4"), "{text}");
}
