//! Scripts compared with the simulator: if links take almost no time, both act at the same times.

use sojourn_aqm::Time;
use sojourn_aqm::units::Span;
use sojourn_sim::internals::Amount;
use sojourn_sim::internals::script::{Action, Script};
use sojourn_sim::{Column, Scenario, run};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Groups of flows over a link so fast and short that a transfer takes a few microseconds.
fn scenario(flows: &str) -> Scenario {
    let text = format!(
        r#"{{"duration": "20s", "warmup": "2s", "seed": 5,
            "links": {{"up": {{"rate": "100gbit", "delay": "0s", "qdisc": "droptail"}}}},
            "flows": {flows}}}"#
    );
    Scenario::from_json(&text).unwrap()
}

type Transfers = Vec<(u32, f64, u64)>;

/// Rows, starts and bytes of all transfers, sorted by row and start.
fn transfers(columns: &[(String, Column)]) -> Transfers {
    let find = |name: &str| &columns.iter().find(|(n, _)| n == name).unwrap().1;
    let (Column::U32(flow), Column::F64(start), Column::U64(bytes)) =
        (find("fct/flow"), find("fct/start_s"), find("fct/bytes"))
    else {
        panic!("columns of other types")
    };
    let mut rows: Transfers =
        flow.iter().zip(start).zip(bytes).map(|((f, s), b)| (*f, *s, *b)).collect();
    rows.sort_by(|a, b| (a.0, a.1).partial_cmp(&(b.0, b.1)).unwrap());
    rows
}

/// Runs to the end with transfers that take no time: the summaries, the transfers, and all other
/// actions with their times.
fn play(scenario: &Scenario) -> (Vec<serde_json::Value>, Transfers, Vec<(Time, Action)>) {
    let mut script = Script::new(scenario.clone());
    let (mut ends, mut actions) = (BinaryHeap::new(), Vec::new());
    let end = Time::ZERO + scenario.duration();
    loop {
        let (next, over) = (script.next(), ends.peek().map_or(Time::NEVER, |Reverse((at, _))| *at));
        if next.min(over) >= end {
            break;
        }
        if over <= next {
            let Some(Reverse((at, flow))) = ends.pop() else { break };
            script.established(flow, at);
            script.received(flow, at);
            script.acked(flow, at);
            continue;
        }
        match script.pop_action(next) {
            Some(Action::Open { flow, amount: Amount::Bytes(_), .. }) => {
                ends.push(Reverse((next + Span(1), flow)));
            }
            Some(action) => actions.push((next, action)),
            None => {}
        }
    }
    let (summaries, columns) = script.finish();
    (summaries, transfers(&columns), actions)
}

#[test]
fn independent_arrivals_match_the_simulator() {
    let flows = r#"[
        {"name": "short", "count": 3, "path": ["up"],
         "source": {"name": "poisson", "load": "20mbit", "size": "lomax(mean=30kB, shape=1.2)"}},
        {"name": "rows", "count": 2, "path": ["up"], "tcp": "cubic",
         "source": {"name": "trace", "time_s": [0.5, 3, 3.25], "size_bytes": [10, 2000, 7],
                    "flow": [1, 0, 1]}}]"#;
    let scenario = scenario(flows);
    let (summaries, played, _) = play(&scenario);
    let outcome = run(&scenario);
    let simulated = transfers(&outcome.columns);
    assert!(simulated.len() > 1000, "{}", simulated.len());
    // The last one or two of a run may still be in flight in the simulator.
    assert!(simulated.iter().all(|row| played.contains(row)));
    assert!(played.len() - simulated.len() < 3);
    for (ours, theirs) in summaries.iter().zip(outcome.summary["flows"].as_array().unwrap()) {
        for key in ["name", "group", "rtt_s", "started"] {
            assert_eq!(ours[key], theirs[key]);
        }
    }
}

