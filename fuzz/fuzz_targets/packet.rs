//! Arbitrary bytes as packets of a live link: each is counted, nothing panics.
#![no_main]

#[path = "../../crates/live/tests/invalid_input/body.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::check_link_and_network(bytes));
