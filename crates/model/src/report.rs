//! Reports on a snapshot: the summary at the end of a run, the comparison of two runs, thresholds.

pub mod comparison;
pub mod summary;
pub mod threshold;
