//! ECN: what the segments carry, and what an echo does.

use super::*;

fn echo(ack: u64) -> Ack {
    Ack { ack, ece: true, ..Ack::default() }
}

/// RFC 3168 section 6.1.2: the first new data segment after a reduction carries CWR, and no
/// retransmission does.
#[test]
fn the_next_new_segment_carries_cwr() {
    let mut t = Test::new("newreno", &[("ecn", "true")]);
    t.write(100, 20_000);
    assert!(t.out.drain(..).all(|s| !s.cwr));
    t.receive(200, echo(1_001), &[]);
    assert_eq!(t.sender.window.cwnd, 5_000);
    (1..=3).for_each(|i| t.ack(200 + i, 1_001, &[]));
    t.ack(300, 10_001, &[]);
    let flags: Vec<_> = t.out.drain(..).map(|s| (s.seq, s.cwr)).collect();
    assert_eq!(flags[..3], [(1_001, false), (10_001, true), (11_001, false)]);
    t.timer(1_400);
    (15..17).for_each(|n| t.ack(1_500 + n, n * 1_000 + 1, &[]));
    let flags: Vec<_> = t.out.iter().map(|s| (s.retransmission, s.cwr)).collect();
    assert_eq!(flags[..3], [(true, false), (false, true), (false, false)], "after a timeout");
    let mut t = Test::new("newreno", &[]);
    t.write(100, 20_000);
    t.receive(200, echo(1_001), &[]);
    assert!(t.out.iter().all(|s| !s.cwr) && t.sender.window.cwnd == 10_000, "without ECN");
}

/// RFC 3168 section 6.1.2: an ack with an echo does not grow the window.
#[test]
fn a_marked_ack_is_no_ack_for_the_growth_of_the_window() {
    for (ece, grows) in [(false, true), (true, false)] {
        let mut t = Test::new("newreno", &[("ecn", "true")]);
        t.write(100, 5_000);
        t.receive(200, Ack { ece, ..echo(1_001) }, &[]);
        assert_eq!(t.calls().iter().any(|c| matches!(c, Call::Acked(..))), grows);
    }
}

/// RFC 3168 section 6.1.2: an echo at a window of one segment stops sending until the timer
/// expires.
#[test]
fn a_mark_at_a_window_of_one_segment_pauses_the_sender() {
    let mut t = Test::new("newreno", &[("ecn", "true"), ("initial_window", "1p")]);
    t.write(100, 5_000);
    assert_eq!(t.sent(), [1]);
    t.receive(200, echo(1_001), &[]);
    assert_eq!((t.sent(), t.sender.timer()), (vec![], at(200) + t.sender.rto()));
    t.write(210, 1_000);
    assert_eq!(t.sent(), [0; 0], "more data changes nothing");
    let expiry = t.sender.timer();
    t.sender.on_timer(expiry, &mut t.out);
    assert_eq!((t.sent(), t.sender.stats().timeouts), (vec![1_001], 0), "nothing was outstanding");
}

/// With accurate feedback an ack tells the number of marked packets, modulo 2^16; with one bit the
/// acknowledged bytes count as marked.
#[test]
fn a_control_is_told_the_marked_bytes() {
    let marked = |t: &mut Test| {
        t.calls().iter().find_map(|c| match c {
            Call::Echo(_, bytes, marked, _) => Some((*bytes, *marked)),
            _ => None,
        })
    };
    let settings = [("ecn", "true"), ("ecn_feedback", "accurate")];
    let mut t = Test::new("newreno", &settings);
    t.write(100, 8_000);
    t.calls();
    for (ms, ack, ce_packets, expected) in [
        (200, 1_001, 0, (1_000, 0)),
        (210, 3_001, 2, (2_000, 2_000)),
        (220, 4_001, 3, (1_000, 1_000)),
    ] {
        t.receive(ms, Ack { ack, ce_packets, ..Ack::default() }, &[]);
        assert_eq!(marked(&mut t), Some(expected), "{ms}");
    }
    t.sender.ce_packets = 65_535;
    t.receive(230, Ack { ack: 5_001, ce_packets: 1, ..Ack::default() }, &[]);
    assert_eq!(marked(&mut t), Some((1_000, 2_000)), "65,535, 0, 1");
    let mut t = Test::new("newreno", &settings[..1]);
    t.write(100, 8_000);
    t.calls();
    t.receive(200, echo(2_001), &[]);
    assert_eq!(marked(&mut t), Some((2_000, 2_000)));
}

/// RFC 3168 §6.1.1.1: a SYN that is sent again may ask for no ECN, as in Linux.
#[test]
fn with_fallback_a_lost_syn_ends_ecn_for_the_connection() {
    for (fallback, ect) in [("true", false), ("false", true)] {
        let settings = [("ecn", "true"), ("rack", "true"), ("ecn_fallback", fallback)];
        let mut t = Test::opened("sack", &settings);
        t.timer(1_000);
        t.ack(1_100, 1, &[]);
        t.out.clear();
        t.write(1_100, 1_000);
        assert_eq!(t.out[0].ect, ect, "{fallback}");
        // The next connection asks again.
        t.sender.open(at(2_000), &mut t.out);
        t.ack(2_100, 1, &[]);
        t.out.clear();
        t.write(2_100, 1_000);
        assert!(t.out[0].ect);
    }
}

/// Linux, `tcp_fastretrans_alert`: a mark that comes with the undo of a timeout forbids to restore
/// the window, and reduces it. The window of a segment does not pause the sender.
#[test]
fn in_linux_a_mark_on_an_undone_timeout_reduces() {
    let linux =
        [("ecn", "true"), ("rack", "true"), ("timestamps", "true"), ("rtt_per_ack", "true")];
    for (reduce_cwnd, reduced) in [("true", true), ("false", false)] {
        let mut t = Test::new("sack", &[&linux[..], &[("reduce_cwnd", reduce_cwnd)]].concat());
        t.write(100, 6_000);
        t.timer(1_200);
        assert_eq!(t.sender.state, Loss);
        t.calls();
        t.receive(1_400, Ack { ack: 1_001, ece: true, echo: 100, ..Ack::default() }, &[]);
        assert_eq!((t.sender.state, t.sender.reduced_by_mark), (Open, reduced));
        let marks = t
            .calls()
            .into_iter()
            .filter(|call| matches!(call, Call::Congestion(_, CongestionSignal::Mark)));
        assert_eq!((marks.count(), t.sender.paused_by_mark), (usize::from(reduced), false));
    }
}
