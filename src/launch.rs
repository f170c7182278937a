//! Starts the program with the collector inside, and leaves everything else as it would be without roctop.
//!
//! Headless, the program inherits the terminal as it is. Under the live screen it runs in a session and pseudo-terminal
//! of its own; since that takes calls between fork and exec, roctop starts itself once more as a small trampoline
//! (`roctop __launch`) that makes them and then becomes the program.

use crate::cli::Misuse;
use crate::doctor;
use crate::elf;
use crate::embedded::Installed;
use anyhow::{Context, Result, anyhow};
use roctop_ring::session::{ENV_DEMO, ENV_SESSION};
use rustix::process::Signal;
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// First argument that makes roctop the trampoline.
pub const TRAMPOLINE: &str = "__launch";
/// First argument that makes roctop the demo's worker.
pub const DEMO: &str = "__demo";
/// First argument that makes roctop end itself by a signal, with no handler left from its earlier life.
pub const DIE: &str = "__die";

/// What to start.
#[derive(Clone, Debug)]
pub struct Program {
    /// As typed.
    pub name: OsString,
    /// Where it was found.
    pub path: PathBuf,
    /// Arguments.
    pub arguments: Vec<OsString>,
}

/// Where a program's standard output and error go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// To a terminal of its own under the screen, else where roctop's go.
    #[default]
    Auto,
    /// To a terminal of its own.
    Terminal,
    /// Into a pipe, for programs that behave otherwise on a terminal.
    Pipe,
    /// Where roctop's go.
    Inherit,
    /// To a file.
    File(PathBuf),
}

impl Output {
    /// Errors: with a screen, or without one, it cannot go there.
    pub fn check(&self, has_screen: bool) -> Result<(), Misuse> {
        let why = match self {
            Self::Inherit if has_screen => "inherit: the program would write over the screen; use --no-ui",
            Self::Terminal if !has_screen => {
                "pty: without a screen there is no terminal for the program but roctop's own"
            }
            Self::Pipe if !has_screen => {
                "pipe: without a screen the program writes where roctop does; 'roctop … | cat' makes that a pipe"
            }
            _ => return Ok(()),
        };
        Err(Misuse(format!("--app-io {why}")))
    }

    /// The file, made empty; none when it is no file.
    ///
    /// Errors: it cannot be written.
    fn file(&self) -> Result<Option<File>> {
        let Self::File(path) = self else { return Ok(None) };
        let made = File::create(path);
        Ok(Some(made.with_context(|| {
            format!("cannot write the program's output into {}", path.display())
        })?))
    }
}

/// Why a program cannot be started: the exit code that `env` would give, and the reason.
#[derive(Debug)]
pub struct NotStarted {
    /// 127 not found, 126 found but cannot be run.
    pub code: u8,
    /// One line.
    pub reason: String,
}

impl std::fmt::Display for NotStarted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for NotStarted {}

impl NotStarted {
    /// The system would not run it.
    pub fn refused(program: &OsStr, error: &std::io::Error) -> Self {
        Self {
            code: 126,
            reason: format!("{} could not be started: {error}", program.to_string_lossy()),
        }
    }
}

impl Program {
    /// Finds the program as a shell would.
    pub fn find(words: &[OsString]) -> Result<Self, NotStarted> {
        let Some((name, arguments)) = words.split_first() else {
            return Err(NotStarted {
                code: 2,
                reason: "no program to start was named".into(),
            });
        };
        let path = locate(name)?;
        let mut program = Self {
            name: name.clone(),
            path,
            arguments: arguments.to_vec(),
        };
        if is_nameless_script(&program.path) {
            let script = std::mem::replace(&mut program.path, PathBuf::from("/bin/sh"));
            program.arguments.insert(0, script.into());
        }
        Ok(program)
    }

    /// The command line as text.
    pub fn words(&self) -> Vec<String> {
        std::iter::once(&self.name)
            .chain(&self.arguments)
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    }
}

/// Whether a file is a script that does not say what runs it: shells, and execvp(3), give it to /bin/sh. They take a text for
/// one in whose beginning there is no zero.
fn is_nameless_script(path: &Path) -> bool {
    const BEGINNING: usize = 128;
    File::open(path)
        .is_ok_and(|file| elf::kind(&file) == elf::Kind::Other && !elf::Bytes::upto(&file, 0, BEGINNING).contains(&0))
}

