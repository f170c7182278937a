//! roctop: the viewer. Reads what collectors write, aggregates, shows, exports.
//!
//! ```text
//! session | recording ─ raw ─► decode ─ items ─► model::Store ─► Snapshot ─► ui, summary
//!                         └──► recording            └─ export::run::Run ─► export::csv
//! ```
#![forbid(unsafe_code)]

// Data, in the order in which it flows.
pub mod session;
pub mod recording;
pub mod raw;
pub mod decode;
pub mod clock;
pub mod registers;
pub mod kernel_name;
pub mod item;
pub mod model;
pub mod format;
pub mod export;
pub mod summary;
pub mod topology;

// What the user asks for.
pub mod cli;
pub mod action;
pub mod run;
pub mod screen;
pub mod doctor;

// The edge: processes, terminals, threads.
pub mod embedded;
pub mod launch;
pub mod supervise;
pub mod pump;
