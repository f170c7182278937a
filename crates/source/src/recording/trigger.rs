//! Recordings that a trigger wrote: why, and which of them stay.

use super::{MANIFEST, Recording};
use roctop_trace::item::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// Why a recording was written; part of its manifest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trigger {
    /// The condition as typed; `by hand` or `signal` for these.
    pub condition: String,
    /// What was seen, as a sentence.
    pub reason: String,
    /// When, CLOCK_BOOTTIME ns.
    pub at: Nanos,
    /// When, UTC, as 2026-01-31T23:59:59Z.
    pub time: String,
    /// Time before the trigger that was held, s; less than asked also if the program had just begun.
    pub held_seconds: f64,
    /// Whether memory held less than asked.
    pub is_short: bool,
    /// Time before the trigger that the user asked for, s.
    pub asked_seconds: f64,
    /// Triggers that came while the recording went on: the first ones in words.
    pub also: Vec<String>,
    /// Number of these triggers.
    pub also_count: u64,
}

impl Trigger {
    /// Why, in a line: the condition, what was seen, and how much of the past is missing.
    pub fn line(&self) -> String {
        let mut line = if self.reason.is_empty() {
            self.condition.clone()
        } else {
            format!("{}: {}", self.condition, self.reason)
        };
        if self.is_short {
            let (held, asked) = (self.held_seconds, self.asked_seconds);
            line += &[" (holds ", &format!("{held:.0} s of {asked:.0} s"), ")"].concat();
        }
        if self.also_count > 0 {
            line += &[", and ", &self.also_count.to_string(), " more"].concat();
        }
        line
    }
}

/// A recording that a trigger wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// Its directory.
    pub path: PathBuf,
    /// The condition, as typed.
    pub condition: String,
    /// Size of its files, bytes.
    pub bytes: u64,
}

/// Recordings below a directory that triggers wrote, oldest first: their names begin with their times.
pub fn kept(directory: &Path) -> Vec<Kept> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let visible = entries.filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'));
    let paths = visible
        .map(|entry| entry.path())
        .filter(|path| path.join(MANIFEST).exists());
    let mut found: Vec<Kept> = paths
        .filter_map(|path| {
            let recording = Recording::open(&path).ok()?;
            Some(Kept {
                condition: recording.trigger()?.condition.clone(),
                bytes: recording.bytes(),
                path,
            })
        })
        .collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Which recordings have to go so that at most `count`, of at most `bytes` in all, are left: the oldest first, but the first of
/// each condition after all others.
pub fn excess(kept: &[Kept], count: usize, bytes: Option<u64>) -> Vec<usize> {
    let mut seen = BTreeSet::new();
    let firsts: Vec<bool> = kept.iter().map(|one| seen.insert(&one.condition)).collect();
    let mut order: Vec<usize> = (0..kept.len()).collect();
    // Stable: the oldest stay in front.
    order.sort_by_key(|at| firsts[*at]);
    // The newest is the one that the user waits for.
    order.retain(|at| at + 1 < kept.len());
    let mut left = kept.len();
    let mut size: u64 = kept.iter().map(|one| one.bytes).sum();
    let mut gone = Vec::new();
    for at in order {
        if left <= count.max(1) && bytes.is_none_or(|most| size <= most) {
            break;
        }
        left -= 1;
        size -= kept[at].bytes;
        gone.push(at);
    }
    gone
}

/// Extension of the directory of a recording that is being written, after the process id of its writer.
pub(super) const PARTIAL: &str = ".partial";

/// Temporary name of a recording.
pub(super) fn partial(path: &Path, pid: u32) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{pid}{PARTIAL}"))
}

/// Recordings whose writer died: one that can be read gets its name, others are removed. Returns the new paths.
pub fn adopt_partial(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut adopted = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let inner = name.strip_prefix('.').and_then(|name| name.strip_suffix(PARTIAL));
        let Some((name, pid)) = inner.and_then(|inner| inner.rsplit_once('.')) else {
            continue;
        };
        let is_own = pid.parse() == Ok(std::process::id());
        if is_own || Path::new("/proc").join(pid).exists() {
            continue;
        }
        let target = path.with_file_name(name);
        let is_readable = Recording::open(&path).is_ok_and(|recording| recording.segments().next().is_some());
        if is_readable && !target.exists() {
            std::fs::rename(&path, &target)?;
            adopted.push(target);
        } else {
            std::fs::remove_dir_all(&path)?;
        }
    }
    adopted.sort();
    Ok(adopted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(number: u32, condition: &str, bytes: u64) -> Kept {
        Kept {
            path: format!("{number:04}").into(),
            condition: condition.into(),
            bytes,
        }
    }

    #[test]
    fn the_first_of_each_condition_stays_longest() {
        let all = [
            one(1, "hang > 5s", 10),
            one(2, "lost > 0", 10),
            one(3, "lost > 0", 10),
            one(4, "lost > 0", 10),
            one(5, "lost > 0", 10),
        ];
        assert_eq!(excess(&all, 5, None), [] as [usize; 0]);
        assert_eq!(excess(&all, 4, None), [2]);
        assert_eq!(excess(&all, 3, None), [2, 3]);
        assert_eq!(excess(&all, 2, None), [2, 3, 0]);
        assert_eq!(excess(&all, 0, None), [2, 3, 0, 1], "the newest stays");
        assert_eq!(excess(&all, 5, Some(35)), [2, 3]);
        assert_eq!(excess(&all, 5, Some(1)), [2, 3, 0, 1]);
    }

    #[test]
    fn a_line_says_what_is_missing() {
        let trigger = Trigger {
            condition: "hang > 5s".into(),
            reason: "gemm on GPU0 has been open for 5.1 s".into(),
            held_seconds: 12.2,
            is_short: true,
            asked_seconds: 30.0,
            also_count: 3,
            ..Trigger::default()
        };
        assert_eq!(
            trigger.line(),
            "hang > 5s: gemm on GPU0 has been open for 5.1 s (holds 12 s of 30 s), and 3 more"
        );
    }
}
