//! States of the cycle, and the model of the path behind them.

use super::super::super::testing::{Delivery, deliver};
use super::*;
use Bbr3State::{Cruise, Down, Drain, ProbeRtt, Refill, Startup, Up};

#[test]
fn four_states_probe_for_bandwidth() {
    for state in [Startup, Drain, Down, Cruise, Refill, Up, ProbeRtt] {
        assert_eq!(state.is_probe_bw(), matches!(state, Down | Cruise | Refill | Up), "{state:?}");
    }
    let b = bbr(Cruise);
    assert_eq!((b.bandwidth(), b.min_rtt()), (1e6, Some(Span::ms(100))));
    assert_eq!(b.own_pacing_rate(), Some(1e6));
}

#[test]
fn windows_have_lower_bounds() {
    let mut b = bbr(Cruise);
    assert_eq!(b.with_quantum(5e5), 5e5);
    // send_quantum: a millisecond at the pacing rate, at most 64 KiB; MinPipeCwnd: 4 segments.
    for (rate, least) in [(1e6, 4e3), (3e7, 3e4), (1e9, 65_536.0)] {
        b.pacing_rate = rate;
        assert!((b.with_quantum(0.0) - least).abs() < 1e-6, "{rate}");
    }
    assert_eq!(b.probe_rtt_cwnd(), 5e4);
    b.path.bw = 1e4;
    assert_eq!(b.probe_rtt_cwnd(), 4e3, "MinPipeCwnd");
    // Before there is a round-trip time the initial window counts.
    let mut b = Bbr3::of(Bbr3Params::default(), 1);
    b.on_established(Time::ZERO, &window(10), None);
    assert_eq!(b.bdp(9e9, 2.0), 2e4);
    // InflightWithHeadroom: 15 %, at least a segment, and MinPipeCwnd is left.
    for (long, left) in [(1e5, 8.5e4), (5.5e3, 4.5e3), (4.5e3, 4e3)] {
        b.path.inflight_long = long;
        assert!((b.path.with_headroom(&b.params, MSS) - left).abs() < 1e-6, "{long}");
    }
}

/// SaveCwnd: in recovery or ProbeRtt the window may be smaller than the one to go back to.
#[test]
fn the_window_to_restore_is_the_larger_in_recovery_and_probe_rtt() {
    use RecoveryState::{Loss, Open};
    for (was, state, cwnd, prior) in [
        (Open, Cruise, 20, 20),
        (Loss, Cruise, 20, 50),
        (Open, ProbeRtt, 20, 50),
        (Loss, Cruise, 70, 70),
    ] {
        let mut b = bbr(state);
        (b.was, b.prior_cwnd) = (was, 50 * MSS);
        b.save_cwnd(&window(cwnd));
        assert_eq!(b.prior_cwnd, prior * MSS, "{was:?}, {state:?}");
    }
    let mut b = bbr(Cruise);
    for (cwnd, threshold) in [(1, 2), (2, 2), (10, 10)] {
        let ssthresh = b.on_congestion(Time::ZERO, &window(cwnd), 0, CongestionSignal::Loss);
        assert_eq!((ssthresh, b.was), (threshold * MSS, Open));
    }
}

/// SetCwnd in Startup: two products of 100 segments; below the initial window of 100 delivered
/// segments there is no bound.
#[test]
fn the_window_of_startup_grows_up_to_two_products() {
    for (cwnd, delivered, grown) in [(199, 100, 1), (200, 100, 0), (200, 99, 1), (300, 100, 0)] {
        let mut b = bbr(Startup);
        b.on_delivered(Time::ZERO, 0, delivered * MSS);
        let mut w = window(cwnd);
        b.set_window(&mut w, &ack(Time::ZERO, 100, RecoveryState::Open), MSS);
        assert_eq!(w.cwnd, (cwnd + grown) * MSS, "{cwnd}, {delivered}");
    }
    let mut b = bbr(Cruise);
    b.path.bw = 0.0;
    b.set_rate(1.0);
    assert_eq!(b.pacing_rate(), 1e6, "without a bandwidth the rate stays");
}

#[test]
fn probe_rtt_lasts_longer_than_its_duration() {
    let mut b = bbr(ProbeRtt);
    let end = Time(7);
    (b.probe_rtt_until, b.path.round_start) = (Some(end), true);
    b.check_probe_rtt(end, &mut window(50), 50 * MSS);
    assert_eq!(b.state(), ProbeRtt);
    b.check_probe_rtt(Time(8), &mut window(50), 50 * MSS);
    assert_eq!(b.state(), Cruise);
}

