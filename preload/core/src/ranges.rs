//! Open ranges for which the ring file has no room. They are recorded when they end; until then no reader sees them.

#![expect(unsafe_code, reason = "memory from the system")]

use crate::sites::memory::zeroed;
use roctop_ring::layout::{entry, open_range};
use std::cell::Cell;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// Levels of a thread beyond those in its directory entry.
const LEVELS: usize = 4096;
/// Started ranges of a process beyond those in its file.
const STARTED: usize = 1 << 14;
/// Number of places in which a started range is looked for.
const PLACES: usize = 64;

/// A pushed range.
#[derive(Clone, Copy)]
pub(crate) struct OpenRange {
    /// Time of the push, ticks; 0 for none.
    pub(crate) start: u64,
    pub(crate) correlation: u64,
    /// String id of a long text, else 0.
    pub(crate) text_id: u32,
    pub(crate) length: usize,
    pub(crate) text: [u8; entry::RANGE_TEXT],
}

/// Pushed ranges of one thread.
pub(crate) struct DeepRanges([Cell<OpenRange>; LEVELS]);

impl DeepRanges {
    /// Memory for a thread; `None` if there is none.
    pub(crate) fn new() -> Option<&'static Self> {
        // SAFETY: zero is valid: numbers and bytes. A forked child keeps no reference to it.
        unsafe { zeroed() }
    }

    /// The range at a level, counted from the thread's first; `None` for a level that is too deep.
    pub(crate) fn at(&self, level: usize) -> Option<&Cell<OpenRange>> {
        self.0.get(level.checked_sub(entry::RANGES)?)
    }
}

/// A range in words, as in a ring file.
type Words = [AtomicU64; open_range::WORDS];

/// Started ranges of one process.
pub(crate) struct StartedRanges(AtomicPtr<[Words; STARTED]>);

impl StartedRanges {
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// The places where the range with this id may be; none before [`Self::make`].
    pub(crate) fn places(&self, id: u64) -> impl Iterator<Item = &'static Words> + use<> {
        let address = self.0.load(Ordering::Acquire);
        // SAFETY: a pointer that is not null is the address of zeroed memory that is never unmapped.
        let all = unsafe { address.as_ref() };
        let place = move |step| all?.get((id as usize).wrapping_add(step) % STARTED);
        (0..PLACES).map_while(place)
    }

    /// Makes the memory, if there is none yet.
    pub(crate) fn make(&self) {
        if self.0.load(Ordering::Acquire).is_null()
            // SAFETY: zero is valid: numbers. A forked child keeps no reference to it.
            && let Some(made) = unsafe { zeroed::<[Words; STARTED]>() }
        {
            let made = std::ptr::from_ref(made).cast_mut();
            // If another thread was faster, this memory stays unused: none of its pages was touched.
            let _ = self
                .0
                .compare_exchange(std::ptr::null_mut(), made, Ordering::AcqRel, Ordering::Acquire);
        }
    }
}
