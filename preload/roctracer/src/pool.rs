//! Pools: two buffers that records are written to in turn, and a thread that hands the full one to the program.
//!
//! Records grow from a buffer's beginning, kernel names from its end; a name that has no room beside its record goes as
//! it is, and the writer waits until the program has seen it. A writer that finds both buffers taken waits for the
//! program: nothing is lost. Only the program's own callback cannot be waited for from inside itself: what it would
//! write then is left out.
//!
//! A pool's memory is the program's allocator's; the pool itself stays, closed, for the next one that is opened, so that
//! a handle used too late is told from an open one.

use crate::lock::{Bell, Guard, Guarded};
use crate::record::{Record, SIZE};
use crate::registration;
use crate::status::{ERROR, INVALID_ARGUMENT, MEMORY_ALLOCATION, Result, fail};
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

/// `roctracer_allocator_t`.
pub type Allocator = unsafe extern "C" fn(pointer: *mut *mut c_char, size: usize, argument: *mut c_void);
/// `roctracer_buffer_callback_t`.
pub type BufferCallback = unsafe extern "C" fn(begin: *const c_char, end: *const c_char, argument: *mut c_void);

/// `roctracer_properties_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Properties {
    /// Not used.
    pub mode: u32,
    /// Bytes of each buffer.
    pub buffer_size: usize,
    /// Gives and takes memory; none for the C library's.
    pub allocate: Option<Allocator>,
    /// For the allocator.
    pub allocator_argument: *mut c_void,
    /// Gets full buffers.
    pub callback: Option<BufferCallback>,
    /// For the callback.
    pub callback_argument: *mut c_void,
}

const _: () = assert!(size_of::<Properties>() == 48 && std::mem::offset_of!(Properties, callback) == 32);

impl Properties {
    /// Bytes of a buffer: room for a record and its external id at least.
    fn size(&self) -> usize {
        self.buffer_size.max(2 * SIZE)
    }

    /// Another size of the memory at `before`: from nothing, to nothing, or both.
    fn memory(&self, before: *mut c_char, size: usize) -> *mut c_char {
        let mut pointer = before;
        match self.allocate {
            // SAFETY: the program's allocator, called as the interface says.
            Some(allocate) => unsafe { allocate(&raw mut pointer, size, self.allocator_argument) },
            None if size == 0 => {
                // SAFETY: from `malloc`, below.
                unsafe { libc::free(pointer.cast()) };
                pointer = null_mut();
            }
            // SAFETY: takes any size.
            None => pointer = unsafe { libc::malloc(size) }.cast(),
        }
        pointer
    }
}

/// The writers' side.
struct Producer {
    properties: Properties,
    memory: *mut c_char,
    /// The buffer that is written to, 0 or 1.
    buffer: usize,
    /// Bytes of records in it, from its beginning.
    records: usize,
    /// Bytes of names in it, from its end.
    names: usize,
    thread: Option<JoinHandle<()>>,
    /// The number that the pool was opened under; 0 closed.
    opened: u64,
}

/// What the thread is to do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    None,
    /// Hand over the bytes between these addresses.
    Deliver(usize, usize),
    End,
}

/// A pool.
pub(crate) struct Pool {
    producer: Guarded<Producer>,
    work: Guarded<Work>,
    changed: Bell,
}

// SAFETY: the memory is used under the producer's lock, or by the thread that was given it; what is the program's is its
// own care.
unsafe impl Send for Producer {}

/// A pool as it was opened: one that has been closed since is told from it.
#[derive(Clone, Copy)]
pub(crate) struct Opened {
    pool: &'static Pool,
    number: u64,
}

static OPENED: AtomicU64 = AtomicU64::new(1);

thread_local! {
    /// The pool whose callback this thread runs.
    static INSIDE: Cell<*const Pool> = const { Cell::new(null()) };
}

impl Opened {
    /// For a registration's two words.
    pub(crate) fn words(self) -> [u64; 2] {
        [std::ptr::from_ref(self.pool) as u64, self.number]
    }

    /// The reverse.
    pub(crate) fn of_words([pool, number]: [u64; 2]) -> Option<Self> {
        let pool = pool as usize as *const Pool;
        // SAFETY: `words` took it from a reference that lives for ever.
        let pool = unsafe { pool.as_ref() }?;
        Some(Self { pool, number })
    }

