//! Cache prefetch: with many flows, the state of the next one is rarely in the cache.

/// Prefetch all cache lines of `thing`. Affects speed only; a no-op on architectures other than
/// x86-64.
#[inline]
pub(crate) fn prefetch<T: ?Sized>(thing: &T) {
    prefetch_start(thing, size_of_val(thing));
}

/// Prefetch the cache lines of the first `bytes` bytes of `thing`. As [`prefetch`].
#[inline]
#[allow(unsafe_code)]
pub(crate) fn prefetch_start<T: ?Sized>(thing: &T, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        for offset in (0..bytes).step_by(64) {
            let at = std::ptr::from_ref(thing).cast::<i8>().wrapping_add(offset);
            // SAFETY: a prefetch has no architectural effect and cannot fault, whatever the
            // address; SSE is part of every x86-64.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(at) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (thing, bytes);
}
