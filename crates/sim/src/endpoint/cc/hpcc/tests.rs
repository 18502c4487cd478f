//! Steps of HPCC by hand: a sender at 100 Gbit/s with a round-trip time of 10 us, so that W0 is
//! 125,000 bytes.

use super::*;
use crate::endpoint::telemetry::testing::{hop, path};

const WINDOW: Window = Window { cwnd: 1, ssthresh: u64::MAX, mss: 1_000 };

fn hpcc(max_stage: u64) -> Hpcc {
    let params = HpccParams {
        max_stage,
        max_rate: Some(Rate(100_000_000_000)),
        base_rtt: Some(Span::us(10)),
        ..HpccParams::default()
    };
    let mut rng = <sojourn_aqm::Pcg as rand_core::SeedableRng>::seed_from_u64(1);
    let mut h = Hpcc::new(&params, &CommonParams::default(), &mut rng);
    h.on_established(Time(1), &WINDOW, Some(Span::us(12)));
    h
}

/// Rate in Mbit/s after an ack up to `acked` with telemetry of these links, when `next` is sent
/// next.
fn ack(h: &mut Hpcc, acked: u64, next: u64, hops: &[HopTelemetry]) -> f64 {
    h.on_telemetry(Time(1), &mut WINDOW.clone(), &path(hops), [acked, next]);
    (h.rate_bps() / 1e4).round() / 1e2
}

#[test]
fn the_rate_follows_the_most_loaded_link() {
    let mut h = hpcc(0);
    assert_eq!(ack(&mut h, 1_001, 50_001, &[hop(100, 10, 0, 0), hop(400, 11, 0, 0)]), 100_000.0);
    // In 5 us the first link sends 62,500 bytes: 100 Gbit/s. It has at least 25,000 bytes: u = 1 +
    // 0.2. The second one sends as much of its 400 Gbit/s. U = (1 + 1.2) / 2; 100 G / (1.1 / 0.95)
    // + 40 M.
    let links = [hop(100, 15, 62_500, 25_000), hop(400, 16, 62_500, 50_000)];
    h.last.as_mut().unwrap().clear();
    let first = path(&[hop(100, 10, 0, 30_000), hop(400, 11, 0, 10_000)]);
    h.last = Some(Box::new(first));
    assert_eq!(ack(&mut h, 2_001, 60_001, &links), 86_403.64);
    assert!((h.utilisation() - 1.1).abs() < 1e-12);
    // Another 10 us at 1.2: the ack reacts to the same reference.
    let links = [hop(100, 25, 187_500, 25_000), hop(400, 26, 187_500, 0)];
    assert_eq!(ack(&mut h, 3_001, 70_001, &links), 79_206.67);
    assert_eq!(h.rate.reference(), 1e11);
    // The ack of 50,001 covers what was sent at the first ack, not more.
    let links = [hop(100, 35, 312_500, 25_000), hop(400, 36, 312_500, 0)];
    assert_eq!(ack(&mut h, 50_001, 80_001, &links), 79_206.67);
    assert_eq!(h.rate.reference(), 1e11);
    let links = [hop(100, 45, 437_500, 25_000), hop(400, 46, 437_500, 0)];
    assert_eq!(ack(&mut h, 51_001, 90_001, &links), 79_206.67);
    assert!((h.rate.reference() / 1e6 - 79_206.666_667).abs() < 1e-6);
    // Half of the load without a queue: 79,206.67 / (0.5 / 0.95) + 40 is above the line rate.
    let links = [hop(100, 55, 500_000, 25_000), hop(400, 56, 437_500, 0)];
    h.last.as_mut().unwrap().clear();
    let last = path(&[hop(100, 45, 437_500, 0), hop(400, 46, 437_500, 0)]);
    h.last = Some(Box::new(last));
    assert_eq!(ack(&mut h, 52_001, 90_001, &links), 100_000.0);
}

#[test]
fn below_the_target_the_rate_grows_for_max_stage_round_trips() {
    let mut h = hpcc(2);
    h.rate.set(50e9, true);
    // 0.5 of the link, a reference per ack.
    let at = |h: &mut Hpcc, i: u64| {
        let links = [hop(100, 10 * i, 62_500 * i, 0)];
        ack(h, i * 10, i * 10, &links)
    };
    assert_eq!(at(&mut h, 1), 50_000.0, "the first ack");
    // U = 0.5; 50 G + 40 M twice, then 50.08 G / (0.5 / 0.95) + 40 M.
    assert_eq!([2, 3, 4].map(|i| at(&mut h, i)), [50_040.0, 50_080.0, 95_192.0]);
    assert_eq!(h.stage, 0);
    assert_eq!(at(&mut h, 5), 95_232.0);
}

#[test]
fn telemetry_of_another_path_or_out_of_order_changes_nothing() {
    let mut h = hpcc(0);
    ack(&mut h, 1, 5, &[hop(100, 10, 0, 0)]);
    ack(&mut h, 2, 5, &[hop(100, 20, 250_000, 0)]);
    let rate = h.rate_bps();
    assert!((rate - 47.54e9).abs() < 1.0 && h.utilisation() == 2.0, "{rate}");
    ack(&mut h, 3, 5, &[hop(100, 15, 1, 0)]);
    let mut other = path(&[hop(100, 30, 5_000, 0)]);
    other.path = 9;
    h.on_telemetry(Time(1), &mut WINDOW.clone(), &other, [4, 5]);
    assert_eq!((h.rate_bps(), h.utilisation()), (rate, 2.0));
    assert_eq!(h.last.as_deref(), Some(&other));
}

#[test]
fn the_window_follows_the_rate_and_a_loss_changes_nothing() {
    let mut h = hpcc(0);
    assert_eq!(h.initial_window(Time(1), &WINDOW, None), 125_000);
    h.rate.set(20e9, true);
    let mut window = WINDOW;
    h.on_ack_processed(&mut window, &ProcessedAck::default());
    assert_eq!(window.cwnd, 25_000);
    let on_loss = |h: &mut Hpcc, cause| h.on_congestion(Time(5), &WINDOW, 0, cause);
    assert_eq!(on_loss(&mut h, CongestionSignal::Loss), 25_000);
    assert_eq!(on_loss(&mut h, CongestionSignal::Timeout), 25_000);
    // 20 Gbit/s on the wire, 1460 of 1500 bytes payload.
    assert!((h.own_pacing_rate().unwrap() - 20e9 / 8.0 * 1460.0 / 1500.0).abs() < 1.0);
    assert!(h.uses_explicit_feedback() && h.keeps_window_when_idle() && !h.paces_bursts());
    let mut shown = vec![];
    h.inspect(&mut |name, value| shown.push((name, value)));
    assert_eq!((shown, h.unpaced_segments()), (vec![("rate_bps", 20e9), ("u", 1.0)], 0));
}

#[test]
fn a_new_connection_starts_afresh() {
    let mut h = hpcc(3);
    let fresh = format!("{h:?}");
    (1..5).for_each(|i| _ = ack(&mut h, 9 * i, 9 * i, &[hop(100, 10 * i, 40_000 * i, 9)]));
    h.reset();
    h.on_established(Time(1), &WINDOW, Some(Span::us(12)));
    assert_eq!(format!("{h:?}"), fresh);
}
