//! Undo of reductions: by timestamps and by DSACK.

use super::*;

const COMMON: [(&str, &str); 3] = [("rack", "true"), ("rtt_per_ack", "true"), ("rto_min", "200ms")];

/// Sender with ten segments, sent at 100 ms.
fn ten_sent(option: &'static str) -> Test {
    let all = [COMMON[0], COMMON[1], COMMON[2], (option, "true")];
    let mut t = Test::new("sack", &all);
    t.write(100, 20_000);
    t.sent();
    t
}

fn echo(ack: u64, echo: u32) -> Ack {
    Ack { ack, echo, ..Ack::default() }
}

/// RFC 4015: the ack of the retransmitted segment echoes the first transmission.
#[test]
fn an_echo_of_the_first_transmission_undoes_a_recovery() {
    for (stamp, cwnd) in [(100, 10_000), (200, 5_000)] {
        let mut t = ten_sent("timestamps");
        t.receive(200, echo(1, 100), &[(1_001, 2_001)]);
        assert_eq!((t.sender.state, t.sender.window.cwnd), (Recovery, 5_000));
        assert_eq!(t.sent(), [1], "sent again at 200 ms");
        t.receive(210, echo(10_001, stamp), &[]);
        assert_eq!((t.sender.state, t.sender.window.cwnd), (Open, cwnd), "echo of {stamp}");
    }
}

#[test]
fn an_echo_of_the_first_transmission_undoes_a_timeout() {
    let mut t = ten_sent("timestamps");
    t.timer(400);
    assert_eq!((t.sender.state, t.sent().as_slice()), (Loss, &[1][..]));
    t.receive(410, echo(1_001, 100), &[]);
    assert_eq!((t.sender.state, t.sender.window.cwnd), (Open, 10_000));
    // Nothing is lost any more: the window has room for one new segment.
    assert_eq!(t.sent(), [10_001]);
    assert!(t.sender.window.ssthresh >= 7_500);
}

#[test]
fn a_mark_in_between_forbids_the_undo() {
    let mut t = ten_sent("timestamps");
    t.sender.ecn = true;
    t.timer(400);
    t.receive(405, Ack { ece: true, ..echo(1, 100) }, &[(8_001, 9_001)]);
    let cwnd = t.sender.window.cwnd;
    t.receive(410, echo(1_001, 100), &[(8_001, 9_001)]);
    assert!(t.sender.window.cwnd <= cwnd + 1_000, "{}", t.sender.window.cwnd);
}

/// RFC 3708: every retransmission is reported as a duplicate.
#[test]
fn dsacks_of_all_retransmissions_undo_a_recovery() {
    let mut t = ten_sent("dsack");
    t.ack(200, 1, &[(2_001, 3_001)]);
    t.sender.window.cwnd = 7_000;
    t.ack(201, 1, &[(2_001, 5_001)]);
    assert_eq!(t.sender.state, Recovery);
    let again: Vec<u64> = t.out.iter().filter(|s| s.retransmission).map(|s| s.seq).collect();
    assert_eq!(again, [1, 1_001]);
    t.ack(250, 2_001, &[(1, 1_001), (2_001, 5_001)]);
    assert_eq!(t.sender.state, Recovery, "one of two");
    t.ack(251, 5_001, &[(1_001, 2_001)]);
    assert_eq!((t.sender.state, t.sender.window.cwnd), (Open, 10_000));
}

/// A DSACK after the end of the recovery undoes it, too.
#[test]
fn a_late_dsack_undoes_a_recovery_that_has_ended() {
    let mut t = ten_sent("dsack");
    t.ack(200, 1, &[(1_001, 2_001)]);
    t.ack(210, 10_001, &[]);
    assert_eq!((t.sender.state, t.sender.window.cwnd), (Open, 5_000));
    t.ack(300, 10_001, &[(1, 1_001)]);
    assert_eq!((t.sender.state, t.sender.window.cwnd), (Open, 10_000));
}
