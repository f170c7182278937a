//! Sessions that run, and recordings: what is done with them.

use super::{Gauges, Look, OnExit, size};
use crate::export;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Options of watching a running session.
#[derive(Debug, Args)]
pub struct Attach {
    /// The session's name, or the process id of a program in it; may be left out when there is only one.
    #[arg(value_name = "SESSION or PID")]
    pub which: Option<String>,
    /// What the screen does when the program has ended: stay, quit, or quit with a summary on standard error.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t, help_heading = "Screen")]
    pub on_exit: OnExit,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the group's own options are documented")]
    pub look: Look,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the group's own options are documented")]
    pub gauges: Gauges,
}

/// Options of watching a job.
#[derive(Debug, Args)]
pub struct Job {
    /// The job: the scheduler's number, or the name after --job=; without one, the user's jobs are listed.
    #[arg(value_name = "ID")]
    pub id: Option<String>,
    /// Write a key of the job to FILE: with it, a machine that does not share your home directory can watch the job.
    #[arg(
        long,
        value_name = "FILE",
        requires = "id",
        help_heading = "Without a shared home directory"
    )]
    pub write_key: Option<PathBuf>,
    /// Watch the job whose root listens there.
    #[arg(
        long,
        value_name = "HOST:PORT",
        requires = "key",
        conflicts_with = "id",
        help_heading = "Without a shared home directory"
    )]
    pub connect: Option<String>,
    /// The file that --write-key wrote.
    #[arg(
        long,
        value_name = "FILE",
        requires = "connect",
        help_heading = "Without a shared home directory"
    )]
    pub key: Option<PathBuf>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the group's own options are documented")]
    pub look: Look,
}

/// Options of writing what a session holds.
#[derive(Debug, Args)]
pub struct Keep {
    /// The session's name, or the process id of a program in it; may be left out when there is only one.
    #[arg(value_name = "SESSION or PID")]
    pub which: Option<String>,
}

/// Options of looking at recordings.
#[derive(Debug, Args)]
pub struct Open {
    /// Directories of recordings.
    #[arg(value_name = "REC", required = true)]
    pub recordings: Vec<PathBuf>,
    /// Only records of this time, as 1.5s..2s after the beginning: the index finds them.
    #[arg(long, value_name = "A..B", value_parser = crate::export::options::parse_range)]
    pub range: Option<(u64, u64)>,
    /// Go to the row of this id, from an answer of 'roctop ask'.
    #[arg(long, value_name = "ID")]
    pub at: Option<crate::model::ask::Id>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the group's own options are documented")]
    pub reading: Reading,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the group's own options are documented")]
    pub look: Look,
}

/// How a command reads recordings.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Reading {
    /// Threads that read and compute; the result is the same with any number. All available cores when not given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
}

/// Groups of an export's options.
const COLUMNS: &str = "Tables and columns";

const NAMES: &str = "Names of kernels";

const CHOICE: &str = "Which records";

/// Options of an export.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch as typed")]
pub struct Export {
    /// Directories of recordings, or of directories that hold some.
    #[arg(value_name = "REC", required = true)]
    pub recordings: Vec<PathBuf>,
    /// Formats.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "csv", ignore_case = true)]
    pub format: Vec<Format>,
    /// Directory for the files.
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    pub directory: PathBuf,
    /// Beginning of each file's name; the process id when not given.
    #[arg(short, long, value_name = "NAME")]
    pub output: Option<String>,
    /// Columns and names of which release: new (rocprofiler-sdk 1.0) or seed (rocprofv3 of ROCm 6.2).
    #[arg(long, value_enum, default_value = "new", ignore_case = true, help_heading = COLUMNS)]
    pub layout: Layout,
    /// pftrace: begin another file beyond SIZE, such as 500M, instead of 1.9 GB.
    #[arg(long, value_name = "SIZE", value_parser = crate::cli::size, help_heading = COLUMNS)]
    pub split: Option<u64>,
    /// Also a table of counters with a column for each.
    #[arg(long, help_heading = COLUMNS)]
    pub wide_counters: bool,
    /// Also tables of statistics, by name and by domain.
    #[arg(long, help_heading = COLUMNS)]
    pub stats: bool,
    /// Kernels by their mangled names.
    #[arg(short = 'M', long, conflicts_with_all = ["truncate_kernels"], help_heading = NAMES)]
    pub mangled_kernels: bool,
    /// Kernels without arguments, template arguments and name spaces.
    #[arg(short = 'T', long, help_heading = NAMES)]
    pub truncate_kernels: bool,
    /// Kernels by the ROC-TX range around their launch.
    #[arg(long, help_heading = NAMES)]
    pub kernel_rename: bool,
    /// Only records that pass, in the language of `/`.
    #[arg(long, value_name = "EXPR", help_heading = CHOICE)]
    pub filter: Option<String>,
    /// Only records of this time, as 1.5s..2s after the beginning.
    #[arg(long, value_name = "A..B", value_parser = crate::export::options::parse_range, help_heading = CHOICE)]
    pub range: Option<(u64, u64)>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the group's own options are documented")]
    pub reading: Reading,
    /// Memory for sorted records, as 2G; the others are sorted in temporary files in the output directory. [default: with up to four
    /// threads an eighth of what is available or of the control group's limit, at most 4G; with more threads none]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<u64>,
}