    pub(crate) fn pool(self) -> &'static Pool {
        self.pool
    }

    /// Is this the thread that runs the pool's callback?
    pub(crate) fn is_inside(self) -> bool {
        INSIDE.get() == std::ptr::from_ref(self.pool)
    }

    /// For the program.
    pub(crate) fn handle(self) -> *mut c_void {
        std::ptr::from_ref(self.pool).cast_mut().cast()
    }

    /// Writes a record with the name that it points to, if it has one.
    pub(crate) fn write_named(self, record: &Record) {
        let name = record.name();
        if name.is_null() {
            return self.write(&[*record], None);
        }
        // SAFETY: the run-time's name is terminated and valid during the call.
        let name = unsafe { CStr::from_ptr(name) }.to_bytes_with_nul();
        self.write(&[*record], Some(name));
    }

    /// Writes records one behind the other; the name is the first one's.
    pub(crate) fn write(self, records: &[Record], name: Option<&[u8]>) {
        let mut producer = self.pool.producer.hold();
        if producer.opened != self.number {
            return;
        }
        let size = producer.properties.size();
        let bytes = size_of_val(records);
        let (name, is_kept) = match name {
            Some(name) => (name, name.len() <= size - bytes),
            None => (&[][..], true),
        };
        let reserved = if is_kept { name.len() } else { 0 };
        if producer.records + bytes + producer.names + reserved > size && !self.pool.pass_on(&mut producer) {
            return;
        }
        let base = producer.memory.wrapping_add(producer.buffer * size);
        let place = base.wrapping_add(producer.records);
        // SAFETY: there is room for all of them (tested above), and the lock is held.
        unsafe { place.copy_from_nonoverlapping(records.as_ptr().cast(), bytes) };
        producer.records += bytes;
        if reserved > 0 {
            producer.names += reserved;
            let kept = base.wrapping_add(size - producer.names);
            // SAFETY: there is room between the records and the names (tested above).
            unsafe { kept.copy_from_nonoverlapping(name.as_ptr().cast(), reserved) };
            let detail = place.wrapping_add(std::mem::offset_of!(Record, detail));
            // SAFETY: inside the record that was just written.
            unsafe { detail.cast::<u64>().write_unaligned(kept as u64) };
        }
        if !is_kept && self.pool.pass_on(&mut producer) {
            // The name is the run-time's: it has to be seen before this returns.
            drop(self.pool.idle());
        }
    }

    /// Hands over what there is and returns when the program has seen it.
    pub(crate) fn flush(self) -> Result<()> {
        if self.is_inside() {
            return Ok(());
        }
        {
            let mut producer = self.pool.producer.hold();
            if producer.opened != self.number {
                return Err(unknown());
            }
            if producer.records > 0 {
                self.pool.pass_on(&mut producer);
            }
        }
        drop(self.pool.idle());
        Ok(())
    }

    /// Hands over what there is, ends the thread, gives the memory back.
    pub(crate) fn close(self) -> Result<()> {
        if self.is_inside() {
            return Err(fail(
                ERROR,
                format_args!("a pool cannot be closed by its own buffer callback"),
            ));
        }
        self.flush()?;
        let (thread, properties, memory) = {
            let mut producer = self.pool.producer.hold();
            if producer.opened != self.number {
                return Err(unknown());
            }
            // A writer may have come in between.
            if producer.records > 0 {
                self.pool.pass_on(&mut producer);
            }
            producer.opened = 0;
            (producer.thread.take(), producer.properties, producer.memory)
        };
        self.pool.give(Work::End);
        if let Some(thread) = thread {
            // It ends by itself; nothing in it panics.
            let _ = thread.join();
        }
        {
            let mut work = self.pool.work.hold();
            *work = Work::None;
            self.pool.changed.ring();
        }
        self.pool.producer.hold().memory = null_mut();
        properties.memory(memory, 0);
        Ok(())
    }
}

/// What a call with a handle that is none gets.
pub(crate) fn unknown() -> i32 {
    fail(INVALID_ARGUMENT, format_args!("not an open pool"))
}

/// Is the pool behind this handle open, and under which number?
pub(crate) fn opened(pool: &'static Pool) -> Option<Opened> {
    let number = pool.producer.hold().opened;
    (number != 0).then_some(Opened { pool, number })
}

