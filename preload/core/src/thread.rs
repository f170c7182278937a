//! A thread and its ring: claimed at the thread's first record, released when it ends.

#![expect(unsafe_code, reason = "per-thread state reached through one pointer, pthread keys")]

use crate::guard::Errno;
use crate::origin::Origin;
use crate::process::{self, Chunk, Process};
use crate::ranges::{DeepRanges, OpenRange};
use crate::sites::Known;
use crate::state::{self, word};
use crate::{clock, prefetch, tls};
use core::cell::{Cell, UnsafeCell};
use core::mem::MaybeUninit;
use core::sync::atomic::compiler_fence;
use roctop_ring::layout::{counter, entry};
use roctop_ring::map::Claim;
use roctop_ring::record::{Domain, Head, PAYLOAD_WORDS, ThreadStart};
use roctop_ring::sync::Ordering;
use roctop_ring::writer::{EntryWriter, RingWriter};
use std::ffi::c_void;
use std::io;
use std::sync::OnceLock;

/// The thread is claiming a ring: records of a signal handler are counted as dropped.
const CLAIMING: usize = 1;
/// The thread asked for a ring and there was none.
const NONE: usize = 2;
/// The thread works for the collector: its calls are not recorded.
const ASIDE: usize = 3;
/// Number of slots between the next one and the one to be prefetched.
const PREFETCH_DISTANCE: u64 = 4;
/// Values above this are addresses.
const LAST_MARK: usize = ASIDE;

/// A call that a run-time's callback has announced and that has not returned. All zero: none.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnnouncedCall {
    /// Enter, ticks.
    pub start: u64,
    /// Its correlation id.
    pub correlation: u64,
    /// Correlation id of the enclosing call, 0 for none.
    pub parent: u64,
    /// The run-time's number of the call.
    pub op: u32,
    /// Address of the exit function of another tool, 0 for none.
    pub exit: usize,
}

/// A call of MPI in Fortran, and what the call of C inside of it says. All zero: none.
#[derive(Debug)]
pub struct FortranCall {
    /// Operation of the call of C that is expected, plus one; 0: none, or it has begun.
    pub expected: Cell<u32>,
    /// How that call ended; 0 if that is not known, and then status and words are not valid.
    pub outcome: Cell<u32>,
    /// Its return code.
    pub status: Cell<i32>,
    /// What its arguments say, as in a record.
    pub words: Cell<[u64; PAYLOAD_WORDS]>,
    /// Enter of the call of Fortran, ticks.
    pub start: Cell<u64>,
    /// Correlation id of the call of Fortran.
    pub correlation: Cell<u64>,
    /// Correlation id of the enclosing call, 0 for none.
    pub parent: Cell<u64>,
}

/// A thread's state. All zero: unowned. A forked child reads all states as zero.
#[repr(C, align(128))]
pub struct Thread {
    live: Cell<u64>,
    busy: Cell<bool>,
    /// Address of the frame of the HIP call that this thread is in, 0 for none.
    pub hip_frame: Cell<usize>,
    /// Correlation id of the call that this thread is in, 0 for none.
    pub current: Cell<u64>,
    /// Correlation id of the cooperative launch that this thread is in, while HIP is made to give its packets signals;
    /// otherwise 0.
    pub cooperative: Cell<u64>,
    /// Address of the queue whose packets this thread passes to the SDK, 0 for none.
    pub handing: Cell<usize>,
    /// The call that the run-time's callback has announced on this thread.
    pub announced: Cell<AnnouncedCall>,
    /// This thread, with the stream and the site of the call that it is in.
    origin: Cell<Origin>,
    counter: Cell<u64>,
    base: Cell<u64>,
    index: Cell<usize>,
    chunk: Cell<usize>,
    claim: UnsafeCell<MaybeUninit<Claim<'static>>>,
    /// Correlation id of the last call of RCCL that communicated, not one inside of it.
    pub communication: Cell<u64>,
    /// Address of the frame of the call of MPI that this thread is in, 0 for none.
    pub mpi_frame: Cell<usize>,
    /// Tests of MPI that found nothing since this thread's last recorded call of MPI.
    pub empty_tests: Cell<u32>,
    /// The call of MPI in Fortran that this thread is in.
    pub fortran: FortranCall,
    /// Depth and number of the group of communications that this thread has begun.
    pub group: Cell<[u32; 2]>,
    /// What it knows of sites; earlier owners of this state used the same memory.
    sites: Cell<Option<&'static Known>>,
    /// Its pushed ranges for which the file has no room.
    deep_ranges: Cell<Option<&'static DeepRanges>>,
}

