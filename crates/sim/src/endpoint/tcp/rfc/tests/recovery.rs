//! Fast retransmit, fast recovery and timeouts: windows of 10 segments of 1000 B.

use super::*;

/// Sends ten segments and forgets the calls.
fn ten_sent(name: &str, settings: &[(&str, &'static str)]) -> Test {
    let mut t = Test::new(name, settings);
    t.write(100, 20_000);
    assert_eq!(t.sent().len(), 10, "{name}");
    t.calls();
    t
}

impl Test {
    /// Causes for which the window was reduced since the last call.
    fn reductions(&mut self) -> Vec<CongestionSignal> {
        let causes = self.calls().into_iter().filter_map(|c| match c {
            Call::Congestion(_, cause) => Some(cause),
            _ => None,
        });
        causes.collect()
    }
}

/// RFC 5681 section 3.2 (3) and (4): three segments at the third duplicate ack, one for each more.
#[test]
fn duplicate_acks_inflate_the_window_but_not_with_sack() {
    let mut t = ten_sent("newreno", &[("limited_transmit", "false")]);
    (0..3).for_each(|i| t.ack(200 + i, 1, &[]));
    assert_eq!((t.sender.window.cwnd, t.sender.inflation, t.sent()), (5_000, 3_000, vec![1]));
    (3..5).for_each(|i| t.ack(200 + i, 1, &[]));
    assert_eq!((t.sender.inflation, t.sent()), (5_000, vec![]), "10 kB are outstanding");
    t.ack(205, 1, &[]);
    assert_eq!((t.sender.inflation, t.sent()), (6_000, vec![10_001]));

    let mut t = ten_sent("sack", &[]);
    (1..=5).for_each(|i| t.ack(200 + i, 1, &[(1_001, 1_001 + 1_000 * i)]));
    assert_eq!((t.sender.state, t.sender.window.cwnd, t.sender.inflation), (Recovery, 5_000, 0));
}

/// RFC 6675 section 5 (C): a SACK sender sends when `pipe` leaves room for a whole segment, on
/// duplicate acks, too.
#[test]
fn sack_sends_by_pipe_before_the_third_duplicate_ack() {
    let mut t = ten_sent("sack", &[]);
    t.ack(200, 1, &[(1_001, 1_501)]);
    assert_eq!((t.sender.dup_acks(), t.sent()), (1, vec![]), "half a segment left the network");
    t.ack(210, 1, &[(1_001, 2_001)]);
    assert_eq!((t.sender.dup_acks(), t.sent()), (2, vec![10_001]));
}

/// After a timeout duplicate acks tell nothing new, but for Reno as it first was (not `careful`),
/// which takes the third for a loss.
#[test]
fn the_third_duplicate_ack_after_a_timeout() {
    for (name, careful, state, again) in [
        ("sack", "true", Loss, None),
        ("newreno", "true", Loss, None),
        ("reno", "true", Loss, None),
        ("reno", "false", Recovery, Some(1)),
    ] {
        let mut t = ten_sent(name, &[("careful", careful)]);
        t.timer(1_200);
        assert_eq!((t.reductions(), t.sent()), (vec![CongestionSignal::Timeout], vec![1]));
        (1..=3).for_each(|i| t.ack(1_300 + i, 1, &[(5_001, 5_001 + 1_000 * i)]));
        let reduced = usize::from(state == Recovery);
        assert_eq!((t.sender.state, t.sent().first().copied()), (state, again), "{name}");
        assert_eq!(t.reductions().len(), reduced, "{name}");
    }
}

/// The third duplicate ack of byte 1001. `recover` follows the last byte that was sent before the
/// last reduction. RFC 6582 section 3.2 (2) and RFC 5681 (`careful`): no second fast retransmit for
/// losses below it; SACK has no such rule. RFC 3168 section 6.1.2: if a mark caused the reduction,
/// a loss in the same window is repaired and does not reduce again.
#[test]
fn one_reduction_per_window() {
    for (name, careful, recover, marked, reduced, retransmitted) in [
        ("reno", "false", 1_000, false, true, true),
        ("reno", "false", 1_001, false, true, true),
        ("reno", "false", 1_000, true, true, true),
        ("reno", "false", 1_001, true, false, true),
        ("reno", "true", 1_000, false, true, true),
        ("reno", "true", 1_001, false, false, false),
        ("reno", "true", 1_001, true, false, true),
        ("tahoe", "false", 1_001, false, true, true),
        ("tahoe", "true", 1_001, false, false, false),
        ("tahoe", "true", 1_001, true, false, true),
        ("newreno", "false", 1_000, false, true, true),
        ("newreno", "false", 1_001, false, false, false),
        ("newreno", "false", 1_000, true, true, true),
        ("newreno", "false", 1_001, true, false, true),
        ("newreno", "true", 1_001, false, false, false),
        ("sack", "false", 1_001, false, true, true),
        ("sack", "false", 1_001, true, true, true),
        ("sack", "false", 1_002, false, true, true),
        ("sack", "false", 1_002, true, false, true),
    ] {
        let mut t = ten_sent(name, &[("careful", careful)]);
        t.ack(200, 1_001, &[]);
        (t.sender.recover, t.sender.reduced_by_mark) = (recover, marked);
        t.sent();
        for i in 1..=3 {
            let block = [(2_001, 2_001 + 1_000 * i)];
            t.ack(200 + i, 1_001, &block[..usize::from(name == "sack")]);
        }
        let case = format!("{name}, careful {careful}, recover {recover}, marked {marked}");
        assert_eq!(t.reductions().len(), usize::from(reduced), "{case}");
        assert_eq!(t.sent().contains(&1_001), retransmitted, "{case}");
        assert_eq!(t.sender.window.cwnd < 10_000, reduced || name == "tahoe" && retransmitted);
    }
}

/// A control may ask for it, as Prague does.
#[test]
fn a_loss_in_a_marked_window_reduces_if_the_control_asks_for_it() {
    let mut t = ten_sent("sack", &[]);
    t.sender.control.reduces_again = true;
    t.ack(200, 1_001, &[]);
    (t.sender.recover, t.sender.reduced_by_mark) = (1_002, true);
    (1..=3).for_each(|i| t.ack(200 + i, 1_001, &[(2_001, 2_001 + 1_000 * i)]));
    assert_eq!(t.reductions().len(), 1);
}

/// With `rtt_per_ack` every ack is a sample: of the oldest segment that it covers, or of the echoed
/// timestamp if a retransmission is among them. Otherwise one segment per round trip is timed.
#[test]
fn every_ack_times_a_segment_with_rtt_per_ack() {
    let srtt = |per_ack: &'static str, acks: &[(u64, u64)]| {
        let mut t = ten_sent("sack", &[("rack", "true"), ("rtt_per_ack", per_ack)]);
        acks.iter().for_each(|&(ms, ack)| t.ack(ms, ack, &[]));
        t.sender.srtt().unwrap().0 as f64 / MS as f64
    };
    // 100 ms by the SYN. The segments were sent at 100 ms, so that acks at 260 and 340 ms are
    // round trips of 160 and 240 ms; the timed segment is the first one.
    assert_eq!(srtt("false", &[(260, 1_001), (340, 3_001)]), 107.5);
    assert_eq!(srtt("true", &[(260, 1_001), (340, 3_001)]), (7.0 * 107.5 + 240.0) / 8.0);
    let lost = |stamps: &'static str| {
        let settings = [("rack", "true"), ("rtt_per_ack", "true"), ("timestamps", stamps)];
        let mut t = ten_sent("sack", &settings);
        t.ack(200, 1, &[(1_001, 2_001)]);
        t.receive(360, Ack { ack: 2_001, echo: 200, ..Ack::default() }, &[]);
        t.sender.srtt().unwrap()
    };
    assert_eq!(lost("false"), Span::ms(100), "Karn's rule");
    assert_eq!(lost("true"), Span(107_500_000), "the segment was sent again at 200 ms");
}

