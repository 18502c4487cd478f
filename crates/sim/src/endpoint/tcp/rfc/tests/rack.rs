//! RACK in the sender: lost retransmissions and the retransmission timer.

use super::*;

const LINUX: &[(&str, &str)] = &[("rack", "true"), ("rtt_per_ack", "true"), ("rto_min", "200ms")];

/// RFC 5681 section 4.3: after a timeout the loss of a retransmission reduces the window once more
/// and starts a recovery, which sends no faster than data is delivered.
#[test]
fn a_retransmission_lost_after_a_timeout_starts_a_recovery() {
    let mut t = Test::new("sack", LINUX);
    t.write(100, 10_000);
    t.timer(1_200);
    assert_eq!((t.sender.state, t.sender.stats().timeouts), (Loss, 1));
    t.sender.window.cwnd = 3_000;
    t.ack(1_300, 1_001, &[]);
    t.calls();
    t.sent();
    // Retransmitted in this order: 1001, 2001, 3001. The first is lost, the second is delivered.
    t.ack(1_400, 1_001, &[(2_001, 3_001)]);
    assert_eq!(t.sender.state, Recovery);
    let reductions = t.calls().into_iter().filter(|c| matches!(c, Call::Congestion(..)));
    assert_eq!(reductions.count(), 1);
    assert_eq!(t.sent(), [1_001], "the lost retransmission, before other lost data");
    // In a recovery the loss of a retransmission is no new signal.
    t.ack(1_410, 1_001, &[(2_001, 4_001)]);
    assert_eq!((t.sender.state, t.sender.window.cwnd), (Recovery, 1_500));
}

/// Linux, `tcp_time_to_recover`: a retransmitted segment counts as lost until it is delivered. A
/// recovery that ends before is followed by another one, which starts from the threshold.
#[test]
fn a_recovery_that_ends_before_a_later_loss_is_repaired_is_followed_by_another() {
    let again = [Call::Congestion(5_000, CongestionSignal::Loss)];
    for (linux, state, reductions) in [("false", Open, &[][..]), ("true", Recovery, &again)] {
        let mut t = Test::new("sack", &[LINUX, &[("reduce_cwnd", linux)]].concat());
        t.write(100, 30_000);
        t.ack(200, 1, &[(1_001, 2_001)]);
        t.ack(210, 1, &[(1_001, 9_001)]);
        t.sent();
        // 9001 and 10001 are lost; only the first was sent before the reduction.
        t.ack(300, 9_001, &[(11_001, 12_001)]);
        assert_eq!((t.sent()[..2].to_vec(), t.sender.state), (vec![9_001, 10_001], Recovery));
        t.ack(310, 9_001, &[(11_001, 13_001)]);
        t.sender.window.cwnd = 3_000; // as PRR may have it
        t.calls();
        t.ack(400, 10_001, &[(11_001, 13_001)]);
        let calls = t.calls().into_iter().filter(|c| matches!(c, Call::Congestion(..)));
        assert_eq!((t.sender.state, calls.collect::<Vec<_>>().as_slice()), (state, reductions));
    }
}

/// Linux, `tcp_clean_rtx_queue`: a selective ack of data that was sent before the head's last
/// transmission restarts the timer.
#[test]
fn a_selective_ack_of_older_data_restarts_the_timer() {
    let mut t = Test::new("sack", LINUX);
    t.write(100, 5_000);
    t.ack(200, 1, &[(1_001, 2_001)]);
    assert_eq!((t.sender.state, t.sent().last().copied()), (Recovery, Some(1)));
    let rto = t.sender.rto();
    assert_eq!(t.sender.timer(), at(200) + rto, "a full timeout for the retransmission");
    t.ack(250, 1, &[(1_001, 3_001)]);
    assert_eq!(t.sender.timer(), at(250) + t.sender.rto(), "sent before the retransmission");
    let timer = t.sender.timer();
    t.ack(260, 1, &[(1_001, 3_001)]);
    assert_eq!(t.sender.timer(), timer, "nothing new");
}

/// The receiver echoes the timestamp of the last segment in order, so that the selective ack of a
/// retransmission has an older one. It counts as delivered all the same: what was retransmitted
/// before it is lost.
#[test]
fn a_selective_ack_of_a_retransmission_shows_that_an_earlier_one_is_lost() {
    let settings = [("rack", "true"), ("rtt_per_ack", "true"), ("timestamps", "true")];
    let mut t = Test::new("sack", &settings);
    t.write(100, 6_000);
    t.sent();
    t.receive(200, Ack { ack: 1, echo: 100, ..Ack::default() }, &[(2_001, 6_001)]);
    t.ack(201, 1, &[]);
    assert_eq!(t.sent(), [1, 1_001]);
    let old = Ack { ack: 1, echo: 100, ..Ack::default() };
    t.receive(310, old, &[(1_001, 2_001), (2_001, 6_001)]);
    assert_eq!((t.sent().as_slice(), t.sender.state), (&[1][..], Recovery));
}

/// Linux, `tcp_skb_spurious_retrans`: the echo of a cumulative ack shows which transmission it
/// answers. An old echo after a timeout is of the first one, so nothing else is lost.
#[test]
fn a_cumulative_ack_with_an_older_echo_answers_the_first_transmission() {
    let settings = [("rack", "true"), ("rtt_per_ack", "true"), ("timestamps", "true")];
    for (echo, sent) in [(100, vec![]), (1_200, vec![1_001])] {
        let mut t = Test::new("sack", &settings);
        t.write(100, 6_000);
        t.sent();
        t.timer(1_200);
        assert_eq!(t.sent(), [1]);
        t.receive(1_400, Ack { ack: 1_001, echo, ..Ack::default() }, &[]);
        assert_eq!(t.sent(), sent, "{echo}");
    }
}

/// After lost acks, a duplicate may be the first report of data: it is within the next block.
#[test]
fn a_duplicate_that_is_reported_first_is_delivered_once() {
    let mut t = Test::new("sack", &[("rack", "true"), ("dsack", "true")]);
    t.write(100, 5_000);
    t.calls();
    t.ack(200, 1, &[(2_001, 3_001), (1_001, 4_001)]);
    let delivered = t.calls().into_iter().filter(|c| matches!(c, Call::Delivered(..)));
    assert_eq!(delivered.collect::<Vec<_>>(), [Call::Delivered(1_001, 4_001)]);
}
