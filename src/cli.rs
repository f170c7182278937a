//! The command line as typed.

use crate::filter::{self, Filter};
use crate::launch::Output;
use crate::ui::Tab;
use clap::{Args, Parser, Subcommand, ValueEnum};
use roctop_ring::session::{source, wanted};
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

/// Live terminal profiling viewer for AMD ROCm applications.
///
/// `roctop ./app` runs the program and shows its kernels, copies, API calls and markers while it runs.
#[derive(Debug, Parser)]
#[command(
    name = "roctop",
    version,
    long_version = crate::embedded::version(),
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
#[command(after_help = "Examples:
  roctop ./app -n 100                    watch a program
  roctop                                 GPUs and running sessions
  roctop demo                            see the screen without ROCm and without a GPU
  roctop record -o run -- ./app          record without a screen (also under mpirun and srun)
  roctop open run                        look at a recording
  roctop export run --format csv -d out  files as rocprofv3 names them
  roctop summary run                     tables on standard output

Exit code: the program's own; the same signal if a signal ended it; 1 own failure, as a
recording that is incomplete, when the program ended with 0; 2 usage, 3 a threshold was exceeded, 126 and 127 as env.")]
pub struct Cli {
    /// What to do instead of running a program.
    #[command(subcommand)]
    pub action: Option<Action>,
    /// How to run a program.
    #[command(flatten)]
    pub run: Run,
}

/// What was asked for cannot be: the exit code is that of a wrong command line.
#[derive(Debug)]
pub struct Misuse(pub String);

