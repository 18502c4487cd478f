//! Profile `rfc` on worked cases: an empty path of 100 ms, packets of 1000 B payload, and one or a
//! few scripted losses. Packets are numbered from 0; times are in ms.

#[allow(dead_code)] // Each test file uses its part of the path.
mod tcp_path;

use sojourn_aqm::units::{Span, Time};
use sojourn_sim::internals::tcp::{Segment, UNLIMITED};
use std::collections::BTreeMap;
use tcp_path::{Fate, Path, Row, params};

const RTT: Span = Span::ms(100);

/// Loses the given transmissions: (packet, number of the transmission of this packet).
fn losing(list: &'static [(u64, u32)]) -> impl FnMut(u64, &Segment) -> Fate {
    let mut times = BTreeMap::new();
    move |_, seg| {
        if seg.syn {
            return Fate::Pass;
        }
        let packet = (seg.seq - 1) / 1000;
        let n = times.entry(packet).or_insert(0);
        *n += 1;
        if list.contains(&(packet, *n)) { Fate::Lose } else { Fate::Pass }
    }
}

fn open<F: FnMut(u64, &Segment) -> Fate>(
    tcp: &str,
    settings: &[(&str, &str)],
    packets: u64,
    fate: F,
) -> Path<F> {
    let fixed = [("packet", "1040B"), ("delayed_ack", "false")];
    let all: Vec<_> = fixed.iter().chain(settings).copied().collect();
    let mut path = Path::wide(&params(tcp, &all), RTT, fate);
    let amount = if packets == UNLIMITED { packets } else { packets * 1000 };
    path.start(Time::ZERO, amount);
    path
}

/// Runs to `ms`.
fn run<F: FnMut(u64, &Segment) -> Fate>(
    tcp: &str,
    settings: &[(&str, &str)],
    packets: u64,
    fate: F,
    ms: u64,
) -> Path<F> {
    let mut path = open(tcp, settings, packets, fate);
    path.run(Time(ms * 1_000_000));
    path
}

/// (ms, packet) of all data sent for which `pick` is true.
fn sent(rows: &[Row], pick: impl Fn(&Row) -> bool) -> Vec<(u64, u64)> {
    let data = rows.iter().filter(|r| r.event == 's' && r.seq > 0 && pick(r));
    data.map(|r| (r.now.0 / 1_000_000, (r.seq - 1) / 1000)).collect()
}

fn again(rows: &[Row]) -> Vec<(u64, u64)> {
    sent(rows, |r| r.again)
}

/// Window just after `ms`, in packets.
fn window(rows: &[Row], ms: u64) -> f64 {
    rows.iter().rev().find(|r| r.now.0 <= ms * 1_000_000).unwrap().cwnd
}

/// Time at which all data had arrived, ms.
fn finished<F: FnMut(u64, &Segment) -> Fate>(path: &Path<F>) -> u64 {
    assert!(path.sender.is_done());
    path.rows.last().unwrap().now.0 / 1_000_000
}

#[test]
fn slow_start_doubles_from_ten() {
    let path = run("newreno", &[], UNLIMITED, losing(&[]), 450);
    for (ms, expected) in [(150, 10.0), (250, 20.0), (350, 40.0), (450, 80.0)] {
        assert_eq!(window(&path.rows, ms), expected, "{ms}");
    }
}

#[test]
fn delayed_acks_slow_slow_start_unless_l_is_two() {
    for tcp in ["newreno", "sack", "cubic", "dctcp"] {
        for (l, growth) in [("1", [10.0, 15.0, 23.0]), ("2", [10.0, 20.0, 40.0])] {
            let settings = [("delayed_ack", "true"), ("abc_limit", l)];
            let path = run(tcp, &settings, UNLIMITED, losing(&[]), 450);
            for (n, expected) in growth.into_iter().enumerate() {
                assert_eq!(window(&path.rows, 150 + 100 * n as u64), expected, "{tcp} {l} {n}");
            }
        }
    }
}

