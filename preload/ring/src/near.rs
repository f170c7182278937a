//! Prefetching for the viewer, which has no `unsafe`.

const CACHE_LINE_BYTES: usize = 64;

/// Prefetches the cache line in which `what` begins, without waiting. A hint only: nothing is read.
#[inline]
pub fn fetch<T>(what: &T) {
    prefetch(std::ptr::from_ref(what).cast());
}

#[cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "std has no stable form of this hint")
)]
#[inline]
fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch changes nothing that a program can see, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Prefetches all cache lines of `what`, without waiting.
#[inline]
pub fn fetch_all<T>(what: &T) {
    let begin = std::ptr::from_ref(what).cast::<u8>();
    for offset in (0..size_of::<T>()).step_by(CACHE_LINE_BYTES) {
        prefetch(begin.wrapping_add(offset));
    }
}
