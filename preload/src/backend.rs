//! Back-ends: entry points for each API, chosen by what the loaded run-time offers, never by its version number.

pub mod hip;
pub mod hsa;
#[cfg(target_arch = "x86_64")]
mod lookup;
#[cfg(target_arch = "x86_64")]
mod mpi;
#[cfg(target_arch = "x86_64")]
pub mod register;
pub mod roctracer;
pub mod roctx;
pub mod sdk;
mod unload;
#[cfg(target_arch = "x86_64")]
pub(crate) mod weak;

/// Takes completed GPU work that nobody has recorded; called at the end of the process, before `exit` and in the
/// destructor.
pub(crate) fn last_drain() {
    hip::activity::settle();
    hsa::harvest::last(hsa::harvest::End::Exit);
    hsa::code::finish_all();
}

/// Starts the back-ends that an environment variable requests; called when the library is loaded.
pub(crate) fn at_load() {
    hsa::harvest::at_load();
    sdk::at_load();
    #[cfg(target_arch = "x86_64")]
    mpi::at_load();
}
