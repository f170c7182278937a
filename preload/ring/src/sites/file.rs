//! Creates a stack file on tmpfs and maps it.

use super::{MAX_FILE, MIN_FILE, PAGE, SitesWriter};
use crate::layout::Header;
use crate::map::{allocate, open_new, rename_new};
use crate::sync::AtomicU64;
use crate::writer::Words;
use memmap2::{Advice, MmapOptions, MmapRaw};
use std::io;
use std::path::Path;

/// A mapped stack file, for writing.
#[derive(Debug)]
pub struct SitesFile {
    map: MmapRaw,
}

impl SitesFile {
    /// Creates `dir/name` with at most `size` bytes for the process that `of` identifies. All of it is allocated, so that
    /// a full tmpfs is an error here.
    ///
    /// Errors: `size` is too small, the directory is missing or not on tmpfs, the name exists, or there is no space.
    pub fn create(dir: &Path, name: &str, size: usize, of: &Header) -> io::Result<Self> {
        let size = size.min(MAX_FILE) / PAGE * PAGE;
        if size < MIN_FILE {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let temporary = dir.join(format!(".{name}.tmp"));
        let file = open_new(&temporary)?;
        let made = allocate(&file, size as u64).and_then(|()| {
            let map = MmapOptions::new().len(size).map_raw(&file)?;
            // A child that forks without exec makes its own file.
            map.advise(Advice::DontFork)?;
            let made = Self { map };
            let writer = made.writer().ok_or(io::ErrorKind::InvalidInput)?;
            writer.begin(of.pid, of.start_ticks);
            rename_new(&temporary, &dir.join(name))?;
            Ok(made)
        });
        if made.is_err() {
            let _ = std::fs::remove_file(&temporary);
        }
        made
    }

    /// Bytes of the file.
    pub fn size(&self) -> usize {
        self.map.len()
    }

    /// What writes to it.
    #[inline]
    pub fn writer(&self) -> Option<SitesWriter<'_>> {
        SitesWriter::new(
            self.words(0, PAGE),
            self.words(PAGE, self.map.len().saturating_sub(PAGE)),
        )
    }

    #[expect(unsafe_code, reason = "a mapping becomes words")]
    fn words(&self, offset: usize, length: usize) -> Words<'_> {
        if offset + length > self.map.len() {
            return &[];
        }
        #[expect(clippy::cast_ptr_alignment, reason = "both offsets are those of a page")]
        // SAFETY: the range is inside the mapping (tested above), at a page boundary; the mapping lives as long as `self`;
        // all access by any process is atomic or by pread.
        unsafe {
            std::slice::from_raw_parts(self.map.as_ptr().add(offset).cast::<AtomicU64>(), length / 8)
        }
    }
}
