//! Signals, scheduling and CPU affinity of the collector's threads, which must not affect the program.

use std::sync::OnceLock;

/// Runs `body` with all signals blocked, so that a thread that it starts receives none of the program's.
pub(crate) fn without_signals<T>(body: impl FnOnce() -> T) -> T {
    let _mask = Blocked::all();
    body()
}

/// Blocks all signals on this thread, so that a new thread inherits the mask. Signals of faults stay unblocked: a
/// handler of the process may answer them, and they kill a thread that blocks them.
struct Blocked(libc::sigset_t);

#[expect(unsafe_code, reason = "signal masks")]
impl Blocked {
    fn all() -> Self {
        let mut every = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
        let mut before = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: the set has room.
        unsafe { libc::sigfillset(every.as_mut_ptr()) };
        for fault in [
            libc::SIGSEGV,
            libc::SIGBUS,
            libc::SIGILL,
            libc::SIGFPE,
            libc::SIGTRAP,
            libc::SIGSYS,
        ] {
            // SAFETY: the set was filled.
            unsafe { libc::sigdelset(every.as_mut_ptr(), fault) };
        }
        // SAFETY: both sets are valid.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, every.as_ptr(), before.as_mut_ptr()) };
        // SAFETY: zeroed and then filled by the call.
        Self(unsafe { before.assume_init() })
    }
}

#[expect(unsafe_code, reason = "signal masks")]
impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the mask is the one that the thread had.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut()) };
    }
}

/// Resets what this thread inherited from a thread of the program: a CPU affinity, or a real-time policy, with which it
/// would compete with the program.
#[expect(unsafe_code, reason = "a thread's own scheduling")]
pub(crate) fn reset_affinity() {
    let ordinary = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameters are valid for this policy.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const ordinary) };
    if let Some(all) = PROCESSORS.get() {
        // SAFETY: the set is valid.
        unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), all) };
    }
}

/// CPUs assigned to the process.
static PROCESSORS: OnceLock<libc::cpu_set_t> = OnceLock::new();

/// Stores the CPUs when the library is loaded, before any thread is bound.
#[expect(unsafe_code, reason = "a thread's own scheduling")]
pub(crate) fn at_load() {
    let mut all = std::mem::MaybeUninit::<libc::cpu_set_t>::zeroed();
    // SAFETY: the set has room for the answer.
    if unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), all.as_mut_ptr()) } == 0 {
        // SAFETY: zeroed, and filled by the call.
        let _ = PROCESSORS.set(unsafe { all.assume_init() });
    }
}
