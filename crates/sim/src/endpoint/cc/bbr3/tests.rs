//! Rules of the draft, one by one; names of its functions in the comments.

mod cycle;
mod linux;

use super::*;
use crate::endpoint::cc::rate::LostSegment;
use crate::endpoint::cc::testing::processed;

const MSS: u64 = 1_000;

/// Sender with a bandwidth of 1 MB/s and a round-trip time of 100 ms: a product of 100 segments.
fn bbr(state: Bbr3State) -> Bbr3 {
    let mut b = Bbr3::of(Bbr3Params::default(), 1);
    b.on_established(Time::ZERO, &window(100), Some(Span::ms(100)));
    b.path.max_bw.add(0, 1e6);
    (b.path.bw, b.pacing_rate) = (1e6, 1e6);
    b.path.full_reached = state != Bbr3State::Startup;
    b.state = state;
    b
}

fn window(segments: u64) -> Window {
    Window { cwnd: segments * MSS, ssthresh: u64::MAX, mss: MSS }
}

fn sample(rate: f64, prior_delivered: u64) -> RateSample {
    RateSample {
        rate,
        interval: Span::ms(100),
        prior_delivered,
        rtt: None,
        longest_rtt: None,
        news: MSS,
        starved: false,
        delivered: 50 * MSS,
        lost: 0,
        in_flight: 100 * MSS,
    }
}

fn ack(now: Time, flight: u64, state: RecoveryState) -> ProcessedAck {
    processed(now, 0, flight * MSS, state)
}

/// Retransmission at 1 s of one of `in_flight` segments, of which `lost` were lost.
fn lose(b: &mut Bbr3, in_flight: u64, lost: u64) {
    let state = RecoveryState::Recovery;
    let sent = SentSegment {
        now: Time::ZERO + Span::s(1),
        seq: 2 * lost * MSS,
        end: (2 * lost + 1) * MSS,
        retransmission: true,
        padding: 0,
        was_idle: false,
        state,
    };
    let (lost, in_flight) = (lost * MSS, in_flight * MSS);
    b.on_lost(&sent, &LostSegment { bytes: MSS, lost, in_flight, starved: false });
}

#[test]
fn rates_and_windows_have_the_gains_of_the_table() {
    // InitPacingRate: 2.77 times the initial window per round trip.
    let mut b = Bbr3::of(Bbr3Params::default(), 1);
    b.on_established(Time::ZERO, &window(10), Some(Span::ms(100)));
    assert!((b.pacing_rate() - 2.77 * 1e5).abs() < 1e-6);
    use Bbr3State::{Cruise, Down, Drain, ProbeRtt, Refill, Startup, Up};
    let table = [(Startup, 2.77, 2.0), (Drain, 0.5, 2.0), (Down, 0.9, 2.0), (Cruise, 1.0, 2.0)];
    for (state, rate, cwnd) in
        table.into_iter().chain([(Refill, 1.0, 2.0), (Up, 1.25, 2.25), (ProbeRtt, 1.0, 0.5)])
    {
        let mut b = bbr(state);
        b.pacing_rate = 0.0;
        b.set_rate(b.pacing_gain());
        assert!((b.pacing_rate() - rate * 0.99e6).abs() < 1e-3, "{state:?}");
        let mut w = window(1_000);
        b.path.full_reached = true;
        b.set_window(&mut w, &ack(Time::ZERO, 100, RecoveryState::Open), 0);
        let extra = if state == Up { 2 } else { 0 };
        assert_eq!(w.cwnd, ((cwnd * 100.0) as u64 + extra) * MSS, "{state:?}");
    }
}

#[test]
fn rate_only_rises_before_the_path_is_full() {
    let mut b = bbr(Bbr3State::Startup);
    b.pacing_rate = 5e6;
    b.set_rate(2.77);
    assert_eq!(b.pacing_rate(), 5e6);
    b.path.full_reached = true;
    b.set_rate(2.77);
    assert!(b.pacing_rate() < 5e6);
}

#[test]
fn path_is_full_after_three_rounds_without_growth_by_a_quarter() {
    let mut b = bbr(Bbr3State::Startup);
    let mut full = |rate, starts, starved| {
        b.path.round_start = starts;
        b.check_full_bw(&RateSample { starved, ..sample(rate, 0) });
        b.path.full_reached
    };
    assert!(!full(1e6, true, false) && !full(1.25e6, true, false), "still growing");
    assert!(!full(1.5e6, true, false) && !full(1.5e6, true, false));
    assert!(!full(1.5e6, false, false), "no new round");
    assert!(!full(1.5e6, true, true), "app-limited");
    assert!(full(1.5e6, true, false));
}

