//! Prefetching for the viewer, which has no `unsafe`.

/// Prefetches the cache line in which `what` begins, without waiting. A hint only: nothing is read.
#[cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "std has no stable form of this hint")
)]
#[inline]
pub fn fetch<T>(what: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch changes nothing that a program can see, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(what).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = what;
}
