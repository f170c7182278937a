//! A lock over registrations that a fork can hold.
//!
//! A standard mutex that another thread held at a fork stays locked in the child for ever. This one is taken before a
//! fork and given back on both sides.

use std::ptr::null;
use std::sync::atomic::{AtomicU32, Ordering};

const FREE: u32 = 0;
const HELD: u32 = 1;
const WAITED_FOR: u32 = 2;

/// The lock.
pub(crate) struct Lock(AtomicU32);

impl Lock {
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(FREE))
    }

    /// Held until the guard goes.
    pub(crate) fn hold(&self) -> Held<'_> {
        self.take();
        Held(self)
    }

    pub(crate) fn take(&self) {
        if self
            .0
            .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
        {
            return;
        }
        while self.0.swap(WAITED_FOR, Ordering::Acquire) != FREE {
            // SAFETY: waits on a word of ours; a spurious return is looked at again.
            unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    self.0.as_ptr(),
                    libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                    WAITED_FOR,
                    null::<libc::timespec>(),
                )
            };
        }
    }

    pub(crate) fn give(&self) {
        if self.0.swap(FREE, Ordering::Release) == WAITED_FOR {
            // SAFETY: wakes a waiter of a word of ours.
            unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    self.0.as_ptr(),
                    libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                    1,
                )
            };
        }
    }
}

/// The lock, held.
pub(crate) struct Held<'a>(&'a Lock);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.give();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::UnsafeCell;

    #[test]
    fn the_lock_keeps_others_out() {
        struct Shared(Lock, UnsafeCell<u64>);
        // SAFETY: the cell is used with the lock held.
        unsafe impl Sync for Shared {}
        let shared = Shared(Lock::new(), UnsafeCell::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let shared = &shared;
                    for _ in 0..20_000 {
                        let _held = shared.0.hold();
                        // SAFETY: the lock is held.
                        unsafe { *shared.1.get() += 1 };
                    }
                });
            }
        });
        // SAFETY: no thread is left.
        assert_eq!(unsafe { *shared.1.get() }, 80_000);
    }
}
