//! Cost of a traced call beside the same program untraced, on each available run-time.
//!
//! `cargo bench --bench cost [-- RELEASE…]` prints the minimum and median time per call over interleaved rounds of
//! `tests/apps/launch_loop`, `launch_streams` and `raw_hsa cost` on the emulated GPU: untraced, with a tool that does nothing
//! (`tests/apps/libempty_tool.c`: the cost of any profiler that uses HSA's queues and HIP's callback), and recorded
//! from each source, and by the flight recorder with two conditions on every record. Compare differences and ratios, not absolute numbers. It then prints, from the emulated GPU's own
//! log, the number of concurrent kernels and the gaps between kernels, untraced and recorded. A release other than
//! 5.2.3 is measured if `tests/runtimes/fetch` has unpacked it. `--streams` measures only the launches of several threads into
//! several streams; their rows have the rate of all threads, too, as a part of the untraced one.

#[path = "cost/overlap.rs"]
mod overlap;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROUNDS: usize = 5;
const RELEASES: [&str; 4] = ["5.2.3", "5.7.1", "6.4.3", "7.2.4"];

/// How the program is run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mode {
    Plain,
    /// With a tool that does nothing.
    Empty,
    /// Recorded with these options, separated by blanks.
    Recorded(&'static str),
}

/// A row of the table: what is measured, its name there, the program, and how it is recorded.
struct Line {
    what: &'static str,
    title: &'static str,
    program: &'static [&'static str],
    options: &'static [&'static str],
}

const LOOP: &[&str] = &["launch_loop", "--csv", "20000", "1000"];
const CALLS: &[&str] = &["raw_hsa", "cost"];
/// Launches of 1, 8 and 16 threads into 4, 4 and 16 streams each.
const STREAMS: [&[&str]; 3] = [
    &["launch_streams", "--csv", "1", "4", "1000", "300"],
    &["launch_streams", "--csv", "8", "4", "500", "60"],
    &["launch_streams", "--csv", "16", "16", "500", "15"],
];
const SOURCES: &[&str] = &[
    "--dispatch-source=auto",
    "--dispatch-source=hsa",
    "--dispatch-source=hip",
    "--keep=30s --on=dur(empty)>1s --on=error(hip*)",
];
const LINES: [Line; 9] = [
    Line {
        what: "host_1x4",
        title: "launch of 1 thread into 4 streams",
        program: STREAMS[0],
        options: &["--dispatch-source=auto", "--sites=off"],
    },
    Line {
        what: "host_8x4",
        title: "launches of 8 threads into 4 streams each",
        program: STREAMS[1],
        options: &["--dispatch-source=auto"],
    },
    Line {
        what: "host_16x16",
        title: "launches of 16 threads into 16 streams each",
        program: STREAMS[2],
        options: &["--dispatch-source=auto"],
    },
    Line {
        what: "hipGetDevice",
        title: "cheap call of HIP",
        program: LOOP,
        options: SOURCES,
    },
    Line {
        what: "launch",
        title: "launch",
        program: LOOP,
        options: SOURCES,
    },
    Line {
        what: "drained",
        title: "launch, drained",
        program: LOOP,
        options: SOURCES,
    },
    Line {
        what: "copy_to_device",
        title: "copy of 64 B",
        program: LOOP,
        options: SOURCES,
    },
    Line {
        what: "hsa_queue_load_read_index",
        title: "cheap call of HSA",
        program: CALLS,
        options: &["--hsa-trace"],
    },
    Line {
        what: "hsa_system_get_info",
        title: "the next one",
        program: CALLS,
        options: &["--hsa-trace"],
    },
];

