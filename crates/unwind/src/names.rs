//! Names of addresses: functions, files and lines.

use crate::demangle::demangle;
use crate::dwarf::{Dwarf, Functions};
use crate::elf::{Elf, OpenError, text_at, u32_at};
use crate::symbols::Symbols;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What all files but the one in use may occupy, bytes. Any file stays below 450 MiB: 80 MiB of sections, 52 MiB of index,
/// 48 MiB of symbols, 48 MiB of units, and 210 MiB while one more unit is parsed.
const MAX_OTHERS: usize = 60 << 20;
/// Files that are open.
const MAX_OPEN: usize = 64;
/// Where distributions install split debug information.
const DEBUG_FOLDER: &str = "/usr/lib/debug";

/// A function at an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Demangled; empty if unknown.
    pub function: String,
    /// Path as the compiler wrote it; empty if unknown.
    pub file: String,
    /// Line in the file, from 1; 0 if unknown.
    pub line: u32,
    /// Where no file is known, the distance of the address from the function's first one; 0 if unknown.
    pub distance: u64,
}

/// Why an address has no name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoName {
    /// The file was removed, or may not be read.
    #[error("the file is missing")]
    Missing,
    /// Not a regular file, or not a 64-bit ELF file.
    #[error("not an ELF file")]
    NotElf,
    /// The file has another build-id: it changed since the program ran.
    #[error("the file has changed")]
    OtherBuild {
        /// Empty if the file has none.
        found: Vec<u8>,
    },
    /// Neither debug information nor symbols have this address.
    #[error("no symbol at this address")]
    NoSymbol,
}

/// A file that is open.
#[derive(Debug)]
struct Object {
    elf: Elf,
    /// Split debug information.
    debug: Option<Elf>,
    symbols: Symbols,
    /// Whether the symbols are those of `debug`.
    is_of_debug: bool,
    dwarf: Option<Dwarf>,
    last_use: u64,
}

/// Names addresses of files; it needs no process.
///
/// Files are opened when one of their addresses is named. Names of one file should be requested together
/// ([`Names::all`]): the debug information of files and units that were not used for longest is dropped, so that at most
/// 512 MiB are in use, and is read again when needed.
#[derive(Debug)]
pub struct Names {
    objects: HashMap<(PathBuf, Vec<u8>), Object>,
    debug_folders: Vec<PathBuf>,
    /// Counts uses.
    uses: u64,
}

impl Default for Names {
    fn default() -> Self {
        Self::new(vec![DEBUG_FOLDER.into()])
    }
}

impl Names {
    /// Looks for split debug information in these folders and beside the files; by default in `/usr/lib/debug`.
    pub fn new(debug_folders: Vec<PathBuf>) -> Self {
        Self {
            objects: HashMap::new(),
            debug_folders,
            uses: 0,
        }
    }

    /// The functions at an address of the file, the innermost inlined one first.
    ///
    /// `offset` is the file's own address, as [`crate::Frame`] has it. A file with another build-id is not used; an empty
    /// `build_id` fits only files without one.
    pub fn name(&mut self, path: &Path, build_id: &[u8], offset: u64) -> Result<Vec<Named>, NoName> {
        self.object(path, build_id)?.name(offset)
    }

    /// The functions at many addresses of the file, in their order; each part of its debug information is read once.
    pub fn all(&mut self, path: &Path, build_id: &[u8], offsets: &[u64]) -> Vec<Result<Vec<Named>, NoName>> {
        let object = match self.object(path, build_id) {
            Ok(object) => object,
            Err(reason) => return offsets.iter().map(|_| Err(reason.clone())).collect(),
        };
        let key = |offset| object.dwarf.as_ref().map_or(0, |dwarf| dwarf.sort_key(offset));
        let mut order: Vec<(u32, u64, usize)> = (0..)
            .zip(offsets)
            .map(|(at, offset)| (key(*offset), *offset, at))
            .collect();
        order.sort_unstable();
        let mut named = vec![Err(NoName::NoSymbol); offsets.len()];
        for (_, offset, at) in order {
            named[at] = object.name(offset);
        }
        named
    }

    fn object(&mut self, path: &Path, build_id: &[u8]) -> Result<&mut Object, NoName> {
        self.uses += 1;
        let uses = self.uses;
        let key = (path.to_owned(), build_id.to_owned());
        if !self.objects.contains_key(&key) {
            // Before another file is read.
            self.drop_unused(MAX_OTHERS, MAX_OPEN - 1);
            let object = Object::open(path, build_id, &self.debug_folders)?;
            self.objects.insert(key.clone(), object);
        } else if self.objects.len() > 1 {
            if let Some(object) = self.objects.get_mut(&key) {
                object.last_use = uses;
            }
            let used = self.objects.get(&key).map_or(0, Object::bytes);
            self.drop_unused(MAX_OTHERS + used, MAX_OPEN);
        }
        let object = self.objects.get_mut(&key).ok_or(NoName::Missing)?;
        object.last_use = uses;
        Ok(object)
    }

