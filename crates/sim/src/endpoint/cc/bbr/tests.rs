//! Unit tests of [`Bbr`].

mod linux;
mod losses;

use super::*;
use crate::endpoint::cc::testing;

const MSS: u64 = 1_000;

fn bbr(draw: f64) -> Bbr {
    let mut b = Bbr::of(BbrParams::default(), draw);
    let w = Window { cwnd: 10 * MSS, ssthresh: u64::MAX, mss: MSS };
    b.on_established(Time::ZERO, &w, Some(Span::ms(100)));
    b
}

#[test]
fn probing_starts_in_any_phase_except_the_second() {
    let mut b = bbr(0.0);
    let mut seen = [0; 8];
    for _ in 0..7_000 {
        b.enter_probe_bw(Time::ZERO);
        seen[b.phase] += 1;
    }
    assert_eq!(seen[1], 0, "the second phase drains the first");
    for (phase, n) in seen.iter().enumerate().filter(|s| s.0 != 1) {
        assert!((990..=1_010).contains(n), "{phase}: {n}");
    }
}

#[test]
fn initial_rate_comes_from_the_rtt_of_the_syn() {
    assert!((bbr(0.0).pacing_rate() - 2.885 * 10_000.0 / 0.1).abs() < 1e-6);
    let mut b = Bbr::of(BbrParams::default(), 0.0);
    let w = Window { cwnd: MSS, ssthresh: u64::MAX, mss: MSS };
    b.on_established(Time::ZERO, &w, None);
    assert_eq!(b.pacing_rate(), 2_885_000.0, "1 ms if the RTT is unknown");
}

#[test]
fn recovery_conserves_packets_and_restores_the_window() {
    let mut b = bbr(0.0);
    b.full_bw_reached = true;
    b.bw.add(0, 1_000_000.0); // 100 segments per round trip
    (b.mode, b.phase) = (BbrState::ProbeBw, 2);
    let mut w = Window { cwnd: 203 * MSS, ssthresh: u64::MAX, mss: MSS };
    let ack = |state, flight| testing::processed(Time(1), 0, flight, state);
    b.on_congestion(Time(1), &w, w.cwnd, CongestionSignal::Loss);
    b.set_window(&mut w, &ack(RecoveryState::Recovery, 150 * MSS), MSS);
    assert_eq!(w.cwnd, 151 * MSS, "one sent per delivered");
    b.set_window(&mut w, &ack(RecoveryState::Recovery, 149 * MSS), MSS);
    assert_eq!(w.cwnd, 151 * MSS);
    b.set_window(&mut w, &ack(RecoveryState::Open, 140 * MSS), MSS);
    assert_eq!(w.cwnd, 203 * MSS, "2 BDP and three segments");
    b.on_congestion(Time(1), &w, w.cwnd, CongestionSignal::Timeout);
    w.cwnd = MSS;
    b.set_window(&mut w, &ack(RecoveryState::Loss, 0), MSS);
    assert_eq!(w.cwnd, LEAST * MSS);
    b.set_window(&mut w, &ack(RecoveryState::Open, 0), MSS);
    assert_eq!(w.cwnd, 203 * MSS);
}

#[test]
fn app_limited_samples_can_only_raise_the_estimate() {
    let mut b = bbr(0.0);
    let sample = |rate, starved| RateSample {
        rate,
        interval: Span::ms(100),
        prior_delivered: 0,
        rtt: None,
        longest_rtt: None,
        news: MSS,
        starved,
        delivered: 0,
        lost: 0,
        in_flight: 0,
    };
    b.update_bandwidth(&sample(1e6, false));
    b.update_bandwidth(&sample(2e5, true));
    assert_eq!(b.bandwidth(), 1e6);
    b.update_bandwidth(&sample(2e6, true));
    assert_eq!(b.bandwidth(), 2e6);
    b.update_bandwidth(&RateSample { interval: Span::ms(99), ..sample(9e6, false) });
    assert_eq!(b.bandwidth(), 2e6, "less than a round trip shows a burst of acks");
    for _ in 0..20 {
        b.update_bandwidth(&sample(1e5, true));
    }
    assert_eq!(b.bandwidth(), 2e6, "however long it lasts");
    for _ in 0..11 {
        b.update_bandwidth(&sample(1e6, false));
    }
    assert_eq!(b.bandwidth(), 1e6, "ten rounds later the sample expires");
}