/// One segment of a window of 100 after 100 ms. Afterwards the window was full if a segment more
/// would not have fitted before the ack.
#[test]
fn an_ack_goes_through_the_whole_model() {
    let after = |flight| {
        let mut b = bbr(Startup);
        let mut w = window(100);
        let sent = Time(1_000_000_000);
        let (rtt, state) = (Span::ms(100), RecoveryState::Open);
        deliver(&mut b, &mut w, Delivery { seq: 1, bytes: MSS, sent, rtt, flight, state });
        b
    };
    let mut b = after(98 * MSS);
    assert!(!b.path.is_cwnd_limited(), "98 segments, the acknowledged one and one more: 100");
    assert_eq!((b.path.round, b.path.round_start), (1, true));
    assert!(after(98 * MSS + 1).path.is_cwnd_limited());
    b.restarted = true;
    let (now, state) = (Time(1_200_000_000), RecoveryState::Open);
    let mut ack = processed(now, 0, 0, state);
    b.on_ack_processed(&mut window(100), &ack);
    assert!(b.restarted, "no new data was delivered");
    b.on_sent(&SentSegment {
        now,
        seq: 2_001,
        end: 3_001,
        retransmission: false,
        padding: 0,
        was_idle: false,
        state,
    });
    b.on_delivered(Time(1_300_000_000), 2_001, 3_001);
    ack.now = Time(1_300_000_000);
    b.on_ack_processed(&mut window(100), &ack);
    assert!(!b.restarted);
    b.reset();
    let fresh = Bbr3::of(Bbr3Params::default(), 1);
    assert_eq!(format!("{b:?}"), format!("{fresh:?}"));
}

/// HandleRestartFromIdle.
#[test]
fn a_restart_after_the_application_paused_paces_at_the_bandwidth() {
    for (idle, limited, restarted) in
        [(true, true, true), (true, false, false), (false, true, false)]
    {
        let mut b = bbr(Up);
        b.pacing_rate = 1.25e6;
        if limited {
            b.on_app_limited(5);
        }
        assert_eq!(b.rates.on_app_limited(), limited);
        let (now, state) = (Time(7), RecoveryState::Open);
        b.on_sent(&SentSegment {
            now,
            seq: 1,
            end: 2,
            retransmission: false,
            padding: 0,
            was_idle: idle,
            state,
        });
        assert_eq!(b.restarted, restarted, "{idle}, {limited}");
        assert_eq!(b.pacing_rate() < 1e6, restarted, "0.99 of the bandwidth");
    }
}

/// UpdateProbeBWCyclePhase: what each state waits for.
#[test]
fn the_cycle_goes_from_down_to_cruise_refill_and_up() {
    for (from, flight, rounds, starts, full, to) in [
        (Down, 101, 0, false, false, Down),
        (Down, 100, 0, false, false, Cruise),
        (Down, 101, 63, false, false, Refill),
        (Cruise, 50, 0, true, true, Cruise),
        (Cruise, 50, 63, false, false, Refill),
        (Refill, 50, 63, false, false, Refill),
        (Refill, 50, 0, true, false, Up),
        (Up, 50, 63, true, false, Up),
        (Up, 50, 0, false, true, Down),
    ] {
        let mut b = bbr(from);
        b.probe.wait = Span::s(2);
        b.probe.too_high = true;
        (b.path.round, b.path.round_start, b.path.full_now) = (rounds, starts, full);
        let ack = ack(Time(1), flight, RecoveryState::Open);
        b.advance_probe_bw(&window(200), &ack, &sample(2e6, 0));
        assert_eq!(b.state(), to, "{from:?}, {flight}, {rounds}, {starts}, {full}");
        assert_eq!(b.probe.probing_sample, (from, to) == (Refill, Up));
        assert_eq!(b.path.full_bw, if (from, to) == (Refill, Up) { 2e6 } else { 0.0 });
        assert_eq!(b.probe.too_high, (from, to) != (Up, Down));
        let mut b = bbr(from);
        (b.path.full_reached, b.path.round, b.path.round_start) = (false, rounds, starts);
        b.advance_probe_bw(&window(200), &ack, &sample(2e6, 0));
        assert_eq!(b.state(), from, "the path is not full yet");
    }
    // Time alone: longer than the wait that was drawn.
    let b = bbr(Cruise);
    assert!(!b.is_time_to_probe(&window(200), Time::ZERO));
    assert!(b.is_time_to_probe(&window(200), Time(1)), "a wait of 0 from 0 on");
    // Rounds count from the last probe.
    let mut b = bbr(Cruise);
    b.probe.wait = Span::s(2);
    (b.probe.rounds_from, b.path.round) = (5, 67);
    assert!(!b.is_time_to_probe(&window(200), Time::ZERO), "62 rounds");
}

