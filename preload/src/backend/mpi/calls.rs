//! The gate of all stubs: hooks before and after the real function.
//!
//! Arguments are read after the call has returned success, because then MPI has accepted those that count. A call that
//! failed has a record without them.
//!
//! A call of Fortran has begin and end from the program's call. What else there is comes from the call of C that its
//! library makes for it: the first one of the same function inside of it, with handles of C and a return code.

#![expect(unsafe_code, reason = "calls through the saved registers of another function's call")]

use super::communicators::{self, Numbered};
use super::family::{self, Family, Question};
use super::functions::{Binding, Data, Ends, FUNCTIONS, Function, Makes, Outcome};
use super::imports;
use crate::collector::{self, Call};
use crate::guard::{Errno, wall};
use crate::process::{self, Process};
use crate::state::{self, word};
use crate::thread::{FortranCall, Thread};
use crate::{clock, control, thread};
use core::mem::MaybeUninit;
use gate::{Passage, gate};
use roctop_ring::record::mpi::{FIRST_COLLECTIVE, NO_RANK, ROOT, UNKNOWN};
use roctop_ring::record::{self, Domain, MpiCall};
use roctop_ring::session::wanted;
use roctop_ring::sync::{AtomicU64, Ordering};
use std::ffi::c_void;

/// Words of arguments in registers.
const REGISTERS: u8 = 6;
/// Arguments of Fortran that C does not have: the return code, and the length of a text.
const MORE_IN_FORTRAN: u8 = 2;

/// How the call of C inside of one of Fortran ended: values of `FortranCall::outcome`.
mod outcome {
    pub(super) const RETURNED: u32 = 1;
    pub(super) const FOUND_NOTHING: u32 = 2;
}

/// A call in progress.
#[repr(C, align(16))]
pub(super) struct Frame {
    passage: Passage,
    call: MaybeUninit<Call>,
    function: MaybeUninit<&'static Function>,
    collective: MaybeUninit<Option<Collective>>,
    binding: MaybeUninit<Binding>,
}

/// What a call says when it has returned.
enum Said {
    /// A test found nothing.
    Nothing,
    /// Return code, if it is known, and what the arguments say.
    Call(Option<i32>, MpiCall),
}

/// A collective that is matched across ranks.
#[derive(Clone, Copy)]
struct Collective {
    number: Numbered,
    is_announced: bool,
}

gate!(
    /// Entered from a stub with its number in r11.
    pub(super) fn gate,
    Frame,
    enter,
    exit
);

extern "C" fn nothing() -> usize {
    0
}

/// Hook before the real function; returns its address.
extern "C" fn enter(frame: &mut Frame, place: u64) -> *const c_void {
    let Some((op, function, binding, next)) = imports::behind(place as usize) else {
        return nothing as *const c_void;
    };
    if word(word::COLLECTOR).load(Ordering::Relaxed) != state::OFF {
        wall((), || begin(frame, op, function, binding));
    }
    next as usize as *const c_void
}

#[inline(always)]
fn begin(frame: &mut Frame, op: u16, function: &'static Function, binding: Binding) {
    let is_fortran = binding == Binding::Fortran;
    if function.ends != Ends::Nothing && !is_fortran {
        ends(frame, function);
    }
    if !function.is_recorded {
        return;
    }
    let thread = thread::current();
    let here = std::ptr::from_ref(frame) as usize;
    // The frame of an outer call is above; one below was abandoned by a longjmp.
    let outer = thread.filter(|thread| thread.mpi_frame.get() > here);
    if binding == Binding::Inside {
        return inside(frame, op, function, outer);
    }
    if outer.is_some() {
        return;
    }
    // What is not recorded counts all the same.
    let number = if is_fortran { None } else { count(frame, function) };
    let thread = thread.filter(|_| control::is_wanted(wanted::LIBRARY_API));
    let entered = thread.and_then(|thread| {
        name_operations();
        Some((thread, collector::enter_on(thread, Domain::MPI, op)?))
    });
    let Some((thread, call)) = entered else {
        if !is_fortran {
            missed(frame, function);
        }
        return;
    };
    thread.mpi_frame.set(here);
    if is_fortran {
        let about = &thread.fortran;
        about.outcome.set(0);
        about.start.set(call.start);
        about.correlation.set(call.correlation);
        about.parent.set(call.parent);
        about.expected.set(u32::from(op) + 1);
    }
    enter_call(frame, call, function, number, binding);
}