/// Opens a pool, a closed one of `pools` again if there is one.
pub(crate) fn open(properties: &Properties, pools: &[&'static Pool]) -> Result<Opened> {
    if properties.callback.is_none() {
        return Err(fail(INVALID_ARGUMENT, format_args!("a pool needs a buffer callback")));
    }
    let size = properties.size();
    let too_much = || {
        fail(
            MEMORY_ALLOCATION,
            format_args!("no memory for two buffers of {size} bytes"),
        )
    };
    let whole = size
        .checked_mul(2)
        .filter(|whole| isize::try_from(*whole).is_ok())
        .ok_or_else(too_much)?;
    let memory = properties.memory(null_mut(), whole);
    if memory.is_null() {
        return Err(too_much());
    }
    let number = OPENED.fetch_add(1, Ordering::Relaxed);
    let producer = Producer {
        properties: *properties,
        memory,
        buffer: 0,
        records: 0,
        names: 0,
        thread: None,
        opened: number,
    };
    let free = pools.iter().find(|pool| {
        let producer = pool.producer.hold();
        producer.opened == 0 && producer.memory.is_null()
    });
    let pool: &'static Pool = match free {
        Some(pool) => {
            *pool.producer.hold() = producer;
            pool
        }
        None => Box::leak(Box::new(Pool {
            producer: Guarded::new(producer),
            work: Guarded::new(Work::None),
            changed: Bell::new(),
        })),
    };
    registration::stay_loaded();
    match start(pool, *properties) {
        Ok(thread) => {
            pool.producer.hold().thread = Some(thread);
            Ok(Opened { pool, number })
        }
        Err(error) => {
            let mut producer = pool.producer.hold();
            producer.opened = 0;
            producer.memory = null_mut();
            properties.memory(memory, 0);
            Err(fail(ERROR, format_args!("no thread for the pool: {error}")))
        }
    }
}

/// Starts a pool's thread. No signal of the program's comes to it.
fn start(pool: &'static Pool, properties: Properties) -> std::io::Result<JoinHandle<()>> {
    /// Sent to a thread of ours; the addresses in it are the program's business.
    struct Sent(Properties);
    // SAFETY: the program's callback is called on another thread, as the interface says.
    unsafe impl Send for Sent {}
    let sent = Sent(properties);
    let mut before = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: both have room; the first call fills `all`.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let started = std::thread::Builder::new()
        .name("roctracer-pool".to_owned())
        .spawn(move || {
            let sent = sent;
            INSIDE.set(std::ptr::from_ref(pool));
            pool.deliver(&sent.0);
        });
    // SAFETY: the first call filled it.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), null_mut()) };
    started
}

impl Pool {
    /// Waits until the thread has nothing to do.
    fn idle(&self) -> Guard<'_, Work> {
        let mut work = self.work.hold();
        while *work != Work::None {
            self.changed.wait(&mut work);
        }
        work
    }

    fn give(&self, next: Work) {
        let mut work = self.idle();
        *work = next;
        self.changed.ring();
    }

    /// Gives the buffer to the thread and turns to the other one; false when that one is in the hands of the very
    /// callback that is asking.
    fn pass_on(&self, producer: &mut Producer) -> bool {
        if INSIDE.get() == std::ptr::from_ref(self) {
            return false;
        }
        let size = producer.properties.size();
        let begin = producer.memory as usize + producer.buffer * size;
        self.give(Work::Deliver(begin, begin + producer.records));
        producer.buffer = 1 - producer.buffer;
        producer.records = 0;
        producer.names = 0;
        true
    }

    /// The thread.
    fn deliver(&self, properties: &Properties) {
        loop {
            let next = {
                let mut work = self.work.hold();
                while *work == Work::None {
                    self.changed.wait(&mut work);
                }
                *work
            };
            let Work::Deliver(begin, end) = next else { return };
            if let Some(callback) = properties.callback {
                // SAFETY: the program's callback; the records lie between the two and nobody else touches them.
                unsafe {
                    callback(
                        begin as *const c_char,
                        end as *const c_char,
                        properties.callback_argument,
                    );
                }
            }
            let mut work = self.work.hold();
            *work = Work::None;
            self.changed.ring();
        }
    }
}
