//! Small caches for lookups that every record makes: found by one comparison, without a hash table.

use crate::item::{KernelId, ProcessId};
use roctop_ring::near;

/// Cached values by key, one per entry. Equal keys must mean equal questions.
pub(super) struct Recent<K, V> {
    places: Vec<(K, V)>,
    bits: u32,
}

impl<K: Copy + PartialEq, V: Copy> Recent<K, V> {
    /// A cache of 2^`bits` entries. The key `never` marks an empty entry and must not be looked up.
    pub(super) fn new(bits: u32, never: K, value: V) -> Self {
        Self {
            places: vec![(never, value); 1 << bits],
            bits,
        }
    }

    /// Index of the entry for a key with this number. Numbers are mostly dense, or addresses with one spacing.
    fn place(&self, number: u64) -> usize {
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> (64 - self.bits)) as usize
    }

    pub(super) fn get(&self, number: u64, key: K) -> Option<V> {
        match self.places[self.place(number)] {
            (known, value) if known == key => Some(value),
            _ => None,
        }
    }

    pub(super) fn keep(&mut self, number: u64, key: K, value: V) -> V {
        let place = self.place(number);
        self.places[place] = (key, value);
        value
    }
}

#[derive(Clone, Copy)]
struct Object {
    address: u64,
    process: u32,
    kernel: u32,
}

const EMPTY: Object = Object {
    address: 0,
    process: u32::MAX,
    kernel: 0,
};

/// Objects whose addresses map to one set: one cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Set([Object; 4]);

/// Kernels by kernel object address. Some ten thousand fit without evicting each other.
pub(super) struct Objects {
    sets: Vec<Set>,
}

const SET_BITS: u32 = 13;

impl Default for Objects {
    fn default() -> Self {
        Self {
            sets: vec![Set([EMPTY; 4]); 1 << SET_BITS],
        }
    }
}

impl Objects {
    /// Kernel descriptors are aligned to 64 bytes: addresses divided by 64 spread neighbours evenly over the sets.
    #[inline]
    fn place(address: u64) -> usize {
        let number = (address ^ address >> 29) >> 6;
        (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SET_BITS)) as usize
    }

    /// Prefetches the set of an address.
    #[inline]
    pub(super) fn fetch(&self, address: u64) {
        near::fetch(&self.sets[Self::place(address)]);
    }

    pub(super) fn get(&self, process: ProcessId, address: u64) -> Option<KernelId> {
        let set = &self.sets[Self::place(address)].0;
        let found = set
            .iter()
            .find(|known| known.address == address && known.process == process.0)?;
        Some(KernelId(found.kernel))
    }

    pub(super) fn keep(&mut self, process: ProcessId, address: u64, kernel: KernelId) -> KernelId {
        let set = &mut self.sets[Self::place(address)].0;
        set.rotate_right(1);
        set[0] = Object {
            address,
            process: process.0,
            kernel: kernel.0,
        };
        kernel
    }

    /// Evicts an address, because another kernel may be there from now on.
    pub(super) fn forget(&mut self, address: u64) {
        let set = &mut self.sets[Self::place(address)].0;
        for known in set.iter_mut().filter(|known| known.address == address) {
            *known = EMPTY;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_thousand_kernels_of_any_spacing_are_found_again() {
        for spacing in [64, 128, 192, 256, 320, 4096] {
            let mut objects = Objects::default();
            let address = |kernel: u32| 0x7f00_0000_0000 + u64::from(kernel) * spacing;
            for kernel in 0..10_000 {
                objects.keep(ProcessId(0), address(kernel), KernelId(kernel));
            }
            let found =
                (0..10_000).filter(|&kernel| objects.get(ProcessId(0), address(kernel)) == Some(KernelId(kernel)));
            let found = found.count();
            assert!(found > 8_000, "{found} at a spacing of {spacing}");
        }
    }
}
