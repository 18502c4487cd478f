//! A scenario out of any bytes: refused in one line, or it reads back and runs.
#![no_main]

#[path = "../../crates/sim/tests/hostile/body.rs"]
#[allow(dead_code, reason = "the TCP target uses the rest")]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::scenario(bytes));
