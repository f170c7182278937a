//! The truth log: one line for each dispatch and copy that the emulated GPU completed.
//!
//! A line is in the file before the host can see the completion, so that it survives any end of the process. `begin_ns`
//! and `end_ns` are `CLOCK_BOOTTIME`, the ticks are the GPU's. Not logged: barriers, and work that was still running at
//! the end.
//!
//! A kill in the middle of a `write` cuts it where a page ends, so lines do not cross pages: the last column of the line
//! before is filled up with leading zeros. Only lines longer than [`RESERVE`] can be torn.

use std::ffi::CString;
use std::io::Write as _;
use std::os::fd::RawFd;
use std::sync::{Mutex, PoisonError};

use crate::{clock, sys};

const HEADER: &[u8] = b"kind,queue,pid,kernel_object,grid_x,grid_y,grid_z,wg_x,wg_y,wg_z,signal,index,begin_ns,end_ns,\
begin_ticks,end_ticks,bytes,src,dst,name,gpu,group_bytes,private_bytes,barrier,ring\n";

/// Bytes of a page of the file.
const PAGE: u64 = 4096;
/// Room that a page must have for another line.
const RESERVE: u64 = 448;

/// Fields of a line; a copy has no geometry (zero), a kernel of the user has no bytes.
#[derive(Default, Clone)]
pub(crate) struct Line<'a> {
    pub(crate) kind: &'static str,
    pub(crate) queue: u32,
    pub(crate) kernel_object: u64,
    pub(crate) grid: [u32; 3],
    pub(crate) workgroup: [u16; 3],
    pub(crate) signal: u64,
    pub(crate) index: u64,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) bytes: u64,
    pub(crate) source: u64,
    pub(crate) target: u64,
    pub(crate) name: &'a str,
    pub(crate) gpu: u32,
    pub(crate) group_bytes: u32,
    pub(crate) private_bytes: u32,
    pub(crate) has_barrier: bool,
    pub(crate) ring: u64,
}

/// The open log of a process.
pub(crate) struct TruthLog {
    fd: RawFd,
    pid: i32,
    /// Held from looking at the file's length to the end of the write.
    turn: Mutex<()>,
}

impl TruthLog {
    /// Opens the log for appending; `%p` in the path stands for the process id.
    pub(crate) fn open(path: &str, pid: i32) -> Option<Self> {
        let path = CString::new(path.replace("%p", &pid.to_string())).ok()?;
        let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_CLOEXEC;
        let low = sys::open(sys::CWD, &path, flags, 0o644);
        if low < 0 {
            return None;
        }
        let fd = sys::raise(low);
        let log = Self {
            fd,
            pid,
            turn: Mutex::new(()),
        };
        // Processes that share a file agree on who writes the header.
        log.lock(libc::LOCK_EX);
        if log.length() == 0 {
            log.write(HEADER);
        }
        log.lock(libc::LOCK_UN);
        Some(log)
    }

    fn lock(&self, operation: libc::c_int) {
        sys::call(libc::SYS_flock, [self.fd as usize, operation as usize, 0, 0, 0, 0]);
    }

    fn length(&self) -> u64 {
        let end = libc::SEEK_END as usize;
        sys::call(libc::SYS_lseek, [self.fd as usize, 0, end, 0, 0, 0]).max(0) as u64
    }

    /// Appends the line's text to a batch.
    pub(crate) fn format(&self, line: &Line<'_>, batch: &mut Vec<u8>) {
        let [grid_x, grid_y, grid_z] = line.grid;
        let [wg_x, wg_y, wg_z] = line.workgroup;
        let (begin_ns, end_ns) = (clock::host(line.begin), clock::host(line.end));
        let (begin_ticks, end_ticks) = (clock::ticks(line.begin), clock::ticks(line.end));
        // A name with a comma or a quote would break the row; C++ mangling has neither.
        let Line {
            kind,
            queue,
            kernel_object,
            signal,
            index,
            bytes,
            source,
            target,
            name,
            ..
        } = line;
        let Line {
            gpu,
            group_bytes,
            private_bytes,
            has_barrier,
            ring,
            ..
        } = line;
        _ = writeln!(
            batch,
            "{kind},{queue},{},{kernel_object:#x},{grid_x},{grid_y},{grid_z},{wg_x},{wg_y},{wg_z},{signal:#x},{index},\
             {begin_ns},{end_ns},{begin_ticks},{end_ticks},{bytes},{source:#x},{target:#x},{name},{gpu},{group_bytes},\
             {private_bytes},{},{ring:#x}",
            self.pid,
            u8::from(*has_barrier)
        );
    }

    /// Writes a batch of lines.
    pub(crate) fn write(&self, batch: &[u8]) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut position = self.length();
        let mut text = Vec::with_capacity(batch.len() + batch.len() / 8 + RESERVE as usize);
        for line in batch.split_inclusive(|byte| *byte == b'\n') {
            let left = PAGE - (position + line.len() as u64) % PAGE;
            let zeros = if left < RESERVE { left } else { 0 };
            let digits = line.windows(2).rposition(|pair| pair == b"0x").map(|at| at + 2);
            match digits {
                Some(digits) if zeros > 0 => {
                    text.extend_from_slice(&line[..digits]);
                    text.resize(text.len() + zeros as usize, b'0');
                    text.extend_from_slice(&line[digits..]);
                    position += zeros;
                }
                _ => text.extend_from_slice(line),
            }
            position += line.len() as u64;
        }
        sys::write_all(self.fd, &text);
    }

    /// The descriptor, for a forked child to close.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.fd
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_crosses_a_page_and_padding_keeps_the_value() {
        let fd = sys::memory_file(c"log", 0);
        let log = TruthLog {
            fd,
            pid: 1,
            turn: Mutex::new(()),
        };
        log.write(HEADER);
        for index in 0..500 {
            let mut batch = Vec::new();
            let name = "n".repeat(index as usize % 90);
            for queue in 0..index as u32 % 4 {
                log.format(
                    &Line {
                        kind: "dispatch",
                        queue,
                        name: &name,
                        index,
                        ring: 0x7f00,
                        ..Line::default()
                    },
                    &mut batch,
                );
            }
            log.write(&batch);
        }
        let text = std::fs::read_to_string(format!("/proc/self/fd/{fd}")).unwrap();
        let mut position = 0;
        for line in text.split_inclusive('\n') {
            assert_eq!(position / 4096, (position + line.len() - 1) / 4096, "{line}");
            position += line.len();
            let ring = line.trim_end().rsplit(',').next().unwrap();
            assert!(
                ring == "ring" || u64::from_str_radix(&ring[2..], 16) == Ok(0x7f00),
                "{ring}"
            );
        }
    }
}