    /// Drops the files that were not used for longest until the rest has these limits.
    fn drop_unused(&mut self, bytes: usize, open: usize) {
        loop {
            let sum: usize = self.objects.values().map(Object::bytes).sum();
            if sum <= bytes && self.objects.len() <= open {
                return;
            }
            let oldest = self.objects.iter().min_by_key(|(_, object)| object.last_use);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else {
                return;
            };
            self.objects.remove(&oldest);
        }
    }
}

impl Object {
    fn open(path: &Path, build_id: &[u8], debug_folders: &[PathBuf]) -> Result<Self, NoName> {
        let elf = Elf::open(path).map_err(|error| match error {
            OpenError::Missing => NoName::Missing,
            OpenError::NotElf => NoName::NotElf,
        })?;
        if elf.build_id != build_id {
            return Err(NoName::OtherBuild { found: elf.build_id });
        }
        let debug = match elf.section(".debug_info") {
            Some(_) => None,
            None => split(path, &elf, debug_folders),
        };
        let dwarf = Dwarf::open(debug.as_ref().unwrap_or(&elf));
        let of_debug = debug.as_ref().map(Symbols::read).filter(|symbols| !symbols.is_empty());
        let is_of_debug = of_debug.is_some();
        let symbols = of_debug.unwrap_or_else(|| Symbols::read(&elf));
        Ok(Self {
            elf,
            debug,
            symbols,
            is_of_debug,
            dwarf,
            last_use: 0,
        })
    }

    fn bytes(&self) -> usize {
        self.symbols.bytes() + self.dwarf.as_ref().map_or(0, Dwarf::bytes)
    }

    fn name(&mut self, offset: u64) -> Result<Vec<Named>, NoName> {
        let debug = self.debug.as_ref().unwrap_or(&self.elf);
        let Functions { mut named, has_symbol } = match &mut self.dwarf {
            Some(dwarf) => dwarf.name(debug, offset),
            None => Functions::default(),
        };
        // The outermost function is the one with a symbol. Compilers leave out the symbols of some, for example lambdas.
        if !has_symbol {
            let elf = if self.is_of_debug { debug } else { &self.elf };
            if let Some((symbol, distance)) = self.symbols.name(elf, offset) {
                match named.last_mut() {
                    Some(last) if last.function.is_empty() || is_mangled(&symbol) => last.function = demangle(&symbol),
                    Some(_) => {}
                    None => named.push(Named {
                        function: demangle(&symbol),
                        distance,
                        ..Named::default()
                    }),
                }
            }
        }
        if named.iter().all(|one| one.function.is_empty() && one.file.is_empty()) {
            return Err(NoName::NoSymbol);
        }
        Ok(named)
    }
}

fn is_mangled(symbol: &str) -> bool {
    symbol.starts_with("_Z") || symbol.starts_with("_R")
}

/// The split debug information of a file: by its build-id, else by the link in it. A file that does not fit is not used.
fn split(path: &Path, elf: &Elf, folders: &[PathBuf]) -> Option<Elf> {
    let fits = |found: &Elf| found.build_id == elf.build_id && found.section(".debug_info").is_some();
    if let Some((first, rest)) = elf.build_id.split_first().filter(|(_, rest)| !rest.is_empty()) {
        let mut name = format!(".build-id/{first:02x}/");
        for byte in rest {
            let _ = write!(name, "{byte:02x}");
        }
        name.push_str(".debug");
        let candidates = folders.iter().map(|folder| folder.join(&name));
        if let Some(found) = candidates.filter_map(|path| Elf::open(&path).ok()).find(fits) {
            return Some(found);
        }
    }
    let section = elf.section(".gnu_debuglink")?;
    let link = elf.read(section.offset, section.len, 4096)?;
    let name = text_at(&link, 0).filter(|name| !name.is_empty() && !name.contains(&b'/'))?;
    let crc = u32_at(&link, (name.len() + 1).next_multiple_of(4))?;
    let name = Path::new(OsStr::from_bytes(name));
    let folder = path.parent()?;
    let below = folder.strip_prefix("/").unwrap_or(folder);
    let beside = [folder.join(name), folder.join(".debug").join(name)];
    let candidates = beside
        .into_iter()
        .chain(folders.iter().map(|one| one.join(below).join(name)));
    candidates
        .filter(|candidate| candidate != path)
        .filter_map(|candidate| Elf::open(&candidate).ok())
        .find(|found| fits(found) && (!elf.build_id.is_empty() || found.crc() == Some(crc)))
}
