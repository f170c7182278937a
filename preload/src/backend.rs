//! The ways in, each by what the loaded run-time offers, never by its version number.

pub mod roctx;
pub mod stream;

/// Takes what the GPU completed and nobody recorded yet; at the end of the process.
pub(crate) fn last_drain() {}
