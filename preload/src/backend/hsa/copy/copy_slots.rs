//! Static slots for copies in flight, so that no copy allocates.

use super::super::signal::Watch;
use core::cell::UnsafeCell;
use roctop_ring::record::Copy;
use roctop_ring::sync::{AtomicU64, Ordering};

/// Number of slots: more than the queues of a few copy engines hold. HIP copies a pitched box row by row, as fast as
/// these have space (1 MiB each, `BlitSdma` of ROCr 5.2 to 7.2).
const ITEMS: usize = 1 << 14;

/// A copy that was passed to the run-time.
pub(super) struct Item {
    pub(super) watch: Watch,
    pub(super) record: UnsafeCell<Copy>,
    /// The collector's signal and the program's, if the former replaces it; else 0.
    pub(super) proxy: AtomicU64,
    pub(super) original: AtomicU64,
}

// SAFETY: a slot's record is written by the thread that reserved it, before its watch is armed, and read by
// the harvester after.
unsafe impl Sync for Item {}

static PLACES: [Item; ITEMS] = [const {
    Item {
        watch: Watch::new(),
        record: UnsafeCell::new(Copy {
            begin: 0,
            end: 0,
            submit: 0,
            correlation: 0,
            bytes: 0,
            dst: 0,
            src: 0,
            src_agent: 0,
            dst_agent: 0,
            stream: 0,
            tid: 0,
            direction: 0,
            engine: 0,
            source: 0,
            site: 0,
        }),
        proxy: AtomicU64::new(0),
        original: AtomicU64::new(0),
    }
}; ITEMS];
/// One bit per reserved slot.
static TAKEN: [AtomicU64; ITEMS / 64] = [const { AtomicU64::new(0) }; ITEMS / 64];

pub(super) fn place(number: usize) -> &'static Item {
    #[expect(clippy::indexing_slicing, reason = "a remainder by the length")]
    &PLACES[number % ITEMS]
}

/// Number of copies begun and not recorded.
pub(crate) fn in_flight() -> u64 {
    let taken = TAKEN.iter().map(|word| word.load(Ordering::Acquire).count_ones());
    u64::from(taken.sum::<u32>())
}

/// Reserves a free slot; `None` if all are reserved.
pub(super) fn reserve() -> Option<usize> {
    for (at, word) in TAKEN.iter().enumerate() {
        let mut taken = word.load(Ordering::Relaxed);
        while taken != u64::MAX {
            let bit = taken.trailing_ones();
            // Acquire: pairs with `release`; the previous owner of the slot is done with it.
            match word.compare_exchange_weak(taken, taken | 1 << bit, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(at * 64 + bit as usize),
                Err(now) => taken = now,
            }
        }
    }
    None
}

/// Releases a slot.
pub(super) fn release(number: usize) {
    if let Some(word) = TAKEN.get(number / 64) {
        word.fetch_and(!(1 << (number % 64)), Ordering::Release);
    }
}

/// Reserved slots.
pub(super) fn taken() -> impl Iterator<Item = usize> {
    TAKEN.iter().enumerate().flat_map(|(at, word)| {
        let mut taken = word.load(Ordering::Acquire);
        std::iter::from_fn(move || {
            let bit = taken.trailing_zeros() as usize;
            (taken != 0).then(|| {
                taken &= taken - 1;
                at * 64 + bit
            })
        })
    })
}

/// The run-time starts: drops copies of an earlier one, or of the parent process.
pub(crate) fn forget_all() {
    for number in taken() {
        place(number).watch.free();
        release(number);
    }
}
