//! Reading the words of a region.

use super::{Bytes, Reader};
use crate::layout::Region;
use crate::sync::{Ordering, fence};
use std::io;

/// Reads until the buffer is full or the bytes end; returns the number of bytes.
pub(super) fn read_full(bytes: &impl Bytes, offset: u64, into: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < into.len() {
        match bytes.read_at(offset + got as u64, &mut into[got..]) {
            Ok(0) => break,
            Ok(count) => got += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

impl<B: Bytes> Reader<B> {
    /// Words of a region that did not change while they were read; after a few tries as they are.
    pub(super) fn stable_words(&self, kind: Region, from: usize, count: usize) -> io::Result<Vec<u64>> {
        let mut words = self.region_words(kind, from, count)?;
        for _ in 0..4 {
            fence(Ordering::Acquire);
            let again = self.region_words(kind, from, count)?;
            if again == words {
                break;
            }
            words = again;
        }
        Ok(words)
    }

    /// `N` words of a region; 0 beyond its end.
    pub(super) fn some_words<const N: usize>(&self, kind: Region, from: usize) -> io::Result<[u64; N]> {
        let extent = self.header.region(kind);
        let start = (from as u64).saturating_mul(8).min(extent.length);
        let length = (N as u64 * 8).min(extent.length - start) as usize;
        let mut raw = [[0u8; 8]; N];
        read_full(
            &self.bytes,
            extent.offset + start,
            &mut raw.as_flattened_mut()[..length],
        )?;
        Ok(raw.map(u64::from_le_bytes))
    }

    /// Words of a region; fewer if the region or the file ends first.
    pub(super) fn region_words(&self, kind: Region, from: usize, count: usize) -> io::Result<Vec<u64>> {
        let extent = self.header.region(kind);
        let start = (from as u64).saturating_mul(8).min(extent.length);
        let length = (count as u64 * 8).min(extent.length - start);
        let mut raw = vec![0u8; length as usize];
        let got = read_full(&self.bytes, extent.offset + start, &mut raw)?;
        Ok(raw[..got]
            .as_chunks::<8>()
            .0
            .iter()
            .map(|word| u64::from_le_bytes(*word))
            .collect())
    }
}
