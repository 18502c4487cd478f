//! The window after a pause.

use super::*;

/// RFC 5681 section 4.1: the window is kept for a pause of one timeout, and while data is
/// outstanding; then it falls to the initial one, and never rises.
#[test]
fn only_a_pause_longer_than_the_timeout_resets_the_window() {
    for (pause, outstanding, keeps, cwnd, expected) in [
        (1_000, false, false, 50_000, 50_000),
        (1_001, false, false, 50_000, 10_000),
        (1_001, false, false, 3_000, 3_000),
        (1_001, true, false, 50_000, 50_000),
        (1_001, false, true, 50_000, 50_000),
    ] {
        for name in ["newreno", "sack"] {
            let mut t = Test::new(name, &[("rto_min", "1s")]);
            t.write(150, 1_000);
            if !outstanding {
                t.ack(250, 1_001, &[]);
            }
            assert_eq!(t.sender.rto(), Span::ms(1_000));
            t.sender.control.keeps = keeps;
            t.sender.window.cwnd = cwnd;
            t.write(150 + pause, 1_000);
            assert_eq!(t.sender.window.cwnd, expected, "{name} {pause} {outstanding}");
        }
    }
}

/// Linux, `tcp_cwnd_restart`: the timeout is 1 s. The window halves for each one that has passed,
/// but not below the initial one; the threshold keeps three quarters.
#[test]
fn in_linux_a_pause_halves_the_window_for_each_timeout() {
    for (pause, cwnd, expected, ssthresh) in [
        (1_000, 50_000, 50_000, 7_000),
        (1_001, 50_000, 25_000, 37_500),
        (2_000, 50_000, 25_000, 37_500),
        (2_001, 50_000, 12_000, 37_500),
        (3_001, 50_000, 10_000, 37_500),
        (99_001, 50_000, 10_000, 37_500),
        (1_001, 8_000, 8_000, 7_000),
    ] {
        let mut t = Test::new("sack", &[("rto_min", "1s"), ("reduce_cwnd", "true")]);
        t.write(150, 1_000);
        t.ack(250, 1_001, &[]);
        (t.sender.window.cwnd, t.sender.window.ssthresh) = (cwnd, 7_000);
        t.write(150 + pause, 1_000);
        let window = t.sender.window;
        assert_eq!((window.cwnd, window.ssthresh), (expected, ssthresh), "{pause}");
    }
}
