use super::*;

const MSS: u64 = 1_000;
const RTT: Span = Span::ms(100);

fn cubic() -> Cubic {
    Cubic::of(CubicParams::default(), 1)
}

/// Window after a loss at `cwnd` segments.
fn lost(cubic: &mut Cubic, cwnd: u64) -> Window {
    let mut w = Window { cwnd: cwnd * MSS, ssthresh: 10 * MSS, mss: MSS };
    w.ssthresh = cubic.on_congestion(Time::ZERO, &w, w.cwnd, CongestionSignal::Loss);
    w.cwnd = w.ssthresh;
    w
}

/// Segment sent at `ms`; `alone` if nothing else is in flight.
fn on_sent(ms: u64, alone: bool) -> SentSegment {
    let state = super::super::RecoveryState::Open;
    SentSegment {
        now: Time(ms * 1_000_000),
        seq: 1,
        end: 1001,
        retransmission: false,
        padding: 0,
        was_idle: alone,
        state,
    }
}

/// Ack of one segment with `flight` bytes in flight.
fn acked(now: Time, flight: u64, rtt: Span) -> NewDataAck {
    NewDataAck { at: now, bytes: MSS, flight, rtt: None, srtt: Some(rtt), after_timeout: false }
}

/// Handles an ack at `now`; returns the time of the next one, at one window per round trip.
fn step(cubic: &mut Cubic, w: &mut Window, now: Time, rtt: Span) -> Time {
    cubic.on_ack(w, &acked(now, w.cwnd, rtt));
    now + Span(rtt.0 * MSS / w.cwnd)
}

/// Handles acks at one window per round trip for `ms` from `from`; returns the window in
/// segments.
fn play(cubic: &mut Cubic, w: &mut Window, from: u64, ms: u64, rtt: Span) -> f64 {
    let end = Time((from + ms) * 1_000_000);
    let mut now = Time(from * 1_000_000);
    while now < end {
        now = step(cubic, w, now, rtt);
    }
    w.cwnd as f64 / MSS as f64
}

#[test]
fn window_follows_the_cubic_function() {
    // W_max = 100, 70 after the loss: K = cbrt(30 / 0.4) = 4.217 s, and W(K) = 100.
    let mut c = cubic();
    let mut w = lost(&mut c, 100);
    assert_eq!(w.cwnd, 70 * MSS);
    let k = libm::cbrt(75.0);
    assert!((k - 4.217).abs() < 0.001);
    let mut at = 0;
    for ms in [1_000, 2_000, 3_000, 4_217, 5_000, 6_000, 8_000] {
        // At an RTT of 200 ms, Reno is slower throughout.
        let got = play(&mut c, &mut w, at, ms - at, Span::ms(200));
        let d = ms as f64 / 1e3 - k;
        let curve = 100.0 + 0.4 * d * d * d;
        // The target is one round trip ahead and is reached one round trip later.
        assert!((got - curve).abs() < 0.02 * curve, "{ms} ms: {got}, not {curve}");
        at = ms;
    }
}

#[test]
fn in_linux_the_window_follows_the_cubic_function_in_whole_segments() {
    let params = CubicParams { variant: CubicVariant::Linux, ..CubicParams::default() };
    let mut c = Cubic::of(params, 1);
    let mut w = lost(&mut c, 100);
    let (k, mut at) = (libm::cbrt(75.0), 0);
    for ms in [1_000, 2_000, 3_000, 4_217, 5_000, 6_000, 8_000] {
        let got = play(&mut c, &mut w, at, ms - at, Span::ms(200));
        let d = ms as f64 / 1e3 - k;
        let curve = 100.0 + 0.4 * d * d * d;
        assert!((got - curve).abs() < 0.05 * curve, "{ms} ms: {got}, not {curve}");
        at = ms;
    }
}

