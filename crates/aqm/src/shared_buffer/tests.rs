use super::*;
use crate::random::Random;
use rand_core::SeedableRng;
use std::prelude::v1::*;

fn buffer(size: u64, alpha: f64, reserves: &[u64]) -> SharedBuffer {
    let reserves: Vec<Bytes> = reserves.iter().copied().map(Bytes).collect();
    SharedBuffer::new(Bytes(size), alpha, &reserves).unwrap()
}

/// Offers packets of `len` bytes to `ports` in turn until none is admitted.
fn saturate(buffer: &mut SharedBuffer, ports: usize, len: u32) {
    let mut admitted = true;
    while admitted {
        admitted = false;
        for port in 0..ports {
            if buffer.admits(port, len) {
                buffer.set_held(port, buffer.held_by(port) + u64::from(len));
                admitted = true;
            }
        }
    }
}

#[test]
fn saturated_ports_hold_what_the_paper_says() {
    for (alpha, n) in [(1.0, 1), (1.0, 3), (0.5, 2), (2.0, 8), (0.125, 7), (8.0, 4), (0.21, 1)] {
        let size = 4_000_000.0;
        let mut buffer = buffer(4_000_000, alpha, &[0; 8]);
        saturate(&mut buffer, n, 100);
        let share = alpha * size / (1.0 + alpha * n as f64);
        for port in 0..n {
            let held = buffer.held_by(port) as f64;
            // The last packet of a port is admitted with what was free before the last round.
            let within = 100.0 * (1.0 + alpha * n as f64);
            assert!((held - share).abs() <= within, "alpha {alpha}, {n} ports: {held}, {share}");
        }
        let free = size / (1.0 + alpha * n as f64);
        assert!((buffer.free() as f64 - free).abs() <= 100.0 * n as f64 * (1.0 + alpha));
    }
}

#[test]
fn a_port_holds_its_reserve_and_a_share_of_the_rest() {
    let mut buffer = buffer(1_000_000, 1.0, &[50_000; 4]);
    saturate(&mut buffer, 3, 100);
    // The pool has 800 kB, of which three ports take a quarter each.
    for port in 0..3 {
        assert!(buffer.held_by(port).abs_diff(250_000) <= 400, "{}", buffer.held_by(port));
    }
}

#[test]
fn a_reserve_is_kept_for_its_port() {
    let mut buffer = buffer(100_000, 10_000.0, &[0, 10_000]);
    saturate(&mut buffer, 1, 1000);
    assert_eq!(buffer.held_by(0), 90_000, "without a threshold one port takes the whole pool");
    saturate(&mut buffer, 2, 1000);
    assert_eq!([buffer.held_by(0), buffer.held_by(1)], [90_000, 10_000]);
    assert!(!buffer.admits(1, 1), "the reserve is full, and the pool");
    assert_eq!((buffer.held(), buffer.free()), (100_000, 0));
}

#[test]
fn a_burst_on_an_idle_port_is_absorbed_up_to_its_threshold() {
    // One port is saturated with alpha 1/8: 1/9 of the buffer, 8/9 are free. A burst on another
    // port then takes bytes until its queue is 1/8 of what is still free: 1/9 of that.
    let mut buffer = buffer(900_000, 0.125, &[0; 2]);
    saturate(&mut buffer, 1, 100);
    assert!(buffer.held_by(0).abs_diff(100_000) <= 100);
    let before = buffer.held_by(0);
    while buffer.admits(1, 100) {
        buffer.set_held(1, buffer.held_by(1) + 100);
    }
    assert!(buffer.held_by(1).abs_diff(800_000 / 9) <= 100, "{}", buffer.held_by(1));
    assert!(!buffer.admits(0, 100), "its threshold has become smaller");
    assert_eq!(buffer.held_by(0), before);
}