/// Control in ProbeBw with a path of 1 MB/s and 100 ms, 100 segments per round trip.
fn probing(phase: usize) -> Bbr {
    let mut b = bbr(0.0);
    b.full_bw_reached = true;
    b.bw.add(0, 1_000_000.0);
    (b.mode, b.phase) = (BbrState::ProbeBw, phase);
    b
}

fn sample(rate: f64) -> RateSample {
    RateSample {
        rate,
        interval: Span::ms(100),
        prior_delivered: 0,
        rtt: None,
        longest_rtt: None,
        news: MSS,
        starved: false,
        delivered: 0,
        lost: 0,
        in_flight: 0,
    }
}

fn window(segments: u64) -> Window {
    Window { cwnd: segments * MSS, ssthresh: u64::MAX, mss: MSS }
}

fn processed(ms: u64, delivered: u64, flight: u64, state: RecoveryState) -> ProcessedAck {
    testing::processed(Time::ZERO + Span::ms(ms), delivered, flight, state)
}

/// Delivers `segments` to the rate estimator, which then has no record of them.
fn deliver(b: &mut Bbr, segments: u64) {
    let from = b.rates.delivered();
    b.on_delivered(Time::ZERO, from, from + segments * MSS);
}

#[test]
fn target_is_gain_times_bdp_and_three_segments() {
    let mut b = bbr(0.0);
    assert_eq!(
        b.inflight(b.bw.get(), 2.0, MSS),
        20 * MSS,
        "the initial window before the first sample"
    );
    b.bw.add(0, 1_000_000.0);
    assert_eq!(b.inflight(b.bw.get(), 1.0, MSS), 103 * MSS);
    assert_eq!(b.inflight(b.bw.get(), 1.25, MSS), 128 * MSS);
    b.rtprop = None;
    assert_eq!(b.inflight(b.bw.get(), 1.0, MSS), 10 * MSS, "no round-trip time is known");
}

/// With bursts as in Linux, 100 segments become 106; two more in the phase that probes for more.
#[test]
fn bursts_take_two_segments_more_in_the_probing_phase() {
    for (mode, phase, segments) in
        [(BbrState::ProbeBw, 0, 108), (BbrState::ProbeBw, 2, 106), (BbrState::Startup, 0, 106)]
    {
        let mut b = probing(phase);
        (b.mode, b.params.tso) = (mode, true);
        assert_eq!(b.inflight(b.bw.get(), 1.0, MSS), segments * MSS, "{mode:?} {phase}");
    }
}

#[test]
fn gains_are_those_of_the_state() {
    let mut b = probing(0);
    let gains = |b: &Bbr| (b.pacing_gain(), b.cwnd_gain());
    assert_eq!((b.mode(), gains(&b)), (BbrState::ProbeBw, (1.25, 2.0)));
    b.phase = 1;
    assert_eq!(gains(&b), (0.75, 2.0));
    b.mode = BbrState::Startup;
    assert_eq!(gains(&b), (2.885, 2.885));
    b.mode = BbrState::Drain;
    assert_eq!(gains(&b), (1.0 / 2.885, 2.885), "Drain undoes Startup's gain");
    b.mode = BbrState::ProbeRtt;
    assert_eq!(gains(&b), (1.0, 1.0));
}

