//! Telemetry of links (INT) and the senders that use it, HPCC and PowerTCP, in whole runs:
//! utilisation, queue, fairness, incast, paths that are chosen by switches, and snapshots.
#![allow(clippy::cast_possible_truncation, reason = "tests use small numbers")]

mod common;

use common::{bytes, flow, goodputs_gbit, jain, num, parse, run};
use serde_json::{Map, Value, json};
use sojourn_aqm::params::Setting;
use sojourn_aqm::units::{Span, Time};
use sojourn_aqm::{Error, Random};
use sojourn_sim::tcp::{
    CommonParams, CongestionSignal, ExternalControl, ExternalMaker, ExternalParams, LossRecovery,
    NewDataAck, TelemetryAck, Window,
};
use sojourn_sim::{Column, Outcome, Registries, Scenario, Simulation, Threads, run_on_threads};
use std::num::NonZero;
use std::sync::Arc;

/// The control with timers for data centres.
fn control(name: &str) -> Value {
    match name {
        "theta" => json!({"name": "powertcp", "variant": "theta", "rto_min": "2ms", "tick": "10us",
                          "rate_ai": "4mbit"}),
        "powertcp" => json!({"name": name, "rto_min": "2ms", "tick": "10us", "rate_ai": "4mbit"}),
        _ => json!({"name": name, "rto_min": "2ms", "tick": "10us"}),
    }
}

fn tail(rate: &str) -> Value {
    json!({"rate": rate, "delay": "1us", "qdisc": {"name": "droptail", "limit": "4MB"}})
}

/// `count` flows over one link of 100 Gbit/s with a round-trip time of 12 us, as in the simulations
/// of HPCC, which start within 1 ms and are measured from the middle of the run on.
fn share(name: &str, count: u32, ms: u32) -> Outcome {
    let mut tcp = control(name);
    tcp["packet"] = json!("1090B");
    tcp["header"] = json!("90B");
    tcp["rate_ai"] = json!("40mbit");
    run(&json!({
        "duration": format!("{ms}ms"), "warmup": format!("{}us", ms * 500),
        "links": {"l": tail("100gbit")},
        "flows": [{"name": "f", "count": count, "path": ["l"], "rtt": "12us", "tcp": tcp,
                   "source": {"name": "bulk", "start": "uniform(0s, 1ms)"}}]
    }))
}

/// Utilisation, mean and 99th percentile of the queueing delay in us, and loss rate of a link.
fn measures(out: &Outcome, link: &str) -> [f64; 4] {
    let link = &out.summary["links"][link];
    let delay = ["sojourn_mean_s", "sojourn_p99_s"].map(|key| num(link, key) * 1e6);
    [num(link, "utilisation"), delay[0], delay[1], num(link, "loss_rate")]
}

#[test]
fn senders_keep_the_link_at_its_target_with_almost_no_queue() {
    // Theta leaves 5 % of the round-trip time to the queue.
    for (name, least, most, queue_us) in
        [("hpcc", 0.946, 0.955, 0.3), ("powertcp", 0.946, 0.955, 0.3), ("theta", 0.99, 1.0, 0.9)]
    {
        for count in [1, 2, 8, 32] {
            let out = share(name, count, 40);
            let [utilisation, mean, p99, loss] = measures(&out, "l");
            let fairness = jain(&goodputs_gbit(&out));
            let text = format!("{name} {count}: {utilisation} {mean} {p99} {fairness}");
            assert!((least..=most).contains(&utilisation) && loss == 0.0, "{text}");
            assert!(mean < queue_us && p99 < 2.0 && fairness > 0.96, "{text}");
        }
    }
}

/// Senders with links of their own to a switch, whose port to the receiver has their rate.
fn incast_scenario(name: &str, count: usize) -> Value {
    let mut links: Map<String, Value> =
        (0..count).map(|i| (format!("h{i}"), tail("10gbit"))).collect();
    links.insert("port".into(), tail("10gbit"));
    json!({
        "duration": "20ms", "links": links,
        "flows": [{"name": "f", "count": count, "path": ["h{i}", "port"], "rtt": "20us",
                   "tcp": control(name), "source": "bulk"}]
    })
}

