//! Losses, probe timeouts and persistent congestion, worked by hand from the pseudocode of RFC
//! 9002.

use super::*;

#[test]
fn lost_data_is_sent_again_with_a_new_packet_number() {
    let (mut s, mut out) = opened(RENO, UNPACED);
    out.clear();
    // Packets 2 to 4 arrive: 1 is three behind, so it is lost.
    s.on_ack(ms(200), &ack(&[(2, 5), (0, 1)]), &mut out);
    assert_eq!((s.cwnd_packets(), s.ssthresh_packets(), s.in_flight()), (5.0, 5.0, 6_000));
    assert_eq!(sent(&mut out), [], "6 packets are in flight");
    s.on_ack(ms(201), &ack(&[(2, 7), (0, 1)]), &mut out);
    assert_eq!(sent(&mut out), [(11, 1)], "the data of packet 1");
    assert_eq!((s.stats().retransmitted_packets, s.acked_bytes()), (1, 0));
    // The retransmission arrives; packets 7 to 10 too.
    s.on_ack(ms(301), &ack(&[(2, 12), (0, 1)]), &mut out);
    assert_eq!(s.acked_bytes(), 10_000);
    let numbers: Vec<_> = (12..17).map(|n| (n, 1_000 * u64::from(n) - 1_999)).collect();
    assert_eq!(sent(&mut out), numbers);
    // No growth for packets sent before or at the start of recovery, growth after it.
    assert_eq!((s.cwnd_packets(), s.state), (5.0, RecoveryState::Open));
}

#[test]
fn a_late_packet_is_lost_after_nine_eighths_of_a_round_trip() {
    let (mut s, mut out) = opened(RENO, UNPACED);
    out.clear();
    s.on_ack(ms(200), &ack(&[(2, 3), (0, 1)]), &mut out);
    assert_eq!(s.timer(), Time(ms(100).0 + 112_500_000));
    sent(&mut out);
    s.on_timer(Time(212_500_000), &mut out);
    assert_eq!((s.cwnd_packets(), s.stats().timeouts), (5.5, 0), "11 packets, halved");
    s.on_ack(Time(212_500_001), &ack(&[(2, 9), (0, 1)]), &mut out);
    assert_eq!(sent(&mut out)[0], (13, 1));
}

#[test]
fn one_reduction_per_recovery_period() {
    let (mut s, mut out) = opened(RENO, UNPACED);
    s.on_ack(ms(200), &ack(&[(4, 5), (0, 1)]), &mut out);
    assert_eq!((s.cwnd_packets(), s.in_flight()), (5.0, 8_000), "packet 1 is lost");
    s.on_ack(ms(201), &ack(&[(6, 7), (4, 5), (0, 1)]), &mut out);
    assert_eq!((s.cwnd_packets(), s.lost_bytes), (5.0, 3_000), "2 and 3 too");
    out.clear();
    s.on_ack(ms(202), &ack(&[(6, 9), (4, 5), (0, 1)]), &mut out);
    let retransmissions = sent(&mut out);
    assert_eq!(retransmissions, [(11, 1), (12, 1_001), (13, 2_001)]);
    assert_eq!(s.lost_bytes, 4_000, "5 too");
    // The first two of them are lost, sent after the reduction: a second one.
    s.on_ack(ms(203), &ack(&[(6, 11), (4, 5), (0, 1)]), &mut out);
    s.on_ack(ms(303), &ack(&[(14, 16), (6, 11), (4, 5), (0, 1)]), &mut out);
    assert_eq!((s.cwnd_packets(), s.lost_bytes), (2.5, 6_000));
}

