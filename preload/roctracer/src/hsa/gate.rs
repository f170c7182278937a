//! The stubs in front of the run-time's functions.
//!
//! A call without a registration continues with a jump and leaves no frame.

use super::{api, argument};
use crate::domain::Domain;
use crate::pool::Opened;
use crate::record::Record;
use crate::registration::{self, REGISTERED};
use crate::wall::wall;
use crate::{clock, control, correlation, text};
use core::mem::{MaybeUninit, offset_of};
use gate::{Passage, STUB, gate, stubs};
use hsa_sys::function::{self, Function};
use hsa_sys::table::{AmdLayout, Root, Table};
use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// First index of each table in [`PLACES`]; each table uses as many entries as it has known functions.
const AMD: usize = 128;
const IMAGE: usize = AMD + 96;
const COUNT: usize = IMAGE + 32;
/// Words of arguments in `hsa_api_data_t`.
const ARGUMENT_WORDS: usize = 11;

/// The target of a stub.
struct StubTarget {
    function: AtomicUsize,
    /// The program's number of the operation, and the function's index in its table.
    what: AtomicU64,
}

static PLACES: [StubTarget; COUNT] = [const {
    StubTarget {
        function: AtomicUsize::new(0),
        what: AtomicU64::new(0),
    }
}; COUNT];

/// `hsa_api_data_t`: the argument of the program's callbacks.
#[repr(C)]
struct Data {
    correlation: u64,
    phase: u32,
    reserved: u32,
    result: u64,
    arguments: [u64; ARGUMENT_WORDS],
    /// The program's word, from the first phase to the second: `phase_data`.
    word: *mut u64,
}

/// A call with a registration.
struct Call {
    data: Data,
    phase_word: u64,
    op: u32,
    is_notified: bool,
    /// 0 if no record is requested.
    begin: u64,
}

/// A call in progress.
#[repr(C, align(16))]
struct Frame {
    passage: Passage,
    call: MaybeUninit<Call>,
}

const _: () = assert!(offset_of!(Data, arguments) == 24 && offset_of!(Data, word) == 112);

stubs!(fn stubs, COUNT, gate);
gate!(fn gate, Frame, enter, exit);

/// For an index without a function; no table contains its stub.
extern "C" fn nothing() -> u32 {
    0x1000
}

/// Before the function; returns its address.
extern "C" fn enter(frame: &mut Frame) -> *const c_void {
    let Some(place) = PLACES.get(frame.passage.place as usize) else {
        return nothing as extern "C" fn() -> u32 as *const c_void;
    };
    let op = place.what.load(Ordering::Relaxed) as u32;
    let (callback, records) = (REGISTERED.hsa_callbacks.get(op), REGISTERED.hsa_records.get(op));
    if (callback.is_some() || records.is_some()) && !control::is_stopped() {
        wall((), || begin(frame, place, callback.is_some(), records.is_some()));
    }
    place.function.load(Ordering::Acquire) as *const c_void
}

fn begin(frame: &mut Frame, place: &StubTarget, is_notified: bool, has_record: bool) {
    let sizes = sizes(frame.passage.place as usize, place);
    let mut arguments = [0; ARGUMENT_WORDS];
    if is_notified {
        lay_out(frame, sizes, &mut arguments);
    }
    let on_stack = sizes.len().saturating_sub(frame.passage.registers.len());
    frame.passage.come_back(on_stack as u64);
    let op = place.what.load(Ordering::Relaxed) as u32;
    let call = frame.call.write(Call {
        data: Data {
            correlation: correlation::enter(),
            phase: 0,
            reserved: 0,
            result: 0,
            arguments,
            word: std::ptr::null_mut(),
        },
        phase_word: 0,
        op,
        is_notified: false,
        begin: 0,
    });
    call.data.word = &raw mut call.phase_word;
    if is_notified {
        call.is_notified = call_back(call);
    }
    if has_record {
        // The program's callback does not count as part of the call.
        call.begin = clock::now();
    }
}

/// Calls the program's function, if registered.
fn call_back(call: &mut Call) -> bool {
    let Some(words) = REGISTERED.hsa_callbacks.get(call.op) else {
        return false;
    };
    let (function, argument) = registration::callback(words);
    // SAFETY: the program's callback, called as the interface says.
    unsafe { function(Domain::HsaApi as u32, call.op, (&raw const call.data).cast(), argument) };
    true
}

