//! Profile `ns2` compared with ns-2.35's traces: every segment sent, dropped and acknowledged at
//! the same microsecond and, where the trace has it, with the same window.
//!
//! `lab/vectors/README-tcp.md` describes the set-up. The phase of ns-2's clock is not recorded,
//! but it was the same in all runs: half a tick reproduces every row of every vector. (Some are
//! reproduced with most phases; `tcp_newreno_transfers`, whose tick is short, with few.)
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "tests use small numbers"
)]

#[allow(dead_code)] // Each test file uses its part of the path.
mod tcp_path;

use flate2::read::GzDecoder;
use sojourn_aqm::units::{Span, Time};
use sojourn_sim::internals::tcp::UNLIMITED;
use std::io::Read;
use tcp_path::{Fate, Hop, Path, Row, params};

/// Segments lost at the entrance, counted from the SYN.
const LOST: [u64; 17] =
    [151, 152, 153, 156, 400, 600, 601, 602, 603, 604, 605, 606, 607, 608, 609, 610, 611];

/// Trace of that name, one line per row.
fn trace(name: &str) -> Vec<String> {
    let path = format!("{}/../../lab/vectors/{name}.csv.gz", env!("CARGO_MANIFEST_DIR"));
    let mut text = String::new();
    GzDecoder::new(std::fs::File::open(&path).expect(&path)).read_to_string(&mut text).unwrap();
    text.lines().skip(1).map(str::to_string).collect()
}

/// Test case: what differs between traces.
struct Case {
    /// Name of the vector.
    file: &'static str,
    tcp: &'static str,
    settings: &'static [(&'static str, &'static str)],
    /// Fate of the n-th segment at the entrance.
    fate: fn(u64) -> Fate,
    /// Writes of the application: second, packets (`u64::MAX`: unlimited).
    writes: &'static [(f64, u64)],
}

const FOR_EVER: &[(f64, u64)] = &[(0.1, UNLIMITED)];

fn listed(n: u64) -> Fate {
    if LOST.contains(&n) { Fate::Lose } else { Fate::Pass }
}

fn lost_and_marked(n: u64) -> Fate {
    match (n % 97, n % 41) {
        (31, _) => Fate::Lose,
        (_, 7) => Fate::Mark,
        _ => Fate::Pass,
    }
}

/// Runs a case and formats it as ns-2 does.
fn run(case: &Case, phase: f64) -> Vec<String> {
    let fixed = [("profile", "ns2"), ("packet", "1000B"), ("rwnd", "40p")];
    let all: Vec<_> = fixed.iter().chain(case.settings).copied().collect();
    let access = || Hop::new(800, Span::ms(5), usize::MAX);
    let there = vec![access(), Hop::new(10_000, Span::ms(20), 7)];
    let back = vec![Hop::new(10_000, Span::ms(20), usize::MAX), access()];
    let fate = |n, _: &_| (case.fate)(n);
    let mut path = Path::new(&params(case.tcp, &all), phase, there, back, fate);
    for (i, &(second, packets)) in case.writes.iter().enumerate() {
        let at = Time((second * 1e9).round() as u64);
        let amount = if packets == UNLIMITED { packets } else { packets * 960 };
        if i == 0 {
            path.start(at, amount);
        } else {
            path.run(at);
            path.write(amount);
        }
    }
    path.run(Time(20_000_000_000));
    path.rows.iter().filter(|r| r.event != 'x').map(written).collect()
}

/// `t_us,ev,seq,size_B,cwnd,ssthresh,dupacks`; acks in ns-2 carry the last packet received.
fn written(r: &Row) -> String {
    let us = (r.now.0 + 500) / 1_000;
    let seq = r.seq - u64::from(r.event == 'a');
    format!("{us},{},{seq},{},{:.3},{},{}", r.event, r.wire, r.cwnd, r.ssthresh, r.dup)
}

/// Checks that every row of the vector is reproduced; our rows may have more columns.
fn check(case: &Case, rows: usize) {
    let (ours, theirs) = (run(case, 0.5), trace(case.file));
    for (i, (a, b)) in ours.iter().zip(&theirs).enumerate() {
        let before = || theirs[i.saturating_sub(6)..i].join("\n");
        let same = a == b || a.starts_with(&format!("{b},"));
        assert!(same, "{} row {}:\n{}\nours   {a}\ntheirs {b}", case.file, i + 2, before());
    }
    assert_eq!((ours.len(), theirs.len()), (rows, rows), "{}", case.file);
}

