//! Steps of PowerTCP by hand: a sender at 100 Gbit/s with a round-trip time of 10 us, so that a
//! link of 100 Gbit/s has 125,000 bytes in flight.

use super::super::RecoveryState;
use super::super::testing::{Delivery, deliver};
use super::*;
use crate::endpoint::telemetry::testing::{hop, path};

const WINDOW: Window = Window { cwnd: 1, ssthresh: u64::MAX, mss: 1_000 };

fn powertcp(variant: PowerTcpVariant) -> PowerTcp {
    let params = PowerTcpParams {
        variant,
        max_rate: Some(Rate(100_000_000_000)),
        base_rtt: Some(Span::us(10)),
        ..PowerTcpParams::default()
    };
    let mut rng = <sojourn_aqm::Pcg as rand_core::SeedableRng>::seed_from_u64(1);
    let mut p = PowerTcp::new(&params, &CommonParams::default(), &mut rng);
    p.on_established(Time(1), &WINDOW, Some(Span::us(12)));
    p
}

/// Rate in Mbit/s after an ack up to `acked` with telemetry of these links, when `next` is sent
/// next.
fn ack(p: &mut PowerTcp, acked: u64, next: u64, hops: &[HopTelemetry]) -> f64 {
    p.on_telemetry(Time(1), &mut WINDOW.clone(), &path(hops), [acked, next]);
    (p.rate_bps() / 1e4).round() / 1e2
}

#[test]
fn the_rate_follows_the_power_of_the_most_loaded_link() {
    let mut p = powertcp(PowerTcpVariant::Int);
    let first = [hop(100, 10, 0, 0), hop(400, 11, 0, 0)];
    assert_eq!(ack(&mut p, 1_001, 50_001, &first), 100_000.0, "the first ack");
    // In 5 us, 62,500 bytes are sent and 25,000 are added to the queue: 140 Gbit/s arrive. Power
    // 1.4 (25,000 + 125,000) / 125,000 = 1.68. The other link has half of its rate: 0.5. P = (1 +
    // 1.68) / 2; 0.9 (100 G / (1.34 / 0.95) + 150 M) + 10 G.
    let links = [hop(100, 15, 62_500, 25_000), hop(400, 16, 62_500, 0)];
    assert_eq!(ack(&mut p, 2_001, 60_001, &links), 73_940.97);
    assert!((p.power() - 1.34).abs() < 1e-12);
    assert_eq!(p.rate.reference(), p.rate_bps());
    // A queue that empties: 5,000 bytes arrive in 5 us, counted as half of the rate. Power 0.5 x
    // (0 + 1): P = 1.34 / 2 + 0.25 = 0.92; 0.9 (73,940.97 / (0.92 / 0.95) + 150) + 7,394.10.
    let links = [hop(100, 20, 92_500, 0), hop(400, 21, 62_500, 0)];
    assert_eq!(ack(&mut p, 60_001, 70_001, &links), 76_245.98);
    assert!((p.power() - 0.92).abs() < 1e-12);
    assert!((p.rate.reference() / 1e6 - 73_940.970_149).abs() < 1e-6, "until 60,002");
    // A full link without a queue, for a round trip: 0.9 (73,940.97 x 0.95 + 150) + 7,394.10.
    let links = [hop(100, 30, 217_500, 0), hop(400, 31, 62_500, 0)];
    assert_eq!(ack(&mut p, 60_002, 80_001, &links), 70_748.63);
    assert_eq!((p.rate.reference(), p.power()), (p.rate_bps(), 1.0));
}

#[test]
fn theta_follows_round_trip_times() {
    let mut p = powertcp(PowerTcpVariant::Theta);
    let rate = |p: &mut PowerTcp, at_us: u64, rtt_us: u64, sequence| {
        p.on_ecn_feedback(sequence, 0, 0, 10 * sequence);
        p.on_rtt(Time(at_us * 1_000), Span::us(rtt_us));
        (p.rate_bps() / 1e4).round() / 1e2
    };
    // The first has no gradient: 10.5 / 10.5 = 1; 0.7 (100 G + 150 M) + 30 G is above the line.
    assert_eq!(rate(&mut p, 100, 10, 1), 100_000.0);
    assert!((p.power() - 1.0 / 1.05).abs() < 1e-12);
    // 2 us more in 4 us: 1.5 x 12 / 10.5, over 4 of 10 us. 0.7 (100 G / 1.2571 + 150 M) + 30 G.
    assert_eq!(rate(&mut p, 104, 12, 2), 85_786.82);
    assert!((p.power() - (0.6 / 1.05 + 0.4 * 1.5 * 12.0 / 10.5)).abs() < 1e-12);
    // At the same time: no gradient, no change.
    assert_eq!(rate(&mut p, 104, 15, 3), 85_786.82);
    // 3 us less in 4 us: 0.5 at least; T is 9 us now. 0.5 x 9 / 9.45.
    let before = p.power();
    rate(&mut p, 108, 9, 4);
    let expected = before * 5.0 / 9.0 + 0.5 / 1.05 * 4.0 / 9.0;
    assert!((p.power() - expected).abs() < 1e-12 && p.rate.base_rtt() == Span::us(9));
    assert_eq!(p.rate.reference(), 1e11, "until the ack beyond 10");
    rate(&mut p, 120, 9, 11);
    assert_eq!(p.rate.reference(), p.rate_bps());
}

#[test]
fn only_theta_measures_segments() {
    for (variant, uses) in [(PowerTcpVariant::Int, true), (PowerTcpVariant::Theta, false)] {
        let mut p = powertcp(variant);
        assert_eq!(p.uses_explicit_feedback(), uses);
        let mut w = WINDOW;
        let (sent, state) = (Time(50_000), RecoveryState::Open);
        for (seq, us) in [(1, 12), (1_001, 30)] {
            let rtt = Span::us(us);
            deliver(&mut p, &mut w, Delivery { seq, bytes: 1_000, sent, rtt, flight: 0, state });
        }
        assert_eq!(p.rate_bps() < 100e9, !uses, "{}", p.rate_bps());
        assert_eq!(w.cwnd, p.rate.window(1_000));
        let fresh = format!("{:?}", powertcp(variant));
        p.reset();
        p.on_established(Time(1), &WINDOW, Some(Span::us(12)));
        assert_eq!(format!("{p:?}"), fresh);
        let mut shown = vec![];
        p.inspect(&mut |name, value| shown.push((name, value)));
        assert_eq!((shown, p.unpaced_segments()), (vec![("rate_bps", 100e9), ("power", 1.0)], 0));
    }
}

#[test]
fn another_path_and_losses_change_nothing() {
    let mut p = powertcp(PowerTcpVariant::Int);
    ack(&mut p, 1, 5, &[hop(100, 10, 0, 0)]);
    ack(&mut p, 2, 5, &[hop(100, 20, 250_000, 0)]);
    let rate = p.rate_bps();
    assert!(rate < 60e9, "{rate}");
    ack(&mut p, 3, 5, &[hop(100, 15, 1, 0)]);
    let mut other = path(&[hop(100, 30, 5_000, 0)]);
    other.path = 9;
    p.on_telemetry(Time(1), &mut WINDOW.clone(), &other, [4, 5]);
    assert_eq!((p.rate_bps(), p.last.as_deref()), (rate, Some(&other)));
    let window = p.rate.window(1_000);
    assert_eq!(p.on_congestion(Time(5), &WINDOW, 0, CongestionSignal::Loss), window);
    assert_eq!((p.initial_window(Time(5), &WINDOW, None), p.rate_bps()), (window, rate));
}
