//! Disciplines compared with recordings of Linux (`lab/vectors/README-linux.md`).
//!
//! These are the first packets of some recordings. `make validate-linux` compares all of them
//! (reports/validation-linux.md), in Python: `validation/linux` says where each setting is from.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "tests use small numbers"
)]

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use sojourn_aqm::{Bytes, Ecn, Rate, Time};
use sojourn_sim::{Arrival, Decision, Replay, ReplayOptions, replay};
use std::io::Read;

/// Rate of the recordings whose clock is exact: 512 ns per byte.
const EXACT: Rate = Rate(15_625_000);

/// Packets of a recording: arrivals, fates, and starts of transmission.
struct Recording {
    arrivals: Vec<Arrival>,
    decisions: Vec<Decision>,
    sent_at: Vec<Option<Time>>,
}

fn lines(name: &str) -> Vec<Vec<i64>> {
    let path = format!("{}/../../lab/vectors/linux/{name}.csv.gz", env!("CARGO_MANIFEST_DIR"));
    let mut text = String::new();
    GzDecoder::new(std::fs::File::open(&path).expect(&path)).read_to_string(&mut text).unwrap();
    let row = |line: &str| line.split(',').map(|cell| cell.parse().unwrap_or(0)).collect();
    text.lines().skip(1).map(row).collect()
}

/// The first `rows` packets. The clock shows `clock_ns` when the recording begins.
fn recording(name: &str, rows: usize, clock_ns: i64) -> Recording {
    let (mut arrivals, mut decisions, mut sent_at) = (vec![], vec![], vec![]);
    let (mut at, mut sent) = (clock_ns, clock_ns);
    for row in lines(name).into_iter().take(rows) {
        let [gap, flow, len, ecn, fate, later] = row[..] else { panic!("{name}: {row:?}") };
        at += gap;
        sent += later;
        let (at, ecn) = (Time(at as u64), Ecn::from_bits(ecn as u8));
        let (flow, len) = (flow as u32, len as u32);
        arrivals.push(Arrival { at, flow, len, ecn, ..Arrival::default() });
        decisions.push(Decision { dropped: fate == 2, marked: fate == 1 });
        sent_at.push((fate != 2).then_some(Time(sent as u64)));
    }
    Recording { arrivals, decisions, sent_at }
}

fn replayed(
    recording: &Recording,
    qdisc: &Value,
    rate: Rate,
    options: ReplayOptions<'_>,
) -> Replay {
    replay(&recording.arrivals, qdisc, rate, options, &mut |_| true).unwrap().expect("no cancel")
}

/// Behind HTB with a burst of 0.
fn behind_htb() -> ReplayOptions<'static> {
    ReplayOptions { htb_burst: Some(Bytes(0)), ..ReplayOptions::default() }
}

/// Resolution of the kernel's time stamps, ns.
const STAMP: u64 = 500;

/// Asserts that the fates are as in the recording, and the times up to `late_ns`. The packets
/// that are still queued after the last row of the excerpt are left out.
fn same(name: &str, recording: &Recording, ours: &Replay, late_ns: u64) {
    let end = recording.arrivals.last().unwrap().at;
    for i in 0..recording.decisions.len() {
        if recording.sent_at[i].or(ours.sent_at[i]).is_some_and(|at| at >= end) {
            continue;
        }
        assert_eq!(ours.decisions[i], recording.decisions[i], "{name}, row {i}");
        if let (Some(a), Some(b)) = (ours.sent_at[i], recording.sent_at[i]) {
            assert!(a.0.abs_diff(b.0) <= late_ns, "{name}, row {i}: {a:?} and {b:?}");
        }
    }
}

fn exactly(name: &str, qdisc: &Value) {
    let theirs = recording(name, 3000, 0);
    same(name, &theirs, &replayed(&theirs, qdisc, EXACT, behind_htb()), STAMP);
}

#[test]
fn codel_is_that_of_linux() {
    let codel =
        |limit, ecn| json!({"name": "codel", "variant": "linux", "limit": limit, "ecn": ecn});
    exactly("codel_bursts", &codel("1000p", false));
    exactly("codel_steady120", &codel("1000p", false));
    exactly("codelecn_ramp", &codel("1000p", true));
    let mut other = codel("100p", false);
    (other["target"], other["interval"]) = (json!("20ms"), json!("200ms"));
    exactly("codel2_onoff", &other);
}

#[test]
fn fq_codel_is_that_of_linux() {
    let fair = |ecn| json!({"name": "fq_codel", "variant": "linux", "ecn": ecn});
    exactly("fqcodel_flows64", &fair(false));
    exactly("fqcodelecn_two", &fair(true));
    let mut other = fair(false);
    (other["limit"], other["quantum"]) = (json!("60p"), json!("300B"));
    (other["target"], other["interval"]) = (json!("8ms"), json!("80ms"));
    exactly("fqcodel2_flows64", &other);
    exactly("fqcodel2_bursts", &other);
}

