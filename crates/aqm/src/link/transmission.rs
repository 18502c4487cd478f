//! Time of a transmission.

use crate::units::{Rate, Span, Time};

/// Returns the end of a transmission of `len` bytes that starts at `at`. The remainder is carried
/// over, so that n packets take n times their exact time.
#[inline]
pub(super) fn transmission_end(at: Time, len: u32, rate: Rate, carry: &mut u64) -> Time {
    let owed = u64::from(len) * 8 * 1_000_000_000 + *carry;
    *carry = owed % rate.0;
    at + Span(owed / rate.0)
}
