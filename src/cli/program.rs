//! How a program is run, and what is recorded of it.

use super::{Look, ring_slots, size};
use crate::live::ingest::Symbols;
use crate::log;
use crate::process::launch::Output;
use crate::units;
use clap::{Args, ValueEnum};
use roctop_ring::level::Level;
use roctop_ring::session::{ENV_MPI, source, wanted};
use rustix::process::Signal;
use std::ffi::OsString;
use std::path::PathBuf;

/// Options of a run.
#[derive(Debug, Args)]
pub struct Run {
    /// Print a settings file with every setting (the same as `config print`).
    #[arg(long)]
    pub print_config: bool,
    /// No screen: print a summary when the program has ended.
    #[arg(long)]
    pub no_ui: bool,
    /// Write a recording into this directory as well
    ///
    /// It must not exist, or be empty. %rank%, %pid%, %hostname% and %job% are replaced. The screen then shows exact data
    /// of the whole run.
    #[arg(short, long, value_name = "REC")]
    pub output: Option<PathBuf>,
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
    pub recorded: Recorded,
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
pub(super) fn grace(text: &str) -> Result<u64, String> {
    units::time(text).ok_or_else(|| "expected a time, as 10s or 500ms".into())
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

/// What is recorded of a program.
#[derive(Debug, Args)]
pub struct Recorded {
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
}

/// Sizes of the rings.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "What is recorded")]
pub struct Ring {
    /// Bytes of a thread's ring, as 256K, 1M, 4M (a power of two).
    #[arg(long, value_name = "SIZE", value_parser = ring_slots)]
    pub ring: Option<u64>,
}

/// Gauges: what the driver reports on the GPUs.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Gauges and counters")]
pub struct Gauges {
    /// Samples of gauges a second (load, memory, clocks, power, temperatures); 0 reads none.
    #[arg(long, value_name = "HZ", default_value_t = Gauges::default().gauge_rate, value_parser = gauge_rate)]
    pub gauge_rate: f64,
}

impl Default for Gauges {
    fn default() -> Self {
        Self { gauge_rate: 2.0 }
    }
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
    /// Counters to collect, as SQ_WAVES,TCC_HIT[1].
    ///
    /// They are separated by commas or blanks, as in SQ_WAVES,TCC_HIT[1],SQ_WAVES:device=0; see 'roctop counters'. Kernels run
    /// one after the other while they are counted.
    #[expect(
        rustdoc::broken_intra_doc_links,
        reason = "help shows the text as it is, and the brackets are rocprofv3's"
    )]
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
    /// Record where in the program launches, copies and allocations are called, with their call paths.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    pub sites: Sites,
    /// Record calls of MPI; 'off' leaves the program's import tables as they are.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    pub mpi: Mpi,
    /// Write functions, files and lines of call paths into the recording, for machines that do not have the program's files.
    #[arg(long)]
    pub symbols: bool,
    /// Where the times of dispatches come from.
    #[arg(long, value_name = "SOURCE", value_enum, default_value_t)]
    pub dispatch_source: DispatchSource,
    /// How kernels are timed at first: 0 by roctop's signals in a file, 1 by those in memory, 2 by signals that HSA makes, 3 by
    /// the program's signals alone, 4 not at all (calls and copies only), 5 HIP calls only, 6 nothing is recorded. The collector
    /// steps down by itself where a level does not hold, and reports it. [default: 0 where the hardware allows it]
    #[arg(long, value_name = "N", value_parser = crate::process::level::parse)]
    pub level: Option<Level>,
}

/// Whether call sites are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Sites {
    /// They are; costs some nanoseconds for each call that launches, copies or allocates.
    #[default]
    On,
    /// They are not.
    Off,
}

/// Whether calls of MPI are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Mpi {
    /// They are; costs some ten nanoseconds a call.
    #[default]
    On,
    /// They are not.
    Off,
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
    /// What is recorded in addition, bits of `roctop_ring::session::wanted`.
    pub const fn wanted(self) -> u64 {
        let hsa = if self.hsa_trace { wanted::HSA_API } else { 0 };
        let arguments = if self.args { wanted::ARGUMENTS } else { 0 };
        let sites = match self.sites {
            Sites::On => wanted::SITES,
            Sites::Off => 0,
        };
        hsa | arguments | sites
    }

    /// What the collector reads in the environment of the program.
    pub fn variables(self) -> Vec<(OsString, OsString)> {
        match self.mpi {
            Mpi::On => Vec::new(),
            Mpi::Off => vec![(ENV_MPI.into(), "off".into())],
        }
    }

    /// Where the names of call paths go.
    pub const fn symbols(self) -> Symbols {
        if self.symbols {
            Symbols::Recorded
        } else {
            Symbols::Shown
        }
    }
}

