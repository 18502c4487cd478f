//! Linux's arithmetic of CoDel: its clock and its reciprocal square root.

use crate::units::{Span, Time};

/// Nanoseconds per unit of time, as a power of two.
const SHIFT: u32 = 10;

/// Rounds a time down to a unit of 1.024 us.
pub(super) fn time(t: Time) -> Time {
    Time((t.0 >> SHIFT) << SHIFT)
}

/// Rounds a parameter, which tc passes in whole microseconds, down to a unit of 1.024 us.
pub(super) fn span(s: Span) -> Span {
    Span(((micros(s) * 1000) >> SHIFT) << SHIFT)
}

/// Returns whole microseconds. A multiplication by 2^64 / 1000, since the code of a division of 64
/// bits, which many small processors lack, is a tenth of the code of CoDel.
fn micros(s: Span) -> u64 {
    let share = u128::from(u64::MAX / 1000 + 1);
    let micros = (u128::from(s.0) * share) >> 64;
    u64::try_from(micros).expect("less than the span")
}

/// Returns `interval * rec_inv_sqrt`, rounded down to a unit of 1.024 us.
pub(super) fn fraction(interval: Span, rec_inv_sqrt: u16) -> Span {
    let units = (u128::from(interval.0 >> SHIFT) * u128::from(rec_inv_sqrt)) >> 16;
    Span(u64::try_from(units).expect("less than the interval") << SHIFT)
}

/// Returns the next approximation of `1 / sqrt(count)`: `x (3 - count x^2) / 2`, in fractions of
/// 2^32 that are rounded down at each step, with 16 bits in the result.
pub(super) fn newton_step(x: u16, count: u32) -> u16 {
    let x = u64::from(x) << 16;
    let square = (x * x) >> 32;
    let rest = (3u64 << 32).wrapping_sub(u64::from(count) * square);
    let next = (rest >> 2).wrapping_mul(x) >> 31;
    u16::try_from((next >> 16) & 0xffff).expect("16 bits") // higher bits are lost, as in the kernel
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_multiples_of_1024_ns() {
        assert_eq!([0, 1023, 1024, 5_000_000].map(|t| time(Time(t)).0), [0, 0, 1024, 4_999_168]);
        assert_eq!(span(Span::ms(5)), Span(4882 << 10));
        assert_eq!(span(Span(1_024_999)), Span(1000 << 10), "999 ns are lost first");
        for whole in [0, 1, 4_882, 999_999, 99_999_999, 100_000_000] {
            for rest in [0, 1, 999] {
                assert_eq!(micros(Span(whole * 1000 + rest)), whole);
            }
        }
    }

    #[test]
    fn newton_steps_follow_a_growing_count() {
        let mut x = u16::MAX; // 1 / sqrt(1), almost
        for count in 2..2_000u32 {
            x = newton_step(x, count);
            let exact = 65_536.0 / f64::from(count).sqrt();
            // The first step gives 0.5 in place of 0.707.
            let off = match count {
                2 => 0.3,
                ..7 => 0.03,
                _ => 0.01,
            };
            assert!((f64::from(x) / exact - 1.0).abs() < off, "{count}: {x}, {exact}");
        }
        assert_eq!(fraction(Span(97_656 << 10), u16::MAX), Span(97_654 << 10));
        assert_eq!(fraction(Span(97_656 << 10), 1 << 15), Span(48_828 << 10));
    }
}
