//! Log of driver calls, for debugging the emulation; off unless `EMULATED_GPU_TRACE` names a file.

use std::ffi::CString;
use std::os::fd::RawFd;
use std::sync::OnceLock;

use crate::model::model;
use crate::path::Device;
use crate::sys;

fn file() -> Option<RawFd> {
    static FILE: OnceLock<Option<RawFd>> = OnceLock::new();
    *FILE.get_or_init(|| {
        let path = CString::new(model().trace.as_ref()?.replace("%p", &sys::process_id().to_string())).ok()?;
        let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_CLOEXEC;
        let low = sys::open(sys::CWD, &path, flags, 0o644);
        (low >= 0).then(|| sys::raise(low))
    })
}

/// Logs an ioctl and its result.
pub(crate) fn ioctl(device: Device, number: u32, answer: Result<(), libc::c_int>) {
    note(|| format!("{} {device:?} {number:#04x} {answer:?}\n", sys::process_id()));
}

/// Logs a line; the text is made only if the log is on.
pub(crate) fn note(text: impl FnOnce() -> String) {
    if let Some(fd) = file() {
        sys::write_all(fd, text().as_bytes());
    }
}
