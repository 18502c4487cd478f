//! Queues compared with recorded arrivals and decisions of ns-2 (`lab/vectors/README-queue.md`).
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "tests use small numbers"
)]

mod common;
use common::num;
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use sojourn_aqm::{Rate, Time};
use sojourn_sim::{Arrival, Decision, Replay, ReplayOptions, replay};
use std::io::Read;

/// One byte takes 10 microseconds.
const RATE: Rate = Rate(800_000);

/// Vector: columns by name.
struct Vector {
    header: Vec<String>,
    rows: Vec<Vec<f64>>,
}

impl Vector {
    fn read(name: &str) -> Vector {
        let path = format!("{}/../../lab/vectors/queue_{name}.csv.gz", env!("CARGO_MANIFEST_DIR"));
        let mut text = String::new();
        GzDecoder::new(std::fs::File::open(&path).expect(&path)).read_to_string(&mut text).unwrap();
        let mut lines = text.lines().map(|line| line.split(','));
        let header = lines.next().unwrap().map(str::to_string).collect();
        let rows = lines.map(|line| line.map(|x| x.parse().unwrap()).collect()).collect();
        Vector { header, rows }
    }

    fn column(&self, name: &str) -> Vec<f64> {
        let k = self.header.iter().position(|h| h == name).unwrap_or_else(|| panic!("no {name}"));
        self.rows.iter().map(|row| row[k]).collect()
    }

    fn whole(&self, name: &str) -> Vec<i64> {
        self.column(name).iter().map(|x| *x as i64).collect()
    }

    fn arrivals(&self) -> Vec<Arrival> {
        let (at, flow, len) = (self.whole("t_us"), self.whole("flow"), self.whole("size_B"));
        let columns = at.iter().zip(flow).zip(len);
        columns
            .map(|((at, flow), len)| Arrival {
                at: Time(*at as u64 * 1000),
                flow: flow as u32,
                len: len as u32,
                ..Arrival::default()
            })
            .collect()
    }

    fn decisions(&self) -> Vec<Decision> {
        let dropped = self.whole("dropped");
        dropped.iter().map(|d| Decision { dropped: *d == 1, marked: false }).collect()
    }
}

/// Rows in which a packet had another fate than in the vector, or the same at another microsecond.
fn differing(vector: &Vector, ours: &Replay) -> Vec<usize> {
    let us = |t: Option<Time>| t.map_or(-1.0, |t| t.0 as f64 / 1000.0);
    let (drop, deq) = (vector.column("t_drop_us"), vector.column("t_deq_us"));
    let same = |i: &usize| us(ours.dropped_at[*i]) == drop[*i] && us(ours.sent_at[*i]) == deq[*i];
    (0..drop.len()).filter(|i| !same(i)).collect()
}

fn run(vector: &Vector, qdisc: &Value, follow: bool) -> Replay {
    run_timed(vector, qdisc, follow, None)
}

/// As [`run`], for a discipline whose timer starts at time 0 in ns-2: its first update is at the
/// end of the first period.
fn run_timed(vector: &Vector, qdisc: &Value, follow: bool, period_ns: Option<f64>) -> Replay {
    let decisions = vector.decisions();
    let follow = follow.then_some(&decisions[..]);
    let first_update = period_ns.map(|ns| Time(ns.ceil() as u64));
    let options = ReplayOptions { follow, first_update, ..ReplayOptions::default() };
    replay(&vector.arrivals(), qdisc, RATE, options, &mut |_| true)
        .unwrap()
        .expect("the callback never cancels")
}

fn codel(variant: &str) -> Value {
    json!({"name": "codel", "limit": "200p", "target": "50ms", "interval": "500ms",
           "variant": variant})
}

#[test]
fn deterministic_queues_match_to_the_microsecond() {
    // The limits are ours; README-queue.md explains how they relate to the limits of ns-2.
    for (name, qdisc) in [
        ("droptail_pkt", json!({"name": "droptail", "limit": "49p"})),
        ("droptail_byte", json!({"name": "droptail", "limit": "24999B"})),
        ("drr", json!({"name": "drr", "limit": "25kB", "quantum": "250B"})),
        ("codel1", codel("ns2_v1")),
    ] {
        let vector = Vector::read(name);
        let differing = differing(&vector, &run(&vector, &qdisc, false));
        println!("{name}: {} rows, {} differ", vector.rows.len(), differing.len());
        assert_eq!(differing, [0; 0], "{name}");
    }
}

