//! What will work here, and why not: one screen, each line a fact that was looked at.
//!
//! [`program`] looks at what is to be recorded, [`recorded`] at the run-times and what comes of them, [`trial`] records the
//! built-in workload. [`gpu`] runs checks on the GPU itself, and [`placement`] asks the ranks of a job that runs.

pub mod gpu;
pub mod placement;
pub mod program;
mod recorded;
mod trial;

use crate::embedded;
use crate::topology;
use crate::ui::run::is_ascii;
use crate::ui::theme::Depth;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

/// What a session needs of /dev/shm, in MiB.
const LEAST_ROOM: u64 = 32;

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
pub fn examine(words: &[OsString]) -> Report {
    let mut report = Report::default();
    collector(&mut report);
    session(&mut report);
    clock(&mut report);
    agents(&mut report);
    terminal(&mut report);
    environment(&mut report);
    let app = words.first();
    let hip = app.and_then(|app| program::examine(&mut report, app));
    if program::clears_environment(words) {
        let text =
            "'env -i' clears the environment: the collector is not loaded into what it starts; put roctop behind it";
        report.add(Verdict::Bad, "program", text);
    }
    recorded::examine(&mut report, hip);
    trial::examine(&mut report);
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
    if free < LEAST_ROOM {
        let text =
            format!("{text}: too little; remove what fills it, or make it larger (of a container: --shm-size 1g)");
        report.add(Verdict::Bad, "session", text);
    } else {
        report.add(Verdict::Well, "session", text);
    }
}

fn clock(report: &mut Report) {
    let source = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    match source.as_deref().map(str::trim) {
        Ok("tsc") => report.add(Verdict::Well, "clock", "time stamp counter, about 10 ns a reading"),
        Ok(other) => {
            let text = format!("the system keeps time by {other}: timestamps cost about 25 ns, or a system call each");
            report.add(Verdict::Note, "clock", text);
        }
        Err(_) => report.add(Verdict::Note, "clock", "the system's clock source is not known"),
    }
    let shift = std::fs::read_to_string("/proc/self/timens_offsets").map_or(0, |text| boottime_shift(&text));
    if shift != 0 {
        let text = format!(
            "this is a time namespace: the boot clock is {shift} s from the driver's; times of the GPU are converted by \
             samples of both"
        );
        report.add(Verdict::Note, "time namespace", text);
    }
}

/// Seconds by which a time namespace moves the boot clock, by `/proc/self/timens_offsets`.
fn boottime_shift(text: &str) -> i64 {
    let line = text.lines().find_map(|line| line.strip_prefix("boottime"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

fn agents(report: &mut Report) {
    let nodes = topology::read(Path::new("/"));
    let gpus: Vec<String> = nodes
        .iter()
        .filter(|node| node.is_gpu())
        .map(topology::Node::name)
        .collect();
    if gpus.is_empty() {
        let text = "no AMD GPU found; 'roctop demo', 'open' and 'export' work all the same";
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

fn terminal(report: &mut Report) {
    if !io::stdout().is_terminal() {
        let text = "standard output is none here: 'roctop APP' will run without a screen and print a summary";
        return report.add(Verdict::Note, "terminal", text);
    }
    let term = std::env::var("TERM").unwrap_or_default();
    if term == "dumb" {
        let text = "TERM=dumb: it says that it can show no screen; 'roctop --no-ui APP' runs without one";
        return report.add(Verdict::Note, "terminal", text);
    }
    let size = rustix::termios::tcgetwinsize(io::stdout()).map_or_else(
        |_| "of unknown size".to_owned(),
        |size| format!("{}x{}", size.ws_col, size.ws_row),
    );
    // As the screen itself finds it out.
    let colours = match Depth::detect(|name| std::env::var(name).ok()) {
        Depth::True => "true colours",
        Depth::C256 => "256 colours",
        Depth::C16 => "16 colours",
        Depth::None => "no colours",
    };
    let text = format!("{term}, {size}, {colours}");
    if is_ascii() {
        let text = format!("{text}; drawn with ASCII, by locale and TERM (--glyphs unicode draws lines and bars)");
        report.add(Verdict::Note, "terminal", text);
    } else {
        report.add(Verdict::Well, "terminal", text);
    }
}

/// Variables of the user that have to do with what is loaded into programs.
fn environment(report: &mut Report) {
    for (name, what) in [
        ("LD_PRELOAD", "stays in front of the collector"),
        ("HSA_TOOLS_LIB", "is loaded behind the collector"),
        (
            "ROCP_TOOL_LIBRARIES",
            "is another tool of rocprofiler-sdk: both get the run-time's tables",
        ),
        (
            "ROCPROFILER_REGISTER_FORCE_LOAD",
            "ends programs that find no rocprofiler-sdk; roctop does not need it",
        ),
    ] {
        if let Some(value) = std::env::var_os(name).filter(|value| !value.is_empty()) {
            report.add(
                Verdict::Note,
                "environment",
                format!("{name}={} {what}", value.display()),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_namespace_is_told_by_its_offsets() {
        assert_eq!(
            boottime_shift("monotonic           0         0\nboottime            0         0\n"),
            0
        );
        assert_eq!(boottime_shift("monotonic  5 0\nboottime    -86400  5\n"), -86_400);
        assert_eq!(boottime_shift("nonsense"), 0);
    }
}
