//! Calls of a control of another crate, and the settings that it asks for.

use super::super::testing::processed;
use super::testing::{Calls, recorder};
use super::*;
use crate::endpoint::telemetry::testing::{hop, path};

fn control(uses_recovered: bool) -> (External, Calls) {
    let calls = Calls::default();
    let own = recorder(&calls, uses_recovered, ("gain", "1"));
    let mut rng = Pcg::seed_from_u64(1);
    (External::new(&own, &CommonParams::default(), &mut rng), calls)
}

/// Calls with their last word, a random number, left out.
fn without_random(calls: &[String]) -> Vec<&str> {
    calls.iter().map(|call| call.rsplit_once(' ').unwrap().0).collect()
}

const MSS: u64 = 1000;

const OPEN: RecoveryState = RecoveryState::Open;

fn acked() -> NewDataAck {
    let (at, bytes, flight) = (Time(5), MSS, 2 * MSS);
    NewDataAck { at, bytes, flight, rtt: None, srtt: None, after_timeout: false }
}

#[test]
fn calls_reach_the_control_and_its_answers_the_sender() {
    let (mut control, calls) = control(false);
    let mut window = Window { cwnd: 2 * MSS, ssthresh: 9 * MSS, mss: MSS };
    control.on_established(Time(3), &window, None);
    control.reset();
    assert_eq!(calls.taken(), ["on_established 3 2000 None", "reset"]);
    control.on_ack(&mut window, &acked());
    assert_eq!(window.cwnd, 2001);
    assert_eq!(control.on_congestion(Time(7), &window, 2468, CongestionSignal::Mark), 1234);
    let record = calls.taken();
    assert_eq!(without_random(&record), ["on_ack 1000", "on_congestion 7 Mark"]);
    assert_eq!(control.own_pacing_rate(), Some(125.0));
    let mut seen = vec![];
    control.inspect(&mut |name, value| seen.push((name, value)));
    assert_eq!(seen, [("own", 7.0)]);
}

#[test]
fn a_control_with_a_rate_paces_from_the_first_segment_on_and_keeps_its_window() {
    for paced in [true, false] {
        let (mut control, calls) = control(paced);
        let burst = if paced { 0 } else { pacer::INITIAL_BURST };
        assert_eq!(control.unpaced_segments(), burst);
        assert_eq!((control.keeps_window_when_idle(), control.paces_bursts()), (paced, !paced));
        let window = Window { cwnd: 2 * MSS, ssthresh: 9 * MSS, mss: MSS };
        assert_eq!(control.initial_window(Time(3), &window, None), 4 * MSS);
        assert!(calls.taken().is_empty());
    }
}

#[test]
fn telemetry_reaches_the_control_with_the_sequence_numbers() {
    let (mut control, calls) = control(false);
    let mut window = Window { cwnd: 2 * MSS, ssthresh: 9 * MSS, mss: MSS };
    let mut telemetry = path(&[hop(1, 4, 0, 0)]);
    telemetry.path = 7;
    control.on_telemetry(Time(5), &mut window, &telemetry, [1_001, 3_001]);
    assert_eq!(without_random(&calls.taken()), ["on_telemetry 5 1001 3001 7 1"]);
    assert_eq!(window.cwnd, 2 * MSS + 3);
}

#[test]
fn ecn_feedback_reaches_only_a_control_that_reacts_to_the_fraction_of_marks() {
    for used in [true, false] {
        let (mut control, calls) = control(used);
        assert_eq!((control.reacts_to_mark_fraction(), control.uses_ack_feedback()), (used, used));
        assert!(!control.uses_explicit_feedback(), "segments carry nothing");
        let mut window = Window { cwnd: 2 * MSS, ssthresh: 9 * MSS, mss: MSS };
        let (now, snd_una, snd_nxt) = (Time(5), 2_001, 3_001);
        let ack = MarkedAck { now, snd_una, snd_nxt, acked: 2_000, marked: 1_000 };
        control.on_marked_ack(&mut window, &ack);
        let expected = ["on_ecn_feedback 5 2001 3001 2000 1000"];
        assert_eq!(without_random(&calls.taken()), expected[..usize::from(used)]);
        assert_eq!(window.cwnd, 2 * MSS + if used { 5 } else { 0 });
    }
}

#[test]
fn deliveries_are_reported_in_recovery_as_well_and_only_where_they_are_used() {
    for used in [true, false] {
        let (mut control, calls) = control(used);
        let mut window = Window { cwnd: 2 * MSS, ssthresh: 9 * MSS, mss: MSS };
        let mut deliver = |control: &mut External, i: u64, ns, state| {
            let (seq, end) = (1 + i * MSS, 1 + (i + 1) * MSS);
            let now = Time(10 * i);
            let sent = SentSegment { now, seq, end, state, ..SentSegment::default() };
            control.on_sent(&sent);
            control.on_delivered(Time(ns), seq, end);
            control.on_ack_processed(&mut window, &processed(Time(ns), 0, MSS, state));
        };
        deliver(&mut control, 0, 100, RecoveryState::Recovery);
        deliver(&mut control, 1, 140, RecoveryState::Loss);
        let nothing = processed(Time(150), 0, MSS, RecoveryState::Loss);
        control.on_ack_processed(&mut window.clone(), &nothing);
        let rtts = ["100 1000 2000 Some(Span(100)) false", "140 1000 2000 Some(Span(130)) true"];
        let expected = rtts.map(|rtt| format!("on_delivered {rtt}"));
        let expected = if used { &expected[..] } else { &[] };
        let mut record = calls.taken();
        record.retain(|call| call.starts_with("on_delivered"));
        assert_eq!(without_random(&record), expected);
        control.reset();
        assert_eq!(calls.taken(), ["reset"]);
        let empty = format!("{:?}", RateEstimator::default());
        let segments = control.segments.as_ref().map(|segments| format!("{segments:?}"));
        assert_eq!(segments, used.then_some(empty));
    }
}

