//! HSA: dispatches, copies, agents and code objects, from the run-time's own function tables.
//!
//! The run-time passes its tables to `OnLoad`, because `HSA_TOOLS_LIB` names this library (5.2) or because it exports
//! `HSA_AMD_TOOL_PRIORITY` (5.3 and later). Entries are patched in place; the originals are kept and called exactly
//! once. [`interception`], [`queue`] and [`packet`] time dispatches with the collector's signals; [`observed`] those of
//! queues that cannot be intercepted; [`copy`] copies, on the signals that they have. [`harvest`] turns both into
//! records. [`signal`] knows which of the program's signals are watched. [`index`] joins a packet with its call.
//! [`backpressure`] and [`ring_wrap`] make the program wait where a proxy would overflow. [`driver`] checks the clock
//! of GPU times. [`memory`] records allocations, [`blocking`] copies and fills that complete within a call, and [`api`]
//! the calls themselves, if requested at `OnLoad`.
//!
//! [`probe`] tests the collector's signals on each GPU, [`witness`] proves what should be complete, and
//! [`crate::level`] decides what is used.
//!
//! Deliberately avoided where possible: barrier packets and proxy signals.

#![expect(unsafe_code, reason = "the run-time's tables and entry points")]

pub mod agent;
#[cfg(target_arch = "x86_64")]
pub mod api;
pub mod backpressure;
pub mod blocking;
pub mod code;
pub mod copy;
pub mod driver;
pub mod harvest;
pub mod index;
pub mod init;
pub mod interception;
pub mod memory;
pub mod observed;
pub mod packet;
pub mod probe;
pub mod proxy;
pub mod queue;
pub mod ring_wrap;
pub mod scratch;
pub mod shutdown_hook;
pub mod signal;
pub mod slots;
pub mod symbol;
pub mod wide;
pub mod witness;

use crate::guard::{Errno, wall};
use crate::level::{self, Level};
use crate::process::{self, Process};
use crate::state::{self, word};
use crate::{clock, control, life, real, thread};
use hsa_sys::abi::{SUCCESS, Status, info};
use hsa_sys::function::newer_amd;
use hsa_sys::table::{Amd, AmdLayout, Core, Root, Table, core_entry};
use roctop_ring::record::status;
use roctop_ring::session::{source, wanted};
use roctop_ring::sync::{AtomicU64, Ordering};
use std::ffi::{c_char, c_void};
use std::ops::RangeInclusive;

/// Tools load in this order; the value is below that of roctracer (50), so that this one is closest to the run-time.
#[unsafe(no_mangle)]
pub static HSA_AMD_TOOL_PRIORITY: u32 = 25;

/// The run-time as seen in `OnLoad`.
pub(crate) struct Hsa {
    pub(crate) core: Core,
    pub(crate) amd: Amd,
    pub(crate) layout: AmdLayout,
    pub(crate) agents: agent::Agents,
    pub(crate) index: index::Originals,
    pub(crate) signal: signal::Originals,
    pub(crate) memory: memory::Ledger,
    pub(crate) blocking: blocking::Originals,
    /// Whether another tool wraps the run-time's function that creates queues.
    pub(crate) queues_are_tools: bool,
    /// CLOCK_BOOTTIME when the tables arrived, ns.
    began: u64,
    frequency: u64,
}

static HSA: AtomicU64 = AtomicU64::new(0);

/// The run-time; `None` before `OnLoad`. Its original functions are valid in forked children too.
#[inline(always)]
pub(crate) fn hsa() -> Option<&'static Hsa> {
    let address = HSA.load(Ordering::Acquire) as usize as *const Hsa;
    // SAFETY: `install` stored the address of a leaked box.
    unsafe { address.as_ref() }
}

impl Hsa {
    /// Converts ticks of the system domain to ns.
    #[inline]
    pub(crate) fn nanoseconds(&self, ticks: u64) -> u64 {
        nanoseconds(self.frequency, ticks)
    }

    /// Time of the system domain when the tables arrived, ns.
    pub(crate) fn began(&self) -> u64 {
        driver::about(self.began)
    }

    /// Plausible times of this run-time's work, ns of the system domain.
    fn bounds(&self) -> RangeInclusive<u64> {
        let now = driver::about(clock::boottime());
        self.began().saturating_sub(EARLIER)..=now.saturating_add(LATER)
    }

