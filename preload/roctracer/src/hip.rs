//! HIP: calls and GPU work, from the run-time's own callbacks.
//!
//! [`tracer`] is the single callback of 5.3.1 and later, [`legacy`] the callbacks by operation before it. The library
//! tests which of them the loaded run-time has, never its version number. [`launch`] names kernels where the run-time
//! does not, [`stall`] prevents its streams from hanging. [`name`] asks the run-time for names.

mod graph;
mod launch;
mod legacy;
pub(crate) mod name;
mod stall;
mod tracer;

use crate::loader::{self, Library};
use crate::registration::{self, REGISTERED};
use crate::status::{NOT_IMPLEMENTED, Result, fail};
use hip_sys::tracer::{ApiName, Register, tail};
use std::ffi::{CStr, c_char, c_void};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// `hipGetCmdName`.
type CommandName = unsafe extern "C" fn(kind: u32) -> *const c_char;

/// The loaded run-time.
pub(crate) struct Hip {
    api_name: Option<ApiName>,
    command_name: Option<CommandName>,
    way: Way,
}

/// How the run-time reports its calls.
enum Way {
    /// One callback; the offset of its structure's tail, if known. Work is reported without it too.
    Tracer(Register, Option<usize>),
    Legacy(legacy::Functions),
    /// No known way.
    None,
}

static HIP: OnceLock<Hip> = OnceLock::new();

/// A function of the run-time, by name.
macro_rules! function {
    ($library:expr, $name:literal) => {
        $library.symbol($name).map(|address| {
            // SAFETY: the symbol of this name has the type that the context says in every release.
            unsafe { std::mem::transmute::<*mut c_void, _>(address) }
        })
    };
}
use function;

/// The run-time, once loaded.
pub(crate) fn hip() -> Option<&'static Hip> {
    if let Some(hip) = HIP.get() {
        return Some(hip);
    }
    let (library, path) = loader::loaded("libamdhip64.so").into_iter().next()?;
    Some(HIP.get_or_init(|| Hip::new(library, &path.to_string_lossy())))
}

impl Hip {
    fn new(library: Library, path: &str) -> Self {
        // A preloaded collector has a function of this name too: it then owns the run-time's callback and serves both.
        let name = c"hipRegisterTracerCallback";
        let register = library
            .symbol(name)
            .map(|own| loader::first(name).unwrap_or(own))
            // SAFETY: the symbol of this name has this type in every release.
            .map(|address| unsafe { std::mem::transmute::<*mut c_void, Register>(address) });
        let way = match register {
            Some(register) => Way::Tracer(register, major(path).and_then(tail)),
            None => legacy::Functions::load(library).map_or(Way::None, Way::Legacy),
        };
        Self {
            api_name: function!(library, c"hipApiName"),
            command_name: function!(library, c"hipGetCmdName"),
            way,
        }
    }
}

/// The number after `.so.` in the library's file name, following links.
fn major(path: &str) -> Option<u32> {
    let of = |name: &str| name.rsplit_once(".so.")?.1.split('.').next()?.parse().ok();
    of(path).or_else(|| of(std::fs::canonicalize(path).ok()?.to_str()?))
}

static IS_ENGAGED: AtomicBool = AtomicBool::new(false);

/// Registrations for these calls have changed.
pub(crate) fn engage(operations: Range<u32>) {
    let Some(hip) = hip() else { return };
    match &hip.way {
        Way::Tracer(register, tail) => engage_tracer(*register, *tail),
        Way::Legacy(functions) => functions.engage(operations),
        Way::None => {}
    }
}

/// Registrations for this work have changed.
pub(crate) fn engage_work(operations: Range<u32>) {
    let Some(hip) = hip() else { return };
    match &hip.way {
        Way::Tracer(register, tail) => engage_tracer(*register, *tail),
        Way::Legacy(functions) => functions.engage_work(operations),
        Way::None => {}
    }
}

/// Fails if the run-time has no known way to report its calls.
pub(crate) fn can_report_calls() -> Result<()> {
    match hip().map(|hip| &hip.way) {
        Some(Way::None | Way::Tracer(_, None)) => Err(fail(
            NOT_IMPLEMENTED,
            format_args!("calls of this HIP release cannot be traced: the layout of its reports is not known"),
        )),
        _ => Ok(()),
    }
}

fn engage_tracer(register: Register, tail: Option<usize>) {
    // Read and applied under one lock: the last change is applied last.
    registration::locked(|| {
        let is_wanted = REGISTERED.has_hip();
        if IS_ENGAGED.swap(is_wanted, Ordering::AcqRel) != is_wanted {
            tracer::set(register, tail, is_wanted);
        }
    });
}

/// Called when HSA starts: HIP may have been loaded after the registrations.
pub(crate) fn engage_late() {
    if !IS_ENGAGED.load(Ordering::Acquire) && REGISTERED.has_hip() {
        engage(1..name::end());
        engage_work(0..crate::domain::HIP_OPS as u32);
    }
}

/// A static string of the run-time; `None` for null.
fn text(name: *const c_char) -> Option<&'static CStr> {
    // SAFETY: not null, and a static terminated text.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) })
}
