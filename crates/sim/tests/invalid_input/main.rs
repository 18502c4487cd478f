//! Fuzzing of scenarios with seeded random bytes, using the body of the fuzz target.
//!
//! `SOJOURN_SEED` sets the seed, `SOJOURN_ROUNDS` multiplies the number of inputs.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "tests use small numbers"
)]

mod body;
mod tcp;
mod types;

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

fn env(name: &str) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Runs `body` on `n` inputs; prints the input that fails.
fn for_each_input(n: u64, body: fn(&[u8]), mut input: impl FnMut(&mut Pcg64Mcg) -> Vec<u8>) {
    let mut rng = Pcg64Mcg::seed_from_u64(env("SOJOURN_SEED"));
    for _ in 0..n * env("SOJOURN_ROUNDS") {
        let bytes = input(&mut rng);
        if let Err(e) = std::panic::catch_unwind(|| body(&bytes)) {
            eprintln!("failed: {bytes:?}\n{}", str::from_utf8(&bytes).unwrap_or("(not text)"));
            std::panic::resume_unwind(e);
        }
    }
}

#[test]
fn the_valid_scenario_is_accepted() {
    let text = body::valid_scenario().to_string();
    assert!(sojourn_sim::Scenario::from_json(&text).is_ok());
    body::check_bytes(text.as_bytes());
}

#[test]
fn changed_scenarios_run_or_give_a_one_line_error() {
    for_each_input(3000, body::check_bytes, |rng| {
        let mut bytes = vec![0; 40];
        rng.fill_bytes(&mut bytes);
        bytes[0] %= 32;
        bytes
    });
}

#[test]
fn tcp_settings_over_lossy_links_run_or_give_a_one_line_error() {
    for_each_input(600, tcp::check_settings, |rng| {
        let mut bytes = vec![0; 120];
        rng.fill_bytes(&mut bytes);
        bytes
    });
}

#[test]
fn broken_text_gives_a_one_line_error() {
    let good = body::valid_scenario().to_string().into_bytes();
    for_each_input(3000, body::check_bytes, |rng| {
        let mut bytes = good.clone();
        for _ in 0..1 + rng.next_u32() % 4 {
            let at = rng.next_u32() as usize % bytes.len();
            match rng.next_u32() % 4 {
                0 => bytes[at] = rng.next_u32() as u8,
                1 => bytes.truncate(at.max(1)),
                2 => bytes.insert(at, b"{}[]\",:0\\\n"[rng.next_u32() as usize % 10]),
                _ => drop(bytes.remove(at)),
            }
            if bytes.is_empty() {
                break;
            }
        }
        bytes
    });
}

#[test]
fn arbitrary_bytes_give_a_one_line_error() {
    for_each_input(1000, body::check_bytes, |rng| {
        let mut bytes = vec![0; rng.next_u32() as usize % 300];
        rng.fill_bytes(&mut bytes);
        if let Some(first) = bytes.first_mut() {
            *first |= 32;
        }
        bytes
    });
    // Deep nesting must not exhaust the stack.
    let deep = "[".repeat(200_000);
    body::check_bytes(deep.as_bytes());
    body::check_bytes(b"");
}
