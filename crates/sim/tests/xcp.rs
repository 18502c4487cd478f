//! XCP's senders and routers together: fair shares for unequal round-trip times, a short queue, no
//! drops (Katabi, Handley and Rohrs, SIGCOMM 2002, section 5).

use sojourn_sim::{Outcome, Scenario, run};

/// Runs `flows` for 40 s over a link of 45 Mbit/s with a buffer of one bandwidth-delay product, and
/// returns the outcome from `warmup` on.
fn outcome(warmup: &str, flows: &str) -> Outcome {
    let scenario = Scenario::from_json(&format!(
        r#"{{"duration": "40s", "warmup": "{warmup}", "links": {{"b": {{"rate": "45mbit",
            "delay": "10ms", "qdisc": {{"name": "xcp", "limit": "450p"}}}}}}, "flows": [{flows}]}}"#
    ));
    run(scenario.unwrap())
}

fn group(name: &str, rtt: &str, count: u32, start: &str) -> String {
    format!(
        r#"{{"name": "{name}", "path": ["b"], "rtt": "{rtt}", "count": {count}, "tcp": "xcp",
            "source": {{"name": "bulk", "start": "{start}"}}}}"#
    )
}

fn goodputs(outcome: &Outcome) -> Vec<f64> {
    let flows = outcome.summary["flows"].as_array().unwrap();
    flows.iter().map(|flow| flow["goodput_bps"].as_f64().unwrap() / 1e6).collect()
}

fn link(outcome: &Outcome, key: &str) -> f64 {
    outcome.summary["links"]["b"][key].as_f64().unwrap()
}

#[test]
fn a_flow_fills_the_link_within_seconds_and_leaves_its_queue_empty() {
    let outcome = outcome("3s", &group("a", "80ms", 1, "0s"));
    assert!(link(&outcome, "utilisation") > 0.999);
    assert!(link(&outcome, "sojourn_p99_s") < 0.001);
    assert_eq!(link(&outcome, "dropped_packets"), 0.0);
}

#[test]
fn flows_of_unequal_round_trip_times_have_equal_shares() {
    let flows = [("a", "40ms"), ("b", "80ms"), ("c", "160ms"), ("d", "320ms")];
    let flows = flows.map(|(name, rtt)| group(name, rtt, 1, "0s")).join(", ");
    let outcome = outcome("20s", &flows);
    let goodputs = goodputs(&outcome);
    assert!(goodputs.iter().all(|goodput| (goodput / 10.95 - 1.0).abs() < 0.05), "{goodputs:?}");
    assert!(link(&outcome, "sojourn_mean_s") < 0.003);
    assert_eq!(link(&outcome, "dropped_packets"), 0.0);
}

#[test]
fn new_flows_get_their_share_within_seconds_without_a_drop() {
    let flows = [group("a", "80ms", 5, "0s"), group("b", "80ms", 5, "20s")].join(", ");
    let outcome = outcome("30s", &flows);
    let goodputs = goodputs(&outcome);
    assert!(goodputs.iter().all(|goodput| (goodput / 4.38 - 1.0).abs() < 0.1), "{goodputs:?}");
    assert_eq!(link(&outcome, "dropped_packets"), 0.0);
}

#[test]
fn a_path_without_a_router_of_xcp_is_used_as_by_reno() {
    let scenario = r#"{"duration": "20s", "warmup": "5s", "links": {"b": {"rate": "45mbit",
        "delay": "10ms", "qdisc": "droptail"}}, "flows": [{"name": "a", "path": ["b"],
        "rtt": "100ms", "tcp": "xcp"}]}"#;
    let outcome = run(Scenario::from_json(scenario).unwrap());
    let drops = link(&outcome, "dropped_packets");
    assert!(link(&outcome, "utilisation") > 0.7 && drops < 100.0, "{drops}");
}

#[test]
fn xcp_is_refused_in_other_profiles() {
    for profile in ["linux", "ns2", "quic"] {
        let scenario = format!(
            r#"{{"duration": "1s", "links": {{"b": {{"rate": "1mbit"}}}}, "flows": [{{"name": "a",
            "path": ["b"], "rtt": "10ms", "tcp": {{"name": "xcp", "profile": "{profile}"}}}}]}}"#
        );
        let refusal = Scenario::from_json(&scenario).unwrap_err().to_string();
        assert!(refusal.starts_with("flows.a.tcp.profile: xcp is"), "{refusal}");
    }
}