#[test]
fn a_fast_retransmit_ends_with_the_data_that_was_sent() {
    let mut t = Test::new("newreno", &[("limited_transmit", "false")]);
    (0..4).for_each(|_| t.write(100, 200));
    assert_eq!(t.sent(), [1, 201, 401, 601]);
    (0..3).for_each(|i| t.ack(200 + i, 1, &[]));
    let again: Vec<_> = t.out.iter().map(|s| (s.seq, s.len, s.retransmission)).collect();
    assert_eq!(again, [(1, 800, true)]);
}

/// RFC 6582 section 3.2 (3): the window (5 kB and 3 kB of inflation) shrinks by the acknowledged
/// data; one segment is added back if that was a segment or more.
#[test]
fn a_partial_ack_deflates_the_window() {
    for (acked, cwnd, inflation) in
        [(500, 5_000, 2_500), (1_000, 5_000, 3_000), (2_000, 5_000, 2_000), (6_000, 3_000, 0)]
    {
        let mut t = ten_sent("newreno", &[]);
        (0..3).for_each(|i| t.ack(200 + i, 1, &[]));
        t.sent();
        t.ack(300, 1 + acked, &[]);
        let window = (t.sender.window.cwnd, t.sender.inflation);
        assert_eq!((t.sender.state, window), (Recovery, (cwnd, inflation)), "{acked}");
        assert_eq!(t.sent()[0], 1 + acked, "the next hole is retransmitted");
    }
}

