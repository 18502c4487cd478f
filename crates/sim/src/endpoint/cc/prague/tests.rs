//! Rule by rule, with segments of 1440 B in packets of 1500 B.

use super::super::testing::{Delivery, deliver};
use super::*;

const MSS: u64 = 1_440;
const MS: u64 = 1_000_000;

/// Sender after slow start with a window of `segments`, an RTT of `ms`, and one mark behind it.
fn prague(segments: f64, ms: u64) -> (Prague, Window) {
    let mut p = Prague::of(PragueParams::default(), 1_500, MSS);
    let cwnd = segments.ceil() as u64 * MSS;
    let w = Window { cwnd, ssthresh: 1, mss: MSS };
    p.on_established(Time::ZERO, &w, Some(Span::ms(ms)));
    (p.fraction, p.saw_mark, p.rounds) = (segments, true, 4);
    (p, w)
}

/// Ack of `news` segments, `marked` of them with a mark, at `ms`, with a full window.
fn ack(p: &mut Prague, w: &mut Window, ms: u64, news: u64, marked: u64) {
    let base = p.rates.delivered();
    let now = Time(ms * MS);
    for i in 0..news {
        let seq = base + i * MSS;
        let state = RecoveryState::Open;
        p.on_sent(&SentSegment {
            now: Time(now.0 - p.srtt.unwrap().0),
            seq,
            end: seq + MSS,
            retransmission: false,
            was_idle: i == 0,
            state,
        });
    }
    let all = news * MSS;
    p.on_ecn_feedback(base + all + 1, all, marked * MSS, base + all + w.cwnd + 1);
    p.on_delivered(now, base, base + all);
    let state = RecoveryState::Open;
    let ack = ProcessedAck { now, delivered: base + all, flight: w.cwnd, srtt: None, state };
    p.on_ack_processed(w, &ack);
}

#[test]
fn first_mark_halves_the_window_and_ends_slow_start() {
    let mut p = Prague::of(PragueParams::default(), 1_500, MSS);
    let mut w = Window { cwnd: 100 * MSS, ssthresh: u64::MAX, mss: MSS };
    p.on_established(Time::ZERO, &w, Some(Span::ms(20)));
    ack(&mut p, &mut w, 20, 10, 0);
    assert_eq!((w.cwnd, p.alpha()), (110 * MSS, 0.0), "one segment per segment");
    w.ssthresh = p.on_congestion(Time(MS), &w, w.cwnd, CongestionSignal::Mark);
    assert_eq!(w.ssthresh, 55 * MSS);
    ack(&mut p, &mut w, 40, 1, 1);
    assert_eq!(p.fractional_window(), 55.0);
}

#[test]
fn alpha_is_the_average_of_the_marked_fraction_per_round() {
    let (mut p, mut w) = prague(40.0, 50);
    let mut expected = 0.0;
    for (round, marked) in (1..).zip([0, 10, 40, 5]) {
        // Each ack lies beyond the end of the last round.
        p.round_end = 0;
        ack(&mut p, &mut w, 50 * round, 40, marked);
        expected += (marked as f64 / 40.0 - expected) / 16.0;
        assert!((p.alpha() - expected).abs() < 1e-12, "{round}: {}, {expected}", p.alpha());
    }
}

#[test]
fn rounds_and_reductions_are_at_least_the_virtual_rtt_apart() {
    let (mut p, mut w) = prague(40.0, 10);
    p.alpha = 0.5;
    let cut = |p: &mut Prague, w: &Window, ms: u64| {
        p.on_congestion(Time(ms * MS), w, w.cwnd, CongestionSignal::Mark);
        p.fractional_window()
    };
    assert_eq!(cut(&mut p, &w, 100), 30.0, "40 (1 - 0.5/2)");
    assert_eq!(cut(&mut p, &w, 110), 30.0);
    assert_eq!(cut(&mut p, &w, 124), 30.0);
    assert_eq!(cut(&mut p, &w, 125), 22.5);
    p.rounds = 3;
    assert_eq!(cut(&mut p, &w, 126), 22.5 * 0.75, "three rounds after slow start");
    p.rounds = 4;
    (p.round_at, p.round_end, p.alpha) = (Time(200 * MS), 0, 0.0);
    ack(&mut p, &mut w, 224, 16, 16);
    assert_eq!(p.alpha(), 0.0);
    p.round_end = 0;
    ack(&mut p, &mut w, 225, 16, 16);
    assert_eq!(p.alpha(), 1.0 / 16.0);
}