#[test]
fn rate_samples_come_with_every_ack_and_only_where_they_are_used() {
    for used in [true, false] {
        let (mut control, calls) = control(used);
        assert_eq!(control.keeps_window_when_idle(), used);
        let mut window = Window { cwnd: 2 * MSS, ssthresh: 9 * MSS, mss: MSS };
        let mut ack = |control: &mut External, ns: u64, segment: Option<u64>| {
            if let Some(i) = segment {
                control.on_delivered(Time(ns), 1 + i * MSS, 1 + (i + 1) * MSS);
            }
            control.on_ack_processed(&mut window, &processed(Time(ns), 0, MSS, OPEN));
            let mut record = calls.taken();
            record.retain(|call| call.starts_with("on_rate_sample"));
            record.pop().map(|call| call.rsplit_once(' ').unwrap().0.to_string())
        };
        let send = |control: &mut External, ns: u64, i: u64, was_idle: bool| {
            let (now, seq, end) = (Time(ns), 1 + i * MSS, 1 + (i + 1) * MSS);
            control.on_sent(&SentSegment { now, seq, end, was_idle, ..SentSegment::default() });
        };
        let of = |text: &str| used.then(|| format!("on_rate_sample {text}"));
        send(&mut control, 0, 0, true);
        control.on_app_limited(MSS);
        send(&mut control, 10, 1, false);
        let rate = "Some(10000000000.0) 100";
        assert_eq!(
            ack(&mut control, 101, Some(0)),
            of("101 1000 1000 1000 0 Some(9900990099.0) 101 [0, 1, 0] Some(Span(101))")
        );
        // The second one was sent while the application limited the sender, which is over.
        assert_eq!(
            ack(&mut control, 111, Some(1)),
            of("111 1000 1000 2000 0 Some(18018018018.0) 111 [1, 0, 0] Some(Span(101))")
        );
        // An ack that delivers nothing has no sample. At an even time the control limits itself.
        assert_eq!(ack(&mut control, 112, None), of("112 0 1000 2000 0 None 0 [0, 0, 0] None"));
        send(&mut control, 200, 2, true);
        assert_eq!(ack(&mut control, 201, None), of("201 0 1000 2000 0 None 0 [0, 1, 1] None"));
        let restarted = format!("300 1000 1000 3000 2000 {rate} [1, 1, 1] Some(Span(100))");
        assert_eq!(ack(&mut control, 300, Some(2)), of(&restarted));
        assert_eq!(ack(&mut control, 301, None), of("301 0 1000 3000 0 None 0 [0, 1, 0] None"));
    }
}

#[test]
fn a_copy_continues_with_the_same_random_numbers() {
    let (mut control, calls) = control(false);
    let mut window = Window { cwnd: 2 * MSS, ssthresh: 9 * MSS, mss: MSS };
    control.on_ack(&mut window, &acked());
    let first = calls.taken();
    let mut copy = control.clone();
    control.on_ack(&mut window, &acked());
    let second = calls.taken();
    copy.on_ack(&mut window, &acked());
    assert_eq!(calls.taken(), second);
    assert_ne!(first, second);
}

#[test]
fn the_end_of_a_recovery_is_reported_once_and_only_where_it_is_used() {
    for used in [true, false] {
        let (mut control, calls) = control(used);
        assert_eq!(control.uses_delivery_hooks(), used);
        let mut window = Window { cwnd: 2 * MSS, ssthresh: 9 * MSS, mss: MSS };
        let mut reports = |control: &mut External, ns, state| {
            let (now, delivered, flight) = (Time(ns), 0, 0);
            let ack = processed(now, delivered, flight, state);
            control.on_ack_processed(&mut window, &ack);
            calls.taken().iter().filter(|call| call.starts_with("on_recovered")).count()
        };
        let [open, fast, loss] =
            [RecoveryState::Open, RecoveryState::Recovery, RecoveryState::Loss];
        for (ns, state, number) in
            [(1, open, 0), (2, fast, 0), (3, fast, 0), (4, open, 1), (5, open, 0), (6, loss, 0)]
        {
            let expected = if used { number } else { 0 };
            assert_eq!(reports(&mut control, ns, state), expected, "{ns} ns");
        }
        control.reset();
        calls.taken();
        assert_eq!(reports(&mut control, 7, open), 0, "another connection");
    }
}

#[test]
fn parameters_are_equal_if_name_and_values_are() {
    let of = |key, value| recorder(&Calls::default(), false, (key, value));
    let one = of("gain", "1");
    assert_eq!(one, of("gain", "1"));
    assert_ne!(one, of("gain", "2"));
    assert_ne!(one, of("loss", "1"));
    assert_ne!(one, ExternalParams { name: "other", ..of("gain", "1") });
}
