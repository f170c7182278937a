//! The functions by which back-ends record. All are on the hot path, except facts and texts.
//!
//! A call: [`api_enter`], the real function, [`api_exit`]. GPU work: [`dispatch`] and [`copy`], called by the thread
//! that learns of its end. ROC-TX: [`mark`], [`push`], [`pop`], [`start`], [`stop`].
//! [`Process::intern`](crate::process::Process::intern) turns texts into ids;
//! [`Process::fact`](crate::process::Process::fact) appends facts.

use crate::guard::Errno;
use crate::process;
use crate::ranges::OpenRange;
use crate::thread::{self, Thread};
use crate::{clock, control};
use roctop_ring::arguments::Arguments;
use roctop_ring::layout::{counter, entry, open_range};
use roctop_ring::record::{
    Allocation, ApiCall, CallCopy, Communication, Copy, CounterInstances, CounterValue, Dispatch, Domain, Head, Marker,
    PAYLOAD_WORDS, Scratch, Switch, Transfer, communicator, flag, totals_index,
};
use roctop_ring::session::wanted;
use roctop_ring::sync::{AtomicU64, Ordering};
use roctop_ring::writer::ClosedRange;
use std::cell::Cell;

/// An API call in progress.
#[derive(Clone, Copy)]
pub struct Call {
    /// Its thread.
    pub thread: &'static Thread,
    /// Enter, ticks.
    pub start: u64,
    /// Its correlation id.
    pub correlation: u64,
    /// Correlation id of the enclosing call, 0 for none.
    pub parent: u64,
    /// Domain.
    pub domain: Domain,
    /// Operation in the domain.
    pub op: u16,
}

/// A call begins on this thread. `wanted` is the bit of `roctop_ring::session::wanted` for its kind. `None`: not
/// recorded.
#[inline(always)]
pub fn api_enter(domain: Domain, op: u16, wanted: u64) -> Option<Call> {
    if !control::is_wanted(wanted) {
        return None;
    }
    enter_on(thread::current()?, domain, op)
}

/// As [`api_enter`], with this thread's state, for a kind that is wanted.
#[inline(always)]
pub fn enter_on(thread: &'static Thread, domain: Domain, op: u16) -> Option<Call> {
    let correlation = thread.correlate();
    let start = clock::now();
    let parent = thread.hold()?.entry.open_call(start, domain, op, correlation);
    thread.current.set(correlation);
    Some(Call {
        thread,
        start,
        correlation,
        parent,
        domain,
        op,
    })
}

/// What a plain call needs of its function, made ready when this is compiled.
///
/// A call is plain if no other call is open on its thread, and its function has no stream, no site and no effect. Plain
/// calls take a short path, because the time stamp counter of some processors waits for all that is before it.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Plain {
    domain: Domain,
    op: u16,
    /// Domain << 16 and operation, as in the stack of open calls.
    what: u64,
    head: Head,
    /// Operation and known parts of the record.
    kind: u64,
    totals: usize,
    /// All bits of a status; 0 if it has none.
    status: u32,
    /// Number of the register with its most relevant argument.
    argument: Option<u8>,
    /// Stack words of its arguments.
    pub stack_words: u8,
}

impl Plain {
    /// `argument` is the number of a register. `None` if the operation has no totals.
    pub const fn new(domain: Domain, op: u16, has_status: bool, argument: Option<u8>, stack_words: u8) -> Option<Self> {
        let Some(totals) = totals_index(domain, op) else {
            return None;
        };
        Some(Self {
            domain,
            op,
            what: (domain.0 as u64) << 16 | op as u64,
            head: ApiCall::head(0, domain),
            kind: op as u64 | (ApiCall::status_word(has_status, 0) as u64) << 16,
            totals,
            status: if has_status { u32::MAX } else { 0 },
            argument,
            stack_words,
        })
    }

    /// Whether this return value is a status other than 0.
    #[inline(always)]
    pub const fn has_failed(&self, result: u64) -> bool {
        result as u32 & self.status != 0
    }

