//! The stubs in front of the run-time's functions.
//!
//! A stub loads the number of its place and goes to the gate: an ordinary frame with unwind tables, six integer and four
//! vector registers kept, the stack arguments of a function that has any copied. A call that nothing is registered for
//! goes on by a jump, as if nobody had been there.

use super::{api, argument};
use crate::domain::Domain;
use crate::pool::Opened;
use crate::record::Record;
use crate::registration::{self, REGISTERED};
use crate::wall::wall;
use crate::{clock, control, correlation, text};
use core::mem::{MaybeUninit, offset_of};
use hsa_sys::function::{self, Function};
use hsa_sys::table::{AmdLayout, Root, Table};
use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The tables' first places; as many entries of each are taken as their functions are known.
const AMD: usize = 128;
const IMAGE: usize = AMD + 96;
const COUNT: usize = IMAGE + 32;
/// Bytes of a stub.
const STUB: usize = 16;
/// Words of arguments in `hsa_api_data_t`.
const ARGUMENT_WORDS: usize = 11;

/// What is behind a stub.
struct Place {
    function: AtomicUsize,
    /// The operation as the program numbers it, and the function's number in its table.
    what: AtomicU64,
}

static PLACES: [Place; COUNT] = [const {
    Place {
        function: AtomicUsize::new(0),
        what: AtomicU64::new(0),
    }
}; COUNT];

/// `hsa_api_data_t`: what the program's callbacks get.
#[repr(C)]
struct Data {
    correlation: u64,
    phase: u32,
    reserved: u32,
    result: u64,
    arguments: [u64; ARGUMENT_WORDS],
    /// The program's own word, from the first phase to the second: `phase_data`.
    word: *mut u64,
}

/// A call that something is registered for.
struct Call {
    data: Data,
    phase_word: u64,
    op: u32,
    is_told: bool,
    /// 0 when no record is wanted.
    begin: u64,
}

/// What the assembly keeps of a call. Its size is a multiple of 16.
#[repr(C, align(16))]
struct Frame {
    registers: [u64; 6],
    place: u64,
    /// Does the gate come back here after the call?
    is_traced: u64,
    vectors: [[u64; 2]; 4],
    /// Words of the stack to copy, an even number.
    words: u64,
    result: u64,
    call: MaybeUninit<Call>,
}

const _: () = {
    assert!(size_of::<Frame>() == 288);
    assert!(offset_of!(Frame, place) == 48 && offset_of!(Frame, is_traced) == 56 && offset_of!(Frame, vectors) == 64);
    assert!(offset_of!(Frame, words) == 128 && offset_of!(Frame, result) == 136);
    assert!(offset_of!(Data, arguments) == 24 && offset_of!(Data, word) == 112);
};

/// The stubs, one a place; the first begins at the next multiple of their size.
#[unsafe(naked)]
unsafe extern "C" fn stubs() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        ".set roctracer_place, 0",
        ".rept {count}",
        ".p2align 4",
        // mov r11d, place
        ".byte 0x41, 0xbb",
        ".long roctracer_place",
        "jmp {gate}",
        ".set roctracer_place, roctracer_place + 1",
        ".endr",
        ".p2align 4",
        ".cfi_endproc",
        count = const COUNT,
        gate = sym gate,
    )
}