#[test]
fn phases_last_longer_than_one_minimum_rtt() {
    let at = |ns| Time::ZERO + Span::ms(100) + Span(ns);
    // Phase, packets in flight, a loss, the phase 100 ms and 100 ms + 1 ns after its start.
    let cases = [
        (0, 128, false, 0, 1), // gain 1.25: until 1.25 BDP are in flight
        (0, 127, false, 0, 0),
        (0, 50, true, 0, 1), // or a loss shows that the path cannot hold them
        (1, 104, false, 1, 2),
        (1, 103, false, 2, 2), // gain 0.75: until the queue is drained, if that is earlier
        (2, 10, false, 2, 3),
        (7, 200, true, 7, 0),
    ];
    for (phase, flight, lost, then, later) in cases {
        let mut b = probing(phase);
        b.advance_gain_cycle(at(0), flight * MSS, MSS, lost);
        assert_eq!(b.phase, then, "{phase}, {flight}, {lost}: after one RTprop");
        let mut b = probing(phase);
        b.advance_gain_cycle(at(1), flight * MSS, MSS, lost);
        assert_eq!(b.phase, later, "{phase}, {flight}, {lost}: after more");
        let start = if later == phase { Time::ZERO } else { at(1) };
        assert_eq!(b.phase_at, start);
    }
}

#[test]
fn startup_ends_after_three_rounds_that_grow_by_less_than_a_quarter() {
    let mut b = bbr(0.0);
    let mut round = |rate, round_start, starved| {
        b.round += 11; // older samples expire
        b.bw.add(b.round, rate);
        b.round_start = round_start;
        b.check_full_pipe(&RateSample { starved, ..sample(rate) });
        (b.full_bw, b.full_rounds)
    };
    assert_eq!(round(1_000.0, true, false), (1_000.0, 0));
    assert_eq!(round(1_249.0, true, false), (1_000.0, 1), "compared with the same rate again");
    assert_eq!(round(1_249.0, false, false), (1_000.0, 1), "not a round");
    assert_eq!(round(1_249.0, true, true), (1_000.0, 1), "limited by the application");
    assert_eq!(round(1_250.0, true, false), (1_250.0, 0), "a quarter more starts the count anew");
    assert_eq!(round(1_250.0, true, false), (1_250.0, 1));
    assert_eq!(round(1_250.0, true, false), (1_250.0, 2));
    assert_eq!(round(1_250.0, true, false), (1_250.0, 3));
    assert_eq!(round(9_999.0, true, false), (1_250.0, 3), "it is over for good");
}

#[test]
fn a_round_ends_when_what_was_in_flight_at_its_start_is_delivered() {
    let mut b = bbr(0.0);
    deliver(&mut b, 10);
    b.conserves = true;
    b.update_bandwidth(&sample(1e6));
    assert_eq!((b.round_start, b.round, b.round_end), (true, 1, 10 * MSS));
    assert!(!b.conserves, "packet conservation lasts one round");
    b.conserves = true;
    deliver(&mut b, 10);
    b.update_bandwidth(&RateSample { prior_delivered: 10 * MSS - 1, ..sample(1e6) });
    assert_eq!((b.round_start, b.round, b.round_end, b.conserves), (false, 1, 10 * MSS, true));
    b.update_bandwidth(&RateSample { prior_delivered: 10 * MSS, ..sample(1e6) });
    assert_eq!((b.round_start, b.round, b.round_end), (true, 2, 20 * MSS));
}

#[test]
fn samples_without_an_interval_are_ignored() {
    let mut b = Bbr::of(BbrParams::default(), 0.0);
    b.on_established(Time::ZERO, &window(10), None);
    b.update_bandwidth(&RateSample { interval: Span::ZERO, ..sample(9e9) });
    assert_eq!(b.bandwidth(), 0.0);
    b.update_bandwidth(&RateSample { interval: Span(1), ..sample(5e6) });
    assert_eq!(b.bandwidth(), 5e6, "any other, while no round-trip time is known");
}

#[test]
fn a_starved_sample_as_high_as_the_estimate_renews_it() {
    let mut b = bbr(0.0);
    b.round_end = u64::MAX;
    b.update_bandwidth(&sample(1e6));
    b.round = 8;
    b.update_bandwidth(&RateSample { starved: true, ..sample(1e6) });
    b.round = 18;
    b.update_bandwidth(&sample(1e5));
    assert_eq!(b.bandwidth(), 1e6, "ten rounds after it was renewed");
    b.round = 19;
    b.update_bandwidth(&sample(1e5));
    assert_eq!(b.bandwidth(), 1e5);
}

