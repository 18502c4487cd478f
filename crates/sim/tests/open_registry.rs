//! A discipline, a congestion control and a source of another crate are simulated by name.

#[path = "../../aqm/examples/write_your_own.rs"]
mod write_your_own;

#[path = "../examples/own_aqm.rs"]
mod own_aqm;

#[path = "../examples/own_control.rs"]
mod own_control;

use sojourn_aqm::params::Setting;
use sojourn_aqm::random::Random;
use sojourn_aqm::{Error, Span, Time};
use sojourn_sim::tcp::{
    CommonParams, CongestionSignal, ExternalControl, ExternalMaker, ExternalParams, LossRecovery,
    NewDataAck, Window,
};
use sojourn_sim::traffic::{ExternalArrivals, ExternalSource, ExternalSourceMaker, ExternalTimes};
use sojourn_sim::{Column, Outcome, Registries, Scenario};
use std::sync::Arc;
use write_your_own::{main, registry};

fn scenario(qdisc: &str) -> Result<Scenario, Error> {
    let json = serde_json::json!({
        "duration": "5s",
        "seed": 3,
        "links": {"up": {"rate": "10mbit", "delay": "5ms", "qdisc": qdisc}},
        "flows": [{"name": "upload", "count": 2, "path": ["up"], "rtt": "40ms"}],
    });
    Scenario::from_json_with(&registry().unwrap().into(), &json.to_string())
}

fn run(scenario: &Scenario) -> Outcome {
    sojourn_sim::run(scenario)
}

#[test]
fn the_example_of_the_library_runs() {
    main().unwrap();
}

#[test]
fn the_example_of_an_aqm_algorithm_has_a_short_queue() {
    own_aqm::main().unwrap();
    let rows = own_aqm::compare().unwrap();
    let [droptail, ramp] = [0, 2].map(|i| rows[i]);
    assert!(ramp.1 > 0.9 && ramp.2 < droptail.2 / 2.0, "{rows:?}");
}

#[test]
fn the_example_of_a_congestion_control_keeps_more_of_its_window() {
    own_control::main().unwrap();
    let rows = own_control::compare().unwrap();
    let [newreno, tenth] = [0, 2].map(|i| rows[i]);
    assert!(tenth.1 > newreno.1, "{rows:?}");
}

#[test]
fn a_registered_discipline_is_simulated_by_name() {
    let mine = scenario("every(n=50, limit=200p)").unwrap();
    let canonical = mine.canonical();
    let qdisc = &canonical["links"]["up"]["qdisc"];
    assert_eq!((&qdisc["name"], &qdisc["period"]), (&"every".into(), &50.into()));
    let outcome = run(&mine);
    assert_eq!(outcome.summary["links"]["up"]["qdisc"], "every");
    let drops = outcome.summary["links"]["up"]["dropped_early_packets"].as_u64().unwrap();
    assert!(drops > 10, "{}", outcome.summary["links"]["up"]);

    let again =
        Scenario::from_json_with(&registry().unwrap().into(), &canonical.to_string()).unwrap();
    assert_eq!(
        run(&again).summary["links"],
        outcome.summary["links"],
        "the canonical form gives the same run"
    );
    let mut clone = canonical.clone();
    clone["links"]["up"]["qdisc"]["period"] = 5.into();
    let other = Scenario::from_json_with(&registry().unwrap().into(), &clone.to_string()).unwrap();
    assert_ne!(
        run(&other).summary["links"],
        outcome.summary["links"],
        "the parameters are as in the scenario"
    );
}

#[test]
fn errors_are_those_of_standard_disciplines() {
    for (qdisc, text) in [
        ("evry", "links.up.qdisc: unknown discipline \"evry\", did you mean \"every\"?"),
        ("every(n=0)", "links.up.qdisc.period: 0 is out of range, allowed: 1 to 1000000"),
        ("every(m=1)", "links.up.qdisc.m: unknown parameter \"m\""),
    ] {
        let error = scenario(qdisc).unwrap_err().to_string();
        assert!(error.starts_with(text), "{error}");
    }
    let text = scenario("every").unwrap().canonical().to_string();
    let error = Scenario::from_json(&text).unwrap_err().to_string();
    assert!(error.contains("unknown discipline \"every\""), "it is in no global registry: {error}");
}

#[test]
fn standard_disciplines_do_not_depend_on_the_registry() {
    let with = scenario("red").unwrap();
    let without = Scenario::from_json(&with.canonical().to_string()).unwrap();
    assert_eq!(run(&with).summary["links"], run(&without).summary["links"]);
}

