//! Starting and stopping.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

static IS_STOPPED: AtomicBool = AtomicBool::new(false);
static AT_START: AtomicUsize = AtomicUsize::new(0);
static AT_STOP: AtomicUsize = AtomicUsize::new(0);

/// `roctracer_start_cb_t` and `roctracer_stop_cb_t`.
pub type Switched = unsafe extern "C" fn();

/// `roctracer_ext_properties_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Properties {
    /// Called when tracing starts after a stop.
    pub at_start: Option<Switched>,
    /// Called when it stops.
    pub at_stop: Option<Switched>,
}

/// Is tracing stopped? Marks come all the same.
#[inline]
pub(crate) fn is_stopped() -> bool {
    IS_STOPPED.load(Ordering::Relaxed)
}

/// Whom to tell.
pub(crate) fn tell(properties: &Properties) {
    AT_START.store(properties.at_start.map_or(0, |f| f as usize), Ordering::Relaxed);
    AT_STOP.store(properties.at_stop.map_or(0, |f| f as usize), Ordering::Relaxed);
}

/// Stops or starts; whoever is to be told is, if that was a change.
pub(crate) fn switch(is_stopped: bool) {
    if IS_STOPPED.swap(is_stopped, Ordering::Relaxed) == is_stopped {
        return;
    }
    let told = if is_stopped { &AT_STOP } else { &AT_START };
    let told = told.load(Ordering::Relaxed) as *const c_void;
    if !told.is_null() {
        // SAFETY: `tell` stored a function of this type.
        let told = unsafe { std::mem::transmute::<*const c_void, Switched>(told) };
        // SAFETY: the program's own function.
        unsafe { told() };
    }
}
