//! Ownership of directory entries, and calibration samples: protocols on words alone, so that loom can prove them.
//!
//! An entry's state word is the sequence of a seqlock over the entry's identity (thread, name, start of its life in the
//! ring): claimed while the identity is written, then live, then done, then claimed by the next life.
//!
//! Excluded on purpose: the mapping, and policy (which entry to claim, when to reuse a done entry).

use crate::layout::{clock, entry};
use crate::sync::{Ordering, fence};
use crate::writer::Words;

/// Claims a free or done entry with one compare-exchange. Returns this life's generation, from 1, or `None` if another
/// thread has the entry.
pub fn claim(words: Words<'_>, tid: u32, since: u64, name: [u64; 2]) -> Option<u32> {
    if words.len() != entry::WORDS {
        return None;
    }
    let state = words[entry::STATE].load(Ordering::Relaxed);
    if matches!(state & 0xffff_ffff, entry::LIVE | entry::CLAIMED) {
        return None;
    }
    let generation = (state >> 32).wrapping_add(1) & 0xffff_ffff;
    // Acquire: pairs with the release store in `release`; makes the previous owner's stores visible.
    words[entry::STATE]
        .compare_exchange(
            state,
            generation << 32 | entry::CLAIMED,
            Ordering::AcqRel,
            Ordering::Relaxed,
        )
        .ok()?;
    // Release fence: a reader that sees one of the stores below also sees the claim.
    fence(Ordering::Release);
    for (at, value) in [
        (entry::TID, u64::from(tid)),
        (entry::SINCE, since),
        (entry::NAME, name[0]),
        (entry::NAME + 1, name[1]),
        (entry::GENERATION_START, words[entry::HEAD].load(Ordering::Relaxed)),
        (entry::CALL_DEPTH, 0),
        (entry::RANGE_DEPTH, 0),
    ] {
        words[at].store(value, Ordering::Relaxed);
    }
    // Release: a reader that sees the live state also sees the identity.
    words[entry::STATE].store(generation << 32 | entry::LIVE, Ordering::Release);
    Some(generation as u32)
}

/// Marks an entry as done. Only its owner may call this.
pub fn release(words: Words<'_>) {
    if let Some(word) = words.get(entry::STATE) {
        let state = word.load(Ordering::Relaxed);
        // Release: pairs with the acquire in `claim`.
        word.store(state & !0xffff_ffff | entry::DONE, Ordering::Release);
    }
}

/// Index of calibration sample `number` in the table: the first sample stays, the others rotate.
pub const fn sample_place(number: u64) -> usize {
    if number == 0 {
        0
    } else {
        1 + ((number - 1) % (clock::SAMPLES as u64 - 1)) as usize
    }
}

/// Writes calibration sample `number` to its index, under its sequence word. One writer at a time.
pub fn write_sample(words: Words<'_>, number: u64, sample: &[u64; clock::WORDS]) {
    if words.len() != clock::WORDS {
        return;
    }
    words[clock::SEQUENCE].store(2 * number + 1, Ordering::Relaxed);
    // Release fence: a reader that sees one of the stores below also sees the odd sequence.
    fence(Ordering::Release);
    for (to, value) in words.iter().zip(sample).skip(1) {
        to.store(*value, Ordering::Relaxed);
    }
    // Release: pairs with the reader's acquire fence after it saw the even sequence.
    words[clock::SEQUENCE].store(2 * number + 2, Ordering::Release);
}
