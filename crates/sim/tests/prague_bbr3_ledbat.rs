//! Prague, BBRv3, LEDBAT and LEDBAT++ on worked cases and in whole runs.

mod common;
#[allow(dead_code)] // Each test file uses its part of the path.
mod tcp_path;

use common::{flow, num, run};
use serde_json::{Value, json};
use sojourn_aqm::units::{Span, Time};
use sojourn_sim::Outcome;
use sojourn_sim::internals::tcp::{Segment, Tcp, UNLIMITED};
use sojourn_sim::internals::{Bbr3, Bbr3State, ControlAlgorithm, Prague};
use tcp_path::{Fate, Hop, Path, params};

const MS: u64 = 1_000_000;

fn prague(sender: &Tcp) -> &Prague {
    match sender.control().expect("a control").algorithm() {
        ControlAlgorithm::Prague(prague) => prague,
        other => panic!("{other:?}"),
    }
}

fn bbr3(sender: &Tcp) -> &Bbr3 {
    match sender.control().expect("a control").algorithm() {
        ControlAlgorithm::Bbr3(bbr3) => bbr3,
        other => panic!("{other:?}"),
    }
}

/// Flows `f0`, `f1`, ... with these TCPs over one link, measured from `warmup` to `end` seconds.
fn share(rate: &str, qdisc: Value, rtt: u64, tcps: &[Value], (warmup, end): (u64, u64)) -> Outcome {
    let flow = |(i, tcp): (usize, &Value)| {
        json!({"name": format!("f{i}"), "path": ["l"], "rtt": format!("{rtt}ms"), "tcp": tcp,
               "source": {"name": "bulk", "start": format!("{}ms", 130 * i)}})
    };
    run(&json!({
        "duration": format!("{end}s"), "warmup": format!("{warmup}s"),
        "links": {"l": {"rate": rate, "delay": "1ms", "qdisc": qdisc}},
        "flows": tcps.iter().enumerate().map(flow).collect::<Vec<_>>()
    }))
}

fn goodput(out: &Outcome, name: &str) -> f64 {
    num(flow(out, name), "goodput_bps") / 1e6
}

#[test]
fn prague_reduces_by_half_of_alpha_and_keeps_growing() {
    // Every tenth packet is marked: W = 2 (1 - p) / p = 18 segments, alpha = 0.1.
    let fate = |n: u64, _: &Segment| if n % 10 == 9 { Fate::Mark } else { Fate::Pass };
    for lose_acks in [0, 3] {
        // Where each ack reports unmarked segments too, slow start would not end otherwise.
        let tcp = params("prague", &[("exit_at_mark", "true")]);
        let mut path = Path::wide(&tcp, Span::ms(50), fate);
        path.quiet = true;
        path.lose_acks = lose_acks;
        path.start(Time::ZERO, UNLIMITED);
        let (mut windows, mut alphas) = (Vec::new(), Vec::new());
        for step in 100..1_000 {
            path.run(Time(50 * step * MS));
            windows.push(prague(&path.sender).fractional_window());
            alphas.push(prague(&path.sender).alpha());
        }
        let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
        // The count is exact, also if every third ack is lost.
        assert!((mean(&alphas) - 0.1).abs() < 0.005, "{lose_acks}: {}", mean(&alphas));
        // A reduction needs a new mark after the round trip of the last: fewer than one per RTT.
        let window = mean(&windows);
        assert!((18.0..28.0).contains(&window), "{lose_acks}: {window}");
        assert_eq!(path.sender.stats().retransmitted_packets, 0);
    }
}

