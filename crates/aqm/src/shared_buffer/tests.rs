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
fn saturated_queues_with_alphas_of_their_own_hold_what_the_paper_says() {
    for (n, alphas) in [(1, [8.0, 1.0]), (4, [8.0, 1.0]), (3, [0.5, 0.125]), (8, [1.0, 1.0])] {
        let share = |alpha| QueueShare::new(alpha, Bytes(0));
        let shares = alphas.map(share).repeat(n);
        let mut buffer = SharedBuffer::with_shares(Bytes(4_000_000), &shares).unwrap();
        // Two arrivals per departure at every queue, until a queue that grew when the buffer was
        // empty has shrunk to its share.
        for _ in 0..60_000 {
            for queue in 0..2 * n {
                for _ in 0..2 {
                    if buffer.admits(queue, 100) {
                        buffer.set_held(queue, buffer.held_by(queue) + 100);
                    }
                }
                buffer.set_held(queue, buffer.held_by(queue).saturating_sub(100));
            }
        }
        let sum = n as f64 * (alphas[0] + alphas[1]);
        for (queue, share) in shares.iter().enumerate() {
            let held = buffer.held_by(queue) as f64;
            let expected = share.alpha * 4_000_000.0 / (1.0 + sum);
            // The packets of a round move the threshold by alpha times their bytes.
            let within = 100.0 * (2.0 + share.alpha * 2.0 * n as f64);
            assert!((held - expected).abs() <= within, "{alphas:?}, {n}: {held}, {expected}");
        }
    }
}

#[test]
fn a_queue_with_a_small_alpha_cannot_push_out_one_with_a_large_alpha() {
    // The low class of seven ports is saturated. The high class of the eighth still gets 8 times
    // what is then free.
    let classes = [QueueShare::new(8.0, Bytes(0)), QueueShare::new(0.5, Bytes(0))];
    let mut buffer = SharedBuffer::with_shares(Bytes(900_000), &classes.repeat(8)).unwrap();
    let mut admitted = true;
    while admitted {
        admitted = false;
        for queue in (1..14).step_by(2) {
            if buffer.admits(queue, 100) {
                buffer.set_held(queue, buffer.held_by(queue) + 100);
                admitted = true;
            }
        }
    }
    // 1 / (1 + 7 / 2) of the buffer is free, of which the high class takes 8 / 9.
    assert!(buffer.free().abs_diff(200_000) <= 2_000, "{}", buffer.free());
    let before = buffer.free() as f64;
    while buffer.admits(14, 100) {
        buffer.set_held(14, buffer.held_by(14) + 100);
    }
    assert!((buffer.held_by(14) as f64 - before * 8.0 / 9.0).abs() <= 1_000.0);
}

#[test]
fn the_queues_of_a_port_are_set_in_one_step() {
    let mut buffer = buffer(1000, 1.0, &[0; 4]);
    buffer.set_held_from(2, &[300, 200]);
    // A packet of 100 bytes joins one queue, and one of 200 leaves the other.
    buffer.set_held_from(2, &[400, 0]);
    let queues = [0, 1, 2, 3].map(|queue| buffer.held_by(queue));
    assert_eq!((buffer.held(), buffer.peak(), queues), (400, 500, [0, 0, 400, 0]));
    assert_eq!([buffer.peak_of(2), buffer.peak_of(3)], [400, 200]);
    assert_eq!(buffer.free(), 600);
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
    assert_eq!(buffer.queues(), 2);
}

/// A plain model: sums over all queues at every question.
fn model(size: u64, shares: &[QueueShare], held: &[u64], queue: usize, len: u64) -> bool {
    let share = |queue: usize, held: u64| held.saturating_sub(shares[queue].reserve.0);
    let pool = size - shares.iter().map(|share| share.reserve.0).sum::<u64>();
    let used: u64 = held.iter().enumerate().map(|(queue, held)| share(queue, *held)).sum();
    let then = share(queue, held[queue] + len);
    let fits = used - share(queue, held[queue]) + then <= pool;
    then == 0 || (fits && then as f64 <= shares[queue].alpha * (pool - used) as f64)
}

#[test]
fn the_buffer_is_never_exceeded_and_decides_as_the_model() {
    for seed in 0..200 {
        let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(seed);
        let mut pick = |n: u64| u64::from(rng.below(n as u32));
        let n = 1 + pick(9) as usize;
        let size = 5_000 + pick(200_000);
        let most = size / n as u64;
        let mut share = || {
            let alpha = [0.01, 0.125, 0.5, 1.0, 3.7, 64.0, 10_000.0][pick(7) as usize];
            QueueShare::new(alpha, Bytes([0, pick(most)][pick(2) as usize]))
        };
        let one = share();
        let same = seed % 2 == 0;
        let shares: Vec<QueueShare> = (0..n).map(|_| if same { one } else { share() }).collect();
        let mut buffer = SharedBuffer::with_shares(Bytes(size), &shares).unwrap();
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
                assert_eq!(admitted, model(size, &shares, &held, port, len));
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
        let shares = [QueueShare::new(1.0, Bytes(0)), QueueShare::new(alpha, Bytes(0))];
        let error = SharedBuffer::with_shares(Bytes(1000), &shares).unwrap_err();
        assert_eq!(error.path(), "alpha");
    }
    assert_eq!(refused(1000, 1.0, &[]), "a shared buffer has at least one queue");
    let text = refused(1000, 1.0, &[600, 600]);
    assert_eq!(text, "reserve: 1200B in all exceed the buffer of 1kB");
    assert!(refused(1000, 1.0, &[u64::MAX, 600]).starts_with("reserve: "));
}
