//! Before 5.3 a run-time loads only the tools named by `HSA_TOOLS_LIB`. This library adds itself there when an HSA
//! operation is registered before HSA starts, and removes itself once HSA has started. It does the same if a program
//! registers anything before it loads the run-times: the start of HSA is then their first sign.

use super::install::install_late;
use super::original::is_loaded;
use crate::hip;
use crate::loader;
use crate::registration::REGISTERED;
use std::ffi::{CStr, CString, OsString, c_void};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::{Mutex, MutexGuard, PoisonError};

const VARIABLE: &CStr = c"HSA_TOOLS_LIB";

/// State of the variable.
enum State {
    AsItWas,
    /// With our name; its previous value, if it was set.
    Changed(Option<OsString>),
}

static STATE: Mutex<State> = Mutex::new(State::AsItWas);

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registrations have changed.
pub(crate) fn ask() {
    let is_wanted = REGISTERED.has_hsa() || (REGISTERED.has_hip() && !hip::is_loaded());
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
    // SAFETY: terminated strings. As with any change of the environment, no other thread may read it at the same time;
    // the program is still starting.
    unsafe {
        match value {
            Some(value) => libc::setenv(VARIABLE.as_ptr(), value.as_ptr(), 1),
            None => libc::unsetenv(VARIABLE.as_ptr()),
        }
    };
}

/// Whether the run-time is older than the search for tools among loaded libraries, or not loaded and may be older. The
/// tested function is two releases younger. Newer releases load a tool once even if found in both ways.
fn needs_a_name() -> bool {
    loader::loaded("libhsa-runtime64.so")
        .first()
        .is_none_or(|(library, _)| library.symbol(c"hsa_amd_spm_acquire").is_none())
}
