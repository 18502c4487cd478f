//! Congestion controls on worked cases: one flow, scripted losses and marks, values compared with
//! the formula one by one.

#[allow(dead_code)] // Each test file uses its part of the path.
mod tcp_path;

use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Span, Time};
use sojourn_sim::internals::tcp::{Segment, Tcp, UNLIMITED};
use sojourn_sim::internals::{Bbr, BbrState, Compound, ControlAlgorithm, Dctcp};
use tcp_path::{Fate, Hop, Path, Row, params};

const MS: u64 = 1_000_000;

fn pass(_: u64, _: &Segment) -> Fate {
    Fate::Pass
}

fn bbr(sender: &Tcp) -> &Bbr {
    match sender.control().expect("a control").algorithm() {
        ControlAlgorithm::Bbr(bbr) => bbr,
        other => panic!("{other:?}"),
    }
}

fn dctcp(sender: &Tcp) -> &Dctcp {
    match sender.control().expect("a control").algorithm() {
        ControlAlgorithm::Dctcp(dctcp) => dctcp,
        other => panic!("{other:?}"),
    }
}

fn compound(sender: &Tcp) -> &Compound {
    match sender.control().expect("a control").algorithm() {
        ControlAlgorithm::Compound(compound) => compound,
        other => panic!("{other:?}"),
    }
}

/// Flow of packets with 1000 B of payload over a bottleneck of `ns_per_byte` and 40 ms.
fn over<F: FnMut(u64, &Segment) -> Fate>(
    tcp: &str,
    settings: &[(&str, &str)],
    ns_per_byte: u64,
    room: usize,
    fate: F,
) -> Path<F> {
    let fixed = [("packet", "1040B"), ("delayed_ack", "false"), ("rto_min", "200ms")];
    let all: Vec<_> = fixed.iter().chain(settings).copied().collect();
    let there = vec![Hop::new(ns_per_byte, Span::ms(20), room)];
    let back = vec![Hop::new(0, Span::ms(20), usize::MAX)];
    let mut path = Path::new(&params(tcp, &all), 0.5, there, back, fate);
    path.start(Time::ZERO, UNLIMITED);
    path
}

/// Window just after `ms`, in packets.
fn window(rows: &[Row], ms: u64) -> f64 {
    rows.iter().rev().find(|r| r.now.0 <= ms * MS).expect("rows").cwnd
}

#[test]
fn cubic_follows_its_curve_after_a_loss() {
    // W_max = 100 packets when number 300 is lost, 70 after it, K = cbrt(30 / 0.4) = 4.217 s.
    let mut lost = false;
    let fate = |_: u64, seg: &Segment| {
        let hit = seg.seq == 300_001 && !lost;
        lost |= hit;
        if hit { Fate::Lose } else { Fate::Pass }
    };
    let settings = [
        ("packet", "1040B"),
        ("delayed_ack", "false"),
        ("ssthresh", "100p"),
        ("iw", "100p"),
        ("rto_min", "1s"),
    ];
    let mut path = Path::wide(&params("cubic", &settings), Span::ms(200), fate);
    path.start(Time::ZERO, UNLIMITED);
    path.run(Time(12_000 * MS));
    let rows = &path.rows;
    let cut = rows.windows(2).find(|w| w[1].cwnd < w[0].cwnd).expect("a cut");
    let (w_max, left) = (cut[0].cwnd, cut[1].cwnd);
    assert!((left / w_max - 0.7).abs() < 0.01, "{w_max} to {left}");
    // The stage starts with the first ack after the recovery, one round trip after the reduction.
    let epoch = cut[1].now.0 / MS + 200;
    let k = libm::cbrt((w_max - left) / 0.4);
    assert!((k - 4.2).abs() < 0.1, "{k}");
    let mut worst = 0.0f64;
    for ms in (500..8_000).step_by(250) {
        let t = ms as f64 / 1e3;
        let curve = w_max + 0.4 * (t - k) * (t - k) * (t - k);
        let got = window(rows, epoch + ms);
        worst = worst.max((got / curve - 1.0).abs());
    }
    assert!(worst < 0.03, "{worst} off the curve");
}

