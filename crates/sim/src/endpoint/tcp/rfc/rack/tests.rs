//! Order of transmissions, with acks made by hand.

use super::super::super::Ack;
use super::*;

/// Five segments of ten bytes, starting at 1.
fn five() -> RackState {
    let mut order = RackState::default().with_parts(false, false, false);
    (0..5).for_each(|i| order.sent(Time(i), 1 + 10 * i, 11 + 10 * i, false));
    order
}

fn receive(board: &mut Scoreboard, order: &mut RackState, ack: u64, sacks: &[(u64, u64)]) {
    receive_at(100, board, order, ack, sacks);
}

fn receive_at(
    at: u64,
    board: &mut Scoreboard,
    order: &mut RackState,
    ack: u64,
    sacks: &[(u64, u64)],
) {
    let mut blocks = [(0, 0); 3];
    blocks[..sacks.len()].copy_from_slice(sacks);
    board.update(&Ack { ack, sacks: blocks, blocks: sacks.len() as u8, ..Ack::default() });
    order.on_ack(Time(at), ack, board, true, &Delivery::default());
}

#[test]
fn a_delivered_segment_marks_earlier_ones_lost() {
    let (mut order, mut board) = (five(), Scoreboard::default());
    receive(&mut board, &mut order, 11, &[]);
    assert_eq!(order.lost_bytes(), 0, "in order");
    receive(&mut board, &mut order, 11, &[(31, 41)]);
    assert_eq!(order.lost_bytes(), 20);
    assert_eq!(
        (order.take_lost(), order.take_lost(), order.take_lost()),
        (Some((11, 21)), Some((21, 31)), None)
    );
}

#[test]
fn a_segment_of_which_a_part_is_missing_is_lost() {
    let (mut order, mut board) = (five(), Scoreboard::default());
    receive(&mut board, &mut order, 1, &[(11, 15), (31, 41)]);
    assert_eq!(order.lost_bytes(), 30);
}

#[test]
fn the_reordering_window_delays_a_loss_by_a_quarter_of_the_least_round_trip() {
    let (mut order, mut board) =
        (RackState::default().with_parts(true, false, false), Scoreboard::default());
    (0..5).for_each(|i| order.sent(Time(i), 1 + 10 * i, 11 + 10 * i, false));
    receive(&mut board, &mut order, 1, &[(11, 21)]);
    // The round trip of the second is 99: the first is lost 99 + 24 after its transmission.
    assert_eq!((order.lost_bytes(), order.due()), (0, Time(123)));
    order.expire(Time(123), 1, &board);
    assert_eq!((order.take_lost(), order.due()), (Some((1, 11)), Time::NEVER));
    // Without patience the next one is lost at once.
    board.update(&Ack { ack: 1, sacks: [(31, 41), (0, 0), (0, 0)], blocks: 1, ..Ack::default() });
    order.on_ack(Time(104), 1, &board, false, &Delivery::default());
    assert_eq!((order.take_lost(), order.due()), (Some((21, 31)), Time::NEVER));
}

#[test]
fn an_ack_of_nothing_new_is_no_round_trip() {
    let (mut order, mut board) =
        (RackState::default().with_parts(true, false, false), Scoreboard::default());
    (0..5).for_each(|i| order.sent(Time(i), 1 + 10 * i, 11 + 10 * i, false));
    receive(&mut board, &mut order, 1, &[(11, 21)]);
    order.on_ack(Time(122), 1, &board, true, &Delivery::default());
    assert_eq!((order.lost_bytes(), order.due()), (0, Time(123)), "as before");
    order.on_ack(Time(123), 1, &board, true, &Delivery::default());
    assert_eq!((order.lost_bytes(), order.due()), (10, Time::NEVER), "the window has ended");
}

#[test]
fn a_segment_counts_as_lost_until_its_retransmission_is_delivered() {
    let (mut order, mut board) = (five(), Scoreboard::default());
    receive(&mut board, &mut order, 1, &[(11, 21)]);
    assert!(order.has_lost(1, &board));
    assert_eq!(order.take_lost(), Some((1, 11)));
    order.sent(Time(100), 1, 11, true);
    assert_eq!((order.lost_bytes(), order.has_lost(1, &board)), (0, true));
    let mut undone = order.clone();
    undone.unmark_lost();
    assert!(!undone.has_lost(1, &board), "it was late");
    // Too soon for an answer to the retransmission, which would show that the others are lost.
    receive_at(110, &mut board, &mut order, 21, &[]);
    assert!(!order.has_lost(21, &board));
    let (start, end) = order.take_last().unwrap();
    order.sent(Time(120), start, end, true);
    assert!(!order.has_lost(21, &board), "a probe repairs no loss");
}