#[test]
fn avoidance_adds_one_packet_per_rtt_with_any_ack_rate() {
    for delayed in ["false", "true"] {
        let settings = [("delayed_ack", delayed), ("ssthresh", "10p")];
        let path = run("newreno", &settings, UNLIMITED, losing(&[]), 9_950);
        let slope = (window(&path.rows, 9_950) - window(&path.rows, 4_950)) / 50.0;
        assert!((slope - 1.0).abs() < 0.03, "{delayed}: {slope}");
    }
}

#[test]
fn one_loss_is_repaired_in_one_rtt_and_halves_the_window() {
    for tcp in ["reno", "newreno", "sack"] {
        // Twenty packets at 300 ms, of which packet 35 is lost.
        let settings = [("rwnd", "20p")];
        let path = run(tcp, &settings, UNLIMITED, losing(&[(35, 1)]), 2_000);
        assert_eq!(again(&path.rows), [(400, 35)], "{tcp}");
        assert_eq!(path.sender.stats().timeouts, 0);
        assert_eq!(path.sender.ssthresh_packets(), 10.0, "{tcp}");
        assert_eq!(window(&path.rows, 500), 10.0, "{tcp}: after the repair");
        assert_eq!(path.receiver.delivered_bytes() / 1000 % 20, 0, "{tcp}: no gap in the rhythm");
    }
}

#[test]
fn tahoe_starts_over_from_the_loss() {
    let path = run("tahoe", &[], 40, losing(&[(12, 1)]), 2_000);
    // 10 packets at 100 ms, 20 at 200 ms. At 300 ms packets 13, 14 and 15 indicate the loss, and
    // limited transmit has sent two more.
    assert_eq!(window(&path.rows, 300), 1.0);
    assert_eq!(again(&path.rows)[0], (300, 12));
    assert_eq!(path.sender.stats().timeouts, 0);
    assert_eq!(path.receiver.received_in_connection(), 40_000);
    let dup = path.rows.iter().filter(|r| r.event == 'a' && r.dup == 3).count();
    assert_eq!(dup, 1, "duplicate acks of retransmissions do not reduce again");
}

#[test]
fn three_losses_in_a_window() {
    let list: &[(u64, u32)] = &[(12, 1), (16, 1), (20, 1)];
    let lost = |tcp, settings: &[_]| run(tcp, settings, 60, losing(list), 9_000);
    let reno = lost("reno", &[]);
    assert_eq!(reno.sender.stats().timeouts, 1, "careful: one reduction per window");
    let bold = lost("reno", &[("careful", "false")]);
    for r in &bold.rows {
        println!("{:?}", r);
    }
    let mut cuts: Vec<f64> = bold.rows.iter().map(|r| r.ssthresh).collect();
    cuts.dedup();
    assert_eq!(cuts[1..3], [11.0, 5.5], "halved again by the second loss");
    let newreno = lost("newreno", &[]);
    assert_eq!(again(&newreno.rows), [(300, 12), (400, 16), (500, 20)], "one per round trip");
    let sack = lost("sack", &[]);
    assert_eq!(again(&sack.rows), [(300, 12), (300, 16), (300, 20)], "all in one");
    for path in [&newreno, &sack] {
        assert_eq!(path.sender.stats().timeouts, 0);
    }
    assert!(finished(&sack) <= finished(&newreno) && finished(&newreno) < finished(&reno));
}

#[test]
fn newreno_deflates_by_what_a_partial_ack_covers() {
    let path = run("newreno", &[], UNLIMITED, losing(&[(12, 1), (22, 1)]), 450);
    // At the reduction: packets 12..34 outstanding, and 2 by limited transmit, which do not count.
    let cut = path.rows.iter().find(|r| r.dup == 3).unwrap();
    assert_eq!((cut.now.0 / 1_000_000, cut.cwnd), (300, 11.0));
    let partial: Vec<_> =
        path.rows.iter().filter(|r| r.event == 'a' && r.seq == 22_001).map(|r| r.now).collect();
    assert_eq!(partial[0], Time(400_000_000));
    assert_eq!(again(&path.rows), [(300, 12), (400, 22)]);
    assert_eq!(window(&path.rows, 400), 11.0, "only the inflation is deflated");
}

