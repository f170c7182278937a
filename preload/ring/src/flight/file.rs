//! Creates a flight file on tmpfs and maps it: header and records anywhere, the signals at a given address.

#![expect(
    unsafe_code,
    reason = "a mapping becomes words, and another one is put over memory of the caller's"
)]

use super::{MAGIC, PAGE, SIGNAL_WORDS, SLOT_WORDS, header};
use crate::layout::Header;
use crate::map::{allocate, has_room, may_hold, open_known, open_new, rename_new};
use crate::sync::{AtomicU64, Ordering};
use crate::writer::Words;
use memmap2::{Advice, MmapOptions, MmapRaw};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;

/// The pages of an unfinished flight file, mapped over the caller's memory. They take no space before
/// [`Reserved::take`].
#[derive(Debug)]
pub struct Reserved {
    temporary: PathBuf,
    path: PathBuf,
    slots: usize,
    signals: usize,
}

/// A mapped flight file, for writing.
///
/// At first only the header and the first slots have pages, because the system needs milliseconds to allocate all. A
/// slot is used once it is [`ready`](Self::ready), so no access meets a full tmpfs.
#[derive(Debug)]
pub struct FlightFile {
    map: MmapRaw,
    /// The page of the last signals, through a second mapping beside the one over the caller's memory.
    last: MmapRaw,
    slots: usize,
    /// Address of the signals.
    signals: usize,
    /// Number of slots with pages, from the first one.
    ready: AtomicUsize,
}

/// Number of files that may be mapped at about the same time; each needs space later.
const NEIGHBOURS: u64 = 4;
/// Ready slots of a new file: as many as a program fills while the system allocates the pages of the next ones.
const FIRST_SLOTS: usize = 2048;
/// Number of slots that fill whole pages, of signals and of records.
const SLOTS_OF_PAGE: usize = PAGE / (SIGNAL_WORDS * 8);

/// Offset of the signals, in bytes.
const fn signals_at(slots: usize) -> usize {
    PAGE + slots * SLOT_WORDS * 8
}

impl Reserved {
    /// Creates a file for `slots` slots (a multiple of 64) under a temporary name, and maps its signals over the memory
    /// at `address`, whose contents are lost. [`Self::take`] renames it to `dir/name`.
    ///
    /// A driver that maps host memory by its pages allocates all pages of the signals soon afterwards. A GPU that uses
    /// a page without space ends the program. The tmpfs must therefore have space for several such files.
    ///
    /// Errors: the directory is missing, the name is taken, there is no space, or the system refuses. The memory is
    /// then unchanged.
    ///
    /// # Safety
    /// `address` is at a page boundary, and the caller owns all the bytes that the signals take from there. Nobody
    /// reads or writes them before [`Self::take`] has returned the file, and never if that failed.
    pub unsafe fn put(dir: &Path, name: &str, slots: usize, address: *mut u8) -> io::Result<Self> {
        let temporary = dir.join(format!(".{name}.tmp"));
        let file = open_new(&temporary)?;
        let size = FlightFile::bytes(slots);
        let put = may_hold(&file, size)
            .and_then(|()| has_room(&file, size * NEIGHBOURS))
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
            slots,
            signals: address.addr(),
        })
    }

    /// Renames and returns the file, for the process that `of` identifies. Its first slots are ready.
    ///
    /// Errors: the file cannot be opened, or the tmpfs has no space for all of it.
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
        has_room(&file, FlightFile::bytes(slots))?;
        let map = MmapOptions::new().len(signals_at(slots)).map_raw(&file)?;
        map.advise(Advice::DontFork)?;
        let end = FlightFile::bytes(slots) as usize;
        let last = MmapOptions::new()
            .offset((end - PAGE) as u64)
            .len(PAGE)
            .map_raw(&file)?;
        last.advise(Advice::DontFork)?;
        let made = FlightFile {
            map,
            last,
            slots,
            signals: self.signals,
            ready: AtomicUsize::new(0),
        };
        made.begin(&file)?;
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