#[test]
fn growth_per_round_is_scaled_by_the_square_of_a_short_rtt() {
    // W = 20: 20 unmarked segments add about one segment, at 5 ms 1/25 of it.
    for (ms, growth) in [(100, 1.0), (25, 1.0), (5, 0.04)] {
        let (mut p, mut w) = prague(20.0, ms);
        (0..20).for_each(|_| ack(&mut p, &mut w, 1_000, 1, 0));
        let got = p.fractional_window() - 20.0;
        assert!((got - growth).abs() < 0.03 * growth, "{ms} ms: {got}");
    }
    // Marked segments add nothing; half of the segments marked, half of the growth.
    let (mut p, mut w) = prague(20.0, 100);
    (0..20).for_each(|i| ack(&mut p, &mut w, 1_000, 1, i % 2));
    assert!((p.fractional_window() - 20.5).abs() < 0.01);
    // Before the transition the RTT does not matter.
    let (mut p, mut w) = prague(20.0, 5);
    p.rounds = 0;
    p.round_end = u64::MAX;
    (0..20).for_each(|_| ack(&mut p, &mut w, 1_000, 1, 0));
    assert!((p.fractional_window() - 21.0).abs() < 0.03);
}

#[test]
fn loss_halves_and_the_window_moves_by_one_segment_per_ack() {
    let (mut p, mut w) = prague(40.0, 50);
    w.ssthresh = p.on_congestion(Time(MS), &w, w.cwnd, CongestionSignal::Loss);
    assert_eq!((w.ssthresh, p.fractional_window()), (20 * MSS, 20.0));
    w.cwnd = 40 * MSS;
    ack(&mut p, &mut w, 50, 2, 0);
    assert_eq!(w.cwnd, 39 * MSS);
    ack(&mut p, &mut w, 50, 2, 0);
    assert_eq!(w.cwnd, 38 * MSS);
    // Without a mark, the lower bound is two segments; with one, it is the minimum rate.
    let (mut p, w) = prague(3.0, 50);
    p.saw_mark = false;
    p.on_congestion(Time(MS), &w, w.cwnd, CongestionSignal::Loss);
    assert_eq!(p.fractional_window(), 2.0);
    p.saw_mark = true;
    p.alpha = 1.0;
    for i in 1..40 {
        p.on_congestion(Time(100 * i * MS), &w, w.cwnd, CongestionSignal::Mark);
    }
    // 100 kbit/s are 12,000 B/s of payload in 1,500 B packets with 1,440 B.
    assert!((p.fractional_window() * MSS as f64 - 12_000.0 * 0.05).abs() < 1e-6);
}

#[test]
fn rate_is_a_window_per_rtt_and_ripples_below_four_segments() {
    let (mut p, mut w) = prague(40.0, 50);
    ack(&mut p, &mut w, 50, 1, 1);
    assert_eq!(p.own_pacing_rate(), Some((40 * MSS) as f64 / 0.05));
    let (mut p, mut w) = prague(3.0, 50);
    (p.round_end, p.round_at) = (u64::MAX, Time(100 * MS));
    let mut rate = |ms| {
        ack(&mut p, &mut w, ms, 1, 1);
        p.own_pacing_rate().unwrap() / (3.0 * MSS as f64 / 0.05)
    };
    assert!((rate(124) - 1.03125).abs() < 1e-9, "first half of the round");
    assert!((rate(126) - 0.96875).abs() < 1e-9, "second half");
}

