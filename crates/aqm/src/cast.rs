//! Conversions to smaller number types. The name of each function says how it treats a value that
//! does not fit. Clippy rejects a plain `as` that may change a value, in the whole workspace.

/// Returns the integer part of `x`, `0` for negative values and NaN, `u64::MAX` for larger values.
#[inline]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
pub const fn trunc(x: f64) -> u64 {
    x as u64
}

/// Returns the low 32 bits of `x`, usually of a hash.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "only the low bits are used")]
pub const fn low32(x: u64) -> u32 {
    x as u32
}

/// Returns `x`, or `u64::MAX` if it does not fit.
#[inline]
pub fn saturate(x: u128) -> u64 {
    u64::try_from(x).unwrap_or(u64::MAX)
}

/// Returns `x`, or `u32::MAX` if it does not fit.
#[inline]
pub fn saturate32(x: u64) -> u32 {
    u32::try_from(x).unwrap_or(u32::MAX)
}

/// Returns `n` as a length or an index, or `usize::MAX`, which is no valid index, if it does not
/// fit.
#[inline]
pub fn index(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// Returns an index or a length of a table that has at most `u32::MAX` entries.
///
/// Only debug builds check that it fits, since this is called for every packet. The length is
/// limited where the table is created, or by memory: 2^32 packets take more than 100 GB.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "checked in debug builds")]
pub fn index32(i: usize) -> u32 {
    debug_assert!(u32::try_from(i).is_ok(), "a table has at most 2^32 - 1 entries");
    i as u32
}

/// Returns the number `n` of objects in memory as `u32`.
///
/// # Panics
/// If there are more than `u32::MAX` objects, which take more memory than there is.
#[inline]
pub fn number(n: usize) -> u32 {
    u32::try_from(n).expect("at most 2^32 - 1 of them fit into memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_saturates() {
        assert_eq!([-1.0, f64::NAN, 0.9, 1.0, 1e300].map(trunc), [0, 0, 0, 1, u64::MAX]);
        assert_eq!((saturate(7), saturate(1 << 64)), (7, u64::MAX));
        assert_eq!((saturate32(7), saturate32(1 << 32)), (7, u32::MAX));
        assert_eq!(low32(0x1_2345_6789), 0x2345_6789);
        assert_eq!((index(7), index32(7), number(7)), (7, 7, 7));
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    #[should_panic(expected = "at most 2^32 - 1")]
    fn too_many_are_refused() {
        number(1 << 32);
    }
}
