//! ROCTracer for programs that link it: libroctracer64.so.4.
//!
//! A program registers callbacks for the calls of HIP, HSA and ROC-TX, and opens pools that records of calls and of GPU
//! work are written to. How a call becomes a record: the run-time's own callback (`hip`), a stub in its function table
//! (`hsa`) or a registered callback (`roctx`) comes here, looks the operation up in a `table`, calls the program's
//! function and writes to a `pool`, whose thread hands full buffers to the program.
//!
//! Rules: a registered callback comes exactly as often as the call was made, before and after it; a record is handed
//! over whole and once; no function blocks on the GPU; a misused function returns a status and does nothing.
//!
//! The interface's names, values and layouts are those of the shipped library (`export`); what is inside is our own.
//! roctop's collector may watch the same program: it has the run-time's callback then and passes it on.
//!
//! Absent on purpose: PC samples, KFD's calls (both are only numbers in the interface), signal handlers.

#![expect(unsafe_code, reason = "a C interface over C run-times")]

mod clock;
pub mod control;
mod correlation;
mod domain;
pub mod export;
mod hip;
pub mod hsa;
mod loader;
mod lock;
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