/// Options of a recording.
#[derive(Debug, Args)]
pub struct Record {
    /// Directory of the recording; must not exist, or be empty. Several ranks get directories inside of it; %rank%,
    /// %pid%, %hostname% and %job% are replaced. With --keep, the directory of all recordings.
    #[arg(short, long, value_name = "REC")]
    pub output: PathBuf,
    /// Answer Prometheus here while the program runs: PORT of this machine alone, or ADDRESS:PORT.
    #[arg(long, value_name = "ADDRESS", value_parser = crate::prometheus::address)]
    pub metrics: Option<std::net::SocketAddr>,
    /// Keep this many bytes of records, as 500M or 20G; the oldest go first and are counted. With --keep, of all recordings.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_size: Option<u64>,
    /// How lines on standard error are written: text, or a JSON object each.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub log: log::Format,
    /// Report to the job, so that 'roctop job' shows all ranks on one screen. NAME where no scheduler or launcher names it.
    #[arg(
        long,
        value_name = "NAME",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        help_heading = "Job"
    )]
    pub job: Option<String>,
    /// Host name or address at which the node of rank 0 listens for the others. [default: its host name; a job of one
    /// node has no network]
    #[arg(long, value_name = "HOST", requires = "job", help_heading = "Job")]
    pub job_host: Option<String>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the group's own options are documented")]
    pub keeping: Keeping,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the group's own options are documented")]
    pub recorded: Recorded,
    /// The program and its arguments.
    #[arg(
        trailing_var_arg = true,
        help_heading = "Program",
        value_name = "APP ARGS",
        required = true
    )]
    pub words: Vec<OsString>,
}

/// The flight recorder.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Flight recorder")]
pub struct Keeping {
    /// Write nothing at first: hold the last TIME in memory, and write a recording into the directory of -o when a condition
    /// of --on becomes true, on --keep-signal, and on 'roctop keep SESSION'.
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub keep: Option<u64>,
    /// A condition, as 'step > 1.3*p50(step)', 'p99(gemm) > 2ms', 'error(hip*)', 'hang > 5s', 'exit(signal)'; several
    /// may be given.
    #[arg(long, value_name = "EXPR", requires = "keep")]
    pub on: Vec<String>,
    /// How long a recording goes on after its trigger.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = span, requires = "keep")]
    pub after: u64,
    /// Minimum time between the triggers of two recordings; triggers in between are counted.
    #[arg(long, value_name = "TIME", default_value = "1min", value_parser = grace, requires = "keep")]
    pub keep_interval: u64,
    /// Recordings that stay in the directory: the first one of each condition and the newest.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..), requires = "keep")]
    pub keep_recordings: u64,
    /// Memory for what is held. [default: 256M, or a tenth of the control group's memory limit if that is less]
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "keep")]
    pub keep_memory: Option<u64>,
    /// A Unix signal that writes a recording, as USR2, and is not passed on to the program.
    #[arg(long, value_name = "SIG", value_parser = keep_signal, requires = "keep")]
    pub keep_signal: Option<Signal>,
}

/// A time of a second or more, ns.
fn span(text: &str) -> Result<u64, String> {
    let nanos = units::time(text).filter(|nanos| (1_000_000_000..=86_400_000_000_000).contains(nanos));
    nanos.ok_or_else(|| "expected a time from 1s to 24h, as 30s or 5min".into())
}

/// A signal that roctop receives without harm.
fn keep_signal(text: &str) -> Result<Signal, String> {
    let upper = text.to_ascii_uppercase();
    match upper.strip_prefix("SIG").unwrap_or(&upper) {
        "USR1" | "10" => Ok(Signal::USR1),
        "USR2" | "12" => Ok(Signal::USR2),
        "HUP" | "1" => Ok(Signal::HUP),
        "QUIT" | "3" => Ok(Signal::QUIT),
        _ => Err("expected USR1, USR2, HUP or QUIT".into()),
    }
}

/// Options of the demo.
#[derive(Debug, Args)]
pub struct Demo {
    /// End after this many seconds; 0 goes on until a signal stops it.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    pub seconds: f64,
    /// No screen: print a summary on standard error when it ends.
    #[arg(long)]
    pub no_ui: bool,
    #[command(flatten)]
    #[expect(missing_docs, reason = "the group's own options are documented")]
    pub look: Look,
}
