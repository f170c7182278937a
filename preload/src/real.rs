//! Finds the real functions of those that this library exports.

#![expect(unsafe_code, reason = "dlsym, dlopen, dl_iterate_phdr")]

use crate::elf;
use roctop_ring::sync::{AtomicU64, Ordering};
use std::ffi::{CStr, CString, c_char, c_int, c_void};

/// The loader's `dlsym`.
pub(crate) type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;
/// The loader's `dlvsym`.
pub(crate) type Dlvsym = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> *mut c_void;

/// The loader's `dlclose`.
pub(crate) type Dlclose = unsafe extern "C" fn(*mut c_void) -> c_int;

static DLSYM: AtomicU64 = AtomicU64::new(0);
static DLVSYM: AtomicU64 = AtomicU64::new(0);
static DLCLOSE: AtomicU64 = AtomicU64::new(0);

/// Real function of the exported one with this name; looked up once.
fn behind(place: &AtomicU64, name: &CStr) -> *mut c_void {
    match place.load(Ordering::Acquire) {
        0 => {
            let inside = (&raw const DLSYM).cast();
            let found = elf::behind(inside, name).unwrap_or(std::ptr::null_mut());
            place.store(found as u64, Ordering::Release);
            found
        }
        found => found as usize as *mut c_void,
    }
}

/// The loader's `dlsym`, because the exported one is ours.
pub(crate) fn loaders_dlsym() -> Option<Dlsym> {
    // SAFETY: null is none; else the C library's function of this name, or another library's in front of it.
    unsafe { std::mem::transmute::<*mut c_void, Option<Dlsym>>(behind(&DLSYM, c"dlsym")) }
}

/// Whether this library was preloaded. Otherwise HSA loaded it after the C library, and its exported functions are
/// unused.
pub(crate) fn is_preloaded() -> bool {
    elf::is_before((&raw const DLSYM).cast(), c"dlsym")
}

/// Load address and path of each library that is loaded. For this library's constructor.
pub(crate) fn each_loaded(visit: impl FnMut(u64, &CStr)) {
    elf::each_loaded((&raw const DLSYM).cast(), visit);
}

/// The loader's `dlvsym`.
pub(crate) fn loaders_dlvsym() -> Option<Dlvsym> {
    // SAFETY: as above.
    unsafe { std::mem::transmute::<*mut c_void, Option<Dlvsym>>(behind(&DLVSYM, c"dlvsym")) }
}

/// The loader's `dlclose`.
pub(crate) fn loaders_dlclose() -> Option<Dlclose> {
    // SAFETY: as above.
    unsafe { std::mem::transmute::<*mut c_void, Option<Dlclose>>(behind(&DLCLOSE, c"dlclose")) }
}

