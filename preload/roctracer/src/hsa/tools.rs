//! Before 5.3 a run-time loads only the tools that `HSA_TOOLS_LIB` names. There this library names itself when
//! something of HSA's is registered before HSA starts, and takes its name back when HSA has. It does the same when a
//! program registers something before it loads the run-times: the start of HSA is then the first sign of them.

use super::{install_late, is_loaded};
use crate::hip;
use crate::loader;
use crate::registration::REGISTERED;
use std::ffi::{CStr, CString, OsString, c_void};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::{Mutex, MutexGuard, PoisonError};

const VARIABLE: &CStr = c"HSA_TOOLS_LIB";

/// The variable.
enum State {
    AsItWas,
    /// With our name; what it was before, if it was there.
    Changed(Option<OsString>),
}

static STATE: Mutex<State> = Mutex::new(State::AsItWas);

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Something was registered or taken back.
pub(crate) fn ask() {
    let is_wanted = REGISTERED.has_hsa() || (REGISTERED.has_hip() && hip::hip().is_none());
    if is_loaded() || !is_wanted {
        return;
    }
    if REGISTERED.has_hsa() {
        install_late();
    }
    if is_loaded() || !needs_a_name() {
        return;
    }
    let mut state = state();
    let State::AsItWas = *state else { return };
    let Some(own) = loader::file_of(ask as fn() as *const c_void) else {
        return;
    };
    let value = std::env::var_os("HSA_TOOLS_LIB");
    let mut names = value.clone().unwrap_or_default().into_vec();
    if !names.is_empty() {
        names.push(b' ');
    }
    names.extend_from_slice(own.to_bytes());
    if let Ok(names) = CString::new(names) {
        *state = State::Changed(value);
        set(Some(&names));
    }
}

/// HSA has started.
pub(super) fn asked() {
    if let State::Changed(value) = std::mem::replace(&mut *state(), State::AsItWas) {
        set(value.and_then(|value| CString::new(value.as_bytes()).ok()).as_deref());
    }
}

fn set(value: Option<&CStr>) {
    // SAFETY: terminated strings. As with any change of the environment, a thread that reads it at the same time may
    // not; the program is at its start here.
    unsafe {
        match value {
            Some(value) => libc::setenv(VARIABLE.as_ptr(), value.as_ptr(), 1),
            None => libc::unsetenv(VARIABLE.as_ptr()),
        }
    };
}

/// Is the run-time older than the search for tools among loaded libraries, or not loaded yet, so that it may be? The
/// function came two releases later. Newer releases load a tool once that they find in both ways.
fn needs_a_name() -> bool {
    loader::loaded("libhsa-runtime64.so")
        .first()
        .is_none_or(|(library, _)| library.symbol(c"hsa_amd_spm_acquire").is_none())
}