    /// The most relevant argument among the call's registers.
    #[inline(always)]
    pub fn argument(&self, registers: &[u64]) -> u64 {
        let known = self.argument.and_then(|number| registers.get(usize::from(number)));
        known.copied().unwrap_or(0)
    }
}

/// A plain call in progress.
#[derive(Clone, Copy)]
pub struct PlainCall {
    /// Its thread.
    pub thread: &'static Thread,
    start: u64,
    correlation: u64,
}

impl PlainCall {
    /// As any other call.
    pub fn call(&self, plain: &Plain) -> Call {
        let Self {
            thread,
            start,
            correlation,
        } = *self;
        Call {
            thread,
            start,
            correlation,
            parent: 0,
            domain: plain.domain,
            op: plain.op,
        }
    }
}

/// As [`enter_on`], for a plain call. `None`, with nothing changed: another call is open, this is a signal handler's, or
/// the clock is not the processor's counter.
#[inline(always)]
pub fn enter_plain(thread: &'static Thread, plain: &Plain) -> Option<PlainCall> {
    if thread.entry().has_open_call() {
        return None;
    }
    let held = thread.hold_if_free()?;
    // The other clock would be a function call, for which this one would keep its registers.
    let start = clock::counter()?;
    let correlation = thread.correlate();
    held.entry.open_outermost_call(start, plain.what, correlation);
    drop(held);
    thread.current.set(correlation);
    // Its work has no stream and no site.
    thread.end_origin();
    Some(PlainCall {
        thread,
        start,
        correlation,
    })
}

/// As [`exit_at`], for a plain call without a status or with the status 0. False, with nothing changed: this is a signal
/// handler's.
#[inline(always)]
pub fn exit_plain(end: u64, call: &PlainCall, plain: &Plain, arg: u64) -> bool {
    let PlainCall {
        thread,
        start,
        correlation,
    } = *call;
    let Some(held) = thread.hold_if_free() else {
        return false;
    };
    thread.current.set(0);
    held.entry.close_outermost_call(plain.totals, end.wrapping_sub(start));
    held.ring
        .push_slot(plain.head, [start, end, correlation, 0, plain.kind, arg]);
    thread.prefetch_slot();
    true
}

/// A call returned. `status` is its return code if it has one; `arg` its most relevant argument.
#[inline(always)]
pub fn api_exit(call: &Call, status: Option<i32>, arg: u64) {
    exit_at(clock::now(), call, status, arg);
}

/// As [`api_exit`], for a call that returned at `end`, ticks.
#[inline(always)]
pub fn exit_at(end: u64, call: &Call, status: Option<i32>, arg: u64) {
    call.thread.current.set(call.parent);
    if let Some(held) = call.thread.hold() {
        held.entry
            .close_call(call.domain, call.op, end.wrapping_sub(call.start));
        held.ring
            .push(ApiCall::head(0, call.domain), &[words(call, end, status, arg)]);
        call.thread.prefetch_slot();
    }
}

/// As [`exit_at`], with the call's arguments.
pub fn exit_explained(end: u64, call: &Call, status: Option<i32>, arg: u64, arguments: &Arguments) {
    call.thread.current.set(call.parent);
    let slots = arguments.slots();
    let payload = arguments.payload(words(call, end, status, arg));
    if let (Some(held), Some(payload)) = (call.thread.hold(), payload.get(..slots)) {
        held.entry
            .close_call(call.domain, call.op, end.wrapping_sub(call.start));
        held.ring
            .push(Head::new(Arguments::KIND, 0, slots as u8, call.domain.0), payload);
    }
}

/// As [`exit_explained`], with six words alone: all that a call of MPI has.
#[inline]
pub fn exit_with_words(end: u64, call: &Call, status: Option<i32>, arg: u64, registers: [u64; PAYLOAD_WORDS]) {
    const SLOTS: usize = 2;
    call.thread.current.set(call.parent);
    if let Some(held) = call.thread.hold() {
        held.entry
            .close_call(call.domain, call.op, end.wrapping_sub(call.start));
        let head = Head::new(Arguments::KIND, 0, SLOTS as u8, call.domain.0);
        let payload: [[u64; PAYLOAD_WORDS]; SLOTS] = [words(call, end, status, arg), registers];
        held.ring.push(head, &payload);
        call.thread.prefetch_slot();
    }
}

