//! `roctop doctor --gpu`: what this GPU, driver and run-time do, checked on the GPU itself.
//!
//! Each check is a process ([`step`]) with its own time limit: the program that the viewer carries, alone or under
//! the collector. They go from harmless to daring; what one found unfit the later ones avoid. [`judge`] compares what a
//! program says of itself with what was recorded of it, [`verdict`] draws the level of timing from all of them, [`kept`]
//! keeps it for later runs of programs, [`mod@file`] writes the numbers for an issue.

mod file;
mod inventory;
mod judge;
mod kept;
mod step;
mod verdict;

pub use kept::{KeptLevel, hint, kept_level};

use self::judge::Recorded;
use self::step::{Check, MACHINE_WAS_BUSY, Status};
use crate::embedded;
use crate::private_dir::PrivateDir;
use anyhow::{Context, Result};
use roctop_ring::level::Level;
use roctop_ring::session::{ENV_LEVEL, ENV_NO_FLIGHT};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// What all checks may take, unless something else is wished.
const DEFAULT_TIME: Duration = Duration::from_secs(30);
/// With less time left no check is begun.
const MIN_TIME: Duration = Duration::from_millis(500);
/// Fact of a check of another GPU: which of the first one's it is.
const PART: &str = "part";
/// How often an undecided check is run.
const TRIES: usize = 3;

/// What is wished of the checks.
#[derive(Clone, Copy, Debug)]
pub struct SamplingRequest {
    /// Also checks that have reset GPUs elsewhere.
    pub is_risky: bool,
    /// What all of them may take.
    pub limit: Duration,
}

/// The checks so far, and what they are run with.
struct Round<'a> {
    wish: SamplingRequest,
    started: Instant,
    /// The program that runs one check.
    program: PathBuf,
    /// A private directory for recordings.
    place: PrivateDir,
    /// Where programs under the collector start.
    level: Level,
    checks: Vec<Check>,
    out: &'a mut dyn Write,
}

/// Runs the checks and prints a line of each; the exit code.
pub fn examine(wish: SamplingRequest, out: &mut dyn Write) -> Result<u8> {
    writeln!(out, "roctop {} doctor --gpu", env!("CARGO_PKG_VERSION"))?;
    let machine = inventory::read(Path::new("/"));
    if machine.gpus.is_empty() {
        let text = "no AMD GPU found (/sys/class/kfd): there is nothing to check";
        writeln!(out, "BAD   {:14} {text}", "agents")?;
        return Ok(1);
    }
    let program = embedded::install_check()?;
    let mut round = Round {
        wish,
        started: Instant::now(),
        program,
        place: PrivateDir::new("doctor")?,
        level: Level::Files,
        checks: Vec::new(),
        out,
    };
    round.alone("D0", "inventory", &[], 10)?;
    let first = round.last();
    if first.status == Status::Skipped {
        let text = format!(
            "{}: is ROCm installed, or LD_LIBRARY_PATH or ROCM_PATH set?",
            first.text
        );
        writeln!(round.out, "BAD   {:14} {text}", "run-time")?;
        return Ok(1);
    }
    round.all(&machine)?;
    let Round { checks, out, .. } = round;
    let verdict = verdict::draw(&checks, &machine);
    writeln!(out, "{verdict}")?;
    let bad = checks.iter().filter(|check| check.status == Status::Bad).count();
    match file::write(Path::new("."), &machine, &checks, &verdict) {
        Ok(name) => writeln!(
            out,
            "The numbers are in {name}: made for an issue, without names of hosts, users or directories."
        )?,
        Err(error) => writeln!(out, "The numbers could not be written here: {error}")?,
    }
    if let Err(error) = kept::keep(&machine, &verdict) {
        writeln!(out, "The verdict could not be kept for later runs: {error:#}")?;
    }
    Ok(u8::from(bad > 0))
}

