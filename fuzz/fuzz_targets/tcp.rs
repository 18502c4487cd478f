//! Random TCP settings over lossy links: rejected with a one-line error, or the scenario runs.
#![no_main]

#[path = "../../crates/sim/tests/invalid_input/body.rs"]
#[allow(dead_code, reason = "the suite uses the rest")]
mod body;
#[path = "../../crates/sim/tests/invalid_input/tcp.rs"]
mod tcp;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tcp::check_settings(bytes));
