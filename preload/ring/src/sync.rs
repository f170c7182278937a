//! The only path to atomics, so that loom can replace them in the protocol proofs.

#[cfg(loom)]
pub use loom::sync::atomic::Ordering;
#[cfg(loom)]
pub use mutant::{AtomicU64, fence};
#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Under loom every atomic goes through this module. It weakens one ordering or fence, so that a test can show that the
/// proof of the unchanged writer and reader then fails.
#[cfg(loom)]
pub mod mutant {
    use loom::sync::atomic::Ordering;
    use std::cell::Cell;

    /// The weakened primitive.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Mutant {
        /// None: the code as shipped.
        None,
        /// Omits release fences.
        ReleaseFence,
        /// Omits acquire fences.
        AcquireFence,
        /// Makes stores relaxed.
        ReleaseStore,
        /// Splits a compare-exchange into a load and a store.
        CompareExchange,
        /// Splits a `fetch_add` into a load and a store.
        FetchAdd,
        /// Makes a compare-exchange relaxed.
        ClaimOrder,
    }

    thread_local! {
        /// loom runs its threads on the calling thread, so each test has one value.
        static CURRENT: Cell<Mutant> = const { Cell::new(Mutant::None) };
    }

    /// Selects the mutant of this test.
    pub fn set(mutant: Mutant) {
        CURRENT.set(mutant);
    }

    fn is(mutant: Mutant) -> bool {
        CURRENT.get() == mutant
    }

    /// A fence, unless the mutant omits it.
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

    /// loom's atomic, weakened by the mutant.
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