impl fmt::Display for Misuse {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Misuse {}

/// The filter that `--filter` names, with presets written out.
///
/// Errors: it is none; the message has the column.
pub fn filter(text: &str, presets: &[(String, String)]) -> Result<Filter, Misuse> {
    let text = filter::with_presets(text, presets);
    Filter::parse(&text).map_err(|error| {
        Misuse(format!(
            "--filter: {} (column {} of '{text}')",
            error.message,
            error.column + 1
        ))
    })
}

/// Subcommands.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Run a program and watch it (the same as naming it directly).
    Run(Run),
    /// Watch a built-in training loop: the real collector, ring and screen; no ROCm and no GPU needed.
    Demo(Demo),
    /// Run a program without a screen and write a recording.
    #[command(after_help = "Examples:
  roctop record -o run -- ./app
  roctop record -o run --hsa-trace -- ./app     HSA calls too
  srun roctop record -o runs -- ./app           a recording for each rank below runs/
  roctop record -o run --max-size 2G -- ./app   the newest 2 GB only")]
    Record(Record),
    /// Watch a program that another roctop started.
    Attach(Attach),
    /// Look at recordings.
    #[command(after_help = "Examples:
  roctop open run
  roctop open runs/*                            all ranks on one clock
  roctop open run --range 1.5s..2s")]
    Open(Open),
    /// Write a recording's records to files that other tools read.
    #[command(after_help = "Examples:
  roctop export run --format csv,json -d out
  roctop export run --format pftrace --range 1.5s..2s
  roctop export run --filter 'gemm & dur>1ms' --format csv
  roctop export runs/* --format parquet -d lake")]
    Export(Export),
    /// rocprofv3's own command line and files; what follows is read as rocprofv3 reads it.
    #[command(disable_help_flag = true)]
    Rocprofv3 {
        /// Options, then `--` and the program.
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "OPTIONS -- APP ARGS"
        )]
        words: Vec<OsString>,
    },
    /// Print tables of recordings, and say whether thresholds were exceeded.
    #[command(after_help = "Examples:
  roctop summary run
  roctop summary run --format json
  roctop summary run --fail-if 'p99(gemm) > 2ms'")]
    Summary(Summary),
    /// Compare two recordings: which kernels became slower or faster.
    #[command(after_help = "Examples:
  roctop diff before after")]
    Diff(Diff),
    /// Write a stretch of time as a recording of its own.
    #[command(after_help = "Examples:
  roctop cut run --range 1.5s..2s -o part")]
    Cut(Cut),
    /// Write several recordings as one: ranks, hosts.
    #[command(after_help = "Examples:
  roctop merge run.0 run.1 -o both")]
    Merge(Merge),
    /// Complete the recording of a session whose roctop was killed, from what its rings still hold.
    Recover(Recover),
    /// List the agents of this machine.
    Devices(Devices),
    /// List the hardware counters of this machine's GPUs, and how many fit at once.
    Counters(Counters),
    /// Tell what will work here, and why not.
    Doctor(Doctor),
    /// Install the libraries that stand in for ROCTracer and ROC-TX, with their headers, below a directory.
    DropIn(DropIn),
    /// The settings file: print it with every setting, say where it is, check it.
    Config {
        /// What about it.
        #[arg(value_enum, default_value_t = ConfigWish::Print)]
        wish: ConfigWish,
    },
    /// Print a completion script for a shell.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page.
    Man,
}

/// What to do with the settings file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ConfigWish {
    /// Print a file with every setting as it is when nobody has set anything.
    Print,
    /// Print where the file is looked for.
    Path,
    /// Print a JSON schema of it.
    Schema,
    /// Say whether the file is valid.
    Check,
}

/// Options of a run.
#[derive(Debug, Args)]
pub struct Run {
    /// Print a settings file with every setting (the same as `config print`).
    #[arg(long)]
    pub print_config: bool,
    /// No screen: print a summary on standard error when the program ends.
    #[arg(long)]
    pub no_ui: bool,
    /// How long the program may take to end when it is asked to, before it is killed: after 's' of 'q', and after ctrl-c
    /// twice.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = grace, help_heading = "Program")]
    pub kill_timeout: u64,
    /// Start the program without the collector, to see whether roctop is in its way: output and gauges are shown, nothing
    /// is recorded.
    #[arg(long, help_heading = "Program", conflicts_with_all = ["pmc", "input", "pc_sampling"])]
    pub no_collect: bool,
    /// Where the program's output goes: auto (pty under the screen, else inherit), pty, pipe (no terminal for the program,
    /// and nothing to type), inherit, null or a file.
    #[arg(long, value_name = "WHERE", default_value = "auto", value_parser = output, help_heading = "Program")]
    pub app_io: Output,
    /// What the screen does when the program has ended: stay, quit, or quit with a summary on standard error.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t, help_heading = "Screen")]
    pub on_exit: OnExit,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the group's own options are documented")]
    pub look: Look,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the group's own options are documented")]
    pub ring: Ring,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the group's own options are documented")]
    pub domains: Domains,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the group's own options are documented")]
    pub gauges: Gauges,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the group's own options are documented")]
    pub counting: Counting,
    /// The program and its arguments.
    #[arg(
        trailing_var_arg = true,
        help_heading = "Program",
        value_name = "APP ARGS",
        required = false
    )]
    pub words: Vec<OsString>,
}

impl Run {
    /// Neither a program nor anything else to do was named.
    pub const fn is_nothing(&self) -> bool {
        self.words.is_empty() && !self.print_config
    }
}

/// A time as 10s or 500ms, ns.
fn grace(text: &str) -> Result<u64, String> {
    crate::ui::palette::time(text).ok_or_else(|| "expected a time, as 10s or 500ms".into())
}

/// What the screen does when the program has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OnExit {
    /// It stays until the user leaves.
    #[default]
    Stay,
    /// It closes.
    Quit,
    /// It closes, and a summary goes to standard error.
    Summary,
}

/// Where output goes; what is none of the words is a file.
#[expect(clippy::unnecessary_wraps, reason = "as the command line's parser wants it")]
fn output(text: &str) -> Result<Output, String> {
    Ok(match text {
        "auto" => Output::Auto,
        "pty" => Output::Terminal,
        "pipe" => Output::Pipe,
        "inherit" => Output::Inherit,
        "null" => Output::File("/dev/null".into()),
        file => Output::File(file.into()),
    })
}

/// How the screen looks.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Screen")]
pub struct Look {
    /// Theme: dark, light, high-contrast, okabe-ito, terminal, mono, or the path of a theme's file.
    #[arg(long, value_name = "NAME")]
    pub theme: Option<String>,
    /// When to use colours.
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    pub color: Color,
    /// Filter to start with, in the language of `/`; without a screen only what passes is in the summary.
    #[arg(long, value_name = "EXPR")]
    pub filter: Option<String>,
    /// View to start with: overview, timeline, kernels, copies, api, counters, devices, markers, processes, log, alerts,
    /// running, steps, diff, memory or samples.
    #[arg(long, value_name = "NAME", value_parser = view)]
    pub view: Option<Tab>,
    /// Characters: auto (by locale and terminal), unicode or ascii.
    #[arg(long, value_enum, default_value_t)]
    pub glyphs: Glyphs,
    /// Frames a second at most, 1 to 10.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=10))]
    pub fps: Option<u32>,
    /// Bytes a second to the terminal at most, as 8K; 0 sets no limit. Over SSH it is 8K unless this is given.
    #[arg(long, value_name = "BYTES", value_parser = most_bytes)]
    pub max_bps: Option<u64>,
}

impl Default for Look {
    fn default() -> Self {
        Self {
            theme: None,
            color: Color::Auto,
            filter: None,
            view: None,
            glyphs: Glyphs::default(),
            fps: None,
            max_bps: None,
        }
    }
}

/// Characters that are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Glyphs {
    /// By the locale, the terminal and the settings.
    #[default]
    Auto,
    /// All.
    Unicode,
    /// ASCII only.
    Ascii,
}

fn view(text: &str) -> Result<Tab, String> {
    let known = Tab::ALL
        .into_iter()
        .find(|tab| tab.title().1.eq_ignore_ascii_case(text));
    known.ok_or_else(|| {
        let names: Vec<String> = Tab::ALL.iter().map(|tab| tab.title().1.to_lowercase()).collect();
        format!("views are {}", names.join(", "))
    })
}

fn most_bytes(text: &str) -> Result<u64, String> {
    if text == "0" { Ok(0) } else { size(text) }
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// By terminal, NO_COLOR and CLICOLOR_FORCE.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Sizes of the rings.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "What is recorded")]
pub struct Ring {
    /// Bytes of a thread's ring, as 256K, 1M, 4M (a power of two).
    #[arg(long, value_name = "SIZE", value_parser = ring_slots)]
    pub ring: Option<u64>,
}

/// Gauges: what the driver tells of the GPUs.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Gauges and counters")]
pub struct Gauges {
    /// Samples of gauges a second (load, memory, clocks, power, temperatures); 0 reads none.
    #[arg(long, value_name = "HZ", default_value_t = 2.0, value_parser = gauge_rate)]
    pub gauge_rate: f64,
}

/// A rate between 0 and 100 a second.
fn gauge_rate(text: &str) -> Result<f64, String> {
    let rate: Option<f64> = text.parse().ok().filter(|rate| (0.0..=100.0).contains(rate));
    rate.ok_or_else(|| "expected a number of samples a second from 0 to 100".into())
}

/// Hardware counters.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Gauges and counters")]
pub struct Counting {
    /// Counters to collect, separated by commas or blanks, as SQ_WAVES,TCC_HIT[1],SQ_WAVES:device=0; see 'roctop counters'. Kernels run one
    /// after the other while they are counted.
    #[arg(long, value_name = "COUNTERS")]
    pub pmc: Vec<String>,
    /// The same from a file: 'pmc:' lines (.txt), or jobs (.yaml, .json); one pass each.
    #[arg(short, long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// More definitions of counters, a YAML file as rocprofv3 takes it.
    #[arg(long, value_name = "FILE")]
    pub extra_counters: Option<PathBuf>,
    /// Read the counters of whole GPUs again and again, and let kernels run as they are.
    #[arg(long)]
    pub pmc_device: bool,
    /// Readings of whole GPUs a second.
    #[arg(long, value_name = "HZ", default_value_t = 10.0, value_parser = pmc_rate)]
    pub pmc_rate: f64,
    /// Sample program counters as METHOD,UNIT,INTERVAL, as host_trap,time,100; 'roctop counters' lists what GPUs offer.
    #[arg(long, value_name = "HOW")]
    pub pc_sampling: Option<String>,
    /// Count only kernels of these functions.
    #[arg(long, value_name = "NAMES")]
    pub kernel_names: Vec<String>,
    /// Count only these of each kernel's dispatches, as [1-3,7].
    #[arg(long, value_name = "RANGES")]
    pub kernel_iteration_range: Vec<String>,
}

/// A rate between 0.1 and 1000 a second.
fn pmc_rate(text: &str) -> Result<f64, String> {
    let rate: Option<f64> = text.parse().ok().filter(|rate| (0.1..=1000.0).contains(rate));
    rate.ok_or_else(|| "expected a number of readings a second from 0.1 to 1000".into())
}

/// Options of the list of counters.
#[derive(Debug, Args)]
pub struct Counters {
    /// Only these, with the passes that they take.
    #[arg(value_name = "COUNTERS")]
    pub names: Vec<String>,
    /// What was counted of each kernel in these recordings, all passes together, in place of a list.
    #[arg(long, value_name = "REC", num_args = 1.., conflicts_with = "names")]
    pub of: Vec<PathBuf>,
    /// More definitions of counters, a YAML file as rocprofv3 takes it.
    #[arg(long, value_name = "FILE")]
    pub extra_counters: Option<PathBuf>,
    /// How: info (as rocprofv3 -L), table, csv or json.
    #[arg(long, value_enum, default_value_t = CountersFormat::Info, ignore_case = true)]
    pub format: CountersFormat,
    /// Metrics that roctop computes from counters, with formula and source.
    #[arg(long)]
    pub metrics: bool,
    /// Write the two CSV files of rocprofv3 -L (ROCm 6.2) here.
    #[arg(short, long, value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Beginning of their names.
    #[arg(short, long, value_name = "NAME")]
    pub output: Option<String>,
}

/// Layouts of the list of counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CountersFormat {
    /// As rocprofv3 -L.
    Info,
    /// One line a counter.
    Table,
    /// CSV: basic counters, then derived ones.
    Csv,
    /// JSON.
    Json,
}

/// What is recorded.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "What is recorded")]
pub struct Domains {
    /// Record HSA calls as well: every entry of the run-time's tables.
    #[arg(long)]
    pub hsa_trace: bool,
    /// Record the arguments of HIP calls as well; costs some nanoseconds and bytes a call.
    #[arg(long)]
    pub args: bool,
    /// Where the times of dispatches come from.
    #[arg(long, value_name = "SOURCE", value_enum, default_value_t)]
    pub dispatch_source: DispatchSource,
}

/// Where the times of dispatches come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DispatchSource {
    /// HSA's queues; HIP's own records where HSA cannot be seen.
    #[default]
    Auto,
    /// HIP's own records (5.3.1 and later): no geometry, no queue, none of the run-time's own kernels.
    Hip,
    /// HSA's queues, intercepted.
    Hsa,
}

impl DispatchSource {
    /// The control file's number for it.
    pub const fn number(self) -> u64 {
        match self {
            Self::Auto => source::AUTO,
            Self::Hip => source::HIP,
            Self::Hsa => source::HSA,
        }
    }
}

impl Domains {
    /// What is recorded besides the usual, bits of `roctop_ring::session::wanted`.
    pub const fn wanted(self) -> u64 {
        let hsa = if self.hsa_trace { wanted::HSA_API } else { 0 };
        let arguments = if self.args { wanted::ARGUMENTS } else { 0 };
        hsa | arguments
    }
}

/// Options of a recording.
#[derive(Debug, Args)]
pub struct Record {
    /// Directory of the recording; must not exist, or be empty. Several ranks get directories inside of it; %rank%,
    /// %pid%, %hostname% and %job% are replaced.
    #[arg(short, long, value_name = "REC")]
    pub output: PathBuf,
    /// Answer Prometheus here while the program runs: PORT of this machine alone, or ADDRESS:PORT.
    #[arg(long, value_name = "ADDRESS", value_parser = crate::metrics::address)]
    pub metrics: Option<std::net::SocketAddr>,
    /// Keep so many bytes of records, as 500M or 20G; the oldest go first and are counted.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_size: Option<u64>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the group's own options are documented")]
    pub ring: Ring,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the group's own options are documented")]
    pub domains: Domains,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the group's own options are documented")]
    pub gauges: Gauges,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the group's own options are documented")]
    pub counting: Counting,
    /// The program and its arguments.
    #[arg(
        trailing_var_arg = true,
        help_heading = "Program",
        value_name = "APP ARGS",
        required = true
    )]
    pub words: Vec<OsString>,
}

/// Options of the demo.
#[derive(Debug, Args)]
pub struct Demo {
    /// End after this many seconds; 0 goes on until told to stop.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    pub seconds: f64,
    /// No screen: print a summary on standard error when it ends.
    #[arg(long)]
    pub no_ui: bool,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the group's own options are documented")]
    pub look: Look,
}

/// Options of watching a running session.
#[derive(Debug, Args)]
pub struct Attach {
    /// The session's name, or the process id of a program in it; may be left out when there is only one.
    #[arg(value_name = "SESSION or PID")]
    pub which: Option<String>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the group's own options are documented")]
    pub look: Look,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the group's own options are documented")]
    pub gauges: Gauges,
}

/// Options of looking at recordings.
#[derive(Debug, Args)]
pub struct Open {
    /// Directories of recordings.
    #[arg(value_name = "REC", required = true)]
    pub recordings: Vec<PathBuf>,
    /// Only records of this time, as 1.5s..2s after the beginning: the index finds them.
    #[arg(long, value_name = "A..B", value_parser = crate::export::choice::parse_range)]
    pub range: Option<(u64, u64)>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the group's own options are documented")]
    pub look: Look,
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
    #[arg(long, value_name = "A..B", value_parser = crate::export::choice::parse_range, help_heading = CHOICE)]
    pub range: Option<(u64, u64)>,
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
    /// Parquet files in folders by kind, host and rank.
    Parquet,
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
    /// Exit with 3 when this holds, as 'p99(gemm) > 2ms'; may be given several times.
    #[arg(long, value_name = "EXPR")]
    pub fail_if: Vec<String>,
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
}

/// Options of a cut.
#[derive(Debug, Args)]
pub struct Cut {
    /// Directories of recordings.
    #[arg(value_name = "REC", required = true)]
    pub recordings: Vec<PathBuf>,
    /// Which time, as 1.5s..2s after the beginning.
    #[arg(long, value_name = "A..B", value_parser = crate::export::choice::parse_range)]
    pub range: (u64, u64),
    /// Directory of the new recording; must not exist, or be empty.
    #[arg(short, long, value_name = "REC")]
    pub output: PathBuf,
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

/// Options of the list of agents.
#[derive(Debug, Args)]
pub struct Devices {
    /// Read the driver's files below this directory instead of `/`.
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub root: PathBuf,
    /// Also gauges that are not there, with the reason.
    #[arg(long)]
    pub all: bool,
    /// As JSON.
    #[arg(long)]
    pub json: bool,
}

/// Options of the doctor.
#[derive(Debug, Args)]
pub struct Doctor {
    /// A program to look at.
    #[arg(value_name = "APP")]
    pub app: Option<OsString>,
}

/// Options of the drop-in libraries' installation.
#[derive(Debug, Args)]
pub struct DropIn {
    /// The headers alone.
    #[arg(long)]
    pub headers: bool,
    /// The directory, such as /opt/rocm or $HOME/.local: libraries go to lib, headers to include/roctracer.
    #[arg(value_name = "PREFIX")]
    pub prefix: PathBuf,
}

/// A number of bytes: 256K, 20G.
fn size(text: &str) -> Result<u64, String> {
    let lower = text.to_ascii_lowercase();
    let (digits, factor) = match lower.trim_end_matches('b').trim_end_matches('i') {
        number if number.ends_with('k') => (&number[..number.len() - 1], 1u64 << 10),
        number if number.ends_with('m') => (&number[..number.len() - 1], 1 << 20),
        number if number.ends_with('g') => (&number[..number.len() - 1], 1 << 30),
        number if number.ends_with('t') => (&number[..number.len() - 1], 1 << 40),
        number => (&lower[..number.len()], 1),
    };
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    bytes
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| format!("'{text}' is no size; expected one such as 256K, 1M or 20G"))
}

/// Slots of a ring of so many bytes.
fn ring_slots(text: &str) -> Result<u64, String> {
    let bytes = size(text)?;
    if !(4096..=1 << 30).contains(&bytes) || !bytes.is_power_of_two() {
        return Err("expected a power of two between 4K and 1G".into());
    }
    Ok(bytes / 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn what_follows_the_program_belongs_to_it() {
        let cli = Cli::try_parse_from(["roctop", "--no-ui", "./app", "--no-ui", "-x", "record"]).unwrap();
        assert!(cli.run.no_ui);
        assert_eq!(cli.run.words, ["./app", "--no-ui", "-x", "record"]);
        assert!(Cli::try_parse_from(["roctop", "--nonsense", "./app"]).is_err());
        let cli = Cli::try_parse_from(["roctop", "record", "-o", "r", "--", "./app", "-o"]).unwrap();
        assert!(matches!(cli.action, Some(Action::Record(record)) if record.words.len() == 2));
    }

    #[test]
    fn ring_sizes_are_powers_of_two() {
        assert_eq!(ring_slots("1M"), Ok(16384));
        assert_eq!(ring_slots("256KiB"), Ok(4096));
        for wrong in ["", "x", "3M", "-1", "1", "99999999999999999999G"] {
            assert!(ring_slots(wrong).is_err(), "{wrong}");
        }
    }
}