#[test]
fn a_lost_retransmission_is_detected() {
    let (mut order, mut board) = (five(), Scoreboard::default());
    receive(&mut board, &mut order, 1, &[(11, 21)]);
    assert_eq!(order.take_lost(), Some((1, 11)));
    order.sent(Time(100), 1, 11, true);
    // Segments sent before the retransmission do not count.
    receive_at(110, &mut board, &mut order, 1, &[(11, 51)]);
    assert_eq!(order.lost_bytes(), 0);
    order.sent(Time(111), 51, 61, false);
    receive_at(211, &mut board, &mut order, 1, &[(11, 61)]);
    assert_eq!(order.take_lost(), Some((1, 11)), "a segment sent after it is delivered");
    // A delivered retransmission marks segments sent between as lost.
    order.sent(Time(212), 61, 71, false);
    order.sent(Time(213), 1, 11, true);
    receive_at(313, &mut board, &mut order, 61, &[]);
    assert_eq!(order.take_lost(), Some((61, 71)));
}

#[test]
fn a_retransmission_is_not_delivered_in_less_than_a_round_trip() {
    let (mut order, mut board) = (five(), Scoreboard::default());
    receive(&mut board, &mut order, 1, &[(11, 21)]);
    assert_eq!(order.take_lost(), Some((1, 11)));
    order.sent(Time(100), 51, 61, false);
    order.sent(Time(101), 1, 11, true);
    // 99 is the least round-trip time: at 199 the first transmission has come, late.
    receive_at(199, &mut board, &mut order, 51, &[]);
    assert_eq!(order.lost_bytes(), 0);
    let (mut order, mut board) = (five(), Scoreboard::default());
    receive(&mut board, &mut order, 1, &[(11, 21)]);
    assert_eq!(order.take_lost(), Some((1, 11)));
    order.sent(Time(100), 51, 61, false);
    order.sent(Time(101), 1, 11, true);
    receive_at(200, &mut board, &mut order, 51, &[]);
    assert_eq!(order.take_lost(), Some((51, 61)), "the retransmission overtook it");
}

#[test]
fn after_a_timeout_what_was_sent_a_round_trip_ago_is_lost() {
    let (mut order, board) = (five(), Scoreboard::default());
    order.rtt = Span(100);
    order.on_timeout(Time(102), 1, &board);
    let lost: Vec<_> = core::iter::from_fn(|| order.take_lost()).collect();
    assert_eq!(lost, [(1, 11), (11, 21), (21, 31)], "sent until 2");
    // The first segment is lost however late it was sent.
    order.sent(Time(103), 1, 11, true);
    order.on_timeout(Time(104), 1, &board);
    let lost: Vec<_> = core::iter::from_fn(|| order.take_lost()).collect();
    assert_eq!(lost, [(1, 11), (31, 41), (41, 51)]);
}

#[test]
fn a_timeout_takes_the_first_missing_segment_and_no_other_recent_one() {
    let (mut order, mut board) = (five(), Scoreboard::default());
    receive(&mut board, &mut order, 11, &[(21, 51)]);
    assert_eq!(order.take_lost(), Some((11, 21)));
    order.sent(Time(110), 11, 21, true);
    order.sent(Time(150), 51, 61, false);
    order.on_timeout(Time(200), 11, &board);
    assert_eq!((order.lost_bytes(), order.take_lost()), (10, Some((11, 21))));
}

#[test]
fn a_timeout_takes_no_retransmission_that_has_arrived() {
    let (mut order, mut board) = (five(), Scoreboard::default());
    receive(&mut board, &mut order, 11, &[(41, 51)]);
    while order.take_lost().is_some() {}
    for (at, start) in [(110, 31), (111, 11), (112, 21)] {
        order.sent(Time(at), start, start + 10, true);
    }
    receive_at(150, &mut board, &mut order, 21, &[]);
    order.on_timeout(Time(151), 21, &board);
    assert_eq!((order.lost_bytes(), order.take_lost()), (10, Some((21, 31))));
}

#[test]
fn late_deliveries_after_a_timeout_are_not_retransmitted() {
    let (mut order, mut board) = (five(), Scoreboard::default());
    order.on_timeout(Time(100), 1, &board);
    assert_eq!(order.lost_bytes(), 50, "no round-trip time is known");
    assert_eq!(order.take_lost(), Some((1, 11)));
    order.sent(Time(50), 1, 11, true);
    receive(&mut board, &mut order, 21, &[]);
    assert_eq!((order.lost_bytes(), order.take_lost()), (30, Some((21, 31))));
}

#[test]
fn a_search_from_the_first_transmission_agrees_with_a_binary_search() {
    for len in 0..70 {
        let range = |i| SentRange { start: i, end: i + 1, number: i, at: Time(i), repairs: false };
        let list: VecDeque<SentRange> = (0..len).map(range).collect();
        for limit in 0..=len + 1 {
            let holds = |sent: &SentRange| sent.start < limit;
            assert_eq!(count_first(&list, holds), list.partition_point(holds), "{limit} of {len}");
        }
    }
}