fn incast(name: &str, count: usize, warmup: &str) -> Outcome {
    let mut scenario = incast_scenario(name, count);
    scenario["warmup"] = json!(warmup);
    run(&scenario)
}

/// Longest of 64 transfers of 40 kB to one port, for which it takes 2.1 ms, in ms.
fn longest_transfer(min_rate: &str) -> f64 {
    let mut scenario = incast_scenario("hpcc", 64);
    scenario["flows"][0]["source"] = json!({"name": "transfers", "size": "40kB", "number": 1});
    scenario["flows"][0]["tcp"]["min_rate"] = json!(min_rate);
    let out = run(&scenario);
    let flows = out.summary["flows"].as_array().unwrap();
    flows.iter().map(|f| num(f, "fct_mean_s") * 1e3).fold(0.0, f64::max)
}

#[test]
fn the_lower_bound_of_the_rate_is_a_hundredth_of_the_line_rate() {
    let auto = longest_transfer("auto");
    assert_eq!(auto, longest_transfer("100mbit"));
    // From a thousandth, the last transfers take long to grow.
    let slow = longest_transfer("10mbit");
    assert!(auto < 2.4 && slow > 3.0, "{auto} {slow}");
}

#[test]
fn an_incast_leaves_no_queue_after_the_first_round_trips() {
    for name in ["hpcc", "powertcp"] {
        // Each starts with a window of 20 us at the line rate: the queue of the port has 16 of
        // them, less what it sends meanwhile.
        let [_, _, most, loss] = measures(&incast(name, 16, "0s"), "port");
        assert!((150.0..320.0).contains(&most) && loss == 0.0, "{name}: {most}");
        let [utilisation, mean, p99, _] = measures(&incast(name, 16, "1ms"), "port");
        let text = format!("{name}: {utilisation} {mean} {p99}");
        // With windows of one or two packets, the queue is a packet of some flows at a time.
        assert!(utilisation > 0.88 && mean < 5.0 && p99 < 20.0, "less than 20 us: {text}");
    }
}

#[test]
fn a_flow_that_joins_or_leaves_changes_the_shares_at_once() {
    for name in ["hpcc", "powertcp"] {
        let group = |name: &str, tcp: &str, source: Value| {
            json!({"name": name, "path": ["l"], "rtt": "20us", "tcp": control(tcp),
                   "source": source})
        };
        let second = json!({"name": "bulk", "start": "20ms", "stop": "40ms"});
        let between = |warmup: &str, end: &str| {
            run(&json!({
                "duration": end, "warmup": warmup, "links": {"l": tail("10gbit")},
                "flows": [
                    group("first", name, json!("bulk")), group("second", name, second.clone())
                ]
            }))
        };
        // 50 round trips after it has joined or left.
        let shared = goodputs_gbit(&between("21ms", "25ms"));
        assert!(jain(&shared) > 0.95 && shared.iter().sum::<f64>() > 9.0, "{name}: {shared:?}");
        let alone = goodputs_gbit(&between("41ms", "45ms"));
        assert!(alone[0] > 9.2 && alone[1] == 0.0, "{name}: {alone:?}");
    }
}

/// Links in both directions between `leaves` leaves with two hosts each, and two spines.
fn leaf_spine() -> Map<String, Value> {
    let mut links = Map::new();
    let mut connect = |a: String, b: String| {
        for name in [format!("{a}-{b}"), format!("{b}-{a}")] {
            links.insert(name, tail("10gbit"));
        }
    };
    for leaf in 0..2 {
        (0..2).for_each(|i| connect(format!("h{}", 2 * leaf + i), format!("l{leaf}")));
        (0..2).for_each(|s| connect(format!("l{leaf}"), format!("s{s}")));
    }
    links
}

/// Transfers of hosts on one leaf to hosts on the other, on paths that switches choose.
fn transfers(name: &str, spread: &str) -> Value {
    json!({
        "duration": "20ms", "links": leaf_spine(),
        "flows": [{"name": "f", "count": 2, "sender": ["h0", "h1"], "receiver": ["h2", "h3"],
            "spread": spread, "tcp": control(name),
            "source": {"name": "poisson", "interval": "60us", "size": "exponential(50kB)"}}]
    })
}

