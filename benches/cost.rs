//! What a traced call costs, beside the same program untraced, on each run-time that is here.
//!
//! `cargo bench --bench cost` prints, for a cheap HIP call, a launch and a small copy, the least and the median time per
//! call over interleaved rounds of `tests/apps/launch_loop` on the emulated GPU: read the differences and ratios, not the
//! absolute numbers. A release other than 5.2.3 is measured where `tests/runtimes/fetch` has unpacked it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROUNDS: usize = 5;
const RELEASES: [&str; 4] = ["5.2.3", "5.7.1", "6.4.3", "7.2.4"];
const SHOWN: [(&str, &str); 4] = [
    ("hipGetDevice", "cheap call"),
    ("launch", "launch"),
    ("drained", "launch, drained"),
    ("copy_to_device", "copy of 64 B"),
];

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Plain,
    Traced,
}

fn main() {
    // `cargo test --benches` only asks whether this runs.
    if std::env::args().any(|word| word == "--test") {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let roctop = PathBuf::from(env!("CARGO_BIN_EXE_roctop"));
    let emulated_gpu = std::env::var_os("EMULATED_GPU_SO").map_or_else(
        || {
            roctop
                .parent()
                .map(|dir| dir.join("libemulated_gpu.so"))
                .unwrap_or_default()
        },
        PathBuf::from,
    );
    if !emulated_gpu.exists() {
        println!("skipped: build the emulated GPU first (cargo build --release -p emulated-gpu)");
        return;
    }
    println!("| run-time | what | untraced min / median ns | recorded min / median ns | added (min) |");
    println!("| --- | --- | --- | --- | --- |");
    for release in RELEASES {
        let apps = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("apps-{release}"));
        let source = if release == "5.7.1" { "5.2.3" } else { release };
        let built = Command::new(root.join("tests/apps/build"))
            .arg(source)
            .arg(&apps)
            .output();
        if !built.is_ok_and(|output| output.status.success()) {
            println!("| {release} | skipped: its compiler is not here | | | |");
            continue;
        }
        let mut best: BTreeMap<(String, bool), (f64, Vec<f64>)> = BTreeMap::new();
        for round in 0..ROUNDS * 2 {
            let mode = if round % 2 == 0 { Mode::Plain } else { Mode::Traced };
            for (what, least, median) in measure(root, &roctop, &emulated_gpu, release, &apps, mode) {
                let known = best
                    .entry((what, mode == Mode::Traced))
                    .or_insert((f64::MAX, Vec::new()));
                known.0 = known.0.min(least);
                known.1.push(median);
            }
        }
        for (what, title) in SHOWN {
            let cell = |traced: bool| {
                best.get(&(what.to_owned(), traced))
                    .map(|(least, medians)| (*least, middle(medians)))
            };
            let (Some(plain), Some(traced)) = (cell(false), cell(true)) else {
                println!("| {release} | {title} | not measured | | |");
                continue;
            };
            let added = traced.0 - plain.0;
            println!(
                "| {release} | {title} | {:.0} / {:.0} | {:.0} / {:.0} | {added:+.0} ns |",
                plain.0, plain.1, traced.0, traced.1
            );
        }
    }
}

fn middle(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

fn measure(
    root: &Path,
    roctop: &Path,
    emulated_gpu: &Path,
    release: &str,
    apps: &Path,
    mode: Mode,
) -> Vec<(String, f64, f64)> {
    let recording = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("cost-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&recording);
    let mut words: Vec<PathBuf> = Vec::new();
    if mode == Mode::Traced {
        words.extend([
            roctop.into(),
            "record".into(),
            "-o".into(),
            recording.clone(),
            "--".into(),
        ]);
    }
    words.extend([apps.join("launch_loop"), "--csv".into(), "20000".into(), "1000".into()]);
    let mut command = if release == "5.2.3" {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command
    } else {
        let mut command = Command::new(root.join("tests/runtimes/run"));
        command
            .arg("--chroot")
            .arg(release)
            .arg("--preload")
            .arg(emulated_gpu)
            .args(&words);
        command
    };
    if release == "5.2.3" {
        command.env("LD_PRELOAD", emulated_gpu);
    }
    command.env("EMULATED_GPU_KERNEL_NS", "500");
    let output = command.output();
    let _ = std::fs::remove_dir_all(&recording);
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
