//! Who submits work: thread, stream and site in one word, as it travels from a call to the record of its work.

use roctop_ring::record::MAX_SITE;

const TID_BITS: u32 = 22;
const SITE_BITS: u32 = 15;
const STREAM_SHIFT: u32 = TID_BITS + SITE_BITS;
const MAX_TID: u32 = (1 << TID_BITS) - 1;
const MAX_STREAM: u32 = (1 << (u64::BITS - STREAM_SHIFT)) - 1;

const _: () = assert!(MAX_SITE as u32 == (1 << SITE_BITS) - 1);

/// A thread, the stream and the site of the call that it is in. All zero: unknown.
///
/// Linux thread ids are below 2^22 (`PID_MAX_LIMIT`). A number without room becomes 0, unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin(u64);

impl Origin {
    /// `stream` is the dense stream id plus one, `site` the number of the site; 0 unknown.
    #[inline(always)]
    pub const fn new(tid: u32, stream: u32, site: u16) -> Self {
        let tid = if tid > MAX_TID { 0 } else { tid };
        let stream = if stream > MAX_STREAM { 0 } else { stream };
        let site = if site > MAX_SITE { 0 } else { site };
        Self(tid as u64 | (site as u64) << TID_BITS | (stream as u64) << STREAM_SHIFT)
    }

    /// From its word.
    #[inline(always)]
    pub const fn of(word: u64) -> Self {
        Self(word)
    }

    /// Its word.
    #[inline(always)]
    pub const fn word(self) -> u64 {
        self.0
    }

    /// Kernel thread id, 0 unknown.
    #[inline(always)]
    pub const fn tid(self) -> u32 {
        self.0 as u32 & MAX_TID
    }

    /// Number of the site, 0 unknown.
    #[inline(always)]
    pub const fn site(self) -> u16 {
        (self.0 >> TID_BITS) as u16 & MAX_SITE
    }

    /// Dense stream id plus one, 0 unknown.
    #[inline(always)]
    pub const fn stream(self) -> u32 {
        (self.0 >> STREAM_SHIFT) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_three_parts_survive() {
        for tid in [0, 1, 4_194_303] {
            for stream in [0, 1, MAX_STREAM] {
                for site in [0, 1, MAX_SITE] {
                    let origin = Origin::of(Origin::new(tid, stream, site).word());
                    assert_eq!((origin.tid(), origin.stream(), origin.site()), (tid, stream, site));
                }
            }
        }
    }

    #[test]
    fn a_part_without_room_is_unknown_and_spoils_no_other() {
        let origin = Origin::new(u32::MAX, u32::MAX, u16::MAX);
        assert_eq!(origin, Origin::default());
        let origin = Origin::new(7, MAX_STREAM + 1, 9);
        assert_eq!((origin.tid(), origin.stream(), origin.site()), (7, 0, 9));
    }
}