/// RED case: its settings, and min_th in the unit of its queue.
struct Red {
    name: &'static str,
    settings: Value,
    min_th: f64,
    /// Rows at which ns-2 computed a drop probability, and rows at or above min_th at which it did
    /// not.
    expected: [usize; 2],
}

/// `base` updated with `settings`.
fn with(base: &Value, settings: &Value) -> Value {
    let mut all = base.clone();
    for (name, value) in settings.as_object().unwrap() {
        all[name] = value.clone();
    }
    all
}

fn reds() -> Vec<Red> {
    let red = |name, settings, min_th, expected| Red { name, settings, min_th, expected };
    let none = json!({"name": "red", "limit": "50p", "min_th": "5p", "max_th": "15p", "w_q": 0.02,
                      "max_p": 0.1, "packet": "500B", "gentle": "none", "wait": "no"});
    let gentle = with(&none, &json!({"gentle": "two_max_th", "wait": "yes"}));
    let bytes = json!({"limit": "25kB", "min_th": "2500B", "max_th": "7500B", "byte_mode": "mean"});
    let bytes = with(&gentle, &bytes);
    vec![
        red("pkt_nogentle_nowait", none, 5.0, [4809, 244]),
        red("pkt_gentle_wait", gentle, 5.0, [4899, 281]),
        red("byte_gentle_wait", bytes, 2500.0, [4787, 290]),
    ]
}

/// Variants with an adaptive max_p. ns-2 keeps the slope above max_th that follows from the initial
/// max_p.
fn adaptive_reds() -> Vec<Red> {
    let red = |name, settings, min_th, expected| Red { name, settings, min_th, expected };
    let base = json!({"name": "ared", "limit": "25kB", "min_th": "2500B", "max_th": "7500B",
                      "w_q": 0.02, "max_p": 0.1, "packet": "500B", "gentle": "two_max_th",
                      "wait": "yes", "byte_mode": "mean", "stale_gentle": true});
    let packets = json!({"limit": "60p", "min_th": "8p", "max_th": "30p", "w_q": 0.01,
                         "wait": "no", "byte_mode": "off", "bottom": 0.02, "top": 0.2,
                         "alpha": 0.03, "beta": 0.8, "interval": "300ms"});
    // 200 packets of 500 B per second: 7.63 in half of the target delay.
    let auto = json!({"min_th": "auto", "max_th": "auto", "w_q": "auto", "bottom": "auto",
                      "limit": "50p", "target_delay": "76.3ms", "byte_mode": "off"});
    let feng = json!({"name": "feng_red", "limit": "50p", "min_th": "5p", "max_th": "15p",
                      "gentle": "none", "wait": "no", "byte_mode": "off", "alpha": 3, "beta": 2});
    vec![
        red("adaptive_pkt", with(&base, &packets), 8.0, [5017, 492]),
        red("adaptive_auto", with(&base, &auto), 7.63, [5069, 802]),
        red("feng_pkt", with(&base, &feng), 5.0, [4764, 238]),
        red("adaptive", base, 2500.0, [4788, 289]),
    ]
}

/// Queue length before each arrival, packets or bytes, from the vector's own times.
fn waiting(vector: &Vector, in_bytes: bool) -> Vec<f64> {
    let (at, len) = (vector.column("t_us"), vector.column("size_B"));
    let (drop, deq) = (vector.column("t_drop_us"), vector.column("t_deq_us"));
    let one = |k: usize| if in_bytes { len[k] } else { 1.0 };
    let waits = |k: &usize, i: usize| drop[*k] < 0.0 && deq[*k] > at[i];
    // No packet is queued for more than 200 arrivals.
    let queue = |i: usize| (i.saturating_sub(200)..i).filter(|k| waits(k, i)).map(one).sum();
    (0..at.len()).map(queue).collect()
}

/// Interval of an adaptive RED, counted from time 0 in ns-2.
fn interval_ns(settings: &Value) -> Option<f64> {
    match (settings["name"].as_str(), settings["interval"].as_str()) {
        (Some("ared"), Some("300ms")) => Some(3e8),
        (Some("ared"), None) => Some(5e8),
        (_, None) => None,
        (_, other) => panic!("interval {other:?}"),
    }
}