#[test]
fn sequential_transfers_match_the_simulator() {
    // A delayed ack would postpone the next transfer by 40 ms.
    let flows = r#"[
        {"name": "again", "count": 3, "path": ["up"], "tcp": {"name": "sack", "delack": false},
         "source": {"name": "transfers", "size": "uniform(1kB, 9kB)", "gap": "exponential(20ms)"}},
        {"name": "users", "count": 2, "path": ["up"], "tcp": {"name": "sack", "delack": false},
         "source": {"name": "sessions", "interval": "exponential(50ms)", "size": "5kB",
                    "gap": "exponential(10ms)"}},
        {"name": "all", "count": 4, "path": ["up"], "tcp": {"name": "sack", "delack": false},
         "source": {"name": "incast", "size": "8kB", "gap": "20ms"}},
        {"name": "pages", "path": ["up"], "tcp": {"name": "sack", "delack": false},
         "source": {"name": "web", "sessions": 3, "objects": 3,
                    "page_gap": "exponential(500ms)"}},
        {"name": "film", "path": ["up"], "tcp": {"name": "sack", "delack": false},
         "source": {"name": "video", "segment": "500ms", "buffer": "2s", "reservoir": "500ms",
                    "cushion": "1s", "resume": "1s"}}]"#;
    let scenario = scenario(flows);
    let (summaries, played, _) = play(&scenario);
    let outcome = run(&scenario);
    let simulated = transfers(&outcome.columns);
    assert_eq!(summaries[10]["video_rate_bps"], 5e6);
    assert_eq!(summaries[10]["video_stalls"], outcome.summary["flows"][10]["video_stalls"]);
    for row in 0..11 {
        let of = |all: &Transfers| all.iter().filter(|t| t.0 == row).copied().collect::<Vec<_>>();
        let (ours, theirs) = (of(&played), of(&simulated));
        assert!(ours.len() > 20, "row {row}: {}", ours.len());
        // Each waits for the previous one, which took some microseconds in the simulator.
        let close = |a: &(u32, f64, u64), b: &(u32, f64, u64)| (a.1 - b.1).abs() < 0.02;
        let alike = ours.iter().zip(&theirs).take(20).filter(|(a, b)| close(a, b)).count();
        assert!(alike >= 18, "row {row}: {alike} of 20");
    }
}

#[test]
fn paced_sources_stop_and_groups_leave() {
    let flows = r#"[
        {"name": "udp", "path": ["up"],
         "source": {"name": "cbr", "rate": "80kbit", "packet": "100B", "stop": "10s"}},
        {"name": "tcp", "path": ["up"], "tcp": "cubic",
         "source": {"name": "cbr", "rate": "80kbit", "packet": "100B", "stop": "10s"}},
        {"name": "bulk", "path": ["up"], "source": {"name": "bulk", "start": "1s", "stop": "4s"}},
        {"name": "gone", "count": 2, "path": ["up"]}],
        "changes": [{"at": "5s", "leave": ["gone"]}]"#;
    let scenario = scenario(flows);
    let (_, _, actions) = play(&scenario);
    let of = |test: &dyn Fn(&Action) -> bool| -> Vec<Time> {
        actions.iter().filter(|(_, action)| test(action)).map(|(at, _)| *at).collect()
    };
    let (second, sent) = (1_000_000_000, of(&|action| matches!(action, Action::Datagram(0, 100))));
    let outcome = run(&scenario);
    let counted = sent.iter().filter(|at| at.0 >= 2 * second).count();
    assert_eq!(outcome.summary["flows"][0]["sent_packets"], counted);
    assert_eq!(of(&|action| matches!(action, Action::Write(1, 100))).len(), sent.len());
    assert_eq!(of(&|action| *action == Action::Stop(2)), [Time(4 * second)]);
    assert_eq!(of(&|action| *action == Action::Leave(3, 5)), [Time(5 * second)]);
    let endless =
        |action: &Action| matches!(action, Action::Open { amount: Amount::Unlimited, .. });
    assert_eq!(of(&endless), [Time(0), Time(0), Time(second)]);
}