#[test]
fn rtprop_is_the_minimum_of_ten_seconds() {
    let mut b = bbr(0.0);
    let mut w = window(10);
    let (ms, s) = (Span::ms, |s| Time::ZERO + Span::s(s));
    b.update_rtprop(s(1), Some(ms(101)), &mut w, 9 * MSS);
    assert_eq!((b.rtprop, b.rtprop_at), (Some(ms(100)), Time::ZERO));
    b.update_rtprop(s(2), Some(ms(100)), &mut w, 9 * MSS);
    assert_eq!((b.rtprop, b.rtprop_at), (Some(ms(100)), s(2)), "the same value renews it");
    b.update_rtprop(s(3), Some(ms(90)), &mut w, 9 * MSS);
    assert_eq!((b.rtprop, b.rtprop_at), (Some(ms(90)), s(3)));
    b.update_rtprop(s(13), Some(ms(91)), &mut w, 9 * MSS);
    assert_eq!((b.rtprop, b.mode), (Some(ms(90)), BbrState::Startup), "ten seconds");
    b.update_rtprop(s(13) + Span(1), Some(ms(95)), &mut w, 9 * MSS);
    assert_eq!((b.rtprop, b.mode), (Some(ms(95)), BbrState::ProbeRtt), "more than ten seconds");
    assert_eq!(b.prior_cwnd, 10 * MSS);
}

#[test]
fn probe_rtt_lasts_a_round_and_200_ms_with_four_segments() {
    for full in [true, false] {
        let mut b = probing(2);
        b.full_bw_reached = full;
        let (mut w, mut now) = (window(200), Time::ZERO + Span::s(10) + Span(1));
        b.update_rtprop(now, None, &mut w, 5 * MSS);
        assert_eq!((b.mode, b.probe_until), (BbrState::ProbeRtt, None), "five in flight");
        b.set_window(&mut w, &processed(0, 0, 5 * MSS, RecoveryState::Open), MSS);
        assert_eq!(w.cwnd, 4 * MSS);
        deliver(&mut b, 7);
        b.update_rtprop(now, None, &mut w, 4 * MSS);
        assert_eq!(b.probe_until, Some(now + Span::ms(200)));
        assert_eq!((b.probe_round, b.round_end), (false, 7 * MSS), "a round starts");
        assert!(b.rates.on_app_limited(), "the window, not the path, limits the rate");
        now += Span::ms(200);
        b.update_rtprop(now, None, &mut w, 4 * MSS);
        assert_eq!(b.mode, BbrState::ProbeRtt, "no round has ended");
        b.round_start = true;
        b.update_rtprop(Time(now.0 - 1), None, &mut w, 4 * MSS);
        assert_eq!(b.mode, BbrState::ProbeRtt, "200 ms less 1 ns");
        b.round_start = false;
        b.update_rtprop(now, None, &mut w, 4 * MSS);
        assert_eq!(b.mode, if full { BbrState::ProbeBw } else { BbrState::Startup });
        assert_eq!((w.cwnd, b.rtprop_at), (200 * MSS, now), "the window is restored");
    }
}

#[test]
fn a_restart_from_idle_delays_probe_rtt() {
    let mut b = probing(2);
    let (mut w, now) = (window(200), Time::ZERO + Span::s(11));
    b.restarted = true;
    b.update_rtprop(now, None, &mut w, 0);
    assert_eq!(b.mode, BbrState::ProbeBw);
    b.restarted = false;
    b.update_rtprop(now, None, &mut w, 0);
    assert_eq!(b.mode, BbrState::ProbeRtt);
}

#[test]
fn the_largest_window_before_recovery_and_probe_rtt_is_saved() {
    let mut b = probing(2);
    b.save_cwnd(&window(100));
    b.save_cwnd(&window(50));
    assert_eq!(b.prior_cwnd, 50 * MSS, "no recovery: the present window");
    b.was = RecoveryState::Recovery;
    b.save_cwnd(&window(20));
    assert_eq!(b.prior_cwnd, 50 * MSS);
    b.save_cwnd(&window(60));
    assert_eq!(b.prior_cwnd, 60 * MSS);
    (b.was, b.mode) = (RecoveryState::Open, BbrState::ProbeRtt);
    b.save_cwnd(&window(4));
    assert_eq!(b.prior_cwnd, 60 * MSS);
}

