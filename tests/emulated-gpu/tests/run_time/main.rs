//! The real ROCm run-time on the emulated GPU, unprofiled.
//!
//! HIP programs are compiled with hipcc and run under the preload: on the installed 5.2.3, and on every other release that
//! `tests/runtimes/fetch` has unpacked. Without hipcc a test says so and passes. No test asserts a maximum time; a
//! watchdog ends what hangs. What is absent here: the collector, which has tests of its own.
#![expect(clippy::unwrap_used, reason = "what must not fail in a test is unwrapped")]

mod copies;
mod counters;
mod hostile;
mod launches;
mod machine;
mod processes;
mod rig;
mod truth;
