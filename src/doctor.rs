//! What will work here, and why not: one screen, each line a fact that was looked at.

use crate::launch::Program;
use crate::{embedded, topology};
use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// How a thing stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As it should be.
    Well,
    /// Worth knowing; roctop works.
    Note,
    /// Something will not work.
    Bad,
}

/// One line of the report.
#[derive(Clone, Debug)]
pub struct Finding {
    /// How it stands.
    pub verdict: Verdict,
    /// What was looked at.
    pub subject: String,
    /// What was found, and what to do.
    pub text: String,
}

/// The report.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Its lines.
    pub findings: Vec<Finding>,
}

impl Report {
    fn add(&mut self, verdict: Verdict, subject: &str, text: impl Into<String>) {
        self.findings.push(Finding {
            verdict,
            subject: subject.to_owned(),
            text: text.into(),
        });
    }

    /// True when nothing is bad.
    pub fn is_well(&self) -> bool {
        self.findings.iter().all(|finding| finding.verdict != Verdict::Bad)
    }

    /// Prints the report.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "roctop {} doctor", env!("CARGO_PKG_VERSION"))?;
        for finding in &self.findings {
            let mark = match finding.verdict {
                Verdict::Well => "ok  ",
                Verdict::Note => "note",
                Verdict::Bad => "BAD ",
            };
            writeln!(out, "{mark}  {:14} {}", finding.subject, finding.text)?;
        }
        Ok(())
    }
}

/// Looks at this machine and, when one is named, at a program.
pub fn examine(app: Option<&OsStr>) -> Report {
    let mut report = Report::default();
    collector(&mut report);
    session(&mut report);
    clock(&mut report);
    agents(&mut report);
    run_times(&mut report);
    if let Some(app) = app {
        program(&mut report, app);
    }
    report
}

fn collector(report: &mut Report) {
    match embedded::install() {
        Ok(installed) => report.add(Verdict::Well, "collector", installed.library.display().to_string()),
        Err(error) => report.add(Verdict::Bad, "collector", format!("{error:#}")),
    }
}

fn session(report: &mut Report) {
    let shm = Path::new("/dev/shm");
    let Ok(facts) = rustix::fs::statvfs(shm) else {
        report.add(
            Verdict::Note,
            "session",
            "/dev/shm is not there; XDG_RUNTIME_DIR is tried instead",
        );
        return;
    };
    let mib = |blocks: u64| blocks.saturating_mul(facts.f_frsize) >> 20;
    let (free, size) = (mib(facts.f_bavail), mib(facts.f_blocks));
    let budget = (size / 4).min(512);
    let text = format!("/dev/shm has {free} of {size} MiB free; the rings of a process take at most {budget} MiB");
    report.add(if free < 32 { Verdict::Bad } else { Verdict::Well }, "session", text);
}

fn clock(report: &mut Report) {
    let source = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    match source.as_deref().map(str::trim) {
        Ok("tsc") => report.add(Verdict::Well, "clock", "time stamp counter, about 10 ns a reading"),
        Ok(other) => {
            let text = format!("the kernel keeps time by {other}: timestamps cost about 25 ns, or a system call each");
            report.add(Verdict::Note, "clock", text);
        }
        Err(_) => report.add(Verdict::Note, "clock", "the kernel's clock source is not known"),
    }
}

fn agents(report: &mut Report) {
    let nodes = topology::read(Path::new("/"));
    let gpus: Vec<String> = nodes
        .iter()
        .filter(|node| node.is_gpu())
        .map(topology::Node::name)
        .collect();
    if gpus.is_empty() {
        let text = "no GPU in the driver's topology; 'roctop demo', 'open' and 'export' work all the same";
        report.add(Verdict::Note, "agents", text);
        return;
    }
    report.add(
        Verdict::Well,
        "agents",
        format!("{} GPU: {}", gpus.len(), gpus.join(", ")),
    );
    match std::fs::OpenOptions::new().read(true).write(true).open("/dev/kfd") {
        Ok(_) => report.add(Verdict::Well, "driver", "/dev/kfd can be opened"),
        Err(error) => {
            let text = format!("/dev/kfd: {error}; you may have to be in the groups render and video");
            report.add(Verdict::Bad, "driver", text);
        }
    }
}

