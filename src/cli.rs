//! The command line as typed.

mod ask;
mod check;
mod ci;
mod look;
mod program;
mod recordings;
pub mod usage_error;

pub use ask::{Ask, AskFormat, Mcp};
pub use check::{Check, CheckFormat};
pub use ci::{Ci, CiAction, CiCompare, CiFormat, CiReport, CiRun};
pub use look::{Color, Glyphs, Look, Views};
pub use program::{Counting, Demo, DispatchSource, Domains, Gauges, Keeping, OnExit, Record, Recorded, Ring, Run};
pub use recordings::{
    Attach, Cut, Diff, Export, Format, Job, Keep, Layout, Merge, Open, Reading, Recover, Summary, SummaryFormat,
};

use crate::cli::usage_error::UsageError;
use crate::query::{self, Filter};
use crate::units::{self, Quantity};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, CommandFactory, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
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
#[command(after_long_help = "Examples:
  roctop ./app -n 100                    watch a program
  roctop                                 GPUs and running sessions, live
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

/// Options that `-h` leaves out, by their names in code; `--help` has all.
const HIDDEN_IN_SHORT_HELP: [&str; 38] = [
    "words",
    "theme",
    "view",
    "hsa_trace",
    "sites",
    "mpi",
    "symbols",
    "print_config",
    "kill_timeout",
    "no_collect",
    "on_exit",
    "color",
    "layout",
    "glyphs",
    "fps",
    "max_bps",
    "ring",
    "args",
    "dispatch_source",
    "level",
    "gauge_rate",
    "input",
    "extra_counters",
    "pmc_device",
    "pmc_rate",
    "pc_sampling",
    "kernel_names",
    "kernel_iteration_range",
    "metrics",
    "max_size",
    "app_io",
    "log",
    "after",
    "keep_interval",
    "keep_recordings",
    "keep_memory",
    "keep_signal",
    "job_host",
];

/// The command line as clap knows it: `-h` fits a screen.
pub fn command() -> Command {
    let shorten = |arg: Arg| {
        let is_hidden = HIDDEN_IN_SHORT_HELP.contains(&arg.get_id().as_str());
        arg.hide_short_help(is_hidden)
    };
    let command = Cli::command().mut_args(shorten);
    command.mut_subcommands(|command| command.mut_args(shorten))
}

/// Whether all options that were given are of the screen, as `--view devices`.
pub fn has_only_look(matches: &ArgMatches) -> bool {
    let look = Look::augment_args(Command::new("look"));
    let command = Cli::command();
    let mut given = command
        .get_arguments()
        .filter(|arg| matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine));
    given.all(|arg| look.get_arguments().any(|known| known.get_id() == arg.get_id()))
}

/// The names of the subcommands.
pub fn names() -> Vec<String> {
    let command = Cli::command();
    command
        .get_subcommands()
        .map(|known| known.get_name().to_string())
        .collect()
}

/// What clap says of a wrong command line, in the words of all other errors.
pub fn wrong(error: &clap::Error) -> String {
    let text = error.to_string();
    text.replacen("error: ", "roctop: ", 1)
}

