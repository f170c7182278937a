//! What each subcommand does: options in, exit code out.

pub mod ask;
mod check;
mod ci;
pub mod devices;
pub mod failure;
pub mod mcp;
mod recordings;
mod start;

use crate::cli;
use crate::cli::usage_error::UsageError;
pub use crate::commands::ask::ask;
pub use crate::commands::check::check;
pub use crate::commands::ci::ci;
pub use crate::commands::devices::devices;
pub use crate::commands::mcp::mcp;
use crate::counters::plan;
use crate::counters::request::{Mode, Request};
use crate::doctor;
use crate::item::Exit;
use crate::job::{JobPlan, Watched, print_jobs, write_key};
use crate::keep::{Keeping, request};
use crate::live;
use crate::live::ingest::Gauging;
use crate::live::run::{Run, headless, pass_on, say};
use crate::log;
use crate::model::trigger::Condition;
use crate::process::launch::{NotStarted, Program};
use crate::process::rank;
use crate::rocprofv3;
use crate::session::sessions;
use crate::topology;
use anyhow::{Context, Result, bail};
use recordings::snapshot;
pub use recordings::{compare, cut, export_files, merge, open, recover, summary};
use roctop_ring::session::ENV_DEMO;
use roctop_trace::spelling::did_you_mean;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// `roctop config`.
pub fn config(wish: cli::ConfigWish) -> Result<u8> {
    let mut out = std::io::stdout().lock();
    let path =
        crate::settings::path().context("neither XDG_CONFIG_HOME nor HOME is set: there is no place for settings")?;
    match wish {
        cli::ConfigWish::Print => write!(out, "{}", crate::settings::printed())?,
        cli::ConfigWish::Path => writeln!(out, "{}", path.display())?,
        cli::ConfigWish::Schema => writeln!(out, "{:#}", crate::settings::schema())?,
        cli::ConfigWish::Check => {
            crate::settings::Config::load()?;
            let state = if path.exists() {
                "valid"
            } else {
                "not there, which is valid"
            };
            writeln!(out, "{}: {state}", path.display())?;
        }
    }
    Ok(0)
}

/// `roctop drop-in`: the libraries, where the user wants them.
pub fn drop_in(options: &cli::DropIn) -> Result<u8> {
    use crate::drop_in::{What, install};
    let what = if options.headers {
        What::Headers
    } else {
        What::Everything
    };
    let mut out = std::io::stdout().lock();
    for path in install(&options.prefix, what)? {
        writeln!(out, "{}", path.display())?;
    }
    Ok(0)
}

/// `roctop APP`: live on a terminal, else headless with a summary.
pub fn run(options: &cli::Run) -> Result<u8> {
    if options.print_config {
        return config(cli::ConfigWish::Print);
    }
    if options.words.is_empty() {
        return start_or_list(&options.look);
    }
    let screen = Screen::wanted(options.no_ui);
    let requests = requests(&options.recorded.counting)?;
    if screen == Screen::Live && requests.len() > 1 {
        bail!(
            "these counters take {} runs of the program, and the screen shows one; 'roctop record' makes them all",
            requests.len()
        );
    }
    let output = options.output.as_deref().map(place);
    let several = requests.len() > 1;
    passes(&options.words, &requests, screen, &options.look, &|request, number| {
        Run {
            recording: output.as_deref().map(|output| pass(output, several, number)),
            grace: Some(options.kill_timeout),
            no_collect: options.no_collect,
            output: options.app_io.clone(),
            on_exit: options.on_exit,
            ..recorded_run(&options.recorded, request)
        }
    })
}

/// Where this rank's recording goes.
fn place(output: &Path) -> PathBuf {
    rank::place(output, &|name| std::env::var(name).ok())
}

/// The recording of a pass.
fn pass(output: &Path, several: bool, number: usize) -> PathBuf {
    if several {
        output.join(format!("pass_{number}"))
    } else {
        output.to_owned()
    }
}