/// RFC 3042: at most one and two segments more than the window are outstanding at the first and
/// second duplicate ack.
#[test]
fn limited_transmit_keeps_to_the_window_and_two_segments() {
    for (cwnd, expected) in [
        (10_000, [vec![10_001], vec![11_001]]),
        (9_999, [vec![], vec![10_001]]),
        (9_500, [vec![], vec![10_001]]),
        (9_000, [vec![], vec![10_001]]),
        (8_999, [vec![], vec![]]),
    ] {
        let mut t = ten_sent("newreno", &[]);
        t.sender.window.cwnd = cwnd;
        let sent = [1, 2].map(|i| {
            t.ack(200 + i, 1, &[]);
            t.sent()
        });
        assert_eq!(sent, expected, "{cwnd}");
    }
}

#[test]
fn a_lost_syn_is_a_timeout() {
    let mut t = Test::opened("newreno", &[]);
    assert_eq!((t.sent(), t.sender.stats().timeouts), (vec![0], 0));
    t.timer(1_000);
    assert_eq!((t.sent(), t.sender.stats().timeouts), (vec![0], 1));
}

/// RFC 5681 section 3.1 and RFC 3168 section 6.1.2: a timeout reduces once for a segment, and not
/// at all in a window that a mark has reduced.
#[test]
fn a_timeout_reduces_once_and_not_after_a_mark() {
    use CongestionSignal::{Mark, Timeout};
    let echo = |ack| Ack { ack, ece: true, ..Ack::default() };

    let mut t = ten_sent("newreno", &[("ecn", "true")]);
    t.receive(200, echo(1_001), &[]);
    assert_eq!(t.reductions(), [Mark]);
    t.timer(1_300);
    assert_eq!((t.reductions(), t.sender.window.cwnd), (vec![], 1_000), "the marked window");
    t.timer(3_300);
    assert_eq!(t.reductions(), [], "the same segment again");

    let mut t = ten_sent("newreno", &[("ecn", "true")]);
    t.receive(200, echo(10_001), &[]);
    assert_eq!((t.reductions(), t.sent()[0]), (vec![Mark], 10_001));
    t.timer(1_300);
    assert_eq!(t.reductions(), [Timeout], "data of the next window");

    let mut t = ten_sent("newreno", &[]);
    (0..3).for_each(|i| t.ack(200 + i, 1, &[]));
    assert_eq!(t.reductions(), [CongestionSignal::Loss]);
    t.timer(1_300);
    assert_eq!(t.reductions(), [Timeout], "a lost retransmission");
    t.timer(3_300);
    assert_eq!(t.reductions(), [], "the same segment again");
}

/// Linux, `tcp_enter_loss`: a timeout in fast recovery keeps the threshold, but the control takes
/// part: CUBIC forgets its plateau. A timeout of another segment reduces again.
#[test]
fn in_linux_a_timeout_in_recovery_keeps_the_threshold() {
    for (reduce_cwnd, thresholds) in [("true", [5_000, 5_000, 500]), ("false", [5_000, 2_500, 500])]
    {
        let mut t = ten_sent("sack", &[("rack", "true"), ("reduce_cwnd", reduce_cwnd)]);
        t.ack(200, 1, &[(1_001, 2_001)]);
        assert_eq!((t.sender.state, t.sender.window.ssthresh), (Recovery, thresholds[0]));
        t.calls();
        t.timer(1_300);
        assert_eq!((t.sender.state, t.sender.window.ssthresh), (Loss, thresholds[1]));
        assert_eq!(t.reductions(), [CongestionSignal::Timeout]);
        let head = t.sender.snd_una;
        t.ack(1_400, head + 1_000, &[]);
        t.sender.window.cwnd = 1_000;
        let due = t.sender.timer();
        t.sender.on_timer(due, &mut t.out);
        assert_eq!(t.sender.window.ssthresh, thresholds[2], "the next segment");
    }
}
