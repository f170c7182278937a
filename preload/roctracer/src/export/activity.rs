//! Pools and records.

use crate::domain::{self, Domain};
use crate::engage::{self, possible};
use crate::pool::{Opened, Properties};
use crate::record::SIZE;
use crate::registration;
use crate::status::{self, DEFAULT_POOL_UNDEFINED, INVALID_ARGUMENT, NOT_IMPLEMENTED, Result, Status, fail};
use crate::wall::wall;
use std::ffi::c_void;
use std::ptr::null_mut;

/// Opens a pool for `pool`, or the default one for null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctracer_open_pool_expl(properties: *const Properties, pool: *mut *mut c_void) -> Status {
    wall(status::ERROR, || {
        if properties.is_null() {
            return fail(INVALID_ARGUMENT, format_args!("there are no properties"));
        }
        // SAFETY: not null; the caller's structure.
        let properties = unsafe { &*properties };
        status::of(registration::open(properties, pool.is_null()).map(|opened| {
            if !pool.is_null() {
                // SAFETY: not null; the caller provides the memory.
                unsafe { pool.write(opened.handle()) };
            }
        }))
    })
}

/// Opens the default pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctracer_open_pool(properties: *const Properties) -> Status {
    // SAFETY: by this function's own contract.
    unsafe { roctracer_open_pool_expl(properties, null_mut()) }
}

/// Closes a pool, or the default one for null.
#[unsafe(no_mangle)]
pub extern "C" fn roctracer_close_pool_expl(pool: *mut c_void) -> Status {
    wall(status::ERROR, || status::of(engage::close(pool)))
}

/// Closes the default pool.
#[unsafe(no_mangle)]
pub extern "C" fn roctracer_close_pool() -> Status {
    roctracer_close_pool_expl(null_mut())
}

/// Returns the previous default pool; `pool` replaces it unless null.
#[unsafe(no_mangle)]
pub extern "C" fn roctracer_default_pool_expl(pool: *mut c_void) -> *mut c_void {
    wall(null_mut(), || registration::default_pool(pool))
}

/// The default pool, or null.
#[unsafe(no_mangle)]
pub extern "C" fn roctracer_default_pool() -> *mut c_void {
    roctracer_default_pool_expl(null_mut())
}

/// Delivers a pool's records, the default one's for null, and returns once the program has seen them.
#[unsafe(no_mangle)]
pub extern "C" fn roctracer_flush_activity_expl(pool: *mut c_void) -> Status {
    wall(status::ERROR, || {
        status::of(match registration::pool(pool) {
            Ok(pool) => engage::flush(pool),
            // There are no records to deliver.
            Err(DEFAULT_POOL_UNDEFINED) => Ok(()),
            Err(status) => Err(status),
        })
    })
}

/// Delivers the default pool's records.
#[unsafe(no_mangle)]
pub extern "C" fn roctracer_flush_activity() -> Status {
    roctracer_flush_activity_expl(null_mut())
}

/// The record after a record.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roctracer_next_record(record: *const c_void, next: *mut *const c_void) -> Status {
    wall(status::ERROR, || {
        if record.is_null() || next.is_null() {
            return fail(
                INVALID_ARGUMENT,
                format_args!("there is no record, or no room for the next one's address"),
            );
        }
        // SAFETY: not null; the caller provides the memory.
        unsafe { next.write(record.wrapping_byte_add(SIZE)) };
        status::SUCCESS
    })
}

fn enable(domain: Domain, pool: *mut c_void) -> Result<()> {
    let operations = domain.operations();
    // A domain without reports needs no pool.
    if operations.is_empty() {
        return Ok(());
    }
    let pool = registration::pool(pool)?;
    possible(domain)?;
    engage::set_pool(domain, operations, Some(pool));
    Ok(())
}

fn disable(domain: Domain) {
    engage::set_pool(domain, domain.operations(), None);
}

fn set_operation(domain: u32, op: u32, pool: Option<Opened>) -> Result<()> {
    let domain = Domain::new(domain)?;
    let operations = domain.asked(op)?;
    if pool.is_some() {
        possible(domain)?;
    }
    engage::set_pool(domain, operations, pool);
    Ok(())
}

/// Enables records of an operation, to a pool, or to the default one for null.
#[unsafe(no_mangle)]
pub extern "C" fn roctracer_enable_op_activity_expl(domain: u32, op: u32, pool: *mut c_void) -> Status {
    wall(status::ERROR, || {
        let set = registration::pool(pool).and_then(|pool| set_operation(domain, op, Some(pool)));
        status::of(set)
    })
}

/// Enables records of an operation, to the default pool.
#[unsafe(no_mangle)]
pub extern "C" fn roctracer_enable_op_activity(domain: u32, op: u32) -> Status {
    roctracer_enable_op_activity_expl(domain, op, null_mut())
}

/// Enables records of all operations of a domain, to a pool, or to the default one for null.
#[unsafe(no_mangle)]
pub extern "C" fn roctracer_enable_domain_activity_expl(domain: u32, pool: *mut c_void) -> Status {
    wall(status::ERROR, || {
        status::of(Domain::new(domain).and_then(|domain| enable(domain, pool)))
    })
}

/// Enables records of all operations of a domain, to the default pool.
#[unsafe(no_mangle)]
pub extern "C" fn roctracer_enable_domain_activity(domain: u32) -> Status {
    roctracer_enable_domain_activity_expl(domain, null_mut())
}

/// Enables all records, to a pool, or to the default one for null.
#[unsafe(no_mangle)]
pub extern "C" fn roctracer_enable_activity_expl(pool: *mut c_void) -> Status {
    wall(status::ERROR, || {
        // Domains that this run-time cannot report are skipped.
        let enabled = domain::ALL
            .into_iter()
            .try_for_each(|domain| match enable(domain, pool) {
                Err(NOT_IMPLEMENTED) => Ok(()),
                other => other,
            });
        status::of(enabled)
    })
}

/// Enables all records, to the default pool.
#[unsafe(no_mangle)]
pub extern "C" fn roctracer_enable_activity() -> Status {
    roctracer_enable_activity_expl(null_mut())
}

/// Disables records of an operation.
#[unsafe(no_mangle)]
pub extern "C" fn roctracer_disable_op_activity(domain: u32, op: u32) -> Status {
    wall(status::ERROR, || status::of(set_operation(domain, op, None)))
}

/// Disables records of a domain.
#[unsafe(no_mangle)]
pub extern "C" fn roctracer_disable_domain_activity(domain: u32) -> Status {
    wall(status::ERROR, || status::of(Domain::new(domain).map(disable)))
}

/// Disables all records.
#[unsafe(no_mangle)]
pub extern "C" fn roctracer_disable_activity() -> Status {
    wall(status::ERROR, || {
        domain::ALL.into_iter().for_each(disable);
        status::SUCCESS
    })
}