/// Whether a program runs under a screen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Screen {
    /// Under the live one.
    Live,
    /// Without.
    None,
}

impl Screen {
    /// One where the terminal can show it and the user does not say otherwise.
    fn wanted(no_ui: bool) -> Self {
        let can = std::io::stdout().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        if can && !no_ui { Self::Live } else { Self::None }
    }
}

/// `roctop` alone: the GPUs and sessions of this machine on a live screen; without a terminal as text.
fn start_or_list(look: &cli::Look) -> Result<u8> {
    match Screen::wanted(false) {
        Screen::Live => start::choose_and_watch(look),
        Screen::None => list(),
    }
}

/// What is here to be watched, as text.
fn list() -> Result<u8> {
    let mut out = std::io::stdout().lock();
    let nodes = topology::read(Path::new("/"));
    let gpus: Vec<_> = nodes.iter().filter(|node| node.is_gpu()).collect();
    if gpus.is_empty() {
        writeln!(out, "no AMD GPU found")?;
    }
    for (number, gpu) in gpus.iter().enumerate() {
        let memory = gpu.memory as f64 / f64::from(1 << 30);
        writeln!(out, "GPU{number}  {}  {}  {memory:.1} GiB", gpu.name(), gpu.model)?;
    }
    let found = sessions();
    if found.is_empty() {
        writeln!(
            out,
            "no running session; 'roctop ./app' starts one, 'roctop demo' shows the screen, 'roctop --help' the rest"
        )?;
    }
    for session in found {
        let name = session.name();
        writeln!(out, "session {name}: roctop attach {name}")?;
        for (pid, command) in session.processes {
            writeln!(out, "  {pid}  {command}")?;
        }
    }
    Ok(0)
}

/// `roctop attach`: the screen on a session that runs already.
pub fn attach(options: &cli::Attach) -> Result<u8> {
    let session = the_session(options.which.as_deref(), "attach")?;
    live::attach(&session, options).map(|()| 0)
}

/// `roctop keep`: a recording of what a session holds.
pub fn keep(options: &cli::Keep) -> Result<u8> {
    let session = the_session(options.which.as_deref(), "keep")?;
    let path = request::keep(&session)?;
    writeln!(std::io::stdout(), "{}", path.display())?;
    Ok(0)
}

/// The running session with this name or with a program of this process id; the only one without either.
fn the_session(which: Option<&str>, command: &str) -> Result<PathBuf> {
    let mut found = sessions();
    if let Some(which) = which {
        found.retain(|session| {
            let has_pid = |(pid, _): &(u32, String)| pid.to_string() == which;
            session.name() == which || session.processes.iter().any(has_pid)
        });
    }
    match (found.len(), which) {
        (1, _) => Ok(found.remove(0).path),
        (0, Some(which)) if command == "ask" => {
            bail!(
                "there is no recording and no session {which}, and no program with that process id in one; 'roctop' lists sessions"
            )
        }
        (0, Some(which)) => {
            bail!("there is no session {which}, and no program with that process id in one; 'roctop' lists them")
        }
        (0, None) => bail!("no session is running; 'roctop ./app' starts one"),
        (count, _) => {
            let listed = found.iter().map(|session| {
                let words = session.processes.first().map_or("", |known| &known.1);
                format!("\n  roctop {command} {}   {words}", session.name())
            });
            let listed: String = listed.collect();
            bail!("{count} sessions are running; name one of them:{listed}")
        }
    }
}

/// `roctop demo`: the built-in workload.
pub fn demo(options: &cli::Demo) -> Result<u8> {
    if !options.seconds.is_finite() || options.seconds < 0.0 {
        let message = format!("--seconds takes a number from 0 on, not {}", options.seconds);
        return Err(UsageError(message).into());
    }
    let screen = Screen::wanted(options.no_ui);
    let (words, run) = demo_run(options.seconds, screen)?;
    start(&words, &run, screen, &options.look)
}

