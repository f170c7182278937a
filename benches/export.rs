//! Size of a recording on disk, speed of its export, and time to open a recording of ten gigabytes.
//!
//! `cargo bench --bench export -- threads` measures each format on one core and on all cores of this process instead, and
//! the bare insert of the rows of the database.
//!
//! `cargo bench --bench export -- peers` measures CSV and Parquet beside DuckDB and Polars, if `ROCTOP_BENCH_PYTHON` (default
//! `python3`) has them (`pip install duckdb polars`). They read the Parquet files that roctop wrote of the same recording,
//! which are already sorted and numbered, and write the same rows in the same order, on as many threads
//! (`benches/export/peers.py`, or the script that `ROCTOP_BENCH_PEERS` names).
//!
//! `cargo bench --bench export` prints a Markdown table. The recorder itself writes `ROCTOP_BENCH_RECORDS` synthetic
//! records (default 5 million): launches, kernels, copies and ranges of four threads. Memory is the largest resident size
//! of each process. `ROCTOP_BENCH_BINARY` selects a roctop other than the one built. `ROCTOP_BENCH_PLACE` is the output
//! directory (two to three times the size of the CSV).
//!
//! A second recording has eight counter values, a program-counter sample and a gauge per dispatch, and a mark with a
//! distinct text at each step. It measures the memory that these take during an export.
//!
//! The recording of ten gigabytes is the synthetic one, its segments linked under further numbers until their sizes add
//! up. Opening it reads the index of every segment, as for a real one. A time range is then in every copy, so the cost
//! of seeking is an upper bound. `ROCTOP_BENCH_LARGE=made` writes a complete one instead.

#![expect(clippy::unwrap_used, reason = "a bench that cannot go on has failed")]

#[path = "../tests/integration/kit/made.rs"]
mod made;
#[path = "export/peers.rs"]
mod peers;

use made::{Made, make};
use roctop::item::Span;
use roctop::recording::{Merged, Recording};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const DEFAULT_RECORDS: u64 = 5_000_000;
/// Size in bytes of the recording to open.
const LARGE_BYTES: u64 = 10_000_000_000;
/// Number of records of that size, at 29.7 bytes each.
const LARGE_RECORDS: u64 = LARGE_BYTES * 10 / 297;

fn bytes(place: &Path) -> u64 {
    let entries = std::fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| {
            if path.is_dir() {
                bytes(&path)
            } else {
                path.metadata().unwrap().len()
            }
        })
        .sum()
}

/// Runs roctop to its end; returns its time and its largest resident size in MiB.
fn run(words: &[&str]) -> (Duration, u64) {
    run_watched(words, || ())
}

/// As [`run`]; calls `watch` every few milliseconds.
fn run_watched(words: &[&str], mut watch: impl FnMut()) -> (Duration, u64) {
    let begin = Instant::now();
    let binary = std::env::var_os("ROCTOP_BENCH_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_roctop").into());
    let mut child = Command::new(binary)
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    let mut most = 0;
    loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let found = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        most = most.max(found.unwrap_or(0));
        watch();
        if let Some(code) = child.try_wait().unwrap() {
            assert!(code.success(), "{words:?}: {code}");
            return (begin.elapsed(), most / 1024);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Links segments under further numbers until their sizes add up to `LARGE_BYTES`.
fn enlarge(recording: &Path, large: &Path) -> u64 {
    std::fs::create_dir_all(large).unwrap();
    let mut segments = Vec::new();
    let mut size = 0;
    for entry in std::fs::read_dir(recording).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        size += path.metadata().unwrap().len();
        std::fs::hard_link(&path, large.join(&name)).unwrap();
        if let Some(number) = name
            .strip_prefix("segment-")
            .and_then(|rest| rest.strip_suffix(".roctop"))
        {
            segments.push((number.parse::<u64>().unwrap(), number.len(), path));
        }
    }
    segments.sort();
    let further = segments.last().unwrap().0 + 1..;
    for (next, (_, width, path)) in further.zip(segments.iter().cycle()) {
        if size >= LARGE_BYTES {
            return size;
        }
        std::fs::hard_link(path, large.join(format!("segment-{next:0width$}.roctop"))).unwrap();
        size += path.metadata().unwrap().len();
    }
    size
}

