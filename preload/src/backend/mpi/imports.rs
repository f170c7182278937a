//! Import tables: puts a stub in front of each function of MPI that a library imports.
//!
//! Nothing is exported, so a program without MPI finds none. Tables are looked at when this library is loaded, and,
//! because libraries come later too, at the first lookup by `dlsym` after the loader has added one. What an entry held is what its stub
//! calls next, so other tools in front of MPI stay there. An entry that is bound at its first call gets what the
//! loader would bind it to. Pages that the loader made read-only are so again.
//!
//! A library whose relocation another thread has not completed is left alone until the next lookup.

#![expect(unsafe_code, reason = "entries of import tables")]

use super::functions::{Binding, FUNCTIONS, Function, named};
use super::{calls, family};
use crate::elf::loaded::{Put, contains, each, first_definition, is_code, loader_counts, put};
use crate::elf::{Import, Object};
use crate::notices;
use gate::STUB;
use roctop_ring::sync::{AtomicU64, Ordering};
use std::ffi::{CStr, c_void};

/// Number of stubs: one for each function and each address behind it.
const STUBS: usize = 1024;
/// Number of libraries that are known to be done.
const DONE: usize = 4096;
/// Beginnings of names that are looked for in import tables.
const STARTS: [&[u8]; 3] = [b"MPI_", b"PMPI_", b"mpi_"];
/// Every library that has MPI's functions of Fortran defines one of these.
const OF_FORTRAN: [&CStr; 2] = [c"mpi_init_", c"mpi_init_f08_"];

gate::stubs!(fn stubs, STUBS, calls::gate);

/// What is behind a stub: number of the function plus one with the binding above, and the address to call.
type Behind = [AtomicU64; 2];
static BEHIND: [Behind; STUBS] = [const { [const { AtomicU64::new(0) }; 2] }; STUBS];

/// 1 once the environment allows it.
static ENABLED: AtomicU64 = AtomicU64::new(0);
/// Id of the process while a thread of it looks at tables; a child that was forked meanwhile has another one.
static LOOKING: AtomicU64 = AtomicU64::new(0);
/// 1 if a library has MPI's functions of Fortran. Without one, such names are the program's.
static IS_FORTRAN: AtomicU64 = AtomicU64::new(0);
/// Libraries that the loader had added and removed when all tables had been looked at.
static SEEN: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
/// Looks in a row that found a library that is not relocated.
static FUTILE: AtomicU64 = AtomicU64::new(0);
/// Looks after which it is no longer waited for: another tool keeps its tables writable.
const MAX_FUTILE: u64 = 256;
/// Number of libraries that the program started with.
static AT_START: AtomicU64 = AtomicU64::new(0);
/// Libraries whose tables are done, by dynamic section.
static COMPLETE: [AtomicU64; DONE] = [const { AtomicU64::new(0) }; DONE];
/// Notices: 1 is to be posted, 2 was.
static NOTICES: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
/// Texts of the notices.
const TEXTS: [&str; 2] = [
    "too many addresses of MPI's functions: some of its calls are not recorded",
    "MPI not visible: import tables may not be written here",
];
const TOO_MANY: usize = 0;
const NOT_WRITTEN: usize = 1;

/// Bits of a function's number.
const NUMBER_BITS: u32 = 16;

/// Number, function, binding and next address of a stub.
#[inline(always)]
pub(super) fn behind(stub: usize) -> Option<(u16, &'static Function, Binding, u64)> {
    let [what, next] = BEHIND.get(stub)?;
    let next = next.load(Ordering::Acquire);
    let what = what.load(Ordering::Relaxed);
    let number = (what as u16).checked_sub(1)?;
    let binding = *Binding::ALL.get((what >> NUMBER_BITS) as usize)?;
    Some((number, FUNCTIONS.get(usize::from(number))?, binding, next))
}

fn first_stub() -> u64 {
    (stubs as unsafe extern "C" fn() as usize).next_multiple_of(STUB) as u64
}

fn is_stub(address: u64) -> bool {
    (first_stub()..first_stub() + (STUBS * STUB) as u64).contains(&address)
}

/// The stub of a function in front of an address. `None`: there are too many. Called while `LOOKING` is held.
fn stub_for((number, binding): (usize, Binding), next: u64) -> Option<u64> {
    let wanted = (number as u64 + 1) | ((binding as u64) << NUMBER_BITS);
    for (at, [function, address]) in BEHIND.iter().enumerate() {
        let known = function.load(Ordering::Relaxed);
        if known == 0 {
            function.store(wanted, Ordering::Relaxed);
            // Release: a caller that sees the address sees the function.
            address.store(next, Ordering::Release);
        } else if known != wanted || address.load(Ordering::Relaxed) != next {
            continue;
        }
        return Some(first_stub() + (at * STUB) as u64);
    }
    None
}

/// Starts, in this library's constructor.
pub(crate) fn at_load(is_preloaded: bool) {
    ENABLED.store(1, Ordering::Release);
    if is_preloaded {
        let mut count = 0;
        each(|_, _| {
            count += 1;
            true
        });
        AT_START.store(count, Ordering::Relaxed);
    }
    look();
}

/// Whether tables are rewritten in this process.
pub(crate) fn is_enabled() -> bool {
    ENABLED.load(Ordering::Relaxed) != 0
}

/// Looks at the tables of libraries that the loader has added since the last time.
pub(crate) fn follow() {
    if is_enabled() && loader_counts() != SEEN.each_ref().map(|count| count.load(Ordering::Acquire)) {
        look();
    }
}