fn locate(name: &OsStr) -> Result<PathBuf, NotStarted> {
    let shown = name.to_string_lossy();
    if name.is_empty() {
        return Err(NotStarted {
            code: 127,
            reason: "the program's name is empty".into(),
        });
    }
    if name.as_bytes().contains(&b'/') {
        return match runnable(Path::new(name)) {
            Found::Yes => Ok(PathBuf::from(name)),
            Found::NotExecutable => Err(NotStarted {
                code: 126,
                reason: format!("{shown}: not an executable file"),
            }),
            Found::No => Err(NotStarted {
                code: 127,
                reason: format!("{shown}: no such file"),
            }),
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    let mut denied = false;
    for directory in std::env::split_paths(&path) {
        let candidate = directory.join(name);
        match runnable(&candidate) {
            Found::Yes => return Ok(candidate),
            Found::NotExecutable => denied = true,
            Found::No => {}
        }
    }
    if denied {
        return Err(NotStarted {
            code: 126,
            reason: format!("{shown}: found in PATH, but not an executable file"),
        });
    }
    Err(NotStarted {
        code: 127,
        reason: format!("{shown}: command not found in PATH"),
    })
}

enum Found {
    Yes,
    NotExecutable,
    No,
}

fn runnable(path: &Path) -> Found {
    match std::fs::metadata(path) {
        Ok(facts) if facts.is_file() && facts.permissions().mode() & 0o111 != 0 => Found::Yes,
        Ok(_) => Found::NotExecutable,
        Err(_) => Found::No,
    }
}

/// Variables that put the collector into the program. What the user set stays: in front, but for tools of HSA, of which
/// the first one is nearest to the run-time; there the collector sees the queues of the others. Before all comes the
/// library of a sanitizer that the program is linked to, which refuses to work from another place.
pub fn environment(installed: &Installed, session: &Path, program: &Path) -> Vec<(OsString, OsString)> {
    let user = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    let sanitizer = doctor::program::sanitizer(program).filter(|library| {
        let name = library.file_name().unwrap_or_default().to_string_lossy().into_owned();
        !user.to_string_lossy().contains(&name)
    });
    let parts = [
        sanitizer.map(PathBuf::into_os_string),
        (!user.is_empty()).then_some(user),
        Some(installed.library.clone().into_os_string()),
    ];
    let preload = parts.into_iter().flatten().collect::<Vec<_>>().join(OsStr::new(":"));
    let library = installed.library.as_os_str();
    let joined = |name: &str, separator: &str, ours: &OsStr| {
        let mut value = std::env::var_os(name).unwrap_or_default();
        if !value.is_empty() {
            value.push(separator);
        }
        value.push(ours);
        (OsString::from(name), value)
    };
    let mut tools = library.to_owned();
    if let Some(others) = std::env::var_os("HSA_TOOLS_LIB").filter(|others| !others.is_empty()) {
        tools.push(" ");
        tools.push(others);
    }
    let mut variables = vec![
        ("LD_PRELOAD".into(), preload),
        (OsString::from("HSA_TOOLS_LIB"), tools),
        (ENV_SESSION.into(), session.as_os_str().to_owned()),
    ];
    if !has_roctx() {
        // Programs that open ROC-TX by name find the collector under that name.
        variables.push(joined("LD_LIBRARY_PATH", ":", installed.roctx.as_os_str()));
    }
    variables
}

/// True when a ROC-TX library of the system's own can be found by name.
fn has_roctx() -> bool {
    let mut places: Vec<PathBuf> = std::env::var_os("LD_LIBRARY_PATH")
        .iter()
        .flat_map(|path| std::env::split_paths(path).collect::<Vec<_>>())
        .collect();
    places.extend(std::env::var_os("ROCM_PATH").map(|path| PathBuf::from(path).join("lib")));
    for place in [
        "/opt/rocm/lib",
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib64",
        "/usr/local/lib",
        "/usr/lib",
    ] {
        places.push(place.into());
    }
    let names = [
        "libroctx64.so.4",
        "librocprofiler-sdk-roctx.so.0",
        "librocprofiler-sdk-roctx.so.1",
    ];
    places
        .iter()
        .any(|place| names.iter().any(|name| place.join(name).exists()))
}

/// Starts the program on the terminal as it is.
///
/// Errors: the file for its output cannot be written.
pub fn command(program: &Program, variables: &[(OsString, OsString)], output: &Output) -> Result<Command> {
    let mut command = Command::new(&program.path);
    command
        .arg0(&program.name)
        .args(&program.arguments)
        .envs(variables.iter().cloned());
    if let Some(file) = output.file()? {
        command.stdout(file.try_clone()?).stderr(file);
    }
    Ok(command)
}

/// The near end of what the program writes to.
pub struct Terminal {
    /// Reads what the program writes; writes what it is to read, where it is a terminal.
    pub master: File,
}

/// What the trampoline's first word says: a session with its standard output as terminal, ...
const IN_TERMINAL: &str = "terminal";
/// ... a session without a terminal, ...
const IN_PIPE: &str = "pipe";
/// ... or one with a terminal, and output in the file that follows here.
const IN_FILE: &str = "file:";

/// Prepares the program in a session of its own, with a pseudo-terminal or a pipe. Its standard input stays roctop's when
/// that is no terminal (a pipe into roctop goes to the program).
pub fn command_in_session(
    program: &Program,
    variables: &[(OsString, OsString)],
    size: Winsize,
    output: &Output,
) -> Result<(Command, Terminal)> {
    output.file()?;
    let mut command =
        Command::new(std::env::current_exe().context("cannot find roctop's own file to start the program with")?);
    let mut place = OsString::from(match output {
        Output::Pipe => IN_PIPE,
        Output::File(_) => IN_FILE,
        _ => IN_TERMINAL,
    });
    if let Output::File(path) = output {
        place.push(path);
    }
    command
        .arg(TRAMPOLINE)
        .arg(place)
        .arg(&program.path)
        .arg(variables.len().to_string());
    for (name, value) in variables {
        command.arg(name).arg(value);
    }
    command.arg(&program.name).args(&program.arguments);
    let near = if *output == Output::Pipe {
        pipe(&mut command)?
    } else {
        pseudo_terminal(&mut command, size)?
    };
    Ok((
        command,
        Terminal {
            master: File::from(near),
        },
    ))
}

/// Both outputs are one pipe, so that lines keep their order; nothing can be typed.
fn pipe(command: &mut Command) -> Result<OwnedFd> {
    let (near, far) = std::io::pipe().context("cannot make a pipe for the program")?;
    if rustix::termios::isatty(std::io::stdin()) {
        command.stdin(Stdio::null());
    }
    command.stdout(far.try_clone()?).stderr(far);
    Ok(near.into())
}

fn pseudo_terminal(command: &mut Command, size: Winsize) -> Result<OwnedFd> {
    let master = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
        .context("cannot open a pseudo-terminal for the program")?;
    rustix::pty::grantpt(&master)?;
    rustix::pty::unlockpt(&master)?;
    let name = rustix::pty::ptsname(&master, Vec::new())?;
    rustix::termios::tcsetwinsize(&master, size)?;
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
    let slave: OwnedFd = rustix::fs::open(name.as_c_str(), flags, rustix::fs::Mode::empty())?;
    if rustix::termios::isatty(std::io::stdin()) {
        command.stdin(Stdio::from(slave.try_clone()?));
    }
    command
        .stdout(Stdio::from(slave.try_clone()?))
        .stderr(Stdio::from(slave));
    Ok(master)
}

/// The trampoline: makes the session and its terminal, then becomes the program. Returns only when that fails, with the
/// exit code.
pub fn trampoline(arguments: &[OsString]) -> u8 {
    match become_program(arguments) {
        Ok(never) => match never {},
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "roctop: {error:#}");
            126
        }
    }
}

