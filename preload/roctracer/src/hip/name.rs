//! Names of HIP's calls and commands, from the loaded run-time: numbers differ between releases. While no run-time is
//! loaded, calls have the names of the list in hip-sys.

use super::run_time::hip;
use crate::registration::HIP_CALLS;
use hip_sys::api::NAMES;
use std::ffi::{CStr, c_char};
use std::sync::OnceLock;

/// The run-time's answer for an invalid number.
const UNKNOWN: &CStr = c"unknown";
/// The numbers have gaps; this many missing ones in a row are the end.
const GAP: u32 = 32;

/// The call's name, or `None`.
pub(crate) fn of_call(operation: u32) -> Option<&'static CStr> {
    let Some(hip) = hip() else {
        return NAMES
            .iter()
            .find(|(number, _)| *number == operation)
            .map(|(_, name)| *name);
    };
    let name = hip.api_name?;
    // SAFETY: the function takes any number and returns a static text or null.
    text(unsafe { name(operation) })
}

/// The name of a kind of command.
pub(crate) fn of_command(kind: u32) -> Option<&'static CStr> {
    let name = hip()?.command_name?;
    // SAFETY: as above.
    text(unsafe { name(kind) })
}

/// The call with this name.
pub(crate) fn call(name: &CStr) -> Option<u32> {
    if hip().is_none() {
        return NAMES
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(number, _)| *number);
    }
    (1..end()).find(|operation| of_call(*operation) == Some(name) && name != UNKNOWN)
}

/// The last call's number plus one. The table's capacity while no run-time is loaded.
pub(crate) fn end() -> u32 {
    static END: OnceLock<u32> = OnceLock::new();
    if hip().is_none_or(|hip| hip.api_name.is_none()) {
        return HIP_CALLS as u32;
    }
    *END.get_or_init(|| {
        let mut end = 1;
        for operation in 1..HIP_CALLS as u32 {
            if of_call(operation).is_some_and(|name| name != UNKNOWN) {
                end = operation + 1;
            } else if operation >= end + GAP {
                break;
            }
        }
        end
    })
}

/// A static string of the run-time; `None` for null.
fn text(name: *const c_char) -> Option<&'static CStr> {
    // SAFETY: not null, and a static terminated text.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) })
}
