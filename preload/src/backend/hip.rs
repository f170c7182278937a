//! HIP API calls.
//!
//! There are two entry points. [`gate`] wraps every exported function on every release. It sees all calls bound by
//! symbol, looked up in a handle ([`super::lookup`]) or by `hipGetProcAddress`, with return codes and arguments.
//! [`tracer`] is the run-time's own callback (5.3.1 and later), for programs without the gate, because they replaced
//! `LD_PRELOAD`. Where it is registered for another reason, it ignores calls of the gate, so nothing is recorded twice;
//! [`slot`] shares it with other tools. Not recorded: calls that HIP makes inside a call, and, in a program with the
//! gate, calls of a library opened with a separate scope (`RTLD_DEEPBIND`).
//!
//! [`activity`] takes HIP's own dispatch records if they are requested. [`cooperative`] makes HIP attach signals to
//! packets of queues that cannot be intercepted (6.2 and later). [`deferred`] makes it put the call into packets that
//! its own threads submit. [`transfer`] records requested copies. [`watchdog`] detects launches that no known queue
//! received.
//!
//! Deliberately not used: 5.2's per-operation callbacks, which add 0.5 µs and an interrupt to every launch.

pub mod activity;
#[cfg(target_arch = "x86_64")]
mod communicators;
pub mod cooperative;
pub mod deferred;
#[cfg(target_arch = "x86_64")]
pub mod entry;
pub mod gate;
pub mod graphs;
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

/// Domain of a function's records.
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

/// What saw HIP first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// The gate: the program's calls are bound by symbol.
    Gate,
    /// HSA's start: earlier calls did not pass the gate.
    Hsa,
}

/// First HIP call of this process, or HSA's start under HIP. Slow path.
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
        // Another thread is starting: its calls and ours are recorded from the same instant on.
        while word(word::HIP).load(Ordering::Acquire) == state::COLD {
            std::thread::yield_now();
        }
        return;
    }
    thread::aside(|| {
        name_operations(process);
        // Must precede any question to the dynamic loader: a thread inside it may wait in the loop above.
        state::switch_on(word::HIP);
        tracer::register(process, by);
        deferred::learn(process);
    });
}

/// Start of the file name of this function's library.
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

/// Emits the name of an operation.
pub(crate) fn name(process: &Process, domain: Domain, op: u16, name: &[u8]) {
    let fact = OperationName {
        domain: u32::from(domain.0),
        op: u32::from(op),
        name: process.intern(name),
        reserved: 0,
    };
    process.fact(OperationName::head(0, Domain::NONE), &fact.payload());
}

/// Start of the run-time's file name.
pub(crate) const LIBRARY: &str = "libamdhip64.so";

/// The loaded HIP run-time.
pub(crate) fn library() -> Option<(real::Library, std::ffi::CString)> {
    real::loaded(LIBRARY)
}