#[test]
fn the_window_grows_by_what_is_delivered_up_to_the_target() {
    let open = |flight| processed(0, 0, flight, RecoveryState::Open);
    let mut b = probing(2);
    let mut w = window(200);
    b.set_window(&mut w, &open(0), 2 * MSS);
    assert_eq!(w.cwnd, 202 * MSS);
    b.set_window(&mut w, &open(0), 2 * MSS);
    assert_eq!(w.cwnd, 203 * MSS, "2 BDP and three segments");
    let mut w = window(1);
    b.set_window(&mut w, &open(0), MSS);
    assert_eq!(w.cwnd, LEAST * MSS);
    // While the path is not known to be full the target does not reduce the window.
    b.full_bw_reached = false;
    deliver(&mut b, 10);
    for (cwnd, then) in [(202, 203), (203, 203), (300, 300)] {
        let mut w = window(cwnd);
        b.set_window(&mut w, &open(0), MSS);
        assert_eq!(w.cwnd, then * MSS);
    }
    // Nor until the initial window is delivered.
    b.initial_window = 10 * MSS + 1;
    let mut w = window(300);
    b.set_window(&mut w, &open(0), MSS);
    assert_eq!(w.cwnd, 301 * MSS);
}

#[test]
fn conservation_keeps_the_window_at_least_at_the_flight() {
    let mut b = probing(2);
    let mut w = window(200);
    deliver(&mut b, 5);
    let ack = |flight, state| processed(0, 0, flight * MSS, state);
    b.on_congestion(Time(1), &w, w.cwnd, CongestionSignal::Loss);
    b.set_window(&mut w, &ack(150, RecoveryState::Recovery), MSS);
    assert_eq!((w.cwnd, b.conserves, b.round_end), (151 * MSS, true, 5 * MSS));
    b.set_window(&mut w, &ack(160, RecoveryState::Recovery), 2 * MSS);
    assert_eq!(w.cwnd, 162 * MSS);
    b.conserves = false; // a round later
    b.set_window(&mut w, &ack(100, RecoveryState::Recovery), 2 * MSS);
    assert_eq!(w.cwnd, 164 * MSS, "the target again");
    b.set_window(&mut w, &ack(100, RecoveryState::Open), 0);
    assert_eq!(w.cwnd, 164 * MSS, "an ack that delivers nothing changes nothing");
    b.set_window(&mut w, &ack(100, RecoveryState::Open), MSS);
    assert_eq!(w.cwnd, 201 * MSS, "as before the recovery, and what was delivered");
    b.set_window(&mut w, &ack(0, RecoveryState::Recovery), MSS);
    assert_eq!(w.cwnd, MSS, "at least one segment");
}

#[test]
fn a_timeout_forgets_the_full_pipe_estimate() {
    let mut b = probing(2);
    (b.full_bw, b.conserves) = (1e6, true);
    assert_eq!(b.on_congestion(Time(1), &window(50), 1, CongestionSignal::Loss), 50 * MSS);
    assert_eq!((b.full_bw, b.conserves, b.was), (1e6, true, RecoveryState::Open));
    assert_eq!(b.on_congestion(Time(1), &window(1), 1, CongestionSignal::Timeout), 2 * MSS);
    assert_eq!((b.full_bw, b.conserves, b.was), (0.0, false, RecoveryState::Loss));
    assert!(b.lost && b.keeps_window_when_idle());
}

#[test]
fn a_full_path_is_drained_to_one_bdp_before_probing() {
    let mut b = probing(0);
    b.mode = BbrState::Startup;
    let mut w = window(280);
    b.on_ack_processed(&mut w, &processed(1, 0, 103 * MSS + 1, RecoveryState::Open));
    assert_eq!(b.mode, BbrState::Drain);
    assert!((b.pacing_rate() - 1e6 * 0.99 / 2.885).abs() < 1e-6, "{}", b.pacing_rate());
    b.on_ack_processed(&mut w, &processed(2, 0, 103 * MSS, RecoveryState::Open));
    assert_eq!((b.mode, b.phase_at), (BbrState::ProbeBw, Time::ZERO + Span::ms(2)));
    assert_eq!(b.pacing_rate(), 1.25 * 1e6 * 0.99);
}

