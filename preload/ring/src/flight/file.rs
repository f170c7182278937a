//! Makes a flight file on tmpfs and maps it: header and records where the system likes, the signals where they are wanted.

#![expect(
    unsafe_code,
    reason = "a mapping becomes words, and another one is put over memory of the caller's"
)]

use super::{MAGIC, PAGE, SIGNAL_WORDS, SLOT_WORDS, header};
use crate::layout::Header;
use crate::map::{allocate, may_hold, open_known, open_new, rename_new};
use crate::sync::{AtomicU64, Ordering};
use crate::writer::Words;
use memmap2::{Advice, MmapOptions, MmapRaw};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Pages of a file that is none yet, over memory of the caller's: they take no room before [`Reserved::take`].
#[derive(Debug)]
pub struct Reserved {
    temporary: PathBuf,
    path: PathBuf,
    signals: usize,
    slots: usize,
}

/// A mapped flight file, for writing.
#[derive(Debug)]
pub struct FlightFile {
    map: MmapRaw,
    /// The page of the last signals, seen through another mapping than the one over the caller's memory.
    last: MmapRaw,
    slots: usize,
}

/// Where the signals begin.
const fn signals_at(slots: usize) -> usize {
    PAGE + slots * SLOT_WORDS * 8
}

impl Reserved {
    /// Makes `dir/name` for `slots` slots (a multiple of 64) under another name, and puts the pages of its signals over the
    /// memory at `address`, whose contents are gone then.
    ///
    /// Errors: the directory is missing, the name is taken, the system refuses; the memory is as it was.
    ///
    /// # Safety
    /// `address` is at a page boundary and begins as many bytes as the signals take, all of them memory that the caller owns.
    /// Nobody reads or writes it before [`Self::take`] has given the file, and never after that failed.
    pub unsafe fn put(dir: &Path, name: &str, slots: usize, address: *mut u8) -> io::Result<Self> {
        let temporary = dir.join(format!(".{name}.tmp"));
        let file = open_new(&temporary)?;
        let size = FlightFile::bytes(slots);
        let put = may_hold(&file, size)
            .and_then(|()| file.set_len(size))
            // SAFETY: the caller owns the memory.
            .and_then(|()| unsafe { put(&file, slots, address) });
        if let Err(error) = put {
            let _ = std::fs::remove_file(&temporary);
            return Err(error);
        }
        Ok(Self {
            temporary,
            path: dir.join(name),
            signals: address as usize,
            slots,
        })
    }

    /// The file, for the process that `of` names: with room for all of it, and with its name.
    ///
    /// Errors: the file cannot be opened, no room.
    pub fn take(self, of: &Header) -> io::Result<FlightFile> {
        let made = self.made(of);
        if made.is_err() {
            let _ = std::fs::remove_file(&self.temporary);
        }
        made
    }

    fn made(&self, of: &Header) -> io::Result<FlightFile> {
        let file = open_known(&self.temporary)?;
        let slots = self.slots;
        allocate(&file, FlightFile::bytes(slots))?;
        // With its page tables, as the signals get theirs: launches must not pay for them.
        let map = MmapOptions::new().len(signals_at(slots)).populate().map_raw(&file)?;
        map.advise(Advice::DontFork)?;
        let end = FlightFile::bytes(slots) as usize;
        let last = MmapOptions::new()
            .offset((end - PAGE) as u64)
            .len(PAGE)
            .map_raw(&file)?;
        last.advise(Advice::DontFork)?;
        // SAFETY: the range was mapped by `put`; older kernels than 5.14 refuse, and the pages come one by one.
        let _ = unsafe {
            libc::madvise(
                self.signals as *mut libc::c_void,
                slots * SIGNAL_WORDS * 8,
                libc::MADV_POPULATE_WRITE,
            )
        };
        let made = FlightFile { map, last, slots };
        for (at, value) in [
            (header::MAGIC, MAGIC),
            (header::SLOTS, slots as u64),
            (header::PID, u64::from(of.pid)),
            (header::START, of.start_ticks),
        ] {
            made.header()[at].store(value, Ordering::Relaxed);
        }
        rename_new(&self.temporary, &self.path)?;
        Ok(made)
    }
}

/// Puts a file's signals over memory.
///
/// # Safety
/// As [`Reserved::put`] says.
unsafe fn put(file: &File, slots: usize, address: *mut u8) -> io::Result<()> {
    let length = slots * SIGNAL_WORDS * 8;
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_FIXED);
    // SAFETY: the caller owns the memory that is replaced.
    let mapped = unsafe {
        libc::mmap(
            address.cast(),
            length,
            protection,
            flags,
            file.as_raw_fd(),
            signals_at(slots) as libc::off_t,
        )
    };
    if mapped == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // Memory of the driver is not for children, as it was before.
    // SAFETY: the range was mapped by the line above.
    unsafe { libc::madvise(mapped, length, libc::MADV_DONTFORK) };
    Ok(())
}

impl FlightFile {
    /// Bytes of a file of so many slots.
    pub const fn bytes(slots: usize) -> u64 {
        (signals_at(slots) + slots * SIGNAL_WORDS * 8) as u64
    }

    /// The header page's words.
    pub fn header(&self) -> Words<'_> {
        self.words(0, PAGE / 8)
    }

    /// The records' words.
    pub fn records(&self) -> Words<'_> {
        self.words(PAGE, self.slots * SLOT_WORDS)
    }

    /// Does the file show the last signal as complete?
    pub fn is_last_complete(&self) -> bool {
        let at = PAGE - SIGNAL_WORDS * 8 + super::signal::VALUE * 8;
        #[expect(
            clippy::cast_ptr_alignment,
            reason = "a multiple of eight bytes behind a page boundary"
        )]
        // SAFETY: the mapping is a page long and lives as long as `self`; all access is atomic.
        let value = unsafe { &*self.last.as_ptr().add(at).cast::<AtomicU64>() };
        value.load(Ordering::Acquire).cast_signed() < 1
    }

    fn words(&self, offset: usize, count: usize) -> Words<'_> {
        #[expect(clippy::cast_ptr_alignment, reason = "both offsets are those of a page")]
        // SAFETY: the mapping is a page and the records long, at a page boundary; it lives as long as `self`; all access by
        // any process is atomic or by pread.
        unsafe {
            std::slice::from_raw_parts(self.map.as_ptr().add(offset).cast::<AtomicU64>(), count)
        }
    }
}
