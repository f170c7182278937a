//! Signals that carry times: our own ones in the queues' rings, and the program's, watched in place.
//!
//! The packet processor writes begin and end into the completion signal. A signal of the program must be read before
//! the program uses it again: the functions that change signals are hooked, and every new packet or copy with the
//! signal takes the times first. One table by handle says which signals are watched.

#![expect(unsafe_code, reason = "reads signals in memory by their handles")]

use super::{hook, hsa, lap, observed, proxy};
use crate::clock;
use crate::guard::wall;
use crate::state::{self, word};
use hsa_sys::abi::{SIGNAL_USER, SUCCESS, Signal, SignalHandle, Span, Status};
use hsa_sys::table::{Table, core_entry};
use roctop_ring::sync::{AtomicU64, Ordering};
use std::ffi::c_void;

const FREE: u64 = 0;
const PENDING: u64 = 1;
/// Somebody reads the signal; others wait the few instructions.
const LOOKING: u64 = 2;
const TAKEN: u64 = 3;
const LOST: u64 = 4;

/// Whose signal is watched, and how its times are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Ours: nobody else touches it. Times are agent ticks.
    Own = 0,
    /// The program's, on a dispatch. Times are agent ticks.
    Dispatch = 1,
    /// The program's, on a copy. Times are ticks of the system domain.
    Copy = 2,
    /// Ours, on a copy in place of the program's. Times are ticks of the system domain.
    Proxy = 3,
    /// The program's, on a dispatch that may run or be complete already. Times are agent ticks.
    Late = 4,
    /// Ours, on a packet that only tells when it has left. Its times are of no use.
    Mark = 5,
}

/// A time span that will be found in a signal.
pub(crate) struct Watch {
    state: AtomicU64,
    signal: AtomicU64,
    kind: AtomicU64,
    begin: AtomicU64,
    end: AtomicU64,
    ended_at: AtomicU64,
}

/// Ticks after which a signal that has an end and the value 1 counts as armed anew behind our back: 0.2 ms or more.
const REARMED: u64 = 1 << 19;
/// Ticks that a complete signal without an end is given, 1 ms or more: a processor may write times behind the value.
const LATE: u64 = 1 << 22;
/// Ticks that a thread of the program gives such a signal before it changes it, some 20 µs.
const SOON: u64 = 1 << 16;
/// 1 when the last such signal got no end: whoever completes these writes none, and nobody waits for the next one's.
static ENDLESS: AtomicU64 = AtomicU64::new(0);

/// Who looks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    /// The harvester: takes what is surely complete.
    Harvester,
    /// A function that is about to change the signal: takes what has an end.
    Hook,
}

impl Watch {
    pub(crate) const fn new() -> Self {
        Self {
            state: AtomicU64::new(FREE),
            signal: AtomicU64::new(0),
            kind: AtomicU64::new(0),
            begin: AtomicU64::new(0),
            end: AtomicU64::new(0),
            ended_at: AtomicU64::new(0),
        }
    }

    /// Watches a signal of our own, which the caller has made ready.
    #[inline]
    pub(crate) fn own(&self, handle: SignalHandle, kind: Kind) {
        self.signal.store(handle, Ordering::Relaxed);
        self.kind.store(kind as u64, Ordering::Relaxed);
        self.ended_at.store(0, Ordering::Relaxed);
        self.state.store(PENDING, Ordering::Release);
    }

    /// Watches a signal of the program in place. False when that is not safe: it counts, is in use, or has no room.
    pub(crate) fn in_place(&'static self, handle: SignalHandle, kind: Kind) -> bool {
        let Some(signal) = at(handle).filter(|_| is_free(handle)) else {
            return false;
        };
        self.signal.store(handle, Ordering::Relaxed);
        self.kind.store(kind as u64, Ordering::Relaxed);
        self.ended_at.store(0, Ordering::Relaxed);
        signal.start.store(0, Ordering::Relaxed);
        signal.end.store(0, Ordering::Relaxed);
        self.state.store(PENDING, Ordering::Release);
        if insert(handle, self) {
            return true;
        }
        self.state.store(FREE, Ordering::Release);
        false
    }

