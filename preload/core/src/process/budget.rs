//! Sizes of a process's ring files: as requested, within a budget that reserves space for more threads.

use roctop_ring::layout::Spec;
use roctop_ring::sites::MAX_FILE;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Rings for application threads in the first file; entry 0 is the completion-delivering thread's.
const FIRST_RINGS: usize = 7;
/// Rings of a chained file.
const CHAINED_RINGS: usize = 16;
/// Files of a process.
pub(super) const FILES: usize = 64;
/// Maximum bytes of the ring files of a process.
const BUDGET: u64 = 512 << 20;
/// Minimum bytes of the budget for flight files, up to half of a small budget. One queue of HIP takes 6 MiB.
const FLIGHT_BUDGET: u64 = 8 << 20;
/// Slots. A kernel takes two for each GPU: enough for eight GPUs with three thousand kernels each.
const FACTS: u64 = 48 * 1024;
const STRINGS: u64 = 64 * 1024;
const STRING_BYTES: u64 = 4 << 20;
pub(super) const SMALLEST_RING: u64 = 64;
/// Facts and strings of even the smallest file: more than the names of all operations.
const SMALLEST_TABLE: u64 = 4096;

/// Entries of the files before file `ordinal`.
pub(super) const fn base(ordinal: u32) -> usize {
    match ordinal {
        0 => 0,
        _ => 1 + FIRST_RINGS + (ordinal as usize - 1) * CHAINED_RINGS,
    }
}

/// The part of `budget` that flight files may take, in bytes.
pub(super) fn flight_budget(budget: u64) -> u64 {
    (budget / 4).max(FLIGHT_BUDGET.min(budget / 2))
}

/// Bytes of the stack file: at most a sixteenth of the tmpfs, of which `budget` is a quarter or less.
pub(super) fn sites_bytes(budget: u64) -> u64 {
    (budget / 4).min(MAX_FILE as u64)
}

/// Maximum bytes of file `ordinal` when `left` bytes of the budget remain. Each file leaves as much for later threads.
/// An eighth of the budget is reserved for files with the shortest rings: a thread without a ring is worse than a short
/// ring.
pub(super) fn room(budget: u64, left: u64, slots: u64, ordinal: u32) -> u64 {
    if slots <= SMALLEST_RING {
        return left;
    }
    let (_, smallest) = spec(1, SMALLEST_RING, 0).regions();
    let files = (FILES as u64).min(budget / 8 / smallest);
    left.saturating_sub(files.saturating_sub(u64::from(ordinal) + 1) * smallest) / 2
}

/// The sizes of file `ordinal`, with rings and tables halved `halved` times.
pub(super) fn spec(ordinal: u32, slots: u64, halved: u32) -> Spec {
    if ordinal == 0 {
        // The ring of completions, and that of the first calling thread, which usually starts abruptly and calls
        // fastest.
        let mut rings = vec![slots * 4; 2];
        rings.resize(1 + FIRST_RINGS, slots);
        Spec {
            ordinal,
            rings,
            facts: (FACTS >> halved).max(SMALLEST_TABLE),
            strings: (STRINGS >> halved).max(SMALLEST_TABLE),
            string_bytes: (STRING_BYTES >> halved).max(64 * SMALLEST_TABLE),
        }
    } else {
        Spec {
            ordinal,
            rings: vec![slots; CHAINED_RINGS],
            facts: 0,
            strings: 0,
            string_bytes: 0,
        }
    }
}

/// A quarter of the session's file system in bytes, at most [`BUDGET`].
pub(super) fn budget(session: &Path) -> u64 {
    let Ok(path) = CString::new(session.as_os_str().as_bytes()) else {
        return BUDGET;
    };
    let mut facts = std::mem::MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: `path` is terminated and `facts` has room for the answer.
    if unsafe { libc::statfs(path.as_ptr(), facts.as_mut_ptr()) } != 0 {
        return BUDGET;
    }
    // SAFETY: zero is a valid value of every field, and the call filled it.
    let facts = unsafe { facts.assume_init() };
    let size = facts.f_blocks.saturating_mul(facts.f_bsize as u64);
    // A tmpfs without a limit reports 0 blocks.
    if size == 0 { BUDGET } else { BUDGET.min(size / 4) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of files that fit a budget, with rings of `slots` slots at first.
    fn files(budget: u64, mut slots: u64) -> u32 {
        let mut left = budget;
        for ordinal in 0..FILES as u32 {
            let size = |slots| spec(ordinal, slots, if ordinal == 0 { 8 } else { 0 }).regions().1;
            while size(slots) > room(budget, left, slots, ordinal) {
                if slots <= SMALLEST_RING {
                    return ordinal;
                }
                slots /= 2;
            }
            left -= size(slots);
        }
        FILES as u32
    }

    #[test]
    fn there_are_rings_for_a_thousand_threads_at_once() {
        for slots in [16 * 1024, 64 * 1024] {
            assert_eq!(files(BUDGET, slots), FILES as u32);
            assert!(files(16 << 20, slots) >= 8);
        }
    }

    #[test]
    fn a_file_shrinks_with_its_rings() {
        let size = |slots, halved| spec(0, slots, halved).regions().1;
        assert!(size(16 * 1024, 0) < 24 << 20);
        assert!(size(SMALLEST_RING, 8) < 3 << 20);
        assert!(size(8 * 1024, 1) < size(16 * 1024, 0));
    }
}
