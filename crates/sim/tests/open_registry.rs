//! A discipline that is defined in another crate is simulated by name.

#[path = "../../aqm/examples/write_your_own.rs"]
mod write_your_own;

use sojourn_aqm::Error;
use sojourn_sim::{Outcome, Scenario};
use write_your_own::{main, registry};

fn scenario(qdisc: &str) -> Result<Scenario, Error> {
    let json = serde_json::json!({
        "duration": "5s",
        "seed": 3,
        "links": {"up": {"rate": "10mbit", "delay": "5ms", "qdisc": qdisc}},
        "flows": [{"name": "upload", "count": 2, "path": ["up"], "rtt": "40ms"}],
    });
    Scenario::from_json_with(&registry().unwrap(), &json.to_string())
}

fn run(scenario: &Scenario) -> Outcome {
    sojourn_sim::run(scenario, &mut |_| true).expect("the callback never cancels")
}

#[test]
fn the_example_of_the_library_runs() {
    main().unwrap();
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

    let again = Scenario::from_json_with(&registry().unwrap(), &canonical.to_string()).unwrap();
    assert_eq!(
        run(&again).summary["links"],
        outcome.summary["links"],
        "the canonical form gives the same run"
    );
    let mut clone = canonical.clone();
    clone["links"]["up"]["qdisc"]["period"] = 5.into();
    let other = Scenario::from_json_with(&registry().unwrap(), &clone.to_string()).unwrap();
    assert_ne!(
        run(&other).summary["links"],
        outcome.summary["links"],
        "the parameters are those of the scenario"
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