    /// Watches a signal of the program on a packet that the processor may have taken: nothing of it is touched, and its
    /// times count when its value says so. False when it counts or is in use.
    pub(crate) fn late(&'static self, handle: SignalHandle) -> bool {
        let Some(signal) = at(handle) else { return false };
        if signal.kind != SIGNAL_USER || signal.value.load(Ordering::Acquire) > 1 || find(handle).is_some() {
            return false;
        }
        self.signal.store(handle, Ordering::Relaxed);
        self.kind.store(Kind::Late as u64, Ordering::Relaxed);
        self.ended_at.store(0, Ordering::Relaxed);
        self.state.store(PENDING, Ordering::Release);
        if insert(handle, self) {
            return true;
        }
        self.state.store(FREE, Ordering::Release);
        false
    }

    /// The span when it is known; zeros when it never will be.
    #[inline]
    pub(crate) fn look(&self) -> Option<[u64; 2]> {
        match self.state.load(Ordering::Acquire) {
            FREE | LOOKING => None,
            TAKEN => Some([self.begin.load(Ordering::Relaxed), self.end.load(Ordering::Relaxed)]),
            LOST => Some([0, 0]),
            _ if self.is(Kind::Own) || self.is(Kind::Proxy) || self.is(Kind::Mark) => {
                let handle = self.signal.load(Ordering::Relaxed);
                let signal = at(handle)?;
                // Acquire: the processor writes the times before it lowers the value.
                if signal.value.load(Ordering::Acquire) >= 1 {
                    return None;
                }
                if self.is(Kind::Proxy) {
                    let span = copy_time(handle);
                    return Some([span.start, span.end]);
                }
                let span = [signal.start.load(Ordering::Relaxed), signal.end.load(Ordering::Relaxed)];
                (self.is(Kind::Mark) || self.is_whole(span)).then_some(span)
            }
            _ => {
                self.take(Who::Harvester);
                let taken = matches!(self.state.load(Ordering::Acquire), TAKEN | LOST);
                taken.then(|| [self.begin.load(Ordering::Relaxed), self.end.load(Ordering::Relaxed)])
            }
        }
    }

    fn is(&self, kind: Kind) -> bool {
        self.kind.load(Ordering::Relaxed) == kind as u64
    }

    /// Done with: may be used again.
    #[inline]
    pub(crate) fn free(&self) {
        self.state.store(FREE, Ordering::Release);
    }

    /// The work will not happen.
    pub(crate) fn cancel(&self) {
        remove(self.signal.load(Ordering::Relaxed), self);
        self.free();
    }

    /// This thread alone looks now; others wait until the state is another one. False when there is nothing to look for.
    fn hold(&self) -> bool {
        loop {
            match self
                .state
                .compare_exchange(PENDING, LOOKING, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return true,
                Err(LOOKING) => std::hint::spin_loop(),
                Err(_) => return false,
            }
        }
    }

    /// Reads the span out of the program's signal when it is there.
    fn take(&self, who: Who) {
        if !self.hold() {
            return;
        }
        let handle = self.signal.load(Ordering::Relaxed);
        let span = at(handle).and_then(|signal| self.read(signal, handle, who));
        match span {
            Some(span) => {
                self.begin.store(span.start, Ordering::Relaxed);
                self.end.store(span.end, Ordering::Relaxed);
                remove(handle, self);
                self.state.store(TAKEN, Ordering::Release);
            }
            None => self.state.store(PENDING, Ordering::Release),
        }
    }

    fn read(&self, signal: &Signal, handle: SignalHandle, who: Who) -> Option<Span> {
        let value = signal.value.load(Ordering::Acquire);
        let (start, end) = (signal.start.load(Ordering::Relaxed), signal.end.load(Ordering::Relaxed));
        let has_new_end = end != 0 && !self.is(Kind::Late);
        if value < 1 && who == Who::Harvester && !self.is(Kind::Copy) && !self.is_whole([start, end]) {
            return None;
        }
        let is_complete = value < 1 || (has_new_end && (who == Who::Hook || value != 1 || self.has_rested(REARMED)));
        if !is_complete {
            return None;
        }
        Some(if self.is(Kind::Copy) {
            copy_time(handle)
        } else if who == Who::Hook {
            times_soon(signal)
        } else {
            Span { start, end }
        })
    }