/// What a program of a release needs to run.
pub(crate) struct Rig {
    root: &'static Path,
    roctop: PathBuf,
    emulated_gpu: PathBuf,
    release: &'static str,
    apps: PathBuf,
    scratch: PathBuf,
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --benches` only checks that this runs.
    if words.iter().any(|word| word == "--test") {
        return;
    }
    let chosen = |release: &&str| {
        let mut releases = words.iter().filter(|word| !word.starts_with('-')).peekable();
        releases.peek().is_none() || releases.any(|word| word == release)
    };
    let rigs: Vec<Rig> = RELEASES.into_iter().filter(chosen).filter_map(Rig::new).collect();
    let is_only_streams = words.iter().any(|word| word == "--streams");
    let programs: Vec<&[&str]> = if is_only_streams {
        STREAMS.to_vec()
    } else {
        [LOOP, CALLS].into_iter().chain(STREAMS).collect()
    };
    println!("| run-time | what | how | min / median ns | added (min) |");
    println!("| --- | --- | --- | --- | --- |");
    for rig in &rigs {
        rig.costs(&programs);
    }
    if !is_only_streams {
        println!();
        overlap::print(&rigs);
    }
}

impl Rig {
    fn new(release: &'static str) -> Option<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let roctop = PathBuf::from(env!("CARGO_BIN_EXE_roctop"));
        let beside = || roctop.parent().map(|dir| dir.join("libemulated_gpu.so"));
        let emulated_gpu = std::env::var_os("EMULATED_GPU_SO").map(PathBuf::from).or_else(beside)?;
        if !emulated_gpu.exists() {
            println!("{release}: skipped: build the emulated GPU first (cargo build --release -p emulated-gpu)");
            return None;
        }
        let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let apps = scratch.join(format!("apps-{release}"));
        let source = if release == "5.7.1" { "5.2.3" } else { release };
        let built = Command::new(root.join("tests/apps/build"))
            .arg(source)
            .arg(&apps)
            .output();
        if !built.is_ok_and(|output| output.status.success()) {
            println!("{release}: skipped: its compiler is not here");
            return None;
        }
        Some(Self {
            root,
            roctop,
            emulated_gpu,
            release,
            apps,
            scratch: scratch.join(format!("cost-{}", std::process::id())),
        })
    }

    fn costs(&self, programs: &[&'static [&'static str]]) {
        let mut best: BTreeMap<(&str, Mode), (f64, Vec<f64>)> = BTreeMap::new();
        for _ in 0..ROUNDS {
            for &program in programs {
                let options = LINES
                    .iter()
                    .find(|line| line.program == program)
                    .map_or(&[] as &[_], |line| line.options);
                let recorded = options.iter().map(|option| Mode::Recorded(option));
                for mode in [Mode::Plain, Mode::Empty].into_iter().chain(recorded) {
                    for (what, least, median) in self.measure(program, mode) {
                        let Some(line) = LINES.iter().find(|line| line.what == what) else {
                            continue;
                        };
                        let known = best.entry((line.what, mode)).or_insert((f64::MAX, Vec::new()));
                        known.0 = known.0.min(least);
                        known.1.push(median);
                    }
                }
            }
        }
        for line in LINES.iter().filter(|line| programs.contains(&line.program)) {
            let Some((plain, _)) = best.get(&(line.what, Mode::Plain)).cloned() else {
                println!("| {} | {} | not measured | | |", self.release, line.title);
                continue;
            };
            let recorded = line.options.iter().map(|option| Mode::Recorded(option));
            for mode in [Mode::Plain, Mode::Empty].into_iter().chain(recorded) {
                let Some((least, medians)) = best.get(&(line.what, mode)) else {
                    continue;
                };
                let how = match mode {
                    Mode::Plain => "untraced",
                    Mode::Empty => "empty tool",
                    Mode::Recorded(option) => option,
                };
                let added = least - plain;
                let rate = if STREAMS.contains(&line.program) {
                    format!(", {:.2} × the rate", plain / least)
                } else {
                    String::new()
                };
                println!(
                    "| {} | {} | {how} | {least:.0} / {:.0} | {added:+.0} ns{rate} |",
                    self.release,
                    line.title,
                    middle(medians)
                );
            }
        }
    }

    fn measure(&self, program: &[&str], mode: Mode) -> Vec<(String, f64, f64)> {
        let output = self
            .command(program, mode)
            .env("EMULATED_GPU_KERNEL_NS", "500")
            .output();
        let _ = std::fs::remove_dir_all(&self.scratch);
        let text = output
            .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
            .unwrap_or_default();
        text.lines()
            .filter_map(|line| {
                let mut cells = line.split(',');
                let (what, _, least, median) = (cells.next()?, cells.next()?, cells.next()?, cells.next()?);
                Some((what.to_owned(), least.parse().ok()?, median.parse().ok()?))
            })
            .collect()
    }

    /// The program on this release's run-time.
    fn command(&self, program: &[&str], mode: Mode) -> Command {
        let _ = std::fs::remove_dir_all(&self.scratch);
        let mut words: Vec<PathBuf> = Vec::new();
        if let Mode::Recorded(option) = mode {
            words.extend([
                self.roctop.clone(),
                "record".into(),
                "-o".into(),
                self.scratch.join("rec"),
            ]);
            words.extend(option.split(' ').map(PathBuf::from));
            words.push("--".into());
            let _ = std::fs::create_dir_all(&self.scratch);
        }
        words.extend(program.first().map(|name| self.apps.join(name)));
        words.extend(program.iter().skip(1).map(PathBuf::from));
        let mut words = words.into_iter();
        let mut command = if self.release == "5.2.3" {
            let mut command = Command::new(words.next().unwrap_or_default());
            command.env("LD_PRELOAD", &self.emulated_gpu);
            command
        } else {
            let mut command = Command::new(self.root.join("tests/runtimes/run"));
            command
                .args(["--chroot", self.release, "--preload"])
                .arg(&self.emulated_gpu);
            command
        };
        command.args(words);
        if mode == Mode::Empty {
            command.env("HSA_TOOLS_LIB", self.apps.join("libempty_tool.so"));
        }
        command
    }
}

fn middle(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}
