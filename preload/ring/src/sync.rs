//! The only door to atomics, so that loom can stand in for them in the protocol proofs.

#[cfg(loom)]
pub use loom::sync::atomic::Ordering;
#[cfg(loom)]
pub use mutant::{AtomicU64, fence};
#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Under loom every atomic goes through here, so that a proof can show that it fails when the code is weakened: the
/// same writer and the same reader run, with one ordering or fence taken away.
#[cfg(loom)]
pub mod mutant {
    use loom::sync::atomic::Ordering;
    use std::cell::Cell;

    /// What is taken away.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Mutant {
        /// Nothing: the code as it ships.
        None,
        /// Release fences.
        ReleaseFence,
        /// Acquire fences.
        AcquireFence,
        /// Release in stores.
        ReleaseStore,
        /// Compare-exchange becomes a load and a store.
        CompareExchange,
        /// A `fetch_add` becomes a load and a store.
        FetchAdd,
        /// Acquire and release in compare-exchange.
        ClaimOrder,
    }

    thread_local! {
        /// loom runs its threads on the thread that called it, so this is one value for each test.
        static CURRENT: Cell<Mutant> = const { Cell::new(Mutant::None) };
    }

    /// Chooses what is taken away in this test.
    pub fn set(mutant: Mutant) {
        CURRENT.set(mutant);
    }

    fn is(mutant: Mutant) -> bool {
        CURRENT.get() == mutant
    }

    /// A fence, unless it is taken away.
    pub fn fence(order: Ordering) {
        let gone = match order {
            Ordering::Release => is(Mutant::ReleaseFence),
            Ordering::Acquire => is(Mutant::AcquireFence),
            _ => false,
        };
        if !gone {
            loom::sync::atomic::fence(order);
        }
    }

    /// loom's atomic, weakened as chosen.
    #[derive(Debug)]
    pub struct AtomicU64(loom::sync::atomic::AtomicU64);

    impl AtomicU64 {
        /// A new word.
        pub fn new(value: u64) -> Self {
            Self(loom::sync::atomic::AtomicU64::new(value))
        }
        /// As in std.
        pub fn load(&self, order: Ordering) -> u64 {
            self.0.load(order)
        }
        /// As in std.
        pub fn store(&self, value: u64, order: Ordering) {
            let order = if is(Mutant::ReleaseStore) {
                Ordering::Relaxed
            } else {
                order
            };
            self.0.store(value, order);
        }
        /// As in std.
        pub fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
            if is(Mutant::FetchAdd) {
                let old = self.0.load(order);
                self.0.store(old + value, order);
                return old;
            }
            self.0.fetch_add(value, order)
        }
        /// As in std.
        pub fn compare_exchange(&self, old: u64, new: u64, ok: Ordering, fail: Ordering) -> Result<u64, u64> {
            if is(Mutant::CompareExchange) {
                let now = self.0.load(ok_load(ok));
                if now != old {
                    return Err(now);
                }
                self.0.store(new, Ordering::Release);
                return Ok(now);
            }
            let ok = if is(Mutant::ClaimOrder) { Ordering::Relaxed } else { ok };
            self.0.compare_exchange(old, new, ok, fail)
        }
    }

    fn ok_load(order: Ordering) -> Ordering {
        if matches!(order, Ordering::AcqRel | Ordering::Acquire) {
            Ordering::Acquire
        } else {
            Ordering::Relaxed
        }
    }
}
