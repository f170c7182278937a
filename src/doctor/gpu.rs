//! `roctop doctor --gpu`: what this GPU, driver and run-time do, checked on the GPU itself.
//!
//! Each check is a process ([`step`]) with a time limit of its own: the program that the viewer carries, alone or under
//! the collector. They go from harmless to daring; what one found unfit the later ones avoid. [`judge`] compares what a
//! program says of itself with what was recorded of it, [`verdict`] draws the level of timing from all of them, [`kept`]
//! keeps it for later runs of programs, [`file`] writes the numbers for an issue.

mod file;
mod inventory;
mod judge;
mod kept;
mod step;
mod verdict;

pub use kept::{hint, starting_level};

use self::judge::Recorded;
use self::step::{Check, Place, Status};
use crate::embedded;
use anyhow::{Context, Result};
use roctop_ring::level::Level;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What is wished of the checks.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    /// Also checks that have reset GPUs elsewhere.
    pub is_risky: bool,
    /// What all of them may take.
    pub limit: Duration,
}

/// The checks so far, and what they are run with.
struct Round<'a> {
    wish: Wish,
    started: Instant,
    /// The program that runs one check.
    program: PathBuf,
    /// A private directory for recordings.
    place: Place,
    /// Where programs under the collector start.
    level: Level,
    checks: Vec<Check>,
    out: &'a mut dyn Write,
}

/// Runs the checks and prints a line of each; the exit code.
pub fn examine(wish: Wish, out: &mut dyn Write) -> Result<u8> {
    writeln!(out, "roctop {} doctor --gpu", env!("CARGO_PKG_VERSION"))?;
    let machine = inventory::read(Path::new("/"));
    if machine.gpus.is_empty() {
        let text = "no GPU in the driver's topology (/sys/class/kfd): there is nothing to check";
        writeln!(out, "BAD   {:14} {text}", "agents")?;
        return Ok(1);
    }
    let program = embedded::install_check()?;
    // A program that is killed with the collector inside must not count as one that the user started.
    let mut round = Round {
        wish,
        started: Instant::now(),
        program,
        place: Place::make()?,
        level: Level::Files,
        checks: Vec::new(),
        out,
    };
    round.alone("D0", "inventory", &[], 10)?;
    let first = round.last();
    if first.status == Status::Skipped {
        let text = format!("{}: is ROCm installed, or LD_LIBRARY_PATH or ROCM_PATH set?", first.text);
        writeln!(round.out, "BAD   {:14} {text}", "run-time")?;
        return Ok(1);
    }
    round.all(&machine)?;
    let Round { checks, out, .. } = round;
    let verdict = verdict::draw(&checks, &machine);
    writeln!(out, "{verdict}")?;
    let bad = checks.iter().filter(|check| check.status == Status::Bad).count();
    match file::write(Path::new("."), &machine, &checks, &verdict) {
        Ok(name) => writeln!(out, "The numbers are in {name}: made for an issue, without names of hosts, users or directories.")?,
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
        self.alone("D2", "signals, fine", &["pool=fine"], 3)?;
        // What the run-time itself does not use is no fault of the GPU's.
        self.soften("only uncached memory is used");
        self.alone("D7", "clock", &["milliseconds=2000"], 5)?;
        self.alone("D8", "copies", &[], 5)?;
        self.with("D8", "copies, no SDMA", &[], 5, &[("HSA_ENABLE_SDMA", "0")])?;
        self.alone("D6", "kernel times", &[], 4)?;
        self.alone("D3", "flight file", &[], 3)?;
        self.level = verdict::level(&self.checks, machine).0;
        self.hip(machine)?;
        self.packets()?;
        self.alone("D15", "restart", &[], 4)?;
        self.nodes(machine)?;
        if machine.is_mes_apu() && !self.wish.is_risky {
            self.skip("D4", "busy flight file", "it has reset GPUs of this kind; --risky runs it");
        } else {
            self.alone("D4", "busy flight file", &[], 4)?;
        }
        if self.wish.is_risky {
            self.alone("D15-fault", "bad address", &[], 4)?;
            self.expect_abort();
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
        let recorded = self.recorded("D9", "HIP recorded", &[], 8, &[], |check, recorded| judge::hip(check, recorded, &alone))?;
        // The mildest level that leaves the program as it is.
        for level in [Level::Plain, Level::Calls, Level::Off] {
            if self.last().status != Status::Bad || level <= self.level {
                break;
            }
            self.level = level;
            let title = format!("HIP, level {level}");
            self.recorded("D9", &title, &[], 6, &[], |check, _| judge::same(check, &alone))?;
        }
        let timed = self.last().clone();
        if let Some(recorded) = recorded {
            self.derived("D11", "queues", judge::queues(&recorded, machine));
            self.derived("D10", "durations", judge::durations(&timed, &recorded));
            let hip = ["--dispatch-source", "hip"];
            self.recorded("D10", "HIP's records", &[], 6, &hip, |check, own| judge::own_records(check, own, &recorded))?;
        }
        self.alone("D12", "full queue alone", &[], 6)?;
        let alone = self.last().clone();
        if alone.status == Status::Ok {
            self.recorded("D12", "full queue", &[], 6, &[], |check, recorded| judge::full(check, recorded, &alone))?;
        }
        Ok(())
    }

    /// D5, D13 and D14: packets by HSA alone, under the collector.
    fn packets(&mut self) -> Result<()> {
        for threads in ["threads=1", "threads=4"] {
            self.recorded("D5", "proxy queue", &[threads], 5, &[], judge::proxy)?;
        }
        if self.last().status == Status::Bad && self.level < Level::Plain {
            self.level = Level::Plain;
        }
        self.recorded("D13", "overlap", &[], 4, &[], judge::overlap)?;
        self.recorded("D14", "kill -9", &[], 4, &[], judge::killed)?;
        Ok(())
    }

    /// D16: the other GPUs of the node.
    fn nodes(&mut self, machine: &inventory::Machine) -> Result<()> {
        for gpu in 1..machine.gpus.len() {
            let which = format!("gpu={gpu}");
            let title = format!("GPU {gpu}");
            self.alone("D2", &title, &[&which, "milliseconds=100"], 2)?;
            self.rename("D16");
            self.recorded("D5", &title, &[&which], 3, &[], judge::proxy)?;
            self.rename("D16");
        }
        Ok(())
    }

    fn last(&self) -> &Check {
        self.checks.last().expect("a check was run before")
    }

    fn rename(&mut self, id: &str) {
        if let Some(check) = self.checks.last_mut() {
            id.clone_into(&mut check.id);
        }
    }
}
