//! The mapping: creates a ring file on tmpfs, allocates all of it, and hands its words to the writers.
//!
//! The file is allocated before it is mapped, so that a full tmpfs is an error here and never a SIGBUS in the traced
//! program. It gets its name after its header is complete. Forked children do not inherit the mapping. The file is
//! locked as long as it is mapped; by this lock a reader knows that the writer is alive.

use crate::layout::{Extent, Header, MAJOR, MINOR, Region, Spec, clock, counter, entry, open_range, queue};
use crate::record::{SLOT_WORDS, TOTALS};
use crate::sync::{AtomicU64, Ordering};
use crate::writer::{EntryWriter, FactWriter, RingWriter, StringWriter, Words};
use memmap2::{Advice, MmapOptions, MmapRaw};
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A mapped ring file, for writing.
pub struct RingFile {
    map: MmapRaw,
    header: Header,
    path: PathBuf,
}

impl RingFile {
    /// Creates `dir/name` with the sizes of `spec`; `header` gives the identity, this function its regions and size.
    ///
    /// Errors: the directory is missing or not on tmpfs, the name exists, or there is no space.
    pub fn create(dir: &Path, name: &str, spec: &Spec, mut header: Header) -> io::Result<Self> {
        let (regions, size) = spec.regions();
        header.major = MAJOR;
        header.minor = MINOR;
        header.ordinal = spec.ordinal;
        header.regions = regions;
        header.size = size;
        let temporary = dir.join(format!(".{name}.tmp"));
        let file = open_new(&temporary)?;
        // Locked and mapped before it is named, so that a reader never finds it unlocked.
        let made = fill(&file, &header, spec).and_then(|()| {
            lock(&file);
            let map = MmapOptions::new().len(size as usize).map_raw(&file)?;
            // Children that fork without exec must not write to the parent's rings.
            map.advise(Advice::DontFork)?;
            rename_new(&temporary, &dir.join(name))?;
            Ok(map)
        });
        let map = match made {
            Ok(map) => map,
            Err(error) => {
                let _ = std::fs::remove_file(&temporary);
                return Err(error);
            }
        };
        Ok(Self {
            map,
            header,
            path: dir.join(name),
        })
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The words of a region; empty if the file does not have it.
    #[inline]
    pub fn words(&self, kind: Region) -> Words<'_> {
        self.extent(self.header.region(kind))
    }