#[test]
fn a_packet_that_reaches_the_threshold_is_admitted_and_one_byte_more_is_not() {
    let mut buffer = buffer(1000, 0.5, &[0]);
    assert!(buffer.admits(0, 500) && !buffer.admits(0, 501));
    buffer.set_held(0, 200); // 800 are free
    assert!(buffer.admits(0, 200) && !buffer.admits(0, 201));
}

#[test]
fn peaks_start_anew_at_what_is_held() {
    let mut buffer = buffer(1000, 1.0, &[0, 0]);
    for (port, bytes) in [(0, 300), (1, 200), (0, 100), (1, 250)] {
        buffer.set_held(port, bytes);
    }
    let peaks = |buffer: &SharedBuffer| [buffer.peak(), buffer.peak_of(0), buffer.peak_of(1)];
    assert_eq!(peaks(&buffer), [500, 300, 250]);
    buffer.reset_peaks();
    assert_eq!(peaks(&buffer), [350, 100, 250]);
    assert_eq!(buffer.ports(), 2);
}

/// A plain model: sums over all ports at every question.
fn model(size: u64, alpha: f64, reserves: &[u64], held: &[u64], port: usize, len: u64) -> bool {
    let share = |port: usize, held: u64| held.saturating_sub(reserves[port]);
    let pool = size - reserves.iter().sum::<u64>();
    let used: u64 = held.iter().enumerate().map(|(port, held)| share(port, *held)).sum();
    let then = share(port, held[port] + len);
    let fits = used - share(port, held[port]) + then <= pool;
    then == 0 || (fits && then as f64 <= alpha * (pool - used) as f64)
}

#[test]
fn the_buffer_is_never_exceeded_and_decides_as_the_model() {
    for seed in 0..200 {
        let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(seed);
        let mut pick = |n: u64| u64::from(rng.below(n as u32));
        let n = 1 + pick(9) as usize;
        let size = 5_000 + pick(200_000);
        let alpha = [0.01, 0.125, 0.5, 1.0, 3.7, 64.0, 10_000.0][pick(7) as usize];
        let most = size / n as u64;
        let reserves: Vec<u64> = (0..n).map(|_| [0, pick(most)][pick(2) as usize]).collect();
        let mut buffer = buffer(size, alpha, &reserves);
        let mut held = vec![0; n];
        let mut decided = [0, 0];
        for _ in 0..2000 {
            let port = pick(n as u64) as usize;
            let len = [64, 1500, 1 + pick(9000)][pick(3) as usize];
            // Three arrivals per departure fill the buffer.
            if pick(4) == 0 {
                held[port] -= len.min(held[port]);
            } else {
                let admitted = buffer.admits(port, len as u32);
                assert_eq!(admitted, model(size, alpha, &reserves, &held, port, len));
                decided[usize::from(admitted)] += 1;
                held[port] += if admitted { len } else { 0 };
            }
            buffer.set_held(port, held[port]);
            let sum: u64 = held.iter().sum();
            assert!(sum <= size && sum == buffer.held(), "seed {seed}: {sum} of {size}");
        }
        assert!(decided.iter().all(|n| *n > 50), "seed {seed}: {decided:?}");
    }
}

#[test]
fn bad_buffers_are_refused_with_the_parameter() {
    let refused = |size, alpha, reserves: &[u64]| {
        let reserves: Vec<Bytes> = reserves.iter().copied().map(Bytes).collect();
        SharedBuffer::new(Bytes(size), alpha, &reserves).unwrap_err().to_string()
    };
    assert!(refused(0, 1.0, &[0]).starts_with("size: "));
    assert!(refused(1 << 60, 1.0, &[0]).starts_with("size: "));
    for alpha in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(refused(1000, alpha, &[0]).starts_with("alpha: "));
    }
    assert_eq!(refused(1000, 1.0, &[]), "a shared buffer has at least one port");
    let text = refused(1000, 1.0, &[600, 600]);
    assert_eq!(text, "reserve: 1200B in all exceed the buffer of 1kB");
    assert!(refused(1000, 1.0, &[u64::MAX, 600]).starts_with("reserve: "));
}
