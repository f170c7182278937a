//! The run-time's callbacks by operation, before 5.3.1.
//!
//! For a call with an activity callback, the run-time asks that callback for memory for the arguments, calls the API
//! callback with them before and after, and calls the activity callback again; its argument is null only the first
//! time. An API callback alone has no effect, so both are registered for every requested operation. GPU work carries an
//! internal number, which the run-time reports on the thread that starts the work and which is translated into the
//! call's id.
//!
//! Removing a callback waits for calls in progress, so no callback is removed from inside a call.

use super::function::function;
use super::graph;
use super::launch::{self, Names};
use super::stall;
use super::tracer::{EXIT, PHASE, call};
use crate::domain::{Domain, HIP_OPS};
use crate::loader::Library;
use crate::pool::Opened;
use crate::record::Record;
use crate::registration::{self, HIP_CALLS, REGISTERED};
use crate::wall::wall;
use crate::{clock, control, correlation, thread};
use hip_sys::tracer::OP_DISPATCH;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

type SetCallback = unsafe extern "C" fn(op: u32, function: *mut c_void, argument: *mut c_void) -> c_int;
type RemoveCallback = unsafe extern "C" fn(op: u32) -> c_int;
type InitActivity = unsafe extern "C" fn(number: *mut c_void, done: *mut c_void, argument: *mut c_void);
type EnableActivity = unsafe extern "C" fn(op: u32, is_wanted: bool) -> bool;
type ActivityCallback = unsafe extern "C" fn(u32, *mut Record, *const c_void, *mut c_void) -> *mut c_void;
type ApiCallback = unsafe extern "C" fn(u32, u32, *mut c_void, *mut c_void);

/// The run-time's functions for this.
pub(super) struct Functions {
    set_api: SetCallback,
    remove_api: RemoveCallback,
    set_activity: SetCallback,
    remove_activity: RemoveCallback,
    init_work: InitActivity,
    enable_work: EnableActivity,
}

static REGISTERED_HERE: [AtomicBool; HIP_CALLS] = [const { AtomicBool::new(false) }; HIP_CALLS];
static IS_INITIALISED: AtomicBool = AtomicBool::new(false);

/// Name of a kernel that no call names; not null, because programs build strings from names unchecked.
const UNNAMED: &CStr = c"unknown kernel";

/// More words than the largest `hip_api_data_t` of these releases (832 bytes).
const DATA_WORDS: usize = 128;

/// A call in progress.
#[repr(C, align(16))]
struct Slot {
    data: [u64; DATA_WORDS],
    op: u32,
    begin: u64,
    is_notified: bool,
    /// The kernels that the call launches.
    kernels: Names,
}

thread_local! {
    /// Slots of calls, in progress or free. Not dropped with the thread: the main thread's exit handlers also call HIP,
    /// after its other locals are destroyed.
    #[expect(clippy::vec_box, reason = "the run-time keeps a slot's address while others are added")]
    static SLOTS: ManuallyDrop<RefCell<Vec<Box<Slot>>>> = const { ManuallyDrop::new(RefCell::new(Vec::new())) };
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    static RELEASE: Release = const { Release };
}

/// Frees the slots of an ending thread. An ending process needs no memory back.
struct Release;

impl Drop for Release {
    fn drop(&mut self) {
        if DEPTH.get() == 0 && thread::id() != thread::process() {
            SLOTS.with(|slots| slots.take());
        }
    }
}

/// Data of work at its start.
#[derive(Clone, Copy, Default)]
struct Work {
    /// The call's id.
    correlation: u64,
    /// Address of the kernel's permanent name; 0 if there is none.
    name: usize,
}

/// Work in progress, by the run-time's number.
static WORK: LazyLock<Mutex<HashMap<u64, Work>>> = LazyLock::new(Mutex::default);

fn work() -> MutexGuard<'static, HashMap<u64, Work>> {
    WORK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A non-null argument.
fn argument() -> *mut c_void {
    REGISTERED_HERE.as_ptr().cast_mut().cast()
}

