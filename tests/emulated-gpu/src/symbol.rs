//! Kernel names, found in the code object that contains a kernel descriptor.
//!
//! The loader copies a code object's segments into one buffer with the ELF header at its base; the descriptor's offset
//! from the base is the value of a `NAME.kd` symbol. Not supported: code objects without a symbol table, whose kernels
//! have no names, such as those that the run-times upload.

use std::collections::HashMap;
use std::sync::Arc;

use crate::guest;
use crate::memory::Memory;

/// Cache of names, valid until a buffer is freed.
#[derive(Default)]
pub(crate) struct Symbols {
    names: HashMap<u64, Arc<str>>,
    generation: u64,
}

impl Symbols {
    /// Name of a kernel object, empty if it has none.
    pub(crate) fn name(&mut self, memory: &Memory, kernel_object: u64) -> Arc<str> {
        let generation = memory.generation();
        if generation != self.generation {
            self.names.clear();
            self.generation = generation;
        }
        let find = || Arc::from(find(memory, kernel_object).unwrap_or_default());
        Arc::clone(self.names.entry(kernel_object).or_insert_with(find))
    }
}

fn find(memory: &Memory, kernel_object: u64) -> Option<String> {
    let buffer = memory.around(kernel_object)?;
    let image = Image(guest::bytes(buffer.address, buffer.size as usize));
    image.symbol(kernel_object - buffer.address)
}

/// A loaded ELF image; its addresses are relative to its start.
struct Image<'a>(&'a [u8]);

const PT_DYNAMIC: u32 = 2;
const DT_HASH: u64 = 4;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const SYMBOL_BYTES: usize = 24;

impl Image<'_> {
    fn word(&self, at: usize) -> Option<u32> {
        self.0.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
    }

    fn long(&self, at: usize) -> Option<u64> {
        self.0.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes)
    }

    fn half(&self, at: usize) -> Option<usize> {
        self.0
            .get(at..at + 2)?
            .try_into()
            .ok()
            .map(|bytes| u16::from_le_bytes(bytes).into())
    }

    fn dynamic(&self) -> Option<usize> {
        if !self.0.starts_with(b"\x7fELF") {
            return None;
        }
        let (start, size, count) = (self.long(32)? as usize, self.half(54)?, self.half(56)?);
        let header = (0..count)
            .map(|index| start + index * size)
            .find(|at| self.word(*at) == Some(PT_DYNAMIC))?;
        self.long(header + 16).map(|address| address as usize)
    }

    fn symbol(&self, value: u64) -> Option<String> {
        let (mut hash, mut strings, mut symbols) = (None, None, None);
        let mut at = self.dynamic()?;
        loop {
            let (tag, entry) = (self.long(at)?, self.long(at + 8)? as usize);
            match tag {
                0 => break,
                DT_HASH => hash = Some(entry),
                DT_STRTAB => strings = Some(entry),
                DT_SYMTAB => symbols = Some(entry),
                _ => {}
            }
            at += 16;
        }
        let (hash, strings, symbols) = (hash?, strings?, symbols?);
        let count = self.word(hash + 4)? as usize;
        let descriptor = (0..count)
            .map(|index| symbols + index * SYMBOL_BYTES)
            .find_map(|symbol| {
                let name = self.text(strings + self.word(symbol)? as usize)?;
                let found = self.long(symbol + 8)? == value;
                name.strip_suffix(".kd").filter(|_| found)
            });
        descriptor.map(str::to_owned)
    }

    fn text(&self, at: usize) -> Option<&str> {
        let bytes = self.0.get(at..)?;
        let end = bytes.iter().take(1 << 16).position(|byte| *byte == 0)?;
        std::str::from_utf8(&bytes[..end]).ok()
    }
}
