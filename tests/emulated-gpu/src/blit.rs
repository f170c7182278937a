//! The run-times' own copy and fill kernels, executed natively: device copies and memsets consist of them.
//!
//! HIP's are recognized by name, with the argument layouts of 5.x and 6.x, which share names and sizes, and of 10.
//! ROCr's have no name and are recognized by argument blocks that are consistent with the grid. Not supported: images.
//! A user's kernel is never executed.

use std::sync::atomic::Ordering;

use crate::guest;
use crate::memory::Memory;

/// Effect of a dispatch on memory.
pub(crate) enum Blit {
    /// None: a user's kernel.
    None,
    /// Copies a range.
    Copy { source: u64, target: u64, bytes: u64 },
    /// Copies ranges: (source, target, bytes) of each.
    Copies(Vec<[u64; 3]>),
    /// Repeats a pattern over a range.
    Fill { target: u64, pattern: Vec<u8>, bytes: u64 },
    /// Copies a box between two pitched layouts; sizes in bytes and lines.
    Box {
        source: Pitched,
        target: Pitched,
        size: [u64; 3],
    },
    /// Repeats a pattern over the lines of a pitched layout.
    FillLines {
        target: Pitched,
        pattern: Vec<u8>,
        width: u64,
        height: u64,
    },
    /// Stores a value for a stream operation.
    Store { target: u64, value: u64, bytes: u64 },
    /// Runs until a comparison with a value succeeds, for a stream operation.
    Await {
        place: u64,
        bytes: u64,
        value: u64,
        compare: u64,
        mask: u64,
    },
}

/// A layout of lines and slices.
#[derive(Clone, Copy)]
pub(crate) struct Pitched {
    address: u64,
    line: u64,
    slice: u64,
}

/// Argument block of a dispatch.
#[derive(Clone, Copy)]
struct Block(u64);

impl Block {
    fn word(self, offset: u64) -> u32 {
        guest::read(self.0 + offset)
    }

    fn long(self, offset: u64) -> u64 {
        guest::read(self.0 + offset)
    }
}

impl Blit {
    /// Effect of the kernel with this name, grid and argument block.
    pub(crate) fn recognise(memory: &Memory, name: &str, grid: [u32; 3], block: u64) -> Self {
        if block == 0 {
            return Self::None;
        }
        let block = Block(memory.host(block));
        match name {
            "" => runtime_kernel(grid[0], block).unwrap_or(Self::None),
            "__amd_rocclr_copyBuffer" => copy_buffer(block),
            "__amd_rocclr_copyBufferAligned" => copy_aligned(block),
            "__amd_rocclr_fillBufferAligned" => fill(memory, block),
            "__amd_rocclr_fillBufferAligned2D" => fill_lines(memory, block),
            "__amd_rocclr_fillBufferUnAligned" => fill_unaligned(memory, block),
            "__amd_rocclr_copyBufferBatch" => copy_batch(memory, block, grid[1]),
            "__amd_rocclr_copyBufferRect" => copy_box(block, 1),
            "__amd_rocclr_copyBufferRectAligned" => copy_box(block, if block.long(120) == 16 { 16 } else { 4 }),
            "__amd_rocclr_streamOpsWrite" => store(block),
            "__amd_rocclr_streamOpsWait" => wait(block),
            _ => Self::None,
        }
    }