    /// A complete signal has this begin and end: are they those to record?
    #[inline]
    fn is_whole(&self, span: [u64; 2]) -> bool {
        if !span.contains(&0) {
            if ENDLESS.load(Ordering::Relaxed) != 0 {
                ENDLESS.store(0, Ordering::Relaxed);
            }
            return true;
        }
        if ENDLESS.load(Ordering::Relaxed) == 0 {
            if !self.has_rested(LATE) {
                return false;
            }
            ENDLESS.store(1, Ordering::Relaxed);
        }
        true
    }

    /// Has the signal been as it is for so many ticks? First asked, it begins to count.
    fn has_rested(&self, ticks: u64) -> bool {
        let now = clock::now();
        let since = self.ended_at.load(Ordering::Relaxed);
        if since == 0 {
            self.ended_at.store(now, Ordering::Relaxed);
            return false;
        }
        now.wrapping_sub(since) > ticks
    }

    /// The signal goes: whoever reads it comes to an end first.
    pub(crate) fn lose(&self) {
        if !self.hold() {
            return;
        }
        self.begin.store(0, Ordering::Relaxed);
        self.end.store(0, Ordering::Relaxed);
        remove(self.signal.load(Ordering::Relaxed), self);
        self.state.store(LOST, Ordering::Release);
    }
}

/// The times of a completed signal that is about to change: a processor that writes them a little after the value is waited
/// for, as long as such times are known to come.
fn times_soon(signal: &Signal) -> Span {
    let mut began = 0;
    loop {
        let span = Span {
            start: signal.start.load(Ordering::Relaxed),
            end: signal.end.load(Ordering::Relaxed),
        };
        let is_whole = span.start != 0 && span.end != 0;
        if is_whole || ENDLESS.load(Ordering::Relaxed) != 0 {
            return span;
        }
        let now = clock::now();
        if began == 0 {
            began = now;
        }
        if now.wrapping_sub(began) > SOON {
            ENDLESS.store(1, Ordering::Relaxed);
            return span;
        }
        std::hint::spin_loop();
    }
}

/// A copy's times may lie beside its signal: the run-time knows where. Zeros when it does not.
fn copy_time(handle: SignalHandle) -> Span {
    let mut span = Span::default();
    let Some(hsa) = hsa() else { return span };
    // SAFETY: the signal exists: it is ours, or a hook runs before it changes, or `take` holds its owner.
    let known = unsafe { (hsa.amd.get_async_copy_time)(handle, &raw mut span) };
    // Times that nobody wrote come out as the moment at which the GPU's counter was 0.
    let is_unwritten = span.start == span.end && hsa.nanoseconds(span.end) < hsa.began();
    if known == SUCCESS && !is_unwritten {
        span
    } else {
        Span::default()
    }
}

/// Can a signal of the program be watched in place? Not when it counts or is in use.
#[inline]
pub(crate) fn is_free(handle: SignalHandle) -> bool {
    at(handle).is_some_and(|signal| signal.kind == SIGNAL_USER && signal.value.load(Ordering::Acquire) == 1)
        && find(handle).is_none()
}

/// The signal behind a handle.
#[inline]
fn at(handle: SignalHandle) -> Option<&'static Signal> {
    let address = handle as usize as *const Signal;
    if !address.is_aligned() {
        return None;
    }
    // SAFETY: a handle is the address of the signal's 64 bytes in memory of this process; callers use it only while the
    // program may.
    unsafe { address.as_ref() }
}

/// Enough for as many signals in flight as the driver has events (4096), wherever they lie; touched only where used.
const BUCKETS: usize = 16 * 1024;
const WAYS: usize = 4;

#[repr(align(64))]
struct Bucket([[AtomicU64; 2]; WAYS]);

