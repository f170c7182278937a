//! Who owns a directory entry, and the calibration samples: protocols on words alone, so that loom can prove them.
//!
//! An entry's state word is the sequence of a seqlock over the entry's identity (thread, name, where its life began in
//! the ring): claimed while the identity is written, then live, then done, then claimed by the next life.
//!
//! Absent on purpose: the mapping, policy (which entry, when a done one may be taken again).

use crate::layout::{clock, entry};
use crate::sync::{Ordering, fence};
use crate::writer::Words;

/// Takes a free or done entry by one compare-exchange. Returns the generation of this life, from 1; none when another
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
    // Acquire: pairs with the release store in `release`; the previous owner's stores are seen.
    words[entry::STATE]
        .compare_exchange(
            state,
            generation << 32 | entry::CLAIMED,
            Ordering::AcqRel,
            Ordering::Relaxed,
        )
        .ok()?;
    // Release fence: a reader that sees one of the stores below also sees that the entry was claimed.
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
    // Release: who sees the entry live sees whose it is.
    words[entry::STATE].store(generation << 32 | entry::LIVE, Ordering::Release);
    Some(generation as u32)
}

/// Marks an entry as done. Only its owner may.
pub fn release(words: Words<'_>) {
    if let Some(word) = words.get(entry::STATE) {
        let state = word.load(Ordering::Relaxed);
        // Release: pairs with the acquire in `claim`.
        word.store(state & !0xffff_ffff | entry::DONE, Ordering::Release);
    }
}

/// The place of calibration sample `number`: the first one is kept, the others rotate.
pub const fn sample_place(number: u64) -> usize {
    if number == 0 {
        0
    } else {
        1 + ((number - 1) % (clock::SAMPLES as u64 - 1)) as usize
    }
}

/// Writes calibration sample `number` into its place, under the place's sequence. One writer at a time.
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