    /// Number of bytes written.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::None | Self::Store { .. } | Self::Await { .. } => 0,
            Self::Copy { bytes, .. } | Self::Fill { bytes, .. } => *bytes,
            Self::Copies(copies) => copies.iter().map(|[_, _, bytes]| bytes).sum(),
            Self::Box { size, .. } => size.iter().product(),
            Self::FillLines { width, height, .. } => width * height,
        }
    }

    /// Source and target addresses, zero if absent.
    pub(crate) fn ends(&self) -> (u64, u64) {
        match self {
            Self::None => (0, 0),
            Self::Await { place, .. } => (*place, 0),
            Self::Copy { source, target, .. } => (*source, *target),
            Self::Copies(copies) => copies.first().map_or((0, 0), |[source, target, _]| (*source, *target)),
            Self::Fill { target, .. } | Self::Store { target, .. } => (0, *target),
            Self::Box { source, target, .. } => (source.address, target.address),
            Self::FillLines { target, .. } => (0, target.address),
        }
    }

    /// Whether it can end: a waiting kernel cannot until its value is there.
    pub(crate) fn can_end(&self, memory: &Memory) -> bool {
        let Self::Await {
            place,
            bytes,
            value,
            compare,
            mask,
        } = self
        else {
            return true;
        };
        let place = memory.host(*place);
        // Acquire: pairs with the release of the storing thread.
        let (found, sign) = if *bytes == 4 {
            (guest::atomic_u32(place).load(Ordering::Acquire).into(), 31)
        } else {
            (guest::atomic_u64(place).load(Ordering::Acquire), 63)
        };
        let masked = found & mask;
        match compare {
            0 => masked.wrapping_sub(*value) >> sign & 1 == 0,
            1 => masked == *value,
            2 => masked & value != 0,
            _ => !(found | value) & mask != 0,
        }
    }

    /// Executes it.
    pub(crate) fn execute(&self, memory: &Memory) {
        match self {
            Self::None | Self::Await { .. } => {}
            Self::Copy { source, target, bytes } => guest::copy(memory.host(*source), memory.host(*target), *bytes),
            Self::Copies(copies) => {
                for [source, target, bytes] in copies {
                    guest::copy(memory.host(*source), memory.host(*target), *bytes);
                }
            }
            Self::Fill { target, pattern, bytes } => repeat(memory.host(*target), pattern, *bytes),
            Self::Box {
                source,
                target,
                size: [width, height, depth],
            } => {
                let (from, to) = (memory.host(source.address), memory.host(target.address));
                for (z, y) in (0..*depth).flat_map(|z| (0..*height).map(move |y| (z, y))) {
                    let line = |start: u64, layout: &Pitched| start + z * layout.slice + y * layout.line;
                    guest::copy(line(from, source), line(to, target), *width);
                }
            }
            Self::FillLines {
                target,
                pattern,
                width,
                height,
            } => {
                let start = memory.host(target.address);
                (0..*height).for_each(|y| repeat(start + y * target.line, pattern, *width));
            }
            Self::Store {
                target,
                value,
                bytes: 4,
            } => guest::write(memory.host(*target), *value as u32),
            Self::Store { target, value, .. } => guest::write(memory.host(*target), *value),
        }
    }
}

/// Repeats a pattern; the rest at the end gets the pattern's begin.
fn repeat(target: u64, pattern: &[u8], bytes: u64) {
    if let Some(first) = pattern.first() {
        if pattern.iter().all(|byte| byte == first) {
            return guest::fill(target, *first, bytes);
        }
        let source = pattern.as_ptr() as u64;
        let mut done = (pattern.len() as u64).min(bytes);
        guest::copy(source, target, done);
        while done < bytes {
            let more = done.min(bytes - done);
            guest::copy(target, target + done, more);
            done += more;
        }
    }
}

/// Recognizes ROCr's kernels: the number of work-items, which equals the grid, and other conditions.
fn runtime_kernel(grid: u32, block: Block) -> Option<Blit> {
    let ordered = |offsets: &[u64]| {
        offsets
            .windows(2)
            .all(|pair| block.long(pair[0]) <= block.long(pair[1]))
    };
    let same_span =
        |a: u64, b: u64| block.long(a).wrapping_sub(block.long(0)) == block.long(b).wrapping_sub(block.long(8));
    let copy = |end: u64| {
        let (source, target) = (block.long(0), block.long(8));
        Blit::Copy {
            source,
            target,
            bytes: block.long(end) - source,
        }
    };
    if block.word(48) == grid && ordered(&[0, 16, 32]) && ordered(&[8, 24, 40]) && same_span(32, 40) {
        return Some(copy(32));
    }
    if block.word(80) == grid && ordered(&[0, 16, 32, 48, 64]) && ordered(&[8, 24, 40, 56, 72]) && same_span(64, 72) {
        return Some(copy(64));
    }
    if block.word(28) == grid && ordered(&[0, 8, 16]) {
        let target = block.long(0);
        let pattern = block.word(24).to_le_bytes().to_vec();
        return Some(Blit::Fill {
            target,
            pattern,
            bytes: block.long(16) - target,
        });
    }
    None
}

