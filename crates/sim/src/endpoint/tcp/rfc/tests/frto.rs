//! F-RTO after timeouts.

use super::*;

/// Sender with four of eight segments sent at 100 ms, after a timeout at 400 ms.
fn timed_out() -> Test {
    let settings = [("rack", "true"), ("rtt_per_ack", "true"), ("rto_min", "200ms")];
    let mut t = Test::new("sack", &[settings[0], settings[1], settings[2], ("frto", "true")]);
    t.sender.window.cwnd = 4_000;
    t.write(100, 8_000);
    t.sent();
    t.timer(400);
    assert_eq!((t.sender.state, t.sent().as_slice()), (Loss, &[1][..]));
    t
}

/// RFC 5682 §3.1 step 3 (b): the second ack is of data that was sent once.
#[test]
fn an_ack_of_data_sent_once_undoes_the_timeout() {
    let mut t = timed_out();
    t.ack(410, 1_001, &[]);
    assert_eq!(t.sent(), [4_001], "step 2 (b): new data");
    t.ack(420, 2_001, &[]);
    assert_eq!((t.sender.state, t.sender.window.cwnd), (Open, 4_000));
    assert_eq!(t.sent().first(), Some(&5_001), "nothing is sent again");
}

/// Step 3 (a): new data arrived, old data did not.
#[test]
fn a_selective_ack_of_new_data_confirms_the_timeout() {
    let mut t = timed_out();
    t.ack(500, 1_001, &[]);
    assert_eq!(t.sent(), [4_001]);
    t.ack(600, 1_001, &[(4_001, 5_001)]);
    assert_eq!(t.sent(), [1_001], "lost data");
    t.ack(700, 2_001, &[(4_001, 5_001)]);
    assert_eq!(t.sent().first(), Some(&2_001));
}

#[test]
fn without_new_data_lost_data_is_sent_at_once() {
    let mut t = timed_out();
    t.sender.stop();
    t.ack(500, 1_001, &[]);
    assert_eq!(t.sent(), [1_001]);
}