fn is_wanted(op: u32) -> bool {
    REGISTERED.hip_callbacks.get(op).is_some() || REGISTERED.hip_records.get(op).is_some() || is_named(op)
}

/// Whether the call is observed only for the kernel names of dispatch records.
fn is_named(op: u32) -> bool {
    REGISTERED.hip_work.get(OP_DISPATCH).is_some() && launch::is_launch(op)
}

impl Functions {
    pub(super) fn load(library: Library) -> Option<Self> {
        Some(Self {
            set_api: function!(library, c"hipRegisterApiCallback")?,
            remove_api: function!(library, c"hipRemoveApiCallback")?,
            set_activity: function!(library, c"hipRegisterActivityCallback")?,
            remove_activity: function!(library, c"hipRemoveActivityCallback")?,
            init_work: function!(library, c"hipInitActivityCallback")?,
            enable_work: function!(library, c"hipEnableActivityCallback")?,
        })
    }

    /// Registers requested calls and removes those no longer requested.
    pub(super) fn engage(&self, operations: Range<u32>) {
        for op in operations {
            let Some(is_here) = REGISTERED_HERE.get(op as usize) else {
                continue;
            };
            if !is_wanted(op) && DEPTH.get() == 0 && is_here.swap(false, Ordering::AcqRel) {
                // SAFETY: this thread is not inside a call.
                unsafe {
                    (self.remove_api)(op);
                    (self.remove_activity)(op);
                }
                // Another thread may have registered before the removal.
                is_here.store(false, Ordering::Release);
            }
            if is_wanted(op) && !is_here.swap(true, Ordering::AcqRel) {
                stall::prevent();
                // SAFETY: both have the types that the run-time calls; this library stays loaded.
                unsafe {
                    (self.set_activity)(op, activity as ActivityCallback as *mut c_void, argument());
                    (self.set_api)(op, api as ApiCallback as *mut c_void, argument());
                }
            }
        }
    }

    /// The same for work.
    pub(super) fn engage_work(&self, operations: Range<u32>) {
        let is_any_wanted = !REGISTERED.hip_work.is_empty();
        if is_any_wanted && !IS_INITIALISED.swap(true, Ordering::AcqRel) {
            // SAFETY: both have the types that the run-time calls; this library stays loaded.
            unsafe {
                (self.init_work)(
                    numbered as unsafe extern "C" fn(u64) as *mut c_void,
                    done as unsafe extern "C" fn(u32, *mut Record, *mut c_void) as *mut c_void,
                    argument(),
                );
            }
        }
        if IS_INITIALISED.load(Ordering::Acquire) {
            for op in operations.filter(|op| *op < HIP_OPS as u32) {
                // SAFETY: a plain call.
                unsafe { (self.enable_work)(op, REGISTERED.hip_work.get(op).is_some()) };
            }
        }
        for op in launch::operations() {
            self.engage(op..op + 1);
        }
    }
}

unsafe extern "C" fn activity(
    op: u32,
    _record: *mut Record,
    _data: *const c_void,
    argument: *mut c_void,
) -> *mut c_void {
    wall(null_mut(), || {
        if argument.is_null() {
            return begin(op).unwrap_or(null_mut());
        }
        end(op);
        null_mut()
    })
}

/// Memory for a call's arguments; `None` if the call is not requested.
fn begin(op: u32) -> Option<*mut c_void> {
    let has_records = REGISTERED.hip_records.get(op).is_some();
    if control::is_stopped() || !is_wanted(op) || graph::is_asking() {
        return None;
    }
    let depth = DEPTH.get();
    SLOTS
        .try_with(|slots| {
            let mut slots = slots.borrow_mut();
            if slots.len() == depth {
                let _ = RELEASE.try_with(|_| ());
                slots.push(Box::new(Slot {
                    data: [0; DATA_WORDS],
                    op: 0,
                    begin: 0,
                    is_notified: false,
                    kernels: Names::default(),
                }));
            }
            let slot = slots.get_mut(depth)?;
            slot.op = op;
            slot.is_notified = false;
            slot.kernels = Names::default();
            slot.data = [0; DATA_WORDS];
            slot.data[0] = correlation::enter();
            slot.begin = if has_records { clock::now() } else { 0 };
            DEPTH.set(depth + 1);
            Some(slot.data.as_mut_ptr().cast())
        })
        .ok()?
}

