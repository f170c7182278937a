//! Registrations by operation: two words each, read by every traced call.
//!
//! A reader takes no lock: an entry has a sequence number that is odd during a change, and a reader that saw a change
//! reads again. Writers hold the registrations' lock.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// One operation's registration; empty while the first word is 0.
struct Registration {
    sequence: AtomicU32,
    words: [AtomicU64; 2],
}

/// The registrations of a domain of up to `N` operations.
pub(crate) struct Table<const N: usize> {
    places: [Registration; N],
    count: AtomicU32,
}

impl<const N: usize> Table<N> {
    pub(crate) const fn new() -> Self {
        Self {
            places: [const {
                Registration {
                    sequence: AtomicU32::new(0),
                    words: [const { AtomicU64::new(0) }; 2],
                }
            }; N],
            count: AtomicU32::new(0),
        }
    }

    /// The operation's two words; `None` if it is not registered or does not exist.
    #[inline]
    pub(crate) fn get(&self, operation: u32) -> Option<[u64; 2]> {
        let place = self.places.get(operation as usize)?;
        if place.words[0].load(Ordering::Relaxed) == 0 {
            return None;
        }
        place.read()
    }

    /// Registers, or removes with 0 as the first word. The caller holds the registrations' lock.
    pub(crate) fn set(&self, operation: u32, words: [u64; 2]) {
        let Some(place) = self.places.get(operation as usize) else {
            return;
        };
        let before = place.words[0].load(Ordering::Relaxed) != 0;
        let after = words[0] != 0;
        let sequence = place.sequence.load(Ordering::Relaxed);
        place.sequence.store(sequence.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        place.words[0].store(words[0], Ordering::Relaxed);
        place.words[1].store(words[1], Ordering::Relaxed);
        place.sequence.store(sequence.wrapping_add(2), Ordering::Release);
        match (before, after) {
            (false, true) => self.count.fetch_add(1, Ordering::Relaxed),
            (true, false) => self.count.fetch_sub(1, Ordering::Relaxed),
            _ => 0,
        };
    }

    /// Whether nothing is registered.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// Whether any operation has matching words.
    pub(crate) fn has(&self, words: impl Fn([u64; 2]) -> bool) -> bool {
        (0..N as u32).any(|operation| self.get(operation).is_some_and(&words))
    }

    /// Removes matching registrations and returns their operations. The caller holds the registrations' lock.
    pub(crate) fn forget(&self, words: impl Fn([u64; 2]) -> bool) {
        for operation in 0..N as u32 {
            if self.get(operation).is_some_and(&words) {
                self.set(operation, [0; 2]);
            }
        }
    }
}

impl Registration {
    fn read(&self) -> Option<[u64; 2]> {
        loop {
            let before = self.sequence.load(Ordering::Acquire);
            let words = [0, 1].map(|i: usize| self.words.get(i).map_or(0, |word| word.load(Ordering::Relaxed)));
            fence(Ordering::Acquire);
            if before & 1 == 0 && self.sequence.load(Ordering::Relaxed) == before {
                return (words[0] != 0).then_some(words);
            }
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn words_are_read_as_written_together() {
        static TABLE: Table<1> = Table::new();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    if let Some([first, second]) = TABLE.get(0) {
                        assert_eq!(first, second);
                    }
                }
            });
            for word in 0..200_000u64 {
                TABLE.set(0, [word % 5, word % 5]);
            }
            is_over.store(true, Ordering::Relaxed);
        });
        TABLE.set(0, [0; 2]);
        assert!(TABLE.is_empty());
    }

    #[test]
    fn operations_beyond_the_table_are_not_registered() {
        static TABLE: Table<2> = Table::new();
        TABLE.set(2, [1, 1]);
        assert!(TABLE.is_empty());
        assert_eq!(TABLE.get(2), None);
    }
}
