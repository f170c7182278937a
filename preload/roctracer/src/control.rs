//! Starting and stopping of tracing.

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

/// Whether tracing is stopped. Marks are reported regardless.
#[inline]
pub(crate) fn is_stopped() -> bool {
    IS_STOPPED.load(Ordering::Relaxed)
}

/// Sets the functions to call on a start or stop.
pub(crate) fn set_functions(properties: &Properties) {
    AT_START.store(properties.at_start.map_or(0, |f| f as usize), Ordering::Relaxed);
    AT_STOP.store(properties.at_stop.map_or(0, |f| f as usize), Ordering::Relaxed);
}

/// Stops or starts tracing; a change calls the program's function.
pub(crate) fn switch(is_stopped: bool) {
    if IS_STOPPED.swap(is_stopped, Ordering::Relaxed) == is_stopped {
        return;
    }
    let function = if is_stopped { &AT_STOP } else { &AT_START };
    let function = function.load(Ordering::Relaxed) as *const c_void;
    if !function.is_null() {
        // SAFETY: `set_functions` stored a function of this type.
        let function = unsafe { std::mem::transmute::<*const c_void, Switched>(function) };
        // SAFETY: the program's own function.
        unsafe { function() };
    }
}
