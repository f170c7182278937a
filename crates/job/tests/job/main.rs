//! Processes of a job over TCP, TLS and gRPC on this machine, and those who should not be there.
//!
//! Limits of time are generous here; `benches/job.rs` measures.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod intruders;
mod kit;
mod live;
mod loss;
mod node;
mod private_keys;
mod whole;
