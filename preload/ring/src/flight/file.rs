//! Creates a flight file on tmpfs and maps it: header and records anywhere, the signals at a given address.

#![expect(
    unsafe_code,
    reason = "a mapping becomes words, and another one is put over memory of the caller's"
)]

use super::{MAGIC, PAGE, SIGNAL_WORDS, SLOT_WORDS, header};
use crate::layout::Header;
use crate::map::{allocate, open_new, rename_new};
use crate::sync::{AtomicU64, Ordering};
use crate::writer::Words;
use memmap2::{Advice, MmapOptions, MmapRaw};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

/// A mapped flight file, for writing.
pub struct FlightFile {
    map: MmapRaw,
    /// Open until the signals are mapped: a permanent descriptor could disturb the program.
    file: Option<File>,
    slots: usize,
}

impl FlightFile {
    /// Creates `dir/name` with `slots` slots (a multiple of 64) for the process that `of` names.
    ///
    /// Errors: the directory is missing or not on tmpfs, the name exists, or there is no space.
    pub fn create(dir: &Path, name: &str, of: &Header, slots: usize) -> io::Result<Self> {
        let temporary = dir.join(format!(".{name}.tmp"));
        let file = open_new(&temporary)?;
        let made = allocate(&file, Self::bytes(slots)).and_then(|()| {
            // Populated, as the signals will be: launches must not take the page faults.
            let map = MmapOptions::new()
                .len(PAGE + slots * SLOT_WORDS * 8)
                .populate()
                .map_raw(&file)?;
            map.advise(Advice::DontFork)?;
            Ok(map)
        });
        let finished = made.and_then(|map| {
            let made = Self {
                map,
                file: Some(file),
                slots,
            };
            for (at, value) in [
                (header::MAGIC, MAGIC),
                (header::SLOTS, slots as u64),
                (header::PID, u64::from(of.pid)),
                (header::START, of.start_ticks),
            ] {
                made.header()[at].store(value, Ordering::Relaxed);
            }
            rename_new(&temporary, &dir.join(name))?;
            Ok(made)
        });
        if finished.is_err() {
            let _ = std::fs::remove_file(&temporary);
        }
        finished
    }

    /// Bytes of a file with `slots` slots.
    pub const fn bytes(slots: usize) -> u64 {
        (PAGE + slots * (SLOT_WORDS + SIGNAL_WORDS) * 8) as u64
    }

    /// The header page's words.
    pub fn header(&self) -> Words<'_> {
        self.words(0, PAGE / 8)
    }

    /// Words of the records.
    pub fn records(&self) -> Words<'_> {
        self.words(PAGE, self.slots * SLOT_WORDS)
    }

    fn words(&self, offset: usize, count: usize) -> Words<'_> {
        #[expect(clippy::cast_ptr_alignment, reason = "both offsets are those of a page")]
        // SAFETY: the mapping is a page and the records long, at a page boundary; it lives as long as `self`; all access by
        // any process is atomic or by pread.
        unsafe {
            std::slice::from_raw_parts(self.map.as_ptr().add(offset).cast::<AtomicU64>(), count)
        }
    }

    /// Maps the file's signals over the memory at `address`, whose contents are lost, and closes the file. Works once.
    ///
    /// Errors: the system refuses, or the signals are already mapped; the memory is unchanged.
    ///
    /// # Safety
    /// `address` is page-aligned, and the caller owns as many bytes there as the signals take; nobody else reads or
    /// writes them during the call.
    pub unsafe fn put_signals_at(&mut self, address: *mut u8) -> io::Result<()> {
        let file = self.file.take().ok_or(io::ErrorKind::AlreadyExists)?;
        let length = self.slots * SIGNAL_WORDS * 8;
        let offset = PAGE + self.slots * SLOT_WORDS * 8;
        let (protection, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_FIXED | libc::MAP_POPULATE,
        );
        // SAFETY: the caller owns the memory that is replaced.
        let mapped = unsafe {
            libc::mmap(
                address.cast(),
                length,
                protection,
                flags,
                file.as_raw_fd(),
                offset as libc::off_t,
            )
        };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // Children do not inherit memory of the driver, here as before.
        // SAFETY: the line above mapped the range.
        unsafe { libc::madvise(mapped, length, libc::MADV_DONTFORK) };
        Ok(())
    }
}