/// A call returned of which nothing is recorded.
pub fn exit_unrecorded(call: &Call) {
    call.thread.current.set(call.parent);
    if let Some(held) = call.thread.hold() {
        held.entry
            .close_call(call.domain, call.op, clock::now().wrapping_sub(call.start));
    }
}

/// The payload of an API call, as `ApiCall::payload` makes it, but built in registers.
#[inline(always)]
fn words(call: &Call, end: u64, status: Option<i32>, arg: u64) -> [u64; PAYLOAD_WORDS] {
    let code = u64::from(status.unwrap_or(0).cast_unsigned());
    let known = ApiCall::status_word(status.is_some(), call.thread.origin().site());
    let kind = u64::from(call.op) | u64::from(known) << 16 | code << 32;
    [call.start, end, call.correlation, call.parent, kind, arg]
}

/// 1 after a source has claimed the dispatches.
static DISPATCHES_CLAIMED: AtomicU64 = AtomicU64::new(0);

/// From now on only [`counted_dispatch`] records kernels: counter values refer to its records.
pub fn claim_dispatches() {
    DISPATCHES_CLAIMED.store(1, Ordering::Release);
}

/// Whether a source has claimed the dispatches.
#[inline]
pub fn are_dispatches_claimed() -> bool {
    DISPATCHES_CLAIMED.load(Ordering::Relaxed) != 0
}

/// A kernel ran. Not recorded while another source has claimed the dispatches.
pub fn dispatch(record: &Dispatch, flags: u8) {
    if !are_dispatches_claimed() {
        counted_dispatch(record, flags);
    }
}

/// A kernel ran, as reported by the source that claimed the dispatches.
pub fn counted_dispatch(record: &Dispatch, flags: u8) {
    if let Some(thread) = thread::current() {
        thread.push(
            Dispatch::head(
                flags | record.site_flag() | suspect(record.begin, record.end),
                Domain::NONE,
            ),
            &record.payload(),
        );
    }
}

/// A counter has a value.
pub fn counter_value(record: &CounterValue) {
    if let Some(thread) = thread::current() {
        thread.push(CounterValue::head(0, Domain::NONE), &record.payload());
    }
}

/// Instances of a counter have values.
pub fn counter_instances(record: &CounterInstances) {
    if let Some(thread) = thread::current() {
        thread.push(CounterInstances::head(0, Domain::NONE), &record.payload());
    }
}

/// A copy was made.
pub fn copy(record: &Copy, flags: u8) {
    if let Some(thread) = thread::current() {
        thread.push(
            Copy::head(flags | suspect(record.begin, record.end), Domain::NONE),
            &record.payload(),
        );
    }
}

/// A call copied or filled memory.
pub fn call_copy(record: &CallCopy) {
    if let Some(thread) = thread::current() {
        thread.push(CallCopy::head(0, Domain::NONE), &record.payload());
    }
}

/// A call asks for something to be copied or filled.
pub fn transfer(record: &Transfer) {
    if let Some(thread) = thread::current() {
        thread.push(Transfer::head(0, Domain::NONE), &record.payload());
    }
}

/// A call of RCCL or MPI communicates.
#[inline]
pub fn communication(thread: &Thread, domain: Domain, record: &Communication) {
    if let Some(process) = process::get() {
        process.calibrate_when_due(record.start);
    }
    thread.push(Communication::head(0, domain), &record.payload());
}

/// A call that was announced as communicating has failed: it takes no part.
#[cold]
pub fn withdraw(call: &Call) {
    let withdrawn = Communication {
        op: communicator::WITHDRAWN,
        start: call.start,
        correlation: call.correlation,
        peer: -1,
        ..Communication::default()
    };
    communication(call.thread, call.domain, &withdrawn);
}

/// Memory was allocated, mapped or freed.
pub fn allocation(record: &Allocation) {
    if let Some(thread) = thread::current() {
        thread.push(Allocation::head(0, Domain::NONE), &record.payload());
    }
}

