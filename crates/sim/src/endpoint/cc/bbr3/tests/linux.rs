//! Rules of Google's kernel, one by one.

use super::*;

/// As [`bbr`], with the rules of the kernel.
fn linux(state: Bbr3State) -> Bbr3 {
    let mut b = bbr(state);
    b.params.variant = Bbr3Variant::Linux;
    b
}

#[test]
fn the_window_has_room_for_three_bursts_in_whole_segments() {
    // A burst is 1e6 / 1024 B, but at least two segments.
    let b = linux(Bbr3State::Cruise);
    assert_eq!([3e3, 66_500.0].map(|cap| b.with_quantum(cap)), [6e3, 67e3]);
    // 5 MB/s: bursts of four segments; in ProbeBW_UP there are two more.
    let mut b = linux(Bbr3State::Up);
    b.pacing_rate = 5e6;
    assert_eq!([3e3, 66_500.0].map(|cap| b.with_quantum(cap)), [14e3, 69e3]);
}

#[test]
fn a_probe_can_raise_the_bound_that_an_earlier_one_has_set() {
    let mut b = linux(Bbr3State::Up);
    b.probe.probing_sample = true;
    lose(&mut b, 200, 5);
    assert_eq!(b.inflight_longterm(), 199e3, "whole segments; four lost before are the threshold");
    assert_eq!(b.whole(71_400.0), 71e3);
    // With the window at the bound, each segment acked raises the bound by one.
    b.state = Bbr3State::Up;
    b.path.note_window_use(true);
    b.raise_slope(MSS);
    let mut w = window(1_000);
    b.set_window(&mut w, &ack(Time::ZERO, 100, RecoveryState::Open), 0);
    assert_eq!(w.cwnd, 199 * MSS);
    b.raise_inflight_long(&w, 2 * MSS);
    assert_eq!(b.inflight_longterm(), 201e3);
}

#[test]
fn only_a_timeout_restores_the_window_at_its_end() {
    for (before, restored) in [(RecoveryState::Recovery, 11), (RecoveryState::Loss, 80)] {
        let mut b = linux(Bbr3State::Cruise);
        (b.was, b.prior_cwnd) = (before, 80 * MSS);
        let mut w = window(10);
        b.follow_target(&mut w, &ack(Time::ZERO, 10, RecoveryState::Open), MSS);
        assert_eq!(w.cwnd / MSS, restored + u64::from(restored == 80), "{before:?}");
    }
}

#[test]
fn a_timeout_outside_of_probes_bounds_the_data_in_flight() {
    let at_timeout = |state| {
        let mut b = linux(state);
        let cause = CongestionSignal::Timeout;
        b.on_congestion(Time::ZERO, &window(90), 0, cause);
        (b.path.inflight_short, b.path.full_bw)
    };
    assert_eq!(at_timeout(Bbr3State::Cruise), (90e3, 0.0));
    assert_eq!(at_timeout(Bbr3State::Up), (f64::INFINITY, 0.0));
}

#[test]
fn a_spurious_loss_is_undone() {
    let mut b = linux(Bbr3State::Cruise);
    b.path.inflight_long = 150e3;
    b.on_congestion(Time::ZERO, &window(90), 0, CongestionSignal::Loss);
    (b.path.inflight_short, b.path.bw_short, b.path.inflight_long) = (63e3, 0.7e6, 90e3);
    let mut w = window(63);
    b.on_undo(&mut w, 0);
    assert_eq!((w.cwnd, b.inflight_longterm()), (90 * MSS, 150e3));
    assert!(b.path.bw_short.is_infinite() && b.path.inflight_short.is_infinite());
}

#[test]
fn a_burst_of_acks_is_no_sample_of_the_rate() {
    let b = linux(Bbr3State::Cruise);
    let at = |interval| b.is_valid(&RateSample { interval, ..sample(1e6, 0) });
    assert_eq!([100, 99, 0].map(|ms| at(Span::ms(ms))), [true, false, false]);
}

#[test]
fn growth_within_a_round_counts() {
    let mut b = linux(Bbr3State::Startup);
    b.path.reset_full_bw(1e6);
    b.path.full_rounds = 2;
    b.check_full_bw(&sample(1.3e6, 0));
    assert_eq!((b.path.full_bw, b.path.full_rounds), (1.3e6, 0));
    b.check_full_bw(&sample(1.3e6, 0));
    assert_eq!(b.path.full_rounds, 0, "lack of growth counts once per round");
}

#[test]
fn acks_with_losses_are_counted_instead_of_lost_ranges() {
    let mut b = linux(Bbr3State::Startup);
    let lossy = ProcessedAck { newly_lost: 5 * MSS, ..ack(Time::ZERO, 9, RecoveryState::Open) };
    (0..2).for_each(|_| b.note_losses_of_ack(&lossy));
    b.note_losses_of_ack(&ack(Time::ZERO, 9, RecoveryState::Open));
    assert_eq!((b.path.loss_ranges, b.path.loss_in_round), (2, true));
}

#[test]
fn too_much_loss_before_an_acked_segment_ends_a_probe() {
    let mut b = linux(Bbr3State::Up);
    let acked = RateSample { lost: 5 * MSS, ..sample(1e6, 0) };
    let now = ack(Time::ZERO, 100, RecoveryState::Recovery);
    assert!(b.ends_probe(&now, &acked) && b.state() == Bbr3State::Up, "no sample of a probe");
    b.probe.probing_sample = true;
    assert!(b.ends_probe(&now, &acked));
    assert_eq!((b.state(), b.inflight_longterm()), (Bbr3State::Down, 100e3));
}