impl Round<'_> {
    /// All checks behind the inventory.
    fn all(&mut self, machine: &inventory::Machine) -> Result<()> {
        self.alone("D1", "queue", &[], 5)?;
        if self.last().status == Status::Bad {
            return Ok(());
        }
        self.alone("D2", "signals", &["pool=kernarg"], 3)?;
        let fine = self.run("D2", &["pool=fine"], 3, &[]);
        self.add("D2", "signals, fine", unused(fine))?;
        self.alone("D7", "clock", &["milliseconds=2000"], 5)?;
        self.alone("D8", "copies", &[], 5)?;
        let kernels = self.run("D8", &[], 5, &[("HSA_ENABLE_SDMA", "0")]);
        self.add("D8", "copies, no SDMA", kernels)?;
        self.alone("D6", "kernel times", &[], 4)?;
        let has_signals = verdict::level(&self.checks, machine).0 < Level::RunTime;
        if has_signals {
            self.alone("D3", "flight file", &[], 3)?;
        } else {
            self.skip("D3", "flight file", "not run: signals made by hand do not work (D2)")?;
        }
        self.level = verdict::level(&self.checks, machine).0;
        self.hip(machine)?;
        self.packets()?;
        self.alone("D15", "restart", &[], 4)?;
        self.nodes(machine)?;
        if !has_signals {
            self.skip(
                "D4",
                "busy flight file",
                "not run: signals made by hand do not work (D2)",
            )?;
        } else if machine.is_mes_apu() && !self.wish.is_risky {
            self.skip(
                "D4",
                "busy flight file",
                "it has reset GPUs of this kind; --risky runs it",
            )?;
        } else {
            self.alone("D4", "busy flight file", &[], 4)?;
        }
        if self.wish.is_risky {
            let fault = self.run("D15-fault", &[], 4, &[]);
            self.add("D15", "bad address", aborted(fault))?;
        }
        Ok(())
    }

    /// D9 to D12: HIP alone, under the collector, and by its own records.
    fn hip(&mut self, machine: &inventory::Machine) -> Result<()> {
        self.alone("D9", "HIP alone", &[], 6)?;
        let alone = self.last().clone();
        if alone.status == Status::Skipped {
            return Ok(());
        }
        if alone.status == Status::Bad || alone.has_hung {
            return self.skip(
                "D9",
                "HIP recorded",
                "not run: HIP alone does not end well, so there is nothing to compare",
            );
        }
        let level = self.level;
        let recorded = self.recorded("D9", "HIP recorded", &[], 8, |check, recorded| {
            judge::hip(check, recorded, &alone, level)
        })?;
        // The mildest level that leaves the program as it is.
        for level in [Level::Plain, Level::Calls, Level::Off] {
            if self.last().status != Status::Bad || level <= self.level {
                break;
            }
            self.level = level;
            let title = format!("HIP, level {level}");
            self.recorded("D9", &title, &[], 6, |check, _| judge::same(check, &alone))?;
        }
        let timed = self.last().clone();
        if let Some(recorded) = recorded {
            for note in &recorded.notes {
                self.add("note", "of the collector", Check::found(Status::Note, note))?;
            }
            self.add("D11", "queues", judge::queues(&recorded, machine))?;
            self.add("D10", "durations", judge::durations(&timed, &recorded))?;
            let hip = ["--dispatch-source", "hip"];
            let (check, _) = self.run_recorded("D9", &[], 6, &hip, |check, own| {
                judge::own_records(check, own, &recorded)
            })?;
            self.add("D10", "HIP's records", check)?;
        }
        self.alone("D12", "full queue alone", &[], 6)?;
        let alone = self.last().clone();
        if alone.status == Status::Ok {
            let level = self.level;
            self.recorded("D12", "full queue", &[], 6, |check, recorded| {
                judge::full(check, recorded, &alone, level)
            })?;
        }
        Ok(())
    }

    /// D5, D13 and D14: packets by HSA alone, under the collector.
    fn packets(&mut self) -> Result<()> {
        let checks: [(&str, &str, &[&str], judge::Judge); 4] = [
            ("D5", "proxy queue", &["threads=1"], judge::proxy),
            ("D5", "proxy queue", &["threads=4"], judge::proxy),
            ("D13", "overlap", &[], judge::overlap),
            ("D14", "kill -9", &[], judge::killed),
        ];
        for (id, title, options, judge) in checks {
            if self.level >= Level::Plain {
                self.skip(id, title, "not run: queues are left alone at this level")?;
                continue;
            }
            let level = self.level;
            let judge = |check: &Check, recorded: &Recorded| judge(check, recorded, level);
            let (mut check, _) = self.run_recorded(id, options, 5, &[], judge)?;
            if id == "D5" {
                check = self.decided(check, || Ok(self.run_recorded(id, options, 5, &[], judge)?.0))?;
                if check.status == Status::Bad {
                    check = again(&check, self.run_recorded(id, options, 5, &[], judge)?.0);
                }
            }
            self.add(id, title, check)?;
            if id == "D5" && self.last().status == Status::Bad {
                self.level = Level::Plain;
            }
        }
        Ok(())
    }

    /// D16: the other GPUs of the node.
    fn nodes(&mut self, machine: &inventory::Machine) -> Result<()> {
        for gpu in 1..machine.gpus.len() {
            let which = format!("gpu={gpu}");
            let title = format!("GPU {gpu}");
            let mut signals = self.run("D2", &[&which, "milliseconds=100"], 2, &[]);
            signals.facts.insert(PART.into(), "D2".into());
            self.add("D16", &title, signals)?;
            let level = self.level;
            let judge = |check: &Check, recorded: &Recorded| judge::proxy(check, recorded, level);
            let (mut proxy, _) = self.run_recorded("D5", &[&which], 3, &[], judge)?;
            proxy.facts.insert(PART.into(), "D5".into());
            self.add("D16", &title, proxy)?;
        }
        Ok(())
    }

    fn last(&self) -> &Check {
        self.checks.last().expect("a check was run before")
    }

    /// Time that is left for a check.
    fn left(&self, seconds: u64) -> Option<Duration> {
        let left = self.wish.limit.checked_sub(self.started.elapsed())?;
        // Who gives all of them more time gives each more.
        let scale = (self.wish.limit.as_secs_f64() / DEFAULT_TIME.as_secs_f64()).max(1.0);
        (left > MIN_TIME).then(|| left.min(Duration::from_secs(seconds).mul_f64(scale)))
    }

    /// Runs a check as it is, with more variables.
    fn run(&self, id: &str, options: &[&str], seconds: u64, variables: &[(&str, &str)]) -> Check {
        let Some(limit) = self.left(seconds) else {
            return Check::out_of_time();
        };
        let mut command = Command::new(&self.program);
        command.arg(id).args(options).envs(variables.iter().copied());
        step::run(command, limit)
    }

    /// Runs a check under the collector and has what was recorded judged.
    fn run_recorded(
        &self,
        id: &str,
        options: &[&str],
        seconds: u64,
        record: &[&str],
        judge: impl FnOnce(&Check, &Recorded) -> Check,
    ) -> Result<(Check, Option<Recorded>)> {
        let Some(limit) = self.left(seconds) else {
            return Ok((Check::out_of_time(), None));
        };
        let recording = self.place.path().join("recording");
        let own = std::env::current_exe().context("where roctop itself is")?;
        let mut command = Command::new(own);
        command.arg("record").args(record).arg("-o").arg(&recording).arg("--");
        command.arg(&self.program).arg(id).args(options);
        command.env(ENV_LEVEL, self.level.to_string()).env_remove(ENV_NO_FLIGHT);
        let mut check = step::run(command, limit);
        let recorded = Recorded::read(&recording);
        let _ = std::fs::remove_dir_all(&recording);
        if !check.has_hung && check.status != Status::Skipped {
            check = match &recorded {
                Ok(recorded) => judge(&check, recorded),
                Err(_) if check.status == Status::Bad => check,
                Err(_) => Check::found(Status::Bad, "the recording cannot be read"),
            };
        }
        // What was recorded until a time-out is no evidence of what is missing in it.
        let recorded = recorded.ok().filter(|_| !check.has_hung);
        let stepped = recorded.as_ref().and_then(|recorded| recorded.level);
        let check = check
            .number("started_at", self.level.number().into())
            .number("level", stepped.unwrap_or(self.level).number().into());
        Ok((check, recorded))
    }

    /// Runs a check as it is and adds it.
    fn alone(&mut self, id: &str, title: &str, options: &[&str], seconds: u64) -> Result<()> {
        let run = || self.run(id, options, seconds, &[]);
        let check = self.decided(run(), || Ok(run()))?;
        self.add(id, title, check)
    }

    /// Repeats a check that the machine or the GPU left undecided, because it was busy.
    fn decided(&self, first: Check, mut run: impl FnMut() -> Result<Check>) -> Result<Check> {
        let mut check = first;
        for _ in 1..TRIES {
            if !check.is_undecided() || self.left(1).is_none() {
                break;
            }
            check = run()?;
        }
        Ok(check)
    }

    /// Runs a check under the collector and adds it; what was recorded.
    fn recorded(
        &mut self,
        id: &str,
        title: &str,
        options: &[&str],
        seconds: u64,
        judge: impl FnOnce(&Check, &Recorded) -> Check,
    ) -> Result<Option<Recorded>> {
        let (check, recorded) = self.run_recorded(id, options, seconds, &[], judge)?;
        self.add(id, title, check)?;
        Ok(recorded)
    }

    fn skip(&mut self, id: &str, title: &str, why: &str) -> Result<()> {
        self.add(id, title, Check::found(Status::Skipped, why))
    }

    /// Keeps a check and prints its line.
    fn add(&mut self, id: &str, title: &str, mut check: Check) -> Result<()> {
        id.clone_into(&mut check.id);
        title.clone_into(&mut check.title);
        let check = check.undecided_if_slow(verdict::was_busy(&self.checks));
        let mark = check.status.mark();
        writeln!(self.out, "{mark}  {id:4} {title:18} {}", check.text)?;
        self.out.flush()?;
        self.checks.push(check);
        Ok(())
    }
}

/// The second try of a check that was BAD. On a busy machine a kernel seldom has no times (1 of 2 500, seen once on 5.2.3): a single
/// failure is shown, and two decide.
fn again(first: &Check, mut second: Check) -> Check {
    if second.status == Status::Ok {
        second.status = Status::Note;
        second.text = format!("passed at the second try; the first: {}", first.text);
    }
    second
}

/// What the collector does not use is no fault of the GPU's.
fn unused(mut check: Check) -> Check {
    if check.status == Status::Bad {
        check.status = Status::Note;
        check.text += "; roctop uses uncached memory";
    }
    check.numbers.remove("stood_still");
    check.numbers.remove(MACHINE_WAS_BUSY);
    check
}

/// A kernel that stores to a bad address is to end its process.
fn aborted(check: Check) -> Check {
    const SIGABRT: f64 = 6.0;
    if check.get("signal") == SIGABRT {
        return Check::found(Status::Ok, "a kernel that stores to a bad address ends its process")
            .number("signal", SIGABRT);
    }
    check
}