/// Memory that counter values, samples, gauges and texts take during an export.
fn measured(place: &Path, records: u64) {
    let recording = place.join("rec");
    let counts = make(
        &recording,
        &Made {
            records,
            threads: 4,
            marks: true,
            counters: 8,
            ..Made::default()
        },
    );
    for format in ["csv", "json", "pftrace", "rocpd"] {
        let out = place.join("out");
        let words = ["export", recording.to_str().unwrap(), "--format", format, "-o", "t"];
        let (took, most) = run(&[&words[..], &["-d", out.to_str().unwrap()]].concat());
        println!(
            "| {} values of counters, {} marks: {format} | {:.1} | {:.0} | {most} | {:.2} | |",
            counts.values,
            counts.markers,
            took.as_secs_f64(),
            counts.records() as f64 / took.as_secs_f64(),
            bytes(&out) as f64 / 1e9,
        );
        std::fs::remove_dir_all(&out).unwrap();
    }
    std::fs::remove_dir_all(place).unwrap();
}

/// Each format on one thread and on all cores; records are those of the recording.
fn on_all_cores(place: &Path, records: u64) {
    let recording = place.join("rec");
    let made = Made {
        records,
        threads: 16,
        ..Made::default()
    };
    let counts = make(&recording, &made);
    let cores = std::thread::available_parallelism().unwrap().get();
    println!("{} records, {cores} cores", counts.records());
    println!("\n| what | threads | seconds | records/s | MiB resident | GB written |");
    println!("| --- | --- | --- | --- | --- | --- |");
    let line = |what: &str, threads: usize, (took, most): (Duration, u64), size: u64| {
        let seconds = took.as_secs_f64();
        let speed = counts.records() as f64 / seconds;
        let size = size as f64 / 1e9;
        println!("| {what} | {threads} | {seconds:.2} | {speed:.0} | {most} | {size:.2} |");
    };
    let (recording, out) = (recording.to_str().unwrap(), place.join("out"));
    for threads in [1, cores] {
        let number = threads.to_string();
        for format in ["csv", "json", "parquet", "pftrace", "rocpd"] {
            let words = ["export", recording, "--format", format, "--threads", &number, "-o", "t"];
            let took = run(&[&words[..], &["-d", out.to_str().unwrap()]].concat());
            line(format, threads, took, bytes(&out));
            if format == "rocpd" {
                let took = bare_insert(&out.join("t_results.db"), &place.join("bare.db"));
                line("the same rows, only inserted", 1, (took, 0), bytes(&out));
                std::fs::remove_file(place.join("bare.db")).unwrap();
            }
            std::fs::remove_dir_all(&out).unwrap();
        }
    }
    line("summary", cores, run(&["summary", recording]), 0);
}

/// Inserts the rows of a database into an empty one with the same tables, and measures only that.
fn bare_insert(from: &Path, to: &Path) -> Duration {
    let (from, to) = (Connection::open(from).unwrap(), Connection::open(to).unwrap());
    to.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; BEGIN;")
        .unwrap();
    let mut tables = from
        .prepare("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name LIKE 'rocpd%'")
        .unwrap();
    let tables = tables.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let tables: Vec<(String, String)> = tables.map(Result::unwrap).collect();
    let mut took = Duration::ZERO;
    for (name, sql) in tables {
        to.execute_batch(&sql).unwrap();
        let mut all = from.prepare(&format!("SELECT * FROM \"{name}\"")).unwrap();
        let columns = all.column_count();
        let places = vec!["?"; columns].join(",");
        let mut insert = to
            .prepare(&format!("INSERT INTO \"{name}\" VALUES ({places})"))
            .unwrap();
        let mut rows = all.query([]).unwrap();
        loop {
            let mut held: Vec<Vec<Value>> = Vec::new();
            while held.len() < 1 << 16
                && let Some(row) = rows.next().unwrap()
            {
                held.push((0..columns).map(|at| row.get(at).unwrap()).collect());
            }
            if held.is_empty() {
                break;
            }
            let begin = Instant::now();
            for row in &held {
                insert.execute(params_from_iter(row)).unwrap();
            }
            took += begin.elapsed();
        }
    }
    let begin = Instant::now();
    to.execute_batch("COMMIT;").unwrap();
    took + begin.elapsed()
}

