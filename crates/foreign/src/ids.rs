//! Sets of ids, by process: a bit an id where they are dense, two bytes where they are not.

use std::collections::BTreeMap;

/// Ids of one chunk beyond which it has a bit for each.
const MAX_LISTED: usize = 4096;
/// Maximum bytes of a set; the last chunk may exceed it.
const MAX_BYTES: usize = 16 << 20;
/// How often an id of an unknown process is counted.
const MAX_LAYERS: u64 = 16;

/// Ids of a chunk of 65536.
#[derive(Clone, Debug)]
enum Chunk {
    /// Sorted.
    Listed(Vec<u16>),
    Bits(Box<[u64; 1024]>),
}

impl Chunk {
    /// Adds an id; whether it is new.
    fn add(&mut self, id: u16) -> bool {
        let (word, bit) = (usize::from(id / 64), 1u64 << (id % 64));
        match self {
            Self::Bits(bits) => {
                let is_new = bits[word] & bit == 0;
                bits[word] |= bit;
                is_new
            }
            Self::Listed(list) => {
                // They mostly come in order.
                let at = match list.last() {
                    Some(last) if *last < id => list.len(),
                    _ => match list.binary_search(&id) {
                        Ok(_) => return false,
                        Err(at) => at,
                    },
                };
                list.insert(at, id);
                if list.len() > MAX_LISTED {
                    let mut bits = Box::new([0; 1024]);
                    for id in &*list {
                        bits[usize::from(id / 64)] |= 1 << (id % 64);
                    }
                    *self = Self::Bits(bits);
                }
                true
            }
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Listed(list) => 2 * list.capacity(),
            Self::Bits(_) => 8 << 10,
        }
    }

    fn has(&self, id: u16) -> bool {
        match self {
            Self::Listed(list) => list.binary_search(&id).is_ok(),
            Self::Bits(bits) => bits[usize::from(id / 64)] & (1 << (id % 64)) != 0,
        }
    }

