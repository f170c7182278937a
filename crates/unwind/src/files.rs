//! The files that processes have mapped, with their unwind tables.

use crate::cfi::{Cfi, Memory, Registers, Rule, Step};
use crate::elf::{Elf, Load, OpenError};
use gimli::UnwindContext;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Files that are known, at most. Code of further ones is treated as code without a file.
const MAX_MODULES: usize = 1 << 14;
/// Unwind tables in memory, bytes; tables of files that were not used for longest are dropped, and read again when needed.
const MAX_TABLE_BYTES: usize = 192 << 20;
/// Open files, each with a descriptor.
const MAX_OPEN: usize = 128;
/// Addresses with a known rule.
const MAX_RULES: usize = 1 << 17;

/// A file in [`Files`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleId(pub u32);

/// Whether a file is the one that the process has mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has the mapping's inode, and is as long as the mapping requires. Devices are not compared, because file systems
    /// with subvolumes report another one in `/proc/PID/maps` than in `stat`. A file that was overwritten in place is
    /// not recognised here, but by its build-id when it is named.
    Same,
    /// Another file has its name now. It is not used.
    Changed,
    /// It was removed, or may not be read.
    Missing,
    /// Not a regular file, or not ELF.
    NotElf,
}

/// A file that is mapped into a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// As the process sees it.
    pub path: PathBuf,
    /// Where it was opened: below the process's root, or `path`. Empty unless the state is [`State::Same`].
    pub opened: PathBuf,
    /// Empty if the file has none or was not used.
    pub build_id: Vec<u8>,
    /// Whether the file was used.
    pub state: State,
}

/// What identifies a file: device, inode, path and root.
type Key = (u64, u64, PathBuf, Option<PathBuf>);

#[derive(Debug)]
struct Entry {
    module: Module,
    inode: u64,
    loads: Vec<Load>,
    open: Option<(Elf, Cfi)>,
    last_use: u64,
}

/// The files of all processes. Each is opened and parsed once.
///
/// Memory: at most 192 MiB of unwind tables, 16 384 files and 131 072 rules.
#[derive(Debug, Default)]
pub struct Files {
    entries: Vec<Entry>,
    ids: HashMap<Key, ModuleId>,
    rules: HashMap<(ModuleId, u64), Rule>,
    context: Box<UnwindContext<usize>>,
    /// Counts uses.
    uses: u64,
}

/// Why a file is not the mapped one, and the file if it is.
fn open(path: &Path, inode: u64, end: u64) -> Result<Elf, State> {
    match Elf::open(path) {
        Err(OpenError::Missing) => Err(State::Missing),
        Err(OpenError::NotElf) => Err(State::NotElf),
        Ok(elf) if inode != 0 && elf.inode != inode => Err(State::Changed),
        // A mapping ends with a page.
        Ok(elf) if elf.len.checked_next_multiple_of(4096).is_none_or(|len| len < end) => Err(State::Changed),
        Ok(elf) => Ok(elf),
    }
}

/// A file that was removed has this at its end in `/proc/PID/maps`.
const DELETED: &[u8] = b" (deleted)";

impl Files {
    /// No files.
    pub fn new() -> Self {
        Self::default()
    }

    /// The file with this id.
    pub fn module(&self, id: ModuleId) -> Option<&Module> {
        Some(&self.entries.get(id.0 as usize)?.module)
    }

    /// All files, by their ids from 0.
    pub fn modules(&self) -> impl ExactSizeIterator<Item = &Module> {
        self.entries.iter().map(|entry| &entry.module)
    }

    /// The file at `path` in a process with this root, of which the bytes before `end` are mapped.
    pub(crate) fn find(
        &mut self,
        root: Option<&Path>,
        path: &Path,
        device: u64,
        inode: u64,
        end: u64,
    ) -> Option<ModuleId> {
        let key = (device, inode, path.to_owned(), root.map(Path::to_owned));
        if let Some(id) = self.ids.get(&key) {
            return Some(*id);
        }
        if self.entries.len() >= MAX_MODULES {
            return None;
        }
        let id = ModuleId(self.entries.len() as u32);
        let mut candidates = Vec::new();
        for path in [Some(path), without_deleted(path)].into_iter().flatten() {
            let below = path.strip_prefix("/").unwrap_or(path);
            candidates.extend(root.map(|root| root.join(below)));
            candidates.push(path.to_owned());
        }
        let mut module = Module {
            path: path.to_owned(),
            opened: PathBuf::new(),
            build_id: Vec::new(),
            state: State::Missing,
        };
        let mut found = None;
        for candidate in candidates {
            match open(&candidate, inode, end) {
                Ok(elf) => {
                    module.build_id.clone_from(&elf.build_id);
                    module.opened = candidate;
                    module.state = State::Same;
                    found = Some(elf);
                    break;
                }
                Err(State::Missing) => {}
                Err(state) => module.state = state,
            }
        }
        let loads = found.map(|elf| elf.loads).unwrap_or_default();
        self.entries.push(Entry {
            module,
            inode,
            loads,
            open: None,
            last_use: 0,
        });
        self.ids.insert(key, id);
        Some(id)
    }