/// IsTimeToGoDown: a window that its bound limits does not show that the path is full.
#[test]
fn a_probe_goes_on_while_the_bound_limits_the_window() {
    for (limited, cwnd, ends) in [(false, 200, true), (true, 119, true), (true, 120, false)] {
        let mut b = bbr(Up);
        (b.path.inflight_long, b.path.full_now) = (120e3, true);
        b.path.note_window_use(limited);
        assert_eq!(b.path.is_cwnd_limited(), limited);
        assert_eq!(b.is_time_to_go_down(&window(cwnd), 0, &sample(3e6, 0)), ends);
        assert_eq!(b.path.full_bw, if ends { 0.0 } else { 3e6 });
    }
}

/// AdaptLongTermModel, at the end of the round after a probe.
#[test]
fn the_round_after_a_probe_ends_its_samples() {
    for (starts, starved, cycle) in [(false, false, 0), (true, false, 1), (true, true, 0)] {
        let mut b = bbr(Cruise);
        b.probe.stop();
        (b.probe.probing_sample, b.path.round_start) = (true, starts);
        let s = RateSample { starved, ..sample(1e6, 0) };
        assert!(!b.adapt_long_term(&window(200), &ack(Time::ZERO, 100, RecoveryState::Open), &s));
        assert_eq!((b.probe.probing_sample, b.path.cycle), (!starts, cycle));
    }
    let mut b = bbr(Cruise);
    (b.probe.probing_sample, b.path.round_start) = (true, true);
    b.adapt_long_term(&window(200), &ack(Time::ZERO, 100, RecoveryState::Open), &sample(1e6, 0));
    assert!(b.probe.probing_sample, "no probe has ended");
    // The next probe starts at once if the last one stopped early without need.
    for (precautionary, too_high, state) in
        [(true, false, Refill), (true, true, Cruise), (false, false, Cruise)]
    {
        let mut b = bbr(Cruise);
        (b.probe.precautionary, b.probe.too_high) = (precautionary, too_high);
        b.probe.wait = Span::s(2);
        b.probe.stop();
        b.path.round_start = true;
        let ack = ack(Time(1), 50, RecoveryState::Open);
        b.advance_probe_bw(&window(200), &ack, &sample(1e6, 0));
        assert_eq!(b.state(), state, "{precautionary}, {too_high}");
    }
}

/// AdaptLongTermModel: the bound follows what was in flight without too much loss, in every state;
/// ProbeInflightLongtermUpward raises it further in Up alone.
#[test]
fn data_in_flight_without_loss_raises_the_long_term_bound() {
    for (state, lost, long) in [(Cruise, 2, 100e3), (Cruise, 3, 90e3), (Up, 2, 101e3)] {
        let mut b = bbr(state);
        b.path.note_window_use(true);
        b.raise_slope(MSS);
        b.path.inflight_long = 90e3;
        let s = RateSample { lost: lost * MSS, ..sample(1e6, 0) };
        b.adapt_long_term(&window(200), &ack(Time::ZERO, 100, RecoveryState::Open), &s);
        assert_eq!(b.path.inflight_long, long, "{state:?}, {lost}");
    }
    // 1500 bytes are one step of 1000 and half of the next.
    let mut b = bbr(Up);
    b.path.note_window_use(true);
    b.raise_slope(MSS);
    b.path.inflight_long = 100e3;
    let grown = [1_500, 499, 1].map(|bytes| {
        b.raise_inflight_long(&window(200), bytes);
        b.path.inflight_long
    });
    assert_eq!(grown, [101e3, 101e3, 102e3]);
}