fn become_program(arguments: &[OsString]) -> Result<std::convert::Infallible> {
    let mut rest = arguments.iter();
    let mut next = || rest.next().ok_or_else(|| anyhow!("the trampoline was called by hand"));
    let place = next()?;
    let path = next()?;
    let count: usize = next()?.to_string_lossy().parse()?;
    let mut variables = Vec::with_capacity(count.min(64));
    for _ in 0..count {
        variables.push((next()?.clone(), next()?.clone()));
    }
    let name = next()?.clone();
    rustix::process::setsid().context("cannot make a session for the program")?;
    if place != IN_PIPE {
        rustix::process::ioctl_tiocsctty(std::io::stdout()).context("cannot give the program its terminal")?;
    }
    let mut command = Command::new(path);
    command.arg0(&name).args(rest).envs(variables);
    if let Some(path) = place.as_bytes().strip_prefix(IN_FILE.as_bytes()).map(OsStr::from_bytes) {
        let file = File::options().append(true).open(path);
        let file = file.with_context(|| format!("cannot write into {}", path.to_string_lossy()))?;
        command.stdout(file.try_clone()?).stderr(file);
    }
    let error = command.exec();
    Err(NotStarted::refused(&name, &error).into())
}

/// Ends this process by the signal that ended the program, so that whoever started roctop sees the same.
///
/// roctop first becomes itself anew, since its handlers cannot be taken back otherwise.
pub fn die_by(signal: i32) -> u8 {
    if signal == Signal::PIPE.as_raw() {
        // Every program in this language begins by ignoring it; a shell does not.
        let _ = Command::new("/bin/sh").args(["-c", "kill -PIPE $$"]).exec();
    }
    if let Ok(own) = std::env::current_exe() {
        let _ = Command::new(own).arg(DIE).arg(signal.to_string()).exec();
    }
    die_here(signal)
}

