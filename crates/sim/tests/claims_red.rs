//! Claims of the authors of the RED family: HRED keeps its queue at any load within its stability
//! condition; ARED brings the average into its target band where RED does not; Feng's max_p follows
//! the load; REDopt's queue matches its model; SA-RED damps an oscillation. Each run has one seed;
//! the tolerances hold for ten.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "tests use small numbers"
)]

mod common;
use common::{num, run};
use serde_json::{Value, json};
use sojourn_aqm::aqm::hred::deviation_gain;
use sojourn_aqm::aqm::red_opt::{Model, RedOptParams, model};
use sojourn_aqm::units::Rate;
use sojourn_sim::{Column, Outcome};

/// `n` long flows over one link, from `warmup` seconds to `end`.
struct Load {
    rate: &'static str,
    n: u32,
    rtt: &'static str,
    packet: &'static str,
    warmup: u32,
    end: u32,
}

/// Summary of the link with `qdisc`.
fn link(load: &Load, qdisc: &Value) -> Value {
    let Load { rate, n, rtt, packet, warmup, end } = *load;
    let out = run(&json!({
        "duration": format!("{end}s"), "warmup": format!("{warmup}s"),
        "links": {"l": {"rate": rate, "delay": "10ms", "qdisc": qdisc}},
        "flows": [{"name": "f", "count": n, "path": ["l"], "rtt": rtt,
                   "source": {"name": "bulk", "start": "uniform(0s, 5s)"},
                   "tcp": {"name": "newreno", "profile": "ns2", "packet": packet}}]
    }));
    out.summary["links"]["l"].clone()
}

#[test]
fn hred_keeps_the_mean_queue_in_its_band_at_any_load() {
    // Section 4 of the HRED paper, with long flows only. An independent prototype had a mean of
    // 0.396 and a deviation of 0.091 of the buffer and a loss of 0.75 % at 100 flows; 0.386, 0.066
    // and 4.3 % at 300.
    let buffer = 300e3;
    let mut means = vec![];
    for (n, mean_proto, std_most) in [(50, 0.39, 0.14), (100, 0.396, 0.12), (300, 0.386, 0.09)] {
        let load = Load {
            rate: "45mbit",
            n,
            rtt: "uniform(40ms, 200ms)",
            packet: "500B",
            warmup: 40,
            end: 90,
        };
        let l = link(&load, &json!({"name": "hred", "limit": "300kB"}));
        let (mean, std) =
            (num(&l, "queue_mean_bytes") / buffer, num(&l, "queue_std_bytes") / buffer);
        let (loss, used) = (num(&l, "loss_rate"), num(&l, "utilisation"));
        println!("hred, {n} flows: {mean:.3} of B, deviation {std:.3}, loss {loss:.4}");
        assert!((mean - mean_proto).abs() < 0.03, "{n} flows: {mean}");
        assert!(std < std_most && used > 0.995, "{n} flows: {std} {used}");
        means.push(mean);
    }
    let [least, most] =
        [means.iter().copied().fold(1.0, f64::min), means.iter().copied().fold(0.0, f64::max)];
    assert!(least > 0.25 && most < 0.5 && most - least < 0.04, "{means:?}");
}

#[test]
fn hred_settles_within_its_stability_bound_and_oscillates_far_outside() {
    // 10 mbit times 120 ms is 150 kB; thresholds B/4 and B/2, kappa 2.
    let mut deviations = vec![];
    for (kb, inside) in [(320, true), (160, true), (80, false), (20, false)] {
        let b = f64::from(kb);
        let gain = deviation_gain(0.375 * b, 150.0, [b / 4.0, b / 2.0], 2.0);
        assert_eq!(gain < 0.99, inside, "{kb} kB: {gain}");
        let load =
            Load { rate: "10mbit", n: 50, rtt: "120ms", packet: "500B", warmup: 60, end: 120 };
        let l = link(&load, &json!({"name": "hred", "limit": format!("{kb}kB")}));
        let [mean, std] = ["queue_mean_bytes", "queue_std_bytes"].map(|k| num(&l, k) / b / 1e3);
        println!("hred, B = {kb} kB, |G| = {gain:.2}: {mean:.3} of B, deviation {std:.3}");
        deviations.push(std);
        if inside {
            // Stays in the band: the deviation is less than half the width of the band.
            assert!(std < 0.125 && (0.25..0.5).contains(&mean), "{kb} kB: {mean} {std}");
        }
    }
    // Far outside, at |G| = 3.5, the queue oscillates over the whole buffer: at least as much as a
    // uniformly distributed length, whose deviation is 0.289.
    assert!(deviations.is_sorted() && deviations[3] > 0.25, "{deviations:?}");
}

#[test]
fn ared_brings_the_queue_into_its_target_band_where_red_does_not() {
    let band = 18.0..22.0;
    let mean = |n, name: &str| {
        let load = Load {
            rate: "10mbit",
            n,
            rtt: "uniform(50ms, 150ms)",
            packet: "1000B",
            warmup: 40,
            end: 140,
        };
        // ARED's own w_q for this link, used by both.
        let l = link(
            &load,
            &json!({"name": name, "limit": "100p", "min_th": "10p", "max_th": "30p",
                                    "w_q": 0.0004, "gentle": "two_max_th"}),
        );
        num(&l, "queue_mean_packets")
    };
    // With fewer flows max_p would have to be below its lower bound, 0.01.
    for n in [20, 40, 80, 120] {
        let [red, ared] = ["red", "ared"].map(|name| mean(n, name));
        println!("{n} flows: red {red:.1}p, ared {ared:.1}p");
        assert!(band.contains(&ared), "{n} flows: ared {ared}");
        assert!(n == 40 || !band.contains(&red), "{n} flows: red {red}");
    }
}

