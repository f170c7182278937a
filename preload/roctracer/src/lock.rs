//! Locks over futexes, held across a fork and released on both sides, where a standard mutex would stay locked in the
//! child forever. A race checker can see through them.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::ptr::null;
use std::sync::atomic::{AtomicU32, Ordering};

const UNLOCKED: u32 = 0;
const LOCKED: u32 = 1;
const CONTENDED: u32 = 2;

/// The lock.
pub(crate) struct Lock(AtomicU32);

impl Lock {
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(UNLOCKED))
    }

    /// Locks until the guard is dropped.
    pub(crate) fn hold(&self) -> LockGuard<'_> {
        self.take();
        LockGuard(self)
    }

    pub(crate) fn take(&self) {
        let free = self
            .0
            .compare_exchange(UNLOCKED, LOCKED, Ordering::Acquire, Ordering::Relaxed);
        if free.is_ok() {
            return;
        }
        while self.0.swap(CONTENDED, Ordering::Acquire) != UNLOCKED {
            wait(&self.0, CONTENDED);
        }
    }

    pub(crate) fn give(&self) {
        if self.0.swap(UNLOCKED, Ordering::Release) == CONTENDED {
            wake(&self.0, 1);
        }
    }
}

/// Sleeps while the word has this value; may return early.
fn wait(word: &AtomicU32, value: u32) {
    let how = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: waits on a word that is borrowed.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), how, value, null::<libc::timespec>()) };
}

/// Wakes up to `count` sleepers.
fn wake(word: &AtomicU32, count: i32) {
    let how = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: wakes sleepers on a word that is borrowed.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), how, count) };
}

/// A held lock.
pub(crate) struct LockGuard<'a>(&'a Lock);

impl Drop for LockGuard<'_> {
    fn drop(&mut self) {
        self.0.give();
    }
}

/// A value under a lock.
pub(crate) struct Guarded<T> {
    lock: Lock,
    value: UnsafeCell<T>,
}

// SAFETY: the value is accessed only with the lock held.
unsafe impl<T: Send> Sync for Guarded<T> {}

impl<T> Guarded<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self {
            lock: Lock::new(),
            value: UnsafeCell::new(value),
        }
    }

    /// Locks the value until the guard is dropped.
    pub(crate) fn hold(&self) -> Guard<'_, T> {
        self.lock.take();
        Guard { guarded: self }
    }
}

/// Access to a value with its lock held.
pub(crate) struct Guard<'a, T> {
    guarded: &'a Guarded<T>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the lock is held.
        unsafe { &*self.guarded.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held.
        unsafe { &mut *self.guarded.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.guarded.lock.give();
    }
}

/// Wakes waiters for a change of a guarded value.
pub(crate) struct Bell(AtomicU32);

impl Bell {
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Signals a change; the caller holds the value's lock.
    pub(crate) fn ring(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
        wake(&self.0, i32::MAX);
    }

    /// Releases the lock until the bell rings; may return early.
    pub(crate) fn wait<T>(&self, guard: &mut Guard<'_, T>) {
        // Read with the lock held: a later ring changes the number.
        let seen = self.0.load(Ordering::Relaxed);
        guard.guarded.lock.give();
        wait(&self.0, seen);
        guard.guarded.lock.take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_keeps_others_out() {
        let shared = Guarded::new(0u64);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        *shared.hold() += 1;
                    }
                });
            }
        });
        assert_eq!(*shared.hold(), 80_000);
    }

    #[test]
    fn a_bell_wakes_its_waiters() {
        let (turn, bell) = (Guarded::new(0u32), Bell::new());
        std::thread::scope(|scope| {
            for own in 0..3 {
                let (turn, bell) = (&turn, &bell);
                scope.spawn(move || {
                    for _ in 0..2000 {
                        let mut turn = turn.hold();
                        while *turn % 3 != own {
                            bell.wait(&mut turn);
                        }
                        *turn += 1;
                        bell.ring();
                    }
                });
            }
        });
        assert_eq!(*turn.hold(), 6000);
    }
}
