//! Finds the real functions of ours, and ours for real ones.

use super::{
    roctxGetThreadId, roctxMarkA, roctxNameHipDevice, roctxNameHipStream, roctxNameHsaAgent, roctxNameOsThread,
    roctxProfilerPause, roctxProfilerResume, roctxRangePop, roctxRangePushA, roctxRangeStartA, roctxRangeStop,
    roctxRegisterTracerCallback,
};
use crate::guard::Errno;
use crate::{real, thread};
use roctop_ring::sync::{AtomicU64, Ordering};
use std::ffi::{CStr, c_void};

/// A real function: 0 not looked up yet, 1 absent.
pub(super) struct Real {
    address: AtomicU64,
    name: &'static CStr,
}

/// The real functions.
macro_rules! reals {
    ($($place:ident $name:literal)*) => {
        $(pub(super) static $place: Real = Real { address: AtomicU64::new(0), name: $name };)*
        static ALL: [&Real; [$($name),*].len()] = [$(&$place),*];
    };
}

reals! {
    MARK c"roctxMarkA"
    PUSH c"roctxRangePushA"
    POP c"roctxRangePop"
    START c"roctxRangeStartA"
    STOP c"roctxRangeStop"
    PAUSE c"roctxProfilerPause"
    RESUME c"roctxProfilerResume"
    NAME_THREAD c"roctxNameOsThread"
    NAME_AGENT c"roctxNameHsaAgent"
    NAME_DEVICE c"roctxNameHipDevice"
    NAME_STREAM c"roctxNameHipStream"
    THREAD_ID c"roctxGetThreadId"
    LISTEN c"roctxRegisterTracerCallback"
}

impl Real {
    #[inline]
    pub(super) fn get(&self) -> Option<*mut c_void> {
        match self.address.load(Ordering::Relaxed) {
            0 => self.find(),
            1 => None,
            found => Some(found as *mut c_void),
        }
    }

    /// Looks all of them up at once, so that a signal handler never looks one up in the middle of malloc.
    #[cold]
    fn find(&self) -> Option<*mut c_void> {
        if thread::is_aside() {
            return None;
        }
        let _errno = Errno::keep();
        thread::aside(|| {
            for real in ALL {
                let found = real::next(real.name).or_else(|| in_library(real.name));
                let found = found.map_or(1, |address| address as u64);
                real.address.store(found, Ordering::Relaxed);
            }
        });
        let found = self.address.load(Ordering::Relaxed);
        (found > 1).then_some(found as *mut c_void)
    }
}

/// Start of the file names of libraries with these functions.
const LIBRARIES: [&str; 2] = ["libroctx64.so", "librocprofiler-sdk-roctx.so"];

/// The function in a library that only a part of the program sees, such as one imported by an interpreter.
fn in_library(name: &CStr) -> Option<*mut c_void> {
    let listen = roctxRegisterTracerCallback as unsafe extern "C" fn(_) as *mut c_void;
    let found = LIBRARIES
        .iter()
        .find_map(|library| real::loaded(library)?.0.symbol(name))?;
    (Some(found) != own(name) && found != listen).then_some(found)
}

/// Our function for the one that a program looked up in its own library. That library becomes the real one and stays
/// loaded. `None` if another library already is.
pub(crate) fn stand_in(name: &CStr, found: *mut c_void) -> Option<*mut c_void> {
    let ours = own(name)?;
    let real = ALL.iter().find(|real| real.name == name)?;
    if found == ours || !LIBRARIES.iter().any(|library| real::lies_in(found, library)) {
        return None;
    }
    if real.get().is_none() {
        real::pin(found);
        real.address.store(found as u64, Ordering::Release);
    }
    (real.address.load(Ordering::Acquire) == found as u64).then_some(ours)
}

fn own(name: &CStr) -> Option<*mut c_void> {
    Some(match name.to_bytes() {
        b"roctxMarkA" => roctxMarkA as unsafe extern "C" fn(_) as *mut c_void,
        b"roctxRangePushA" => roctxRangePushA as unsafe extern "C" fn(_) -> _ as *mut c_void,
        b"roctxRangePop" => roctxRangePop as extern "C" fn() -> _ as *mut c_void,
        b"roctxRangeStartA" => roctxRangeStartA as unsafe extern "C" fn(_) -> _ as *mut c_void,
        b"roctxRangeStop" => roctxRangeStop as extern "C" fn(_) as *mut c_void,
        b"roctxProfilerPause" => roctxProfilerPause as extern "C" fn(_) -> _ as *mut c_void,
        b"roctxProfilerResume" => roctxProfilerResume as extern "C" fn(_) -> _ as *mut c_void,
        b"roctxNameOsThread" => roctxNameOsThread as unsafe extern "C" fn(_) -> _ as *mut c_void,
        b"roctxNameHsaAgent" => roctxNameHsaAgent as unsafe extern "C" fn(_, _) -> _ as *mut c_void,
        b"roctxNameHipDevice" => roctxNameHipDevice as unsafe extern "C" fn(_, _) -> _ as *mut c_void,
        b"roctxNameHipStream" => roctxNameHipStream as unsafe extern "C" fn(_, _) -> _ as *mut c_void,
        b"roctxGetThreadId" => roctxGetThreadId as unsafe extern "C" fn(_) -> _ as *mut c_void,
        _ => return None,
    })
}

/// The real function with the given type.
macro_rules! typed {
    ($place:ident as $ty:ty) => {
        $place.get().map(|address| {
            // SAFETY: the symbol of this name has this type in every release of the library.
            unsafe { std::mem::transmute::<*mut c_void, $ty>(address) }
        })
    };
}
pub(super) use typed;