#[test]
fn a_lost_retransmission_needs_the_timer() {
    for tcp in ["tahoe", "reno", "newreno", "sack"] {
        let path = run(tcp, &[], 60, losing(&[(12, 1), (12, 2)]), 9_000);
        assert_eq!(path.sender.stats().timeouts, 1, "{tcp}");
        // The timer was last set at 300 ms; SACK continues, because nothing else is missing.
        let third = again(&path.rows).into_iter().filter(|r| r.1 == 12).nth(1);
        assert_eq!(third, Some((1_300, 12)), "{tcp}");
        assert!(path.sender.is_done(), "{tcp}");
    }
}

#[test]
fn sack_information_survives_a_timeout() {
    let path = run("sack", &[], 60, losing(&[(12, 1), (12, 2), (14, 1), (14, 2)]), 9_000);
    assert_eq!(path.sender.stats().timeouts, 1);
    let after: Vec<u64> =
        again(&path.rows).into_iter().filter(|r| r.0 >= 1_300).map(|r| r.1).collect();
    assert_eq!(after, [12, 14], "received packets are not retransmitted");
}

#[test]
fn last_packet_lost_costs_the_minimum_timeout() {
    for tcp in ["tahoe", "reno", "newreno", "sack"] {
        let path = run(tcp, &[], 10, losing(&[(9, 1)]), 9_000);
        let expiries: Vec<_> = path.rows.iter().filter(|r| r.event == 'x').map(|r| r.now).collect();
        assert_eq!(expiries, [Time(1_200_000_000)], "{tcp}: a second after the last ack");
        assert_eq!((finished(&path), path.sender.stats().timeouts), (1_300, 1), "{tcp}");
    }
}