/// With marks at random, a share p of the packets, the window is about 2/p: a reduction by p/2 of
/// the window balances a growth of one segment per round trip. It is above that, because a
/// reduction needs a new mark after the round trip of the last.
#[test]
fn pragues_window_is_two_by_the_share_of_marks() {
    use rand_core::SeedableRng;
    use sojourn_aqm::random::Random;
    for p in [0.02, 0.05, 0.1, 0.2] {
        let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(7);
        let fate = |_: u64, _: &Segment| if rng.bernoulli(p) { Fate::Mark } else { Fate::Pass };
        let mut path = Path::wide(&params("prague", &[]), Span::ms(50), fate);
        path.quiet = true;
        path.start(Time::ZERO, UNLIMITED);
        let mut sum = 0.0;
        for step in 0..4_000 {
            path.run(Time(50 * (step + 400) * MS));
            sum += prague(&path.sender).fractional_window();
        }
        let law = sum / 4_000.0 * p / 2.0;
        assert!((1.0..1.5).contains(&law), "{p}: {law} times 2/p");
    }
}

#[test]
fn pragues_rate_does_not_depend_on_a_short_rtt() {
    // Marks of the same probability at 5, 10 and 25 ms: equal rates, 25/100 of it at 100 ms.
    let rate = |rtt: u64| {
        let fate = |n: u64, _: &Segment| if n % 20 == 19 { Fate::Mark } else { Fate::Pass };
        let mut path = Path::wide(&params("prague", &[]), Span::ms(rtt), fate);
        path.quiet = true;
        path.start(Time::ZERO, UNLIMITED);
        path.run(Time(20_000 * MS));
        let before = path.receiver.received_in_connection();
        path.run(Time(80_000 * MS));
        (path.receiver.received_in_connection() - before) as f64 * 8.0 / 60e6
    };
    let rates = [5, 10, 25, 100].map(rate);
    // 0.96 (1/p - 1) = 18 Mbit/s and more, since not every round trip reduces.
    for fast in &rates[..3] {
        assert!((17.0..40.0).contains(fast), "{rates:?}");
    }
    assert!((rates[0] / rates[2] - 1.0).abs() < 0.45, "{rates:?}");
    assert!((3.0..5.5).contains(&(rates[2] / rates[3])), "{rates:?}");
}

#[test]
fn prague_stays_responsive_below_two_segments() {
    // Every packet is marked: the rate falls to 100 kbit/s, which is 0.1 segments per 20 ms.
    let fate = |_: u64, _: &Segment| Fate::Mark;
    let mut path = Path::wide(&params("prague", &[]), Span::ms(20), fate);
    path.quiet = true;
    path.start(Time::ZERO, UNLIMITED);
    path.run(Time(60_000 * MS));
    let before = path.receiver.received_in_connection();
    path.run(Time(120_000 * MS));
    // Payload; 3 % more in the first half of a round, which is when each segment is sent.
    let rate = (path.receiver.received_in_connection() - before) as f64 * 8.0 / 60.0;
    assert!((102e3..104e3).contains(&rate), "{rate}");
    assert_eq!(path.sender.cwnd_packets(), 2.0);
}

#[test]
fn prague_alone_keeps_the_queue_short_and_the_link_busy() {
    // Measured with Linux: goodput 18.2 to 19.1 of 20 Mbit/s, delay 0.25 to 0.83 ms, at the 99th
    // percentile 1.5 to 1.9 ms.
    for rtt in [5, 20, 80] {
        let qdisc = json!({"name": "dualpi2", "variant": "linux"});
        let out = share("20mbit", qdisc, rtt, &[json!("prague")], (20, 40));
        let link = &out.summary["links"]["l"];
        let (mean, p99) = (num(link, "sojourn_mean_s"), num(link, "sojourn_p99_s"));
        assert!(mean < 0.001 && p99 < 0.0023, "{rtt}: {mean}, {p99}");
        assert!(goodput(&out, "f0") > 18.0, "{rtt}: {}", goodput(&out, "f0"));
        assert_eq!(num(link, "loss_rate"), 0.0);
    }
}