#[test]
fn a_probe_timeout_sends_two_packets_and_keeps_the_window() {
    let (mut s, mut out) = opened(RENO, UNPACED);
    out.clear();
    s.on_timer(ms(425), &mut out);
    assert_eq!(sent(&mut out), [(11, 10_001), (12, 11_001)], "new data");
    assert_eq!((s.cwnd_packets(), s.in_flight(), s.stats().timeouts), (10.0, 12_000, 1));
    assert_eq!(s.timer(), ms(425 + 650), "doubled");
    s.on_timer(ms(1_075), &mut out);
    assert_eq!(s.timer(), ms(1_075 + 1_300));
    // An ack ends the backoff, and the ten packets before are lost.
    s.on_ack(ms(1_175), &ack(&[(13, 15), (0, 1)]), &mut out);
    assert_eq!((s.pto_count, s.lost_bytes), (0, 12_000));
}

#[test]
fn without_new_data_a_probe_repeats_the_oldest() {
    let (mut s, mut out) = (sender(RENO, UNPACED), Vec::new());
    s.open(ms(0), &mut out);
    s.write(ms(0), 2_500, &mut out);
    s.on_ack(ms(100), &ack(&[(0, 1)]), &mut out);
    out.clear();
    s.on_timer(s.timer(), &mut out);
    assert_eq!(
        out.iter().map(|s| (s.seq, s.len)).collect::<Vec<_>>(),
        [(1, 1_000), (1_001, 1_000)]
    );
    assert_eq!(s.stats().retransmitted_packets, 2);
    // One copy of each suffices.
    s.on_ack(ms(600), &ack(&[(3, 6)]), &mut out);
    assert_eq!((s.done(), s.in_flight(), s.timer()), (true, 0, Time::NEVER));
}

#[test]
fn persistent_congestion_leaves_two_packets() {
    let (mut s, mut out) = opened(RENO, UNPACED);
    // 975 ms without an ack: probes at 425, 1075 and 2375 ms.
    for at in [425, 1_075, 2_375] {
        assert_eq!(s.timer(), ms(at));
        s.on_timer(ms(at), &mut out);
    }
    out.clear();
    s.on_ack(ms(2_475), &ack(&[(15, 17), (0, 1)]), &mut out);
    // Packets 11 and 14, sent at 425 and 1075 ms, are not 975 ms apart, but 1 was sent at 100 ms,
    // which is not after the first sample: no persistent congestion.
    assert_eq!((s.cwnd_packets(), s.lost_bytes), (5.0, 14_000));
    let (mut s, mut out) = opened(RENO, UNPACED);
    s.on_ack(ms(200), &ack(&[(0, 2)]), &mut out); // packets 11 and 12, at 200 ms
    let mut last = ms(200);
    for _ in 0..3 {
        last = s.timer();
        s.on_timer(last, &mut out);
    }
    s.on_ack(last + Span::ms(100), &ack(&[(17, 19), (0, 2)]), &mut out);
    // The window is two packets and those that the ack acknowledges; the threshold half of 11.
    assert_eq!((s.cwnd_packets(), s.ssthresh_packets()), (4.0, 5.5));
    assert_eq!(s.recovery_start, None);
}

#[test]
fn the_ack_of_a_packet_declared_lost_is_ignored() {
    let (mut s, mut out) = opened(RENO, UNPACED);
    s.on_ack(ms(200), &ack(&[(2, 5), (0, 1)]), &mut out);
    s.on_ack(ms(201), &ack(&[(0, 5)]), &mut out);
    assert_eq!((s.acked_bytes(), s.in_flight()), (0, 6_000));
}

#[test]
fn bbr_and_cubic_reduce_as_their_files_say() {
    let (mut s, mut out) = opened("cubic", &[("pacing", "false"), ("hystart", "false")]);
    s.on_ack(ms(200), &ack(&[(2, 5), (0, 1)]), &mut out);
    assert_eq!(s.cwnd_packets(), 7.0, "beta 0.7");
    let (mut s, mut out) = opened("bbr", &[]);
    s.on_ack(ms(200), &ack(&[(2, 5), (0, 1)]), &mut out);
    // Packet conservation: three delivered, one lost, six in flight.
    assert_eq!(s.cwnd_packets(), 9.0);
    assert!(s.control().pacing_rate().is_some());
}