fn copy_buffer(block: Block) -> Blit {
    let (source, target) = (block.long(0), block.long(8));
    let (bytes, end) = (block.long(16), block.long(32));
    if end >= target && end <= target.saturating_add(bytes) && end - target >= bytes.saturating_sub(64) {
        return Blit::Copy { source, target, bytes };
    }
    // 5.x counts dwords; the last one is used in part or not at all.
    let bytes = block.long(32).saturating_sub(1) * 4 + u64::from(block.word(40));
    Blit::Copy {
        source: source + block.long(16),
        target: target + block.long(24),
        bytes,
    }
}

fn copy_aligned(block: Block) -> Blit {
    let unit = u64::from(block.word(40));
    Blit::Copy {
        source: block.long(0) + block.long(16) * unit,
        target: block.long(8) + block.long(24) * unit,
        bytes: block.long(32) * unit,
    }
}

/// Bytes of a pattern in registered host memory.
fn pattern(memory: &Memory, address: u64, size: u64) -> Vec<u8> {
    guest::bytes(memory.host(address), size as usize).to_vec()
}

/// The one non-null pointer of four, and the size of its elements.
fn typed_pointer(block: Block) -> Option<(u64, u64)> {
    (0..4)
        .map(|index| (block.long(index * 8), 1 << index))
        .find(|(pointer, _)| *pointer != 0)
}

fn fill(memory: &Memory, block: Block) -> Blit {
    if block.long(0) != 0 && block.long(8) != 0 {
        let target = block.long(0);
        let size = u64::from(block.word(16)) * u64::from(block.word(20));
        let pattern = pattern(memory, block.long(8), size);
        return Blit::Fill {
            target,
            pattern,
            bytes: block.long(24).saturating_sub(target),
        };
    }
    let Some((target, unit)) = typed_pointer(block) else {
        return Blit::None;
    };
    let size = u64::from(block.word(40)) * unit;
    Blit::Fill {
        target: target + block.long(48) * unit,
        pattern: pattern(memory, block.long(32), size),
        bytes: block.long(56) * size,
    }
}

/// HIP 10's only fill. Its parts of different widths form one range: single bytes up to the first multiple of eight, at
/// most one element of eight bytes, elements of sixteen, at most one of eight again, single bytes.
fn fill_unaligned(memory: &Memory, block: Block) -> Blit {
    const COUNTS: u64 = 120;
    let [head, body, body_tail, tail] = [0, 2, 4, 6].map(|at| u64::from(guest::read::<u16>(block.0 + COUNTS + at)));
    Blit::Fill {
        target: block.long(0),
        pattern: pattern(memory, block.long(8), block.long(72)),
        bytes: head + 8 * body + 16 * block.long(48) + 8 * body_tail + tail,
    }
}

/// A list of copies, one per line of the grid: source, target, elements, bytes per element, remaining bytes.
fn copy_batch(memory: &Memory, block: Block, count: u32) -> Blit {
    const ENTRY: u64 = 32;
    let list = memory.host(block.long(0));
    let copy = |index: u64| {
        let entry = Block(list + index * ENTRY);
        let bytes = entry.long(16) * u64::from(entry.word(24)) + u64::from(entry.word(28));
        [entry.long(0), entry.long(8), bytes]
    };
    Blit::Copies((0..count.into()).map(copy).collect())
}

fn fill_lines(memory: &Memory, block: Block) -> Blit {
    let Some((target, unit)) = typed_pointer(block) else {
        return Blit::None;
    };
    let size = u64::from(block.word(40)) * unit;
    let line = block.long(72) * unit;
    Blit::FillLines {
        target: Pitched {
            address: target + block.long(48) * unit,
            line,
            slice: 0,
        },
        pattern: pattern(memory, block.long(32), size),
        width: block.long(56) * size,
        height: block.long(64),
    }
}

