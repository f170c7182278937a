//! Raw system calls, with which the interposed functions pass a call on.
//!
//! The library overrides `open`, `mmap` and related functions, so it must not call itself through libc, and it must
//! work before any `dlsym` does. There is no error translation, because `libc::syscall` sets `errno`.
#![expect(unsafe_code, reason = "every call is a foreign function")]

use std::ffi::CStr;
use std::os::fd::RawFd;

/// `AT_FDCWD` with the width of system call arguments.
pub(crate) const CWD: usize = libc::AT_FDCWD as isize as usize;

/// First descriptor of the library: shells and tests close the low ones.
const HIGH_FD: libc::c_int = 600;

/// Makes one system call; `errno` is set if it returns -1.
pub(crate) fn call(number: libc::c_long, args: [usize; 6]) -> isize {
    // SAFETY: the arguments are those that a caller gave to the shadowed function, or descriptors and paths of the library.
    unsafe { libc::syscall(number, args[0], args[1], args[2], args[3], args[4], args[5]) as isize }
}

/// `openat` on a C string.
pub(crate) fn open(directory: usize, path: &CStr, flags: libc::c_int, mode: libc::mode_t) -> libc::c_int {
    let args = [directory, path.as_ptr() as usize, flags as usize, mode as usize, 0, 0];
    call(libc::SYS_openat, args) as libc::c_int
}

/// `mmap`, as an address or -1.
pub(crate) fn map(address: usize, len: usize, prot: libc::c_int, flags: libc::c_int, fd: RawFd, offset: u64) -> usize {
    call(
        libc::SYS_mmap,
        [
            address,
            len,
            prot as usize,
            flags as usize,
            fd as usize,
            offset as usize,
        ],
    ) as usize
}

/// `madvise`; the result does not matter to the emulation.
pub(crate) fn advise(address: usize, len: usize, advice: libc::c_int) {
    call(libc::SYS_madvise, [address, len, advice as usize, 0, 0, 0]);
}

/// A memory file with a high descriptor that is closed by `exec`.
pub(crate) fn memory_file(name: &CStr, size: u64) -> RawFd {
    let low = call(
        libc::SYS_memfd_create,
        [name.as_ptr() as usize, libc::MFD_CLOEXEC as usize, 0, 0, 0, 0],
    ) as RawFd;
    call(libc::SYS_ftruncate, [low as usize, size as usize, 0, 0, 0, 0]);
    raise(low)
}

/// Moves a descriptor above those that programs use.
pub(crate) fn raise(low: RawFd) -> RawFd {
    let high = duplicate(low, HIGH_FD, true);
    if high < 0 {
        return low;
    }
    close(low);
    high
}

/// A duplicate with a number of at least `least`.
pub(crate) fn duplicate(fd: RawFd, least: libc::c_int, close_on_exec: bool) -> RawFd {
    let command = if close_on_exec {
        libc::F_DUPFD_CLOEXEC
    } else {
        libc::F_DUPFD
    };
    call(
        libc::SYS_fcntl,
        [fd as usize, command as usize, least as usize, 0, 0, 0],
    ) as RawFd
}

/// `close`.
pub(crate) fn close(fd: RawFd) {
    call(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]);
}

/// Writes all of `bytes`, in one `write` unless the kernel splits it.
pub(crate) fn write_all(fd: RawFd, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let done = call(
            libc::SYS_write,
            [fd as usize, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0],
        );
        if done <= 0 {
            return;
        }
        bytes = &bytes[done as usize..];
    }
}

/// Inode and device of a descriptor, which identify a fake device.
pub(crate) fn identity(fd: RawFd) -> Option<(u64, u64)> {
    let mut stat = std::mem::MaybeUninit::<libc::stat>::zeroed();
    if call(libc::SYS_fstat, [fd as usize, stat.as_mut_ptr() as usize, 0, 0, 0, 0]) != 0 {
        return None;
    }
    // SAFETY: the system call filled the structure, and it was zeroed before.
    let stat = unsafe { stat.assume_init() };
    Some((stat.st_dev, stat.st_ino))
}

/// The pid, read each time: a fork changes it.
pub(crate) fn process_id() -> i32 {
    call(libc::SYS_getpid, [0; 6]) as i32
}

/// Sets `errno` and returns -1.
pub(crate) fn fail(errno: libc::c_int) -> libc::c_int {
    // SAFETY: libc's pointer to the calling thread's errno is always valid.
    unsafe { *libc::__errno_location() = errno };
    -1
}
