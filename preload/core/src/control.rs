//! The session's control words: mapped read-only, read by the load that tests the switch.

#![expect(unsafe_code, reason = "mapping of a file that others write")]

use crate::state::word;
use roctop_ring::session::{CONTROL, CONTROL_BYTES, control, wanted};
use roctop_ring::sync::{AtomicU64, Ordering};
use std::os::fd::AsRawFd;
use std::path::Path;

const WORDS: usize = CONTROL_BYTES / 8;

/// The words that are read.
const WORDS_READ: usize = 8;

#[repr(C, align(64))]
struct Words([AtomicU64; WORDS_READ]);

/// Values without a control file: recording is on, with the usual kinds of record.
static DEFAULT: Words = {
    let mut words = [const { AtomicU64::new(0) }; WORDS_READ];
    words[control::RECORDING] = AtomicU64::new(1);
    words[control::WANTED] = AtomicU64::new(wanted::USUAL);
    Words(words)
};

/// Maps the session's control file; slow path.
pub(crate) fn attach(session: &Path) {
    let address = map(session).unwrap_or(&raw const DEFAULT as usize);
    word(word::CONTROL).store(address as u64, Ordering::Release);
}

fn map(session: &Path) -> Option<usize> {
    let file = std::fs::File::open(session.join(CONTROL)).ok()?;
    if file.metadata().ok()?.len() < CONTROL_BYTES as u64 {
        return None;
    }
    // SAFETY: a new shared read-only mapping of an open file; the file has a page (tested above), and viewers never cut it.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            WORDS * 8,
            libc::PROT_READ,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    (address != libc::MAP_FAILED).then_some(address as usize)
}

#[inline(always)]
fn words() -> Option<&'static [AtomicU64; WORDS_READ]> {
    let address = word(word::CONTROL).load(Ordering::Relaxed) as usize as *const [AtomicU64; WORDS_READ];
    // SAFETY: the address was stored by `attach` or `switch_off`: a page that is never unmapped, or a static of eight words.
    unsafe { address.as_ref() }
}

#[inline(always)]
fn load(at: usize) -> u64 {
    #[expect(clippy::indexing_slicing, reason = "a remainder by the length")]
    words().map_or(0, |words| words[at % WORDS_READ].load(Ordering::Relaxed))
}

/// Whether this kind of record is written now. `bit` is one of `roctop_ring::session::wanted`.
#[inline(always)]
pub fn is_wanted(bit: u64) -> bool {
    words().is_some_and(|words| {
        words[control::RECORDING].load(Ordering::Relaxed) != 0
            && words[control::WANTED].load(Ordering::Relaxed) & bit != 0
            && word(word::PAUSED).load(Ordering::Relaxed) == 0
    })
}

/// Whether this kind of record is requested, even while recording is off.
#[inline]
pub fn is_asked(bit: u64) -> bool {
    load(control::WANTED) & bit != 0
}

/// Where dispatches come from: one of `roctop_ring::session::source`.
#[inline]
pub fn dispatch_source() -> u64 {
    load(control::DISPATCH_SOURCE)
}

/// Whether hardware counters are paused.
#[inline]
pub fn counters_rest() -> bool {
    load(control::COUNTERS_REST) != 0
}

/// Whether recording is on, by the viewer and by the program.
#[inline]
pub fn is_recording() -> bool {
    load(control::RECORDING) != 0 && word(word::PAUSED).load(Ordering::Relaxed) == 0
}