    /// Whether begin and end, ns, are plausible times of work. If not, it is first determined which clock they are
    /// from.
    pub(crate) fn is_time(&self, span: [u64; 2]) -> bool {
        let is_within = || {
            let bounds = self.bounds();
            driver::is_foreign() || span.iter().all(|time| bounds.contains(time))
        };
        is_within() || driver::ask() && is_within()
    }
}

/// How much earlier than HSA's start work may seem to begin, and how far in the future it may seem to end: ten seconds,
/// a day. An emulated GPU may have a different time.
const EARLIER: u64 = 10 * 1_000_000_000;
const LATER: u64 = 86_400 * 1_000_000_000;

/// Converts ticks to ns.
#[inline]
fn nanoseconds(frequency: u64, ticks: u64) -> u64 {
    if frequency == 1_000_000_000 || frequency == 0 {
        ticks
    } else {
        (u128::from(ticks) * 1_000_000_000 / u128::from(frequency)) as u64
    }
}

/// Time of the system domain at CLOCK_BOOTTIME `boottime`, ns.
fn system_time_at(boottime: u64) -> u64 {
    let Some(hsa) = hsa().filter(|_| state::is_on(word::HSA)) else {
        return 0;
    };
    driver::time_at(boottime, || hsa.nanoseconds(ticks(&hsa.core)))
}

/// Ticks of the system domain's clock; 0 if the run-time does not report it.
fn ticks(core: &Core) -> u64 {
    let mut ticks = 0u64;
    // SAFETY: the attribute is a 64-bit number.
    let known = unsafe { (core.system_get_info)(info::TIMESTAMP, (&raw mut ticks).cast()) };
    if known == SUCCESS { ticks } else { 0 }
}

/// Entry point for tools, called by the run-time.
///
/// # Safety
/// Called by the run-time with its tables.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn OnLoad(table: *mut Root, _version: u64, _failed: u64, _names: *const *const c_char) -> bool {
    wall((), || {
        let _errno = Errno::keep();
        if table.is_null() || !thread::is_traced() {
            return;
        }
        if word(word::HSA).load(Ordering::Acquire) == state::COLD {
            // SAFETY: not null, and the run-time's.
            unsafe { super::sdk::pass_on_from_tools_entry(table.cast(), 10_000) };
            // SAFETY: as above.
            thread::aside(|| install(unsafe { &*table }, false));
        }
        if word(word::HIP).load(Ordering::Acquire) == state::COLD && super::hip::library().is_some() {
            super::hip::begin(super::hip::By::Hsa);
        }
    });
    true
}

/// Takes the tables that the run-time passed to rocprofiler-register; false if that fails. HIP is not called, because
/// its own tables may be in progress. The run-time will not report its end, so the program's `hsa_shut_down` calls are
/// counted.
pub(crate) fn adopt(root: &Root) -> bool {
    if !thread::is_traced() {
        return false;
    }
    if word(word::HSA).load(Ordering::Acquire) == state::COLD {
        thread::aside(|| install(root, true));
    }
    state::is_on(word::HSA)
}

/// Called at the run-time's end: takes the last times; HSA is not called afterwards.
#[unsafe(no_mangle)]
pub extern "C" fn OnUnload() {
    wall((), || {
        let _errno = Errno::keep();
        if state::is_on(word::HSA) {
            harvest::last(harvest::End::Shutdown);
            interception::forget_cooperative();
            if let Some(process) = process::get() {
                process.calibrate();
            }
        }
    });
}

/// A program's `hsa_shut_down`. At the last one the run-time destroys no more objects, so ours are destroyed before it.
unsafe extern "C" fn shut_down() -> Status {
    let Some(hsa) = hsa() else { return SUCCESS };
    if state::is_on(word::HSA) {
        wall((), || {
            let _errno = Errno::keep();
            harvest::take_now();
            probe::discard(hsa);
            proxy::discard(hsa);
            slots::discard_unused(hsa);
            witness::discard(hsa);
        });
    }
    // SAFETY: a plain call of the original.
    unsafe { (hsa.core.shut_down)() }
}