/// The thread states of one file, in memory that a forked child reads as zero.
pub(crate) struct Slab {
    states: &'static [Thread],
}

// SAFETY: a state is used by the thread that claimed its directory entry alone; the claim's compare-exchange orders
// one owner after the other.
unsafe impl Sync for Slab {}
// SAFETY: as above; the memory is never unmapped.
unsafe impl Send for Slab {}

impl Slab {
    pub(crate) fn new(entries: usize) -> io::Result<Self> {
        let length = entries * size_of::<Thread>();
        let (protection, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        );
        // SAFETY: a new anonymous mapping.
        let address = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0) };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the mapping is ours. Where the kernel cannot, `state` has installed a fork handler instead.
        unsafe { libc::madvise(address, length, libc::MADV_WIPEONFORK) };
        // SAFETY: the mapping has room for this number of states, is page-aligned and zero, which is a valid state; it is
        // never unmapped.
        let states = unsafe { std::slice::from_raw_parts(address.cast::<Thread>(), entries) };
        Ok(Self { states })
    }
}

/// The calling thread's state, claimed if necessary. `None`: the process is not traced, there is no ring, or the thread
/// is on the slow path itself.
#[inline(always)]
pub fn current() -> Option<&'static Thread> {
    let at = tls::get();
    if at > LAST_MARK {
        // SAFETY: a value above the marks is the address of a state in a slab, which is never unmapped.
        let thread = unsafe { &*(at as *const Thread) };
        if thread.live.get() == 1 {
            return Some(thread);
        }
    }
    claim()
}

/// As [`current`], for records that do not need this thread's ring: a thread without a ring is not counted again.
#[inline(always)]
pub fn quietly() -> Option<&'static Thread> {
    if tls::get() == NONE { None } else { current() }
}

/// Whether this thread can record: it has a ring and does not work for the collector.
#[inline]
pub fn can_record() -> bool {
    quietly().is_some()
}

/// Whether there was no ring for this thread.
#[inline]
pub fn is_ringless() -> bool {
    tls::get() == NONE
}

/// Whether this thread runs the program's own code in a traced process. It needs no ring.
#[inline]
pub fn is_traced() -> bool {
    quietly().is_some() || (!is_aside() && process::ensure().is_some())
}

/// The calling thread's state, if it has one.
#[inline(always)]
pub fn existing() -> Option<&'static Thread> {
    let at = tls::get();
    if at > LAST_MARK {
        // SAFETY: as in `current`.
        let thread = unsafe { &*(at as *const Thread) };
        return (thread.live.get() == 1).then_some(thread);
    }
    None
}

#[cold]
#[inline(never)]
fn claim() -> Option<&'static Thread> {
    let errno = Errno::keep();
    match tls::get() {
        CLAIMING => {
            word(word::EARLY).fetch_add(1, Ordering::Relaxed);
            return None;
        }
        ASIDE => return None,
        NONE => {
            process::get()?.count(counter::NO_RING, 1);
            return None;
        }
        _ => {}
    }
    tls::set(CLAIMING);
    let thread = process::ensure().and_then(|process| {
        let found = find(process);
        if found.is_none() {
            process.count(counter::NO_RING, 1);
        }
        found
    });
    match thread {
        Some(thread) => {
            watch_end(thread);
            tls::set(std::ptr::from_ref(thread) as usize);
            thread.announce();
        }
        None if state::is_on(word::COLLECTOR) => tls::set(NONE),
        None => tls::set(0),
    }
    if let Some(process) = process::get() {
        process.count_early();
    }
    drop(errno);
    thread
}

/// Runs `body` with recording off on this thread: the calls in it are the collector's.
pub fn aside<R>(body: impl FnOnce() -> R) -> R {
    let before = tls::get();
    tls::set(ASIDE);
    let result = body();
    if tls::get() == ASIDE {
        tls::set(before);
    }
    result
}

/// Whether this thread works for the collector, so that the caller is a signal handler.
#[inline]
pub fn is_aside() -> bool {
    matches!(tls::get(), ASIDE | CLAIMING)
}

/// Counts a record of the calling thread as lost if the thread works for the collector: the caller is a signal handler.
/// While the thread claims a ring, `claim` has counted it.
#[cold]
pub fn count_reentrant() {
    if tls::get() != ASIDE {
        return;
    }
    match process::get() {
        Some(process) => process.count(counter::REENTRANT, 1),
        // The process is not ready yet.
        None => _ = word(word::EARLY).fetch_add(1, Ordering::Relaxed),
    }
}

