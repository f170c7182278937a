//! The level of timing that follows from the checks.

use super::PART;
use super::inventory::Machine;
use super::step::{Check, MACHINE_WAS_BUSY, Status};
use roctop_ring::level::Level;
use serde::Serialize;
use std::fmt;

/// What all checks say together.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Verdict {
    /// Where processes start on this machine; none when HSA itself does not work, and when the checks decide nothing.
    pub(super) level: Option<u8>,
    /// Why it is not level 0.
    pub(super) reason: String,
    /// Why the checks do not decide; empty when they do.
    pub(super) undecided: String,
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
        let level = self.level.and_then(|number| Level::of(number.into()));
        if !self.undecided.is_empty() {
            write!(out, "Verdict: undecided {on}: {}; ", self.undecided)?;
            return match level {
                None => write!(out, "nothing is kept for later programs"),
                Some(level) => write!(
                    out,
                    "programs start at level {level} ({}), since {}",
                    level.meaning(),
                    self.reason
                ),
            };
        }
        match level {
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
    let undecided = undecided(checks);
    let fails = |check: &Check| check.id == "D1" && check.status == Status::Bad && !check.has_hung;
    let is_broken = checks.iter().any(fails);
    // What was found counts, although other checks are missing. That nothing was found needs all of them.
    let is_known = undecided.is_empty() || level != Level::Files;
    let build = first.fact("hsa_build").trim_matches('"');
    let hsa = first.fact("hsa");
    Verdict {
        level: (!is_broken && is_known).then_some(level.number()),
        reason: if is_broken {
            "HSA does not work here, with or without roctop".to_owned()
        } else {
            reason
        },
        undecided: if is_broken { String::new() } else { undecided },
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
    let was_busy = was_busy(checks);
    let mut found = (Level::Files, String::new());
    let mut lower = |check: &Check, level: Level, reason: String| {
        if level > found.0 && is_evidence(check, level, was_busy) {
            found = (level, reason);
        }
    };
    for check in checks {
        let stepped = Level::of(check.get("level") as u64).unwrap_or_default();
        if u64::from(stepped.number()) > check.get("started_at") as u64 {
            lower(
                check,
                stepped,
                format!("the collector stepped down to it in {}", check.id),
            );
        }
        // What has reset GPUs of this kind says nothing of what roctop does by itself.
        let is_daring = check.id == "D4" && machine.is_mes_apu();
        if let Some(level) = level_of_failure(check, was_busy).filter(|_| !is_daring) {
            lower(check, level, format!("{} fails", check.id));
        }
    }
    found
}

/// Whether the GPU or the host was busy at the first check.
pub(super) fn was_busy(checks: &[Check]) -> bool {
    checks
        .iter()
        .any(|check| check.id == "D1" && check.status == Status::Note)
}

/// The level that a check asks for, if it fails.
fn level_of_failure(check: &Check, was_busy: bool) -> Option<Level> {
    // A queue that stands still says nothing of signals where the GPU was busy before.
    let stands = check.get("stood_still") > 0.0 && !was_busy;
    if check.status != Status::Bad && !check.has_hung && !stands {
        return None;
    }
    level_of(check)
}

/// The level that follows from a failure of a check.
fn level_of(check: &Check) -> Option<Level> {
    let part = check.fact(PART);
    match if part.is_empty() { &check.id } else { part } {
        "D2" => Some(Level::RunTime),
        "D3" | "D4" => Some(Level::Memory),
        "D5" | "D11" => Some(Level::Plain),
        "D9" if !is_alone(check) => Some(above(check.get("started_at") as u64)),
        _ => None,
    }
}

/// Whether a HIP program ran without the collector.
fn is_alone(check: &Check) -> bool {
    !check.numbers.contains_key("started_at")
}

/// Whether a failed check justifies a level. A time-out may be a busy GPU's: it never justifies that kernels are not recorded.
fn is_evidence(check: &Check, level: Level, was_busy: bool) -> bool {
    !check.has_hung || (level <= Level::Program && !was_busy)
}

/// Why the checks decide nothing; empty if they do.
fn undecided(checks: &[Check]) -> String {
    let was_busy = was_busy(checks);
    let listed = |is: &dyn Fn(&Check) -> bool| {
        let mut ids: Vec<&str> = checks
            .iter()
            .filter(|check| is(check))
            .map(|check| check.id.as_str())
            .collect();
        ids.dedup();
        ids.join(", ")
    };
    let is_hip_alone = |check: &Check| check.id == "D9" && is_alone(check);
    let alone = |check: &Check| is_hip_alone(check) && check.status == Status::Bad;
    let missing = |check: &Check| check.is_out_of_time && ["D2", "D3", "D5", "D9"].contains(&check.id.as_str());
    let timed_out = |check: &Check| {
        let level = level_of_failure(check, was_busy);
        let is_needed = check.id == "D1" || is_hip_alone(check) && check.status != Status::Bad;
        check.has_hung && (is_needed || level.is_some_and(|level| !is_evidence(check, level, was_busy)))
    };
    let busy = |check: &Check| level_of(check).is_some() && check.get(MACHINE_WAS_BUSY) > 0.0;
    let reasons = [
        ("the machine was busy; check again when it is not", listed(&busy)),
        ("HIP alone fails, so there is nothing to compare", listed(&alone)),
        ("timed out, which a busy GPU causes too", listed(&timed_out)),
        ("no time was left (--seconds gives more)", listed(&missing)),
    ];
    let reasons = reasons.into_iter().filter(|(_, ids)| !ids.is_empty());
    let reasons: Vec<String> = reasons.map(|(why, ids)| format!("{ids}: {why}")).collect();
    reasons.join("; ")
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
        let bad = |id: &str| {
            let failed = check(id, Status::Bad).number("started_at", 0.0);
            of(&[check("D1", Status::Ok), failed])
        };
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
    fn a_busy_machine_leaves_no_verdict() {
        let first = check("D0", Status::Ok);
        let undecided = |id| check(id, Status::Note).number(MACHINE_WAS_BUSY, 1.0);
        let of = |id| {
            draw(
                &[first.clone(), check("D1", Status::Ok), undecided(id)],
                &Machine::default(),
            )
        };
        assert_eq!((of("D2").level, of("D10").level), (None, Some(0)));
        assert!(
            of("D2").to_string().contains("D2: the machine was busy"),
            "{}",
            of("D2")
        );
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

    fn hung(id: &str, level: f64) -> Check {
        Check {
            has_hung: true,
            ..check(id, Status::Bad)
                .number("started_at", level)
                .number("level", level)
        }
    }

    fn verdict(checks: &[Check]) -> (Option<u8>, String) {
        let verdict = draw(checks, &Machine::default());
        (verdict.level, verdict.to_string())
    }

    #[test]
    fn time_outs_never_silence_a_program() {
        let sound = check("D1", Status::Ok);
        let every = [sound.clone(), hung("D9", 0.0), hung("D9", 4.0), hung("D9", 5.0)];
        let (level, text) = verdict(&every);
        assert_eq!(level, None, "{text}");
        assert!(text.contains("undecided") && text.contains("D9: timed out"), "{text}");
        // At level 4 it passed: the records are of the level that was asked for.
        let passed = check("D9", Status::Ok).number("started_at", 4.0).number("level", 4.0);
        assert_eq!(verdict(&[sound.clone(), hung("D9", 0.0), passed]).0, None);
        assert_eq!(verdict(&[sound.clone(), hung("D5", 0.0)]).0, None);
        // Levels at which kernels are recorded still follow, unless the GPU was busy before.
        assert_eq!(verdict(&[sound, hung("D2", 0.0), hung("D9", 2.0)]).0, Some(2));
        assert_eq!(verdict(&[check("D1", Status::Note), hung("D2", 0.0)]).0, None);
        assert_eq!(verdict(&[hung("D1", 0.0)]).0, None);
    }

    #[test]
    fn a_slow_gpu_decides_nothing_and_is_not_bad() {
        let alone = Check {
            has_hung: true,
            ..check("D9", Status::Bad)
        };
        let on = |first: Status, late: Check| {
            let was_busy = was_busy(&[check("D1", first)]);
            [check("D1", first), late.undecided_if_slow(was_busy)]
        };
        for late in [hung("D8", 0.0), hung("D2", 0.0), alone.clone(), hung("D9", 4.0)] {
            let checks = on(Status::Note, late.clone());
            assert!(checks.iter().all(|check| check.status != Status::Bad), "{checks:?}");
            let (level, text) = verdict(&checks);
            assert!(
                late.id == "D8" || level.is_none() && text.contains("timed out"),
                "{text}"
            );
            // On a GPU that is not slow it is what it was.
            assert_eq!(on(Status::Ok, late.clone())[1].text, late.text);
            assert_eq!(on(Status::Ok, late)[1].status, Status::Bad);
        }
    }

    #[test]
    fn a_program_that_fails_alone_says_nothing_of_roctop() {
        let (level, text) = verdict(&[check("D1", Status::Ok), check("D9", Status::Bad)]);
        assert_eq!(level, None, "{text}");
        assert!(text.contains("D9: HIP alone fails"), "{text}");
    }

    #[test]
    fn a_verdict_needs_its_checks() {
        let late = |id: &str| Check {
            id: id.to_owned(),
            ..Check::out_of_time()
        };
        let (level, text) = verdict(&[check("D1", Status::Ok), late("D3"), late("D5"), late("D9")]);
        assert_eq!(level, None, "{text}");
        assert!(text.contains("D3, D5, D9: no time was left"), "{text}");
        // What others only show is not missed.
        assert_eq!(verdict(&[check("D1", Status::Ok), late("D12")]).0, Some(0));
        let (level, text) = verdict(&[check("D2", Status::Bad), late("D9")]);
        assert_eq!(level, Some(2), "{text}");
        assert!(text.contains("undecided") && text.contains("level 2"), "{text}");
    }
}
