//! The sender alone, with acks made by hand and a congestion control that records its calls.

mod close;
mod ecn;
mod frto;
mod idle;
mod packets;
mod push;
mod rack;
mod recovery;
mod sack;
mod syn;
mod timing;
mod tlp;
mod undo;

use super::super::params::parse;
use super::*;
use crate::endpoint::cc::{CongestionSignal, ProcessedAck};
use crate::endpoint::common_params::CommonParams;
use RecoveryState::{Loss, Open, Recovery};
use sojourn_aqm::params::Setting::Text;

/// Call of a hook.
#[derive(Clone, Debug, PartialEq)]
enum Call {
    /// Bytes, flight, RTT sample, after a timeout.
    Acked(u64, u64, Option<u64>, bool),
    /// Flight, cause.
    Congestion(u64, CongestionSignal),
    /// RTT of the SYN.
    Established(Option<u64>),
    /// Ack, new bytes, ECN echo, next sequence number.
    Echo(u64, u64, u64, u64),
    Delivered(u64, u64),
    /// Delivered bytes, flight, state.
    Processed(u64, u64, RecoveryState),
    /// First byte, end, retransmission, was idle, state.
    Sent(u64, u64, bool, bool, RecoveryState),
    AppLimited(u64),
}

/// Control that keeps the window, halves it after a loss, and records its calls.
#[derive(Clone, Debug)]
struct Recorder {
    calls: Vec<Call>,
    fraction: bool,
    keeps: bool,
    reduces_again: bool,
    delivery: bool,
    within_window: bool,
    /// Segments that may still be sent, and the time of the next release.
    credit: u32,
    release: Time,
}

impl Recorder {
    fn take(&mut self) -> Vec<Call> {
        std::mem::take(&mut self.calls)
    }
}

impl CongestionControl for Recorder {
    const HOOKED: bool = true;

    type Params = ();

    fn new((): &(), _: &CommonParams, _: &mut dyn Random) -> Recorder {
        let (calls, credit, release) = (Vec::new(), u32::MAX, Time::NEVER);
        let (fraction, keeps, reduces_again) = (false, false, false);
        let (delivery, within_window) = (true, false);
        Recorder { calls, fraction, keeps, reduces_again, delivery, within_window, credit, release }
    }
    fn reset(&mut self) {
        self.release = Time::NEVER;
    }
    fn on_ack(&mut self, _: &mut Window, a: &NewDataAck) {
        self.calls.push(Call::Acked(a.bytes, a.flight, a.rtt.map(|r| r.0), a.after_timeout));
    }
    fn on_congestion(&mut self, _: Time, w: &Window, flight: u64, cause: CongestionSignal) -> u64 {
        self.calls.push(Call::Congestion(flight, cause));
        w.cwnd / 2
    }
    fn reacts_to_mark_fraction(&self) -> bool {
        self.fraction
    }
    fn reduces_for_loss_after_mark(&self) -> bool {
        self.reduces_again
    }
    fn keeps_window_when_idle(&self) -> bool {
        self.keeps
    }
    fn on_established(&mut self, _: Time, _: &Window, rtt: Option<Span>) {
        self.calls.push(Call::Established(rtt.map(|r| r.0)));
    }
    fn on_ecn_feedback(&mut self, ack: u64, bytes: u64, marked: u64, next: u64) {
        self.calls.push(Call::Echo(ack, bytes, marked, next));
    }
    fn recovers_within_window(&self) -> bool {
        self.within_window
    }
    fn uses_delivery_hooks(&self) -> bool {
        self.delivery
    }
    fn on_delivered(&mut self, _: Time, from: u64, to: u64) {
        self.calls.push(Call::Delivered(from, to));
    }
    fn on_ack_processed(&mut self, _: &mut Window, a: &ProcessedAck) {
        self.calls.push(Call::Processed(a.delivered, a.flight, a.state));
    }
    fn on_sent(&mut self, s: &SentSegment) {
        self.calls.push(Call::Sent(s.seq, s.end, s.retransmission, s.was_idle, s.state));
    }
    fn may_send(&mut self, _: Time, _: u64) -> bool {
        self.credit = self.credit.saturating_sub(1);
        self.credit > 0
    }
    fn release_time(&self) -> Time {
        self.release
    }
    fn pacing_delay(&self, now: Time) -> Span {
        if self.release == Time::NEVER { Span::ZERO } else { self.release.since(now) }
    }
    fn on_app_limited(&mut self, flight: u64) {
        self.calls.push(Call::AppLimited(flight));
    }
}

