//! Python frames of a call. Of a known call, plain loads of the calling thread's own interpreter state find them.
//!
//! The state is the one that CPython keeps for the thread, whether or not the thread has the interpreter's lock. Its
//! frames belong to the thread: while it is in a call, no other thread changes or frees them. Before the first plain
//! load, all of them are read and checked by copies that fail instead of faulting ([`Interpreter::check`]). While an
//! interpreter ends, it frees states of other threads; from its first step on nothing is read.

#![expect(unsafe_code, reason = "loads of the calling thread's own interpreter state")]

mod layout;
pub(crate) mod pin;
mod symbols;
#[cfg(test)]
mod tests;

use self::layout::{Entries, FIRST_SHIM_OWNER, Layout, NEWEST, OLDEST, PUBLISHED, WORDS};
use self::symbols::{Exports, Symbol, read, word};
use super::{memory, mix};
use roctop_ring::sites::{CODE_BYTES, Call, CodeWords, MAX_PYTHON_FRAMES, PythonFrame, SitesWriter, Text, entered};
use roctop_ring::sync::{AtomicU64, Ordering};
use std::sync::OnceLock;

/// Frames that identify a call, from the innermost on. Others are compared when a stack is copied again.
const COMPARED: usize = 12;
/// An odd number with bits everywhere.
const FACTOR: u64 = 0x9fb2_1c65_1e98_df25;
/// Size of the table of code that was written.
const CODES: usize = 4096;
/// Maximum bytes of a file's name, and of a function's.
const MAX_TEXT: usize = 1024;

/// The Python frames of a call in short; 0 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Frames {
    /// Of the innermost frame.
    pub(super) inner: u64,
    /// Of its callers.
    pub(super) outer: u64,
}

/// CPython in this process.
pub(super) struct Interpreter {
    layout: Layout,
    /// Returns the state of the calling thread: `PyGILState_GetThisThreadState`, which reads a thread-local value.
    state: extern "C" fn() -> u64,
    finalizing: u64,
    code_type: u64,
    evaluator: [u64; 2],
}

/// The word at an address.
///
/// # Safety
/// The calling thread can read it.
#[inline(always)]
unsafe fn load(address: u64) -> u64 {
    // SAFETY: the caller's. Volatile, because the interpreter's structures are no objects of this library.
    unsafe { (address as *const u64).read_volatile() }
}

#[inline(always)]
const fn at(address: u64, offset: u32) -> u64 {
    address.wrapping_add(offset as u64)
}

impl Interpreter {
    /// The state of the calling thread; 0 if it has none, or the interpreter ends.
    #[inline(always)]
    pub(super) fn state(&self) -> u64 {
        // SAFETY: a word of the interpreter's own data, which stays loaded.
        if unsafe { load(self.finalizing) } != 0 {
            return 0;
        }
        (self.state)()
    }

    /// The frames of the calling thread.
    ///
    /// # Safety
    /// `state` is what [`Self::state`] returned, and was checked.
    #[inline(always)]
    pub(super) unsafe fn frames(&self, state: u64) -> Frames {
        let Layout { state: of, frame, .. } = &self.layout;
        // SAFETY: for all of this function: the thread's state and its frames, each of which its callee keeps.
        unsafe {
            let mut address = load(at(state, of.current));
            if let Some(offset) = of.through
                && address != 0
            {
                address = load(at(address, offset));
            }
            let mut found = Frames::default();
            if address == 0 {
                return found;
            }
            let of_frame = |address| {
                let instruction = load(at(address, frame.instruction)) & frame.instruction_mask;
                (load(at(address, frame.code)) ^ instruction.rotate_left(32)).wrapping_mul(FACTOR)
            };
            // A product is hash enough: each further step would delay what is looked up by it.
            found.inner = of_frame(address);
            for _ in 1..COMPARED {
                address = load(at(address, frame.previous));
                if address == 0 {
                    break;
                }
                // No product depends on another: the loads of the addresses take longest.
                found.outer = found.outer.rotate_left(9) ^ of_frame(address);
            }
            if let Some(offset) = of.stack {
                // The depth of all frames: of 3.11 and later, many frames share a C frame.
                let depth = load(at(state, offset + 8)).wrapping_sub(load(at(state, offset)));
                found.outer ^= depth;
            }
            found
        }
    }
}