/// Compares the variables of a RED variant row by row with ns-2's output, which has six digits.
fn same_as_ns2(Red { name, settings, min_th, expected }: Red) {
    let vector = Vector::read(&format!("red_{name}"));
    let ours = run_timed(&vector, &settings, true, interval_ns(&settings));
    assert_eq!(differing(&vector, &ours), [0; 0], "{name}: the recorded decisions are taken");
    let gauge = |name| &ours.gauges.iter().find(|(n, _)| *n == name).unwrap().1;
    let (avg, pb, max_p) = (gauge("avg"), gauge("pb"), gauge("max_p"));
    let (ave, prob1) = (vector.column("ave_"), vector.column("prob1_"));
    let cur_max_p = vector.column("cur_max_p_");
    let queue = waiting(&vector, settings["limit"].as_str().unwrap().ends_with('B'));
    let six = |x: f64| format!("{x:.5e}");
    let (mut computed, mut left_out, mut before) = (0, 0, false);
    // True while packets since the last drop are counted alike: arrivals at which ns-2 takes no
    // decision cause a difference, which the next drop removes.
    let mut count = true;
    for i in 0..avg.len() {
        assert_eq!(six(avg[i]), six(ave[i]), "{name}, row {i}: avg");
        assert_eq!(six(max_p[i]), six(cur_max_p[i]), "{name}, row {i}: max_p");
        // ns-2 takes no decision at a queue length of at most 1 (1 byte, where it counts bytes),
        // nor at the first arrival after that or after an average below min_th: prob1_ is then
        // stale.
        let band = ave[i] >= min_th;
        let now = band && queue[i] > 1.0;
        if now && before {
            assert_eq!(six(pb[i]), six(prob1[i]), "{name}, row {i}: pb");
            assert!(!ours.diverged[i] || !count, "{name}, row {i}: the decision is possible");
            computed += 1;
        } else if band {
            (left_out, count) = (left_out + 1, false);
        }
        count |= ours.decisions[i].dropped;
        before = now;
    }
    println!("{name}: avg, max_p at all {} rows, pb at {computed}, {left_out} not", avg.len());
    assert_eq!([computed, left_out], expected, "{name}");
}

#[test]
fn red_has_the_averages_and_probabilities_of_ns2() {
    reds().into_iter().for_each(same_as_ns2);
}

#[test]
fn adaptive_reds_have_the_averages_probabilities_and_max_p_of_ns2() {
    adaptive_reds().into_iter().for_each(same_as_ns2);
}

#[test]
fn codel_of_the_rfc_equals_the_2012_form_until_the_third_dropping_state() {
    // The 2012 form starts a new dropping state from count - 1, the RFC from count - lastcount.
    // These are equal in the second state (lastcount is 1) and differ from the third on.
    let vector = Vector::read("codel1");
    let ours = run(&vector, &codel("rfc"), false);
    let dropping = &ours.gauges.iter().find(|(n, _)| *n == "dropping").unwrap().1;
    let entries: Vec<usize> =
        (1..dropping.len()).filter(|i| dropping[*i] > dropping[*i - 1]).collect();
    let first = differing(&vector, &ours)[0];
    // A row's fate is decided at dequeue, up to 200 arrivals later.
    assert!(entries[1] < first && first < entries[2], "{first} is not between {entries:?}");
    let lost = vector.whole("dropped")[..first].iter().sum::<i64>();
    println!("codel1: the first {first} rows agree, {lost} losses in two dropping states");
    assert_eq!((first, lost), (4858, 847));
}