#[test]
fn cubic_mean_window_is_that_of_the_rfc() {
    // RFC 9438 §5.1: 1.054 (RTT/p)^(3/4) segments, outside of the Reno-friendly region.
    let (p, rtt) = (0.0001, 0.2f64);
    let mut n = 0u64;
    // Periodic losses, as the formula assumes.
    let fate = |_: u64, seg: &Segment| {
        n += u64::from(!seg.retransmission);
        if n.is_multiple_of(10_000) && !seg.retransmission { Fate::Lose } else { Fate::Pass }
    };
    let settings = [
        ("delayed_ack", "false"),
        ("ssthresh", "100p"),
        ("fast_convergence", "false"),
        ("reno_friendly", "false"),
    ];
    let mut path = Path::wide(&params("cubic", &settings), Span::ms(200), fate);
    path.quiet = true;
    path.start(Time::ZERO, UNLIMITED);
    path.run(Time(200_000 * MS));
    let before = path.receiver.received_in_connection();
    path.run(Time(4_200_000 * MS));
    let packets = (path.receiver.received_in_connection() - before) as f64 / 1460.0;
    let (got, expected) = (packets / 4_000.0 * rtt, 1.054 * libm::pow(rtt / p, 0.75));
    assert!((got / expected - 1.0).abs() < 0.1, "{got} against {expected}");
}

#[test]
fn dctcp_alpha_and_reductions_match_hand_computed_values() {
    // Rounds of 100 ms; from the 21st data packet on every fourth is marked.
    let fate = |_: u64, seg: &Segment| {
        let i = (seg.seq.max(1) - 1) / 1000;
        if !seg.syn && i >= 20 && i % 4 == 3 { Fate::Mark } else { Fate::Pass }
    };
    let settings = [("packet", "1040B"), ("delayed_ack", "false"), ("ssthresh", "10p")];
    let mut path = Path::wide(&params("dctcp", &settings), Span::ms(100), fate);
    path.start(Time::ZERO, UNLIMITED);
    // 0 ms SYN; 100 ms packets 0..10, at the end of slow start; 200 ms their acks: alpha = 15/16 at
    // the first of them, and the window grows to 11.
    path.run(Time(150 * MS));
    assert_eq!(dctcp(&path.sender).alpha(), 1.0);
    path.run(Time(250 * MS));
    assert_eq!(dctcp(&path.sender).alpha(), 15.0 / 16.0);
    assert_eq!(path.sender.cwnd_packets(), 11.0);
    // 300 ms: acks of 10..21; the window that started with packet 10 (at the ack of 0) ended
    // without a mark: alpha = (15/16)^2. Packet 20 is the first that could be marked, 23 the first
    // that is: its ack arrives at 400 ms and reduces by alpha/2.
    path.run(Time(350 * MS));
    let alpha = 15.0 * 15.0 / 256.0;
    assert!((dctcp(&path.sender).alpha() - alpha).abs() < 1e-12);
    let before = path.sender.cwnd_packets();
    path.run(Time(401 * MS));
    let cut = path.rows.windows(2).find(|w| w[1].cwnd < w[0].cwnd).expect("a cut");
    // The ack of packet 21 ended a third window without a mark.
    let alpha = alpha * 15.0 / 16.0;
    assert!((cut[1].cwnd - cut[0].cwnd * (1.0 - alpha / 2.0)).abs() < 0.01, "{before} {cut:?}");
    // In the long run alpha equals the fraction of marks.
    path.run(Time(20_000 * MS));
    assert!((dctcp(&path.sender).alpha() - 0.25).abs() < 0.1, "{}", dctcp(&path.sender).alpha());
    assert_eq!(path.sender.stats().retransmitted_packets, 0);
}

/// Transmission times of data, in ms, within a range of ms.
fn leaving(rows: &[Row], from: u64, to: u64) -> Vec<f64> {
    let sent = rows.iter().filter(|r| r.event == 's' && (from * MS..to * MS).contains(&r.now.0));
    sent.map(|r| r.now.0 as f64 / 1e6).collect()
}

#[test]
fn prr_spreads_the_reduction_over_a_round_trip() {
    // A packet takes 1 ms; the path holds 100 and the queue 60; the window grows to 160.
    let longest_silence = |prr: &str| {
        let settings = [("prr", prr), ("ssthresh", "120p"), ("iw", "40p")];
        let mut path = over("sack", &settings, 962, 60, pass);
        path.run(Time(20_000 * MS));
        let rows = &path.rows;
        let cut = rows.iter().find(|r| r.again).expect("a loss").now.0 / MS;
        let sent = leaving(rows, cut, cut + 300);
        let gaps = sent.windows(2).map(|w| w[1] - w[0]);
        assert_eq!(path.sender.stats().timeouts, 0);
        gaps.fold(0.0, f64::max)
    };
    let (with, without) = (longest_silence("true"), longest_silence("false"));
    assert!(with < 3.1, "one segment per two or three acks: {with} ms");
    assert!(without > 15.0, "nothing is sent for half a window of acks: {without} ms");
}