/// Why frames are not read.
type Problem = &'static str;

/// What the process has of Python.
pub(super) struct Python {
    /// Candidates that were looked at, one bit each.
    looked: AtomicU64,
    /// 1 after a problem.
    off: AtomicU64,
    /// First address of a library with an interpreter that may be unloaded; 0 for none.
    unpinned: AtomicU64,
    /// 1 after a thread began to pin it.
    is_pinning: AtomicU64,
    /// Libraries that were gone before they were pinned.
    pins_failed: AtomicU64,
    /// Calls without frames that may wait for the pin.
    patience: AtomicU64,
    found: OnceLock<Interpreter>,
}

/// Calls of a process that are not kept as known while its interpreter is not pinned, so that they get Python frames as soon as
/// it is. A thread of the program may hold the loader's lock for long.
const PATIENCE_CALLS: u64 = 10_000;
/// A program may close the library before it is pinned, and open it again.
const MAX_FAILED_PINS: u64 = 16;

impl Python {
    pub(super) const fn new() -> Self {
        Self {
            looked: AtomicU64::new(0),
            off: AtomicU64::new(0),
            unpinned: AtomicU64::new(0),
            is_pinning: AtomicU64::new(0),
            pins_failed: AtomicU64::new(0),
            patience: AtomicU64::new(PATIENCE_CALLS),
            found: OnceLock::new(),
        }
    }

    /// The interpreter, unless there is none or it cannot be read.
    pub(super) fn interpreter(&self) -> Option<&Interpreter> {
        self.found.get().filter(|_| self.off.load(Ordering::Relaxed) == 0)
    }

    /// Looks for an interpreter in files that were not looked at yet.
    pub(super) fn look(&self, candidates: &Candidates) {
        for (number, candidate) in candidates.0.iter().enumerate() {
            let base = candidate.load(Ordering::Relaxed);
            let bit = 1 << number;
            if base == 0 || self.looked.load(Ordering::Relaxed) & bit != 0 {
                continue;
            }
            if self.looked.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
                match Interpreter::of(base) {
                    Ok(None) => {}
                    Ok(Some((interpreter, bias))) if pin::stays(base, bias) => {
                        let _ = self.found.set(interpreter);
                    }
                    Ok(Some(_)) => self.unpinned.store(base, Ordering::Release),
                    Err((version, problem)) => self.switch_off(version, problem),
                }
            }
        }
    }

    /// Whether a library is to be pinned; true once.
    pub(super) fn take_pin(&self) -> bool {
        self.unpinned.load(Ordering::Acquire) != 0 && self.is_pinning.swap(1, Ordering::Relaxed) == 0
    }

    /// Pins the library, after which its frames are read. Waits for the loader's lock.
    pub(super) fn pin(&self) {
        let base = self.unpinned.load(Ordering::Acquire);
        if let Ok(Some((before, bias))) = Interpreter::of(base) {
            // Looked for again, because it may have gone before it was pinned.
            let pinned = if pin::keep(bias) {
                Interpreter::of(base)
            } else {
                Ok(None)
            };
            if let Ok(Some((interpreter, _))) = pinned {
                let _ = self.found.set(interpreter);
            } else if self.pins_failed.fetch_add(1, Ordering::Relaxed) < MAX_FAILED_PINS {
                self.looked.store(0, Ordering::Relaxed);
            } else {
                self.switch_off(before.minor(), "its library may be unloaded");
            }
        }
        self.unpinned.store(0, Ordering::Release);
        self.is_pinning.store(0, Ordering::Release);
    }

    /// Whether the pin of an interpreter is to be expected, so that a call without frames is not kept as known.
    pub(super) fn is_awaited(&self) -> bool {
        self.unpinned.load(Ordering::Relaxed) != 0 && {
            let left = self.patience.load(Ordering::Relaxed);
            self.patience.store(left.saturating_sub(1), Ordering::Relaxed);
            left != 0
        }
    }

    /// Reads no frames from now on.
    pub(super) fn switch_off(&self, minor: u64, problem: Problem) {
        if self.off.swap(1, Ordering::Relaxed) == 0
            && let Some(process) = crate::process::get()
        {
            let text = format!("no Python frames of CPython 3.{minor}: {problem}");
            process.say(roctop_ring::record::status::NOTE, 0, &text);
        }
    }
}

