//! A node at its full scale: eight processes of eight threads each on eight GPUs, recorded by one `roctop record`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use roctop::clocks::boottime;
use roctop::session::start_of;
use roctop_ring::session::ENV_SESSION;

use crate::job::thread_times;
use crate::live::{Orders, write};
use crate::open::bytes;
use crate::program::{self, Load};
use crate::terminal::memory;

/// First argument of the program, and that of its processes.
pub(crate) const PROGRAM: &str = "node-program";
pub(crate) const PROCESS: &str = "node-process";

const PROCESSES: u64 = 8;
const LOAD: Load = Load {
    name: "node",
    ..crate::job::LOAD
};

/// Starts the processes, which note in the folder `counts` what they wrote, and waits for their end.
pub(crate) fn run_program(seconds: &str, rate: &str, counts: &str) -> Result<()> {
    let start = |number: u64| {
        let count = Path::new(counts).join(number.to_string());
        let mut command = Command::new(std::env::current_exe()?);
        command.args([PROCESS, seconds, rate]).arg(count);
        Ok(command.spawn()?)
    };
    let processes = (0..PROCESSES).map(start).collect::<Result<Vec<_>>>()?;
    for mut process in processes {
        ensure!(process.wait()?.success(), "a process failed");
    }
    Ok(())
}

/// Writes records by eight threads for some seconds, `rate` a second in sum; their number goes to a file.
pub(crate) fn run_process(seconds: &str, rate: &str, count: &str) -> Result<()> {
    let session = std::env::var_os(ENV_SESSION).context("no session")?;
    let own = start_of(std::process::id()).context("no start")?;
    let (seconds, rate) = (seconds.parse()?, rate.parse::<u64>()? / u64::from(LOAD.rings));
    let began = Instant::now();
    let file = program::make(session.as_ref(), &LOAD, boottime(), own)?;
    let orders: Vec<Orders> = (0..LOAD.rings).map(|_| Orders::default()).collect();
    std::thread::scope(|scope| {
        for (ring, orders) in (0..).zip(&orders) {
            let writer = program::Writer::of(&file, &LOAD, ring..ring + 1);
            scope.spawn(move || write(writer, rate, began, orders));
        }
        std::thread::sleep(Duration::from_secs(seconds));
        orders.iter().for_each(Orders::stop);
    });
    let written: u64 = orders.iter().map(Orders::written).sum();
    Ok(std::fs::write(count, written.to_string())?)
}

/// Records and lost records of a recording, by its summary.
fn summary(roctop: &str, recording: &Path) -> Result<(u64, u64, Duration)> {
    let began = Instant::now();
    let output = Command::new(roctop)
        .args(["summary", "--format", "json"])
        .arg(recording)
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(output.status.success(), "no summary");
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let number = |name: &str| {
        let number = summary["totals"][name].as_u64();
        number.with_context(|| format!("no {name} in the summary"))
    };
    Ok((
        number("dispatches")? + number("api_calls")?,
        number("lost")?,
        began.elapsed(),
    ))
}

/// Records for some seconds and prints a table. `ROCTOP_BENCH_PLACE` is where the recording is made.
pub(crate) fn table(seconds: u64, rate: u64) -> Result<()> {
    let roctop = std::env::var("ROCTOP_BENCH_BINARY").unwrap_or_else(|_| env!("CARGO_BIN_EXE_roctop").into());
    let place =
        std::env::var_os("ROCTOP_BENCH_PLACE").map_or_else(|| env!("CARGO_TARGET_TMPDIR").into(), PathBuf::from);
    let place = place.join(format!("bench-node-{}", std::process::id()));
    let (recording, counts) = (place.join("rec"), place.join("counts"));
    std::fs::create_dir_all(&counts)?;
    let mut recorder = Command::new(&roctop)
        .args(["record", "--gauge-rate", "0", "-o"])
        .arg(&recording)
        .arg("--")
        .arg(std::env::current_exe()?)
        .args([PROGRAM, &seconds.to_string(), &(rate / PROCESSES).to_string()])
        .arg(&counts)
        .stdin(Stdio::null())
        .spawn()?;
    let (began, mut threads, mut resident) = (Instant::now(), BTreeMap::new(), 0);
    while recorder.try_wait()?.is_none() {
        // The last values before each ends.
        if let (Ok(times), Ok((_, most))) = (thread_times(recorder.id()), memory(recorder.id())) {
            let mut sums = BTreeMap::new();
            for (name, spent) in times {
                *sums.entry(name).or_insert(Duration::ZERO) += spent;
            }
            threads.extend(sums);
            resident = most;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    ensure!(recorder.wait()?.success(), "the recorder failed");
    let took = began.elapsed().as_secs_f64();
    let mut written = 0;
    for count in std::fs::read_dir(&counts)? {
        written += std::fs::read_to_string(count?.path())?.parse::<u64>()?;
    }
    let size = bytes(&recording)?;
    let (records, lost, summed) = summary(&roctop, &recording)?;
    println!("| records/s written | written | recorded | lost | bytes a record | MiB resident | summary, s |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    println!(
        "| {:.2} M | {written} | {records} | {lost} | {:.1} | {} | {:.1} |\n",
        written as f64 / seconds as f64 / 1e6,
        size as f64 / records as f64,
        resident >> 20,
        summed.as_secs_f64(),
    );
    println!("| threads of the recorder | of a core |\n| --- | --- |");
    let mut threads: Vec<_> = threads.into_iter().collect();
    threads.sort_by_key(|thread| std::cmp::Reverse(thread.1));
    for (name, spent) in threads.iter().take(4) {
        println!("| {name} | {:.0} % |", spent.as_secs_f64() / took * 100.0);
    }
    std::fs::remove_dir_all(&place)?;
    let starts = PROCESSES * u64::from(LOAD.rings);
    ensure!(
        records + lost + starts == written,
        "recorded and lost are not all that was written"
    );
    Ok(())
}
