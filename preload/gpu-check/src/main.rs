//! `gpu-check CHECK [OPTION=VALUE]…`: runs one hardware check and prints the result as one line of JSON.
//!
//! The viewer contains this program and starts it once per check of `roctop doctor --gpu`, with a time limit, because a
//! check may hang or end the process. Each check therefore has a separate process, which first asks the kernel to end
//! it with its parent. Checks that involve roctop itself are started with the collector.
//!
//! Options: `gpu=N` (GPU number, from 0), `dir=PATH` (a private directory for files), `pool=kernarg|fine`, `threads=N`,
//! `milliseconds=N` (maximum time of measurement), `pause=N` (D5: ms between the reservation of the first packet and
//! its write).

mod check;
mod cpu_wait;
mod hip;
mod hsa;
mod library;
mod outcome;
mod spin;

use crate::cpu_wait::CpuWait;
use crate::outcome::{Outcome, Status};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Options from the viewer.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Number among HSA's GPUs, from 0.
    pub(crate) gpu: usize,
    /// Directory for files.
    pub(crate) dir: PathBuf,
    /// Pool of the signals.
    pub(crate) pool: hsa::Kind,
    pub(crate) threads: usize,
    /// Maximum time of repeated measurements.
    pub(crate) time: Duration,
    /// Time between the reservation and the write of a queue's first packet.
    pub(crate) pause: Duration,
}

impl Options {
    fn parse(words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            gpu: 0,
            dir: PathBuf::from("/dev/shm"),
            pool: hsa::Kind::Kernarg,
            threads: 1,
            time: Duration::from_millis(800),
            pause: Duration::ZERO,
        };
        for word in words {
            let (name, value) = word.split_once('=').ok_or_else(|| format!("{word}: not NAME=VALUE"))?;
            let number = || value.parse::<u64>().map_err(|_| format!("{word}: not a number"));
            match name {
                "gpu" => options.gpu = number()? as usize,
                "threads" => options.threads = number()? as usize,
                "milliseconds" => options.time = Duration::from_millis(number()?),
                "pause" => options.pause = Duration::from_millis(number()?),
                "dir" => options.dir = PathBuf::from(value),
                "pool" if value == "kernarg" => options.pool = hsa::Kind::Kernarg,
                "pool" if value == "fine" => options.pool = hsa::Kind::Fine,
                _ => return Err(format!("{word}: unknown")),
            }
        }
        Ok(options)
    }
}

fn die_with_parent() {
    #[expect(unsafe_code, reason = "a system call")]
    // SAFETY: the call changes nothing in memory.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    }
}

fn main() -> ExitCode {
    die_with_parent();
    let mut words = std::env::args().skip(1);
    let name = words.next().unwrap_or_default();
    let found = check::find(&name).ok_or_else(|| format!("{name}: there is no such check"));
    let run = match found.and_then(|run| Ok((run, Options::parse(words)?))) {
        Ok(run) => run,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "gpu-check: {error}");
            return ExitCode::from(2);
        }
    };
    let (start, wait) = (Instant::now(), CpuWait::begin());
    let outcome = (run.0)(&run.1).unwrap_or_else(|error| Outcome::new(Status::Bad, error));
    let outcome = outcome
        .number("took_ms", start.elapsed().as_secs_f64() * 1e3)
        .number("cpu_wait_ms", wait.so_far().as_secs_f64() * 1e3);
    let mut out = std::io::stdout();
    if writeln!(out, "{}", outcome.line(&name))
        .and_then(|()| out.flush())
        .is_err()
    {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
