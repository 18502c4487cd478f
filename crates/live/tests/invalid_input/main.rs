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
use sojourn_live::offload::Segments;

fn env(name: &str) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Runs the body on `n` inputs; prints the input that fails.
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

/// TCP packet as a device with segmentation offload passes it; half of them have one wrong byte.
fn large_packet(rng: &mut Pcg64Mcg) -> Vec<u8> {
    let v4 = rng.next_u32().is_multiple_of(2);
    let (ip, kind) = if v4 { (20, 1) } else { (40, 4) };
    let (headers, payload) = (ip + 32, 1 + rng.next_u32() as usize % 3000);
    let mut packet = vec![0; 10 + headers + payload];
    rng.fill_bytes(&mut packet);
    packet[..2].copy_from_slice(&[1, kind | [0, 0x80][rng.next_u32() as usize % 2]]);
    let size = 1 + rng.next_u32() as usize % 1500;
    for (at, n) in [(2, headers), (4, size), (6, ip), (8, 16)] {
        packet[at..at + 2].copy_from_slice(&(n as u16).to_ne_bytes());
    }
    let length = (headers + payload - if v4 { 0 } else { 40 }) as u16;
    if v4 {
        packet[10] = 0x45;
        packet[12..14].copy_from_slice(&length.to_be_bytes());
        packet[16..20].copy_from_slice(&[0x40, 0, 64, 6]);
    } else {
        packet[10] = 0x60 | packet[10] & 15;
        packet[14..16].copy_from_slice(&length.to_be_bytes());
        packet[16] = 6;
    }
    packet[10 + ip + 12] = 0x80 | packet[10 + ip + 12] & 15;
    if rng.next_u32().is_multiple_of(2) {
        let at = rng.next_u32() as usize % 60;
        packet[at] = rng.next_u32() as u8;
    }
    packet
}

#[test]
fn large_packets_are_split_and_joined_without_panic() {
    for_each_input(4000, large_packet);
    let mut rng = Pcg64Mcg::seed_from_u64(2);
    let valid = |rng: &mut Pcg64Mcg| Segments::of(&large_packet(rng)).is_some();
    let valid = (0..500).filter(|_| valid(&mut rng)).count();
    assert!((300..490).contains(&valid), "{valid} of 500 are valid");
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
