//! The level of timing that follows from the checks.

use super::PART;
use super::inventory::Machine;
use super::step::{Check, Status};
use roctop_ring::level::Level;
use serde::Serialize;
use std::fmt;

/// What all checks say together.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Verdict {
    /// Where processes start on this machine; none when HSA itself does not work.
    pub(super) level: Option<u8>,
    /// Why it is not level 0.
    pub(super) reason: String,
    /// The GPU's instruction set.
    pub(super) gfx: String,
    kernel: String,
    /// HSA's version, and its build's.
    hsa: String,
    bad: usize,
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = format!("on {}, kernel {}, HSA {}", self.gfx, self.kernel, self.hsa);
        match self.level.and_then(|number| Level::of(number.into())) {
            None => write!(out, "Verdict: none {on}: {}", self.reason),
            Some(level) => {
                write!(out, "Verdict: level {level} {on}: {}", level.meaning())?;
                if !self.reason.is_empty() {
                    write!(out, ", since {}", self.reason)?;
                }
                if self.bad > 0 && level == Level::Files {
                    write!(out, "; what is BAD above asks for no other level")?;
                }
                Ok(())
            }
        }
    }
}

/// Draws it.
pub(super) fn draw(checks: &[Check], machine: &Machine) -> Verdict {
    let first = checks.first().cloned().unwrap_or_default();
    let (level, reason) = level(checks, machine);
    let fails = |check: &Check| check.id == "D1" && check.status == Status::Bad;
    let is_broken = checks.iter().any(fails);
    let build = first.fact("hsa_build").trim_matches('"');
    let hsa = first.fact("hsa");
    Verdict {
        level: (!is_broken).then_some(level.number()),
        reason: if is_broken {
            "HSA does not work here, with or without roctop".to_owned()
        } else {
            reason
        },
        gfx: machine.gpus.first().cloned().unwrap_or_default(),
        kernel: machine.kernel.clone(),
        hsa: if build.is_empty() {
            hsa.to_owned()
        } else {
            format!("{hsa} ({build})")
        },
        bad: checks.iter().filter(|check| check.status == Status::Bad).count(),
    }
}

/// The level that follows from the checks so far, and why.
pub(super) fn level(checks: &[Check], machine: &Machine) -> (Level, String) {
    // A queue that stands still says nothing of signals where the GPU was busy before.
    let was_busy = checks
        .iter()
        .any(|check| check.id == "D1" && check.status == Status::Note);
    let fails = |check: &Check| {
        let stands = check.get("stood_still") > 0.0 && !was_busy;
        check.status == Status::Bad || stands
    };
    let mut found = (Level::Files, String::new());
    let mut lower = |level: Level, reason: String| {
        if level > found.0 {
            found = (level, reason);
        }
    };
    for check in checks {
        let stepped = Level::of(check.get("level") as u64).unwrap_or_default();
        lower(stepped, format!("the collector stepped down to it in {}", check.id));
        // What has reset GPUs of this kind says nothing of what roctop does by itself.
        let is_daring = check.id == "D4" && machine.is_mes_apu();
        if !fails(check) || is_daring {
            continue;
        }
        let part = check.fact(PART);
        let level = match if part.is_empty() { &check.id } else { part } {
            "D2" => Level::RunTime,
            "D3" | "D4" => Level::Memory,
            "D5" | "D11" => Level::Plain,
            "D9" => above(check.get("started_at") as u64),
            _ => continue,
        };
        lower(level, format!("{} fails", check.id));
    }
    found
}

/// The next level that a program is tried at, where it fails at one: queues as they are, calls alone, nothing.
fn above(level: u64) -> Level {
    match level {
        0..4 => Level::Plain,
        4 => Level::Calls,
        _ => Level::Off,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(id: &str, status: Status) -> Check {
        Check {
            id: id.to_owned(),
            status,
            ..Check::default()
        }
    }

    fn of(checks: &[Check]) -> Level {
        level(checks, &Machine::default()).0
    }

    #[test]
    fn each_failure_has_its_level() {
        let bad = |id: &str| of(&[check("D1", Status::Ok), check(id, Status::Bad)]);
        for (id, level) in [
            ("D2", Level::RunTime),
            ("D3", Level::Memory),
            ("D4", Level::Memory),
            ("D5", Level::Plain),
            ("D11", Level::Plain),
            ("D9", Level::Plain),
            ("D7", Level::Files),
            ("D8", Level::Files),
            ("D10", Level::Files),
        ] {
            assert_eq!(bad(id), level, "{id}");
        }
        assert_eq!(
            of(&[check("D3", Status::Bad), check("D2", Status::Bad)]),
            Level::RunTime
        );
    }

    #[test]
    fn a_program_that_fails_at_every_level_leaves_none() {
        let at = |level: f64| check("D9", Status::Bad).number("started_at", level);
        assert_eq!(of(&[at(0.0), at(4.0)]), Level::Calls);
        assert_eq!(of(&[at(0.0), at(4.0), at(5.0)]), Level::Off);
    }

    #[test]
    fn a_busy_gpu_decides_nothing() {
        let stood = check("D2", Status::Note).number("stood_still", 1.0);
        assert_eq!(of(&[check("D1", Status::Note), stood.clone()]), Level::Files);
        assert_eq!(of(&[check("D1", Status::Ok), stood]), Level::RunTime);
    }

    #[test]
    fn a_busy_replacement_on_an_apu_does_not_count() {
        let machine = Machine {
            gpus: vec!["gfx1151".to_owned()],
            ..Machine::default()
        };
        assert_eq!(level(&[check("D4", Status::Bad)], &machine).0, Level::Files);
        assert_eq!(level(&[check("D3", Status::Bad)], &machine).0, Level::Memory);
    }

    #[test]
    fn steps_of_the_collector_count() {
        let stepped = check("D9", Status::Ok).number("level", 1.0);
        assert_eq!(
            level(&[stepped], &Machine::default()),
            (Level::Memory, "the collector stepped down to it in D9".into())
        );
    }
}
