//! The traced program as a process: what can be loaded into it, its launch, its end, its place among the ranks.

pub mod elf;
pub mod exit_cause;
pub mod launch;
pub mod level;
pub mod library;
pub mod limits;
mod orphans;
pub mod rank;
pub mod reraise;
pub mod supervise;
pub mod witness;