/// Takes the run-time's tables; `is_silent` if it will not report its end.
fn install(root: &Root, is_silent: bool) -> Option<()> {
    let process = process::get()?;
    if level::current() > Level::Plain {
        return None;
    }
    let (core, amd) = (Table::new(root.core)?, Table::new(root.amd)?);
    // SAFETY: both are the run-time's tables.
    let (layout, functions) = unsafe { (AmdLayout::of(amd), (Core::load(core), Amd::load(amd))) };
    let (Some(core_functions), Some(amd_functions)) = functions else {
        process.say(
            status::UNAVAILABLE,
            layout.size as u64,
            "HSA: a table of this run-time lacks functions",
        );
        return None;
    };
    stay_loaded();
    life::at_exit();
    forget_all();
    let frequency = frequency(&core_functions);
    driver::began(|| nanoseconds(frequency, ticks(&core_functions)));
    let hsa = Box::leak(Box::new(Hsa {
        core: core_functions,
        amd: amd_functions,
        layout,
        agents: agent::Agents::new(),
        index: index::Originals::load(core)?,
        signal: signal::Originals::load(core),
        memory: memory::Ledger::load(core, amd, layout)?,
        blocking: blocking::Originals::load(core, amd, layout)?,
        queues_are_tools: !real::lies_in(core_functions.queue_create as *const c_void, init::LIBRARY),
        began: clock::boottime(),
        frequency,
    }));
    HSA.store(std::ptr::from_ref(hsa) as u64, Ordering::Release);
    state::switch_on(word::HSA);
    clock::set_hsa_time(Some(system_time_at));
    // SAFETY: the switch is off for the run-time too until its tables say otherwise; a plain call of the original.
    unsafe { (hsa.amd.async_copy_enable)(true) };
    hsa.agents.discover(hsa, process);
    patch(process, root, (core, amd), hsa);
    if is_silent {
        shutdown_hook::watch(root);
    }
    // Last, so that it comes before the hooks above.
    #[cfg(target_arch = "x86_64")]
    if control::is_asked(wanted::HSA_API) {
        api::patch(process, root, layout);
    }
    process.calibrate();
    report(process, hsa);
    Some(())
}

/// Drops everything of an earlier run-time or of the parent process.
fn forget_all() {
    queue::forget_all();
    observed::forget_all();
    slots::forget_unused();
    witness::forget_all();
    probe::forget_all();
    copy::forget_all();
    proxy::forget_all();
    signal::forget_all();
    harvest::forget_all();
}

/// Installs the hooks in the tables.
fn patch(process: &Process, root: &Root, (core, amd): (Table, Table), hsa: &Hsa) {
    let layout = hsa.layout;
    index::patch(core);
    signal::patch(core);
    interception::patch(core, amd, layout);
    symbol::patch(core);
    hook(
        core,
        core_entry::SHUT_DOWN,
        shut_down as unsafe extern "C" fn() -> Status as *mut c_void,
    );
    copy::patch(amd, layout);
    proxy::patch(amd);
    memory::patch(core, amd, hsa);
    blocking::patch(core, amd, layout);
    scratch::patch(process, root);
}

/// Reports what is recorded of this run-time, and what is not.
fn report(process: &Process, hsa: &Hsa) {
    let unknown = hsa.layout.unknown() - newer_amd(hsa.layout).len();
    if unknown > 0 {
        let text = format!(
            "HSA has {unknown} functions that are newer than this roctop: kernels of queues, and copies, that they make are \
             not recorded"
        );
        process.say(status::INCOMPLETE, 0, &text);
    }
    if hsa.queues_are_tools {
        process.say(
            status::NOTE,
            0,
            "another tool of HSA was loaded first: where it gives kernels its own signals, times here may be those of \
             its barriers",
        );
    }
    process.say(
        status::BACKEND,
        hsa.layout.size as u64,
        if control::dispatch_source() == source::HIP || level::current() > Level::Program {
            "copies: on their own signals"
        } else {
            "dispatches: queue interception; copies: on their own signals"
        },
    );
}

fn frequency(core: &Core) -> u64 {
    let mut frequency = 0u64;
    // SAFETY: the attribute is a 64-bit number.
    unsafe { (core.system_get_info)(info::TIMESTAMP_FREQUENCY, (&raw mut frequency).cast()) };
    frequency
}

/// The run-time closes its tools after `OnUnload`; our thread and the patched entries live longer.
fn stay_loaded() {
    real::pin(OnUnload as extern "C" fn() as *const c_void);
}

/// Installs a hook in a table.
pub(crate) fn hook(table: Table, entry: usize, function: *mut c_void) {
    // SAFETY: callers pair each entry with a function of its type; this library is never unloaded.
    unsafe { table.patch(entry, function) };
}