/// The stub to hand out for a function that the program has looked up.
pub(crate) fn stand_in(name: &CStr, found: *mut c_void) -> Option<*mut c_void> {
    let meant = meant(name, false).filter(|_| is_enabled())?;
    if is_stub(found as u64) || !is_code(found as u64) {
        return None;
    }
    let stub = alone(|| stub_for(meant, found as u64)).flatten()?;
    Some(stub as *mut c_void)
}

/// Runs `body` unless another thread is in here.
fn alone<R>(body: impl FnOnce() -> R) -> Option<R> {
    let own = u64::from(std::process::id());
    let before = LOOKING.load(Ordering::Relaxed);
    if before == own
        || LOOKING
            .compare_exchange(before, own, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
    {
        return None;
    }
    let result = body();
    LOOKING.store(0, Ordering::Release);
    Some(result)
}

fn look() {
    alone(|| {
        let counts = loader_counts();
        if SEEN.each_ref().map(|count| count.load(Ordering::Relaxed))[1] != counts[1] {
            // Another library may be where one was.
            for place in &COMPLETE {
                place.store(0, Ordering::Relaxed);
            }
        }
        let mut is_complete = true;
        if family::find() {
            let is_fortran = OF_FORTRAN.iter().any(|name| first_definition(name).is_some());
            IS_FORTRAN.store(u64::from(is_fortran), Ordering::Relaxed);
            let mut number = 0;
            each(|object, info| {
                number += 1;
                let is_of_start = number <= AT_START.load(Ordering::Relaxed);
                let place = COMPLETE.iter().find(|place| {
                    let known = place.load(Ordering::Relaxed);
                    known == 0 || known == object.identity()
                });
                if place.is_some_and(|place| place.load(Ordering::Relaxed) != 0) {
                    return true;
                }
                // MPI's calls of itself are not the program's.
                if object.find(c"MPI_Init").is_some() || rewrite(&object, info, is_of_start) {
                    if let Some(place) = place {
                        place.store(object.identity(), Ordering::Relaxed);
                    }
                } else {
                    is_complete = false;
                }
                true
            });
        }
        let is_enough = || FUTILE.fetch_add(1, Ordering::Relaxed) >= MAX_FUTILE;
        if is_complete || is_enough() {
            FUTILE.store(0, Ordering::Relaxed);
            for (seen, count) in SEEN.iter().zip(counts) {
                seen.store(count, Ordering::Release);
            }
        }
    });
    // Not while the loader's lock is held: a notice takes memory.
    for (notice, text) in NOTICES.iter().zip(TEXTS) {
        if notice
            .compare_exchange(1, 2, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
        {
            notices::post(0, text);
        }
    }
}

/// Rewrites the imports of a library; false if it is not relocated yet. One that the program started with is.
fn rewrite(object: &Object, info: &libc::dl_phdr_info, is_of_start: bool) -> bool {
    let mut is_done = true;
    let is_inside = OF_FORTRAN.iter().any(|name| object.find(name).is_some());
    object.imports(&STARTS, |import| {
        // A pointer in the library's data is the program's.
        if let Some(meant) = meant(import.name, is_inside).filter(|_| !import.is_data) {
            is_done &= rewrite_entry(info, import, meant, is_of_start);
        }
    });
    is_done
}

/// The function that a name means here.
fn meant(name: &CStr, is_inside: bool) -> Option<(usize, Binding)> {
    let is_fortran = IS_FORTRAN.load(Ordering::Relaxed) != 0;
    named(name, is_inside).filter(|(_, binding)| is_fortran || *binding != Binding::Fortran)
}

fn rewrite_entry(info: &libc::dl_phdr_info, import: &Import<'_>, meant: (usize, Binding), is_of_start: bool) -> bool {
    // SAFETY: the library has this entry, which is aligned; others only read and write it whole.
    let entry = unsafe { &*(import.place as *const AtomicU64) };
    let held = entry.load(Ordering::Acquire);
    if is_stub(held) {
        return true;
    }
    // A weak reference to what is not there, or no relocation yet.
    if held == 0 {
        return import.is_weak || is_of_start;
    }
    let next = if contains(info, held, libc::PF_X) {
        // Bound at the first call.
        match definition(import.name) {
            Some(found) => found,
            None => return true,
        }
    } else if is_code(held) {
        held
    } else {
        return false;
    };
    let Some(stub) = stub_for(meant, next) else {
        say(TOO_MANY);
        return true;
    };
    match put(info, import.place, [held, stub], is_of_start) {
        Put::Done => true,
        Put::Later => false,
        Put::Refused => {
            say(NOT_WRITTEN);
            true
        }
    }
}

/// Something is to be said, once, when no lock is held.
fn say(notice: usize) {
    if let Some(notice) = NOTICES.get(notice) {
        let _ = notice.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// What the loader binds a name to; `None` if that is not certain.
fn definition(name: &CStr) -> Option<u64> {
    let (mut first, mut others, mut at) = (None, 0u64, 0u64);
    each(|object, _| {
        if let Some(found) = object.find(name) {
            match first {
                None => first = Some((found as u64, at)),
                Some(_) => others += 1,
            }
        }
        at += 1;
        true
    });
    // A library opened later may be bound to another one than the first, unless that was there at the start.
    let (found, at) = first?;
    (others == 0 || at < AT_START.load(Ordering::Relaxed)).then_some(found)
}
