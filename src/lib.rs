//! roctop: the viewer. Reads what collectors write, aggregates, shows, exports.
//!
//! ```text
//! session | recording ─ raw ─► decode ─ items ─► model::Store ─► Snapshot ─► ui, summary
//!                         └──► recording            └─ export::run::Run ─► export::csv
//! ```
#![forbid(unsafe_code)]

pub use roctop_bundle::{drop_in, embedded};
pub use roctop_export as export;
pub use roctop_model::{self as model, query, report};
pub use roctop_source::{progress, recording, session, sysfs};
pub use roctop_trace::{
    arguments, clock, clocks, decode, gauge, id, item, kernel_descriptor, kernel_name, pc_sampling, raw, topology,
    units,
};
pub use roctop_tui::{self as ui, waker};

// Data, in the order in which it flows.
pub mod config;
pub mod metrics;

// What the user asks for.
pub mod action;
pub mod cli;
pub mod counters;
pub mod counting;
pub mod devices;
pub mod doctor;
pub mod elf;
pub mod rank;
pub mod rocprofv3;
pub mod run;
pub mod screen;

// The edge: processes, terminals, threads.
pub mod death;
pub mod demo;
pub mod fate;
pub mod keeper;
pub mod launch;
pub mod level;
pub mod library;
pub mod misuse;
pub mod pump;
pub mod supervise;
pub mod yaml;
