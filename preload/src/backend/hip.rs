//! HIP API calls.
//!
//! Two ways in. [`gate`] stands in front of every exported function, on every release: all calls that are bound by
//! symbol, looked up in a handle ([`super::lookup`]) or by `hipGetProcAddress`, with return codes and arguments.
//! [`tracer`] is the run-time's own callback (5.3.1 and later), for programs that no gate stands in front of, since they set
//! `LD_PRELOAD` anew; where it is registered for something else it leaves calls of the gate alone, so nothing is recorded
//! twice; [`slot`] shares it with other tools. Calls that HIP makes to itself inside a call are not recorded, nor those of a
//! library that is opened with a scope of its own (`RTLD_DEEPBIND`) in a program with the gate.
//!
//! [`activity`] takes HIP's own records of dispatches where those are asked for, [`cooperative`] makes HIP give signals to packets of queues that cannot be intercepted (6.2 and later),
//! [`deferred`] to name the call in packets that threads of its own submit, [`transfer`] records what a call asks to be copied, [`watchdog`] finds launches that came by no queue.
//!
//! Absent on purpose: 5.2's per-operation callbacks, which make every launch dearer by 0.5 µs and an interrupt.

pub mod activity;
pub mod cooperative;
pub mod deferred;
#[cfg(target_arch = "x86_64")]
pub mod entry;
pub mod gate;
pub mod slot;
#[cfg(target_arch = "x86_64")]
mod stub;
pub mod tracer;
mod transfer;
pub mod unseen;
pub mod watchdog;

use crate::guard::Errno;
use crate::process::{self, Process};
use crate::state::{self, word};
use crate::{real, thread};
use hip_sys::function::{self, FUNCTIONS};
use roctop_ring::record::{Domain, OperationName};
use roctop_ring::sync::Ordering;

/// The record's domain.
#[inline(always)]
pub(crate) const fn domain(function: &function::Function) -> Domain {
    Domain(function.domain as u8)
}

const _: () = {
    use function::Domain as Number;
    assert!(Domain::HIP.0 == Number::Hip as u8 && Domain::HIP_COMPILER.0 == Number::Compiler as u8);
    assert!(Domain::RCCL.0 == Number::Rccl as u8);
    assert!(Domain::ROCDECODE.0 == Number::Rocdecode as u8 && Domain::ROCJPEG.0 == Number::Rocjpeg as u8);
};

/// Who saw HIP first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// The gate: the program's calls are bound by symbol.
    Gate,
    /// HSA's start: the calls before it did not come through the gate.
    Hsa,
}

/// The first HIP call of this process, or HSA's start under HIP. Slow path.
#[cold]
#[inline(never)]
pub(crate) fn begin(by: By) {
    let _errno = Errno::keep();
    if thread::current().is_none() {
        if !state::is_on(word::COLLECTOR) && process::get().is_none() && crate::config::config().is_none() {
            state::switch_off();
        }
        return;
    }
    let Some(process) = process::get() else { return };
    if word(word::HIP_BEGUN).swap(1, Ordering::AcqRel) != 0 {
        // Another thread is at it: its calls and ours are recorded from the same instant on.
        while word(word::HIP).load(Ordering::Acquire) == state::COLD {
            std::thread::yield_now();
        }
        return;
    }
    thread::aside(|| {
        name_operations(process);
        // Before the loader is asked anything: a thread inside of it may wait above.
        state::switch_on(word::HIP);
        tracer::register(process, by);
        deferred::learn(process);
    });
}

/// How the file name of this function's library begins.
pub(crate) const fn library_of(function: &function::Function) -> &'static str {
    match function.domain {
        function::Domain::Rccl => "librccl.so",
        _ => LIBRARY,
    }
}

fn name_operations(process: &Process) {
    entry::name_operations(process);
    for function in &FUNCTIONS {
        name(process, domain(function), function.op, function.name.as_bytes());
    }
}

/// Tells the name of an operation.
pub(crate) fn name(process: &Process, domain: Domain, op: u16, name: &[u8]) {
    let fact = OperationName {
        domain: u32::from(domain.0),
        op: u32::from(op),
        name: process.intern(name),
        reserved: 0,
    };
    process.fact(OperationName::head(0, Domain::NONE), &fact.payload());
}

/// How the run-time's file name begins.
pub(crate) const LIBRARY: &str = "libamdhip64.so";

/// The loaded HIP run-time.
pub(crate) fn library() -> Option<(real::Library, std::ffi::CString)> {
    real::loaded(LIBRARY)
}
