//! The `stat` family, with the names of old and new C libraries.
//!
//! A fake device looks like a character device with the driver's number, by path and by descriptor: libdrm uses this to
//! verify that it has a render node. Not supported: 32-bit structures.
#![expect(unsafe_code, reason = "defines C functions that take raw pointers")]

use std::ffi::{CStr, c_char, c_int, c_uint};

use crate::interpose::text;
use crate::path::{Device, Meaning, meaning};
use crate::{process, sys};

const MODE: libc::mode_t = libc::S_IFCHR | 0o666;

fn disguise(place: *mut libc::stat, device: Device) {
    // SAFETY: the caller of stat passed room for the structure, and the system call has filled it.
    let Some(stat) = (unsafe { place.as_mut() }) else {
        return;
    };
    let (major, minor) = device.number();
    stat.st_mode = MODE;
    stat.st_rdev = libc::makedev(major, minor);
    stat.st_size = 0;
}

fn stat_at(directory: usize, path: *const c_char, place: *mut libc::stat, flags: c_int) -> c_int {
    let call = |path: *const c_char| {
        let args = [directory, path as usize, place as usize, flags as usize, 0, 0];
        sys::call(libc::SYS_newfstatat, args) as c_int
    };
    match text(path).and_then(meaning) {
        Some(Meaning::File(file)) => call(file.as_ptr()),
        Some(Meaning::Device(device)) => {
            let answer = call(c"/dev/null".as_ptr());
            if answer == 0 {
                disguise(place, device);
            }
            answer
        }
        None => call(path),
    }
}

fn stat_descriptor(fd: c_int, place: *mut libc::stat) -> c_int {
    let answer = sys::call(libc::SYS_fstat, [fd as usize, place as usize, 0, 0, 0, 0]) as c_int;
    // SAFETY: as in `disguise`.
    if let (0, Some(stat)) = (answer, unsafe { place.as_ref() }) {
        let process = process::current();
        if let Some(device) = process.and_then(|process| process.device_of_identity((stat.st_dev, stat.st_ino))) {
            disguise(place, device);
        }
    }
    answer
}

macro_rules! by_path {
    ($flags:expr; $($name:ident),*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(path: *const c_char, place: *mut libc::stat) -> c_int {
            stat_at(sys::CWD, path, place, $flags)
        }
    )* };
}

macro_rules! by_path_versioned {
    ($flags:expr; $($name:ident),*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(_: c_int, path: *const c_char, place: *mut libc::stat) -> c_int {
            stat_at(sys::CWD, path, place, $flags)
        }
    )* };
}

by_path!(0; stat, stat64);
by_path!(libc::AT_SYMLINK_NOFOLLOW; lstat, lstat64);
by_path_versioned!(0; __xstat, __xstat64);
by_path_versioned!(libc::AT_SYMLINK_NOFOLLOW; __lxstat, __lxstat64);

macro_rules! by_descriptor {
    ($($plain:ident, $versioned:ident, $at:ident, $at_versioned:ident);*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $plain(fd: c_int, place: *mut libc::stat) -> c_int {
            stat_descriptor(fd, place)
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $versioned(_: c_int, fd: c_int, place: *mut libc::stat) -> c_int {
            stat_descriptor(fd, place)
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $at(fd: c_int, path: *const c_char, place: *mut libc::stat, flags: c_int) -> c_int {
            at(fd, path, place, flags)
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $at_versioned(
            _: c_int,
            fd: c_int,
            path: *const c_char,
            place: *mut libc::stat,
            flags: c_int,
        ) -> c_int {
            at(fd, path, place, flags)
        }
    )* };
}

by_descriptor!(fstat, __fxstat, fstatat, __fxstatat; fstat64, __fxstat64, fstatat64, __fxstatat64);

fn at(fd: c_int, path: *const c_char, place: *mut libc::stat, flags: c_int) -> c_int {
    let own = flags & libc::AT_EMPTY_PATH != 0 && text(path).is_none_or(CStr::is_empty);
    if own && fd >= 0 {
        return stat_descriptor(fd, place);
    }
    stat_at(fd as isize as usize, path, place, flags)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn statx(
    directory: c_int,
    path: *const c_char,
    flags: c_int,
    mask: c_uint,
    place: *mut libc::statx,
) -> c_int {
    let call = |path: *const c_char| {
        let args = [
            directory as isize as usize,
            path as usize,
            flags as usize,
            mask as usize,
            place as usize,
            0,
        ];
        sys::call(libc::SYS_statx, args) as c_int
    };
    match text(path).and_then(meaning) {
        None => call(path),
        Some(Meaning::File(file)) => call(file.as_ptr()),
        Some(Meaning::Device(device)) => {
            let answer = call(c"/dev/null".as_ptr());
            // SAFETY: the caller passed room for the structure, and the system call has filled it.
            if let (0, Some(statx)) = (answer, unsafe { place.as_mut() }) {
                (statx.stx_rdev_major, statx.stx_rdev_minor) = device.number();
                statx.stx_mode = MODE as u16;
            }
            answer
        }
    }
}
