//! rocprofv3's own command line: a program is run without a screen, the wanted domains are written to files.
//!
//! `roctop rocprofv3 [options] -- app`, or roctop called by the name `rocprofv3`. The run is recorded beside the output
//! and exported when the program has ended; the recording is removed then.

mod attach;
mod input;
mod naming;
mod period;
mod plan;
mod settings;
mod table;

use crate::counters::list::list;
use crate::counters::request::{Groups, Mode, Request};
use crate::counters::show;
use crate::export::collect::collect;
use crate::export::facts::Facts;
use crate::export::{self, stats, summary};
use crate::item::Exit;
use crate::launch::{NotStarted, Program};
use crate::progress::Progress;
use crate::recording::{Merged, Recording};
use crate::run::{Job, headless, pass_on, tell};
use crate::supervise::exit_of;
use crate::{action, counting, item};
use anyhow::{Context, Result, bail};
use attach::Attach;
use naming::Keys;
use plan::{Level, Plan};
use roctop_ring::session::{ENV_PAUSED, wanted};
use settings::Settings;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

/// The name that roctop may be called by.
pub const NAME: &str = "rocprofv3";

const HELP: &str = "Usage: roctop rocprofv3 [options] -- <application> [application options]

rocprofv3's command line and files, without the rocprofiler SDK. Formats: csv (default), json, pftrace.
--layout seed gives the columns and names of ROCm 6.2.
";

/// Whether roctop was called by the name `rocprofv3`.
pub fn is_called(name: Option<&std::ffi::OsStr>) -> bool {
    name.is_some_and(|name| Path::new(name).file_name().is_some_and(|name| name == NAME))
}

/// Does what a command line says; returns the exit code.
pub fn act(words: &[OsString]) -> Result<u8> {
    let (typed, program) = Settings::parse(words)?;
    if typed.on("help") {
        return help().map(|()| 0);
    }
    if typed.on("version") {
        return version().map(|()| 0);
    }
    if typed.on("list_avail") || typed.on("list_metrics") {
        let code = list_counters(&typed)?;
        if program.is_empty() || code != 0 {
            return Ok(code);
        }
    }
    let has_input = typed.value("input").is_some();
    let is_text = typed.value("input").is_some_and(|path| {
        Path::new(path)
            .extension()
            .is_some_and(|end| end.eq_ignore_ascii_case("txt"))
    });
    let jobs = match typed.value("input") {
        Some(path) => {
            let jobs = input::read(Path::new(path))?;
            jobs.iter().map(|job| typed.join(job)).collect::<Result<Vec<_>>>()?
        }
        None => vec![typed],
    };
    if let Some(attach) = attach::read(&jobs[0])? {
        if !program.is_empty() || jobs.len() > 1 {
            bail!("--attach takes no program and no further jobs");
        }
        return attached(&Plan::new(&jobs[0], None)?, &attach);
    }
    let mut plans = Vec::new();
    for (number, job) in (1..).zip(&jobs) {
        // As upstream: lines of counters are pmc_N; one job has a directory of its own only when it counts.
        let counts = !job.values("pmc").is_empty() || !job.values("pmc_groups").is_empty();
        let word = if is_text { "pmc" } else { "pass" };
        let pass = (jobs.len() > 1 || (has_input && counts)).then(|| format!("{word}_{number}"));
        plans.push(Plan::new(job, pass.as_deref())?);
    }
    if jobs.iter().any(|job| job.on("echo")) {
        let words: Vec<String> = program.iter().map(|word| format!("'{}'", word.display())).collect();
        writeln!(std::io::stdout(), "command: [{}]", words.join(", "))?;
        return Ok(0);
    }
    if program.is_empty() {
        tell("Fatal error: No application provided");
        return Ok(1);
    }
    let program = match Program::find(&program) {
        Ok(program) => program,
        Err(NotStarted { code, reason }) => {
            tell(&reason);
            return Ok(code);
        }
    };
    for request in plans.iter().filter_map(|plan| plan.request.as_ref()) {
        counting::check(request)?;
    }
    let mut worst = 0;
    let last = plans.len() - 1;
    for (number, plan) in plans.iter().enumerate() {
        if plan.level >= Level::Warning {
            for (option, why) in plan.moot.iter().chain(&plan.missing) {
                tell(&format!("{option}: {why}"));
            }
        }
        if plan.level >= Level::Info {
            for (option, value) in &plan.choice.config {
                tell(&format!("config: {option} = {value}"));
            }
        }
        if plan.is_idle() {
            tell("Warning: No tracing options were enabled.");
        }
        let is_plain = plan.is_idle() || !plan.rank.is_wanted;
        if is_plain && number == last && worst == 0 {
            // Nothing is left to do but to be the program.
            let error = untraced(&program).exec();
            return Err(error).context(format!("cannot start {}", program.path.display()));
        }
        let exit = if is_plain {
            // Every rank goes through every pass: the others wait for it.
            let status = untraced(&program).status();
            exit_of(status.with_context(|| format!("cannot start {}", program.path.display()))?)
        } else {
            pass(plan, &program)?
        };
        if number == last && worst == 0 {
            return Ok(pass_on(exit));
        }
        worst = match exit {
            Exit::Code(0) => worst,
            Exit::Code(code) => code as u8,
            Exit::Signal(signal) => 128 + signal as u8,
            Exit::Unknown => 1,
        };
    }
    Ok(worst)
}