/// Scratch memory was given to a queue or taken back.
pub fn scratch(record: &Scratch) {
    if let Some(thread) = thread::current() {
        thread.push(Scratch::head(0, Domain::NONE), &record.payload());
    }
}

fn suspect(begin: u64, end: u64) -> u8 {
    if begin > end { flag::SUSPECT_TIME } else { 0 }
}

/// Recording was switched; `by` is 1 for the viewer, 2 for a call of the program.
pub fn switched(on: bool, by: u32) {
    if let Some(thread) = thread::current() {
        let record = Switch {
            time: clock::now(),
            on: u32::from(on),
            by,
        };
        thread.push(Switch::head(0, Domain::NONE), &record.payload());
    }
}

/// A mark.
pub fn mark(text: &[u8]) {
    let Some(thread) = marking() else { return };
    if control::is_wanted(wanted::MARKER) {
        let now = clock::now();
        let (id, inline) = long(text);
        write(thread, Marker::MARK, [now, now], thread.correlate(), 0, id, 0, inline);
    }
}

/// A range is pushed. Returns its level, from 0.
pub fn push(text: &[u8]) -> i32 {
    let Some(thread) = marking() else { return 0 };
    let (id, inline) = long(text);
    let correlation = thread.correlate();
    let start = clock::now();
    let level = thread.hold().map(|held| {
        let level = held.entry.word(entry::RANGE_DEPTH).load(Ordering::Relaxed);
        let is_kept = held.entry.open_range(start, correlation, id, inline)
            || keep_deep(thread, level as usize, start, correlation, id, inline);
        (level, is_kept)
    });
    match level {
        Some((level, true)) => level as i32,
        Some((level, false)) => {
            lose_range();
            level as i32
        }
        None => 0,
    }
}

/// The innermost pushed range ends. Returns the level after it, -1 when none was open.
pub fn pop() -> i32 {
    let Some(thread) = marking() else { return -1 };
    let closed = thread.hold().map(|held| match held.entry.close_range() {
        ClosedRange::TooDeep { level } => close_deep(thread, level),
        closed => closed,
    });
    match closed {
        Some(ClosedRange::Range {
            start,
            correlation,
            text_id,
            level,
            text,
            length,
        }) => {
            if control::is_wanted(wanted::MARKER) {
                let text = text.get(..length).unwrap_or_default();
                write(
                    thread,
                    Marker::RANGE,
                    [start, clock::now()],
                    correlation,
                    0,
                    text_id,
                    level as u16,
                    text,
                );
            }
            level as i32
        }
        Some(ClosedRange::TooDeep { level }) => level as i32,
        _ => -1,
    }
}

/// Keeps a pushed range for which the file has no room; false if there is no memory for it.
#[cold]
fn keep_deep(thread: &Thread, level: usize, start: u64, correlation: u64, text_id: u32, inline: &[u8]) -> bool {
    let Some(place) = thread.deep_range(level) else {
        return false;
    };
    let mut text = [0; entry::RANGE_TEXT];
    text.iter_mut().zip(inline).for_each(|(to, from)| *to = *from);
    place.set(OpenRange {
        start,
        correlation,
        text_id,
        length: inline.len().min(text.len()),
        text,
    });
    true
}

#[cold]
fn close_deep(thread: &Thread, level: usize) -> ClosedRange {
    match thread.deep_range(level).map(Cell::get) {
        Some(range) if range.start != 0 => ClosedRange::Range {
            start: range.start,
            correlation: range.correlation,
            text_id: range.text_id,
            level,
            text: range.text,
            length: range.length,
        },
        _ => ClosedRange::TooDeep { level },
    }
}

