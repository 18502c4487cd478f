//! A sender that opens a second connection behaves as a new sender does, whatever state the first
//! connection left it in: for every TCP, in both profiles, with every option. The exception is
//! `sack` of the profile `ns2`: there a part of the state outlives a reset, as in ns-2.

#[allow(dead_code, reason = "each test file uses its part of the path")]
mod tcp_path;

use sojourn_aqm::params::Setting;
use sojourn_aqm::units::{Span, Time};
use sojourn_sim::internals::tcp::{self, Segment, UNLIMITED};
use sojourn_sim::tcp::{TCPS, TcpParams};
use tcp_path::{Fate, Hop, Path, Row};

/// Option sets, tried with every TCP that accepts them.
const OPTIONS: &[&[(&str, &str)]] = &[
    &[],
    &[("ecn", "true")],
    &[("ssthresh", "5p")],
    &[("pacing", "true"), ("abc_limit", "3")],
    &[("prr", "true")],
    &[("rack", "true")],
    &[("hystart", "true"), ("ssthresh", "1000p")],
    &[("profile", "ns2")],
    &[("profile", "ns2"), ("ecn", "true")],
];

/// Parameters that fit controls of data centres to the path.
fn for_path(tcp: &str) -> &'static [(&'static str, &'static str)] {
    match tcp {
        "swift" => &[("target", "150ms")],
        "dcqcn" | "hpcc" | "powertcp" | "timely" => &[("line_rate", "10mbit")],
        _ => &[],
    }
}

/// Ends of the first connection: in slow start, in a recovery, after a timeout, later on.
const ENDS_MS: [u64; 9] = [50, 230, 470, 530, 750, 1_300, 1_800, 4_000, 20_000];

/// Drops four and marks two of every 100 segments, retransmissions included.
fn fate(number: u64, segment: &Segment) -> Fate {
    match number % 100 {
        31 | 33 | 34 | 52 => Fate::Lose,
        12 | 80 if segment.ect => Fate::Mark,
        _ => Fate::Pass,
    }
}

/// A path of 10 Mbit/s with a round-trip time of 100 ms and room for 50 packets.
fn path(params: &TcpParams) -> Path<impl FnMut(u64, &Segment) -> Fate> {
    let there = vec![Hop::new(800, Span::ms(50), 50)];
    let back = vec![Hop::new(0, Span::ms(50), usize::MAX)];
    let mut sent = 0;
    Path::new(params, 0.5, there, back, move |_, segment| {
        // Both connections have the same losses.
        sent = if segment.syn && !segment.retransmission { 0 } else { sent + 1 };
        fate(sent, segment)
    })
}

/// Returns the log of a connection that is opened after 60 s, by a new sender or by one whose first
/// connection was aborted after `first_ms`.
fn log_of(params: &TcpParams, first_ms: Option<u64>) -> Vec<Row> {
    let start = Time(60_000_000_000);
    let mut path = path(params);
    if let Some(ms) = first_ms {
        path.start(Time::ZERO, UNLIMITED);
        path.run(Time(ms * 1_000_000));
        path.drop_in_flight();
        path.sender.abort();
        path.receiver.reset();
        path.rows.clear();
    }
    path.start(start, 400_000);
    path.run(start + Span::s(30));
    assert!(path.sender.is_done());
    path.rows
}

#[test]
fn a_second_connection_does_what_a_first_would() {
    let mut tried = 0;
    for (entry, options) in TCPS.iter().flat_map(|e| OPTIONS.iter().map(move |o| (e, o))) {
        let all = options.iter().chain(for_path(entry.name));
        let settings = all.map(|&(k, v)| (k, Setting::Text(v)));
        let Ok(params) = tcp::parse(entry.name, settings) else { continue };
        if entry.name == "sack" && options.contains(&("profile", "ns2")) {
            continue;
        }
        tried += 1;
        let fresh = log_of(&params, None);
        for ms in ENDS_MS {
            let again = log_of(&params, Some(ms));
            let differs = fresh.iter().zip(&again).find(|(a, b)| a != b);
            assert_eq!(differs, None, "{} {options:?}, first connection of {ms} ms", entry.name);
            assert_eq!(fresh.len(), again.len());
        }
    }
    assert!(tried > 40, "{tried}");
}
