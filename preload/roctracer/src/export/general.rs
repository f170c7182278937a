//! Versions, errors, names, properties, time, ids, start and stop, and remains of older interfaces.

use crate::domain::Domain;
use crate::status::{self, INVALID_ARGUMENT, INVALID_DOMAIN, MISMATCHED_EXTERNAL_ID, Result, SUCCESS, Status, fail};
use crate::wall::wall;
use crate::{clock, control, correlation, engage, hip, hsa};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null;

/// Major version of the interface.
#[unsafe(no_mangle)]
pub extern "C" fn roctracer_version_major() -> u32 {
    4
}

/// Minor version of the interface.
#[unsafe(no_mangle)]
pub extern "C" fn roctracer_version_minor() -> u32 {
    1
}

/// Text of this thread's last failed call; the caller frees it.
#[unsafe(no_mangle)]
pub extern "C" fn roctracer_error_string() -> *const c_char {
    status::last()
}

/// Name of an operation; null if it does not exist.
#[unsafe(no_mangle)]
pub extern "C" fn roctracer_op_string(domain: u32, op: u32, kind: u32) -> *const c_char {
    wall(null(), || {
        let name = Domain::new(domain).and_then(|domain| name(domain, op, kind));
        name.map_or(null(), CStr::as_ptr)
    })
}

fn name(domain: Domain, op: u32, kind: u32) -> Result<&'static CStr> {
    let found = match domain {
        Domain::HsaApi => hsa::api::name(op),
        Domain::HsaOps => [c"DISPATCH", c"COPY", c"BARRIER", c"PCSAMPLE"]
            .get(op as usize)
            .copied(),
        Domain::HipOps => hip::name::of_command(kind),
        Domain::HipApi => hip::name::of_call(op),
        Domain::External => Some(c"EXT_API"),
        Domain::HsaEvent => [c"ALLOCATE", c"DEVICE", c"MEMCOPY", c"SUBMIT", c"KSYMBOL", c"CODEOBJ"]
            .get(op as usize)
            .copied(),
        Domain::Kfd | Domain::Roctx => {
            return Err(fail(
                INVALID_DOMAIN,
                format_args!("domain {} has no names", domain as u32),
            ));
        }
    };
    found.ok_or_else(|| {
        fail(
            INVALID_ARGUMENT,
            format_args!("domain {} has no operation {op} of kind {kind}", domain as u32),
        )
    })
}

/// The operation of a name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctracer_op_code(domain: u32, text: *const c_char, op: *mut u32, kind: *mut u32) -> Status {
    wall(status::ERROR, || {
        let found = code(domain, text).and_then(|found| {
            if op.is_null() {
                return Err(fail(
                    INVALID_ARGUMENT,
                    format_args!("there is no room for the operation"),
                ));
            }
            Ok(found)
        });
        status::of(found.map(|found| {
            // SAFETY: not null (tested above); the caller provides the memory.
            unsafe { op.write(found) };
            if !kind.is_null() {
                // SAFETY: not null; the caller provides the memory.
                unsafe { kind.write(0) };
            }
        }))
    })
}

fn code(domain: u32, text: *const c_char) -> Result<u32> {
    let domain = Domain::new(domain)?;
    if !matches!(domain, Domain::HsaApi | Domain::HipApi) {
        return Err(fail(
            INVALID_DOMAIN,
            format_args!("operations of domain {} are not found by name", domain as u32),
        ));
    }
    if text.is_null() {
        return Err(fail(INVALID_ARGUMENT, format_args!("there is no name")));
    }
    // SAFETY: not null; the caller's string is terminated.
    let text = unsafe { CStr::from_ptr(text) };
    let found = if domain == Domain::HsaApi {
        hsa::api::operation(text)
    } else {
        hip::name::call(text)
    };
    found.ok_or_else(|| {
        fail(
            INVALID_ARGUMENT,
            format_args!(
                "no operation of domain {} is named {}",
                domain as u32,
                text.to_string_lossy()
            ),
        )
    })
}

/// Sets properties of a domain.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctracer_set_properties(domain: u32, properties: *mut c_void) -> Status {
    wall(status::ERROR, || {
        status::of(Domain::new(domain).and_then(|domain| match domain {
            Domain::External if properties.is_null() => {
                Err(fail(INVALID_ARGUMENT, format_args!("there are no properties")))
            }
            Domain::External => {
                // SAFETY: not null; the caller's structure for this domain.
                control::set_functions(unsafe { &*properties.cast::<control::Properties>() });
                Ok(())
            }
            Domain::Roctx => Err(fail(INVALID_DOMAIN, format_args!("ROCTX has no properties"))),
            _ => Ok(()),
        }))
    })
}

/// Current time of the records' clock, ns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctracer_get_timestamp(time: *mut u64) -> Status {
    wall(status::ERROR, || {
        if time.is_null() {
            return fail(INVALID_ARGUMENT, format_args!("there is no room for the time"));
        }
        // SAFETY: not null; the caller provides the memory.
        unsafe { time.write(clock::now()) };
        SUCCESS
    })
}

/// Starts tracing.
#[unsafe(no_mangle)]
pub extern "C" fn roctracer_start() {
    wall((), || control::switch(false));
}

/// Stops tracing.
#[unsafe(no_mangle)]
pub extern "C" fn roctracer_stop() {
    wall((), || {
        if !control::is_stopped() {
            // A program's wait for its GPU may return before the run-time has reported the work.
            engage::settle_all();
        }
        control::switch(true);
    });
}

/// Pushes an external id for this thread's calls.
#[unsafe(no_mangle)]
pub extern "C" fn roctracer_activity_push_external_correlation_id(id: u64) -> Status {
    wall(status::ERROR, || {
        correlation::push_external(id);
        SUCCESS
    })
}

/// Pops the last external id.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctracer_activity_pop_external_correlation_id(last: *mut u64) -> Status {
    wall(status::ERROR, || {
        let id = correlation::pop_external();
        if !last.is_null() {
            // SAFETY: not null; the caller provides the memory.
            unsafe { last.write(id.unwrap_or(0)) };
        }
        if id.is_none() {
            return fail(
                MISMATCHED_EXTERNAL_ID,
                format_args!("this thread has no external correlation id to take back"),
            );
        }
        SUCCESS
    })
}

/// From an older interface: returns success and does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn roctracer_load() -> c_int {
    1
}

/// From an older interface: does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn roctracer_unload() {}

/// From an older interface: does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn roctracer_flush_buf() {}

/// From an older interface: does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn roctracer_mark(_text: *const c_char) {}