/// Congestion control with a constant window; shows the number of acks.
#[derive(Clone, Debug, Default)]
struct Constant {
    acks: u32,
}

impl ExternalControl for Constant {
    fn reset(&mut self) {
        self.acks = 0;
    }

    fn on_ack(&mut self, window: &mut Window, _acked: &NewDataAck, _rng: &mut dyn Random) {
        self.acks += 1;
        window.cwnd = 5 * window.mss;
    }

    fn on_congestion(
        &mut self,
        _now: Time,
        window: &Window,
        _flight: u64,
        _cause: CongestionSignal,
        _rng: &mut dyn Random,
    ) -> u64 {
        5 * window.mss
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("acks", f64::from(self.acks));
    }

    fn copy(&self) -> Box<dyn ExternalControl> {
        Box::new(self.clone())
    }
}

impl ExternalMaker for Constant {
    fn make(&self, _common: &CommonParams) -> Box<dyn ExternalControl> {
        self.copy()
    }
}

/// Source of a packet of 500 bytes every 10 ms.
#[derive(Clone, Debug)]
struct Ticks;

impl ExternalArrivals for Ticks {
    fn next_arrival(&mut self, now: Time, _rng: &mut dyn Random) -> Option<(Time, u64)> {
        Some((now + Span::ms(10), 500))
    }

    fn copy(&self) -> Box<dyn ExternalArrivals> {
        Box::new(Ticks)
    }
}

impl ExternalSourceMaker for Ticks {
    fn make(&self, _largest: u64) -> Box<dyn ExternalArrivals> {
        self.copy()
    }
}

fn controls(
    name: &str,
    _settings: &[(&str, Setting<'_>)],
) -> Option<Result<ExternalParams, Error>> {
    let (recovery, maker) = (LossRecovery::Sack, Arc::new(Constant::default()));
    let params = ExternalParams { name: "constant", recovery, rows: Vec::new(), maker };
    (name == "constant").then_some(Ok(params))
}

fn sources(name: &str, _settings: &[(&str, Setting<'_>)]) -> Option<Result<ExternalSource, Error>> {
    let (times, maker) = (ExternalTimes::default(), Arc::new(Ticks));
    let (connections, rows) = (false, Vec::new());
    let source = ExternalSource { name: "ticks", times, connections, rows, maker };
    (name == "ticks").then_some(Ok(source))
}

#[test]
fn a_control_and_a_source_are_simulated_by_name() {
    let mine = Registries::standard().with_controls(controls).with_sources(sources);
    let text = serde_json::json!({
        "duration": "5s",
        "sample": "1s",
        "links": {"up": {"rate": "10mbit", "delay": "5ms"}},
        "flows": [
            {"name": "upload", "count": 2, "path": ["up"], "rtt": "50ms", "tcp": "constant"},
            {"name": "ticks", "path": ["up"], "source": "ticks"},
        ],
    })
    .to_string();
    let outcome = run(&Scenario::from_json_with(&mine, &text).unwrap());
    let flow = |i: usize, key: &str| outcome.summary["flows"][i][key].as_f64().unwrap();
    // 5 segments of 1460 bytes in a round trip of 50 ms, and their transmission.
    assert!((0.95e6..=1.168e6).contains(&flow(0, "goodput_bps")), "{}", flow(0, "goodput_bps"));
    assert_eq!(flow(2, "sent_packets"), 499.0);
    let column = |name: &str| match outcome.columns.iter().find(|(key, _)| key == name) {
        Some((_, Column::F64(values))) => values.clone(),
        other => panic!("{name}: {other:?}"),
    };
    let [group, first, second] = ["groups/upload", "flows/upload.0", "flows/upload.1"]
        .map(|of| column(&format!("{of}/gauge/acks")));
    assert!(first.len() >= 5 && first.windows(2).all(|w| w[0] + 40.0 < w[1]), "{first:?}");
    for (mean, both) in group.iter().zip(first.iter().zip(&second)) {
        assert_eq!(*mean, (both.0 + both.1) / 2.0);
    }
    assert!(!outcome.columns.iter().any(|(key, _)| key.starts_with("flows/ticks/gauge")));

    for (registries, path) in [
        (Registries::standard().with_controls(controls), "flows.ticks.source"),
        (Registries::standard().with_sources(sources), "flows.upload.tcp"),
    ] {
        let error = Scenario::from_json_with(&registries, &text).unwrap_err().to_string();
        assert!(error.starts_with(path), "a name is in its own registry only: {error}");
    }
}
