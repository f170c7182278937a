//! Starts the program with the collector inside, and leaves everything else as it would be without roctop.
//!
//! Headless, the program inherits the terminal as it is. Under the live screen it gets a session and a
//! pseudo-terminal. These take calls between fork and exec, so roctop starts itself once more as a small trampoline
//! (`roctop __launch`) that makes them and then becomes the program.

mod output;
mod program;
mod sanitizer;

pub use output::Output;
pub use program::{NotStarted, Program};
pub use sanitizer::sanitizer;

use crate::embedded::{Installed, odd_character};
use anyhow::{Context, Result, anyhow, bail};
use roctop_ring::session::ENV_SESSION;
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// First argument that makes roctop the trampoline.
pub const TRAMPOLINE: &str = "__launch";

/// HSA loads the tools that `HSA_TOOLS_LIB` names only if this is set or nobody takes its tables through rocprofiler-register, as the
/// collector does.
const OLD_TOOLS: &str = "HSA_TOOLS_ROCPROFILER_V1_TOOLS";

/// Variables that put the collector into the program. What the user set stays: in front, but for tools of HSA, of which
/// the first one is nearest to the run-time; there the collector sees the queues of the others. Before all comes the
/// library of a sanitizer that the program is linked to, which refuses to work from another place.
///
/// Errors: the path of such a library cannot be in `LD_PRELOAD`.
pub fn environment(installed: &Installed, session: &Path, program: &Path) -> Result<Vec<(OsString, OsString)>> {
    let user = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    let sanitizer = sanitizer(program).filter(|library| {
        let name = library.file_name().unwrap_or_default().to_string_lossy().into_owned();
        !user.to_string_lossy().contains(&name)
    });
    if let Some((library, odd)) = sanitizer.as_deref().and_then(|path| Some((path, odd_character(path)?))) {
        bail!(
            "the program needs {} in LD_PRELOAD, which cannot hold {odd} in a path",
            library.display()
        );
    }
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
    let others = std::env::var_os("HSA_TOOLS_LIB").filter(|others| !others.is_empty());
    if let Some(others) = &others {
        tools.push(" ");
        tools.push(others);
    }
    let mut variables = vec![
        ("LD_PRELOAD".into(), preload),
        (OsString::from("HSA_TOOLS_LIB"), tools),
        (ENV_SESSION.into(), session.as_os_str().to_owned()),
    ];
    if others.is_some() && std::env::var_os(OLD_TOOLS).is_none() {
        variables.push((OLD_TOOLS.into(), "1".into()));
    }
    if !has_roctx() {
        // Programs that open ROC-TX by name find the collector under that name.
        variables.push(joined("LD_LIBRARY_PATH", ":", installed.roctx.as_os_str()));
    }
    Ok(variables)
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
    let streams = if let Some(file) = output.file()? {
        command.stdout(file.try_clone()?).stderr(file);
        vec![0]
    } else if *output == Output::Error {
        command.stdout(std::io::stderr());
        vec![0, 2]
    } else {
        vec![0, 1, 2]
    };
    roctop_signals::restore(&mut command, streams);
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

/// Prepares the program in a separate session, with a pseudo-terminal or a pipe. Its standard input stays roctop's when
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
    // Of these, standard input alone may be roctop's.
    roctop_signals::restore(&mut command, 0..1);
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
    let master = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).context(
        "cannot open a pseudo-terminal for the program (is /dev/pts mounted?); '--app-io pipe' does without one",
    )?;
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
    roctop_signals::restore(&mut command, 0..3);
    let error = command.exec();
    Err(NotStarted::refused(&name, &error).into())
}

/// The words after the trampoline's first argument, from the process's own.
pub fn trampoline_arguments() -> Option<Vec<OsString>> {
    let mut words = std::env::args_os().skip(1);
    (words.next()? == OsStr::from_bytes(TRAMPOLINE.as_bytes())).then(|| words.collect())
}