/// Accesses the innermost call's slot.
fn with_slot<R>(op: u32, body: impl FnOnce(&mut Slot) -> R) -> Option<R> {
    let depth = DEPTH.get().checked_sub(1)?;
    SLOTS
        .try_with(|slots| {
            let mut slots = slots.borrow_mut();
            slots.get_mut(depth).filter(|slot| slot.op == op).map(|slot| body(slot))
        })
        .ok()?
}

unsafe extern "C" fn api(_domain: u32, op: u32, data: *mut c_void, _argument: *mut c_void) {
    wall((), || {
        if data.is_null() {
            return;
        }
        // SAFETY: the run-time's structure, which is a slot's.
        let is_exit = unsafe { data.byte_add(PHASE).cast::<u32>().read() } == EXIT;
        let is_notified = with_slot(op, |slot| slot.is_notified).unwrap_or(false);
        if is_exit && is_named(op) {
            // SAFETY: the call has returned.
            unsafe { launch::returned(op, data) };
        }
        if !is_exit && is_named(op) {
            // SAFETY: the run-time has filled in the arguments.
            let kernels = unsafe { launch::kernels(op, data) };
            with_slot(op, |slot| slot.kernels = kernels);
        }
        let Some(words) = REGISTERED.hip_callbacks.get(op) else {
            return;
        };
        // A callback registered during the call does not receive its end.
        if is_exit && !is_notified {
            return;
        }
        let (function, argument) = registration::callback(words);
        // SAFETY: the program's callback, called as the interface says.
        unsafe { function(Domain::HipApi as u32, op, data, argument) };
        if !is_exit {
            with_slot(op, |slot| {
                slot.is_notified = true;
                if slot.begin != 0 {
                    // The program's callback does not count as part of the call.
                    slot.begin = clock::now();
                }
            });
        }
    });
}

/// Ends the call, after the program's callback has seen it.
fn end(op: u32) {
    let Some((correlation, begin)) = with_slot(op, |slot| (slot.data[0], slot.begin)) else {
        return;
    };
    DEPTH.set(DEPTH.get().saturating_sub(1));
    if begin != 0
        && let Some(pool) = REGISTERED.hip_records.get(op).and_then(Opened::of_words)
    {
        call(pool, op, correlation, begin, clock::now());
    }
    correlation::leave();
}

/// On the thread that starts work: the run-time's number.
unsafe extern "C" fn numbered(number: u64) {
    wall((), || {
        let correlation = correlation::current();
        if correlation != 0 {
            let name = next_kernel().map_or(0, |name| name as usize);
            work().insert(number, Work { correlation, name });
        }
    });
}

/// The name of the next kernel that the innermost call launches.
fn next_kernel() -> Option<*const c_char> {
    let depth = DEPTH.get().checked_sub(1)?;
    SLOTS
        .try_with(|slots| slots.borrow_mut().get_mut(depth)?.kernels.next())
        .ok()?
}

/// Work is complete. These releases leave the kernel's name out of the record; a dispatch gets the one of its launch.
unsafe extern "C" fn done(op: u32, record: *mut Record, _argument: *mut c_void) {
    wall((), || {
        if record.is_null() {
            return;
        }
        // SAFETY: the run-time's record, valid during the call.
        let mut record = unsafe { *record };
        let work = work().remove(&record.correlation).unwrap_or_default();
        record.correlation = work.correlation;
        record.domain = Domain::HipOps as u32;
        record.op = op;
        record.detail = 0;
        if !control::is_stopped()
            && let Some(pool) = REGISTERED.hip_work.get(op).and_then(Opened::of_words)
        {
            if op == OP_DISPATCH {
                record.detail = (if work.name == 0 {
                    UNNAMED.as_ptr()
                } else {
                    work.name as *const c_char
                }) as u64;
                pool.write_named(&record);
            } else {
                pool.write(&[record], None);
            }
        }
    });
}
