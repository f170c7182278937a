//! The verdict of an earlier check, in the user's cache: where programs start on this machine, and whether the command was
//! named here before.

use super::inventory::{self, Machine};
use super::verdict::Verdict;
use crate::embedded;
use crate::log;
use anyhow::{Context, Result};
use roctop_ring::level::Level;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What is kept. Files of versions that kept verdicts by time-outs have no date, and are not read.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    /// What it depends on, in full: names of files are hashes.
    key: String,
    /// The version of roctop that checked.
    roctop: String,
    level: u8,
    /// Why it is not level 0.
    reason: String,
    /// When it was checked, in UTC.
    date: String,
}

/// The level that an earlier check found for this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptLevel {
    /// Where programs start.
    pub level: Level,
    /// Why it is not level 0.
    reason: String,
    /// The day of the check, in UTC.
    day: String,
    /// The file that keeps it.
    path: PathBuf,
}

impl KeptLevel {
    /// Why a program starts at this level, and how to change that.
    pub fn explanation(&self) -> String {
        let since = match self.reason.as_str() {
            "" => String::new(),
            reason => format!(", since {reason}"),
        };
        format!(
            "found by 'roctop doctor --gpu' on {}{since}; the check run again, or \"rm '{}'\", removes it",
            self.day,
            self.path.display().to_string().replace('\'', r"'\''")
        )
    }

    /// The line shown when a program starts; `None` at level 0, where everything is recorded.
    pub fn line(&self) -> Option<String> {
        let (level, meaning) = (self.level, self.level.meaning());
        (level != Level::Files).then(|| format!("timing level {level}, {meaning}: {}", self.explanation()))
    }
}

/// A file of a key.
fn file(key: &str, kind: &str) -> Option<PathBuf> {
    let hash = key.bytes().fold(0xcbf2_9ce4_8422_2325u64, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    Some(embedded::cache()?.join(format!("hardware-{hash:016x}.{kind}")))
}

/// Keeps a verdict. A verdict without a level removes the kept one, unless the checks were undecided.
pub(super) fn keep(machine: &Machine, verdict: &Verdict) -> Result<()> {
    let key = machine.key();
    let path = file(&key, "json").context("there is no private directory for it")?;
    let Some(level) = verdict.level else {
        if verdict.undecided.is_empty() {
            let _ = fs::remove_file(path);
        }
        return Ok(());
    };
    let kept = Kept {
        key,
        roctop: env!("CARGO_PKG_VERSION").to_owned(),
        level,
        reason: verdict.reason.clone(),
        date: log::utc(SystemTime::now()),
    };
    let beside = path.with_extension(format!("json.{}", std::process::id()));
    fs::write(&beside, serde_json::to_vec(&kept)?)?;
    Ok(fs::rename(&beside, path)?)
}

/// The level that is kept for a machine.
fn level_of(machine: &Machine) -> Option<KeptLevel> {
    let key = machine.key();
    let path = file(&key, "json")?;
    let kept: Kept = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
    let level = Level::of(kept.level.into()).filter(|_| kept.key == key)?;
    Some(KeptLevel {
        level,
        reason: kept.reason,
        day: kept.date.split('T').next().unwrap_or_default().to_owned(),
        path,
    })
}

/// The level that an earlier check found for this machine.
pub fn kept_level() -> Option<KeptLevel> {
    let machine = inventory::key_facts(Path::new("/"));
    if machine.gpus.is_empty() {
        return None;
    }
    level_of(&machine)
}

/// The line that names the command, the first time on this machine; none where there is no GPU, a verdict, or no run-time.
pub fn hint() -> Option<String> {
    let machine = inventory::key_facts(Path::new("/"));
    if machine.gpus.is_empty() || !machine.facts.contains_key("hsa_build_id") || level_of(&machine).is_some() {
        return None;
    }
    let mark = file(&machine.key(), "named")?;
    // Made by one process alone, of those that start at a time.
    fs::File::options().write(true).create_new(true).open(mark).ok()?;
    let gfx = machine.gpus.first()?;
    Some(format!(
        "timing was not checked on this {gfx} with this kernel and run-time; 'roctop doctor --gpu' does (30 s)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_level_names_its_day_its_reason_and_its_file() {
        let mut kept = KeptLevel {
            level: Level::Plain,
            reason: "D5 fails".into(),
            day: "2026-11-28".into(),
            path: "/it's/here.json".into(),
        };
        assert_eq!(
            kept.line().as_deref(),
            Some(
                "timing level 4, kernels are not recorded; calls and copies are: found by 'roctop doctor --gpu' on \
                 2026-11-28, since D5 fails; the check run again, or \"rm '/it'\\''s/here.json'\", removes it"
            )
        );
        kept.level = Level::Files;
        assert_eq!(kept.line(), None);
    }

    #[test]
    fn a_verdict_without_its_day_is_not_read() {
        let old = r#"{"key":"gfx942 6.8","roctop":"0.1.0","level":6}"#;
        assert!(serde_json::from_str::<Kept>(old).is_err());
    }
}
