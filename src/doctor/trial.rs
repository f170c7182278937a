//! A trial: the built-in workload is recorded, so that collector, ring, session and clock are looked at as they work here.

use super::{Report, Verdict};
use crate::demo;
use crate::item::{Item, ProcessId};
use crate::private_dir::PrivateDir;
use crate::raw::{Raw, RawSink};
use crate::recording::Recording;
use anyhow::{Context, Result};
use roctop_ring::layout::clock;
use roctop_ring::session::ENV_DEMO;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// Seconds that the workload runs.
const SECONDS: &str = "0.4";
/// A clock whose error may be above this is worth a note, ns.
const POOR_CLOCK: f64 = 10_000.0;

/// Width of the brackets of calibration samples, and what they measured.
#[derive(Default)]
struct Calibrations {
    samples: Vec<[u64; clock::WORDS]>,
}

impl RawSink for Calibrations {
    fn take(&mut self, _: ProcessId, raw: &Raw<'_>) {
        if let Raw::Calibration(words) = raw {
            self.samples.push(**words);
        }
    }
}

impl Calibrations {
    /// Half the widest bracket, in ns: how far a converted time may be off.
    fn error(&self) -> Option<f64> {
        let (first, last) = (self.samples.first()?, self.samples.last()?);
        let ticks = last[clock::TICKS]
            .checked_sub(first[clock::TICKS])
            .filter(|ticks| *ticks > 0)?;
        let nanos = last[clock::BOOTTIME].checked_sub(first[clock::BOOTTIME])?;
        let widest = self.samples.iter().map(|sample| sample[clock::WIDTH]).max()?;
        Some(widest as f64 * (nanos as f64 / ticks as f64) / 2.0)
    }
}

/// Runs the trial and adds what it found.
pub(super) fn examine(report: &mut Report) {
    let tried = PrivateDir::new("doctor").and_then(|place| run(&place.path().join("trial")));
    match tried {
        Ok((records, lost, error)) => {
            let text = format!("{records} records of the built-in workload, {lost} lost");
            report.add(if records > 0 { Verdict::Well } else { Verdict::Bad }, "trial", text);
            match error {
                Some(error) => {
                    let verdict = if error > POOR_CLOCK {
                        Verdict::Note
                    } else {
                        Verdict::Well
                    };
                    let text =
                        format!("times of the host are off by at most {error:.0} ns, by its calibration samples");
                    report.add(verdict, "clock error", text);
                }
                None => report.add(Verdict::Note, "clock error", "too few calibration samples to know"),
            }
        }
        Err(error) => report.add(Verdict::Bad, "trial", format!("{error:#}")),
    }
}

fn run(place: &Path) -> Result<(u64, u64, Option<f64>)> {
    let own = std::env::current_exe().context("where roctop itself is")?;
    let mut command = Command::new(&own);
    command
        .arg("record")
        .arg("-o")
        .arg(place)
        .arg("--")
        .arg(&own)
        .arg(demo::WORKER);
    let done = command
        .env(ENV_DEMO, SECONDS)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .context("a trial recording could not be started")?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        anyhow::bail!(
            "a trial recording failed: {}",
            said.lines().next().unwrap_or("no reason was given")
        );
    }
    let recording = Recording::open(place)?;
    let mut calibrations = Calibrations::default();
    recording.deliver(&mut calibrations)?;
    let (mut records, mut lost) = (0, BTreeMap::new());
    recording.items(&mut |items| {
        for item in items {
            match item {
                Item::Api(_) | Item::Dispatch(_) | Item::Copy(_) | Item::Mark(_) | Item::Range(_) => records += 1,
                Item::Lost {
                    process,
                    reason,
                    records,
                } => drop(lost.insert((process, reason), records)),
                _ => {}
            }
        }
    })?;
    Ok((records, lost.into_values().sum(), calibrations.error()))
}
