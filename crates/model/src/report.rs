//! Reports on a snapshot: summary, comparison of two runs and of several a side, thresholds.

pub mod comparison;
pub mod mpi;
pub mod runs;
pub mod summary;
pub mod threshold;
