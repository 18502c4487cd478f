//! Random operations on a random discipline with random parameters, checked at every step.
#![no_main]

#[path = "../../crates/aqm/tests/check/cases.rs"]
#[allow(dead_code, reason = "the suite uses the rest")]
mod cases;
#[path = "../../crates/aqm/tests/check/ledger.rs"]
#[allow(dead_code, reason = "the suite uses the rest")]
mod ledger;
#[path = "../../crates/aqm/tests/check/ops.rs"]
#[allow(dead_code, reason = "the suite uses the rest")]
mod ops;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ops::life(bytes));
