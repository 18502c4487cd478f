//! Rules of Linux.

use super::*;

/// As `probing`, with the rules of Linux.
fn linux(phase: usize) -> Bbr {
    let mut b = probing(phase);
    b.params.variant = BbrVariant::Linux;
    b
}

/// `bbr_is_next_cycle_phase`: losses of the ack count, not the state of the connection.
#[test]
fn only_an_ack_that_shows_a_loss_ends_the_probing_phase() {
    for (newly_lost, state, phase) in
        [(0, RecoveryState::Recovery, 0), (MSS, RecoveryState::Open, 1)]
    {
        let mut b = linux(0);
        b.on_delivered(Time::ZERO + Span::ms(200), 1, 1 + MSS);
        let ack = ProcessedAck { newly_lost, ..processed(200, MSS, 49 * MSS, state) };
        b.advance_linux_cycle(&ack, MSS, MSS);
        assert_eq!(b.phase, phase, "{newly_lost} {state:?}");
    }
}

/// `tcp_rate_gen`.
#[test]
fn a_sample_over_less_than_the_least_round_trip_is_not_valid() {
    let short = RateSample { interval: Span::ms(99), ..sample(1e6) };
    assert!(linux(2).is_valid(&sample(1e6)) && !linux(2).is_valid(&short));
    assert!(probing(2).is_valid(&short), "the draft counts its round");
    let mut b = linux(2);
    b.rtprop = Some(Span::ms(120));
    b.update_bandwidth(&sample(2e6));
    assert_eq!(b.bandwidth(), 2e6, "the least of the connection counts, not of ten seconds");
}

/// `bbr_packets_in_net_at_edt`: 2.5 ms until the next departure are two segments at 1 MB/s.
#[test]
fn what_is_delivered_until_the_next_departure_is_not_in_the_network() {
    let ack =
        ProcessedAck { pacing_delay: Span::us(2_500), ..processed(10, 0, 0, RecoveryState::Open) };
    let left = |phase, flight| linux(phase).in_network_at_departure(&ack, flight, MSS);
    assert_eq!(left(2, 50 * MSS), 48 * MSS);
    assert_eq!(left(0, 50 * MSS), 50 * MSS, "a burst of two segments departs while probing");
    assert_eq!(left(2, MSS), 0);
    let early = ProcessedAck { pacing_delay: Span::ZERO, ..ack };
    assert_eq!(linux(2).in_network_at_departure(&early, 50 * MSS, MSS), 50 * MSS);
}

/// `bbr_set_state`: each timeout is a round trip with losses. Intervals of 3 and 4 round trips in
/// which 10 segments arrive and 4 are lost per 100 ms.
#[test]
fn timeouts_show_a_policer() {
    let mut b = linux(2);
    b.full_bw = 1e6;
    for round in 1..=8 {
        assert_eq!(b.bandwidth_in_use(), 1e6, "before timeout {round}");
        let from = b.rates.delivered();
        b.on_delivered(Time::ZERO + Span::ms(100 * round), from, from + 10 * MSS);
        b.on_timeout_losses(&window(1), 4 * MSS * round);
    }
    assert_eq!((b.bandwidth_in_use(), b.full_bw, b.was), (1e5, 0.0, RecoveryState::Loss));
}

/// `tcp_ack_update_rtt`: an ack of data that was sent again gives the time of its timestamp.
#[test]
fn the_round_trip_time_is_the_one_of_the_ack() {
    let rtt = Some(Span::ms(95));
    let ack = ProcessedAck { rtt, ..processed(10, 0, 0, RecoveryState::Open) };
    let mut b = linux(2);
    assert_eq!((b.take_rtt(&ack, None), b.min_rtt), (rtt, rtt));
    assert_eq!(probing(2).take_rtt(&ack, None), None);
}

/// `bbr_set_cwnd`: room for ten segments acknowledged at once, in addition to 2 BDP and three.
#[test]
fn the_window_has_room_for_aggregated_acks() {
    let ack = processed(0, 0, 0, RecoveryState::Open);
    for (mut b, segments) in [(linux(2), 213), (probing(2), 203)] {
        b.measure_aggregation(Time(1), &window(300), 10 * MSS);
        let mut w = window(300);
        b.set_window(&mut w, &ack, MSS);
        assert_eq!(w.cwnd, segments * MSS);
    }
    let mut b = linux(2);
    b.full_bw_reached = false;
    b.measure_aggregation(Time(1), &window(300), 10 * MSS);
    assert_eq!(b.aggregation_allowance(MSS), 0, "not before the path is full");
}

#[test]
fn the_first_rate_has_the_margin() {
    let params = BbrParams { variant: BbrVariant::Linux, ..BbrParams::default() };
    let mut b = Bbr::of(params, 0.0);
    b.on_established(Time::ZERO, &window(10), Some(Span::ms(100)));
    assert!((b.pacing_rate() - 0.99 * 288_500.0).abs() < 1e-6);
    assert!(b.recovers_within_window());
}