#[test]
fn sfq_is_that_of_linux() {
    exactly("sfq_flows64", &json!({"name": "sfq", "variant": "linux", "quantum": "1514B"}));
    let other = json!({"name": "sfq", "variant": "linux", "limit": "60p", "depth": 20,
                       "quantum": "600B", "drop": "head"});
    exactly("sfq2_flows64", &other);
    exactly("sfq2_bursts", &other);
}

/// PIE, given the recorded decisions, has the probability that the kernel showed.
fn pie(name: &str, settings: &[(&str, Value)], phase_us: u64) {
    let mut qdisc = json!({"name": "pie", "variant": "linux", "hz": 100, "limit": "1000p"});
    settings.iter().for_each(|(key, value)| qdisc[*key] = value.clone());
    let theirs = recording(name, usize::MAX, 0);
    let options = ReplayOptions {
        follow: Some(&theirs.decisions),
        first_update: Some(Time(phase_us * 1000)),
        ..behind_htb()
    };
    let ours = replayed(&theirs, &qdisc, EXACT, options);
    same(name, &theirs, &ours, STAMP);
    assert!(!ours.diverged.contains(&true), "{name}: the decisions are possible");
    let p = &ours.gauges.iter().find(|(gauge, _)| *gauge == "p").unwrap().1;
    let shown = lines(&format!("{name}.p"));
    let mut compared = 0;
    for (i, arrival) in theirs.arrivals.iter().enumerate() {
        // Read at the arrivals at which it had changed: nine digits.
        let Ok(k) = shown.binary_search_by_key(&arrival.at.0.cast_signed(), |row| row[0]) else {
            continue;
        };
        let ours = p[i] * f64::from(u32::MAX);
        assert!(
            (ours - shown[k][1] as f64).abs() <= 4.0,
            "{name}, row {i}: {ours}, {:?}",
            shown[k]
        );
        compared += 1;
    }
    assert!(compared > 50, "{name}: {compared}");
}

#[test]
fn pie_is_that_of_linux() {
    pie("pie_onoff", &[], 29_380);
    pie("pie_steady120", &[], 29_381);
    pie("piebyte_two", &[("byte_mode", json!(true))], 29_681);
    let other = [("limit", json!("200p")), ("target", json!("30ms")), ("t_update", json!("40ms"))];
    let gains = [("alpha", json!(0.25)), ("beta", json!(1.875))];
    pie("pie2_onoff", &[&other[..], &gains].concat(), 9_303);
}

#[test]
fn pie_that_estimates_the_rate_is_that_of_linux() {
    for (pattern, phase_us) in [("onoff", 29_367), ("two", 29_353), ("steady120", 29_005)] {
        pie(&format!("piedq_{pattern}"), &[("latency", json!("rate"))], phase_us);
    }
}

#[test]
fn red_gives_the_decisions_of_linux_their_probabilities() {
    for (name, ecn) in [("red_steady120", false), ("redecn_two", true), ("red_onoff", false)] {
        let qdisc = json!({"name": "red", "variant": "linux", "limit": "400000B", "ecn": ecn,
                           "min_th": "15000B", "max_th": "45000B", "max_p": 0.1,
                           "w_q": 0.007_812_5, "packet": "1000B"});
        let theirs = recording(name, usize::MAX, 0);
        let options = ReplayOptions { follow: Some(&theirs.decisions), ..behind_htb() };
        let ours = replayed(&theirs, &qdisc, EXACT, options);
        same(name, &theirs, &ours, STAMP);
        assert!(!ours.diverged.contains(&true), "{name}: the decisions are possible");
        // Between the thresholds there are as many signals as the probabilities say.
        let gauge = |name| &ours.gauges.iter().find(|(gauge, _)| *gauge == name).unwrap().1;
        let (mut signals, mut expected, mut variance) = (0.0, 0.0, 0.0);
        for (decision, (pb, pa)) in theirs.decisions.iter().zip(gauge("pb").iter().zip(gauge("pa")))
        {
            if *pb > 0.0 && *pb < 1.0 {
                signals += f64::from(u8::from(decision.dropped || decision.marked));
                expected += pa;
                variance += pa * (1.0 - pa);
            }
        }
        let z = (signals - expected) / variance.sqrt();
        assert!(signals > 50.0 && z.abs() < 3.3, "{name}: {signals} of {expected}, z = {z}");
    }
}

