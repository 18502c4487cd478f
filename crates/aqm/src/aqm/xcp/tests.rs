//! Unit tests of XCP.

use super::*;
use crate::packet::TcpFlags;
use crate::units::Rate;
use std::prelude::v1::*;

/// Router of a link of 8 Mbit/s (1 MB/s), after a control interval in which `n` packets of 1000
/// bytes arrived, with a round-trip time of 100 ms and `x` between the packets of a flow.
fn router(n: u64, x: Span) -> Xcp {
    let mut xcp = Xcp::build(&XcpParams::default(), &Env::new(Rate(8_000_000))).unwrap();
    xcp.te = Span::ms(100);
    xcp.input_bytes = n as f64 * 1000.0;
    xcp.sum_x = n as f64 * x.as_secs();
    xcp.sum_rtt_x = xcp.sum_x * 0.1;
    xcp.end_interval();
    xcp
}

/// Feedback for a packet of 1000 bytes whose sender wishes `wish`.
fn feedback(xcp: &mut Xcp, x: Span, wish: i32) -> i32 {
    let mut header = XcpHeader { rtt: Span::ms(100), x, delta_throughput: wish };
    xcp.give(&mut header, 1000.0);
    header.delta_throughput
}

fn near(got: f64, expected: f64) -> bool {
    (got - expected).abs() <= 1e-9 * expected.abs().max(1.0)
}

#[test]
fn feedback_follows_the_spare_rate_and_the_persistent_queue() {
    // 50 packets in 100 ms are 500 kB/s of 1 MB/s: phi = 0.4 * 500 kB/s, above gamma y = 50 kB/s.
    let xcp = router(50, Span::ms(2));
    assert!(near(xcp.phi, 200_000.0) && near(xcp.avg_rtt, 0.1));
    assert!(near(xcp.positive.rest, 200_000.0) && near(xcp.negative.rest, 0.0));
    assert!(near(xcp.positive.per_unit, 200_000.0 / 0.1));
    // At the rate of the link with 10 kB queued: phi = -0.226 * 10 kB / 0.1 s; shuffled is the rest
    // of 0.1 MB/s.
    let mut full = router(100, Span::ms(1));
    assert!(near(full.phi, 0.0) && near(full.positive.rest, 100_000.0));
    full.persistent = 10_000.0;
    (full.input_bytes, full.sum_x, full.sum_rtt_x) = (100_000.0, 0.1, 0.01);
    full.end_interval();
    assert!(near(full.phi, -22_600.0));
    assert!(near(full.positive.rest, 77_400.0) && near(full.negative.rest, 100_000.0));
    // Nothing arrived: no feedback, and the mean round-trip time stays.
    full.end_interval();
    assert!(full.phi == 0.0 && full.positive.rest == 0.0 && near(full.avg_rtt, 0.1));
}

#[test]
fn packets_share_the_feedback_by_interval_and_the_loss_of_rate_by_size() {
    // 50 packets of x = 2 ms share 200 kB/s: 4 kB/s each. One of 4 ms gets twice as much.
    let mut xcp = router(50, Span::ms(2));
    assert_eq!(feedback(&mut xcp, Span::ms(2), i32::MAX), 4000);
    assert_eq!(feedback(&mut xcp, Span::ms(4), i32::MAX), 8000);
    assert!(near(xcp.positive.rest, 188_000.0));
    // No more than the rest is given out.
    xcp.positive.rest = 1000.0;
    assert_eq!(feedback(&mut xcp, Span::ms(4), i32::MAX), 1000);
    assert_eq!(feedback(&mut xcp, Span::ms(4), i32::MAX), 0);
}

#[test]
fn another_router_that_allows_less_is_obeyed() {
    // This router would give 4 kB/s; only 1 kB/s is allowed. The rest stays for other packets.
    let mut xcp = router(50, Span::ms(2));
    assert_eq!(feedback(&mut xcp, Span::ms(2), 1000), 1000);
    assert!(near(xcp.positive.rest, 199_000.0));
    // At full use both are shuffled: +1 and -1 kB/s per packet. With a wish of -3 kB/s, a further
    // 3 kB/s of the negative feedback is done.
    let mut full = router(100, Span::ms(1));
    assert_eq!(feedback(&mut full, Span::ms(1), i32::MAX), 0);
    assert!(near(full.negative.rest, 99_000.0));
    assert_eq!(feedback(&mut full, Span::ms(1), -3000), -3000);
    assert!(near(full.negative.rest, 95_000.0) && near(full.positive.rest, 98_000.0));
}

#[test]
fn a_sender_without_a_round_trip_time_gets_no_feedback() {
    let mut xcp = router(50, Span::ms(2));
    let mut header = XcpHeader { delta_throughput: i32::MAX, ..XcpHeader::default() };
    xcp.give(&mut header, 1000.0);
    assert_eq!((header.delta_throughput, xcp.positive.rest), (0, 200_000.0));
}

#[test]
fn intervals_begin_with_the_first_packet_and_follow_the_round_trip_time() {
    use crate::fifo::SingleFifo;
    struct Half;
    impl crate::Random for Half {
        fn uniform(&mut self) -> f64 {
            0.5
        }
    }
    let mut xcp = Xcp::build(&XcpParams::default(), &Env::new(Rate(8_000_000))).unwrap();
    let (mut fifo, mut rng, mut dropped) = (SingleFifo::default(), Half, vec![]);
    let mut marks = crate::Marks::default();
    let now = Time::ZERO + Span::s(7);
    let mut context = Context { now, rng: &mut rng, dropped: &mut dropped, marks: &mut marks };
    xcp.on_update(now, &QueueView::single(&mut fifo));
    let header = XcpHeader { rtt: Span::ms(80), x: Span::ms(8), delta_throughput: i32::MAX };
    let packet = Packet { len: 1000, ..Packet::default() }.with_xcp(header);
    xcp.on_enqueue(&mut context, &mut QueueView::single(&mut fifo), &packet);
    assert_eq!(xcp.te_end, now + Span::ms(50), "50 ms times 0.8 + 0.4 / 2");
    fifo.push(packet);
    xcp.on_update(now + Span::ms(50), &QueueView::single(&mut fifo));
    assert_eq!((xcp.te, xcp.te_end), (Span::ms(80), now + Span::ms(130)));
    // A thousand bytes in 50 ms leave 980 kB/s: the packet gets all of 0.4 times that.
    let sent = xcp.on_dequeue(&mut context, &mut QueueView::single(&mut fifo), false).unwrap();
    assert_eq!(sent.xcp().unwrap().delta_throughput, 392_000);
    assert!(sent.tcp.has(TcpFlags::XCP) && xcp.positive.rest == 0.0);
    // A day without packets ends at once, without feedback.
    let day = now + Span::s(86_400);
    xcp.on_update(day, &QueueView::single(&mut fifo));
    assert!(xcp.te_end > day && xcp.te_end.since(day) <= Span::ms(80) && xcp.phi == 0.0);
    assert!(xcp.tq_end > day && xcp.persistent == 0.0);
}
