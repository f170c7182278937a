//! Two words per thread, its state and the ROC-TX call that it forwards, without allocation or call: initial-exec by
//! hand on x86-64.
//!
//! Stable Rust has no option for the TLS model, and the default one of a shared object may allocate in
//! `__tls_get_addr` at a thread's first use.

#![expect(unsafe_code, reason = "thread-local storage by its address")]

#[cfg(target_arch = "x86_64")]
mod place {
    use core::arch::{asm, global_asm};

    global_asm!(
        ".pushsection .tbss,\"awT\",@nobits",
        ".globl roctop_collector_tls",
        ".hidden roctop_collector_tls",
        ".p2align 3",
        ".type roctop_collector_tls,@object",
        ".size roctop_collector_tls,16",
        "roctop_collector_tls:",
        ".zero 16",
        ".popsection",
    );

    /// The word at this byte of the thread's own block.
    #[inline(always)]
    fn read<const AT: usize>() -> usize {
        let value: usize;
        // SAFETY: reads eight bytes of this thread's own block, which the loader set up before the thread ran.
        unsafe {
            asm!(
                "mov {v}, qword ptr [rip + roctop_collector_tls@GOTTPOFF]",
                "mov {v}, qword ptr fs:[{v} + {at}]",
                v = out(reg) value,
                at = const AT,
                options(nostack, preserves_flags, readonly),
            );
        }
        value
    }

    #[inline(always)]
    fn write<const AT: usize>(value: usize) {
        // SAFETY: writes eight bytes of this thread's own block.
        unsafe {
            asm!(
                "mov {a}, qword ptr [rip + roctop_collector_tls@GOTTPOFF]",
                "mov qword ptr fs:[{a} + {at}], {v}",
                a = out(reg) _,
                v = in(reg) value,
                at = const AT,
                options(nostack, preserves_flags),
            );
        }
    }

    #[inline(always)]
    pub(crate) fn get() -> usize {
        read::<0>()
    }

    #[inline(always)]
    pub(crate) fn set(value: usize) {
        write::<0>(value);
    }

    /// Number, from 1, of the ROC-TX function whose recorded call this thread forwards; 0 for none.
    #[inline(always)]
    pub fn passing() -> usize {
        read::<8>()
    }

    /// Sets the function whose recorded call this thread forwards, 0 for none.
    #[inline(always)]
    pub fn set_passing(value: usize) {
        write::<8>(value);
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod place {
    use core::cell::Cell;

    thread_local!(static PLACE: Cell<usize> = const { Cell::new(0) });
    thread_local!(static PASSING: Cell<usize> = const { Cell::new(0) });

    #[inline]
    pub(crate) fn get() -> usize {
        PLACE.try_with(Cell::get).unwrap_or(0)
    }

    #[inline]
    pub(crate) fn set(value: usize) {
        let _ = PLACE.try_with(|place| place.set(value));
    }

    /// Number, from 1, of the ROC-TX function whose recorded call this thread forwards; 0 for none.
    #[inline]
    pub fn passing() -> usize {
        PASSING.try_with(Cell::get).unwrap_or(0)
    }

    /// Sets the function whose recorded call this thread forwards, 0 for none.
    #[inline]
    pub fn set_passing(value: usize) {
        let _ = PASSING.try_with(|place| place.set(value));
    }
}

pub(crate) use place::{get, set};
pub use place::{passing, set_passing};
