//! A run on several threads gives the bytes of a run on one, whatever the topology, the
//! disciplines, the senders and the sources are, and however it is changed, stepped and copied.
#![allow(clippy::cast_possible_truncation, reason = "tests use small numbers")]

#[path = "../common/mod.rs"]
mod common;
mod topology;

#[path = "../reference_engine/scenarios.rs"]
mod scenarios;
#[path = "../reference_engine/topologies.rs"]
mod topologies;

use common::{bytes, parse};
use serde_json::{Value, json};
use sojourn_aqm::registry::REGISTRY;
use sojourn_aqm::units::{Span, Time};
use sojourn_sim::tcp::TCPS;
use sojourn_sim::{Progress, Scenario, Simulation, Threads, run_on_threads};
use std::num::NonZero;
use std::ops::Range;
use topology::Topology;

/// Asserts that two results are equal, and shows the first difference.
fn assert_same(one: &str, other: &str, what: &str) {
    let at = one.bytes().zip(other.bytes()).position(|(a, b)| a != b);
    let at = at.unwrap_or(one.len().min(other.len()));
    let near = |text: &str| text[at.saturating_sub(300)..(at + 100).min(text.len())].to_string();
    assert!(one == other, "{what}\n{}\n--\n{}", near(one), near(other));
}

fn threads(count: usize) -> Threads {
    Threads::Exactly(NonZero::new(count).unwrap())
}

fn run(scenario: &Scenario, threads: Threads) -> String {
    bytes(&run_on_threads(scenario, threads, &mut |_| true).expect("it is not stopped"))
}

/// Number of parts into which the scenario is divided at its start.
fn parts(scenario: &Scenario, count: usize) -> usize {
    let mut simulation = Simulation::new(scenario.clone());
    simulation.set_threads(threads(count));
    simulation.parts()
}

/// Compares runs on several threads with one on a single thread; returns true if there was more
/// than one part.
fn agrees(scenario: &Value, counts: &[usize], what: &str) -> bool {
    let scenario = parse(scenario);
    let expected = run(&scenario, Threads::One);
    for count in counts {
        let result = run(&scenario, threads(*count));
        assert_same(&expected, &result, &format!("{what}, {count} threads"));
    }
    counts.iter().any(|count| parts(&scenario, *count) > 1)
}

/// As [`agrees`] for the scenarios of all `seeds`, of which more than `least` are divided.
fn all_agree(scenario: fn(u64) -> Value, seeds: Range<u64>, counts: &[usize], least: usize) {
    let divided = seeds.filter(|seed| agrees(&scenario(*seed), counts, &format!("seed {seed}")));
    let count = divided.count();
    assert!(count > least, "{count} were divided");
}

#[test]
fn small_scenarios_of_all_kinds() {
    all_agree(scenarios::random, 20..100, &[3], 15);
}

#[test]
fn scenarios_that_change() {
    all_agree(scenarios::unsteady, 0..100, &[2, 4], 25);
}

#[test]
fn topologies_with_ties() {
    all_agree(topologies::tied, 0..16, &[2, 3], 8);
}

#[test]
fn switches_with_shared_buffers() {
    all_agree(topologies::switched, 0..16, &[2, 3], 3);
    all_agree(topologies::classed, 0..16, &[2, 3], 3);
}

#[test]
fn random_networks_with_every_discipline() {
    let mut divided = 0;
    for (seed, entry) in (0..).zip(REGISTRY) {
        let scenario = Topology::new(seed).with_qdisc(entry.name).scenario();
        divided += usize::from(agrees(&scenario, &[2, 4], &format!("{} {seed}", entry.name)));
    }
    assert!(2 * divided > REGISTRY.len(), "{divided} of {} were divided", REGISTRY.len());
}

#[test]
fn random_networks_with_every_tcp() {
    let mut divided = 0;
    for (seed, entry) in (100..).zip(TCPS) {
        let scenario = Topology::new(seed).with_tcp(entry.name).scenario();
        divided += usize::from(agrees(&scenario, &[2, 3], &format!("{} {seed}", entry.name)));
    }
    assert!(2 * divided > TCPS.len(), "{divided} of {} were divided", TCPS.len());
}

/// A sixth of the links has a wire, a third random losses.
fn impaired(seed: u64) -> Value {
    let mut scenario = Topology::new(seed).scenario();
    let links = scenario["links"].as_object_mut().unwrap();
    for (i, link) in (seed..).zip(links.values_mut()) {
        match i % 12 {
            0 => link["jitter"] = json!({"size": "2ms", "distribution": "normal"}),
            1 => {
                link["reorder"] = json!("10%");
                link["duplicate"] = json!("5%");
                link["corrupt"] = json!("2%");
                link["in_flight_limit"] = json!("50p");
            }
            2..6 => link["loss"] = json!("1%"),
            _ => {}
        }
    }
    scenario
}

#[test]
fn random_networks_with_impaired_links() {
    all_agree(impaired, 300..340, &[2, 4], 10);
}

#[test]
fn random_networks_in_steps_and_copies() {
    for seed in 200..220 {
        let scenario = parse(&Topology::new(seed).scenario());
        let expected = run(&scenario, Threads::One);
        let mut simulation = Simulation::changeable(scenario.clone());
        simulation.set_threads(threads(3));
        let end = scenario.duration();
        let mut at = Span::ZERO;
        while at < end {
            at = Span((at.0 + 7_000_003 * (1 + seed % 5)).min(end.0));
            assert_eq!(simulation.run_until(Time::ZERO + at, &mut |_| true), Ok(true));
            let copy = simulation.clone();
            simulation = if seed % 2 == 0 { copy } else { simulation };
            // The number of threads may change at any time.
            simulation.set_threads(threads(1 + at.0 as usize % 4));
            for link in scenario.links() {
                simulation.link(link.name()).unwrap();
            }
        }
        assert_same(&expected, &bytes(&simulation.result().unwrap()), &format!("steps {seed}"));
    }
}

#[test]
fn a_stopped_run_continues() {
    let mut scenario = Topology::new(300).with_rates(["200mbit", "400mbit"]).scenario();
    for flow in scenario["flows"].as_array_mut().unwrap() {
        flow.as_object_mut().unwrap().remove("source");
    }
    let scenario = parse(&scenario);
    let expected = run(&scenario, Threads::One);
    let mut simulation = Simulation::new(scenario.clone());
    simulation.set_threads(threads(2));
    let mut stops = 0;
    let mut once = |progress: Progress| {
        assert!(progress.share <= 1.0 && progress.packets > 0);
        stops += 1;
        stops != 1
    };
    let end = Time::ZERO + scenario.duration();
    assert_eq!(simulation.run_until(end, &mut once), Ok(false));
    assert!(simulation.now() > Time::ZERO && simulation.now() < end);
    assert_eq!(simulation.run_until(end, &mut |_| true), Ok(true));
    assert_same(&expected, &bytes(&simulation.result().unwrap()), "stopped");
}

#[test]
fn a_scenario_with_one_link_is_not_divided() {
    let one = serde_json::json!({"duration": "1s", "links": {"up": {"rate": "1mbit"}},
        "flows": [{"name": "a", "path": ["up"], "rtt": "20ms"}]});
    assert_eq!(parts(&parse(&one), 4), 1);
    agrees(&one, &[4], "one link");
}