/// A library of Fortran calls C; `outer` is the thread if it is in a call of the program.
#[inline]
fn inside(frame: &mut Frame, op: u16, function: &'static Function, outer: Option<&'static Thread>) {
    if outer.is_some_and(|thread| thread.fortran.expected.get() != u32::from(op) + 1) {
        return;
    }
    let number = count(frame, function);
    let Some(thread) = outer else {
        // The program's call is not recorded.
        return missed(frame, function);
    };
    let about = &thread.fortran;
    about.expected.set(0);
    let call = Call {
        thread,
        start: about.start.get(),
        correlation: about.correlation.get(),
        parent: about.parent.get(),
        domain: Domain::MPI,
        op,
    };
    enter_call(frame, call, function, number, Binding::Inside);
}

/// The gate is to come back from this call.
#[inline(always)]
fn enter_call(frame: &mut Frame, call: Call, function: &'static Function, number: Option<Numbered>, binding: Binding) {
    let collective = number.map(|number| Collective {
        is_announced: announce(frame, function, &call, &number),
        number,
    });
    frame.call.write(call);
    frame.function.write(function);
    frame.collective.write(collective);
    frame.binding.write(binding);
    let words = match binding {
        Binding::C | Binding::Inside => function.words,
        Binding::Fortran => function.words + MORE_IN_FORTRAN,
    };
    frame.passage.come_back(u64::from(words.saturating_sub(REGISTERS)));
}

/// A collective begins; `None` if it is none, or cannot be matched.
#[inline]
fn count(frame: &Frame, function: &Function) -> Option<Numbered> {
    if function.collective == 0 {
        return None;
    }
    let family = family::family()?;
    communicators::count(family, argument(frame, function.communicator?))
}

/// A call begins that is not recorded.
#[cold]
fn missed(frame: &Frame, function: &Function) {
    if function.makes != Makes::Nothing
        && let (Some(family), Some(at)) = (family::family(), function.communicator)
    {
        communicators::missed(family, argument(frame, at));
    }
}

/// Records that a call is this collective; false if the viewer does not know the communicator.
#[inline]
fn announce(frame: &Frame, function: &Function, call: &Call, number: &Numbered) -> bool {
    let (Some(communicator), Some(family)) = (number.communicator(), family::family()) else {
        return false;
    };
    let count = match function.data {
        Data::Elements { count, .. } => u64::try_from(self::number(frame, count)).unwrap_or(0),
        Data::None | Data::Either { .. } => 0,
    };
    let found = record::Communication {
        start: call.start,
        correlation: call.correlation,
        communicator,
        sequence: number.sequence,
        peer: function
            .root
            .map_or(-1, |at| family.rank(self::number(frame, at)).max(-1)),
        op: FIRST_COLLECTIVE + u16::from(function.collective) - 1,
        count,
        datatype: u8::MAX,
        reduction: u8::MAX,
        ..record::Communication::default()
    };
    collector::communication(call.thread, Domain::MPI, &found);
    true
}

/// A collective failed: it takes no part.
#[cold]
fn withdraw(call: &Call, collective: &Collective) {
    collective.number.withdraw();
    if collective.is_announced {
        collector::withdraw(call);
    }
}

/// A call may have made a communicator of another one.
#[inline]
fn made(frame: &Frame, function: &Function) {
    let (color, place) = match function.makes {
        Makes::Nothing => return,
        Makes::One(place) => (0, place),
        Makes::Several { color, place } => (number(frame, color), place),
    };
    let (Some(family), Some(parent)) = (family::family(), function.communicator) else {
        return;
    };
    let place = argument(frame, place);
    let child = handle_at(family, place);
    communicators::made(family, argument(frame, parent), function.makes, child, color);
}

