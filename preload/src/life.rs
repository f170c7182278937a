//! Loading and unloading of the library.
//!
//! The constructor only looks at the environment, so that a shell or `cat` under roctop costs nothing. The destructor
//! takes the last times and marks the file as closed; what still comes after it is recorded all the same.

#![expect(unsafe_code, reason = "entries of the loader's tables of functions")]

use crate::{backend, config, guard, process, state, thread};

#[used]
#[unsafe(link_section = ".init_array")]
static LOAD: extern "C" fn() = load;

#[used]
#[unsafe(link_section = ".fini_array")]
static UNLOAD: extern "C" fn() = unload;

extern "C" fn load() {
    guard::wall((), || {
        let _errno = guard::Errno::keep();
        if config::config().is_none() {
            state::switch_off();
        } else {
            backend::at_load();
        }
    });
}

extern "C" fn unload() {
    guard::wall((), || {
        let _errno = guard::Errno::keep();
        if let Some(process) = process::get() {
            thread::aside(backend::last_drain);
            process.close();
        }
    });
}