#[test]
fn fractions_of_a_byte_and_acks_of_several_segments_count() {
    // Long after the plateau a window grows by half a segment per segment: here by half a byte.
    let params = CubicParams { reno_friendly: false, ..CubicParams::default() };
    let mut c = Cubic::of(params, 1);
    let mut w = Window { cwnd: 10, ssthresh: 1, mss: 1 };
    let mut window_after = |bytes| {
        let started_at = Time::ZERO;
        c.stage = Some(Epoch { started_at, k: 0.0, w_max: 10.0, w_est: 10.0 });
        let ack = NewDataAck { bytes, ..acked(Time(60_000_000_000), w.cwnd, RTT) };
        c.on_ack(&mut w, &ack);
        w.cwnd
    };
    assert_eq!([1, 1, 1, 1, 2].map(&mut window_after), [10, 11, 11, 12, 13]);
    // The Reno estimate grows by alpha / 7 = 0.0756 segments per segment.
    let mut c = cubic();
    let mut w = lost(&mut c, 10);
    let ack = NewDataAck { bytes: 2 * MSS, ..acked(Time::ZERO, w.cwnd, RTT) };
    c.on_ack(&mut w, &ack);
    assert_eq!(w.cwnd, 7_151);
}

#[test]
fn small_windows_grow_as_reno() {
    // W_max = 10: the cubic function takes (3 / 0.4)^(1/3) = 1.96 s and is flat. A round trip
    // of 10 ms adds 0.529 segments until the window is 10 again, and one segment afterwards.
    let rtt = Span::ms(10);
    let mut c = cubic();
    let mut w = lost(&mut c, 10);
    let got = play(&mut c, &mut w, 0, 50, rtt);
    let slope = 3.0 * 0.3 / 1.7;
    assert!((got - (7.0 + 5.0 * slope)).abs() < 0.3, "{got}");
    let regained = play(&mut c, &mut w, 50, 10, rtt);
    let later = play(&mut c, &mut w, 60, 100, rtt);
    assert!((later - regained - 10.0).abs() < 0.5, "{regained} to {later}: one per round trip");
    // In RFC 8312 the slope stays 0.529 until the cubic function is larger.
    let mut c = Cubic::of(CubicParams { alpha_rises: false, ..CubicParams::default() }, 1);
    let mut w = lost(&mut c, 10);
    let regained = play(&mut c, &mut w, 0, 60, rtt);
    let later = play(&mut c, &mut w, 60, 100, rtt);
    assert!((later - regained - 10.0 * slope).abs() < 0.5, "{regained} to {later}");
    // Without the Reno-friendly region the window stays below the plateau.
    let params = CubicParams { reno_friendly: false, ..CubicParams::default() };
    let mut c = Cubic::of(params, 1);
    let mut w = lost(&mut c, 10);
    assert!(play(&mut c, &mut w, 0, 160, rtt) < 8.0);
}

#[test]
fn fast_convergence_lowers_w_max() {
    let mut c = cubic();
    lost(&mut c, 100);
    assert_eq!(c.w_max, 100.0);
    lost(&mut c, 80);
    assert_eq!(c.w_max, 80.0 * 0.85, "below the last W_max");
    lost(&mut c, 90);
    assert_eq!(c.w_max, 90.0, "above the last W_max");
    lost(&mut c, 90);
    assert_eq!(c.w_max, 90.0, "at the last W_max");
    let params = CubicParams { fast_convergence: false, ..CubicParams::default() };
    let mut c = Cubic::of(params, 1);
    lost(&mut c, 100);
    lost(&mut c, 80);
    assert_eq!(c.w_max, 80.0);
}

#[test]
fn slow_start_after_idle_ends_without_a_jump() {
    let rtt = Span::ms(10);
    let mut c = cubic();
    let mut w = lost(&mut c, 100);
    // On a short path the Reno estimate exceeds the cubic function.
    let grown = play(&mut c, &mut w, 0, 1_000, rtt);
    assert!(grown > 110.0 && w.ssthresh == 70 * MSS);
    c.on_sent(&on_sent(1_000, false));
    c.on_sent(&on_sent(60_000, true));
    w.cwnd = 10 * MSS; // RFC 5681 section 4.1
    let mut now = Time(60_000_000_000);
    let mut most = 0;
    for _ in 0..200 {
        let before = w.cwnd;
        now = step(&mut c, &mut w, now, rtt);
        most = most.max(w.cwnd - before);
    }
    assert!(w.cwnd > 70 * MSS && most == MSS, "{} by {most}", w.cwnd);
}

