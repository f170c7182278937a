//! Facts of kernels from the notes of loaded code objects. A separate thread reads them: the program's threads only pass
//! the URI of what they loaded, and wait only before they unload what is still being read.
//!
//! A file and the process's memory are both read with `pread`: memory that the program has freed is an error, not a fault.

use super::harvest::{STACK, reset_affinity, without_signals};
use crate::guard::wall;
use crate::process::{self, Process};
use roctop_code_object::{Kernel, Source};
use roctop_ring::record::{Domain, KernelCode, code};
use roctop_ring::sync::{AtomicU64, Ordering};
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

/// Maximum wait for the thread.
const MAX_WAIT: Duration = Duration::from_secs(1);
/// Maximum time for which another thread holds the queue.
const MAX_HELD: Duration = Duration::from_millis(20);
/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// Numbers and URIs of code objects.
type Waiting = VecDeque<(u64, Vec<u8>)>;

/// Code objects to read, in the order of their numbers.
static QUEUE: Mutex<Waiting> = Mutex::new(VecDeque::new());
/// Process that the reading thread is of, 0 none: a child of a fork has no such thread.
static READER: AtomicU64 = AtomicU64::new(0);
/// Greatest number of a code object that was to be read, and of one that was.
static ASKED: AtomicU64 = AtomicU64::new(0);
static DONE: AtomicU64 = AtomicU64::new(0);

/// The queue; `None` in the child of a fork in which another thread held it.
fn queue() -> Option<MutexGuard<'static, Waiting>> {
    let start = Instant::now();
    loop {
        match QUEUE.try_lock() {
            Ok(queue) => return Some(queue),
            Err(TryLockError::WouldBlock) if start.elapsed() < MAX_HELD => std::thread::yield_now(),
            Err(_) => return None,
        }
    }
}

/// Reads a code object soon.
pub(super) fn read_later(id: u64, uri: Vec<u8>) {
    let Some(mut queue) = queue() else { return };
    let own = u64::from(std::process::id());
    if READER.load(Ordering::Acquire) != own {
        // What a parent had to read is the parent's.
        queue.clear();
        DONE.fetch_max(ASKED.load(Ordering::Acquire), Ordering::AcqRel);
    }
    queue.push_back((id, uri));
    ASKED.fetch_max(id, Ordering::AcqRel);
    if READER.load(Ordering::Acquire) != own {
        let built = std::thread::Builder::new().name("roctop-code".into()).stack_size(STACK);
        let spawned = without_signals(|| built.spawn(|| wall((), run)));
        if spawned.is_ok() {
            READER.store(own, Ordering::Release);
        } else {
            queue.clear();
            DONE.fetch_max(id, Ordering::AcqRel);
        }
    }
}

/// Waits until a code object is read.
pub(super) fn finish(id: u64) {
    let until = id.min(ASKED.load(Ordering::Acquire));
    let start = Instant::now();
    let is_read = || READER.load(Ordering::Acquire) == u64::from(std::process::id());
    while DONE.load(Ordering::Acquire) < until && is_read() && start.elapsed() < MAX_WAIT {
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// Waits until all are read.
pub(crate) fn finish_all() {
    finish(u64::MAX);
}

fn run() {
    reset_affinity();
    loop {
        let Ok(mut queue) = QUEUE.lock() else { return };
        let Some((id, uri)) = queue.pop_front() else {
            READER.store(0, Ordering::Release);
            return;
        };
        drop(queue);
        if let Some(process) = process::get() {
            wall((), || emit(process, id, &uri));
        }
        DONE.fetch_max(id, Ordering::AcqRel);
    }
}

fn emit(process: &Process, id: u64, uri: &[u8]) {
    let Some(object) = Place::of(uri).and_then(|place| roctop_code_object::read(&place)) else {
        return;
    };
    for kernel in &object.kernels {
        process.minor_fact(KernelCode::head(0, Domain::NONE), &fact(process, id, kernel).payload());
    }
}

fn fact(process: &Process, code_object: u64, kernel: &Kernel) -> KernelCode {
    let number = |value: Option<u32>| value.unwrap_or(u32::MAX);
    let flag = |value: Option<bool>, known: u32, yes: u32| match value {
        None => 0,
        Some(false) => known,
        Some(true) => known | yes,
    };
    let dynamic = if kernel.has_dynamic_stack {
        code::DYNAMIC_STACK
    } else {
        0
    };
    KernelCode {
        code_object,
        hash: kernel.hash,
        code_bytes: kernel.code_bytes,
        name: process.intern(kernel.name.as_bytes()),
        vgpr: number(kernel.vgpr),
        agpr: number(kernel.agpr),
        sgpr: number(kernel.sgpr),
        vgpr_spills: number(kernel.vgpr_spills),
        sgpr_spills: number(kernel.sgpr_spills),
        private_size: number(kernel.scratch),
        group_size: number(kernel.lds),
        max_workgroup: number(kernel.max_workgroup),
        wave_size: number(kernel.wave_size),
        flags: flag(kernel.is_uniform, code::KNOWS_UNIFORM, code::UNIFORM)
            | flag(kernel.is_wgp, code::KNOWS_WGP, code::WGP)
            | dynamic,
        reserved: 0,
    }
}

/// Where a code object is.
struct Place {
    file: File,
    from: u64,
    size: u64,
}

impl Place {
    /// `file://PATH#offset=1&size=2`, or the same of `memory://PID`.
    fn of(uri: &[u8]) -> Option<Self> {
        let text = str::from_utf8(uri).ok()?;
        let (place, part) = text.split_once('#').unwrap_or((text, ""));
        let number = |key: &str| {
            let value = part
                .split('&')
                .find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='))?;
            match value.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok(),
                None => value.parse().ok(),
            }
        };
        let file = if let Some(path) = place.strip_prefix("file://") {
            File::open(OsStr::from_bytes(&plain(path.as_bytes())))
        } else if place.starts_with("memory://") {
            File::open("/proc/self/mem")
        } else {
            return None;
        };
        Some(Self {
            file: file.ok()?,
            from: number("offset").unwrap_or(0),
            size: number("size").unwrap_or(u64::MAX),
        })
    }
}

impl Source for Place {
    fn read(&self, at: u64, into: &mut [u8]) -> bool {
        let is_within = at.checked_add(into.len() as u64).is_some_and(|end| end <= self.size);
        let Some(from) = self.from.checked_add(at).filter(|_| is_within) else {
            return false;
        };
        let mut chunks = into.chunks_mut(CHUNK).zip((from..).step_by(CHUNK));
        chunks.all(|(chunk, at)| self.file.read_exact_at(chunk, at).is_ok())
    }
}

/// A path without its escapes (`%20`).
fn plain(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&byte, after)) = rest.split_first() {
        let (digits, beyond) = after.split_at_checked(2).unwrap_or((&[], after));
        let digits = str::from_utf8(digits).ok();
        let escaped = digits
            .filter(|_| byte == b'%')
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(escaped.unwrap_or(byte));
        rest = if escaped.is_some() { beyond } else { after };
    }
    out
}
