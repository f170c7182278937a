//! The verdict of an earlier check, in the user's cache: where programs start on this machine, and whether the command was
//! named here before.

use super::inventory::{self, Machine};
use super::verdict::Verdict;
use crate::embedded;
use anyhow::{Context, Result};
use roctop_ring::level::Level;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// What is kept.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    /// What it depends on, in full: names of files are hashes.
    key: String,
    /// The version of roctop that checked.
    roctop: String,
    level: u8,
}

/// A file of a key.
fn file(key: &str, kind: &str) -> Option<PathBuf> {
    let hash = key.bytes().fold(0xcbf2_9ce4_8422_2325u64, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    Some(embedded::cache()?.join(format!("hardware-{hash:016x}.{kind}")))
}

/// Keeps a verdict. One without a level takes an earlier one away.
pub(super) fn keep(machine: &Machine, verdict: &Verdict) -> Result<()> {
    let key = machine.key();
    let path = file(&key, "json").context("there is no private directory for it")?;
    let Some(level) = verdict.level else {
        let _ = fs::remove_file(path);
        return Ok(());
    };
    let kept = Kept {
        key,
        roctop: env!("CARGO_PKG_VERSION").to_owned(),
        level,
    };
    let beside = path.with_extension(format!("json.{}", std::process::id()));
    fs::write(&beside, serde_json::to_vec(&kept)?)?;
    Ok(fs::rename(&beside, path)?)
}

/// The level that is kept for a machine.
fn level_of(machine: &Machine) -> Option<Level> {
    let key = machine.key();
    let text = fs::read(file(&key, "json")?).ok()?;
    let kept: Kept = serde_json::from_slice(&text).ok()?;
    (kept.key == key).then(|| Level::of(kept.level.into()))?
}

/// The level that an earlier check found for this machine.
pub fn kept_level() -> Option<Level> {
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
