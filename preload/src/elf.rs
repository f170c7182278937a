//! Finds definitions in the loaded libraries' own symbol tables, for loader functions that this library wraps: the
//! loader itself would return ours.
//!
//! Only tables with a GNU hash are read; every supported C library has one.

#![expect(unsafe_code, reason = "the loader's list of libraries and their symbol tables")]

pub(crate) mod loaded;

use std::ffi::{CStr, c_char, c_void};

/// The loader's record of a library (`struct link_map`, its public part).
#[repr(C)]
struct LinkMap {
    base: u64,
    name: *const c_char,
    dynamic: *const Dynamic,
    next: *const LinkMap,
    previous: *const LinkMap,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Dynamic {
    tag: i64,
    value: u64,
}

const END: i64 = 0;
const STRINGS: i64 = 5;
const SYMBOLS: i64 = 6;
const RELOCATIONS: i64 = 7;
const RELOCATIONS_BYTES: i64 = 8;
const PLT_BYTES: i64 = 2;
const PLT_RELOCATIONS: i64 = 23;
const RELATIVE_COUNT: i64 = 0x6fff_fff9;
const GNU_HASH: i64 = 0x6fff_fef5;

/// `Elf64_Rela`: symbol << 32 and type in `info`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Relocation {
    offset: u64,
    info: u64,
    addend: i64,
}

/// Types of relocation that are entries of import tables, and of pointers in data (x86-64).
const POINTER: u32 = 1;
const GLOB_DAT: u32 = 6;
const JUMP_SLOT: u32 = 7;

unsafe extern "C" {
    fn dladdr1(address: *const c_void, info: *mut libc::Dl_info, extra: *mut *mut c_void, flags: i32) -> i32;
}
const RTLD_DL_LINKMAP: i32 = 2;

/// First definition of `name` in a library loaded after the one that contains `inside`, or else in one loaded before
/// it. HSA may load the collector after the C library, into a program started with another preload.
pub(crate) fn behind(inside: *const c_void, name: &CStr) -> Option<*mut c_void> {
    let own = map_of(inside)?;
    // SAFETY: the loader's own structure, which lives while this library does.
    let next = unsafe { (*own).next };
    search_list(next, std::ptr::null(), name).or_else(|| search_list(first(own), own, name))
}

/// The first record of the loader's list.
fn first(own: *const LinkMap) -> *const LinkMap {
    let mut first = own;
    // SAFETY: not null, of the loader's list, and of those that the program started with.
    while let Some(previous) = unsafe { first.as_ref() }.map(|map| map.previous)
        && !previous.is_null()
    {
        first = previous;
    }
    first
}

/// Load address and path of each library of the loader's list; `inside` is in one of them. For constructors, while the
/// loader adds and removes none.
pub(crate) fn each_loaded(inside: *const c_void, mut visit: impl FnMut(u64, &CStr)) {
    let Some(own) = map_of(inside) else { return };
    let mut at = first(own);
    // SAFETY: null, or of the loader's list.
    while let Some(map) = unsafe { at.as_ref() } {
        if !map.name.is_null() {
            // SAFETY: the loader's names are terminated.
            visit(map.base, unsafe { CStr::from_ptr(map.name) });
        }
        at = map.next;
    }
}

/// Whether `name` is defined in a library loaded after the one that contains `inside`.
pub(crate) fn is_before(inside: *const c_void, name: &CStr) -> bool {
    // SAFETY: the loader's own structure, which lives while this library does.
    map_of(inside).is_some_and(|own| search_list(unsafe { (*own).next }, std::ptr::null(), name).is_some())
}

fn map_of(inside: *const c_void) -> Option<*const LinkMap> {
    let mut facts = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    let mut map: *mut c_void = std::ptr::null_mut();
    // SAFETY: both places have room for the answers.
    let found = unsafe { dladdr1(inside, facts.as_mut_ptr(), &raw mut map, RTLD_DL_LINKMAP) } != 0;
    (found && !map.is_null()).then_some(map.cast_const().cast())
}