#[test]
fn prague_and_cubic_get_shares_as_measured_with_linux() {
    // Kernel's Prague : CUBIC at 40 Mbit/s: 1.42 at 10 ms, 2.0 to 2.2 at 20 ms, 2.0 at 30 ms. The
    // band is RFC 9332's rough equality.
    for rtt in [10, 20, 30] {
        let qdisc = json!({"name": "dualpi2", "variant": "linux"});
        let tcps = [json!("prague"), json!({"name": "cubic", "rack": true, "prr": true})];
        let out = share("40mbit", qdisc, rtt, &tcps, (20, 60));
        let ratio = goodput(&out, "f0") / goodput(&out, "f1");
        assert!((1.0..3.0).contains(&ratio), "{rtt}: {ratio}");
    }
}

#[test]
fn prague_behaves_like_reno_where_nothing_is_marked() {
    // Drop-tail: losses halve both; growth below 25 ms is slower, so at 50 ms they are equal.
    let tcps = [json!("prague"), json!({"name": "sack", "pacing": true})];
    let out = share("20mbit", json!({"name": "droptail", "limit": "80p"}), 50, &tcps, (30, 180));
    let ratio = goodput(&out, "f0") / goodput(&out, "f1");
    assert!((0.4..2.5).contains(&ratio), "{ratio}");
}

#[test]
fn reduction_for_marks_is_smaller_with_abe() {
    // RFC 8511: with beta 0.8 for marks, a short queue with ECN keeps the link busier.
    let used = |beta: f64| {
        let qdisc = json!({"name": "codel", "ecn": true});
        let tcp = json!({"name": "sack", "ecn": true, "beta_ecn": beta});
        let out = share("20mbit", qdisc, 100, &[tcp], (20, 80));
        num(&out.summary["links"]["l"], "utilisation")
    };
    let (abe, standard) = (used(0.8), used(0.5));
    assert!(abe > standard + 0.1 && abe > 0.9, "{abe}, {standard}");
}

#[test]
fn one_bit_feedback_and_counts_agree_for_classic_senders() {
    // Reno reduces once per round trip, however the marks are reported.
    let rate = |feedback: &str| {
        let qdisc = json!({"name": "pie", "ecn": true});
        let tcp = json!({"name": "sack", "ecn": true, "ecn_feedback": feedback});
        goodput(&share("20mbit", qdisc, 40, &[tcp.clone(), tcp], (20, 80)), "f0")
    };
    let (classic, exact) = (rate("rfc3168"), rate("accurate"));
    assert!((classic / exact - 1.0).abs() < 0.15, "{classic}, {exact}");
}

/// Path of 1 ms per packet of 1040 B, a round trip of 41 ms and a product of 41 packets.
fn bottleneck(tcp: &str) -> Path<impl FnMut(u64, &Segment) -> Fate> {
    let settings = [("packet", "1040B"), ("delayed_ack", "false"), ("rto_min", "200ms")];
    let there = vec![Hop::new(962, Span::ms(20), usize::MAX)];
    let back = vec![Hop::new(0, Span::ms(20), usize::MAX)];
    let pass: fn(u64, &Segment) -> Fate = |_, _| Fate::Pass;
    let mut path = Path::new(&params(tcp, &settings), 0.5, there, back, pass);
    path.quiet = true;
    path.start(Time::ZERO, UNLIMITED);
    path
}