/// Whose columns and names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Layout {
    /// rocprofiler-sdk 1.0 and later.
    New,
    /// rocprofv3 of ROCm 6.2 and 6.3.
    Seed,
}

/// File formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// CSV files with rocprofv3's columns.
    Csv,
    /// JSON as rocprofv3 writes it.
    Json,
    /// A trace for Perfetto.
    Pftrace,
    /// An SQLite database as rocpd has it.
    Rocpd,
    /// Parquet files in folders by kind and host.
    Parquet,
    /// A trace as PyTorch's profiler (Kineto) writes it on ROCm.
    Kineto,
    /// A profile for pprof: GPU time by stack of ROC-TX ranges.
    Pprof,
    /// Collapsed stacks for flame graphs: GPU time by stack of ROC-TX ranges.
    Collapsed,
}

impl From<Format> for export::Format {
    fn from(format: Format) -> Self {
        match format {
            Format::Csv => Self::Csv,
            Format::Json => Self::Json,
            Format::Pftrace => Self::Pftrace,
            Format::Rocpd => Self::Rocpd,
            Format::Parquet => Self::Parquet,
            Format::Kineto => Self::Kineto,
            Format::Pprof => Self::Pprof,
            Format::Collapsed => Self::Collapsed,
        }
    }
}

/// Options of a summary.
#[derive(Debug, Args)]
pub struct Summary {
    /// Directories of recordings.
    #[arg(value_name = "REC", required = true)]
    pub recordings: Vec<PathBuf>,
    /// Format.
    #[arg(long, value_enum, default_value_t = SummaryFormat::Table, ignore_case = true)]
    pub format: SummaryFormat,
    /// Only what passes, in the language of `/`.
    #[arg(long, value_name = "EXPR")]
    pub filter: Option<String>,
    /// Exit with 3 when this holds, as 'p99(gemm) > 2ms' or 'skew(AllReduce) > 5ms'; may be given several times.
    #[arg(long, value_name = "EXPR")]
    pub fail_if: Vec<String>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the group's own options are documented")]
    pub reading: Reading,
}

/// Options of a comparison.
#[derive(Debug, Args)]
pub struct Diff {
    /// The recording to compare with.
    #[arg(value_name = "BEFORE")]
    pub before: PathBuf,
    /// The recording that is compared.
    #[arg(value_name = "AFTER")]
    pub after: PathBuf,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the group's own options are documented")]
    pub reading: Reading,
}

/// Options of a cut.
#[derive(Debug, Args)]
pub struct Cut {
    /// Directories of recordings.
    #[arg(value_name = "REC", required = true)]
    pub recordings: Vec<PathBuf>,
    /// Which time, as 1.5s..2s after the beginning.
    #[arg(long, value_name = "A..B", value_parser = crate::export::options::parse_range)]
    pub range: (u64, u64),
    /// Directory of the new recording; must not exist, or be empty.
    #[arg(short, long, value_name = "REC")]
    pub output: PathBuf,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the group's own options are documented")]
    pub reading: Reading,
}

/// Options of a merge.
#[derive(Debug, Args)]
pub struct Merge {
    /// Directories of recordings; the first one's clock counts.
    #[arg(value_name = "REC", required = true)]
    pub recordings: Vec<PathBuf>,
    /// Directory of the new recording; must not exist, or be empty.
    #[arg(short, long, value_name = "REC")]
    pub output: PathBuf,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the group's own options are documented")]
    pub reading: Reading,
}

/// Options of a recovery.
#[derive(Debug, Args)]
pub struct Recover {
    /// Name of the session.
    #[arg(value_name = "SESSION")]
    pub session: String,
    /// The recording to complete, when the session does not say where it is.
    #[arg(short, long, value_name = "REC")]
    pub output: Option<PathBuf>,
    /// Go on with the recording while programs of the session live.
    #[arg(long, hide = true)]
    pub follow: bool,
}

/// Formats of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SummaryFormat {
    /// Aligned columns.
    Table,
    /// JSON.
    Json,
    /// CSV: a row a kernel, copy and API function.
    Csv,
    /// Tables of Markdown.
    Md,
}