/// Maps a file's signals over the caller's memory.
///
/// # Safety
/// As for [`Reserved::put`].
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
    // Children do not inherit the driver's memory, and must not inherit these pages.
    // SAFETY: the range was mapped by the line above.
    unsafe { libc::madvise(mapped, length, libc::MADV_DONTFORK) };
    Ok(())
}

/// Allocates the pages of a mapping without changing their contents.
///
/// Errors: the tmpfs is full, or the kernel does not support the request (`InvalidInput`).
fn populate(address: usize, length: usize) -> io::Result<()> {
    loop {
        // SAFETY: the range is mapped for writing, and its contents stay as they are.
        let done = unsafe { libc::madvise(address as *mut libc::c_void, length, libc::MADV_POPULATE_WRITE) };
        let error = io::Error::last_os_error();
        match done {
            0 => return Ok(()),
            _ if error.kind() == io::ErrorKind::Interrupted => {}
            _ => return Err(error),
        }
    }
}

impl FlightFile {
    /// Bytes of a file with `slots` slots.
    pub const fn bytes(slots: usize) -> u64 {
        (signals_at(slots) + slots * SIGNAL_WORDS * 8) as u64
    }

    /// Makes the header, the first slots and the last signal ready.
    fn begin(&self, file: &File) -> io::Result<()> {
        let base = self.map.as_ptr().addr();
        let last = self.signals + self.slots * SIGNAL_WORDS * 8 - PAGE;
        // Kernels before 5.14 do not allocate pages on request: there the whole file is allocated now.
        let made = populate(base, PAGE).and_then(|()| populate(last, PAGE));
        match made {
            Ok(()) if self.make_ready(FIRST_SLOTS) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                allocate(file, Self::bytes(self.slots))?;
                self.ready.store(self.slots, Ordering::Release);
                Ok(())
            }
            _ => Err(io::ErrorKind::StorageFull.into()),
        }
    }

    /// Number of slots with pages, from the first one.
    #[inline]
    pub fn ready(&self) -> usize {
        self.ready.load(Ordering::Acquire)
    }

    /// Makes at least the first `slots` slots ready. False if the tmpfs is full. Any thread may call it.
    pub fn make_ready(&self, slots: usize) -> bool {
        let from = self.ready();
        let until = slots.next_multiple_of(SLOTS_OF_PAGE).min(self.slots);
        if until <= from {
            return true;
        }
        let (record, signal) = (SLOT_WORDS * 8, SIGNAL_WORDS * 8);
        let records = self.map.as_ptr().addr() + PAGE + from * record;
        let made = populate(records, (until - from) * record)
            .and_then(|()| populate(self.signals + from * signal, (until - from) * signal));
        if made.is_ok() {
            self.ready.fetch_max(until, Ordering::Release);
        }
        made.is_ok()
    }

    /// Maps private memory for the records of slots that are not ready. All slots are then ready, but the signals of
    /// these must not be used, and a reader does not find them after a kill. One thread at a time.
    ///
    /// Errors: the system has no memory.
    pub fn detach_rest(&self) -> io::Result<()> {
        let from = self.ready();
        let place = self.map.as_mut_ptr().wrapping_add(PAGE + from * SLOT_WORDS * 8);
        let length = (self.slots - from) * SLOT_WORDS * 8;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a part of this mapping, of whole pages that hold slots which are not ready: nobody refers to them.
        let mapped = unsafe { libc::mmap(place.cast(), length, protection, flags, -1, 0) };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        self.ready.store(self.slots, Ordering::Release);
        Ok(())
    }

    /// The header page's words.
    pub fn header(&self) -> Words<'_> {
        self.words(0, PAGE / 8)
    }

    /// Words of the records.
    pub fn records(&self) -> Words<'_> {
        self.words(PAGE, self.slots * SLOT_WORDS)
    }

    /// Whether the last signal is complete as the file shows it.
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