#[test]
fn paced_segments_are_spaced() {
    let settings = [("pacing", "true"), ("rwnd", "20p"), ("ssthresh", "10p")];
    let mut path = Path::wide(&params("cubic", &settings), Span::ms(100), pass);
    path.start(Time::ZERO, UNLIMITED);
    path.run(Time(5_000 * MS));
    // 1.2 windows of 20 or more per 100 ms: at most 4.2 ms apart; half of it after a segment that
    // had to wait for the window, but never two at once.
    let sent = leaving(&path.rows, 3_000, 5_000);
    let gaps: Vec<f64> = sent.windows(2).map(|w| w[1] - w[0]).collect();
    let least = gaps.iter().fold(f64::MAX, |a, b| a.min(*b));
    assert!(least > 1.7, "{least}");
    assert!(gaps.len() > 350, "the window is used: {}", gaps.len());
}

#[test]
fn bbr_starts_up_drains_and_probes() {
    // 1 ms per packet (1040 B): 1 MB/s of payload, a round trip of 41 ms, a BDP of 41 packets.
    let mut path = over("bbr", &[], 962, usize::MAX, pass);
    path.quiet = true;
    let mut modes: Vec<(u64, BbrState)> = Vec::new();
    let mut gains: Vec<(u64, f64)> = Vec::new();
    let mut rates = Vec::new();
    for ms in 1..8_000 {
        path.run(Time(ms * MS));
        let b = bbr(&path.sender);
        if modes.last().is_none_or(|m| m.1 != b.mode()) {
            modes.push((ms, b.mode()));
        }
        if b.mode() == BbrState::ProbeBw && gains.last().is_none_or(|g| g.1 != b.pacing_gain()) {
            gains.push((ms, b.pacing_gain()));
        }
        if b.mode() == BbrState::Startup && ms > 45 {
            rates.push((ms, b.pacing_rate()));
        }
    }
    let order: Vec<BbrState> = modes.iter().map(|m| m.1).collect();
    assert_eq!(order, [BbrState::Startup, BbrState::Drain, BbrState::ProbeBw], "{modes:?}");
    // Startup: at a gain of 2.885 the rate at least doubles per round trip until the path is full
    // (10, 20, 40, 80 packets per round trip), and three more rounds detect it.
    // Ten packets in the RTT of the SYN, of which its 40 B took 38,480 ns.
    let first = 2.885 * 10_000.0 / 0.040_038_480;
    assert!((rates[0].1 / first - 1.0).abs() < 1e-9, "{:?}", rates[0]);
    let b = bbr(&path.sender);
    assert!((b.bandwidth() / 1e6 - 1.0).abs() < 0.02, "{}", b.bandwidth());
    assert!((b.rtprop().expect("measured").as_secs() - 0.041).abs() < 0.0015);
    let (drain, probe) = (modes[1].0, modes[2].0);
    assert!((200..600).contains(&drain), "{modes:?}");
    // The queue of up to 2.885 - 1 BDPs drains at 1 - 1/2.885 of the rate.
    assert!((41..200).contains(&(probe - drain)), "{modes:?}");
    // Then the gain cycle: 1.25 and 0.75 for at most one round trip each, 1 for six.
    let cycle: Vec<_> = gains.windows(2).map(|w| (w[0].1, w[1].0 - w[0].0)).skip(2).collect();
    assert!(cycle.len() > 30, "{cycle:?}");
    for pair in gains.windows(2) {
        let next = if pair[0].1 > 1.0 { 0.75 } else { 1.0 + 0.25 * f64::from(pair[0].1 == 1.0) };
        assert_eq!(pair[1].1, next, "{gains:?}");
    }
    for three in cycle.chunks_exact(3) {
        let at = |gain: f64| three.iter().find(|c| c.0 == gain).expect("each of three gains").1;
        assert!((41..=62).contains(&at(1.25)), "{three:?}");
        assert!((1..=55).contains(&at(0.75)), "{three:?}");
        assert!((6 * 40..=6 * 46).contains(&at(1.0)), "{three:?}");
    }
}

#[test]
fn bbr_probes_the_minimum_rtt_every_ten_seconds() {
    // At its full estimate a small queue remains, so the minimum RTT is not seen again.
    let mut path = over("bbr", &[("margin", "1")], 962, usize::MAX, pass);
    path.quiet = true;
    let mut probes: Vec<(u64, u64)> = Vec::new();
    for ms in 1..45_000 {
        path.run(Time(ms * MS));
        if bbr(&path.sender).mode() == BbrState::ProbeRtt {
            assert!(path.sender.cwnd_packets() <= 4.0);
            match probes.last_mut().filter(|p| p.1 + 1 == ms) {
                Some(p) => p.1 = ms,
                None => probes.push((ms, ms)),
            }
        }
    }
    assert!((3..=4).contains(&probes.len()), "{probes:?}");
    for (from, to) in &probes {
        // Draining comes first, then 200 ms.
        assert!((200..=330).contains(&(to - from)), "{probes:?}");
    }
    for pair in probes.windows(2) {
        assert!((10_000..11_500).contains(&(pair[1].0 - pair[0].1)), "{probes:?}");
    }
    assert!(path.receiver.received_in_connection() > 42_000_000, "the cost is small");
}

