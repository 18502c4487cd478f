//! Rule by rule, with segments of 1440 B in packets of 1500 B.

use super::*;
use crate::endpoint::cc::testing::processed;

const MSS: u64 = 1_440;
const MS: u64 = 1_000_000;

fn new() -> Prague {
    Prague::of(PragueParams::default(), 1_500)
}

/// Sender outside of slow start with a window of `segments`, an RTT of `ms`, and a mark behind it.
fn prague(segments: f64, ms: u64) -> (Prague, Window) {
    let mut p = new();
    let cwnd = segments.ceil().max(2.0) as u64 * MSS;
    let w = Window { cwnd, ssthresh: 1, mss: MSS };
    p.on_established(Time::ZERO, &w, Some(Span::ms(ms)));
    (p.fraction, p.saw_mark, p.rounds) = (segments, true, 4);
    p.rate = p.rate_of_window();
    p.by_rate = cwnd / MSS <= 4;
    (p, w)
}

/// Segment that was sent with nothing else outstanding.
fn sent_alone(now: Time, seq: u64, end: u64) -> SentSegment {
    SentSegment { now, seq, end, was_idle: true, ..SentSegment::default() }
}

/// Ack of `news` segments, `marked` of them with a mark, at `ms`. The window was full before it,
/// and `flight` segments are in flight after it.
fn ack_with(p: &mut Prague, w: &mut Window, ms: u64, news: u64, marked: u64, flight: u64) {
    let base = p.rates.delivered();
    let now = Time(ms * MS);
    let state = RecoveryState::Open;
    let sent = Time(now.0.saturating_sub((p.srtt * 1e9).round() as u64));
    for i in 0..news {
        let seq = base + i * MSS;
        let (end, was_idle) = (seq + MSS, i == 0);
        p.on_sent(&SentSegment { was_idle, state, ..sent_alone(sent, seq, end) });
    }
    let all = news * MSS;
    p.usage = WindowUsage::default();
    p.usage.update(true, 0, u64::MAX, 0);
    p.on_ecn_feedback(base + all + 1, all, marked * MSS, base + all + w.cwnd + 1);
    p.on_delivered(now, base, base + all);
    let flight = flight * MSS;
    let ack = processed(now, base + all, flight, state);
    p.on_ack_processed(w, &ack);
}

fn ack(p: &mut Prague, w: &mut Window, ms: u64, news: u64, marked: u64) {
    let flight = w.cwnd / MSS;
    ack_with(p, w, ms, news, marked, flight);
}

/// Ack at `ms` of `bytes` that were sent `rtt` ms before, with no effect on the use of the window.
fn ack_after(p: &mut Prague, w: &mut Window, ms: u64, rtt: u64, bytes: u64) {
    let (now, state) = (Time(ms * MS), RecoveryState::Open);
    let (sent, seq) = (Time((ms - rtt) * MS), p.rates.delivered());
    let end = seq + bytes;
    p.on_sent(&sent_alone(sent, seq, end));
    p.on_delivered(now, seq, end);
    let ack = processed(now, end, 0, state);
    p.on_ack_processed(w, &ack);
}

fn mark(p: &mut Prague, w: &Window, ms: u64) {
    p.on_congestion(Time(ms * MS), w, w.cwnd, CongestionSignal::Mark);
}

fn near(got: f64, wanted: f64) {
    assert!((got - wanted).abs() < 1e-9 * wanted.abs().max(1.0), "{got} in place of {wanted}");
}

/// Sender in slow start with a window of 100 segments.
fn starting() -> (Prague, Window) {
    let mut p = new();
    let mut w = Window { cwnd: 90 * MSS, ssthresh: u64::MAX, mss: MSS };
    p.on_established(Time::ZERO, &w, Some(Span::ms(20)));
    ack(&mut p, &mut w, 20, 10, 0);
    assert_eq!((w.cwnd, p.alpha()), (100 * MSS, 0.0), "one segment per segment");
    (p, w)
}