/// Comes from a stub with the place's number in r11.
#[unsafe(naked)]
unsafe extern "C" fn gate() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "sub rsp, {frame}",
        "mov [rsp], rdi",
        "mov [rsp + 8], rsi",
        "mov [rsp + 16], rdx",
        "mov [rsp + 24], rcx",
        "mov [rsp + 32], r8",
        "mov [rsp + 40], r9",
        "mov [rsp + 48], r11",
        "movaps [rsp + 64], xmm0",
        "movaps [rsp + 80], xmm1",
        "movaps [rsp + 96], xmm2",
        "movaps [rsp + 112], xmm3",
        "mov rdi, rsp",
        "call {enter}",
        "mov r11, rax",
        "mov rdi, [rsp]",
        "mov rsi, [rsp + 8]",
        "mov rdx, [rsp + 16]",
        "mov rcx, [rsp + 24]",
        "mov r8, [rsp + 32]",
        "mov r9, [rsp + 40]",
        "movaps xmm0, [rsp + 64]",
        "movaps xmm1, [rsp + 80]",
        "movaps xmm2, [rsp + 96]",
        "movaps xmm3, [rsp + 112]",
        "cmp qword ptr [rsp + 56], 0",
        "je 2f",
        "mov r10, [rsp + 128]",
        "test r10, r10",
        "jz 3f",
        // The last word first; the first one lies behind the return address.
        "4:",
        "push qword ptr [rbp + 8 + 8 * r10]",
        "dec r10",
        "jnz 4b",
        "3:",
        "call r11",
        "lea rsp, [rbp - {frame}]",
        "mov [rsp + 136], rax",
        "mov rdi, rsp",
        "call {exit}",
        "mov rax, [rsp + 136]",
        ".cfi_remember_state",
        "leave",
        ".cfi_def_cfa rsp, 8",
        "ret",
        "2:",
        ".cfi_restore_state",
        "leave",
        ".cfi_def_cfa rsp, 8",
        "jmp r11",
        ".cfi_endproc",
        frame = const size_of::<Frame>(),
        enter = sym enter,
        exit = sym exit,
    )
}

/// Stands for a place without a function; no stub of such a place is in a table.
extern "C" fn nothing() -> u32 {
    0x1000
}

/// Before the function; returns its address.
extern "C" fn enter(frame: &mut Frame) -> *const c_void {
    frame.is_traced = 0;
    let Some(place) = PLACES.get(frame.place as usize) else {
        return nothing as extern "C" fn() -> u32 as *const c_void;
    };
    let op = place.what.load(Ordering::Relaxed) as u32;
    let (callback, records) = (REGISTERED.hsa_callbacks.get(op), REGISTERED.hsa_records.get(op));
    if (callback.is_some() || records.is_some()) && !control::is_stopped() {
        wall((), || begin(frame, place, callback.is_some(), records.is_some()));
    }
    place.function.load(Ordering::Acquire) as *const c_void
}

fn begin(frame: &mut Frame, place: &Place, is_told: bool, has_record: bool) {
    let sizes = sizes(frame.place as usize, place);
    let mut arguments = [0; ARGUMENT_WORDS];
    if is_told {
        lay_out(frame, sizes, &mut arguments);
    }
    let on_stack = sizes.len().saturating_sub(frame.registers.len()) as u64;
    frame.words = on_stack.next_multiple_of(2);
    frame.is_traced = 1;
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
        is_told: false,
        begin: 0,
    });
    call.data.word = &raw mut call.phase_word;
    if is_told {
        call.is_told = tell(call);
    }
    if has_record {
        // The program's own time is not the call's.
        call.begin = clock::now();
    }
}

/// Calls the program's function, if there is one.
fn tell(call: &mut Call) -> bool {
    let Some(words) = REGISTERED.hsa_callbacks.get(call.op) else {
        return false;
    };
    let (function, argument) = registration::callback(words);
    // SAFETY: the program's callback, called as the interface says.
    unsafe { function(Domain::HsaApi as u32, call.op, (&raw const call.data).cast(), argument) };
    true
}

fn sizes(index: usize, place: &Place) -> &'static str {
    let number = (place.what.load(Ordering::Relaxed) >> 32) as usize;
    let table: &[&str] = match index {
        IMAGE.. => &argument::IMAGE,
        AMD.. => &argument::AMD,
        _ => &argument::CORE,
    };
    table.get(number).copied().unwrap_or("")
}

/// Puts the arguments where the callbacks' structure has them.
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
    if let Some(value) = frame.registers.get(number) {
        return *value;
    }
    // Behind the frame lie the caller's rbp, the return address, and the arguments on the stack.
    let stack = std::ptr::from_ref(frame)
        .wrapping_add(1)
        .cast::<u64>()
        .wrapping_add(2 + number - frame.registers.len());
    // SAFETY: the function has an argument there, so the caller put it there.
    unsafe { stack.read() }
}

/// After the function.
extern "C" fn exit(frame: &mut Frame) {
    wall((), || {
        let result = frame.result;
        // SAFETY: the assembly comes here only when `enter` said so, and then it wrote the call.
        let call = unsafe { frame.call.assume_init_mut() };
        let end = if call.begin == 0 { 0 } else { clock::now() };
        call.data.result = result;
        call.data.phase = 1;
        if call.is_told {
            tell(call);
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