/// A free ring, otherwise that of an ended thread, otherwise one of a new file.
fn find(process: &'static Process) -> Option<&'static Thread> {
    loop {
        if let Some(thread) = find_in_files(process) {
            return Some(thread);
        }
        if !process.grow() {
            // Another thread may have created the last file since the search.
            return find_in_files(process);
        }
    }
}

fn find_in_files(process: &'static Process) -> Option<&'static Thread> {
    for wanted in [entry::FREE, entry::DONE] {
        for (number, chunk) in process.chunks().enumerate() {
            for index in usize::from(number == 0)..chunk.file.entries() {
                let state = chunk.file.entry(index).and_then(|words| words.first());
                let is_it = state.is_some_and(|word| word.load(Ordering::Relaxed) & 0xffff_ffff == wanted);
                if is_it && let Some(thread) = take(process, chunk, index) {
                    return Some(thread);
                }
            }
        }
    }
    None
}

/// Claims entry `index` of file `number` for the calling thread. Used for the entry with a fixed owner.
pub(crate) fn claim_entry(process: &'static Process, number: usize, index: usize) -> Option<&'static Thread> {
    let chunk = process.chunks().nth(number)?;
    let thread = take(process, chunk, index)?;
    tls::set(std::ptr::from_ref(thread) as usize);
    thread.announce();
    Some(thread)
}

fn take(process: &'static Process, chunk: &'static Chunk, index: usize) -> Option<&'static Thread> {
    let thread = chunk.slab.states.get(index)?;
    let (tid, name) = (gettid(), thread_name());
    let claim = chunk.file.claim(index, tid, clock::now(), name)?;
    process.count(counter::THREADS, 1);
    thread.busy.set(false);
    thread.hip_frame.set(0);
    thread.current.set(0);
    thread.cooperative.set(0);
    thread.handing.set(0);
    thread.announced.take();
    thread.communication.set(0);
    thread.mpi_frame.set(0);
    thread.empty_tests.set(0);
    thread.fortran.expected.set(0);
    thread.fortran.outcome.set(0);
    thread.group.set([0; 2]);
    if let Some(known) = thread.sites.get() {
        known.change_owner();
    }
    thread.origin.set(Origin::new(tid, 0, 0));
    thread.base.set((chunk.base as u64 + index as u64 + 1) << 40);
    thread.index.set(index);
    thread.chunk.set(std::ptr::from_ref(chunk) as usize);
    // SAFETY: the directory entry was just claimed, so this state is the calling thread's alone.
    unsafe { &mut *thread.claim.get() }.write(claim);
    thread.live.set(1);
    Some(thread)
}

/// The calling thread's kernel id.
pub fn gettid() -> u32 {
    // SAFETY: cannot fail, touches no memory.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

fn thread_name() -> [u64; 2] {
    let mut name = [0u64; 2];
    // SAFETY: the call writes at most 16 bytes.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    name
}

/// The key whose destructor releases a thread's ring. Inherited by forks.
static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();

fn watch_end(thread: &'static Thread) {
    let key = KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: `key` has room for the answer; the destructor is part of this library, which is never unloaded.
        (unsafe { libc::pthread_key_create(&raw mut key, Some(ended)) } == 0).then_some(key)
    });
    if let Some(key) = key {
        // SAFETY: the key was created and is never deleted.
        unsafe { libc::pthread_setspecific(*key, std::ptr::from_ref(thread).cast()) };
    }
}

/// What a back-end forgets of a thread that ends.
static AT_END: OnceLock<fn(u32)> = OnceLock::new();

/// Calls `forget` with the id of each thread that ends. One back-end has something to forget.
pub fn at_end(forget: fn(u32)) {
    let _ = AT_END.set(forget);
}

unsafe extern "C" fn ended(value: *mut c_void) {
    crate::guard::wall((), || {
        if tls::get() == value as usize && value as usize > LAST_MARK {
            // SAFETY: the word holds the address of this thread's own state.
            let thread = unsafe { &*value.cast::<Thread>() };
            if let Some(forget) = AT_END.get() {
                forget(thread.tid());
            }
            thread.give_back();
            tls::set(0);
        }
    });
}

/// A thread's ring and entry, locked against signal handlers.
pub(crate) struct ThreadLock<'t> {
    thread: &'t Thread,
    pub(crate) ring: &'t RingWriter<'static>,
    pub(crate) entry: &'t EntryWriter<'static>,
}