/// Pitches, origins and size are vectors of four; an element has `unit` bytes.
fn copy_box(block: Block, unit: u64) -> Blit {
    let layout = |pointer: u64, vector: u64| Pitched {
        address: block.long(pointer) + block.long(vector + 16) * unit,
        line: block.long(vector) * unit,
        slice: block.long(vector + 8) * unit,
    };
    let size = [block.long(96) * unit, block.long(104), block.long(112)];
    Blit::Box {
        source: layout(0, 32),
        target: layout(8, 64),
        size,
    }
}

fn wait(block: Block) -> Blit {
    let (word, long) = (block.long(0), block.long(8));
    let (place, bytes, width) = if word != 0 {
        (word, 4, u64::from(u32::MAX))
    } else {
        (long, 8, u64::MAX)
    };
    Blit::Await {
        place,
        bytes,
        value: block.long(16) & width,
        compare: block.long(24),
        mask: block.long(32) & width,
    }
}

fn store(block: Block) -> Blit {
    let (word, long) = (block.long(0), block.long(8));
    let (target, bytes) = if word != 0 { (word, 4) } else { (long, 8) };
    Blit::Store {
        target,
        value: block.long(16),
        bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process;

    fn address<T>(place: &[T]) -> u64 {
        place.as_ptr() as u64
    }

    fn execute(name: &str, grid: [u32; 3], block: &[u64]) -> Blit {
        let memory = &process::open().memory;
        let blit = Blit::recognise(memory, name, grid, address(block));
        blit.execute(memory);
        blit
    }

    #[test]
    fn a_fill_of_hip_10_writes_its_range_and_nothing_beside_it() {
        #[repr(align(16))]
        struct Aligned([u8; 128]);
        let pattern: Vec<u8> = (1..=8).collect();
        for (start, size) in [(3, 100), (0, 96), (8, 40), (5, 6)] {
            let mut place = Aligned([0; 128]);
            let target = place.0.as_mut_ptr() as u64 + start;
            // As HIP lays it out.
            let (first, last) = ((target + 7) & !7, (target + size) & !7);
            let (tiles, tiles_end) = ((first + 15) & !15, last & !15);
            let mut block = [0; 16];
            (block[0], block[1], block[9]) = (target, address(&pattern), pattern.len() as u64);
            if last <= first {
                block[15] = size;
            } else {
                block[6] = tiles_end.saturating_sub(tiles) / 16;
                let parts = [
                    first - target,
                    (tiles - first) / 8,
                    (last - tiles_end) / 8,
                    target + size - last,
                ];
                block[15] = (0..).zip(parts).map(|(at, part)| part << (16 * at)).sum();
            }
            let blit = execute("__amd_rocclr_fillBufferUnAligned", [256, 1, 1], &block);
            assert_eq!((blit.bytes(), blit.ends()), (size, (0, target)), "{start} {size}");
            let expected = |at: u64| {
                if (start..start + size).contains(&at) {
                    (at - start) % 8 + 1
                } else {
                    0
                }
            };
            assert!(
                (0..).zip(place.0).all(|(at, byte)| u64::from(byte) == expected(at)),
                "{start} {size}"
            );
        }
    }

    #[test]
    fn a_batch_of_copies_moves_each() {
        let sources: [Vec<u8>; 2] = [(0..70).collect(), (100..133).collect()];
        let mut targets = [vec![0_u8; 70], vec![0_u8; 33]];
        let entry = |at: usize, unit: u64| {
            let bytes = sources[at].len() as u64;
            [
                address(&sources[at]),
                targets[at].as_ptr() as u64,
                bytes / unit,
                ((bytes % unit) << 32) | unit,
            ]
        };
        let list = [entry(0, 16), entry(1, 4)].concat();
        let blit = execute(
            "__amd_rocclr_copyBufferBatch",
            [512, 2, 1],
            &[address(&list), 512 << 32 | 512],
        );
        assert_eq!(blit.bytes(), 103);
        assert_eq!(std::mem::take(&mut targets), sources);
    }
}
