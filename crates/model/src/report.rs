//! Reports on a snapshot: summary, comparison of two runs, thresholds.

pub mod comparison;
pub mod summary;
pub mod threshold;