/// First addresses of files that may be or contain an interpreter; 0 for none.
pub(super) struct Candidates([AtomicU64; 8]);

impl Candidates {
    /// Takes note of the first mapping of a file: the program, or one with the name of CPython's library.
    pub(super) fn consider(&self, start: u64, path: &[u8], is_first: bool) {
        if !is_first && !pin::is_python(path) {
            return;
        }
        for place in &self.0 {
            match place.load(Ordering::Relaxed) {
                0 => return place.store(start, Ordering::Relaxed),
                seen if seen == start => return,
                _ => {}
            }
        }
    }
}

impl Interpreter {
    /// The interpreter that this file contains, if it does, and the file's load address; or the minor version and why it
    /// cannot be read.
    fn of(base: u64) -> Result<Option<(Self, u64)>, (u64, Problem)> {
        let Some((exports, runtime)) = Exports::of(base).and_then(|exports| {
            let runtime = exports.find("_PyRuntime")?;
            Some((exports, runtime))
        }) else {
            return Ok(None);
        };
        let minor = minor(&exports);
        let fail = |problem| Err((u64::from(minor), problem));
        if !(OLDEST..=NEWEST).contains(&minor) {
            return fail("this roctop does not know this version");
        }
        let layout = if minor < PUBLISHED {
            Layout::of(minor).ok_or("")
        } else {
            published(runtime)
                .ok_or("")
                .and_then(|words| Layout::published(minor, &words))
        };
        let layout = match layout {
            Ok(layout) => layout,
            Err(problem) => return fail(problem),
        };
        let find = |name| exports.find(name);
        let (Some(state), Some(code_type), Some(evaluator)) = (
            find("PyGILState_GetThisThreadState"),
            find("PyCode_Type"),
            find("_PyEval_EvalFrameDefault"),
        ) else {
            return fail("it does not export what is needed");
        };
        let found = Self {
            layout,
            // SAFETY: the exported function of that name, which has this type in all versions.
            state: unsafe { std::mem::transmute::<u64, extern "C" fn() -> u64>(state.address) },
            finalizing: at(runtime.address, layout.finalizing),
            code_type: code_type.address,
            evaluator: [evaluator.address, evaluator.address.saturating_add(evaluator.size)],
        };
        Ok(Some((found, exports.bias())))
    }

    /// First address of the function that evaluates frames.
    pub(super) fn evaluator(&self) -> u64 {
        let [start, _] = self.evaluator;
        start
    }

    /// Minor version.
    pub(super) fn minor(&self) -> u64 {
        u64::from(self.layout.minor)
    }

    /// Whether the state is the calling thread's own.
    pub(super) fn is_own(&self, state: u64) -> bool {
        // SAFETY: cannot fail, touches no memory.
        let thread = unsafe { libc::pthread_self() };
        word(at(state, self.layout.state.thread)) == Some(thread)
    }

