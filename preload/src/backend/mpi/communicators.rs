//! Communicators by handle: number, size and rank, learned at the first successful call with one. What is known ends
//! where the handle does.

use super::family::{Family, Question, ask, predefined};
use crate::guard::Errno;
use roctop_ring::record::MpiCall;
use roctop_ring::record::mpi::{SELF, WORLD};
use roctop_ring::sync::{AtomicU64, Ordering};

/// Maximum number of communicators in use at the same time that have numbers.
const PLACES: usize = 1024;
/// Places that a search looks at.
const PROBES: usize = 16;
/// A place whose communicator was freed: a search goes on behind it, and another communicator may take it.
const GONE: u64 = u64::MAX;
/// A place that is being filled.
const CLAIMED: u64 = GONE - 1;

/// Handle, and what is known: communicator, size and rank as in a record, and whether it joins two groups.
type Place = [AtomicU64; 3];
static PLACE: [Place; PLACES] = [const { [const { AtomicU64::new(0) }; 3] }; PLACES];

/// Number of the last communicator.
static LAST: AtomicU64 = AtomicU64::new(SELF as u64);

/// What is known of a communicator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Communicator {
    /// Number, size and rank as in a record.
    pub(super) word: u64,
    /// Whether it joins two groups.
    pub(super) is_inter: bool,
}

fn probes(handle: u64) -> impl Iterator<Item = &'static Place> {
    let start = (handle.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize;
    (0..PROBES).filter_map(move |step| PLACE.get(start.wrapping_add(step) % PLACES))
}

fn find(handle: u64) -> Option<&'static Place> {
    for place in probes(handle) {
        let [known, ..] = place;
        match known.load(Ordering::Acquire) {
            0 => return None,
            known if known == handle => return Some(place),
            _ => {}
        }
    }
    None
}

/// The communicator of a handle that a successful call has used.
#[inline]
pub(super) fn of(family: Family, word: u64) -> Option<Communicator> {
    let handle = family.handle(word);
    if matches!(handle, 0 | GONE | CLAIMED) {
        return None;
    }
    match find(handle) {
        Some([_, word, is_inter]) => Some(Communicator {
            word: word.load(Ordering::Relaxed),
            is_inter: is_inter.load(Ordering::Relaxed) != 0,
        }),
        None => learn(handle),
    }
}

#[cold]
fn learn(handle: u64) -> Option<Communicator> {
    let _errno = Errno::keep();
    let size = ask(Question::Size, handle)?;
    let rank = ask(Question::Rank, handle)?;
    let is_inter = ask(Question::IsInter, handle)? != 0;
    let mut number = predefined(handle).map_or(0, |at| [WORLD, SELF].get(at).copied().unwrap_or(0));
    // Without a place there is no number: the next call would get another one.
    for place in probes(handle) {
        let [known, about, inter] = place;
        let seen = known.load(Ordering::Acquire);
        let is_free = seen == 0 || seen == GONE;
        if is_free
            && known
                .compare_exchange(seen, CLAIMED, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        {
            if number == 0 {
                number = u16::try_from(LAST.fetch_add(1, Ordering::Relaxed) + 1).unwrap_or(0);
            }
            about.store(MpiCall::communicator_word(number, size, rank), Ordering::Relaxed);
            inter.store(u64::from(is_inter), Ordering::Relaxed);
            known.store(handle, Ordering::Release);
            break;
        }
    }
    let word = MpiCall::communicator_word(number, size, rank);
    Some(Communicator { word, is_inter })
}

/// The handle is about to be freed.
pub(super) fn forget(handle: u64) {
    while let Some([known, ..]) = find(handle) {
        known.store(GONE, Ordering::Release);
    }
}