impl Drop for ThreadLock<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        self.thread.busy.set(false);
    }
}

impl Thread {
    #[inline(always)]
    fn claim(&self) -> &Claim<'static> {
        // SAFETY: `live` is 1 for the owner of this reference, so the claim was written, by this very thread.
        unsafe { (*self.claim.get()).assume_init_ref() }
    }

    /// Its directory entry.
    #[inline(always)]
    pub fn entry(&self) -> &EntryWriter<'static> {
        &self.claim().entry
    }

    /// Kernel thread id.
    #[inline(always)]
    pub fn tid(&self) -> u32 {
        self.origin.get().tid()
    }

    /// This thread, with the stream and the site of the call that it is in.
    #[inline(always)]
    pub fn origin(&self) -> Origin {
        self.origin.get()
    }

    /// A call begins: its dense stream id plus one and its site, 0 unknown.
    #[inline(always)]
    pub fn begin_origin(&self, stream: u32, site: u16) {
        self.origin.set(Origin::new(self.tid(), stream, site));
    }

    /// The call has returned.
    #[inline(always)]
    pub fn end_origin(&self) {
        self.begin_origin(0, 0);
    }

    /// A new correlation id.
    #[inline(always)]
    pub fn correlate(&self) -> u64 {
        let next = self.counter.get() + 1;
        self.counter.set(next);
        self.base.get() | next & 0xff_ffff_ffff
    }

    /// Locks out signal handlers while a record is written. `None` in such a handler: its record is counted as dropped.
    #[inline(always)]
    pub(crate) fn hold(&self) -> Option<ThreadLock<'_>> {
        let held = self.hold_if_free();
        if held.is_none() {
            self.entry().bump(entry::REENTRANT);
        }
        held
    }

    /// As [`Self::hold`], but nothing is counted.
    #[inline(always)]
    pub(crate) fn hold_if_free(&self) -> Option<ThreadLock<'_>> {
        if self.busy.get() {
            return None;
        }
        let claim = self.claim();
        self.busy.set(true);
        // Keeps the compiler from moving stores before the mark that a signal handler tests.
        compiler_fence(Ordering::SeqCst);
        Some(ThreadLock {
            thread: self,
            ring: &claim.ring,
            entry: &claim.entry,
        })
    }

    /// Prefetches the slot that it will soon write: a ring does not fit in the first cache.
    #[inline(always)]
    pub(crate) fn prefetch_slot(&self) {
        if let Some(slot) = self.claim().ring.upcoming(PREFETCH_DISTANCE) {
            prefetch(slot.as_ptr());
        }
    }

    /// Writes one record.
    #[inline(always)]
    pub fn push(&self, head: Head, payload: &[[u64; PAYLOAD_WORDS]]) {
        if let Some(held) = self.hold() {
            held.ring.push(head, payload);
        }
    }

    /// What it knows of sites.
    #[inline(always)]
    pub(crate) fn sites(&self) -> Option<&'static Known> {
        self.sites.get()
    }

    /// As [`Self::sites`], made at first use; `None` if there is no memory.
    pub(crate) fn make_sites(&self) -> Option<&'static Known> {
        if self.sites.get().is_none() {
            self.sites.set(Known::new());
        }
        self.sites.get()
    }

    /// Its pushed range at a level for which the file has no room; `None` if there is no memory for it.
    pub(crate) fn deep_range(&self, level: usize) -> Option<&'static Cell<OpenRange>> {
        if self.deep_ranges.get().is_none() {
            let errno = Errno::keep();
            self.deep_ranges.set(DeepRanges::new());
            drop(errno);
        }
        self.deep_ranges.get()?.at(level)
    }

    fn announce(&self) {
        let name = [entry::NAME, entry::NAME + 1].map(|at| self.entry().word(at).load(Ordering::Relaxed));
        let start = ThreadStart {
            time: self.entry().word(entry::SINCE).load(Ordering::Relaxed),
            tid: self.tid(),
            generation: self.claim().generation,
            name_low: name[0],
            name_high: name[1],
        };
        self.push(ThreadStart::head(0, Domain::NONE), &start.payload());
    }

    /// Ends the thread's entry.
    pub(crate) fn give_back(&self) {
        self.live.set(0);
        let chunk = self.chunk.get() as *const Chunk;
        // SAFETY: `take` stored the address of a file's state, which is never freed.
        if let Some(chunk) = unsafe { chunk.as_ref() } {
            chunk.file.release(self.index.get());
        }
    }
}
