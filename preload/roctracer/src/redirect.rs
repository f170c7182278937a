//! Redirects one loaded library's calls of another library's functions to functions of ours.
//!
//! The calls go through slots that the loader fills in by the library's relocations. The slot of a read-only page is
//! protected again afterwards.

use crate::loader::file_name;
use std::ffi::{CStr, c_char, c_int, c_void};

/// Tags of the dynamic section.
const STRINGS: u64 = 5;
const SYMBOLS: u64 = 6;
const RELOCATIONS: u64 = 7;
const RELOCATIONS_SIZE: u64 = 8;
const CALLS: u64 = 23;
const CALLS_SIZE: u64 = 2;
/// `R_X86_64_GLOB_DAT` and `R_X86_64_JUMP_SLOT`.
const IS_ADDRESS: [u64; 2] = [6, 7];

/// `Elf64_Rela`.
#[repr(C)]
struct Relocation {
    offset: u64,
    info: u64,
    addend: i64,
}

struct Request<'a> {
    part: &'a [u8],
    functions: &'a [(&'a CStr, *const c_void)],
}

/// From now on, calls by the library whose file name begins with `part` to the given functions go to ours.
///
/// # Safety
/// Each function has the type of the one that it replaces, and this library stays loaded.
pub(crate) unsafe fn redirect(part: &str, functions: &[(&CStr, *const c_void)]) {
    let mut request = Request {
        part: part.as_bytes(),
        functions,
    };
    // SAFETY: `visit` has the signature asked for and gets the address of `request`, which lives during the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut request).cast()) };
}

unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _size: usize, data: *mut c_void) -> c_int {
    // SAFETY: the loader passes a valid structure, and `data` is the address that `redirect` passed.
    let (info, request) = unsafe { (&*info, &*data.cast::<Request<'_>>()) };
    if info.dlpi_name.is_null() || info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: not null; the loader's names are terminated.
    let path = unsafe { CStr::from_ptr(info.dlpi_name) };
    if !file_name(path).starts_with(request.part) {
        return 0;
    }
    // SAFETY: the loader gives the number of headers.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let Some(dynamic) = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC) else {
        return 0;
    };
    let relro = headers.iter().find(|header| header.p_type == libc::PT_GNU_RELRO);
    let relro = relro.map_or(0..0, |header| {
        let begin = info.dlpi_addr + header.p_vaddr;
        begin..begin + header.p_memsz
    });
    // SAFETY: the section and everything it points to are mapped.
    unsafe {
        let tables = Tables::new((info.dlpi_addr + dynamic.p_vaddr) as *const [u64; 2]);
        for (table, bytes) in [(tables.calls, tables.calls_size), (tables.others, tables.others_size)] {
            if table != 0 {
                let count = bytes as usize / size_of::<Relocation>();
                let relocations = std::slice::from_raw_parts(table as *const Relocation, count);
                for relocation in relocations {
                    tables.apply(relocation, info.dlpi_addr, request.functions, &relro);
                }
            }
        }
    }
    0
}

/// Addresses and sizes from the dynamic section. The loader has made the addresses absolute.
#[derive(Default)]
struct Tables {
    strings: u64,
    symbols: u64,
    calls: u64,
    calls_size: u64,
    others: u64,
    others_size: u64,
}

impl Tables {
    /// # Safety
    /// `entry` is the first entry of a dynamic section.
    unsafe fn new(mut entry: *const [u64; 2]) -> Self {
        let mut tables = Self::default();
        loop {
            // SAFETY: a tag of 0 ends the section.
            let [tag, value] = unsafe { *entry };
            match tag {
                0 => return tables,
                STRINGS => tables.strings = value,
                SYMBOLS => tables.symbols = value,
                CALLS => tables.calls = value,
                CALLS_SIZE => tables.calls_size = value,
                RELOCATIONS => tables.others = value,
                RELOCATIONS_SIZE => tables.others_size = value,
                _ => {}
            }
            entry = entry.wrapping_add(1);
        }
    }

    /// # Safety
    /// The relocation is one of this library's, which is loaded at `base`.
    unsafe fn apply(
        &self,
        relocation: &Relocation,
        base: u64,
        functions: &[(&CStr, *const c_void)],
        relro: &std::ops::Range<u64>,
    ) {
        if !IS_ADDRESS.contains(&(relocation.info & 0xffff_ffff)) {
            return;
        }
        let symbol = (self.symbols + (relocation.info >> 32) * SYMBOL_SIZE) as *const u32;
        // SAFETY: the symbol and its name are in the library's tables; the name is the symbol's first word.
        let name = unsafe { CStr::from_ptr((self.strings + u64::from(*symbol)) as *const c_char) };
        if let Some((_, function)) = functions.iter().find(|(wanted, _)| *wanted == name) {
            let slot = base + relocation.offset;
            // SAFETY: the slot is the library's and holds the address of this function.
            unsafe { store(slot as *mut usize, *function as usize, relro.contains(&slot)) };
        }
    }
}

/// Bytes of `Elf64_Sym`.
const SYMBOL_SIZE: u64 = 24;

/// # Safety
/// `slot` is an aligned word that holds a function's address.
unsafe fn store(slot: *mut usize, value: usize, is_read_only: bool) {
    const PAGE: usize = 4096;
    let page = (slot as usize & !(PAGE - 1)) as *mut c_void;
    // SAFETY: the page is mapped. Other threads may read the slot during the store; it is one whole word.
    unsafe {
        if is_read_only && libc::mprotect(page, PAGE, libc::PROT_READ | libc::PROT_WRITE) != 0 {
            return;
        }
        (*slot.cast::<std::sync::atomic::AtomicUsize>()).store(value, std::sync::atomic::Ordering::Release);
        if is_read_only {
            libc::mprotect(page, PAGE, libc::PROT_READ);
        }
    }
}
