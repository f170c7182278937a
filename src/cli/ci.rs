//! Several runs a side.

use super::program::grace;
use super::recordings::Reading;
use crate::model::report::runs::Format;
use clap::{Args, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// Options of comparing runs.
#[derive(Debug, Args)]
pub struct Ci {
    /// What to do.
    #[command(subcommand)]
    pub action: CiAction,
}

/// What to do with runs.
#[derive(Debug, Subcommand)]
pub enum CiAction {
    /// Run a program several times, and compare it with a baseline.
    Run(CiRun),
    /// Compare recordings or baselines: those before, `--`, those after.
    Compare(CiCompare),
}

/// Options of running a program several times.
#[derive(Debug, Args)]
pub struct CiRun {
    /// Number of runs, with --before of each program; a verdict needs 5.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// Begin no further run after TIME, as 10min; with --before: no further pair of runs.
    #[arg(long = "for", value_name = "TIME", value_parser = grace)]
    pub budget: Option<u64>,
    /// Compare with the runs in FILE.
    #[arg(long, value_name = "FILE", conflicts_with = "before")]
    pub baseline: Option<PathBuf>,
    /// Compare with runs of COMMAND, a program and its arguments in one word with quotes as a shell has them. Both run in turns.
    #[arg(long, value_name = "COMMAND")]
    pub before: Option<String>,
    /// Write the sums of these runs to FILE, as a baseline.
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Keep the recordings below DIR, as run-1, run-2, …, those of --before as before-1, …; else they are removed.
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the group's own options are documented")]
    pub report: CiReport,
    /// The program and its arguments. Its standard output goes to standard error.
    #[arg(trailing_var_arg = true, value_name = "APP ARGS", required = true)]
    pub words: Vec<OsString>,
}

/// Options of a comparison of runs.
#[derive(Debug, Args)]
pub struct CiCompare {
    /// The runs to compare with: a recording each, or baselines.
    #[arg(value_name = "BEFORE", required = true)]
    pub before: Vec<PathBuf>,
    /// The runs that are compared.
    #[arg(value_name = "AFTER", last = true, required = true)]
    pub after: Vec<PathBuf>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the group's own options are documented")]
    pub report: CiReport,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the group's own options are documented")]
    pub reading: Reading,
}

/// Options of the report.
#[derive(Debug, Args)]
pub struct CiReport {
    /// Exit with 3 when this holds, and only then, as 'avg(gemm) > +3%', 'step > +3%' or 'spills(gemm) > 0'; may be given
    /// several times.
    #[arg(long, value_name = "EXPR")]
    pub fail_if: Vec<String>,
    /// Format.
    #[arg(long, value_enum, default_value_t, ignore_case = true)]
    pub format: CiFormat,
}

/// Formats of the report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CiFormat {
    /// Aligned columns.
    #[default]
    Table,
    /// Markdown, for a pull request.
    Md,
    /// JSON.
    Json,
    /// JUnit XML.
    Junit,
}

impl From<CiFormat> for Format {
    fn from(format: CiFormat) -> Self {
        match format {
            CiFormat::Table => Self::Table,
            CiFormat::Md => Self::Md,
            CiFormat::Json => Self::Json,
            CiFormat::Junit => Self::Junit,
        }
    }
}