    /// Reads all frames of a state by copies that fail; a problem if they are not what they should be.
    fn walk(&self, state: u64, into: &mut [PythonFrame; MAX_PYTHON_FRAMES]) -> Result<Walked, Problem> {
        let Layout { state: of, frame, .. } = &self.layout;
        let unreadable = "its frames cannot be read";
        let mut address = word(at(state, of.current)).ok_or(unreadable)?;
        if let Some(offset) = of.through
            && address != 0
        {
            address = word(at(address, offset)).ok_or(unreadable)?;
        }
        let mut listed = match self.layout.entries {
            Entries::AllListed { first, .. } | Entries::Marked { first, .. } => {
                word(at(state, first)).ok_or(unreadable)?
            }
            Entries::All | Entries::Shim { .. } => 0,
        };
        let mut walked = Walked::default();
        // Frames of the interpreter itself come between, at most one for each.
        for _ in 0..2 * MAX_PYTHON_FRAMES {
            if address == 0 {
                return Ok(walked);
            }
            let raw = read::<BYTES>(address).ok_or(unreadable)?;
            let field = |offset: u32| {
                let bytes = raw.get(offset as usize..)?.first_chunk()?;
                Some(u64::from_le_bytes(*bytes))
            };
            let (Some(code), Some(previous), Some(instruction)) =
                (field(frame.code), field(frame.previous), field(frame.instruction))
            else {
                return Err("its frames are too long");
            };
            let byte = |offset: u32| raw.get(offset as usize).copied().unwrap_or(0);
            if let Entries::Shim { owner } = self.layout.entries
                && byte(owner) >= FIRST_SHIM_OWNER
            {
                // It is in the C frame that evaluates its callees. From 3.15 on the thread's state has another one, the outermost.
                if let Some(callee) = walked.count.checked_sub(1).and_then(|last| into.get_mut(last))
                    && callee.entry == entered::NO
                {
                    callee.entry = address;
                }
                address = previous;
                continue;
            }
            let Some(place) = into.get_mut(walked.count) else {
                walked.is_cut = true;
                return Ok(walked);
            };
            let mut take_listed = |next: u32| {
                let here = listed;
                listed = word(at(here, next)).unwrap_or(0);
                if here == 0 { entered::SOMEWHERE } else { here }
            };
            let entry = match self.layout.entries {
                Entries::All => entered::SOMEWHERE,
                Entries::AllListed { next, .. } => take_listed(next),
                Entries::Marked { mark, next, .. } if byte(mark) != 0 => take_listed(next),
                Entries::Marked { .. } | Entries::Shim { .. } => entered::NO,
            };
            // From 3.14 on the lowest bits of a reference have another meaning.
            let code = code & !7;
            if word(at(code, self.layout.code.kind)) != Some(self.code_type) {
                return Err("its frames have no code");
            }
            let instruction = match frame.unit {
                0 => instruction.wrapping_sub(at(code, self.layout.code.instructions)),
                unit => (instruction & frame.instruction_mask).wrapping_mul(unit),
            };
            *place = PythonFrame {
                code,
                instruction,
                entry,
            };
            walked.count += 1;
            address = previous;
        }
        walked.is_cut = true;
        Ok(walked)
    }

    /// Whether the frames of the calling thread are what they should be.
    pub(super) fn check(&self, state: u64, scratch: &mut Scratch) -> Result<(), Problem> {
        self.walk(state, &mut scratch.frames).map(drop)
    }

    /// Writes the frames of a call, and what is not yet written of their code.
    pub(super) fn write(&self, state: u64, call: &Call, written: &Written, scratch: &mut Scratch, to: SitesWriter<'_>) {
        let Ok(walked) = self.walk(state, &mut scratch.frames) else {
            return;
        };
        let (frames, code) = (scratch.frames.get_mut(..walked.count), &mut scratch.code);
        let frames = frames.unwrap_or_default();
        for frame in &mut *frames {
            frame.code = self.write_code(frame.code, written, code, to);
        }
        to.python(call, self.evaluator, frames, walked.is_cut);
    }

    /// Writes code unless that was done; its number, 0 if it cannot be read.
    fn write_code(&self, address: u64, written: &Written, buffer: &mut [u8; CODE_BYTES], to: SitesWriter<'_>) -> u64 {
        let of = &self.layout.code;
        let field = |offset| word(at(address, offset));
        let read_all = || {
            Some((
                field(of.file)?,
                field(of.name)?,
                field(of.lines)?,
                field(of.first_line)? as u32,
            ))
        };
        let Some((file, name, lines, first_line)) = read_all() else {
            return 0;
        };
        // Code may be freed, and other code take its place.
        let words = [address, file, name, lines, u64::from(first_line)];
        let id = words.into_iter().fold(5, mix) | 1;
        if written.has(id, to) {
            return id;
        }
        let (file, used) = self.copy_text(file, buffer);
        let (name, used) = {
            let rest = buffer.get_mut(used..).unwrap_or_default();
            let (name, more) = self.copy_text(name, rest);
            (name, used + more)
        };
        let rest = buffer.get_mut(used..).unwrap_or_default();
        let length = word(at(lines, self.layout.text.bytes_length)).unwrap_or(0) as usize;
        let wanted = length.min(rest.len());
        let rest = rest.get_mut(..wanted).unwrap_or_default();
        let used = used + memory::copy(at(lines, self.layout.text.bytes), rest);
        to.code(&CodeWords {
            id,
            minor: self.layout.minor,
            first_line,
            file,
            name,
            bytes: buffer.get(..used).unwrap_or_default(),
        });
        written.note(id, to);
        id
    }

