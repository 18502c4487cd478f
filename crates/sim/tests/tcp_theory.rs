//! Both profiles under random loss: every transfer completes with every byte, and the mean window
//! matches theory.

#[allow(dead_code)] // Each test file uses its part of the path.
mod tcp_path;

use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;
use sojourn_aqm::random::Random;
use sojourn_aqm::units::{Span, Time};
use sojourn_sim::internals::tcp::{Segment, UNLIMITED};
use tcp_path::{Fate, Hop, Path, Row, params};

const NAMES: [&str; 4] = ["tahoe", "reno", "newreno", "sack"];

/// TCPs that exist in one profile only.
const RFC_NAMES: [&str; 6] = ["cubic", "dctcp", "vegas", "compound", "bbr", "sack"];

/// One transfer with all parameters drawn from `seed`.
fn transfer(seed: u64) {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let (mut name, mut profile) = (NAMES[rng.below(4) as usize], "rfc");
    match rng.below(4) {
        0 | 1 => name = RFC_NAMES[rng.below(6) as usize],
        2 => profile = "ns2",
        _ => {}
    }
    let bbr = name == "bbr";
    let prr = profile == "rfc" && !["tahoe", "reno", "newreno", "bbr"].contains(&name);
    let flag = |yes: bool| if yes { "true" } else { "false" };
    let window = rng.below(3) as usize;
    let rwnd = [3, 20, 1_000_000][window];
    let settings = [
        ("profile", profile),
        ("delayed_ack", flag(rng.bernoulli(0.5))),
        ("ecn", flag(!bbr && rng.bernoulli(0.5))),
        ("pacing", flag(bbr || profile == "rfc" && rng.bernoulli(0.3))),
        ("prr", flag(prr && rng.bernoulli(0.5))),
        ("rack", flag(prr && rng.bernoulli(0.5))),
        ("limited_transmit", flag(rng.bernoulli(0.5))),
        ("careful", flag(rng.bernoulli(0.7))),
        ("rwnd", ["3p", "20p", "1000000p"][window]),
        ("rto_min", ["1ms", "200ms", "1s"][rng.below(3) as usize]),
        ("iw", ["1p", "3p", "10p"][rng.below(3) as usize]),
        ("tick", ["100us", "10ms"][rng.below(2) as usize]),
    ];
    let (loss, mark) = ([0.0, 0.01, 0.1, 0.3][rng.below(4) as usize], rng.uniform() * 0.2);
    let lose_acks = [0, 0, 2, 5][rng.below(4) as usize];
    let room = [5, 50][rng.below(2) as usize];
    let amount = 1 + u64::from(rng.below(if loss > 0.2 { 60_000 } else { 400_000 }));
    let phase = rng.uniform();
    let unit = if profile == "ns2" { 1460 } else { 1 };
    let written = amount.div_ceil(unit);
    let fate = |_: u64, seg: &Segment| {
        let end = seg.seq + u64::from(seg.len);
        assert!(seg.syn || seg.seq >= 1 && end <= 1 + written, "seed {seed}: {seg:?} of {written}");
        assert!(seg.wire_bytes <= 1500 && (seg.syn || seg.len > 0), "{seg:?}");
        let u = rng.uniform();
        if u < loss {
            Fate::Lose
        } else if u < loss + mark {
            Fate::Mark
        } else {
            Fate::Pass
        }
    };
    let there = vec![Hop::new(800, Span::ms(5), room)];
    let back = vec![Hop::new(800, Span::ms(5), usize::MAX)];
    let what = format!("seed {seed}: {name} {settings:?}, {amount} bytes, loss {loss}");
    let mut path = Path::new(&params(name, &settings), phase, there, back, fate);
    path.lose_acks = lose_acks;
    path.start(Time::ZERO, amount);
    let hours = Time(20 * 3_600_000_000_000);
    path.run(hours);
    assert!(path.sender.is_done(), "{what}: not done, timer {:?}", path.sender.next_timer());
    assert_eq!(path.receiver.received_in_connection(), written * unit, "{what}");
    assert_eq!(path.sender.acked_bytes(), written * unit, "{what}");
    assert_eq!(path.sender.next_timer(), Time::NEVER, "{what}: nothing is left to wait for");
    windows_are_kept(&path.rows, profile, rwnd, &what);
    let sent = path.rows.iter().filter(|r| r.event == 's').count() as u64;
    assert_eq!(sent, path.sender.stats().sent_packets);
    if name == "sack" && profile == "rfc" && lose_acks == 0 && path.sender.stats().timeouts == 0 {
        let lost = path.rows.iter().filter(|r| r.event == 'd').count() as u64;
        let cuts = path.rows.windows(2).filter(|w| w[1].cwnd < w[0].cwnd).count() as u64;
        // Each loss once, and at most one rescue retransmission per recovery.
        let again = path.sender.stats().retransmitted_packets;
        assert!((lost..=lost + cuts).contains(&again), "{what}: {lost} lost, {again} sent again");
    }
}

