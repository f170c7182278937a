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

pub mod ask;
pub mod cli;
pub mod commands;
pub mod counters;
pub mod demo;
pub mod doctor;
pub mod job;
pub mod keep;
pub mod live;
pub mod log;
pub mod mcp;
mod private_dir;
pub mod process;
pub mod prometheus;
pub mod rocprofv3;
pub mod settings;
pub mod sites;