/// Time to open a recording of ten gigabytes at `large`, made of `recording`; a complete one needs the room of `unneeded`.
fn opening(recording: &Path, large: &Path, unneeded: &Path) {
    let size = if std::env::var_os("ROCTOP_BENCH_LARGE").is_some_and(|how| how == "made") {
        std::fs::remove_dir_all(recording).unwrap();
        std::fs::remove_dir_all(unneeded).unwrap();
        make(
            large,
            &Made {
                records: LARGE_RECORDS,
                threads: 4,
                ..Made::default()
            },
        );
        bytes(large)
    } else {
        enlarge(recording, large)
    };
    let begin = Instant::now();
    let opened = Recording::open(large).unwrap();
    let span = opened.span().unwrap().unwrap();
    let open = begin.elapsed();
    let middle = span.begin + (span.end - span.begin) / 2;
    let begin = Instant::now();
    let mut found = 0;
    let stretch = Span {
        begin: middle,
        end: middle + 1_000_000,
    };
    let whole = Merged::new(vec![&opened]).unwrap();
    whole
        .items(Some(stretch), &mut |_| {}, &mut |items| found += items.len())
        .unwrap();
    println!(
        "\n{:.1} GB: open {:.0} ms, a millisecond in its middle {:.0} ms ({found} items)",
        size as f64 / 1e9,
        open.as_secs_f64() * 1e3,
        begin.elapsed().as_secs_f64() * 1e3
    );
}

fn main() {
    let records = std::env::var("ROCTOP_BENCH_RECORDS").ok();
    let records = records.map_or(DEFAULT_RECORDS, |text| text.parse().unwrap());
    let place =
        std::env::var_os("ROCTOP_BENCH_PLACE").map_or_else(|| env!("CARGO_TARGET_TMPDIR").into(), PathBuf::from);
    let place = place.join(format!("bench-export-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&place);
    std::fs::create_dir_all(&place).unwrap();
    let has = |mode: &str| std::env::args().any(|word| word == mode);
    if has("threads") || has("peers") {
        if has("peers") {
            peers::compare(&place, records);
        } else {
            on_all_cores(&place, records);
        }
        std::fs::remove_dir_all(&place).unwrap();
        return;
    }
    let recording = place.join("rec");
    let begin = Instant::now();
    let counts = make(
        &recording,
        &Made {
            records,
            threads: 4,
            ..Made::default()
        },
    );
    let took = begin.elapsed();
    let rows = counts.records() as f64;
    println!("{} records, made in {:.1} s", counts.records(), took.as_secs_f64());
    println!("\n| what | seconds | rows/s | MiB resident | GB written | bytes a record |");
    println!("| --- | --- | --- | --- | --- | --- |");
    let line = |what: &str, (took, most): (Duration, u64), size: u64| {
        let seconds = took.as_secs_f64();
        println!(
            "| {what} | {seconds:.1} | {:.0} | {most} | {:.2} | {:.1} |",
            rows / seconds,
            size as f64 / 1e9,
            size as f64 / rows
        );
    };
    line("recording", (took, 0), bytes(&recording));
    let path = |name: &str| place.join(name);
    let export = |format: &str, out: &Path| {
        run(&[
            "export",
            recording.to_str().unwrap(),
            "--format",
            format,
            "-d",
            out.to_str().unwrap(),
            "-o",
            "t",
        ])
    };
    let (csv, parquet) = (path("csv"), path("parquet"));
    let took = export("csv", &csv);
    line("roctop: recording to CSV", took, bytes(&csv));
    std::fs::remove_dir_all(&csv).unwrap();
    let took = export("parquet", &parquet);
    line("roctop: recording to Parquet", took, bytes(&parquet));
    measured(&path("measured"), records);
    opening(&recording, &path("large"), &parquet);
    std::fs::remove_dir_all(&place).unwrap();
}