#[test]
fn telemetry_works_on_paths_that_switches_choose() {
    for name in ["hpcc", "powertcp"] {
        for spread in ["connection", "flowlet(gap=10us)"] {
            let out = run(&transfers(name, spread));
            let done: f64 = goodputs_gbit(&out).iter().sum();
            assert!(done > 6.0, "{name} {spread}: {done}");
        }
    }
}

/// The scenario after a run to `ms`, a snapshot, and the rest.
fn continued(json: &Value, ms: u64) -> Outcome {
    let mut simulation = Simulation::new(parse(json));
    let at = Time::ZERO + Span::us(1000 * ms + 17);
    simulation.run_until(at, &mut |_| true).unwrap();
    let mut loaded = Simulation::load(&simulation.save().unwrap()).unwrap();
    loaded.run_until(loaded.end(), &mut |_| true).unwrap();
    loaded.result().unwrap()
}

#[test]
fn snapshots_and_threads_change_nothing() {
    for json in [transfers("hpcc", "connection"), transfers("powertcp", "flowlet(gap=10us)")] {
        let whole = bytes(&run(&json));
        assert_eq!(bytes(&continued(&json, 7)), whole);
        let threads = Threads::Exactly(NonZero::new(3).unwrap());
        let parallel = run_on_threads(parse(&json), threads, &mut |_| true).unwrap();
        assert_eq!(bytes(&parallel), whole);
    }
}

/// Control with a constant window that reads the telemetry of its path.
#[derive(Clone, Debug, Default)]
struct Reader {
    acks: u32,
    links: u32,
    /// Longest queue of the last link, bytes.
    longest: u32,
}

impl ExternalControl for Reader {
    fn reset(&mut self) {
        *self = Reader::default();
    }

    fn on_telemetry(&mut self, window: &mut Window, ack: &TelemetryAck<'_>, rng: &mut dyn Random) {
        let TelemetryAck { now, snd_una, snd_nxt, links, .. } = *ack;
        let sent = snd_nxt - snd_una;
        assert!(links.iter().all(|link| link.at < now) && sent <= 20 * window.mss);
        assert!(snd_una > 1 && rng.uniform() < 1.0);
        (self.acks, self.links) = (self.acks + 1, links.len() as u32);
        self.longest = self.longest.max(links[links.len() - 1].queue_bytes);
    }

    fn on_ack(&mut self, window: &mut Window, _: &NewDataAck, _: &mut dyn Random) {
        window.cwnd = 20 * window.mss;
    }

    fn on_congestion(
        &mut self,
        _: Time,
        window: &Window,
        _: u64,
        _: CongestionSignal,
        _: &mut dyn Random,
    ) -> u64 {
        20 * window.mss
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("acks", self.acks.into());
        visit("links", self.links.into());
        visit("longest", self.longest.into());
    }

    fn copy(&self) -> Box<dyn ExternalControl> {
        Box::new(self.clone())
    }
}

impl ExternalMaker for Reader {
    fn make(&self, _: &CommonParams) -> Box<dyn ExternalControl> {
        self.copy()
    }

    fn uses_telemetry(&self) -> bool {
        true
    }
}

