//! roctop: the viewer. Reads what collectors write, aggregates, shows, exports.
//!
//! ```text
//! session | recording ─ raw ─► decode ─ items ─► model::Store ─► Snapshot ─► ui, summary
//!                         └──► recording            └─ export::run::Run ─► export::csv
//! ```
#![forbid(unsafe_code)]

pub use roctop_bundle::{drop_in, embedded};

// Data, in the order in which it flows.
pub mod arguments;
pub mod clock;
pub mod comparison;
pub mod config;
pub mod decode;
pub mod export;
pub mod format;
pub mod gauge;
pub mod gauges;
pub mod id;
pub mod item;
pub mod kernel_name;
pub mod metrics;
pub mod model;
pub mod now;
pub mod raw;
pub mod recording;
pub mod registers;
pub mod sampling;
pub mod session;
pub mod summary;
pub mod threshold;
pub mod topology;

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
pub mod filter;
pub mod keeper;
pub mod launch;
pub mod library;
pub mod misuse;
pub mod progress;
pub mod pump;
pub mod scenario;
pub mod supervise;
pub mod ui;
pub mod wake;
pub mod yaml;
