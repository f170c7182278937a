//! Questions to sessions and recordings, of people and of language models.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Options of a question.
#[derive(Debug, Args)]
pub struct Ask {
    /// A recording, a directory of recordings, a running session by its name or a process id, or a job as job:4711; then the
    /// question, as 'top kernels where dev=0 in last 10s limit 5'. The only running session if there is a question alone.
    #[arg(value_name = "WHERE QUESTION", required = true, num_args = 1..=2)]
    pub words: Vec<String>,
    /// Format.
    #[arg(long, value_enum, default_value_t, ignore_case = true)]
    pub format: AskFormat,
    /// Answer again every second, until the program ends.
    #[arg(long)]
    pub follow: bool,
}

/// Formats of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum AskFormat {
    /// Aligned columns with units.
    #[default]
    Table,
    /// JSON by docs/ask.schema.json; with --follow a line for each answer.
    Json,
    /// CSV in base units.
    Csv,
}

/// Options of the server for language models.
#[derive(Debug, Args)]
pub struct Mcp {
    /// Recordings below these directories can be asked too; without one, the running sessions alone.
    #[arg(value_name = "DIR")]
    pub directories: Vec<PathBuf>,
}