#[test]
fn timer_backs_off_to_the_cap() {
    let list: &[(u64, u32)] = &[(0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (0, 6), (0, 7), (0, 8)];
    let path = run("newreno", &[], 1, losing(list), 400_000);
    let at: Vec<u64> = sent(&path.rows, |_| true).into_iter().map(|r| r.0 / 100).collect();
    let gaps: Vec<u64> = at.windows(2).map(|w| w[1] - w[0]).collect();
    assert_eq!(gaps, [10, 20, 40, 80, 160, 320, 600, 600], "tenths of a second");
    assert_eq!((path.sender.stats().timeouts, path.sender.is_done()), (8, true));
    assert_eq!(path.sender.ssthresh_packets(), 2.0, "reduced by the first timeout only");
}

#[test]
fn retransmitted_packets_give_no_rtt_sample() {
    let settings = [("rto_min", "1ms"), ("tick", "1ms")];
    let mut path = open("newreno", &settings, 1, losing(&[(0, 1)]));
    let rto = |p: &Path<_>| (p.sender.next_timer() - p.now).0 / 1_000_000;
    path.run(Time(101_000_000));
    assert_eq!(rto(&path), 299, "srtt 100 ms + 4 * 50 ms, from the SYN");
    path.run(Time(600_000_000)); // lost; retransmitted at 400 ms, acknowledged at 500 ms
    assert!(path.sender.is_done());
    path.write(1_000);
    assert_eq!(rto(&path), 600, "still backed off");
    path.run(Time(800_000_000));
    path.write(1_000);
    assert_eq!(rto(&path), 250, "the new packet gave a sample: rttvar is 3/4 of 50 ms");
}

#[test]
fn limited_transmit_sends_a_new_packet_per_duplicate() {
    for tcp in ["tahoe", "reno", "newreno", "sack"] {
        // The last two of five packets arrive: the third duplicate ack needs one more packet.
        let list: &[(u64, u32)] = &[(4, 1), (5, 1), (6, 1)];
        let count = |limited| {
            let settings = [("iw", "4p"), ("ssthresh", "4p"), ("limited_transmit", limited)];
            run(tcp, &settings, 30, losing(list), 9_000).sender.stats().timeouts
        };
        assert_eq!(count("false"), 1, "{tcp}");
        assert!(count("true") == 0 || tcp == "reno", "{tcp}");
    }
}

#[test]
fn ecn_halves_like_a_loss_without_retransmission() {
    for tcp in ["tahoe", "reno", "newreno", "sack"] {
        let (mut answers, mut marked) = (Vec::new(), false);
        let fate = |_, seg: &Segment| {
            assert!(seg.syn || seg.ect != seg.retransmission);
            if seg.cwr {
                answers.push((seg.seq - 1) / 1000);
            }
            marked = [35_001, 38_001].contains(&seg.seq);
            if marked { Fate::Mark } else { Fate::Pass }
        };
        let settings = [("rwnd", "20p"), ("ecn", "true")];
        let path = run(tcp, &settings, UNLIMITED, fate, 2_000);
        assert_eq!(path.sender.stats().retransmitted_packets, 0, "{tcp}");
        assert_eq!(path.sender.ssthresh_packets(), 10.0, "{tcp}: once for both marks");
        assert_eq!(window(&path.rows, 400), 10.0, "{tcp}");
        let grown = window(&path.rows, 1_950) - window(&path.rows, 950);
        assert!((9.0..=10.0).contains(&grown), "{tcp}: then one per round trip");
        // 30..49 are outstanding; acks up to 35 release nothing; the first new packet after the
        // reduction is 55.
        assert_eq!(answers, [55], "{tcp}: the first new packet answers");
    }
}

#[test]
fn loss_in_a_window_reduced_by_a_mark_does_not_reduce_again() {
    for tcp in ["reno", "newreno", "sack"] {
        let mut losses = losing(&[(38, 1)]);
        let fate = move |n, seg: &Segment| match seg.seq {
            35_001 => Fate::Mark,
            _ => losses(n, seg),
        };
        let path = run(tcp, &[("rwnd", "20p"), ("ecn", "true")], UNLIMITED, fate, 2_000);
        assert_eq!(again(&path.rows), [(400, 38)], "{tcp}");
        assert_eq!(path.sender.ssthresh_packets(), 10.0, "{tcp}");
    }
}

#[test]
fn mark_at_the_end_of_a_recovery_reduces_the_next_window() {
    // 37 is sent in recovery and marked; the ack that ends the recovery covers it as well.
    let mut losses = losing(&[(12, 1), (13, 1)]);
    let fate = move |n, seg: &Segment| match seg.seq {
        37_001 => Fate::Mark,
        _ => losses(n, seg),
    };
    let path = run("newreno", &[("ecn", "true")], UNLIMITED, fate, 1_000);
    assert_eq!(again(&path.rows), [(300, 12), (400, 13)]);
    let last = path.rows.iter().find(|r| r.event == 'a' && r.seq > 37_001).unwrap();
    assert_eq!((last.now, last.dup), (Time(500_000_000), 0));
    assert!(last.ssthresh < 11.0 && last.cwnd == last.ssthresh, "reduced again: {last:?}");
    // Out of recovery: duplicate acks count from one, and congestion avoidance grows the window.
    assert!(window(&path.rows, 990) > last.cwnd);
}

#[test]
fn sack_rescues_the_last_packet() {
    let path = run("sack", &[], 34, losing(&[(12, 1), (33, 1)]), 9_000);
    assert_eq!(again(&path.rows), [(300, 12), (400, 33)]);
    assert_eq!((finished(&path), path.sender.stats().timeouts), (500, 0));
}

#[test]
fn long_newreno_recovery_is_ended_by_the_timer() {
    // Twelve losses take twelve round trips; only the first partial ack restarts the timer.
    #[rustfmt::skip]
    let list: &[(u64, u32)] = &[
        (12, 1), (13, 1), (14, 1), (15, 1), (16, 1), (17, 1), (18, 1), (19, 1), (20, 1), (21, 1),
        (22, 1), (23, 1), (24, 1), (25, 1),
    ];
    let path = run("newreno", &[], 60, losing(list), 9_000);
    let expiries: Vec<_> = path.rows.iter().filter(|r| r.event == 'x').map(|r| r.now).collect();
    assert_eq!(expiries, [Time(1_400_000_000)]);
    assert!(path.sender.is_done());
}

#[test]
fn window_of_one_packet_waits_for_the_timer_after_a_mark() {
    let fate = |_, seg: &Segment| if seg.seq == 1 { Fate::Mark } else { Fate::Pass };
    let settings = [("ecn", "true"), ("iw", "1p")];
    let path = run("newreno", &settings, 3, fate, 5_000);
    assert_eq!(sent(&path.rows, |_| true)[..2], [(100, 0), (1_200, 1)]);
    assert_eq!((path.sender.stats().timeouts, path.sender.is_done()), (0, true));
}

#[test]
fn lost_syn_starts_with_one_packet_and_three_seconds() {
    let fate = |n, _: &Segment| if n == 0 { Fate::Lose } else { Fate::Pass };
    let mut path = open("newreno", &[], 10, fate);
    path.run(Time(1_101_000_000));
    assert_eq!(sent(&path.rows, |_| true), [(1_100, 0)]);
    assert_eq!(path.sender.next_timer(), Time(4_100_000_000));
}

#[test]
fn idle_period_resets_the_window() {
    let mut path = open("newreno", &[], 100, losing(&[]));
    path.run(Time(10_000_000_000));
    assert_eq!((path.sender.is_done(), path.sender.next_timer()), (true, Time::NEVER));
    let before = path.sender.cwnd_packets();
    path.write(50_000);
    assert!(before > 50.0);
    assert_eq!(sent(&path.rows, |r| r.now == Time(10_000_000_000)).len(), 10);
}

#[test]
fn losing_half_of_the_acks_only_slows_growth() {
    for tcp in ["newreno", "sack"] {
        let grown = |every| {
            let mut path = open(tcp, &[], UNLIMITED, losing(&[]));
            path.lose_acks = every;
            path.run(Time(450_000_000));
            assert_eq!(path.sender.stats().retransmitted_packets, 0);
            path.sender.cwnd_packets()
        };
        assert_eq!(grown(0), 80.0);
        assert!((30.0..60.0).contains(&grown(2)), "{tcp}: {}", grown(2));
    }
}

#[test]
fn short_writes_keep_their_length_and_stop_sends_no_new_data() {
    let mut path = open("newreno", &[], 0, losing(&[]));
    path.run(Time(150_000_000));
    path.write(1_500);
    let last = path.rows.last().unwrap();
    assert_eq!((last.seq, last.wire), (1_001, 540));
    path.write(UNLIMITED);
    path.run(Time(420_000_000));
    path.sender.stop_writing();
    path.run(Time(5_000_000_000));
    assert!(path.sender.is_done());
    assert_eq!(path.sender.acked_bytes(), path.receiver.received_in_connection());
}

#[test]
fn new_connection_resets_state_but_not_counters() {
    let mut path = run("sack", &[], 60, losing(&[(12, 1)]), 3_000);
    let before = *path.sender.stats();
    path.start(Time(3_000_000_000), 5_000);
    path.run(Time(6_000_000_000));
    assert_eq!(path.sender.stats().sent_packets, before.sent_packets + 6);
    assert_eq!((path.receiver.received_in_connection(), path.sender.is_done()), (5_000, true));
    assert_eq!(path.receiver.delivered_bytes(), 65_000);
}
