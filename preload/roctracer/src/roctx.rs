//! Marks and ranges: one callback in libroctx64, forwarded to the program's.

use crate::domain::Domain;
use crate::loader;
use crate::registration::{self, REGISTERED};
use crate::wall::wall;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

type Tracer = unsafe extern "C" fn(domain: u32, op: u32, data: *mut c_void) -> c_int;
type Register = unsafe extern "C" fn(Option<Tracer>);

/// Address of `roctxRegisterTracerCallback`; 0 until found.
static REGISTER: AtomicUsize = AtomicUsize::new(0);

/// Registers or removes the callback, by the current registrations. Does nothing while no ROC-TX library is loaded.
pub(crate) fn engage() {
    let register = match REGISTER.load(Ordering::Relaxed) {
        0 => match find() {
            Some(found) => {
                REGISTER.store(found, Ordering::Relaxed);
                found
            }
            None => return,
        },
        known => known,
    };
    // SAFETY: the address of the function of this name, which has this type.
    let register = unsafe { std::mem::transmute::<*const c_void, Register>(register as *const c_void) };
    registration::locked(|| {
        let tracer = (!REGISTERED.roctx.is_empty()).then_some(marked as Tracer);
        // SAFETY: this library stays loaded once something is registered.
        unsafe { register(tracer) };
    });
}

fn find() -> Option<usize> {
    let name = c"roctxRegisterTracerCallback";
    let own = || {
        loader::loaded("libroctx64.so")
            .into_iter()
            .find_map(|(library, _)| library.symbol(name))
    };
    Some(loader::first(name).or_else(own)? as usize)
}

unsafe extern "C" fn marked(_domain: u32, op: u32, data: *mut c_void) -> c_int {
    wall(-1, || {
        let Some(words) = REGISTERED.roctx.get(op) else {
            return -1;
        };
        if !data.is_null() {
            let (function, argument) = registration::callback(words);
            // SAFETY: the program's callback, called as the interface says.
            unsafe { function(Domain::Roctx as u32, op, data, argument) };
        }
        0
    })
}