#[test]
fn growth_in_rate_control_counts_whole_segments_per_virtual_rtt() {
    // W = 1.2 per 10 ms is 3 per 25 ms: 1/3 of a segment per 25 ms, 0.4/3 per 10 ms.
    let (mut p, mut w) = prague(1.2, 10);
    ack(&mut p, &mut w, 1_000, 1, 0);
    assert!((p.fractional_window() - 1.2 - 0.4 / 3.0).abs() < 1e-9);
    assert_eq!(w.cwnd, 2 * MSS, "never below two segments");
    // 0.9 per 10 ms is 2.25 per 25 ms, rounded up to three.
    let (mut p, mut w) = prague(0.9, 10);
    ack(&mut p, &mut w, 1_000, 1, 0);
    assert!((p.fractional_window() - 0.9 - 0.4 / 3.0).abs() < 1e-9);
}

#[test]
fn reset_forgets_everything() {
    let (mut p, mut w) = prague(40.0, 50);
    ack(&mut p, &mut w, 50, 1, 1);
    p.reset();
    let fresh = Prague::of(PragueParams::default(), 1_500, MSS);
    assert_eq!(format!("{p:?}"), format!("{fresh:?}"));
}

/// Rule 6: 6000 B per round trip, four segments of 1500 B on the wire, is the bound.
#[test]
fn the_rate_takes_control_at_6000_bytes_per_round_trip() {
    for (packet, bound) in [(1_500, 4.0), (750, 8.0)] {
        for (segments, controlled) in [(bound, true), (bound + 0.01, false)] {
            let mut p = Prague::of(PragueParams::default(), packet, packet - 60);
            (p.fraction, p.saw_mark) = (segments, true);
            assert_eq!(p.is_rate_controlled(), controlled, "{packet}, {segments}");
            p.saw_mark = false;
            assert!(!p.is_rate_controlled(), "not before the first mark");
        }
    }
}

/// Slow start ends exactly at the threshold; the window moves up by a segment per ack after it.
#[test]
fn slow_start_ends_at_the_threshold() {
    let (mut p, mut w) = prague(40.0, 50);
    w.ssthresh = 45 * MSS;
    ack(&mut p, &mut w, 50, 10, 0);
    assert_eq!((p.fractional_window(), w.cwnd, p.rounds), (45.0, 45 * MSS, 1));
    p.fraction = 60.0;
    ack(&mut p, &mut w, 60, 1, 1);
    assert_eq!(w.cwnd, 46 * MSS);
}

/// Rule 5 and rule 6: the window is W rounded up, with 3 % for the ripple of the rate.
#[test]
fn the_window_has_room_for_the_ripple_of_the_rate() {
    for (segments, cwnd) in [(2.9, 3), (2.95, 4), (3.9, 5), (4.1, 5)] {
        let (mut p, mut w) = prague(segments, 50);
        (p.cwnd, w.cwnd) = (4 * MSS, 4 * MSS);
        ack(&mut p, &mut w, 50, 1, 1);
        assert_eq!(w.cwnd, cwnd * MSS, "{segments}");
    }
}

/// Rule 1: rounds count from the end of slow start; alpha waits for the first mark and for data.
#[test]
fn a_round_without_marks_or_data_leaves_alpha() {
    let (mut p, mut w) = prague(40.0, 50);
    (p.alpha, p.rounds) = (0.5, 0);
    p.saw_mark = false;
    for round in 1..=3 {
        ack(&mut p, &mut w, 50 * round, 1, 0);
        assert_eq!((p.rounds, p.alpha()), (round, 0.5), "no mark yet");
        p.round_end = 0;
    }
    p.saw_mark = true;
    ack(&mut p, &mut w, 200, 0, 0);
    assert_eq!((p.rounds, p.alpha()), (4, 0.5), "no data");
}