fn symbol(handle: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    let dlsym = loaders_dlsym()?;
    // SAFETY: callers pass an open handle or one of the loader's marks, which mean this library; the name is terminated.
    let address = unsafe { dlsym(handle, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

/// Whether `address` is in a library whose file name begins with `part`.
pub(crate) fn lies_in(address: *const c_void, part: &str) -> bool {
    let mut facts = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: `facts` has room for the answer.
    if unsafe { libc::dladdr(address, facts.as_mut_ptr()) } == 0 {
        return false;
    }
    // SAFETY: zero is a valid value of every field, and the call filled it.
    let name = unsafe { facts.assume_init() }.dli_fname;
    // SAFETY: the loader's names are terminated.
    !name.is_null() && file_of(unsafe { CStr::from_ptr(name) }).starts_with(part.as_bytes())
}

/// File name of a path.
pub(crate) fn file_of(path: &CStr) -> &[u8] {
    path.to_bytes().rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

/// Next definition of `name` after this library in the program's scope.
pub(crate) fn next(name: &CStr) -> Option<*mut c_void> {
    symbol(libc::RTLD_NEXT, name)
}

/// A loaded library, held by an additional reference forever.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Library {
    handle: *mut c_void,
}

impl Library {
    /// The library's own definition of `name`.
    pub(crate) fn symbol(self, name: &CStr) -> Option<*mut c_void> {
        symbol(self.handle, name)
    }
}

struct Search<'a> {
    part: &'a [u8],
    found: Option<CString>,
}

/// First loaded library whose file name begins with `part`, and its path.
pub(crate) fn loaded(part: &str) -> Option<(Library, CString)> {
    let mut search = Search {
        part: part.as_bytes(),
        found: None,
    };
    // SAFETY: `visit` has the signature asked for and gets the address of `search`, which lives during the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    let path = search.found?;
    // SAFETY: `path` is terminated; NOLOAD only takes a reference to what is loaded.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
    (!handle.is_null()).then_some((Library { handle }, path))
}

unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _size: usize, data: *mut c_void) -> c_int {
    // SAFETY: `data` is the address of the `Search` that `loaded` passed.
    let search = unsafe { &mut *data.cast::<Search<'_>>() };
    // SAFETY: the loader passes a valid structure.
    let name: *const c_char = unsafe { (*info).dlpi_name };
    if name.is_null() {
        return 0;
    }
    // SAFETY: not null, and the loader's names are terminated.
    let path = unsafe { CStr::from_ptr(name) };
    if file_of(path).starts_with(search.part) {
        search.found = Some(path.to_owned());
        return 1;
    }
    0
}

/// Number of libraries that the loader has unloaded.
pub(crate) fn unloaded() -> u64 {
    let mut count = 0u64;
    // SAFETY: `count_unloaded` has the signature asked for and gets the address of `count`, which lives during the call.
    unsafe { libc::dl_iterate_phdr(Some(count_unloaded), (&raw mut count).cast()) };
    count
}

unsafe extern "C" fn count_unloaded(info: *mut libc::dl_phdr_info, _size: usize, data: *mut c_void) -> c_int {
    // SAFETY: the loader passes a valid structure; every glibc has this field.
    let count = unsafe { (*info).dlpi_subs };
    // SAFETY: `data` is the address of the number that `unloaded` passed.
    unsafe { *data.cast::<u64>() = count };
    1
}

struct Extent {
    inside: u64,
    found: Option<[u64; 2]>,
}

/// Address range of the library that contains an address.
pub(crate) fn extent_of(inside: u64) -> Option<[u64; 2]> {
    let mut extent = Extent { inside, found: None };
    // SAFETY: `measure` has the signature asked for and gets the address of `extent`, which lives during the call.
    unsafe { libc::dl_iterate_phdr(Some(measure), (&raw mut extent).cast()) };
    extent.found
}

unsafe extern "C" fn measure(info: *mut libc::dl_phdr_info, _size: usize, data: *mut c_void) -> c_int {
    // SAFETY: `data` is the address of the `Extent` that `extent_of` passed.
    let extent = unsafe { &mut *data.cast::<Extent>() };
    // SAFETY: the loader passes a valid structure.
    let info = unsafe { &*info };
    // SAFETY: as above: it has this many program headers.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let loaded = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
    let from = |header: &libc::Elf64_Phdr| info.dlpi_addr.wrapping_add(header.p_vaddr);
    let to = |header: &libc::Elf64_Phdr| from(header).wrapping_add(header.p_memsz);
    let is_it = loaded().any(|header| (from(header)..to(header)).contains(&extent.inside));
    if is_it {
        extent.found = loaded()
            .map(from)
            .min()
            .zip(loaded().map(to).max())
            .map(|(from, to)| [from, to]);
    }
    c_int::from(is_it)
}

/// Whether a handle is that of `dlopen(NULL)`: the program, whose scope has all libraries of its start.
pub(crate) fn is_program(handle: *mut c_void) -> bool {
    static PROGRAM: AtomicU64 = AtomicU64::new(0);
    if PROGRAM.load(Ordering::Acquire) == 0 {
        // SAFETY: takes a reference to what is never unloaded.
        let program = unsafe { libc::dlopen(std::ptr::null(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        PROGRAM.store(program as u64, Ordering::Release);
    }
    handle as u64 == PROGRAM.load(Ordering::Acquire)
}

/// Loads a library permanently with a local scope, as rocprofiler-register does.
pub(crate) fn open(path: &CStr) -> Option<Library> {
    // SAFETY: the path is terminated; what the library does when it is loaded is what the user asked for.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) };
    (!handle.is_null()).then_some(Library { handle })
}

/// File of the library that contains an address.
pub(crate) fn library_of(inside: *const c_void) -> Option<CString> {
    let mut facts = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: `facts` has room for the answer.
    if inside.is_null() || unsafe { libc::dladdr(inside, facts.as_mut_ptr()) } == 0 {
        return None;
    }
    // SAFETY: zero is a valid value of every field, and the call filled it.
    let name = unsafe { facts.assume_init() }.dli_fname;
    if name.is_null() {
        return None;
    }
    // SAFETY: not null, and the loader's names are terminated.
    Some(unsafe { CStr::from_ptr(name) }.to_owned())
}

/// Keeps the library that contains `inside` loaded forever.
pub(crate) fn pin(inside: *const c_void) {
    let mut facts = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: `facts` has room for the answer.
    if unsafe { libc::dladdr(inside, facts.as_mut_ptr()) } != 0 {
        // SAFETY: zero is a valid value of every field, and the call filled it.
        let name = unsafe { facts.assume_init() }.dli_fname;
        // SAFETY: the loader's names are terminated; NOLOAD only changes what is loaded already.
        unsafe { libc::dlopen(name, libc::RTLD_NOLOAD | libc::RTLD_NODELETE | libc::RTLD_LAZY) };
    }
}
