//! Pools: two buffers that are filled alternately, and a thread that delivers the full one to the program.
//!
//! Records grow from a buffer's start, kernel names from its end. A name without space beside its record is passed by
//! address, and the writer waits until the program has seen it. A writer that finds both buffers in use waits for the
//! program, so nothing is lost. The exception is the program's own callback, which cannot wait for itself: records that
//! it would write are dropped.
//!
//! A pool's memory comes from the program's allocator. A closed pool stays and is reused by the next one opened, so
//! that a stale handle is recognised.

mod properties;

pub use properties::{Allocator, BufferCallback, Properties};

use crate::lock::{Bell, Guard, Guarded};
use crate::record::Record;
use crate::status::{ERROR, INVALID_ARGUMENT, MEMORY_ALLOCATION, Result, fail};
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

/// The writers' side.
struct Producer {
    properties: Properties,
    memory: *mut c_char,
    /// The buffer being written, 0 or 1.
    buffer: usize,
    /// Bytes of records in it, from its start.
    records: usize,
    /// Bytes of names in it, from its end.
    names: usize,
    /// Number of buffers passed to the thread.
    given: u64,
    thread: Option<JoinHandle<()>>,
    /// Number of this opening of the pool; 0 closed.
    opened: u64,
}

/// The thread's task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    None,
    /// Deliver the bytes between these addresses.
    Deliver(usize, usize),
    End,
}

/// A pool.
pub(crate) struct Pool {
    producer: Guarded<Producer>,
    work: Guarded<Work>,
    changed: Bell,
}

// SAFETY: the memory is used under the producer's lock, or by the thread that received it; the program is responsible
// for its own part.
unsafe impl Send for Producer {}

/// One opening of a pool, distinct from later openings.
#[derive(Clone, Copy)]
pub(crate) struct Opened {
    pool: &'static Pool,
    number: u64,
}

static OPENED: AtomicU64 = AtomicU64::new(1);

thread_local! {
    /// The pool whose callback this thread is running.
    static INSIDE: Cell<*const Pool> = const { Cell::new(null()) };
}

/// Whether this thread runs the callback of a pool.
pub(crate) fn is_inside_any() -> bool {
    !INSIDE.get().is_null()
}

impl Opened {
    /// Encodes it as a registration's two words.
    pub(crate) fn words(self) -> [u64; 2] {
        [std::ptr::from_ref(self.pool) as u64, self.number]
    }

    /// Decodes [`words`](Self::words).
    pub(crate) fn of_words([pool, number]: [u64; 2]) -> Option<Self> {
        let pool = pool as usize as *const Pool;
        // SAFETY: `words` took the address from a reference that is never freed.
        let pool = unsafe { pool.as_ref() }?;
        Some(Self { pool, number })
    }