/// Behind HTB at 10 Mbit/s, until an ARP probe that the recordings do not list (4.039 s).
fn before_the_probe(name: &str, qdisc: &Value, clock_ns: i64) {
    let name = format!("{name}_10m");
    let all = recording(&name, usize::MAX, clock_ns);
    let rows = all.arrivals.iter().take_while(|a| a.at < Time(4_039_000_000)).count();
    let mut departures: Vec<Time> = all.sent_at.iter().flatten().copied().collect();
    departures.sort();
    let theirs = recording(&name, rows, clock_ns);
    let options = ReplayOptions {
        htb_burst: Some(Bytes(1514)),
        departures: Some(&departures),
        ..ReplayOptions::default()
    };
    same(&name, &theirs, &replayed(&theirs, qdisc, Rate(10_000_000), options), STAMP);
}

#[test]
fn fq_is_that_of_linux() {
    let mut fq = json!({"name": "fq", "hz": 100});
    before_the_probe("fq-default_mix", &fq, 500_000);
    fq["ce_threshold"] = json!("1ms");
    before_the_probe("fq-ce1ms_mix", &fq, 500_000);
    let small = json!({"name": "fq", "hz": 100, "quantum": "1514B", "initial_quantum": "1514B"});
    before_the_probe("fq-q1514_mix", &small, 500_000);
}

/// CAKE is its own shaper. `rows` packets are before the first one that depends on the kernel's
/// random numbers; `headers` are the DSCP and the hosts of the flows from 6001 on. Where the dither
/// of a credit decides which of two queues sends first, packets are late by the time of `swapped`
/// frames of 1514 bytes.
fn cake(
    name: &str,
    settings: &[(&str, &str)],
    headers: &[(u16, [u32; 2])],
    rows: usize,
    swapped: u64,
) {
    let mut qdisc =
        json!({"name": "cake", "bandwidth": "10mbit", "header": "14B", "memory": "truesize"});
    settings.iter().for_each(|(key, value)| qdisc[*key] = json!(value));
    let mut theirs = recording(&format!("cake-{name}_10m"), rows, 0);
    for arrival in &mut theirs.arrivals {
        let header = headers.get(arrival.flow as usize - 6001);
        (arrival.class, arrival.hosts) = header.copied().unwrap_or((0, [1, 1]));
    }
    let fast = Rate(1_000_000_000_000_000);
    same(
        name,
        &theirs,
        &replayed(&theirs, &qdisc, fast, ReplayOptions::default()),
        STAMP + swapped * 1_211_200,
    );
}

/// Settings of the recordings with one tin.
const PLAIN: [(&str, &str); 2] = [("tins", "besteffort"), ("isolation", "flows")];

#[test]
fn cake_is_that_of_linux_until_random_numbers_decide() {
    let with = |more: &[(&'static str, &'static str)]| [&PLAIN, more].concat();
    cake("be_e12", &PLAIN, &[], 3300, 0);
    cake("be_over", &PLAIN, &[], 2900, 0);
    cake("rtt20_mix", &with(&[("rtt", "20ms")]), &[], 990, 1);
    cake("memlimit_mix", &with(&[("limit", "100000B")]), &[], 240, 0);
    cake("ov30ptm_small", &with(&[("overhead", "30 ptm")]), &[], 4800, 2);
    cake("ov18mpu64_small", &with(&[("overhead", "18 mpu 64")]), &[], 6700, 2);
    cake("ethernet_small", &with(&[("overhead", "ethernet")]), &[], 7700, 2);
    cake("raw_small", &with(&[("overhead", "raw")]), &[], 9000, 1);
}

#[test]
fn the_tins_of_cake_are_those_of_linux() {
    let dscp = [46, 8, 34, 0].map(|dscp| (dscp, [1, 1]));
    cake("default_dscp", &[], &dscp, 2200, 0);
    cake("diffserv4_dscp", &[("tins", "diffserv4")], &dscp, 2070, 0);
    cake("diffserv8_sparse", &[("tins", "diffserv8")], &[], 4000, 1);
    cake("default_sparse", &[], &[], 4000, 2);
}

#[test]
fn cake_isolates_hosts_as_linux_does() {
    let hosts = [2, 2, 2, 2, 3].map(|sender| (0, [sender, 1]));
    for (mode, rows, swapped) in [
        ("triple_isolate", 1350, 1),
        ("flows", 1900, 3),
        ("dual_srchost", 450, 1),
        ("dual_dsthost", 510, 1),
        ("srchost", 1400, 0),
        ("hosts", 1500, 1),
        ("flowblind", 1640, 0),
    ] {
        let settings = [("tins", "besteffort"), ("isolation", mode)];
        cake(&format!("{}_hosts", mode.replace('_', "-")), &settings, &hosts, rows, swapped);
    }
}

#[test]
fn cobalt_is_that_of_cake_in_linux() {
    let qdisc = json!({"name": "cobalt", "variant": "linux", "ecn": true, "limit": "10000p"});
    let theirs = recording("cake-be_e12_10m", 3300, 0);
    let ours = replayed(&theirs, &qdisc, Rate(10_000_000), ReplayOptions::default());
    same("cobalt", &theirs, &ours, STAMP);
}