static WATCHED: [Bucket; BUCKETS] = [const { Bucket([const { [const { AtomicU64::new(0) }; 2] }; WAYS]) }; BUCKETS];
/// Signals in the table.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// The run-time starts: no signal of it is watched yet.
pub(crate) fn forget_all() {
    if COUNT.swap(0, Ordering::AcqRel) != 0 {
        for [key, value] in WATCHED.iter().flat_map(|bucket| &bucket.0) {
            if key.load(Ordering::Relaxed) != 0 {
                value.store(0, Ordering::Release);
                key.store(0, Ordering::Release);
            }
        }
    }
}

fn bucket(handle: SignalHandle) -> &'static [[AtomicU64; 2]; WAYS] {
    // The run-time's signals lie side by side in pools: so do their buckets, and they do not collide.
    let place = (handle >> 6) as usize;
    #[expect(clippy::indexing_slicing, reason = "a remainder by the length")]
    &WATCHED[place % BUCKETS].0
}

fn insert(handle: SignalHandle, watch: &'static Watch) -> bool {
    for [key, value] in bucket(handle) {
        if key
            .compare_exchange(0, handle, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
        {
            value.store(std::ptr::from_ref(watch) as u64, Ordering::Release);
            COUNT.fetch_add(1, Ordering::Relaxed);
            return true;
        }
    }
    false
}

fn remove(handle: SignalHandle, watch: &Watch) {
    for [key, value] in bucket(handle) {
        let is_it = value.load(Ordering::Acquire) == std::ptr::from_ref(watch) as u64;
        if is_it && key.load(Ordering::Acquire) == handle {
            value.store(0, Ordering::Release);
            key.store(0, Ordering::Release);
            COUNT.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn find(handle: SignalHandle) -> Option<&'static Watch> {
    for [key, value] in bucket(handle) {
        if key.load(Ordering::Acquire) == handle {
            let address = value.load(Ordering::Acquire) as usize as *const Watch;
            // SAFETY: only watches that are never freed are entered.
            return unsafe { address.as_ref() };
        }
    }
    None
}

/// A signal is about to change or to get new times: takes what it has.
#[inline]
pub(crate) fn before_change(handle: SignalHandle) {
    if COUNT.load(Ordering::Relaxed) != 0
        && let Some(watch) = find(handle)
        && watch.signal.load(Ordering::Relaxed) == handle
    {
        watch.take(Who::Hook);
    }
}

type Store = unsafe extern "C" fn(SignalHandle, i64);
type Exchange = unsafe extern "C" fn(SignalHandle, i64) -> i64;
type Cas = unsafe extern "C" fn(SignalHandle, i64, i64) -> i64;

/// The functions behind the hooks.
pub(crate) struct Originals {
    store: [Store; 4],
    exchange: [Exchange; 4],
    add: [Store; 8],
    cas: [Cas; 4],
}

impl Originals {
    pub(crate) fn load(table: Table) -> Self {
        macro_rules! all {
            ($entries:expr) => {
                $entries.map(|entry| {
                    // SAFETY: the table is the run-time's; the entries of these numbers have the array's type.
                    unsafe { std::mem::transmute::<*mut c_void, _>(table.function(entry).unwrap_or(missing())) }
                })
            };
        }
        Self {
            store: all!(core_entry::SIGNAL_STORE),
            exchange: all!(core_entry::SIGNAL_EXCHANGE),
            add: all!(core_entry::SIGNAL_ADD),
            cas: all!(core_entry::SIGNAL_CAS),
        }
    }
}

impl Originals {
    /// Sets a signal of ours.
    pub(crate) fn set(&self, handle: SignalHandle, value: i64) {
        // SAFETY: the signal is ours.
        unsafe { (self.store[0])(handle, value) };
    }

    /// Rings a doorbell of the program's.
    pub(crate) fn ring(&self, doorbell: SignalHandle, index: u64) {
        // SAFETY: the queue exists.
        unsafe { (self.store[1])(doorbell, index.cast_signed()) };
    }

    /// Lowers a signal of the program by one, as a completion does.
    pub(crate) fn complete(&self, handle: SignalHandle) {
        const SUBTRACT_SCRELEASE: usize = 6;
        // SAFETY: the program waits for this completion, so the signal exists.
        unsafe { (self.add[SUBTRACT_SCRELEASE])(handle, 1) };
    }
}

/// Stands for an entry that a table has not; never called, because it is not hooked then either.
fn missing() -> *mut c_void {
    extern "C" fn nothing() {}
    nothing as extern "C" fn() as *mut c_void
}

#[inline(always)]
fn change(handle: SignalHandle) {
    if state::is_on(word::HSA) {
        wall((), || before_change(handle));
    }
}

unsafe extern "C" fn store<const N: usize>(handle: SignalHandle, value: i64) {
    change(handle);
    if state::is_on(word::HSA) {
        wall((), || observed::before_store(handle, value));
    }
    let Some(hsa) = hsa() else { return };
    lap::before_ring(hsa, handle);
    if let Some(original) = hsa.signal.store.get(N) {
        // SAFETY: the caller's own arguments.
        unsafe { original(handle, value) };
    }
}

unsafe extern "C" fn exchange<const N: usize>(handle: SignalHandle, value: i64) -> i64 {
    change(handle);
    // SAFETY: the caller's own arguments.
    hsa()
        .and_then(|hsa| hsa.signal.exchange.get(N))
        .map_or(0, |original| unsafe { original(handle, value) })
}

unsafe extern "C" fn add<const N: usize>(handle: SignalHandle, value: i64) {
    change(handle);
    if let Some(original) = hsa().and_then(|hsa| hsa.signal.add.get(N)) {
        // SAFETY: the caller's own arguments.
        unsafe { original(handle, value) };
    }
}

unsafe extern "C" fn cas<const N: usize>(handle: SignalHandle, expected: i64, value: i64) -> i64 {
    change(handle);
    // SAFETY: the caller's own arguments.
    hsa()
        .and_then(|hsa| hsa.signal.cas.get(N))
        .map_or(0, |original| unsafe { original(handle, expected, value) })
}

unsafe extern "C" fn destroy(handle: SignalHandle) -> Status {
    proxy::forget(handle);
    if state::is_on(word::HSA) {
        wall((), || {
            before_change(handle);
            if let Some(watch) = find(handle) {
                watch.lose();
            }
        });
    }
    // SAFETY: the caller's own argument.
    hsa().map_or(SUCCESS, |hsa| unsafe { (hsa.core.signal_destroy)(handle) })
}

macro_rules! hook_all {
    ($table:expr, $entries:expr, $function:ident as $ty:ty: $($n:literal)*) => {
        $(hook($table, $entries[$n], $function::<$n> as $ty as *mut c_void);)*
    };
}

pub(crate) fn patch(table: Table) {
    hook_all!(table, core_entry::SIGNAL_STORE, store as Store: 0 1 2 3);
    hook_all!(table, core_entry::SIGNAL_EXCHANGE, exchange as Exchange: 0 1 2 3);
    hook_all!(table, core_entry::SIGNAL_ADD, add as Store: 0 1 2 3 4 5 6 7);
    hook_all!(table, core_entry::SIGNAL_CAS, cas as Cas: 0 1 2 3);
    hook(
        table,
        core_entry::SIGNAL_DESTROY,
        destroy as unsafe extern "C" fn(SignalHandle) -> Status as *mut c_void,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_never_come_are_waited_for_once() {
        let signal = Signal {
            kind: SIGNAL_USER,
            value: std::sync::atomic::AtomicI64::new(0),
            mailbox: 0,
            event: 0,
            reserved0: 0,
            start: AtomicU64::new(0),
            end: AtomicU64::new(0),
            reserved1: [0; 2],
        };
        ENDLESS.store(0, Ordering::Relaxed);
        assert_eq!(times_soon(&signal).end, 0);
        assert_eq!(ENDLESS.load(Ordering::Relaxed), 1, "nobody waits for the next one's");
        signal.start.store(7, Ordering::Relaxed);
        signal.end.store(9, Ordering::Relaxed);
        let span = times_soon(&signal);
        assert_eq!((span.start, span.end), (7, 9));
    }
}
