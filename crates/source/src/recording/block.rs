//! One block of a recording: a 48-byte header with checksums, then the payload, compressed when that pays.

use crc32fast::hash;

/// First bytes of every block; a reader finds the next whole block by them after damage.
pub(super) const MAGIC: u32 = u32::from_le_bytes(*b"RBK1");
/// Bytes of a block's header.
pub(super) const HEADER: usize = 48;
/// The largest payload that a reader accepts, bytes.
pub(super) const MAX_PAYLOAD: u32 = 64 << 20;

/// What a block holds. An open set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kind(pub(super) u8);

impl Kind {
    /// A process's header page.
    pub(super) const PROCESS: Self = Self(1);
    /// Texts: id, length, bytes.
    pub(super) const TEXTS: Self = Self(2);
    /// Fact slots, each run as its head says.
    pub(super) const FACTS: Self = Self(3);
    /// Calibration samples.
    pub(super) const CALIBRATION: Self = Self(4);
    /// Record slots of one thread.
    pub(super) const RECORDS: Self = Self(5);
    /// A number of records lost by one thread.
    pub(super) const LOST: Self = Self(6);
    /// Process-wide counters.
    pub(super) const COUNTERS: Self = Self(7);
    /// What is open.
    pub(super) const OPEN: Self = Self(8);
    /// How the process ended.
    pub(super) const ENDED: Self = Self(9);
    /// The program's output.
    pub(super) const OUTPUT: Self = Self(10);
    /// It was this late.
    pub(super) const NOW: Self = Self(11);
    /// The recording was finished; nothing follows.
    pub(super) const FINISHED: Self = Self(12);
    /// What the driver told of the GPUs, see [`crate::sysfs::store`].
    pub(super) const GAUGES: Self = Self(13);
    /// A number of one thread's records that were in a segment which had to go.
    pub(super) const DROPPED: Self = Self(14);
    /// The index of a segment.
    pub(super) const INDEX: Self = Self(15);
    /// Where the index of a segment begins; always its last block and always of one length.
    pub(super) const FOOTER: Self = Self(16);

    /// Whether it belongs into the file that always stays.
    pub(super) const fn stays(self) -> bool {
        matches!(
            self,
            Self::PROCESS | Self::TEXTS | Self::FACTS | Self::CALIBRATION | Self::LOST | Self::DROPPED
        )
    }
}

/// A block's header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: Kind,
    pub(super) compressed: bool,
    pub(super) process: u32,
    pub(super) thread: u32,
    pub(super) tid: u32,
    pub(super) raw_length: u32,
    pub(super) stored_length: u32,
    pub(super) payload_sum: u32,
}

impl Head {
    fn encode(self) -> [u8; HEADER] {
        let mut bytes = [0u8; HEADER];
        let mut put = |at: usize, value: u32| bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        put(0, MAGIC);
        put(4, u32::from(self.kind.0) | u32::from(self.compressed) << 8);
        put(8, self.process);
        put(12, self.thread);
        put(16, self.tid);
        put(20, self.raw_length);
        put(24, self.stored_length);
        put(28, self.payload_sum);
        let sum = hash(&bytes[..HEADER - 4]);
        bytes[HEADER - 4..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Reads a header; none when it is not a whole one.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..HEADER)?;
        let at = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let whole = at(0) == MAGIC && at(HEADER - 4) == hash(&bytes[..HEADER - 4]);
        let head = Self {
            kind: Kind(at(4) as u8),
            compressed: at(4) & 0x100 != 0,
            process: at(8),
            thread: at(12),
            tid: at(16),
            raw_length: at(20),
            stored_length: at(24),
            payload_sum: at(28),
        };
        (whole && head.raw_length <= MAX_PAYLOAD && head.stored_length <= MAX_PAYLOAD).then_some(head)
    }
}

/// Where a block belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) process: u32,
    pub(super) thread: u32,
    pub(super) tid: u32,
}

/// A whole block.
pub(super) fn encode(kind: Kind, owner: Owner, payload: &[u8]) -> Vec<u8> {
    let packed = if payload.len() >= 256 {
        lz4_flex::block::compress(payload)
    } else {
        Vec::new()
    };
    let compressed = !packed.is_empty() && packed.len() < payload.len();
    let stored = if compressed { &packed[..] } else { payload };
    let head = Head {
        kind,
        compressed,
        process: owner.process,
        thread: owner.thread,
        tid: owner.tid,
        raw_length: payload.len() as u32,
        stored_length: stored.len() as u32,
        payload_sum: hash(stored),
    };
    let mut bytes = head.encode().to_vec();
    bytes.extend_from_slice(stored);
    bytes
}

/// The payload of a block as it was given; none when it is damaged.
pub(super) fn payload(head: Head, stored: &[u8]) -> Option<Vec<u8>> {
    if hash(stored) != head.payload_sum {
        return None;
    }
    if head.compressed {
        return lz4_flex::block::decompress(stored, head.raw_length as usize).ok();
    }
    Some(stored.to_vec())
}