#[test]
fn startup_ends_on_six_lost_ranges_of_more_than_two_percent() {
    for (ranges, lost, ends) in [(6, 3, true), (5, 3, false), (6, 2, false)] {
        let mut b = bbr(Bbr3State::Startup);
        (0..ranges).for_each(|i| b.path.note_loss((2 * i * MSS + 1, 2 * i * MSS + 2), 0));
        b.path.loss_round_start = true;
        b.path.inflight_latest = 130_000.0;
        let s = RateSample { lost: lost * MSS, ..sample(1e6, 0) };
        b.leave_startup(&ack(Time::ZERO, 200, RecoveryState::Recovery), &s);
        let expected = if ends { Bbr3State::Drain } else { Bbr3State::Startup };
        assert_eq!(b.state(), expected, "{ranges} ranges, {lost} segments");
        assert_eq!(b.inflight_longterm().is_finite(), ends);
        assert_eq!(b.path.loss_ranges, 0, "counted per round");
    }
    // inflight_longterm is the larger of the product and the last delivered volume.
    let mut b = bbr(Bbr3State::Startup);
    (b.path.loss_ranges, b.path.loss_round_start) = (6, true);
    let s = RateSample { lost: 3 * MSS, ..sample(1e6, 0) };
    b.leave_startup(&ack(Time::ZERO, 200, RecoveryState::Open), &s);
    assert_eq!(b.state(), Bbr3State::Startup, "not in recovery");
    (b.path.loss_ranges, b.path.inflight_latest) = (6, 130_000.0);
    b.leave_startup(&ack(Time::ZERO, 200, RecoveryState::Recovery), &s);
    assert_eq!(b.inflight_longterm(), 130_000.0);
}

#[test]
fn drain_ends_at_the_product_or_after_three_rounds() {
    for (flight, rounds, ends) in [(101, 0, false), (100, 0, true), (300, 3, false), (300, 4, true)]
    {
        let mut b = bbr(Bbr3State::Drain);
        b.path.round = rounds;
        b.leave_startup(&ack(Time::ZERO, flight, RecoveryState::Open), &sample(1e6, 0));
        assert_eq!(b.state() == Bbr3State::Down, ends, "{flight}, {rounds}");
    }
}

#[test]
fn a_round_with_loss_lowers_the_short_term_bounds() {
    // AdaptLowerBoundsFromCongestion: max(latest, 0.7 times the bound before).
    let mut b = bbr(Bbr3State::Cruise);
    let mut lose_in_round = |latest: (f64, f64), probes| {
        b.path.note_loss((1, 2), 0);
        (b.path.bw_latest, b.path.inflight_latest) = latest;
        b.path.adapt_lower_bounds(0.7, 200 * MSS, probes);
        (b.path.bw_short / 1e6, b.path.inflight_short / 1e3)
    };
    assert!(lose_in_round((0.0, 0.0), true).0.is_infinite(), "not while probing");
    let near = |got: (f64, f64), expected: (f64, f64)| {
        assert!((got.0 - expected.0).abs() < 1e-9 && (got.1 - expected.1).abs() < 1e-9, "{got:?}");
    };
    near(lose_in_round((0.0, 0.0), false), (0.7, 140.0));
    near(lose_in_round((0.6e6, 90e3), false), (0.6, 98.0));
    b.path.adapt_lower_bounds(0.7, 200 * MSS, false);
    assert_eq!(b.path.bw_short, 0.6e6, "a round without loss");
    b.path.reset_short_term();
    assert!(b.path.bw_short.is_infinite() && b.path.inflight_short.is_infinite());
}

#[test]
fn too_much_loss_in_a_probe_sets_the_long_term_bound_once() {
    let mut b = bbr(Bbr3State::Cruise);
    lose(&mut b, 200, 50);
    assert!(b.inflight_longterm().is_infinite(), "no probe");
    let mut b = bbr(Bbr3State::Up);
    b.probe.probing_sample = true;
    lose(&mut b, 200, 4);
    assert!(b.inflight_longterm().is_infinite(), "2 % is allowed");
    lose(&mut b, 200, 5);
    // InflightAtLoss: 199 before it, of which 4 were lost: 199 + (0.02 x 199 - 4) / 0.98.
    let expected = 199e3 + (0.02 * 199e3 - 4e3) / 0.98;
    assert!((b.inflight_longterm() - expected).abs() < 1e-6, "{}", b.inflight_longterm());
    assert_eq!((b.state(), b.probe.too_high), (Bbr3State::Down, true));
    lose(&mut b, 50, 50);
    assert!((b.inflight_longterm() - expected).abs() < 1e-6, "once per probe");
    // Never below 0.7 of the product (TargetInflight, Beta).
    let mut b = bbr(Bbr3State::Refill);
    b.probe.probing_sample = true;
    lose(&mut b, 20, 10);
    assert!((b.inflight_longterm() - 70e3).abs() < 1e-6);
    assert_eq!(b.state(), Bbr3State::Refill, "only UP ends at once");
}

