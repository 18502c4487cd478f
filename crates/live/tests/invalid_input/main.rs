//! Fuzzing with seeded random bytes, using the body of the fuzz target.
//!
//! `SOJOURN_SEED` sets the seed, `SOJOURN_ROUNDS` multiplies the number of inputs.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "tests use small numbers"
)]
#![cfg(target_os = "linux")]

mod body;

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

fn env(name: &str) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Run the body on `n` inputs; prints the input that fails.
fn for_each_input(n: u64, mut input: impl FnMut(&mut Pcg64Mcg) -> Vec<u8>) {
    let mut rng = Pcg64Mcg::seed_from_u64(env("SOJOURN_SEED"));
    for _ in 0..n * env("SOJOURN_ROUNDS") {
        let bytes = input(&mut rng);
        if let Err(e) = std::panic::catch_unwind(|| body::check_link_and_network(&bytes)) {
            eprintln!("failed: {bytes:?}");
            std::panic::resume_unwind(e);
        }
    }
}

/// Random bytes with packets that start like IP packets.
fn almost_valid_packets(rng: &mut Pcg64Mcg) -> Vec<u8> {
    let mut out = Vec::new();
    for _ in 0..1 + rng.next_u32() % 30 {
        let len = 20 + rng.next_u32() % 80;
        let mut packet = vec![0; len as usize];
        rng.fill_bytes(&mut packet);
        if rng.next_u32().is_multiple_of(2) {
            packet[0] = 0x40 | (5 + rng.next_u32() % 3) as u8;
            packet[2..4].copy_from_slice(&(len as u16 - (rng.next_u32() % 2) as u16).to_be_bytes());
            let sum = rng.next_u32() % 4;
            packet[9] = [6, 17, 1, packet[9]][sum as usize];
        } else if len >= 40 {
            packet[0] = 0x60 | packet[0] & 15;
            packet[4..6].copy_from_slice(&(len as u16 - 40).to_be_bytes());
            packet[6] = [0, 43, 44, 51, 60, 6, 17, 58][rng.next_u32() as usize % 8];
            if let Some(length) = packet.get_mut(41) {
                *length %= 4;
            }
        }
        out.push(len as u8);
        out.extend(packet);
    }
    out
}

#[test]
fn almost_valid_packets_are_counted_without_panic() {
    for_each_input(2000, almost_valid_packets);
    let mut rng = Pcg64Mcg::seed_from_u64(1);
    let mut read = 0;
    for _ in 0..500 {
        let bytes = almost_valid_packets(&mut rng);
        read += usize::from(sojourn_live::ip::read(&bytes[1..=usize::from(bytes[0])], 0).is_ok());
    }
    assert!(
        (150..480).contains(&read),
        "valid and invalid packets are tried: {read} of 500 are valid"
    );
}

#[test]
fn arbitrary_bytes_do_not_panic() {
    for_each_input(2000, |rng| {
        let mut bytes = vec![0; rng.next_u32() as usize % 600];
        rng.fill_bytes(&mut bytes);
        bytes
    });
}
