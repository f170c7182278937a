//! Block of a recording: a 48-byte header with checksums, then the payload, compressed if that saves space.

use crc32fast::hash;
use roctop_ring::reader::Thread;

/// First bytes of every block. After damage, the reader searches for them to find the next block.
pub(super) const MAGIC: u32 = u32::from_le_bytes(*b"RBK1");
/// Size of a block's header, bytes.
pub(super) const HEADER: usize = 48;
/// Maximum size of a payload, bytes.
pub(super) const MAX_PAYLOAD: u32 = 64 << 20;

/// Content of a block. The set is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kind(pub(super) u8);

impl Kind {
    /// A process's header page.
    pub(super) const PROCESS: Self = Self(1);
    /// Strings: id, length, bytes.
    pub(super) const TEXTS: Self = Self(2);
    /// Fact slots; each fact's length is in its head.
    pub(super) const FACTS: Self = Self(3);
    /// Calibration samples.
    pub(super) const CALIBRATION: Self = Self(4);
    /// Record slots of one thread.
    pub(super) const RECORDS: Self = Self(5);
    /// Number of records of one thread that were lost.
    pub(super) const LOST: Self = Self(6);
    /// Process-wide counters.
    pub(super) const COUNTERS: Self = Self(7);
    /// Open work.
    pub(super) const OPEN: Self = Self(8);
    /// Exit of the process.
    pub(super) const ENDED: Self = Self(9);
    /// The program's output.
    pub(super) const OUTPUT: Self = Self(10);
    /// Time of a poll.
    pub(super) const NOW: Self = Self(11);
    /// End of the recording.
    pub(super) const FINISHED: Self = Self(12);
    /// Driver readings of the GPUs, see [`crate::sysfs::store`].
    pub(super) const GAUGES: Self = Self(13);
    /// Number of one thread's records in a segment that was removed because of the size limit.
    pub(super) const DROPPED: Self = Self(14);
    /// The index of a segment.
    pub(super) const INDEX: Self = Self(15);
    /// Offset of the segment's index; always the last block, with a fixed size.
    pub(super) const FOOTER: Self = Self(16);
    /// How long threads had run.
    pub(super) const THREAD_TIMES: Self = Self(17);
    /// Call sites: modules, call paths and names, never bytes of a stack.
    pub(super) const SITES: Self = Self(18);
    // 19 had the contents of earlier blocks without their copies.
    /// What the calls, dispatches and copies of earlier blocks are.
    pub(super) const CONTENTS: Self = Self(20);
    /// Where a process may run, and what its node has.
    pub(super) const BINDING: Self = Self(21);

    /// Whether it belongs in the file of facts, which is never removed.
    pub(super) const fn stays(self) -> bool {
        matches!(
            self,
            Self::PROCESS
                | Self::TEXTS
                | Self::FACTS
                | Self::CALIBRATION
                | Self::LOST
                | Self::DROPPED
                | Self::SITES
                | Self::BINDING
        )
    }
}

/// Header of a block.
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

    /// Decodes a header; `None` if it is invalid.
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

/// Process, ring and thread of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Owner {
    pub(super) process: u32,
    pub(super) thread: u32,
    pub(super) tid: u32,
}

impl Owner {
    /// A thread of a process.
    pub(super) const fn of(process: u32, thread: Thread) -> Self {
        Self {
            process,
            thread: thread.index,
            tid: thread.tid,
        }
    }
}

/// Encodes a block.
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

/// Gives an encoded block another process.
pub(super) fn renumber(bytes: &mut [u8], process: u32) {
    let Some((head, _)) = bytes.split_first_chunk_mut::<HEADER>() else {
        return;
    };
    head[8..12].copy_from_slice(&process.to_le_bytes());
    let sum = hash(&head[..HEADER - 4]);
    head[HEADER - 4..].copy_from_slice(&sum.to_le_bytes());
}

/// Payload of a block, decompressed; `None` if it is damaged.
pub(super) fn payload(head: Head, stored: &[u8]) -> Option<Vec<u8>> {
    if hash(stored) != head.payload_sum {
        return None;
    }
    if head.compressed {
        return lz4_flex::block::decompress(stored, head.raw_length as usize).ok();
    }
    Some(stored.to_vec())
}
