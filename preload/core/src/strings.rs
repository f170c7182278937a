//! Texts become ids, equal texts the same id: a lock-free table of this process in front of the ring file's strings.
//!
//! A text that two threads add at the same time may get two ids; both are valid.

#![expect(unsafe_code, reason = "a table in memory that is zero and not there yet")]

use roctop_ring::layout::{Region, counter};
use roctop_ring::map::RingFile;
use roctop_ring::sync::{AtomicU64, Ordering};
use roctop_ring::writer::MAX_TEXT;

const PLACES: usize = 1 << 17;
const PROBES: usize = 64;

/// The table. An entry contains the upper half of the text's hash, and its id; 0 is free.
pub(crate) struct Table {
    places: Box<[AtomicU64]>,
}

impl Table {
    /// An empty table; memory is touched only where it is used.
    pub(crate) fn new() -> Self {
        // SAFETY: zero is a value of every place.
        let places = unsafe { Box::new_zeroed_slice(PLACES).assume_init() };
        Self { places }
    }

    /// The id of `text`, stored in `file` if it is new; 0 if there is no space.
    pub(crate) fn intern(&self, file: &RingFile, text: &[u8]) -> u32 {
        let text = match text.get(..MAX_TEXT) {
            Some(cut) if cut.len() < text.len() => {
                if let Some(word) = file.counter(counter::TEXT_CUT) {
                    word.fetch_add(1, Ordering::Relaxed);
                }
                cut
            }
            _ => text,
        };
        let hash = hash(text);
        let tag = hash & !0xffff_ffff | 1 << 63;
        for step in 0..PROBES {
            let Some(place) = self.places.get((hash as usize).wrapping_add(step) % PLACES) else {
                break;
            };
            // Acquire: pairs with the store below, so the text of the id is visible.
            let seen = place.load(Ordering::Acquire);
            if seen == 0 {
                let id = file.strings().map_or(0, |strings| strings.add(text));
                if id != 0 {
                    let _ = place.compare_exchange(0, tag | u64::from(id), Ordering::AcqRel, Ordering::Relaxed);
                }
                return id;
            }
            if seen & !0xffff_ffff == tag && is_text(file, seen as u32, text) {
                return seen as u32;
            }
        }
        file.strings().map_or(0, |strings| strings.add(text))
    }
}

fn is_text(file: &RingFile, id: u32, text: &[u8]) -> bool {
    let Some(entry) = file.words(Region::StringIndex).get(id as usize) else {
        return false;
    };
    let entry = entry.load(Ordering::Acquire);
    let (at, length) = ((entry & !(1 << 63)) >> 20, (entry & 0xf_ffff) as usize);
    if length != text.len() {
        return false;
    }
    let words = file.words(Region::StringBytes).get(at as usize..).unwrap_or_default();
    text.chunks(8).zip(words).all(|(chunk, word)| {
        let raw = word.load(Ordering::Relaxed).to_le_bytes();
        raw.starts_with(chunk)
    })
}

fn hash(text: &[u8]) -> u64 {
    let mut sum = 0xcbf2_9ce4_8422_2325u64;
    for byte in text {
        sum = (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    }
    sum ^ sum >> 29
}
