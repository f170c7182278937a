//! Names of the entries of the dispatch tables that libraries hand to rocprofiler-register (ROCm 6.2 to 10).
//!
//! A table begins with its size in bytes, followed by one pointer per function; releases only append. Source:
//! `hip_api_trace.hpp`, `rccl/api_trace.h`, `rocdecode_api_trace.h`, `rocjpeg_api_trace.h` of these releases. The end
//! of HIP's table differs between branches: from [`HIP_STABLE`] on, [`hip`] names an entry only in a table of a known
//! size.

use hip_functions::{Domain, ROWS};

/// Entries of HIP's table with the same meaning in every release.
pub const HIP_STABLE: usize = 502;
/// Sizes of fully known tables in entries: HIP 7.2.4, and HIP 10 as of July 2026 (step 30).
const HIP_KNOWN: [usize; 2] = [506, 541];

/// The name of an entry of HIP's table of `bytes` bytes; `None` if no known release names it.
pub fn hip(index: usize, bytes: usize) -> Option<&'static str> {
    let is_known = HIP_KNOWN.iter().any(|entries| bytes == 8 + 8 * entries);
    if index >= HIP_STABLE && !is_known {
        return None;
    }
    HIP.get(index).copied()
}

/// Entries of HIP's table that are not wrapped, so that they have no row: the first four are for tools only, no library
/// of these releases exports the last two.
const NOT_WRAPPED: [(usize, &str); 6] = [
    (0, "hipApiName"),
    (208, "hipKernelNameRef"),
    (209, "hipKernelNameRefByPtr"),
    (427, "hipGetStreamDeviceId"),
    (458, "hipExternalMemoryGetMappedMipmappedArray"),
    (461, "hipExtHostAlloc"),
];

/// Run-time API.
pub static HIP: [&str; 541] = names(Domain::Hip, &NOT_WRAPPED);
/// Compiler API.
pub static COMPILER: [&str; 9] = names(Domain::Compiler, &[]);
/// RCCL.
pub static RCCL: [&str; 38] = names(Domain::Rccl, &[]);

/// The names of a table's entries, from the rows of its API. Does not compile if an entry has no name.
const fn names<const ENTRIES: usize>(domain: Domain, others: &[(usize, &'static str)]) -> [&'static str; ENTRIES] {
    let mut names = [""; ENTRIES];
    let mut at = 0;
    while at < ROWS.len() {
        if let (true, Some(entry)) = (ROWS[at].domain as u8 == domain as u8, ROWS[at].entry) {
            names[entry] = ROWS[at].name;
        }
        at += 1;
    }
    at = 0;
    while at < others.len() {
        names[others[at].0] = others[at].1;
        at += 1;
    }
    at = 0;
    while at < ENTRIES {
        assert!(!names[at].is_empty(), "an entry of the table has no row");
        at += 1;
    }
    names
}

/// rocDecode.
#[rustfmt::skip]
pub static ROCDECODE: [&str; 16] = [
    "rocDecCreateVideoParser", "rocDecParseVideoData", "rocDecDestroyVideoParser",
    "rocDecCreateDecoder", "rocDecDestroyDecoder", "rocDecGetDecoderCaps",
    "rocDecDecodeFrame", "rocDecGetDecodeStatus", "rocDecReconfigureDecoder",
    "rocDecGetVideoFrame", "rocDecGetErrorName", "rocDecCreateBitstreamReader",
    "rocDecGetBitstreamCodecType", "rocDecGetBitstreamBitDepth", "rocDecGetBitstreamPicData",
    "rocDecDestroyBitstreamReader",
];

/// rocJPEG.
#[rustfmt::skip]
pub static ROCJPEG: [&str; 9] = [
    "rocJpegStreamCreate", "rocJpegStreamParse", "rocJpegStreamDestroy",
    "rocJpegCreate", "rocJpegDestroy", "rocJpegGetImageInfo",
    "rocJpegDecode", "rocJpegDecodeBatched", "rocJpegGetErrorName",
];

const _: () = assert!(8 + 8 * HIP_KNOWN[0] == 4056 && HIP_KNOWN[1] == HIP.len());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_tables_name_their_ends() {
        assert_eq!(hip(505, 8 + 8 * 506), Some("hipOccupancyAvailableDynamicSMemPerBlock"));
        assert_eq!(hip(533, 8 + 8 * 541), Some("hipExecutionCtxSynchronize"));
        assert_eq!(hip(540, 8 + 8 * 541), Some("hipDrvMemDiscardAndPrefetchBatchAsync"));
    }

    #[test]
    fn unknown_tables_name_only_the_stable_entries() {
        let bytes = 8 + 8 * 520;
        assert!(hip(501, bytes).is_some());
        assert_eq!((hip(502, bytes), hip(510, bytes)), (None, None));
    }
}
