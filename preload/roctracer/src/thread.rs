//! Ids of the calling thread and this process.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

static PROCESS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static THREAD: Cell<u32> = const { Cell::new(0) };
}

/// The process id, for records.
#[inline]
pub(crate) fn process() -> u32 {
    match PROCESS.load(Ordering::Relaxed) {
        0 => {
            let id = std::process::id();
            PROCESS.store(id, Ordering::Relaxed);
            id
        }
        id => id,
    }
}

/// The kernel's thread id.
#[inline]
pub(crate) fn id() -> u32 {
    match THREAD.get() {
        0 => {
            // SAFETY: cannot fail.
            let id = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
            THREAD.set(id);
            id
        }
        id => id,
    }
}

/// Called in a forked child, in its only thread.
pub(crate) fn forked() {
    PROCESS.store(0, Ordering::Relaxed);
    THREAD.set(0);
}
