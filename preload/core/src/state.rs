//! The switch page: one word a back-end, tested by every call. A forked child reads zero in all of them.
//!
//! States of a word: [`COLD`] (first use decides), [`ON`], [`OFF`] (for good). The page is wiped by the kernel on fork
//! (`MADV_WIPEONFORK`), so that a child starts cold without a handler; where the kernel cannot, an atfork handler does.

#![expect(unsafe_code, reason = "madvise and pthread_atfork")]

use roctop_ring::sync::{AtomicU64, Ordering};

/// First use decides.
pub const COLD: u64 = 0;
/// Recording may happen.
pub const ON: u64 = 1;
/// Off for good in this process.
pub const OFF: u64 = 2;

/// Words of the page.
pub mod word {
    /// The collector as a whole: the ring file is there.
    pub const COLLECTOR: usize = 0;
    /// HIP calls through the wrapped functions and the tracer callback.
    pub const HIP: usize = 1;
    /// HSA hooks: set by `OnLoad` of this very process.
    pub const HSA: usize = 2;
    /// Address of the process's [`crate::process::Process`].
    pub const PROCESS: usize = 3;
    /// Address of the control words.
    pub const CONTROL: usize = 4;
    /// Held while the ring file is being made.
    pub const LOCK: usize = 5;
    /// 1 while the program itself paused the recording.
    pub const PAUSED: usize = 6;
    /// 1 when the library's thread runs.
    pub const THREAD: usize = 7;
    /// 1 when the page has been made ready for forks.
    pub const READY: usize = 8;
    /// Held while a calibration is taken.
    pub const CALIBRATING: usize = 9;
    /// Ticks after which a calibration is due when no thread runs.
    pub const CALIBRATION_DUE: usize = 10;
    /// 1 when a thread has begun to make the HIP back-end ready.
    pub const HIP_BEGUN: usize = 11;
    /// Records dropped before there was a place to count them.
    pub const EARLY: usize = 12;
    /// How often the program asked for recording and did not take it back, where that is counted.
    pub const RESUMED: usize = 13;
    /// The level of timing, plus one; 0 before it was chosen.
    pub const LEVEL: usize = 14;
}

const WORDS: usize = 512;

/// The words of the switch page.
#[repr(C, align(4096))]
pub struct Page([AtomicU64; WORDS]);

/// The page itself, for code that tests it without a function: word `w` is at byte `8 * w`.
pub static PAGE: Page = Page([const { AtomicU64::new(0) }; WORDS]);

/// A word of the page.
#[inline(always)]
pub fn word(at: usize) -> &'static AtomicU64 {
    #[expect(clippy::indexing_slicing, reason = "a remainder by the length")]
    &PAGE.0[at % WORDS]
}

/// Is this back-end on? The test of the hot path.
#[inline(always)]
pub fn is_on(at: usize) -> bool {
    // Acquire: pairs with the release store in `switch_on`; what the back-end prepared is seen. Free on x86-64.
    word(at).load(Ordering::Acquire) == ON
}

/// Switches a back-end on, unless all is off for good.
pub fn switch_on(at: usize) {
    let _ = word(at).compare_exchange(COLD, ON, Ordering::AcqRel, Ordering::Relaxed);
}

/// Control words that want nothing: what every test of them sees from then on.
static NOTHING: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];

/// Switches everything off for good in this process.
pub fn switch_off() {
    word(word::CONTROL).store((&raw const NOTHING).addr() as u64, Ordering::Release);
    for at in [word::COLLECTOR, word::HIP, word::HSA] {
        word(at).store(OFF, Ordering::Release);
    }
}

/// Lets the page start again in forked children. Once; slow path.
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