/// First definition of `name` in the libraries from `map` up to `end`.
fn search_list(mut map: *const LinkMap, end: *const LinkMap, name: &CStr) -> Option<*mut c_void> {
    while !map.is_null() && !std::ptr::eq(map, end) {
        // SAFETY: not null, and of the loader's list; the libraries that are looked at are those that the program started
        // with.
        let this = unsafe { &*map };
        if let Some(found) = this.object().find(name) {
            return Some(found);
        }
        map = this.next;
    }
    None
}

impl LinkMap {
    fn object(&self) -> Object {
        Object {
            base: self.base,
            dynamic: self.dynamic,
        }
    }
}

/// A loaded library: load address and dynamic section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Object {
    base: u64,
    dynamic: *const Dynamic,
}

/// An entry of a library's import table, or a pointer in its data: its place, and the name of what it refers to.
pub(crate) struct Import<'a> {
    /// Where the address is.
    pub(crate) place: u64,
    /// The name.
    pub(crate) name: &'a CStr,
    /// Whether nothing need define it.
    pub(crate) is_weak: bool,
    /// Whether it is a pointer in data.
    pub(crate) is_data: bool,
}

impl Object {
    /// The library of the loader's description. `None` if it has no dynamic section.
    ///
    /// # Safety
    /// `info` is what the loader passes to a visitor, which uses the result only during its call.
    pub(crate) unsafe fn of(info: &libc::dl_phdr_info) -> Option<Self> {
        // SAFETY: as the caller promises.
        let headers = unsafe { headers(info) };
        let dynamic = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC)?;
        Some(Self {
            base: info.dlpi_addr,
            dynamic: info.dlpi_addr.wrapping_add(dynamic.p_vaddr) as *const Dynamic,
        })
    }

    /// Address of the dynamic section, which no other loaded library has.
    pub(crate) fn identity(&self) -> u64 {
        self.dynamic as u64
    }

    /// Passes the entries of the import tables, and the pointers in data, that refer to other libraries' names with one of these starts.
    pub(crate) fn imports(&self, starts: &[&[u8]], mut visit: impl FnMut(&Import<'_>)) {
        let (Some(symbols), Some(strings)) = (self.table(SYMBOLS), self.table(STRINGS)) else {
            return;
        };
        // Relative relocations come first, and are many.
        let skipped = self.value(RELATIVE_COUNT).unwrap_or(0) as usize;
        let tables = [
            (self.table(RELOCATIONS), self.value(RELOCATIONS_BYTES), skipped),
            (self.table(PLT_RELOCATIONS), self.value(PLT_BYTES), 0),
        ];
        for (table, bytes, skipped) in tables {
            let (Some(table), Some(bytes)) = (table, bytes) else {
                continue;
            };
            for at in skipped..bytes as usize / size_of::<Relocation>() {
                // SAFETY: the dynamic section says that the table has this many entries.
                let relocation = unsafe { *(table as *const Relocation).add(at) };
                if !matches!(relocation.info as u32, POINTER | GLOB_DAT | JUMP_SLOT) {
                    continue;
                }
                // SAFETY: the relocation's symbol is in the table.
                let symbol = unsafe { &*(symbols as *const Symbol).add((relocation.info >> 32) as usize) };
                if symbol.section != 0 {
                    continue;
                }
                // SAFETY: the symbol's name is in the table of strings, and terminated.
                let name = unsafe { CStr::from_ptr((strings as *const c_char).add(symbol.name as usize)) };
                if starts.iter().any(|start| name.to_bytes().starts_with(start)) {
                    visit(&Import {
                        place: self.base.wrapping_add(relocation.offset),
                        name,
                        is_weak: symbol.info >> 4 == WEAK,
                        is_data: relocation.info as u32 == POINTER,
                    });
                }
            }
        }
    }

    /// Address of a table.
    fn table(&self, tag: i64) -> Option<u64> {
        // In segments that the loader may not write (the vDSO), values are not addresses: these are skipped.
        self.value(tag).filter(|value| *value >= self.base && *value != 0)
    }

    fn value(&self, tag: i64) -> Option<u64> {
        let mut at = self.dynamic;
        if at.is_null() {
            return None;
        }
        loop {
            // SAFETY: the section ends with an entry of tag END.
            let entry = unsafe { *at };
            if entry.tag == END {
                return None;
            }
            if entry.tag == tag {
                return Some(entry.value);
            }
            // SAFETY: the entry was not the last one.
            at = unsafe { at.add(1) };
        }
    }

    /// The library's own definition of a name.
    pub(crate) fn find(&self, name: &CStr) -> Option<*mut c_void> {
        let (hash, symbols, strings) = (self.table(GNU_HASH)?, self.table(SYMBOLS)?, self.table(STRINGS)?);
        // SAFETY: the tables are those of a loaded library, whose form the ABI gives; every index comes from them.
        unsafe {
            search(
                hash as *const u32,
                symbols as *const Symbol,
                strings as *const c_char,
                name,
            )
        }
        .map(|value| (self.base + value) as *mut c_void)
    }
}