#[test]
fn bbr3_passes_through_the_states_of_the_draft() {
    let mut path = bottleneck("bbr3");
    let mut states: Vec<(u64, Bbr3State)> = Vec::new();
    for ms in 1..30_000 {
        path.run(Time(ms * MS));
        let b = bbr3(&path.sender);
        if states.last().is_none_or(|s| s.1 != b.state()) {
            states.push((ms, b.state()));
        }
    }
    use Bbr3State::{Cruise, Down, Drain, ProbeRtt, Refill, Startup, Up};
    let order: Vec<Bbr3State> = states.iter().map(|s| s.1).collect();
    assert_eq!(order[..2], [Startup, Drain], "{states:?}");
    assert!(matches!(order[2], Down | Cruise), "DOWN may be over within a millisecond");
    for pair in order.windows(2).skip(2).filter(|p| !p.contains(&ProbeRtt)) {
        let allowed = [(Down, Cruise), (Down, Refill), (Cruise, Refill), (Refill, Up), (Up, Down)];
        assert!(allowed.contains(&(pair[0], pair[1])), "{pair:?}");
    }
    let b = bbr3(&path.sender);
    assert!((b.bandwidth() / 1e6 - 1.0).abs() < 0.02, "{}", b.bandwidth());
    assert!((b.min_rtt().expect("measured").as_secs() - 0.041).abs() < 0.001);
    // The round trips of Reno's recovery, about 41 of 41 ms, come before the 2 s of the wait.
    let ups: Vec<u64> = states.iter().filter(|s| s.1 == Up).map(|s| s.0).collect();
    assert!(ups.len() >= 8, "{states:?}");
    // ProbeRtt every 5 s unless a probe of the queue finds a new minimum; 200 ms and a round.
    for (i, probe) in states.iter().enumerate().filter(|(_, s)| s.1 == ProbeRtt) {
        let end = states.get(i + 1).map_or(30_000, |s| s.0);
        assert!((200..400).contains(&(end - probe.0)), "{states:?}");
    }
    assert!(path.receiver.received_in_connection() > 27_500_000, "of 30 MB");
}

#[test]
fn bbr3_shares_with_cubic_better_than_bbr() {
    // 20 ms, 40 Mbit/s, buffer of 100 ms. The kernel's BBRv3 : CUBIC measures 1.5.
    let ratio = |tcp: &str| {
        let tcps = [json!({"name": tcp, "rack": true}), json!({"name": "cubic", "rack": true})];
        let qdisc = json!({"name": "pie"});
        let out = share("40mbit", qdisc, 20, &tcps, (20, 60));
        goodput(&out, "f0") / goodput(&out, "f1")
    };
    let (three, one) = (ratio("bbr3"), ratio("bbr"));
    // Kernel, pie: 1.99 and 4.79.
    assert!(three < one && (0.7..4.0).contains(&three), "{three}, {one}");
}

#[test]
fn ledbat_keeps_its_target_alone_and_yields_to_reno() {
    for (tcp, target, most) in [("ledbat", 0.1, 0.15), ("ledbatpp", 0.06, 0.15)] {
        let qdisc = || json!({"name": "droptail", "limit": "400p"});
        let alone = share("20mbit", qdisc(), 40, &[json!(tcp)], (60, 180));
        let link = &alone.summary["links"]["l"];
        let delay = num(link, "sojourn_mean_s");
        assert!((0.3 * target..1.15 * target).contains(&delay), "{tcp}: {delay}");
        assert!(num(link, "utilisation") > 0.85, "{tcp}: {link}");
        assert_eq!(num(link, "loss_rate"), 0.0, "{tcp}");
        // The buffer holds 240 ms, which Reno fills beyond the target.
        let both = share("20mbit", qdisc(), 40, &[json!(tcp), json!("sack")], (60, 180));
        let part = goodput(&both, "f0") / 20.0;
        assert!(part < most, "{tcp}: {part}");
    }
}

#[test]
fn ledbatpp_latecomer_gets_its_share() {
    // The later LEDBAT measures a base delay with the queue of the first, and takes over. The
    // slowdowns of LEDBAT++ show the empty path to both.
    let least = |tcp: &str| {
        let qdisc = json!({"name": "droptail", "limit": "1000p"});
        let flow = |name: &str, start: &str| {
            json!({"name": name, "path": ["l"], "rtt": "40ms", "tcp": tcp,
                   "source": {"name": "bulk", "start": start}})
        };
        let out = run(&json!({
            "duration": "400s", "warmup": "200s",
            "links": {"l": {"rate": "20mbit", "delay": "1ms", "qdisc": qdisc}},
            "flows": [flow("f0", "0s"), flow("f1", "50s")]
        }));
        goodput(&out, "f0").min(goodput(&out, "f1")) / 20.0
    };
    let (plain, plus) = (least("ledbat"), least("ledbatpp"));
    assert!(plus > 0.2 && plus > plain, "{plus}, {plain}");
}
