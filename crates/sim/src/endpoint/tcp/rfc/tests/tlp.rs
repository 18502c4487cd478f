//! Tail loss probes.

use super::*;

const TLP: &[(&str, &str)] =
    &[("rack", "true"), ("rtt_per_ack", "true"), ("rto_min", "200ms"), ("tlp", "true")];

/// Sender with `bytes` sent at 100 ms, and a smoothed round-trip time of 100 ms.
fn sent(bytes: u64) -> Test {
    let mut t = Test::new("sack", TLP);
    t.write(100, bytes);
    t.sent();
    t
}

/// RFC 8985 §7.2: two round-trip times and two ticks of Linux; 200 ms more for a single segment,
/// which comes later than the retransmission timeout of 300 ms.
#[test]
fn the_probe_is_due_after_two_round_trip_times() {
    assert_eq!(sent(3_000).sender.timer(), at(100) + Span::ms(202));
    assert_eq!(sent(1_000).sender.timer(), at(100) + Span::ms(300));
    let mut t = sent(3_000);
    t.ack(200, 1_001, &[]);
    assert_eq!(t.sender.timer(), at(200) + Span::ms(202), "an ack of new data restarts it");
    t.ack(210, 1_001, &[(2_001, 3_001)]);
    t.timer(402);
    assert_eq!((t.sent().as_slice(), t.sender.stats().timeouts), (&[1_001][..], 0), "RACK repairs");
}

/// Linux adds what the pacer still waits, here 50 ms, to the timers of probes and timeouts. A
/// timeout passes the pacer, and the timer after it is not longer.
#[test]
fn timers_wait_for_the_pacer_too() {
    let mut t = Test::new("sack", TLP);
    t.sender.control.release = at(150);
    t.write(100, 3_000);
    assert_eq!(t.sender.timer.0, 352 * MS, "the probe: 202 and 50 ms");
    let mut t = Test::new("sack", &[("rack", "true"), ("rtt_per_ack", "true")]);
    t.sender.control.release = at(150);
    t.write(100, 3_000);
    assert_eq!(t.sender.timer.0, 1_250 * MS, "the timeout: 1.1 s and 50 ms");
    t.sent();
    (t.sender.control.release, t.sender.control.credit) = (at(1_500), 1);
    t.timer(1_250);
    assert_eq!((t.sent().as_slice(), t.sender.timer.0), (&[1][..], 3_450 * MS));
}

#[test]
fn the_last_segment_is_sent_again_and_its_repair_reduces_the_window_once() {
    let mut t = sent(3_000);
    t.timer(302);
    assert_eq!((t.sent().as_slice(), t.sender.stats().timeouts), (&[2_001][..], 0));
    assert_eq!(t.sender.timer(), at(302) + t.sender.rto(), "the timeout counts from the probe");
    // The last segment was lost: the probe filled the hole, and new data was sent before its ack.
    t.write(310, 1_000);
    t.calls();
    t.ack(402, 3_001, &[]);
    assert_eq!(t.sender.window.cwnd, 10_000, "the probe alone may be a duplicate");
    t.ack(410, 4_001, &[]);
    let reductions = t.calls().into_iter().filter(|c| matches!(c, Call::Congestion(..)));
    assert_eq!((reductions.count(), t.sender.window.cwnd), (1, 5_000));
    assert_eq!(t.sender.state, Open);
}

/// RFC 8985 §7.4: the original and the probe arrived.
#[test]
fn a_duplicate_of_the_probe_is_no_loss() {
    for blocks in [&[(2_001, 3_001)][..], &[]] {
        let mut t = sent(3_000);
        t.timer(302);
        t.ack(310, 3_001, &[]);
        t.write(311, 1_000);
        t.ack(402, 3_001, blocks); // DSACK, or a pure duplicate ack
        t.ack(412, 4_001, &[]);
        assert_eq!(t.sender.window.cwnd, 10_000, "{blocks:?}");
    }
}

#[test]
fn new_data_goes_before_a_repetition_whatever_the_window() {
    let mut t = Test::new("sack", TLP);
    t.sender.window.cwnd = 3_000;
    t.write(100, 8_000);
    assert_eq!(t.sent(), [1, 1_001, 2_001]);
    t.timer(302);
    assert_eq!(t.sent(), [3_001], "a fourth segment");
    t.ack(402, 4_001, &[]);
    assert!(t.sender.window.cwnd >= 3_000, "no reduction");
}

/// At most one probe is outstanding: the next timer is the retransmission timer.
#[test]
fn a_timeout_follows_an_unanswered_probe() {
    let mut t = sent(3_000);
    t.timer(302);
    let timeout = t.sender.timer();
    assert_eq!(timeout, at(602));
    t.sent();
    t.sender.on_timer(timeout, &mut t.out);
    assert_eq!((t.sent().as_slice(), t.sender.stats().timeouts), (&[1][..], 1));
}