/// The handle that a call has stored, or reads.
fn handle_at(family: Family, place: u64) -> u64 {
    match family {
        // SAFETY: the caller says that the function stores or reads the handle there.
        Family::Mpich => u64::from(unsafe { (place as *const u32).read_unaligned() }),
        // SAFETY: as above.
        Family::OpenMpi | Family::Abi => unsafe { (place as *const u64).read_unaligned() },
    }
}

/// What a call ends is not known any more.
#[cold]
fn ends(frame: &Frame, function: &Function) {
    match function.ends {
        Ends::Communicator => {
            let [place, ..] = frame.passage.registers;
            let Some(family) = family::family().filter(|_| place != 0) else {
                return;
            };
            communicators::forget(handle_at(family, place));
        }
        Ends::Mpi => family::ends(),
        Ends::Nothing => {}
    }
}

/// Address of the process whose file has the names of the functions.
static NAMED: AtomicU64 = AtomicU64::new(0);

#[inline(always)]
fn name_operations() {
    if let Some(process) = process::get()
        && NAMED.load(Ordering::Relaxed) != std::ptr::from_ref(process) as u64
    {
        name_all(process);
    }
}

#[cold]
fn name_all(process: &Process) {
    let _errno = Errno::keep();
    let address = std::ptr::from_ref(process) as u64;
    if NAMED.swap(address, Ordering::AcqRel) == address {
        return;
    }
    thread::aside(|| {
        for (op, function) in FUNCTIONS.iter().enumerate() {
            crate::backend::hip::name(process, Domain::MPI, op as u16, function.name.to_bytes());
        }
    });
}

/// Hook after the real function.
extern "C" fn exit(frame: &mut Frame, result: u64) {
    // First, so that the rest does not count for the call.
    let end = clock::now();
    wall((), || finish(frame, end, result as i32));
}

#[inline(always)]
fn finish(frame: &Frame, end: u64, status: i32) {
    // SAFETY: the assembly comes here only when `begin` asked for it, and then it wrote the call.
    let call = unsafe { frame.call.assume_init_ref() };
    // SAFETY: as above.
    let function = unsafe { frame.function.assume_init() };
    // SAFETY: as above.
    let binding = unsafe { frame.binding.assume_init() };
    let thread = call.thread;
    // A forked child that returns from its parent's call has no ring for it.
    if !thread::existing().is_some_and(|here| std::ptr::eq(here, thread)) {
        return;
    }
    let said = match binding {
        Binding::C => learn(frame, call, function, status),
        Binding::Inside => {
            let said = learn(frame, call, function, status);
            return keep(&thread.fortran, &said);
        }
        Binding::Fortran => kept(&thread.fortran),
    };
    thread.mpi_frame.set(0);
    let Said::Call(status, about) = said else {
        let count = &thread.empty_tests;
        count.set(count.get().saturating_add(1));
        collector::exit_unrecorded(call);
        return;
    };
    let about = MpiCall {
        empty_tests: thread.empty_tests.take(),
        ..about
    };
    collector::exit_with_words(end, call, status, about.bytes.unwrap_or(0), about.words());
    if let Some(process) = process::get() {
        process.calibrate_when_due(end);
    }
}

/// What a call of C says that has returned.
#[inline(always)]
fn learn(frame: &Frame, call: &Call, function: &Function, status: i32) -> Said {
    if status == 0 && has_found_nothing(frame, function) {
        return Said::Nothing;
    }
    // A call inside of another one may be a signal handler's.
    let about = if status == 0 && call.parent == 0 && function.ends == Ends::Nothing {
        explain(frame, function)
    } else {
        MpiCall::default()
    };
    // SAFETY: the caller has found that `begin` wrote it.
    if let Some(collective) = unsafe { frame.collective.assume_init_ref() } {
        if status != 0 {
            withdraw(call, collective);
        } else if !collective.is_announced {
            // The first one of a communicator: MPI was not asked about it before.
            announce(frame, function, call, &collective.number);
        }
    }
    if status == 0 {
        made(frame, function);
    }
    Said::Call(Some(status), about)
}