#[test]
fn reno() {
    let case =
        Case { file: "tcp_reno", tcp: "reno", settings: &[], fate: listed, writes: FOR_EVER };
    check(&case, 3_768);
    // The trace constrains the phase: in the last tenth of a tick one timeout is longer.
    assert_ne!(run(&case, 0.95), run(&case, 0.5));
}

#[test]
fn newreno() {
    let case =
        Case { file: "tcp_newreno", tcp: "newreno", settings: &[], fate: listed, writes: FOR_EVER };
    check(&case, 3_887);
}

#[test]
fn sack1() {
    let case =
        Case { file: "tcp_sack1", tcp: "sack", settings: &[], fate: listed, writes: FOR_EVER };
    check(&case, 3_887);
}

#[test]
fn tahoe() {
    let case =
        Case { file: "tcp_tahoe", tcp: "tahoe", settings: &[], fate: listed, writes: FOR_EVER };
    check(&case, 3_585);
}

#[test]
fn delayed_acks() {
    let settings = &[("delayed_ack", "true")];
    let case = Case {
        file: "tcp_newreno_delack",
        tcp: "newreno",
        settings,
        fate: listed,
        writes: FOR_EVER,
    };
    check(&case, 2_920);
    check(&Case { file: "tcp_sack1_delack", tcp: "sack", ..case }, 3_007);
}

#[test]
fn marks_and_losses() {
    let mut case = Case {
        file: "tcp_reno_ecn",
        tcp: "reno",
        settings: &[("ecn", "true")],
        fate: lost_and_marked,
        writes: FOR_EVER,
    };
    check(&case, 3_194);
    (case.file, case.tcp) = ("tcp_sack1_ecn", "sack");
    case.settings = &[("ecn", "true"), ("delayed_ack", "true")];
    check(&case, 1_450);
}

#[test]
fn transfers_with_idle_periods() {
    let case = Case {
        file: "tcp_newreno_transfers",
        tcp: "newreno",
        settings: &[("tick", "1ms"), ("rto_min", "50ms"), ("initial_window", "4p")],
        fate: |n| if n % 29 == 28 { Fate::Lose } else { Fate::Pass },
        writes: &[(0.1, 25), (2.0037, 80), (2.9051, 1), (4.5013, 200), (9.0071, 3), (15.0029, 60)],
    };
    check(&case, 780);
}

/// Unlimited transfer over an empty path of 100 ms.
fn wide(tcp: &str, settings: &[(&str, &str)], fate: fn(u64) -> Fate) -> Vec<Row> {
    let all: Vec<_> =
        [("profile", "ns2"), ("rwnd", "200p")].iter().chain(settings).copied().collect();
    let mut path = Path::wide(&params(tcp, &all), Span::ms(100), |n, _| fate(n));
    path.start(Time::ZERO, UNLIMITED);
    path.run(Time(10_000_000_000));
    path.rows
}

/// Window at a time, in packets.
fn window(rows: &[Row], second: f64) -> f64 {
    let at = |r: &&Row| r.now.0 as f64 <= second * 1e9;
    rows.iter().rev().find(at).unwrap().cwnd
}

#[test]
fn slow_start_doubles_and_delayed_acks_halve_the_slope() {
    let rows = wide("newreno", &[], |_| Fate::Pass);
    for (n, expected) in [2.0, 4.0, 8.0, 16.0, 32.0].into_iter().enumerate() {
        assert_eq!(window(&rows, 0.15 + 0.1 * n as f64), expected, "round trip {n}");
    }
    for (delayed, slope) in [("false", 1.0), ("true", 0.5)] {
        let settings = [("ssthresh", "10p"), ("delayed_ack", delayed)];
        let rows = wide("newreno", &settings, |_| Fate::Pass);
        let per_rtt = (window(&rows, 9.05) - window(&rows, 4.05)) / 50.0;
        assert!((per_rtt - slope).abs() < 0.06 * slope, "{delayed}: {per_rtt}");
    }
}

