//! Layouts of small networks, and the check after the last meeting.

use super::layout::Layout;
use crate::config::scenario::Scenario;
use crate::engine::simulation::routes::Routes;
use crate::engine::simulation::{Simulation, Threads};
use serde_json::{Value, json};
use sojourn_aqm::units::{Span, Time};
use std::num::NonZero;

/// Divides `flows` over two sites of two hosts each, with a switch each and a long line between.
fn sites(flows: Value, parts: usize) -> (Scenario, Option<Layout>) {
    let mut links = serde_json::Map::new();
    let mut add = |name: &str, delay: &str| {
        links.insert(name.into(), json!({"rate": "10mbit", "delay": delay}));
    };
    for (host, site) in [("a", "x"), ("b", "x"), ("c", "y"), ("d", "y")] {
        add(&format!("{host}-{site}"), "100us");
        add(&format!("{site}-{host}"), "100us");
    }
    add("x-y", "10ms");
    add("y-x", "10ms");
    let all = json!({"duration": "1s", "links": links, "flows": flows});
    let scenario = Scenario::from_json(&all.to_string()).unwrap();
    let delays: Vec<Span> = scenario.links().iter().map(|link| link.spec().delay).collect();
    let routes = Routes::of(&scenario);
    let layout = Layout::of(&scenario, &routes, &delays, &vec![0; delays.len()], parts);
    (scenario, layout)
}

fn flow(name: &str, [from, to]: [(&str, &str); 2], source: Value) -> Value {
    let path = |(a, s): (&str, &str), (b, t): (&str, &str)| {
        let own = [format!("{a}-{s}"), format!("{t}-{b}")];
        let line = (s != t).then(|| format!("{s}-{t}"));
        own[..1].iter().cloned().chain(line).chain(own[1..].iter().cloned()).collect::<Vec<_>>()
    };
    json!({"name": name, "path": path(from, to), "return_path": path(to, from),
        "source": source})
}

const A: (&str, &str) = ("a", "x");
const B: (&str, &str) = ("b", "x");
const C: (&str, &str) = ("c", "y");
const D: (&str, &str) = ("d", "y");

/// Part of each link, by name.
fn owner(scenario: &Scenario, layout: &Layout, name: &str) -> u32 {
    layout.owners[scenario.links().iter().position(|link| link.name() == name).unwrap()]
}

#[test]
fn a_long_line_is_where_sites_are_divided() {
    let flows = json!([
        flow("1", [A, C], json!("bulk")),
        flow("2", [C, A], json!("bulk")),
        flow("3", [B, A], json!("bulk")),
        flow("4", [D, C], json!("bulk")),
    ]);
    let (scenario, layout) = sites(flows, 2);
    let layout = layout.expect("two sites");
    let part = |name: &str| owner(&scenario, &layout, name);
    assert_eq!((layout.parts, layout.lookahead), (2, Span::ms(10)));
    for (one, same) in [("a-x", "b-x"), ("x-a", "x-y"), ("a-x", "x-a"), ("c-y", "y-x")] {
        assert_eq!(part(one), part(same), "{one}, {same}");
    }
    assert_ne!(part("x-y"), part("y-c"));
    // Packets on the line wait in the part of its far end.
    let line = scenario.links().iter().position(|link| link.name() == "x-y").unwrap();
    assert_eq!(layout.next_owners[line], part("y-c"));
    assert!(!layout.may_fail, "bulk flows open one connection");
}

#[test]
fn sources_that_read_both_ends_stay_in_one_part() {
    let transfers = json!({"name": "transfers", "size": "10kB", "gap": "10ms"});
    let incast = json!({"name": "incast", "size": "10kB", "gap": "10ms"});
    let mut divided = 0;
    for source in [transfers, incast, json!("video"), json!("call")] {
        let flows = json!([flow("1", [A, C], source.clone()), flow("2", [D, C], json!("bulk"))]);
        let (scenario, layout) = sites(flows, 2);
        let Some(layout) = layout else { continue };
        let part = |name: &str| owner(&scenario, &layout, name);
        assert_eq!(part("a-x"), part("c-y"), "{source}");
        assert_eq!(layout.ends[0][0], layout.ends[0][1], "{source}");
        divided += 1;
    }
    assert!(divided >= 2, "{divided} of 4 were divided");
}

#[test]
fn acks_with_a_pure_delay_keep_the_last_link_with_the_sender() {
    let mut one = flow("1", [A, C], json!("bulk"));
    one["return_path"] = json!([]);
    let (scenario, layout) = sites(json!([one, flow("2", [D, B], json!("bulk"))]), 2);
    let layout = layout.expect("two flows");
    let part = |name: &str| owner(&scenario, &layout, name);
    assert_eq!(part("a-x"), part("y-c"));
}

#[test]
fn sessions_may_fail_and_have_one_part_for_their_senders() {
    let poisson = json!({"name": "poisson", "size": "10kB", "load": "1mbit"});
    let (_, layout) =
        sites(json!([flow("1", [A, C], poisson), flow("2", [D, B], json!("bulk"))]), 2);
    assert!(layout.expect("two sites").may_fail);
}

#[test]
fn a_conflict_in_the_last_window_of_a_step_is_noticed() {
    // The timeout is shorter than the round trip. When the ack arrives, the next connection may be
    // opened before a retransmission of the previous one reaches the receiver.
    let source = json!({"name": "poisson", "size": "1kB", "load": "4mbit", "most": 1});
    let mut short = flow("1", [A, C], source);
    short["tcp"] = json!({"name": "newreno", "rto_initial": "12ms", "rto_min": "12ms",
        "rto_max": "12ms"});
    let (scenario, _) = sites(json!([short, flow("2", [D, B], json!("bulk"))]), 2);
    let mut one = Simulation::new(scenario);
    let mut two = one.clone();
    two.set_threads(Threads::Exactly(NonZero::new(2).unwrap()));
    for step in 1..=200 {
        // Shorter than a window, so that every window is the last one.
        let until = Time::ZERO + Span::ms(5 * step);
        assert!(one.run_until(until, &mut |_| true).unwrap());
        assert!(two.run_until(until, &mut |_| true).unwrap());
    }
    assert!(two.repeated_spans > 0, "no conflict");
    let summary = |s: &Simulation| s.result().unwrap().summary.to_string();
    assert_eq!(summary(&one), summary(&two));
}
