//! A program: can anything be loaded into it, and which run-time will it use?

use super::{Report, Verdict};
use crate::process::elf::{self, Elf, Kind};
use crate::process::launch::{Program, sanitizer};
use crate::process::library::{self, Library};
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Scripts that run scripts are followed so far.
const MAX_SCRIPTS: usize = 4;

/// Why nothing can be loaded into this program, if so.
pub fn obstacle(path: &Path) -> Option<String> {
    let shown = path.display();
    let mode = std::fs::metadata(path).ok()?.permissions().mode();
    if mode & 0o6000 != 0 {
        return Some(format!(
            "{shown} is setuid or setgid: the loader ignores preloaded libraries"
        ));
    }
    if has_capabilities(path) {
        return Some(format!(
            "{shown} has file capabilities: the loader ignores preloaded libraries"
        ));
    }
    match kind(path)? {
        Kind::Native(elf) => obstacle_of(&shown.to_string(), &elf),
        Kind::Foreign(what) => Some(format!(
            "{shown} is {what}; the collector is for 64-bit x86-64 programs"
        )),
        Kind::Script(_) => None,
        Kind::Other => Some(format!("{shown} is neither an ELF program nor a script")),
    }
}

fn obstacle_of(shown: &str, elf: &Elf) -> Option<String> {
    match &elf.interpreter {
        // The loader, started by its name with a program as its argument, preloads into that one.
        None if Path::new(shown).file_name().is_some_and(is_loader) => None,
        None => Some(format!(
            "{shown} is linked statically: nothing can be preloaded into it"
        )),
        Some(loader) if loader.contains("ld-musl") => Some(format!(
            "{shown} is linked to musl ({loader}); the collector needs glibc"
        )),
        Some(_) => None,
    }
}

/// Whether these words start a program by way of `env` without an environment.
pub(super) fn clears_environment(words: &[OsString]) -> bool {
    let Some((first, rest)) = words.split_first() else {
        return false;
    };
    let is_env = Path::new(first).file_name().is_some_and(|name| name == "env");
    let mut options = rest.iter().take_while(|word| word.to_string_lossy().starts_with('-'));
    is_env && options.any(|word| word == "-i" || word == "-" || word == "--ignore-environment")
}

fn is_loader(name: &OsStr) -> bool {
    name.to_string_lossy().starts_with("ld-linux-x86-64.so")
}

fn kind(path: &Path) -> Option<Kind> {
    Some(elf::kind(&std::fs::File::open(path).ok()?))
}

fn has_capabilities(path: &Path) -> bool {
    let mut value = [0u8; 64];
    rustix::fs::getxattr(path, "security.capability", &mut value).is_ok_and(|length| length > 0)
}

/// Looks at the program; gives the HIP library that it will load, when it is linked to one.
pub(super) fn examine(report: &mut Report, app: &OsStr) -> Option<Library> {
    let program = match Program::find(&[app.to_owned()]) {
        Ok(program) => program,
        Err(error) => {
            report.add(Verdict::Bad, "program", error.reason);
            return None;
        }
    };
    let mut path = program.path;
    if let Err(error) = std::fs::File::open(&path) {
        let text = format!("{}: {error}, so what it is linked to is not known", path.display());
        report.add(Verdict::Note, "program", text);
        return None;
    }
    for _ in 0..MAX_SCRIPTS {
        if let Some(obstacle) = obstacle(&path) {
            report.add(Verdict::Bad, "program", obstacle);
            return None;
        }
        let shown = path.display().to_string();
        match kind(&path)? {
            Kind::Script(line) => {
                report.add(
                    Verdict::Note,
                    "program",
                    format!("{shown} is a script for {line}: what it starts is recorded"),
                );
                path = interpreter(&line)?;
            }
            Kind::Native(elf) => return native(report, &path, &elf),
            _ => return None,
        }
    }
    None
}

/// The program that runs a script, by its first line.
fn interpreter(line: &str) -> Option<PathBuf> {
    let mut words = line.split_whitespace();
    let first = words.next()?;
    if first.ends_with("/env") {
        let name = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
        return Program::find(&[name.into()]).ok().map(|program| program.path);
    }
    Some(first.into())
}

/// Starts of file names of libraries of MPI.
const MPI_LIBRARIES: [&str; 6] = [
    "libmpi.so",
    "libmpich.so",
    "libmpi_abi.so",
    "libmpi_",
    "libmpichfort.so",
    "libmpifort",
];
/// Libraries of MPI of which one needs the next.
const MAX_MPI_LIBRARIES: usize = 4;

/// Says which MPI a program is linked with, and whether its calls will be seen. Many programs have none.
fn mpi(report: &mut Report, path: &Path, elf: &Elf) {
    let named = |elf: &Elf| {
        let with = |part: &&str| elf.needed.iter().find(|name| name.starts_with(part)).cloned();
        MPI_LIBRARIES.iter().find_map(with)
    };
    let Some(name) = named(elf) else {
        if Library::open(path).mentions("\0PMPI_Init\0") {
            let text = "the program contains MPI: its calls are not visible";
            report.add(Verdict::Note, "MPI calls", text);
        }
        return;
    };
    let own = library::named_by(elf, path);
    let Some(mut found) = library::find_exact(&name, &own) else {
        let text = format!("{name} was not found where the program and the system look: the program will not start");
        return report.add(Verdict::Bad, "MPI calls", text);
    };
    // A library of Fortran needs that of C.
    for _ in 1..MAX_MPI_LIBRARIES {
        let Some(Kind::Native(elf)) = kind(&found) else { break };
        let own = [library::named_by(&elf, &found), own.clone()].concat();
        let Some(next) = named(&elf).and_then(|name| library::find_exact(&name, &own)) else {
            break;
        };
        found = next;
    }
    let library = Library::open(&found);
    let shown = library.path.display();
    let text = if library.mentions("ompi_mpi_comm_world") {
        format!("by import tables, with communicators and bytes (Open MPI); {shown}")
    } else if library.mentions("MPIR_Dup_fn") {
        format!("by import tables, with communicators and bytes (MPICH or its kin); {shown}")
    } else if library.mentions("MPI_Abi_get_version") {
        format!("by import tables, with communicators and bytes (MPI 5's binary interface); {shown}")
    } else {
        format!("by import tables; this MPI is not known, so without communicators and bytes; {shown}")
    };
    report.add(Verdict::Well, "MPI calls", text);
}

fn native(report: &mut Report, path: &Path, elf: &Elf) -> Option<Library> {
    let shown = path.display();
    report.add(Verdict::Well, "program", format!("{shown} can be recorded"));
    if let Some(library) = sanitizer(path) {
        let text = format!(
            "{} is loaded before the collector, as the sanitizer wants it",
            library.display()
        );
        report.add(Verdict::Note, "sanitizer", text);
    }
    mpi(report, path, elf);
    let linked = |part: &str| elf.needed.iter().find(|name| name.starts_with(part));
    let Some(name) = linked("libamdhip64.so") else {
        let what = if linked("libhsa-runtime64.so").is_some() {
            "linked to HSA, not to HIP: its dispatches, copies and HSA calls are recorded"
        } else {
            "not linked to HIP itself: HIP is recorded when something of it loads HIP"
        };
        report.add(Verdict::Note, "program", what);
        return None;
    };
    let Some(found) = library::find_exact(name, &library::named_by(elf, path)) else {
        let text = format!("{name} was not found where the program and the system look: the program will not start");
        report.add(Verdict::Bad, "program", text);
        return None;
    };
    Some(Library::open(&found))
}
