//! The header page of a ring file.

use super::{ENDIAN_MARK, Extent, MAGIC, MAJOR, MAX_FILE, PAGE, REGIONS, Region};

/// The constant part of a ring file: its writer's identity and its regions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Layout version, major.
    pub major: u16,
    /// Layout version, minor.
    pub minor: u16,
    /// Bytes of the file.
    pub size: u64,
    /// Process id in the writer's namespace.
    pub pid: u32,
    /// Parent's process id.
    pub ppid: u32,
    /// User id.
    pub uid: u32,
    /// Index in the chain of the process's files.
    pub ordinal: u32,
    /// Start time of the process, clock ticks since boot (`/proc/PID/stat` field 22).
    pub start_ticks: u64,
    /// Inode of the pid namespace.
    pub pid_namespace: u64,
    /// Boot id, first eight bytes.
    pub boot_id: u64,
    /// Rank under MPI or Slurm, -1 for none.
    pub rank: i32,
    /// Number of ranks, -1 for none.
    pub ranks: i32,
    /// One of [`clock::KIND_TSC`](super::clock::KIND_TSC) and [`clock::KIND_VDSO`](super::clock::KIND_VDSO).
    pub clock_kind: u32,
    /// Creation time of the file, CLOCK_REALTIME ns.
    pub created: u64,
    /// Regions by kind.
    pub regions: [Extent; REGIONS],
    /// Host name.
    pub host: String,
    /// Name of the executable's file.
    pub exe: String,
    /// Command line; arguments are separated by zero bytes in the file and by spaces here.
    pub command: String,
}

/// Why this build cannot read a file as a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// Shorter than a header page.
    Short,
    /// Not a ring file.
    NotARing,
    /// Another major version of the layout.
    Version(u16),
    /// Written on a machine of another byte order.
    ByteOrder,
    /// The header's checksum is wrong.
    Checksum,
    /// A region is outside the file or overlaps another one.
    Region(u32),
}

impl std::fmt::Display for LayoutError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Short => write!(
                f,
                "the file is shorter than a ring's header; it was cut or never finished"
            ),
            Self::NotARing => write!(f, "this is not a ring file of roctop"),
            Self::Version(v) => write!(
                f,
                "ring layout {v} was written by another release of roctop; this one reads {MAJOR}"
            ),
            Self::ByteOrder => write!(f, "the ring was written on a machine of another byte order"),
            Self::Checksum => write!(f, "the ring's header is damaged"),
            Self::Region(kind) => write!(f, "the ring's header is damaged: region {kind} does not fit the file"),
        }
    }
}

impl std::error::Error for LayoutError {}

const HOST: usize = 512;
const EXE: usize = 640;
const COMMAND: usize = 1024;
const CHECKSUM: usize = 504;

impl Header {
    /// The header page.
    pub fn encode(&self) -> Vec<u8> {
        let mut page = vec![0u8; PAGE];
        let mut put = |at: usize, bytes: &[u8]| page[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &MAGIC.to_le_bytes());
        put(8, &self.major.to_le_bytes());
        put(10, &self.minor.to_le_bytes());
        put(12, &(PAGE as u32).to_le_bytes());
        put(16, &self.size.to_le_bytes());
        put(24, &ENDIAN_MARK.to_le_bytes());
        put(32, &self.pid.to_le_bytes());
        put(36, &self.ppid.to_le_bytes());
        put(40, &self.uid.to_le_bytes());
        put(44, &self.ordinal.to_le_bytes());
        put(48, &self.start_ticks.to_le_bytes());
        put(56, &self.pid_namespace.to_le_bytes());
        put(64, &self.boot_id.to_le_bytes());
        put(72, &self.rank.to_le_bytes());
        put(76, &self.ranks.to_le_bytes());
        put(80, &self.clock_kind.to_le_bytes());
        put(88, &self.created.to_le_bytes());
        for (kind, extent) in self.regions.iter().enumerate() {
            put(128 + kind * 16, &extent.offset.to_le_bytes());
            put(136 + kind * 16, &extent.length.to_le_bytes());
        }
        put(HOST, cut(&self.host, EXE - HOST - 1));
        put(EXE, cut(&self.exe, COMMAND - EXE - 1));
        put(COMMAND, cut(&self.command, PAGE - COMMAND - 1));
        seal(&mut page);
        page
    }

