//! The arguments of an API call: continuation slots behind an [`ApiCall`](crate::record::ApiCall).
//!
//! They travel as words of the calling convention (System V, x86-64): the six integer registers, the returned word,
//! then stack words. The reader maps words to arguments by the operation's name.

use crate::record::{PAYLOAD_WORDS, Slot};

/// The words of a call's arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    /// The integer registers, in argument order.
    pub registers: [u64; 6],
    /// The word that the call wrote through its first argument; 0 if none or if the call failed.
    pub given: u64,
    /// Stack words, in argument order.
    pub stack: [u64; Self::STACK],
    /// Valid words in `stack`.
    pub stack_words: u8,
}

impl Arguments {
    /// Kind number of a call with arguments; its first slot is an `ApiCall`'s.
    pub const KIND: u8 = 40;
    /// Maximum number of stack words.
    pub const STACK: usize = 16;
    /// Maximum number of slots of such a record.
    pub const MAX_SLOTS: usize = 5;

    /// Slots of the record, including the call's own.
    pub const fn slots(&self) -> usize {
        match self.stack_words {
            0 if self.given == 0 => 2,
            0..=5 => 3,
            6..=11 => 4,
            _ => 5,
        }
    }

    /// The payload of all slots; `call` is the `ApiCall`'s.
    pub fn payload(&self, call: [u64; PAYLOAD_WORDS]) -> [[u64; PAYLOAD_WORDS]; Self::MAX_SLOTS] {
        let mut slots = [[0; PAYLOAD_WORDS]; Self::MAX_SLOTS];
        let words = call
            .iter()
            .chain(&self.registers)
            .chain([&self.given])
            .chain(&self.stack);
        for (to, from) in slots.as_flattened_mut().iter_mut().zip(words) {
            *to = *from;
        }
        slots
    }

    /// Decodes the slots of a record, the call's own first. Total: missing slots read as zero.
    pub fn decode(slots: &[Slot]) -> Self {
        let mut words = [0u64; PAYLOAD_WORDS * (Self::MAX_SLOTS - 1)];
        let found = slots.iter().skip(1).flat_map(|slot| &slot[1..7]);
        for (to, from) in words.iter_mut().zip(found) {
            *to = *from;
        }
        let mut arguments = Self {
            given: words[6],
            stack_words: (slots.len().saturating_sub(2) * PAYLOAD_WORDS)
                .saturating_sub(1)
                .min(Self::STACK) as u8,
            ..Self::default()
        };
        arguments.registers.copy_from_slice(&words[..6]);
        arguments.stack.copy_from_slice(&words[7..7 + Self::STACK]);
        arguments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_survive_encoding() {
        for (stack_words, given, slots) in [(0, 0, 2), (0, 9, 3), (5, 0, 3), (8, 9, 4), (16, 9, 5)] {
            let mut arguments = Arguments {
                registers: [1, 2, 3, 4, 5, 6],
                given,
                stack: [0; Arguments::STACK],
                stack_words,
            };
            arguments.stack[..usize::from(stack_words)].fill(7);
            assert_eq!(arguments.slots(), slots);
            let found: Vec<Slot> = arguments
                .payload([11; PAYLOAD_WORDS])
                .iter()
                .take(slots)
                .map(|words| [0, words[0], words[1], words[2], words[3], words[4], words[5], 0])
                .collect();
            let decoded = Arguments::decode(&found);
            assert!(decoded.stack_words >= stack_words);
            assert_eq!(Arguments { stack_words, ..decoded }, arguments);
        }
        for count in 0..9 {
            let _ = Arguments::decode(&vec![[u64::MAX; 8]; count]);
        }
    }
}
