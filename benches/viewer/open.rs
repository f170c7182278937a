//! Opening a recording in a terminal: when the first frame is there, when all of it was read, and how long a filter takes
//! whose launches have to be counted in the recording.

use crate::made::{Made, make};
use crate::terminal::{Terminal, memory};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Records of a gigabyte.
const PER_GIGABYTE: u64 = 33_600_000;
/// Steps between two long kernels: one in a million launches, and one in ten thousand.
const LONG_INTERVALS: [u64; 2] = [1_000_000, 10_000];
/// Filters that pass the long kernels alone: by the index of the blocks, and by one that has to read all launches.
const FILTERS: [&str; 2] = ["dur>100us", "qdly<1ns | dur>100us"];
/// Time after which the screen shows that it counts.
const SETTLE_TIME: Duration = Duration::from_millis(300);
/// How long a recording may take to be read.
const READ_TIMEOUT: Duration = Duration::from_mins(30);

/// Size of the files in a folder, bytes.
pub(crate) fn bytes(place: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(place)? {
        sum += entry?.metadata()?.len();
    }
    Ok(sum)
}

/// Prints the table for recordings of this size, with these numbers of steps between two long kernels, if there are any.
pub(crate) fn table(gigabytes: f64, intervals: &[u64]) -> Result<()> {
    let place =
        std::env::var_os("ROCTOP_BENCH_PLACE").map_or_else(|| env!("CARGO_TARGET_TMPDIR").into(), PathBuf::from);
    let place = place.join(format!("bench-open-{}", std::process::id()));
    let viewer = std::env::var("ROCTOP_BENCH_BINARY").unwrap_or_else(|_| env!("CARGO_BIN_EXE_roctop").into());
    println!(
        "| GB | records | long kernels, one in | first frame, ms | read, s | records/s | MiB resident | filters, s |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    let intervals = if intervals.is_empty() {
        &LONG_INTERVALS
    } else {
        intervals
    };
    for &long_every in intervals {
        let _ = std::fs::remove_dir_all(&place);
        std::fs::create_dir_all(&place)?;
        let recording = place.join("rec");
        let counts = make(
            &recording,
            &Made {
                records: (gigabytes * PER_GIGABYTE as f64) as u64,
                threads: 4,
                long_every,
                ..Made::default()
            },
        );
        let size = bytes(&recording)? as f64 / 1e9;
        let measured = measure(&viewer, recording.to_str().context("a path")?);
        std::fs::remove_dir_all(&place)?;
        let Measured {
            first,
            read,
            resident,
            filters,
        } = measured?;
        let records = counts.records();
        println!(
            "| {size:.1} | {records} | {long_every} | {:.0} | {:.1} | {:.1} M | {} | {} |",
            first.as_secs_f64() * 1e3,
            read.as_secs_f64(),
            records as f64 / read.as_secs_f64() / 1e6,
            resident >> 20,
            filters.join(", "),
        );
    }
    Ok(())
}

struct Measured {
    first: Duration,
    read: Duration,
    resident: u64,
    filters: Vec<String>,
}

fn measure(viewer: &str, recording: &str) -> Result<Measured> {
    let began = Instant::now();
    let mut terminal = Terminal::start(viewer, &["open", recording, "--view", "kernels"])?;
    terminal.wait("a frame", &|text| text.contains("Kernels"))?;
    let first = began.elapsed();
    // Earlier releases do not say that they read: the number of records comes to rest.
    let is_read = |text: &str| text.contains("REPLAY") && text.contains("gemm");
    terminal.wait_for(READ_TIMEOUT, "the whole recording", &is_read)?;
    let read = began.elapsed();
    let (_, resident) = memory(terminal.pid())?;
    let mut filters = Vec::new();
    for filter in FILTERS {
        terminal.key("/", "the filter's line", &|text| text.contains("filter"))?;
        let began = Instant::now();
        let is_counted = |text: &str| text.contains("dur>100us ✕") && !text.contains('≈') && !text.contains("counting");
        terminal.key(&format!("{filter}\r"), "the filter", &|text| {
            text.contains("dur>100us ✕")
        })?;
        // The count begins when the filter has not changed for a moment.
        terminal.watch(SETTLE_TIME)?;
        terminal.wait_for(READ_TIMEOUT, "exact numbers", &is_counted)?;
        filters.push(format!("{filter}: {:.2}", began.elapsed().as_secs_f64()));
        terminal.key("\u{1b}", "no filter", &|text| text.contains("filter: none"))?;
    }
    Ok(Measured {
        first,
        read,
        resident,
        filters,
    })
}
