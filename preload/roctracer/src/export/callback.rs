//! Callbacks.

use crate::domain::{self, Domain};
use crate::engage::{self, possible};
use crate::registration::{Callback, required};
use crate::status::{self, Result, Status};
use crate::wall::wall;
use std::ffi::c_void;
use std::ptr::null_mut;

fn set_operation(domain: u32, op: u32, function: Option<Callback>, argument: *mut c_void) -> Result<()> {
    let domain = Domain::new(domain)?;
    let operations = domain.asked(op)?;
    if function.is_some() {
        possible(domain)?;
    }
    engage::set_callback(domain, operations, function, argument);
    Ok(())
}

fn set_domain(domain: u32, function: Option<Callback>, argument: *mut c_void) -> Result<()> {
    let domain = Domain::new(domain)?;
    if function.is_some() {
        possible(domain)?;
    }
    engage::set_callback(domain, domain.operations(), function, argument);
    Ok(())
}

fn set_all(function: Option<Callback>, argument: *mut c_void) {
    // Domains that this run-time cannot report are skipped.
    let is_possible = |domain: &Domain| function.is_none() || possible(*domain).is_ok();
    for domain in domain::ALL.into_iter().filter(is_possible) {
        engage::set_callback(domain, domain.operations(), function, argument);
    }
}

/// Sets the callback of an operation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctracer_enable_op_callback(
    domain: u32,
    op: u32,
    function: Option<Callback>,
    argument: *mut c_void,
) -> Status {
    wall(status::ERROR, || {
        let set = Domain::new(domain)
            .and_then(|_| required(function))
            .and_then(|function| set_operation(domain, op, Some(function), argument));
        status::of(set)
    })
}

/// Sets the callback of all operations of a domain.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctracer_enable_domain_callback(
    domain: u32,
    function: Option<Callback>,
    argument: *mut c_void,
) -> Status {
    wall(status::ERROR, || {
        let set = Domain::new(domain)
            .and_then(|_| required(function))
            .and_then(|function| set_domain(domain, Some(function), argument));
        status::of(set)
    })
}

/// Sets the callback of all operations.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctracer_enable_callback(function: Option<Callback>, argument: *mut c_void) -> Status {
    wall(status::ERROR, || {
        status::of(required(function).map(|function| set_all(Some(function), argument)))
    })
}

/// Removes the callback of an operation.
#[unsafe(no_mangle)]
pub extern "C" fn roctracer_disable_op_callback(domain: u32, op: u32) -> Status {
    wall(status::ERROR, || {
        status::of(set_operation(domain, op, None, null_mut()))
    })
}

/// Removes the callbacks of a domain.
#[unsafe(no_mangle)]
pub extern "C" fn roctracer_disable_domain_callback(domain: u32) -> Status {
    wall(status::ERROR, || status::of(set_domain(domain, None, null_mut())))
}

/// Removes all callbacks.
#[unsafe(no_mangle)]
pub extern "C" fn roctracer_disable_callback() -> Status {
    wall(status::ERROR, || {
        set_all(None, null_mut());
        status::SUCCESS
    })
}
