//! Queues against recorded arrivals and decisions of ns-2 (`tests/vectors/README-queue.md`).

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use sojourn_aqm::{Rate, Time};
use sojourn_sim::{Arrival, Decision, Replay, replay};
use std::io::Read;

/// One byte takes 10 microseconds.
const RATE: Rate = Rate(800_000);

/// A vector: columns by name.
struct Vector {
    header: Vec<String>,
    rows: Vec<Vec<f64>>,
}

impl Vector {
    fn read(name: &str) -> Vector {
        let path =
            format!("{}/../../tests/vectors/queue_{name}.csv.gz", env!("CARGO_MANIFEST_DIR"));
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

/// Rows in which a packet met another fate than in the vector, or the same at another microsecond.
fn differing(vector: &Vector, ours: &Replay) -> Vec<usize> {
    let us = |t: Option<Time>| t.map_or(-1.0, |t| t.0 as f64 / 1000.0);
    let (drop, deq) = (vector.column("t_drop_us"), vector.column("t_deq_us"));
    let same = |i: &usize| us(ours.dropped_at[*i]) == drop[*i] && us(ours.sent_at[*i]) == deq[*i];
    (0..drop.len()).filter(|i| !same(i)).collect()
}

fn run(vector: &Vector, qdisc: &Value, follow: bool) -> Replay {
    let decisions = vector.decisions();
    let follow = follow.then_some(&decisions[..]);
    replay(&vector.arrivals(), qdisc, RATE, follow).unwrap()
}

fn codel(variant: &str) -> Value {
    json!({"name": "codel", "limit": "200p", "target": "50ms", "interval": "500ms",
           "variant": variant})
}

#[test]
fn queues_without_dice_are_equal_to_the_microsecond() {
    // The limits are ours; README-queue.md says how they follow from those of ns-2.
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

/// A case of RED: its settings and the unit of its queue in bytes, 1 where it counts packets.
struct Red {
    name: &'static str,
    settings: Value,
    unit: f64,
    /// Rows at which ns-2 computed a chance, and rows at or above min_th at which it did not.
    expected: [usize; 2],
}

fn reds() -> [Red; 3] {
    let red = |gentle, wait| {
        json!({"name": "red", "limit": "50p", "min_th": "5p", "max_th": "15p", "w_q": 0.02,
               "max_p": 0.1, "packet": "500B", "gentle": gentle, "wait": wait})
    };
    let mut bytes = red("two_max_th", "yes");
    for (name, value) in [("limit", "25kB"), ("min_th", "2500B"), ("max_th", "7500B")] {
        bytes[name] = json!(value);
    }
    bytes["byte_mode"] = json!("mean");
    [
        Red {
            name: "red_pkt_nogentle_nowait",
            settings: red("none", "no"),
            unit: 1.0,
            expected: [4809, 244],
        },
        Red {
            name: "red_pkt_gentle_wait",
            settings: red("two_max_th", "yes"),
            unit: 1.0,
            expected: [4899, 281],
        },
        Red { name: "red_byte_gentle_wait", settings: bytes, unit: 500.0, expected: [4787, 290] },
    ]
}

/// What waits before each arrival, packets or bytes, by the vector's own times.
fn waiting(vector: &Vector, in_bytes: bool) -> Vec<f64> {
    let (at, len) = (vector.column("t_us"), vector.column("size_B"));
    let (drop, deq) = (vector.column("t_drop_us"), vector.column("t_deq_us"));
    let one = |k: usize| if in_bytes { len[k] } else { 1.0 };
    let waits = |k: &usize, i: usize| drop[*k] < 0.0 && deq[*k] > at[i];
    // Nobody here waits longer than 200 arrivals.
    let queue = |i: usize| (i.saturating_sub(200)..i).filter(|k| waits(k, i)).map(one).sum();
    (0..at.len()).map(queue).collect()
}

#[test]
fn red_has_the_averages_and_chances_of_ns2() {
    for Red { name, settings, unit, expected } in reds() {
        let vector = Vector::read(name);
        let ours = run(&vector, &settings, true);
        assert_eq!(differing(&vector, &ours), [0; 0], "{name}: the recorded decisions are taken");
        let gauge = |name| &ours.gauges.iter().find(|(n, _)| *n == name).unwrap().1;
        let (avg, pb) = (gauge("avg"), gauge("pb"));
        let (ave, prob1) = (vector.column("ave_"), vector.column("prob1_"));
        let queue = waiting(&vector, unit > 1.0);
        // ns-2 prints six digits.
        let six = |x: f64| format!("{x:.5e}");
        let (mut computed, mut left_out, mut before) = (0, 0, false);
        for i in 0..avg.len() {
            assert_eq!(six(avg[i]), six(ave[i]), "{name}, row {i}: avg");
            // ns-2 takes no decision while 1 or less waits (1 byte, where it counts bytes), nor at
            // the first arrival after that or after an average below min_th: prob1_ is then stale.
            let band = ave[i] >= 5.0 * unit;
            let now = band && queue[i] > 1.0;
            if now && before {
                assert_eq!(six(pb[i]), six(prob1[i]), "{name}, row {i}: pb");
                assert!(!ours.diverged[i], "{name}, row {i}: the decision is possible");
                computed += 1;
            } else if band {
                left_out += 1;
            }
            before = now;
        }
        println!("{name}: avg at all {} rows, pb at {computed}, {left_out} left out", avg.len());
        assert_eq!([computed, left_out], expected, "{name}");
    }
}

#[test]
fn codel_of_the_rfc_is_that_of_2012_until_its_third_dropping_state() {
    // The form of 2012 starts a dropping state anew from count - 1. The RFC starts from count -
    // lastcount, which is the same in the second one (lastcount is 1) and differs from the third
    // on.
    let vector = Vector::read("codel1");
    let ours = run(&vector, &codel("rfc"), false);
    let dropping = &ours.gauges.iter().find(|(n, _)| *n == "dropping").unwrap().1;
    let entries: Vec<usize> =
        (1..dropping.len()).filter(|i| dropping[*i] > dropping[*i - 1]).collect();
    let first = differing(&vector, &ours)[0];
    // A row's fate is settled when it leaves, up to 200 arrivals later.
    assert!(entries[1] < first && first < entries[2], "{first} is not between {entries:?}");
    let lost = vector.whole("dropped")[..first].iter().sum::<i64>();
    println!("codel1: the first {first} rows agree, {lost} losses in two dropping states");
    assert_eq!((first, lost), (4858, 847));
}
