//! Sets of correlation ids: a bit an id where they are dense, two bytes where they are not.

use std::collections::BTreeMap;

/// Ids of one chunk beyond which it has a bit for each.
const MAX_LISTED: usize = 4096;
/// Maximum bytes of a set.
const MAX_BYTES: usize = 16 << 20;

/// Ids of a chunk of 65536.
#[derive(Clone, Debug)]
enum Chunk {
    /// Sorted.
    Listed(Vec<u16>),
    Bits(Box<[u64; 1024]>),
}

impl Chunk {
    /// Adds an id; the bytes that this takes, `None` if it is known.
    fn add(&mut self, id: u16) -> Option<usize> {
        let (word, bit) = (usize::from(id / 64), 1u64 << (id % 64));
        match self {
            Self::Bits(bits) => {
                let is_new = bits[word] & bit == 0;
                bits[word] |= bit;
                is_new.then_some(0)
            }
            Self::Listed(list) => {
                // They mostly come in order.
                let at = match list.last() {
                    Some(last) if *last < id => list.len(),
                    _ => list.binary_search(&id).err()?,
                };
                list.insert(at, id);
                if list.len() > MAX_LISTED {
                    let mut bits = Box::new([0; 1024]);
                    for id in &*list {
                        bits[usize::from(id / 64)] |= 1 << (id % 64);
                    }
                    *self = Self::Bits(bits);
                }
                Some(2)
            }
        }
    }

    fn has(&self, id: u16) -> bool {
        match self {
            Self::Listed(list) => list.binary_search(&id).is_ok(),
            Self::Bits(bits) => bits[usize::from(id / 64)] & (1 << (id % 64)) != 0,
        }
    }

    fn ids(&self) -> Vec<u16> {
        match self {
            Self::Listed(list) => list.clone(),
            Self::Bits(_) => (0..=u16::MAX).filter(|id| self.has(*id)).collect(),
        }
    }
}

/// A set of ids with limited memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ids {
    chunks: BTreeMap<u64, Chunk>,
    bytes: usize,
    count: u64,
    /// Whether an id was left out, because the set is full.
    pub(crate) is_full: bool,
}

impl Ids {
    pub(crate) fn add(&mut self, id: u64) {
        let chunk = id >> 16;
        if !self.chunks.contains_key(&chunk) {
            if self.bytes >= MAX_BYTES {
                self.is_full = true;
                return;
            }
            self.bytes += 100;
        }
        let chunk = self.chunks.entry(chunk).or_insert_with(|| Chunk::Listed(Vec::new()));
        if let Some(bytes) = chunk.add(id as u16) {
            self.count += 1;
            self.bytes += bytes;
        }
    }

    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    /// The number of ids that another set does not have, and the first of them.
    pub(crate) fn without(&self, other: &Self) -> (u64, Option<u64>) {
        let (mut count, mut first) = (0, None);
        for (number, chunk) in &self.chunks {
            let known = other.chunks.get(number);
            for id in chunk.ids() {
                if !known.is_some_and(|known| known.has(id)) {
                    count += 1;
                    first = first.or(Some(number << 16 | u64::from(id)));
                }
            }
        }
        (count, first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dense_and_sparse_ids_are_kept() {
        let mut all = Ids::default();
        (0..100_000u64).rev().for_each(|id| all.add(id));
        for id in [1 << 40, u64::MAX, 5] {
            all.add(id);
        }
        assert_eq!(all.count(), 100_002);
        let mut some = Ids::default();
        (0..100_000u64)
            .filter(|id| *id != 77 && *id != 70_000)
            .for_each(|id| some.add(id));
        assert_eq!(all.without(&some), (4, Some(77)));
        assert_eq!(some.without(&all), (0, None));
    }

    #[test]
    fn a_set_has_a_limit() {
        let mut all = Ids::default();
        (0..400_000u64).for_each(|id| all.add(id << 20));
        assert!(all.is_full && all.bytes <= MAX_BYTES + 200);
    }
}