    #[inline]
    #[expect(unsafe_code, reason = "the one place where the mapping becomes words")]
    fn extent(&self, extent: Extent) -> Words<'_> {
        let (offset, length) = (extent.offset as usize, extent.length as usize);
        if length == 0 || offset + length > self.map.len() {
            return &[];
        }
        // SAFETY: `offset` is inside the mapping (tested above).
        let start = unsafe { self.map.as_ptr().add(offset) };
        if start.align_offset(align_of::<AtomicU64>()) != 0 {
            return &[];
        }
        #[expect(clippy::cast_ptr_alignment, reason = "alignment was tested above")]
        let words = start.cast::<AtomicU64>();
        // SAFETY: offset and length lie inside the mapping, which lives as long as `self`; the words are aligned; all
        // access by any process is atomic or by pread.
        unsafe { std::slice::from_raw_parts(words, length / 8) }
    }

    /// Number of directory entries.
    pub fn entries(&self) -> usize {
        self.words(Region::Directory).len() / entry::WORDS
    }

    /// The words of a directory entry.
    pub fn entry(&self, index: usize) -> Option<Words<'_>> {
        self.words(Region::Directory)
            .get(index * entry::WORDS..(index + 1) * entry::WORDS)
    }

    /// Claims entry `index` for the calling thread if it is free or done, with one compare-exchange and no lock.
    ///
    /// `since` is in ticks. `None` if another thread has the entry.
    pub fn claim(&self, index: usize, tid: u32, since: u64, name: [u64; 2]) -> Option<Claim<'_>> {
        let words = self.entry(index)?;
        let totals = self
            .words(Region::Totals)
            .get(index * 2 * TOTALS..(index + 1) * 2 * TOTALS)?;
        let generation = crate::directory::claim(words, tid, since, name)?;
        let offset = words[entry::RING_OFFSET].load(Ordering::Relaxed);
        let slots = words[entry::RING_SLOTS].load(Ordering::Relaxed);
        let ring = self.extent(Extent {
            offset,
            length: slots * (SLOT_WORDS * 8) as u64,
        });
        let milestone = self.words(Region::Milestones).get(index)?;
        Some(Claim {
            ring: RingWriter::new(ring, &words[entry::HEAD], &words[entry::RECORDS])?.with_milestone(milestone),
            entry: EntryWriter::new(words, totals)?,
            generation,
        })
    }

    /// Populates the page tables for `length` bytes of entry `index`'s ring from byte `from` on, so that its thread
    /// does not fault on them. False at the end of the ring, or if no thread ever claimed it. Before Linux 5.14 this
    /// does nothing.
    pub fn populate(&self, index: usize, from: u64, length: u64) -> bool {
        let Some(words) = self
            .entry(index)
            .filter(|words| words[entry::STATE].load(Ordering::Relaxed) != entry::FREE)
        else {
            return false;
        };
        let offset = words[entry::RING_OFFSET].load(Ordering::Relaxed);
        let size = words[entry::RING_SLOTS].load(Ordering::Relaxed) * (SLOT_WORDS * 8) as u64;
        if from >= size || offset + size > self.map.len() as u64 {
            return false;
        }
        let length = length.min(size - from) as usize;
        let _ = self
            .map
            .advise_range(Advice::PopulateWrite, (offset + from) as usize, length);
        true
    }

    /// Marks entry `index` as done: its thread has ended.
    pub fn release(&self, index: usize) {
        if let Some(words) = self.entry(index) {
            crate::directory::release(words);
        }
    }

    /// A process-wide counter, by its offset in [`counter`].
    #[inline]
    pub fn counter(&self, at: usize) -> Option<&AtomicU64> {
        self.words(Region::Counters).get(at)
    }

    /// The writer for facts; `None` in a chained file.
    pub fn facts(&self) -> Option<FactWriter<'_>> {
        let counters = self.words(Region::Counters);
        let slots = self.words(Region::Facts);
        (counters.len() == counter::WORDS && !slots.is_empty())
            .then(|| FactWriter::new(slots, &counters[counter::FACTS_USED], &counters[counter::FACTS_FULL]))
    }

    /// The writer for strings; `None` in a chained file.
    pub fn strings(&self) -> Option<StringWriter<'_>> {
        let counters = self.words(Region::Counters);
        let index = self.words(Region::StringIndex);
        (counters.len() == counter::WORDS && !index.is_empty()).then(|| {
            StringWriter::new(
                index,
                self.words(Region::StringBytes),
                &counters[counter::STRINGS],
                &counters[counter::STRING_WORDS],
                &counters[counter::STRINGS_FULL],
            )
        })
    }

    /// The words of queue `index` in the table, see [`queue`].
    pub fn queue(&self, index: usize) -> Option<Words<'_>> {
        self.words(Region::Queues)
            .get(index * queue::WORDS..(index + 1) * queue::WORDS)
    }

    /// The words of open start/stop range `index`, see [`open_range`].
    pub fn open_range(&self, index: usize) -> Option<Words<'_>> {
        self.words(Region::OpenRanges)
            .get(index * open_range::WORDS..(index + 1) * open_range::WORDS)
    }

    /// Stores a calibration sample; words as in [`clock`], `sample[0]` is ignored. One writer at a time.
    pub fn calibrate(&self, sample: [u64; clock::WORDS]) {
        let Some(count) = self.counter(counter::CALIBRATIONS) else {
            return;
        };
        let number = count.fetch_add(1, Ordering::Relaxed);
        let place = crate::directory::sample_place(number);
        if let Some(words) = self
            .words(Region::Clock)
            .get(place * clock::WORDS..(place + 1) * clock::WORDS)
        {
            crate::directory::write_sample(words, number, &sample);
        }
    }
}

/// Result of [`RingFile::claim`].
pub struct Claim<'m> {
    /// Its ring.
    pub ring: RingWriter<'m>,
    /// Its directory entry.
    pub entry: EntryWriter<'m>,
    /// Life of the entry, from 1.
    pub generation: u32,
}

pub(crate) fn open_new(path: &Path) -> io::Result<File> {
    open(path, libc::O_CREAT | libc::O_EXCL)
}

/// Opens a file that [`open_new`] made.
pub(crate) fn open_known(path: &Path) -> io::Result<File> {
    open(path, 0)
}

#[expect(unsafe_code, reason = "open with O_NOFOLLOW and a mode needs the C library's call")]
fn open(path: &Path, how: i32) -> io::Result<File> {
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let flags = libc::O_RDWR | libc::O_NOFOLLOW | libc::O_CLOEXEC | how;
    // SAFETY: `name` is a terminated string that lives during the call. A raw system call, because an emulated driver
    // may stand in for the library's open.
    let fd = unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, name.as_ptr(), flags, 0o600) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened and is owned by nobody else.
    Ok(unsafe { File::from_raw_fd(fd as i32) })
}

