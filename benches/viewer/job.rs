//! Eight ranks on one node at a hundred thousand records per second each: what their recorders take without a job and in one.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use roctop::clocks::boottime;
use roctop::session::start_of;
use roctop_ring::session::ENV_SESSION;

use crate::live::{Orders, WARM, write};
use crate::program::{self, Load, Writer};

/// First argument of a rank's program.
pub(crate) const RANK: &str = "rank";

const RANKS: u32 = 8;
const RATE: u64 = 100_000;
/// Eight threads.
pub(crate) const LOAD: Load = Load {
    name: "rank",
    rings: 8,
    slots: 1 << 15,
    kernels: 300,
    dispatches: 5,
    streams: 8,
    sites: 0,
};
const MEASURED: Duration = Duration::from_secs(10);
/// Runs of each kind, in turns.
const RUNS: usize = 3;

/// The program of a rank: writes records until its time is over.
pub(crate) fn run_rank() -> Result<()> {
    let session = std::env::var_os(ENV_SESSION).context("no session")?;
    let own = start_of(std::process::id()).context("no start")?;
    let began = Instant::now();
    let file = program::make(session.as_ref(), &LOAD, boottime(), own)?;
    let orders = Orders::default();
    std::thread::scope(|scope| {
        scope.spawn(|| write(Writer::new(&file, &LOAD), RATE, began, &orders));
        std::thread::sleep(WARM + MEASURED + WARM);
        orders.stop();
    });
    Ok(())
}

/// CPU time of a process's threads by name.
pub(crate) fn thread_times(pid: u32) -> Result<Vec<(String, Duration)>> {
    let mut all = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let task = task?.path();
        let time = std::fs::read_to_string(task.join("schedstat"))?;
        let ns = time.split(' ').next().context("schedstat")?.parse()?;
        let name = std::fs::read_to_string(task.join("comm"))?.trim_end().to_owned();
        all.push((name, Duration::from_nanos(ns)));
    }
    Ok(all)
}

/// Sums by thread name over all recorders.
fn sums(ranks: &[Child]) -> Result<Vec<(String, f64)>> {
    let mut sums: Vec<(String, f64)> = Vec::new();
    for rank in ranks {
        for (name, time) in thread_times(rank.id())? {
            match sums.iter_mut().find(|known| known.0 == name) {
                Some(known) => known.1 += time.as_secs_f64(),
                None => sums.push((name, time.as_secs_f64())),
            }
        }
    }
    Ok(sums)
}

/// CPU time of all recorders, in percent of a core, by thread name.
fn measure(with_job: bool) -> Result<Vec<(String, f64)>> {
    let place = std::env::temp_dir().join(format!("roctop-bench-{}", std::process::id()));
    std::fs::create_dir_all(&place)?;
    let start = |rank: u32| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_roctop"));
        command.arg("record");
        if with_job {
            command.arg("--job=bench");
        }
        command
            .args(["--gauge-rate", "0", "-o"])
            .arg(place.join(format!("rank-{rank}")))
            .arg("--")
            .arg(std::env::current_exe()?)
            .arg(RANK);
        for (name, value) in [
            ("RANK", rank),
            ("SIZE", RANKS),
            ("LOCAL_RANK", rank),
            ("LOCAL_SIZE", RANKS),
        ] {
            command.env(format!("OMPI_COMM_WORLD_{name}"), value.to_string());
        }
        command.env("XDG_STATE_HOME", &place).stdin(Stdio::null());
        Ok(command.spawn()?)
    };
    let ranks = (0..RANKS).map(start).collect::<Result<Vec<Child>>>()?;
    std::thread::sleep(WARM);
    let (before, began) = (sums(&ranks)?, Instant::now());
    std::thread::sleep(MEASURED);
    let (after, took) = (sums(&ranks)?, began.elapsed().as_secs_f64());
    for rank in ranks {
        let status = rank.wait_with_output()?.status;
        ensure!(status.success(), "a recorder failed: {status}");
    }
    std::fs::remove_dir_all(&place)?;
    let spent = after.into_iter().map(|(name, time)| {
        let before = before.iter().find(|known| known.0 == name).map_or(0.0, |known| known.1);
        (name, (time - before) / took * 100.0)
    });
    Ok(spent.collect())
}

/// Prints percent of a core by thread name, the median of the runs.
pub(crate) fn table() -> Result<()> {
    let mut all: [Vec<Vec<(String, f64)>>; 2] = Default::default();
    for _ in 0..RUNS {
        for (runs, with_job) in all.iter_mut().zip([false, true]) {
            runs.push(measure(with_job)?);
        }
    }
    let mut names: Vec<&str> = all.iter().flatten().flatten().map(|spent| &*spent.0).collect();
    names.sort_unstable();
    names.dedup();
    let median = |runs: &[Vec<(String, f64)>], name: Option<&str>| {
        let of = |run: &Vec<(String, f64)>| -> f64 {
            let threads = run.iter().filter(|spent| name.is_none_or(|name| spent.0 == name));
            threads.map(|spent| spent.1).sum()
        };
        let mut values: Vec<f64> = runs.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    println!("{RANKS} ranks at {RATE} records/s each, {RUNS} runs of {MEASURED:?} in turns, percent of a core");
    println!("| thread | record | record --job | added |\n| --- | --- | --- | --- |");
    for name in names.into_iter().map(Some).chain([None]) {
        let [without, with] = [median(&all[0], name), median(&all[1], name)];
        if without.max(with) >= 0.05 {
            println!(
                "| {} | {without:.2} | {with:.2} | {:+.2} |",
                name.unwrap_or("all"),
                with - without
            );
        }
    }
    Ok(())
}
