//! rocprofv3's own command line: a program is run without a screen, the wanted domains are written to files.
//!
//! `roctop rocprofv3 [options] -- app`, or roctop called by the name `rocprofv3`. The run is recorded beside the output
//! and exported when the program has ended; the recording is removed then.

mod attach;
mod files;
mod help;
mod input;
mod jobs;
mod naming;
mod output;
mod period;
mod plan;
mod scratch;
mod settings;
mod table;

use crate::cli::Look;
use crate::counters::list::list;
use crate::counters::plan as counter_plan;
use crate::counters::request::{Groups, Mode, Request};
use crate::counters::show;
use crate::export::Format;
use crate::export::options::Kind;
use crate::item;
use crate::item::Exit;
use crate::live::run::{Run, headless, pass_on, say};
use crate::process::launch::Program;
use crate::process::rank::{Rank, Ranks};
use crate::process::supervise::{self, Terminal, exit_of};
use crate::recording::Recording;
use anyhow::{Context, Result, bail};
use attach::Attach;
pub(crate) use help::rocm_release;
use naming::Keys;
use output::FORMAT_VARIABLE;
use plan::{Level, Plan};
use roctop_ring::session::{ENV_COUNT_PAUSES, ENV_MPI, ENV_PAUSED, wanted};
use scratch::Scratch;
use settings::Settings;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::time::SystemTime;

/// The name that roctop may be called by.
pub const NAME: &str = "rocprofv3";

/// Whether roctop was called by the name `rocprofv3`.
pub fn is_called(name: Option<&std::ffi::OsStr>) -> bool {
    name.is_some_and(|name| Path::new(name).file_name().is_some_and(|name| name == NAME))
}

/// How many jobs the text of an input file has, by the ending of its name.
///
/// Errors: those of a run with it.
pub fn jobs_of(text: &str, ending: &str) -> Result<usize> {
    Ok(input::parse(text, ending)?.jobs.len())
}

/// Does what a command line says; returns the exit code.
pub fn act(words: &[OsString]) -> Result<u8> {
    let (typed, program) = Settings::parse(words)?;
    if typed.on("help") || words.is_empty() {
        return help::help().map(|()| 0);
    }
    if typed.on("version") {
        return help::version().map(|()| 0);
    }
    let jobs = jobs::read(&typed)?;
    let mut settings = jobs.iter().map(|job| &job.settings);
    if let Some(job) = settings.find(|job| job.on("list_avail") || job.on("list_metrics")) {
        let code = list_counters(job, !program.is_empty())?;
        if program.is_empty() || code != 0 {
            return Ok(code);
        }
    }
    if let Some(attach) = attach::read(&jobs[0].settings)? {
        if !program.is_empty() || jobs.len() > 1 {
            bail!("--attach takes no program and no further jobs");
        }
        return attached(&Plan::new(&jobs[0].settings, None)?, &attach);
    }
    let plans = jobs
        .iter()
        .map(|job| Plan::new(&job.settings, job.directory.as_deref()));
    let mut plans = plans.collect::<Result<Vec<_>>>()?;
    if jobs.iter().any(|job| job.settings.on("echo")) {
        let words: Vec<String> = program.iter().map(|word| format!("'{}'", word.display())).collect();
        writeln!(std::io::stdout(), "command: [{}]", words.join(", "))?;
        return Ok(0);
    }
    if program.is_empty() {
        say("Fatal error: No application provided");
        return Ok(1);
    }
    let program = Program::find(&program)?;
    for plan in &mut plans {
        if let Some(mut request) = plan.request.take() {
            counter_plan::keep_present(&mut request)?;
            counter_plan::keep_known(&mut request)?;
            counter_plan::check(&request)?;
            let is_left = !request.is_empty() || request.sampling.is_some();
            plan.request = is_left.then_some(request);
        }
    }
    run(&plans, &program)
}

/// Runs the program once for each plan, up to the first that it fails in, and returns its exit code.
fn run(plans: &[Plan], program: &Program) -> Result<u8> {
    let mut is_said = false;
    for (number, plan) in (1..).zip(plans) {
        forewarn(plan);
        let is_plain = plan.is_idle() || !plan.rank.is_wanted;
        let is_last = number == plans.len();
        if is_plain && is_last {
            // Nothing is left to do but to be the program.
            let error = untraced(program).exec();
            return Err(error).context(format!("cannot start {}", program.path.display()));
        }
        let exit = if is_plain {
            // Every rank goes through every pass: the others wait for it.
            let ended = supervise::run_to_end(untraced(program), Terminal::Shared, |_| {}, |_, _, _| false);
            exit_of(ended?.0)
        } else {
            pass(plan, program, &mut is_said)?
        };
        if is_last {
            return Ok(pass_on(exit));
        }
        let how = match exit {
            Exit::Code(0) => continue,
            Exit::Code(code) => format!("exit code {code}"),
            Exit::Signal(signal) => format!("signal {signal}"),
            Exit::Unknown => "an unknown exit code".to_owned(),
        };
        say(&format!(
            "the program ended with {how} in pass {number} of {}: the passes after it are not run",
            plans.len()
        ));
        return Ok(pass_on(exit));
    }
    Ok(0)
}

