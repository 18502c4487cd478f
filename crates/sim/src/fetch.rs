//! Memory asked for before it is needed: with many flows, the next one is never in the cache.

/// Asks the processor for all of `thing`. Nothing depends on it but time; on processors for which
/// there is no way to ask, nothing happens.
#[inline]
#[allow(unsafe_code)]
pub fn fetch<T>(thing: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        for offset in (0..size_of::<T>()).step_by(64) {
            let at = std::ptr::from_ref(thing).cast::<i8>().wrapping_add(offset);
            // SAFETY: a prefetch gives nothing to the program, changes nothing and faults nowhere,
            // whatever the address; SSE is part of every x86-64.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(at) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = thing;
}