/// Mean of a gauge of the link over some seconds, with one sample per second.
fn gauge(out: &Outcome, name: &str, [from, to]: [usize; 2]) -> f64 {
    let name = format!("links/l/gauge/{name}");
    let column = out.columns.iter().find(|(n, _)| *n == name).unwrap_or_else(|| panic!("{name}"));
    let Column::F64(values) = &column.1 else { panic!("gauges are numbers") };
    values[from..to].iter().sum::<f64>() / (to - from) as f64
}

#[test]
fn max_p_of_feng_and_of_ared_follows_the_load() {
    for (name, least) in [("feng_red", 2.0), ("ared", 3.0)] {
        // Twenty flows; eighty more from 100 s to 200 s.
        let flows = |name: &str, n: u32, start: &str, stop: &str| {
            json!({"name": name, "count": n, "path": ["l"], "rtt": "uniform(50ms, 150ms)",
                   "source": {"name": "bulk", "start": start, "stop": stop},
                   "tcp": {"name": "newreno", "profile": "ns2", "packet": "1000B"}})
        };
        let out = run(&json!({
            "duration": "300s", "sample": "1s",
            "links": {"l": {"rate": "10mbit", "delay": "10ms", "qdisc":
                {"name": name, "limit": "100p", "min_th": "10p", "max_th": "30p"}}},
            "flows": [flows("few", 20, "0s", "300s"), flows("more", 80, "100s", "200s")]
        }));
        let [before, during, after] =
            [[50, 100], [130, 200], [230, 300]].map(|span| gauge(&out, "max_p", span));
        println!("{name}: max_p {before:.2e}, {during:.2e}, {after:.2e}");
        assert!(during > least * before && during > least * after, "{before} {during} {after}");
    }
}

#[test]
fn the_queue_of_redopt_matches_its_model() {
    for (n, b) in [(16, 2), (32, 2), (64, 2), (128, 2), (16, 1), (64, 1)] {
        let params = RedOptParams {
            flows: n,
            udp_rate: Rate(1_000_000),
            delayed_acks: b == 2,
            ..RedOptParams::default()
        };
        let Model { min_th, max_th, buffer, p0, .. } = model(&params, Rate(10_000_000)).unwrap();
        let out = run(&json!({
            "duration": "250s", "warmup": "100s",
            "links": {"l": {"rate": "10mbit", "delay": "50ms", "qdisc": {
                "name": "red_opt", "limit": format!("{}p", buffer as u64), "flows": n,
                "udp_rate": "1mbit", "delayed_acks": b == 2}}},
            "flows": [
                {"name": "f", "count": n, "path": ["l"], "rtt": "uniform(120ms, 180ms)",
                 "source": {"name": "bulk", "start": "uniform(0s, 10s)"},
                 "tcp": {"name": "sack", "profile": "ns2", "packet": "1514B",
                         "delayed_ack": b == 2}},
                {"name": "call", "count": 4, "path": ["l"],
                 "source": {"name": "cbr", "rate": "250kbit", "packet": "573B"}}]
        }));
        let l = &out.summary["links"]["l"];
        let place = (num(l, "queue_mean_packets") - min_th) / (max_th - min_th);
        let loss = num(l, "loss_rate");
        println!("{n} flows, b = {b}: at {place:.3} of the band, loss {loss:.4}, p0 {p0:.4}");
        // The middle of the band to a tenth of its width; the drop probability to 20 %.
        assert!((place - 0.5).abs() < 0.1, "{n} flows, b = {b}: {place}");
        assert!((loss / p0 - 1.0).abs() < 0.2, "{n} flows, b = {b}: {loss}, not {p0}");
    }
}

#[test]
fn sa_red_damps_an_oscillation_of_red() {
    // A steep slope with a slow average: RED fills and empties its buffer alternately.
    for n in [10, 30, 60] {
        let load = Load { rate: "10mbit", n, rtt: "100ms", packet: "1000B", warmup: 100, end: 200 };
        let [red, sa_red] = ["red", "sa_red"].map(|name| {
            let l = link(
                &load,
                &json!({"name": name, "limit": "400p", "min_th": "50p",
                                        "max_th": "100p", "max_p": 1, "w_q": 0.0002}),
            );
            ["queue_mean_packets", "queue_std_packets", "utilisation"].map(|key| num(&l, key))
        });
        println!("{n} flows: red {red:.2?}, sa_red {sa_red:.2?}");
        // RED's deviation is the deviation of a queue alternating between empty and twice its mean.
        assert!(red[1] > 0.85 * red[0], "{n} flows: red {red:?}");
        assert!(sa_red[1] < 0.5 * red[1] && sa_red[2] > red[2], "{n} flows: {red:?} {sa_red:?}");
        assert!((50.0..100.0).contains(&sa_red[0]), "{n} flows: {sa_red:?}");
    }
}