/// The demo's worker, and how it is run.
fn demo_run(seconds: f64, screen: Screen) -> Result<(Vec<OsString>, Run)> {
    let own = std::env::current_exe()?;
    let mut variables = vec![(ENV_DEMO.into(), seconds.to_string().into())];
    if screen == Screen::Live {
        // Its model has some of whole GPUs, which disturb nothing.
        variables.extend(Request::new(Mode::Device, vec!["synthetic".to_owned()]).variables());
    }
    let run = Run {
        title: Some("demo".into()),
        gauging: (screen == Screen::Live).then(|| Gauging {
            synthetic: Some(crate::demo::gauges::samples),
            ..Gauging::rate(cli::Gauges::default().gauge_rate)
        }),
        variables,
        ..Run::default()
    };
    Ok((vec![own.into_os_string(), OsString::from(crate::demo::WORKER)], run))
}

fn start(words: &[OsString], run: &Run, screen: Screen, look: &cli::Look) -> Result<u8> {
    let program = match Program::find(words) {
        Ok(program) => program,
        Err(refused) => {
            for line in reasons(words, &refused) {
                say(&line);
            }
            return Ok(refused.code);
        }
    };
    Ok(pass_on(play(&program, run, screen, look)?))
}

/// Why the program cannot be started, and what was meant, in lines.
fn reasons(words: &[OsString], refused: &NotStarted) -> Vec<String> {
    let word = words.first().map(|word| word.to_string_lossy()).unwrap_or_default();
    let names = cli::names();
    let is_command = names.iter().any(|name| *name == word);
    let near = did_you_mean(&word, names.iter().map(String::as_str).filter(|_| !is_command));
    let mut lines = vec![format!("{}{near}", refused.reason)];
    lines.extend(
        command_named(words)
            .map(|name| format!("'{name}' is a command of roctop's own; its options go behind it: roctop {name} …")),
    );
    lines
}

/// Runs a program to its end, with or without a screen.
fn play(program: &Program, run: &Run, screen: Screen, look: &cli::Look) -> Result<Exit> {
    if let Some(obstacle) = doctor::program::obstacle(&program.path).filter(|_| !run.no_collect) {
        say(&format!("nothing of this program can be recorded: {obstacle}"));
    }
    match screen {
        Screen::Live => live::live(program, run, look),
        Screen::None => Ok(headless(program, run, look)?.exit()),
    }
}

/// What is recorded of a program, and how, in one of its runs.
fn recorded_run(recorded: &cli::Recorded, request: Option<&Request>) -> Run {
    let mut variables = recorded.domains.variables();
    variables.extend(request.into_iter().flat_map(Request::variables));
    Run {
        ring_slots: recorded.ring.ring,
        wanted: recorded.domains.wanted(),
        symbols: recorded.domains.symbols(),
        dispatch_source: recorded.domains.dispatch_source.number(),
        level: recorded.domains.level,
        gauging: Some(Gauging::rate(recorded.gauges.gauge_rate)),
        variables,
        ..Run::default()
    }
}

/// The command that was meant, when options stand before its name, which makes that a program's.
fn command_named(words: &[OsString]) -> Option<String> {
    let word = words.first()?.to_str()?;
    let all = <cli::Cli as clap::CommandFactory>::command();
    all.find_subcommand(word).map(|command| command.get_name().to_owned())
}

/// Runs the program once for each request, once without one when there is none. The first failing run is the last.
fn passes(
    words: &[OsString],
    requests: &[Request],
    screen: Screen,
    look: &cli::Look,
    run: &dyn Fn(Option<&Request>, usize) -> Run,
) -> Result<u8> {
    for (number, request) in (1..).zip(requests).take(requests.len().saturating_sub(1)) {
        say(&format!("pass {number} of {}: {}", requests.len(), request.text()));
        let code = start(words, &run(Some(request), number), screen, look)?;
        if code != 0 {
            return Ok(code);
        }
    }
    if requests.len() > 1
        && let Some(last) = requests.last()
    {
        say(&format!("pass {0} of {0}: {1}", requests.len(), last.text()));
    }
    start(words, &run(requests.last(), requests.len().max(1)), screen, look)
}