#[test]
fn lost_syn_waits_three_seconds_and_starts_with_one_packet() {
    let rows = wide("sack", &[], |n| if n == 0 { Fate::Lose } else { Fate::Pass });
    assert_eq!(rows[2].event, 'x');
    assert_eq!((rows[3].now, rows[3].seq, rows[3].again), (Time(3_000_000_000), 0, true));
    assert_eq!(window(&rows, 3.15), 1.0);
    assert_eq!(rows.iter().filter(|r| r.event == 's' && r.seq == 1).count(), 1);
}

/// Packets that a SACK sender retransmits without a timeout in the last of several connections of
/// 50 packets: number, and ms since its start. Each connection loses the packets listed for it,
/// counted as sent.
fn repaired(lost: &[&[u64]]) -> Vec<(u64, u64)> {
    let sent_before = |i: usize| lost[..i].iter().map(|l| 51 + l.len() as u64).sum::<u64>();
    let all: Vec<u64> =
        (0..lost.len()).flat_map(|i| lost[i].iter().map(move |n| n + sent_before(i))).collect();
    let fate = |n, _: &_| if all.contains(&n) { Fate::Lose } else { Fate::Pass };
    let fixed = [("profile", "ns2"), ("packet", "1000B"), ("rwnd", "10000p")];
    let hop = || vec![Hop::new(800, Span::ms(10), usize::MAX)];
    let mut path = Path::new(&params("sack", &fixed), 0.5, hop(), hop(), fate);
    for i in 0..lost.len() {
        path.start(Time(i as u64 * 5_000_000_000), 50 * 960);
        path.run(Time((i as u64 + 1) * 5_000_000_000));
    }
    let began = (lost.len() as u64 - 1) * 5_000_000_000;
    let since = |r: &Row| (r.now.0.saturating_sub(began) + 500_000) / 1_000_000;
    let last = path.rows.iter().filter(|r| r.now.0 >= began && r.event == 's' && r.again);
    last.map(|r| (r.seq, since(r))).filter(|&(_, ms)| ms < 300).collect()
}

/// Observed with ns-2.35: a reset keeps the point of the last recovery, and no hole below it is
/// retransmitted.
#[test]
fn a_reset_sender_does_not_retransmit_below_its_last_recovery() {
    const HOLES: &[u64] = &[8, 10, 12, 14, 16];
    assert_eq!(repaired(&[HOLES]), [(8, 85), (10, 106), (12, 127), (14, 127), (16, 148)]);
    for (one, expected) in [
        (9, &[(8, 85), (10, 106), (12, 127), (14, 127), (16, 148)][..]),
        (13, &[(8, 85), (14, 106), (16, 127)]),
        (16, &[(8, 85), (16, 106)]),
        (20, &[(8, 85)]),
    ] {
        assert_eq!(repaired(&[&[one], HOLES]), expected, "{one}");
    }
    // A block that starts below that number moves it to the end of the block, for the next
    // connection.
    assert_eq!(repaired(&[&[48], &[8, 10], &[8, 10, 12]]), [(8, 85), (10, 106), (12, 107)]);
    assert_eq!(repaired(&[&[48], &[8], &[8, 10, 12, 20, 30]]), [(8, 85), (19, 127), (28, 232)]);
    assert_eq!(repaired(&[&[48], &[8, 12], &[8, 10, 12]]), [(8, 85), (12, 106)]);
}

/// Observed with ns-2.35: the initial window is 1 from then on.
#[test]
fn a_lost_syn_shrinks_the_first_window_of_later_connections_too() {
    let fixed = [("profile", "ns2"), ("packet", "1000B"), ("rwnd", "10000p")];
    let fate = |n, _: &_| if n == 0 { Fate::Lose } else { Fate::Pass };
    let mut path = Path::wide(&params("sack", &fixed), Span::ms(20), fate);
    path.start(Time::ZERO, 9_600);
    path.run(Time(6_000_000_000));
    path.start(path.now, 9_600);
    path.run(Time(6_030_000_000));
    assert_eq!(window(&path.rows, 6.025), 1.0);
}