    pub(crate) fn pool(self) -> &'static Pool {
        self.pool
    }

    /// Whether this is the thread running the pool's callback.
    pub(crate) fn is_inside(self) -> bool {
        INSIDE.get() == std::ptr::from_ref(self.pool)
    }

    /// The program's handle.
    pub(crate) fn handle(self) -> *mut c_void {
        std::ptr::from_ref(self.pool).cast_mut().cast()
    }

    /// Writes a record, with its name if it has one.
    pub(crate) fn write_named(self, record: &Record) {
        let name = record.name();
        if name.is_null() {
            return self.write(&[*record], None);
        }
        // SAFETY: the run-time's name is terminated and valid during the call.
        let name = unsafe { CStr::from_ptr(name) }.to_bytes_with_nul();
        self.write(&[*record], Some(name));
    }

    /// Writes consecutive records; the name belongs to the first.
    pub(crate) fn write(self, records: &[Record], name: Option<&[u8]>) {
        let name = name.unwrap_or_default();
        loop {
            {
                let mut producer = self.pool.producer.hold();
                if producer.opened != self.number {
                    return;
                }
                let is_kept = name.len() <= producer.properties.size() - size_of_val(records);
                let kept = if is_kept { name } else { &[] };
                if producer.has_room(records, kept) || self.pool.pass_on(&mut producer) {
                    let given = producer.given;
                    producer.put(records, kept, is_kept || !self.is_inside());
                    drop(producer);
                    if !is_kept && !self.is_inside() {
                        // The name belongs to the run-time: the program must see it before this returns.
                        self.deliver_up_to(given);
                    }
                    return;
                }
            }
            // The program has the other buffer. Its own callback cannot wait for itself.
            if self.is_inside() {
                return;
            }
            drop(self.pool.idle());
        }
    }

    /// Returns once the program has seen the buffer that was being written when `given` buffers had been passed on.
    fn deliver_up_to(self, given: u64) {
        loop {
            {
                let mut producer = self.pool.producer.hold();
                let is_given = producer.opened != self.number || producer.given != given || producer.records == 0;
                if is_given || self.pool.pass_on(&mut producer) {
                    break;
                }
            }
            // Writers can continue in the meantime; the program's callback may itself write.
            drop(self.pool.idle());
        }
        drop(self.pool.idle());
    }

    /// Number of buffers passed on so far.
    fn given(self) -> Result<u64> {
        let producer = self.pool.producer.hold();
        if producer.opened == self.number {
            Ok(producer.given)
        } else {
            Err(unknown())
        }
    }

    /// Delivers all records and returns once the program has seen them.
    pub(crate) fn flush(self) -> Result<()> {
        if !self.is_inside() {
            self.deliver_up_to(self.given()?);
        }
        Ok(())
    }

    /// Delivers all records, ends the thread and frees the memory.
    pub(crate) fn close(self) -> Result<()> {
        if self.is_inside() {
            return Err(fail(
                ERROR,
                format_args!("a pool cannot be closed by its own buffer callback"),
            ));
        }
        let (thread, properties, memory) = loop {
            self.flush()?;
            let mut producer = self.pool.producer.hold();
            if producer.opened != self.number {
                return Err(unknown());
            }
            // A writer may have written in between.
            if producer.records == 0 {
                producer.opened = 0;
                break (producer.thread.take(), producer.properties, producer.memory);
            }
        };
        {
            let mut work = self.pool.idle();
            *work = Work::End;
            self.pool.changed.ring();
        }
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

impl Producer {
    fn has_room(&self, records: &[Record], name: &[u8]) -> bool {
        self.records + size_of_val(records) + self.names + name.len() <= self.properties.size()
    }

    /// Copies records into the buffer, which has space for them. A name that is not stored there is passed by address
    /// or omitted.
    fn put(&mut self, records: &[Record], kept: &[u8], has_name: bool) {
        let size = self.properties.size();
        let base = self.memory.wrapping_add(self.buffer * size);
        let place = base.wrapping_add(self.records);
        // SAFETY: there is space for all of them, and the lock is held.
        unsafe { place.copy_from_nonoverlapping(records.as_ptr().cast(), size_of_val(records)) };
        self.records += size_of_val(records);
        let name = if kept.is_empty() {
            0
        } else {
            self.names += kept.len();
            let name = base.wrapping_add(size - self.names);
            // SAFETY: there is space between the records and the names.
            unsafe { name.copy_from_nonoverlapping(kept.as_ptr().cast(), kept.len()) };
            name as u64
        };
        if name != 0 || !has_name {
            let detail = place.wrapping_add(std::mem::offset_of!(Record, detail));
            // SAFETY: inside the record that was just written.
            unsafe { detail.cast::<u64>().write_unaligned(name) };
        }
    }
}

/// Status for an invalid handle.
pub(crate) fn unknown() -> i32 {
    fail(INVALID_ARGUMENT, format_args!("not an open pool"))
}

/// The current opening of the pool with this handle, if it is open.
pub(crate) fn opened(pool: &'static Pool) -> Option<Opened> {
    let number = pool.producer.hold().opened;
    (number != 0).then_some(Opened { pool, number })
}

/// Opens a pool; reuses a closed one of `pools` if there is one.
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
        given: 0,
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

/// Starts a pool's thread, with all signals blocked.
fn start(pool: &'static Pool, properties: Properties) -> std::io::Result<JoinHandle<()>> {
    /// Sends the properties to a thread of ours; the program is responsible for the addresses in them.
    struct Sent(Properties);
    // SAFETY: the program's callback is called on another thread, as the interface says.
    unsafe impl Send for Sent {}
    let sent = Sent(properties);
    let mut before = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: both are writable; the first call fills `all`.
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
    /// Waits until the thread is idle.
    fn idle(&self) -> Guard<'_, Work> {
        let mut work = self.work.hold();
        while *work != Work::None {
            self.changed.wait(&mut work);
        }
        work
    }

    /// Passes the buffer to the thread and switches to the other one; false while the program has that one.
    fn pass_on(&self, producer: &mut Producer) -> bool {
        let mut work = self.work.hold();
        if *work != Work::None {
            return false;
        }
        let begin = producer.memory as usize + producer.buffer * producer.properties.size();
        *work = Work::Deliver(begin, begin + producer.records);
        self.changed.ring();
        producer.buffer = 1 - producer.buffer;
        producer.records = 0;
        producer.names = 0;
        producer.given += 1;
        true
    }

    /// The thread's main function.
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
                // SAFETY: the program's callback; the records are between the two addresses, and nobody else accesses
                // them.
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
