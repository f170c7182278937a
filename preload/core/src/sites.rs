//! Sites: the places of the program that launch, copy or allocate, as numbers of the process.
//!
//! A known site costs loads of the calling thread's own memory and stack ([`known`]). A new one costs some system calls
//! ([`mod@learn`]): its stack is copied to the stack file, from which the viewer makes the call path. Nothing waits for
//! another thread or for a reader.

mod code;
mod known;
mod learn;
mod mappings;
pub(crate) mod memory;
mod python;

pub(crate) use self::known::Known;

use self::learn::{Learner, Shared};
use self::python::Python;
pub use self::python::pin::note_at_start;
use crate::guard::Errno;
use crate::process::{self, Process};
use crate::thread::Thread;
use roctop_ring::record::status;
use roctop_ring::sites::{Counter, SitesFile};
use roctop_ring::sync::{AtomicU64, Ordering};
use std::sync::OnceLock;

/// Where a call comes from.
#[derive(Clone, Copy, Debug)]
pub struct CallPlace {
    /// Its return address.
    pub ip: u64,
    /// The stack pointer right after its return.
    pub sp: u64,
    /// Register rbp at the call.
    pub bp: u64,
}

/// A step of a hash.
#[inline(always)]
const fn mix(hash: u64, word: u64) -> u64 {
    let product = (hash ^ word).wrapping_mul(0x9fb2_1c65_1e98_df25);
    product ^ product >> 29
}

/// What the process has for its sites.
pub(crate) struct Sites {
    /// 1 while a thread makes what follows; 2 if that failed.
    making: AtomicU64,
    made: OnceLock<(SitesFile, &'static Shared)>,
    python: Python,
}

/// A number that changes when libraries are unloaded. What threads know of earlier calls does not count then: another library
/// may be at the same addresses.
static UNLOADED: AtomicU64 = AtomicU64::new(0);

#[inline(always)]
fn unloaded() -> u64 {
    UNLOADED.load(Ordering::Relaxed)
}

/// Notes the number of libraries that were unloaded so far.
pub fn note_unloaded(count: u64) {
    UNLOADED.store(mix(0, count), Ordering::Relaxed);
}

const MAKING: u64 = 1;
const FAILED: u64 = 2;

impl Sites {
    pub(crate) const fn new() -> Self {
        Self {
            making: AtomicU64::new(0),
            made: OnceLock::new(),
            python: Python::new(),
        }
    }

    /// The stack file and the table of sites, made at first use.
    fn made(&self, process: &Process) -> Option<&(SitesFile, &'static Shared)> {
        if let Some(made) = self.made.get() {
            return Some(made);
        }
        let (order, failed) = (Ordering::Acquire, Ordering::Relaxed);
        if self.making.compare_exchange(0, MAKING, order, failed).is_err() {
            return None;
        }
        let with_table = |file| {
            let shared = Shared::new();
            shared
                .map(|shared| (file, shared))
                .ok_or(std::io::ErrorKind::OutOfMemory.into())
        };
        // Once, because a refusal would cost each launch a system call.
        let file = if memory::can_copy() {
            process.make_sites_file()
        } else {
            Err(std::io::Error::new(
                std::io::ErrorKind::PermissionDenied,
                "the system refuses process_vm_readv",
            ))
        };
        match file.and_then(with_table) {
            Ok(made) => {
                let _ = self.made.set(made);
            }
            Err(error) => {
                self.making.store(FAILED, Ordering::Relaxed);
                process.say(status::NOTE, 0, &format!("no sites: stacks cannot be copied: {error}"));
            }
        }
        self.made.get()
    }

    fn has_failed(&self) -> bool {
        self.making.load(Ordering::Relaxed) == FAILED
    }
}

/// Whether a library with an interpreter is to be pinned; true once for each.
pub fn take_pin(process: &Process) -> bool {
    process.sites.python.take_pin()
}

/// Pins it. Waits for the loader's lock, so it is for a thread that does nothing else.
pub fn pin(process: &Process) {
    process.sites.python.pin();
}

/// The site of a call that this thread is in; 0 unknown.
///
/// # Safety
/// The calling thread is in the call that `place` describes: its stack pointer is below `place.sp`, on the same stack.
#[inline(always)]
#[expect(unsafe_code, reason = "loads of the calling thread's own stack")]
pub unsafe fn site_of(thread: &'static Thread, place: CallPlace) -> u16 {
    if let Some(known) = thread.sites() {
        // SAFETY: the caller's; the memory is the thread's.
        if let Some(site) = unsafe { known.find(place.ip, place.sp) } {
            if known.is_check_due() {
                check(thread, place, site);
            }
            return site;
        }
    }
    learn(thread, place)
}

#[cold]
#[inline(never)]
#[expect(
    clippy::redundant_closure_for_method_calls,
    reason = "the method itself is of one lifetime only"
)]
fn learn(thread: &'static Thread, place: CallPlace) -> u16 {
    slowly(thread, place, 0, |learner| learner.learn())
}

#[cold]
#[inline(never)]
fn check(thread: &'static Thread, place: CallPlace, site: u16) {
    slowly(thread, place, (), |learner| {
        learner.restart_countdown();
        if site != 0 {
            learner.check(site);
        }
    });
}

/// Runs `body` with all that the slow path needs, unless a signal handler comes here while its thread is in it.
fn slowly<R>(thread: &'static Thread, place: CallPlace, otherwise: R, body: impl FnOnce(&Learner<'_>) -> R) -> R {
    let Some(process) = process::get().filter(|process| !process.sites.has_failed()) else {
        return otherwise;
    };
    let _errno = Errno::keep();
    let Some((file, shared)) = process.sites.made(process) else {
        return otherwise;
    };
    let count = |counter| {
        if let Some(writer) = file.writer() {
            writer.count(counter);
        }
    };
    let Some(known) = thread.make_sites() else {
        count(Counter::NoRoom);
        return otherwise;
    };
    if known.is_learning.replace(true) {
        count(Counter::Reentrant);
        return otherwise;
    }
    let result = body(&Learner {
        thread,
        known,
        shared,
        python: &process.sites.python,
        file,
        place,
    });
    known.is_learning.set(false);
    result
}