#[test]
fn first_mark_halves_the_window_and_ends_slow_start() {
    let (mut p, mut w) = starting();
    w.ssthresh = p.on_congestion(Time(40 * MS), &w, w.cwnd, CongestionSignal::Mark);
    assert_eq!((w.ssthresh, p.fractional_window()), (u64::MAX, 100.0), "alpha is still 0");
    ack(&mut p, &mut w, 40, 1, 1);
    assert_eq!((p.fractional_window(), w.cwnd, w.ssthresh), (50.0, 99 * MSS, 99 * MSS));
    ack(&mut p, &mut w, 41, 1, 1);
    assert_eq!((w.cwnd, w.ssthresh), (98 * MSS, 98 * MSS), "a step per ack");
    assert_eq!(p.fractional_window(), 50.0, "only the first mark halves");
}

/// Rule 4: Linux sets W to the window when it grows in slow start, after the reduction.
#[test]
fn an_unmarked_segment_in_the_ack_of_a_mark_keeps_slow_start() {
    let (mut p, mut w) = starting();
    w.ssthresh = p.on_congestion(Time(40 * MS), &w, w.cwnd, CongestionSignal::Mark);
    ack(&mut p, &mut w, 40, 2, 1);
    assert_eq!((p.fractional_window(), w.cwnd, w.ssthresh), (101.0, 101 * MSS, u64::MAX));
    // So for a later mark, whose reduction by alpha is undone or ends slow start.
    for (news, cwnd) in [(2, 102), (1, 100)] {
        let (mut p, mut w) = (p.clone(), w);
        p.alpha = 0.1;
        mark(&mut p, &w, 80);
        near(p.fractional_window(), 101.0 * 0.95);
        ack(&mut p, &mut w, 80, news, 1);
        assert_eq!((w.cwnd, w.is_in_slow_start()), (cwnd * MSS, news == 2));
    }
}

/// Rule 4: an ack of less than a segment adds as many bytes; one of nothing new changes nothing.
#[test]
fn acks_of_parts_of_a_segment_and_of_nothing_keep_slow_start() {
    let (mut p, mut w) = starting();
    ack(&mut p, &mut w, 40, 0, 0);
    assert_eq!((w.cwnd, w.ssthresh), (100 * MSS, u64::MAX));
    ack_after(&mut p, &mut w, 41, 20, 500);
    assert_eq!((w.cwnd, w.ssthresh), (100 * MSS + 500, u64::MAX));
}

#[test]
fn with_exit_at_mark_the_first_mark_ends_slow_start() {
    let (mut p, mut w) = starting();
    p.params.exit_at_mark = true;
    let (mut unmarked, mut larger) = (p.clone(), w);
    ack(&mut unmarked, &mut larger, 40, 1, 0);
    assert_eq!((larger.cwnd, larger.is_in_slow_start()), (101 * MSS, true), "no mark");
    mark(&mut p, &w, 40);
    ack(&mut p, &mut w, 40, 2, 1);
    assert_eq!((p.fractional_window(), w.cwnd, w.ssthresh), (50.0, 99 * MSS, 99 * MSS));
    ack(&mut p, &mut w, 41, 2, 1);
    assert_eq!(p.fractional_window(), 50.0 + 1.0 / 50.0, "an unmarked one in avoidance");
}

#[test]
fn with_an_initial_alpha_the_first_mark_reduces_by_half_of_it() {
    let params = PragueParams { alpha: 1.0, ..PragueParams::default() };
    let mut p = Prague::of(params, 1_500);
    let mut w = Window { cwnd: 100 * MSS, ssthresh: u64::MAX, mss: MSS };
    p.on_established(Time::ZERO, &w, Some(Span::ms(20)));
    mark(&mut p, &w, 20);
    ack(&mut p, &mut w, 20, 1, 1);
    assert_eq!(p.fractional_window(), 50.0, "once, not twice");
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
        near(p.alpha(), expected);
    }
}

#[test]
fn a_round_ends_with_the_ack_of_what_was_outstanding_at_its_start() {
    for (before, ends) in [(1, false), (0, true)] {
        let (mut p, mut w) = prague(40.0, 50);
        p.round_end = MSS + 1 + before;
        ack(&mut p, &mut w, 50, 1, 1);
        assert_eq!(p.rounds, 4 + u64::from(ends));
    }
}

