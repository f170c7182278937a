//! The program that is to be started, found as a shell would find it.

use crate::process::elf;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

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
        } else if is_no_program(&program.path) {
            let error = std::io::Error::from_raw_os_error(rustix::io::Errno::NOEXEC.raw_os_error());
            return Err(NotStarted::refused(name, &error));
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

/// Why a program cannot be started: the exit code that `env` would give, and the reason.
#[derive(Debug)]
pub struct NotStarted {
    /// 127 not found, 126 found but cannot be run.
    pub code: u8,
    /// One line.
    pub reason: String,
}

impl fmt::Display for NotStarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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

/// Whether a file is a script that does not say what runs it: shells, and execvp(3), give it to /bin/sh. They take a text for
/// one in whose beginning there is no zero.
fn is_nameless_script(path: &Path) -> bool {
    const BEGINNING: usize = 128;
    File::open(path)
        .is_ok_and(|file| elf::kind(&file) == elf::Kind::Other && !elf::Bytes::upto(&file, 0, BEGINNING).contains(&0))
}

/// Whether the Linux kernel knows nothing to do with a file that is no script either: execvp(3) would give it to /bin/sh all the
/// same. What binfmt_misc may know is left to the kernel.
fn is_no_program(path: &Path) -> bool {
    let has_formats = || {
        let known = std::fs::read_dir("/proc/sys/fs/binfmt_misc")
            .into_iter()
            .flatten()
            .flatten();
        known
            .filter(|entry| entry.file_name() != "register" && entry.file_name() != "status")
            .count()
            > 0
    };
    File::open(path).is_ok_and(|file| elf::kind(&file) == elf::Kind::Other) && !has_formats()
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
