//! Entries of dispatch tables from libraries: numbers of the gate after those of the exported functions.
//!
//! A table is its size in bytes, followed by one pointer per function. The library jumps through it at every call, so
//! an entry is wrapped by replacing the pointer with a stub. The library's internal calls bypass the table. While a
//! table is wrapped, it is the only source of its functions' calls: the exported functions' stubs only pass on.

#![expect(unsafe_code, reason = "writes into a library's table of functions")]

use super::gate;
use crate::notices;
use crate::process::{self, Process};
use hip_sys::entry;
use hip_sys::function::{ArgumentLocation as Argument, COUNT, Domain, Effect, FUNCTIONS, Function, Returns};
use roctop_ring::sync::{AtomicU64, Ordering};
use std::ffi::c_void;

/// Maximum number of wrapped entries per table.
const TABLE_ENTRIES: [usize; 5] = [1024, 32, 64, 32, 32];
/// Number of entries of all tables.
pub(crate) const PLACES: usize = 1184;
/// Size of a stub, bytes.
const STUB: usize = 16;
/// Number of stack words copied for a function with unknown arguments.
const UNKNOWN_WORDS: u8 = 8;
/// First operation number of functions that are known from a table only; the entry index is added.
const FIRST_TABLE_OP: u16 = 0x5000;
/// Functions that tools call: not wrapped.
const TOOLS: [&str; 4] = [
    "hipApiName",
    "hipKernelNameRef",
    "hipKernelNameRefByPtr",
    "hipGetStreamDeviceId",
];

const _: () = {
    let [hip, compiler, rccl, rocdecode, rocjpeg] = TABLE_ENTRIES;
    assert!(hip + compiler + rccl + rocdecode + rocjpeg == PLACES);
};

/// A wrapped entry.
struct WrappedEntry {
    /// Previous pointer of the entry; 0 if it is not wrapped.
    previous: AtomicU64,
    /// Address of the function's row.
    function: AtomicU64,
}

static WRAPPED: [WrappedEntry; PLACES] = [const {
    WrappedEntry {
        previous: AtomicU64::new(0),
        function: AtomicU64::new(0),
    }
}; PLACES];

/// Function and previous pointer of a wrapped entry.
#[inline]
pub(crate) fn behind(place: usize) -> Option<(&'static Function, u64)> {
    let place = WRAPPED.get(place)?;
    let previous = place.previous.load(Ordering::Acquire);
    let function = place.function.load(Ordering::Acquire) as usize as *const Function;
    // SAFETY: null, or the address of a row of the static table or of one that was leaked.
    unsafe { function.as_ref() }.map(|function| (function, previous))
}

/// The stubs, one per entry; the first begins at the next multiple of their size.
#[unsafe(naked)]
unsafe extern "C" fn stubs() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        ".set roctop_entry, {first}",
        ".rept {count}",
        ".p2align 4",
        // mov r11d, number
        ".byte 0x41, 0xbb",
        ".long roctop_entry",
        "jmp {gate}",
        ".set roctop_entry, roctop_entry + 1",
        ".endr",
        ".p2align 4",
        ".cfi_endproc",
        first = const COUNT,
        count = const PLACES,
        gate = sym gate::gate,
    )
}

/// Kind of a dispatch table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    Hip,
    Compiler,
    Rccl,
    Rocdecode,
    Rocjpeg,
}

impl Which {
    fn domain(self) -> Domain {
        match self {
            Self::Hip => Domain::Hip,
            Self::Compiler => Domain::Compiler,
            Self::Rccl => Domain::Rccl,
            Self::Rocdecode => Domain::Rocdecode,
            Self::Rocjpeg => Domain::Rocjpeg,
        }
    }

    fn name(self, index: usize, bytes: usize) -> Option<&'static str> {
        let names: &[&str] = match self {
            Self::Hip => return entry::hip(index, bytes),
            Self::Compiler => &entry::COMPILER,
            Self::Rccl => &entry::RCCL,
            Self::Rocdecode => &entry::ROCDECODE,
            Self::Rocjpeg => &entry::ROCJPEG,
        };
        names.get(index).copied()
    }

    fn title(self) -> &'static str {
        match self {
            Self::Hip => "hip",
            Self::Compiler => "hip_compiler",
            Self::Rccl => "rccl",
            Self::Rocdecode => "rocdecode",
            Self::Rocjpeg => "rocjpeg",
        }
    }
}

