//! Behaviour of roctop from outside, one module per area: programs are started, recorded, shown and exported.
//!
//! `cargo test --test integration terminal::` runs one area. Helpers that several areas use are in `kit`. Tests run in
//! parallel: each has its own directory, and none changes the environment of this process. Tests that need a separate process
//! are files beside this folder, each with its reason: `tests/soak.rs`, `tests/long_run.rs`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod kit;

mod applications;
mod ask;
mod bad_output;
mod check;
mod ci;
mod collectives;
mod communicator_questions;
mod counters;
mod derived;
mod docs;
mod doctor_gpu;
mod drop_in;
mod drop_in_install;
mod export;
mod filters;
mod gauges;
mod hostile_recording;
mod hostile_text;
mod job;
mod keep;
mod kernel_names;
mod launch;
mod mcp;
mod mpi;
mod placement;
mod real_run_time;
mod recording;
mod registers;
mod rocprofv3;
mod sites;
mod sql;
mod terminal;