/// Directories in which the system's libraries lie.
fn library_directories() -> Vec<PathBuf> {
    let path = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    places.extend(std::env::var_os("ROCM_PATH").map(|path| PathBuf::from(path).join("lib")));
    for place in [
        "/opt/rocm/lib",
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib64",
        "/usr/local/lib",
    ] {
        places.push(place.into());
    }
    places
}

fn find_library(prefix: &str) -> Option<PathBuf> {
    for directory in library_directories() {
        let Ok(entries) = std::fs::read_dir(&directory) else {
            continue;
        };
        let mut found: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| {
                path.file_name()
                    .is_some_and(|name| name.to_string_lossy().starts_with(prefix))
            })
            .collect();
        found.sort_by_key(|path| std::cmp::Reverse(path.as_os_str().len()));
        if let Some(path) = found.into_iter().next() {
            return Some(path.canonicalize().unwrap_or(path));
        }
    }
    None
}

fn run_times(report: &mut Report) {
    match find_library("libamdhip64.so.") {
        Some(path) => {
            let symbols = std::fs::read(&path).unwrap_or_default();
            let way = if contains(&symbols, b"hipRegisterTracerCallback") {
                "HIP calls by wrapped functions, those of libraries with a scope of their own by the tracer callback"
            } else {
                "HIP calls by wrapped functions; those of libraries with a scope of their own (RTLD_DEEPBIND) are not seen"
            };
            report.add(Verdict::Well, "HIP", format!("{}: {way}", path.display()));
        }
        None => report.add(Verdict::Note, "HIP", "no libamdhip64 in the usual places"),
    }
    match find_library("libhsa-runtime64.so.") {
        Some(path) => {
            let text = format!(
                "{}: dispatches and copies with their own times, by interception",
                path.display()
            );
            report.add(Verdict::Well, "HSA", text);
        }
        None => report.add(Verdict::Note, "HSA", "no libhsa-runtime64 in the usual places"),
    }
}

fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle)
}

fn program(report: &mut Report, app: &OsStr) {
    let program = match Program::find(&[app.to_owned()]) {
        Ok(program) => program,
        Err(error) => return report.add(Verdict::Bad, "program", error.reason),
    };
    let shown = program.path.display();
    let bytes = match std::fs::read(&program.path) {
        Ok(bytes) => bytes,
        Err(error) => return report.add(Verdict::Bad, "program", format!("{shown}: {error}")),
    };
    let mode =
        std::fs::metadata(&program.path).map(|facts| std::os::unix::fs::PermissionsExt::mode(&facts.permissions()));
    if mode.is_ok_and(|mode| mode & 0o6000 != 0) {
        return report.add(
            Verdict::Bad,
            "program",
            format!("{shown} is setuid or setgid: the loader ignores preloaded libraries"),
        );
    }
    match bytes.get(..5) {
        Some([0x7f, b'E', b'L', b'F', 2]) => {}
        Some([0x7f, b'E', b'L', b'F', 1]) => {
            return report.add(
                Verdict::Bad,
                "program",
                format!("{shown} is a 32-bit program; the collector is 64-bit"),
            );
        }
        Some([b'#', b'!', ..]) => {
            return report.add(
                Verdict::Note,
                "program",
                format!("{shown} is a script: what it starts is recorded"),
            );
        }
        _ => return report.add(Verdict::Bad, "program", format!("{shown} is not an ELF program")),
    }
    if !contains(&bytes, b"ld-linux") && !contains(&bytes, b"ld-musl") {
        return report.add(
            Verdict::Bad,
            "program",
            format!("{shown} is linked statically: nothing can be preloaded into it"),
        );
    }
    if contains(&bytes, b"ld-musl") {
        return report.add(
            Verdict::Bad,
            "program",
            format!("{shown} is linked to musl; the collector needs glibc"),
        );
    }
    report.add(Verdict::Well, "program", format!("{shown} can be recorded"));
}
