//! Losses of an ack, and policers.

use super::*;

/// Linux, `bbr_set_cwnd_to_recover_or_restore`.
#[test]
fn losses_of_an_ack_are_deducted_before_the_window_grows() {
    let mut b = probing(2);
    let lost = |news| ProcessedAck { newly_lost: news, ..processed(0, 0, 0, RecoveryState::Loss) };
    let mut w = window(100);
    b.set_window(&mut w, &lost(10 * MSS), 2 * MSS);
    assert_eq!(w.cwnd, 92 * MSS);
    b.set_window(&mut w, &lost(10 * MSS), 0);
    assert_eq!(w.cwnd, 92 * MSS, "nothing was delivered");
    b.set_window(&mut w, &lost(500 * MSS), 9 * MSS);
    assert_eq!(w.cwnd, 10 * MSS, "one segment is left of it");
}

/// Two intervals of four round trips in which a fifth is lost: the sender stays at their rate.
#[test]
fn a_policer_sets_rate_and_window() {
    let mut b = probing(0);
    assert_eq!(b.pacing_gain(), 1.25);
    let sample = |b: &Bbr, starved| RateSample {
        rate: 1e6,
        interval: Span::ms(100),
        prior_delivered: b.rates.delivered(),
        rtt: None,
        longest_rtt: None,
        news: 10 * MSS,
        starved,
        delivered: 10 * MSS,
        lost: 0,
        in_flight: 0,
    };
    for round in 0..8 {
        deliver(&mut b, 10);
        let ack = ProcessedAck {
            lost: round * 4 * MSS,
            newly_lost: 4 * MSS,
            ..processed(100 * (1 + round), 0, 0, RecoveryState::Recovery)
        };
        b.round_start = true;
        let s = sample(&b, false);
        b.detect_policer(&ack, &s, false);
    }
    assert_eq!(b.bandwidth_in_use(), 100_000.0, "10 segments per 100 ms");
    assert_eq!(b.pacing_gain(), 1.0, "no probing");
    assert!(b.bandwidth() > 500_000.0, "BtlBw stays");
    // A loss that was none ends the rate of the policer, and keeps the window.
    let mut w = window(20);
    b.on_undo(&mut w, 50 * MSS);
    assert_eq!((b.pacing_gain(), w.cwnd), (1.25, 20 * MSS));
    assert!(b.bandwidth_in_use() > 500_000.0 && b.path_is_full());
    assert_eq!((b.full_bw, b.full_rounds), (0.0, 0));
}
