//! The loaded run-time, and how it reports its calls.

use super::function::function;
use super::legacy;
use crate::loader::{self, Library};
use hip_sys::tracer::{ApiName, Register, tail};
use std::ffi::{c_char, c_void};
use std::sync::OnceLock;

/// `hipGetCmdName`.
type CommandName = unsafe extern "C" fn(kind: u32) -> *const c_char;

/// The loaded run-time.
pub(super) struct Hip {
    pub(super) api_name: Option<ApiName>,
    pub(super) command_name: Option<CommandName>,
    pub(super) interface: Interface,
}

/// How the run-time reports its calls.
pub(super) enum Interface {
    /// One callback; the offset of its structure's tail, if known. Work is reported without it too.
    Tracer(Register, Option<usize>),
    Legacy(legacy::Functions),
    /// No known interface.
    None,
}

static HIP: OnceLock<Hip> = OnceLock::new();

/// The run-time, once loaded.
pub(super) fn hip() -> Option<&'static Hip> {
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
        let interface = match register {
            Some(register) => Interface::Tracer(register, major(path).and_then(tail)),
            None => legacy::Functions::load(library).map_or(Interface::None, Interface::Legacy),
        };
        Self {
            api_name: function!(library, c"hipApiName"),
            command_name: function!(library, c"hipGetCmdName"),
            interface,
        }
    }
}

/// The number after `.so.` in the library's file name, following links.
fn major(path: &str) -> Option<u32> {
    let of = |name: &str| name.rsplit_once(".so.")?.1.split('.').next()?.parse().ok();
    of(path).or_else(|| of(std::fs::canonicalize(path).ok()?.to_str()?))
}
