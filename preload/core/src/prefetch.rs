//! Prefetching.

#![expect(unsafe_code, reason = "an instruction that the language does not have")]

/// Prefetches memory for writing. The address need not exist.
#[inline(always)]
pub fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing and faults at no address; a processor without this one takes it as no operation.
    unsafe {
        core::arch::asm!("prefetchw [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