    /// The file's own address of the code at this position.
    pub(crate) fn address(&self, id: ModuleId, offset: u64) -> Option<u64> {
        Elf::code_address(&self.entries.get(id.0 as usize)?.loads, offset)
    }

    /// The file's open handle and tables, opened again if they were dropped.
    fn opened(&mut self, id: ModuleId) -> Option<&(Elf, Cfi)> {
        let at = id.0 as usize;
        self.uses += 1;
        let uses = self.uses;
        let entry = self.entries.get_mut(at)?;
        entry.last_use = uses;
        if entry.open.is_none() {
            if entry.module.state != State::Same {
                return None;
            }
            match open(&entry.module.opened, entry.inode, 0) {
                Ok(elf) if elf.build_id == entry.module.build_id => {
                    let cfi = Cfi::read(&elf);
                    entry.open = Some((elf, cfi));
                    self.drop_unused(at);
                }
                Ok(_) => entry.module.state = State::Changed,
                Err(state) => entry.module.state = state,
            }
        }
        self.entries.get(at)?.open.as_ref()
    }

    /// Keeps the limits of memory and descriptors.
    fn drop_unused(&mut self, keep: usize) {
        loop {
            let open = self.entries.iter().enumerate();
            let open = open.filter_map(|(at, entry)| Some((entry.last_use, at, entry.open.as_ref()?.1.bytes)));
            let (count, bytes) = open
                .clone()
                .fold((0, 0), |(count, bytes), one| (count + 1, bytes + one.2));
            if count <= MAX_OPEN && bytes <= MAX_TABLE_BYTES {
                return;
            }
            let Some((_, at, _)) = open.filter(|one| one.1 != keep).min() else {
                return;
            };
            self.entries[at].open = None;
        }
    }

    /// The caller of a frame in this file; `address` is the file's own.
    pub(crate) fn step(&mut self, id: ModuleId, address: u64, registers: &mut Registers, memory: Memory<'_>) -> Step {
        if let Some(rule) = self.rules.get(&(id, address)) {
            return rule.step(registers, memory);
        }
        let mut context = std::mem::take(&mut self.context);
        let result = self
            .opened(id)
            .map(|(_, cfi)| cfi.step(address, registers, memory, &mut context));
        self.context = context;
        let Some((step, rule)) = result else {
            return Step::NoRule;
        };
        if let Some(rule) = rule {
            if self.rules.len() >= MAX_RULES {
                self.rules.clear();
            }
            self.rules.insert((id, address), rule);
        }
        step
    }

    /// Whether a function begins at this address, the file's own.
    pub(crate) fn has_function_at(&mut self, id: ModuleId, address: u64) -> bool {
        self.opened(id).is_some_and(|(_, cfi)| cfi.has_function_at(address))
    }

    /// Whether the instruction before this position of the file is a call; `None` if the file cannot be read.
    pub(crate) fn is_after_call(&mut self, id: ModuleId, offset: u64) -> Option<bool> {
        let (elf, _) = self.opened(id)?;
        let begin = offset.checked_sub(8)?;
        let bytes = elf.read(begin, 8, 8)?;
        // E8 is a call by a relative address; FF with 2 in bits 3 to 5 of its second byte is one through register or memory.
        let indirect = (2..=7).any(|len| {
            let at = 8 - len;
            bytes[at] == 0xff && bytes[at + 1] & 0x38 == 0x10
        });
        Some(bytes[3] == 0xe8 || indirect)
    }
}

fn without_deleted(path: &Path) -> Option<&Path> {
    let name = path.as_os_str().as_bytes().strip_suffix(DELETED)?;
    Some(Path::new(OsStr::from_bytes(name)))
}