/// For the call of Fortran that the thread is in.
#[inline(always)]
fn keep(call: &FortranCall, said: &Said) {
    let outcome = match said {
        Said::Nothing => outcome::FOUND_NOTHING,
        Said::Call(status, about) => {
            call.status.set(status.unwrap_or(0));
            call.words.set(about.words());
            outcome::RETURNED
        }
    };
    call.outcome.set(outcome);
}

/// What was kept.
#[inline(always)]
fn kept(call: &FortranCall) -> Said {
    call.expected.set(0);
    match call.outcome.get() {
        outcome::RETURNED => Said::Call(Some(call.status.get()), MpiCall::of(call.words.get())),
        outcome::FOUND_NOTHING => Said::Nothing,
        _ => Said::Call(None, MpiCall::default()),
    }
}

/// An argument of a call.
#[inline(always)]
fn argument(frame: &Frame, at: u8) -> u64 {
    match frame.passage.registers.get(usize::from(at)) {
        Some(word) => *word,
        // SAFETY: the table says that the function has this argument, so the caller put it there.
        None => unsafe { *frame.passage.stack.add(usize::from(at - REGISTERS)) },
    }
}

/// A number of 32 bits: the rest of the word is undefined.
#[inline(always)]
fn number(frame: &Frame, at: u8) -> i32 {
    argument(frame, at) as i32
}

/// Whether a successful call is a test that found nothing.
#[inline(always)]
fn has_found_nothing(frame: &Frame, function: &Function) -> bool {
    let Outcome::At(at) = function.outcome else {
        return false;
    };
    let place = argument(frame, at) as *const i32;
    // SAFETY: the call succeeded, so it wrote the number there.
    !place.is_null() && unsafe { place.read_unaligned() } == 0
}

/// What the arguments of a successful call say.
#[inline(always)]
fn explain(frame: &Frame, function: &Function) -> MpiCall {
    let Some(family) = family::family() else {
        return MpiCall::default();
    };
    let rank = |at: Option<u8>| at.map_or(UNKNOWN, |at| family.rank(number(frame, at)));
    let mut about = MpiCall {
        peer: rank(function.peer),
        root: rank(function.root),
        tag: function.tag.map_or(UNKNOWN, |at| family.tag(number(frame, at))),
        operator: function.operator.map_or(0, |at| family.operator(argument(frame, at))),
        ..MpiCall::default()
    };
    if !family::is_running() {
        return about;
    }
    let communicator = function
        .communicator
        .map(|at| communicators::of(family, argument(frame, at)));
    let mut is_inter = false;
    if let Some(found) = communicator {
        let Some(found) = found else { return about };
        about = about.with_communicator(found.word);
        is_inter = found.is_inter;
    }
    about.bytes = if about.peer == NO_RANK {
        Some(0)
    } else if (is_inter && function.peer.is_none()) || matches!(about.root, NO_RANK | ROOT) {
        // What counts there depends on the group. Such a root exists between groups only.
        None
    } else if (function.peer.is_some() && about.peer == UNKNOWN) || (function.root.is_some() && about.root == UNKNOWN) {
        // It may be nobody: then the type need not be one.
        None
    } else {
        bytes(frame, function, family, &about)
    };
    about
}

#[inline(always)]
fn bytes(frame: &Frame, function: &Function, family: Family, about: &MpiCall) -> Option<u64> {
    let [count, datatype] = match function.data {
        Data::Elements { count, datatype } => [count, datatype],
        Data::Either { buffer, usual, .. } if !family.is_in_place(argument(frame, buffer)) => usual,
        // Only the root has its own data in place.
        Data::Either { in_place, .. } if function.root.is_none() || about.root == about.rank.cast_signed() => in_place?,
        Data::None | Data::Either { .. } => return None,
    };
    let count = u64::try_from(number(frame, count)).ok()?;
    // The type of nothing need not be one.
    let size = match count {
        0 => 0,
        _ => u64::from(family::ask(
            Question::TypeSize,
            family.handle(argument(frame, datatype)),
        )?),
    };
    let ranks = if function.is_by_rank { u64::from(about.size) } else { 1 };
    count.checked_mul(size)?.checked_mul(ranks)
}
