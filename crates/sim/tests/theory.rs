//! Queues, one TCP flow and round robin compared with theory. The square-root law is tested in
//! `tcp_theory.rs`, the exact rate over an hour in `link.rs` of the library.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "tests use small numbers"
)]

mod common;
use common::{num, run};
use rand_core::{Rng, SeedableRng};
use rand_distr::{Distribution, Exp1};
use rand_pcg::Pcg64Mcg;
use serde_json::json;
use sojourn_aqm::params::Setting;
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Rate, Span, Time};
use sojourn_aqm::{Link, LinkSpec, Packet};

fn link(rate: u64, qdisc: &str, settings: &[(&str, &str)]) -> Link {
    let settings: Vec<_> = settings.iter().map(|(k, v)| (*k, Setting::Text(v))).collect();
    let built = sojourn_aqm::build(qdisc, &settings, Rate(rate)).expect("the settings are valid");
    let spec = LinkSpec::new(Rate(rate), Span::ZERO);
    Link::new(spec, built.qdisc, Pcg64Mcg::seed_from_u64(1)).unwrap()
}

fn exponential(mean: f64, rng: &mut impl Rng) -> f64 {
    let e: f64 = Exp1.sample(rng);
    mean * e
}

/// Mean packet size in bytes, and the rate at which such a packet takes a millisecond. Large enough
/// that rounding sizes to whole bytes does not matter.
const MEAN: f64 = 100_000.0;
const RATE: u64 = 800_000_000;

/// Mean sojourn time before transmission in milliseconds, and drop rate, of `n` Poisson arrivals at
/// load `rho`.
fn poisson(rho: f64, n: u64, limit: &str, lengths: fn(&mut Pcg64Mcg) -> f64) -> (f64, f64) {
    let mut link = link(RATE, "droptail", &[("limit", limit)]);
    let mut rng = Pcg64Mcg::seed_from_u64(7);
    let mut at = 0.0;
    for _ in 0..n {
        at += exponential(1e6 / rho, &mut rng);
        let now = Time(at as u64);
        while link.poll(now).is_some() {}
        let len = lengths(&mut rng).max(1.0) as u32;
        link.push(now, Packet { len, ..Packet::default() });
        link.take_dropped();
    }
    let stats = link.stats();
    let wait = stats.sojourn.mean_s().expect("many were sent");
    (wait * 1e3, stats.dropped() as f64 / stats.arrived_packets as f64)
}

const NO_LIMIT: &str = "1000000p";

#[test]
fn packets_of_one_size_match_an_md1_queue() {
    for (rho, tolerance) in [(0.3, 0.01), (0.5, 0.01), (0.8, 0.015), (0.9, 0.03)] {
        let (wait, _) = poisson(rho, 3_000_000, NO_LIMIT, |_| MEAN);
        let expected = rho / (2.0 * (1.0 - rho));
        // Delays are correlated over 1/(1 - rho)^2 packets: at 0.9 the mean over 3 million packets
        // has a standard error of 1 %; the tolerance is about three of these.
        assert!((wait / expected - 1.0).abs() < tolerance, "{rho}: {wait} ms, not {expected}");
    }
}

#[test]
fn packets_of_exponential_size_match_an_mm1_queue() {
    for (rho, tolerance) in [(0.3, 0.01), (0.5, 0.01), (0.8, 0.02), (0.9, 0.04)] {
        let (wait, _) = poisson(rho, 3_000_000, NO_LIMIT, |rng| exponential(MEAN, rng));
        let expected = rho / (1.0 - rho);
        // One standard error is 0.6 % at 0.8 and 1.2 % at 0.9 (Whitt 1989: the variance of the mean
        // of n delays is rho (2 + 5 rho - 4 rho^2 + rho^3) / (1 - rho)^4 / n).
        assert!((wait / expected - 1.0).abs() < tolerance, "{rho}: {wait} ms, not {expected}");
    }
}

#[test]
fn a_bounded_queue_drops_as_mm1k() {
    for (rho, k, limit) in [(0.8, 10, "9p"), (1.0, 10, "9p"), (1.5, 4, "3p")] {
        let (_, loss) = poisson(rho, 3_000_000, limit, |rng| exponential(MEAN, rng));
        // K in the system: one in transmission and K - 1 in the queue.
        let power = |n: i32| (0..n).fold(1.0, |x, _| x * rho);
        let expected = match rho {
            1.0 => 1.0 / f64::from(k + 1),
            _ => (1.0 - rho) * power(k) / (1.0 - power(k + 1)),
        };
        assert!((loss / expected - 1.0).abs() < 0.02, "{rho}, {k}: {loss}, not {expected}");
    }
}

