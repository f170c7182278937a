//! roctop beside DuckDB and Polars, which write the same CSV and Parquet files on as many threads.

use super::{Made, bytes, make, run_watched};
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// The script that writes files with these libraries.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/export/peers.py");
/// Its exit code if the library is missing.
const MISSING: i32 = 3;

/// What a program needed to write a format.
struct Cost {
    /// Everything, from file to file.
    whole: Duration,
    /// Writing alone: rows that are in memory or, for roctop, sorted and numbered.
    writing: Duration,
    /// Largest resident size.
    mib: u64,
}

/// Prints a table with a row per format and program.
pub(super) fn compare(place: &Path, records: u64) {
    let python = std::env::var_os("ROCTOP_BENCH_PYTHON").unwrap_or_else(|| "python3".into());
    let script = std::env::var_os("ROCTOP_BENCH_PEERS").unwrap_or_else(|| SCRIPT.into());
    let (recording, source, out) = (place.join("rec"), place.join("source"), place.join("out"));
    let made = Made {
        records,
        threads: 16,
        ..Made::default()
    };
    let millions = make(&recording, &made).records() as f64 / 1e6;
    let threads = std::thread::available_parallelism().unwrap().get().to_string();
    println!("{millions:.1} million records, {threads} threads\n");
    println!(
        "| format | program | file to file, s | M records/s | writing alone, s | M records/s | MiB resident | MB written |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    let line = |format: &str, program: &str, cost: &Cost, size: u64| {
        let (whole, writing) = (cost.whole.as_secs_f64(), cost.writing.as_secs_f64());
        let speeds = (millions / whole, millions / writing);
        let (mib, size) = (cost.mib, size as f64 / 1e6);
        println!(
            "| {format} | {program} | {whole:.2} | {:.2} | {writing:.2} | {:.2} | {mib} | {size:.0} |",
            speeds.0, speeds.1
        );
    };
    // The peers read the Parquet files, and their CSV files must have the bytes of roctop's.
    for (format, to) in [("parquet", source.clone()), ("csv", source.join("csv"))] {
        let words = [
            "export",
            recording.to_str().unwrap(),
            "--format",
            format,
            "--threads",
            &threads,
        ];
        let words = [&words[..], &["-o", "t", "-d", to.to_str().unwrap()]].concat();
        line(format, "roctop", &roctop(&words, &to), bytes(&to));
        for (peer, name) in [("duckdb", "DuckDB"), ("polars", "Polars")] {
            std::fs::create_dir_all(&out).unwrap();
            let mut command = Command::new(&python);
            command
                .arg(&script)
                .args([peer, format])
                .args([&source, &out])
                .arg(&threads);
            let output = command.output().unwrap();
            match output.status.code() {
                Some(0) => line(format, name, &cost(&output), bytes(&out)),
                Some(MISSING) => println!(
                    "| {format} | {name} | skipped: {} does not have it | | | | | |",
                    python.display()
                ),
                _ => panic!("{name}: {}", String::from_utf8_lossy(&output.stderr)),
            }
            std::fs::remove_dir_all(&out).unwrap();
        }
    }
}

/// Runs roctop. It has sorted and numbered all rows when it creates the first file below `out`.
fn roctop(words: &[&str], out: &Path) -> Cost {
    let (begin, mut sorted) = (Instant::now(), None);
    let (whole, mib) = run_watched(words, || {
        if sorted.is_none() && has_file(out) {
            sorted = Some(begin.elapsed());
        }
    });
    let writing = whole.saturating_sub(sorted.unwrap_or_default());
    Cost { whole, writing, mib }
}

/// Whether a folder has a file, other than hidden ones: these are temporary.
fn has_file(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
        .any(|entry| entry.path().is_file() || has_file(&entry.path()))
}

/// What the script says.
fn cost(output: &Output) -> Cost {
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
    let [whole, writing, kib] = numbers[..] else {
        panic!("{text}");
    };
    Cost {
        whole: Duration::from_secs_f64(whole),
        writing: Duration::from_secs_f64(writing),
        mib: kib as u64 / 1024,
    }
}