const MS: u64 = 1_000_000;

fn at(ms: u64) -> Time {
    Time(ms * MS)
}

struct Test {
    sender: RfcSender<Recorder>,
    out: Vec<Segment>,
}

impl Test {
    /// A sender of the profile rfc with segments of 1000 B and a window of ten. It sends its SYN at
    /// 0.
    fn opened(name: &str, settings: &[(&str, &'static str)]) -> Test {
        let fixed = [("profile", "rfc"), ("packet", "1040B"), ("initial_window", "10p")];
        let all = fixed.iter().chain(settings).map(|&(k, v)| (k, Text(v)));
        let mut rng = <sojourn_aqm::Pcg as rand_core::SeedableRng>::seed_from_u64(1);
        let sender = RfcSender::new(&parse(name, all).unwrap(), &(), &mut rng);
        let mut test = Test { sender, out: Vec::new() };
        test.sender.open(Time::ZERO, &mut test.out);
        test
    }

    /// As `opened`, with a SYN acknowledged after 100 ms; its calls and segments are forgotten.
    fn new(name: &str, settings: &[(&str, &'static str)]) -> Test {
        let mut test = Test::opened(name, settings);
        test.ack(100, 1, &[]);
        test.calls();
        test.sent();
        test
    }

    fn write(&mut self, ms: u64, bytes: u64) {
        self.sender.write(at(ms), bytes, &mut self.out);
    }

    fn ack(&mut self, ms: u64, ack: u64, blocks: &[(u64, u64)]) {
        self.receive(ms, Ack { ack, ..Ack::default() }, blocks);
    }

    fn receive(&mut self, ms: u64, mut ack: Ack, blocks: &[(u64, u64)]) {
        ack.sacks[..blocks.len()].copy_from_slice(blocks);
        ack.blocks = u8::try_from(blocks.len()).unwrap();
        self.sender.on_ack(at(ms), &ack, &mut self.out);
    }

    fn timer(&mut self, ms: u64) {
        self.sender.on_timer(at(ms), &mut self.out);
    }

    fn calls(&mut self) -> Vec<Call> {
        self.sender.control.take()
    }

    /// First bytes of the segments sent since the last call.
    fn sent(&mut self) -> Vec<u64> {
        self.out.drain(..).map(|s| s.seq).collect()
    }
}

/// RFC 5681 section 2: a duplicate ack comes while data is outstanding and repeats the highest ack.
#[test]
fn acks_with_nothing_outstanding_and_old_acks_are_no_duplicates() {
    for name in ["tahoe", "reno", "newreno"] {
        let mut t = Test::new(name, &[]);
        t.write(100, 3_000);
        t.ack(200, 3_001, &[]);
        t.ack(210, 3_001, &[]);
        assert_eq!(t.sender.dup_acks(), 0, "{name}: nothing is outstanding");
        t.write(220, 2_000);
        t.ack(230, 1_001, &[]);
        assert_eq!(t.sender.dup_acks(), 0, "{name}: an old ack");
        t.ack(240, 3_001, &[]);
        assert_eq!(t.sender.dup_acks(), 1);
    }
}

#[test]
fn rack_starts_a_recovery_for_a_loss_and_for_nothing_else() {
    let mut t = Test::new("sack", &[("rack", "true")]);
    t.write(100, 8_000);
    t.ack(200, 1_001, &[]);
    t.ack(210, 2_001, &[]);
    assert_eq!((t.sender.state, t.sender.window.cwnd), (Open, 10_000));
    assert!(!t.calls().iter().any(|call| matches!(call, Call::Congestion(..))));
    t.sent();
    t.ack(220, 2_001, &[(3_001, 4_001)]);
    assert_eq!((t.sender.state, t.sender.window.cwnd), (Recovery, 5_000));
    assert!(t.calls().contains(&Call::Congestion(6_000, CongestionSignal::Loss)));
    assert_eq!(t.sent(), [2_001]);
    t.ack(230, 2_001, &[(3_001, 6_001)]);
    assert_eq!(t.sender.window.cwnd, 5_000, "one reduction per recovery");
}

/// With the timeout of Linux the round trip of the SYN counts as any other: 200 ms are added to it.
#[test]
fn the_syn_gives_the_first_sample_of_the_timeout_in_use() {
    for (per_ack, rto) in [("false", 200), ("true", 230)] {
        let settings = [("rack", "true"), ("rtt_per_ack", per_ack), ("rto_min", "200ms")];
        let mut t = Test::opened("sack", &settings);
        t.ack(30, 1, &[]);
        assert_eq!(t.sender.rto(), Span::ms(rto), "{per_ack}");
    }
}

/// RFC 8985 section 6.2 step 5: the end of the reordering window moves with the round-trip time.
#[test]
fn the_reordering_timer_moves_and_its_expiry_is_no_timeout() {
    let mut t = Test::new("sack", &[("rack", "true"), ("reordering_window", "true")]);
    t.write(100, 3_000);
    t.ack(200, 1, &[(1_001, 2_001)]);
    assert_eq!(t.sender.timer(), at(225), "100 ms and a quarter");
    t.ack(210, 1, &[(1_001, 3_001)]);
    assert_eq!(t.sender.timer(), at(235), "110 ms and a quarter of the least");
    t.sent();
    t.timer(235);
    assert_eq!((t.sender.state, t.sender.stats().timeouts, t.sent()), (Recovery, 0, vec![1]));
}

/// RFC 3168 sections 6.1.1 and 6.1.5; RFC 8257 section 3.5 for a reaction to the fraction.
#[test]
fn new_data_is_ecn_capable_and_a_syn_or_a_retransmission_is_not() {
    for (ecn, fraction, expected) in [
        ("false", false, [false, false, false]),
        ("false", true, [false, false, false]),
        ("true", false, [false, true, false]),
        ("true", true, [true, true, true]),
    ] {
        let mut t = Test::opened("newreno", &[("ecn", ecn)]);
        t.sender.control.fraction = fraction;
        t.sender.open(Time::ZERO, &mut t.out);
        t.out.remove(0);
        t.ack(100, 1, &[]);
        t.write(100, 1_000);
        t.timer(1_100);
        let ect: Vec<bool> = t.out.iter().map(|s| s.ect).collect();
        assert_eq!(ect, expected, "{ecn} {fraction}");
        let kinds: Vec<_> = t.out.iter().map(|s| (s.syn, s.retransmission)).collect();
        assert_eq!(kinds, [(true, false), (false, false), (false, true)]);
    }
}

#[test]
fn a_control_sees_each_data_segment_and_each_ack_of_new_data() {
    let mut t = Test::opened("newreno", &[]);
    t.write(0, 0);
    t.write(0, 2_500);
    assert_eq!(t.calls(), [], "a SYN is no data, and before its ack no limit is known");
    t.ack(100, 1, &[]);
    let first = t.calls();
    assert_eq!(
        first,
        [
            Call::Established(Some(100 * MS)),
            Call::Sent(1, 1_001, false, true, Open),
            Call::Sent(1_001, 2_001, false, false, Open),
            Call::Sent(2_001, 2_501, false, false, Open),
        ]
    );
    t.ack(210, 1_001, &[]);
    assert_eq!(
        t.calls(),
        [
            Call::Echo(1_001, 1_000, 0, 2_501),
            Call::Delivered(1, 1_001),
            Call::Acked(1_000, 2_500, Some(110 * MS), false),
            Call::Processed(1_000, 1_500, Open),
            Call::AppLimited(1_500),
        ]
    );
    t.ack(220, 1, &[]);
    assert_eq!(t.calls()[..1], [Call::Processed(1_000, 1_500, Open)], "an old ack tells nothing");
    t.sender.control.delivery = false;
    t.receive(230, Ack { ack: 1_001, ece: true, ..Ack::default() }, &[]);
    assert_eq!(t.calls(), [Call::Echo(1_001, 0, 0, 2_501), Call::AppLimited(1_500)]);
}

#[test]
fn a_sender_is_limited_by_the_application_while_its_window_has_room() {
    for (bytes, limited) in [(9_000, true), (9_999, true), (10_000, false), (12_000, false)] {
        let mut t = Test::new("newreno", &[]);
        t.write(100, bytes);
        t.calls();
        t.write(100, 0);
        let expected = if limited { vec![Call::AppLimited(bytes)] } else { vec![] };
        assert_eq!(t.calls(), expected, "{bytes}");
    }
}

/// After a timeout everything outstanding is sent again, and an ack can cover more than was.
#[test]
fn an_ack_beyond_the_retransmitted_data_counts_the_whole_flight() {
    let mut t = Test::new("newreno", &[]);
    t.write(100, 5_000);
    t.timer(1_100);
    t.calls();
    assert_eq!((t.sender.state, t.sender.snd_nxt), (Loss, 1_001));
    t.ack(1_200, 4_001, &[]);
    assert!(t.calls().contains(&Call::Acked(4_000, 4_000, None, true)));
    t.ack(1_210, 5_001, &[]);
    assert!(t.calls().contains(&Call::Acked(1_000, 1_000, None, true)));
    assert_eq!((t.sender.state, t.sender.timer()), (Open, Time::NEVER));
}

#[test]
fn blocks_are_reported_once_and_above_the_ack() {
    for rack in ["false", "true"] {
        let mut t = Test::new("sack", &[("rack", rack)]);
        t.write(100, 8_000);
        t.calls();
        t.ack(200, 1, &[(4_001, 5_001)]);
        let calls = t.calls();
        assert_eq!(calls[..2], [Call::Echo(1, 0, 0, 8_001), Call::Delivered(4_001, 5_001)]);
        t.ack(210, 1_001, &[(501, 2_001), (3_001, 5_001)]);
        let delivered: Vec<_> =
            t.calls().into_iter().filter(|c| matches!(c, Call::Delivered(..))).collect();
        let parts = [(1, 1_001), (1_001, 2_001), (3_001, 4_001)];
        assert_eq!(delivered, parts.map(|(a, b)| Call::Delivered(a, b)), "{rack}");
    }
}

/// Bytes sent, without those that are held by the receiver or known to be lost.
#[test]
fn a_control_is_told_the_bytes_in_the_network() {
    for (name, rack, expected) in [
        ("newreno", "false", (1_000, 7_000)),
        ("sack", "false", (2_000, 6_000)),
        ("sack", "true", (2_000, 6_000)),
    ] {
        let mut t = Test::new(name, &[("rack", rack)]);
        t.write(100, 8_000);
        t.calls();
        t.ack(200, 1_001, &[(2_001, 3_001)]);
        let calls = t.calls();
        let ack = calls.iter().find_map(|c| match c {
            Call::Processed(delivered, flight, _) => Some((*delivered, *flight)),
            _ => None,
        });
        // RACK: 1001 is lost, and sent again before the flight is computed.
        assert_eq!(ack, Some(expected), "{name} {rack}");
    }
}

#[test]
fn the_pacer_holds_segments_and_its_timer_sends_without_a_timeout() {
    let mut t = Test::new("newreno", &[]);
    (t.sender.control.credit, t.sender.control.release) = (3, at(130));
    t.write(100, 5_000);
    assert_eq!((t.sent(), t.sender.timer()), (vec![1, 1_001], at(130)));
    (t.sender.control.credit, t.sender.control.release) = (2, Time::NEVER);
    t.timer(130);
    assert_eq!((t.sent(), t.sender.stats().timeouts), (vec![2_001], 0));
    let expiry = t.sender.timer();
    assert_eq!(expiry, at(100) + t.sender.rto());
    t.sender.control.credit = 9;
    t.sender.on_timer(expiry, &mut t.out);
    assert_eq!((t.sent()[0], t.sender.stats().timeouts), (1, 1), "at the time, not after it");
}

/// RFC 6298: (5.1) and (5.2), and Karn's algorithm.
#[test]
fn the_timer_runs_while_data_is_outstanding_and_one_segment_is_timed() {
    let mut t = Test::new("newreno", &[]);
    assert_eq!(t.sender.timer(), Time::NEVER, "the SYN is acknowledged");
    t.write(100, 3_000);
    assert_eq!(t.sender.rtt_segment, Some((1_001, at(100))), "the first of three");
    assert_eq!(t.sender.timer(), at(100) + t.sender.rto());
    t.ack(200, 501, &[]);
    assert!(t.sender.rtt_segment.is_some(), "not yet acknowledged as a whole");
    t.ack(210, 1_001, &[]);
    assert_eq!((t.sender.rtt_segment, t.sender.timer()), (None, at(210) + t.sender.rto()));
    t.write(220, 1_000);
    assert_eq!(t.sender.rtt_segment, Some((4_001, at(220))));
    t.timer(1_210);
    assert_eq!(t.sender.rtt_segment, None, "retransmission");
    t.ack(1_300, 3_001, &[]);
    assert_eq!(t.sender.rtt_segment, None, "retransmission, and no new data after a timeout");
    t.ack(1_310, 4_001, &[]);
    assert_eq!(t.sender.timer(), Time::NEVER);
}

#[test]
fn the_receive_window_limits_what_is_sent_and_may_be_filled() {
    for (name, rack) in [("newreno", "false"), ("sack", "false"), ("sack", "true")] {
        let mut t = Test::new(name, &[("rwnd", "4p"), ("rack", rack)]);
        t.write(100, 20_000);
        assert_eq!(t.sent(), [1, 1_001, 2_001, 3_001], "{name} {rack}");
        t.ack(200, 1_001, &[]);
        assert_eq!(t.sent(), [4_001], "{name} {rack}");
    }
}

/// RFC 5681 section 3.2 (2): the flight size leaves out the segments of limited transmit.
#[test]
fn limited_transmit_does_not_raise_the_threshold() {
    let mut t = Test::new("newreno", &[]);
    t.sender.window.cwnd = 10_500;
    t.write(100, 20_000);
    assert_eq!(t.sent().len(), 10);
    (0..3).for_each(|i| t.ack(200 + i, 1, &[]));
    assert_eq!(t.sent(), [10_001, 11_001, 1]);
    assert!(t.calls().contains(&Call::Congestion(10_000, CongestionSignal::Loss)));
}

/// The receiver has parts of two segments: nothing is lost, and there is room for one segment more,
/// which is limited transmit (RFC 3042).
#[test]
fn rack_sends_new_data_on_duplicate_acks_with_limited_transmit_alone() {
    for (limited, expected) in [("true", &[10_001][..]), ("false", &[])] {
        let mut t = Test::new("sack", &[("rack", "true"), ("limited_transmit", limited)]);
        t.write(100, 20_000);
        assert_eq!(t.sent().len(), 10, "{limited}");
        t.ack(200, 1, &[(1_501, 2_001), (2_501, 3_001)]);
        assert_eq!((t.sender.state, t.sender.dup_acks()), (Open, 1));
        assert_eq!(t.sent(), expected, "{limited}");
        t.ack(210, 1, &[(5_001, 10_001)]);
        assert_eq!((t.sender.state, t.sent()[0]), (Recovery, 1));
        t.ack(220, 1_001, &[]);
        assert!(!t.sent().is_empty(), "{limited}");
    }
}

#[test]
fn counters_and_sizes_are_those_of_the_segments() {
    let mut t = Test::opened("newreno", &[("initial_ssthresh", "64p")]);
    assert_eq!((t.out[0].syn, t.out[0].len, t.out[0].wire_bytes), (true, 0, 40));
    assert_eq!((t.sender.acked_bytes(), t.sender.done()), (0, false));
    t.ack(100, 1, &[]);
    t.write(100, 2_500);
    assert_eq!(t.out.iter().map(|s| s.wire_bytes).collect::<Vec<_>>(), [40, 1_040, 1_040, 540]);
    assert_eq!((t.sender.cwnd_packets(), t.sender.ssthresh_packets()), (10.0, 64.0));
    assert_eq!(t.sender.acked_bytes(), 0);
    t.ack(200, 1_501, &[]);
    assert_eq!(t.sender.acked_bytes(), 1_500);
    t.timer(1_300);
    t.timer(3_400);
    let stats = t.sender.stats();
    assert_eq!((stats.sent_packets, stats.retransmitted_packets, stats.timeouts), (6, 2, 2));
    assert_eq!((t.sender.cwnd_packets(), t.sender.ssthresh_packets()), (1.0, 5.0), "half of ten");
    t.ack(3_500, 2_501, &[]);
    assert_eq!((t.sender.acked_bytes(), t.sender.done()), (2_500, true));
}