fn untraced(program: &Program) -> std::process::Command {
    let mut command = std::process::Command::new(&program.path);
    command.arg0(&program.name).args(&program.arguments);
    command
}

/// Counters of an input file, by job.
///
/// Errors: it cannot be read; a job names no counters.
pub(crate) fn counters_of(path: &Path) -> Result<Vec<Groups>> {
    let jobs = input::read(path)?;
    let counters = |(number, job): (usize, &Settings)| {
        plan::counters(job)?.with_context(|| format!("{}: pass {number} names no counter", path.display()))
    };
    (1..).zip(&jobs).map(counters).collect()
}

/// `-L`: on standard output, or as two files.
fn list_counters(settings: &Settings) -> Result<u8> {
    let mut request = Request::new(Mode::List, Vec::new());
    request.definitions = plan::definitions_of(settings)?;
    let listed = list(&request)?;
    let (directory, name) = (settings.value("output_directory"), settings.value("output_file"));
    if directory.is_some() || name.is_some() {
        counting::files(
            &listed,
            Path::new(directory.unwrap_or(".")),
            name.unwrap_or(&std::process::id().to_string()),
        )?;
    } else {
        show::info(&listed, &mut std::io::stdout().lock())?;
        for problem in &listed.problems {
            tell(&format!("counters: {problem}"));
        }
    }
    Ok(u8::from(!listed.problems.is_empty()))
}

/// Records what runs already, and writes its files.
fn attached(plan: &Plan, attach: &Attach) -> Result<u8> {
    if plan.is_idle() {
        tell("Warning: No tracing options were enabled.");
    }
    let directory = PathBuf::from(keys(&[], plan).expand(&plan.directory));
    export::prepare_directory(&directory)?;
    let recording = Scratch(directory.join(format!(".roctop-{}.rec", std::process::id())));
    attach.record(&recording.0)?;
    write(plan, Recording::open(&recording.0)?.command(), &recording.0)?;
    Ok(0)
}

/// What the keys stand for before a program runs.
fn keys(words: &[String], plan: &Plan) -> Keys {
    let own = item::Process {
        pid: std::process::id(),
        host: rustix::system::uname().nodename().to_string_lossy().as_ref().into(),
        ..item::Process::default()
    };
    Keys::of(&own, words, 1, plan.rank)
}

/// Runs the program once and writes its files.
fn pass(plan: &Plan, program: &Program) -> Result<Exit> {
    let directory = PathBuf::from(keys(&program.words(), plan).expand(&plan.directory));
    export::prepare_directory(&directory)?;
    let recording = Scratch(directory.join(format!(".roctop-{}.rec", std::process::id())));
    let mut variables: Vec<_> = plan.request.iter().flat_map(Request::variables).collect();
    if plan.is_paused {
        variables.push((ENV_PAUSED.into(), "1".into()));
    }
    if plan.level >= Level::Info {
        for (name, value) in &variables {
            tell(&format!("variable: {}={}", name.display(), value.display()));
        }
    }
    let job = Job {
        recording: Some(recording.0.clone()),
        wanted: if plan.wants_hsa() { wanted::HSA_API } else { 0 },
        variables,
        preload: plan.preload.clone(),
        ..Job::default()
    };
    let exit = headless(program, &job)?;
    write(plan, &program.words(), &recording.0)?;
    Ok(exit)
}

