//! Table of watched signals by handle: fixed size, without locks.

use super::Watch;
use hsa_sys::abi::SignalHandle;
use roctop_ring::sync::{AtomicU64, Ordering};

/// Number of buckets: enough for as many signals in flight as the driver has events (4096). Unused pages are not
/// touched.
const BUCKETS: usize = 16 * 1024;
const WAYS: usize = 4;

#[repr(align(64))]
struct Bucket([[AtomicU64; 2]; WAYS]);

static WATCHED: [Bucket; BUCKETS] = [const { Bucket([const { [const { AtomicU64::new(0) }; 2] }; WAYS]) }; BUCKETS];
/// Number of signals in the table.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// Whether any signal is watched.
#[inline]
pub(super) fn has_some() -> bool {
    COUNT.load(Ordering::Relaxed) != 0
}

/// The run-time starts: no signal is watched.
pub(crate) fn forget_all() {
    if COUNT.swap(0, Ordering::AcqRel) != 0 {
        for [key, value] in WATCHED.iter().flat_map(|bucket| &bucket.0) {
            if key.load(Ordering::Relaxed) != 0 {
                value.store(0, Ordering::Release);
                key.store(0, Ordering::Release);
            }
        }
    }
}

fn bucket(handle: SignalHandle) -> &'static [[AtomicU64; 2]; WAYS] {
    // The run-time's signals are adjacent in pools: so are their buckets, and they do not collide.
    let place = (handle >> 6) as usize;
    #[expect(clippy::indexing_slicing, reason = "a remainder by the length")]
    &WATCHED[place % BUCKETS].0
}

pub(super) fn insert(handle: SignalHandle, watch: &'static Watch) -> bool {
    for [key, value] in bucket(handle) {
        if key
            .compare_exchange(0, handle, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
        {
            value.store(std::ptr::from_ref(watch) as u64, Ordering::Release);
            COUNT.fetch_add(1, Ordering::Relaxed);
            return true;
        }
    }
    false
}

pub(super) fn remove(handle: SignalHandle, watch: &Watch) {
    for [key, value] in bucket(handle) {
        let is_it = value.load(Ordering::Acquire) == std::ptr::from_ref(watch) as u64;
        if is_it && key.load(Ordering::Acquire) == handle {
            value.store(0, Ordering::Release);
            key.store(0, Ordering::Release);
            COUNT.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

pub(super) fn find(handle: SignalHandle) -> Option<&'static Watch> {
    for [key, value] in bucket(handle) {
        if key.load(Ordering::Acquire) == handle {
            let address = value.load(Ordering::Acquire) as usize as *const Watch;
            // SAFETY: only watches that are never freed are entered.
            return unsafe { address.as_ref() };
        }
    }
    None
}