/// Allocates all bytes of a new file, so that no later access can fail.
///
/// Errors: as [`may_hold`], and no space.
#[expect(unsafe_code, reason = "fallocate has no safe form in std")]
pub(crate) fn allocate(file: &File, size: u64) -> io::Result<()> {
    may_hold(file, size)?;
    // SAFETY: the descriptor is open; the call touches no memory of ours. A raw system call, because a library of the
    // program may stand in for the C library's fallocate, and fail.
    if unsafe { libc::syscall(libc::SYS_fallocate, file.as_raw_fd(), 0, 0i64, size as i64) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Whether the file may have this size.
///
/// Errors: it is not on tmpfs, or larger than the program may create files (`EFBIG`).
#[expect(unsafe_code, reason = "fstatfs and getrlimit have no safe form in std")]
pub(crate) fn may_hold(file: &File, size: u64) -> io::Result<()> {
    const TMPFS: i64 = 0x0102_1994;
    const RAMFS: i64 = 0x8584_58f6;
    let mut facts = std::mem::MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: the descriptor is open and `facts` has room for the answer.
    let known = unsafe { libc::fstatfs(file.as_raw_fd(), facts.as_mut_ptr()) };
    // SAFETY: zero is a valid value of every field, and the call filled it when it succeeded.
    let kind = unsafe { facts.assume_init() }.f_type;
    if known != 0 || (kind != TMPFS && kind != RAMFS) {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "the session's directory is not on tmpfs",
        ));
    }
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` has room for the answer.
    let is_limited = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } == 0 && size > limit.rlim_cur;
    if is_limited {
        // Without this check, fallocate would raise SIGXFSZ and end the program.
        return Err(io::Error::from_raw_os_error(libc::EFBIG));
    }
    Ok(())
}

/// Whether the file's tmpfs has space for `size` bytes now.
///
/// Errors: there is no space.
#[expect(unsafe_code, reason = "fstatfs has no safe form in std")]
pub(crate) fn has_room(file: &File, size: u64) -> io::Result<()> {
    let mut facts = std::mem::MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: the descriptor is open and `facts` has room for the answer.
    let known = unsafe { libc::fstatfs(file.as_raw_fd(), facts.as_mut_ptr()) };
    // SAFETY: zero is a valid value of every field, and the call filled it when it succeeded.
    let facts = unsafe { facts.assume_init() };
    // A tmpfs without a limit has no blocks.
    let is_full = known != 0 || (facts.f_blocks > 0 && facts.f_bavail.saturating_mul(facts.f_bsize as u64) < size);
    if is_full {
        return Err(io::ErrorKind::StorageFull.into());
    }
    Ok(())
}

fn fill(mut file: &File, header: &Header, spec: &Spec) -> io::Result<()> {
    allocate(file, header.size)?;
    file.write_all(&header.encode())?;
    let directory = header.region(Region::Directory);
    let mut at = header.region(Region::Rings).offset;
    for (index, slots) in spec.rings.iter().enumerate() {
        let words = directory.offset + (index * entry::WORDS * 8) as u64;
        file.write_all_at(&at.to_le_bytes(), words + (entry::RING_OFFSET * 8) as u64)?;
        file.write_all_at(&slots.to_le_bytes(), words + (entry::RING_SLOTS * 8) as u64)?;
        at += slots * (SLOT_WORDS * 8) as u64;
    }
    Ok(())
}

#[expect(unsafe_code, reason = "renameat2 has no safe form in std")]
pub(crate) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    let from_name = CString::new(from.as_os_str().as_bytes())?;
    let to_name = CString::new(to.as_os_str().as_bytes())?;
    let (cwd, flags) = (libc::AT_FDCWD, libc::RENAME_NOREPLACE);
    // SAFETY: both names are terminated strings that live during the call.
    match unsafe {
        libc::syscall(
            libc::SYS_renameat2,
            cwd,
            from_name.as_ptr(),
            cwd,
            to_name.as_ptr(),
            flags,
        )
    } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[expect(unsafe_code, reason = "flock has no safe form in std for a mapping's lock")]
fn lock(file: &File) {
    // The lock belongs to the open file description, which the mapping keeps after the descriptor is closed.
    // SAFETY: the descriptor is open; a failure only delays the detection of the writer's death.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
}