/// A range begins that any thread may stop. `id` is the one that the program gets.
pub fn start(id: u64, text: &[u8]) {
    let Some(thread) = marking() else { return };
    let Some(process) = process::get() else { return };
    let Some(file) = process.main() else { return };
    let (text_id, inline) = long(text);
    let begin = |words: &[AtomicU64]| {
        let is_ours = words.get(open_range::ID).is_some_and(|word| {
            word.compare_exchange(0, id, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        });
        if !is_ours {
            return false;
        }
        put(words, open_range::TID, u64::from(thread.tid()));
        put(words, open_range::CORRELATION, thread.correlate());
        put(
            words,
            open_range::SIZES,
            u64::from(text_id) | (inline.len() as u64) << 32,
        );
        for (to, chunk) in words.iter().skip(open_range::TEXT).zip(inline.chunks(8)) {
            let mut raw = [0u8; 8];
            raw.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
            to.store(u64::from_le_bytes(raw), Ordering::Relaxed);
        }
        put(words, open_range::START, clock::now());
        true
    };
    if places(id).any(|place| file.open_range(place).is_some_and(&begin)) {
        return;
    }
    let errno = Errno::keep();
    process.started_ranges.make();
    drop(errno);
    if !process.started_ranges.places(id).any(|words| begin(words)) {
        lose_range();
    }
}

/// A started range stops. No range has the id 0: it marks a free place.
pub fn stop(id: u64) {
    if id == 0 {
        return;
    }
    let Some(thread) = marking() else { return };
    let Some(process) = process::get() else { return };
    let Some(file) = process.main() else { return };
    let now = clock::now();
    let end = |words: &[AtomicU64]| {
        let read = |at: usize| words.get(at).map_or(0, |word| word.load(Ordering::Acquire));
        if read(open_range::ID) != id {
            return false;
        }
        let sizes = read(open_range::SIZES);
        let mut text = [0u8; Marker::INLINE_TEXT];
        for (at, chunk) in text.chunks_exact_mut(8).enumerate() {
            chunk.copy_from_slice(&read(open_range::TEXT + at).to_le_bytes());
        }
        let (start, correlation) = (read(open_range::START), read(open_range::CORRELATION));
        put(words, open_range::ID, 0);
        if control::is_wanted(wanted::MARKER) {
            let text = text.get(..(sizes >> 32) as usize).unwrap_or_default();
            write(
                thread,
                Marker::RANGE,
                [start, now],
                correlation,
                id,
                sizes as u32,
                0,
                text,
            );
        }
        true
    };
    if !places(id).any(|place| file.open_range(place).is_some_and(&end)) {
        process.started_ranges.places(id).any(|words| end(words));
    }
}

/// A new id for a start/stop range.
pub fn range_id() -> u64 {
    process::get().map_or(0, |process| process.ranges.fetch_add(1, Ordering::Relaxed) + 1)
}

fn places(id: u64) -> impl Iterator<Item = usize> {
    (0..open_range::RANGES).map(move |step| (id as usize).wrapping_add(step) % open_range::RANGES)
}

fn put(words: &[AtomicU64], at: usize, value: u64) {
    if let Some(word) = words.get(at) {
        word.store(value, Ordering::Release);
    }
}

#[inline]
fn marking() -> Option<&'static Thread> {
    let Some(thread) = thread::current() else {
        thread::count_reentrant();
        return None;
    };
    process::get()?.calibrate_when_due(clock::now());
    Some(thread)
}

/// The words of a text: a string id if it is long, otherwise its bytes.
fn long(text: &[u8]) -> (u32, &[u8]) {
    if text.len() <= Marker::INLINE_TEXT {
        return (0, text);
    }
    let id = process::get().map_or(0, |process| process.intern(text));
    (id, text.get(..Marker::INLINE_TEXT).unwrap_or(text))
}

fn lose_range() {
    if let Some(process) = process::get() {
        process.count(counter::RANGES_LOST, 1);
    }
}

#[expect(clippy::too_many_arguments, reason = "a marker's fields, in their order")]
fn write(
    thread: &Thread,
    kind: u8,
    times: [u64; 2],
    correlation: u64,
    range_id: u64,
    text_id: u32,
    level: u16,
    text: &[u8],
) {
    // A text that is stored as a string is not written again.
    let text = if text_id == 0 { text } else { &[] };
    let payload = Marker::payload(times, correlation, range_id, text_id, level, text);
    let slots = Marker::slots(text.len());
    let head = Head::new(kind, 0, slots as u8, Domain::MARKER.0);
    if let Some(used) = payload.get(..slots) {
        thread.push(head, used);
    }
}
