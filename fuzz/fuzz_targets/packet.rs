//! Arbitrary bytes as packets of a live link: each is counted, nothing panics.
#![no_main]

#[path = "../../crates/live/tests/hostile/body.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::packets(bytes));
