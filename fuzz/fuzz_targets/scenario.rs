//! Scenarios from arbitrary bytes: rejected with a one-line error, or the scenario round-trips and
//! runs.
#![no_main]

#[path = "../../crates/sim/tests/invalid_input/body.rs"]
#[allow(dead_code, reason = "the TCP target uses the rest")]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::check_bytes(bytes));