/// `roctop job`: all ranks of a job on one screen, or the user's jobs.
pub fn watch_job(options: &cli::Job) -> Result<u8> {
    let out = &mut std::io::stdout();
    match (
        &options.id,
        &options.write_key,
        options.connect.as_ref().zip(options.key.as_ref()),
    ) {
        (_, _, Some((address, key))) => live::watch_job(Watched::connect(address, key)?, &options.look)?,
        (Some(id), Some(file), None) => write_key(id, file, out)?,
        (Some(id), None, None) => live::watch_job(Watched::find(id)?, &options.look)?,
        (None, ..) => print_jobs(out)?,
    }
    Ok(0)
}

/// `roctop record`: headless, into a recording.
pub fn record(options: &cli::Record) -> Result<u8> {
    let mut requests = requests(&options.recorded.counting)?;
    for request in &mut requests {
        request.has_instances = true;
    }
    let look = cli::Look::default();
    let several = requests.len() > 1;
    let output = place(&options.output);
    let keeping = keeping(options, &output)?;
    if keeping.is_some() && several {
        let message = format!(
            "--keep holds one run of the program, and these counters take {}",
            requests.len()
        );
        return Err(UsageError(message).into());
    }
    log::set(options.log);
    let plan = options
        .job
        .as_deref()
        .map(|name| JobPlan::new(name, options.job_host.as_deref(), &|name| std::env::var(name).ok()));
    let plan = plan.transpose()?;
    passes(&options.words, &requests, Screen::None, &look, &|request, number| Run {
        recording: keeping.is_none().then(|| pass(&output, several, number)),
        keeping: keeping.clone(),
        keep_signal: options.keeping.keep_signal,
        metrics: options.metrics,
        most_bytes: options.max_size,
        job: plan.clone(),
        ..recorded_run(&options.recorded, request)
    })
}

/// What `--keep` and its companions ask for.
///
/// Errors: a condition is none; the message has the column.
fn keeping(options: &cli::Record, output: &Path) -> Result<Option<Keeping>> {
    let wanted = &options.keeping;
    let Some(keep) = wanted.keep else { return Ok(None) };
    let conditions = wanted.on.iter().map(|text| {
        Condition::parse(text).map_err(|error| {
            let (message, column) = (error.message, error.column + 1);
            UsageError(format!("--on: {message} (column {column} of '{text}')"))
        })
    });
    Ok(Some(Keeping {
        directory: output.to_owned(),
        keep,
        after: wanted.after,
        interval: wanted.keep_interval,
        conditions: conditions.collect::<Result<_, _>>()?,
        max_recordings: wanted.keep_recordings as usize,
        max_bytes: options.max_size,
        memory: wanted.keep_memory,
    }))
}

/// `roctop counters`: what can be counted, or what was counted in recordings.
pub fn counters(options: &cli::Counters) -> Result<u8> {
    if options.of.is_empty() || options.metrics {
        return plan::counters(options);
    }
    plan::counted(&*snapshot(&options.of)?, options.format)
}

/// The requests of a run, one for each pass.
fn requests(options: &cli::Counting) -> Result<Vec<Request>> {
    let input = options.input.as_deref().map(rocprofv3::counters_of).transpose()?;
    plan::requests(options, input.unwrap_or_default())
}

/// `roctop doctor`: what will work.
pub fn doctor(options: &cli::Doctor) -> Result<u8> {
    if options.gpu {
        let wish = doctor::gpu::SamplingRequest {
            is_risky: options.risky,
            limit: Duration::from_secs(options.seconds),
        };
        return doctor::gpu::examine(wish, &mut std::io::stdout().lock());
    }
    if let Some(job) = &options.job {
        return doctor::placement::examine(job.as_deref(), &mut std::io::stdout().lock());
    }
    let report = doctor::examine(&options.words);
    report.write(&mut std::io::stdout().lock())?;
    Ok(u8::from(!report.is_well()))
}
