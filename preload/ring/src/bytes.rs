//! Positioned reads of the collector's files.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// A file, or a buffer in tests.
pub trait Bytes {
    /// Reads at byte `offset`; a short count at the end.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize>;
    /// Current size in bytes.
    fn size(&self) -> io::Result<u64>;
}

impl Bytes for File {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        FileExt::read_at(self, into, offset)
    }
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

impl Bytes for Vec<u8> {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(offset)
            .ok()
            .and_then(|at| self.get(at..))
            .unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }
}