#[test]
fn probe_stops_at_a_bound_that_was_too_high() {
    let mut b = bbr(Bbr3State::Up);
    b.path.inflight_long = 120e3;
    let s = sample(1e6, 0);
    assert!(!b.is_time_to_go_down(&window(200), 130 * MSS, &s));
    b.probe.too_high = true;
    assert!(!b.is_time_to_go_down(&window(200), 119 * MSS, &s));
    assert!(b.is_time_to_go_down(&window(200), 120 * MSS, &s));
    assert!(b.probe.precautionary);
    // The next probe starts as soon as that round is over without too much loss.
    (b.probe.too_high, b.path.round_start) = (false, true);
    b.start_down(Time::ZERO);
    assert!(b.adapt_long_term(&window(200), &ack(Time::ZERO, 100, RecoveryState::Open), &s));
    assert_eq!(b.state(), Bbr3State::Refill);
}

#[test]
fn bound_grows_by_one_two_four_segments_per_round_of_up() {
    let mut b = bbr(Bbr3State::Up);
    b.path.inflight_long = 100e3;
    b.raise_slope(200 * MSS);
    b.path.note_window_use(true);
    let mut grown = Vec::new();
    for _ in 0..4 {
        let before = b.path.inflight_long;
        for i in 0..200 {
            b.path.round_start = i == 199;
            b.raise_inflight_long(&window(200), MSS);
        }
        grown.push((b.path.inflight_long - before) / 1e3);
    }
    assert_eq!(grown, [1.0, 2.0, 4.0, 8.0]);
    let before = b.path.inflight_long;
    b.raise_inflight_long(&window(100), 1_000 * MSS);
    assert_eq!(b.path.inflight_long, before, "the window is below the bound");
}

#[test]
fn window_leaves_headroom_while_cruising() {
    for (state, most) in [
        (Bbr3State::Cruise, 85),
        (Bbr3State::Down, 100),
        (Bbr3State::Refill, 100),
        (Bbr3State::Drain, 200),
    ] {
        let mut b = bbr(state);
        b.path.inflight_long = 100e3;
        let mut w = window(300);
        b.set_window(&mut w, &ack(Time::ZERO, 100, RecoveryState::Open), 0);
        assert_eq!(w.cwnd, most * MSS, "{state:?}");
        b.path.inflight_short = 60e3;
        b.set_window(&mut w, &ack(Time::ZERO, 100, RecoveryState::Open), 0);
        assert_eq!(w.cwnd, 60 * MSS, "{state:?}: the short-term bound");
        b.path.inflight_short = 1e3;
        b.set_window(&mut w, &ack(Time::ZERO, 100, RecoveryState::Open), 0);
        assert_eq!(w.cwnd, 4 * MSS, "MinPipeCwnd");
    }
}

#[test]
fn probes_follow_after_two_to_three_seconds_or_the_rounds_of_reno() {
    let mut b = bbr(Bbr3State::Down);
    let (mut waits, mut leads) = (Vec::new(), [0, 0]);
    b.path.round = 10;
    for _ in 0..1_000 {
        b.start_down(Time::ZERO);
        waits.push(b.probe.wait.as_secs());
        leads[cast::index(10 - b.probe.rounds_from)] += 1;
    }
    assert!(waits.iter().all(|w| (2.0..3.0).contains(w)));
    let mean = waits.iter().sum::<f64>() / 1_000.0;
    assert!((mean - 2.5).abs() < 0.05 && leads.iter().all(|n| (400..600).contains(n)), "{leads:?}");
    // A product of 100 segments: 63 rounds. One of 40 segments: 40 rounds.
    for (cwnd, rounds) in [(200, 63), (40, 40)] {
        b.probe.rounds_from = 0;
        b.path.round = rounds - 1;
        assert!(!b.is_time_to_probe(&window(cwnd), Time::ZERO));
        b.path.round = rounds;
        assert!(b.is_time_to_probe(&window(cwnd), Time::ZERO));
    }
    b.path.round = 0;
    assert!(b.is_time_to_probe(&window(200), Time::ZERO + b.probe.wait + Span(1)));
}