/// Says that nothing asked for a format, and how to get the one that rocprofv3 writes then. One of the ranks says it.
fn say_usual_format(plan: &Plan) {
    if plan.has_usual_format && plan.level >= Level::Warning {
        say(&format!(
            "the files are CSV, because no format is asked for; rocprofv3 since ROCm 7.0 writes rocpd then: '-f rocpd' or \
{FORMAT_VARIABLE}=rocpd does"
        ));
    }
}

/// Says what a plan does not do, before it is done.
fn forewarn(plan: &Plan) {
    if plan.level >= Level::Warning {
        for (option, why) in &plan.moot {
            say(&format!("{option}: {why}"));
        }
    }
    if plan.level >= Level::Info {
        for (option, value) in &plan.choice.config {
            say(&format!("config: {option} = {value}"));
        }
    }
    if plan.is_idle() {
        say("Warning: No tracing options were enabled.");
    }
}

fn untraced(program: &Program) -> std::process::Command {
    let mut command = std::process::Command::new(&program.path);
    command.arg0(&program.name).args(&program.arguments);
    roctop_signals::restore(&mut command, 0..3);
    command
}

/// Counters of an input file, by job.
///
/// Errors: it cannot be read; a job names no counters.
pub(crate) fn counters_of(path: &Path) -> Result<Vec<Groups>> {
    let input = input::read(path)?;
    for unread in &input.unread {
        say(&format!("{}: {unread}", path.display()));
    }
    let counters = |(number, job): (usize, &Settings)| {
        plan::counters(job)?.with_context(|| format!("{}: pass {number} names no counter", path.display()))
    };
    (1..).zip(&input.jobs).map(counters).collect()
}

/// `-L`: on standard output, or as two files; ways of sampling come first unless a program is run afterwards, as upstream.
fn list_counters(settings: &Settings, is_run: bool) -> Result<u8> {
    let mut request = Request::new(Mode::List, Vec::new());
    request.definitions = plan::definitions_of(settings)?;
    let listed = list(&request)?;
    let (directory, name) = (settings.value("output_directory"), settings.value("output_file"));
    if directory.is_some() || name.is_some() {
        let keys = keys(Ranks::default().of(&|name| std::env::var(name).ok()), now());
        let directory = keys.expand(directory.unwrap_or("."));
        counter_plan::files(&listed, Path::new(&directory), &keys.expand(name.unwrap_or("%pid%")))?;
    } else {
        let mut out = std::io::stdout().lock();
        if is_run {
            show::counters(&listed, &mut out)?;
            show::sampling(&listed, &mut out)?;
        } else {
            show::info(&listed, &mut out)?;
        }
        for problem in &listed.problems {
            say(&format!("counters: {problem}"));
        }
    }
    Ok(u8::from(!listed.problems.is_empty()))
}

/// Records what runs already, and writes its files.
fn attached(plan: &Plan, attach: &Attach) -> Result<u8> {
    forewarn(plan);
    let recording = Scratch::of(plan)?;
    say_usual_format(plan);
    let is_whole = attach.record(recording.path())?;
    let launched = now();
    let written = Recording::open(recording.path())
        .map_err(anyhow::Error::from)
        .and_then(|opened| files::write(plan, opened.command(), launched, recording.path()));
    written.map_err(|error| recording.kept(error))?;
    Ok(u8::from(!is_whole))
}

/// Seconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// What the keys stand for where no program runs.
fn keys(rank: Rank, launched: u64) -> Keys {
    let own = item::Process {
        pid: std::process::id(),
        host: rustix::system::uname().nodename().to_string_lossy().as_ref().into(),
        ..item::Process::default()
    };
    Keys::of(&own, &[], 1, rank, launched)
}

/// Runs the program once and writes its files. Of several passes with the usual format, one says so.
fn pass(plan: &Plan, program: &Program, is_said: &mut bool) -> Result<Exit> {
    let recording = Scratch::of(plan)?;
    if plan.has_usual_format && !std::mem::replace(is_said, true) {
        say_usual_format(plan);
    }
    let launched = now();
    let mut variables: Vec<_> = plan.request.iter().flat_map(Request::variables).collect();
    if plan.is_paused {
        variables.push((ENV_PAUSED.into(), "1".into()));
    }
    if plan.counts_pauses {
        variables.push((ENV_COUNT_PAUSES.into(), "1".into()));
    }
    if plan.level >= Level::Info {
        for (name, value) in &variables {
            say(&format!("variable: {}={}", name.display(), value.display()));
        }
    }
    // rocprofv3 records none.
    variables.push((ENV_MPI.into(), "off".into()));
    let run = Run {
        recording: Some(recording.path().to_owned()),
        wanted: words_of(plan),
        variables,
        preload: plan.preload.clone(),
        ..Run::default()
    };
    let exit = headless(program, &run, &Look::default())?.exit();
    let written = files::write(plan, &program.words(), launched, recording.path());
    written.map_err(|error| recording.kept(error))?;
    Ok(exit)
}

/// What the collector records in addition: calls of HSA, and arguments where a file shows them.
fn words_of(plan: &Plan) -> u64 {
    let hsa = if plan.wants_hsa() { wanted::HSA_API } else { 0 };
    let hip = [Kind::HipRuntime, Kind::HipCompiler];
    let is_told = [Format::Json, Format::Rocpd]
        .iter()
        .any(|format| plan.formats.contains(format));
    let arguments = is_told && hip.iter().any(|kind| plan.choice.kinds.has(*kind));
    hsa | if arguments { wanted::ARGUMENTS } else { 0 }
}