#[test]
fn codel_in_the_2012_form_drops_as_often_as_in_ns2() {
    // scenarios/codel_target_util.csv: one SACK flow over 1 Gbit/s, RTT 300 us.
    let path =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../lab/vectors/scenarios/codel_target_util.csv");
    let text = std::fs::read_to_string(path).expect(path);
    let wide = json!({"name": "droptail", "limit": "99999p"});
    let mut rows = 0;
    for line in text.lines().skip(1) {
        let row: Vec<&str> = line.split(',').collect();
        let column = |k: usize| row[k].parse::<f64>().expect(line);
        let (target, util, queue, drops) = (column(1), column(5), column(7), column(11));
        let codel = json!({"name": "codel", "variant": "ns2_v1", "interval": "750us",
                           "target": format!("{:.0}us", target * 1000.0), "limit": "1000p"});
        let out = common::run(&json!({
            "duration": "5s", "warmup": "1s",
            "links": {"bottleneck": {"rate": "1gbit", "delay": "75us", "qdisc": codel},
                      "back": {"rate": "1gbit", "delay": "75us", "qdisc": wide},
                      "access": {"rate": "10gbit", "delay": "75us", "qdisc": wide}},
            "flows": [{"name": "ftp", "path": ["access", "bottleneck"], "return_path": ["back"],
                       "rtt": "300us", "source": {"name": "bulk", "start": "uniform(0us, 300us)"},
                       "tcp": {"name": "sack", "profile": "ns2", "packet": "1000B",
                               "receive_window": "10000p", "rto_min": "10ms", "tick": "100us"}}]
        }));
        let link = &out.summary["links"]["bottleneck"];
        let ours =
            ["utilisation", "queue_mean_packets", "dropped_packets"].map(|key| num(link, key));
        println!("target {target} ms: {ours:?}, ns-2 {util} {queue} {drops}");
        // The start of the measured window is not recorded. The numbers differ at its edges.
        assert!((ours[0] - util).abs() < 0.0005, "{target}: {} and {util}", ours[0]);
        assert!((ours[1] / queue - 1.0).abs() < 0.005, "{target}: {} and {queue}", ours[1]);
        assert!((ours[2] - drops).abs() <= 1.0, "{target}: {} and {drops}", ours[2]);
        rows += 1;
    }
    assert_eq!(rows, 11);
}

/// Number of periods of 1/`w` seconds that have ended at `us` microseconds.
fn samples(us: f64, w: f64) -> i64 {
    (us * w / 1e6) as i64
}

#[test]
fn pi_and_rem_have_the_probabilities_of_ns2() {
    let gains = json!({"name": "pi", "limit": "50p", "a": 0.001822, "b": 0.001816, "w": 170,
                       "q_ref": "10p", "packet": "500B"});
    let price = json!({"name": "rem", "limit": "49p", "gamma": 0.01, "phi": 1.01, "alpha": 0.1,
                       "inw": 0.02, "period": "10ms", "b_star": "10p", "packet": "500B"});
    let in_bytes = |law: &Value, limit: &str, target: &str| {
        let mut law = law.clone();
        (law["limit"], law[target], law["byte_mode"]) = (json!(limit), json!("5kB"), json!(true));
        law
    };
    for (name, law, w) in [
        ("pi_pkt", gains.clone(), 170.0),
        // In byte mode ns-2's PI accepts a packet if the queue is below the limit.
        ("pi_byte", in_bytes(&gains, "26499B", "q_ref"), 170.0),
        ("rem_pkt", price.clone(), 100.0),
        ("rem_byte", in_bytes(&price, "24999B", "b_star"), 100.0),
    ] {
        let vector = Vector::read(name);
        let ours = run_timed(&vector, &law, true, Some(1e9 / w));
        assert_eq!(differing(&vector, &ours), [0; 0], "{name}: the recorded decisions are taken");
        assert!(!ours.diverged.contains(&true), "{name}: they are possible");
        let p = &ours.gauges.iter().find(|(n, _)| *n == "p").unwrap().1;
        let (at, prob) = (vector.column("t_us"), vector.column("prob_"));
        // ns-2 prints six digits, half a microsecond later: once a sample falls in between.
        let six = |x: f64| format!("{x:.5e}");
        let later = |i: &usize| samples(at[*i], w) != samples(at[*i] + 0.5, w);
        let left_out: Vec<usize> = (0..p.len()).filter(later).collect();
        for i in (0..p.len()).filter(|i| !left_out.contains(i)) {
            assert_eq!(six(p[i]), six(prob[i]), "{name}, row {i}: p");
        }
        println!("{name}: p at all {} rows but {left_out:?}", p.len());
        assert_eq!(left_out, if w == 170.0 { vec![2142] } else { vec![] }, "{name}");
    }
}

#[test]
fn avq_matches_to_the_microsecond() {
    for (name, law) in [
        (
            "vq_pkt",
            json!({"name": "avq", "limit": "50p", "gamma": 1, "buflim": 0.5,
                          "packet": "500B"}),
        ),
        ("vq_byte", json!({"name": "avq", "limit": "25kB", "gamma": 0.98, "ecnlim": 0.5})),
    ] {
        let vector = Vector::read(name);
        let differing = differing(&vector, &run(&vector, &law, false));
        println!("{name}: {} rows, {} differ", vector.rows.len(), differing.len());
        assert_eq!(differing, [0; 0], "{name}");
    }
}