fn reader(name: &str, _: &[(&str, Setting<'_>)]) -> Option<Result<ExternalParams, Error>> {
    let (recovery, maker) = (LossRecovery::Sack, Arc::new(Reader::default()));
    let params = ExternalParams { name: "reader", recovery, rows: Vec::new(), maker };
    (name == "reader").then_some(Ok(params))
}

#[test]
fn a_control_of_another_crate_reads_telemetry() {
    let text = json!({
        "duration": "20ms", "sample": "10ms",
        "links": {"nic": {"rate": "100mbit"}, "port": {"rate": "10mbit", "delay": "1ms"}},
        "flows": [{"name": "f", "path": ["nic", "port"], "tcp": "reader", "rtt": "2ms"}]
    });
    let registries = Registries::standard().with_controls(reader);
    let scenario = Scenario::from_json_with(&registries, &text.to_string()).unwrap();
    let out = sojourn_sim::run(&scenario);
    let last = |name: &str| {
        let column = out.columns.iter().find(|(key, _)| key == &format!("flows/f/gauge/{name}"));
        let Some((_, Column::F64(values))) = column else { panic!("no {name}") };
        values[values.len() - 1]
    };
    // 20 packets of 1500 bytes: one is in transmission, the others in the queue of the port, less
    // those that are acknowledged in pairs.
    assert_eq!([last("acks"), last("links"), last("longest")], [6.0, 2.0, 24_000.0]);
}

/// Telemetry is recorded on the links of its flows only, and other flows keep their results.
#[test]
fn flows_on_other_links_do_not_notice() {
    let scenario = |tcp: Value| {
        json!({
            "duration": "50ms", "links": {"a": tail("1gbit"), "b": tail("1gbit")},
            "flows": [
                {"name": "one", "path": ["a"], "rtt": "1ms", "tcp": tcp},
                {"name": "two", "path": ["b"], "rtt": "1ms", "tcp": "cubic"},
            ]
        })
    };
    let [with, without] = [control("hpcc"), json!("cubic")].map(|tcp| run(&scenario(tcp)));
    assert_eq!(flow(&with, "two"), flow(&without, "two"));
    assert_eq!(with.summary["links"]["b"], without.summary["links"]["b"]);
    assert_ne!(flow(&with, "one"), flow(&without, "one"));
}

fn refusal(path: &[&str], more: &Value) -> String {
    let links: Map<String, Value> =
        (0..9).map(|i| (format!("l{i}"), json!({"rate": "1gbit"}))).collect();
    let mut flow = json!({"name": "f", "path": path, "tcp": "hpcc"});
    more.as_object().unwrap().iter().for_each(|(key, value)| flow[key] = value.clone());
    let json = json!({"duration": "1s", "links": links, "flows": [flow]});
    Scenario::from_json(&json.to_string()).map_or_else(|e| e.to_string(), |_| "accepted".into())
}

#[test]
fn what_telemetry_cannot_do_is_refused() {
    let all = ["l0", "l1", "l2", "l3", "l4", "l5", "l6", "l7", "l8"];
    assert_eq!(refusal(&all[..8], &json!({})), "accepted");
    assert_eq!(
        refusal(&all, &json!({})),
        "flows.f.path: has 9 links, and packets of hpcc have room for the telemetry of 8"
    );
    let theta = json!({"tcp": "powertcp(variant=theta)"});
    assert_eq!(refusal(&all, &theta), "accepted", "it uses none");
    for (tcp, error) in [
        ("hpcc(profile=linux)", "profile: hpcc is available in profile rfc without timestamps"),
        ("hpcc(timestamps=true)", "profile: hpcc is available in profile rfc without timestamps"),
        ("hpcc(profile=ns2)", "profile: hpcc is not available in profile ns2"),
        ("hpcc(ecn=true)", "ecn: hpcc reacts to telemetry and ignores ECN marks"),
        ("powertcp(ecn=true)", "ecn: powertcp reacts to telemetry and ignores ECN marks"),
        (
            "powertcp(variant=theta, ecn=true)",
            "ecn: powertcp reacts to delay and ignores ECN marks",
        ),
        ("hpcc(min_rate=2gbit, max_rate=1gbit)", "min_rate: 2gbit is above max_rate, 1gbit"),
    ] {
        let text = refusal(&["l0"], &json!({"tcp": tcp}));
        assert_eq!(text, format!("flows.f.tcp.{error}"), "{tcp}");
    }
    let mut spray = transfers("hpcc", "packet");
    let text = Scenario::from_json(&spray.to_string()).map(|_| ()).unwrap_err().to_string();
    assert!(text.starts_with("flows.f.spread: ") && text.contains("flowlet"), "{text}");
    spray["flows"][0]["tcp"] = control("theta");
    parse(&spray);
}