/// Raises the signal in this process; returns the exit code to use when that did not end it.
pub fn die_here(signal: i32) -> u8 {
    use rustix::process::{Resource, Rlimit, getpid, kill_process, setrlimit};
    // The program left its core dump where the system wants it; roctop must not write a second one.
    let _ = setrlimit(
        Resource::Core,
        Rlimit {
            current: Some(0),
            maximum: Some(0),
        },
    );
    if let Some(signal) = Signal::from_named_raw(signal) {
        // Twice: the language's own handler for some signals takes itself away at the first.
        for _ in 0..2 {
            let _ = kill_process(getpid(), signal);
        }
    }
    128u8.wrapping_add(signal as u8)
}

/// True in the process that lists counters.
pub fn is_counters_worker() -> bool {
    std::env::args_os()
        .nth(1)
        .is_some_and(|word| word == crate::counters::list::WORKER)
}

/// True when this process was started as the demo's worker.
pub fn is_demo() -> bool {
    std::env::args_os().nth(1).is_some_and(|word| word == OsStr::new(DEMO))
}

/// The demo's worker: the collector in it makes the records; here are the lines that such a program prints.
pub fn demo_worker() -> u8 {
    let seconds = std::env::var(ENV_DEMO)
        .ok()
        .and_then(|text| text.parse::<f64>().ok())
        .unwrap_or(0.0);
    let started = std::time::Instant::now();
    let mut epoch = 0u32;
    let _ = writeln!(
        std::io::stdout(),
        "demo: a made-up training loop; nothing here runs on a GPU"
    );
    loop {
        let left = if seconds > 0.0 {
            seconds - started.elapsed().as_secs_f64()
        } else {
            1.0
        };
        if left <= 0.0 {
            return 0;
        }
        std::thread::sleep(std::time::Duration::from_secs_f64(left.min(1.0)));
        epoch += 1;
        let loss = 8.0 / f64::from(epoch + 1).sqrt();
        if writeln!(std::io::stdout(), "epoch {epoch:4}  loss {loss:.4}").is_err() {
            return 0;
        }
    }
}

/// The words after the trampoline's first argument, from the process's own.
pub fn trampoline_arguments() -> Option<Vec<OsString>> {
    let mut words = std::env::args_os().skip(1);
    (words.next()? == OsStr::from_bytes(TRAMPOLINE.as_bytes())).then(|| words.collect())
}

/// The signal to die by, when this process was started for that.
pub fn die_argument() -> Option<i32> {
    let mut words = std::env::args_os().skip(1);
    let is_die = words.next()?.into_vec() == DIE.as_bytes();
    is_die.then(|| words.next()?.to_str()?.parse().ok()).flatten()
}