/// The program headers of a library.
///
/// # Safety
/// As for [`Object::of`].
pub(crate) unsafe fn headers(info: &libc::dl_phdr_info) -> &[libc::Elf64_Phdr] {
    // SAFETY: the loader's structure has this many headers.
    unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) }
}

#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
    size: u64,
}

/// Binding of a weak symbol, `STB_WEAK`.
const WEAK: u8 = 2;
/// Section of a symbol with an absolute value, `SHN_ABS`.
const ABSOLUTE: u16 = 0xfff1;
/// Type of an indirect function, `STT_GNU_IFUNC`.
const INDIRECT: u8 = 10;

/// Hash function of the ABI.
fn hash_of(name: &CStr) -> u32 {
    let add = |hash: u32, byte: &u8| hash.wrapping_mul(33).wrapping_add(u32::from(*byte));
    name.to_bytes().iter().fold(5381, add)
}

unsafe fn search(hash: *const u32, symbols: *const Symbol, strings: *const c_char, name: &CStr) -> Option<u64> {
    let wanted = hash_of(name);
    // SAFETY: as the caller promises, for all of this function.
    unsafe {
        let (buckets, first, bloom) = (*hash, *hash.add(1), *hash.add(2));
        if buckets == 0 {
            return None;
        }
        let bucket = hash.add(4 + 2 * bloom as usize);
        let chain = bucket.add(buckets as usize);
        let mut index = *bucket.add((wanted % buckets) as usize);
        if index < first {
            return None;
        }
        loop {
            let word = *chain.add((index - first) as usize);
            let symbol = &*symbols.add(index as usize);
            if word | 1 == wanted | 1
                && symbol.section != 0
                // An absolute value is no address, and the value of an indirect function is its resolver.
                && symbol.section != ABSOLUTE
                && symbol.info & 0xf != INDIRECT
                && CStr::from_ptr(strings.add(symbol.name as usize)) == name
            {
                return Some(symbol.value);
            }
            if word & 1 != 0 {
                return None;
            }
            index += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_abis() {
        assert_eq!(
            (hash_of(c""), hash_of(c"printf"), hash_of(c"exit")),
            (5381, 0x156b_2bb8, 0x7c96_7e3f)
        );
    }

    #[test]
    fn a_definition_is_found_where_the_loader_finds_it() {
        // The test is an executable: every library comes after it.
        let own = a_definition_is_found_where_the_loader_finds_it as fn() as *const c_void;
        for name in [c"dlopen", c"dlerror", c"getpid"] {
            // SAFETY: the name is terminated.
            let expected = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
            assert!(!expected.is_null());
            assert_eq!(behind(own, name), Some(expected));
        }
        // Functions that this library wraps are found only after it.
        for name in [c"dlsym", c"dlclose"] {
            let behind_ours = behind(own, name).unwrap();
            assert!(crate::real::lies_in(behind_ours, "lib"), "{name:?}");
        }
        assert_eq!(behind(own, c"no_such_function_anywhere"), None);
    }
}