/// A recording that is removed when it is no longer needed.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // It may never have been made.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn write(plan: &Plan, words: &[String], path: &Path) -> Result<()> {
    let recording = Recording::open(path)?;
    let recordings = [recording];
    let whole = Merged::new(recordings.iter().collect())?;
    let progress = Progress::new();
    // Beside the recording: there is room, and it is removed with it.
    let (collected, replay) = collect(&whole, None, path, &progress)?;
    action::warn_of_damage(path, replay);
    let facts = Facts::read(&whole)?;
    let nodes = action::hosts(&recordings, &collected);
    let processes = &collected.run.processes;
    let stem = |process: &item::Process| {
        let siblings = processes.iter().filter(|other| other.parent == process.parent);
        let keys = Keys::of(process, words, siblings.count(), plan.rank);
        PathBuf::from(keys.expand(&plan.directory)).join(keys.expand(&plan.file))
    };
    let job = export::Job {
        collected: &collected,
        place: path,
        nodes: &nodes,
        progress: &progress,
        facts: &facts,
        command: words,
        choice: &plan.choice,
        formats: &plan.formats,
        sums: plan.wants_summary(),
        stem: &stem,
    };
    let export::Written { files: made, sums } = export::write(&job)?;
    let bytes = made
        .iter()
        .filter_map(|path| Some(path.metadata().ok()?.len()))
        .sum::<u64>();
    if bytes < plan.least_bytes {
        for path in &made {
            std::fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
        tell(&format!(
            "{bytes} bytes of output are less than --minimum-output-data: no file was written"
        ));
    } else {
        for path in &made {
            tell(&format!("Opened result file: {}", path.display()));
        }
    }
    if plan.wants_summary() {
        for (stem, domains) in &sums {
            print(plan, domains, stem)?;
        }
    }
    Ok(())
}

/// Prints the summary tables where they are wanted.
fn print(plan: &Plan, domains: &[stats::Domain], stem: &Path) -> Result<()> {
    let mut tables = plan.tables.clone();
    match plan.summary_file.as_str() {
        "stderr" => summary::write(domains, &tables, &mut std::io::stderr().lock())?,
        "stdout" => summary::write(domains, &tables, &mut std::io::stdout().lock())?,
        name => {
            tables.indent = 0;
            let mut path = stem.as_os_str().to_owned();
            path.push(format!("_{name}.txt"));
            let path = PathBuf::from(path);
            export::write_atomic(&path, |out| summary::write(domains, &tables, out))?;
            tell(&format!("Opened result file: {}", path.display()));
        }
    }
    Ok(())
}

fn help() -> Result<()> {
    let mut out = std::io::stdout().lock();
    write!(out, "{HELP}\nOptions:\n")?;
    for row in table::TABLE {
        let letter = if row.letter == ' ' {
            String::new()
        } else {
            format!("-{}, ", row.letter)
        };
        let value = match row.takes {
            table::Takes::Flag => "",
            table::Takes::One => " VALUE",
            table::Takes::Many => " VALUE…",
        };
        let note = match row.here {
            table::Here::Works => String::new(),
            table::Here::Moot(why) => format!("  (no effect: {why})"),
            table::Here::Refused(why) => format!("  (not here: {why})"),
        };
        writeln!(out, "  {letter:>4}{}{value}{note}", table::typed(row.name))?;
    }
    Ok(())
}

fn version() -> Result<()> {
    let system = rustix::system::uname();
    let word = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    let facts = [
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("git_revision", String::new()),
        ("library_arch", format!("{}-linux-gnu", std::env::consts::ARCH)),
        ("system_name", word(system.sysname())),
        ("system_processor", word(system.machine())),
        ("system_version", word(system.release())),
        ("compiler_id", "rustc".to_owned()),
        ("compiler_version", env!("CARGO_PKG_RUST_VERSION").to_owned()),
        ("rocm_version", String::new()),
    ];
    let mut out = std::io::stdout().lock();
    for (key, value) in facts {
        writeln!(out, "{key:>20}: {value}")?;
    }
    Ok(())
}
