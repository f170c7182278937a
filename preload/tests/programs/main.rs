//! The collector in real programs: the library preloaded, what it wrote read back.
//!
//! Needs a C compiler and a tmpfs; without them each test says so and passes.

#![expect(clippy::unwrap_used, reason = "a test fails where something is missing")]

mod calls;
mod cancelled;
mod counters;
mod hsa_calls;
mod marks;
mod mpi;
mod place;
mod quiet;
mod raw_hsa;
mod rccl;
mod ring;
mod roctx_tables;
mod sites;
mod storm;