/// Checks that nothing exceeds the receive window, and that cwnd and ssthresh stay above their
/// minima.
fn windows_are_kept(rows: &[Row], profile: &str, rwnd: u64, what: &str) {
    let (mut una, mut top) = (0, 0);
    for r in rows {
        let len = if profile == "ns2" { 1 } else { u64::from(r.wire.saturating_sub(40)) };
        match r.event {
            'a' => una = una.max(r.seq),
            's' if r.seq > 0 => {
                top = top.max(r.seq + len);
                let most = rwnd * if profile == "ns2" { 1 } else { 1460 };
                assert!(top - una <= most, "{what}: beyond the receiver's window at {:?}", r.now);
            }
            _ => {}
        }
        assert!(r.cwnd >= 1.0 || profile == "ns2", "{what}: window {} at {:?}", r.cwnd, r.now);
        assert!(r.ssthresh >= 2.0, "{what}: threshold {}", r.ssthresh);
    }
}

#[test]
fn every_transfer_ends_with_every_byte() {
    let seed: Option<u64> = std::env::var("TCP_SEED").ok().map(|s| s.parse().unwrap());
    (0..20_000).filter(|s| seed.is_none_or(|x| x == *s)).for_each(transfer);
}

/// Packets per round trip of a SACK flow that loses each segment with probability `p`, and its
/// number of timeouts.
fn rate(profile: &str, p: f64, seconds: u64, seed: u64) -> (f64, u64) {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let fate = |_: u64, _: &Segment| if rng.bernoulli(p) { Fate::Lose } else { Fate::Pass };
    let settings = [("profile", profile), ("delayed_ack", "false"), ("ssthresh", "50p")];
    let mut path = Path::wide(&params("sack", &settings), Span::ms(100), fate);
    path.quiet = true;
    path.start(Time::ZERO, UNLIMITED);
    path.run(Time(seconds * 1_000_000_000));
    let packets = path.receiver.received_in_connection() as f64 / 1460.0;
    (packets / (seconds as f64 * 10.0), path.sender.stats().timeouts)
}

#[test]
fn window_follows_the_square_root_law_at_low_loss() {
    for profile in ["rfc", "ns2"] {
        let p = 0.001;
        let (rate, _) = rate(profile, p, 4_000, 3);
        let factor = rate * p.sqrt();
        // 1.22 for periodic loss, 1.31 for independent losses.
        assert!((1.2..1.4).contains(&factor), "{profile}: {factor}");
    }
}

/// Padhye's formula (SIGCOMM 1998, eq. 30) with one packet per ack: packets per round trip.
fn padhye(p: f64, rto_in_rtts: f64) -> f64 {
    let timeouts = (3.0 * (3.0 * p / 8.0).sqrt()).min(1.0);
    1.0 / ((2.0 * p / 3.0).sqrt() + rto_in_rtts * timeouts * p * (1.0 + 32.0 * p * p))
}

#[test]
fn window_under_loss_of_one_percent_is_near_padhye() {
    for profile in ["rfc", "ns2"] {
        let p = 0.01;
        let (rate, timeouts) = rate(profile, p, 2_000, 5);
        // SACK has few timeouts at this loss rate, so their length (2 or 10 round trips) hardly
        // matters.
        let expected = padhye(p, 2.0);
        assert!((0.85 * expected..1.15 * expected).contains(&rate), "{profile}: {rate}");
        assert!((1..80).contains(&timeouts), "{profile}: {timeouts}");
    }
}

#[test]
fn no_allocation_once_the_window_has_reached_its_maximum() {
    let rfc_only = RFC_NAMES.iter().map(|n| (n, "rfc"));
    for (name, profile) in NAMES.iter().flat_map(|n| [(n, "rfc"), (n, "ns2")]).chain(rfc_only) {
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        let fate = |_: u64, _: &Segment| if rng.bernoulli(0.005) { Fate::Lose } else { Fate::Pass };
        let settings = [("profile", profile), ("rwnd", "60p"), ("iw", "60p")];
        let mut path = Path::wide(&params(name, &settings), Span::ms(100), fate);
        path.quiet = true;
        path.start(Time::ZERO, UNLIMITED);
        path.run(Time(500_000_000_000));
        let before = path.sender.stats().sent_packets;
        let allocated = allocation_counter::measure(|| path.run(Time(1_000_000_000_000)));
        assert!(path.sender.stats().sent_packets > before + 50_000, "{name} {profile}");
        assert_eq!(allocated.count_total, 0, "{name} {profile}");
    }
}
