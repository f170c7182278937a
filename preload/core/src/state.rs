//! The switch page: one word per back-end, tested by every call. A forked child reads zero in every word.
//!
//! States of a word: [`COLD`] (undecided until the first use), [`ON`], [`OFF`] (permanent). The kernel wipes the page
//! on a fork (`MADV_WIPEONFORK`), so a child starts cold without a handler. Where the kernel does not support this, an
//! atfork handler does it.

#![expect(unsafe_code, reason = "madvise and pthread_atfork")]

use roctop_ring::sync::{AtomicU64, Ordering};

/// Undecided until the first use.
pub const COLD: u64 = 0;
/// Recording may happen.
pub const ON: u64 = 1;
/// Permanently off in this process.
pub const OFF: u64 = 2;

/// Words of the page.
pub mod word {
    /// The whole collector: the ring file exists.
    pub const COLLECTOR: usize = 0;
    /// HIP calls through the wrapped functions and the tracer callback.
    pub const HIP: usize = 1;
    /// HSA hooks: set by `OnLoad` in this process.
    pub const HSA: usize = 2;
    /// Address of the process's [`crate::process::Process`].
    pub const PROCESS: usize = 3;
    /// Address of the control words.
    pub const CONTROL: usize = 4;
    /// Held while the ring file is created.
    pub const LOCK: usize = 5;
    /// 1 while the program has paused recording.
    pub const PAUSED: usize = 6;
    /// 1 when the library's thread runs.
    pub const THREAD: usize = 7;
    /// 1 after the page is registered for wiping on fork.
    pub const READY: usize = 8;
    /// Held while a calibration is taken.
    pub const CALIBRATING: usize = 9;
    /// Ticks after which a calibration is due when no thread runs.
    pub const CALIBRATION_DUE: usize = 10;
    /// 1 after a thread has started to set up the HIP back-end.
    pub const HIP_BEGUN: usize = 11;
    /// Records dropped before the ring file could count them.
    pub const EARLY: usize = 12;
    /// Number of the program's resume requests without a matching pause, if pauses are counted.
    pub const RESUMED: usize = 13;
    /// The level of timing plus one; 0 before it is chosen.
    pub const LEVEL: usize = 14;
}

const WORDS: usize = 512;

/// The words of the switch page.
#[repr(C, align(4096))]
pub struct Page([AtomicU64; WORDS]);

/// The page for code that tests it without a function call: word `w` is at byte `8 * w`.
pub static PAGE: Page = Page([const { AtomicU64::new(0) }; WORDS]);

/// A word of the page.
#[inline(always)]
pub fn word(at: usize) -> &'static AtomicU64 {
    #[expect(clippy::indexing_slicing, reason = "a remainder by the length")]
    &PAGE.0[at % WORDS]
}

/// Whether this back-end is on: the test on the hot path.
#[inline(always)]
pub fn is_on(at: usize) -> bool {
    // Acquire: pairs with the release store in `switch_on`, so what the back-end prepared is visible. Free on x86-64.
    word(at).load(Ordering::Acquire) == ON
}

/// Switches a back-end on, unless the collector is permanently off.
pub fn switch_on(at: usize) {
    let _ = word(at).compare_exchange(COLD, ON, Ordering::AcqRel, Ordering::Relaxed);
}

/// Control words that want nothing: every test reads these once the collector is off.
static NOTHING: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];

/// Switches the collector permanently off in this process.
pub fn switch_off() {
    word(word::CONTROL).store((&raw const NOTHING).addr() as u64, Ordering::Release);
    for at in [word::COLLECTOR, word::HIP, word::HSA] {
        word(at).store(OFF, Ordering::Release);
    }
}

/// Makes forked children start with an empty page. Called once; slow path.
pub fn wipe_on_fork() {
    if word(word::READY).swap(1, Ordering::AcqRel) != 0 {
        return;
    }
    let page = (&raw const PAGE).cast_mut().cast();
    // SAFETY: the page is ours, aligned to and as long as a page; the advice changes nothing in this process.
    let wiped = unsafe { libc::madvise(page, size_of::<Page>(), libc::MADV_WIPEONFORK) } == 0;
    if !wiped {
        // SAFETY: the handler only stores to atomics and to this thread's own word.
        unsafe { libc::pthread_atfork(None, None, Some(forget)) };
    }
}

extern "C" fn forget() {
    for at in 0..WORDS {
        word(at).store(0, Ordering::Relaxed);
    }
    crate::tls::set(0);
}