#[test]
fn minimum_rtt_lasts_ten_seconds_and_is_probed_after_five() {
    let mut b = bbr(Bbr3State::Cruise);
    let at = |s: f64| Time(cast::trunc(s * 1e9));
    let params = Bbr3Params::default();
    let mut see = |s: f64, ms: u64| {
        b.path.update_min_rtt(at(s), Some(Span::ms(ms)), &params);
        (b.path.min_rtt, b.path.probe_rtt_expired)
    };
    assert_eq!(see(4.0, 120), (Some(Span::ms(100)), false));
    assert_eq!(see(5.1, 120), (Some(Span::ms(100)), true));
    assert_eq!(see(9.9, 130), (Some(Span::ms(100)), false));
    assert_eq!(see(10.2, 125), (Some(Span::ms(125)), true), "the older one has expired");
    assert_eq!(see(10.3, 90), (Some(Span::ms(90)), false));
}

#[test]
fn probe_rtt_halves_the_window_for_200_ms_and_a_round() {
    let mut b = bbr(Bbr3State::Cruise);
    let mut w = window(200);
    b.path.probe_rtt_expired = true;
    b.check_probe_rtt(Time(0), &mut w, 200 * MSS);
    assert_eq!(b.state(), Bbr3State::ProbeRtt);
    b.set_window(&mut w, &ack(Time::ZERO, 200, RecoveryState::Open), 0);
    assert_eq!(w.cwnd, 50 * MSS);
    b.check_probe_rtt(Time(1), &mut w, 51 * MSS);
    assert_eq!(b.probe_rtt_until, None);
    b.check_probe_rtt(Time(1), &mut w, 50 * MSS);
    let end = Time(1) + Span::ms(200);
    assert_eq!(b.probe_rtt_until, Some(end));
    b.check_probe_rtt(end + Span(1), &mut w, 50 * MSS);
    assert_eq!(b.state(), Bbr3State::ProbeRtt, "a round has to pass");
    b.path.round_start = true;
    b.check_probe_rtt(end + Span(1), &mut w, 50 * MSS);
    assert_eq!((b.state(), w.cwnd), (Bbr3State::Cruise, 200 * MSS));
}

#[test]
fn recovery_restores_the_window() {
    let mut b = bbr(Bbr3State::Cruise);
    let mut w = window(200);
    b.on_congestion(Time::ZERO, &w, 0, CongestionSignal::Timeout);
    w.cwnd = MSS;
    b.set_window(&mut w, &ack(Time::ZERO, 0, RecoveryState::Loss), 0);
    assert_eq!(w.cwnd, 4 * MSS);
    b.set_window(&mut w, &ack(Time::ZERO, 0, RecoveryState::Open), MSS);
    assert_eq!(w.cwnd, 200 * MSS);
}

#[test]
fn excess_acks_raise_the_window() {
    // UpdateACKAggregation: 1 MB/s expected; 50 segments at once are 50 more than expected.
    let mut b = bbr(Bbr3State::Cruise);
    b.path.update_extra_acked(Time::ZERO + Span::ms(10), 50 * MSS, 200 * MSS);
    assert_eq!(b.path.extra_acked.get(), 50e3);
    b.path.update_extra_acked(Time::ZERO + Span::ms(20), 10 * MSS, 200 * MSS);
    assert_eq!(b.path.extra_acked.get(), 50e3, "10 more, and 10 expected");
    let mut w = window(1_000);
    b.set_window(&mut w, &ack(Time::ZERO, 100, RecoveryState::Open), 0);
    assert_eq!(w.cwnd, 250 * MSS);
    b.path.update_extra_acked(Time::ZERO + Span::ms(20), 30 * MSS, 200 * MSS);
    assert_eq!(b.path.extra_acked.get(), 80e3, "30 more");
    b.path.round += 9;
    b.path.update_extra_acked(Time::ZERO + Span::s(1), MSS, 200 * MSS);
    assert_eq!(b.path.extra_acked.get(), 80e3, "nine rounds later");
    b.path.round += 1;
    b.path.update_extra_acked(Time::ZERO + Span::s(2), MSS, 200 * MSS);
    assert_eq!(b.path.extra_acked.get(), 1e3, "ten rounds later");
}
