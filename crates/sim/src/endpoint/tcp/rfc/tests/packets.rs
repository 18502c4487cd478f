//! Windows and rates in packets, as in Linux.

use super::*;

const PACKETS: &[(&str, &str)] = &[("rack", "true"), ("count_packets", "true")];

/// A window of ten holds ten writes of 200 B; what waits is joined.
#[test]
fn small_writes_fill_the_window() {
    for (settings, sent) in [(PACKETS, 10), (&PACKETS[..1], 12)] {
        let mut t = Test::new("sack", settings);
        (0..12).for_each(|_| t.write(100, 200));
        assert_eq!(t.sent().len(), sent);
    }
    let mut t = Test::new("sack", PACKETS);
    (0..12).for_each(|_| t.write(100, 200));
    t.sent();
    t.calls();
    t.ack(200, 401, &[]);
    let calls = t.calls();
    assert!(calls.contains(&Call::Echo(401, 2_000, 0, 2_001)), "two segments: {calls:?}");
    assert!(matches!(calls[..], [.., Call::Processed(2_000, 8_000, Open), Call::Sent(..)]));
    assert!(calls.iter().any(|call| matches!(call, Call::Acked(2_000, ..))));
    assert_eq!(t.out.iter().map(|s| (s.seq, s.len)).collect::<Vec<_>>(), [(2_001, 400)]);
}

/// The first of five writes is lost: selective acks, losses and retransmissions count segments.
#[test]
fn lost_segments_count_as_full_ones() {
    let mut t = Test::new("sack", PACKETS);
    (0..5).for_each(|_| t.write(100, 200));
    t.calls();
    t.ack(200, 1, &[(201, 401)]);
    let calls = t.calls();
    let processed = calls.iter().find(|call| matches!(call, Call::Processed(..)));
    assert_eq!(processed, Some(&Call::Processed(1_000, 4_000, Recovery)), "one was sent again");
    assert_eq!(t.sender.lost_total(), 1_000);
    t.ack(300, 1_001, &[]);
    assert!(t.calls().contains(&Call::Processed(5_000, 0, Open)));
}

/// `tcp_rate_check_app_limited`.
#[test]
fn the_application_is_the_limit_if_less_than_a_segment_waits_when_it_writes() {
    let limits = |t: &mut Test| {
        let calls = t.calls().into_iter();
        calls.filter(|call| matches!(call, Call::AppLimited(_))).collect::<Vec<_>>()
    };
    let mut t = Test::new("sack", PACKETS);
    t.write(100, 200);
    t.write(101, 9_200);
    assert_eq!(limits(&mut t), [Call::AppLimited(0), Call::AppLimited(1_000)]);
    t.sender.control.credit = 1; // the pacer holds what follows
    t.ack(200, 201, &[]);
    assert_eq!(limits(&mut t), [], "an ack is no write");
    t.write(201, 799);
    t.write(202, 1);
    t.write(203, 1);
    assert_eq!(limits(&mut t).len(), 2, "the third write finds a segment that waits");
    t.sender.control.credit = u32::MAX;
    t.write(204, 100_000);
    t.write(205, 1);
    assert_eq!(limits(&mut t), [], "data waits for the window");
}

/// `tcp_xmit_retransmit_queue`: with a control that asks for it, the pacer decides.
#[test]
fn the_first_retransmission_waits_for_the_pacer() {
    for (within, sent) in [(false, vec![2_001]), (true, vec![])] {
        let mut t = Test::new("sack", PACKETS);
        t.write(100, 8_000);
        t.ack(200, 2_001, &[]);
        t.sent();
        (t.sender.control.within_window, t.sender.control.credit) = (within, 1);
        t.ack(220, 2_001, &[(3_001, 4_001)]);
        assert_eq!((t.sender.state, t.sent()), (Recovery, sent));
        t.sender.control.credit = u32::MAX;
        t.ack(230, 2_001, &[(3_001, 5_001)]);
        assert_eq!(t.sent().contains(&2_001), within);
    }
}