#[test]
fn marks_can_reduce_less_than_losses() {
    let params = CubicParams { beta_ecn: 0.85, ..CubicParams::default() };
    let mut c = Cubic::of(params, 1);
    let w = Window { cwnd: 100 * MSS, ssthresh: 10 * MSS, mss: MSS };
    assert_eq!(c.on_congestion(Time::ZERO, &w, 100 * MSS, CongestionSignal::Mark), 85 * MSS);
    assert_eq!(c.on_congestion(Time::ZERO, &w, 100 * MSS, CongestionSignal::Loss), 70 * MSS);
    assert_eq!(c.on_congestion(Time::ZERO, &w, MSS, CongestionSignal::Loss), 2 * MSS);
}

#[test]
fn after_a_timeout_the_curve_starts_at_its_plateau() {
    // Without the Reno-friendly region, which is larger for the first 3.6 s.
    let params = CubicParams { reno_friendly: false, ..CubicParams::default() };
    let mut c = Cubic::of(params, 1);
    let w = Window { cwnd: 100 * MSS, ssthresh: 10 * MSS, mss: MSS };
    let ssthresh = c.on_congestion(Time::ZERO, &w, 100 * MSS, CongestionSignal::Timeout);
    let mut w = Window { cwnd: ssthresh, ssthresh, mss: MSS };
    let got = play(&mut c, &mut w, 0, 3_000, RTT);
    assert!((got - (70.0 + 0.4 * 27.0)).abs() < 2.0, "K = 0 and W_max = 70: {got}");
}

#[test]
fn idle_time_and_unfilled_windows_do_not_grow_the_window() {
    let mut c = cubic();
    let mut w = lost(&mut c, 100);
    let before = play(&mut c, &mut w, 0, 1_000, RTT);
    c.on_sent(&on_sent(1_000, false));
    c.on_sent(&on_sent(61_000, true));
    let after = play(&mut c, &mut w, 61_000, 100, RTT);
    assert!(after < before + 5.0, "{before}, then {after}");
    let cwnd = w.cwnd;
    c.on_ack(&mut w, &acked(Time(62_000_000_000), cwnd / 2, RTT));
    assert_eq!(w.cwnd, cwnd);
}

#[test]
fn a_tie_with_the_reno_estimate_goes_to_the_curve() {
    // RFC 9438 section 4.3: the Reno-friendly region is where W_cubic(t) is below W_est. Here
    // an ack of one segment makes W_est equal to W_cubic(0); the curve is 0.4 higher in 1 s.
    let mut c = cubic();
    c.cwnd_prior = 20.0;
    let tie = 10.0 + c.alpha(10.0) / 10.0;
    c.stage = Some(Epoch { started_at: Time::ZERO, k: 0.0, w_max: tie, w_est: 10.0 });
    let mut w = Window { cwnd: 10 * MSS, ssthresh: 5 * MSS, mss: MSS };
    c.on_ack(&mut w, &acked(Time::ZERO, 10 * MSS, Span::s(1)));
    assert_eq!(w.cwnd, 10_045, "10 + (10.053 + 0.4 - 10) / 10 segments, not 10.053");
}

#[test]
fn in_linux_the_window_after_a_reduction_is_whole() {
    let params = CubicParams { variant: CubicVariant::Linux, ..CubicParams::default() };
    let mut c = Cubic::of(params, 1);
    assert!(c.grows_when_recovered() && !cubic().grows_when_recovered());
    assert_eq!(lost(&mut c, 15).ssthresh, 10 * MSS, "15 * 0.7 = 10.5");
    assert_eq!(lost(&mut c, 2).ssthresh, 2 * MSS, "at least two");
    // It grows by whole segments.
    let mut w = lost(&mut c, 15);
    play(&mut c, &mut w, 0, 1_000, RTT);
    assert!(w.cwnd > 10 * MSS && w.cwnd.is_multiple_of(MSS));
}