#[test]
fn the_rate_only_grows_until_the_path_is_full() {
    let mut b = bbr(0.0);
    let mut w = window(10);
    let ack = processed(1, 0, 0, RecoveryState::Open);
    b.on_ack_processed(&mut w, &ack);
    assert_eq!(b.pacing_rate(), 2.885 * 10_000.0 / 0.1, "no sample: as from the SYN");
    b.bw.add(0, 1e5);
    b.on_ack_processed(&mut w, &ack);
    assert_eq!(b.pacing_rate(), 2.885 * 10_000.0 / 0.1, "0.99 of it would be less");
    b.bw.add(0, 2e5);
    b.on_ack_processed(&mut w, &ack);
    assert_eq!(b.pacing_rate(), 2.885 * 2e5 * 0.99);
    (b.full_bw_reached, b.mode) = (true, BbrState::ProbeRtt);
    b.on_ack_processed(&mut w, &ack);
    assert_eq!(b.pacing_rate(), 2e5 * 0.99, "it follows the estimate from then on");
    b.bw.reset();
    b.on_ack_processed(&mut w, &ack);
    assert_eq!(b.pacing_rate(), 2e5 * 0.99, "never 0");
}

#[test]
fn after_idling_probing_restarts_at_the_estimate() {
    let sent = |was_idle| SentSegment {
        now: Time::ZERO + Span::s(1),
        seq: 1,
        end: 1 + MSS,
        retransmission: false,
        padding: 0,
        was_idle,
        state: RecoveryState::Open,
    };
    // Phase of ProbeBw or another state, idle, limited by the application: restarted, and the rate.
    for (mode, idle, starved, restarted, rate) in [
        (BbrState::ProbeBw, true, true, true, 990_000.0),
        (BbrState::ProbeBw, true, false, false, 288_500.0),
        (BbrState::ProbeBw, false, true, false, 288_500.0),
        (BbrState::Startup, true, true, true, 288_500.0),
    ] {
        let mut b = probing(0);
        b.mode = mode;
        if starved {
            b.on_app_limited(0);
        }
        b.on_sent(&sent(idle));
        assert_eq!((b.restarted, b.pacing_rate().round()), (restarted, rate), "{mode:?}, {idle}");
        b.on_ack_processed(&mut window(10), &processed(1_000, 0, MSS, RecoveryState::Open));
        assert_eq!(b.restarted, restarted, "until something is delivered");
        b.on_delivered(Time::ZERO + Span::s(2), 1, 1 + MSS);
        b.on_ack_processed(&mut window(10), &processed(2_000, MSS, 0, RecoveryState::Open));
        assert!(!b.restarted);
    }
    let mut b = probing(0);
    b.bw.reset();
    b.on_app_limited(0);
    b.on_sent(&sent(true));
    assert_eq!(b.pacing_rate().round(), 288_500.0, "no estimate yet");
}

#[test]
fn probing_ends_in_a_recovery_and_after_one() {
    // A loss that is reported with the ack; the state after the ack; the phase.
    for (lost, state, phase) in [
        (false, RecoveryState::Open, 0),
        (true, RecoveryState::Open, 1),
        (false, RecoveryState::Recovery, 1),
    ] {
        let mut b = probing(0);
        b.on_sent(&SentSegment {
            now: Time::ZERO,
            seq: 1,
            end: 1 + MSS,
            retransmission: false,
            padding: 0,
            was_idle: true,
            state: RecoveryState::Open,
        });
        if lost {
            b.on_congestion(Time(1), &window(50), 50 * MSS, CongestionSignal::Loss);
        }
        b.on_delivered(Time::ZERO + Span::ms(200), 1, 1 + MSS);
        b.on_ack_processed(&mut window(50), &processed(200, MSS, 49 * MSS, state));
        assert_eq!(b.phase, phase, "{lost}, {state:?}");
    }
}