#[test]
fn bbr_keeps_its_rate_under_random_loss_that_ruins_reno() {
    let carried = |tcp: &str| {
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        let fate = |_: u64, _: &Segment| if rng.bernoulli(0.002) { Fate::Lose } else { Fate::Pass };
        let mut path = over(tcp, &[], 96, usize::MAX, fate);
        path.quiet = true;
        path.run(Time(60_000 * MS));
        // Of 10 MB/s.
        path.receiver.received_in_connection() as f64 / 600e6
    };
    let (bbr, sack) = (carried("bbr"), carried("sack"));
    // Reno: 1.3 / sqrt(0.002) = 29 packets of a BDP of 400.
    assert!(bbr > 0.9 && sack < 0.1, "{bbr}, {sack}");
}

#[test]
fn renos_rate_is_inversely_proportional_to_the_rtt() {
    // Independent losses of the same rate on paths of different RTT: the window is the same, so
    // rate times RTT is constant.
    let window = |rtt: u64| {
        let mut rng = Pcg64Mcg::seed_from_u64(4);
        let fate = |_: u64, _: &Segment| if rng.bernoulli(0.001) { Fate::Lose } else { Fate::Pass };
        let settings = [("delayed_ack", "false"), ("ssthresh", "50p")];
        let mut path = Path::wide(&params("sack", &settings), Span::ms(rtt), fate);
        path.quiet = true;
        path.start(Time::ZERO, UNLIMITED);
        path.run(Time(40_000 * rtt * MS));
        path.receiver.received_in_connection() as f64 / 1460.0 / 40_000.0
    };
    let windows = [25, 50, 100, 200].map(window);
    for w in windows {
        assert!((w / windows[0] - 1.0).abs() < 0.05, "{windows:?}");
    }
}

#[test]
fn bbr_doubles_its_rate_per_rtt_until_the_path_is_full() {
    // 0.1 ms per packet: 10 MB/s, a BDP of 400 packets, initial window 10: 2.885 x 10 packets per
    // round trip at first, then between five and six doublings to 2.885 x 0.99 x 400.
    let mut path = over("bbr", &[("margin", "1")], 96, usize::MAX, pass);
    path.quiet = true;
    path.run(Time(41 * MS)); // established
    let mut rates = Vec::new();
    for round in 1.. {
        path.run(Time(41 * MS + round * 40_500_000));
        let b = bbr(&path.sender);
        if b.mode() != BbrState::Startup {
            break;
        }
        rates.push(b.pacing_rate() / 1e6 / 2.885);
    }
    let below = rates.iter().position(|r| *r > 5.0).expect("it grows");
    // The first ten segments leave at once, so that less than a round trip of the second ones is
    // acknowledged in it.
    for pair in rates[1..=below].windows(2) {
        assert!((1.5..2.3).contains(&(pair[1] / pair[0])), "{rates:?}");
    }
    assert!((5..=7).contains(&below), "{rates:?}");
    // Startup ends after one round that shows the last growth and three without; with a queue of
    // almost two BDPs each takes almost three times as long.
    assert!(rates.len() - below <= 12 && rates.iter().all(|r| *r < 10.1), "{rates:?}");
}

#[test]
fn compounds_delay_window_fills_the_path_and_shrinks_at_gamma() {
    // The BDP is 400 packets; from 100 on both components grow, until 30 are queued.
    let mut path = over("compound", &[("ssthresh", "100p")], 96, usize::MAX, pass);
    path.quiet = true;
    let mut seen = Vec::new();
    for step in 1..400 {
        path.run(Time(step * 41 * MS));
        let cwnd = path.sender.cwnd_packets();
        seen.push((cwnd, compound(&path.sender).delay_window()));
    }
    let top = seen.iter().position(|s| s.0 > 432.0).expect("the path is filled");
    let highest = seen[..=top].iter().fold(0.0f64, |a, s| a.max(s.1));
    assert!(highest > 200.0, "most of it is the delay window: {highest}");
    assert!(top < 60, "Reno alone would need 300 round trips: {top}");
    let over = seen.iter().skip(top).position(|s| s.1 == 0.0).expect("it gives way") + top;
    for s in &seen[top..over] {
        // It releases the queued packets, possibly twice before the RTT shows it.
        assert!((350.0..470.0).contains(&s.0), "{seen:?}");
    }
    assert!(seen[over + 50..].iter().all(|s| s.1 == 0.0), "Reno's part goes on");
}