#[test]
fn utilisation_of_one_reno_flow_matches_the_sawtooth() {
    // 4000 packets per second and 100 ms: a BDP of 400 packets.
    let product = 400.0;
    for (a, tolerance) in
        [(0.0, 0.004), (0.1, 0.003), (0.25, 0.003), (0.5, 0.003), (0.75, 0.003), (1.0, 0.003)]
    {
        // A buffer of 0 is not possible: where a is 0 there is room for one packet, which at the
        // formula's slope there (3/4 per BDP) adds 0.002.
        let limit = (a * product) as u64;
        let out = run(&json!({
            "duration": "900s", "warmup": "100s",
            "links": {"l": {"rate": "32mbit", "delay": "50ms",
                      "qdisc": {"name": "droptail", "limit": format!("{}p", limit.max(1))}}},
            "flows": [{"name": "f", "path": ["l"], "rtt": "100ms",
                       "tcp": {"name": "reno", "profile": "ns2", "packet": "1kB",
                               "receive_window": "10000p"}}]
        }));
        let used = num(&out.summary["links"]["l"], "utilisation");
        let expected = 0.75 * (1.0 + a) * (1.0 + a) / (1.0 + a + a * a);
        println!("a = {a}: {used:.4}, theory {expected:.4}");
        assert!((used - expected).abs() < tolerance, "{a}: {used}, not {expected}");
    }
}

#[test]
fn drr_serves_within_its_bound() {
    let mut rng = Pcg64Mcg::seed_from_u64(3);
    for _ in 0..200 {
        let flows = 2 + rng.below(6);
        let max = 64 + rng.below(2_000);
        let quantum = 64 + rng.below(4_000);
        let setting = format!("{quantum}B");
        let mut link = link(8_000_000, "drr", &[("limit", NO_LIMIT), ("quantum", &setting)]);
        let push = |link: &mut Link, now, flow, rng: &mut Pcg64Mcg| {
            link.push(now, Packet { len: 1 + rng.below(max), flow, ..Packet::default() });
        };
        for flow in 0..flows {
            (0..3).for_each(|_| push(&mut link, Time::ZERO, flow, &mut rng));
        }
        // A departing packet is replaced at once, so that all flows are always backlogged.
        let mut sent = vec![0i64; flows as usize];
        let mut ahead = vec![(0i64, 0i64); (flows * flows) as usize];
        for _ in 0..2_000 {
            let now = link.next_poll().expect("all flows are backlogged");
            let packet = link.poll(now).expect("it has arrived");
            push(&mut link, now, packet.flow, &mut rng);
            sent[packet.flow as usize] += i64::from(packet.len);
            for i in 0..flows as usize {
                for j in 0..i {
                    let (lo, hi) = &mut ahead[i * flows as usize + j];
                    let by = sent[i] - sent[j];
                    (*lo, *hi) = ((*lo).min(by), (*hi).max(by));
                }
            }
        }
        // Over any interval (Shreedhar and Varghese 1995, theorem 1 for equal quanta).
        let most = ahead.iter().map(|(lo, hi)| hi - lo).max().expect("there are pairs");
        let bound = i64::from(quantum + 2 * max);
        assert!(most <= bound, "{flows} flows, quantum {quantum}, packets to {max}: {most}");
    }
}

#[test]
fn littles_law_holds() {
    // For each discipline, true if queued packets can be dropped.
    for (qdisc, pushes) in [
        (json!({"name": "droptail", "limit": "100p"}), false),
        (json!({"name": "red", "limit": "100p", "min_th": "10p", "max_th": "40p"}), false),
        (json!({"name": "droptail", "limit": "100p", "policy": "random"}), true),
        (json!({"name": "sfq", "limit": "100p"}), true),
        (json!({"name": "drr", "limit": "100p"}), true),
    ] {
        let out = run(&json!({
            "duration": "300s",
            "links": {"l": {"rate": "10mbit", "delay": "10ms", "qdisc": qdisc}},
            "flows": [{"name": "f", "count": 10, "path": ["l"], "rtt": "uniform(20ms, 200ms)"},
                      {"name": "call", "source": "cbr", "path": ["l"]}]
        }));
        let link = &out.summary["links"]["l"];
        let held = num(link, "queue_mean_packets") * 300.0;
        let waited = num(link, "departed_packets") * num(link, "sojourn_mean_s");
        // Little's law, exactly: the packet-seconds of sent packets account for all, except
        // packets still queued at the end, and dropped packets.
        let others = 100.0 + if pushes { num(link, "dropped_packets") } else { 0.0 };
        let most = others * num(link, "sojourn_max_s");
        assert!((0.0..=most).contains(&(held - waited)), "{qdisc}: {held} and {waited} ({most})");
        assert!(held / waited < 1.02, "{qdisc}: {held} and {waited}");
    }
}
