//! The libc functions that the library overrides: those that open, list and test paths, `ioctl`, `_exit`, and those
//! that map memory.
//!
//! A call for any other file goes to the kernel at once. Variadic functions are declared with their longest argument
//! list, which the x86-64 C calling convention allows. The `stat` family is in `interpose_stat`. `_exit` continues to
//! the next library that overrides it. `munmap`, `madvise` and `mmap` at a fixed address report freed pages to the
//! driver. `close`, `read` and `fcntl` need nothing, because fake devices are real descriptors. Not supported:
//! `mremap`, `mprotect`.
#![expect(unsafe_code, reason = "defines C functions that take raw pointers")]

use std::ffi::{CStr, CString, c_char, c_int, c_long, c_ulong, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::kfd::Args;
use crate::model::{Habit, model};
use crate::path::{Device, Meaning, meaning};
use crate::{drm, kfd, process, sys, trace};

/// Ioctl types of the two drivers.
const KFD_TYPE: c_ulong = b'K' as c_ulong;
const DRM_TYPE: c_ulong = b'd' as c_ulong;

/// A C string argument; `None` if it is null.
pub(crate) fn text<'a>(path: *const c_char) -> Option<&'a CStr> {
    // SAFETY: libc's callers pass a null pointer or a terminated string; both are looked at here.
    (!path.is_null()).then(|| unsafe { CStr::from_ptr(path) })
}

fn open_at(directory: usize, path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int {
    match text(path).and_then(meaning) {
        Some(Meaning::Device(device)) => process::open().open_device(device, flags),
        Some(Meaning::File(file)) => sys::open(directory, &file, flags, mode),
        None => {
            let args = [directory, path as usize, flags as usize, mode as usize, 0, 0];
            sys::call(libc::SYS_openat, args) as c_int
        }
    }
}

macro_rules! open {
    ($($name:ident),*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int {
            open_at(sys::CWD, path, flags, mode)
        }
    )* };
}

macro_rules! openat {
    ($($name:ident),*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(directory: c_int, path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int {
            open_at(directory as isize as usize, path, flags, mode)
        }
    )* };
}

open!(open, open64, __open_2, __open64_2);
openat!(openat, openat64, __openat_2, __openat64_2);

/// The next definition of `fopen` or `fopen64`, for all other files.
fn next_fopen(name: &CStr, path: *const c_char, mode: *const c_char) -> *mut libc::FILE {
    type Fopen = unsafe extern "C" fn(*const c_char, *const c_char) -> *mut libc::FILE;
    // SAFETY: the name is terminated and the handle is the one for the next object.
    let address = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if address.is_null() {
        sys::fail(libc::ENOSYS);
        return std::ptr::null_mut();
    }
    // SAFETY: libc's function of that name has this type.
    let next: Fopen = unsafe { std::mem::transmute(address) };
    // SAFETY: the arguments are the caller's.
    unsafe { next(path, mode) }
}

fn open_stream(name: &CStr, path: *const c_char, mode: *const c_char) -> *mut libc::FILE {
    let fd = match text(path).and_then(meaning) {
        None => return next_fopen(name, path, mode),
        Some(Meaning::Device(device)) => process::open().open_device(device, libc::O_CLOEXEC),
        Some(Meaning::File(file)) => sys::open(sys::CWD, &file, libc::O_RDONLY | libc::O_CLOEXEC, 0),
    };
    if fd < 0 {
        return std::ptr::null_mut();
    }
    // SAFETY: the descriptor is open and the mode is a terminated string.
    unsafe { libc::fdopen(fd, c"r".as_ptr()) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fopen(path: *const c_char, mode: *const c_char) -> *mut libc::FILE {
    open_stream(c"fopen", path, mode)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fopen64(path: *const c_char, mode: *const c_char) -> *mut libc::FILE {
    open_stream(c"fopen64", path, mode)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn opendir(path: *const c_char) -> *mut libc::DIR {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC | libc::O_NONBLOCK;
    let fd = open_at(sys::CWD, path, flags, 0);
    if fd < 0 {
        return std::ptr::null_mut();
    }
    // SAFETY: the descriptor is an open directory.
    unsafe { libc::fdopendir(fd) }
}

fn access_at(directory: usize, path: *const c_char, mode: c_int) -> c_int {
    let file = match text(path).and_then(meaning) {
        Some(Meaning::Device(_)) => return 0,
        Some(Meaning::File(file)) => Some(file),
        None => None,
    };
    let path = file.as_ref().map_or(path, |file| file.as_ptr());
    sys::call(libc::SYS_faccessat, [directory, path as usize, mode as usize, 0, 0, 0]) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn access(path: *const c_char, mode: c_int) -> c_int {
    access_at(sys::CWD, path, mode)
}

fn read_link(path: *const c_char, buffer: *mut c_char, room: usize) -> isize {
    let file = match text(path).and_then(meaning) {
        Some(Meaning::File(file)) => Some(file),
        _ => None,
    };
    let path = file.as_ref().map_or(path, |file| file.as_ptr());
    sys::call(
        libc::SYS_readlinkat,
        [sys::CWD, path as usize, buffer as usize, room, 0, 0],
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn readlink(path: *const c_char, buffer: *mut c_char, room: usize) -> isize {
    read_link(path, buffer, room)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __readlink_chk(path: *const c_char, buffer: *mut c_char, room: usize, _: usize) -> isize {
    read_link(path, buffer, room)
}

fn next_realpath(path: *const c_char, resolved: *mut c_char) -> *mut c_char {
    type Realpath = unsafe extern "C" fn(*const c_char, *mut c_char) -> *mut c_char;
    // SAFETY: the name is terminated and the handle is the one for the next object.
    let address = unsafe { libc::dlsym(libc::RTLD_NEXT, c"realpath".as_ptr()) };
    if address.is_null() {
        sys::fail(libc::ENOSYS);
        return std::ptr::null_mut();
    }
    // SAFETY: libc's function of that name has this type.
    let next: Realpath = unsafe { std::mem::transmute(address) };
    // SAFETY: the path is terminated and the buffer is the caller's.
    unsafe { next(path, resolved) }
}

/// A generated path resolves to itself without the generated root, so that callers can parse it.
fn real_path(path: *const c_char, resolved: *mut c_char) -> *mut c_char {
    let Some(Meaning::File(file)) = text(path).and_then(meaning) else {
        return next_realpath(path, resolved);
    };
    let answer = next_realpath(file.as_ptr(), resolved);
    let stripped = text(answer).and_then(|answer| {
        let root = crate::sysfs::root()?;
        CString::new(answer.to_str().ok()?.strip_prefix(root)?).ok()
    });
    if let Some(stripped) = stripped {
        let bytes = stripped.as_bytes_with_nul();
        crate::guest::copy(bytes.as_ptr() as u64, answer as u64, bytes.len() as u64);
    }
    answer
}

#[unsafe(no_mangle)]
unsafe extern "C" fn realpath(path: *const c_char, resolved: *mut c_char) -> *mut c_char {
    real_path(path, resolved)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __realpath_chk(path: *const c_char, resolved: *mut c_char, _: usize) -> *mut c_char {
    real_path(path, resolved)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    let kind = (request >> 8) & 0xff;
    if (kind == KFD_TYPE || kind == DRM_TYPE)
        && let Some(process) = process::current()
        && let Some(device) = process.device_of(fd)
    {
        let number = (request & 0xff) as u32;
        let args = Args(argument as u64);
        let answer = match device {
            Device::Kfd if kind == KFD_TYPE => kfd::ioctl(process, number, args),
            Device::Render { .. } if kind == DRM_TYPE => drm::ioctl(process, device, number, args),
            _ => Err(libc::ENOTTY),
        };
        trace::ioctl(device, number, answer);
        return answer.map_or_else(sys::fail, |()| 0);
    }
    sys::call(
        libc::SYS_ioctl,
        [fd as usize, request as usize, argument as usize, 0, 0, 0],
    ) as c_int
}

fn map(address: *mut c_void, len: usize, prot: c_int, flags: c_int, fd: c_int, offset: c_long) -> *mut c_void {
    if fd >= 0
        && let Some(process) = process::current()
        && let Some(device) = process.device_of(fd)
    {
        let place = process
            .memory
            .map_device(device, address as usize, len, flags, offset as u64);
        return place as *mut c_void;
    }
    if flags & libc::MAP_FIXED == 0 {
        return sys::map(address as usize, len, prot, flags, fd, offset as u64) as *mut c_void;
    }
    let process = process::current();
    let is_users = process.is_some_and(|process| process.unmap("mmap", address as u64, len as u64));
    let place = sys::map(address as usize, len, prot, flags, fd, offset as u64) as *mut c_void;
    if let Some(process) = process.filter(|_| place == address) {
        let is_file = is_users && fd >= 0 && flags & libc::MAP_SHARED != 0;
        process.memory.set_file(address as u64, len as u64, is_file);
    }
    place
}

#[unsafe(no_mangle)]
unsafe extern "C" fn munmap(address: *mut c_void, len: usize) -> c_int {
    if let Some(process) = process::current() {
        process.unmap("munmap", address as u64, len as u64);
        process.memory.set_file(address as u64, len as u64, false);
    }
    sys::call(libc::SYS_munmap, [address as usize, len, 0, 0, 0, 0]) as c_int
}

/// Freed pages are reported to the driver, too.
#[unsafe(no_mangle)]
unsafe extern "C" fn madvise(address: *mut c_void, len: usize, advice: c_int) -> c_int {
    if matches!(advice, libc::MADV_DONTNEED | libc::MADV_REMOVE)
        && let Some(process) = process::current()
    {
        process.unmap("madvise", address as u64, len as u64);
    }
    sys::call(libc::SYS_madvise, [address as usize, len, advice as usize, 0, 0, 0]) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mmap(a: *mut c_void, len: usize, prot: c_int, flags: c_int, fd: c_int, at: c_long) -> *mut c_void {
    map(a, len, prot, flags, fd, at)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mmap64(
    a: *mut c_void,
    len: usize,
    prot: c_int,
    flags: c_int,
    fd: c_int,
    at: c_long,
) -> *mut c_void {
    map(a, len, prot, flags, fd, at)
}

/// The next definition of `_exit`, looked up at load: a signal handler may call it, and must not look anything up.
static NEXT_EXIT: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

extern "C" fn look_up_exit() {
    // SAFETY: the name is terminated and the handle is the one for the next object.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"_exit".as_ptr()) };
    NEXT_EXIT.store(next, Ordering::Relaxed);
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = look_up_exit;

#[unsafe(no_mangle)]
unsafe extern "C" fn _exit(status: c_int) -> ! {
    type Exit = unsafe extern "C" fn(c_int) -> !;
    if let Some(process) = process::current() {
        process.engines.settle();
    }
    let next = NEXT_EXIT.load(Ordering::Relaxed);
    if !next.is_null() && !model().habits.has(Habit::Exit) {
        // SAFETY: libc's function of that name, and whatever shadows it, has this type.
        let next: Exit = unsafe { std::mem::transmute(next) };
        // SAFETY: it takes any status.
        unsafe { next(status) }
    }
    loop {
        sys::call(libc::SYS_exit_group, [status as usize, 0, 0, 0, 0, 0]);
    }
}
