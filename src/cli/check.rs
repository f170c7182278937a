//! Traces of other tools.

use super::recordings::Reading;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Options of checking a trace.
#[derive(Debug, Args)]
pub struct Check {
    /// A trace of PyTorch's profiler (Kineto), or rocprofv3's JSON, kernel_trace.csv, pftrace or rocpd database; all but
    /// rocpd also packed by gzip.
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,
    /// Compare with this recording of the same program.
    #[arg(long, value_name = "REC")]
    pub against: Option<PathBuf>,
    /// Format.
    #[arg(long, value_enum, default_value_t, ignore_case = true)]
    pub format: CheckFormat,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the group's own options are documented")]
    pub reading: Reading,
}

/// Formats of the report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
    /// Lines.
    #[default]
    Table,
    /// JSON.
    Json,
}
