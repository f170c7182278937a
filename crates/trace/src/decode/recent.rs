//! The last answers of look-ups that every record makes: found by one comparison, without hashing.

use crate::item::{KernelId, ProcessId};
use roctop_ring::near;

/// Answers by key, one at each place. `K` must tell two questions apart.
pub(super) struct Recent<K, V> {
    places: Vec<(K, V)>,
    bits: u32,
}

impl<K: Copy + PartialEq, V: Copy> Recent<K, V> {
    /// With 2^`bits` places; nothing may ask for the key `never`.
    pub(super) fn new(bits: u32, never: K, value: V) -> Self {
        Self {
            places: vec![(never, value); 1 << bits],
            bits,
        }
    }

    /// Where the answer for a key of this number is kept. Numbers are mostly dense or addresses of one spacing.
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

/// A kernel object of a process, and its kernel.
#[derive(Clone, Copy)]
struct Object {
    address: u64,
    process: u32,
    kernel: u32,
}

const NOTHING: Object = Object {
    address: 0,
    process: u32::MAX,
    kernel: 0,
};

/// Objects whose addresses share a place: one line of the processor's cache.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Set([Object; 4]);

/// Kernels by object: some ten thousand find their places without driving each other out.
pub(super) struct Objects {
    sets: Vec<Set>,
}

const SETS: u32 = 13;

impl Default for Objects {
    fn default() -> Self {
        Self {
            sets: vec![Set([NOTHING; 4]); 1 << SETS],
        }
    }
}

impl Objects {
    /// Kernel descriptors lie at multiples of 64: numbered so, neighbours are spread evenly, which their addresses are not.
    #[inline]
    fn place(address: u64) -> usize {
        let number = (address ^ address >> 29) >> 6;
        (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SETS)) as usize
    }

    /// Fetches what will be looked for soon.
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

    /// The kernel at this address may be another from now on.
    pub(super) fn forget(&mut self, address: u64) {
        let set = &mut self.sets[Self::place(address)].0;
        for known in set.iter_mut().filter(|known| known.address == address) {
            *known = NOTHING;
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