    fn last_up_to(&self, most: u16) -> Option<u16> {
        match self {
            Self::Listed(list) => {
                let above = list.partition_point(|id| *id <= most);
                above.checked_sub(1).map(|at| list[at])
            }
            Self::Bits(_) => (0..=most).rev().find(|id| self.has(*id)),
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
    /// By process, and by the upper bits of the ids.
    chunks: BTreeMap<(u64, u64), Chunk>,
    bytes: usize,
    count: u64,
    /// Whether an id was left out, because the set is full.
    pub(crate) is_full: bool,
}

impl Ids {
    /// Adds an id of a process; false if it is known.
    pub(crate) fn add(&mut self, process: u64, id: u64) -> bool {
        let (key, low) = ((process, id >> 16), id as u16);
        if self.bytes >= MAX_BYTES {
            match self.chunks.get(&key) {
                Some(chunk) if chunk.has(low) => return false,
                // A further bit takes no memory.
                Some(Chunk::Bits(_)) => {}
                _ => {
                    self.is_full = true;
                    return true;
                }
            }
        }
        let chunk = self.chunks.entry(key).or_insert_with(|| {
            self.bytes += 100;
            Chunk::Listed(Vec::new())
        });
        let before = chunk.bytes();
        let is_new = chunk.add(low);
        self.bytes = self.bytes + chunk.bytes() - before;
        self.count += u64::from(is_new);
        is_new
    }

    pub(crate) fn has(&self, process: u64, id: u64) -> bool {
        let chunk = self.chunks.get(&(process, id >> 16));
        chunk.is_some_and(|chunk| chunk.has(id as u16))
    }

    /// Adds an id of an unknown process: each time as that of another one, up to a limit.
    pub(crate) fn add_again(&mut self, id: u64) {
        let _ = (0..MAX_LAYERS).any(|layer| self.add(layer, id));
    }

    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    /// All ids, as `(process, id)`.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u64, u64)> {
        let ids = |((process, high), chunk): (&(u64, u64), &Chunk)| {
            let (process, high) = (*process, high << 16);
            chunk.ids().into_iter().map(move |low| (process, high | u64::from(low)))
        };
        self.chunks.iter().flat_map(ids)
    }

    /// The greatest id of a process that is not above this one.
    pub(crate) fn last_up_to(&self, process: u64, id: u64) -> Option<u64> {
        let before = self.chunks.range((process, 0)..=(process, id >> 16)).rev();
        let mut found = before.filter_map(|((_, high), chunk)| {
            let most = if *high == id >> 16 { id as u16 } else { u16::MAX };
            Some(high << 16 | u64::from(chunk.last_up_to(most)?))
        });
        found.next()
    }

    /// The same ids without their processes.
    pub(crate) fn of_unknown(&self) -> Self {
        let mut all = Self::default();
        self.all().for_each(|(_, id)| all.add_again(id));
        all.is_full |= self.is_full;
        all
    }

    /// The number of ids that another set does not have, and the first of them.
    pub(crate) fn without(&self, other: &Self) -> (u64, Option<u64>) {
        let (mut count, mut first) = (0, None);
        for (key, chunk) in &self.chunks {
            let known = other.chunks.get(key);
            for low in chunk.ids() {
                if !known.is_some_and(|known| known.has(low)) {
                    count += 1;
                    first = first.or(Some(key.1 << 16 | u64::from(low)));
                }
            }
        }
        (count, first)
    }

    /// The number of ids from 1 on that are missing below the last one of their process.
    pub(crate) fn missing(&self) -> u64 {
        let mut last: BTreeMap<u64, u64> = BTreeMap::new();
        for ((process, high), chunk) in &self.chunks {
            // Chunks are in order.
            if let Some(low) = chunk.ids().last() {
                last.insert(*process, high << 16 | u64::from(*low));
            }
        }
        let all = last.values().fold(0u64, |all, last| all.saturating_add(*last));
        all.saturating_sub(self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dense_and_sparse_ids_are_kept() {
        let mut all = Ids::default();
        (0..100_000u64).rev().for_each(|id| assert!(all.add(7, id)));
        for id in [1 << 40, u64::MAX, 5] {
            all.add(7, id);
        }
        assert_eq!(all.count(), 100_002);
        let mut some = Ids::default();
        (0..100_000u64)
            .filter(|id| *id != 77 && *id != 70_000)
            .for_each(|id| assert!(some.add(7, id)));
        assert_eq!(some.last_up_to(7, 70_000), Some(69_999));
        assert_eq!(all.last_up_to(7, 1 << 41), Some(1 << 40));
        assert_eq!((all.last_up_to(6, 5), all.last_up_to(7, 0)), (None, Some(0)));
        assert_eq!(all.without(&some), (4, Some(77)));
        assert_eq!(some.without(&all), (0, None));
    }

    #[test]
    fn a_set_has_a_limit() {
        let mut all = Ids::default();
        (0..100_000u64).for_each(|id| assert!(all.add(0, id << 20)));
        assert!(!all.is_full);
        // Chunks that are present do not grow beyond it either.
        let mut more = 1;
        while !all.is_full && more < 1000 {
            for id in 0..100_000u64 {
                all.add(0, id << 20 | more);
            }
            more += 1;
        }
        assert!(all.is_full && all.bytes <= MAX_BYTES + (16 << 10), "{}", all.bytes);
        assert!(!all.add(0, 1 << 20), "what is known is known");
    }

    #[test]
    fn processes_have_their_own_ids() {
        let (mut calls, mut own, mut unknown) = (Ids::default(), Ids::default(), Ids::default());
        for id in 1..=10 {
            calls.add(100, id);
            calls.add(200, id);
            own.add(100, id);
            unknown.add_again(id);
        }
        assert_eq!(calls.without(&own), (10, Some(1)));
        assert_eq!(calls.of_unknown().without(&unknown), (10, Some(1)));
        unknown.add_again(3);
        unknown.add_again(3);
        assert_eq!(calls.of_unknown().without(&unknown).0, 9);
        own.add(200, 12);
        assert_eq!(own.missing(), 11);
    }
}