/// The filter that `--filter` names, with presets written out.
///
/// Errors: it is none; the message has the column.
pub fn filter(text: &str, presets: &[(String, String)]) -> Result<Filter, UsageError> {
    let text = query::with_presets(text, presets);
    Filter::parse(&text).map_err(|error| {
        UsageError(format!(
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
    /// Watch a built-in training loop; no ROCm and no GPU needed.
    ///
    /// Collector, ring and screen are the real ones.
    Demo(Demo),
    /// Run a program without a screen and write a recording.
    #[command(after_help = "Examples:
  roctop record -o run -- ./app
  roctop record -o run --hsa-trace -- ./app     HSA calls too
  srun roctop record -o runs -- ./app           a recording for each rank below runs/
  roctop record -o run --max-size 2G -- ./app   the newest 2 GB only
  roctop record --keep 30s --on 'hang > 5s' -o runs -- ./serve   only what was before a hang")]
    Record(Record),
    /// Watch a program that another roctop started.
    Attach(Attach),
    /// Write what a session that runs with --keep holds.
    ///
    /// It prints the recording's directory when the recording is complete.
    Keep(Keep),
    /// Watch all ranks of a job; list the user's jobs.
    #[command(after_help = "Examples:
  srun roctop record --job -o runs -- ./app     the ranks report to their job
  roctop job                                    your jobs
  roctop job 4711                               all ranks on one screen")]
    Job(Job),
    /// Look at recordings.
    #[command(after_help = "Examples:
  roctop open run
  roctop open runs/*                            all ranks on one clock
  roctop open run --range 1.5s..2s
  roctop open run --at kernels:3fa9c2d17b       a row of an answer of 'roctop ask'")]
    Open(Open),
    /// Write a recording's records to files that other tools read.
    #[command(after_help = "Examples:
  roctop export run --format csv,json -d out
  roctop export run --format pftrace --range 1.5s..2s
  roctop export run --filter 'gemm & dur>1ms' --format csv
  roctop export runs/* --format parquet -d lake")]
    Export(Export),
    /// Take rocprofv3's own command line and write its files.
    ///
    /// What follows is read as rocprofv3 reads it.
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
    /// Print tables of recordings; check thresholds.
    #[command(after_help = "Examples:
  roctop summary run
  roctop summary run --format json
  roctop summary run --fail-if 'p99(gemm) > 2ms'")]
    Summary(Summary),
    /// Compare two recordings: which kernels became slower or faster.
    #[command(after_help = "Examples:
  roctop diff before after")]
    Diff(Diff),
    /// Is a trace that another tool wrote complete?
    ///
    /// Exit code: 0 complete, 3 incomplete, 2 not readable.
    #[command(after_help = "Examples:
  roctop check trace.json.gz
  roctop check results.db --against run
docs/check.md has what is checked.")]
    Check(Check),
    /// Compare several runs a side: is it slower than the baseline?
    ///
    /// Exit code: 0 nothing is slower, 3 something is, 125 no verdict is possible ('git bisect run' skips it).
    #[command(after_help = "Examples:
  roctop ci run --save main.roctopci -- ./bench
  roctop ci run --baseline main.roctopci -- ./bench
  roctop ci compare before/* -- after/*
docs/ci.md has more.")]
    Ci(Ci),
    /// Answer a question about a running session or a recording.
    #[command(after_help = "Examples:
  roctop ask run 'top kernels where dev=0 in last 10s'
  roctop ask run 'slowest copies where dir=h2d limit 5'
  roctop ask 4242 'hang'                        a session, by a process of it
  roctop ask run 'top calls by p99' --format json
docs/ask.md has the language.")]
    Ask(Ask),
    /// Answer a language model's questions (Model Context Protocol).
    ///
    /// A client of the protocol starts it, and talks to it by standard input and output. It reads the user's own sessions, and
    /// recordings below the named directories; it changes nothing. docs/mcp.md has the tools.
    Mcp(Mcp),
    /// Write a stretch of time as a separate recording.
    #[command(after_help = "Examples:
  roctop cut run --range 1.5s..2s -o part")]
    Cut(Cut),
    /// Write several recordings as one: ranks, hosts.
    #[command(after_help = "Examples:
  roctop merge run.0 run.1 -o both")]
    Merge(Merge),
    /// Complete the recording of a session whose roctop was killed.
    ///
    /// It takes what the rings still hold.
    Recover(Recover),
    /// List the agents of this machine.
    Devices(Devices),
    /// List the hardware counters of this machine's GPUs.
    ///
    /// It also says how many fit at once.
    Counters(Counters),
    /// Say what will work here, and why not.
    Doctor(Doctor),
    /// Install stand-ins for ROCTracer and ROC-TX below a directory.
    ///
    /// These are libraries and their headers.
    DropIn(DropIn),
    /// Print, locate or check the settings file.
    Config {
        /// What about it.
        #[arg(value_enum, value_name = "ACTION", default_value_t = ConfigWish::Print)]
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
    /// Check the GPU, its driver and its run-time by work on the GPU, each check in a process with a time limit; writes
    /// roctop-hardware-GFX.json here, made for an issue.
    #[arg(long, conflicts_with = "words")]
    pub gpu: bool,
    /// Also checks that have reset GPUs elsewhere: save your work first.
    #[arg(long, requires = "gpu")]
    pub risky: bool,
    /// Seconds that all checks of the GPU may take; with more than 30 each check may take longer, too.
    #[arg(long, value_name = "SECONDS", requires = "gpu", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub seconds: u64,
    /// How the ranks of a job that runs are placed on cores and GPUs: of this job, or of the only one.
    #[arg(long, value_name = "ID", num_args = 0..=1, conflicts_with_all = ["words", "gpu"])]
    pub job: Option<Option<String>>,
    /// A program to look at, with its arguments.
    #[arg(value_name = "APP ARGS", trailing_var_arg = true)]
    pub words: Vec<OsString>,
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
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let (digits, unit) = units::split(text);
    let factor = Quantity::MEMORY.factor(&unit.to_ascii_uppercase().replace('I', "i"));
    let bytes = digits.parse::<u64>().ok().zip(factor);
    let bytes = bytes.and_then(|(number, factor)| number.checked_mul(factor as u64));
    bytes
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| format!("'{text}' is no size; expected one such as 256K, 1M or 20G"))
}

/// Slots of a ring of this many bytes.
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

    #[test]
    fn the_command_line_is_well_formed() {
        command().debug_assert();
        for hidden in HIDDEN_IN_SHORT_HELP {
            let has = |command: &Command| command.get_arguments().any(|arg| arg.get_id() == hidden);
            let command = command();
            assert!(has(&command) || command.get_subcommands().any(has), "{hidden}");
        }
    }

    #[test]
    fn short_help_fits_a_screen() {
        let mut all = vec![command()];
        all.extend(command().get_subcommands().cloned());
        for mut command in all {
            command = command.term_width(80);
            let help = command.render_help().to_string();
            assert!(help.lines().count() <= 45, "{} lines\n{help}", help.lines().count());
        }
    }

    #[test]
    fn wrong_command_lines_are_reported_in_one_voice() {
        let error = |words: &[&str]| wrong(&command().try_get_matches_from(words).unwrap_err());
        let text = error(&["roctop", "--filtr", "x", "./app"]);
        assert!(text.starts_with("roctop: ") && text.contains("'--filter'"), "{text}");
        assert!(error(&["roctop", "export", "run", "--fromat", "csv"]).contains("'--format'"));
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
    fn misspelt_fields_are_usage_errors() {
        let presets = [("long".to_string(), "dur>1ms".to_string())];
        assert_eq!(filter("@long", &presets).unwrap().source, "(dur>1ms)");
        let message = |text| filter(text, &presets).unwrap_err().to_string();
        assert_eq!(
            message("gemm dru>3"),
            "--filter: no field \"dru\"; did you mean dur? (quote it to search text) (column 6 of 'gemm dru>3')"
        );
        assert!(message("@lnog").contains("no saved filter \"lnog\""));
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