/// Wraps the functions of a table in place; returns their number.
///
/// # Safety
/// `table` is a dispatch table of this kind, which the library keeps forever.
pub(crate) unsafe fn wrap(which: Which, table: *mut c_void) -> usize {
    // SAFETY: a table begins with its size.
    let bytes = unsafe { *table.cast::<usize>() };
    let room = TABLE_ENTRIES.get(which as usize).copied().unwrap_or(0);
    let first: usize = TABLE_ENTRIES.iter().take(which as usize).sum();
    let (mut wrapped, mut others) = (0, 0);
    for index in 0..(bytes.saturating_sub(8) / 8).min(room) {
        let name = which.name(index, bytes);
        if name.is_some_and(|name| TOOLS.contains(&name)) {
            continue;
        }
        // SAFETY: the entry is within the table's stated size.
        let place = unsafe { &*table.cast::<AtomicU64>().add(1 + index) };
        let held = place.load(Ordering::Acquire);
        let stub = stub(first + index);
        let Some(ours) = WRAPPED.get(first + index).filter(|_| held != 0 && held != stub) else {
            continue;
        };
        let known = name.and_then(|name| {
            FUNCTIONS
                .iter()
                .position(|function| function.domain == which.domain() && function.name == name)
        });
        let before = ours.previous.load(Ordering::Acquire);
        if before != 0 && before != held {
            // The stub can pass on to one function only.
            others += 1;
            continue;
        }
        let function = match known {
            Some(at) => FUNCTIONS.get(at),
            None => Some(unknown(ours, which, index, name)),
        };
        let Some(function) = function else { continue };
        ours.previous.store(held, Ordering::Release);
        ours.function
            .store(std::ptr::from_ref(function) as u64, Ordering::Release);
        // Release: a caller of the stub finds the function.
        place.store(stub, Ordering::Release);
        if let Some(at) = known {
            gate::served(at);
        }
        wrapped += 1;
    }
    if others > 0 {
        let what = which.title();
        let text = format!("a second library passed on a table of {what}: calls of its functions are not recorded");
        notices::post(others, &text);
    }
    wrapped
}

fn stub(place: usize) -> u64 {
    let first = (stubs as unsafe extern "C" fn() as usize).next_multiple_of(STUB);
    (first + place * STUB) as u64
}

/// A row for a function that is not in our table; created once.
fn unknown(ours: &WrappedEntry, which: Which, index: usize, name: Option<&'static str>) -> &'static Function {
    let known = ours.function.load(Ordering::Acquire) as usize as *const Function;
    // SAFETY: as in `behind`.
    if let Some(known) = unsafe { known.as_ref() } {
        return known;
    }
    let name = match name {
        Some(name) => name,
        None => Box::leak(format!("{}#{index}", which.title()).into_boxed_str()),
    };
    // rocDecode and rocJPEG have no other numbers than their entry indexes.
    let is_own = matches!(which, Which::Hip | Which::Compiler | Which::Rccl);
    let function: &'static Function = Box::leak(Box::new(Function {
        symbol: "\0",
        name,
        op: if is_own {
            FIRST_TABLE_OP + index as u16
        } else {
            index as u16
        },
        domain: which.domain(),
        returns: Returns::Other,
        argument: Argument::None,
        stream: Argument::None,
        is_per_thread: false,
        effect: Effect::None,
        gives: false,
        stack_words: UNKNOWN_WORDS,
        moves: None,
        is_special: false,
        is_event: false,
        has_site: false,
    }));
    if let Some(process) = process::get() {
        super::name(process, super::domain(function), function.op, name.as_bytes());
    }
    function
}

/// Emits the names of entries that are known from a table only.
pub(crate) fn name_operations(process: &Process) {
    for place in 0..PLACES {
        if let Some((function, _)) = behind(place)
            && function.symbol == "\0"
        {
            super::name(process, super::domain(function), function.op, function.name.as_bytes());
        }
    }
}