#[test]
fn rounds_and_reductions_are_at_least_the_virtual_rtt_apart() {
    let (mut p, mut w) = prague(40.0, 10);
    p.alpha = 0.5;
    let cut = |p: &mut Prague, w: &Window, ms: u64| {
        mark(p, w, ms);
        p.fractional_window()
    };
    assert_eq!(cut(&mut p, &w, 100), 30.0, "40 (1 - 0.5/2)");
    assert_eq!(cut(&mut p, &w, 110), 30.0);
    assert_eq!(cut(&mut p, &w, 124), 30.0);
    assert_eq!(cut(&mut p, &w, 125), 22.5);
    p.rounds = 3;
    assert_eq!(cut(&mut p, &w, 126), 22.5 * 0.75, "before the transition");
    p.rounds = 4;
    w.ssthresh = w.cwnd + 1;
    assert_eq!(cut(&mut p, &w, 127), 22.5 * 0.75 * 0.75, "in slow start");
    w.ssthresh = 1;
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
fn a_loss_halves_even_after_a_mark_and_the_window_moves_by_one_segment_per_ack() {
    let (mut p, mut w) = prague(40.0, 50);
    assert!(p.reduces_for_loss_after_mark());
    p.alpha = 0.5;
    mark(&mut p, &w, 1);
    w.ssthresh = p.on_congestion(Time(MS), &w, w.cwnd, CongestionSignal::Loss);
    assert_eq!((w.ssthresh, p.fractional_window()), (15 * MSS, 15.0));
    for cwnd in [39, 38] {
        w.cwnd = 15 * MSS; // what the sender set
        ack(&mut p, &mut w, 50, 2, 2);
        assert_eq!(w.cwnd, cwnd * MSS);
    }
}

#[test]
fn nothing_grows_until_a_loss_is_repaired() {
    for state in [RecoveryState::Recovery, RecoveryState::Loss] {
        let (mut p, mut w) = prague(40.0, 50);
        p.usage.update(true, 0, u64::MAX, 0);
        p.on_delivered(Time(50 * MS), 0, MSS);
        let now = Time(50 * MS);
        let ack = processed(now, MSS, w.cwnd, state);
        p.on_ack_processed(&mut w, &ack);
        assert_eq!(p.fractional_window(), 40.0);
    }
}

#[test]
fn a_timeout_keeps_the_threshold_and_the_window_grows_by_a_segment_per_ack() {
    let (mut p, mut w) = prague(40.0, 50);
    w.ssthresh = 33 * MSS;
    w.ssthresh = p.on_congestion(Time(MS), &w, w.cwnd, CongestionSignal::Timeout);
    assert_eq!((w.ssthresh, p.fractional_window()), (33 * MSS, 20.0));
    w.cwnd = MSS;
    for cwnd in [2, 3] {
        let state = RecoveryState::Loss;
        let now = Time(60 * MS);
        let ack = processed(now, 0, 0, state);
        p.on_ack_processed(&mut w, &ack);
        assert_eq!(w.cwnd, cwnd * MSS);
    }
}

#[test]
fn rate_is_a_window_per_rtt_and_ripples_below_four_segments() {
    let (mut p, mut w) = prague(40.0, 50);
    ack(&mut p, &mut w, 50, 1, 1);
    near(p.own_pacing_rate().unwrap(), 40.0 * 1_500.0 / 0.05);
    let (mut p, mut w) = prague(3.0, 50);
    (p.round_end, p.round_at) = (u64::MAX, Time(100 * MS));
    let mut rate = |ms| {
        ack(&mut p, &mut w, ms, 1, 1);
        p.own_pacing_rate().unwrap() / (3.0 * 1_500.0 / 0.05)
    };
    near(rate(124), 1.03125);
    near(rate(125), 0.96875);
}

/// Rule 7: 1.2 segments per 10 ms are 3 per 25 ms: 1/3 of 1500 B per 25 ms more; so for 2.25.
#[test]
fn growth_in_rate_control_counts_whole_segments_per_virtual_rtt() {
    for segments in [1.2, 0.9] {
        let (mut p, mut w) = prague(segments, 10);
        let before = p.rate;
        ack(&mut p, &mut w, 1_000, 1, 0);
        near(p.rate - before, 1_500.0 / 0.025 / 3.0);
        near(p.fractional_window(), p.rate * 0.01 / 1_500.0);
        assert_eq!(w.cwnd, 2 * MSS, "never below two segments");
    }
}

#[test]
fn marks_reduce_the_rate_to_its_minimum_and_a_loss_below_it() {
    let (mut p, w) = prague(3.0, 50);
    p.alpha = 0.5;
    mark(&mut p, &w, 100);
    near(p.rate, 0.75 * 3.0 * 1_500.0 / 0.05);
    near(p.fractional_window(), 2.25);
    p.alpha = 1.0;
    (2..40).for_each(|i| mark(&mut p, &w, 100 * i));
    near(p.rate, 12_500.0);
    near(p.fractional_window(), 12_500.0 * 0.05 / 1_500.0);
    assert_eq!(p.on_congestion(Time(MS), &w, 0, CongestionSignal::Loss), 2 * MSS);
    near(p.rate, 6_250.0);
}

/// Rule 7: a mark reduces R if R is in control and the round-trip time does not matter; else W.
#[test]
fn a_mark_reduces_the_one_in_control() {
    for (segments, rounds, by_rate) in
        [(40.0, 4, false), (40.0, 0, false), (3.0, 0, false), (3.0, 4, true)]
    {
        let (mut p, w) = prague(segments, 50);
        (p.alpha, p.rounds) = (0.5, rounds);
        p.rate *= 2.0; // so that the two differ
        mark(&mut p, &w, 100);
        let factor = if by_rate { 1.5 } else { 0.75 };
        near(p.fractional_window(), segments * factor);
    }
}

#[test]
fn the_rate_follows_the_smoothed_round_trip_time() {
    let (mut p, mut w) = prague(40.0, 20);
    ack_after(&mut p, &mut w, 100, 28, MSS);
    near(p.own_pacing_rate().unwrap(), 40.0 * 1_500.0 / 0.021);
    // After a lost SYN it is unknown: the first sample counts as a whole.
    let (mut p, mut w) = (new(), Window { cwnd: 40 * MSS, ssthresh: 1, mss: MSS });
    p.on_established(Time::ZERO, &w, None);
    ack_after(&mut p, &mut w, 100, 28, MSS);
    near(p.own_pacing_rate().unwrap(), 40.0 * 1_500.0 / 0.028);
}

/// Rule 7: W follows R and the slow average of the round-trip time, not the last one.
#[test]
fn a_window_in_rate_control_follows_the_slow_round_trip_time() {
    let (mut p, mut w) = prague(3.0, 50);
    let rate = p.rate;
    (p.srtt, p.round_end) = (0.1, 0);
    ack(&mut p, &mut w, 1_000, 1, 1);
    near(p.slow_srtt, 0.05 + 0.05 / 128.0);
    near(p.rate, rate);
    near(p.fractional_window(), rate * p.slow_srtt / 1_500.0);
}

#[test]
fn the_rate_takes_control_at_6000_bytes_per_round_trip() {
    for (packet, cwnd, controlled) in
        [(1_500, 4, true), (1_500, 5, false), (750, 8, true), (750, 9, false)]
    {
        let mut p = Prague::of(PragueParams::default(), packet);
        let w = Window { cwnd: cwnd * MSS, ssthresh: 1, mss: MSS };
        p.on_established(Time::ZERO, &w, Some(Span::ms(50)));
        assert!(!p.by_rate, "not before the first mark");
        p.saw_mark = true;
        p.set_rate(Time::ZERO, &w, 0);
        assert_eq!(p.by_rate, controlled, "{packet}, {cwnd}");
    }
}

#[test]
fn slow_start_ends_at_the_threshold() {
    let (mut p, mut w) = prague(40.0, 50);
    (w.ssthresh, p.rounds) = (45 * MSS, 0);
    ack(&mut p, &mut w, 50, 10, 0);
    // Five segments in slow start, then 5/45 of a segment for the others.
    near(p.fractional_window(), 45.0 + 5.0 / 45.0);
    assert_eq!((w.cwnd, p.rounds), (46 * MSS, 1));
    p.fraction = 60.0;
    ack(&mut p, &mut w, 60, 1, 1);
    assert_eq!(w.cwnd, 47 * MSS, "a step per ack");
}

#[test]
fn a_round_without_marks_leaves_alpha() {
    let (mut p, mut w) = prague(40.0, 50);
    (p.alpha, p.rounds, p.saw_mark) = (0.5, 0, false);
    for round in 1..=3 {
        p.round_end = 0;
        ack(&mut p, &mut w, 50 * round, 1, 0);
        assert_eq!((p.rounds, p.alpha()), (round, 0.5), "no mark yet");
    }
    w.ssthresh = u64::MAX;
    p.round_end = 0;
    ack(&mut p, &mut w, 300, 1, 0);
    assert_eq!(p.rounds, 3, "rounds in slow start do not count");
}

/// Rule 6: twice the rate below half of the threshold; data in flight counts if it is more than W.
#[test]
fn the_rate_in_slow_start_and_with_much_data_in_flight() {
    let rate = |segments: f64, ssthresh: u64, flight: u64| {
        let (mut p, mut w) = prague(segments, 50);
        w.ssthresh = ssthresh * MSS;
        p.set_rate(Time(50 * MS), &w, flight * MSS);
        (p.own_pacing_rate().unwrap() * 0.05 / 1_500.0).round()
    };
    assert_eq!(rate(40.0, 81, 0), 80.0);
    assert_eq!(rate(40.0, 80, 0), 40.0, "half of the threshold is not below it");
    assert_eq!(rate(40.9, 1, 0), 40.0, "whole segments");
    assert_eq!(rate(40.0, 1, 50), 50.0);
    let (mut p, w) = prague(40.0, 50);
    let before = p.own_pacing_rate();
    p.srtt = 0.0;
    p.set_rate(Time(50 * MS), &w, 0);
    assert_eq!(p.own_pacing_rate(), before, "without a round-trip time the rate stays");
}

/// Rule 8.
#[test]
fn an_unused_window_does_not_grow() {
    for (flight, grows) in [(40, true), (39, false)] {
        let (mut p, mut w) = prague(40.0, 50);
        p.usage.update(flight == 40, 1, 1_000 * MSS, flight * MSS);
        p.on_sent(&sent_alone(Time(50 * MS), 1, 1 + MSS));
        p.on_delivered(Time(100 * MS), 1, 1 + MSS);
        let (now, state) = (Time(100 * MS), RecoveryState::Open);
        let ack = processed(now, MSS, 0, state);
        p.on_ack_processed(&mut w, &ack);
        assert_eq!(p.fractional_window() > 40.0, grows, "{flight}");
    }
}

/// Rule 8: after a reduction the data in flight fills the window although nothing is sent.
#[test]
fn a_window_that_is_full_when_an_ack_arrives_grows_with_the_next() {
    for (flight, grows) in [(40, true), (39, false)] {
        let (mut p, mut w) = prague(40.0, 50);
        p.on_ecn_feedback(0, 0, 0, 100 * MSS);
        let (now, flight, state) = (Time(50 * MS), flight * MSS, RecoveryState::Open);
        let ack = processed(now, 0, flight, state);
        p.on_ack_processed(&mut w, &ack);
        ack_after(&mut p, &mut w, 60, 50, MSS);
        assert_eq!(p.fractional_window() > 40.0, grows, "{flight}");
    }
}

/// A window of two with one segment per round trip is never full: the minimum rate is kept.
#[test]
fn a_sender_at_one_segment_per_round_trip_stays_there() {
    let (mut p, mut w) = prague(0.4, 50);
    p.rate = 12_500.0;
    for i in 0..100 {
        let (sent, seq) = (Time((200 + 120 * i) * MS), 1 + i * MSS);
        let (end, state) = (seq + MSS, RecoveryState::Open);
        p.on_sent(&sent_alone(sent, seq, end));
        p.on_ecn_feedback(end, MSS, 0, end);
        p.on_delivered(sent + Span::ms(50), seq, end);
        let (now, delivered) = (sent + Span::ms(50), end - 1);
        let ack = processed(now, delivered, 0, state);
        p.on_ack_processed(&mut w, &ack);
    }
    near(p.rate, 12_500.0);
}

#[test]
fn the_window_is_kept_when_idle_and_reset_forgets_everything() {
    let (mut p, mut w) = prague(40.0, 50);
    assert!(p.keeps_window_when_idle());
    ack(&mut p, &mut w, 50, 1, 1);
    p.reset();
    assert_eq!(format!("{p:?}"), format!("{:?}", new()));
}