fn sizes(index: usize, place: &StubTarget) -> &'static str {
    let number = (place.what.load(Ordering::Relaxed) >> 32) as usize;
    let table: &[&str] = match index {
        IMAGE.. => &argument::IMAGE,
        AMD.. => &argument::AMD,
        _ => &argument::CORE,
    };
    table.get(number).copied().unwrap_or("")
}

/// Copies the arguments to the layout of the callbacks' structure.
fn lay_out(frame: &Frame, sizes: &str, arguments: &mut [u64; ARGUMENT_WORDS]) {
    let mut at = 0usize;
    for (number, size) in sizes.bytes().enumerate() {
        let mut value = fetch(frame, number);
        let bytes = match size {
            b'r' | b's' => size_of::<u64>(),
            digit => usize::from(digit - b'0'),
        };
        if size == b's' && value != 0 {
            // SAFETY: not null; the caller's text, which the function reads too.
            let kept = text::keep(unsafe { CStr::from_ptr(value as usize as *const c_char) });
            value = kept.cast::<c_char>() as u64;
        }
        at = at.next_multiple_of(bytes);
        put(arguments, at, &value.to_le_bytes(), bytes);
        at += bytes;
        if size == b'r' {
            let range = value as usize as *const [u8; RANGE];
            if !range.is_null() {
                // SAFETY: not null; the caller's range, which the function reads too.
                put(arguments, at, &unsafe { range.read_unaligned() }, RANGE);
            }
            at += RANGE;
        }
    }
}

/// Bytes of `hsa_dim3_t`.
const RANGE: usize = 12;

fn put(arguments: &mut [u64; ARGUMENT_WORDS], at: usize, from: &[u8], bytes: usize) {
    if at + bytes <= size_of_val(arguments) && bytes <= from.len() {
        let place = arguments.as_mut_ptr().cast::<u8>().wrapping_add(at);
        // SAFETY: inside both (tested above).
        unsafe { place.copy_from_nonoverlapping(from.as_ptr(), bytes) };
    }
}

fn fetch(frame: &Frame, number: usize) -> u64 {
    if let Some(value) = frame.passage.registers.get(number) {
        return *value;
    }
    // SAFETY: the function has an argument there, so the caller set it.
    unsafe { *frame.passage.stack.add(number - frame.passage.registers.len()) }
}

/// After the function.
extern "C" fn exit(frame: &mut Frame) {
    wall((), || {
        let result = frame.passage.result();
        // SAFETY: the assembly comes here only if `enter` requested it, and `enter` then wrote the call.
        let call = unsafe { frame.call.assume_init_mut() };
        let end = if call.begin == 0 { 0 } else { clock::now() };
        call.data.result = result;
        call.data.phase = 1;
        if call.is_notified {
            call_back(call);
        }
        if call.begin != 0
            && let Some(pool) = REGISTERED.hsa_records.get(call.op).and_then(Opened::of_words)
        {
            let correlation = call.data.correlation;
            let record = Record::call(Domain::HsaApi, call.op, correlation, call.begin, end);
            match Record::external(correlation) {
                Some(external) => pool.write(&[external, record], None),
                None => pool.write(&[record], None),
            }
        }
        correlation::leave();
    });
}

/// Puts the stubs into the tables.
pub(super) fn patch(root: &Root, layout: AmdLayout) {
    api::know(layout);
    let stub = |place: usize| {
        let first = (stubs as unsafe extern "C" fn() as usize).next_multiple_of(STUB);
        (first + STUB * place) as *mut c_void
    };
    let put = |table: Option<Table>, entry: usize, place: usize, op: usize, number: usize| {
        let Some(table) = table else { return };
        // SAFETY: the run-time's table.
        let Some(before) = (unsafe { table.function(entry) }) else {
            return;
        };
        let Some(at) = PLACES.get(place) else { return };
        at.function.store(before as usize, Ordering::Release);
        at.what.store(op as u64 | (number as u64) << 32, Ordering::Release);
        // SAFETY: the run-time's table; the stub takes any function's call; this library stays loaded.
        unsafe { table.patch(entry, stub(place)) };
    };
    let (core, amd, image) = (Table::new(root.core), Table::new(root.amd), Table::new(root.image));
    for number in 0..function::CORE.len() {
        put(core, number, number, number, number);
    }
    let known = |functions: &[Function]| functions.len();
    for number in 0..known(&function::AMD) {
        if let Some(entry) = layout.entry(number) {
            put(amd, entry, AMD + number, api::FIRST_AMD + entry, number);
        }
    }
    for number in 0..known(&function::IMAGE) {
        put(image, number, IMAGE + number, api::first_image(layout) + number, number);
    }
}
