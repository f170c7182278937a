//! The real ROCm run-time on the emulated GPU, unprofiled.
//!
//! HIP programs are compiled with hipcc and run with the preload: on the installed 5.2.3, and on every other release
//! that `tests/runtimes/fetch` has unpacked. Without hipcc a test prints a message and passes. No test asserts a
//! maximum time; a watchdog ends programs that hang. The collector has its own tests elsewhere.
#![expect(clippy::unwrap_used, reason = "what must not fail in a test is unwrapped")]

mod copies;
mod counters;
mod hostile;
mod launches;
mod machine;
mod processes;
mod rig;
mod truth;