    /// Copies the beginning of a text; what it is, and the number of bytes.
    fn copy_text(&self, address: u64, into: &mut [u8]) -> (Text, usize) {
        let of = &self.layout.text;
        let none = (Text { width: 1, bytes: 0 }, 0);
        let (Some(length), Some(state)) = (word(at(address, of.length)), word(at(address, of.state))) else {
            return none;
        };
        let (width, is_compact, is_ascii) = (state >> 2 & 7, state >> 5 & 1 != 0, state >> 6 & 1 != 0);
        if !is_compact || !matches!(width, 1 | 2 | 4) {
            return none;
        }
        let wanted = (length.saturating_mul(width) as usize).min(MAX_TEXT).min(into.len());
        let into = into.get_mut(..wanted).unwrap_or_default();
        let bytes = memory::copy(at(address, if is_ascii { of.ascii } else { of.compact }), into);
        let bytes = bytes - bytes % width as usize;
        let text = Text {
            width: width as u8,
            bytes,
        };
        (text, bytes)
    }
}

/// Bytes of a frame that are read at once: all that is looked at is in them.
const BYTES: usize = 112;

/// What a walk over frames found.
#[derive(Clone, Copy, Default)]
struct Walked {
    count: usize,
    is_cut: bool,
}

/// Buffers of a thread.
pub(super) struct Scratch {
    frames: [PythonFrame; MAX_PYTHON_FRAMES],
    code: [u8; CODE_BYTES],
}

/// Which code was written to the stack file: its number, and the bytes written before it.
pub(super) struct Written([[AtomicU64; 2]; CODES]);

impl Written {
    fn place(&self, id: u64) -> Option<&[AtomicU64; 2]> {
        self.0.get((id >> 32) as usize % CODES)
    }

    /// Whether it was written, and is not about to be overwritten.
    fn has(&self, id: u64, to: SitesWriter<'_>) -> bool {
        let (now, capacity) = to.written();
        self.place(id).is_some_and(|[known, before]| {
            known.load(Ordering::Acquire) == id && now.wrapping_sub(before.load(Ordering::Relaxed)) < capacity / 2
        })
    }

    fn note(&self, id: u64, to: SitesWriter<'_>) {
        if let Some([known, before]) = self.place(id) {
            before.store(to.written().0, Ordering::Relaxed);
            // Release: a thread that sees this number appends its own entry after that of the code.
            known.store(id, Ordering::Release);
        }
    }
}

/// Minor version of an interpreter.
fn minor(exports: &Exports) -> u8 {
    if let Some(version) = exports.find("Py_Version").and_then(|symbol| word(symbol.address)) {
        return if version >> 24 == 3 {
            (version >> 16) as u8
        } else {
            u8::MAX
        };
    }
    // Before 3.11 the version is no exported number.
    let has = |name| exports.find(name).is_some();
    match (has("PyModule_AddObjectRef"), has("PyModule_AddType")) {
        (true, _) => 10,
        (false, true) => 9,
        _ => 8,
    }
}

/// The first words of the interpreter's data.
fn published(runtime: Symbol) -> Option<[u64; WORDS]> {
    let mut words = [0; WORDS];
    let bytes = read::<{ 8 * WORDS }>(runtime.address)?;
    for (to, from) in words.iter_mut().zip(bytes.as_chunks().0) {
        *to = u64::from_le_bytes(*from);
    }
    Some(words)
}