    /// Decodes a header page and checks it against the size of its file.
    pub fn decode(page: &[u8], file_size: u64) -> Result<Self, LayoutError> {
        let page = page.get(..PAGE).ok_or(LayoutError::Short)?;
        let u64_at = |at: usize| {
            let mut raw = [0u8; 8];
            raw.copy_from_slice(&page[at..at + 8]);
            u64::from_le_bytes(raw)
        };
        let u32_at = |at: usize| u64_at(at) as u32;
        if u64_at(0) != MAGIC {
            return Err(LayoutError::NotARing);
        }
        if u64_at(24) != ENDIAN_MARK {
            return Err(LayoutError::ByteOrder);
        }
        let major = u64_at(8) as u16;
        if major != MAJOR {
            return Err(LayoutError::Version(major));
        }
        if u64_at(CHECKSUM) != checksum(page) {
            return Err(LayoutError::Checksum);
        }
        let size = u64_at(16);
        if size > file_size || size > MAX_FILE {
            return Err(LayoutError::Short);
        }
        let mut regions = [Extent::default(); REGIONS];
        let mut end = PAGE as u64;
        for (kind, extent) in regions.iter_mut().enumerate() {
            *extent = Extent {
                offset: u64_at(128 + kind * 16),
                length: u64_at(136 + kind * 16),
            };
            if extent.length == 0 {
                continue;
            }
            let stop = extent.offset.checked_add(extent.length);
            if extent.offset < end || extent.offset % 8 != 0 || stop.is_none_or(|stop| stop > size) {
                return Err(LayoutError::Region(kind as u32));
            }
            end = extent.offset + extent.length;
        }
        let text = |from: usize, to: usize| {
            let bytes = &page[from..to];
            let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
            String::from_utf8_lossy(&bytes[..end]).into_owned()
        };
        Ok(Self {
            major,
            minor: (u64_at(8) >> 16) as u16,
            size,
            pid: u32_at(32),
            ppid: u32_at(36),
            uid: u32_at(40),
            ordinal: u32_at(44),
            start_ticks: u64_at(48),
            pid_namespace: u64_at(56),
            boot_id: u64_at(64),
            rank: u32_at(72) as i32,
            ranks: u32_at(76) as i32,
            clock_kind: u32_at(80),
            created: u64_at(88),
            regions,
            host: text(HOST, EXE),
            exe: text(EXE, COMMAND),
            command: text(COMMAND, PAGE),
        })
    }

    /// Extent of a region.
    pub fn region(&self, kind: Region) -> Extent {
        self.regions[kind as usize]
    }
}

fn cut(text: &str, room: usize) -> &[u8] {
    &text.as_bytes()[..text.len().min(room)]
}

/// Stores the checksum in a hand-written header page; shorter pages stay unchanged.
pub fn seal(page: &mut [u8]) {
    if let Some(page) = page.get_mut(..PAGE) {
        let sum = checksum(page);
        page[CHECKSUM..CHECKSUM + 8].copy_from_slice(&sum.to_le_bytes());
    }
}

/// FNV-1a over the header page without the checksum itself.
fn checksum(page: &[u8]) -> u64 {
    let mut sum = 0xcbf2_9ce4_8422_2325u64;
    for (i, byte) in page.iter().enumerate() {
        if !(CHECKSUM..CHECKSUM + 8).contains(&i) {
            sum = (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Spec;

    fn spec() -> Spec {
        Spec {
            ordinal: 0,
            rings: vec![1024, 256],
            facts: 64,
            strings: 32,
            string_bytes: 4096,
        }
    }

    #[test]
    fn header_survives_encoding() {
        let (regions, size) = spec().regions();
        let header = Header {
            major: MAJOR,
            size,
            pid: 7,
            regions,
            exe: "app".into(),
            rank: -1,
            ..Header::default()
        };
        assert_eq!(Header::decode(&header.encode(), size), Ok(header));
    }

    #[test]
    fn flipped_header_bits_are_detected() {
        let (regions, size) = spec().regions();
        let page = Header {
            major: MAJOR,
            size,
            regions,
            ..Header::default()
        }
        .encode();
        for bit in 0..PAGE * 8 {
            let mut page = page.clone();
            page[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::decode(&page, size).is_err(), "bit {bit}");
        }
    }
}