/// UpdateMaxBw: a sample that the application limited counts only if it is higher. The filter is
/// the maximum of two cycles.
#[test]
fn the_maximum_bandwidth_ignores_samples_that_show_less() {
    for (rate, starved, max) in [
        (2e6, false, 2e6),
        (2e6, true, 2e6),
        (1e6, true, 1e6),
        (0.5e6, false, 0.5e6),
        (0.5e6, true, 1e6),
        (0.0, false, 1e6),
        (f64::INFINITY, false, 1e6),
    ] {
        let mut b = bbr(Cruise);
        b.path.cycle = 2;
        b.path.update_max_bw(&RateSample { starved, ..sample(rate, 0) }, MSS);
        assert_eq!(b.path.max_bw.get(), max, "{rate}, {starved}");
    }
}

#[test]
fn rounds_end_with_data_sent_after_their_start() {
    let mut path = PathModel::default();
    path.start_round(5_000);
    let mut starts = |prior, delivered| {
        path.update_max_bw(&sample(1e6, prior), delivered);
        (path.round, path.round_start)
    };
    assert_eq!(starts(4_999, 9_000), (0, false));
    assert_eq!(starts(5_000, 9_000), (1, true));
    assert_eq!(starts(8_999, 12_000), (1, false));
    assert_eq!(starts(9_000, 12_000), (2, true));
    // C.is_cwnd_limited: in this round or the last.
    path.note_window_use(true);
    for (prior, limited) in [(12_000, true), (20_000, false)] {
        path.update_max_bw(&sample(1e6, prior), prior + 8_000);
        assert_eq!(path.is_cwnd_limited(), limited);
    }
}

/// UpdateLatestDeliverySignals and AdvanceLatestDeliverySignals: maxima since the last loss round.
#[test]
fn latest_signals_are_those_of_the_loss_round() {
    let mut path = PathModel::default();
    let mut see = |rate, volume: u64, prior, delivered| {
        let s = RateSample { delivered: volume, ..sample(rate, prior) };
        path.note_delivery(&s, delivered);
        let state = (path.loss_round_start, path.bw_latest, path.inflight_latest);
        path.advance_latest(&s);
        state
    };
    assert_eq!(see(1e6, 10, 0, 1_000), (true, 1e6, 10.0));
    assert_eq!(see(3e6, 30, 999, 2_000), (false, 3e6, 30.0));
    assert_eq!(see(2e6, 20, 999, 2_000), (false, 3e6, 30.0));
    assert_eq!(see(2e6, 20, 1_000, 2_000), (true, 3e6, 30.0));
    assert_eq!(see(1e6, 5, 1_999, 3_000), (false, 2e6, 20.0), "from the end of the round on");
    path.note_loss((1, 2), 0);
    path.reset_congestion();
    assert_eq!((path.bw_latest, path.inflight_latest), (0.0, 0.0));
    path.adapt_lower_bounds(0.7, 9_000, false);
    assert!(path.bw_short.is_infinite(), "the loss is forgotten");
}

/// UpdateMinRTT: only a smaller round-trip time renews the filters, and they last 5 and 10 s.
#[test]
fn an_equal_rtt_does_not_renew_the_minimum() {
    let params = Bbr3Params::default();
    let at = |ms: u64| Time::ZERO + Span::ms(ms);
    let mut b = bbr(Cruise);
    let mut see = |now, ms: u64| {
        b.path.update_min_rtt(now, Some(Span::ms(ms)), &params);
        (b.path.min_rtt, b.path.probe_rtt_expired)
    };
    let same = Some(Span::ms(100));
    assert_eq!(see(at(4_000), 100), (same, false));
    assert_eq!(see(at(5_000), 110), (same, false));
    assert_eq!(see(at(5_000) + Span(1), 100), (same, true), "from 0 on, not from 4 s on");
    assert_eq!(see(at(10_000), 100), (same, false));
    assert_eq!(see(at(10_200), 125), (Some(Span::ms(125)), true), "10 s after 0");
    let mut b = bbr(Cruise);
    b.path.update_min_rtt(at(6_000), Some(Span::ms(130)), &params);
    b.path.update_min_rtt(at(10_000), None, &params);
    assert_eq!(b.path.min_rtt, same, "10 s and not more");
    b.path.update_min_rtt(at(10_000) + Span(1), None, &params);
    assert_eq!(b.path.min_rtt, Some(Span::ms(130)));
}