/// Rule 5: twice the rate below half of the threshold; data in flight counts if it is more than W.
#[test]
fn the_rate_in_slow_start_and_with_much_data_in_flight() {
    let rate = |segments: f64, ssthresh: u64, flight: u64| {
        let (mut p, mut w) = prague(segments, 50);
        w.ssthresh = ssthresh * MSS;
        p.set_rate(Time(50 * MS), &w, flight * MSS);
        (p.own_pacing_rate().unwrap() * 0.05 / MSS as f64).round()
    };
    assert_eq!(rate(40.0, 81, 0), 80.0);
    assert_eq!(rate(40.0, 80, 0), 40.0, "half of the threshold is not below it");
    assert_eq!(rate(40.9, 1, 0), 40.0, "whole segments");
    assert_eq!(rate(40.0, 1, 50), 50.0);
    let (mut p, w) = prague(40.0, 50);
    let before = p.own_pacing_rate();
    p.srtt = Some(Span::ZERO);
    p.set_rate(Time(50 * MS), &w, 0);
    assert_eq!(p.own_pacing_rate(), before, "without a round-trip time the rate stays");
    // Rule 6: the second half of the round begins at its middle.
    let (mut p, w) = prague(3.0, 50);
    p.set_rate(Time(25 * MS), &w, 0);
    assert!((p.own_pacing_rate().unwrap() / (3.0 * MSS as f64 / 0.05) - 0.96875).abs() < 1e-9);
}

#[test]
fn a_reduction_leaves_two_segments() {
    let (mut p, w) = prague(2.5, 50);
    assert_eq!(p.on_congestion(Time(MS), &w, 0, CongestionSignal::Loss), 2 * MSS);
    let (mut p, w) = prague(9.0, 50);
    assert_eq!(p.on_congestion(Time(MS), &w, 0, CongestionSignal::Loss), 4_500 * MSS / 1_000);
}

/// A sender that restarts from idle has a smaller window than Prague set: W follows it. After a
/// reduction, or in recovery, it does not.
#[test]
fn a_restart_from_idle_takes_the_window_of_the_sender() {
    let processed = |state, reduced, cwnd: u64| {
        let (mut p, mut w) = prague(40.0, 50);
        (w.cwnd, p.reduced) = (cwnd * MSS, reduced);
        let now = Time(60 * MS);
        let ack = ProcessedAck { now, delivered: 0, flight: 0, srtt: None, state };
        p.on_ack_processed(&mut w, &ack);
        (p.fractional_window(), w.cwnd / MSS)
    };
    use RecoveryState::{Loss, Open, Recovery};
    assert_eq!(processed(Open, false, 10), (10.0, 10));
    assert_eq!(processed(Open, false, 40), (40.0, 40));
    assert_eq!(processed(Open, false, 50), (40.0, 40), "a larger window is not taken");
    assert_eq!(processed(Open, true, 10), (40.0, 40), "the reduction is Prague's own");
    assert_eq!(processed(Recovery, false, 10), (40.0, 40));
    assert_eq!(processed(Loss, false, 10), (40.0, 11), "grows by a segment per ack from there");
}

/// W grows if at least half of the window was in flight before the ack, and the application had
/// data to send.
#[test]
fn an_unused_window_does_not_grow() {
    for (flight, starved, grows) in [(19, false, true), (18, false, false), (40, true, false)] {
        let (mut p, mut w) = prague(40.0, 50);
        let state = RecoveryState::Open;
        let sent = Time(50 * MS);
        if starved {
            p.on_app_limited(100 * MSS);
        }
        deliver(
            &mut p,
            &mut w,
            Delivery { seq: 1, bytes: MSS, sent, rtt: Span::ms(50), flight: flight * MSS, state },
        );
        assert_eq!(p.fractional_window() > 40.0, grows, "{flight}, {starved}");
    }
}
