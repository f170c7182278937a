//! ROCTracer for programs that link it: libroctracer64.so.4.
//!
//! A program registers callbacks for the calls of HIP, HSA and ROC-TX, and opens pools for records of calls and of GPU
//! work. A call becomes a record as follows: the run-time's own callback (`hip`), a stub in its function table (`hsa`)
//! or a registered callback (`roctx`) looks the operation up in a `table`, calls the program's function and writes to a
//! `pool`, whose thread delivers full buffers to the program.
//!
//! Rules: a registered callback is called exactly once before and once after each call; a record is delivered whole and
//! once; no function blocks on the GPU; a misused function returns a status and does nothing.
//!
//! Names, values and layouts of the interface are those of the shipped library (`export`); the implementation is
//! independent. Under roctop the collector owns the run-time's callback and forwards it.
//!
//! Excluded on purpose: PC samples and KFD's calls (both are only numbers in the interface), signal handlers.

#![expect(unsafe_code, reason = "a C interface over C run-times")]

mod async_handler;
mod clock;
pub mod control;
mod correlation;
mod domain;
mod engage;
pub mod export;
mod hip;
pub mod hsa;
mod loader;
mod lock;
mod operations;
pub mod pool;
mod record;
mod redirect;
pub mod registration;
mod roctx;
mod status;
mod table;
mod text;
mod thread;
mod wall;
