//! Marks and ranges, whose text continues over several slots.

use super::{PAYLOAD_BYTES, PAYLOAD_WORDS, Slot};

/// A ROC-TX mark or range with its text: 40 bytes of numbers, then the text, 8 bytes in the head slot and 48 in each
/// continuation slot. A longer text is a string fact named by `text_id`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marker {
    /// Time of push, start or mark, ticks.
    pub start: u64,
    /// Time of pop or stop, ticks; equals `start` for a mark.
    pub end: u64,
    /// Correlation id of the call that opened it.
    pub correlation: u64,
    /// Id of a start/stop range; 0 for push/pop and marks.
    pub range_id: u64,
    /// String id of a text longer than [`Marker::INLINE_TEXT`], else 0.
    pub text_id: u32,
    /// Nesting level of a push/pop range, from 0.
    pub level: u16,
    /// The text, if it is inline.
    pub text: Vec<u8>,
}

impl Marker {
    /// Kind number of a mark.
    pub const MARK: u8 = 19;
    /// Kind number of a range.
    pub const RANGE: u8 = 20;
    /// Maximum bytes of inline text.
    pub const INLINE_TEXT: usize = 8 + 2 * PAYLOAD_BYTES;
    /// Maximum number of slots of a marker.
    pub const MAX_SLOTS: usize = 3;

    /// Slots of a marker with `text` bytes of inline text.
    pub const fn slots(text: usize) -> usize {
        if text <= 8 {
            1
        } else {
            1 + (text - 8).div_ceil(PAYLOAD_BYTES)
        }
    }

    /// Payload words of a marker, without allocation; `text` is cut at [`Marker::INLINE_TEXT`].
    pub fn payload(
        times: [u64; 2],
        correlation: u64,
        range_id: u64,
        text_id: u32,
        level: u16,
        text: &[u8],
    ) -> [[u64; PAYLOAD_WORDS]; Self::MAX_SLOTS] {
        let mut bytes = [0u8; Self::MAX_SLOTS * PAYLOAD_BYTES];
        let length = text.len().min(Self::INLINE_TEXT);
        let numbers = [times[0], times[1], correlation, range_id];
        for (to, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(numbers) {
            *to = word.to_le_bytes();
        }
        bytes[32..36].copy_from_slice(&text_id.to_le_bytes());
        bytes[36..38].copy_from_slice(&(length as u16).to_le_bytes());
        bytes[38..40].copy_from_slice(&level.to_le_bytes());
        for (to, from) in bytes[40..].iter_mut().zip(text.iter().take(length)) {
            *to = *from;
        }
        let mut out = [[0u64; PAYLOAD_WORDS]; Self::MAX_SLOTS];
        for (word, raw) in out.as_flattened_mut().iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*raw);
        }
        out
    }

    /// Decodes a marker from its slots. Total.
    pub fn decode(slots: &[Slot]) -> Self {
        let mut bytes = Vec::with_capacity(Self::MAX_SLOTS * PAYLOAD_BYTES);
        for slot in slots.iter().take(Self::MAX_SLOTS) {
            for word in &slot[1..7] {
                bytes.extend_from_slice(&word.to_le_bytes());
            }
        }
        bytes.resize(bytes.len().max(PAYLOAD_BYTES), 0);
        let word = |at: usize| {
            let mut raw = [0u8; 8];
            raw.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(raw)
        };
        let tail = word(32);
        let length = ((tail >> 32) as u16 as usize).min(bytes.len() - 40);
        Self {
            start: word(0),
            end: word(8),
            correlation: word(16),
            range_id: word(24),
            text_id: tail as u32,
            level: (tail >> 48) as u16,
            text: bytes[40..40 + length].to_vec(),
        }
    }
}
